// Columns of images: im2col, col2im, and those of deformable convolutions with their backward.
#include "kernels/cuda/atomics.cuh"
#include "kernels/cuda/plugin/table.h"

namespace tensord::kernels {
namespace {

using namespace cuda;

template <class Word>
__global__ void im2col_kernel(const __grid_constant__ ColumnsJob job) {
  const int64_t places = job.places[0] * job.places[1], taps = job.kernel[0] * job.kernel[1];
  for (int64_t i = thread_index(); i < job.planes * taps * places; i += thread_count()) {
    const int64_t place = i % places, tap = i / places % taps, plane = i / places / taps;
    const int64_t y = place / job.places[1] * job.stride[0] + tap / job.kernel[1] * job.dilation[0] - job.padding[0];
    const int64_t x = place % job.places[1] * job.stride[1] + tap % job.kernel[1] * job.dilation[1] - job.padding[1];
    const bool is_inside = y >= 0 && y < job.image[0] && x >= 0 && x < job.image[1];
    Word word{};
    if (is_inside) word = pointer<Word>(job.from)[(plane * job.image[0] + y) * job.image[1] + x];
    pointer<Word>(job.to)[i] = word;
  }
}

// One thread for each pixel, which adds its taps.
template <class T>
__global__ void col2im_kernel(const __grid_constant__ ColumnsJob job) {
  const int64_t places = job.places[0] * job.places[1], taps = job.kernel[0] * job.kernel[1];
  for (int64_t i = thread_index(); i < job.planes * job.image[0] * job.image[1]; i += thread_count()) {
    const int64_t x = i % job.image[1], y = i / job.image[1] % job.image[0], plane = i / job.image[1] / job.image[0];
    T sum = 0;
    for (int64_t tap = 0; tap < taps; ++tap) {
      const int64_t down = y + job.padding[0] - tap / job.kernel[1] * job.dilation[0];
      const int64_t right = x + job.padding[1] - tap % job.kernel[1] * job.dilation[1];
      const int64_t row = down / job.stride[0], column = right / job.stride[1];
      const bool is_place = down >= 0 && right >= 0 && row * job.stride[0] == down && column * job.stride[1] == right;
      if (!is_place || row >= job.places[0] || column >= job.places[1]) continue;
      const int64_t from = (plane * taps + tap) * places + row * job.places[1] + column;
      sum += load_element<T>(pointer<void>(job.from), job.dtype, from);
    }
    store_element(pointer<void>(job.to), job.dtype, i, sum);
  }
}

struct Wide {
  uint64_t low, high;
};
void launch_im2col(const ColumnsJob& job, StreamHandle stream) {
  const int64_t numel = job.planes * job.kernel[0] * job.kernel[1] * job.places[0] * job.places[1];
  auto* const kernel = job.width == 1   ? im2col_kernel<uint8_t>
                       : job.width == 2 ? im2col_kernel<uint16_t>
                       : job.width == 4 ? im2col_kernel<uint32_t>
                       : job.width == 8 ? im2col_kernel<uint64_t>
                                        : im2col_kernel<Wide>;
  launch(kernel, dim3(blocks_for(numel, 128)), dim3(128), 0, stream, job);
}

// --- deformable convolutions, as in kernels/detection/deform_conv_cpu.cpp

__device__ __forceinline__ float floor_at(float x) { return ::floorf(x); }
__device__ __forceinline__ double floor_at(double x) { return ::floor(x); }
__device__ __forceinline__ float size_at(float x) { return ::fabsf(x); }
__device__ __forceinline__ double size_at(double x) { return ::fabs(x); }

// A position in a plane: calls visit(offset in the plane, weight, derivative by y, derivative by x) for the pixels
// around it.
template <class T, class Visit>
__device__ __forceinline__ void visit_corners(T at_y, T at_x, int64_t height, int64_t width, const Visit& visit) {
  const int64_t y = static_cast<int64_t>(floor_at(at_y)), x = static_cast<int64_t>(floor_at(at_x));
  const T below = at_y - static_cast<T>(y), right = at_x - static_cast<T>(x);
  const bool top = y >= 0 && y < height, bottom = y + 1 >= 0 && y + 1 < height, left = x >= 0 && x < width,
             end = x + 1 >= 0 && x + 1 < width;
  const int64_t at = y * width + x;
  if (top && left) visit(at, (1 - below) * (1 - right), -(1 - right), -(1 - below));
  if (top && end) visit(at + 1, (1 - below) * right, -right, 1 - below);
  if (bottom && left) visit(at + width, below * (1 - right), 1 - right, -below);
  if (bottom && end) visit(at + width + 1, below * right, right, below);
}

// The position that a tap of a place reads.
template <class T>
struct DeformSpot {
  int64_t n, group, tap, place, in_offset, in_mask;
  T y, x, weight;
  bool is_beyond, is_near;  // positions more than one pixel outside of the image read 0; a NaN reads NaN

