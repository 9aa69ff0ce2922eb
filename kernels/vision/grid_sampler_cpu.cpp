// The loops of grid_sampler: one point of the grid after another, with the same weights for all channels of a point.
#include <array>
#include <cmath>

#include "core/base/parallel.h"
#include "kernels/vision/grid_sampler.h"

namespace tensord::kernels {
namespace {

// A position along one dimension in pixels, and its derivative by the grid's number.
template <class T>
struct Position {
  T at, slope;
};

template <class T>
Position<T> pixel_of(T x, int64_t size, bool align_corners) {
  const T n = static_cast<T>(size);
  return align_corners ? Position<T>{(x + 1) / 2 * (n - 1), (n - 1) / 2} : Position<T>{((x + 1) * n - 1) / 2, n / 2};
}

// Clamps into [0, size - 1]; NaN becomes 0. The derivative is 0 outside.
template <class T>
Position<T> clipped(Position<T> p, int64_t size) {
  const T last = static_cast<T>(size - 1);
  if (!(p.at > 0)) return {0, 0};
  return p.at >= last ? Position<T>{last, 0} : p;
}

// Reflects at low / 2 and high / 2 until the position is between them.
template <class T>
Position<T> reflected(Position<T> p, int64_t twice_low, int64_t twice_high) {
  if (twice_low == twice_high) return {0, 0};
  const T low = static_cast<T>(twice_low) / 2, span = static_cast<T>(twice_high - twice_low) / 2;
  T at = p.at - low, slope = p.slope;
  if (at < 0) {
    at = -at;
    slope = -slope;
  }
  const T rest = std::fmod(at, span);
  const bool is_even = std::fmod(std::floor(at / span), T(2)) == 0;
  return is_even ? Position<T>{rest + low, slope} : Position<T>{span - rest + low, -slope};
}

template <class T>
Position<T> padded(Position<T> p, int64_t size, const GridSampling& how) {
  if (how.padding == GridPadding::kZeros) return p;
  if (how.padding == GridPadding::kReflection) {
    p = how.align_corners ? reflected(p, 0, 2 * (size - 1)) : reflected(p, -1, 2 * size - 1);
  }
  return clipped(p, size);
}

// The pixels that a point reads along one dimension, with their weights and the weights' derivatives.
template <class T>
struct Taps {
  int count = 0;
  std::array<int64_t, 4> pixel{};  // -1: outside
  std::array<T, 4> weight{}, slope{};

