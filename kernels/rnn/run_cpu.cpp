// Runs recurrent layers: directly, packing the weights on the way, or prepared.
#include "core/base/error.h"
#include "core/base/parallel.h"
#include "core/ops/run.h"
#include "core/tensor/strided_copy.h"
#include "kernels/base/packed_half.h"
#include "kernels/rnn/rnn.h"
#include "ops/random.h"

namespace tensord::kernels {
namespace {

template <class T>
RnnMemory<T> memory_of(const RnnCall& call, std::span<const Tensor> outputs, void* scratch) {
  const bool is_lstm = call.kind == RnnKind::kLstm;
  RnnMemory<T> memory;
  memory.x = call.input.data<T>();
  memory.h0 = call.states[0].data<T>();
  memory.c0 = is_lstm ? call.states[1].data<T>() : nullptr;
  memory.sizes = call.batch_sizes ? call.batch_sizes->data<int64_t>() : nullptr;
  memory.out = outputs[0].data<T>();
  memory.hn = outputs[1].data<T>();
  memory.cn = is_lstm ? outputs[2].data<T>() : nullptr;
  memory.scratch = scratch;
  return memory;
}

// Whether the outputs' rows have the layout that the loops write, and the inputs' rows the one that they read.
bool fits(const RnnCall& call, std::span<const Tensor> outputs) {
  const auto has_rows = [](const Tensor& x) {
    return x.numel() == 0 || x.sizes().back() == 1 || x.strides().back() == 1;
  };
  bool result = has_rows(call.input) && has_rows(outputs[0]);
  for (const Tensor& state : call.states) result = result && state.is_contiguous();
  for (const Tensor& state : outputs.subspan(1)) result = result && state.is_contiguous();
  return result && (!call.batch_sizes || call.batch_sizes->is_contiguous());
}

RnnShape shape_for(const RnnCall& call, const Tensor& out) {
  RnnShape shape = call.shape();
  const size_t step = call.batch_first ? 1 : 0;
  shape.output_row_stride = out.strides()[call.batch_sizes ? 0 : 1 - step];
  shape.output_step_stride = call.batch_sizes ? 0 : out.strides()[step];
  return shape;
}

// REQUIRES: fits(call, outputs); dtype T.
template <class T>
void run_once(const RnnCall& call, std::span<const Tensor> outputs) {
  std::vector<std::shared_ptr<const RnnWeights<T>>> weights;
  for (const RnnParameters& cell : call.parameters) weights.push_back(std::make_shared<RnnWeights<T>>(call.kind, cell));
  const RnnSequence<T> sequence(shape_for(call, outputs[0]), std::move(weights), thread_budget());
  const Tensor scratch = Tensor::empty(Dims{static_cast<int64_t>(sequence.scratch_bytes())}, DType::kUInt8);
  sequence.run(memory_of<T>(call, outputs, scratch.raw_data()));
}

void make_dense(Tensor& tensor, DType dtype) {
  if (tensor) tensor = tensor.to(dtype).contiguous();
}

RnnParameters dense_parameters(RnnParameters cell, DType dtype) {
  for (Tensor* tensor : {&cell.input, &cell.recurrent, &cell.input_bias, &cell.recurrent_bias, &cell.projection})
    make_dense(*tensor, dtype);
  return cell;
}

// Converts everything to `dtype`, dense.
RnnCall dense_call(const RnnCall& call, DType dtype) {
  RnnCall dense = call;
  make_dense(dense.input, dtype);
  if (dense.batch_sizes) dense.batch_sizes = dense.batch_sizes->contiguous();
  for (Tensor& state : dense.states) make_dense(state, dtype);
  for (RnnParameters& cell : dense.parameters) cell = dense_parameters(cell, dtype);
  return dense;
}

// Halves are computed in f32.
void run_layers(const RnnCall& call, std::span<const Tensor> outputs) {
  const DType dtype = call.input.dtype() == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  if (dtype == call.input.dtype() && fits(call, outputs))
    return dtype == DType::kFloat64 ? run_once<double>(call, outputs) : run_once<float>(call, outputs);
  std::vector<Tensor> dense;
  for (const Tensor& out : outputs) dense.push_back(Tensor::empty(out.sizes(), dtype));
  run_layers(dense_call(call, dtype), dense);
  for (size_t i = 0; i < dense.size(); ++i) strided_copy(outputs[i], dense[i].to(outputs[i].dtype()));
}

Tensor first_rows(const Tensor& tensor, int64_t first, int64_t count) {
  Dims sizes = tensor.sizes();
  sizes[0] = count;
  return tensor.as_view(std::move(sizes), tensor.strides(), tensor.offset() + first * tensor.strides()[0]);
}

Tensor time_first(const Tensor& tensor) {
  const Dims &sizes = tensor.sizes(), &strides = tensor.strides();
  return tensor.as_view({sizes[1], sizes[0], sizes[2]}, {strides[1], strides[0], strides[2]}, tensor.offset());
}

template <class T>
class PreparedRnn final : public ops::PreparedCall {
 public:
  PreparedRnn(const RnnCall& call, RnnSequence<T> sequence, std::span<const int> slots)
      : sequence_(std::move(sequence)), slots_(slots.begin(), slots.end()) {
    // Keeps only what is constant.
    values_ = {call.input, call.batch_sizes.value_or(Tensor())};
    values_.insert(values_.end(), call.states.begin(), call.states.end());
    for (size_t i = 0; i < values_.size(); ++i) {
      if (slots_[i] >= 0) values_[i] = Tensor();
    }
    scratch_bytes = sequence_.scratch_bytes();
    cost = sequence_.cost();
    variant = "panels";
  }

