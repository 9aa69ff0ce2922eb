// One-dimensional transforms by PocketFFT, compiled for each instruction set. Its own threads are off; the loop here
// divides the batch. Without contraction (see kernels/CMakeLists.txt) its vector and scalar code give the same bits.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/fft/transform_cpu.cpp"
#ifndef HWY_DISABLED_TARGETS
// The baseline has vectors of 16 bytes too.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#endif
#include "kernels/base/simd_targets.h"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

// The headers that pocketfft includes, before it is included inside of a namespace.
#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <vector>

#include "core/base/parallel.h"
#include "core/tensor/complex.h"
#include "kernels/fft/transform.h"

#define POCKETFFT_NO_MULTITHREADING
#define POCKETFFT_CACHE_SIZE 16
#undef POCKETFFT_HDRONLY_H
#undef PYTHONIC_INCLUDE_NUMPY_FFT_POCKETFFT_HPP
#undef POCKETFFT_NO_VECTORS

HWY_BEFORE_NAMESPACE();
namespace tensord::kernels::HWY_NAMESPACE {

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpsabi"
#ifndef __clang__                                       // which has no warning of this name
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // false: GCC for arm64 misses that a loop writes it
#endif
#include <pocketfft.hpp>
#pragma GCC diagnostic pop

// A part of a pass. Strides are in bytes.
struct Piece {
  std::vector<size_t> shape;  // of the real side, or of both if both are complex
  std::vector<std::ptrdiff_t> in_strides, out_strides;
  size_t axis;
  bool forward;
};

template <class T>
void transform_as(FourierKind kind, const Piece& p, const void* in, void* out, double scale) {
  using C = std::complex<T>;
  const T factor = static_cast<T>(scale);
  switch (kind) {
    case FourierKind::kComplex:
      return pocketfft::c2c(p.shape, p.in_strides, p.out_strides, {p.axis}, p.forward, static_cast<const C*>(in),
                            static_cast<C*>(out), factor, 1);
    case FourierKind::kRealToComplex:
      return pocketfft::r2c(p.shape, p.in_strides, p.out_strides, p.axis, p.forward, static_cast<const T*>(in),
                            static_cast<C*>(out), factor, 1);
    case FourierKind::kComplexToReal:
      return pocketfft::c2r(p.shape, p.in_strides, p.out_strides, p.axis, p.forward, static_cast<const C*>(in),
                            static_cast<T*>(out), factor, 1);
  }
}

void transform(FourierKind kind, bool is_double, const std::vector<size_t>& shape,
               const std::vector<std::ptrdiff_t>& in_strides, const std::vector<std::ptrdiff_t>& out_strides,
               size_t axis, bool forward, const void* in, void* out, double scale) {
  const Piece piece{shape, in_strides, out_strides, axis, forward};
  return is_double ? transform_as<double>(kind, piece, in, out, scale)
                   : transform_as<float>(kind, piece, in, out, scale);
}

}  // namespace tensord::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensord::kernels {

HWY_EXPORT(transform);

namespace {

std::vector<std::ptrdiff_t> byte_strides(const Tensor& x) {
  std::vector<std::ptrdiff_t> strides;
  for (const int64_t stride : x.strides()) strides.push_back(stride * static_cast<int64_t>(size_of(x.dtype())));
  return strides;
}

}  // namespace

void fourier_pass(FourierKind kind, const Tensor& in, const Tensor& out, int64_t dim, bool forward, double scale) {
  const Tensor& full = kind == FourierKind::kComplexToReal ? out : in;
  if (full.numel() == 0) return;
  if (out.device().kind == kCUDA) return fourier_cuda(kind, in, out, {dim}, forward, scale);
  const auto axis = static_cast<size_t>(wrap_dim(dim, in.ndim()));
  std::vector<size_t> shape(full.sizes().begin(), full.sizes().end());
  const auto in_strides = byte_strides(in), out_strides = byte_strides(out);
  const bool is_double = real_dtype(in.dtype()) == DType::kFloat64;
  // The largest other dimension is divided, into parts that fill vectors.
  size_t cut = axis == 0 ? 1 : 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (d != axis && shape[d] > shape[cut]) cut = d;
  }
  const auto run = [&](int64_t begin, int64_t end) {
    std::vector<size_t> piece = shape;
    const char* from = static_cast<const char*>(in.raw_data());
    char* to = static_cast<char*>(out.raw_data());
    if (shape.size() > 1) {
      piece[cut] = static_cast<size_t>(end - begin);
      from += begin * in_strides[cut];
      to += begin * out_strides[cut];
    }
    HWY_DYNAMIC_DISPATCH(transform)(kind, is_double, piece, in_strides, out_strides, axis, forward, from, to, scale);
  };
  if (shape.size() < 2) return run(0, 1);
  constexpr int64_t kLanes = 16;
  const auto count = static_cast<int64_t>(shape[cut]);
  const int64_t blocks = (count + kLanes - 1) / kLanes;
  const double n = static_cast<double>(shape[axis]), lines = static_cast<double>(full.numel()) / n;
  const double ns = lines / static_cast<double>(blocks) * n * std::log2(n + 2);  // of a block, roughly
  parallel_for_cost(blocks, ns,
                    [&](int64_t begin, int64_t end) { run(begin * kLanes, std::min(end * kLanes, count)); });
}

void fourier_passes(const Tensor& in, const Tensor& out, const Dims& dims, bool forward, double scale) {
  if (out.numel() == 0 || dims.empty()) return;
  if (out.device().kind == kCUDA) return fourier_cuda(FourierKind::kComplex, in, out, dims, forward, scale);
  const Tensor* source = &in;
  for (size_t i = dims.size(); i-- > 0;) {
    fourier_pass(FourierKind::kComplex, *source, out, dims[i], forward, scale);
    source = &out;
    scale = 1;
  }
}

}  // namespace tensord::kernels
#endif
