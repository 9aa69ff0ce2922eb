// Operators whose CPU kernel also serves CUDA: it does not read elements itself, but calls functions that work on the
// tensor's device (copy_elements, zero_elements, run_reduction, index) or other operators.
#include <sstream>
#include <string>
#include <unordered_set>

#include "core/ops/registry.h"

namespace tensord::kernels {
namespace {

constexpr const char* kSharedKernels = R"(
  aten::zeros aten::ones aten::empty.memory_format aten::empty_strided aten::full aten::zeros_like aten::empty_like
  aten::ones_like aten::full_like aten::new_zeros aten::new_empty aten::new_empty_strided aten::new_ones aten::new_full
  aten::eye aten::eye.m
  aten::cat aten::concat aten::concatenate aten::stack aten::hstack aten::vstack aten::row_stack aten::dstack
  aten::repeat aten::tile aten::roll aten::flip aten::fliplr aten::flipud aten::constant_pad_nd
  aten::select_backward aten::slice_backward aten::diagonal_backward
  aten::sum aten::sum.dim_IntList aten::mean aten::mean.dim aten::prod aten::prod.dim_int
  aten::max aten::min aten::amax aten::amin aten::any aten::any.dim aten::all aten::all.dim
  aten::count_nonzero aten::count_nonzero.dim_IntList
  aten::var aten::var.dim aten::var.correction aten::std aten::std.dim aten::std.correction
  aten::var_mean aten::var_mean.dim aten::var_mean.correction
  aten::std_mean aten::std_mean.dim aten::std_mean.correction
  aten::norm.Scalar aten::norm.ScalarOpt_dtype aten::norm.ScalarOpt_dim aten::norm.ScalarOpt_dim_dtype
  aten::linalg_vector_norm
  aten::all.dims aten::any.dims aten::logsumexp
  aten::_unsafe_view aten::unsafe_chunk aten::unsafe_split.Tensor aten::unsafe_split_with_sizes
  aten::conv1d aten::conv2d aten::conv3d aten::conv1d.padding aten::conv2d.padding aten::conv3d.padding
  aten::_convolution_mode aten::convolution aten::_convolution aten::_convolution.deprecated
  aten::conv_transpose1d aten::conv_transpose2d.input aten::conv_transpose3d.input aten::convolution_backward
  tensord::conv_input_gradient tensord::conv_weight_gradient tensord::conv_bias_gradient
  tensord::conv_weight_bias_gradient
  aten::max_pool1d aten::max_pool2d aten::max_pool3d
  aten::max_pool1d_with_indices aten::max_pool2d_with_indices aten::max_pool3d_with_indices
  aten::avg_pool1d aten::avg_pool2d aten::avg_pool3d
  aten::adaptive_avg_pool1d aten::adaptive_avg_pool2d aten::adaptive_avg_pool3d
  aten::adaptive_max_pool1d aten::adaptive_max_pool2d aten::adaptive_max_pool3d
  tensord::max_pool_backward tensord::max_pool_scatter
  aten::max_pool2d_with_indices_backward aten::max_pool3d_with_indices_backward
  aten::adaptive_max_pool2d_backward aten::adaptive_max_pool3d_backward
  tensord::avg_pool1d_backward aten::avg_pool2d_backward aten::avg_pool3d_backward
  tensord::_adaptive_avg_pool1d_backward aten::_adaptive_avg_pool2d_backward aten::_adaptive_avg_pool3d_backward
  aten::upsample_nearest1d aten::upsample_nearest1d.vec aten::upsample_nearest1d_backward aten::upsample_nearest2d
  aten::upsample_nearest2d.vec aten::upsample_nearest2d_backward aten::upsample_nearest3d aten::upsample_nearest3d.vec
  aten::upsample_nearest3d_backward aten::_upsample_nearest_exact1d aten::_upsample_nearest_exact1d.vec
  aten::_upsample_nearest_exact1d_backward aten::_upsample_nearest_exact2d aten::_upsample_nearest_exact2d.vec
  aten::_upsample_nearest_exact2d_backward aten::_upsample_nearest_exact3d aten::_upsample_nearest_exact3d.vec
  aten::_upsample_nearest_exact3d_backward aten::upsample_linear1d aten::upsample_linear1d.vec
  aten::upsample_linear1d_backward aten::upsample_bilinear2d aten::upsample_bilinear2d.vec
  aten::upsample_bilinear2d_backward aten::upsample_trilinear3d aten::upsample_trilinear3d.vec
  aten::upsample_trilinear3d_backward aten::upsample_bicubic2d aten::upsample_bicubic2d.vec
  aten::upsample_bicubic2d_backward aten::_upsample_bilinear2d_aa aten::_upsample_bilinear2d_aa.vec
  aten::_upsample_bilinear2d_aa_backward aten::_upsample_bicubic2d_aa aten::_upsample_bicubic2d_aa.vec
  aten::_upsample_bicubic2d_aa_backward aten::grid_sampler_2d aten::grid_sampler_3d aten::grid_sampler_2d_backward
  aten::grid_sampler_3d_backward
  tensord::deform_columns tensord::deform_columns_backward
  torchvision::nms
  torchvision::roi_align torchvision::_roi_align_backward torchvision::ps_roi_align torchvision::_ps_roi_align_backward
  torchvision::roi_pool torchvision::_roi_pool_backward torchvision::ps_roi_pool torchvision::_ps_roi_pool_backward
  tensord::conj aten::_aminmax aten::_fft_c2c aten::_fft_r2c aten::_fft_c2r
  aten::_linalg_det aten::_linalg_slogdet aten::_linalg_solve_ex aten::linalg_inv_ex aten::cholesky_solve
  aten::cholesky_inverse aten::linalg_qr aten::linalg_pinv.atol_rtol_tensor
  aten::index.Tensor aten::index_put aten::index_put_ aten::nonzero aten::nonzero_numpy aten::argwhere aten::where
)";

// Operators whose code for complex tensors serves CUDA in the same way: it calls complex_loops::map, which runs kernels
// there.
constexpr const char* kSharedComplex = R"(
  aten::add.Tensor aten::add.Scalar aten::sub.Tensor aten::sub.Scalar aten::rsub.Tensor aten::rsub.Scalar
  aten::mul.Tensor aten::mul.Scalar aten::div.Tensor aten::div.Scalar aten::div.Tensor_mode aten::div.Scalar_mode
  aten::pow.Tensor_Tensor aten::pow.Tensor_Scalar aten::pow.Scalar
  aten::eq.Tensor aten::eq.Scalar aten::ne.Tensor aten::ne.Scalar aten::isclose aten::allclose aten::equal
  aten::logical_and aten::logical_or aten::logical_xor aten::logical_not
  aten::where.self aten::where.ScalarOther aten::where.ScalarSelf aten::masked_fill.Scalar aten::masked_fill.Tensor
  aten::neg aten::square aten::reciprocal aten::exp aten::exp2 aten::log aten::log2 aten::log10 aten::sqrt aten::rsqrt
  aten::sin aten::cos aten::tan aten::sinh aten::cosh aten::tanh aten::asin aten::acos aten::atan aten::asinh
  aten::acosh aten::atanh aten::sigmoid aten::abs aten::isnan aten::isinf aten::isfinite aten::isreal tensord::conj
)";

std::unordered_set<std::string> names_in(const char* text) {
  std::unordered_set<std::string> out;
  std::istringstream words(text);
  for (std::string name; words >> name;) out.insert(name);
  return out;
}

template <class Fn>
Fn shared(const ops::Op& op, const Fn& code, Fn ops::KernelFunction::*part) {
  static const auto* const dense_names = new std::unordered_set(names_in(kSharedKernels));
  static const auto* const complex_names = new std::unordered_set(names_in(kSharedComplex));
  const ops::KernelFunction* const dense = op.kernel(kCPU);
  const bool is_dense = dense && &(dense->*part) == &code;
  return (is_dense ? dense_names : complex_names)->contains(op.schema.full_name()) ? code : Fn();
}

[[maybe_unused]] const bool shared_kernels_registered =
    (ops::derive_kernels(
         {kCUDA, kCPU,
          [](const ops::Op& op, const ops::FillFn& fill) { return shared(op, fill, &ops::KernelFunction::fill); },
          [](const ops::Op& op, const ops::ReturnFn& function) {
            return shared(op, function, &ops::KernelFunction::function);
          }}),
     true);

}  // namespace
}  // namespace tensord::kernels
