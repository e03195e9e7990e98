# What `cmake --install` makes: one folder that runs wherever it is copied to.
#   bin/      prefixd, prefixctl
#   lib/      the shared libraries they need beyond glibc and the C++ run time; the client library, with its CMake package
#   include/  prefixd/: the client's headers
#   share/    prefixd/proto: the contract; prefixd/example: a program; doc/prefixd: README, docs, licences, list of libraries
#
# The run path is an RPATH, not the RUNPATH that linkers write by default: RUNPATH serves only a program's own libraries,
# RPATH also those that these libraries need in turn, so that they are bundled as the distribution built them.
include(CMakePackageConfigHelpers)

foreach(program prefixd prefixctl)
  set_target_properties(${program} PROPERTIES INSTALL_RPATH "$ORIGIN/../lib")
  target_link_options(${program} PRIVATE -Wl,--disable-new-dtags)
endforeach()
install(CODE "set(PREFIXD_PROGRAMS \"$<TARGET_FILE:prefixd>\" \"$<TARGET_FILE:prefixctl>\")
set(PREFIXD_WITH_CUDA ${PREFIXD_WITH_CUDA})
set(PREFIXD_CUDA_TOOLKIT \"${CUDAToolkit_LIBRARY_ROOT}\")
set(PREFIXD_CUDA_INCLUDE_DIRS \"${CUDAToolkit_INCLUDE_DIRS}\")")
install(SCRIPT ${CMAKE_CURRENT_LIST_DIR}/install_libraries.cmake)
install(TARGETS prefixd prefixctl RUNTIME DESTINATION bin)

foreach(library base client proto types)
  set_target_properties(prefixd_${library} PROPERTIES EXPORT_NAME ${library})
endforeach()
install(TARGETS prefixd_base prefixd_client prefixd_proto prefixd_types EXPORT prefixd
  ARCHIVE DESTINATION lib
  FILE_SET HEADERS DESTINATION include)
install(EXPORT prefixd NAMESPACE prefixd:: FILE prefixdTargets.cmake DESTINATION lib/cmake/prefixd)
configure_package_config_file(${PROJECT_SOURCE_DIR}/client/prefixdConfig.cmake.in
  ${PROJECT_BINARY_DIR}/generated/prefixdConfig.cmake INSTALL_DESTINATION lib/cmake/prefixd)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/generated/prefixdConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/generated/prefixdConfig.cmake
              ${PROJECT_BINARY_DIR}/generated/prefixdConfigVersion.cmake
  DESTINATION lib/cmake/prefixd)

install(DIRECTORY proto/prefixd proto/google proto/grpc DESTINATION share/prefixd/proto)
install(DIRECTORY client/example DESTINATION share/prefixd)
install(FILES README.md CHANGELOG.md SECURITY.md LICENSE DESTINATION share/doc/prefixd)
install(DIRECTORY docs DESTINATION share/doc/prefixd)
