#pragma once

#include "core/tensor/tensor.h"
#include "server/training/job_spec.h"

namespace tensord::server {

// The mean loss of a batch, spec.builtin of `output` against `label`. Labels of classes may be any integers and are
// checked against the number of classes; other labels get the output's dtype, and its shape when they have as many
// elements. Throws Error{kInvalidArgument} naming loss.label.
Tensor builtin_loss(const LossSpec& spec, const Tensor& output, const Tensor& label);

// Whether the outputs of a job's first batch can be what the loss takes: cross_entropy takes scores and no
// probabilities, nll and kl_div take logarithms. PyTorch would compute something, and the model learn nothing. Throws
// Error{kInvalidArgument} naming loss.builtin.
void check_first_output(const LossSpec& spec, const Tensor& output);

}  // namespace tensord::server
