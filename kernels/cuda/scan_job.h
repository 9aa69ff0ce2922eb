#pragma once

#include <cstdint>

#include "core/tensor/cuda/address.h"

namespace tensord::kernels {

inline constexpr int kScanDims = 12;

enum class LineUse : int8_t {
  kCumulativeSum,
  kCumulativeProduct,
  kLogSum,          // of double: log(exp + exp)
  kRunningLargest,  // out and positions: of each element on, the extreme so far, and where
  kRunningSmallest,
  kLargest,  // out (may be null): the extreme; positions: where
  kSmallest,
};

// Work along lines of `length` elements.
struct ScanJob {
  LineUse use = LineUse::kCumulativeSum;
  int8_t loop = 0, in_dtype = 0, out_dtype = 0;
  int dims = 0;
  int64_t lines = 0, length = 0, in_step = 0, out_step = 0, position_step = 0;
  int64_t sizes[kScanDims] = {}, in_strides[kScanDims] = {}, out_strides[kScanDims] = {},
          position_strides[kScanDims] = {};
  cuda::DeviceAddress in, out, positions;
};

// Elements that follow from their own position.
enum class FillUse : int8_t { kRange, kLinear, kPower, kTriangle };
struct FillJob {
  FillUse use = FillUse::kRange;
  int8_t dtype = 0;
  bool is_integer = false, is_double = false;  // how it is computed
  bool is_lower = false;                       // triangle
  int64_t numel = 0;
  int64_t first = 0, step = 0;  // of integers
  double start = 0, end = 0, stride = 0, base = 0;
  int64_t rows = 0, columns = 0, diagonal = 0;
  cuda::DeviceAddress out;
};

}  // namespace tensord::kernels
