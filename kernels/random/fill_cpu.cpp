// Tensors filled with random numbers.
#include "kernels/random/fill.h"

#include <cmath>
#include <numeric>

#include "core/ops/complex.h"
#include "core/ops/op.h"
#include "core/tensor/complex.h"
#include "kernels/random/random.h"

namespace tensord::kernels {
namespace {

using ops::Generator;
using ops::Value;

// Turns 16 uniform numbers into 16 normal ones by the Box–Muller transform.
template <class T>
void make_normal16(T* data, double mean, double deviation) {
  using C = ComputeType<T>;
  for (int j = 0; j < 8; ++j) {
    const C u1 = C(1) - static_cast<C>(data[j]), u2 = static_cast<C>(data[j + 8]);
    const C radius = std::sqrt(C(-2) * std::log(u1)), theta = static_cast<C>(2.0 * M_PI) * u2;
    data[j] = static_cast<T>(radius * std::cos(theta) * static_cast<C>(deviation) + static_cast<C>(mean));
    data[j + 8] = static_cast<T>(radius * std::sin(theta) * static_cast<C>(deviation) + static_cast<C>(mean));
  }
}

template <class T>
void fill_normal_blocks(Generator& generator, T* data, int64_t count, double mean, double deviation) {
  const auto uniform = [&]() -> T {
    if constexpr (std::is_same_v<T, double>)
      return generator.uniform_double();
    else
      return static_cast<T>(generator.uniform_float(std::is_same_v<T, float> ? 24 : std::is_same_v<T, Half> ? 11 : 8));
  };
  in_pieces(count, kPieceElements, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) data[i] = uniform();
  });
  in_pieces(count / 16, kPieceElements / 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) make_normal16(data + 16 * i, mean, deviation);
  });
  if (count % 16 == 0) return;
  T* last = data + count - 16;
  for (int i = 0; i < 16; ++i) last[i] = uniform();
  make_normal16(last, mean, deviation);
}

Tensor fill_bernoulli(const Tensor& x, double p, const Value&) {
  check_random_target(x, "bernoulli_");
  check(p >= 0 && p <= 1, "bernoulli_ expects p to be in [0, 1], but got p=", p);
  if (x.is_meta()) return x;
  Generator& generator = ops::current_generator(Device{});
  const auto lock = generator.lock();
  dispatch_all(x.dtype(), "bernoulli_", [&]<class T>() {
    fill_elements<T>(x, [&] { return static_cast<T>(generator.uniform_double() < p ? 1 : 0); });
  });
  return x;
}

Tensor bernoulli(const Tensor& probabilities, const Value&) {
  const Tensor p = probabilities.to(DType::kFloat64).contiguous();
  if (p.is_meta()) return Tensor::meta(p.sizes(), probabilities.dtype());
  const Tensor out = Tensor::empty(p.sizes(), probabilities.dtype());
  Generator& generator = ops::current_generator(Device{});
  const auto lock = generator.lock();
  const double* from = p.data<double>();
  // A draw has as many bits as the probability.
  const auto is_one = [&](double chance) {
    return probabilities.dtype() == DType::kFloat64 ? generator.uniform_double() < chance
                                                    : generator.uniform_float() < static_cast<float>(chance);
  };
  dispatch_floating(out.dtype(), "bernoulli", [&]<class T>() {
    T* to = out.data<T>();
    for (int64_t i = 0; i < out.numel(); ++i) {
      check(from[i] >= 0 && from[i] <= 1, "Expected p_in >= 0 && p_in <= 1 to be true, but got false.");
      to[i] = static_cast<T>(is_one(from[i]) ? 1.0f : 0.0f);
    }
  });
  return out;
}

