// Window functions of signal processing, computed as PyTorch does: step by step in the result's dtype.
#include <cmath>

#include "kernels/expr/compose.h"

#include "ops/factory.h"
#include "ops/pointwise.h"
#include "ops/special.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

using compose::Expr;
using ops::Scalar;
using ops::Value;
using OptDType = std::optional<DType>;
using OptDevice = std::optional<Device>;

struct Options {
  OptDType dtype;
  OptDevice device;
};

// A window of `length` points. A periodic one is a window of length + 1 points without the last.
template <class Make>
Tensor window(const char* name, int64_t length, bool is_periodic, const Options& options, Make&& make) {
  const DType type = options.dtype.value_or(DType::kFloat32);
  check(is_floating(type), name, " expects floating point dtypes, got: ", name_of(type));
  check(length >= 0, name, " requires non-negative window_length, got window_length=", length);
  if (length <= 1) return ops::ones(Dims{length}, {.dtype = type, .device = options.device});
  const int64_t points = length + (is_periodic ? 1 : 0);
  const Tensor all = make(ops::arange(Scalar(points), {.dtype = type, .device = options.device}), points);
  return is_periodic ? ops::contiguous(ops::narrow(all, 0, 0, length)) : all;
}

Tensor scaled(const Tensor& x, double factor) { return ops::mul(x, Scalar(factor)); }
Tensor shifted(const Tensor& x, double by) { return ops::add(x, Scalar(by)); }

Tensor hamming(int64_t length, bool is_periodic, double alpha, double beta, const Options& options) {
  return window("hamming_window", length, is_periodic, options, [=](const Tensor& i, int64_t points) {
    const Tensor angle = scaled(i, M_PI * 2.0 / static_cast<double>(points - 1));
    return shifted(scaled(ops::cos(angle), -beta), alpha);
  });
}
Tensor hann(int64_t length, bool is_periodic, const Options& options) {
  return window("hann_window", length, is_periodic, options, [=](const Tensor& i, int64_t) {
    return hamming(i.size(0), false, 0.5, 0.5, {i.dtype(), i.device()});
  });
}
Tensor blackman(int64_t length, bool is_periodic, const Options& options) {
  return window("blackman_window", length, is_periodic, options, [](const Tensor& i, int64_t points) {
    const Tensor angle = scaled(i, M_PI / static_cast<double>(points - 1));
    const Tensor four = scaled(ops::cos(scaled(angle, 4)), 0.08);
    const Tensor two = scaled(ops::cos(scaled(angle, 2)), 0.5);
    return shifted((Expr(four) - Expr(two)).tensor(), 0.42);
  });
}
Tensor bartlett(int64_t length, bool is_periodic, const Options& options) {
  return window("bartlett_window", length, is_periodic, options, [](const Tensor& i, int64_t points) {
    const Tensor rising = scaled(i, 2.0 / static_cast<double>(points - 1));
    const int64_t half = ((points - 1) >> 1) + 1;
    const Tensor left = ops::narrow(rising, 0, 0, half), right = ops::narrow(rising, 0, half, points - half);
    return ops::cat({left, shifted(scaled(right, -1), 2)}, 0);
  });
}

Tensor kaiser(int64_t length, bool is_periodic, double beta, const Options& options) {
  return window("kaiser_window", length, is_periodic, options, [=](const Tensor& i, int64_t points) {
    // In double: i0's exponential would magnify the rounding of the difference.
    const Tensor place = shifted(scaled(i.to(DType::kFloat64), 2.0 / static_cast<double>(points - 1)), -1);
    const Tensor height = ops::clamp_min(shifted(scaled(ops::square(place), -1), 1), Scalar(0));
    const double top = ops::i0(ops::full(Dims{}, beta, {.dtype = DType::kFloat64})).item_double();
    return scaled(ops::i0(scaled(ops::sqrt(height), beta)), 1.0 / top).to(i.dtype());
  });
}

// The overload without `periodic`, which is periodic, and the one with it.
template <class F>
void add_window(const char* name, F make) {
  ops::OpBuilder(concat("aten::", name), __FILE__, __LINE__)
      .impl([make](int64_t length, OptDType dtype, const Value&, OptDevice device, const Value&) {
        return make(length, true, Options{dtype, device});
      });
  ops::OpBuilder(concat("aten::", name, ".periodic"), __FILE__, __LINE__)
      .impl([make](int64_t length, bool is_periodic, OptDType dtype, const Value&, OptDevice device, const Value&) {
        return make(length, is_periodic, Options{dtype, device});
      });
}
[[maybe_unused]] const bool windows_registered = [] {
  add_window("hann_window", hann);
  add_window("blackman_window", blackman);
  add_window("bartlett_window", bartlett);
  add_window("hamming_window", [](int64_t length, bool is_periodic, const Options& options) {
    return hamming(length, is_periodic, 0.54, 0.46, options);
  });
  add_window("kaiser_window", [](int64_t length, bool is_periodic, const Options& options) {
    return kaiser(length, is_periodic, 12.0, options);
  });
  return true;
}();
OP("aten::kaiser_window.beta")
    .impl([](int64_t length, bool is_periodic, double beta, OptDType dtype, const Value&, OptDevice device,
             const Value&) {
      return kaiser(length, is_periodic, beta, {dtype, device});
    });
OP("aten::hamming_window.periodic_alpha")
    .impl([](int64_t length, bool is_periodic, double alpha, OptDType dtype, const Value&, OptDevice device,
             const Value&) {
      return hamming(length, is_periodic, alpha, 0.46, {dtype, device});
    });
OP("aten::hamming_window.periodic_alpha_beta")
    .impl([](int64_t length, bool is_periodic, double alpha, double beta, OptDType dtype, const Value&,
             OptDevice device, const Value&) {
      return hamming(length, is_periodic, alpha, beta, {dtype, device});
    });

}  // namespace
}  // namespace tensord::kernels
