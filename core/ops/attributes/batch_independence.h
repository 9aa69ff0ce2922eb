#pragma once

#include <functional>

#include "core/ops/op.h"

namespace tensord::ops {

// An operator's attribute: whether a call whose tensors (meta) have the samples of a batch along dimension 0 is batch
// independent. Then sample i of each result depends only on sample i of the operands, and results have the samples
// along dimension 0 too. Operands with fewer dimensions than the others, or with one sample, belong to all samples.
struct BatchIndependent {
  std::function<bool(std::span<const Value> arguments)> says;
};
// True for pointwise operators, and if the operator's BatchIndependent holds for these arguments.
bool is_batch_independent(const Op& op, std::span<const Value> arguments);

// Predicates that several operators share.
bool always_batch_independent(std::span<const Value> arguments);
// Whether the weight (argument 1) and the bias (2) are constants: one that is passed to each run could be as large as
// the batch.
bool has_constant_weight(std::span<const Value> arguments);
// Whether the dimensions in argument 1 do not include the first dimension of argument 0.
bool works_along_other_dims(std::span<const Value> arguments);
// Whether the dimension, or one of several, is the first of `ndim`; an empty list means all dimensions.
bool is_along_samples(const Value& dims, int64_t ndim);
// Whether it is a tensor with known elements.
bool is_constant_tensor(const Value& value);

// An operator's attribute: sample i of its result depends on other samples, however the batch is laid out (a scale for
// the whole tensor). Models with such an operator run one request at a time.
struct MixesSamples {};
bool mixes_samples(const Op& op);

}  // namespace tensord::ops
