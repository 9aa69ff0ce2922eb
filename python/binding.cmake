# The target tensord_python: the extension module with its package, python/tensord/engine in the build folder. Requires
# tensord::engine, Python and nanobind, and in engine_abi the options of nanobind_add_module (STABLE_ABI).
file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/binding/*.cpp)
nanobind_add_module(tensord_python NB_STATIC NOMINSIZE ${engine_abi} ${sources})
target_link_libraries(tensord_python PRIVATE tensord::engine)
get_target_property(nanobind_library tensord_python LINK_LIBRARIES)
foreach(library ${nanobind_library})
  if(library MATCHES "^nanobind-static")
    target_compile_options(${library} PRIVATE -w)
  endif()
endforeach()
# With hidden visibility, inline variables of the engine would exist twice, for example the thread's grad mode.
set_target_properties(tensord_python PROPERTIES OUTPUT_NAME _engine CXX_VISIBILITY_PRESET default
                      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/python/tensord/engine INSTALL_RPATH "$ORIGIN")

# Links place the package's Python files next to the module, so that they can be edited without a build.
file(GLOB package_files CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/src/tensord/engine/*)
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/python/tensord/engine)
foreach(file ${package_files})
  get_filename_component(name ${file} NAME)
  if(NOT name STREQUAL "__pycache__")
    file(CREATE_LINK ${file} ${CMAKE_BINARY_DIR}/python/tensord/engine/${name} SYMBOLIC)
  endif()
endforeach()

# Type stubs for editors and mypy, generated from the module.
cmake_path(GET nanobind_DIR PARENT_PATH nanobind_package)
cmake_path(GET nanobind_package PARENT_PATH nanobind_packages)
add_custom_command(TARGET tensord_python POST_BUILD VERBATIM
                   COMMAND ${CMAKE_COMMAND} -E env PYTHONPATH=${nanobind_packages} PYTHONDONTWRITEBYTECODE=1 ${Python_EXECUTABLE}
                   ${CMAKE_CURRENT_LIST_DIR}/stubs.py ${CMAKE_BINARY_DIR}/python/tensord/engine)
