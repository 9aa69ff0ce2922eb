// Tensors filled from distributions, and choices by weight.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/ops/op.h"
#include "core/ops/run.h"
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
  Generator& generator = ops::current_generator();
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
  Generator& generator = ops::current_generator();
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
  Generator& generator = ops::current_generator();
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

// Indices by the running sum of the weights, with one uniform number each. Sums have the weights' dtype.
template <class T>
void draw_positions(Generator& generator, const T* weights, int64_t classes, std::span<int64_t> chosen) {
  std::vector<T> running(weights, weights + classes);
  for (size_t i = 1; i < running.size(); ++i) running[i] = static_cast<T>(running[i] + running[i - 1]);
  const T total = running.back();
  for (T& sum : running) sum = static_cast<T>(sum / total);
  running.back() = static_cast<T>(1);
  for (int64_t& position : chosen) {
    const double at = generator.uniform_double();
    const auto found = std::lower_bound(running.begin(), running.end(), at,
                                        [](T sum, double value) { return static_cast<double>(sum) < value; });
    position = found - running.begin();
  }
}

void check_weights(const Tensor& x) {
  const auto holds = [](const Tensor& is_right) { return ops::all(is_right).item_bool(); };
  const Tensor finite = ops::isfinite(x), positive = ops::ge(x, ops::Scalar(0));
  check(holds(finite) && holds(positive), "probability tensor contains either `inf`, `nan` or element < 0");
  const Tensor sums = ops::sum(x, Dims{-1});
  check(holds(ops::gt(sums, ops::Scalar(0))), "invalid multinomial distribution (sum of probabilities <= 0)");
}

Tensor multinomial(const Tensor& x, int64_t samples, bool replacement, const Value&) {
  check(x.ndim() == 1 || x.ndim() == 2, "prob_dist must be 1 or 2 dim");
  check(is_floating(x.dtype()), "multinomial only supports floating-point dtypes for input, got: ", name_of(x.dtype()));
  check(samples > 0, "cannot sample n_sample <= 0 samples");
  const int64_t classes = x.sizes().back(), rows = x.ndim() == 2 ? x.sizes()[0] : 1;
  check(classes < (int64_t{1} << 24), "number of categories cannot exceed 2^24");
  check(replacement || samples <= classes, "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
  const Dims sizes = x.ndim() == 2 ? Dims{rows, samples} : Dims{samples};
  if (x.is_meta()) return Tensor::meta(sizes, DType::kInt64);
  if (rows == 0) return Tensor::empty(sizes, DType::kInt64);
  check_weights(x);
  if (!replacement || samples == 1) {
    // The largest values of weight / exponential number are a draw without replacement.
    const Tensor like = Tensor::empty_strided(x.sizes(), preserved_strides(x.sizes(), x.strides()), x.dtype());
    const Tensor noise = fill_exponential(like, 1, Value());
    const Tensor keys = ops::div(x, noise);
    if (samples == 1) return ops::argmax(keys, int64_t{-1}, true);
    const ops::Op& topk = ops::get_op("aten::topk");
    return ops::run(topk, ops::bind(topk, {keys, samples}))[1].to_tensor();
  }
  const Tensor weights = x.contiguous(), out = Tensor::empty(sizes, DType::kInt64);
  Generator& generator = ops::current_generator();
  const auto lock = generator.lock();
  dispatch_floating(x.dtype(), "multinomial", [&]<class T>() {
    for (int64_t row = 0; row < rows; ++row) {
      draw_positions(generator, weights.data<T>() + row * classes, classes,
                     {out.data<int64_t>() + row * samples, static_cast<size_t>(samples)});
    }
  });
  return out;
}
IMPL("aten::exponential_", kCPU, fill_exponential);
IMPL("aten::cauchy_", kCPU, fill_cauchy);
IMPL("aten::log_normal_", kCPU, fill_log_normal);
IMPL("aten::geometric_", kCPU, fill_geometric);
IMPL("aten::random_", kCPU, fill_whole);
IMPL("aten::multinomial", kCPU, multinomial);

}  // namespace
}  // namespace tensord::kernels
