// lstm_cell, gru_cell, rnn_tanh_cell and rnn_relu_cell: one step. Scripts call them in loops with weights that are not
// packed there, so the weights are used in place.
#include "kernels/rnn/cell.h"

#include "core/base/error.h"
#include "core/ops/op.h"
#include "core/ops/run.h"
#include "kernels/rnn/recorded.h"
#include "ops/linear.h"

namespace tensord::kernels {
namespace {

using ops::TensorList;
using ops::TensorMeta;
using ops::Value;

using OptionalTensor = std::optional<Tensor>;

CellCall make_cell(RnnKind kind, const Tensor& input, const TensorList& states, const Tensor& w_ih, const Tensor& w_hh,
                   const OptionalTensor& b_ih, const OptionalTensor& b_hh) {
  if (kind == RnnKind::kLstm) check(states.size() == 2, "lstm_cell expects two hidden states");
  check(input.ndim() == 2 && w_ih.ndim() == 2 && w_hh.ndim() == 2,
        "input and weights of a recurrent cell must have 2 dimensions");
  check(input.sizes()[1] == w_ih.sizes()[1], "input has inconsistent input_size: got ", input.sizes()[1], " expected ",
        w_ih.sizes()[1]);
  const int64_t units = w_hh.sizes()[1], rows = rnn_gates(kind) * units;
  for (size_t i = 0; i < states.size(); ++i) {
    check(states[i].ndim() == 2, "states of a recurrent cell must have 2 dimensions");
    check(input.sizes()[0] == states[i].sizes()[0], "Input batch size ", input.sizes()[0], " doesn't match hidden", i,
          " batch size ", states[i].sizes()[0]);
    check(states[i].sizes()[1] == units, "hidden", i, " has inconsistent hidden_size: got ", states[i].sizes()[1],
          ", expected ", units);
  }
  check(w_ih.sizes()[0] == rows && w_hh.sizes()[0] == rows, "weights of a recurrent cell with ", units,
        " units must have ", rows, " rows, but got ", w_ih.sizes()[0], " and ", w_hh.sizes()[0]);
  const DType dtype = input.dtype();
  if (!is_floating(dtype)) fail_dtype("recurrent cells", dtype);
  const auto check_dtype = [&](const Tensor& tensor) {
    check(tensor.dtype() == dtype, "input, states and weights of a recurrent cell must have the same dtype");
  };
  for (const Tensor& state : states) check_dtype(state);
  check_dtype(w_ih), check_dtype(w_hh);
  for (const OptionalTensor* bias : {&b_ih, &b_hh}) {
    if (!*bias) continue;
    check_dtype(**bias);
    check((*bias)->ndim() == 1 && (*bias)->numel() == rows, "biases of a recurrent cell must have ", rows, " elements");
  }
  return {kind, input, w_hh, w_ih, states, b_ih, b_hh};
}

TensorMeta meta_of(const CellCall& cell) {
  return {cell.states[0].sizes(), cell.input.dtype(), {}, cell.input.device()};
}

// The same, composed of differentiable operators.
std::vector<Tensor> record(const CellCall& cell) {
  const RecordedCell step{cell.kind, cell.recurrent_weights, cell.recurrent_bias.value_or(Tensor()), Tensor()};
  return step.step(ops::linear(cell.input, cell.input_weights, cell.input_bias), cell.states);
}

// Returns the next h and, for the LSTM, c.
std::vector<Tensor> run(const CellCall& cell, std::initializer_list<Value> tensors) {
  // Only the CPU has loops of its own.
  const bool is_elsewhere = !cell.input.is_meta() && !cell.input.device().is_host();
  if (is_elsewhere || is_recorded({tensors.begin(), tensors.size()})) return record(cell);
  const TensorMeta meta = meta_of(cell);
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < cell.states.size(); ++i) {
    outputs.push_back(cell.input.is_meta() ? Tensor::meta(meta.sizes, meta.dtype, meta.device)
                                           : Tensor::empty(meta.sizes, meta.dtype));
  }
  if (!cell.input.is_meta()) run_cell(cell, outputs);
  return outputs;
}

void add_lstm() {
  constexpr const char* kName = "aten::lstm_cell";
  ops::OpBuilder(kName, __FILE__, __LINE__)
      .impl([](const Tensor& x, const TensorList& hx, const Tensor& w_ih, const Tensor& w_hh,
               const OptionalTensor& b_ih, const OptionalTensor& b_hh) -> ops::Returns {
        const std::vector<Tensor> next = run(make_cell(RnnKind::kLstm, x, hx, w_ih, w_hh, b_ih, b_hh),
                                             {x, ops::make_tensor_list(hx), w_ih, w_hh, b_ih, b_hh});
        return {{next[0], next[1]}};
      })
      .composite();
  ops::PrepareBuilder(kName, DeviceKind::kCPU, [](const ops::PrepareArgs& args) {
    const auto& v = args.arguments;
    return prepare_cell(
        make_cell(RnnKind::kLstm, v[0].to_tensor(), ops::Unbox<TensorList>::get(v[1]), v[2].to_tensor(),
                  v[3].to_tensor(), ops::Unbox<OptionalTensor>::get(v[4]), ops::Unbox<OptionalTensor>::get(v[5])),
        args);
  });
}

void add(RnnKind kind, const std::string& name) {
  ops::OpBuilder(name, __FILE__, __LINE__)
      .impl([kind](const Tensor& x, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh,
                   const OptionalTensor& b_ih, const OptionalTensor& b_hh) {
        return run(make_cell(kind, x, {hx}, w_ih, w_hh, b_ih, b_hh), {x, hx, w_ih, w_hh, b_ih, b_hh}).front();
      })
      .composite();
  ops::PrepareBuilder(name.c_str(), DeviceKind::kCPU, [kind](const ops::PrepareArgs& args) {
    const auto& v = args.arguments;
    return prepare_cell(make_cell(kind, v[0].to_tensor(), {v[1].to_tensor()}, v[2].to_tensor(), v[3].to_tensor(),
                                  ops::Unbox<OptionalTensor>::get(v[4]), ops::Unbox<OptionalTensor>::get(v[5])),
                        args);
  });
}

bool register_cell() {
  add_lstm();
  add(RnnKind::kGru, "aten::gru_cell");
  add(RnnKind::kTanh, "aten::rnn_tanh_cell");
  add(RnnKind::kRelu, "aten::rnn_relu_cell");
  return true;
}
[[maybe_unused]] const bool cell_registered = register_cell();

}  // namespace
}  // namespace tensord::kernels
