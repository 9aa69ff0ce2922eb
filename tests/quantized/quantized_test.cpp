// Archives of quantized models (tests/quantized/data, see make_models.py), compared with the results of PyTorch's
// fbgemm.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "core/jit/archive/torch_file.h"
#include "core/jit/runtime/batch_safety.h"
#include "core/jit/runtime/module.h"
#include "core/ops/custom_class.h"
#include "core/ops/quantized.h"
#include "core/ops/run.h"
#include "tests/support/places.h"
#include "tests/support/ways_to_run.h"

namespace tensord::jit::quantized_test {
namespace {

namespace fs = std::filesystem;
using ops::Value;
using ::testing::HasSubstr;

fs::path data() { return fs::path(tests_folder()) / "quantized" / "data"; }

std::string path_of(const std::string& name) { return (data() / (name + ".pt")).string(); }

// For models with float32 sums or functions of them, which PyTorch computes in another order.
double tolerance_of(const std::string& name) {
  const bool is_recurrent = name.starts_with("lstm") || name.starts_with("gru") || name == "cells";
  return is_recurrent || name.ends_with("float16") ? 2e-3 : 0;
}

void expect_same(const Tensor& got, const Tensor& expected, double tolerance, const std::string& what) {
  ASSERT_EQ(got.dtype(), expected.dtype()) << what;
  ASSERT_EQ(got.sizes(), expected.sizes()) << what;
  ASSERT_EQ(got.dtype(), DType::kFloat32) << what;
  const Tensor a = got.contiguous(), b = expected.contiguous();
  for (int64_t i = 0; i < a.numel(); ++i) {
    const float x = a.data<float>()[i], y = b.data<float>()[i];
    ASSERT_TRUE(x == y || std::abs(x - y) <= tolerance)
        << what << ": element " << i << " is " << x << ", expected " << y;
  }
}

const Value& all_calls() {
  static const Value calls = load_torch_file((data() / "calls.pt").string());
  return calls;
}

class QuantizedTest : public ::testing::TestWithParam<std::string> {};

void run_calls(const std::string& name, const LoadOptions& options, const std::string& how) {
  const auto module = Module::load(path_of(name), options);
  const std::ptrdiff_t found = all_calls().to_dict()->find(Value(name));
  ASSERT_GE(found, 0) << name << " has no calls";
  Frame frame;
  int number = 0;
  for (const Value& call : all_calls().to_dict()->items()[static_cast<size_t>(found)].second.to_list()->items) {
    const Value got = module->method("forward").run(frame, call.to_tuple()->items[0].to_tuple()->items);
    const Value& expected = call.to_tuple()->items[1].to_tuple()->items[0];
    expect_same(got.to_tensor(), expected.to_tensor(), tolerance_of(name),
                concat(name, ", call ", number++, ", ", how));
  }
  EXPECT_GT(number, 0);
}

TEST_P(QuantizedTest, GivesWhatPyTorchGives) {
  in_every_way([](const LoadOptions& options, const char* how) { run_calls(GetParam(), options, how); });
}

std::vector<std::string> names() {
  std::vector<std::string> out;
  for (const auto& [name, calls] : all_calls().to_dict()->items()) out.push_back(name.to_string());
  return out;
}
INSTANTIATE_TEST_SUITE_P(Models, QuantizedTest, ::testing::ValuesIn(names()),
                         [](const auto& info) { return info.param; });

std::string mixing(const std::string& name) {
  const auto module = Module::load(path_of(name));
  return find_mixing_operator(*module, module->method("forward"));
}

TEST(Batches, ModelsWithOneScaleForAllRowsAreFound) {
  EXPECT_EQ(mixing("linear"), "quantized::linear_dynamic");
  EXPECT_EQ(mixing("linear_frozen"), "quantized::linear_dynamic");
  EXPECT_EQ(mixing("lstm"), "aten::quantized_lstm.input");
  EXPECT_EQ(mixing("linear_float16"), "");
  EXPECT_EQ(mixing("embedding_8bit"), "");
}

TEST(Batches, ARowsAnswerHangsOnTheOthers) {
  const auto module = Module::load(path_of("linear"));
  Frame frame;
  const auto run = [&](const Tensor& x) {
    const Value arguments[] = {x};
    return module->method("forward").run(frame, arguments).to_tensor().clone();
  };
  const Tensor x = Tensor::empty(Dims{2, 13}, DType::kFloat32);
  for (int64_t i = 0; i < x.numel(); ++i) x.data<float>()[i] = 0.37f * static_cast<float>(i % 5) * (i < 13 ? 1 : 100);
  const Tensor alone = run(x.as_view(Dims{1, 13}, Dims{13, 1}, 0)), together = run(x);
  EXPECT_NE(std::memcmp(alone.raw_data(), together.raw_data(), alone.size_bytes()), 0);
}

// --- operators without support for quantized tensors

ops::Value quantized(double scale, int64_t zero_point, const Tensor& values) {
  ops::Quantizer quantizer;
  quantizer.scale = scale;
  quantizer.zero_point = zero_point;
  return Value(Tensor(make_intrusive<ops::QuantizedTensor>(ops::QuantizedType::kQInt8, values, quantizer)));
}

Tensor bytes() {
  const Tensor values = Tensor::empty(Dims{2, 3}, DType::kInt8);
  std::memset(values.raw_data(), 1, values.size_bytes());
  return values;
}

template <class Fn>
std::string failure(Fn&& fn) {
  try {
    fn();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(QuantizedTensors, OperatorsThatDoNotKnowThemRefuseThemByName) {
  const Value x = quantized(0.5, 0, bytes());
  EXPECT_EQ(ops::type_of(x)->str(), "Tensor");
  for (const char* name : {"aten::exp", "aten::exp_", "aten::inverse", "aten::cos", "aten::sum", "aten::zero_"}) {
    const std::string text = failure([&] { ops::call_by_name<Value>(name, x); });
    EXPECT_THAT(text, HasSubstr(name));
    EXPECT_THAT(text, HasSubstr("has no kernel for Quantized on cpu; it has: CPU, "));
  }
  const Value list = ops::make_list(ops::tensor_type(), {x, x});
  EXPECT_THAT(failure([&] { ops::call_by_name<Value>("aten::stack", list, 0); }), HasSubstr("aten::stack"));
  EXPECT_THAT(failure([&] { ops::call_by_name<Value>("aten::add_.Tensor", Tensor::scalar(1.0f), x, 1); }),
              HasSubstr("aten::add_"));
}

TEST(QuantizedTensors, QuantizersThatDoNotFitAreRefused) {
  for (const double scale : {0.0, -1.0, std::nan(""), HUGE_VAL, 1e-60, 1e60})
    EXPECT_THAT(failure([&] { quantized(scale, 0, bytes()); }), HasSubstr("scale")) << scale;
  for (const int64_t zero_point : {-129, 128, 1 << 20})
    EXPECT_THAT(failure([&] { quantized(1, zero_point, bytes()); }), HasSubstr("zero point")) << zero_point;
  ops::Quantizer quantizer;
  quantizer.scheme = ops::QuantizationScheme::kPerChannelAffine;
  const auto make = [&] { make_intrusive<ops::QuantizedTensor>(ops::QuantizedType::kQInt8, bytes(), quantizer); };
  quantizer.scales = Tensor::empty(Dims{2}, DType::kFloat64);
  quantizer.zero_points = Tensor::empty(Dims{2}, DType::kInt64);
  std::fill_n(quantizer.scales.data<double>(), 2, 1.0);
  std::fill_n(quantizer.zero_points.data<int64_t>(), 2, 0);
  for (const int64_t axis : {-1, 2, 1}) {  // the last has three channels
    quantizer.axis = axis;
    EXPECT_NE(failure(make), "no error") << axis;
  }
  quantizer.axis = 0;
  EXPECT_EQ(failure(make), "no error");
  quantizer.scales.data<double>()[1] = 0;
  EXPECT_THAT(failure(make), HasSubstr("scale"));
  quantizer.scales = quantizer.scales.to(DType::kFloat32);
  EXPECT_THAT(failure(make), HasSubstr("float32"));
}

TEST(QuantizedTensors, LayersThatDoNotFitAreRefused) {
  const Value weight = quantized(0.5, 0, bytes());
  const auto pack = [&](const Value& bias) {
    return failure([&] { ops::call_by_name<Value>("quantized::linear_prepack", weight, bias); });
  };
  EXPECT_EQ(pack(Value()), "no error");
  EXPECT_EQ(pack(Tensor::empty(Dims{2}, DType::kFloat32)), "no error");
  EXPECT_THAT(pack(Tensor::empty(Dims{3}, DType::kFloat32)), HasSubstr("bias"));
  EXPECT_THAT(pack(Tensor::empty(Dims{2}, DType::kInt32)), HasSubstr("bias"));
  const Value packed = ops::call_by_name<Value>("quantized::linear_prepack", weight, Value());
  const auto run = [&](const Tensor& x) {
    return failure([&] { ops::call_by_name<Value>("quantized::linear_dynamic", x, packed, true); });
  };
  EXPECT_THAT(run(Tensor::empty(Dims{2, 4}, DType::kFloat32)), HasSubstr("quantized::linear_dynamic"));
  EXPECT_THAT(run(Tensor::empty(Dims{2, 3}, DType::kFloat64)), HasSubstr("float32"));
  const Tensor x = Tensor::empty(Dims{2, 3}, DType::kFloat32);
  for (const float odd : {NAN, INFINITY, -INFINITY}) {
    std::fill_n(x.data<float>(), 6, 1.0f);
    x.data<float>()[4] = odd;
    EXPECT_THAT(run(x), HasSubstr("finite"));
  }
}

// Longer sums could exceed 32 bits.
TEST(QuantizedTensors, SumsHaveALargestLength) {
  const auto weight = [](Dims sizes) {
    const Tensor values = Tensor::empty(std::move(sizes), DType::kInt8);
    std::memset(values.raw_data(), 1, values.size_bytes());
    return quantized(0.5, 0, values);
  };
  const auto pack_conv = [&](Dims sizes, int64_t groups) {
    const auto ints = [](std::vector<int64_t> items) {
      return ops::make_list(ops::int_type(), {items.begin(), items.end()});
    };
    return failure([&] {
      ops::call_by_name<Value>("quantized::conv2d_prepack", weight(std::move(sizes)), Value(), ints({1, 1}),
                               ints({0, 0}), ints({1, 1}), groups);
    });
  };
  EXPECT_EQ(pack_conv({1, 32768, 1, 1}, 1), "no error");
  EXPECT_EQ(pack_conv({1, 16384, 2, 1}, 1), "no error");
  EXPECT_EQ(pack_conv({2, 32768, 1, 1}, 2), "no error");  // the length is that of one group
  for (const Dims& sizes : {Dims{1, 32769, 1, 1}, Dims{3, 10923, 1, 3}, Dims{2, 4, 8193, 1}}) {
    EXPECT_THAT(pack_conv(sizes, 1),
                HasSubstr(concat("a quantized convolution with sums of ", sizes[1] * sizes[2] * sizes[3],
                                 " numbers: at most 32768 are supported")));
  }
  const auto pack_linear = [&](int64_t inputs) {
    return failure([&] { ops::call_by_name<Value>("quantized::linear_prepack", weight(Dims{2, inputs}), Value()); });
  };
  EXPECT_EQ(pack_linear(32768), "no error");
  EXPECT_THAT(pack_linear(32769), HasSubstr("a quantized linear layer of 32769 inputs: at most 32768"));
}

// Sums over bags, with optional weights for each row.
TEST(QuantizedTensors, BagsByWeights) {
  ops::Quantizer quantizer;
  quantizer.scheme = ops::QuantizationScheme::kPerChannelFloatQParams;
  quantizer.axis = 0;
  quantizer.scales = Tensor::empty(Dims{2}, DType::kFloat32);
  std::fill_n(quantizer.scales.data<float>(), 2, 0.5f);
  quantizer.zero_points = quantizer.scales;
  const Tensor rows = Tensor::empty(Dims{2, 3}, DType::kUInt8);
  std::memset(rows.raw_data(), 1, 3);
  std::memset(static_cast<char*>(rows.raw_data()) + 3, 5, 3);
  const Value table(Tensor(make_intrusive<ops::QuantizedTensor>(ops::QuantizedType::kQUInt8, rows, quantizer)));
  const Value params = ops::run(ops::get_op("quantized::embedding_bag_prepack"), std::vector<Value>{table}).front();
  const Tensor indices = Tensor::empty(Dims{3}, DType::kInt64), offsets = Tensor::empty(Dims{2}, DType::kInt64),
               weights = Tensor::empty(Dims{3}, DType::kFloat32);
  std::copy_n(std::to_array<int64_t>({0, 1, 1}).data(), 3, indices.data<int64_t>());
  std::copy_n(std::to_array<int64_t>({0, 2}).data(), 2, offsets.data<int64_t>());
  std::copy_n(std::to_array<float>({2, 3, 4}).data(), 3, weights.data<float>());
  const ops::Op& bag = ops::get_op("quantized::embedding_bag_byte");
  const auto sums = [&](const Value& by) {
    const Tensor out =
        ops::run(bag, ops::bind(bag, {params, indices, offsets, false, 0, false, by})).front().to_tensor().contiguous();
    EXPECT_EQ(out.sizes(), (Dims{2, 3}));
    return std::vector<float>(out.data<float>(), out.data<float>() + out.numel());
  };
  EXPECT_EQ(sums(Value()), (std::vector<float>{2.5f, 2.5f, 2.5f, 2.25f, 2.25f, 2.25f}));
  EXPECT_EQ(sums(weights), (std::vector<float>{7.25f, 7.25f, 7.25f, 9, 9, 9}));
}

}  // namespace
}  // namespace tensord::jit::quantized_test
