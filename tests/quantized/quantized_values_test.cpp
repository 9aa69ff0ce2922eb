// Quantized operators compared with integer sums: scales are powers of two, so that only the result is rounded. Covers
// sizes around the blocks and tiles of the loops, zero points, signs, layouts and both ends of the range.
#include <cmath>
#include <random>

#include "core/ops/quantized.h"
#include "tests/support/operator_rows.h"

namespace tensord::quantized_values_test {
namespace {

using namespace testing_rows;
using ops::QuantizedTensor;
using ops::QuantizedType;

struct Steps {
  double scale;
  int64_t zero_point;
};

Value quantized(const Tensor& values, Steps steps, QuantizedType type = QuantizedType::kQUInt8) {
  ops::Quantizer quantizer;
  quantizer.scale = steps.scale;
  quantizer.zero_point = steps.zero_point;
  return Value(Tensor(make_intrusive<QuantizedTensor>(type, values, quantizer)));
}
const QuantizedTensor& of(const Value& value) { return *ops::as_quantized(value); }

// The dequantized values, as float64, row-major.
std::vector<double> numbers(const Value& value) {
  const QuantizedTensor& x = of(value);
  const Tensor dense = x.values().to(DType::kFloat64).contiguous();
  std::vector<double> out(dense.data<double>(), dense.data<double>() + dense.numel());
  for (double& y : out) y = (y - static_cast<double>(x.quantizer().zero_point)) * x.quantizer().scale;
  return out;
}
double rounded(double x, Steps to, QuantizedType type, bool relu = false) {
  const auto [least, most] = ops::range_of(type);
  const double y = std::nearbyint(x / to.scale) + static_cast<double>(to.zero_point);
  const double low = relu ? static_cast<double>(std::max<int64_t>(least, to.zero_point)) : static_cast<double>(least);
  return (std::min(std::max(y, low), static_cast<double>(most)) - static_cast<double>(to.zero_point)) * to.scale;
}
void expect_numbers(const Value& got, const std::vector<double>& expected, double tolerance = 0) {
  const std::vector<double> have = numbers(got);
  ASSERT_EQ(have.size(), expected.size());
  for (size_t i = 0; i < have.size(); ++i) ASSERT_NEAR(have[i], expected[i], tolerance) << "element " << i;
}

Tensor bytes(const Dims& sizes, QuantizedType type, uint32_t seed) {
  std::minstd_rand random(seed + 1);
  const auto [least, most] = ops::range_of(type);
  const Tensor out = Tensor::empty(sizes, type == QuantizedType::kQInt8 ? DType::kInt8 : DType::kUInt8);
  for (int64_t i = 0; i < out.numel(); ++i) {
    const int64_t q = least + static_cast<int64_t>(random() % 256);
    static_cast<uint8_t*>(out.raw_data())[i] = static_cast<uint8_t>(random() % 9 == 0 ? (q % 2 ? least : most) : q);
  }
  return out;
}
// All 256 values.
Tensor every_byte(QuantizedType type) {
  const Tensor out = bytes({256}, type, 0);
  for (int i = 0; i < 256; ++i) static_cast<uint8_t*>(out.raw_data())[i] = static_cast<uint8_t>(i);
  return out;
}

constexpr QuantizedType kTypes[] = {QuantizedType::kQUInt8, QuantizedType::kQInt8};

TEST(QuantizedValues, FunctionsOfEveryNumber) {
  using Function = std::function<double(double)>;
  for (const QuantizedType type : kTypes) {
    const int64_t low = ops::range_of(type).first;
    for (const Steps from : {Steps{0.0625, low + 100}, Steps{0.25, low}, Steps{0.03125, low + 255}}) {
      const Value x = quantized(every_byte(type), from, type);
      const auto check_one = [&](const char* op, std::vector<Value> rest, const Function& function, Steps to,
                                 double tolerance = 0) {
        SCOPED_TRACE(concat(op, ", zero point ", from.zero_point));
        std::vector<Value> arguments{x};
        arguments.insert(arguments.end(), rest.begin(), rest.end());
        const Value got = run(op, arguments);
        EXPECT_EQ(of(got).quantizer().scale, to.scale);
        EXPECT_EQ(of(got).quantizer().zero_point, to.zero_point);
        std::vector<double> expected = numbers(x);
        for (double& y : expected) y = rounded(function(y), to, type);
        expect_numbers(got, expected, tolerance);
      };
      const Function relu = [](double y) { return std::max(y, 0.0); };
      const Function sigmoid = [](double y) { return 1 / (1 + std::exp(-y)); };
      const Function hard = [](double y) { return std::min(std::max(y + 3, 0.0), 6.0) / 6; };
      const Steps given{0.125, low + 7}, unit{1.0 / 256, low}, both{2.0 / 256, low + 128};
      check_one("aten::relu", {}, relu, from);
      check_one(
          "quantized::relu6", {false}, [](double y) { return std::min(std::max(y, 0.0), 6.0); }, from);
      check_one(
          "aten::hardtanh", {-1.0, 2.0}, [](double y) { return std::min(std::max(y, -1.0), 2.0); }, from);
      check_one(
          "aten::clamp", {kNone, 1.0}, [](double y) { return std::min(y, 1.0); }, from);
      check_one(
          "aten::clamp", {-1.0, kNone}, [](double y) { return std::max(y, -1.0); }, from);
      check_one(
          "aten::leaky_relu", {0.25}, [](double y) { return y > 0 ? y : y / 4; }, from);
      check_one("aten::sigmoid", {}, sigmoid, unit, unit.scale);
      check_one(
          "aten::tanh", {}, [](double y) { return std::tanh(y); }, both, both.scale);
      check_one("aten::hardsigmoid", {}, hard, unit, unit.scale);
      check_one("quantized::sigmoid", {given.scale, given.zero_point}, sigmoid, given, given.scale);
      check_one(
          "quantized::hardswish", {given.scale, given.zero_point}, [&](double y) { return y * hard(y); }, given,
          given.scale);
      check_one(
          "quantized::leaky_relu", {0.5, false, given.scale, given.zero_point},
          [](double y) { return y > 0 ? y : y / 2; }, given);
      check_one(
          "quantized::elu", {given.scale, given.zero_point, 2.0, 0.5, 1.0},
          [](double y) { return y > 0 ? y / 2 : std::exp(y) - 1; }, given, given.scale);
      const Value written = quantized(every_byte(type), from, type);
      for (const char* op : {"aten::relu_", "aten::hardtanh_", "aten::leaky_relu_"}) {
        std::vector<Value> arguments{written};
        if (op != std::string("aten::relu_")) arguments.emplace_back(op[5] == 'h' ? -1.0 : 0.5);
        if (op[5] == 'h') arguments.emplace_back(1.0);
        const std::string name(op, std::string(op).size() - 1);
        const Value expected = run(name, arguments);
        EXPECT_TRUE(run(op, arguments).to_tensor().is_same(written.to_tensor()));
        expect_numbers(written, numbers(expected));
      }
    }
  }
}

TEST(QuantizedValues, SumsAndProductsOfTwo) {
  for (const QuantizedType type : kTypes) {
    const int64_t low = ops::range_of(type).first;
    for (const Dims& sizes : {Dims{0}, Dims{1}, Dims{2, 3, 5}, Dims{40'000}}) {
      const Steps p{0.25, low + 120}, q{0.5, low + 3}, to{1, low + 60};
      const Value a = quantized(bytes(sizes, type, 1), p, type), b = quantized(bytes(sizes, type, 2), q, type);
      const std::vector<double> x = numbers(a), y = numbers(b);
      for (const bool relu : {false, true}) {
        std::vector<double> sums(x.size()), products(x.size());
        for (size_t i = 0; i < x.size(); ++i) {
          sums[i] = rounded(x[i] + y[i], to, type, relu);
          products[i] = rounded(x[i] * y[i], to, type, relu);
        }
        expect_numbers(run(relu ? "quantized::add_relu" : "quantized::add", {a, b, to.scale, to.zero_point}), sums);
        expect_numbers(run(relu ? "quantized::mul_relu" : "quantized::mul", {a, b, to.scale, to.zero_point}), products);
      }
      if (sizes.size() < 3) continue;
      // The other operand has another layout, or is one row for all.
      const Value turned = quantized(of(b).values().as_view(Dims{2, 3, 5}, Dims{1, 2, 6}, 0), q, type);
      const Value row = quantized(of(b).values().as_view(Dims{5}, Dims{1}, 0), q, type);
      const std::vector<double> z = numbers(turned), w = numbers(row);
      std::vector<double> with_turned(x.size()), with_row(x.size());
      for (size_t i = 0; i < x.size(); ++i) {
        with_turned[i] = rounded(x[i] + z[i], to, type);
        with_row[i] = rounded(x[i] + w[i % 5], to, type);
      }
      expect_numbers(run("quantized::add", {a, turned, to.scale, to.zero_point}), with_turned);
      expect_numbers(run("quantized::add", {a, row, to.scale, to.zero_point}), with_row);
    }
  }
}

TEST(QuantizedValues, WithNumbers) {
  for (const QuantizedType type : kTypes) {
    const int64_t low = ops::range_of(type).first;
    for (const int64_t zero_point : {low, low + 100, low + 255}) {
      const Steps from{0.5, zero_point};
      const Value x = quantized(every_byte(type), from, type);
      const std::vector<double> before = numbers(x);
      for (const double by : {4.0, -4.0, 0.25}) {
        std::vector<double> expected = before;
        for (double& y : expected) y *= by;
        const Value got = run("quantized::mul_scalar", {x, by});
        expect_numbers(got, expected);
        for (double& y : expected) y = std::max(y, 0.0);
        expect_numbers(run("quantized::mul_scalar_relu", {x, by}), expected);
        // The result has memory of its own: writing to it does not change the operand.
        run("aten::relu_", {got});
        expect_numbers(x, before);
      }
      for (const double more : {0.0, 3.0, -3.0, 127.5, -127.5, 500.0, -500.0}) {
        const Value got = run("quantized::add_scalar", {x, more});
        std::vector<double> expected = before;
        for (double& y : expected) y += more;
        // A range that was adjusted has larger steps.
        const double step = of(got).quantizer().scale;
        expect_numbers(got, expected, step == from.scale ? 0 : step / 2 * 1.001);
        for (double& y : expected) y = std::max(y, 0.0);
        expect_numbers(run("quantized::add_scalar_relu", {x, more}), expected, step == from.scale ? 0 : step);
        run("aten::relu_", {got});
        expect_numbers(x, before);
      }
      EXPECT_THAT(said_by([&] { run("quantized::mul_scalar", {x, 0.0}); }), ::testing::HasSubstr("for 0"));
      EXPECT_THAT(said_by([&] { run("quantized::mul_scalar", {x, HUGE_VAL}); }), ::testing::HasSubstr("finite"));
      EXPECT_THAT(said_by([&] { run("quantized::add_scalar", {x, 5e8}); }), ::testing::HasSubstr("out of range"));
    }
  }
}

TEST(QuantizedValues, Joins) {
  for (const QuantizedType type : kTypes) {
    const int64_t low = ops::range_of(type).first;
    const Steps p{0.25, low + 120}, q{0.5, low + 100}, to{1, low + 90};
    const Value a = quantized(bytes({2, 3}, type, 1), p, type), b = quantized(bytes({2, 3}, type, 2), q, type);
    const Value list = tensors({a, b, a});
    const auto expected = [&](Steps steps, bool relu) {
      std::vector<double> out;
      for (const Value& one : {a, b, a}) {
        for (const double y : numbers(one)) out.push_back(rounded(relu ? std::max(y, 0.0) : y, steps, type));
      }
      return out;
    };
    expect_numbers(run("aten::cat", {list, 0}), expected(p, false));
    expect_numbers(run("quantized::cat", {list, 0, kNone, kNone}), expected(p, false));
    expect_numbers(run("quantized::cat", {list, 0, to.scale, to.zero_point}), expected(to, false));
    expect_numbers(run("quantized::cat_relu", {list, 0, p.scale, p.zero_point}), expected(p, true));
    EXPECT_THAT(said_by([&] { run("quantized::cat", {list, 0, 1.0, kNone}); }), ::testing::HasSubstr("or neither"));
  }
}

TEST(QuantizedValues, Norms) {
  const Steps from{0.5, 100}, to{0.25, 60};
  const Value x = quantized(bytes({2, 3, 5}, QuantizedType::kQUInt8, 3), from);
  // Variance plus eps is 1/4, so the root is a half.
  const Tensor weight = floats({1, -2, 0.5f}), bias = floats({0, 4, -8}), mean = floats({1, 0, -2}),
               var = floats({0.125f, 0.125f, 0.125f});
  for (const bool relu : {false, true}) {
    std::vector<double> expected = numbers(x);
    for (size_t i = 0; i < expected.size(); ++i) {
      const size_t c = i / 5 % 3;
      const double y = (expected[i] - mean.data<float>()[c]) * 2 * weight.data<float>()[c] + bias.data<float>()[c];
      expected[i] = rounded(y, to, QuantizedType::kQUInt8, relu);
    }
    const char* name = relu ? "quantized::batch_norm1d_relu" : "quantized::batch_norm1d";
    expect_numbers(run(name, {x, weight, bias, mean, var, 0.125, to.scale, to.zero_point}), expected);
  }
  const char* const kNorm = "quantized::batch_norm";
  const auto norm = [&](const Value& given, const Value& by) {
    return std::vector<Value>{given, by, bias, mean, var, 0.125, to.scale, to.zero_point};
  };
  expect_rows({{kNorm, norm(x, kNone), kTaken},
               {kNorm, norm(x, floats({1, 2})), "expected 3 numbers of float32"},
               {kNorm, norm(x, ones({3}, DType::kFloat64)), "expected 3 numbers of float32"},
               {kNorm, norm(x, ones({3, 1})), "expected 3 numbers of float32"},
               {kNorm, norm(quantized(bytes({3}, QuantizedType::kQUInt8, 3), from), kNone), "along dimension 1"}});
}

Value weights(const Dims& sizes, uint32_t seed, bool has_zero_points) {
  ops::Quantizer quantizer;
  quantizer.scheme = ops::QuantizationScheme::kPerChannelAffine;
  quantizer.axis = 0;
  quantizer.scales = Tensor::empty(Dims{sizes[0]}, DType::kFloat64);
  quantizer.zero_points = Tensor::empty(Dims{sizes[0]}, DType::kInt64);
  for (int64_t i = 0; i < sizes[0]; ++i) {
    quantizer.scales.data<double>()[i] = i % 2 ? 0.5 : 0.25;
    quantizer.zero_points.data<int64_t>()[i] = has_zero_points ? i % 5 - 2 : 0;
  }
  return Value(Tensor(
      make_intrusive<QuantizedTensor>(QuantizedType::kQInt8, bytes(sizes, QuantizedType::kQInt8, seed), quantizer)));
}
std::vector<double> weight_numbers(const Value& value) {
  const QuantizedTensor& w = of(value);
  const Tensor dense = w.values().to(DType::kFloat64).contiguous();
  const int64_t inner = dense.numel() / w.sizes()[0];
  std::vector<double> out(dense.data<double>(), dense.data<double>() + dense.numel());
  for (size_t i = 0; i < out.size(); ++i) {
    const int64_t channel = static_cast<int64_t>(i) / inner;
    out[i] = (out[i] - static_cast<double>(w.quantizer().zero_point_at(channel))) * w.quantizer().scale_at(channel);
  }
  return out;
}
Tensor biases(int64_t count) {
  const Tensor out = ones({count});
  for (int64_t i = 0; i < count; ++i) out.data<float>()[i] = static_cast<float>(i % 7 - 3) * 8;
  return out;
}

TEST(QuantizedValues, LinearLayers) {
  const Steps from{0.125, 90}, to{16, 128};
  for (const int64_t inputs : {1, 3, 4, 5, 63, 64, 65, 130}) {
    for (const int64_t outputs : {1, 15, 16, 17, 65}) {
      for (const bool has_zero_points : {false, true}) {
        const Value w = weights({outputs, inputs}, 5, has_zero_points);
        const Tensor bias = biases(outputs);
        const Value packed = run("quantized::linear_prepack", {w, bias});
        const std::vector<double> factors = weight_numbers(w);
        for (const int64_t rows : {0, 1, 2, 7, 17}) {
          SCOPED_TRACE(concat(rows, "x", inputs, "x", outputs, has_zero_points ? " with zero points" : ""));
          const Value x = quantized(bytes({rows, inputs}, QuantizedType::kQUInt8, 6), from);
          const std::vector<double> in = numbers(x);
          for (const bool relu : {false, true}) {
            std::vector<double> expected;
            for (int64_t r = 0; r < rows; ++r) {
              for (int64_t o = 0; o < outputs; ++o) {
                double sum = bias.data<float>()[o];
                for (int64_t i = 0; i < inputs; ++i)
                  sum += in[static_cast<size_t>(r * inputs + i)] * factors[static_cast<size_t>(o * inputs + i)];
                expected.push_back(rounded(sum, to, QuantizedType::kQUInt8, relu));
              }
            }
            expect_numbers(
                run(relu ? "quantized::linear_relu" : "quantized::linear", {x, packed, to.scale, to.zero_point}),
                expected);
          }
        }
      }
    }
  }
}

struct Conv {
  int64_t inputs, outputs, groups, kernel, stride, padding, dilation, size;
};

std::vector<double> convolved(const Conv& c, const std::vector<double>& x, const std::vector<double>& w,
                              const Tensor& bias, int64_t batch, Steps to, bool relu) {
  const int64_t out = (c.size + 2 * c.padding - c.dilation * (c.kernel - 1) - 1) / c.stride + 1;
  const int64_t in_group = c.inputs / c.groups, out_group = c.outputs / c.groups;
  std::vector<double> result;
  for (int64_t n = 0; n < batch; ++n) {
    for (int64_t o = 0; o < c.outputs; ++o) {
      for (int64_t at = 0; at < out * out; ++at) {
        double sum = bias.data<float>()[o];
        for (int64_t k = 0; k < in_group * c.kernel * c.kernel; ++k) {
          const int64_t i = k / (c.kernel * c.kernel), tap = k % (c.kernel * c.kernel);
          const int64_t y = at / out * c.stride - c.padding + tap / c.kernel * c.dilation;
          const int64_t z = at % out * c.stride - c.padding + tap % c.kernel * c.dilation;
          if (y < 0 || y >= c.size || z < 0 || z >= c.size) continue;
          const int64_t channel = o / out_group * in_group + i;
          sum += x[static_cast<size_t>(((n * c.inputs + channel) * c.size + y) * c.size + z)] *
                 w[static_cast<size_t>(o * in_group * c.kernel * c.kernel + k)];
        }
        result.push_back(rounded(sum, to, QuantizedType::kQUInt8, relu));
      }
    }
  }
  return result;
}

TEST(QuantizedValues, Convolutions) {
  const Steps from{0.125, 90}, to{16, 100};
  for (const Conv& c : {Conv{3, 5, 1, 3, 1, 1, 1, 6}, Conv{4, 6, 2, 3, 2, 1, 1, 7}, Conv{2, 3, 1, 2, 1, 2, 2, 5},
                        Conv{1, 1, 1, 1, 1, 0, 1, 9}, Conv{63, 63, 63, 3, 1, 1, 1, 4}, Conv{64, 64, 64, 3, 1, 0, 1, 4},
                        Conv{65, 65, 65, 2, 2, 1, 1, 4}, Conv{130, 130, 130, 3, 1, 1, 2, 5}}) {
    for (const bool has_zero_points : {false, true}) {
      const Value w = weights({c.outputs, c.inputs / c.groups, c.kernel, c.kernel}, 8, has_zero_points);
      const Tensor bias = biases(c.outputs);
      const auto twice = [](int64_t n) { return ints({n, n}); };
      const Value packed =
          run("quantized::conv2d_prepack", {w, bias, twice(c.stride), twice(c.padding), twice(c.dilation), c.groups});
      for (const int64_t batch : {0, 1, 2}) {
        SCOPED_TRACE(concat(c.inputs, " to ", c.outputs, " by ", c.groups, ", batch ", batch));
        const Value x = quantized(bytes({batch, c.inputs, c.size, c.size}, QuantizedType::kQUInt8, 9), from);
        for (const bool relu : {false, true}) {
          expect_numbers(
              run(relu ? "quantized::conv2d_relu.new" : "quantized::conv2d.new", {x, packed, to.scale, to.zero_point}),
              convolved(c, numbers(x), weight_numbers(w), bias, batch, to, relu));
        }
      }
    }
  }
}

TEST(QuantizedValues, BagsAndRowsOfTables) {
  ops::Quantizer quantizer;
  quantizer.scheme = ops::QuantizationScheme::kPerChannelFloatQParams;
  quantizer.axis = 0;
  quantizer.scales = floats({0.5f, 0.25f, 1});
  quantizer.zero_points = floats({1, 0, 3});
  const Tensor values = bytes({3, 5}, QuantizedType::kQUInt8, 11);
  const Value table(Tensor(make_intrusive<QuantizedTensor>(QuantizedType::kQUInt8, values, quantizer)));
  const Value params = run("quantized::embedding_bag_prepack", {table});
  const auto number = [&](int64_t row, int64_t i) {
    return (values.data<uint8_t>()[row * 5 + i] - quantizer.zero_points.data<float>()[row]) *
           quantizer.scales.data<float>()[row];
  };
  const std::vector<int64_t> rows{2, 0, 1, 1, 0, 2};
  const Tensor got = run("quantized::embedding_byte", {params, shaped(longs(rows), {2, 3})}).to_tensor();
  ASSERT_EQ(got.sizes(), (Dims{2, 3, 5}));
  for (int64_t i = 0; i < 30; ++i)
    EXPECT_FLOAT_EQ(got.data<float>()[i], number(rows[static_cast<size_t>(i / 5)], i % 5)) << i;
  // Bags of no rows, of one and of several; the last bag ends with the indices, or at the last offset.
  for (const bool has_last : {false, true}) {
    const std::vector<int64_t> starts =
        has_last ? std::vector<int64_t>{0, 0, 1, 4, 6} : std::vector<int64_t>{0, 0, 1, 4};
    const Tensor sums = run("quantized::embedding_bag_byte",
                            {params, longs(rows), longs(starts), false, 0, false, kNone, kNone, has_last})
                            .to_tensor();
    ASSERT_EQ(sums.sizes(), (Dims{4, 5}));
    const int64_t ends[] = {0, 1, 4, 6}, begins[] = {0, 0, 1, 4};
    for (int64_t bag = 0; bag < 4; ++bag) {
      for (int64_t i = 0; i < 5; ++i) {
        float expected = 0;
        for (int64_t k = begins[bag]; k < ends[bag]; ++k) expected += number(rows[static_cast<size_t>(k)], i);
        EXPECT_FLOAT_EQ(sums.data<float>()[bag * 5 + i], expected) << bag;
      }
    }
  }
  const Tensor pairs = run("quantized::embedding_bag_byte", {params, shaped(longs(rows), {3, 2})}).to_tensor();
  for (int64_t bag = 0; bag < 3; ++bag) {
    for (int64_t i = 0; i < 5; ++i) {
      const auto first = static_cast<size_t>(2 * bag);
      EXPECT_FLOAT_EQ(pairs.data<float>()[bag * 5 + i], number(rows[first], i) + number(rows[first + 1], i));
    }
  }
}

}  // namespace
}  // namespace tensord::quantized_values_test
