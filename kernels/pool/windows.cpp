#include "kernels/pool/windows.h"

#include <algorithm>

namespace tensord::kernels {
namespace {

Dims repeated(const char* op, const Dims& list, size_t count, const char* name) {
  if (list.size() == 1) return Dims(count, list[0]);
  check(list.size() == count, op, ": ", name, " must either be a single int, or a tuple of ", count, " ints");
  return list;
}

// `first`: the first dimension of a sample that must have elements.
void check_input(const char* op, const Tensor& input, size_t spatial, size_t first) {
  const auto ndim = static_cast<size_t>(input.ndim());
  check(ndim == spatial + 1 || ndim == spatial + 2, op, ": Expected ", spatial + 1, "D or ", spatial + 2,
        "D (batch mode) tensor for input, but got ", input.sizes());
  for (size_t d = first + (ndim == spatial + 2 ? 1 : 0); d < ndim; ++d) {
    check(input.sizes()[d] > 0, op,
          "(): Expected input to have non-zero size for non-batch dimensions, but input has sizes ", input.sizes(),
          " with dimension ", d, " being empty");
  }
}

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

}  // namespace

PoolWindow make_pool_window(const char* op, size_t spatial, const Dims& kernel, const Dims& stride, const Dims& padding,
                            const Dims& dilation) {
  PoolWindow w{repeated(op, kernel, spatial, "kernel_size"),
               {},
               repeated(op, padding, spatial, "padding"),
               repeated(op, dilation, spatial, "dilation")};
  w.stride = stride.empty() ? w.kernel : repeated(op, stride, spatial, "stride");
  for (size_t i = 0; i < spatial; ++i) {
    constexpr int64_t kMax = int64_t{1} << 31;
    check(w.kernel[i] > 0 && w.kernel[i] < kMax, op, ": kernel size should be greater than zero, but got ",
          to_string(w.kernel));
    check(w.stride[i] > 0 && w.stride[i] < kMax, op, ": stride should be greater than zero, but got ",
          to_string(w.stride));
    check(w.dilation[i] > 0 && w.dilation[i] < kMax, op, ": dilation should be greater than zero, but got ",
          to_string(w.dilation));
    check(w.padding[i] >= 0 && w.padding[i] <= w.kernel[i] / 2, op,
          ": pad should be smaller than or equal to half of kernel size, but got padding = ", to_string(w.padding),
          ", kernel_size = ", to_string(w.kernel));
  }
  return w;
}

Dims pooled_sizes(const char* op, const Tensor& input, const PoolWindow& w, bool ceil_mode) {
  const size_t spatial = w.kernel.size(), first = input.sizes().size() - spatial;
  check_input(op, input, spatial, 0);
  Dims sizes = input.sizes();
  for (size_t i = 0; i < spatial; ++i) {
    const int64_t in = sizes[first + i], pad = w.padding[i];
    int64_t out = floor_div(in + 2 * pad - w.dilation[i] * (w.kernel[i] - 1) - 1 + (ceil_mode ? w.stride[i] - 1 : 0),
                            w.stride[i]) +
                  1;
    // The last window must start inside of the input or of the padding before it.
    if (ceil_mode && (out - 1) * w.stride[i] >= in + pad) --out;
    check(out >= 1, "Given input size: ", to_string(input.sizes().span().subspan(first - 1)),
          ". Calculated output size would be ", out, " at dimension ", i, ". Output size is too small");
    sizes[first + i] = out;
  }
  return sizes;
}

ops::TensorMeta pool_meta(const Tensor& input, const Dims& sizes, DType dtype, size_t spatial) {
  ops::TensorMeta meta{sizes, dtype, {}, input.device()};
  if (is_pool_last(input, spatial)) meta.strides = channels_last_strides(sizes);
  return meta;
}

std::vector<ops::TensorMeta> pool_metas(const ops::TensorMeta& values) {
  ops::TensorMeta indices = values;
  indices.dtype = DType::kInt64;
  return {values, indices};
}

PoolWindows make_pool_windows(const Tensor& input, const Tensor& out, const PoolWindow& w) {
  PoolWindows windows;
  const size_t spatial = w.kernel.size(), lead = 3 - spatial;
  for (size_t i = 0; i < lead; ++i) windows.axes[i] = {{0}, {1}, {1}, 1, 1, 1, 0};
  for (size_t i = 0; i < spatial; ++i) {
    PoolAxis& axis = windows.axes[lead + i];
    const int64_t in = input.sizes()[input.sizes().size() - spatial + i],
                  outs = out.sizes()[out.sizes().size() - spatial + i];
    axis.step = w.dilation[i];
    axis.kernel = w.kernel[i];
    axis.stride = w.stride[i];
    axis.padding = w.padding[i];
    for (int64_t o = 0; o < outs; ++o) {
      int64_t begin = o * w.stride[i] - w.padding[i];
      const int64_t end = begin + (w.kernel[i] - 1) * axis.step + 1;
      axis.extent.push_back(std::min(end, in + w.padding[i]) - begin);
      if (begin < 0) begin += (-begin + axis.step - 1) / axis.step * axis.step;
      axis.begin.push_back(begin);
      axis.end.push_back(std::min(end, in));
    }
  }
  return windows;
}

PoolWindows adaptive_pool_windows(const Tensor& input, const Tensor& out, size_t spatial) {
  PoolWindows windows;
  const size_t lead = 3 - spatial;
  for (size_t i = 0; i < lead; ++i) windows.axes[i] = {{0}, {1}, {1}, 1, 1, 1, 0};
  for (size_t i = 0; i < spatial; ++i) {
    PoolAxis& axis = windows.axes[lead + i];
    const int64_t in = input.sizes()[input.sizes().size() - spatial + i],
                  outs = out.sizes()[out.sizes().size() - spatial + i];
    for (int64_t o = 0; o < outs; ++o) {
      axis.begin.push_back(o * in / outs);
      axis.end.push_back(((o + 1) * in + outs - 1) / outs);
      axis.extent.push_back(axis.end.back() - axis.begin.back());
    }
  }
  return windows;
}

Dims adaptive_pool_sizes(const char* op, const Tensor& input, const Dims& output_size, size_t spatial,
                         bool is_average) {
  // PyTorch's average over everything is the mean, which is NaN for no elements.
  const bool is_mean = is_average && std::ranges::all_of(output_size, [](int64_t size) { return size == 1; });
  const bool takes_no_channels = is_average && spatial < 3;
  check(output_size.size() == spatial || output_size.size() == 1, op, ": output_size must be ", spatial);
  check_input(op, input, spatial, is_mean ? spatial + 1 : takes_no_channels ? 1 : 0);
  Dims sizes = input.sizes();
  for (size_t i = 0; i < spatial; ++i) {
    const int64_t size = output_size[output_size.size() == 1 ? 0 : i];
    check(size >= 0 && size < (int64_t{1} << 24), op,
          ": elements of output_size must be greater than or equal to 0, but got ", to_string(output_size));
    sizes[sizes.size() - spatial + i] = size;
  }
  return sizes;
}

}  // namespace tensord::kernels
