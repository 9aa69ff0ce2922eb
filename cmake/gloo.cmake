# Process groups over Gloo: a shared object that is opened when a group asks for it (core/distributed/gloo), so that
# a daemon that only serves is not linked to Gloo and its dependencies. Debian's libgloo-dev has no archive.
find_path(GLOO_INCLUDE gloo/allgatherv.h)
find_library(GLOO_LIBRARY gloo)
if(TENSORD_GLOO STREQUAL "ON" AND NOT (GLOO_INCLUDE AND GLOO_LIBRARY))
  message(FATAL_ERROR "TENSORD_GLOO=ON, but Gloo is not found (Debian: libgloo-dev)")
endif()
if(NOT TENSORD_GLOO STREQUAL "OFF" AND GLOO_INCLUDE AND GLOO_LIBRARY)
  add_library(tensord_gloo MODULE ${CMAKE_SOURCE_DIR}/core/distributed/gloo/module/gloo_module.cpp
              ${CMAKE_SOURCE_DIR}/core/base/error.cpp)
  target_include_directories(tensord_gloo SYSTEM PRIVATE ${GLOO_INCLUDE})
  target_link_libraries(tensord_gloo PRIVATE ${GLOO_LIBRARY} Threads::Threads)
  # Programs of this build and installed programs search for it there.
  set_target_properties(tensord_gloo PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/tensord)
  # Two packages must not have one file: the engine library finds it at its side.
  include(GNUInstallDirs)
  install(TARGETS tensord_gloo LIBRARY DESTINATION lib/tensord COMPONENT daemon)
  install(TARGETS tensord_gloo LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
endif()