  void add(T at, int64_t size, T w, T s) {
    const bool is_inside = at >= 0 && at <= static_cast<T>(size - 1);
    pixel[static_cast<size_t>(count)] = is_inside ? static_cast<int64_t>(at) : -1;
    weight[static_cast<size_t>(count)] = w;
    slope[static_cast<size_t>(count++)] = s;
  }
};

// The weights of Keys' cubic convolution with a = -0.75, for the pixels at -1, 0, 1, 2 around a point at t.
template <class T>
void cubic(T t, std::array<T, 4>& weight, std::array<T, 4>& slope) {
  constexpr T a = T(-0.75);
  const std::array<T, 4> distance{t + 1, t, 1 - t, 2 - t};
  for (size_t i = 0; i < 4; ++i) {
    const T d = distance[i];
    const T sign = i < 2 ? 1 : -1;
    if (i == 0 || i == 3) {
      weight[i] = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
      slope[i] = sign * ((3 * a * d - 10 * a) * d + 8 * a);
    } else {
      weight[i] = ((a + 2) * d - (a + 3)) * d * d + 1;
      slope[i] = sign * ((3 * (a + 2) * d - 2 * (a + 3)) * d);
    }
  }
}

template <class T>
Taps<T> taps_of(T x, int64_t size, const GridSampling& how) {
  Taps<T> taps;
  const Position<T> raw = pixel_of(x, size, how.align_corners);
  if (how.interpolation == Interpolation::kBicubic) {
    const T floor = std::floor(raw.at);
    std::array<T, 4> weight, slope;
    cubic(raw.at - floor, weight, slope);
    for (size_t i = 0; i < 4; ++i) {
      const T at = padded(Position<T>{floor + static_cast<T>(i) - 1, 0}, size, how).at;
      taps.add(at, size, weight[i], slope[i] * raw.slope);
    }
    return taps;
  }
  const Position<T> p = padded(raw, size, how);
  if (how.interpolation == Interpolation::kNearest) {
    taps.add(std::nearbyint(p.at), size, 1, 0);
    return taps;
  }
  const T floor = std::floor(p.at), high = p.at - floor;
  taps.add(floor, size, 1 - high, -p.slope);
  taps.add(floor + 1, size, high, p.slope);
  return taps;
}

// The taps of one point over all dimensions: offsets in a channel's plane, and products of weights. There are 8 in 3
// dimensions, and 16 for bicubic in 2 dimensions.
template <class T, size_t kSpatial>
struct Point {
  int count = 0;
  std::array<int64_t, 16> offset{};  // -1: outside
  std::array<T, 16> weight{};
  std::array<std::array<T, 16>, kSpatial> slope{};  // by the grid's number of each spatial dimension
};

template <class T, size_t kSpatial>
Point<T, kSpatial> point_of(const std::array<Taps<T>, kSpatial>& taps, const std::array<int64_t, kSpatial>& strides) {
  Point<T, kSpatial> point;
  std::array<size_t, kSpatial> at{};
  while (true) {
    const auto k = static_cast<size_t>(point.count++);
    int64_t offset = 0;
    T weight = 1;
    for (size_t d = 0; d < kSpatial; ++d) {
      const int64_t pixel = taps[d].pixel[at[d]];
      offset = pixel < 0 || offset < 0 ? -1 : offset + pixel * strides[d];
      weight *= taps[d].weight[at[d]];
    }
    point.offset[k] = offset;
    point.weight[k] = weight;
    for (size_t d = 0; d < kSpatial; ++d) {
      T slope = taps[d].slope[at[d]];
      for (size_t e = 0; e < kSpatial; ++e) {
        if (e != d) slope *= taps[e].weight[at[e]];
      }
      point.slope[d][k] = slope;
    }
    size_t d = kSpatial;
    while (d > 0 && ++at[d - 1] == static_cast<size_t>(taps[d - 1].count)) at[--d] = 0;
    if (d == 0) return point;
  }
}

// Walks the grid: calls visit(n, point, index of the grid's number 0, offset in the result's plane).
template <class T, size_t kSpatial>
struct GridWalk {
  GridSampling how;
  const Tensor &input, &grid, &out;
  int64_t points = 1;
  std::array<int64_t, kSpatial> sizes, strides;

  GridWalk(const GridSampling& how, const Tensor& input, const Tensor& grid, const Tensor& out)
      : how(how), input(input), grid(grid), out(out) {
    for (size_t d = 0; d < kSpatial; ++d) {
      sizes[d] = input.sizes()[d + 2];
      strides[d] = input.strides()[d + 2];
      points *= out.sizes()[d + 2];
    }
  }

