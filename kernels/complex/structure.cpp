// Operators that move complex elements, or sum them: they treat real and imaginary parts alike.
#include "core/ops/complex.h"
#include "kernels/complex/parts.h"
#include "kernels/expr/compose.h"
#include "ops/complex.h"
#include "ops/pointwise.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

using ops::Scalar;

[[maybe_unused]] const bool structure_registered = [] {
  complex_parts::add_by_parts(
      // sums
      "aten::sum aten::sum.dim_IntList aten::mean aten::mean.dim aten::cumsum "
      // joined, repeated, turned
      "aten::cat aten::concat aten::concatenate aten::stack aten::hstack aten::vstack aten::row_stack aten::dstack "
      "aten::block_diag aten::repeat aten::tile aten::repeat_interleave.self_int aten::repeat_interleave.self_Tensor "
      "aten::flip aten::fliplr aten::flipud aten::roll aten::rot90 aten::pixel_shuffle aten::pixel_unshuffle "
      "aten::channel_shuffle aten::constant_pad_nd aten::reflection_pad1d aten::reflection_pad2d "
      "aten::reflection_pad3d "
      "aten::replication_pad1d aten::replication_pad2d aten::replication_pad3d aten::_pad_circular "
      "aten::reflection_pad1d_backward aten::reflection_pad2d_backward aten::reflection_pad3d_backward "
      "aten::replication_pad1d_backward aten::replication_pad2d_backward aten::replication_pad3d_backward "
      "tensord::_pad_circular_backward aten::im2col aten::col2im "
      // diagonals and triangles
      "aten::tril aten::triu aten::diag_embed aten::diag "
      // gradients of views
      "aten::select_backward aten::slice_backward aten::diagonal_backward aten::unfold_backward "
      "tensord::as_strided_scatter_add tensord::as_strided_gather "
      // chosen by position
      "aten::gather aten::take aten::index.Tensor aten::index_select aten::masked_select aten::scatter.src "
      "aten::scatter.value aten::scatter_add aten::index_put aten::index_put_ aten::index_add aten::index_copy "
      "aten::index_fill.int_Scalar aten::index_fill.int_Tensor aten::masked_scatter");
  return true;
}();

// Right for complex tensors without further code: copies, new tensors like another, and compositions of linear
// operators.
IMPL(
    "aten::contiguous aten::clone aten::to.device aten::to.dtype aten::to.other aten::to.dtype_layout "
    "aten::to.prim_Device aten::to.prim_dtype aten::type_as aten::cpu aten::copy_ aten::fill_.Scalar "
    "aten::fill_.Tensor "
    "aten::fill.Scalar aten::zero_ aten::_cast_Float aten::_cast_Double aten::_cast_Half aten::_cast_Int "
    "aten::_cast_Long aten::_cast_Short aten::_cast_Char aten::_cast_Byte aten::_unsafe_view",
    ops::kComplexCPU, ops::kSameAsDense)
    .linear();
IMPL(
    "aten::zeros_like aten::empty_like aten::ones_like aten::full_like aten::new_zeros aten::new_empty "
    "aten::new_empty_strided aten::new_ones "
    "aten::new_full aten::full aten::scalar_tensor aten::as_tensor prim::tolist aten::is_contiguous "
    "aten::get_device aten::is_same_size aten::result_type.Tensor "
    "aten::result_type.Scalar aten::result_type.Scalar_Tensor",
    ops::kComplexCPU, ops::kSameAsDense);
IMPL(
    "aten::trace aten::fft_fftshift aten::fft_ifftshift aten::diff aten::trapezoid.x aten::trapezoid.dx aten::trapz.x "
    "aten::trapz.dx aten::cumulative_trapezoid.x aten::cumulative_trapezoid.dx aten::column_stack aten::narrow_copy "
    "aten::diagflat aten::cartesian_prod aten::combinations aten::select_scatter aten::slice_scatter "
    "aten::diagonal_scatter aten::as_strided_scatter aten::take_along_dim aten::put aten::sum_to_size "
    "aten::ldexp.Tensor aten::logical_not_ aten::grad aten::backward.TensorList "
    "aten::fill_diagonal_",
    ops::kComplexCPU, ops::kSameAsDense);

Tensor pad(const Tensor& x, const Dims& pad, const std::string& mode, std::optional<double> value) {
  if (mode == "constant") return ops::constant_pad_nd(x, pad, Scalar(value.value_or(0.0)));
  const Tensor real = ops::pad(ops::real(x), pad, mode, value);
  return ops::complex(real, ops::pad(ops::imag(x), pad, mode, value));
}
IMPL("aten::pad", ops::kComplexComposite, pad);

}  // namespace
}  // namespace tensord::kernels
