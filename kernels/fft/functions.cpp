// torch.fft: pads or cuts the input, chooses the dimensions, and scales the result.
#include <algorithm>
#include <string>

#include "core/ops/attributes/written.h"
#include "core/ops/complex.h"
#include "core/tensor/complex.h"
#include "kernels/expr/compose.h"
#include "ops/factory.h"
#include "ops/fft.h"
#include "ops/pointwise.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

using ops::WritesInto;
using MaybeInt = std::optional<int64_t>;
using MaybeDims = std::optional<Dims>;
using Norm = std::optional<std::string>;

int64_t norm_of(const Norm& norm, bool forward) {
  if (!norm || *norm == "backward") return forward ? 0 : 2;
  if (*norm == "forward") return forward ? 2 : 0;
  if (*norm == "ortho") return 1;
  fail(ErrorCode::kInvalidArgument, "Invalid normalization mode: \"", *norm, "\"");
}

DType floating_dtype(const char* op, const Tensor& x) {
  const DType dtype = x.dtype();
  if (is_integral(dtype, true)) return DType::kFloat32;
  if (dtype == DType::kFloat16 || dtype == DType::kBFloat16) {
    fail(ErrorCode::kUnimplemented, op, ": Unsupported dtype ", name_of(dtype));
  }
  return dtype;
}
Tensor as_floating(const char* op, const Tensor& x) {
  check(!is_complex(x.dtype()), op, " expects a real input tensor, but got ", name_of(x.dtype()));
  return compose::to(x, floating_dtype(op, x));
}
Tensor as_complex_input(const char* op, const Tensor& x) {
  return compose::to(x, complex_dtype(floating_dtype(op, x)));
}

// Cuts `dims` to `sizes`, or pads them with zeros at the end.
Tensor resized(Tensor x, const Dims& dims, const Dims& sizes) {
  Dims pad(2 * static_cast<size_t>(x.ndim()), 0);
  bool must_pad = false;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (sizes[i] == -1) continue;
    const int64_t size = x.size(dims[i]);
    if (sizes[i] < size) x = ops::narrow(x, dims[i], 0, sizes[i]);
    if (sizes[i] <= size) continue;
    must_pad = true;
    pad[pad.size() - 2 * static_cast<size_t>(dims[i]) - 1] = sizes[i] - size;
  }
  return must_pad ? ops::constant_pad_nd(x, pad, ops::Scalar(0)) : x;
}

int64_t dim_of(const Tensor& x, int64_t dim) {
  check(x.ndim() > 0, "Dimension specified as ", dim, " but tensor has no dimensions");
  return wrap_dim(dim, x.ndim());
}

void check_points(int64_t n) { check(n >= 1, "Invalid number of data points (", n, ") specified"); }

// --- one dimension

Tensor complex_1d(const char* op, const Tensor& given, MaybeInt n, int64_t dim, const Norm& norm, bool forward) {
  const Tensor x = as_complex_input(op, given);
  const int64_t at = dim_of(x, dim);
  check_points(n.value_or(x.size(at)));
  return ops::_fft_c2c(n ? resized(x, Dims{at}, Dims{*n}) : x, Dims{at}, norm_of(norm, forward), forward);
}
Tensor from_real_1d(const char* op, const Tensor& given, MaybeInt n, int64_t dim, const Norm& norm, bool forward,
                    bool onesided) {
  const Tensor x = as_floating(op, given);
  const int64_t at = dim_of(x, dim);
  check_points(n.value_or(x.size(at)));
  const Tensor y = ops::_fft_r2c(n ? resized(x, Dims{at}, Dims{*n}) : x, Dims{at}, norm_of(norm, forward), onesided);
  return forward ? y : ops::conj(y);
}
Tensor to_real_1d(const char* op, const Tensor& given, MaybeInt n, int64_t dim, const Norm& norm, bool forward) {
  const Tensor x = as_complex_input(op, given);
  const int64_t at = dim_of(x, dim), points = n.value_or(2 * (x.size(at) - 1));
  check_points(points);
  const Tensor half = n ? resized(x, Dims{at}, Dims{points / 2 + 1}) : x;
  return ops::_fft_c2r(forward ? ops::conj(half) : half, Dims{at}, norm_of(norm, forward), points);
}
Tensor any_1d(const char* op, const Tensor& x, MaybeInt n, int64_t dim, const Norm& norm, bool forward) {
  return is_complex(x.dtype()) ? complex_1d(op, x, n, dim, norm, forward)
                               : from_real_1d(op, x, n, dim, norm, forward, false);
}

