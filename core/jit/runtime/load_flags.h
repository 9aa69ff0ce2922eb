#pragma once

#include <string>

#include "core/jit/runtime/module.h"

namespace tensord::jit {

// Options of a load as flags and configuration files spell them. All throw
// Error{kInvalidArgument} that says what was expected.
void disable_pass(LoadOptions& options, const std::string& name);
void limit_pass(LoadOptions& options, const std::string& text);  // "PASS:N", at most N changes
ops::Precision parse_precision(const std::string& text);         // "f32", "bf16" or "int8"
const char* to_string(ops::Precision precision);

}  // namespace tensord::jit
