# embed_page(TARGET OUT.cpp FILES...): compiles the files of the status page into TARGET, each packed by gzip.
# server/web/page_files.h declares what OUT.cpp defines. The assembler includes the packed files, so they cost no
# compile time. index.html is served as "/", the others as "/page/NAME".
find_program(GZIP gzip REQUIRED)

set(page_type_html "text/html; charset=utf-8")
set(page_type_css "text/css; charset=utf-8")
set(page_type_js "text/javascript; charset=utf-8")
set(page_type_svg "image/svg+xml")

function(embed_page target out)
  get_filename_component(folder ${out} DIRECTORY)
  file(MAKE_DIRECTORY ${folder}/page)
  set(assembly "")
  set(symbols "")
  set(rows "")
  set(packed_files "")
  set(number 0)
  foreach(file ${ARGN})
    get_filename_component(name ${file} NAME)
    get_filename_component(extension ${file} LAST_EXT)
    string(SUBSTRING ${extension} 1 -1 extension)
    if(NOT DEFINED page_type_${extension})
      message(FATAL_ERROR "${file}: no type is known for files that end so")
    endif()
    set(packed ${folder}/page/${name}.gz)
    add_custom_command(OUTPUT ${packed} COMMAND ${GZIP} -9 -n -c ${file} > ${packed} DEPENDS ${file} VERBATIM)
    set(path "/page/${name}")
    if(name STREQUAL "index.html")
      set(path "/")
    endif()
    set(symbol "tensord_page_${number}")
    string(APPEND assembly "    \".hidden ${symbol}, ${symbol}_end\\n.globl ${symbol}, ${symbol}_end\\n\"\n"
                           "    \"${symbol}:\\n.incbin \\\"${packed}\\\"\\n${symbol}_end:\\n\"\n")
    string(APPEND symbols "extern const uint8_t ${symbol}[], ${symbol}_end[];\n")
    string(APPEND rows "    {\"${path}\", \"${page_type_${extension}}\", {${symbol}, ${symbol}_end}},\n")
    list(APPEND packed_files ${packed})
    math(EXPR number "${number} + 1")
  endforeach()
  file(CONFIGURE OUTPUT ${out} CONTENT [=[
// Made by cmake/embed_page.cmake.
#include "server/web/page_files.h"

asm(".pushsection .rodata\n"
@assembly@    ".popsection\n");

extern "C" {
#pragma GCC visibility push(hidden)
@symbols@#pragma GCC visibility pop
}

namespace tensord::server {
namespace {

const PageFile kPageFiles[] = {
@rows@};

}  // namespace

const PageFile* find_page_file(std::string_view path) {
  for (const PageFile& file : kPageFiles) {
    if (file.path == path) return &file;
  }
  return nullptr;
}

}  // namespace tensord::server
]=] @ONLY)
  set_source_files_properties(${out} PROPERTIES OBJECT_DEPENDS "${packed_files}" SKIP_UNITY_BUILD_INCLUSION ON)
  target_sources(${target} PRIVATE ${out})
endfunction()
