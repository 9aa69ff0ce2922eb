# The target tensord_python, the extension module with the package around it: python/tensord/engine of the build folder. Wants
# tensord::engine, Python and nanobind, and in engine_abi what nanobind_add_module takes (STABLE_ABI).
file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/binding/*.cpp)
nanobind_add_module(tensord_python NB_STATIC NOMINSIZE ${engine_abi} ${sources})
target_link_libraries(tensord_python PRIVATE tensord::engine)
get_target_property(nanobind_library tensord_python LINK_LIBRARIES)
foreach(library ${nanobind_library})
  if(library MATCHES "^nanobind-static")
    target_compile_options(${library} PRIVATE -w)
  endif()
endforeach()
# Hidden inline variables would be the module's own, not the engine's: the thread's grad mode among them.
set_target_properties(tensord_python PROPERTIES OUTPUT_NAME _engine CXX_VISIBILITY_PRESET default
                      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/python/tensord/engine INSTALL_RPATH "$ORIGIN")

# The package's Python files lie beside the module by links, so that they can be edited without a build.
file(GLOB package_files CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/src/tensord/engine/*)
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/python/tensord/engine)
foreach(file ${package_files})
  get_filename_component(name ${file} NAME)
  if(NOT name STREQUAL "__pycache__")
    file(CREATE_LINK ${file} ${CMAKE_BINARY_DIR}/python/tensord/engine/${name} SYMBOLIC)
  endif()
endforeach()

# Types for editors and mypy, of what the module says of itself.
cmake_path(GET nanobind_DIR PARENT_PATH nanobind_package)
cmake_path(GET nanobind_package PARENT_PATH nanobind_packages)
add_custom_command(TARGET tensord_python POST_BUILD VERBATIM
                   COMMAND ${CMAKE_COMMAND} -E env PYTHONPATH=${nanobind_packages} PYTHONDONTWRITEBYTECODE=1 ${Python_EXECUTABLE}
                   ${CMAKE_CURRENT_LIST_DIR}/stubs.py ${CMAKE_BINARY_DIR}/python/tensord/engine)
