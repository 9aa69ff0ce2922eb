#include "kernels/rnn/recorded.h"

#include <algorithm>

#include "core/autograd/variable.h"
#include "core/ops/run.h"
#include "kernels/base/numbers.h"
#include "kernels/expr/expr.h"
#include "ops/linear.h"
#include "ops/pointwise.h"
#include "ops/random.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

using gradient::Expr;
using ops::Value;

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) { return ops::linear(x, weight, bias); }

std::vector<Expr> chunks(const Tensor& gates, int64_t count) {
  const auto parts = ops::chunk(gates, count, int64_t{1});
  return {parts.begin(), parts.end()};
}

Tensor narrowed(const Tensor& t, int64_t start, int64_t length) { return ops::narrow(t, 0, start, length); }
Tensor joined(const std::vector<Tensor>& tensors, int64_t dim) {
  return tensors.size() == 1 ? tensors[0] : ops::cat(tensors, dim);
}

// The rows of each time step: all of one size or, in packed data, never increasing.
struct Steps {
  std::vector<int64_t> counts;
  bool is_packed;

  // The rows of step `t` of `all`, [steps, batch, …] or [rows, …].
  Tensor of(const Tensor& all, size_t t) const {
    if (!is_packed) return ops::select(all, 0, static_cast<int64_t>(t));
    int64_t first = 0;
    for (size_t i = 0; i < t; ++i) first += counts[i];
    return narrowed(all, first, counts[t]);
  }
  Tensor join(const std::vector<Tensor>& steps) const {
    return is_packed ? joined(steps, 0) : ops::stack(steps, int64_t{0});
  }
};

Steps steps_of(const RnnCall& call) {
  Steps steps{{}, call.batch_sizes.has_value()};
  if (!steps.is_packed) {
    steps.counts.assign(static_cast<size_t>(call.input.sizes()[call.batch_first ? 1 : 0]),
                        call.input.sizes()[call.batch_first ? 0 : 1]);
    return steps;
  }
  steps.counts = integers_of(*call.batch_sizes);
  int64_t rows = 0;
  for (size_t i = 0; i < steps.counts.size(); ++i) {
    const int64_t count = steps.counts[i], before = i == 0 ? call.states[0].sizes()[1] : steps.counts[i - 1];
    check(count > 0 && count <= before && count <= call.input.sizes()[0] - rows && (i > 0 || count == before),
          "batch_sizes of packed data must begin with the states' batch, never grow, and add up to its rows");
    rows += count;
  }
  check(rows == call.input.sizes()[0], "batch_sizes of packed data add up to ", rows, " rows, but there are ",
        call.input.sizes()[0]);
  return steps;
}

// The results of one layer and direction.
struct Direction {
  Tensor output;
  std::vector<Tensor> states;
};

// The first rows of all states.
std::vector<Tensor> first_rows(const std::vector<Tensor>& states, int64_t count) {
  std::vector<Tensor> out;
  for (const Tensor& state : states) out.push_back(state.sizes()[0] == count ? state : narrowed(state, 0, count));
  return out;
}

// Packed sequences end at different steps: their last states are set aside, the shortest sequence first.
Direction run_forward(const Steps& steps, const RecordedCell& cell, const Tensor& gates, std::vector<Tensor> states) {
  std::vector<Tensor> outputs;
  std::vector<std::vector<Tensor>> ended(states.size());
  for (size_t t = 0; t < steps.counts.size(); ++t) {
    const int64_t count = steps.counts[t], before = states[0].sizes()[0];
    for (size_t i = 0; i < states.size() && count < before; ++i)
      ended[i].push_back(narrowed(states[i], count, before - count));
    states = cell.step(steps.of(gates, t), first_rows(states, count));
    outputs.push_back(states[0]);
  }
  for (size_t i = 0; i < states.size(); ++i) {
    ended[i].push_back(states[i]);
    std::reverse(ended[i].begin(), ended[i].end());
    states[i] = joined(ended[i], 0);
  }
  return {steps.join(outputs), states};
}

