#pragma once

#include <array>
#include <optional>
#include <vector>

#include "kernels/expr/expr.h"

namespace tensord::kernels {

// Gradients of the backward of a normalization, written with operators. The backward, with mean and
// rstd = 1 / sqrt(variance + eps) over `dims`, x^ = (x - mean) rstd and h = g weight, is
//   dx = rstd (h - mean(h) - x^ mean(h x^)),  dweight = sum of g x^,  dbias = sum of g
struct NormBackward {
  Tensor g, x;
  std::optional<Tensor> weight;  // of a shape that broadcasts to x
  Dims dims;
  double eps = 0;
  std::optional<Tensor> mean, rstd;  // used instead of computing them from x
  // Gradients that come in for dx (of x's sizes), dweight and dbias (as weight); undefined where none does.
  Tensor to_dx, to_dweight, to_dbias;
};
// Undefined where nothing depends on it. `weight` is of x's sizes where not yet summed over what it was
// repeated for.
struct NormBackwardGradients {
  Tensor g, x, weight;
};
NormBackwardGradients differentiate(const NormBackward& backward);

// The gradient of a normalization by its backward operator, whose last argument is the mask of what is asked for and
// which gives the gradients of input, weight and bias. `asked` are their positions among the forward arguments.
std::vector<ops::Value> norm_gradients(const ops::GradArgs& args, std::array<size_t, 3> asked, const char* backward,
                                       std::vector<ops::Value> arguments);

}  // namespace tensord::kernels
