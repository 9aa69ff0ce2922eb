#pragma once

#include <functional>

#include "core/ops/op.h"

namespace tensord::ops {

// An operator's attribute: whether a call whose tensors (meta) have the samples of a batch along dimension 0 keeps them
// apart. Sample i of each result then depends on sample i of the operands alone, and results have them there too.
// Operands of fewer dimensions than the others, or of one sample, belong to all samples.
struct BatchIndependent {
  std::function<bool(std::span<const Value> arguments)> says;
};
// True for pointwise operators, and where the operator's BatchIndependent says so of these arguments.
bool is_batch_independent(const Op& op, std::span<const Value> arguments);

// What several operators say.
bool always_batch_independent(std::span<const Value> arguments);
// The weight (argument 1) and the bias (2) are constants: one that comes with each run could be as large as the batch.
bool has_constant_weight(std::span<const Value> arguments);
// The dimensions of argument 1 leave out the first of argument 0.
bool works_along_other_dims(std::span<const Value> arguments);
// Whether the dimension, or one of several, is the first of `ndim`; no dimensions at all are all of them.
bool is_along_samples(const Value& dims, int64_t ndim);
// Whether it is a tensor whose elements are known.
bool is_constant_tensor(const Value& value);

// An operator's attribute: sample i of its result depends on the other samples, whatever way the batch lies (a scale
// for the whole tensor). Models that use one must be run for one request at a time.
struct MixesSamples {};
bool mixes_samples(const Op& op);

}  // namespace tensord::ops
