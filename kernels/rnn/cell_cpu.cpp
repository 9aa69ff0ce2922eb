// The loops of one step of a recurrent cell, direct and prepared.
#include "kernels/rnn/cell.h"

#include <vector>

#include "kernels/gemm/gemm.h"

namespace tensord::kernels {
namespace {

using OptionalTensor = std::optional<Tensor>;

// With fewer rows, the weights are read once for each row; with more, a matrix product is used.
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
void run_dense(RnnKind kind, int64_t batch, int64_t inputs, int64_t units, const CellMemory<T>& memory) {
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
void run_as(const CellCall& cell, std::span<const Tensor> outputs) {
  const auto dense = [](const Tensor& tensor) { return tensor.to(dtype_of<T>).contiguous(); };
  CellCall full = cell;
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
  run_dense<T>(cell.kind, cell.batch(), cell.input.sizes()[1], cell.units(),
               {full.input.data<T>(), full.states[0].data<T>(), is_lstm ? full.states[1].data<T>() : nullptr,
                full.input_weights.data<T>(), full.recurrent_weights.data<T>(), data_of<T>(full.input_bias),
                data_of<T>(full.recurrent_bias), results[0].data<T>(), is_lstm ? results[1].data<T>() : nullptr,
                scratch.data<T>()});
  for (size_t i = 0; i < results.size(); ++i) {
    if (!results[i].is_same(outputs[i])) outputs[i].copy_from(results[i]);
  }
}

// Prepared for known shapes.

class PreparedCell final : public ops::PreparedCall {
 public:
  // `slots`: for input, h, c, weights and biases, which of the run's inputs they are; -1 if constant or absent.
  PreparedCell(const CellCall& cell, std::vector<int> slots, std::vector<Tensor> constants)
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
    run_dense<float>(
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

}  // namespace

void run_cell(const CellCall& cell, std::span<const Tensor> outputs) {
  if (outputs[0].numel() == 0) return;
  if (cell.input.dtype() == DType::kFloat64)
    run_as<double>(cell, outputs);
  else
    run_as<float>(cell, outputs);
}

std::unique_ptr<ops::PreparedCall> prepare_cell(const CellCall& cell, const ops::PrepareArgs& args) {
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

}  // namespace tensord::kernels
