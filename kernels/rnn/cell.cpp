// lstm_cell, gru_cell, rnn_tanh_cell and rnn_relu_cell: one step. Loops of a script call them with
// weights that the loop does not pack, so they use the weights as they lie.
#include "core/base/error.h"
#include "core/base/parallel.h"
#include "core/ops/op.h"
#include "core/ops/run.h"
#include "kernels/gemm/gemm.h"
#include "kernels/rnn/recorded.h"

namespace tensord::kernels {
namespace {

using ops::TensorList;
using ops::TensorMeta;
using ops::Value;

using OptionalTensor = std::optional<Tensor>;

struct Cell {
  RnnKind kind;
  Tensor input, recurrent_weights, input_weights;
  TensorList states;  // h, and c of the LSTM
  OptionalTensor input_bias, recurrent_bias;

  int64_t batch() const { return input.sizes()[0]; }
  int64_t units() const { return states[0].sizes()[1]; }
};

Cell make_cell(RnnKind kind, const Tensor& input, const TensorList& states, const Tensor& w_ih, const Tensor& w_hh,
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

TensorMeta meta_of(const Cell& cell) { return {cell.states[0].sizes(), cell.input.dtype(), {}, cell.input.device()}; }

// Fewer rows than this read the weights once each; more go to a matrix product.
constexpr int64_t kMaxVectors = 4;

// out[batch, rows] = x @ weights^T.
template <class T>
void multiply(const T* x, int64_t batch, const T* weights, int64_t rows, int64_t inputs, T* out) {
  if constexpr (std::is_same_v<T, float>) {
    if (batch <= kMaxVectors) {
      for (int64_t i = 0; i < batch; ++i) gemv_rows(weights, inputs, x + i * inputs, out + i * rows, rows, inputs);
      return;
    }
  }
  const auto matrix = [](const T* data, int64_t m, int64_t n, int64_t row, int64_t column) {
    return Matrix{const_cast<T*>(data), m, n, row, column};
  };
  gemm(dtype_of<T>, 1, matrix(x, batch, inputs, inputs, 1), matrix(weights, inputs, rows, 1, inputs), 0,
       matrix(out, batch, rows, rows, 1));
}

// Row-major tensors of dtype T.
template <class T>
struct CellMemory {
  const T *x, *h, *c, *input_weights, *recurrent_weights, *input_bias, *recurrent_bias;
  T *next, *next_cell, *scratch;
};

template <class T>
int64_t scratch_elements(RnnKind kind, int64_t batch, int64_t units) {
  return 2 * batch * rnn_gates(kind) * units;
}

template <class T>
void run_cell(RnnKind kind, int64_t batch, int64_t inputs, int64_t units, const CellMemory<T>& memory) {
  const int64_t rows = rnn_gates(kind) * units;
  T *input = memory.scratch, *recurrent = input + batch * rows;
  multiply(memory.x, batch, memory.input_weights, rows, inputs, input);
  multiply(memory.h, batch, memory.recurrent_weights, rows, units, recurrent);
  for (int64_t i = 0; i < batch; ++i) {
    rnn_kernels<T>().cell(
        kind, {input + i * rows, recurrent + i * rows, memory.input_bias, memory.recurrent_bias, memory.h + i * units,
               memory.c ? memory.c + i * units : nullptr, memory.next + i * units,
               memory.next_cell ? memory.next_cell + i * units : nullptr, units});
  }
}

template <class T>
const T* data_of(const OptionalTensor& tensor) {
  return tensor ? tensor->data<T>() : nullptr;
}

template <class T>
void run_as(const Cell& cell, std::span<const Tensor> outputs) {
  const auto dense = [](const Tensor& tensor) { return tensor.to(dtype_of<T>).contiguous(); };
  Cell full = cell;
  for (Tensor* tensor : {&full.input, &full.input_weights, &full.recurrent_weights}) *tensor = dense(*tensor);
  for (Tensor& state : full.states) state = dense(state);
  for (OptionalTensor* bias : {&full.input_bias, &full.recurrent_bias}) {
    if (*bias) *bias = dense(**bias);
  }
  const bool is_lstm = cell.kind == RnnKind::kLstm;
  const Tensor scratch = Tensor::empty(Dims{scratch_elements<T>(cell.kind, cell.batch(), cell.units())}, dtype_of<T>);
  std::vector<Tensor> results;
  for (const Tensor& out : outputs)
    results.push_back(out.dtype() == dtype_of<T> ? out : Tensor::empty(out.sizes(), dtype_of<T>));
  run_cell<T>(cell.kind, cell.batch(), cell.input.sizes()[1], cell.units(),
              {full.input.data<T>(), full.states[0].data<T>(), is_lstm ? full.states[1].data<T>() : nullptr,
               full.input_weights.data<T>(), full.recurrent_weights.data<T>(), data_of<T>(full.input_bias),
               data_of<T>(full.recurrent_bias), results[0].data<T>(), is_lstm ? results[1].data<T>() : nullptr,
               scratch.data<T>()});
  for (size_t i = 0; i < results.size(); ++i) {
    if (!results[i].is_same(outputs[i])) outputs[i].copy_from(results[i]);
  }
}

// The same with differentiable operators.
std::vector<Tensor> record(const Cell& cell) {
  const Value bias = cell.input_bias ? Value(*cell.input_bias) : Value();
  const RecordedCell step{cell.kind, cell.recurrent_weights, cell.recurrent_bias.value_or(Tensor()), Tensor()};
  return step.step(ops::call("aten::linear", cell.input, cell.input_weights, bias), cell.states);
}

void run_kernel(const Cell& cell, std::span<const Tensor> outputs) {
  if (outputs[0].numel() == 0) return;
  if (cell.input.dtype() == DType::kFloat64)
    run_as<double>(cell, outputs);
  else
    run_as<float>(cell, outputs);
}

// Next h, and c of the LSTM.
std::vector<Tensor> run(const Cell& cell, std::initializer_list<Value> tensors) {
  // The loops of its own are the processor's.
  const bool is_elsewhere = !cell.input.is_meta() && !cell.input.device().is_host();
  if (is_elsewhere || is_recorded({tensors.begin(), tensors.size()})) return record(cell);
  const TensorMeta meta = meta_of(cell);
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < cell.states.size(); ++i) {
    outputs.push_back(cell.input.is_meta() ? Tensor::meta(meta.sizes, meta.dtype, meta.device)
                                           : Tensor::empty(meta.sizes, meta.dtype));
  }
  if (!cell.input.is_meta()) run_kernel(cell, outputs);
  return outputs;
}

// --- for known shapes

class PreparedCell final : public ops::PreparedCall {
 public:
  // `slots`: of input, h, c, weights and biases, which of the run's inputs they are; -1: constant or absent.
  PreparedCell(Cell cell, std::vector<int> slots, std::vector<Tensor> constants)
      : kind_(cell.kind),
        batch_(cell.batch()),
        inputs_(cell.input.sizes()[1]),
        units_(cell.units()),
        slots_(std::move(slots)),
        constants_(std::move(constants)) {
    scratch_bytes = static_cast<size_t>(scratch_elements<float>(kind_, batch_, units_)) * sizeof(float);
    const auto weights = static_cast<double>((inputs_ + units_) * rnn_gates(kind_) * units_);
    cost = {2 * weights * static_cast<double>(batch_), weights * sizeof(float)};
    variant = batch_ <= kMaxVectors ? "gemv" : "gemm";
  }

