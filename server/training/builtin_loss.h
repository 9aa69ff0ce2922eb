#pragma once

#include <string>

#include "core/tensor/tensor.h"
#include "server/training/jobs/job_spec.h"

namespace tensord::server {

// The class of a place that does not count where the job names no other, as in PyTorch.
inline constexpr int64_t kIgnoreIndex = -100;

// The mean loss of a batch, spec.builtin of `output` against `label`. Labels of classes may be any integers and are
// checked against the number of classes; other labels get the output's dtype, and its shape when they have as many
// elements. Throws Error{kInvalidArgument} naming loss.label.
Tensor builtin_loss(const LossSpec& spec, const Tensor& output, const Tensor& label);

// Whether the outputs of a job's first batch can be what the loss takes. Throws Error{kInvalidArgument} naming
// loss.builtin when nll or kl_div get values that are logarithms of no probability. Gives back what is to be said, or
// nothing, when cross_entropy gets probabilities instead of scores: it computes something, but the model hardly learns.
std::string check_first_output(const LossSpec& spec, const Tensor& output);

}  // namespace tensord::server
