#include <cmath>

#include "core/base/parallel.h"
#include "kernels/detection/deform_conv.h"

namespace tensord::kernels {
namespace {

// A position in a plane and the four pixels around it. Pixels outside count as 0.
template <class T>
struct Corners {
  int64_t y, x;                 // the pixel above and to the left
  T below, right;               // how far the position is from it
  bool top, bottom, left, end;  // which rows and columns are inside

  Corners(T at_y, T at_x, int64_t height, int64_t width)
      : y(static_cast<int64_t>(std::floor(at_y))),
        x(static_cast<int64_t>(std::floor(at_x))),
        below(at_y - static_cast<T>(y)),
        right(at_x - static_cast<T>(x)),
        top(y >= 0 && y < height),
        bottom(y + 1 >= 0 && y + 1 < height),
        left(x >= 0 && x < width),
        end(x + 1 >= 0 && x + 1 < width) {}

  // Calls visit(offset in the plane, weight, slope by y, slope by x).
  template <class Visit>
  void visit(int64_t width, Visit&& visit) const {
    const int64_t at = y * width + x;
    if (top && left) visit(at, (1 - below) * (1 - right), -(1 - right), -(1 - below));
    if (top && end) visit(at + 1, (1 - below) * right, -right, 1 - below);
    if (bottom && left) visit(at + width, below * (1 - right), 1 - right, -below);
    if (bottom && end) visit(at + width + 1, below * right, right, below);
  }
};

template <class T>
struct Sampler {
  const DeformGeometry& g;
  const T *offset, *mask;  // mask: null where there is none
  int64_t height, width;

  // Calls visit(index of offset y in its tensor, index of mask, tap, place, y, x) for image n and offset group `group`.
  template <class Visit>
  void walk(int64_t n, int64_t group, Visit&& visit) const {
    const int64_t taps = g.taps(), places = g.places(), first = (n * g.offset_groups + group) * taps;
    for (int64_t tap = 0; tap < taps; ++tap) {
      const int64_t row = tap / g.kernel[1], column = tap % g.kernel[1];
      const int64_t of_y = (first + tap) * 2 * places, of_mask = (first + tap) * places;
      for (int64_t place = 0; place < places; ++place) {
        const int64_t top = place / g.out[1] * g.stride[0] - g.padding[0] + row * g.dilation[0];
        const int64_t left = place % g.out[1] * g.stride[1] - g.padding[1] + column * g.dilation[1];
        visit(of_y + place, of_mask + place, tap, place, static_cast<T>(top) + offset[of_y + place],
              static_cast<T>(left) + offset[of_y + places + place]);
      }
    }
  }
  T weight_of(int64_t index) const { return mask ? mask[index] : T(1); }
  // Positions more than one pixel outside of the image read 0; a NaN reads NaN.
  bool is_beyond(T y, T x) const {
    return y <= -1 || y >= static_cast<T>(height) || x <= -1 || x >= static_cast<T>(width);
  }
  bool is_near(T y, T x) const { return !is_beyond(y, x) && !std::isnan(y + x); }
};

template <class T>
Sampler<T> sampler_of(const DeformGeometry& g, const Tensor& input, const Tensor& offset, const Tensor& mask) {
  return {g, offset.data<T>(), mask.defined() ? mask.data<T>() : nullptr, input.size(2), input.size(3)};
}

template <class T>
void forward(const DeformGeometry& g, const Tensor& input, const Tensor& offset, const Tensor& mask,
             const Tensor& columns) {
  const Sampler<T> sampler = sampler_of<T>(g, input, offset, mask);
  const int64_t channels = input.size(1), in_group = channels / g.offset_groups, plane = sampler.height * sampler.width;
  parallel_for(input.size(0) * channels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at) {
      const int64_t n = at / channels, c = at % channels;
      const T* pixels = input.data<T>() + at * plane;
      T* rows = columns.data<T>() + at * g.taps() * g.places();
      sampler.walk(n, c / in_group, [&](int64_t, int64_t of_mask, int64_t tap, int64_t place, T y, T x) {
        T value = 0;
        if (sampler.is_near(y, x)) {
          Corners<T>(y, x, sampler.height, sampler.width).visit(sampler.width, [&](int64_t pixel, T weight, T, T) {
            value += weight * pixels[pixel];
          });
        } else if (!sampler.is_beyond(y, x)) {
          value = y + x;
        }
        rows[tap * g.places() + place] = sampler.weight_of(of_mask) * value;
      });
    }
  });
}

