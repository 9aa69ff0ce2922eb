#pragma once

#include "core/ops/complex.h"
#include "core/ops/run.h"
#include "core/tensor/complex.h"

// Operators on complex tensors that call operators on their real and imaginary parts.
namespace tensord::kernels::complex_parts {

// Views of the parts, without autograd. For a real tensor: itself, and zeros.
Tensor real_of(const Tensor& x);
Tensor imag_of(const Tensor& x);
// A new tensor with these parts, which have the same shape and dtype; in the memory order of `real`.
Tensor combine(const Tensor& real, const Tensor& imag);

// The index of an argument, -1 if there is none of that name.
int argument_of(const ops::Op& op, std::string_view name);

// Registers a linear map with real coefficients: one call for the real parts and one for the imaginary parts give the
// parts of its results. Written tensors are written part by part; indices and masks (by argument name) are passed to
// both calls, and numbers that are elements ("value", "fill_value") are split. Strings must live as long as the
// program.
void add_by_parts(const char* names);
// Registers an operator that is linear in each of two arguments: four calls, or two if one of them is real.
void add_bilinear(const char* names, const char* first, const char* second);

}  // namespace tensord::kernels::complex_parts
