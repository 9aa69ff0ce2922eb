#pragma once

#include <vector>

#include "core/ops/op.h"

// Gradients of matrix products; all written with products of the same kind, of operands as they lie.
namespace tensord::kernels::gradient {

std::vector<Tensor> of_mm(const ops::GradArgs& args);
std::vector<Tensor> of_bmm(const ops::GradArgs& args);
std::vector<Tensor> of_mv(const ops::GradArgs& args);
std::vector<Tensor> of_dot(const ops::GradArgs& args);
std::vector<Tensor> of_outer(const ops::GradArgs& args);
std::vector<Tensor> of_matmul(const ops::GradArgs& args);
std::vector<Tensor> of_linear(const ops::GradArgs& args);
// (self, left, right, beta, alpha)
std::vector<Tensor> of_addmm(const ops::GradArgs& args);
std::vector<Tensor> of_baddbmm(const ops::GradArgs& args);
std::vector<Tensor> of_addbmm(const ops::GradArgs& args);
std::vector<Tensor> of_addmv(const ops::GradArgs& args);

}  // namespace tensord::kernels::gradient
