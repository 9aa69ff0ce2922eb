#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/nn/module.h"

// Recurrent layers over whole sequences, and their cells, which compute one step. Weights have PyTorch's names:
// weight_ih_l0, weight_hh_l0_reverse …
namespace tensord::nn {

struct RNNOptions {
  int64_t num_layers = 1;
  bool has_bias = true;
  bool batch_first = false;
  double dropout = 0;  // between layers, during training
  bool bidirectional = false;
};

// Inputs: the sequence [steps, batch, input_size] ([batch, steps, …] with batch_first; two dimensions without a batch),
// then optionally the initial state: h [layers · directions, batch, hidden_size], and c for an LSTM; zeros if omitted.
// Results: the output of the last layer for every step, and the final state: h, and c for an LSTM.
class Recurrent : public Module {
 public:
  Tensors forward(const Tensors& inputs) override;

 protected:
  enum class Kind { kTanh, kRelu, kLSTM, kGRU };
  Recurrent(std::string name, Kind kind, int64_t input_size, int64_t hidden_size, const RNNOptions& options);

 private:
  Tensor zero_state(const Tensor& input) const;
  const Kind kind_of_rnn_;
  const int64_t hidden_size_;
  const RNNOptions options_;
  std::vector<Tensor> weights_;  // in the operator's order
};

struct RNN final : Recurrent {
  RNN(int64_t input_size, int64_t hidden_size, const RNNOptions& options = {}, bool is_relu = false)
      : Recurrent("RNN", is_relu ? Kind::kRelu : Kind::kTanh, input_size, hidden_size, options) {}
};
struct LSTM final : Recurrent {
  LSTM(int64_t input_size, int64_t hidden_size, const RNNOptions& options = {})
      : Recurrent("LSTM", Kind::kLSTM, input_size, hidden_size, options) {}
};
struct GRU final : Recurrent {
  GRU(int64_t input_size, int64_t hidden_size, const RNNOptions& options = {})
      : Recurrent("GRU", Kind::kGRU, input_size, hidden_size, options) {}
};

// One step. Inputs: [batch, input_size] or [input_size], then optionally the state: h [batch, hidden_size], and c for
// an LSTM; zeros if omitted. Results: the next state.
class RecurrentCell : public Module {
 public:
  Tensors forward(const Tensors& inputs) override;
  const Tensor weight_ih, weight_hh;  // [gates · hidden_size, input_size or hidden_size]
  const Tensor bias_ih, bias_hh;      // or undefined

 protected:
  RecurrentCell(std::string kind, const char* op, int64_t gates, int64_t input_size, int64_t hidden_size,
                bool has_bias);

 private:
  const char* const op_;
  const int64_t input_size_, hidden_size_;
};

struct RNNCell final : RecurrentCell {
  RNNCell(int64_t input_size, int64_t hidden_size, bool has_bias = true, bool is_relu = false)
      : RecurrentCell("RNNCell", is_relu ? "aten::rnn_relu_cell" : "aten::rnn_tanh_cell", 1, input_size, hidden_size,
                      has_bias) {}
};
struct LSTMCell final : RecurrentCell {
  LSTMCell(int64_t input_size, int64_t hidden_size, bool has_bias = true)
      : RecurrentCell("LSTMCell", "aten::lstm_cell", 4, input_size, hidden_size, has_bias) {}
};
struct GRUCell final : RecurrentCell {
  GRUCell(int64_t input_size, int64_t hidden_size, bool has_bias = true)
      : RecurrentCell("GRUCell", "aten::gru_cell", 3, input_size, hidden_size, has_bias) {}
};

}  // namespace tensord::nn
