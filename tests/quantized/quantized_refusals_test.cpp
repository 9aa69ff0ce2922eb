// Arguments that quantized operators must refuse, and states of packed weights from a malicious file: each by its
// message; the nearest valid arguments are accepted.
#include "core/ops/custom_class.h"
#include "core/ops/quantized.h"
#include "tests/support/operator_rows.h"

namespace tensord::quantized_refusals_test {
namespace {

using namespace testing_rows;
using ops::QuantizedType;
using ::testing::HasSubstr;

Value boxed(QuantizedType type, const Tensor& values, const ops::Quantizer& quantizer) {
  return Value(Tensor(make_intrusive<ops::QuantizedTensor>(type, values, quantizer)));
}
Value quantized(const Tensor& values, QuantizedType type = QuantizedType::kQInt8) { return boxed(type, values, {}); }
Value qint8(const Dims& sizes) { return quantized(ones(sizes, DType::kInt8)); }
// With a scale for each channel of `axis`.
Value by_channel(const Dims& sizes, int64_t axis, ops::QuantizationScheme scheme, QuantizedType type) {
  ops::Quantizer quantizer;
  quantizer.scheme = scheme;
  quantizer.axis = axis;
  const bool is_float = scheme == ops::QuantizationScheme::kPerChannelFloatQParams;
  quantizer.scales = ones(Dims{sizes[static_cast<size_t>(axis)]}, is_float ? DType::kFloat32 : DType::kFloat64);
  quantizer.zero_points = is_float ? quantizer.scales : ones(quantizer.scales.sizes(), DType::kInt64);
  return boxed(type, ones(sizes, type == QuantizedType::kQInt8 ? DType::kInt8 : DType::kUInt8), quantizer);
}
Value table(const Dims& sizes) {
  return by_channel(sizes, 0, ops::QuantizationScheme::kPerChannelFloatQParams, QuantizedType::kQUInt8);
}
Value linear(const Value& weight) { return ops::call_by_name<Value>("quantized::linear_prepack", weight, Value()); }

Value list_of(std::vector<Value> items) { return ops::make_list(ops::any_type(), std::move(items)); }
Value tuple_of(std::vector<Value> items) { return ops::make_tuple(std::move(items)); }
Value numbers(std::vector<int64_t> values) { return list_of({values.begin(), values.end()}); }

Value restored_object(const std::string& name, const Value& state) {
  const ops::CustomClassFn* make = ops::find_custom_class("__torch__.torch.classes." + name);
  check(make != nullptr, "no such class");
  return Value((*make)(state));
}

void expect_states(const std::string& name, const std::vector<std::pair<Value, const char*>>& rows) {
  for (size_t i = 0; i < rows.size(); ++i)
    EXPECT_THAT(said_by([&] { restored_object(name, rows[i].first); }), HasSubstr(rows[i].second)) << "row " << i;
}

TEST(PackedStates, LinearLayers) {
  const Value weight = qint8({2, 3}), packed = linear(weight);
  const auto of = [](const Value& w, const Value& bias = Value()) { return tuple_of({w, bias}); };
  const Value endless = quantized(ones({1, 3}, DType::kInt8).as_view(Dims{int64_t{1} << 40, 3}, Dims{0, 1}, 0));
  expect_states(
      "quantized.LinearPackedParamsBase",
      {{of(weight), kTaken},
       {of(ones({1, 1})), kTaken},
       {of(weight, ones({2})), kTaken},
       {Value(), "its state is not a weight and bias"},
       {Value(1), "its state is not a weight and bias"},
       {list_of({weight, Value()}), "its state is not a weight and bias"},
       {tuple_of({}), "its state is not a weight and bias"},
       {tuple_of({weight}), "its state is not a weight and bias"},
       {tuple_of({weight, Value(), Value()}), "its state is not a weight and bias"},
       {of(Value()), "a linear layer's weight is a None"},
       {of(weight, Value(1)), "a linear layer's bias is a"},
       {of(weight, weight), "a linear layer's bias is a"},
       {of(ones({2, 3}, DType::kInt8)), "expected a matrix of qint8 or, for float16, of float32"},
       {of(ones({2})), "expected a matrix of qint8 or, for float16, of float32"},
       {of(ones({0, 2})), "expected a matrix of qint8 or, for float16, of float32"},
       {of(Tensor::meta(Dims{2, 2}, DType::kFloat32)), "expected a matrix of qint8 or, for float16, of float32"},
       {of(qint8({2, 2, 3, 3})), "expected a matrix of qint8"},
       {of(quantized(ones({2, 3}, DType::kUInt8), QuantizedType::kQUInt8)), "expected a matrix of qint8"},
       {of(by_channel({2, 3}, 1, ops::QuantizationScheme::kPerChannelAffine, QuantizedType::kQInt8)),
        "has its channels along axis 1, expected 0"},
       {of(by_channel({2, 3}, 0, ops::QuantizationScheme::kPerChannelAffine, QuantizedType::kQInt8)), kTaken},
       {of(weight, ones({5})), "a linear layer of 2 outputs has the bias float32[5]"},
       {of(weight, ones({2, 1})), "a linear layer of 2 outputs has the bias"},
       {of(weight, ones({2}, DType::kFloat64)), "a linear layer of 2 outputs has the bias"},
       {of(weight, Tensor::meta(Dims{2}, DType::kFloat32)), "a linear layer of 2 outputs has the bias"},
       {of(qint8({0, 3})), "which is empty"},
       {of(qint8({2, 0})), "which is empty"},
       {of(qint8({1, 40000})), "a quantized linear layer of 40000 inputs"},
       {of(endless), "but its memory has 3 elements"}});
  expect_rows({{"quantized::linear_dynamic", {ones({2, 3}, DType::kFloat64), packed, true}, "an input of float32"},
               {"quantized::linear_dynamic", {Tensor::scalar(1.0f), packed, true}, "expected an input with 3"},
               {"quantized::linear_dynamic", {ones({2, 2}), packed, true}, "expected an input with 3"},
               {"quantized::linear_dynamic", {ones({3}), packed, true}, kTaken},
               {"quantized::linear_dynamic", {ones({0, 3}), packed, true}, kTaken},
               {"quantized::linear_dynamic_fp16", {ones({2, 3}), packed}, "is of qint8, expected float16"},
               {"quantized::linear_prepack", {ones({2, 3}), kNone}, "expected a weight of qint8"}});
}

TEST(PackedStates, Convolutions) {
  const Value weight = qint8({4, 2, 3, 3});
  const auto third = [](std::vector<int64_t> values, const Value& of, const Value& bias = Value()) {
    return tuple_of({3, numbers(std::move(values)), list_of({Value(), of, bias})});
  };
  const auto geometry = [](int64_t stride, int64_t padding, int64_t dilation, int64_t groups) {
    return std::vector<int64_t>{2, stride, 1, padding, 0, dilation, 1, 0, 0, groups, 0};
  };
  const std::vector<int64_t> plain = geometry(1, 0, 1, 2);
  const Value endless =
      quantized(ones({6}, DType::kInt8).as_view(Dims{int64_t{1} << 40, 2, 1, 1}, Dims{0, 1, 1, 1}, 0));
  const auto second = [&](const Value& given) { return tuple_of({"2", list_of({given, weight}), list_of({Value()})}); };
  const auto one = [](int64_t x) { return Value(Tensor::scalar(x)); };
  const Value twice = list_of({one(1), one(1)}), none = list_of({one(0), one(0)});
  const auto first = [&](const Value& stride, const Value& padding, const Value& dilation, const Value& groups) {
    return tuple_of({weight, Value(), stride, padding, dilation, groups});
  };
  const Tensor list = longs(plain);
  const char* const kForm = "a packed convolution's state has the wrong form";
  const int64_t most = 1 << 20;
  expect_states(
      "quantized.Conv2dPackedParamsBase",
      {{third(plain, weight), kTaken},
       {third(plain, weight, ones({4})), kTaken},
       {third({2, 1, 1, 0, 0, 1, 1, 0, 0, 2, 1}, weight), "transposed quantized convolutions are not supported"},
       {third(geometry(1, 0, 1, 3), weight), "of 4 outputs has 3 groups"},
       {third(geometry(1, 0, 1, 0), weight), "of 4 outputs has 0 groups"},
       {third(geometry(0, 0, 1, 2), weight), "has the stride 0"},
       {third(geometry(most, 0, 1, 2), weight), kTaken},
       {third(geometry(most + 1, 0, 1, 2), weight), "has the stride 1048577"},
       {third(geometry(1, -1, 1, 2), weight), "has the padding -1"},
       {third(geometry(1, most + 1, 1, 2), weight), "has the padding 1048577"},
       {third(geometry(1, 0, 0, 2), weight), "has the dilation 0"},
       {third(geometry(1, 0, 1 << 30, 2), weight), "has the dilation 1073741824"},
       {third({3, 1, 1, 0, 0, 1, 1, 0, 0, 2, 0}, weight), "of 2 dimensions has a state of others"},
       {third({2, 1, 1, 0, 0, 1, 1, 0, 0, 2}, weight), "has too few numbers"},
       {third({}, weight), "has too few numbers"},
       {third(plain, qint8({2, 3})), "expected qint8 of four or five dimensions"},
       {third(plain, quantized(ones({4, 2, 3, 3}, DType::kUInt8), QuantizedType::kQUInt8)),
        "expected qint8 of four or five dimensions"},
       {third(plain, qint8({4, 2, 3, 3, 3})), "of 3 dimensions has 2 numbers of stride"},
       {third(plain, qint8({4, 0, 3, 3})), "which is empty"},
       {third(plain, by_channel({4, 2, 3, 3}, 1, ops::QuantizationScheme::kPerChannelAffine, QuantizedType::kQInt8)),
        "has its channels along axis 1, expected 0"},
       {third(plain, Value()), "expected a quantized tensor, but got"},
       {third(plain, endless), "but its memory has 6 elements"},
       {third(plain, weight, Value(1)), "a quantized convolution's bias is a"},
       {third(plain, weight, ones({3})), "of 4 outputs has the bias float32[3]"},
       {third(plain, weight, ones({4, 1})), "of 4 outputs has the bias"},
       {third(plain, weight, ones({4}, DType::kFloat64)), "of 4 outputs has the bias"},
       {tuple_of({3, Value(1), list_of({Value(), weight, Value()})}), kForm},
       {tuple_of({3, numbers(plain), list_of({Value(), weight})}), kForm},
       {second(list), kTaken},
       {second(list.to(DType::kInt16)), kTaken},
       {second(list.to(DType::kFloat32)), "a packed convolution's state has numbers float32"},
       {second(list.as_view(Dims{1, 11}, Dims{11, 1}, 0)), "a packed convolution's state has numbers int64"},
       {second(ones({65}, DType::kInt64)), "a packed convolution's state has numbers int64[65]"},
       {second(ones({64}, DType::kInt64)), "has a state of others"},
       {second(list.as_view(Dims{4}, Dims{1}, 0)), "has too few numbers"},
       {second(Value(1)), "a packed convolution's state has no numbers"},
       {tuple_of({"2", list_of({list}), list_of({Value()})}), kForm},
       {tuple_of({"2", list_of({list, weight}), list_of({})}), kForm},
       {tuple_of({"1", list_of({list, weight}), list_of({Value()})}), "is of a version that is not known"},
       {tuple_of({4, list_of({}), list_of({})}), "is of a version that is not known"},
       {first(twice, none, twice, one(2)), kTaken},
       {first(twice, none, list_of({}), one(2)), "has 0 numbers of dilation"},
       {first(Value(1), none, twice, one(2)), kForm},
       {first(twice, none, twice, Value(2)), "a packed convolution's state has no groups"},
       {tuple_of({}), kForm},
       {tuple_of({3, numbers(plain)}), kForm},
       {Value(1), kForm},
       {list_of({3, numbers(plain), list_of({Value(), weight, Value()})}), kForm}});
  // Weights with another number of dimensions than the class.
  const std::vector<int64_t> cube = {3, 1, 1, 1, 0, 0, 0, 1, 1, 1, 0, 0, 0, 2, 0};
  expect_states("quantized.Conv3dPackedParamsBase",
                {{third(cube, qint8({4, 2, 3, 3, 3})), kTaken}, {third(cube, weight), "has 3 numbers of stride"}});
}

TEST(PackedStates, Cells) {
  const Value packed = linear(qint8({2, 3})), empty = list_of({}), pair = list_of({packed, packed});
  const auto of = [](const char* kind, const Value& tensors, const Value& doubles, const Value& ints,
                     const Value& layers) {
    return tuple_of({kind, tensors, doubles, ints, layers});
  };
  const auto dynamic = [&](const char* kind, const Value& layers) { return of(kind, empty, empty, empty, layers); };
  // PyTorch 1.2's format: weights, biases, offsets; scales; zero points.
  const Value bytes = ones({2, 3}, DType::kInt8), bias = ones({2});
  const Value old = list_of({bytes, bytes, bias, bias, bias, bias}), scales = list_of({0.5, 0.25}),
              zeros = numbers({0, 1});
  expect_states(
      "rnn.CellParamsBase",
      {{of("quantized_dynamic", empty, empty, numbers({1}), pair), kTaken},
       {dynamic("quantized_dynamic", pair), kTaken},
       {dynamic("quantized_fp16", pair), kTaken},
       {of("quantized", old, scales, zeros, empty), kTaken},
       {dynamic("odd", pair), "kind 'odd' is not known"},
       {dynamic("quantized_dynamic", list_of({packed})), "its state has no item 1 in list 4"},
       {dynamic("quantized_fp16", Value(1)), "in list 4"},
       {dynamic("quantized_fp16", list_of({packed, qint8({2, 3})})), "expected a value of type opaque but got Tensor"},
       {dynamic("quantized", empty), "in list 1"},
       {of("quantized", old, list_of({0.5}), zeros, empty), "its state has no item 1 in list 2"},
       {of("quantized", old, scales, numbers({0}), empty), "its state has no item 1 in list 3"},
       {of("quantized", old, list_of({0.5, 0.0}), zeros, empty), "scale"},
       {of("quantized", list_of({bias, bytes, bias, bias}), scales, zeros, empty), "a weight is not an int8"},
       {of("quantized", list_of({Value(1), bytes, bias, bias}), scales, zeros, empty), "a weight is not an int8"},
       {tuple_of({1, empty, empty, empty, pair}), "its state has the wrong form"},
       {tuple_of({"quantized_dynamic", empty, empty, empty}), "its state has the wrong form"},
       {list_of({"quantized_dynamic", empty, empty, empty, pair}), "its state has the wrong form"},
       {Value(), "its state has the wrong form"}});
}

TEST(PackedStates, Embeddings) {
  const auto state = [](const Value& version, const Value& of, const Value& bits) {
    return tuple_of({version, list_of({of}), list_of({}), list_of({bits})});
  };
  const Value rows = table({2, 3}), one = numbers({8}), packed = list_of({rows});
  const char* const kForm = "its state has the wrong form";
  expect_states(
      "quantized.EmbeddingPackedParamsBase",
      {{state(1, rows, 8), kTaken},
       {state(1, rows, 4), "its bits do not fit quint8[2, 3]"},
       {state(1, rows, "8"), "its bits do not fit quint8[2, 3]"},
       {state(2, rows, 8), "version 2 is not known"},
       {state(0, rows, 8), "version 0 is not known"},
       {state("1", rows, 8), kForm},
       {state(1, qint8({2, 3}), 8), "expected a matrix of quint8 or quint4x2"},
       {state(1, quantized(ones({2, 3}, DType::kUInt8), QuantizedType::kQUInt8), 8), "no scale and zero point"},
       {state(1, by_channel({2, 3}, 1, ops::QuantizationScheme::kPerChannelFloatQParams, QuantizedType::kQUInt8), 8),
        "no scale and zero point of float32 for each row"},
       {state(1, table({2, 3, 4}), 8), "expected a matrix of quint8 or quint4x2"},
       {state(1, ones({2, 3}, DType::kInt8), 8), "expected a quantized weight, but got a"},
       {tuple_of({1, list_of({}), list_of({}), one}), kForm},
       {tuple_of({1, list_of({rows, rows}), list_of({}), one}), kForm},
       {tuple_of({1, rows, list_of({}), one}), kForm},
       {tuple_of({1, packed, list_of({}), list_of({})}), kForm},
       {tuple_of({1, packed, list_of({}), 8}), kForm},
       {tuple_of({1, packed, one}), kForm},
       {Value(1), kForm}});
}

TEST(QuantizedRefusals, Embeddings) {
  const Value params = ops::call_by_name<Value>("quantized::embedding_bag_prepack", table({3, 2}));
  const Tensor index = longs({0, 2}), offsets = longs({0, 1});
  const auto bag = [&](const Tensor& indices, const Value& starts, const Value& weights = Value(),
                       bool has_last = false, int64_t mode = 0) {
    return std::vector<Value>{params, indices, starts, false, mode, false, weights, Value(), has_last};
  };
  const char* const kBag = "quantized::embedding_bag_byte";
  const Tensor table_of_indices = index.as_view(Dims{1, 2}, Dims{2, 1}, 0);
  expect_rows({
      {"quantized::embedding_byte", {params, index}, kTaken},
      {"quantized::embedding_byte", {params, longs({3})}, "index 3 is out of range of 3 rows"},
      {"quantized::embedding_byte", {params, longs({-1})}, "index -1 is out of range of 3 rows"},
      {"quantized::embedding_byte", {params, ones({2})}, "expected indices of int32 or int64, but got float32"},
      {"quantized::embedding_4bit", {params, index}, "expected a table of 4 bits, but got quint8[3, 2]"},
      {"quantized::embedding_bag_4bit", bag(index, offsets), "expected a table of 4 bits"},
      {"quantized::embedding_bag_prepack", {ones({2, 3})}, "expected a quantized weight, but got float32"},
      {kBag, bag(index, offsets), kTaken},
      {kBag, bag(table_of_indices, kNone), kTaken},
      {kBag, bag(longs({0, 3}), offsets), "index 3 is out of range of 3 rows"},
      {kBag, bag(longs({0, -1}), offsets), "index -1 is out of range of 3 rows"},
      {kBag, bag(index, offsets, kNone, false, 1), "mode 1 is not supported, only sums (0)"},
      {kBag, bag(index, kNone), "offsets are for indices of one dimension, which need them"},
      {kBag, bag(table_of_indices, offsets), "offsets are for indices of one dimension, which need them"},
      {kBag, bag(Tensor::scalar(int64_t{0}), kNone), "expected indices of one or two dimensions"},
      {kBag, bag(index, table_of_indices), "expected offsets of one dimension"},
      {kBag, bag(index, longs({}), kNone, true), "expected offsets of one dimension"},
      {kBag, bag(index, ones({2})), "expected offsets of int32 or int64, but got float32"},
      {kBag, bag(index, longs({0, 2})), kTaken},
      {kBag, bag(index, longs({0, 3})), "offsets have to grow from 0 to at most 2, but there is 3 after 0"},
      {kBag, bag(index, longs({0, 2, 1})), "offsets have to grow from 0 to at most 2, but there is 1 after 2"},
      {kBag, bag(index, longs({-1, 1})), "offsets have to grow from 0 to at most 2, but there is -1 after 0"},
      {kBag, bag(index, longs({1, 2})), "offsets go from 1 to 2, expected 0 to 2"},
      {kBag, bag(index, longs({0, 1}), kNone, true), "offsets go from 0 to 1, expected 0 to 2"},
      {kBag, bag(index, longs({0, 2}), kNone, true), kTaken},
      {kBag, bag(index, offsets, ones({2})), kTaken},
      {kBag, bag(index, offsets, ones({3})), "expected a weight of float32 for each index"},
      {kBag, bag(index, offsets, ones({2}, DType::kFloat64)), "expected a weight of float32 for each index"},
  });
}

TEST(QuantizedRefusals, RecurrentLayers) {
  // Two units and three inputs: eight gates of an LSTM, six of a GRU.
  const auto cell = [](int64_t gates, int64_t inputs, int64_t units) {
    const Value layers = list_of({linear(qint8({gates, inputs})), linear(qint8({gates, units}))});
    return restored_object("rnn.CellParamsBase",
                           tuple_of({"quantized_dynamic", list_of({}), list_of({}), list_of({}), layers}));
  };
  const auto gru = [&](const Tensor& x, const Tensor& h, std::vector<Value> cells, int64_t layers = 1,
                       bool is_both_ways = false, double dropout = 0, bool is_training = false) {
    return std::vector<Value>{x, h, list_of(std::move(cells)), true, layers, dropout, is_training, is_both_ways, false};
  };
  const auto packed = [&](const Tensor& x, const Tensor& sizes, const Tensor& h) {
    return std::vector<Value>{x, sizes, h, list_of({cell(6, 3, 2)}), true, 1, 0.0, false, false};
  };
  const Tensor x = ones({4, 5, 3}), h = ones({1, 5, 2});
  const Value good = cell(6, 3, 2), next = cell(6, 2, 2);
  const char *const kGru = "aten::quantized_gru.input", *const kPacked = "aten::quantized_gru.data",
                    *const kLstm = "aten::quantized_lstm.input";
  const auto lstm = [&](std::vector<Value> states) {
    return std::vector<Value>{x,    tensors(std::move(states)), list_of({cell(8, 3, 2)}), true, 1, 0.0, false, false,
                              false};
  };
  expect_rows({
      {kGru, gru(x, h, {good}), kTaken},
      {kGru, gru(x, ones({2, 5, 2}), {good, next}, 2), kTaken},
      {kGru, gru(x, ones({2, 5, 2}), {good, good}, 1, true), kTaken},
      {kGru, gru(x, h, {}), "expected cells and states"},
      {kGru, gru(x, h, {good}, 0), "expected cells for 0 layers, but got 1"},
      {kGru, gru(x, h, {good}, 2), "expected cells for 2 layers, but got 1"},
      {kGru, gru(x, h, {good, next}, 1), "expected 1 layers of 1 directions, but got 2 cells"},
      {kGru, gru(x, h, {good}, 1, true), "expected 1 layers of 2 directions, but got 1 cells"},
      {kGru, gru(x, h, {good}, 1, false, 0.5, true), "dropout in training is not supported"},
      {kGru, gru(x, h, {good}, 1, false, 0.5, false), kTaken},
      {kGru, gru(x, h, {good}, 1, false, 0, true), kTaken},
      {kGru, gru(ones({5, 3}), h, {good}), "expected steps of rows of float32, but got float32[5, 3]"},
      {kGru, gru(x.to(DType::kFloat64), h, {good}), "expected steps of rows of float32, but got float64"},
      {kGru, gru(x, h, {cell(6, 4, 2)}), "cell 0 has weights of 6x4 and 6x2, expected 6x3 and 6x2"},
      {kGru, gru(x, h, {cell(8, 3, 2)}), "cell 0 has weights of 8x3 and 8x2, expected 6x3 and 6x2"},
      {kGru, gru(x, ones({2, 5, 2}), {good, good}, 2), "cell 1 has weights of 6x3"},
      {kGru, gru(x, ones({1, 4, 2}), {good}), "and the states have other batches"},
      {kGru, gru(x, ones({2, 5, 2}), {good}), "expected states of float32 for 1 cells of 2 units"},
      {kGru, gru(x, ones({1, 5, 3}), {good}), "expected states of float32 for 1 cells of 2 units"},
      {kGru, gru(x, ones({5, 2}), {good}), "expected states of float32"},
      {kGru, gru(x, h.to(DType::kFloat64), {good}), "expected states of float32"},
      {kLstm, lstm({h, h}), kTaken},
      {kLstm, lstm({}), "expected cells and states"},
      {kLstm, lstm({h}), "expected other states than 1"},
      {kLstm, lstm({h, h, h}), "expected other states than 3"},
      {kLstm, lstm({h, ones({1, 4, 2})}), "expected states of float32"},
      {kPacked, packed(ones({3, 3}), longs({2, 1}), ones({1, 2, 2})), kTaken},
      {kPacked, packed(ones({3, 3}), longs({2, 1}), ones({1, 3, 2})), "have to start with 3"},
      {kPacked, packed(ones({3, 3}), longs({1, 2}), ones({1, 2, 2})), "have to start with 2 and never grow"},
      {kPacked, packed(ones({4, 3}), longs({2, 1}), ones({1, 2, 2})), "has 4 rows, but batch_sizes add up to 3"},
      {kPacked, packed(ones({2, 3}), longs({2, 0}), ones({1, 2, 2})), "and never grow, but got 0"},
      {kPacked, packed(ones({3, 3}), ones({2}), ones({1, 2, 2})), "batch_sizes are float32"},
      {kPacked, packed(ones({1, 3, 3}), longs({2, 1}), ones({1, 2, 2})), "expected packed rows of float32"},
  });
  const Value in = linear(qint8({6, 3})), again = linear(qint8({6, 2})), lstm_in = linear(qint8({8, 3})),
              lstm_again = linear(qint8({8, 2}));
  const Tensor row = ones({5, 3}), state = ones({5, 2}), bias = ones({6});
  const char *const kCell = "quantized::quantized_gru_cell_dynamic", *const kLstmCell =
                                                                         "quantized::quantized_lstm_cell_dynamic";
  expect_rows({
      {kCell, {row, state, in, again, bias, bias}, kTaken},
      {kCell, {row, ones({1, 5, 2}), in, again, bias, bias}, "expected states of two dimensions"},
      {kCell, {ones({3}), state, in, again, bias, bias}, "expected rows of inputs"},
      {kLstmCell, {row, tensors({state, state}), lstm_in, lstm_again, bias, bias}, kTaken},
      {kLstmCell, {row, tensors({state}), lstm_in, lstm_again, bias, bias}, "expected two hidden states"},
      {kLstmCell, {row, tensors({state, state, state}), lstm_in, lstm_again, bias, bias}, "expected two hidden states"},
  });
}

TEST(QuantizedRefusals, ObserversAndFakeQuantisers) {
  const auto number = [](double value, DType dtype) { return Tensor::scalar(value).to(dtype); };
  const auto flag = [&](bool value) { return number(value, DType::kInt64); };
  struct State {
    Tensor least = ones({1}), greatest = ones({1}), scale = ones({1}), zero_point = ones({1}, DType::kInt32);
  };
  const auto observe = [&](const State& s, int64_t min = 0, int64_t max = 255, int64_t axis = 0, bool by_row = false,
                           bool observes = true, bool rounds = true, const Tensor& x = ones({2, 3})) {
    return std::vector<Value>{x,   flag(observes), flag(rounds), s.least, s.greatest, s.scale, s.zero_point, 0.01, min,
                              max, axis,           by_row,       false};
  };
  const char* const kObserve = "aten::fused_moving_avg_obs_fake_quant";
  State wide_least, wide_greatest, wide_scale, wide_zero, long_least, long_greatest, many_zeros, crossed;
  wide_least.least = ones({1}, DType::kFloat64);
  wide_greatest.greatest = ones({1}, DType::kFloat64);
  wide_scale.scale = ones({1}, DType::kFloat64);
  wide_zero.zero_point = ones({1}, DType::kInt64);
  long_least.least = ones({2});
  long_greatest.greatest = ones({2});
  many_zeros.zero_point = ones({2}, DType::kInt32);
  crossed.greatest = ops::call_by_name("aten::neg", ones({1}));
  const int64_t half = int64_t{1} << 30;
  expect_rows({
      {kObserve, observe({}), kTaken},
      {kObserve, observe({}, 0, 255, 2), "ch_axis must be < self.dim()"},
      {kObserve, observe({}, 0, 255, -1), kTaken},
      {kObserve, observe({}, 0, 255, -1, true), "ch_axis must not be negative, got -1"},
      {kObserve, observe({}, 0, 255, 1, true), "is only supported on axis == 0"},
      {kObserve, observe({}, -half, half - 1), kTaken},
      {kObserve, observe({}, -half - 1, 255), "must have 31 bits"},
      {kObserve, observe({}, 0, half), "must have 31 bits"},
      {kObserve, observe({}, 5, 5), "qmin should be less than qmax"},
      {kObserve, observe({}, 0, 255, 0, false, true, true, ones({2, 3}, DType::kFloat64)), "a tensor of float32"},
      {kObserve, observe({}, 0, 255, 0, false, true, true, ones({0, 3})), "expected reduction dim to be specified"},
  });
  for (const bool observes : {false, true}) {
    expect_rows({
        {kObserve, observe(wide_least, 0, 255, 0, false, observes), "running_min: expected float32, got float64"},
        {kObserve, observe(wide_greatest, 0, 255, 0, false, observes), "running_max: expected float32, got float64"},
        {kObserve, observe(wide_scale, 0, 255, 0, false, observes), "scale: expected float32, got float64"},
        {kObserve, observe(long_least, 0, 255, 0, false, observes), "running_min: expected 1 elements, got 2"},
        {kObserve, observe(long_greatest, 0, 255, 0, false, observes), "running_max: expected 1 elements, got 2"},
        {kObserve, observe(wide_zero, 0, 255, 0, false, observes), "as many int32 as there are scales"},
        {kObserve, observe(many_zeros, 0, 255, 0, false, observes), "as many int32 as there are scales"},
    });
  }
  expect_rows({{kObserve, observe(crossed, 0, 255, 0, false, false), "min should be less than or equal to max"},
               {kObserve, observe(wide_least, 0, 255, 0, false, true, false), "running_min: expected float32"},
               {kObserve, observe(wide_least, 0, 255, 0, false, false, false), kTaken}});

  const char *const kChannels = "aten::fake_quantize_per_channel_affine", *const kTensor =
                                                                              "aten::fake_quantize_per_tensor_affine";
  const Tensor x = ones({2, 3}), scale = ones({3}), zero = ones({3}, DType::kInt32);
  expect_rows({
      {kChannels, {x, scale, zero, 1, 0, 255}, kTaken},
      {kChannels, {x, scale, ones({3}), 1, 0, 255}, kTaken},
      {kChannels, {x, scale, zero, 1, 1, 1}, kTaken},
      {kChannels, {x, scale, zero, 1, 2, 1}, "`quant_min` should be less than or equal to `quant_max`."},
      {kChannels, {x, scale, zero, 1, 2, 255}, "`zero_point` must be between"},
      {kChannels, {x, scale, zero, 1, 0, 0}, "`zero_point` must be between"},
      {kChannels, {x, scale.to(DType::kFloat64), zero, 1, 0, 255}, "Scale must be Float, found float64"},
      {kChannels, {x, scale, zero.to(DType::kInt64), 1, 0, 255}, "Zero-point must be Int32 or Float, found int64"},
      {kChannels, {x, scale, ones({2}, DType::kInt32), 1, 0, 255}, "1-D tensors of the same dimensions"},
      {kChannels, {x, ones({3, 1}), zero, 1, 0, 255}, "1-D tensors of the same dimensions"},
      {kChannels, {x, scale, ones({3, 1}, DType::kInt32), 1, 0, 255}, "1-D tensors of the same dimensions"},
      {kChannels, {x, scale, zero, -1, 0, 255}, "`axis` must be between 0 and number of dimensions"},
      {kChannels, {x, scale, zero, 2, 0, 255}, "`axis` must be between 0 and number of dimensions"},
      {kChannels, {x, scale, zero, 0, 0, 255}, "not consistent with input tensor"},
      {kTensor, {x, 0.1, 0, 0, 0}, kTaken},
      {kTensor, {x, 0.1, 256, 0, 255}, "`zero_point` must be between"},
      {kTensor, {x, 0.1, 255, 0, 255}, kTaken},
      {kTensor, {x, 0.1, -1, 0, 255}, "`zero_point` must be between"},
      {"aten::fake_quantize_per_tensor_affine_cachemask_backward",
       {x, ones({2, 2}, DType::kBool)},
       "`mask` and `dY` are not the same size: `mask` is size 4 and `dY` is size 6"},
  });
}

TEST(QuantizedRefusals, Convolutions) {
  const Value params = ops::call_by_name<Value>("quantized::conv2d_prepack", qint8({4, 2, 3, 3}), kNone, ints({1, 1}),
                                                ints({0, 0}), ints({1, 1}), int64_t{1});
  const auto input = [](const Dims& sizes) { return quantized(ones(sizes, DType::kUInt8), QuantizedType::kQUInt8); };
  const auto conv = [&](const Value& x) { return std::vector<Value>{x, params, 1.0, 0}; };
  expect_rows({
      {"quantized::conv2d.new", conv(input({1, 2, 3, 3})), kTaken},
      {"quantized::conv2d.new", conv(input({1, 2, 3, 2})), "is larger than the padded input"},
      {"quantized::conv2d.new", conv(input({1, 2, 2, 3})), "is larger than the padded input"},
      {"quantized::conv2d.new", conv(input({1, 3, 3, 3})), "expected an input with 2"},
      {"quantized::conv2d.new", conv(input({0, 2, (1 << 20) + 2, (1 << 20) + 2})), kTaken},
      {"quantized::conv2d.new", conv(input({0, 2, (1 << 20) + 2, (1 << 20) + 3})), "the result is too large"},
      {"quantized::conv2d.new", conv(input({0, 2, int64_t{1} << 40, int64_t{1} << 40})), "the result is too large"},
      {"quantized::conv2d.new", conv(input({2, 3, 3})), "expected an input of 4 dimensions"},
      {"quantized::conv3d.new", conv(input({1, 2, 3, 3, 3})), "expected weights of 3 dimensions"},
      {"quantized::conv2d_prepack",
       {qint8({4, 2, 3}), kNone, ints({1, 1}), ints({0, 0}), ints({1, 1}), 1},
       "expected a weight of 4 dimensions"},
  });
}

TEST(QuantizedRefusals, Tensors) {
  const Tensor x = ones({2, 3});
  const Value other = quantized(ones({2}, DType::kUInt8), QuantizedType::kQUInt8);
  const int64_t kept[] = {12, 13, 14};
  for (const int64_t dtype : kept) expect_rows({{"aten::quantize_per_tensor", {x, 0.5, 0, dtype}, kTaken}});
  expect_rows({
      {"aten::quantize_per_tensor", {x, 0.5, 0, 6}, "expected qint8, quint8 or qint32, but got dtype 6"},
      {"aten::quantize_per_tensor", {x, 0.5, 0, 11}, "expected qint8, quint8 or qint32, but got dtype 11"},
      {"aten::quantize_per_tensor", {x.to(DType::kFloat64), 0.5, 0, 13}, "expected float32 to quantize, but got"},
      {"aten::q_per_channel_scales", {qint8({2, 3})}, "expected a tensor with a scale for each channel"},
      {"aten::q_scale", {x}, "aten::q_scale has no kernel for cpu; it has: Quantized (CPU)"},
      {"aten::quantize_per_tensor", {x, 0.5, 0, 16}, "expected qint8, quint8 or qint32, but got dtype 16"},
      {"aten::dequantize.self", {table({2, 3})}, "is not supported but by embeddings"},
      {"aten::q_scale", {table({2, 3})}, "with one for each channel"},
      {"aten::q_scale", {quantized(ones({2}, DType::kInt32), QuantizedType::kQInt32)}, "but got qint32[2]"},
      {"aten::q_scale", {qint8({2})}, kTaken},
      {"aten::q_per_channel_axis", {qint8({2})}, "expected a tensor with a scale for each channel"},
      {"quantized::relu6", {qint8({2}), true}, "is not implemented in place"},
      {"quantized::relu6", {qint8({2}), false}, kTaken},
      {"quantized::leaky_relu", {qint8({2}), 0.1, true, 0.5, 0}, "is not implemented in place"},
      {"quantized::leaky_relu", {qint8({2}), 0.1, false, 0.5, 0}, kTaken},
      {"quantized::dropout", {qint8({2}), 0.5, 0, 0.5, true}, "in training is not implemented"},
      {"quantized::dropout", {qint8({2}), 0.5, 0, 0.5, false}, kTaken},
      {"aten::dropout", {qint8({2}), 0.5, true}, "dropout in training is not implemented"},
      {"aten::dropout", {qint8({2}), 0.5, false}, kTaken},
      {"quantized::add", {qint8({2}), other, 0.5, 0}, "expected tensors of one dtype"},
      {"quantized::mul", {qint8({2}), other, 0.5, 0}, "expected tensors of one dtype"},
      {"quantized::add", {qint8({2}), qint8({2}), 0.5, 0}, kTaken},
      {"aten::cat", {tensors({qint8({2}), other}), 0}, "expected tensors of one dtype"},
      {"aten::cat", {tensors({qint8({2}), qint8({2})}), 0}, kTaken},
  });
  const Tensor scales = ones({2}, DType::kFloat64), zeros = ones({2}, DType::kInt64);
  for (const int64_t axis : {0, 1, -1, -2}) {
    const Value by_axis = run("aten::quantize_per_channel", {ones({2, 2}), scales, zeros, axis, int64_t{12}});
    EXPECT_EQ(run("aten::q_per_channel_axis", {by_axis}).to_int(), axis & 1);
  }
}

}  // namespace
}  // namespace tensord::quantized_refusals_test