template <class T>
void backward_of_input(const DeformGeometry& g, const Sampler<T>& sampler, const Tensor& grad, const Tensor& of_input) {
  const int64_t channels = of_input.size(1), in_group = channels / g.offset_groups,
                plane = sampler.height * sampler.width;
  parallel_for(of_input.size(0) * channels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at) {
      const T* rows = grad.data<T>() + at * g.taps() * g.places();
      T* pixels = of_input.data<T>() + at * plane;
      sampler.walk(
          at / channels, at % channels / in_group, [&](int64_t, int64_t of_mask, int64_t tap, int64_t place, T y, T x) {
            if (!sampler.is_near(y, x)) return;
            const T value = rows[tap * g.places() + place] * sampler.weight_of(of_mask);
            Corners<T>(y, x, sampler.height, sampler.width).visit(sampler.width, [&](int64_t pixel, T weight, T, T) {
              pixels[pixel] += weight * value;
            });
          });
    }
  });
}

// The channels of an offset group share its offsets and its mask, so one thread handles the whole group.
template <class T>
void backward_of_places(const DeformGeometry& g, const Sampler<T>& sampler, const Tensor& grad, const Tensor& input,
                        T* of_offset, T* of_mask) {
  const int64_t channels = input.size(1), in_group = channels / g.offset_groups, plane = sampler.height * sampler.width;
  parallel_for(input.size(0) * g.offset_groups, 1, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at) {
      const int64_t n = at / g.offset_groups, group = at % g.offset_groups;
      sampler.walk(n, group, [&](int64_t in_offset, int64_t in_mask, int64_t tap, int64_t place, T y, T x) {
        if (!(std::abs(y) < T(1 << 30) && std::abs(x) < T(1 << 30))) return;
        const Corners<T> corners(y, x, sampler.height, sampler.width);
        const bool is_near = sampler.is_near(y, x);
        T by_y = 0, by_x = 0, by_mask = 0;
        for (int64_t c = group * in_group; c < (group + 1) * in_group; ++c) {
          const T value = grad.data<T>()[((n * channels + c) * g.taps() + tap) * g.places() + place];
          const T* pixels = input.data<T>() + (n * channels + c) * plane;
          corners.visit(sampler.width, [&](int64_t pixel, T weight, T slope_y, T slope_x) {
            by_y += value * slope_y * pixels[pixel];
            by_x += value * slope_x * pixels[pixel];
            if (is_near) by_mask += value * weight * pixels[pixel];
          });
        }
        if (of_offset) {
          of_offset[in_offset] += by_y * sampler.weight_of(in_mask);
          of_offset[in_offset + g.places()] += by_x * sampler.weight_of(in_mask);
        }
        if (of_mask) of_mask[in_mask] += by_mask;
      });
    }
  });
}

template <class T>
void backward(const DeformGeometry& g, const Tensor& grad, const Tensor& input, const Tensor& offset,
              const Tensor& mask, const Tensor& of_input, const Tensor& of_offset, const Tensor& of_mask) {
  const Sampler<T> sampler = sampler_of<T>(g, input, offset, mask);
  if (of_input.defined()) backward_of_input(g, sampler, grad, of_input);
  if (!of_offset.defined() && !of_mask.defined()) return;
  backward_of_places(g, sampler, grad, input, of_offset.defined() ? of_offset.data<T>() : nullptr,
                     of_mask.defined() ? of_mask.data<T>() : nullptr);
}

}  // namespace

void deform_columns(const DeformGeometry& geometry, const Tensor& input, const Tensor& offset, const Tensor& mask,
                    const Tensor& columns) {
  if (input.device().kind == kCUDA) return deform_columns_cuda(geometry, input, offset, mask, columns);
  input.dtype() == DType::kFloat32 ? forward<float>(geometry, input, offset, mask, columns)
                                   : forward<double>(geometry, input, offset, mask, columns);
}

void deform_columns_backward(const DeformGeometry& geometry, const Tensor& grad, const Tensor& input,
                             const Tensor& offset, const Tensor& mask, const Tensor& of_input, const Tensor& of_offset,
                             const Tensor& of_mask) {
  if (input.device().kind == kCUDA)
    return deform_columns_backward_cuda(geometry, grad, input, offset, mask, of_input, of_offset, of_mask);
  input.dtype() == DType::kFloat32
      ? backward<float>(geometry, grad, input, offset, mask, of_input, of_offset, of_mask)
      : backward<double>(geometry, grad, input, offset, mask, of_input, of_offset, of_mask);
}

}  // namespace tensord::kernels
