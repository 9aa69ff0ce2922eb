#pragma once

#include <cstdint>

#include "core/tensor/cuda/address.h"

namespace tensord::kernels {

// A vector of a number for each channel, of any dtype; null: not given, or not asked for.
struct ChannelVector {
  int8_t dtype = 0;
  int64_t step = 1;
  cuda::DeviceAddress at;
};

// Whose mean and variance normalize.
enum class NormStatistics : int8_t { kOfBatch, kMeanAndVariance, kMeanAndRstd };

// batch_norm and its backward: each channel gets a line, out = g scale + (x - center) slope + shift, where the forward
// has no g. Tensors lie as batch, channel, rest.
struct BatchNormJob {
  int8_t loop = 0, dtype = 0, g_dtype = 0, out_dtype = 0;
  bool is_backward = false, updates = false;  // the running statistics
  NormStatistics statistics = NormStatistics::kOfBatch;
  int lanes = 1;  // channels of a block: many where they are neighbors
  int64_t batch = 0, channels = 0, inner = 0;
  int64_t x_strides[3] = {}, g_strides[3] = {}, out_strides[3] = {};
  double eps = 0, momentum = 0;
  ChannelVector weight, bias;
  ChannelVector mean, variance;          // given, or running and updated; variance may be the reciprocal root
  ChannelVector saved_mean, saved_rstd;  // written
  ChannelVector dweight, dbias;          // written
  cuda::DeviceAddress x, g, out;         // out may be null
  cuda::DeviceAddress lines;             // double: center, scale, slope, shift, of each channel
};

// The backward of layer_norm and group_norm, over rows as of NormJob.
struct NormBackwardJob {
  int8_t loop = 0, dtype = 0, g_dtype = 0, weight_dtype = 0, stats_dtype = 0;
  int64_t rows = 0, length = 0, groups = 1, inner = 1;
  double eps = 0;
  cuda::DeviceAddress x, g, weight, mean, rstd;  // all dense; mean and rstd null: those of the rows
  cuda::DeviceAddress moments;                   // double: mean and rstd of each row
  cuda::DeviceAddress dx;                        // null: not asked for
  ChannelVector dweight, dbias;
};

// Rows of a table, of those that indices name, are scaled to a norm of at most `most`.
struct RenormJob {
  int8_t dtype = 0;
  bool is_int32 = false;
  int64_t rows = 0, width = 0, row_stride = 0, column_stride = 0, indices = 0;
  double most = 0, power = 2;
  cuda::DeviceAddress table, index, named, errors;  // named: int32, 0 for each row
};

// Softmax over the elements of each group, for each of `width` columns.
struct GroupSoftmaxJob {
  bool is_log = false;
  int8_t dtype = 0;
  int64_t elements = 0, width = 0, groups = 0;
  cuda::DeviceAddress group;         // int64, of each element
  cuda::DeviceAddress values, out;   // dense
  cuda::DeviceAddress tops, totals;  // double: of each group and column; -infinity and 0 before
  cuda::DeviceAddress errors;
};

}  // namespace tensord::kernels
