// Counts of events, drawn in the same order as PyTorch.
#include <array>
#include <cmath>

#include "core/ops/generator.h"
#include "core/ops/op.h"
#include "core/ops/run.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

using ops::Generator;
using ops::KernelContext;
using ops::Value;

// Small rates: multiplies uniform numbers until the product is below exp(-rate). Large rates: Hörmann's transformed
// rejection (PTRS, 1993).
int64_t draw_poisson(double rate, Generator& generator) {
  if (rate == 0) return 0;
  if (rate < 10) {
    const double limit = std::exp(-rate);
    int64_t count = 0;
    for (double product = generator.uniform_double(); product > limit; ++count) product *= generator.uniform_double();
    return count;
  }
  const double b = 0.931 + 2.53 * std::sqrt(rate), a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), accepted = 0.9277 - 3.6224 / (b - 2);
  for (;;) {
    const double u = generator.uniform_double() - 0.5, v = generator.uniform_double(), us = 0.5 - std::abs(u);
    const double k = std::floor((2 * a / us + b) * u + rate + 0.43);
    if (us >= 0.07 && v <= accepted) return static_cast<int64_t>(k);
    if (k < 0 || (us < 0.013 && v > us)) continue;
    const double left = std::log(v) + std::log(inverse_alpha) - std::log(a / (us * us) + b);
    if (left <= -rate + k * std::log(rate) - std::lgamma(k + 1)) return static_cast<int64_t>(k);
  }
}

void poisson(const KernelContext&, const Tensor& rates, const Value&, Tensor& out) {
  const Tensor in = rates.contiguous();
  Generator& generator = ops::current_generator(Device{});
  const auto lock = generator.lock();
  dispatch_floating(in.dtype(), "poisson", [&]<class T>() {
    for (int64_t i = 0; i < in.numel(); ++i) {
      const auto rate = static_cast<double>(in.data<T>()[i]);
      check(rate >= 0 && rate < 1e15, "invalid Poisson rate, expected rate to be non-negative and finite, got ", rate);
      out.data<T>()[i] = static_cast<T>(static_cast<double>(draw_poisson(rate, generator)));
    }
  });
}

// The error of Stirling's formula for the logarithm of k!.
template <class T>
T stirling_rest(T k) {
  constexpr std::array<double, 10> kFirst = {
      0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509, 0.0166446911898211,
      0.0138761288230707, 0.0118967099458917, 0.0104112652619720, 0.00925546218271273, 0.00833056343336287};
  if (k <= 9) return static_cast<T>(kFirst[static_cast<size_t>(k)]);
  const T square = (k + 1) * (k + 1);
  return static_cast<T>((1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1));
}

// Small counts: sums of geometric steps. Large counts: Hörmann's transformed rejection (BTRS, 1993). p is at most one
// half.
template <class T>
T draw_few(T count, T p, Generator& generator) {
  const T log_q = std::log1p(-p);
  T steps = 0;
  for (T found = 0;; ++found) {
    const T u = static_cast<T>(generator.uniform_double());
    steps += std::ceil(std::log(u) / log_q);
    if (steps > count) return found;
  }
}
template <class T>
T draw_many(T count, T p, Generator& generator) {
  const T deviation = std::sqrt(count * p * (1 - p));
  const T b = static_cast<T>(1.15 + 2.53 * deviation), a = static_cast<T>(-0.0873 + 0.0248 * b + 0.01 * p);
  const T c = static_cast<T>(count * p + 0.5), accepted = static_cast<T>(0.92 - 4.2 / b), odds = p / (1 - p);
  const T alpha = static_cast<T>((2.83 + 5.1 / b) * deviation), middle = std::floor((count + 1) * p);
  for (;;) {
    const T u = static_cast<T>(generator.uniform_double() - 0.5);
    const T v = static_cast<T>(generator.uniform_double());
    const T us = static_cast<T>(0.5 - std::abs(u));
    const T k = std::floor((2 * a / us + b) * u + c);
    if (us >= 0.07 && v <= accepted) return k;
    if (k < 0 || k > count) continue;
    const T left = std::log(v * alpha / (a / (us * us) + b));
    const T right = static_cast<T>((middle + 0.5) * std::log((middle + 1) / (odds * (count - middle + 1))) +
                                   (count + 1) * std::log((count - middle + 1) / (count - k + 1)) +
                                   (k + 0.5) * std::log(odds * (count - k + 1) / (k + 1)) + stirling_rest(middle) +
                                   stirling_rest(count - middle) - stirling_rest(k) - stirling_rest(count - k));
    if (left <= right) return k;
  }
}
template <class T>
T draw_binomial(T count, T p, Generator& generator) {
  if (count <= 0 || p <= 0) return 0;
  if (p >= 1) return count;
  const bool is_turned = p > 0.5;
  const T q = is_turned ? 1 - p : p;
  const T found = count * q >= 10 ? draw_many(count, q, generator) : draw_few(count, q, generator);
  return is_turned ? count - found : found;
}

void binomial(const KernelContext&, const Tensor& count, const Tensor& prob, const Value&, Tensor& out) {
  const Tensor counts = ops::expand(count, out.sizes()).contiguous();
  const Tensor chances = ops::expand(prob, out.sizes()).contiguous();
  Generator& generator = ops::current_generator(Device{});
  const auto lock = generator.lock();
  const auto draw = [&]<class T>() {
    for (int64_t i = 0; i < out.numel(); ++i) {
      const T n = counts.data<T>()[i], p = chances.data<T>()[i];
      check(n < 1e15 && p >= 0 && p <= 1, "binomial: expected a finite count and a chance between 0 and 1, got ", n,
            " and ", p);
      out.data<T>()[i] = draw_binomial(n, p, generator);
    }
  };
  out.dtype() == DType::kFloat32 ? draw.operator()<float>() : draw.operator()<double>();
}

IMPL("aten::poisson", kCPU, poisson);
IMPL("aten::binomial", kCPU, binomial);

}  // namespace
}  // namespace tensord::kernels
