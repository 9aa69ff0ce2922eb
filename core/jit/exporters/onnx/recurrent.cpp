// LSTM, GRU and RNN. PyTorch's order of gates differs from ONNX's.
#include <algorithm>
#include <cstring>

#include "core/base/error.h"
#include "core/jit/exporters/onnx/call.h"

namespace tensord::jit::onnx {
namespace {

struct Kind {
  const char* op_type;
  Dims order;  // index of PyTorch's gate for each of ONNX's
};

// Reorders blocks of `size` rows, for one direction.
Tensor reordered(const Tensor& tensor, const Dims& order) {
  const Tensor from = tensor.contiguous();
  const Tensor to = Tensor::empty(from.sizes(), from.dtype());
  const size_t bytes = from.size_bytes() / order.size();
  for (size_t i = 0; i < order.size(); ++i) {
    std::memcpy(static_cast<char*>(to.raw_data()) + i * bytes,
                static_cast<const char*>(from.raw_data()) + static_cast<size_t>(order[i]) * bytes, bytes);
  }
  return to;
}

// Stacks tensors along a new first dimension.
Tensor together(const std::vector<Tensor>& parts, Dims sizes) {
  const Tensor out = Tensor::empty(sizes, parts[0].dtype());
  char* at = static_cast<char*>(out.raw_data());
  for (const Tensor& part : parts) {
    std::memcpy(at, part.raw_data(), part.size_bytes());
    at += part.size_bytes();
  }
  return out;
}

struct Layer {
  std::string weights, recurrent, biases;  // biases may be ""
};

Layer layer_of(Call& c, const std::vector<Traced>& params, size_t first, size_t directions, bool has_biases,
               const Kind& kind) {
  std::vector<Tensor> weights, recurrent, biases;
  const size_t count = has_biases ? 4 : 2;
  for (size_t d = 0; d < directions; ++d) {
    const Traced* own = &params.at(first + d * count + count - 1) - (count - 1);
    for (size_t i = 0; i < count; ++i) {
      if (c.tracer().is_dynamic(own[i])) c.refuse("weights that are computed cannot be exported to ONNX");
    }
    weights.push_back(reordered(own[0].a.to_tensor(), kind.order));
    recurrent.push_back(reordered(own[1].a.to_tensor(), kind.order));
    if (weights[d].ndim() != 2 || recurrent[d].ndim() != 2 || weights[d].sizes() != weights[0].sizes())
      c.refuse("weights of several sizes cannot be exported to ONNX");
    if (!has_biases) continue;
    biases.push_back(reordered(own[2].a.to_tensor(), kind.order));
    biases.push_back(reordered(own[3].a.to_tensor(), kind.order));
  }
  const auto number = static_cast<int64_t>(directions);
  Layer layer;
  layer.weights = c.constant(together(weights, Dims{number, weights[0].size(0), weights[0].size(1)}));
  layer.recurrent = c.constant(together(recurrent, Dims{number, recurrent[0].size(0), recurrent[0].size(1)}));
  if (has_biases) layer.biases = c.constant(together(biases, Dims{number, 2 * biases[0].size(0)}));
  return layer;
}

void recurrent(Call& c, const Kind& kind, const Attributes& own_attributes) {
  if (!c.has("input")) c.refuse("packed sequences cannot be exported to ONNX");
  const bool is_lstm = std::string_view(kind.op_type) == "LSTM";
  if (c.flag("train") && c.number("dropout") != 0) c.refuse("drops elements: call eval() before the model is saved");
  const bool has_biases = c.flag("has_biases"), batch_first = c.flag("batch_first");
  const size_t directions = c.flag("bidirectional") ? 2 : 1;
  const int64_t layers = c.integer("num_layers");
  const std::vector<Traced> params = c.list("params"), states = c.list("hx");
  const size_t per_layer = directions * (has_biases ? 4 : 2);
  if (params.size() != per_layer * static_cast<size_t>(layers)) c.refuse("projections cannot be exported to ONNX");
  const int64_t hidden = states.at(0).a.to_tensor().size(-1);
  std::string x = c.x("input");
  if (batch_first) x = c.transpose(x, Dims{1, 0, 2});
  Strings last_hidden, last_cell;
  for (int64_t layer = 0; layer < layers; ++layer) {
    const Layer own = layer_of(c, params, static_cast<size_t>(layer) * per_layer, directions, has_biases, kind);
    const auto number = static_cast<int64_t>(directions);
    const auto state_of = [&](const Traced& all) {
      return c.emit("Slice", {c.tracer().name_of(all), c.int_vector({layer * number}),
                              c.int_vector({(layer + 1) * number}), c.int_vector({0})});
    };
    Strings inputs{x, own.weights, own.recurrent, own.biases, "", state_of(states[0])};
    if (is_lstm) inputs.push_back(state_of(states.at(1)));
    Attributes attributes = own_attributes;
    attributes.emplace_back("hidden_size", hidden);
    attributes.emplace_back("direction", std::string(directions == 2 ? "bidirectional" : "forward"));
    const Strings outputs = c.emit_many(kind.op_type, inputs, attributes, is_lstm ? 3 : 2);
    last_hidden.push_back(outputs[1]);
    if (is_lstm) last_cell.push_back(outputs[2]);
    // [length, directions, batch, hidden] → [length, batch, directions · hidden]
    x = c.transpose(outputs[0], Dims{0, 2, 1, 3});
    x = c.reshape(x, Dims{0, 0, number * hidden});
  }
  c.set(batch_first ? c.transpose(x, Dims{1, 0, 2}) : x, 0);
  const auto join = [&](const Strings& parts) {
    return parts.size() == 1 ? parts[0] : c.emit("Concat", parts, {{"axis", int64_t{0}}});
  };
  c.set(join(last_hidden), 1);
  if (is_lstm) c.set(join(last_cell), 2);
}

void lstm(Call& c) { recurrent(c, {"LSTM", {0, 3, 1, 2}}, {}); }
void gru(Call& c) { recurrent(c, {"GRU", {1, 0, 2}}, {{"linear_before_reset", int64_t{1}}}); }
void rnn_tanh(Call& c) { recurrent(c, {"RNN", {0}}, {}); }

}  // namespace

std::span<const HandlerRow> recurrent_rows() {
  static const HandlerRow kRows[] = {
      {"aten::lstm", lstm},
      {"aten::gru", gru},
      {"aten::rnn_tanh", rnn_tanh},
  };
  return kRows;
}

}  // namespace tensord::jit::onnx
