// The loops of convolutions from quint8 to quint8.
#include "kernels/quantized/conv.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/base/parallel.h"
#include "core/ops/run.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

constexpr int64_t kMaxPixels = int64_t{1} << 40;  // of one image

struct Shape {
  int64_t batch, channels, in[3], kernel[3], stride[3], padding[3], dilation[3], out[3];
  int64_t pixels() const { return batch * out[0] * out[1] * out[2]; }
};

Shape shape_of(const Tensor& x, const ConvParams& params) {
  Shape shape{};
  const size_t dims = params.dims(), before = 3 - dims;
  const ConvParams::Geometry& geometry = params.geometry();
  shape.batch = x.sizes()[0];
  shape.channels = x.sizes()[1];
  check(shape.channels == params.group_inputs() * geometry.groups, "expected an input with ",
        params.group_inputs() * geometry.groups, " channels, but got ", x.sizes());
  int64_t pixels = 1;
  for (size_t d = 0; d < 3; ++d) {
    const bool is_real = d >= before;
    const size_t at = is_real ? d - before : 0;
    shape.in[d] = x.sizes()[d + 2];
    shape.kernel[d] = is_real ? params.weight()->sizes()[at + 2] : 1;
    shape.stride[d] = is_real ? geometry.stride[at] : 1;
    shape.padding[d] = is_real ? geometry.padding[at] : 0;
    shape.dilation[d] = is_real ? geometry.dilation[at] : 1;
    const int64_t reach = shape.dilation[d] * (shape.kernel[d] - 1) + 1;
    const int64_t room = shape.in[d] + 2 * shape.padding[d] - reach;
    check(room >= 0, "the kernel (", reach, ") is larger than the padded input (", shape.in[d] + 2 * shape.padding[d],
          ")");
    shape.out[d] = room / shape.stride[d] + 1;
    check(shape.out[d] <= kMaxPixels / pixels, "the result is too large");
    pixels *= shape.out[d];
  }
  return shape;
}

// Calls fn(tap, pixel of x, or -1 where the tap is outside) for the kernel at output pixel `index`.
template <class Fn>
void for_each_tap(const Shape& s, int64_t index, Fn&& fn) {
  const int64_t w = index % s.out[2], h = index / s.out[2] % s.out[1], d = index / s.out[2] / s.out[1] % s.out[0];
  const int64_t image = index / (s.out[0] * s.out[1] * s.out[2]);
  int64_t tap = 0;
  for (int64_t a = 0; a < s.kernel[0]; ++a) {
    const int64_t z = d * s.stride[0] - s.padding[0] + a * s.dilation[0];
    for (int64_t b = 0; b < s.kernel[1]; ++b) {
      const int64_t y = h * s.stride[1] - s.padding[1] + b * s.dilation[1];
      const bool is_row = z >= 0 && z < s.in[0] && y >= 0 && y < s.in[1];
      for (int64_t c = 0; c < s.kernel[2]; ++c, ++tap) {
        const int64_t x = w * s.stride[2] - s.padding[2] + c * s.dilation[2];
        const bool is_inside = is_row && x >= 0 && x < s.in[2];
        fn(tap, is_inside ? ((image * s.in[0] + z) * s.in[1] + y) * s.in[2] + x : -1);
      }
    }
  }
}

