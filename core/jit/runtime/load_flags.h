#pragma once

#include <string>

#include "core/jit/runtime/module.h"

namespace tensord::jit {

// Parse load options as flags and configuration files spell them. Throw Error{kInvalidArgument} with the expected form.
void disable_pass(LoadOptions& options, const std::string& name);
void limit_pass(LoadOptions& options, const std::string& text);  // "PASS:N", at most N changes
ops::Precision parse_precision(const std::string& text);         // "f32", "tf32" (kF32), "bf16" or "int8"
void set_precision(LoadOptions& options, const std::string& text);
const char* to_string(ops::Precision precision);

}  // namespace tensord::jit
