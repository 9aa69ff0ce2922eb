#pragma once

#include <cstdint>

#include "core/tensor/cuda/address.h"
#include "core/tensor/cuda/error_word.h"

namespace tensord::kernels {

// im2col and col2im of dense images and columns; see ImageWindows in kernels/vision/columns.h.
struct ColumnsJob {
  bool is_back = false;  // col2im
  int8_t loop = 0, dtype = 0, width = 0;
  int64_t planes = 0, image[2] = {}, places[2] = {};  // the planes are those of all images and channels
  int64_t kernel[2] = {}, dilation[2] = {}, padding[2] = {}, stride[2] = {};
  cuda::DeviceAddress from, to;
};

// The columns of a deformable convolution and their backward; see kernels/detection/deform_conv.h. All tensors are
// dense.
struct DeformJob {
  bool is_backward = false;
  int8_t dtype = 0;
  int64_t images = 0, channels = 0, offset_groups = 1, image[2] = {}, out[2] = {};
  int64_t kernel[2] = {}, stride[2] = {}, padding[2] = {}, dilation[2] = {};
  cuda::DeviceAddress input, offset, mask, columns;  // mask null: ones; columns: the result, or the incoming gradient
  cuda::DeviceAddress of_input, of_offset, of_mask;  // null: not asked for; the first is added to
};

enum class RegionTask : int8_t { kMeans, kMaxima, kAverages };

// Values of images in boxes; see kernels/detection/regions.h.
struct RegionJob {
  RegionTask task = RegionTask::kMeans;
  bool is_backward = false, is_aligned = false, is_position_sensitive = false;
  int8_t dtype = 0;
  int64_t boxes = 0, images = 0, channels = 0, height = 0, width = 0;  // of the images
  int64_t out_channels = 0, rows = 0, columns = 0, samples = 0;
  double scale = 1;
  cuda::DeviceAddress image, box, out;  // in a backward: the gradient that is added to, and the incoming one
  cuda::DeviceAddress places;           // int32, for kMaxima
  cuda::ErrorSink errors;
};

// Which of the boxes [count, 4] are kept; see suppress_overlaps in kernels/detection/regions.h.
struct SuppressJob {
  bool is_double = false;
  int64_t count = 0;
  double threshold = 0;
  cuda::DeviceAddress boxes, order, keep;  // order and keep: int64
  cuda::DeviceAddress is_gone, kept;       // uint8, initially 0, by place in the order; int64: the number that is kept
};

}  // namespace tensord::kernels
