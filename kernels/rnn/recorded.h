#pragma once

#include <span>
#include <vector>

#include "kernels/rnn/rnn.h"

// Recurrent layers as autograd records them: written with differentiable operators, step by step, with
// dropout between layers.
namespace tensord::kernels {

// Whether autograd would record a call with these arguments.
bool is_recorded(std::span<const ops::Value> arguments);

// One step of a cell: h, and c of the LSTM, from the part of the gates that comes of the input,
// [rows, gates * units], and the states before.
struct RecordedCell {
  RnnKind kind = RnnKind::kLstm;
  Tensor recurrent, recurrent_bias, projection;  // the last two may be undefined

  std::vector<Tensor> step(const Tensor& gates, const std::vector<Tensor>& states) const;
};

// Output, h and c of the LSTM.
std::vector<Tensor> record_rnn(const RnnCall& call);

}  // namespace tensord::kernels
