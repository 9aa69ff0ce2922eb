// Random numbers on CUDA's devices.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "core/ops/generator.h"
#include "core/ops/run.h"
#include "core/tensor/device_runtime.h"
#include "tests/device/cuda_fixture.h"

namespace tensord::cuda_random_test {
namespace {

using namespace cuda_tests;
using ops::call_by_name;
using ops::Generator;
using ops::GeneratorGuard;
using ops::Value;
using CudaRandom = CudaDevice;

Tensor made(const Dims& sizes, DType dtype = DType::kFloat32) { return Tensor::empty(sizes, dtype, kGpu); }
std::vector<double> numbers_of(const Tensor& x) {
  const Tensor here = x.to(Device{}).to(DType::kFloat64).contiguous();
  return {here.data<double>(), here.data<double>() + here.numel()};
}
double mean_of(const std::vector<double>& all) {
  double sum = 0;
  for (const double x : all) sum += x;
  return sum / static_cast<double>(all.size());
}
double variance_of(const std::vector<double>& all) {
  const double mean = mean_of(all);
  double sum = 0;
  for (const double x : all) sum += (x - mean) * (x - mean);
  return sum / static_cast<double>(all.size());
}

// The known answers of Random123.
TEST_F(CudaRandom, PhiloxHasItsKnownAnswers) {
  const std::vector<uint32_t> rows{0,          0,          0,          0,          0,          0,
                                   0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8, 0xffffffff, 0xffffffff,
                                   0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0x408f276d, 0x41c83b0e,
                                   0xa20bc7c6, 0x6d5451fd, 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344,
                                   0xa4093822, 0x299f31d0, 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1};
  const Tensor given = Tensor::empty(Dims{30}, DType::kInt32);
  std::memcpy(given.raw_data(), rows.data(), 120);
  for (int row = 0; row < 3; ++row) std::memset(given.data<int32_t>() + 10 * row + 6, 0, 16);
  const Tensor there = given.to(kGpu);
  const std::string problem = run_tested("philox", there);
  if (problem == "these are not the emulated devices") GTEST_SKIP() << problem;
  ASSERT_EQ(problem, "");
  EXPECT_EQ(std::memcmp(there.to(Device{}).raw_data(), rows.data(), 120), 0);
}

// As PyTorch prints them on CUDA after manual_seed(0).
TEST_F(CudaRandom, NumbersArePyTorchs) {
  Generator generator(0);
  const GeneratorGuard guard(generator);
  const std::vector<double> uniform = numbers_of(call_by_name("aten::uniform_", made({5})));
  const double of_uniform[] = {0.3990, 0.5167, 0.0249, 0.9401, 0.9459};
  generator.set_seed(0);
  const std::vector<double> normal = numbers_of(call_by_name("aten::normal_", made({5})));
  const double of_normal[] = {-0.9247, -0.4253, -2.6438, 0.1452, -0.1209};
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_NEAR(uniform[i], of_uniform[i], 5.1e-5);
    EXPECT_NEAR(normal[i], of_normal[i], 5.1e-5);
  }
}

// A thread's next numbers stand as many elements behind as there are threads.
TEST_F(CudaRandom, ThreadsTakeElementsInTurns) {
  Generator generator(0);
  const GeneratorGuard guard(generator);
  const cuda::DeviceProperties& chip = cuda::device_properties(0);
  const int64_t threads = int64_t{chip.multiprocessors} * chip.threads_of_multiprocessor;
  const std::vector<double> words =
      numbers_of(call_by_name("aten::random_.to", made({4 * threads}, DType::kInt64), int64_t{0xffffffff}));
  EXPECT_EQ(words[0], 0x6627e8d5);
  EXPECT_EQ(words[static_cast<size_t>(threads)], 0xe169c58d);
  EXPECT_EQ(words[static_cast<size_t>(2 * threads)], 0xbc57ac4c);
  EXPECT_EQ(words[static_cast<size_t>(3 * threads)], 0x9b00dbd8);
  const auto offset = [&] {
    uint64_t state[2];
    std::memcpy(state, generator.state(kGpu).data(), 16);
    return state[1];
  };
  EXPECT_EQ(offset(), 4u);
  call_by_name("aten::uniform_", made({4 * threads + 1}));
  EXPECT_EQ(offset(), 12u);
  call_by_name("aten::uniform_", made({2 * threads + 1}, DType::kFloat64));
  EXPECT_EQ(offset(), 20u);
  call_by_name("aten::uniform_", made({0}));
  EXPECT_EQ(offset(), 20u);
}

TEST_F(CudaRandom, SeedsAndStatesGiveTheSameNumbersAgain) {
  Generator generator(7);
  const GeneratorGuard guard(generator);
  const auto draw = [] { return numbers_of(call_by_name("aten::normal_", made({1000}))); };
  const std::vector<double> first = draw(), second = draw();
  EXPECT_NE(first, second);
  const ops::Op& manual_seed = ops::get_op("aten::manual_seed");
  ops::run(manual_seed, ops::bind(manual_seed, {int64_t{7}}));
  EXPECT_EQ(draw(), first);
  const std::vector<uint8_t> state = generator.state(kGpu);
  EXPECT_EQ(state.size(), 16u);
  EXPECT_EQ(draw(), second);
  generator.set_state(kGpu, state);
  EXPECT_EQ(draw(), second);
  Generator other(8);
  other.restore(generator.saved());
  EXPECT_EQ(other.saved(), generator.saved());
  const std::vector<double> third = draw();
  const GeneratorGuard of_other(other);
  EXPECT_EQ(draw(), third);
  EXPECT_EQ(message_of([&] { other.set_state(kGpu, std::vector<uint8_t>(15)); }),
            "RNG state is wrong size: got 15 bytes, expected 16");
  EXPECT_EQ(message_of([&] { other.set_state(kGpu, std::vector<uint8_t>(16, 1)); }), "offset must be a multiple of 4");
}

struct Distribution {
  const char* op;
  std::vector<Value> arguments;
  DType dtype;
  double mean, variance;
};

TEST_F(CudaRandom, DistributionsHaveTheirMoments) {
  constexpr DType f32 = DType::kFloat32, f64 = DType::kFloat64, f16 = DType::kFloat16, i64 = DType::kInt64;
  const std::vector<Distribution> all{
      {"aten::uniform_", {-1.0, 3.0}, f32, 1, 16.0 / 12},
      {"aten::uniform_", {-1.0, 3.0}, f64, 1, 16.0 / 12},
      {"aten::uniform_", {0.0, 1.0}, f16, 0.5, 1.0 / 12},
      {"aten::normal_", {1.0, 2.0}, f32, 1, 4},
      {"aten::normal_", {1.0, 2.0}, f64, 1, 4},
      {"aten::exponential_", {2.0}, f32, 0.5, 0.25},
      {"aten::exponential_", {2.0}, f64, 0.5, 0.25},
      {"aten::log_normal_", {0.0, 0.5}, f32, std::exp(0.125), (std::exp(0.25) - 1) * std::exp(0.25)},
      {"aten::geometric_", {0.25}, f32, 4, 12},
      {"aten::geometric_", {0.25}, i64, 4, 12},
      {"aten::bernoulli_.float", {0.3}, f32, 0.3, 0.21},
      {"aten::bernoulli_.float", {0.3}, DType::kBool, 0.3, 0.21},
      {"aten::random_.from", {-5, 6}, i64, 0, 10},
      {"aten::random_.from", {-5, 6}, f32, 0, 10},
      {"aten::random_.to", {int64_t{1} << 40}, i64, std::ldexp(1.0, 39), std::ldexp(1.0, 80) / 12},
      {"aten::random_", {}, DType::kUInt8, 127.5, 65535.0 / 12},
      {"aten::random_", {}, f32, std::ldexp(1.0, 23), std::ldexp(1.0, 48) / 12}};
  Generator generator(1);
  const GeneratorGuard guard(generator);
  for (const Distribution& one : all) {
    const ops::Op& op = ops::get_op(one.op);
    std::vector<Value> arguments{made({40'000}, one.dtype)};
    arguments.insert(arguments.end(), one.arguments.begin(), one.arguments.end());
    const std::vector<double> got = numbers_of(ops::run(op, ops::bind(op, arguments))[0].to_tensor());
    const double deviation = std::sqrt(one.variance);
    EXPECT_NEAR(mean_of(got), one.mean, 0.03 * deviation) << one.op << ' ' << name_of(one.dtype);
    EXPECT_NEAR(variance_of(got), one.variance, 0.15 * one.variance) << one.op << ' ' << name_of(one.dtype);
  }
  // Cauchy's distribution has no moments: half of it lies within one sigma.
  const std::vector<double> cauchy = numbers_of(call_by_name("aten::cauchy_", made({40'000}), 1.0, 2.0));
  const auto is_near = [](double x) { return std::abs(x - 1) < 2; };
  EXPECT_NEAR(std::count_if(cauchy.begin(), cauchy.end(), is_near), 20'000, 600);
}

TEST_F(CudaRandom, UniformNumbersLieInTheirRange) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kFloat64}) {
    const std::vector<double> got = numbers_of(call_by_name("aten::uniform_", made({40'000}, dtype), -2.0, 0.5));
    EXPECT_GE(*std::ranges::min_element(got), -2) << name_of(dtype);
    EXPECT_LT(*std::ranges::max_element(got), 0.5) << name_of(dtype);
  }
}

TEST_F(CudaRandom, CountsFollowTheirTensors) {
  constexpr int64_t kCount = 20'000;
  for (const double rate : {0.5, 4.0, 50.0}) {
    const Tensor rates = call_by_name("aten::full_like", made({kCount}), rate);
    const std::vector<double> got = numbers_of(call_by_name("aten::poisson", rates));
    EXPECT_NEAR(mean_of(got), rate, 0.03 * std::sqrt(rate));
    EXPECT_NEAR(variance_of(got), rate, 0.1 * rate);
  }
  for (const double chance : {0.02, 0.4, 0.9}) {
    const Tensor trials = call_by_name("aten::full_like", made({kCount}), 100.0),
                 chances = call_by_name("aten::full_like", made({1}), chance);
    const std::vector<double> got = numbers_of(call_by_name("aten::binomial", trials, chances));
    EXPECT_NEAR(mean_of(got), 100 * chance, 0.15);
    EXPECT_NEAR(variance_of(got), 100 * chance * (1 - chance), 10 * chance * (1 - chance));
    const Tensor coins = call_by_name("aten::full_like", made({kCount}), chance);
    EXPECT_NEAR(mean_of(numbers_of(call_by_name("aten::bernoulli", coins))), chance, 0.015);
  }
  const Tensor wrong = call_by_name("aten::full_like", made({3}), -0.5);
  const auto error_of = [&](const char* op, const std::vector<Value>& arguments) {
    ops::run(ops::get_op(op), ops::bind(ops::get_op(op), arguments));
    return message_of([] { synchronize(kGpu); });
  };
  EXPECT_EQ(error_of("aten::bernoulli", {wrong}),
            "aten::bernoulli: Expected p_in >= 0 && p_in <= 1 to be true, but got false.");
  EXPECT_EQ(error_of("aten::poisson", {wrong}),
            "aten::poisson: invalid Poisson rate, expected rate to be non-negative and finite, got -0.5");
  EXPECT_EQ(error_of("aten::binomial", {wrong, wrong}),
            "aten::binomial: binomial: expected a finite count and a chance between 0 and 1, got -0.5 and -0.5");
}

TEST_F(CudaRandom, FactoriesDrawOnTheDevice) {
  Generator generator(0);
  const GeneratorGuard guard(generator);
  const Tensor x = call_by_name("aten::rand", Dims{5}, Value(), Value(), kGpu, Value());
  EXPECT_EQ(x.device(), kGpu);
  EXPECT_NEAR(numbers_of(x)[0], 0.3990, 5.1e-5);
  for (const char* op : {"aten::rand_like", "aten::randn_like"}) EXPECT_EQ(call_by_name(op, x).device(), kGpu);
  EXPECT_EQ(call_by_name("aten::normal.Tensor_float", x).device(), kGpu);
  const Tensor order = call_by_name("aten::randperm", 1000, Value(), Value(), kGpu, Value());
  EXPECT_EQ(order.device(), kGpu);
  std::vector<double> got = numbers_of(order);
  EXPECT_FALSE(std::ranges::is_sorted(got));
  std::ranges::sort(got);
  for (size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], static_cast<double>(i));
}

TEST_F(CudaRandom, MultinomialFollowsTheWeights) {
  Tensor weights = Tensor::empty(Dims{2, 4}, DType::kFloat32);
  const float given[] = {0, 1, 0, 3, 2, 0, 2, 0};
  std::copy(std::begin(given), std::end(given), weights.data<float>());
  const std::vector<double> got =
      numbers_of(call_by_name("aten::multinomial", weights.to(kGpu), 8000, /*replacement=*/true));
  double counts[2][4] = {};
  for (size_t i = 0; i < got.size(); ++i) ++counts[i / 8000][static_cast<size_t>(got[i])];
  const double expected[2][4] = {{0, 2000, 0, 6000}, {4000, 0, 4000, 0}};
  for (int row = 0; row < 2; ++row) {
    for (int i = 0; i < 4; ++i) EXPECT_NEAR(counts[row][i], expected[row][i], expected[row][i] > 0 ? 200 : 0);
  }
  std::vector<double> both = numbers_of(call_by_name("aten::multinomial", weights.to(kGpu), 2));
  std::sort(both.begin(), both.begin() + 2);
  EXPECT_EQ((std::vector<double>{both[0], both[1]}), (std::vector<double>{1, 3}));
}

TEST_F(CudaRandom, DropoutKeepsWhatItsMaskSays) {
  const ops::Op& dropout = ops::get_op("aten::native_dropout");
  const Tensor ones = call_by_name("aten::ones_like", made({100, 100}));
  const std::vector<Value> both = ops::run(dropout, ops::bind(dropout, {ones, 0.25, true}));
  const std::vector<double> got = numbers_of(both[0].to_tensor()), mask = numbers_of(both[1].to_tensor());
  EXPECT_NEAR(mean_of(mask), 0.75, 0.02);
  for (size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], mask[i] != 0 ? static_cast<double>(1 / 0.75f) : 0);
}

}  // namespace
}  // namespace tensord::cuda_random_test
