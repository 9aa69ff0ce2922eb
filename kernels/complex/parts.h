#pragma once

#include "core/ops/complex.h"
#include "core/ops/run.h"
#include "core/tensor/complex.h"

// Operators of complex tensors that are made of calls for their real and imaginary parts.
namespace tensord::kernels::complex_parts {

// Views of the parts, without autograd. Of a real tensor: itself, and zeros.
Tensor real_of(const Tensor& x);
Tensor imag_of(const Tensor& x);
// A new tensor with these parts, of one shape and dtype; in the memory order of `real`.
Tensor combine(const Tensor& real, const Tensor& imag);

// The number of an argument, -1 when it has none of that name.
int argument_of(const ops::Op& op, std::string_view name);

// A linear map with real coefficients: its call for the real parts and its call for the imaginary parts give
// the parts of its results. Written tensors are written part by part; positions and masks (by their argument's name) go
// to both calls, and numbers that stand for elements ("value", "fill_value") are taken apart. Texts must live as long
// as the program.
void add_by_parts(const char* names);
// Linear in each of two arguments: four calls, or two where one of them is real.
void add_bilinear(const char* names, const char* first, const char* second);

}  // namespace tensord::kernels::complex_parts
