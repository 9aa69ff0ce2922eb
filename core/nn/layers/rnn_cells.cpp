#include <cmath>
#include <utility>

#include "core/nn/init.h"
#include "core/nn/layers/rnn.h"
#include "core/ops/run.h"
#include "ops/factory.h"
#include "ops/view.h"

namespace tensord::nn {

using ops::Value;

RecurrentCell::RecurrentCell(std::string kind, const char* op, int64_t gates, int64_t input_size, int64_t hidden_size,
                             bool has_bias)
    : Module(std::move(kind)),
      weight_ih(register_parameter("weight_ih", Tensor::empty(Dims{gates * hidden_size, input_size}, DType::kFloat32))),
      weight_hh(
          register_parameter("weight_hh", Tensor::empty(Dims{gates * hidden_size, hidden_size}, DType::kFloat32))),
      bias_ih(register_parameter("bias_ih",
                                 has_bias ? Tensor::empty(Dims{gates * hidden_size}, DType::kFloat32) : Tensor())),
      bias_hh(register_parameter("bias_hh",
                                 has_bias ? Tensor::empty(Dims{gates * hidden_size}, DType::kFloat32) : Tensor())),
      op_(op),
      input_size_(input_size),
      hidden_size_(hidden_size) {
  check(hidden_size > 0, this->kind(), ": hidden_size must be at least 1");
  const double bound = 1 / std::sqrt(static_cast<double>(hidden_size));
  for (const Tensor& parameter : parameters()) init::uniform_(parameter, -bound, bound);
}

Tensors RecurrentCell::forward(const Tensors& inputs) {
  const bool is_lstm = kind() == "LSTMCell";
  const size_t states = is_lstm ? 2 : 1;
  check(inputs.size() == 1 || inputs.size() == 1 + states, kind(), ": expected 1 or ", 1 + states, " tensors but got ",
        inputs.size());
  const Tensor& input = inputs.front();
  check((input.ndim() == 1 || input.ndim() == 2) && input.size(-1) == input_size_, kind(),
        ": expected an input [batch, ", input_size_, "] or [", input_size_, "] but got ", describe(input));
  const bool has_batch = input.ndim() == 2;
  const auto batched = [&](const Tensor& x) { return has_batch ? x : ops::unsqueeze(x, 0); };
  const Tensor x = batched(input);
  std::vector<Tensor> state;
  for (size_t i = 0; i < states; ++i) {
    const Dims sizes{x.size(0), hidden_size_};
    state.push_back(inputs.size() > 1 ? batched(inputs[1 + i])
                                      : ops::zeros(sizes, {.dtype = x.dtype(), .device = x.device()}));
    check(state.back().sizes() == sizes, kind(), ": expected a state ", sizes, " but got ", describe(state.back()));
  }
  const ops::Op& op = ops::get_op(op_);
  const Value hx = is_lstm ? ops::make_tensor_list(state) : Value(state.front());
  Tensors out;
  for (const Value& value : ops::run(op, ops::bind(op, {x, hx, weight_ih, weight_hh, bias_ih, bias_hh})))
    out.push_back(has_batch ? value.to_tensor() : ops::squeeze(value.to_tensor(), 0));
  return out;
}

}  // namespace tensord::nn
