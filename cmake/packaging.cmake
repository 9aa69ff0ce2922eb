# The results of `cmake --install` and cpack, in two components: `daemon` has the binary and its system files,
# `development` the libraries to build programs with (find_package(tensord)).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/tensord)

install(TARGETS tensord RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT daemon)
if(TARGET tensord_gloo)
  add_dependencies(tensord tensord_gloo)  # the daemon opens it where a job has several ranks
endif()

# The targets that the component needs.
add_custom_target(development DEPENDS tensord_engine)
if(TARGET tensord_gloo)
  add_dependencies(development tensord_gloo)
endif()

install(TARGETS tensord_engine EXPORT tensord-engine LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
install(EXPORT tensord-engine FILE tensord-engine-targets.cmake NAMESPACE tensord:: DESTINATION ${package_folder}
        COMPONENT development)
# The same for python/wheel, which builds against this folder.
export(EXPORT tensord-engine FILE ${CMAKE_BINARY_DIR}/tensord-engine-targets.cmake NAMESPACE tensord::)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/core DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tensord COMPONENT development
        FILES_MATCHING PATTERN "*.h")
install(DIRECTORY ${CMAKE_BINARY_DIR}/generated/core DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tensord COMPONENT development)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
install(DIRECTORY ${TENSORD_GENERATED}/ops ${TENSORD_GENERATED}/tensord/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tensord
        COMPONENT development FILES_MATCHING PATTERN "*.h")
file(RELATIVE_PATH way_up "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
configure_file(${CMAKE_SOURCE_DIR}/cmake/tensord-engine.pc.in ${CMAKE_BINARY_DIR}/tensord-engine.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/tensord-engine.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
if(TENSORD_SERVER)
  add_dependencies(development tensord_client)
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
# Before 1.0 any release may change the API.
write_basic_package_version_file(${CMAKE_BINARY_DIR}/tensord-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/tensord-config.cmake ${CMAKE_BINARY_DIR}/tensord-config-version.cmake
        DESTINATION ${package_folder} COMPONENT development)

find_package(Python3 QUIET COMPONENTS Interpreter)
if(TENSORD_SERVER AND Python3_FOUND AND NOT TENSORD_SANITIZE)
  # Man pages and completions, generated from the binary.
  set(pages ${CMAKE_BINARY_DIR}/command_pages)
  set(make_pages ${CMAKE_SOURCE_DIR}/scripts/command_pages.py)
  add_custom_command(OUTPUT ${pages}/made COMMAND ${Python3_EXECUTABLE} ${make_pages} $<TARGET_FILE:tensord> ${pages}
                     COMMAND ${CMAKE_COMMAND} -E touch ${pages}/made DEPENDS tensord ${make_pages} VERBATIM)
  add_custom_target(command_pages ALL DEPENDS ${pages}/made)
  install(DIRECTORY ${pages}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT daemon)
  install(FILES ${pages}/bash/tensord DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT daemon)
  install(FILES ${pages}/zsh/_tensord DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions COMPONENT daemon)
  install(FILES ${pages}/fish/tensord.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d
          COMPONENT daemon)

  set(systemd ${CMAKE_SOURCE_DIR}/deploy/systemd)
  install(FILES ${systemd}/tensord.service ${systemd}/tensord.socket DESTINATION lib/systemd/system COMPONENT daemon)
  install(FILES ${systemd}/tensord.sysusers DESTINATION lib/sysusers.d RENAME tensord.conf COMPONENT daemon)
  install(FILES ${systemd}/tensord.default DESTINATION ${CMAKE_INSTALL_DATADIR}/tensord COMPONENT daemon)
  install(FILES ${CMAKE_SOURCE_DIR}/README.md ${CMAKE_SOURCE_DIR}/CHANGELOG.md
          DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/tensord COMPONENT daemon)
endif()

# cpack -G DEB: packages tensord and tensord-dev; -G TGZ: one archive each. scripts/package makes them from two builds.
set(CPACK_PACKAGE_NAME tensord)
set(CPACK_PACKAGE_CONTACT "tensord developers <tensord@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Serves and trains TorchScript models over gRPC, without PyTorch")
set(CPACK_COMPONENTS_ALL daemon development)
# CPACK_INSTALL_CMAKE_PROJECTS refers to components by these names.
set(CPACK_COMPONENTS_DAEMON daemon)
set(CPACK_COMPONENTS_DEVELOPMENT development)
set(CPACK_STRIP_FILES TRUE)
set(CPACK_VERBATIM_VARIABLES TRUE)
set(CPACK_THREADS 0)
set(CPACK_ARCHIVE_COMPONENT_INSTALL TRUE)
set(CPACK_ARCHIVE_DAEMON_FILE_NAME tensord-${PROJECT_VERSION}-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_ARCHIVE_DEVELOPMENT_FILE_NAME tensord-dev-${PROJECT_VERSION}-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_DEB_COMPONENT_INSTALL TRUE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS TRUE)
set(CPACK_DEBIAN_DAEMON_PACKAGE_NAME tensord)
set(CPACK_DEBIAN_DAEMON_PACKAGE_SECTION science)
set(CPACK_DEBIAN_DAEMON_PACKAGE_DEPENDS "systemd | adduser")
set(CPACK_DEBIAN_DAEMON_PACKAGE_RECOMMENDS ca-certificates)
set(scripts ${CMAKE_SOURCE_DIR}/deploy/debian)
set(CPACK_DEBIAN_DAEMON_PACKAGE_CONTROL_EXTRA ${scripts}/postinst ${scripts}/prerm ${scripts}/postrm)
set(CPACK_COMPONENT_DAEMON_DESCRIPTION
  "Answers KServe v2 and Triton clients, from a Triton-style model repository. With\n its commands for running daemons and systemd units.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME tensord-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
# gRPC's CMake package also requires the plug-ins of its compiler.
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libgrpc++-dev, libprotobuf-dev, protobuf-compiler-grpc, pkg-config")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION
  "The C++ client and the engine as libraries, with headers and a CMake package.")
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_SOURCE_DIR}/cmake/package_prefix.cmake)
include(CPack)
