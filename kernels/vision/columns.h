#pragma once

#include <algorithm>

#include "core/ops/op.h"

namespace tensord::kernels {

using ops::IntList;

// Windows over images [N, C, height, width] and their columns [N, C · kernel, places].
struct ImageWindows {
  int64_t images = 0, channels = 0, height = 0, width = 0;
  IntList kernel, dilation, padding, stride;
  int64_t rows = 0, columns = 0;  // places for the window

  ImageWindows(const char* op, const IntList& image_size, const IntList& kernel, const IntList& dilation,
               const IntList& padding, const IntList& stride)
      : height(image_size[0]),
        width(image_size[1]),
        kernel(kernel),
        dilation(dilation),
        padding(padding),
        stride(stride) {
    const auto pair = [&](const IntList& value, int64_t min, const char* name) {
      check(value.size() == 2 && value[0] >= min && value[1] >= min && value[0] < kLimit && value[1] < kLimit, op, ": ",
            name, " should be greater than ", min == 0 ? "or equal to zero" : "zero", ", but got ", to_string(value));
    };
    pair(kernel, 1, "kernel_size");
    pair(dilation, 1, "dilation");
    pair(padding, 0, "padding");
    pair(stride, 1, "stride");
    rows = places(height, 0);
    columns = places(width, 1);
    check(height < kLimit && width < kLimit && rows >= 1 && columns >= 1, op, ": given image with spatial size (",
          height, ", ", width, "), kernel_size=", to_string(kernel), ", dilation=", to_string(dilation),
          ", padding=", to_string(padding), ", calculated shape of the array of sliding blocks as (", rows, ", ",
          columns, "), but its components must be at least one");
  }

  int64_t taps() const { return kernel[0] * kernel[1]; }

  // Calls visit(row of columns, position in it, count, position in the image, step) for every run of places of one tap
  // within one channel that lie in the image.
  template <class Visit>
  void for_each_run(int64_t tap, Visit&& visit) const {
    const int64_t down = tap / kernel[1] * dilation[0] - padding[0], right = tap % kernel[1] * dilation[1] - padding[1];
    const int64_t first = right >= 0 ? 0 : (-right + stride[1] - 1) / stride[1];
    const int64_t last = right >= width ? -1 : std::min(columns - 1, (width - 1 - right) / stride[1]);
    for (int64_t row = 0; row < rows && first <= last; ++row) {
      const int64_t y = row * stride[0] + down;
      if (y < 0 || y >= height) continue;
      visit(row * columns + first, last - first + 1, y * width + first * stride[1] + right);
    }
  }

 private:
  static constexpr int64_t kLimit = int64_t{1} << 30;  // products of two stay within int64
  int64_t places(int64_t size, size_t d) const {
    return (size + 2 * padding[d] - dilation[d] * (kernel[d] - 1) - 1) / stride[d] + 1;
  }
};

}  // namespace tensord::kernels