  void run(const ops::KernelContext&, const ops::PreparedRun& run) const override {
    const bool is_lstm = values_.size() == 4;
    RnnMemory<T> memory;
    memory.x = static_cast<const T*>(value(0, run));
    memory.sizes = static_cast<const int64_t*>(value(1, run));
    memory.h0 = static_cast<const T*>(value(2, run));
    memory.c0 = is_lstm ? static_cast<const T*>(value(3, run)) : nullptr;
    memory.out = static_cast<T*>(run.outputs[0]);
    memory.hn = static_cast<T*>(run.outputs[1]);
    memory.cn = is_lstm ? static_cast<T*>(run.outputs[2]) : nullptr;
    memory.scratch = run.scratch;
    sequence_.run(memory);
  }

 private:
  const void* value(size_t i, const ops::PreparedRun& run) const {
    if (slots_[i] >= 0) return run.inputs[slots_[i]];
    return values_[i] ? values_[i].raw_data() : nullptr;
  }

  RnnSequence<T> sequence_;
  std::vector<int> slots_;
  std::vector<Tensor> values_;  // input, batch sizes, states
};

template <class T>
std::unique_ptr<ops::PreparedCall> prepare_as(const RnnCall& call, const ops::PrepareArgs& args,
                                              std::span<const int> slots) {
  std::vector<std::shared_ptr<const RnnWeights<T>>> weights;
  for (const RnnParameters& cell : call.parameters) {
    const Tensor of[] = {cell.input, cell.recurrent, cell.input_bias, cell.recurrent_bias, cell.projection};
    weights.push_back(args.packs->get<RnnWeights<T>>(concat("rnn ", static_cast<int>(call.kind)), of, [&] {
      return std::make_shared<RnnWeights<T>>(call.kind, dense_parameters(cell, dtype_of<T>));
    }));
  }
  return std::make_unique<PreparedRnn<T>>(
      call, RnnSequence<T>(shape_for(call, args.outputs[0]), std::move(weights), args.threads), slots);
}

// In float32, with weights that are converted once.
std::unique_ptr<ops::PreparedCall> prepare_halves(const RnnCall& call, const ops::PrepareArgs& args,
                                                  std::span<const int> slots) {
  RnnCall wide = call;
  std::vector<Tensor> inputs, outputs;
  const auto widen = [&](Tensor& tensor, int slot) {
    if (!tensor) return;
    if (slot >= 0) {
      inputs.resize(std::max(inputs.size(), static_cast<size_t>(slot) + 1));
      inputs[static_cast<size_t>(slot)] = tensor;
    }
    if (!is_half(tensor.dtype())) return;
    tensor = slot >= 0 ? wide_meta(tensor) : tensor.to(DType::kFloat32);
  };
  widen(wide.input, slots[0]);
  if (wide.batch_sizes) widen(*wide.batch_sizes, slots[1]);
  for (size_t i = 0; i < wide.states.size(); ++i) widen(wide.states[i], slots[2 + i]);
  for (const Tensor& output : args.outputs) outputs.push_back(wide_meta(output));
  for (const Tensor& input : inputs) {
    if (!input) return nullptr;  // it is an input of the run, and not one of these
  }
  auto prepared =
      prepare_as<float>(wide, {args.op, args.arguments, outputs, args.threads, args.precision, args.packs}, slots);
  return widen_call(std::move(prepared), inputs, args.outputs);
}

}  // namespace

void run_rnn(const RnnCall& call, std::span<const Tensor> outputs) {
  if (call.dropout == 0 || call.layers == 1) return run_layers(call, outputs);
  // Training with dropout runs layer by layer; values dropped between the layers are drawn in the order of time.
  RnnCall one = call;
  one.layers = 1;
  one.batch_first = false;
  if (call.batch_first) one.input = time_first(call.input);
  for (int64_t layer = 0; layer < call.layers; ++layer) {
    const int64_t first = layer * call.directions;
    for (size_t i = 0; i < call.states.size(); ++i) one.states[i] = first_rows(call.states[i], first, call.directions);
    one.parameters.assign(call.parameters.begin() + first, call.parameters.begin() + first + call.directions);
    const bool is_last = layer == call.layers - 1;
    std::vector<Tensor> results;
    if (is_last)
      results.push_back(call.batch_first ? time_first(outputs[0]) : outputs[0]);
    else
      results.push_back(Tensor::empty(rnn_metas(one)[0].sizes, call.input.dtype()));
    for (const Tensor& state : outputs.subspan(1)) results.push_back(first_rows(state, first, call.directions));
    run_layers(one, results);
    if (!is_last) one.input = ops::dropout(results[0], call.dropout, true);
  }
}

std::unique_ptr<ops::PreparedCall> prepare_rnn(const RnnCall& call, const ops::PrepareArgs& args,
                                               std::span<const int> slots) {
  if ((call.dropout != 0 && call.layers > 1) || !fits(call, args.outputs)) return nullptr;
  for (const RnnParameters& cell : call.parameters) {
    for (const Tensor* tensor :
         {&cell.input, &cell.recurrent, &cell.input_bias, &cell.recurrent_bias, &cell.projection}) {
      if (*tensor && tensor->is_meta()) return nullptr;
    }
  }
  switch (call.input.dtype()) {
    case DType::kFloat32: return prepare_as<float>(call, args, slots);
    case DType::kFloat64: return prepare_as<double>(call, args, slots);
    case DType::kFloat16:
    case DType::kBFloat16: return prepare_halves(call, args, slots);
    default: return nullptr;
  }
}

}  // namespace tensord::kernels