  __device__ __forceinline__ DeformSpot(const DeformJob& job, int64_t image, int64_t of_group, int64_t of_tap,
                                        int64_t of_place)
      : n(image), group(of_group), tap(of_tap), place(of_place) {
    const int64_t taps = job.kernel[0] * job.kernel[1], places = job.out[0] * job.out[1];
    const int64_t row = (n * job.offset_groups + group) * taps + tap;
    in_offset = row * 2 * places + place;
    in_mask = row * places + place;
    const int64_t top = place / job.out[1] * job.stride[0] - job.padding[0] + tap / job.kernel[1] * job.dilation[0];
    const int64_t left = place % job.out[1] * job.stride[1] - job.padding[1] + tap % job.kernel[1] * job.dilation[1];
    y = static_cast<T>(top) + pointer<T>(job.offset)[in_offset];
    x = static_cast<T>(left) + pointer<T>(job.offset)[in_offset + places];
    weight = job.mask.at ? pointer<T>(job.mask)[in_mask] : T(1);
    is_beyond = y <= -1 || y >= static_cast<T>(job.image[0]) || x <= -1 || x >= static_cast<T>(job.image[1]);
    is_near = !is_beyond && y + x == y + x;
  }
};

template <class T>
__global__ void deform_kernel(const __grid_constant__ DeformJob job) {
  const int64_t taps = job.kernel[0] * job.kernel[1], places = job.out[0] * job.out[1];
  const int64_t plane = job.image[0] * job.image[1], in_group = job.channels / job.offset_groups;
  for (int64_t i = thread_index(); i < job.images * job.channels * taps * places; i += thread_count()) {
    const int64_t at = i / places / taps, c = at % job.channels;
    const DeformSpot<T> spot(job, at / job.channels, c / in_group, i / places % taps, i % places);
    if (job.is_backward) {
      if (!spot.is_near) continue;
      const T value = pointer<T>(job.columns)[i] * spot.weight;
      T* const pixels = pointer<T>(job.of_input) + at * plane;
      visit_corners(spot.y, spot.x, job.image[0], job.image[1],
                    [&](int64_t pixel, T weight, T, T) { atomicAdd(pixels + pixel, weight * value); });
      continue;
    }
    T value = 0;
    const T* const pixels = pointer<T>(job.input) + at * plane;
    if (spot.is_near)
      visit_corners(spot.y, spot.x, job.image[0], job.image[1],
                    [&](int64_t pixel, T weight, T, T) { value += weight * pixels[pixel]; });
    else if (!spot.is_beyond)
      value = spot.y + spot.x;
    pointer<T>(job.columns)[i] = spot.weight * value;
  }
}

// One thread for each tap of each place, over the channels of its offset group.
template <class T>
__global__ void deform_places_kernel(const __grid_constant__ DeformJob job) {
  const int64_t taps = job.kernel[0] * job.kernel[1], places = job.out[0] * job.out[1];
  const int64_t plane = job.image[0] * job.image[1], in_group = job.channels / job.offset_groups;
  for (int64_t i = thread_index(); i < job.images * job.offset_groups * taps * places; i += thread_count()) {
    const int64_t row = i / places / taps;
    const DeformSpot<T> spot(job, row / job.offset_groups, row % job.offset_groups, i / places % taps, i % places);
    if (!(size_at(spot.y) < T(1 << 30) && size_at(spot.x) < T(1 << 30))) continue;
    T by_y = 0, by_x = 0, by_mask = 0;
    for (int64_t c = spot.group * in_group; c < (spot.group + 1) * in_group; ++c) {
      const int64_t channel = spot.n * job.channels + c;
      const T value = pointer<T>(job.columns)[(channel * taps + spot.tap) * places + spot.place];
      const T* const pixels = pointer<T>(job.input) + channel * plane;
      visit_corners(spot.y, spot.x, job.image[0], job.image[1], [&](int64_t pixel, T weight, T slope_y, T slope_x) {
        by_y += value * slope_y * pixels[pixel];
        by_x += value * slope_x * pixels[pixel];
        if (spot.is_near) by_mask += value * weight * pixels[pixel];
      });
    }
    if (job.of_offset.at) {
      pointer<T>(job.of_offset)[spot.in_offset] = by_y * spot.weight;
      pointer<T>(job.of_offset)[spot.in_offset + places] = by_x * spot.weight;
    }
    if (job.of_mask.at) pointer<T>(job.of_mask)[spot.in_mask] = by_mask;
  }
}

template <class T>
void launch_deform(const DeformJob& job, StreamHandle stream) {
  const int64_t taps = job.kernel[0] * job.kernel[1] * job.out[0] * job.out[1] * job.images;
  if (!job.is_backward || job.of_input.at)
    launch(deform_kernel<T>, dim3(blocks_for(taps * job.channels, 128)), dim3(128), 0, stream, job);
  if (!job.of_offset.at && !job.of_mask.at) return;
  launch(deform_places_kernel<T>, dim3(blocks_for(taps * job.offset_groups, 128)), dim3(128), 0, stream, job);
}

}  // namespace

void image_columns(const ColumnsJob& job, cuda::StreamHandle stream) {
  if (!job.is_back) return launch_im2col(job, stream);
  const dim3 grid(blocks_for(job.planes * job.image[0] * job.image[1], 128));
  launch(job.loop == kF64 ? col2im_kernel<double> : col2im_kernel<float>, grid, dim3(128), 0, stream, job);
}
void deform_columns(const DeformJob& job, cuda::StreamHandle stream) {
  job.dtype == kF64 ? launch_deform<double>(job, stream) : launch_deform<float>(job, stream);
}

}  // namespace tensord::kernels
