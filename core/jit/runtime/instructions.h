#pragma once

#include <span>
#include <vector>

#include "core/jit/runtime/program.h"
#include "core/ops/value.h"

namespace tensord::jit {

// Executes an instruction that is not a jump, a call or an operator: attributes, constructors, unpacking, type tests.
// Appends its results to `returns`.
void execute_data(const Instruction& instruction, const InstructionDetail& detail,
                  std::span<const ops::Value> arguments, std::vector<ops::Value>& returns);

}  // namespace tensord::jit