Tensor fill_uniform(const Tensor& x, double from, double to, const Value&) {
  check_random_target(x, "uniform_");
  check(from <= to, "uniform_ expects to return a [from, to) range, but found from=", from, " > to=", to);
  if (x.is_meta()) return x;
  if (is_complex(x.dtype())) {
    fill_uniform(as_real_pairs(x), from, to, Value());
    return x;
  }
  Generator& generator = ops::current_generator(Device{});
  const auto lock = generator.lock();
  dispatch_floating(x.dtype(), "uniform_", [&]<class T>() {
    if constexpr (std::is_same_v<T, double>) {
      fill_elements<T>(x, [&] { return generator.uniform_double() * (to - from) + from; });
    } else {
      constexpr int kDigits = std::is_same_v<T, float> ? 24 : std::is_same_v<T, Half> ? 11 : 8;
      const auto low = static_cast<float>(from), high = static_cast<float>(to);
      fill_elements<T>(x, [&] { return static_cast<T>(generator.uniform_float(kDigits) * (high - low) + low); });
    }
  });
  return x;
}

Tensor fill_normal(const Tensor& x, double mean, double deviation, const Value&) {
  check_random_target(x, "normal_");
  check(deviation >= 0, "normal expects std >= 0.0, but found std ", deviation);
  if (x.is_meta()) return x;
  if (is_complex(x.dtype())) {  // the variance is that of both parts together
    fill_normal(as_real_pairs(x), mean, deviation / std::sqrt(2.0), Value());
    return x;
  }
  Generator& generator = ops::current_generator(Device{});
  const auto lock = generator.lock();
  dispatch_floating(x.dtype(), "normal_", [&]<class T>() {
    if (x.numel() >= 16 && x.is_contiguous())
      return fill_normal_blocks(generator, x.data<T>(), x.numel(), mean, deviation);
    fill_elements<T>(x, [&] { return static_cast<T>(generator.normal() * deviation + mean); });
  });
  return x;
}

Tensor fill_random(const Tensor& x, int64_t low, int64_t high) {
  check(low < high, "random_ expects 'from' to be less than 'to', but got from=", low, " >= to=", high);
  if (x.is_meta()) return x;
  Generator& generator = ops::current_generator(Device{});
  const auto lock = generator.lock();
  const uint64_t range = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  dispatch_all(x.dtype(), "random_", [&]<class T>() {
    fill_elements<T>(x, [&] {
      const uint64_t bits = range >= (uint64_t{1} << 32) ? generator.bits64() : generator.bits32();
      return static_cast<T>(static_cast<int64_t>(bits % range + static_cast<uint64_t>(low)));
    });
  });
  return x;
}

}  // namespace

Tensor shuffled_numbers(int64_t n) {
  const Tensor out = Tensor::empty(Dims{n}, DType::kInt64);
  int64_t* to = out.data<int64_t>();
  std::iota(to, to + n, 0);
  Generator& generator = ops::current_generator(Device{});
  const auto lock = generator.lock();
  for (int64_t i = 0; i + 1 < n; ++i) {
    if (i % kPieceElements == kPieceElements - 1) check_work_cancelled();
    const auto z = static_cast<int64_t>(generator.bits32() % static_cast<uint64_t>(n - i));
    std::swap(to[i], to[i + z]);
  }
  return out;
}

namespace {

IMPL("aten::uniform_", kCPU, fill_uniform);
IMPL("aten::normal_", kCPU, fill_normal);
IMPL("aten::bernoulli_.float", kCPU, fill_bernoulli);
IMPL("aten::bernoulli", kCPU, bernoulli);
IMPL("aten::bernoulli.p", kCPU,
     [](const Tensor& x, double p, const Value& generator) { return fill_bernoulli(x.clone(), p, generator); });
IMPL("aten::random_.from", kCPU, [](const Tensor& x, int64_t low, std::optional<int64_t> high, const Value&) {
  return fill_random(x, low, high.value_or(INT64_MAX));
});
IMPL("aten::random_.to", kCPU, [](const Tensor& x, int64_t high, const Value&) { return fill_random(x, 0, high); });

}  // namespace
}  // namespace tensord::kernels
