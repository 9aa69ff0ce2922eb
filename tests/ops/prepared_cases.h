#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "core/ops/complex.h"
#include "tests/kernels/prepared_fixture.h"
#include "tests/ops/op_cases.h"

namespace tensord::op_cases {

inline void collect_tensors(const Value& value, std::vector<Tensor>& out) {
  if (value.is_tensor()) out.push_back(value.to_tensor());
  if (!value.is_list()) return;
  for (const Value& item : value.to_list()->items) collect_tensors(item, out);
}

// One prepared call: as it is, and with its result on each operand that allows it.
inline std::string check_prepared(const ops::Op& op, const std::vector<Value>& arguments,
                                  const std::vector<Tensor>& constants, const std::vector<Tensor>& expected,
                                  Tolerance tolerance) {
  std::optional<testing::PreparedRunner> runner;
  try {
    runner.emplace(op, arguments, constants, 2);
  } catch (const Error&) {
    return "";  // needs the elements of what is no constant
  }
  if (!runner->prepared()) return "";
  for (int overwritten = -1; overwritten < static_cast<int>(std::min<size_t>(runner->input_count(), 32));
       ++overwritten) {
    if (overwritten >= 0 && !(runner->prepared()->may_overwrite >> overwritten & 1)) continue;
    const std::vector<Tensor> results = runner->run(overwritten);
    for (size_t i = 0; i < expected.size(); ++i) {
      const std::string problem = compare(Value(results.at(i)), Value(expected[i]), tolerance);
      if (!problem.empty())
        return concat("prepared with ", constants.size(), " constants, result on operand ", overwritten, ": ", problem);
    }
  }
  return "";
}

// Each tensor once the only constant, and once the only one that comes with the run.
inline std::string check_prepared(const ops::Op& op, const std::vector<Value>& arguments,
                                  const std::vector<Value>& results, Tolerance tolerance) {
  if (!op.prepare[static_cast<size_t>(DeviceKind::kCPU)] || op.base || !op.is_pure || op.is_random) return "";
  if (ops::has_complex(arguments)) return "";  // never in a plan
  const std::vector<Value> own = ops::bind(op, copy_all(arguments));
  std::vector<Tensor> tensors, expected;
  for (const Value& value : own) collect_tensors(value, tensors);
  for (const Value& value : results) collect_tensors(value, expected);
  std::string problem = check_prepared(op, own, {}, expected, tolerance);
  for (size_t i = 0; i < tensors.size() && tensors.size() > 1 && problem.empty(); ++i) {
    std::vector<Tensor> others;
    for (const Tensor& tensor : tensors) {
      if (!tensor.is_same(tensors[i])) others.push_back(tensor);
    }
    problem = check_prepared(op, own, {tensors[i]}, expected, tolerance);
    if (problem.empty() && tensors.size() > 2) problem = check_prepared(op, own, others, expected, tolerance);
  }
  return problem;
}

}  // namespace tensord::op_cases
