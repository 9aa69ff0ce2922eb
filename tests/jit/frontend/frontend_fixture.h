#pragma once

#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/jit/frontend/compilation_unit.h"
#include "core/jit/ir/text.h"
#include "core/jit/ir/verify.h"

namespace tensord::jit {

// Line `number` of these scripts is line `number` of the text.
inline CompilationUnit unit_of(std::string text) { return CompilationUnit({{"code/__torch__/m.py", std::move(text)}}); }

// The graph of __torch__.m.NAME, verified and printed without source locations.
inline std::string graph_of(const CompilationUnit& unit, const std::string& name) {
  const Function* function = unit.find_function("__torch__.m." + name);
  if (!function) return "there is no " + name;
  verify(*function->graph);
  std::string out;
  const std::string text = print_graph(*function->graph);
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    out += line.substr(0, line.find("  # code/")) + "\n";
    at = end + 1;
  }
  return out;
}

inline std::string graph_of(std::string text, const std::string& name) {
  return graph_of(unit_of(std::move(text)), name);
}

// The message and code of the error of compiling f; "" if there is none.
inline std::string error_of(std::string text, ErrorCode* code = nullptr) {
  try {
    const CompilationUnit unit = unit_of(std::move(text));
    if (!unit.find_function("__torch__.m.f")) return "there is no f";
    return "";
  } catch (const Error& error) {
    if (code) *code = error.code();
    return error.what();
  }
}

}  // namespace tensord::jit
