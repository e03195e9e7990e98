# Run by `cmake --install`: bundles the shared libraries of PREFIXD_PROGRAMS, with their licences.
# What every Linux of the same age has stays out: glibc, and the C++ run time of the compiler.
set(documents ${CMAKE_INSTALL_PREFIX}/share/doc/prefixd)

# There, the bundled OpenSSL and zlib would come before the system's own, for every program.
cmake_path(SET prefix NORMALIZE ${CMAKE_INSTALL_PREFIX}/)
if(prefix MATCHES "^/(usr/(local/)?)?$")
  message(FATAL_ERROR "prefixd: ${CMAKE_INSTALL_PREFIX} is the system's: its libraries would be hidden or overwritten. "
                      "Give a folder of prefixd's own, such as --prefix /opt/prefixd.")
endif()

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
  file(READ ${copyright} text)
  string(REGEX MATCHALL "/usr/share/common-licenses/[A-Za-z0-9.-]*[A-Za-z0-9]" common_licenses "${text}")
  foreach(common_license IN LISTS common_licenses)
    cmake_path(GET common_license FILENAME name)
    if(EXISTS ${common_license})
      file(READ ${common_license} text)
      file(WRITE $ENV{DESTDIR}${documents}/licenses/common-licenses/${name} "${text}")
    endif()
  endforeach()
endforeach()
foreach(stranger IN LISTS strangers)
  message(WARNING "prefixd: ${stranger} is of no installed package, so its licence was not found. "
                  "Before you pass the installed tree on, put it into share/doc/prefixd/licenses.")
  string(APPEND list "${stranger} (of no package)\n")
endforeach()
if(PREFIXD_WITH_CUDA)
  string(APPEND list "\nThe programs hold NVIDIA's CUDA run time, under https://docs.nvidia.com/cuda/eula\n")
  find_file(eula EULA.txt PATHS ${PREFIXD_CUDA_TOOLKIT} NO_DEFAULT_PATH)
  if(eula)
    file(INSTALL ${eula} DESTINATION ${documents}/licenses RENAME cuda TYPE FILE)
  endif()
  # CUB's licence wants its notice beside programs too. The toolkit has it at the head of each header.
  string(APPEND list "and kernels of NVIDIA's CUB\n")
  find_file(cub_header cub/device/device_scan.cuh PATHS ${PREFIXD_CUDA_INCLUDE_DIRS} PATH_SUFFIXES cccl REQUIRED
            NO_DEFAULT_PATH)
  file(READ ${cub_header} text)
  string(FIND "${text}" "*/" end)
  string(SUBSTRING "${text}" 0 ${end} text)
  file(WRITE $ENV{DESTDIR}${documents}/licenses/cub "${text}*/\n")
endif()
file(WRITE $ENV{DESTDIR}${documents}/bundled.txt "${list}")
