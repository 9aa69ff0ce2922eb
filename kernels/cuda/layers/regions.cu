// Values of images in boxes (roi_align, roi_pool and their position-sensitive variants) and their backward: one thread
// for each bin of each channel, as in kernels/detection/regions_cpu.cpp. Also the suppression of overlapping boxes.
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/plugin/table.h"

namespace tensord::kernels {
namespace {

using namespace cuda;

constexpr double kMaxSamples = 1 << 18;  // along one side of a box

__device__ __forceinline__ float ceil_of(float x) { return ::ceilf(x); }
__device__ __forceinline__ double ceil_of(double x) { return ::ceil(x); }
__device__ __forceinline__ float floor_to(float x) { return ::floorf(x); }
__device__ __forceinline__ double floor_to(double x) { return ::floor(x); }
__device__ __forceinline__ float round_to(float x) { return ::roundf(x); }
__device__ __forceinline__ double round_to(double x) { return ::round(x); }

// One bin of one channel of a box.
template <class T>
struct Bin {
  int64_t row, column, image, plane;
  T x1, y1, x2, y2;
  bool is_right = true;

  __device__ __forceinline__ Bin(const RegionJob& job, int64_t i) {
    const int64_t bins = job.rows * job.columns, bin = i % bins, c = i / bins % job.out_channels;
    const T* const box = pointer<T>(job.box) + i / bins / job.out_channels * 5;
    row = bin / job.columns, column = bin % job.columns;
    x1 = box[1], y1 = box[2], x2 = box[3], y2 = box[4];
    if (!(box[0] > -1 && box[0] < static_cast<T>(job.images))) {
      note_error(job.errors, KernelError::kBoxOfNoImage, static_cast<int64_t>(box[0]), job.images);
      is_right = false;
      return;
    }
    image = static_cast<int64_t>(box[0]);
    for (int k = 1; k < 5; ++k) is_right = is_right && box[k] - box[k] == 0;
    if (!is_right) note_error(job.errors, KernelError::kBoxNotFinite);
    const int64_t channel = job.is_position_sensitive ? c * bins + bin : c;
    plane = (image * job.channels + channel) * job.height * job.width;
  }
};

// --- means of bilinear samples

template <class T>
struct Tap {
  int64_t low, high;  // -1: outside of the image
  T of_low, of_high;
};
template <class T>
__device__ __forceinline__ Tap<T> tap_at(T at, int64_t size) {
  if (!(at >= -1 && at <= static_cast<T>(size))) return {-1, -1, 0, 0};
  if (at < 0) at = 0;
  int64_t low = static_cast<int64_t>(at), high = low + 1;
  if (low >= size - 1) low = high = size - 1, at = static_cast<T>(low);
  const T of_high = at - static_cast<T>(low);
  return {low, high, 1 - of_high, of_high};
}

// The samples of a bin along one side of its box.
template <class T>
struct SideSamples {
  T first, bin;
  int64_t count, size;