// From the last step to the first; shorter sequences join with their initial state.
Direction run_backward(const Steps& steps, const RecordedCell& cell, const Tensor& gates,
                       const std::vector<Tensor>& first) {
  std::vector<Tensor> outputs(steps.counts.size()), states = first_rows(first, steps.counts.back());
  for (size_t t = steps.counts.size(); t-- > 0;) {
    const int64_t count = steps.counts[t], before = states[0].sizes()[0];
    for (size_t i = 0; i < states.size() && count > before; ++i)
      states[i] = joined({states[i], narrowed(first[i], before, count - before)}, 0);
    states = cell.step(steps.of(gates, t), states);
    outputs[t] = states[0];
  }
  return {steps.join(outputs), states};
}

}  // namespace

bool is_recorded(std::span<const Value> arguments) {
  if (!is_grad_enabled() || is_inference_mode()) return false;
  return std::any_of(arguments.begin(), arguments.end(), [](const Value& argument) {
    if (argument.is_tensor()) return autograd::requires_grad(argument.to_tensor());
    return argument.is_list() && is_recorded(argument.to_list()->items);
  });
}

std::vector<Tensor> RecordedCell::step(const Tensor& input, const std::vector<Tensor>& states) const {
  const Tensor& h = states[0];
  const Tensor own = linear(h, recurrent, recurrent_bias);
  switch (kind) {
    case RnnKind::kTanh: return {tanh(Expr(input) + Expr(own)).tensor()};
    case RnnKind::kRelu: return {ops::relu((Expr(input) + Expr(own)).tensor())};
    case RnnKind::kGru: {
      const std::vector<Expr> x = chunks(input, 3), y = chunks(own, 3);
      const Expr reset = sigmoid(x[0] + y[0]), update = sigmoid(x[1] + y[1]), fresh = tanh(x[2] + reset * y[2]);
      return {((Expr(h) - fresh) * update + fresh).tensor()};
    }
    case RnnKind::kLstm: break;
  }
  const std::vector<Expr> gates = chunks((Expr(input) + Expr(own)).tensor(), 4);
  const Expr cell = sigmoid(gates[1]) * Expr(states[1]) + sigmoid(gates[0]) * tanh(gates[2]);
  const Tensor hidden = (sigmoid(gates[3]) * tanh(cell)).tensor();
  return {projection ? linear(hidden, projection, Tensor()) : hidden, cell.tensor()};
}

std::vector<Tensor> record_rnn(const RnnCall& call) {
  const Steps steps = steps_of(call);
  Tensor input = call.batch_first ? ops::transpose(call.input, 0, 1) : call.input;
  std::vector<std::vector<Tensor>> last(call.states.size());
  for (int64_t layer = 0; layer < call.layers; ++layer) {
    std::vector<Tensor> outputs;
    for (int64_t direction = 0; direction < call.directions; ++direction) {
      const int64_t index = layer * call.directions + direction;
      const RnnParameters& p = call.parameters[static_cast<size_t>(index)];
      const RecordedCell cell{call.kind, p.recurrent, p.recurrent_bias, p.projection};
      std::vector<Tensor> states;
      for (const Tensor& state : call.states) states.push_back(ops::select(state, 0, index));
      const Tensor gates = linear(input, p.input, p.input_bias);
      Direction done =
          direction == 0 ? run_forward(steps, cell, gates, states) : run_backward(steps, cell, gates, states);
      outputs.push_back(done.output);
      for (size_t i = 0; i < last.size(); ++i) last[i].push_back(done.states[i]);
    }
    input = joined(outputs, -1);
    if (call.dropout > 0 && layer + 1 < call.layers) input = ops::dropout(input, call.dropout, true);
  }
  std::vector<Tensor> results{call.batch_first ? ops::transpose(input, 0, 1) : input};
  for (const std::vector<Tensor>& states : last) results.push_back(ops::stack(states, int64_t{0}));
  return results;
}

}  // namespace tensord::kernels
