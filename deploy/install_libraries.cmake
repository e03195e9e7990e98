# Run by `cmake --install`: bundles the shared libraries of PREFIXD_PROGRAMS, with their licences.
# What every Linux of the same age has stays out: glibc, and the C++ run time of the compiler.
set(documents ${CMAKE_INSTALL_PREFIX}/share/doc/prefixd)

file(GET_RUNTIME_DEPENDENCIES
  EXECUTABLES ${PREFIXD_PROGRAMS}
  RESOLVED_DEPENDENCIES_VAR libraries
  PRE_EXCLUDE_REGEXES "^ld-linux.*\\.so" "^lib(c|m|dl|rt|pthread|resolv|stdc\\+\\+|gcc_s)\\.so")
list(SORT libraries)
file(INSTALL ${libraries} DESTINATION ${CMAKE_INSTALL_PREFIX}/lib TYPE SHARED_LIBRARY FOLLOW_SYMLINK_CHAIN)

# The packages that they are from, and those whose headers are compiled in.
find_program(dpkg_query dpkg-query)
set(packages libcli11-dev nlohmann-json3-dev)
set(strangers)
foreach(library IN LISTS libraries)
  cmake_path(GET library FILENAME name)
  file(REAL_PATH ${library} file)
  string(REGEX REPLACE "^/usr/" "/" file_before_merge ${file})  # /usr/lib and /lib are one; dpkg knows either.
  set(owners "")
  if(dpkg_query)
    execute_process(COMMAND ${dpkg_query} --search ${file} ${file_before_merge} OUTPUT_VARIABLE owners ERROR_QUIET)
  endif()
  if(owners MATCHES "^[^:, ]+")
    list(APPEND packages ${CMAKE_MATCH_0})
    string(APPEND libraries_of_${CMAKE_MATCH_0} " ${name}")
  else()
    list(APPEND strangers ${name})
  endif()
endforeach()
list(REMOVE_DUPLICATES packages)
list(SORT packages)

set(list "What is bundled, and the package that it is from. The licences are beside this file.\n\n")
foreach(package IN LISTS packages)
  set(version "")
  if(dpkg_query)
    execute_process(COMMAND ${dpkg_query} --show --showformat=\${Version} ${package}
      OUTPUT_VARIABLE version ERROR_QUIET)
  endif()
  if(NOT version)
    list(APPEND strangers ${package})
    continue()
  endif()
  if(NOT libraries_of_${package})
    set(libraries_of_${package} " (headers, compiled in)")
  endif()
  string(APPEND list "${package} ${version}:${libraries_of_${package}}\n")

  set(copyright /usr/share/doc/${package}/copyright)
  file(INSTALL ${copyright} DESTINATION ${documents}/licenses RENAME ${package} TYPE FILE)
  # Debian's copyright files refer to the common licences by their place on a Debian system.
  file(STRINGS ${copyright} lines REGEX "/usr/share/common-licenses/")
  foreach(line IN LISTS lines)
    if(line MATCHES "/usr/share/common-licenses/([A-Za-z0-9.-]*[A-Za-z0-9])" AND EXISTS ${CMAKE_MATCH_0})
      file(READ ${CMAKE_MATCH_0} text)
      file(WRITE $ENV{DESTDIR}${documents}/licenses/common-licenses/${CMAKE_MATCH_1} "${text}")
    endif()
  endforeach()
endforeach()
foreach(stranger IN LISTS strangers)
  message(WARNING "prefixd: ${stranger} is of no installed package, so its licence was not found. "
                  "Before you pass the installed tree on, put it into share/doc/prefixd/licenses.")
  string(APPEND list "${stranger} (of no package)\n")
endforeach()
string(APPEND list "\nWith CUDA, the programs hold NVIDIA's CUDA run time: https://docs.nvidia.com/cuda/eula\n")
file(WRITE $ENV{DESTDIR}${documents}/bundled.txt "${list}")