// Transforms of real and of complex tensors, composed of the operators for each.
#define FOURIER(NAME, TAKES, ...)                                                     \
  OP("aten::" NAME).impl(__VA_ARGS__).composite().set<WritesInto>(WritesInto::TAKES); \
  IMPL("aten::" NAME, ops::kComplexCPU, ops::kSameAsDense)
#define FOURIER_1D(NAME, TAKES, EXPRESSION) \
  FOURIER("fft_" NAME, TAKES, [](const Tensor& x, MaybeInt n, int64_t dim, const Norm& norm) { return EXPRESSION; })
FOURIER_1D("fft", kAnyDType, any_1d("fft", x, n, dim, norm, true));
FOURIER_1D("ifft", kAnyDType, any_1d("ifft", x, n, dim, norm, false));
FOURIER_1D("rfft", kAnyDType, from_real_1d("rfft", x, n, dim, norm, true, true));
FOURIER_1D("irfft", kSameKind, to_real_1d("irfft", x, n, dim, norm, false));
FOURIER_1D("hfft", kSameKind, to_real_1d("hfft", x, n, dim, norm, true));
FOURIER_1D("ihfft", kAnyDType, from_real_1d("ihfft", x, n, dim, norm, false, true));

// --- several dimensions

struct Shape {
  Dims dims, sizes;
};

Shape shape_of(const Tensor& x, const MaybeDims& sizes, const MaybeDims& dims) {
  Shape out;
  if (dims) {
    for (const int64_t dim : *dims) out.dims.push_back(dim_of(x, dim));
    for (size_t i = 0; i < out.dims.size(); ++i) {
      check(std::count(out.dims.begin(), out.dims.end(), out.dims[i]) == 1, "FFT dims must be unique");
    }
  }
  if (sizes) {
    check(!dims || dims->size() == sizes->size(), "When given, dim and shape arguments must have the same length");
    const auto count = static_cast<int64_t>(sizes->size());
    check(count <= x.ndim(), "Got shape with ", count, " values but input tensor only has ", x.ndim(), " dimensions.");
    if (!dims) {
      for (int64_t i = 0; i < count; ++i) out.dims.push_back(x.ndim() - count + i);
    }
    for (size_t i = 0; i < sizes->size(); ++i) {
      out.sizes.push_back((*sizes)[i] == -1 ? x.size(out.dims[i]) : (*sizes)[i]);
    }
  } else {
    if (!dims) {
      for (int64_t i = 0; i < x.ndim(); ++i) out.dims.push_back(i);
    }
    for (const int64_t dim : out.dims) out.sizes.push_back(x.size(dim));
  }
  for (const int64_t size : out.sizes) check_points(size);
  return out;
}
// For a real result, the last size is the size before the input was halved.
Shape half_shape_of(const char* op, const Tensor& x, const MaybeDims& sizes, const MaybeDims& dims, int64_t& points) {
  Shape out = shape_of(x, sizes, dims);
  check(!out.dims.empty(), op, " must transform at least one axis");
  points = sizes && sizes->back() != -1 ? sizes->back() : 2 * (x.size(out.dims.back()) - 1);
  check_points(points);
  out.sizes.back() = points / 2 + 1;
  return out;
}
Dims without_last(const Dims& dims) { return dims.span().first(dims.size() - 1); }

