# Fails if one of OBJECTS, compiled for more than every machine has, defines a function that the linker may take for the
# whole program (weak or unique): it would end the process on a machine without those instructions.
# usage: cmake -DNM=... -DOBJECTS=... -P no_shared_functions.cmake
set(shared "")
foreach(object IN LISTS OBJECTS)
  execute_process(COMMAND ${NM} --demangle --defined-only ${object}
    OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
  if(NOT symbols MATCHES " [bBdDrRtT] ")
    message(FATAL_ERROR "${NM} finds nothing in ${object}: this test can't say whether it shares functions")
  endif()
  string(REGEX MATCHALL "[^\n]* [WVu] [^\n]*" found "${symbols}")
  foreach(symbol IN LISTS found)
    string(APPEND shared "  ${object}: ${symbol}\n")
  endforeach()
endforeach()
if(shared)
  message(FATAL_ERROR "The linker may take these for the whole program, with the instructions of a wider set:\n"
    "${shared}"
    "Put what kernels/cpu/simd defines into the unnamed namespace or make it PREFIXD_INLINE, and call a builtin or a "
    "function of your own in place of the standard library's (kernels/cpu/simd/vector.h says why).")
endif()
list(LENGTH OBJECTS count)
message(STATUS "${count} files share no function")
