// Tensors filled from distributions, and choices by weight.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/ops/op.h"
#include "core/ops/run.h"
#include "kernels/random/fill.h"
#include "kernels/random/random.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"

namespace tensord::kernels {
namespace {

using ops::Generator;
using ops::Value;

// Fills x, of any floating-point dtype, with draw(generator), which is a double.
template <class Draw>
Tensor fill_floating(const Tensor& x, const char* op, Draw&& draw) {
  check_random_target(x, op);
  check(is_floating(x.dtype()), op, ": not implemented for ", name_of(x.dtype()));
  if (x.is_meta()) return x;
  Generator& generator = ops::current_generator(Device{});
  const auto lock = generator.lock();
  dispatch_floating(x.dtype(), op,
                    [&]<class T>() { fill_elements<T>(x, [&] { return static_cast<T>(draw(generator)); }); });
  return x;
}

Tensor fill_exponential(const Tensor& x, double rate, const Value&) {
  check(rate > 0, "exponential_ expects lambda > 0.0, but found lambda=", rate);
  return fill_floating(x, "exponential_", [=](Generator& g) { return -1 / rate * std::log1p(-g.uniform_double()); });
}
Tensor fill_cauchy(const Tensor& x, double median, double sigma, const Value&) {
  check(sigma > 0, "cauchy_ expects sigma > 0.0, but found sigma=", sigma);
  return fill_floating(x, "cauchy_",
                       [=](Generator& g) { return median + sigma * std::tan(M_PI * (g.uniform_double() - 0.5)); });
}
Tensor fill_log_normal(const Tensor& x, double mean, double deviation, const Value&) {
  check(deviation > 0, "log_normal_ expects std > 0.0, but found std=", deviation);
  return fill_floating(x, "log_normal_", [=](Generator& g) { return std::exp(g.normal() * deviation + mean); });
}
Tensor fill_geometric(const Tensor& x, double p, const Value&) {
  check(p > 0 && p < 1, "geometric_ expects p to be in (0, 1), but got p=", p);
  check_random_target(x, "geometric_");
  check(x.dtype() != DType::kBool, "geometric_: not implemented for bool");
  if (x.is_meta()) return x;
  Generator& generator = ops::current_generator(Device{});
  const auto lock = generator.lock();
  dispatch_all(x.dtype(), "geometric_", [&]<class T>() {
    fill_elements<T>(x, [&] {
      const double draw = std::ceil(std::log(generator.uniform_double()) / std::log(1 - p));
      return static_cast<T>(static_cast<int64_t>(std::min(draw, 9e18)));
    });
  });
  return x;
}

// Whole numbers up to the largest to which the dtype represents all.
Tensor fill_whole(const Tensor& x, const Value&) {
  check_random_target(x, "random_");
  if (x.is_meta()) return x;
  Generator& generator = ops::current_generator(Device{});
  const auto lock = generator.lock();
  dispatch_all(x.dtype(), "random_", [&]<class T>() {
    fill_elements<T>(x, [&]() -> T {
      if constexpr (std::is_same_v<T, bool>) {
        return generator.bits32() & 1;
      } else if constexpr (std::is_same_v<T, double>) {
        return static_cast<T>(generator.bits64() % ((uint64_t{1} << 53) + 1));
      } else if constexpr (std::is_integral_v<T>) {
        const uint64_t bits = sizeof(T) == 8 ? generator.bits64() : generator.bits32();
        return static_cast<T>(bits % (static_cast<uint64_t>(std::numeric_limits<T>::max()) + 1));
      } else {
        constexpr int kDigits = std::is_same_v<T, float> ? 24 : std::is_same_v<T, Half> ? 11 : 8;
        return static_cast<T>(static_cast<float>(generator.bits32() % ((uint64_t{1} << kDigits) + 1)));
      }
    });
  });
  return x;
}

}  // namespace

void draw_positions(const Tensor& weights, const Tensor& positions) {
  const int64_t classes = weights.sizes().back(), samples = positions.sizes().back();
  Generator& generator = ops::current_generator(Device{});
  const auto lock = generator.lock();
  dispatch_floating(weights.dtype(), "multinomial", [&]<class T>() {
    std::vector<T> running(static_cast<size_t>(classes));
    for (int64_t row = 0; row < positions.numel() / samples; ++row) {
      const T* const from = weights.data<T>() + row * classes;
      std::copy(from, from + classes, running.begin());
      for (size_t i = 1; i < running.size(); ++i) running[i] = static_cast<T>(running[i] + running[i - 1]);
      const T total = running.back();
      for (T& sum : running) sum = static_cast<T>(sum / total);
      running.back() = static_cast<T>(1);
      for (int64_t k = 0; k < samples; ++k) {
        const double at = generator.uniform_double();
        const auto found = std::lower_bound(running.begin(), running.end(), at,
                                            [](T sum, double value) { return static_cast<double>(sum) < value; });
        positions.data<int64_t>()[row * samples + k] = found - running.begin();
      }
    }
  });
}

namespace {

IMPL("aten::exponential_", kCPU, fill_exponential);
IMPL("aten::cauchy_", kCPU, fill_cauchy);
IMPL("aten::log_normal_", kCPU, fill_log_normal);
IMPL("aten::geometric_", kCPU, fill_geometric);
IMPL("aten::random_", kCPU, fill_whole);

}  // namespace
}  // namespace tensord::kernels
