#pragma once

#include <cstdint>

#include "core/tensor/cuda/address.h"
#include "core/tensor/cuda/error_word.h"

namespace tensord::kernels {

// One number for each channel, of any dtype; null: not given, or not asked for.
struct ChannelVector {
  int8_t dtype = 0;
  int64_t step = 1;
  cuda::DeviceAddress at;
};

// Whose mean and variance are used.
enum class NormStatistics : int8_t { kOfBatch, kMeanAndVariance, kMeanAndRstd };

// batch_norm and its backward. Each channel gets a line, out = g scale + (x - center) slope + shift, which in the
// forward has no g. Tensors are viewed as batch, channel, rest.
struct BatchNormJob {
  int8_t loop = 0, dtype = 0, g_dtype = 0, out_dtype = 0;
  bool is_backward = false, updates = false;  // the running statistics
  NormStatistics statistics = NormStatistics::kOfBatch;
  int lanes = 1;  // the number of channels of a block: many where they are contiguous
  int64_t batch = 0, channels = 0, inner = 0;
  int64_t x_strides[3] = {}, g_strides[3] = {}, out_strides[3] = {};
  double eps = 0, momentum = 0;
  ChannelVector weight, bias;
  ChannelVector mean, variance;          // given, or running and updated; variance may be the reciprocal root
  ChannelVector saved_mean, saved_rstd;  // written
  ChannelVector dweight, dbias;          // written
  cuda::DeviceAddress x, g, out;         // out may be null
  cuda::DeviceAddress lines;             // double: center, scale, slope and shift of each channel
};

// The backward of layer_norm and group_norm, over rows as in NormJob.
struct NormBackwardJob {
  int8_t loop = 0, dtype = 0, g_dtype = 0, weight_dtype = 0, stats_dtype = 0;
  int64_t rows = 0, length = 0, groups = 1, inner = 1;
  double eps = 0;
  cuda::DeviceAddress x, g, weight, mean, rstd;  // all dense; mean and rstd null: those of the rows are computed
  cuda::DeviceAddress moments;                   // double: mean and rstd of each row
  cuda::DeviceAddress dx;                        // null: not asked for
  ChannelVector dweight, dbias;
};

// Scales the rows of a table that the indices name down to a norm of at most `most`.
struct RenormJob {
  int8_t dtype = 0;
  bool is_int32 = false;
  int64_t rows = 0, width = 0, row_stride = 0, column_stride = 0, indices = 0;
  double most = 0, power = 2;
  cuda::DeviceAddress table, index, named;  // named: int32, initially 0, for each row
  cuda::ErrorSink errors;
};

// Softmax over the elements of each group, separately for each of `width` columns.
struct GroupSoftmaxJob {
  bool is_log = false;
  int8_t dtype = 0;
  int64_t elements = 0, width = 0, groups = 0;
  cuda::DeviceAddress group;         // int64, for each element
  cuda::DeviceAddress values, out;   // dense
  cuda::DeviceAddress tops, totals;  // double: for each group and column; initially -infinity and 0
  cuda::ErrorSink errors;
};

}  // namespace tensord::kernels
