#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/tensor/tensor.h"

// Sums over the channels of a batch, for the statistics of normalizations and their gradients. One pass over
// memory: blocks are summed around a number near their mean, and are joined in double, so that a mean far from 0
// costs no digits.
namespace tensord::kernels {

// Of one channel. The last two only where a gradient g was given.
struct ChannelSums {
  double count = 0, mean = 0;
  double squares = 0;            // of x - mean
  double sum_g = 0, sum_gx = 0;  // of g and of g (x - mean)

  void join(const ChannelSums& other);
};

// A channel of `planes` dense planes of `inner` elements, `step` elements apart; g may be null. With `mean` the
// sums are around that, and `squares` is not filled in.
ChannelSums sum_channel(const float* x, const float* g, int64_t planes, int64_t step, int64_t inner,
                        const double* mean);
ChannelSums sum_channel(const double* x, const double* g, int64_t planes, int64_t step, int64_t inner,
                        const double* mean);
// `rows` rows of `channels` neighbors, joined to `sums`; `means` has one for each channel, or is null.
void sum_channel_rows(const float* x, const float* g, int64_t rows, int64_t channels, const double* means,
                      ChannelSums* sums);
void sum_channel_rows(const double* x, const double* g, int64_t rows, int64_t channels, const double* means,
                      ChannelSums* sums);

// How the channels, dimension 1, lie in a dense tensor.
struct ChannelLayout {
  bool by_rows = false;  // as neighbors: order N, rest, C; else N, C, rest
  int64_t batch = 0, channels = 0, inner = 0;

  // REQUIRES: x is row-major or channels_last.
  explicit ChannelLayout(const Tensor& x);
  int64_t rows() const { return batch * inner; }
  int64_t step() const { return channels * inner; }  // between the planes of one channel
};
// x as float64 where it is that, else as float32, in one of the two orders; itself where it is.
Tensor dense_channels(const Tensor& x);
// The same with the strides of `like`.
Tensor dense_channels_like(const Tensor& x, const Tensor& like);

// Sums of each channel of a tensor from dense_channels; g, of the same strides, may be undefined, `means` empty. They
// do not depend on the number of threads.
std::vector<ChannelSums> channel_sums(const Tensor& x, const Tensor& g, std::span<const double> means);

// dx = g scale + (x - center) slope + shift, over a dense row, or with one of each for every channel of a row.
template <class T>
struct ChannelSlopes {
  T center, scale, slope, shift;
};
void backward_row(const float* g, const float* x, ChannelSlopes<float> slopes, float* dx, int64_t count);
void backward_row(const double* g, const double* x, ChannelSlopes<double> slopes, double* dx, int64_t count);
// `center`, `scale`, `slope` and `shift` lie one after the other, each of `channels` numbers.
void backward_rows(const float* g, const float* x, const float* slopes, float* dx, int64_t rows, int64_t channels);
void backward_rows(const double* g, const double* x, const double* slopes, double* dx, int64_t rows, int64_t channels);

}  // namespace tensord::kernels
