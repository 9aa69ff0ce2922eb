# What `cmake --install` and cpack make, in two components: `daemon`, the binary with what a system runs it with, and
# `development`, the libraries to build programs with (find_package(tensord)).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/tensord)

install(TARGETS tensord RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT daemon)

install(TARGETS tensord_engine EXPORT tensord-engine LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
install(EXPORT tensord-engine FILE tensord-engine-targets.cmake NAMESPACE tensord:: DESTINATION ${package_folder}
        COMPONENT development)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/core DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tensord COMPONENT development
        FILES_MATCHING PATTERN "*.h")
if(TENSORD_SERVER)
  install(TARGETS tensord_client EXPORT tensord-client ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
          COMPONENT development)
  install(EXPORT tensord-client FILE tensord-client-targets.cmake NAMESPACE tensord:: DESTINATION ${package_folder}
          COMPONENT development)
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/clients/cpp/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
          COMPONENT development)
  install(FILES ${CMAKE_BINARY_DIR}/protos/gen/protos/training.pb.h
          DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tensord/client COMPONENT development)
endif()

configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/tensord-config.cmake.in
                              ${CMAKE_BINARY_DIR}/tensord-config.cmake INSTALL_DESTINATION ${package_folder})
# Before 1.0 any release may change what programs see.
write_basic_package_version_file(${CMAKE_BINARY_DIR}/tensord-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/tensord-config.cmake ${CMAKE_BINARY_DIR}/tensord-config-version.cmake
        DESTINATION ${package_folder} COMPONENT development)
