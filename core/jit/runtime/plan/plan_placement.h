#pragma once

#include <vector>

#include "core/jit/runtime/plan/plan.h"

namespace tensord::jit {

// By root: the last call that reads or writes it, or -1.
std::vector<int> last_uses(const Plan& plan);

// Places all roots and scratch of a plan: results take the memory of operands that die, roots that are returned
// (`escapes`, by root) become outputs, and everything else shares one arena.
void place_memory(Plan& plan, std::vector<bool>& escapes, const PlanSettings& settings);

}  // namespace tensord::jit
