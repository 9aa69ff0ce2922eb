# tensord_layer(name FOLDER LINKS...): one static library from the sources of a folder and its rooms. The
# links are the layers below it; tests/layering.py checks that includes agree.
function(tensord_layer name folder)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/*.cpp ${CMAKE_SOURCE_DIR}/${folder}/*/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/cuda/[a-z_]*\\.cpp$")
  if(NOT folder MATCHES "/pbtxt$")
    list(FILTER sources EXCLUDE REGEX "/pbtxt/[a-z_]*\\.cpp$")  # a layer of its own, which needs protobuf
  endif()
  if(sources)
    add_library(${name} STATIC ${sources})
    target_link_libraries(${name} PUBLIC ${ARGN})
  else()
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE ${ARGN})
  endif()
endfunction()
