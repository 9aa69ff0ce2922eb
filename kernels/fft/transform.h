#pragma once

#include "core/tensor/dims.h"
#include "core/tensor/tensor.h"

namespace tensord::kernels {

enum class FourierKind : uint8_t {
  kComplex,        // complex to complex
  kRealToComplex,  // the half of the result that says all of it: n / 2 + 1 numbers
  kComplexToReal,  // from such a half
};

// Transforms along one dimension: out = scale · Σ in · exp(∓2πi jk / n), − where `forward`. Both have the same other
// sizes, any strides, and elements of one precision; the length n is that of the real or full side. `out` may be `in`
// for kComplex. In parallel over the other dimensions; the bits do not depend on how many threads there are.
void fourier_pass(FourierKind kind, const Tensor& in, const Tensor& out, int64_t dim, bool forward, double scale);
// The same for kComplex along several dimensions, from the last one on.
void fourier_passes(const Tensor& in, const Tensor& out, const Dims& dims, bool forward, double scale);

// Both, on a CUDA device: by cuFFT or, without it, by a copy to the host and back. Of other kinds than kComplex there
// is one dimension.
void fourier_cuda(FourierKind kind, const Tensor& in, const Tensor& out, const Dims& dims, bool forward, double scale);

}  // namespace tensord::kernels
