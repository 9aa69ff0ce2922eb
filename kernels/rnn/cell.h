#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/ops/prepared.h"
#include "core/tensor/tensor.h"
#include "kernels/rnn/kernels.h"

// One step of a recurrent cell whose weights lie as the model has them.
namespace tensord::kernels {

struct CellCall {
  RnnKind kind;
  Tensor input, recurrent_weights, input_weights;
  std::vector<Tensor> states;  // h, and c of the LSTM
  std::optional<Tensor> input_bias, recurrent_bias;

  int64_t batch() const { return input.sizes()[0]; }
  int64_t units() const { return states[0].sizes()[1]; }
};

// Fills the next h, and c of the LSTM.
void run_cell(const CellCall& cell, std::span<const Tensor> outputs);
// Null where a shape or dtype has no prepared form.
std::unique_ptr<ops::PreparedCall> prepare_cell(const CellCall& cell, const ops::PrepareArgs& args);

}  // namespace tensord::kernels
