#include "core/jit/runtime/load_flags.h"

#include <charconv>

#include "core/base/error.h"
#include "core/jit/passes/pipeline.h"

namespace tensord::jit {

void disable_pass(LoadOptions& options, const std::string& name) {
  options.passes.disabled.insert(find_pass(name).name);
}

void limit_pass(LoadOptions& options, const std::string& text) {
  const size_t colon = text.rfind(':');
  check(colon != std::string::npos && colon > 0, text, ": expected PASS:N");
  int64_t limit = 0;
  const char* end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data() + colon + 1, end, limit);
  check(code == std::errc() && stop == end && limit >= 0, text, ": expected PASS:N with N at least 0");
  options.passes.limits[find_pass(text.substr(0, colon)).name] = limit;
}

ops::Precision parse_precision(const std::string& text) {
  if (text == "tf32") return ops::Precision::kF32;
  for (const ops::Precision precision : {ops::Precision::kF32, ops::Precision::kBf16, ops::Precision::kInt8}) {
    if (text == to_string(precision)) return precision;
  }
  fail(ErrorCode::kInvalidArgument, "'", text, "': expected f32, tf32, bf16 or int8");
}

void set_precision(LoadOptions& options, const std::string& text) {
  options.precision = parse_precision(text);
  options.allows_tf32 = text == "tf32";
}

const char* to_string(ops::Precision precision) {
  switch (precision) {
    case ops::Precision::kF32: return "f32";
    case ops::Precision::kBf16: return "bf16";
    case ops::Precision::kInt8: return "int8";
  }
  return "unknown";
}

}  // namespace tensord::jit
