#pragma once

#include "core/ops/op.h"
#include "kernels/rnn/sequence.h"

// The calls of rnn_tanh, rnn_relu, gru and lstm: arguments checked and put into one form.
namespace tensord::kernels {

struct RnnCall {
  RnnKind kind = RnnKind::kLstm;
  Tensor input;                           // [steps, batch, inputs], or [rows, inputs] when packed
  std::optional<Tensor> batch_sizes;      // of packed data
  std::vector<Tensor> states;             // h, and c of the LSTM: [layers * directions, batch, size]
  std::vector<RnnParameters> parameters;  // by layer, then direction
  int64_t layers = 1, directions = 1;
  int64_t inputs = 0, hidden = 0, state = 0;
  double dropout = 0;  // between layers; 0 but in training
  bool batch_first = false;

  // Sizes of input and output; the output's strides are filled in by the caller.
  RnnShape shape() const;
  int64_t output_size() const { return directions * state; }
};

// What all operators of the family take, in terms of their schemas.
struct RnnFlags {
  bool has_biases = true;
  int64_t layers = 1;
  double dropout = 0;
  bool train = false, bidirectional = false, batch_first = false;
};

// Throws Error where shapes or dtypes do not fit. All tensors may be meta tensors.
RnnCall rnn_call(RnnKind kind, const Tensor& input, const std::optional<Tensor>& batch_sizes,
                 const std::vector<Tensor>& states, const std::vector<Tensor>& parameters, const RnnFlags& flags);

// Output, h and c of the LSTM.
std::vector<ops::TensorMeta> rnn_metas(const RnnCall& call);
// Computes them, for any floating dtype and strides.
void run_rnn(const RnnCall& call, std::span<const Tensor> outputs);
// The call with its weights packed; null where they are not constant, or the data is not as the loops need it.
// `slots` say for input, batch sizes and states which of the run's inputs they are, or -1 for constants.
std::unique_ptr<ops::PreparedCall> prepare_rnn(const RnnCall& call, const ops::PrepareArgs& args,
                                               std::span<const int> slots);

}  // namespace tensord::kernels
