#pragma once

#include "core/ops/op.h"

namespace tensord::ops {

// Whether a call whose tensors have the samples of a batch along dimension 0 keeps them apart: sample i
// of each result depends on sample i of the operands alone. True for pointwise operators, and where the
// operator's own keeps_samples says so of these arguments. Operands of fewer dimensions than the others,
// or of one sample, belong to all samples.
bool keeps_samples(const Op& op, std::span<const Value> arguments);

// Whether the operator makes sample i of its result depend on the other samples, whatever way the batch lies: a scale
// for the whole tensor. Models that use one must be run for one request at a time.
bool mixes_samples(const Op& op);

class MixesSamplesBuilder {
 public:
  // Several names, apart by blanks.
  explicit MixesSamplesBuilder(const char* names);
};

#define MIXES_SAMPLES(NAMES) \
  static const ::tensord::ops::MixesSamplesBuilder TENSORD_CONCAT(mixes_registration_, __COUNTER__)(NAMES)

// Gives an operator its keeps_samples from another file than its own; see Op.
class SamplesBuilder {
 public:
  SamplesBuilder(const char* op, SamplesFn function);
};

#define KEEPS_SAMPLES(OP_NAME, ...) \
  static const ::tensord::ops::SamplesBuilder TENSORD_CONCAT(samples_registration_, __COUNTER__)(OP_NAME, __VA_ARGS__)

}  // namespace tensord::ops