  template <class Visit>
  void walk(int64_t n, int64_t begin, int64_t end, Visit&& visit) const {
    const T* numbers = grid.data<T>() + n * grid.strides()[0];
    for (int64_t i = begin; i < end; ++i) {
      int64_t rest = i, in_grid = 0, in_out = 0;
      for (size_t d = kSpatial; d-- > 0;) {
        const int64_t at = rest % out.sizes()[d + 2];
        rest /= out.sizes()[d + 2];
        in_grid += at * grid.strides()[d + 1];
        in_out += at * out.strides()[d + 2];
      }
      std::array<Taps<T>, kSpatial> taps;
      for (size_t d = 0; d < kSpatial; ++d) {  // x, the last dimension, comes first in the grid
        T x = numbers[in_grid + static_cast<int64_t>(kSpatial - 1 - d) * grid.strides()[kSpatial + 1]];
        taps[d] = taps_of(x, sizes[d], how);
      }
      visit(point_of(taps, strides), in_grid, in_out);
    }
  }
};

template <class T, size_t kSpatial>
void forward(const GridSampling& how, const Tensor& input, const Tensor& grid, const Tensor& out) {
  const GridWalk<T, kSpatial> walk(how, input, grid, out);
  const int64_t channels = input.size(1), in_step = input.stride(1), out_step = out.stride(1);
  parallel_for(out.size(0) * walk.points, std::max<int64_t>(1, 2048 / std::max<int64_t>(channels, 1)),
               [&](int64_t begin, int64_t end) {
                 while (begin < end) {
                   const int64_t n = begin / walk.points, first = begin % walk.points;
                   const int64_t last = std::min(walk.points, first + end - begin);
                   const T* image = input.data<T>() + n * input.strides()[0];
                   T* result = out.data<T>() + n * out.strides()[0];
                   walk.walk(n, first, last, [&](const Point<T, kSpatial>& point, int64_t, int64_t in_out) {
                     for (int64_t c = 0; c < channels; ++c) {
                       T sum = 0;
                       for (size_t k = 0; k < static_cast<size_t>(point.count); ++k) {
                         const T value = point.offset[k] < 0 ? T(0) : image[c * in_step + point.offset[k]];
                         sum += value * point.weight[k];
                       }
                       result[c * out_step + in_out] = sum;
                     }
                   });
                   begin += last - first;
                 }
               });
}

// One thread for each image, since points of one image may add to the same pixels.
template <class T, size_t kSpatial>
void backward(const GridSampling& how, const Tensor& grad, const Tensor& input, const Tensor& grid,
              const Tensor& of_input, const Tensor& of_grid) {
  const GridWalk<T, kSpatial> walk(how, input, grid, grad);
  // Pixels are counted in the input's strides; the gradient is dense.
  GridWalk<T, kSpatial> target = walk;
  if (of_input) {
    for (size_t d = 0; d < kSpatial; ++d) target.strides[d] = of_input.strides()[d + 2];
  }
  const int64_t channels = input.size(1);
  parallel_for(grad.size(0), 1, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      const T* g = grad.data<T>() + n * grad.strides()[0];
      const T* image = input.data<T>() + n * input.strides()[0];
      if (of_input) {
        T* pixels = of_input.data<T>() + n * of_input.strides()[0];
        target.walk(n, 0, walk.points, [&](const Point<T, kSpatial>& point, int64_t, int64_t in_out) {
          for (int64_t c = 0; c < channels; ++c) {
            const T value = g[c * grad.strides()[1] + in_out];
            for (size_t k = 0; k < static_cast<size_t>(point.count); ++k) {
              if (point.offset[k] >= 0) pixels[c * of_input.strides()[1] + point.offset[k]] += value * point.weight[k];
            }
          }
        });
      }
      if (!of_grid) continue;
      T* numbers = of_grid.data<T>() + n * of_grid.strides()[0];
      int64_t index = 0;  // of_grid is dense, and points come in its order
      walk.walk(n, 0, walk.points, [&](const Point<T, kSpatial>& point, int64_t, int64_t in_out) {
        std::array<T, kSpatial> sums{};
        for (int64_t c = 0; c < channels; ++c) {
          const T value = g[c * grad.strides()[1] + in_out];
          for (size_t k = 0; k < static_cast<size_t>(point.count); ++k) {
            if (point.offset[k] < 0) continue;
            const T pixel = image[c * input.strides()[1] + point.offset[k]] * value;
            for (size_t d = 0; d < kSpatial; ++d) sums[d] += pixel * point.slope[d][k];
          }
        }
        for (size_t d = 0; d < kSpatial; ++d)
          numbers[index * static_cast<int64_t>(kSpatial) + static_cast<int64_t>(kSpatial - 1 - d)] = sums[d];
        ++index;
      });
    }
  });
}

template <class Fn>
void with_kind(const Tensor& input, Fn&& fn) {
  const bool is_flat = input.ndim() == 4;
  if (input.dtype() == DType::kFloat32) {
    is_flat ? fn.template operator()<float, 2>() : fn.template operator()<float, 3>();
  } else {
    is_flat ? fn.template operator()<double, 2>() : fn.template operator()<double, 3>();
  }
}

}  // namespace

void grid_sample(const GridSampling& how, const Tensor& input, const Tensor& grid, const Tensor& out) {
  if (out.device().kind == kCUDA) return grid_sample_cuda(how, input, grid, out);
  with_kind(input, [&]<class T, size_t kSpatial>() { forward<T, kSpatial>(how, input, grid, out); });
}

void grid_sample_backward(const GridSampling& how, const Tensor& grad, const Tensor& input, const Tensor& grid,
                          const Tensor& of_input, const Tensor& of_grid) {
  if (grad.device().kind == kCUDA) return grid_sample_backward_cuda(how, grad, input, grid, of_input, of_grid);
  with_kind(input,
            [&]<class T, size_t kSpatial>() { backward<T, kSpatial>(how, grad, input, grid, of_input, of_grid); });
}

}  // namespace tensord::kernels
