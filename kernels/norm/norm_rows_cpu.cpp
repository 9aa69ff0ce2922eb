// layer_norm and group_norm on the CPU: rows or groups of a row-major tensor.
#include <optional>
#include <vector>

#include "core/base/parallel.h"
#include "core/ops/op.h"
#include "kernels/base/lines.h"
#include "kernels/norm/norm.h"
#include "kernels/pointwise/pointwise.h"
#include "kernels/reduce/row_kernel.h"

namespace tensord::kernels {
namespace {

using ops::IntList;
using ops::KernelContext;
using MaybeTensor = std::optional<Tensor>;

// A weight or bias as a dense array of T; empty if there is none.
template <class T>
std::vector<T> dense_parameter(const MaybeTensor& tensor) {
  if (!tensor) return {};
  const Tensor wide = tensor->to(dtype_of<T>).contiguous();
  return {wide.data<T>(), wide.data<T>() + wide.numel()};
}

// Normalizes rows of `length` elements, and writes each row's mean and rstd if asked to.
template <class T>
void layer_norm_rows(const Tensor& in, int64_t length, const MaybeTensor& weight, const MaybeTensor& bias, double eps,
                     const Tensor& out, T* means, T* rstds) {
  const Tensor source = in.contiguous();
  const std::vector<T> w = dense_parameter<T>(weight), b = dense_parameter<T>(bias);
  const bool direct = in.dtype() == dtype_of<T>;
  const auto size = static_cast<int64_t>(size_of(in.dtype()));
  const char* from = static_cast<const char*>(source.raw_data());
  char* to = static_cast<char*>(out.raw_data());
  const int64_t rows = length == 0 ? 0 : in.numel() / length;
  parallel_for(rows, std::max<int64_t>(1, 16384 / length), [&](int64_t begin, int64_t end) {
    std::vector<T> scratch(direct ? 0 : static_cast<size_t>(length));
    for (int64_t row = begin; row < end; ++row) {
      const char* row_in = from + row * length * size;
      char* row_out = to + row * length * size;
      const T* values = reinterpret_cast<const T*>(row_in);
      T* results = reinterpret_cast<T*>(row_out);
      if (!direct) {
        load_tile(in.dtype(), row_in, 1, dtype_of<T>, scratch.data(), length);
        values = results = scratch.data();
      }
      const Moments m = row_moments(values, length, eps);
      normalize_row(values, m, weight ? w.data() : nullptr, bias ? b.data() : nullptr, results, length);
      if (!direct) store_tile(dtype_of<T>, results, out.dtype(), row_out, 1, length);
      if (means != nullptr) means[row] = static_cast<T>(m.mean);
      if (rstds != nullptr) rstds[row] = static_cast<T>(m.rstd);
    }
  });
}

void layer_norm(const Tensor& in, int64_t length, const MaybeTensor& weight, const MaybeTensor& bias, double eps,
                Tensor& out, Tensor* mean, Tensor* rstd) {
  if (out.numel() == 0) return;
  if (in.dtype() == DType::kFloat64) {
    layer_norm_rows<double>(in, length, weight, bias, eps, out, mean ? mean->data<double>() : nullptr,
                            rstd ? rstd->data<double>() : nullptr);
  } else {
    layer_norm_rows<float>(in, length, weight, bias, eps, out, mean ? mean->data<float>() : nullptr,
                           rstd ? rstd->data<float>() : nullptr);
  }
}

template <class T>
void layer_norm_row(const RowKernel& call, const void* from, const void* const* extra, void* to, int64_t length) {
  const T* in = static_cast<const T*>(from);
  const Moments m = row_moments(in, length, call.eps);
  normalize_row(in, m, static_cast<const T*>(extra[0]), static_cast<const T*>(extra[1]), static_cast<T*>(to), length);
}
RowKernel layer_norm_call(std::span<const ops::Value> v) {
  const Tensor& in = v[0].to_tensor();
  const auto shape = ops::Unbox<IntList>::get(v[1]);
  RowKernel call;
  call.compute = call.result = loop_dtype(in.dtype());
  call.run = call.compute == DType::kFloat64 ? layer_norm_row<double> : layer_norm_row<float>;
  call.length = checked_numel(shape);
  call.extra = {2, 3};
  call.eps = v[4].is_int() ? static_cast<double>(v[4].to_int()) : v[4].to_float();
  call.cost_ns = 0.2;
  return call;
}
[[maybe_unused]] const bool layer_norm_is_row = (add_row_kernel_maker("aten::layer_norm", layer_norm_call), true);

IMPL("aten::layer_norm", kCPU,
     [](const KernelContext&, const Tensor& in, IntList shape, MaybeTensor weight, MaybeTensor bias, double eps, bool,
        Tensor& out) { layer_norm(in, checked_numel(shape), weight, bias, eps, out, nullptr, nullptr); });
IMPL("aten::native_layer_norm", kCPU,
     [](const KernelContext&, const Tensor& in, IntList shape, MaybeTensor weight, MaybeTensor bias, double eps,
        Tensor& out, Tensor& mean,
        Tensor& rstd) { layer_norm(in, checked_numel(shape), weight, bias, eps, out, &mean, &rstd); });

// Groups: row-major N, C, rest; the C / groups channels of a group share mean and variance.
template <class T>
void group_norm_rows(const Tensor& in, int64_t groups, const MaybeTensor& weight, const MaybeTensor& bias, double eps,
                     const Tensor& out, T* means, T* rstds) {
  const Tensor source = in.contiguous();
  const std::vector<T> w = dense_parameter<T>(weight), b = dense_parameter<T>(bias);
  const int64_t channels = in.sizes()[1], per_group = channels / groups,
                inner = in.numel() / (in.sizes()[0] * channels);
  const int64_t length = per_group * inner;
  const bool direct = in.dtype() == dtype_of<T>;
  const auto size = static_cast<int64_t>(size_of(in.dtype()));
  const char* from = static_cast<const char*>(source.raw_data());
  char* to = static_cast<char*>(out.raw_data());
  parallel_for(in.sizes()[0] * groups, std::max<int64_t>(1, 16384 / length), [&](int64_t begin, int64_t end) {
    std::vector<T> scratch(direct ? 0 : static_cast<size_t>(length));
    for (int64_t row = begin; row < end; ++row) {
      const T* values = reinterpret_cast<const T*>(from + row * length * size);
      T* results = reinterpret_cast<T*>(to + row * length * size);
      if (!direct) {
        load_tile(in.dtype(), values, 1, dtype_of<T>, scratch.data(), length);
        values = results = scratch.data();
      }
      const Moments m = row_moments(values, length, eps);
      const int64_t first = row % groups * per_group;
      for (int64_t c = 0; c < per_group; ++c) {
        const double scale = m.rstd * (weight ? static_cast<double>(w[first + c]) : 1.0);
        const double shift = (bias ? static_cast<double>(b[first + c]) : 0.0) - m.mean * scale;
        affine_row(values + c * inner, scale, shift, results + c * inner, inner);
      }
      if (!direct) store_tile(dtype_of<T>, results, out.dtype(), to + row * length * size, 1, length);
      if (means != nullptr) means[row] = static_cast<T>(m.mean);
      if (rstds != nullptr) rstds[row] = static_cast<T>(m.rstd);
    }
  });
}

void group_norm(const Tensor& in, int64_t groups, const MaybeTensor& weight, const MaybeTensor& bias, double eps,
                const Tensor& out, Tensor* mean, Tensor* rstd) {
  if (out.numel() == 0) return;
  if (in.dtype() == DType::kFloat64)
    group_norm_rows<double>(in, groups, weight, bias, eps, out, mean ? mean->data<double>() : nullptr,
                            rstd ? rstd->data<double>() : nullptr);
  else
    group_norm_rows<float>(in, groups, weight, bias, eps, out, mean ? mean->data<float>() : nullptr,
                           rstd ? rstd->data<float>() : nullptr);
}

IMPL("aten::group_norm", kCPU,
     [](const KernelContext&, const Tensor& in, int64_t groups, MaybeTensor weight, MaybeTensor bias, double eps, bool,
        Tensor& out) { group_norm(in, groups, weight, bias, eps, out, nullptr, nullptr); });
IMPL("aten::native_group_norm", kCPU,
     [](const KernelContext&, const Tensor& in, MaybeTensor weight, MaybeTensor bias, int64_t, int64_t, int64_t,
        int64_t groups, double eps, Tensor& out, Tensor& mean,
        Tensor& rstd) { group_norm(in, groups, weight, bias, eps, out, &mean, &rstd); });

}  // namespace
}  // namespace tensord::kernels