  void run(const ops::KernelContext&, const ops::PreparedRun& run) const override {
    const bool is_lstm = kind_ == RnnKind::kLstm;
    const auto value = [&](size_t i) -> const float* {
      if (slots_[i] >= 0) return static_cast<const float*>(run.inputs[slots_[i]]);
      return constants_[i] ? constants_[i].data<float>() : nullptr;
    };
    run_cell<float>(
        kind_, batch_, inputs_, units_,
        {value(0), value(1), value(2), value(3), value(4), value(5), value(6), static_cast<float*>(run.outputs[0]),
         is_lstm ? static_cast<float*>(run.outputs[1]) : nullptr, static_cast<float*>(run.scratch)});
  }

 private:
  RnnKind kind_;
  int64_t batch_, inputs_, units_;
  std::vector<int> slots_;
  std::vector<Tensor> constants_;
};

std::unique_ptr<ops::PreparedCall> prepare(const Cell& cell, const ops::PrepareArgs& args) {
  if (cell.input.dtype() != DType::kFloat32 || cell.batch() == 0 || cell.units() == 0) return nullptr;
  const bool is_lstm = cell.kind == RnnKind::kLstm;
  // In the order of the schema's arguments.
  const std::vector<Tensor> tensors{cell.input,
                                    cell.states[0],
                                    is_lstm ? cell.states[1] : Tensor(),
                                    cell.input_weights,
                                    cell.recurrent_weights,
                                    cell.input_bias.value_or(Tensor()),
                                    cell.recurrent_bias.value_or(Tensor())};
  std::vector<int> slots;
  std::vector<Tensor> constants;
  int next = 0;
  for (const Tensor& tensor : tensors) {
    const bool comes = tensor && tensor.is_meta();
    if (comes && !tensor.is_contiguous()) return nullptr;
    slots.push_back(comes ? next++ : -1);
    constants.push_back(comes || !tensor ? Tensor() : tensor.contiguous());
  }
  for (const Tensor& out : args.outputs) {
    if (!out.is_contiguous()) return nullptr;
  }
  return std::make_unique<PreparedCell>(cell, std::move(slots), std::move(constants));
}

void add_lstm() {
  constexpr const char* kName = "aten::lstm_cell";
  ops::OpBuilder(
      "aten::lstm_cell(Tensor input, Tensor[] hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> "
      "(Tensor, Tensor)",
      __FILE__, __LINE__)
      .direct([](const Tensor& x, const TensorList& hx, const Tensor& w_ih, const Tensor& w_hh,
                 const OptionalTensor& b_ih, const OptionalTensor& b_hh) -> ops::Returns {
        const std::vector<Tensor> next = run(make_cell(RnnKind::kLstm, x, hx, w_ih, w_hh, b_ih, b_hh),
                                             {x, ops::make_tensor_list(hx), w_ih, w_hh, b_ih, b_hh});
        return {{next[0], next[1]}};
      })
      .composite();
  ops::PrepareBuilder(kName, DeviceKind::kCPU, [](const ops::PrepareArgs& args) {
    const auto& v = args.arguments;
    return prepare(
        make_cell(RnnKind::kLstm, v[0].to_tensor(), ops::Unbox<TensorList>::get(v[1]), v[2].to_tensor(),
                  v[3].to_tensor(), ops::Unbox<OptionalTensor>::get(v[4]), ops::Unbox<OptionalTensor>::get(v[5])),
        args);
  });
}

void add(RnnKind kind, const std::string& name) {
  ops::OpBuilder(
      (name + "(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor")
          .c_str(),
      __FILE__, __LINE__)
      .direct([kind](const Tensor& x, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh,
                     const OptionalTensor& b_ih, const OptionalTensor& b_hh) {
        return run(make_cell(kind, x, {hx}, w_ih, w_hh, b_ih, b_hh), {x, hx, w_ih, w_hh, b_ih, b_hh}).front();
      })
      .composite();
  ops::PrepareBuilder(name.c_str(), DeviceKind::kCPU, [kind](const ops::PrepareArgs& args) {
    const auto& v = args.arguments;
    return prepare(make_cell(kind, v[0].to_tensor(), {v[1].to_tensor()}, v[2].to_tensor(), v[3].to_tensor(),
                             ops::Unbox<OptionalTensor>::get(v[4]), ops::Unbox<OptionalTensor>::get(v[5])),
                   args);
  });
}

bool register_all() {
  add_lstm();
  add(RnnKind::kGru, "aten::gru_cell");
  add(RnnKind::kTanh, "aten::rnn_tanh_cell");
  add(RnnKind::kRelu, "aten::rnn_relu_cell");
  return true;
}
[[maybe_unused]] const bool registered = register_all();

}  // namespace
}  // namespace tensord::kernels
