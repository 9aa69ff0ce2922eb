// LSTM, GRU and single cells on the CPU whose products are dynamic linear layers (linear_params.h): one product of the
// input for all time steps, with one scale, and one of the state in each step, as in PyTorch.
#include <cstring>
#include <optional>

#include "core/base/parallel.h"
#include "core/ops/op.h"
#include "kernels/quantized/cell_params.h"
#include "kernels/rnn/kernels.h"

namespace tensord::kernels {
namespace {

using ops::Value;

// --- products

void multiply(const LinearParams& params, bool reduces_range, const Tensor& x, float* out) {
  const int64_t rows = x.sizes()[0];
  if (rows == 0) return;
  if (params.is_half()) {
    const Tensor y = params.half().run(x, Tensor(), false).contiguous();
    std::memcpy(out, y.raw_data(), y.size_bytes());
    return;
  }
  const DynamicLinear linear{params.weight(), params.bias_or_zeros(), reduces_range, false};
  const Tensor scratch = Tensor::empty(Dims{static_cast<int64_t>(linear.scratch_bytes(rows))}, DType::kUInt8);
  linear.run(x.data<float>(), rows, out, scratch.raw_data(), thread_budget());
}

Tensor first_rows(const Tensor& matrix, int64_t first, int64_t count) {
  return matrix.as_view(Dims{count, matrix.sizes()[1]}, matrix.strides(),
                        matrix.offset() + first * matrix.strides()[0]);
}

// --- one direction of a layer

// The state of a direction: rows of h, and of c for the LSTM, changed from step to step.
struct State {
  Tensor h, c;  // [batch, units], dense, own memory
};

// One step of the first `rows` rows. `input` is their product; h goes to `out`, whose rows are out_stride apart.
void run_step(RnnKind kind, const CellParams& cell, const float* input, int64_t rows, State& state, float* out,
              int64_t out_stride) {
  const int64_t units = state.h.sizes()[1], gates = rnn_gates(kind) * units;
  const Tensor recurrent = Tensor::empty(Dims{rows, gates}, DType::kFloat32);
  multiply(*cell.recurrent, cell.reduces_range, first_rows(state.h, 0, rows), recurrent.data<float>());
  const bool is_lstm = kind == RnnKind::kLstm;
  std::vector<float> next(static_cast<size_t>(units)), next_cell(static_cast<size_t>(is_lstm ? units : 0));
  for (int64_t r = 0; r < rows; ++r) {
    float* h = state.h.data<float>() + r * units;
    float* c = is_lstm ? state.c.data<float>() + r * units : nullptr;
    rnn_kernels<float>().cell(kind, {input + r * gates, recurrent.data<float>() + r * gates, nullptr, nullptr, h, c,
                                     next.data(), is_lstm ? next_cell.data() : nullptr, units});
    std::copy(next.begin(), next.end(), h);
    std::copy(next_cell.begin(), next_cell.end(), c);
    if (out) std::copy(next.begin(), next.end(), out + r * out_stride);
  }
}

// x: [rows of all steps, inputs]; sizes: the rows of each step. out: units wide columns of out_stride.
void run_direction(RnnKind kind, const CellParams& cell, const Tensor& x, const std::vector<int64_t>& sizes,
                   bool is_reverse, State& state, float* out, int64_t out_stride) {
  const int64_t units = state.h.sizes()[1], gates = rnn_gates(kind) * units;
  const Tensor input = Tensor::empty(Dims{x.sizes()[0], gates}, DType::kFloat32);
  multiply(*cell.input, cell.reduces_range, x, input.data<float>());
  std::vector<int64_t> first(sizes.size(), 0);
  for (size_t i = 1; i < sizes.size(); ++i) first[i] = first[i - 1] + sizes[i - 1];
  for (size_t turn = 0; turn < sizes.size(); ++turn) {
    const size_t step = is_reverse ? sizes.size() - 1 - turn : turn;
    run_step(kind, cell, input.data<float>() + first[step] * gates, sizes[step], state, out + first[step] * out_stride,
             out_stride);
  }
}

// --- layers

struct Layers {
  RnnKind kind;
  Tensor input;                       // [steps, batch, inputs], or packed [rows, inputs]
  std::optional<Tensor> batch_sizes;  // of packed data
  std::vector<Tensor> states;         // [layers * directions, batch, units]
  std::vector<CellParamsPtr> cells;
  int64_t layers = 1, directions = 1;
  bool batch_first = false;

