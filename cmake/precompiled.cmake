# tensord_precompile(TARGET [HEADERS…]): the target's units do not parse the headers of core/ops/precompiled.h, and these
# ones, but take them from a file that all targets with the same options share. GCC takes even the level of optimization
# from that file and not from the unit's command, so sources with options of their own do without it.
# This is for builds that start without a cache, such as the presets release and static. GCC writes another file each time,
# so that ccache would not find what other checkouts have compiled.
option(TENSORD_PRECOMPILE "Parse the headers that most units read once" OFF)

function(tensord_precompile target)
  if(TENSORD_PRECOMPILE AND TENSORD_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # At the end, when the target has all of its options.
    cmake_language(EVAL CODE "cmake_language(DEFER DIRECTORY [[${CMAKE_SOURCE_DIR}]] CALL tensord_use_precompiled [[${target}]] [[${ARGN}]])")
  endif()
endfunction()

function(tensord_use_precompiled target headers)
  if(target STREQUAL tensord_api)
    return()  # the class Tensor of include/tensord has more members, and is declared instead of the engine's
  endif()
  if(TENSORD_SANITIZE MATCHES thread AND target MATCHES "server|^tensord$")
    return()  # an option of tensord_client_messages makes another macro there
  endif()
  get_target_property(sources ${target} SOURCES)
  foreach(source ${sources})
    get_source_file_property(own ${source} TARGET_DIRECTORY ${target} COMPILE_OPTIONS)
    if(own)
      set_source_files_properties(${source} TARGET_DIRECTORY ${target} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
    endif()
  endforeach()
  target_compile_options(${target} PRIVATE -fpch-preprocess)  # ccache needs it
  # A false warning about std::string, whose header GCC does not know as the system's any more.
  target_compile_options(${target} PRIVATE -Wno-error=stringop-overflow)
  get_target_property(options ${target} COMPILE_OPTIONS)
  string(MD5 owner "${options} ${headers}")  # the target that has the file
  string(PREPEND owner precompiled_)
  if(NOT TARGET ${owner})
    set(source ${CMAKE_BINARY_DIR}/${owner}.cpp)
    if(NOT EXISTS ${source})
      file(WRITE ${source} "")
    endif()
    add_library(${owner} OBJECT EXCLUDE_FROM_ALL ${source})
    set_target_properties(${owner} PROPERTIES COMPILE_OPTIONS "${options}")
    target_link_libraries(${owner} PRIVATE OpenMP::OpenMP_CXX)
    target_precompile_headers(${owner} PRIVATE <core/ops/precompiled.h> ${headers})
  endif()
  get_target_property(type ${target} TYPE)
  if(type STREQUAL EXECUTABLE)
    target_compile_options(${target} PRIVATE -fPIC)  # as libraries, to share the file with them
  endif()
  target_precompile_headers(${target} REUSE_FROM ${owner})
endfunction()
