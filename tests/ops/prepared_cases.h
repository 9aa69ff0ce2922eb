#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
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

// The same values with another memory layout, also for tensors in lists.
inline Value laid_out(const Value& value, fixtures::Layout layout) {
  if (value.is_tensor()) {
    const Tensor& t = value.to_tensor();
    if (!t) return value;
    const Tensor out = Tensor::empty_strided(t.sizes(), fixtures::strides_of(layout, t), t.dtype());
    out.copy_from(t);
    return Value(out);
  }
  if (!value.is_list() || value.to_list()->items.empty() || !value.to_list()->items[0].is_tensor()) return value;
  std::vector<Tensor> tensors;
  for (const Value& item : value.to_list()->items) tensors.push_back(laid_out(item, layout).to_tensor());
  return ops::make_tensor_list(tensors);
}

// One prepared call: with separate results, and with its result on each operand that allows it.
inline std::string check_prepared(const ops::Op& op, const std::vector<Value>& arguments,
                                  const std::vector<Tensor>& constants, const std::vector<Tensor>& expected,
                                  Tolerance tolerance, fixtures::Layout outputs) {
  std::optional<fixtures::PreparedRunner> runner;
  try {
    runner.emplace(op, arguments, constants, 2, outputs);
  } catch (const Error&) {
    return "";  // needs the elements of a non-constant tensor
  }
  if (!runner->prepared()) return "";
  for (int overwritten = -1; overwritten < static_cast<int>(std::min<size_t>(runner->input_count(), 32));
       ++overwritten) {
    if (overwritten >= 0 &&
        (outputs != fixtures::Layout::kOwn || !(runner->prepared()->may_overwrite >> overwritten & 1)))
      continue;  // only a result with the operand's layout may take its memory
    const std::vector<Tensor> results = runner->run(overwritten);
    for (size_t i = 0; i < expected.size(); ++i) {
      const std::string problem = compare(Value(results.at(i)), Value(expected[i]), tolerance);
      if (!problem.empty())
        return concat("prepared with ", constants.size(), " constants, result on operand ", overwritten, ": ", problem);
    }
  }
  return "";
}

// Each tensor once as the only constant, and once as the only input of the run.
inline std::string check_prepared(const ops::Op& op, const std::vector<Value>& arguments,
                                  const std::vector<Tensor>& expected, Tolerance tolerance, fixtures::Layout outputs) {
  std::vector<Tensor> tensors;
  for (const Value& value : arguments) collect_tensors(value, tensors);
  std::string problem = check_prepared(op, arguments, {}, expected, tolerance, outputs);
  for (size_t i = 0; i < tensors.size() && tensors.size() > 1 && problem.empty(); ++i) {
    std::vector<Tensor> others;
    for (const Tensor& tensor : tensors) {
      if (!tensor.is_same(tensors[i])) others.push_back(tensor);
    }
    problem = check_prepared(op, arguments, {tensors[i]}, expected, tolerance, outputs);
    if (problem.empty() && tensors.size() > 2)
      problem = check_prepared(op, arguments, others, expected, tolerance, outputs);
  }
  return problem;
}

// Whatever the strides of arguments and results, a prepared call is correct or does not exist.
inline std::string check_prepared(const ops::Op& op, const std::vector<Value>& arguments,
                                  const std::vector<Value>& results, Tolerance tolerance) {
  if (!op.prepare[static_cast<size_t>(DeviceKind::kCPU)] || op.base || !op.is_pure || op.is_random) return "";
  if (ops::has_complex(arguments)) return "";  // never in a plan
  using fixtures::Layout;
  const std::vector<Value> own = ops::bind(op, copy_all(arguments));
  std::vector<Tensor> expected;
  for (const Value& value : results) collect_tensors(value, expected);
  const std::pair<Layout, Layout> layouts[] = {{Layout::kOwn, Layout::kOwn},
                                               {Layout::kOwn, Layout::kReversed},
                                               {Layout::kOwn, Layout::kGapped},
                                               {Layout::kReversed, Layout::kOwn},
                                               {Layout::kGapped, Layout::kOwn}};
  for (const auto& [inputs, outputs] : layouts) {
    std::vector<Value> laid;
    for (const Value& value : own) laid.push_back(laid_out(value, inputs));
    const std::string problem = check_prepared(op, laid, expected, tolerance, outputs);
    if (!problem.empty())
      return concat(problem, ", arguments in layout ", static_cast<int>(inputs), ", results in layout ",
                    static_cast<int>(outputs));
  }
  return "";
}

}  // namespace tensord::op_cases
