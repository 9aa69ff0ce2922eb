// LSTM, GRU and single cells whose products are dynamic linear layers: schemas, and cells from archives.
#include "core/ops/attributes/batch_independence.h"
#include "core/ops/custom_class.h"
#include "core/ops/op.h"
#include "kernels/quantized/cell_params.h"

namespace tensord::kernels {
namespace {

using ops::Value;

// --- archives

Value item(const Value& state, size_t list, size_t index) {
  const Value& items = state.to_tuple()->items[list];
  check(items.is_list() && items.to_list()->items.size() > index, CellParams::kClass, ": its state has no item ", index,
        " in list ", list);
  return items.to_list()->items[index];
}

// PyTorch 1.2's: plain 8-bit weights, each with one scale.
LinearParamsPtr restore_old(const Value& state, size_t layer) {
  const Value weight = item(state, 1, layer);
  check(weight.is_strided() && weight.to_tensor().dtype() == DType::kInt8, CellParams::kClass,
        ": a weight is not an int8");
  ops::Quantizer quantizer;
  quantizer.scale = item(state, 2, layer).to_float();
  quantizer.zero_point = item(state, 3, layer).to_int();
  auto tensor = make_intrusive<ops::QuantizedTensor>(ops::QuantizedType::kQInt8, weight.to_tensor(), quantizer);
  return make_intrusive<LinearParams>(Value(Tensor(tensor)), item(state, 1, 2 + layer));
}

// (kind, tensors, doubles, ints, packed). The biases are among the tensors in packed layers too.
IntrusivePtr<ops::OpaqueObject> restore_cell(const Value& state) {
  check(state.is_tuple() && state.to_tuple()->items.size() == 5 && state.to_tuple()->items[0].is_string(),
        CellParams::kClass, ": its state has the wrong form");
  const std::string& kind = state.to_tuple()->items[0].to_string();
  if (kind == "quantized") return make_intrusive<CellParams>(restore_old(state, 0), restore_old(state, 1), false);
  check(kind == "quantized_dynamic" || kind == "quantized_fp16", CellParams::kClass, ": kind '", kind,
        "' is not known");
  const auto packed = [&](size_t i) { return ops::Unbox<LinearParamsPtr>::get(item(state, 4, i)); };
  // The first version of the state did not have this flag.
  const Value& ints = state.to_tuple()->items[3];
  const bool has_range = kind == "quantized_dynamic" && ints.is_list() && !ints.to_list()->items.empty();
  return make_intrusive<CellParams>(packed(0), packed(1), has_range && item(state, 3, 0).to_int() != 0);
}
CUSTOM_CLASS(CellParams::kClass, &restore_cell);

// --- layers

OP("aten::quantized_lstm.input").constant_result().set<ops::MixesSamples>();
OP("aten::quantized_lstm.data").constant_result().set<ops::MixesSamples>();
OP("aten::quantized_gru.input").constant_result().set<ops::MixesSamples>();
OP("aten::quantized_gru.data").constant_result().set<ops::MixesSamples>();

// --- single cells. Their packed layers have the biases, which come again as arguments.

OP("quantized::quantized_lstm_cell_dynamic").constant_result().set<ops::MixesSamples>();

#define PLAIN_CELL(NAME) OP("quantized::" NAME).constant_result().set<ops::MixesSamples>()
PLAIN_CELL("quantized_gru_cell_dynamic");
PLAIN_CELL("quantized_rnn_relu_cell_dynamic");
PLAIN_CELL("quantized_rnn_tanh_cell_dynamic");

}  // namespace
}  // namespace tensord::kernels