Tensor complex_nd(const char* op, const Tensor& x, const MaybeDims& sizes, const MaybeDims& dims, const Norm& norm,
                  bool forward) {
  const Tensor input = as_complex_input(op, x);
  const Shape shape = shape_of(x, sizes, dims);
  return ops::_fft_c2c(resized(input, shape.dims, shape.sizes), shape.dims, norm_of(norm, forward), forward);
}
Tensor rfft_nd(const char* op, const Tensor& x, const MaybeDims& sizes, const MaybeDims& dims, const Norm& norm) {
  const Tensor input = as_floating(op, x);
  const Shape shape = shape_of(x, sizes, dims);
  check(!shape.dims.empty(), op, " must transform at least one axis");
  return ops::_fft_r2c(resized(input, shape.dims, shape.sizes), shape.dims, norm_of(norm, true), true);
}
Tensor irfft_nd(const char* op, const Tensor& x, const MaybeDims& sizes, const MaybeDims& dims, const Norm& norm) {
  int64_t points = 0;
  const Shape shape = half_shape_of(op, x, sizes, dims, points);
  return ops::_fft_c2r(resized(as_complex_input(op, x), shape.dims, shape.sizes), shape.dims, norm_of(norm, false),
                       points);
}
Tensor hfft_nd(const char* op, const Tensor& given, const MaybeDims& sizes, const MaybeDims& dims, const Norm& norm) {
  int64_t points = 0;
  const Shape shape = half_shape_of(op, given, sizes, dims, points);
  const int64_t scale = norm_of(norm, true);
  Tensor x = resized(as_complex_input(op, given), shape.dims, shape.sizes);
  if (shape.dims.size() > 1) x = ops::_fft_c2c(x, without_last(shape.dims), scale, true);
  return ops::_fft_c2r(ops::conj(x), Dims{shape.dims.back()}, scale, points);
}
Tensor ihfft_nd(const char* op, const Tensor& given, const MaybeDims& sizes, const MaybeDims& dims, const Norm& norm) {
  const Tensor input = as_floating(op, given);
  const Shape shape = shape_of(given, sizes, dims);
  check(!shape.dims.empty(), op, " must transform at least one axis");
  const int64_t scale = norm_of(norm, false);
  const Tensor half = ops::_fft_r2c(resized(input, shape.dims, shape.sizes), Dims{shape.dims.back()}, scale, true);
  Tensor turned = ops::conj(half);
  if (shape.dims.size() == 1) return turned;
  return ops::_fft_c2c(turned, without_last(shape.dims), scale, false);
}

#define FOURIER_ND(NAME, TAKES, FUNCTION, ...)                                                                       \
  FOURIER("fft_" NAME "n", TAKES, [](const Tensor& x, const MaybeDims& s, const MaybeDims& dims, const Norm& norm) { \
    return FUNCTION(NAME "n", x, s, dims, norm __VA_OPT__(, ) __VA_ARGS__);                                          \
  });                                                                                                                \
  FOURIER("fft_" NAME "2", TAKES, [](const Tensor& x, const MaybeDims& s, const Dims& dims, const Norm& norm) {      \
    return FUNCTION(NAME "2", x, s, dims, norm __VA_OPT__(, ) __VA_ARGS__);                                          \
  })
FOURIER_ND("fft", kAnyDType, complex_nd, true);
FOURIER_ND("ifft", kAnyDType, complex_nd, false);
FOURIER_ND("rfft", kAnyDType, rfft_nd);
FOURIER_ND("irfft", kSameKind, irfft_nd);
FOURIER_ND("hfft", kSameKind, hfft_nd);
FOURIER_ND("ihfft", kAnyDType, ihfft_nd);

// --- frequencies

using Options = std::optional<DType>;
// first, first + 1, … below `end`, times 1 / (n d).
Tensor line(int64_t first, int64_t end, DType dtype, std::optional<Device> device) {
  return ops::arange(first, end, {.dtype = dtype, .device = device});
}
DType line_dtype(const Options& dtype) {
  const DType chosen = dtype.value_or(DType::kFloat32);
  check(is_floating(chosen) || is_complex(chosen), "fftfreq requires a floating point or complex dtype");
  return chosen;
}
Tensor scaled(const Tensor& x, int64_t n, double d) { return ops::mul(x, 1.0 / (static_cast<double>(n) * d)); }
OP("aten::fft_fftfreq")
    .impl([](int64_t n, double d, Options dtype, const ops::Value&, std::optional<Device> device, std::optional<bool>) {
      check(n >= 0, "fftfreq: n must not be negative, but is ", n);
      const DType chosen = line_dtype(dtype);
      return scaled(ops::cat({line(0, (n + 1) / 2, chosen, device), line(-(n / 2), 0, chosen, device)}, 0), n, d);
    });
OP("aten::fft_rfftfreq")
    .impl([](int64_t n, double d, Options dtype, const ops::Value&, std::optional<Device> device, std::optional<bool>) {
      check(n >= 0, "rfftfreq: n must not be negative, but is ", n);
      return scaled(line(0, n / 2 + 1, line_dtype(dtype), device), n, d);
    });

}  // namespace
}  // namespace tensord::kernels
