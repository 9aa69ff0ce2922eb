#pragma once

#include <string>

#include "core/tensor/tensor.h"
#include "server/training/jobs/job_spec.h"

namespace tensord::server {

// Target value that is ignored if the job sets none, as in PyTorch.
inline constexpr int64_t kIgnoreIndex = -100;

// The mean loss of a batch: spec.builtin of `output` against `label`. Class labels may be any integers and are checked
// against the number of classes. Other labels are converted to the output's dtype, and reshaped to its shape if they
// have as many elements. `class_weights` is undefined, or of class_weights_of.
// Throws Error{kInvalidArgument} naming the field.
Tensor builtin_loss(const LossSpec& spec, const Tensor& output, const Tensor& label, const Tensor& class_weights = {});
// spec.class_weights as a tensor; undefined if there are none.
Tensor class_weights_of(const LossSpec& spec, DType dtype, Device device);

// Checks whether the outputs of a job's first batch are plausible for the loss. Throws Error{kInvalidArgument} naming
// loss.builtin if nll or kl_div gets values that are not log-probabilities. Returns a warning if cross_entropy gets
// probabilities instead of logits, with which a model hardly learns; otherwise an empty string.
std::string check_first_output(const LossSpec& spec, const Tensor& output);

}  // namespace tensord::server
