// Convolution of any dtype by im2col and one matrix product a group; the transposed form multiplies first and then adds
// the columns into the image. One to three spatial dimensions are handled as three.
#include <array>

#include "core/base/execution_context.h"
#include "core/base/parallel.h"
#include "core/tensor/strided_copy.h"
#include "kernels/conv/conv.h"
#include "kernels/gemm/gemm.h"

namespace tensord::kernels {
namespace {

using Triple = std::array<int64_t, 3>;

// Spatial parameters with leading dimensions of one. `image` is the larger side (input of a
// convolution, output of a transposed one), `grid` the other.
struct Window {
  Triple image, grid, kernel, stride, padding, dilation;
  int64_t patch() const { return kernel[0] * kernel[1] * kernel[2]; }
  int64_t positions() const { return grid[0] * grid[1] * grid[2]; }
  int64_t pixels() const { return image[0] * image[1] * image[2]; }
};

Triple triple(std::span<const int64_t> values, int64_t fill) {
  Triple out{fill, fill, fill};
  std::copy(values.begin(), values.end(), out.begin() + (3 - values.size()));
  return out;
}

// Calls row(start in columns, start in image or -1 where padded, shift) for each row of the grid, of each
// kernel offset, of each channel; grid position i reads the image at start + i * stride + shift.
template <class Fn>
void walk(const Window& w, int64_t channel_begin, int64_t channel_end, Fn&& row) {
  for (int64_t c = channel_begin; c < channel_end; ++c) {
    for (int64_t p = 0; p < w.patch(); ++p) {
      const int64_t kd = p / (w.kernel[1] * w.kernel[2]), kh = p / w.kernel[2] % w.kernel[1], kw = p % w.kernel[2];
      for (int64_t d = 0; d < w.grid[0]; ++d) {
        const int64_t id = d * w.stride[0] - w.padding[0] + kd * w.dilation[0];
        for (int64_t h = 0; h < w.grid[1]; ++h) {
          const int64_t ih = h * w.stride[1] - w.padding[1] + kh * w.dilation[1];
          const bool inside = id >= 0 && id < w.image[0] && ih >= 0 && ih < w.image[1];
          const int64_t column = ((c * w.patch() + p) * w.grid[0] + d) * w.grid[1] + h;
          const int64_t image = inside ? ((c * w.image[0] + id) * w.image[1] + ih) * w.image[2] : -1;
          row(column * w.grid[2], image, kw * w.dilation[2] - w.padding[2]);
        }
      }
    }
  }
}

template <class T>
void to_columns(const Window& w, int64_t channels, const T* image, T* columns) {
  parallel_for(channels, 1, [&](int64_t begin, int64_t end) {
    walk(w, begin, end, [&](int64_t column, int64_t row, int64_t shift) {
      for (int64_t i = 0; i < w.grid[2]; ++i) {
        const int64_t x = i * w.stride[2] + shift;
        columns[column + i] = row >= 0 && x >= 0 && x < w.image[2] ? image[row + x] : T(0);
      }
    });
  });
}

template <class T>
void add_columns(const Window& w, int64_t channels, const T* columns, T* image) {
  parallel_for(channels, 1, [&](int64_t begin, int64_t end) {
    walk(w, begin, end, [&](int64_t column, int64_t row, int64_t shift) {
      if (row < 0) return;
      for (int64_t i = 0; i < w.grid[2]; ++i) {
        const int64_t x = i * w.stride[2] + shift;
        if (x >= 0 && x < w.image[2]) image[row + x] = static_cast<T>(image[row + x] + columns[column + i]);
      }
    });
  });
}

template <class T>
void run_gemm(const ConvGeometry& g, const Window& w, const Tensor& input, const Tensor& weight, const Tensor* bias,
              const Tensor& out) {
  const int64_t in_channels = input.sizes()[1] / g.groups, out_channels = out.sizes()[1] / g.groups;
  const int64_t column_rows = (g.is_transposed ? out_channels : in_channels) * w.patch();
  Tensor columns = Tensor::empty(Dims{column_rows, w.positions()}, input.dtype());
  const int64_t in_pixels = g.is_transposed ? w.positions() : w.pixels(),
                out_pixels = g.is_transposed ? w.pixels() : w.positions();
  const T* bias_data = bias ? bias->data<T>() : nullptr;
  for (int64_t n = 0; n < input.sizes()[0]; ++n) {
    for (int64_t group = 0; group < g.groups; ++group) {
      T* x = input.data<T>() + (n * g.groups + group) * in_channels * in_pixels;
      T* y = out.data<T>() + (n * g.groups + group) * out_channels * out_pixels;
      T* k = weight.data<T>() + group * (weight.numel() / g.groups);
      for (int64_t c = 0; c < out_channels; ++c) {
        const T start = bias_data ? bias_data[group * out_channels + c] : T(0);
        std::fill(y + c * out_pixels, y + (c + 1) * out_pixels, start);
      }
      const Matrix column_matrix{columns.raw_data(), column_rows, w.positions(), w.positions(), 1};
      if (g.is_transposed) {
        const Matrix kernel{k, column_rows, in_channels, 1, column_rows},
            image{x, in_channels, in_pixels, in_pixels, 1};
        gemm(input.dtype(), 1, kernel, image, 0, column_matrix);
        add_columns<T>(w, out_channels, columns.data<T>(), y);
      } else {
        const Matrix kernel{k, out_channels, column_rows, column_rows, 1},
            result{y, out_channels, out_pixels, out_pixels, 1};
        to_columns<T>(w, in_channels, x, columns.data<T>());
        gemm(input.dtype(), 1, kernel, column_matrix, 1, result);
      }
    }
  }
}

// The gradient for the weight: of each image, the grid's gradient times the image's columns.
template <class T>
void run_weights(const ConvGeometry& g, const Window& w, const Tensor& image, const Tensor& grid, const Tensor& out) {
  const int64_t in_channels = image.sizes()[1] / g.groups, out_channels = grid.sizes()[1] / g.groups;
  const int64_t column_rows = in_channels * w.patch();
  const Tensor columns = Tensor::empty(Dims{column_rows, w.positions()}, image.dtype());
  const Matrix column_matrix{columns.raw_data(), column_rows, w.positions(), w.positions(), 1};
  std::fill_n(out.data<T>(), out.numel(), T(0));
  for (int64_t n = 0; n < image.sizes()[0]; ++n) {
    for (int64_t group = 0; group < g.groups; ++group) {
      T* x = image.data<T>() + (n * g.groups + group) * in_channels * w.pixels();
      T* y = grid.data<T>() + (n * g.groups + group) * out_channels * w.positions();
      T* k = out.data<T>() + group * (out.numel() / g.groups);
      to_columns<T>(w, in_channels, x, columns.data<T>());
      gemm(image.dtype(), 1, {y, out_channels, w.positions(), w.positions(), 1}, column_matrix.transposed(), 1,
           {k, out_channels, column_rows, column_rows, 1});
    }
  }
}

// Sixteen partial sums, which the compiler can keep in vectors.
template <class Sum, class T>
Sum sum_of(const T* values, int64_t count) {
  constexpr int64_t kSums = 16;
  Sum sums[kSums] = {};
  int64_t i = 0;
  for (; i + kSums <= count; i += kSums) {
    for (int64_t j = 0; j < kSums; ++j) sums[j] = static_cast<Sum>(sums[j] + values[i + j]);
  }
  for (; i < count; ++i) sums[0] = static_cast<Sum>(sums[0] + values[i]);
  for (int64_t j = 1; j < kSums; ++j) sums[0] = static_cast<Sum>(sums[0] + sums[j]);
  return sums[0];
}

Window window_of(const ConvGeometry& g, const Tensor& image, const Tensor& grid, const Tensor& weight) {
  const auto spatial = [](const Tensor& t) { return t.sizes().span().subspan(2); };
  return {triple(spatial(image), 1), triple(spatial(grid), 1), triple(spatial(weight), 1),
          triple(g.stride, 1),       triple(g.padding_low, 0), triple(g.dilation, 1)};
}

template <class Body>
void dispatch(DType dtype, Body&& body) {
  if (dtype == DType::kFloat32)
    body.template operator()<float>();
  else if (dtype == DType::kFloat64)
    body.template operator()<double>();
  else
    dispatch_integral(dtype, "conv", body);
}

}  // namespace

void conv_by_gemm(const ConvGeometry& g, const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
                  Tensor& out) {
  if (out.numel() == 0) return;
  const Tensor &image = g.is_transposed ? out : input, &grid = g.is_transposed ? input : out;
  const Window window = window_of(g, image, grid, weight);
  const Tensor x = input.contiguous(), k = weight.contiguous(), b = bias ? bias->contiguous() : Tensor();
  const Tensor y = out.is_contiguous() ? out : Tensor::empty(out.sizes(), out.dtype());
  dispatch(input.dtype(), [&]<class T>() { run_gemm<T>(g, window, x, k, bias ? &b : nullptr, y); });
  if (!y.is_same(out)) strided_copy(out, y);
}

void conv_weight_by_gemm(const ConvGeometry& g, const Tensor& image, const Tensor& grid, Tensor& out) {
  if (out.numel() == 0) return;
  const Tensor x = image.contiguous(), y = grid.contiguous();
  const Tensor k = out.is_contiguous() ? out : Tensor::empty(out.sizes(), out.dtype());
  const Window window = window_of(g, image, grid, out);
  dispatch(out.dtype(), [&]<class T>() { run_weights<T>(g, window, x, y, k); });
  if (!k.is_same(out)) strided_copy(out, k);
}

void conv_bias_gradient(const Tensor& grad, Tensor& out) {
  if (out.device().kind == kCUDA) return conv_bias_gradient_cuda(grad, out);
  const bool is_last = grad.ndim() >= 4 && grad.is_channels_last() && !grad.is_contiguous();
  const Tensor dense = is_last ? grad : grad.contiguous();
  const int64_t batch = grad.sizes()[0], channels = grad.sizes()[1];
  const int64_t pixels = checked_numel(grad.sizes().span().subspan(2));
  dispatch(out.dtype(), [&]<class T>() {
    using Sum = std::conditional_t<std::is_integral_v<T>, T, double>;
    const T* from = dense.data<T>();
    T* to = out.data<T>();
    const ContextPart<&ExecutionContext::cancellation> whole(nullptr);  // a narrow part would read as much memory
    parallel_for_cost(channels, 0.2 * static_cast<double>(batch * pixels), [&](int64_t begin, int64_t end) {
      std::vector<Sum> sums(static_cast<size_t>(end - begin), Sum(0));
      for (int64_t row = 0; row < (is_last ? batch * pixels : batch); ++row) {
        for (int64_t c = begin; c < end; ++c) {
          Sum& sum = sums[static_cast<size_t>(c - begin)];
          const T* at = from + row * channels * (is_last ? 1 : pixels);
          sum = static_cast<Sum>(sum + (is_last ? at[c] : sum_of<Sum>(at + c * pixels, pixels)));
        }
      }
      for (int64_t c = begin; c < end; ++c) to[c] = static_cast<T>(sums[static_cast<size_t>(c - begin)]);
    });
  });
}

}  // namespace tensord::kernels