// Computes the pixels first … end of one group's outputs; `out` is the group's first output of pixel 0.
void run_group(const Shape& s, const ConvParams& params, int64_t group, const uint8_t* x, int64_t first, int64_t end,
               QuantizedEpilogue finish, std::vector<uint8_t>& memory) {
  const QuantizedMatrix& matrix = params.matrix(group);
  const int64_t stride = matrix.row_words() * 4, inputs = params.group_inputs(), per_group = matrix.columns();
  memory.resize(static_cast<size_t>((end - first) * stride + 64));
  uint8_t* const rows = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) % 64;
  std::vector<int32_t> sums(static_cast<size_t>(params.zero_points() ? end - first : 0));
  const auto zero_point = static_cast<uint8_t>(finish.zero_point);
  for (int64_t pixel = first; pixel < end; ++pixel) {
    uint8_t* row = rows + (pixel - first) * stride;
    for_each_tap(s, pixel, [&](int64_t tap, int64_t at) {
      if (at < 0)
        std::memset(row + tap * inputs, zero_point, static_cast<size_t>(inputs));
      else
        std::memcpy(row + tap * inputs, x + at * s.channels + group * inputs, static_cast<size_t>(inputs));
    });
    std::memset(row + matrix.depth(), 0, static_cast<size_t>(stride - matrix.depth()));
    if (sums.empty()) continue;
    for (int64_t i = 0; i < matrix.depth(); ++i) sums[static_cast<size_t>(pixel - first)] += row[i];
  }
  const int64_t column = group * per_group;
  finish.column_sums = params.column_sums() + column;
  finish.weight_zero_points = params.zero_points() ? params.zero_points() + column : nullptr;
  finish.row_sums = sums.data();
  finish.multipliers += column;
  finish.scaled_bias += column;
  finish.out8 += first * finish.out_stride + column;
  quantized_product(matrix, reinterpret_cast<const uint32_t*>(rows), end - first, finish, 1);
}

void run_depthwise(const Shape& s, const ConvParams& params, const uint8_t* x, int64_t first, int64_t end,
                   QuantizedEpilogue finish) {
  const int64_t channels = s.channels;
  const int8_t* weight = params.depthwise_weight().data();
  std::vector<int32_t> sums(static_cast<size_t>(channels));
  // Zero points are subtracted here, so the last step has none left to subtract.
  const std::vector<int32_t> none(static_cast<size_t>(channels), 0);
  const int32_t zero_point = finish.zero_point, *weight_zero = params.zero_points();
  finish.column_sums = none.data();
  finish.weight_zero_points = nullptr;
  std::vector<const uint8_t*> taps(static_cast<size_t>(params.taps()));
  for (int64_t pixel = first; pixel < end; ++pixel) {
    for_each_tap(s, pixel, [&](int64_t tap, int64_t at) {
      taps[static_cast<size_t>(tap)] = at < 0 ? nullptr : x + at * channels;
    });
    depthwise_sums(taps, zero_point, weight, weight_zero, channels, sums.data());
    finish_sums(finish, {reinterpret_cast<const uint32_t*>(sums.data()), channels, pixel, 1, 0, channels});
  }
}

}  // namespace

Tensor quantized_conv(const Tensor& x, const ConvParams& params, const Requantization& requantization) {
  const Shape s = shape_of(x, params);
  const Tensor last = ops::permute(x, Dims{0, 2, 3, 4, 1}).contiguous();
  const int64_t outputs = params.outputs();
  const Tensor out = Tensor::empty(Dims{s.batch, s.out[0], s.out[1], s.out[2], outputs}, DType::kUInt8);
  QuantizedEpilogue finish = requantization.finish;
  finish.out8 = out.data<uint8_t>();
  finish.out_stride = outputs;
  params.column_sums();           // packs before threads share the work
  constexpr int64_t kBlock = 72;  // pixels: whole tiles, whose rows stay in the cache
  const int64_t pixels = s.pixels(), blocks = (pixels + kBlock - 1) / kBlock;
  const double ns = static_cast<double>(params.group_inputs() * params.taps() * outputs * kBlock) / 100;
  parallel_for_cost(blocks, ns, [&](int64_t begin, int64_t end) {
    std::vector<uint8_t> memory;
    for (int64_t block = begin; block < end; ++block) {
      const int64_t first = block * kBlock, last_pixel = std::min(first + kBlock, pixels);
      if (params.is_depthwise()) {
        run_depthwise(s, params, last.data<uint8_t>(), first, last_pixel, finish);
        continue;
      }
      for (int64_t g = 0; g < params.geometry().groups; ++g)
        run_group(s, params, g, last.data<uint8_t>(), first, last_pixel, finish, memory);
    }
  });
  return ops::permute(out, Dims{0, 4, 1, 2, 3});
}

}  // namespace tensord::kernels