  int64_t units() const { return cells[0]->recurrent->inputs(); }
  int64_t batch() const { return states[0].sizes()[1]; }
};

void check_layers(const Layers& call) {
  const bool is_packed = call.batch_sizes.has_value();
  check(call.input.dtype() == DType::kFloat32 && call.input.ndim() == (is_packed ? 2 : 3), "expected ",
        is_packed ? "packed rows" : "steps of rows", " of float32, but got ", describe(call.input));
  check(call.layers >= 1 && call.layers * call.directions == static_cast<int64_t>(call.cells.size()), "expected ",
        call.layers, " layers of ", call.directions, " directions, but got ", call.cells.size(), " cells");
  const int64_t gates = rnn_gates(call.kind) * call.units();
  for (size_t i = 0; i < call.cells.size(); ++i) {
    const int64_t layer = static_cast<int64_t>(i) / call.directions;
    const int64_t inputs = layer == 0 ? call.input.sizes().back() : call.directions * call.units();
    const LinearParams &input = *call.cells[i]->input, &recurrent = *call.cells[i]->recurrent;
    check(input.inputs() == inputs && input.outputs() == gates && recurrent.inputs() == call.units() &&
              recurrent.outputs() == gates,
          "cell ", i, " has weights of ", input.outputs(), "x", input.inputs(), " and ", recurrent.outputs(), "x",
          recurrent.inputs(), ", expected ", gates, "x", inputs, " and ", gates, "x", call.units());
  }
  check(call.states.size() == (call.kind == RnnKind::kLstm ? 2u : 1u), "expected other states than ",
        call.states.size());
  for (const Tensor& state : call.states) {
    check(state.dtype() == DType::kFloat32 && state.ndim() == 3 &&
              state.sizes()[0] == static_cast<int64_t>(call.cells.size()) && state.sizes()[2] == call.units() &&
              state.sizes() == call.states[0].sizes(),
          "expected states of float32 for ", call.cells.size(), " cells of ", call.units(), " units, but got ",
          describe(state));
  }
  if (!is_packed) {
    check(call.input.sizes()[call.batch_first ? 0 : 1] == call.batch(), "the input ", call.input.sizes(),
          " and the states have other batches");
  }
}

std::vector<int64_t> sizes_of_steps(const Layers& call) {
  if (!call.batch_sizes) {
    return std::vector<int64_t>(static_cast<size_t>(call.input.sizes()[call.batch_first ? 1 : 0]), call.batch());
  }
  check(call.batch_sizes->dtype() == DType::kInt64 && call.batch_sizes->ndim() == 1, "batch_sizes are ",
        describe(*call.batch_sizes));
  const Tensor dense = call.batch_sizes->contiguous();
  std::vector<int64_t> sizes(dense.data<int64_t>(), dense.data<int64_t>() + dense.numel());
  int64_t most = call.batch(), total = 0;
  for (const int64_t size : sizes) {
    check(size > 0 && size <= most && (total > 0 || size == most), "batch_sizes have to start with ", call.batch(),
          " and never grow, but got ", size);
    total += most = size;
  }
  check(total == call.input.sizes()[0], "packed data has ", call.input.sizes()[0], " rows, but batch_sizes add up to ",
        total);
  return sizes;
}

Tensor swap_first(const Tensor& x) {
  return x.as_view({x.sizes()[1], x.sizes()[0], x.sizes()[2]}, {x.strides()[1], x.strides()[0], x.strides()[2]},
                   x.offset());
}

// The output, h, and for the LSTM c.
std::vector<Tensor> run_layers(const Layers& call) {
  check_layers(call);
  Dims sizes = call.input.sizes();
  const int64_t width = call.directions * call.units();
  sizes.back() = width;
  std::vector<Tensor> results;
  if (call.input.is_meta()) {
    results.push_back(Tensor::meta(sizes, DType::kFloat32));
    for (const Tensor& state : call.states) results.push_back(Tensor::meta(state.sizes(), DType::kFloat32));
    return results;
  }
  const std::vector<int64_t> steps = sizes_of_steps(call);
  const int64_t rows = call.input.numel() / call.input.sizes().back();
  const Tensor dense = (call.batch_first ? swap_first(call.input) : call.input).contiguous();
  Tensor x = dense.as_view(Dims{rows, dense.sizes().back()}, Dims{dense.sizes().back(), 1}, dense.offset());
  results.push_back(Tensor());
  for (const Tensor& state : call.states) results.push_back(state.clone().contiguous());
  for (int64_t layer = 0; layer < call.layers; ++layer) {
    const Tensor out = Tensor::empty(Dims{rows, width}, DType::kFloat32);
    for (int64_t direction = 0; direction < call.directions; ++direction) {
      const int64_t index = layer * call.directions + direction;
      const auto slice = [&](const Tensor& states) {
        return states.as_view(Dims{call.batch(), call.units()}, Dims{call.units(), 1},
                              index * call.batch() * call.units());
      };
      State state{slice(results[1]), call.kind == RnnKind::kLstm ? slice(results[2]) : Tensor()};
      run_direction(call.kind, *call.cells[static_cast<size_t>(index)], x, steps, direction == 1, state,
                    out.data<float>() + direction * call.units(), width);
    }
    x = out;
  }
  if (call.batch_first) {
    const Tensor time_first = x.as_view({sizes[1], sizes[0], width}, {sizes[0] * width, width, 1}, x.offset());
    results[0] = swap_first(time_first).contiguous();
  } else {
    results[0] = x.as_view(sizes, contiguous_strides(sizes), x.offset());
  }
  return results;
}

ops::Returns run_checked(const Layers& call, double dropout, bool trains) {
  check(!call.cells.empty() && !call.states.empty(), "expected cells and states");
  check(call.layers >= 1 && call.layers <= static_cast<int64_t>(call.cells.size()), "expected cells for ", call.layers,
        " layers, but got ", call.cells.size());
  check(!trains || dropout == 0, "dropout in training is not supported");
  const std::vector<Tensor> results = run_layers(call);
  return {{results.begin(), results.end()}};
}

ops::Returns run_lstm(const Tensor& input, const std::vector<Tensor>& hx, const std::vector<CellParamsPtr>& cells, bool,
                      int64_t layers, double dropout, bool trains, bool is_bidirectional, bool batch_first,
                      const Value&, bool) {
  return run_checked({RnnKind::kLstm, input, {}, hx, cells, layers, is_bidirectional ? 2 : 1, batch_first}, dropout,
                     trains);
}
ops::Returns run_packed_lstm(const Tensor& data, const Tensor& batch_sizes, const std::vector<Tensor>& hx,
                             const std::vector<CellParamsPtr>& cells, bool, int64_t layers, double dropout, bool trains,
                             bool is_bidirectional, const Value&, bool) {
  return run_checked({RnnKind::kLstm, data, batch_sizes, hx, cells, layers, is_bidirectional ? 2 : 1}, dropout, trains);
}
ops::Returns run_gru(const Tensor& input, const Tensor& hx, const std::vector<CellParamsPtr>& cells, bool,
                     int64_t layers, double dropout, bool trains, bool is_bidirectional, bool batch_first) {
  return run_checked({RnnKind::kGru, input, {}, {hx}, cells, layers, is_bidirectional ? 2 : 1, batch_first}, dropout,
                     trains);
}
ops::Returns run_packed_gru(const Tensor& data, const Tensor& batch_sizes, const Tensor& hx,
                            const std::vector<CellParamsPtr>& cells, bool, int64_t layers, double dropout, bool trains,
                            bool is_bidirectional) {
  return run_checked({RnnKind::kGru, data, batch_sizes, {hx}, cells, layers, is_bidirectional ? 2 : 1}, dropout,
                     trains);
}

// --- single cells. Their packed layers have the biases, which come again as arguments.

std::vector<Tensor> run_cell(RnnKind kind, const Tensor& input, std::vector<Tensor> states, const LinearParamsPtr& w_ih,
                             const LinearParamsPtr& w_hh) {
  for (Tensor& state : states) {
    check(state.ndim() == 2, "expected states of two dimensions, but got ", describe(state));
    state = state.as_view({1, state.sizes()[0], state.sizes()[1]}, {0, state.strides()[0], state.strides()[1]},
                          state.offset());
  }
  check(input.ndim() == 2, "expected rows of inputs, but got ", describe(input));
  Layers call{.kind = kind,
              .input = input.as_view({1, input.sizes()[0], input.sizes()[1]},
                                     {0, input.strides()[0], input.strides()[1]}, input.offset()),
              .batch_sizes = {},
              .states = std::move(states),
              .cells = {make_intrusive<CellParams>(w_ih, w_hh, true)}};
  std::vector<Tensor> results = run_layers(call);
  results.erase(results.begin());
  for (Tensor& state : results) {
    state =
        state.as_view({state.sizes()[1], state.sizes()[2]}, {state.strides()[1], state.strides()[2]}, state.offset());
  }
  return results;
}

ops::Returns run_lstm_cell(const Tensor& input, const std::vector<Tensor>& hx, const LinearParamsPtr& w_ih,
                           const LinearParamsPtr& w_hh, const Value&, const Value&) {
  check(hx.size() == 2, "expected two hidden states");
  const std::vector<Tensor> out = run_cell(RnnKind::kLstm, input, hx, w_ih, w_hh);
  return {{out.begin(), out.end()}};
}

template <RnnKind kKind>
Tensor run_plain_cell(const Tensor& input, const Tensor& hx, const LinearParamsPtr& w_ih, const LinearParamsPtr& w_hh,
                      const Value&, const Value&) {
  return run_cell(kKind, input, {hx}, w_ih, w_hh)[0];
}

IMPL("aten::quantized_lstm.input", kCPU, run_lstm);
IMPL("aten::quantized_lstm.data", kCPU, run_packed_lstm);
IMPL("aten::quantized_gru.input", kCPU, run_gru);
IMPL("aten::quantized_gru.data", kCPU, run_packed_gru);
IMPL("quantized::quantized_lstm_cell_dynamic", kCPU, run_lstm_cell);
IMPL("quantized::quantized_gru_cell_dynamic", kCPU, run_plain_cell<RnnKind::kGru>);
IMPL("quantized::quantized_rnn_relu_cell_dynamic", kCPU, run_plain_cell<RnnKind::kRelu>);
IMPL("quantized::quantized_rnn_tanh_cell_dynamic", kCPU, run_plain_cell<RnnKind::kTanh>);

}  // namespace
}  // namespace tensord::kernels
