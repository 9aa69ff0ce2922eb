// Products with packed weights: every tile shape, epilogues, and the accuracy of each precision.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "core/base/parallel.h"
#include "core/ops/attributes/packed.h"
#include "core/ops/registry.h"
#include "core/ops/run.h"
#include "kernels/gemm/packed_gemm_tile.h"

namespace tensord::packed_gemm_test {
namespace {

using ops::Epilogue;
using ops::PackedOp;
using ops::Precision;
using ops::Value;
using Kind = ops::Epilogue::Kind;
using Packed = IntrusivePtr<PackedOp>;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

Tensor random(const Dims& sizes) {
  static std::mt19937 generator(11);
  std::uniform_real_distribution<float> values(-1, 1);
  const Tensor t = Tensor::empty(sizes, DType::kFloat32);
  for (int64_t i = 0; i < t.numel(); ++i) t.data<float>()[i] = values(generator);
  return t;
}

const ops::Op& op(const char* name) { return *ops::find_op(name); }

Packed pack(const char* name, std::span<const Value> arguments, Precision precision = Precision::kF32) {
  const ops::PackFn& function = op(name).pack[static_cast<size_t>(DeviceKind::kCPU)];
  return function({op(name), arguments, precision, std::make_shared<ops::PackStore>()});
}

Packed linear(const Tensor& weight, const Tensor& bias = {}, Precision precision = Precision::kF32) {
  const Value arguments[] = {Value(), weight, bias.defined() ? Value(bias) : Value()};
  return pack("aten::linear", arguments, precision);
}

// The call that an epilogue represents; the packed operator runs it separately only if it does not cover it.
Packed with(const Packed& packed, Epilogue epilogue) {
  if (epilogue.kind == Kind::kAdd) {
    Packed joined = packed->with({&op("aten::add.Tensor"), {Value(), Value(), 1}, 0, 1}, epilogue);
    EXPECT_TRUE(joined);
    return joined;
  }
  Packed joined = packed->with({&op("aten::relu"), {Value()}, 0, -1}, epilogue);
  EXPECT_TRUE(joined);
  return joined;
}

// Sums in double over float32 operands.
Tensor product(const Tensor& input, const Tensor& weight, const Tensor& bias = {}) {
  const Tensor x = input.contiguous(), w = weight.contiguous();
  Dims sizes = x.sizes();
  sizes.back() = w.sizes()[0];
  const Tensor out = Tensor::empty(sizes, DType::kFloat32);
  const int64_t n = w.sizes()[0], k = w.sizes()[1];
  for (int64_t i = 0; i < out.numel(); ++i) {
    const float *row = x.data<float>() + i / n * k, *column = w.data<float>() + i % n * k;
    double sum = bias.defined() ? bias.data<float>()[i % n] : 0;
    for (int64_t j = 0; j < k; ++j) sum += static_cast<double>(row[j]) * column[j];
    out.data<float>()[i] = static_cast<float>(sum);
  }
  return out;
}

Tensor meta(const Tensor& t) { return Tensor::meta_strided(t.sizes(), t.strides(), t.dtype()); }

struct Prepared {
  Tensor out;
  std::unique_ptr<ops::PreparedCall> call;
};

// Runs the prepared call with poisoned memory; the result may be written over `other`.
Prepared run_prepared(const Packed& packed, const Tensor& input, const Tensor& other = {}, bool overwrite = false,
                      int threads = 1) {
  Dims sizes = input.sizes();
  sizes.back() = packed->run(meta(input), other.defined() ? meta(other) : Tensor(), false).sizes().back();
  Prepared result{overwrite ? other : Tensor::empty(sizes, input.dtype()), nullptr};
  const Tensor output = Tensor::meta(sizes, input.dtype());
  ops::PackStore packs;
  const Value arguments[] = {Value(IntrusivePtr<ops::OpaqueObject>(packed)), meta(input)};
  const ops::PrepareArgs args{op(ops::kRunPacked), arguments, {&output, 1}, threads, Precision::kF32, &packs};
  result.call = packed->prepare(meta(input), other.defined() ? meta(other) : Tensor(), args);
  if (!result.call) return result;
  const Tensor scratch = Tensor::empty(Dims{static_cast<int64_t>(result.call->scratch_bytes)}, DType::kUInt8);
  std::memset(scratch.raw_data(), 0xff, result.call->scratch_bytes);
  if (!overwrite) std::memset(result.out.raw_data(), 0xff, result.out.size_bytes());
  const void* inputs[] = {input.raw_data(), other.defined() ? other.raw_data() : nullptr};
  void* outputs[] = {result.out.raw_data()};
  set_thread_budget(threads);
  result.call->run(ops::KernelContext(), {inputs, outputs, scratch.raw_data()});
  return result;
}

double worst_difference(const Tensor& a, const Tensor& b) {
  if (!(a.sizes() == b.sizes())) return kInfinity;
  double worst = 0;
  for (int64_t i = 0; i < a.numel(); ++i) {
    const double d = std::abs(static_cast<double>(a.data<float>()[i]) - b.data<float>()[i]);
    if (!(d <= worst)) worst = d;
  }
  return worst;
}
bool is_same(const Tensor& a, const Tensor& b) {
  return a.sizes() == b.sizes() && std::memcmp(a.raw_data(), b.raw_data(), a.size_bytes()) == 0;
}
double magnitude(const Tensor& t) {
  double max = 0;
  for (int64_t i = 0; i < t.numel(); ++i) max = std::max(max, std::abs(static_cast<double>(t.data<float>()[i])));
  return max;
}

TEST(PackedGemm, EveryShapeOfTile) {
  for (const int64_t n : {1, 7, 16, 33, 48, 100, 145}) {
    for (const int64_t k : {1, 2, 3, 31, 64, 129}) {
      const Tensor weight = random(Dims{n, k}), bias = random(Dims{n});
      const Packed packed = linear(weight, bias);
      for (const int64_t m : {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 17, 19, 40}) {
        const Tensor input = random(Dims{m, k}), expected = product(input, weight, bias);
        const Tensor got = run_prepared(packed, input).out;
        ASSERT_LE(worst_difference(got, expected), 1e-5) << m << " x " << n << " x " << k;
        set_thread_budget(1);
        ASSERT_TRUE(is_same(packed->run(input, Tensor(), false), got)) << m << " x " << n << " x " << k;
      }
    }
  }
}

TEST(PackedGemm, LongRowsAndManyRowsGoInBlocks) {
  for (const auto& [m, n, k] : {std::tuple<int64_t, int64_t, int64_t>{200, 100, 1024}, {30, 97, 3001}, {1, 64, 5000}}) {
    const Tensor weight = random(Dims{n, k}), input = random(Dims{m, k});
    EXPECT_LE(worst_difference(run_prepared(linear(weight), input).out, product(input, weight)), 2e-4);
  }
}

TEST(PackedGemm, ThreadsCutTheWorkAndChangeNothing) {
  for (const Precision precision : {Precision::kF32, Precision::kBf16, Precision::kInt8}) {
    for (const int64_t m : {1, 5, 40, 300}) {
      const Tensor weight = random(Dims{500, 700}), bias = random(Dims{500}), input = random(Dims{m, 700});
      const Packed packed = with(linear(weight, bias, precision), {.formula = "silu"});
      const Tensor one = run_prepared(packed, input).out;
      for (const int threads : {1, 2, 3, 5}) {
        const Tensor first = run_prepared(packed, input, {}, false, threads).out;
        EXPECT_TRUE(is_same(first, one)) << m << " rows, " << threads << " threads";
        EXPECT_TRUE(is_same(first, run_prepared(packed, input, {}, false, threads).out));
      }
    }
  }
  set_thread_budget(1);
}

struct Function {
  Epilogue epilogue;
  double (*value)(double);
};
const Function kFunctions[] = {
    {{.formula = "relu"}, [](double x) { return x < 0 ? 0 : x; }},
    {{.formula = "leaky_relu", .numbers = {0.25}}, [](double x) { return x > 0 ? x : 0.25 * x; }},
    {{.formula = "hardtanh", .numbers = {-0.5, 0.75}}, [](double x) { return x < -0.5   ? -0.5
                                                                             : x > 0.75 ? 0.75
                                                                                        : x; }},
    {{.formula = "relu6"}, [](double x) { return std::min(std::max(x, 0.0), 6.0); }},
    {{.formula = "sigmoid"}, [](double x) { return 1 / (1 + std::exp(-x)); }},
    {{.formula = "tanh"}, [](double x) { return std::tanh(x); }},
    {{.formula = "gelu"}, [](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }},
    {{.formula = "gelu_tanh"},
     [](double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }},
    {{.formula = "silu"}, [](double x) { return x / (1 + std::exp(-x)); }},
    {{.formula = "hardswish"}, [](double x) { return x * std::min(std::max(x + 3, 0.0), 6.0) / 6; }},
    {{.formula = "hardsigmoid"}, [](double x) { return std::min(std::max(x + 3, 0.0), 6.0) / 6; }},
    {{.formula = "elu", .numbers = {0.5, 1, 1}}, [](double x) { return x > 0 ? x : 0.5 * std::expm1(x); }},
};

Tensor apply(const Function& function, const Tensor& t) {
  const Tensor out = t.clone();
  for (int64_t i = 0; i < t.numel(); ++i) out.data<float>()[i] = static_cast<float>(function.value(t.data<float>()[i]));
  return out;
}
Tensor sum(const Tensor& a, const Tensor& b) { return ops::call_by_name<Tensor>("aten::add.Tensor", a, b, 1); }

TEST(PackedGemm, EveryFunctionAndASumBeforeOrAfterIt) {
  for (const auto& [m, n] : {std::pair<int64_t, int64_t>{1, 19}, {13, 70}}) {
    const Tensor weight = random(Dims{n, 24}), bias = random(Dims{n}), input = random(Dims{m, 24}),
                 other = random(Dims{m, n});
    const Tensor before = product(input, weight, bias);
    for (const Function& function : kFunctions) {
      const Packed packed = linear(weight, bias), joined = with(packed, function.epilogue);
      const std::string_view kind = function.epilogue.formula;
      EXPECT_LE(worst_difference(run_prepared(joined, input).out, apply(function, before)), 1e-5) << kind;
      const Packed after = with(joined, {.kind = Kind::kAdd}),
                   first = with(with(packed, {.kind = Kind::kAdd}), function.epilogue);
      EXPECT_LE(worst_difference(run_prepared(after, input, other).out, sum(apply(function, before), other)), 1e-5);
      const Tensor both = apply(function, sum(before, other));
      EXPECT_LE(worst_difference(run_prepared(first, input, other).out, both), 1e-5) << kind;
      EXPECT_LE(worst_difference(run_prepared(first, input, other.clone(), true).out, both), 1e-5) << kind;
      EXPECT_EQ(run_prepared(first, input, other).call->may_overwrite, 2u);
    }
  }
}

TEST(PackedGemm, ASumWhoseRowsComeAgain) {
  const Tensor weight = random(Dims{50, 24}), input = random(Dims{4, 3, 24}), before = product(input, weight);
  const Packed packed = with(linear(weight), {.kind = Kind::kAdd});
  for (const Dims& sizes : {Dims{3, 50}, Dims{1, 3, 50}, Dims{50}, Dims{1, 1, 50}, Dims{4, 3, 50}}) {
    const Tensor other = random(sizes);
    const Prepared got = run_prepared(packed, input, other);
    EXPECT_LE(worst_difference(got.out, sum(before, other)), 1e-5) << to_string(sizes);
    EXPECT_EQ(got.call->may_overwrite, sizes == got.out.sizes() ? 2u : 0u);
    EXPECT_LE(worst_difference(packed->run(input, other, false), sum(before, other)), 1e-5);
  }
  for (const Dims& sizes : {Dims{4, 1, 50}, Dims{3, 1}, Dims{}, Dims{2, 4, 3, 50}}) {
    const Tensor other = random(sizes);
    EXPECT_FALSE(run_prepared(packed, input, other).call) << to_string(sizes);
    EXPECT_LE(worst_difference(packed->run(input, other, false), sum(before, other)), 1e-5) << to_string(sizes);
  }
}

TEST(PackedGemm, AnInputIsNotWrittenOver) {
  const Tensor weight = random(Dims{24, 24}), input = random(Dims{5, 24});
  const Packed packed = with(linear(weight), {.kind = Kind::kAdd});
  const Tensor output = Tensor::meta(Dims{5, 24}, DType::kFloat32), both = meta(input);
  ops::PackStore packs;
  const Value arguments[] = {Value(), both, both};
  const ops::PrepareArgs args{op(ops::kRunPackedWithOther), arguments, {&output, 1}, 1, Precision::kF32, &packs};
  EXPECT_EQ(packed->prepare(both, both, args)->may_overwrite, 0u);
}

TEST(PackedGemm, InputsOfAnyStrides) {
  const Tensor weight = random(Dims{40, 24});
  const Tensor big = random(Dims{6, 10, 48});
  for (const Precision precision : {Precision::kF32, Precision::kBf16, Precision::kInt8}) {
    const Packed packed = linear(weight, {}, precision);
    for (const Tensor& view : {big.as_view(Dims{6, 10, 24}, Dims{480, 48, 1}, 3),  // rows with a gap
                               big.as_view(Dims{6, 24}, Dims{480, 1}, 48),         // one row of each
                               big.as_view(Dims{10, 6, 24}, Dims{48, 480, 1}, 0),  // rows in another order
                               big.as_view(Dims{6, 20, 24}, Dims{480, 1, 20}, 0),  // columns
                               big.as_view(Dims{6, 24}, Dims{24, 2}, 1),           // every other number
                               big.as_view(Dims{5, 7, 24}, Dims{0, 0, 1}, 0),      // one expanded row
                               big.as_view(Dims{24}, Dims{3}, 0)}) {
      const Tensor dense = view.contiguous();
      const Prepared got = run_prepared(packed, view);
      ASSERT_TRUE(got.call);
      EXPECT_TRUE(is_same(got.out, run_prepared(packed, dense).out)) << to_string(view.strides());
    }
  }
}

TEST(PackedGemm, WeightsOfAnyStrides) {
  const Tensor big = random(Dims{48, 60}), input = random(Dims{11, 20});
  for (const Tensor& view : {big.as_view(Dims{24, 20}, Dims{120, 2}, 1), big.as_view(Dims{60, 20}, Dims{1, 60}, 0),
                             big.as_view(Dims{24, 20}, Dims{0, 1}, 5)}) {
    EXPECT_LE(worst_difference(run_prepared(linear(view), input).out, product(input, view)), 1e-5);
  }
}

TEST(PackedGemm, NotANumberComesThrough) {
  const Tensor weight = random(Dims{40, 16}), input = random(Dims{12, 16});
  input.data<float>()[3 * 16 + 5] = kNaN;
  input.data<float>()[7 * 16 + 5] = kInfinity;
  for (const Precision precision : {Precision::kF32, Precision::kBf16, Precision::kInt8}) {
    for (const Function& function : kFunctions) {
      const Tensor out = run_prepared(with(linear(weight, {}, precision), function.epilogue), input).out;
      for (int64_t r = 0; r < 12; ++r) {
        for (int64_t c = 0; c < 40; ++c) {
          const bool is_nan = std::isnan(out.data<float>()[r * 40 + c]);
          ASSERT_TRUE(r == 7 || is_nan == (r == 3)) << r << ", " << c;
        }
      }
    }
  }
  const Tensor out = run_prepared(with(linear(weight), {.formula = "relu"}), input).out;
  for (int64_t c = 0; c < 40; ++c) {
    const bool is_positive = weight.data<float>()[c * 16 + 5] > 0;
    EXPECT_EQ(out.data<float>()[7 * 40 + c], is_positive ? kInfinity : 0);
  }
}

TEST(PackedGemm, ErrorsOfNarrowPrecisions) {
  for (const int64_t k : {5, 64, 770, 2049}) {
    for (const int64_t m : {1, 3, 30}) {
      const Tensor weight = random(Dims{70, k}), bias = random(Dims{70}), input = random(Dims{m, k});
      const Tensor exact = product(input, weight, bias);
      // Errors of single products are independent: they grow like the square root of k.
      const double scale = std::sqrt(static_cast<double>(k));
      const Tensor bf16 = run_prepared(linear(weight, bias, Precision::kBf16), input).out;
      EXPECT_LE(worst_difference(bf16, exact), 0.008 * scale) << k;
      const Tensor int8 = run_prepared(linear(weight, bias, Precision::kInt8), input).out;
      EXPECT_LE(worst_difference(int8, exact), 0.015 * scale) << k;
    }
  }
  // Sums of products of rounded numbers are exact or nearly so.
  const Tensor weight = random(Dims{20, 300}), input = random(Dims{10, 300});
  for (const Tensor& t : {weight, input}) {
    for (int64_t i = 0; i < t.numel(); ++i) t.data<float>()[i] = std::round(t.data<float>()[i] * 100) / 128;
  }
  EXPECT_LE(worst_difference(run_prepared(linear(weight, {}, Precision::kBf16), input).out, product(input, weight)),
            1e-4);
}

// Where the processor has to widen bfloat16, only products of few rows use it.
TEST(PackedGemm, BFloat16IsUsedWhereItIsFaster) {
  const bool multiplies = !kernels::tile_kernels(kernels::WordType::kBf16).widens;
  struct Row {
    Dims weight;
    int64_t rows;
    bool is_bandwidth;  // the time to read the weights is the longest part
  };
  for (const Row& row : {Row{{24, 40}, 1, true}, Row{{24, 40}, 2, false}, Row{{520, 512}, 1, true},
                         Row{{520, 512}, 7, true}, Row{{520, 512}, 8, false}, Row{{24, 40}, 64, false}}) {
    const Tensor weight = random(row.weight), input = random(Dims{row.rows, row.weight[1]});
    const Prepared bf16 = run_prepared(linear(weight, {}, Precision::kBf16), input);
    const Tensor f32 = run_prepared(linear(weight), input).out;
    const bool is_bf16 = multiplies || row.is_bandwidth;
    EXPECT_EQ(worst_difference(bf16.out, f32) > 0, is_bf16) << row.weight[0] << ' ' << row.rows;
    EXPECT_EQ(bf16.call->variant.find("bf16") != std::string::npos, is_bf16) << bf16.call->variant;
  }
}

// 16-bit operands are multiplied exactly, whatever the number of rows: sums differ from exact ones in the last digit.
TEST(PackedGemm, HalvesLoseNothing) {
  for (const DType dtype : {DType::kBFloat16, DType::kFloat16}) {
    for (const int64_t k : {1, 2, 5, 64, 771, 2049}) {
      for (const int64_t m : {1, 3, 8, 9, 30, 200}) {
        for (const bool is_turned : {false, true}) {
          const Tensor weight = random(Dims{70, k}).to(dtype), bias = random(Dims{70}).to(dtype);
          const Tensor rows = random(is_turned ? Dims{k, m} : Dims{m, k}).to(dtype);
          const Tensor input = is_turned ? rows.as_view(Dims{m, k}, Dims{1, m}, 0) : rows;
          const Tensor exact = product(input.to(DType::kFloat32), weight.to(DType::kFloat32), bias.to(DType::kFloat32));
          const Packed packed = linear(weight, bias);
          const Prepared prepared = run_prepared(packed, input, {}, false, m > 100 ? 2 : 1);
          ASSERT_TRUE(prepared.call);
          const Tensor out = prepared.out.to(DType::kFloat32);
          const double digit = dtype == DType::kBFloat16 ? 1.0 / 256 : 1.0 / 2048;
          for (int64_t i = 0; i < out.numel(); ++i) {
            const double wanted = exact.data<float>()[i];
            ASSERT_NEAR(out.data<float>()[i], wanted, digit * std::abs(wanted) + 2e-5)
                << name_of(dtype) << ' ' << m << 'x' << k << ", " << i;
          }
          EXPECT_TRUE(is_same(packed->run(input, {}, false), prepared.out));
        }
      }
    }
  }
}

TEST(PackedGemm, Int8RowsAreOnTheirOwn) {
  const Tensor weight = random(Dims{33, 64}), input = random(Dims{20, 64});
  for (int64_t i = 0; i < 64; ++i) {
    input.data<float>()[2 * 64 + i] *= 1e6f;
    input.data<float>()[3 * 64 + i] = 0;
    weight.data<float>()[5 * 64 + i] = 0;
    weight.data<float>()[6 * 64 + i] *= 1e-3f;
  }
  const Tensor out = run_prepared(linear(weight, {}, Precision::kInt8), input).out, exact = product(input, weight);
  for (int64_t i = 0; i < out.numel(); ++i) {
    const int64_t row = i / 33, column = i % 33;
    const double scale = (row == 2 ? 1e6 : row == 3 ? 0 : 1) * (column == 5 ? 0 : column == 6 ? 1e-3 : 1);
    ASSERT_NEAR(out.data<float>()[i], exact.data<float>()[i], 0.12 * scale) << row << ", " << column;
  }
}

TEST(PackedGemm, BatchNormGoesIntoTheWeights) {
  const Tensor weight = random(Dims{20, 30}), bias = random(Dims{20}), scale = random(Dims{20}),
               shift = random(Dims{20}), input = random(Dims{9, 30});
  Tensor expected = product(input, weight, bias);
  for (int64_t i = 0; i < expected.numel(); ++i) {
    float& x = expected.data<float>()[i];
    x = x * scale.data<float>()[i % 20] + shift.data<float>()[i % 20];
  }
  for (const Precision precision : {Precision::kF32, Precision::kBf16, Precision::kInt8}) {
    const Packed joined =
        with(linear(weight, bias, precision), {.kind = Kind::kChannelAffine, .scale = scale, .shift = shift});
    const double tolerance = precision == Precision::kF32 ? 1e-5 : 0.1;
    EXPECT_LE(worst_difference(run_prepared(joined, input).out, expected), tolerance);
    // Channels are in dimension 1, which is the last one only for matrices.
    EXPECT_FALSE(run_prepared(joined, random(Dims{2, 20, 30})).call);
  }
}

TEST(PackedGemm, ProductsOfMatrices) {
  const Tensor right = random(Dims{24, 30}), input = random(Dims{9, 24});
  const Tensor weight = right.as_view(Dims{30, 24}, Dims{1, 30}, 0), expected = product(input, weight);
  const Value two[] = {Value(), right};
  const Packed mm = pack("aten::mm", two);
  EXPECT_LE(worst_difference(run_prepared(mm, input).out, expected), 1e-5);
  EXPECT_THROW(mm->run(random(Dims{2, 3, 24}), Tensor(), false), Error);
  for (const Tensor& self : {random(Dims{30}), random(Dims{1, 30}), random(Dims{1}), random(Dims{})}) {
    const Value five[] = {self, Value(), right, 0.5, 2};
    const Packed addmm = pack("aten::addmm", five);
    ASSERT_TRUE(addmm);
    const Tensor direct = ops::call_by_name<Tensor>("aten::addmm", self, input, right, 0.5, 2);
    EXPECT_LE(worst_difference(run_prepared(addmm, input).out, direct), 1e-5);
    EXPECT_THROW(addmm->run(random(Dims{2, 3, 24}), Tensor(), false), Error);
  }
  const Value five[] = {random(Dims{9, 30}), Value(), right, 1, 1};
  EXPECT_FALSE(pack("aten::addmm", five));
}

TEST(PackedGemm, PackedBytesAreThoseOfTheWeights) {
  const Tensor weight = random(Dims{1000, 512});
  const Prepared prepared = run_prepared(linear(weight), random(Dims{1, 512}));
  EXPECT_LE(prepared.call->cost.bytes, 1.02 * static_cast<double>(weight.size_bytes()) + 8192);
  EXPECT_EQ(prepared.call->cost.flops, 2.0 * 1000 * 512);
  EXPECT_EQ(prepared.call->label, "linear");
  EXPECT_GT(magnitude(prepared.out), 0);
  const Tensor half = weight.to(DType::kBFloat16);
  const Prepared narrow = run_prepared(linear(half), random(Dims{1, 512}).to(DType::kBFloat16));
  EXPECT_LE(narrow.call->cost.bytes, 1.02 * static_cast<double>(half.size_bytes()) + 8192);
}

}  // namespace
}  // namespace tensord::packed_gemm_test
