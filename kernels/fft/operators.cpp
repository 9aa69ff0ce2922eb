// The operators that all other transforms use: _fft_c2c, _fft_r2c, _fft_c2r, over any dimensions.
#include <cmath>

#include "core/ops/complex.h"
#include "core/tensor/complex.h"
#include "kernels/expr/compose.h"
#include "kernels/fft/transform.h"
#include "ops/fft.h"
#include "ops/pointwise.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

using ops::GradArgs;

// The scale of a transform of n numbers in all, by PyTorch's numbers: 0 none, 1 divides by √n, 2 by n.
double scale_of(int64_t normalization, const Dims& sizes, const Dims& dims) {
  check(normalization >= 0 && normalization <= 2, "Invalid normalization type ", normalization);
  double n = 1;
  for (const int64_t dim : dims) n *= static_cast<double>(sizes[static_cast<size_t>(dim)]);
  return normalization == 0 ? 1 : normalization == 1 ? 1 / std::sqrt(n) : 1 / n;
}

Dims wrapped(const Tensor& x, const Dims& dims) {
  Dims out;
  for (const int64_t dim : dims) {
    check(x.ndim() > 0, "Dimension specified as ", dim, " but tensor has no dimensions");
    out.push_back(wrap_dim(dim, x.ndim()));
  }
  return out;
}

Tensor allocate(const Tensor& like, const Dims& sizes, DType dtype) {
  if (like.is_meta()) return Tensor::meta(sizes, dtype, like.device());
  return Tensor::empty(sizes, dtype, like.device());
}

void check_complex(const char* op, const Tensor& x) {
  check(is_complex(x.dtype()), op, " expects a complex tensor, but got ", name_of(x.dtype()));
}
void check_real(const Tensor& x) {
  if (x.dtype() == DType::kFloat32 || x.dtype() == DType::kFloat64) return;
  fail(ErrorCode::kUnimplemented, "Unsupported dtype ", name_of(x.dtype()));
}

Tensor complex_to_complex(const Tensor& x, const Dims& given, int64_t normalization, bool forward) {
  check_complex("_fft_c2c", x);
  const Dims dims = wrapped(x, given);
  if (dims.empty()) return x.clone();
  const double scale = scale_of(normalization, x.sizes(), dims);
  const Tensor out = allocate(x, x.sizes(), x.dtype());
  if (!out.is_meta()) fourier_passes(x, out, dims, forward, scale);
  return out;
}
#define C2C "aten::_fft_c2c"
OP(C2C)
    .impl(complex_to_complex)
    .gradient(gradient::of_first([](const GradArgs& args, const Tensor& g) {
      return ops::_fft_c2c(g, ops::unbox<Dims>(args.inputs[1]), args.inputs[2].to_int(), !args.inputs[3].to_bool());
    }))
    .saves("");
IMPL(C2C, ops::kComplexCPU, ops::kSameAsDense).linear();

// Fills in the other half of a transform of real numbers along the last of `dims`: the conjugate of the opposite
// element.
void fill_mirror(const Tensor& half, const Tensor& full, const Dims& dims) {
  const int64_t last = dims.back(), n = full.size(last), rest = n - half.size(last);
  const auto part = [&](const Tensor& x, int64_t start, int64_t length) { return ops::narrow(x, last, start, length); };
  part(full, 0, half.size(last)).copy_from(half);
  if (rest <= 0) return;
  // Index k > n/2 is the conjugate of −k in every transformed dimension.
  Tensor mirrored = ops::flip(part(half, 1, rest), Dims{last});
  for (size_t i = 0; i + 1 < dims.size(); ++i) {
    mirrored = ops::roll(ops::flip(mirrored, Dims{dims[i]}), Dims{1}, Dims{dims[i]});
  }
  part(full, half.size(last), rest).copy_from(ops::conj(mirrored));
}

