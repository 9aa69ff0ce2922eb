#pragma once

#include <array>
#include <optional>
#include <vector>

#include "core/tensor/tensor.h"

namespace tensord::kernels {

// How one spatial dimension is resampled: output i is the sum over t of weight[i * taps + t] times
// input index[i * taps + t].
struct ResampleAxis {
  int64_t taps = 1;
  std::vector<int64_t> index;
  std::vector<double> weight;
};

struct ResampleExtents {
  int64_t batch, channels;
  std::array<int64_t, 3> in, out;
  int64_t in_plane() const { return in[0] * in[1] * in[2]; }
  int64_t out_plane() const { return out[0] * out[1] * out[2]; }
};

// Separable resampling over three dimensions, missing leading ones of size 1. With one tap everywhere the
// elements are copied, for every dtype; else they are floating. The output lies in memory as the input does
// (planes or channels_last).
struct Resampling {
  std::array<ResampleAxis, 3> axes;
  ResampleExtents extents;
  DType dtype;
  bool is_last;  // both lie as N, spatial…, C

  Resampling(std::array<ResampleAxis, 3> resample_axes, size_t spatial, const Tensor& input, const Tensor& out);
  void run(const void* x, void* out) const;
  // The other way round, for gradients: x = the sum of what each output gives back, floating.
  void run_transposed(void* x, const void* out) const;
};

enum class ResampleMode { kNearest, kNearestExact, kLinear, kCubic, kLinearAntialias, kCubicAntialias };

// The position of an output element in the input.
struct ResampleRule {
  ResampleMode mode;
  bool align_corners;
  std::vector<std::optional<double>> scales;  // as given, one per spatial dimension
};
// By the shapes of input and result [N, C, spatial…].
Resampling make_resampling(const ResampleRule& rule, const Tensor& input, const Tensor& out);

// On a CUDA device; the second writes what `g` gives back to `out`.
void resample_cuda(const Resampling& resampling, const Tensor& in, const Tensor& out);
void resample_backward_cuda(const Resampling& resampling, const Tensor& g, const Tensor& out);

}  // namespace tensord::kernels
