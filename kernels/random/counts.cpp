// Counts of events, drawn as PyTorch draws them.
#include <array>
#include <cmath>

#include "core/ops/op.h"
#include "core/ops/run.h"
#include "kernels/random/random.h"

namespace tensord::kernels {
namespace {

using ops::Generator;
using ops::Value;

// Few events: uniform numbers are multiplied until the product is below exp(-rate). Many: Hörmann's transformed
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
OP("aten::poisson(Tensor self, Generator? generator=None) -> Tensor")
    .direct([](const Tensor& rates, const Value&) {
      check(is_floating(rates.dtype()), "poisson: not implemented for ", name_of(rates.dtype()));
      if (rates.is_meta()) return Tensor::meta(rates.sizes(), rates.dtype());
      const Tensor in = rates.contiguous(), out = Tensor::empty(rates.sizes(), rates.dtype());
      Generator& generator = ops::current_generator();
      const auto lock = generator.lock();
      dispatch_floating(in.dtype(), "poisson", [&]<class T>() {
        for (int64_t i = 0; i < in.numel(); ++i) {
          const auto rate = static_cast<double>(in.data<T>()[i]);
          check(rate >= 0 && rate < 1e15, "invalid Poisson rate, expected rate to be non-negative and finite, got ",
                rate);
          out.data<T>()[i] = static_cast<T>(static_cast<double>(draw_poisson(rate, generator)));
        }
      });
      return out;
    })
    .gradient(kZeroGradient)
    .saves("")
    .random();

// What Stirling's formula lacks of the logarithm of k!.
template <class T>
T stirling_rest(T k) {
  constexpr std::array<double, 10> kFirst = {
      0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509, 0.0166446911898211,
      0.0138761288230707, 0.0118967099458917, 0.0104112652619720, 0.00925546218271273, 0.00833056343336287};
  if (k <= 9) return static_cast<T>(kFirst[static_cast<size_t>(k)]);
  const T square = (k + 1) * (k + 1);
  return static_cast<T>((1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1));
}

// Few: sums of geometric steps. Many: Hörmann's transformed rejection (BTRS, 1993). p is at most a half.
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
OP("aten::binomial(Tensor count, Tensor prob, Generator? generator=None) -> Tensor")
    .direct([](const Tensor& count, const Tensor& prob, const Value&) {
      const DType dtype = count.dtype();
      check(dtype == DType::kFloat32 || dtype == DType::kFloat64, "binomial only supports floating-point dtypes for ",
            "count, got: ", name_of(dtype));
      check(prob.dtype() == dtype, "Found dtype ", name_of(prob.dtype()), " but expected ", name_of(dtype));
      const Dims sizes = broadcast_sizes(count.sizes(), prob.sizes());
      if (count.is_meta() || prob.is_meta()) return Tensor::meta(sizes, dtype);
      const Tensor counts = ops::call("aten::expand", count, sizes).contiguous();
      const Tensor chances = ops::call("aten::expand", prob, sizes).contiguous();
      const Tensor out = Tensor::empty(sizes, dtype);
      Generator& generator = ops::current_generator();
      const auto lock = generator.lock();
      const auto draw = [&]<class T>() {
        for (int64_t i = 0; i < out.numel(); ++i) {
          const T n = counts.data<T>()[i], p = chances.data<T>()[i];
          check(n < 1e15 && p >= 0 && p <= 1, "binomial: expected a finite count and a chance between 0 and 1, got ", n,
                " and ", p);
          out.data<T>()[i] = draw_binomial(n, p, generator);
        }
      };
      dtype == DType::kFloat32 ? draw.operator()<float>() : draw.operator()<double>();
      return out;
    })
    .gradient(kZeroGradient)
    .saves("")
    .random();

// Functional forms, as exported programs have them: numbers of the shape and type of `self`.
#define FUNCTIONAL(NAME, OVERLOAD, TEXT, PARAMETERS, ...)                                               \
  OP("aten::" NAME OVERLOAD "(Tensor self, " TEXT ") -> Tensor")                                        \
      .direct([] PARAMETERS {                                                                           \
        return ops::call("aten::" NAME "_" OVERLOAD, ops::call("aten::empty_like", self), __VA_ARGS__); \
      })                                                                                                \
      .gradient(kZeroGradient)                                                                          \
      .saves("")                                                                                        \
      .runs(ops::Way::kComposite)                                                                       \
      .random();
#define TWO(NAME, A, B)                                                          \
  FUNCTIONAL(NAME, "", "float " A ", float " B ", *, Generator? generator=None", \
             (const Tensor& self, double a, double b, const Value& generator), a, b, generator)
TWO("uniform", "from=0.", "to=1.")
TWO("cauchy", "median=0.", "sigma=1.")
TWO("log_normal", "mean=1.", "std=2.")
#undef TWO
FUNCTIONAL("exponential", "", "float lambd=1., *, Generator? generator=None",
           (const Tensor& self, double rate, const Value& generator), rate, generator)
FUNCTIONAL("geometric", "", "float p, *, Generator? generator=None",
           (const Tensor& self, double p, const Value& generator), p, generator)
FUNCTIONAL("random", "", "*, Generator? generator=None", (const Tensor& self, const Value& generator), generator)
FUNCTIONAL("random", ".from", "int from, int? to, *, Generator? generator=None",
           (const Tensor& self, int64_t from, std::optional<int64_t> to, const Value& generator), from, to, generator)
FUNCTIONAL("random", ".to", "int to, *, Generator? generator=None",
           (const Tensor& self, int64_t to, const Value& generator), to, generator)
#undef FUNCTIONAL
OP("aten::normal_functional(Tensor self, float mean=0., float std=1., *, Generator? generator=None) -> Tensor")
    .direct([](const Tensor& self, double mean, double deviation, const Value& generator) {
      return ops::call("aten::normal_", ops::call("aten::empty_like", self), mean, deviation, generator);
    })
    .gradient(kZeroGradient)
    .saves("")
    .runs(ops::Way::kComposite)
    .random();

}  // namespace
}  // namespace tensord::kernels