Tensor real_to_complex(const Tensor& x, const Dims& given, int64_t normalization, bool onesided) {
  check_real(x);
  check(!given.empty(), "_fft_r2c: at least one dimension must be transformed");
  const Dims dims = wrapped(x, given);
  check(x.size(dims.back()) > 0, "_fft_r2c: Invalid number of data points (0) specified");
  const double scale = scale_of(normalization, x.sizes(), dims);
  Dims sizes = x.sizes();
  sizes[static_cast<size_t>(dims.back())] = sizes[static_cast<size_t>(dims.back())] / 2 + 1;
  const DType dtype = complex_dtype(x.dtype());
  const Tensor half = allocate(x, sizes, dtype), full = onesided ? half : allocate(x, x.sizes(), dtype);
  if (x.is_meta()) return full;
  fourier_pass(FourierKind::kRealToComplex, x, half, dims.back(), true, scale);
  fourier_passes(half, half, dims.span().first(dims.size() - 1), true, 1);
  if (!onesided) fill_mirror(half, full, dims);
  return full;
}
#define R2C "aten::_fft_r2c"
OP(R2C)
    .impl(real_to_complex)
    .gradient(gradient::of_first([](const GradArgs& args, const Tensor& given) {
      Tensor g = given;
      const Tensor& x = args.inputs[0].to_tensor();
      const int64_t last = wrap_dim(gradient::ints_of(args, 1).back(), x.ndim());
      if (const int64_t missing = x.size(last) - g.size(last); missing > 0) {
        Dims pad(2 * static_cast<size_t>(x.ndim() - last), 0);
        pad.back() = missing;
        g = ops::constant_pad_nd(g, pad, ops::Scalar(0));
      }
      return ops::real(ops::_fft_c2c(g, ops::unbox<Dims>(args.inputs[1]), args.inputs[2].to_int(), false));
    }))
    .saves("");
IMPL(R2C, ops::kComplexCPU, ops::kSameAsDense).linear();

Tensor complex_to_real(const Tensor& x, const Dims& given, int64_t normalization, int64_t last_dim_size) {
  check_complex("_fft_c2r", x);
  check(!given.empty(), "_fft_c2r: at least one dimension must be transformed");
  const Dims dims = wrapped(x, given);
  const int64_t last = dims.back();
  check(last_dim_size >= 1 && x.size(last) == last_dim_size / 2 + 1, "_fft_c2r: a result of ", last_dim_size,
        " numbers needs ", last_dim_size / 2 + 1, ", but got ", x.size(last));
  Dims sizes = x.sizes();
  sizes[static_cast<size_t>(last)] = last_dim_size;
  const double scale = scale_of(normalization, sizes, dims);
  const Tensor out = allocate(x, sizes, real_dtype(x.dtype()));
  if (x.is_meta()) return out;
  Tensor half = x;
  if (dims.size() > 1) {
    half = Tensor::empty(x.sizes(), x.dtype(), x.device());
    fourier_passes(x, half, dims.span().first(dims.size() - 1), false, 1);
  }
  fourier_pass(FourierKind::kComplexToReal, half, out, last, false, scale);
  return out;
}
#define C2R "aten::_fft_c2r"
// An element that stands for two counts twice.
Tensor gradient_of_c2r(const GradArgs& args, const Tensor& given) {
  const int64_t last = wrap_dim(gradient::ints_of(args, 1).back(), given.ndim());
  Tensor g = ops::_fft_r2c(given, ops::unbox<Dims>(args.inputs[1]), args.inputs[2].to_int(), true);
  const int64_t doubled = given.size(last) - g.size(last);
  if (doubled <= 0) return g;
  const auto part = [&](int64_t start, int64_t length) { return ops::narrow(g, last, start, length); };
  const Tensor middle = ops::mul(part(1, doubled), ops::Scalar(2));
  return ops::cat({part(0, 1), middle, part(1 + doubled, g.size(last) - 1 - doubled)}, last);
}
OP(C2R).impl(complex_to_real).gradient(gradient::of_first(gradient_of_c2r)).saves("");
IMPL(C2R, ops::kComplexCPU, ops::kSameAsDense).linear();

}  // namespace
}  // namespace tensord::kernels
