#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include "core/ops/registry.h"
#include "core/ops/run.h"
#include "core/ops/sparse.h"

namespace tensord::python {

// Runs an operator that is looked up once. All arguments are positional, without defaults.
inline Tensor run_op(const ops::Op& op, std::initializer_list<ops::Value> arguments) {
  std::vector<ops::Value> returns;
  ops::run(op, std::span(arguments.begin(), arguments.size()), returns);
  if (returns.empty() || returns.front().is_none()) return {};
  return returns.front().to_tensor();
}

}  // namespace tensord::python
