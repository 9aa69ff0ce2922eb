#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "core/ops/attributes/batch_independence.h"
#include "core/ops/attributes/rank.h"
#include "tests/ops/op_cases.h"
#include "tests/ops/prepared_cases.h"

namespace tensord::op_cases {

inline Tensor sample_of(const Tensor& t, int64_t sample) {
  Dims sizes = t.sizes();
  sizes[0] = 1;
  return t.as_view(sizes, t.strides(), t.offset() + sample * t.strides()[0]);
}

// The value with one sample of the tensors whose dimension 0 is `samples`; see plan/batch_tiling.
inline Value sample_of(const Value& value, int64_t sample, int64_t samples, int64_t max_dims) {
  if (value.is_list() && !value.to_list()->items.empty() && value.to_list()->items[0].is_tensor()) {
    std::vector<Tensor> tensors;
    for (const Value& item : value.to_list()->items)
      tensors.push_back(sample_of(item, sample, samples, max_dims).to_tensor());
    return ops::make_tensor_list(tensors);
  }
  if (!value.is_tensor() || !value.to_tensor()) return value;
  const Tensor& t = value.to_tensor();
  const bool is_split = t.ndim() == max_dims && t.sizes()[0] == samples;
  return is_split ? Value(sample_of(t, sample)) : value;
}

// The result of a batch-independent operator is the same for each sample alone.
inline std::string check_samples(const ops::Op& op, const std::vector<Value>& arguments,
                                 const std::vector<Value>& results, Tolerance tolerance) {
  if (op.base || !op.is_pure || op.is_random) return "";
  const std::vector<Value> own = ops::bind(op, copy_all(arguments));
  std::vector<Tensor> tensors, expected;
  for (const Value& value : own) collect_tensors(value, tensors);
  for (const Value& value : results) collect_tensors(value, expected);
  std::erase_if(tensors, [](const Tensor& t) { return !t.defined(); });
  int64_t max_dims = 0, samples = 1;
  for (const Tensor& t : tensors) max_dims = std::max(max_dims, t.ndim());
  if (max_dims == 0) return "";
  for (const Tensor& t : tensors) {
    if (t.ndim() == max_dims) samples = std::max(samples, t.sizes()[0]);
  }
  if (samples < 2 || !ops::is_batch_independent(op, ops::bind(op, copy_all(arguments, true)))) return "";
  for (int64_t sample = 0; sample < samples; ++sample) {
    std::vector<Value> alone, made;
    for (const Value& value : own) alone.push_back(sample_of(value, sample, samples, max_dims));
    try {
      made = ops::run(op, alone);
    } catch (const Error&) {
      return "";  // of another shape than a batch can have; no plan tiles it
    }
    std::vector<Tensor> got;
    for (const Value& value : made) collect_tensors(value, got);
    for (size_t i = 0; i < expected.size(); ++i) {
      Dims sizes = expected[i].sizes();
      if (sizes.empty() || sizes[0] != samples) return "";
      sizes[0] = 1;
      if (got.at(i).sizes() != sizes) return "";
      const std::string problem = compare(Value(got[i]), Value(sample_of(expected[i], sample)), tolerance);
      if (!problem.empty()) return concat("sample ", sample, " alone: ", problem);
    }
  }
  return "";
}

// Checks the declared rank of the operator's result.
inline std::string check_rank(const ops::Op& op, const std::vector<Value>& arguments,
                              const std::vector<Value>& results) {
  if (!ops::keeps_rank(op) || !arguments[0].is_tensor() || !results[0].is_tensor()) return "";
  const int64_t given = arguments[0].to_tensor().ndim(), got = results[0].to_tensor().ndim();
  return given == got ? "" : concat("says that it keeps the rank, and makes ", got, " dimensions of ", given);
}

}  // namespace tensord::op_cases
