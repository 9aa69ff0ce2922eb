# embed_text(OUT.cpp FUNCTION HEADER PREFIX FILES...): generates a source file with FUNCTION() ->
# std::vector<SourceFile>. Each item is the text of a file under the name PREFIX/NAME. The source file is regenerated
# when one of the files changes.
function(embed_text out function header prefix)
  set(text "// Made by CMake from the files named below.\n#include \"${header}\"\n\n")
  string(APPEND text "namespace tensord::jit::onnx {\n\nstd::vector<SourceFile> ${function}() {\n  return {\n")
  foreach(file ${ARGN})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    file(READ ${file} contents)
    get_filename_component(name ${file} NAME)
    string(APPEND text "      {\"${prefix}/${name}\", R\"~~~(${contents})~~~\"},\n")
  endforeach()
  string(APPEND text "  };\n}\n\n}  // namespace tensord::jit::onnx\n")
  file(CONFIGURE OUTPUT ${out} CONTENT "@text@" @ONLY)
endfunction()