  __device__ __forceinline__ SideSamples(const RegionJob& job, T low, T high, int64_t bins, int64_t index,
                                         int64_t of_image)
      : size(of_image) {
    const T shift = job.is_aligned ? T(0.5) : T(0), scale = static_cast<T>(job.scale);
    const T start = low * scale - shift;
    T length = high * scale - shift - start;
    if (!job.is_aligned && length < 1) length = 1;
    bin = length / static_cast<T>(bins);
    const double each = job.samples > 0 ? static_cast<double>(job.samples) : static_cast<double>(ceil_of(bin));
    const bool is_right = ::fabs(each) * static_cast<double>(bins) <= kMaxSamples;
    if (!is_right) note_error(job.errors, KernelError::kBoxTooLarge, bins, static_cast<int64_t>(kMaxSamples));
    count = is_right ? static_cast<int64_t>(each) : 0;
    first = start + static_cast<T>(index) * bin;
  }
  __device__ __forceinline__ Tap<T> tap(int64_t i) const {
    return tap_at(first + (static_cast<T>(i) + T(0.5)) * bin / static_cast<T>(count), size);
  }
};

template <class T>
__global__ void region_means_kernel(const __grid_constant__ RegionJob job) {
  const int64_t all = job.boxes * job.out_channels * job.rows * job.columns;
  for (int64_t i = thread_index(); i < all; i += thread_count()) {
    const Bin<T> bin(job, i);
    if (!bin.is_right) continue;
    const SideSamples<T> ys(job, bin.y1, bin.y2, job.rows, bin.row, job.height);
    const SideSamples<T> xs(job, bin.x1, bin.x2, job.columns, bin.column, job.width);
    T count = static_cast<T>(ys.count * xs.count);
    if (!job.is_position_sensitive && count < 1) count = 1;
    T* const plane = pointer<T>(job.image) + bin.plane;
    T* const out = pointer<T>(job.out) + i;
    T sum = 0;
    for (int64_t a = 0; a < ys.count; ++a) {
      const Tap<T> y = ys.tap(a);
      if (y.low < 0) continue;
      for (int64_t b = 0; b < xs.count; ++b) {
        const Tap<T> x = xs.tap(b);
        if (x.low < 0) continue;
        T* const corners[4] = {plane + y.low * job.width + x.low, plane + y.low * job.width + x.high,
                               plane + y.high * job.width + x.low, plane + y.high * job.width + x.high};
        const T weights[4] = {y.of_low * x.of_low, y.of_low * x.of_high, y.of_high * x.of_low, y.of_high * x.of_high};
        for (int k = 0; k < 4; ++k) {
          if (job.is_backward)
            atomicAdd(corners[k], *out * weights[k] / count);
          else
            sum += weights[k] * *corners[k];
        }
      }
    }
    if (!job.is_backward) *out = sum / count;
  }
}

// --- pixels of bins

struct PixelRange {
  int64_t begin, end;
};
template <class T>
__device__ __forceinline__ int64_t rounded(const RegionJob& job, T at) {
  const T far = T(1 << 30), scaled = at * static_cast<T>(job.scale);
  return static_cast<int64_t>(round_to(scaled < -far ? -far : scaled > far ? far : scaled));
}
__device__ __forceinline__ int64_t clamped(int64_t x, int64_t high) { return x < 0 ? 0 : x > high ? high : x; }
// roi_pool includes a box's last pixel; the position-sensitive operator excludes it.
template <class T>
__device__ __forceinline__ PixelRange pixels_of(const RegionJob& job, T low, T high, int64_t bins, int64_t index,
                                                int64_t size) {
  const int64_t last = job.is_position_sensitive ? 0 : 1, start = rounded(job, low);
  const int64_t given = rounded(job, high) - start + last, length = given < 1 ? 1 : given;
  const T bin = static_cast<T>(length) / static_cast<T>(bins);
  const int64_t begin = static_cast<int64_t>(floor_to(static_cast<T>(index) * bin)),
                end = static_cast<int64_t>(ceil_of(static_cast<T>(index + 1) * bin));
  return {clamped(begin + start, size - 1 + last), clamped(end + start, size - 1 + last)};
}

template <class T>
__device__ __forceinline__ void region_maximum(const RegionJob& job, int64_t i, const T* pixels, PixelRange rows,
                                               PixelRange columns) {
  const bool is_empty = rows.end <= rows.begin || columns.end <= columns.begin;
  T largest = is_empty ? T(0) : static_cast<T>(-3.402823466e+38f);
  int64_t place = -1;
  for (int64_t y = rows.begin; y < rows.end; ++y) {
    for (int64_t x = columns.begin; x < columns.end; ++x) {
      const T value = pixels[y * job.width + x];
      if (value > largest) largest = value, place = y * job.width + x;
    }
  }
  pointer<T>(job.out)[i] = largest;
  pointer<int32_t>(job.places)[i] = static_cast<int32_t>(place);
}

template <class T>
__global__ void region_pixels_kernel(const __grid_constant__ RegionJob job) {
  const int64_t all = job.boxes * job.out_channels * job.rows * job.columns;
  for (int64_t i = thread_index(); i < all; i += thread_count()) {
    const Bin<T> bin(job, i);
    if (!bin.is_right) continue;
    const PixelRange rows = pixels_of(job, bin.y1, bin.y2, job.rows, bin.row, job.height);
    const PixelRange columns = pixels_of(job, bin.x1, bin.x2, job.columns, bin.column, job.width);
    T* const pixels = pointer<T>(job.image) + bin.plane;
    const T g = job.is_backward ? pointer<T>(job.out)[i] : T(0);
    if (job.task == RegionTask::kMaxima) {
      if (!job.is_backward) {
        region_maximum(job, i, pixels, rows, columns);
        continue;
      }
      const int64_t place = pointer<int32_t>(job.places)[i];
      if (place >= job.height * job.width)
        note_error(job.errors, KernelError::kMaxIndexOutOfRange, place, job.height * job.width);
      else if (place >= 0)
        atomicAdd(pixels + place, g);
      continue;
    }
    const int64_t high = rows.end - rows.begin, wide = columns.end - columns.begin;
    const int64_t area = high > 0 && wide > 0 ? high * wide : 0;
    T sum = 0;
    for (int64_t y = rows.begin; y < rows.end; ++y) {
      for (int64_t x = columns.begin; x < columns.end; ++x) {
        if (job.is_backward)
          atomicAdd(pixels + y * job.width + x, g / static_cast<T>(area));
        else
          sum += pixels[y * job.width + x];
      }
    }
    if (!job.is_backward) pointer<T>(job.out)[i] = area == 0 ? T(0) : sum / static_cast<T>(area);
  }
}

// --- boxes that are kept: one block walks over them in order, its threads share those behind

template <class T>
__device__ __forceinline__ bool overlaps(const T* a, const T* b, double threshold) {
  const auto shorter = [](T a_high, T b_high, T a_low, T b_low) {
    const T side = (b_high < a_high ? b_high : a_high) - (a_low < b_low ? b_low : a_low);
    return T(0) < side ? side : T(0);
  };
  const T shared = shorter(a[2], b[2], a[0], b[0]) * shorter(a[3], b[3], a[1], b[1]);
  const T areas = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]);
  return static_cast<double>(shared / (areas - shared)) > threshold;
}
template <class T>
__global__ void suppress_kernel(const __grid_constant__ SuppressJob job) {
  const T* const boxes = pointer<T>(job.boxes);
  const int64_t* const order = pointer<int64_t>(job.order);
  uint8_t* const is_gone = pointer<uint8_t>(job.is_gone);
  int64_t kept = 0;
  for (int64_t at = 0; at < job.count; ++at) {
    if (is_gone[at] != 0) continue;  // nobody writes it any more
    if (threadIdx.x == 0) pointer<int64_t>(job.keep)[kept] = order[at];
    ++kept;
    for (int64_t after = at + 1 + threadIdx.x; after < job.count; after += blockDim.x) {
      if (is_gone[after] == 0 && overlaps(boxes + 4 * order[at], boxes + 4 * order[after], job.threshold))
        is_gone[after] = 1;
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) *pointer<int64_t>(job.kept) = kept;
}

template <class T>
void launch_regions(const RegionJob& job, StreamHandle stream) {
  const int64_t all = job.boxes * job.out_channels * job.rows * job.columns;
  launch(job.task == RegionTask::kMeans ? region_means_kernel<T> : region_pixels_kernel<T>, dim3(blocks_for(all, 128)),
         dim3(128), 0, stream, job);
}

}  // namespace

void regions(const RegionJob& job, cuda::StreamHandle stream) {
  job.dtype == kF64 ? launch_regions<double>(job, stream) : launch_regions<float>(job, stream);
}
void suppress_overlaps(const SuppressJob& job, cuda::StreamHandle stream) {
  const dim3 threads(job.count > 256 ? 1024 : 128);
  launch(job.is_double ? suppress_kernel<double> : suppress_kernel<float>, dim3(1), threads, 0, stream, job);
}

}  // namespace tensord::kernels
