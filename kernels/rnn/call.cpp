// Arguments of recurrent layers.
#include "core/base/error.h"
#include "kernels/rnn/rnn.h"

namespace tensord::kernels {
namespace {

void check_sizes(const Tensor& tensor, const Dims& sizes, const char* what) {
  check(tensor.sizes() == sizes, "expected the ", what, " of a recurrent layer to have sizes ", to_string(sizes),
        ", but got ", tensor.sizes());
}

// The flat list of parameters: for each layer and direction w_ih, w_hh, the biases, the projection.
void gather_parameters(RnnCall& call, const std::vector<Tensor>& flat, bool has_biases, bool has_projection) {
  const size_t each = 2 + (has_biases ? 2 : 0) + (has_projection ? 1 : 0);
  const auto cells = static_cast<size_t>(call.layers * call.directions);
  check(flat.size() == each * cells, "got an incorrect number of RNN parameters");
  for (size_t i = 0; i < cells; ++i) {
    const Tensor* at = &flat[i * each];
    RnnParameters cell{at[0], at[1], {}, {}, {}};
    if (has_biases) cell.input_bias = at[2], cell.recurrent_bias = at[3];
    if (has_projection) cell.projection = at[each - 1];
    call.parameters.push_back(std::move(cell));
  }
}

void check_parameters(const RnnCall& call) {
  const int64_t rows = rnn_gates(call.kind) * call.hidden;
  for (size_t i = 0; i < call.parameters.size(); ++i) {
    const RnnParameters& cell = call.parameters[i];
    const bool is_first = i < static_cast<size_t>(call.directions);
    check_sizes(cell.input, {rows, is_first ? call.inputs : call.output_size()}, "input weights");
    check_sizes(cell.recurrent, {rows, call.state}, "recurrent weights");
    if (cell.input_bias) check_sizes(cell.input_bias, {rows}, "input bias");
    if (cell.recurrent_bias) check_sizes(cell.recurrent_bias, {rows}, "recurrent bias");
    if (cell.projection) check_sizes(cell.projection, {call.state, call.hidden}, "projection");
  }
}

void check_dtypes(const RnnCall& call, const std::vector<Tensor>& parameters) {
  const DType dtype = call.input.dtype();
  if (!is_floating(dtype)) fail_dtype("recurrent layers", dtype);
  const auto check_same = [dtype](const Tensor& tensor) {
    check(tensor.dtype() == dtype, "input, states and weights of a recurrent layer must have the same dtype, but got ",
          name_of(dtype), " and ", name_of(tensor.dtype()));
  };
  for (const Tensor& tensor : call.states) check_same(tensor);
  for (const Tensor& tensor : parameters) check_same(tensor);
}

}  // namespace

RnnCall rnn_call(RnnKind kind, const Tensor& input, const std::optional<Tensor>& batch_sizes,
                 const std::vector<Tensor>& states, const std::vector<Tensor>& parameters, const RnnFlags& flags) {
  const bool is_lstm = kind == RnnKind::kLstm;
  if (is_lstm) check(states.size() == 2, "lstm expects two hidden states");
  RnnCall call{};
  call.kind = kind;
  call.input = input;
  call.batch_sizes = batch_sizes;
  call.states = states;
  call.layers = flags.layers;
  call.directions = flags.bidirectional ? 2 : 1;
  call.batch_first = flags.batch_first && !batch_sizes;
  if (flags.train) call.dropout = flags.dropout;
  check(call.layers > 0 && call.layers <= static_cast<int64_t>(parameters.size()),
        "num_layers of a recurrent layer is ", call.layers, ", for ", parameters.size(), " parameters");
  check(input.ndim() == (batch_sizes ? 2 : 3), "input of a recurrent layer must have ", batch_sizes ? 2 : 3,
        " dimensions, got ", input.ndim());
  for (const Tensor& state : states)
    check(state.ndim() == 3, "states of a recurrent layer must have 3 dimensions, got ", state.ndim());
  call.inputs = input.sizes().back();
  call.state = states[0].sizes()[2];
  call.hidden = states.back().sizes()[2];
  check(call.hidden > 0, "hidden_size of a recurrent layer must be positive");
  check_dtypes(call, parameters);
  gather_parameters(call, parameters, flags.has_biases, is_lstm && call.state != call.hidden);
  check_parameters(call);
  if (batch_sizes) {
    check(batch_sizes->dtype() == DType::kInt64 && batch_sizes->ndim() == 1 && batch_sizes->numel() > 0,
          "batch_sizes of packed data must be a list of int64");
  } else {
    const int64_t batch = input.sizes()[call.batch_first ? 0 : 1];
    check(input.sizes()[call.batch_first ? 1 : 0] > 0, "Expected sequence length to be larger than 0 in RNN");
    check(states[0].sizes()[1] == batch, "expected states of a recurrent layer for a batch of ", batch, ", but got ",
          states[0].sizes()[1]);
  }
  const Dims sizes{call.layers * call.directions, states[0].sizes()[1], call.state};
  check_sizes(states[0], sizes, "first state");
  if (is_lstm) check_sizes(states[1], {sizes[0], sizes[1], call.hidden}, "cell state");
  return call;
}

RnnShape RnnCall::shape() const {
  RnnShape shape;
  shape.kind = kind;
  shape.layers = layers;
  shape.directions = directions;
  shape.batch = states[0].sizes()[1];
  shape.is_packed = batch_sizes.has_value();
  if (batch_sizes) {
    shape.steps = batch_sizes->numel();
    shape.rows = input.sizes()[0];
    shape.input_row_stride = input.strides()[0];
    return shape;
  }
  const size_t step = batch_first ? 1 : 0;
  shape.steps = input.sizes()[step];
  shape.rows = shape.steps * shape.batch;
  shape.input_step_stride = input.strides()[step];
  shape.input_row_stride = input.strides()[1 - step];
  return shape;
}

std::vector<ops::TensorMeta> rnn_metas(const RnnCall& call) {
  const Tensor& x = call.input;
  const int64_t size = call.output_size();
  Dims sizes = x.sizes(), strides;
  sizes.back() = size;
  // In memory, time always comes first.
  if (call.batch_first) strides = Dims{size, size * sizes[0], 1};
  std::vector<ops::TensorMeta> metas{{std::move(sizes), x.dtype(), std::move(strides), x.device()}};
  for (const Tensor& state : call.states) metas.push_back({state.sizes(), x.dtype(), {}, x.device()});
  return metas;
}

}  // namespace tensord::kernels
