// The taps and weights of each mode of upsampling along one dimension.
#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "kernels/vision/upsample.h"

namespace tensord::kernels {
namespace {

// For one axis; far more than any image needs.
constexpr int64_t kMaxTaps = int64_t{1} << 26;

// C is the type in which positions are computed: PyTorch's rounding depends on it.
template <class C>
C step_of(const ResampleRule& r, size_t i, int64_t in, int64_t out) {
  if (r.align_corners) return out > 1 ? static_cast<C>(in - 1) / static_cast<C>(out - 1) : C(0);
  const std::optional<double> scale = r.scales[i];
  if (!scale || !(*scale > 0)) return static_cast<C>(in) / static_cast<C>(out);
  check(*scale > 1e-9, "upsample: scale factor ", *scale, " is out of range");  // positions must fit an int64
  return static_cast<C>(1.0 / *scale);
}

template <class C>
C position(const ResampleRule& r, C step, int64_t i) {
  if (r.align_corners) return step * static_cast<C>(i);
  return step * (static_cast<C>(i) + C(0.5)) - C(0.5);
}

void nearest_axis(const ResampleRule& r, size_t dim, int64_t in, int64_t out, ResampleAxis& axis) {
  const float step = step_of<float>(r, dim, in, out);
  const float shift = r.mode == ResampleMode::kNearestExact ? 0.5f : 0.0f;
  for (int64_t i = 0; i < out; ++i) {
    axis.index.push_back(std::min(static_cast<int64_t>(std::floor((static_cast<float>(i) + shift) * step)), in - 1));
    axis.weight.push_back(1);
  }
}

template <class C>
void linear_axis(const ResampleRule& r, size_t dim, int64_t in, int64_t out, ResampleAxis& axis) {
  axis.taps = 2;
  const C step = step_of<C>(r, dim, in, out);
  for (int64_t i = 0; i < out; ++i) {
    const C at = std::max(position(r, step, i), C(0));
    const int64_t low = std::min(static_cast<int64_t>(at), in - 1);
    const C part = std::min(std::max(at - static_cast<C>(low), C(0)), C(1));
    axis.index.insert(axis.index.end(), {low, low + (low < in - 1 ? 1 : 0)});
    axis.weight.insert(axis.weight.end(), {static_cast<double>(C(1) - part), static_cast<double>(part)});
  }
}

// The cubic convolution kernel with a = -0.75 at the distances 1 + t, t, 1 - t, 2 - t.
template <class C>
void cubic_axis(const ResampleRule& r, size_t dim, int64_t in, int64_t out, ResampleAxis& axis) {
  axis.taps = 4;
  const C step = step_of<C>(r, dim, in, out), a = C(-0.75);
  const auto near = [a](C x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
  const auto far = [a](C x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
  for (int64_t i = 0; i < out; ++i) {
    const C at = position(r, step, i);
    const C base = std::floor(at), t = std::min(std::max(at - base, C(0)), C(1));
    const C weights[] = {far(t + 1), near(t), near(1 - t), far(2 - t)};
    for (int64_t k = 0; k < 4; ++k) {
      axis.index.push_back(std::clamp<int64_t>(static_cast<int64_t>(base) - 1 + k, 0, in - 1));
      axis.weight.push_back(static_cast<double>(weights[k]));
    }
  }
}

// Pillow's filters, by the distance from the center in pixels of the coarser image.
template <class C>
C antialias_weight(bool is_cubic, C distance) {
  const C x = std::abs(distance), a = C(-0.5);
  if (!is_cubic) return x < 1 ? 1 - x : C(0);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : C(0);
}

// Where an image shrinks, the filter widens by the same factor; its weights sum to 1.
template <class C>
void antialias_axis(const ResampleRule& r, size_t dim, int64_t in, int64_t out, ResampleAxis& axis) {
  const bool is_cubic = r.mode == ResampleMode::kCubicAntialias;
  const C step = step_of<C>(r, dim, in, out), stretch = std::max(step, C(1)), support = C(is_cubic ? 2 : 1) * stretch;
  const auto pixel = [in](C at) { return static_cast<int64_t>(std::clamp(at, C(0), static_cast<C>(in))); };
  axis.taps = static_cast<int64_t>(std::min(std::ceil(support) * 2 + 1, static_cast<C>(in)));
  check(out <= kMaxTaps / axis.taps, "upsample: a scale factor is out of range");
  for (int64_t i = 0; i < out; ++i) {
    const C center = step * (static_cast<C>(i) + C(0.5));
    const int64_t first = pixel(center - support + C(0.5)), last = pixel(center + support + C(0.5));
    std::vector<C> weights(static_cast<size_t>(axis.taps), C(0));
    C total = 0;
    for (int64_t k = 0; k < std::min(last - first, axis.taps); ++k) {
      weights[k] = antialias_weight(is_cubic, (static_cast<C>(k + first) - center + C(0.5)) / stretch);
      total += weights[k];
    }
    for (int64_t k = 0; k < axis.taps; ++k) {
      axis.index.push_back(std::min(first + k, in - 1));
      axis.weight.push_back(static_cast<double>(total != 0 ? weights[k] / total : weights[k]));
    }
  }
}

}  // namespace

Resampling make_resampling(const ResampleRule& r, const Tensor& input, const Tensor& out) {
  std::array<ResampleAxis, 3> axes;
  const auto spatial = static_cast<size_t>(input.ndim() - 2);
  const size_t lead = 3 - spatial;
  for (size_t i = 0; i < lead; ++i) axes[i] = {1, {0}, {1}};
  const bool is_double = input.dtype() == DType::kFloat64;
  for (size_t i = 0; i < spatial; ++i) {
    const int64_t in = input.sizes()[i + 2], to = out.sizes()[i + 2];
    ResampleAxis& axis = axes[lead + i];
    switch (r.mode) {
      case ResampleMode::kNearest:
      case ResampleMode::kNearestExact: nearest_axis(r, i, in, to, axis); break;
      case ResampleMode::kLinear:
        is_double ? linear_axis<double>(r, i, in, to, axis) : linear_axis<float>(r, i, in, to, axis);
        break;
      case ResampleMode::kLinearAntialias:
      case ResampleMode::kCubicAntialias:
        is_double ? antialias_axis<double>(r, i, in, to, axis) : antialias_axis<float>(r, i, in, to, axis);
        break;
      case ResampleMode::kCubic:
        is_double ? cubic_axis<double>(r, i, in, to, axis) : cubic_axis<float>(r, i, in, to, axis);
        break;
    }
  }
  return {std::move(axes), spatial, input, out};
}

}  // namespace tensord::kernels
