#include "core/nn/layers/rnn.h"

#include <cmath>
#include <utility>

#include "core/nn/init.h"
#include "core/ops/run.h"
#include "ops/factory.h"
#include "ops/view.h"

namespace tensord::nn {

using ops::Value;

Recurrent::Recurrent(std::string name, Kind kind, int64_t input_size, int64_t hidden_size, const RNNOptions& options)
    : Module(std::move(name)), kind_of_rnn_(kind), hidden_size_(hidden_size), options_(options) {
  check(hidden_size > 0 && options.num_layers > 0, this->kind(), ": hidden_size and num_layers must be at least 1");
  check(options.dropout >= 0 && options.dropout <= 1, this->kind(), ": dropout must be between 0 and 1");
  const int64_t gates = kind == Kind::kLSTM ? 4 : kind == Kind::kGRU ? 3 : 1;
  const int64_t directions = options.bidirectional ? 2 : 1;
  for (int64_t layer = 0; layer < options.num_layers; ++layer) {
    const int64_t size = layer == 0 ? input_size : hidden_size * directions;
    for (int64_t direction = 0; direction < directions; ++direction) {
      const std::string suffix = concat("_l", layer, direction == 1 ? "_reverse" : "");
      const auto add = [&](const char* what, const Dims& sizes) {
        weights_.push_back(register_parameter(what + suffix, Tensor::empty(sizes, DType::kFloat32)));
      };
      add("weight_ih", {gates * hidden_size, size});
      add("weight_hh", {gates * hidden_size, hidden_size});
      if (!options.has_bias) continue;
      add("bias_ih", {gates * hidden_size});
      add("bias_hh", {gates * hidden_size});
    }
  }
  const double bound = 1 / std::sqrt(static_cast<double>(hidden_size));
  for (const Tensor& weight : weights_) init::uniform_(weight, -bound, bound);
}

Tensor Recurrent::zero_state(const Tensor& input) const {
  Dims sizes{options_.num_layers * (options_.bidirectional ? 2 : 1)};
  if (input.ndim() == 3) sizes.push_back(input.size(options_.batch_first ? 0 : 1));
  sizes.push_back(hidden_size_);
  return ops::zeros(sizes, {.dtype = input.dtype(), .device = input.device()});
}

Tensors Recurrent::forward(const Tensors& inputs) {
  static constexpr const char* kOps[] = {"aten::rnn_tanh.input", "aten::rnn_relu.input", "aten::lstm.input",
                                         "aten::gru.input"};
  const bool is_lstm = kind_of_rnn_ == Kind::kLSTM;
  const size_t states = is_lstm ? 2 : 1;
  check(inputs.size() == 1 || inputs.size() == 1 + states, kind(), ": expected 1 or ", 1 + states, " tensors but got ",
        inputs.size());
  const Tensor& input = inputs.front();
  check(input.ndim() == 2 || input.ndim() == 3, kind(), ": expected an input of 2 or 3 dimensions but got ",
        input.ndim());
  // The operator requires a batch.
  const bool has_batch = input.ndim() == 3;
  const int64_t at = options_.batch_first ? 0 : 1;
  const auto batched = [&](const Tensor& x, int64_t dim) { return has_batch ? x : ops::unsqueeze(x, dim); };
  std::vector<Tensor> state;
  for (size_t i = 0; i < states; ++i)
    state.push_back(batched(inputs.size() > 1 ? inputs[1 + i] : zero_state(input), 1));
  const ops::Op& op = ops::get_op(kOps[static_cast<int>(kind_of_rnn_)]);
  const Value hx = is_lstm ? ops::make_tensor_list(state) : Value(state.front());
  const auto found = ops::run(op, ops::bind(op, {batched(input, at), hx, ops::make_tensor_list(weights_),
                                                 options_.has_bias, options_.num_layers, options_.dropout,
                                                 is_training(), options_.bidirectional, options_.batch_first}));
  Tensors out;
  for (size_t i = 0; i < found.size(); ++i) {
    const Tensor& one = found[i].to_tensor();
    out.push_back(has_batch ? one : ops::squeeze(one, i == 0 ? at : int64_t{1}));
  }
  return out;
}

}  // namespace tensord::nn
