// What operators ask of the tensors that their out= and in-place forms write, where it is not what most ask.
#include "core/ops/attributes/written.h"

#include <initializer_list>

namespace tensord::kernels {
namespace {

using DTypes = ops::WritesInto::DTypes;
using Sharing = ops::WritesInto::Sharing;

bool set(ops::WritesInto rule, std::initializer_list<const char*> operators) {
  for (const char* op : operators) ops::set_attribute(op, rule);
  return true;
}

#define RULE(DTYPES, SHARING, ...)                                 \
  [[maybe_unused]] const bool TENSORD_CONCAT(rule_, __COUNTER__) = \
      set({DTypes::DTYPES, Sharing::SHARING}, {__VA_ARGS__})

// Pointwise, of one tensor.
RULE(kSame, kWhole, "aten::abs", "aten::bitwise_not", "aten::ceil", "aten::clamp_max", "aten::clamp_min", "aten::elu",
     "aten::floor", "aten::frac", "aten::gelu", "aten::hardshrink", "aten::hardsigmoid", "aten::hardswish",
     "aten::hardtanh", "aten::heaviside", "aten::isneginf", "aten::isposinf", "aten::leaky_relu", "aten::log_sigmoid",
     "aten::mish", "aten::nan_to_num", "aten::neg", "aten::pow.Tensor_Scalar", "aten::round", "aten::round.decimals",
     "aten::sgn", "aten::sign", "aten::signbit", "aten::silu", "aten::softplus", "aten::softshrink", "aten::square",
     "aten::trunc");
// Products that add to an operand, and others that begin to write before they have read.
RULE(kSame, kWhole, "aten::addbmm", "aten::addmm", "aten::addmv", "aten::baddbmm", "aten::inner", "aten::renorm",
     "aten::complex", "aten::polar");
RULE(kCast, kWhole, "aten::addr", "aten::cumsum", "aten::kron", "aten::outer", "aten::ger", "aten::matrix_power",
     "aten::linalg_matrix_power", "aten::float_power.Tensor_Tensor");
// What moves elements.
RULE(kSame, kNone, "aten::gather", "aten::index_select", "aten::take_along_dim");
RULE(kCast, kNone, "aten::cat", "aten::stack", "aten::column_stack", "aten::index_add", "aten::index_copy",
     "aten::index_reduce", "aten::put", "aten::scatter.src", "aten::scatter.reduce", "aten::scatter_add",
     "aten::scatter_reduce.two");
RULE(kSame, kPart, "aten::all.dim", "aten::amax", "aten::amin", "aten::any.dim", "aten::bmm", "aten::chain_matmul",
     "aten::col2im", "aten::dot", "aten::histc", "aten::im2col", "aten::linalg_eigvalsh", "aten::linalg_ldl_solve",
     "aten::linalg_matrix_norm", "aten::linalg_multi_dot", "aten::linalg_solve_triangular", "aten::linalg_svdvals",
     "aten::linalg_vecdot", "aten::linalg_vector_norm", "aten::linear", "aten::matmul", "aten::mm", "aten::mv",
     "aten::nanquantile", "aten::nanquantile.scalar", "aten::ormqr", "aten::quantile", "aten::quantile.scalar",
     "aten::tril", "aten::triu", "aten::vdot");
RULE(kSame, kPart, "aten::upsample_nearest1d", "aten::upsample_nearest2d", "aten::upsample_nearest3d",
     "aten::_upsample_nearest_exact1d", "aten::_upsample_nearest_exact2d", "aten::_upsample_nearest_exact3d",
     "aten::upsample_linear1d", "aten::upsample_bilinear2d", "aten::upsample_trilinear3d", "aten::upsample_bicubic2d",
     "aten::_upsample_bilinear2d_aa", "aten::_upsample_bicubic2d_aa");
RULE(kCastOfKind, kPart, "aten::fft_hfft", "aten::fft_hfft2", "aten::fft_hfftn", "aten::fft_irfft", "aten::fft_irfft2",
     "aten::fft_irfftn");

}  // namespace
}  // namespace tensord::kernels
