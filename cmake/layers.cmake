# The layers of the engine from bottom to top. The server and tests build on them.
set(engine_layers tensord_base tensord_tensor tensord_ops tensord_autograd tensord_distributed tensord_nn
                  tensord_jit_ir tensord_jit_frontend tensord_jit_passes tensord_jit_archive tensord_jit_importers
                  tensord_jit_tracing tensord_jit_exporters tensord_jit_runtime tensord_files tensord_vision tensord_api)

# tensord_link(TARGET LIBRARIES…): links libraries that build on the engine. A target with the property
# TENSORD_SHARED_ENGINE gets the engine as one shared library instead of the layers, because the registry must exist
# only once.
function(tensord_link target)
  get_target_property(type ${target} TYPE)
  set(scope PUBLIC)
  if(type STREQUAL INTERFACE_LIBRARY)
    set(scope INTERFACE)
  endif()
  foreach(library ${ARGN})
    if(library IN_LIST engine_layers)
      set(library "$<IF:$<BOOL:$<TARGET_PROPERTY:TENSORD_SHARED_ENGINE>>,tensord_engine,${library}>")
    endif()
    target_link_libraries(${target} ${scope} ${library})
  endforeach()
endfunction()

# Code that runs once per load, command or job, and never per request. It is compiled for size, which takes a quarter
# less time.
set(cold_layers tensord_jit_frontend tensord_jit_archive tensord_jit_importers tensord_jit_tracing tensord_jit_exporters
                tensord_server_config tensord_server_pbtxt tensord_server_training tensord_server_web tensord_server_fetch tensord_server_daemon)
function(tensord_compile_for_size target)
  if(NOT TENSORD_FUZZ)
    target_compile_options(${target} PRIVATE -Os)
  endif()
endfunction()

# tensord_layer(name FOLDER LINKS...): makes one static library from the sources of a folder and its subfolders. The
# links are the layers below; tests/layering.py checks that includes match them.
function(tensord_layer name folder)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/*.cpp ${CMAKE_SOURCE_DIR}/${folder}/*/*.cpp)
  if(NOT folder MATCHES "/pbtxt$")
    list(FILTER sources EXCLUDE REGEX "/pbtxt/[a-z_]*\\.cpp$")  # a layer of its own, which needs protobuf
  endif()
  if(sources)
    add_library(${name} STATIC ${sources})
    tensord_unity(${name} 24)
    if(name IN_LIST cold_layers)
      tensord_compile_for_size(${name})
      tensord_precompile(${name} <nlohmann/json.hpp>)  # most of them read or write JSON
    else()
      tensord_precompile(${name})
    endif()
  else()
    add_library(${name} INTERFACE)
  endif()
  if(name IN_LIST engine_layers AND sources)
    target_link_libraries(${name} PUBLIC ${ARGN})
  elseif(name IN_LIST engine_layers)
    target_link_libraries(${name} INTERFACE ${ARGN})
  else()
    tensord_link(${name} ${ARGN})
  endif()
endfunction()
