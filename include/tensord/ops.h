// Printed by scripts/cpp_operators.py from the registry; not to be edited.
// clang-format off
#pragma once

#include <limits>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "tensord/arguments.h"

// Every operator on tensors as a typed function, under PyTorch's name: add(a, b), sum(x, {0, 1}, true), cat({a, b}, 1).
//
// Those on a `self` are members of Tensor too (methods.h): a.add(b). Calls with a tensor among the arguments need no
// namespace; others do: tensord::zeros({2, 3}).
//
// - Arguments and defaults are the schema's. What is for keywords only is named here too, in braces at the end:
//   add(a, b, {.alpha = 2}), zeros({2, 3}, {.dtype = DType::kFloat64}), div(a, b, {.rounding_mode = "floor"}).
// - Overloads are chosen by the compiler by the types. The name behind each is the overload's, as `tensord ops` prints it.
// - Several results are a std::tuple: auto [values, indices] = max(x, 0). A list of tensors is a std::vector.
// - In-place forms end in `_`, write what they are given and give it back. Forms with out= are called NAME_out and take
//   what they write first: add_out(out, a, b).
// - An optional tensor is std::optional<Tensor>; an undefined tensor in its place means the same as none.
// - Where a call without further arguments could mean two overloads, the later one has no defaults for them.
//
// Thread safety: as for the tensors. Every function throws Error, its message starting with the operator's name.
namespace tensord {

// Keyword arguments. Nobody needs to name these types.
namespace keyword {
struct AlphaArgs {
  Scalar alpha = 1;
};
struct BetaAlphaArgs {
  Scalar beta = 1;
  Scalar alpha = 1;
};
struct ValueArgs {
  Scalar value = 1;
};
struct DimKeepdimArgs {
  std::optional<Int> dim = std::nullopt;
  Bool keepdim = false;
};
struct DtypeDeviceArgs {
  std::optional<DType> dtype = std::nullopt;
  std::optional<Device> device = std::nullopt;
};
struct StableDimDescendingArgs {
  Bool stable;
  Int dim = -1;
  Bool descending = false;
};
struct OutInt32RightArgs {
  Bool out_int32 = false;
  Bool right = false;
};
struct MemoryFormatArgs {
  std::optional<MemoryFormat> memory_format = std::nullopt;
};
struct MemoryFormatArgs2 {
  MemoryFormat memory_format = MemoryFormat::kContiguous;
};
struct CorrectionFweightsAweightsArgs {
  Int correction = 1;
  std::optional<Tensor> fweights = std::nullopt;
  std::optional<Tensor> aweights = std::nullopt;
};
struct DtypeArgs {
  std::optional<DType> dtype = std::nullopt;
};
struct DxDimArgs {
  Scalar dx = 1;
  Int dim = -1;
};
struct DimArgs {
  Int dim = -1;
};
struct RoundingModeArgs {
  std::optional<std::string_view> rounding_mode;
};
struct PathArgs {
  OptionalIntList path = std::nullopt;
};
struct DtypeDeviceMemoryFormatArgs {
  std::optional<DType> dtype = std::nullopt;
  std::optional<Device> device = std::nullopt;
  std::optional<MemoryFormat> memory_format = std::nullopt;
};
struct ImplicitArgs {
  Bool implicit = false;
};
struct SparseGradArgs {
  Bool sparse_grad = false;
};
struct ApproximateArgs {
  std::string_view approximate = "none";
};
struct SpacingDimEdgeOrderArgs {
  std::optional<Scalar> spacing = std::nullopt;
  std::optional<Int> dim = std::nullopt;
  Int edge_order = 1;
};
struct DimEdgeOrderArgs {
  IntList dim;
  Int edge_order = 1;
};
struct SpacingDimEdgeOrderArgs2 {
  Scalar spacing;
  IntList dim;
  Int edge_order = 1;
};
struct SpacingDimEdgeOrderArgs3 {
  ScalarList spacing;
  IntList dim;
  Int edge_order = 1;
};
struct SpacingDimEdgeOrderArgs4 {
  ScalarList spacing;
  std::optional<Int> dim = std::nullopt;
  Int edge_order = 1;
};
struct SpacingDimEdgeOrderArgs5 {
  TensorList spacing;
  IntList dim;
  Int edge_order = 1;
};
struct SpacingDimEdgeOrderArgs6 {
  TensorList spacing;
  std::optional<Int> dim = std::nullopt;
  Int edge_order = 1;
};
struct RangeWeightDensityArgs {
  OptionalFloatList range = std::nullopt;
  std::optional<Tensor> weight = std::nullopt;
  Bool density = false;
};
struct WeightDensityArgs {
  std::optional<Tensor> weight = std::nullopt;
  Bool density = false;
};
struct IncludeSelfArgs {
  Bool include_self = true;
};
struct AssumeUniqueInvertArgs {
  Bool assume_unique = false;
  Bool invert = false;
};
struct LogTargetArgs {
  Bool log_target = false;
};
struct UpperArgs {
  Bool upper = false;
};
struct UpperCheckErrorsArgs {
  Bool upper = false;
  Bool check_errors = false;
};
struct OffsetDim1Dim2Args {
  Int offset = 0;
  Int dim1 = -2;
  Int dim2 = -1;
};
struct CheckErrorsArgs {
  Bool check_errors = false;
};
struct HermitianArgs {
  Bool hermitian = false;
};
struct HermitianCheckErrorsArgs {
  Bool hermitian = false;
  Bool check_errors = false;
};
struct DriverArgs {
  std::optional<std::string_view> driver = std::nullopt;
};
struct PivotArgs {
  Bool pivot = true;
};
struct PivotCheckErrorsArgs {
  Bool pivot = true;
  Bool check_errors = false;
};
struct LeftAdjointArgs {
  Bool left = true;
  Bool adjoint = false;
};
struct AtolRtolHermitianArgs {
  std::optional<Float> atol = std::nullopt;
  std::optional<Float> rtol = std::nullopt;
  Bool hermitian = false;
};
struct AtolRtolHermitianArgs2 {
  std::optional<Tensor> atol = std::nullopt;
  std::optional<Tensor> rtol = std::nullopt;
  Bool hermitian = false;
};
struct LeftArgs {
  Bool left = true;
};
struct LeftCheckErrorsArgs {
  Bool left = true;
  Bool check_errors = false;
};
struct UpperLeftUnitriangularArgs {
  Bool upper;
  Bool left = true;
  Bool unitriangular = false;
};
struct NArgs {
  std::optional<Int> N = std::nullopt;
};
struct IndexingArgs {
  std::string_view indexing;
};
struct InterpolationArgs {
  std::string_view interpolation = "linear";
};
struct SizeFillValueArgs {
  Int size;
  Int fill_value = -1;
};
struct DtypeArgs2 {
  DType dtype;
};
struct DtypeDeviceArgs2 {
  std::optional<DType> dtype = DType::kInt64;
  std::optional<Device> device = std::nullopt;
};
struct OutputSizeArgs {
  std::optional<Int> output_size = std::nullopt;
};
struct DecimalsArgs {
  Int decimals;
};
struct ScaleEnableGqaArgs {
  std::optional<Float> scale = std::nullopt;
  Bool enable_gqa = false;
};
struct ReduceArgs {
  std::string_view reduce;
};
struct OutInt32RightSideSorterArgs {
  Bool out_int32 = false;
  Bool right = false;
  std::optional<std::string_view> side = std::nullopt;
  std::optional<Tensor> sorter = std::nullopt;
};
struct LengthsIndicesOffsetsAxisUnsafeInitialArgs {
  std::optional<Tensor> lengths = std::nullopt;
  std::optional<Tensor> indices = std::nullopt;
  std::optional<Tensor> offsets = std::nullopt;
  Int axis = 0;
  Bool unsafe = false;
  std::optional<Scalar> initial = std::nullopt;
};
struct StableDimDescendingArgs2 {
  std::optional<Bool> stable;
  Int dim = -1;
  Bool descending = false;
};
struct DtypeDeviceIsCoalescedArgs {
  std::optional<DType> dtype = std::nullopt;
  std::optional<Device> device = std::nullopt;
  std::optional<Bool> is_coalesced = std::nullopt;
};
struct CorrectionKeepdimArgs {
  std::optional<Scalar> correction = std::nullopt;
  Bool keepdim = false;
};
struct DtypeDeviceRequiresGradArgs {
  std::optional<DType> dtype = std::nullopt;
  std::optional<Device> device = std::nullopt;
  Bool requires_grad = false;
};
struct DtypeDeviceNonBlockingCopyMemoryFormatArgs {
  std::optional<DType> dtype = std::nullopt;
  std::optional<Device> device = std::nullopt;
  Bool non_blocking = false;
  Bool copy = false;
  std::optional<MemoryFormat> memory_format = std::nullopt;
};
struct MaskedGradArgs {
  std::optional<Bool> masked_grad = std::nullopt;
};
struct BlocksizeDenseDimArgs {
  OptionalIntOrList blocksize = std::nullopt;
  std::optional<Int> dense_dim = std::nullopt;
};
struct DxDimArgs2 {
  Float dx = 1.;
  Int dim = -1;
};
}  // namespace keyword

Tensor abs(const Tensor& self);  // abs
Tensor abs_(const Tensor& self);  // abs_
Tensor abs_out(const Tensor& out, const Tensor& self);  // abs.out
Tensor acos(const Tensor& self);  // acos
Tensor acos_(const Tensor& self);  // acos_
Tensor acos_out(const Tensor& out, const Tensor& self);  // acos.out
Tensor acosh(const Tensor& self);  // acosh
Tensor acosh_(const Tensor& self);  // acosh_
Tensor acosh_out(const Tensor& out, const Tensor& self);  // acosh.out
Tensor adaptive_avg_pool1d(const Tensor& self, IntOrList output_size);  // adaptive_avg_pool1d
Tensor adaptive_avg_pool2d(const Tensor& self, IntOrList output_size);  // adaptive_avg_pool2d
Tensor adaptive_avg_pool3d(const Tensor& self, IntOrList output_size);  // adaptive_avg_pool3d
std::tuple<Tensor, Tensor> adaptive_max_pool1d(const Tensor& self, IntOrList output_size);  // adaptive_max_pool1d
std::tuple<Tensor, Tensor> adaptive_max_pool2d(const Tensor& self, IntOrList output_size);  // adaptive_max_pool2d
Tensor adaptive_max_pool2d_backward(const Tensor& grad_output, const Tensor& self, const Tensor& indices);  // adaptive_max_pool2d_backward
std::tuple<Tensor, Tensor> adaptive_max_pool3d(const Tensor& self, IntOrList output_size);  // adaptive_max_pool3d
Tensor adaptive_max_pool3d_backward(const Tensor& grad_output, const Tensor& self, const Tensor& indices);  // adaptive_max_pool3d_backward
Tensor add(const Tensor& self, const Scalar& other, const Scalar& alpha = 1);  // add.Scalar
Tensor add(const Tensor& self, const Tensor& other, const keyword::AlphaArgs& keywords = {});  // add.Tensor
Tensor add_(const Tensor& self, const Scalar& other, const Scalar& alpha = 1);  // add_.Scalar
Tensor add_(const Tensor& self, const Tensor& other, const keyword::AlphaArgs& keywords = {});  // add_.Tensor
Tensor add_out(const Tensor& out, const Tensor& self, const Scalar& other, const Scalar& alpha = 1);  // add.Scalar_out
Tensor add_out(const Tensor& out, const Tensor& self, const Tensor& other, const keyword::AlphaArgs& keywords = {});  // add.out
Tensor addbmm(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const keyword::BetaAlphaArgs& keywords = {});  // addbmm
Tensor addbmm_(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const keyword::BetaAlphaArgs& keywords = {});  // addbmm_
Tensor addbmm_out(const Tensor& out, const Tensor& self, const Tensor& batch1, const Tensor& batch2, const keyword::BetaAlphaArgs& keywords = {});  // addbmm.out
Tensor addcdiv(const Tensor& self, const Tensor& tensor1, const Tensor& tensor2, const keyword::ValueArgs& keywords = {});  // addcdiv
Tensor addcdiv_(const Tensor& self, const Tensor& tensor1, const Tensor& tensor2, const keyword::ValueArgs& keywords = {});  // addcdiv_
Tensor addcdiv_out(const Tensor& out, const Tensor& self, const Tensor& tensor1, const Tensor& tensor2, const keyword::ValueArgs& keywords = {});  // addcdiv.out
Tensor addcmul(const Tensor& self, const Tensor& tensor1, const Tensor& tensor2, const keyword::ValueArgs& keywords = {});  // addcmul
Tensor addcmul_(const Tensor& self, const Tensor& tensor1, const Tensor& tensor2, const keyword::ValueArgs& keywords = {});  // addcmul_
Tensor addcmul_out(const Tensor& out, const Tensor& self, const Tensor& tensor1, const Tensor& tensor2, const keyword::ValueArgs& keywords = {});  // addcmul.out
Tensor addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const keyword::BetaAlphaArgs& keywords = {});  // addmm
Tensor addmm_(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const keyword::BetaAlphaArgs& keywords = {});  // addmm_
Tensor addmm_out(const Tensor& out, const Tensor& self, const Tensor& mat1, const Tensor& mat2, const keyword::BetaAlphaArgs& keywords = {});  // addmm.out
Tensor addmv(const Tensor& self, const Tensor& mat, const Tensor& vec, const keyword::BetaAlphaArgs& keywords = {});  // addmv
Tensor addmv_(const Tensor& self, const Tensor& mat, const Tensor& vec, const keyword::BetaAlphaArgs& keywords = {});  // addmv_
Tensor addmv_out(const Tensor& out, const Tensor& self, const Tensor& mat, const Tensor& vec, const keyword::BetaAlphaArgs& keywords = {});  // addmv.out
Tensor addr(const Tensor& self, const Tensor& vec1, const Tensor& vec2, const keyword::BetaAlphaArgs& keywords = {});  // addr
Tensor addr_(const Tensor& self, const Tensor& vec1, const Tensor& vec2, const keyword::BetaAlphaArgs& keywords = {});  // addr_
Tensor addr_out(const Tensor& out, const Tensor& self, const Tensor& vec1, const Tensor& vec2, const keyword::BetaAlphaArgs& keywords = {});  // addr.out
Tensor affine_grid_generator(const Tensor& theta, IntList size, Bool align_corners);  // affine_grid_generator
Tensor alias(const Tensor& self);  // alias
Tensor alias_copy(const Tensor& self);  // alias_copy
Tensor all(const Tensor& self);  // all
Tensor all(const Tensor& self, OptionalIntList dim, Bool keepdim = false);  // all.dims
Tensor all(const Tensor& self, Int dim, Bool keepdim = false);  // all.dim
Tensor all_out(const Tensor& out, const Tensor& self, Int dim, Bool keepdim = false);  // all.dim_out
bool allclose(const Tensor& self, const Tensor& other, Float rtol = 1.0000000000000001e-05, Float atol = 1e-08, Bool equal_nan = false);  // allclose
Tensor alpha_dropout(const Tensor& input, Float p, Bool train);  // alpha_dropout
Tensor alpha_dropout_(const Tensor& self, Float p, Bool train);  // alpha_dropout_
Tensor amax(const Tensor& self, IntOrList dim = {}, Bool keepdim = false);  // amax
Tensor amax_out(const Tensor& out, const Tensor& self, IntOrList dim = {}, Bool keepdim = false);  // amax.out
Tensor amin(const Tensor& self, IntOrList dim = {}, Bool keepdim = false);  // amin
Tensor amin_out(const Tensor& out, const Tensor& self, IntOrList dim = {}, Bool keepdim = false);  // amin.out
std::tuple<Tensor, Tensor> aminmax(const Tensor& self, const keyword::DimKeepdimArgs& keywords = {});  // aminmax
Tensor angle(const Tensor& self);  // angle
Tensor any(const Tensor& self);  // any
Tensor any(const Tensor& self, OptionalIntList dim, Bool keepdim = false);  // any.dims
Tensor any(const Tensor& self, Int dim, Bool keepdim = false);  // any.dim
Tensor any_out(const Tensor& out, const Tensor& self, Int dim, Bool keepdim = false);  // any.dim_out
Tensor arange(const Scalar& end, const keyword::DtypeDeviceArgs& keywords = {});  // arange
Tensor arange(const Scalar& start, const Scalar& end, const keyword::DtypeDeviceArgs& keywords = {});  // arange.start
Tensor arange(const Scalar& start, const Scalar& end, const Scalar& step, const keyword::DtypeDeviceArgs& keywords = {});  // arange.start_step
Tensor argmax(const Tensor& self, std::optional<Int> dim = std::nullopt, Bool keepdim = false);  // argmax
Tensor argmin(const Tensor& self, std::optional<Int> dim = std::nullopt, Bool keepdim = false);  // argmin
Tensor argsort(const Tensor& self, Int dim = -1, Bool descending = false);  // argsort
Tensor argsort(const Tensor& self, const keyword::StableDimDescendingArgs& keywords);  // argsort.stable
Tensor argwhere(const Tensor& self);  // argwhere
Tensor as_strided(const Tensor& self, IntList size, IntList stride, std::optional<Int> storage_offset = std::nullopt);  // as_strided
Tensor as_strided_copy(const Tensor& self, IntList size, IntList stride, std::optional<Int> storage_offset = std::nullopt);  // as_strided_copy
Tensor as_strided_scatter(const Tensor& self, const Tensor& src, IntList size, IntList stride, std::optional<Int> storage_offset = std::nullopt);  // as_strided_scatter
Tensor as_tensor(const Tensor& data, const keyword::DtypeDeviceArgs& keywords = {});  // as_tensor
Tensor as_tensor(Bool t, const keyword::DtypeDeviceArgs& keywords = {});  // as_tensor.bool
Tensor as_tensor(Float t, const keyword::DtypeDeviceArgs& keywords = {});  // as_tensor.float
Tensor as_tensor(Int t, const keyword::DtypeDeviceArgs& keywords = {});  // as_tensor.int
Tensor asin(const Tensor& self);  // asin
Tensor asin_(const Tensor& self);  // asin_
Tensor asin_out(const Tensor& out, const Tensor& self);  // asin.out
Tensor asinh(const Tensor& self);  // asinh
Tensor asinh_(const Tensor& self);  // asinh_
Tensor asinh_out(const Tensor& out, const Tensor& self);  // asinh.out
Tensor atan(const Tensor& self);  // atan
Tensor atan2(const Tensor& self, const Tensor& other);  // atan2
Tensor atan2_(const Tensor& self, const Tensor& other);  // atan2_
Tensor atan2_out(const Tensor& out, const Tensor& self, const Tensor& other);  // atan2.out
Tensor atan_(const Tensor& self);  // atan_
Tensor atan_out(const Tensor& out, const Tensor& self);  // atan.out
Tensor atanh(const Tensor& self);  // atanh
Tensor atanh_(const Tensor& self);  // atanh_
Tensor atanh_out(const Tensor& out, const Tensor& self);  // atanh.out
Tensor atleast_1d(const Tensor& self);  // atleast_1d
std::vector<Tensor> atleast_1d(TensorList tensors);  // atleast_1d.Sequence
Tensor atleast_2d(const Tensor& self);  // atleast_2d
std::vector<Tensor> atleast_2d(TensorList tensors);  // atleast_2d.Sequence
Tensor atleast_3d(const Tensor& self);  // atleast_3d
std::vector<Tensor> atleast_3d(TensorList tensors);  // atleast_3d.Sequence
Tensor avg_pool1d(const Tensor& self, IntOrList kernel_size, IntOrList stride = {}, IntOrList padding = {0}, Bool ceil_mode = false, Bool count_include_pad = true);  // avg_pool1d
Tensor avg_pool2d(const Tensor& self, IntOrList kernel_size, IntOrList stride = {}, IntOrList padding = {0, 0}, Bool ceil_mode = false, Bool count_include_pad = true, std::optional<Int> divisor_override = std::nullopt);  // avg_pool2d
Tensor avg_pool2d_backward(const Tensor& grad_output, const Tensor& self, IntOrList kernel_size, IntOrList stride, IntOrList padding, Bool ceil_mode, Bool count_include_pad, std::optional<Int> divisor_override);  // avg_pool2d_backward
Tensor avg_pool3d(const Tensor& self, IntOrList kernel_size, IntOrList stride = {}, IntOrList padding = {0, 0, 0}, Bool ceil_mode = false, Bool count_include_pad = true, std::optional<Int> divisor_override = std::nullopt);  // avg_pool3d
Tensor avg_pool3d_backward(const Tensor& grad_output, const Tensor& self, IntOrList kernel_size, IntOrList stride, IntOrList padding, Bool ceil_mode, Bool count_include_pad, std::optional<Int> divisor_override);  // avg_pool3d_backward
Tensor baddbmm(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const keyword::BetaAlphaArgs& keywords = {});  // baddbmm
Tensor baddbmm_(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const keyword::BetaAlphaArgs& keywords = {});  // baddbmm_
Tensor baddbmm_out(const Tensor& out, const Tensor& self, const Tensor& batch1, const Tensor& batch2, const keyword::BetaAlphaArgs& keywords = {});  // baddbmm.out
Tensor bartlett_window(Int window_length, const keyword::DtypeDeviceArgs& keywords = {});  // bartlett_window
Tensor bartlett_window(Int window_length, Bool periodic, const keyword::DtypeDeviceArgs& keywords = {});  // bartlett_window.periodic
Tensor batch_norm(const Tensor& input, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias, const std::optional<Tensor>& running_mean, const std::optional<Tensor>& running_var, Bool training, Float momentum, Float eps, Bool cudnn_enabled);  // batch_norm
Tensor bernoulli(const Tensor& self);  // bernoulli
Tensor bernoulli(const Tensor& self, Float p);  // bernoulli.p
Tensor bernoulli_(const Tensor& self, Float p = 0.5);  // bernoulli_.float
Tensor bernoulli_(const Tensor& self, const Tensor& p);  // bernoulli_.Tensor
Tensor bilinear(const Tensor& input1, const Tensor& input2, const Tensor& weight, const std::optional<Tensor>& bias = std::nullopt);  // bilinear
Tensor binary_cross_entropy(const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight = std::nullopt, Int reduction = 1);  // binary_cross_entropy
Tensor binary_cross_entropy_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight = std::nullopt, Int reduction = 1);  // binary_cross_entropy_backward
Tensor binary_cross_entropy_with_logits(const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight = std::nullopt, const std::optional<Tensor>& pos_weight = std::nullopt, Int reduction = 1);  // binary_cross_entropy_with_logits
Tensor bincount(const Tensor& self, const std::optional<Tensor>& weights = std::nullopt, Int minlength = 0);  // bincount
Tensor binomial(const Tensor& count, const Tensor& prob);  // binomial
Tensor bitwise_and(const Tensor& self, const Scalar& other);  // bitwise_and.Scalar
Tensor bitwise_and(const Scalar& self, const Tensor& other);  // bitwise_and.Scalar_Tensor
Tensor bitwise_and(const Tensor& self, const Tensor& other);  // bitwise_and.Tensor
Tensor bitwise_and_(const Tensor& self, const Scalar& other);  // bitwise_and_.Scalar
Tensor bitwise_and_(const Tensor& self, const Tensor& other);  // bitwise_and_.Tensor
Tensor bitwise_and_out(const Tensor& out, const Tensor& self, const Scalar& other);  // bitwise_and.Scalar_out
Tensor bitwise_and_out(const Tensor& out, const Tensor& self, const Tensor& other);  // bitwise_and.out
Tensor bitwise_left_shift(const Scalar& self, const Tensor& other);  // bitwise_left_shift.Scalar_Tensor
Tensor bitwise_left_shift(const Tensor& self, const Tensor& other);  // bitwise_left_shift.Tensor
Tensor bitwise_left_shift(const Tensor& self, const Scalar& other);  // bitwise_left_shift.Tensor_Scalar
Tensor bitwise_left_shift_(const Tensor& self, const Tensor& other);  // bitwise_left_shift_.Tensor
Tensor bitwise_left_shift_(const Tensor& self, const Scalar& other);  // bitwise_left_shift_.Tensor_Scalar
Tensor bitwise_left_shift_out(const Tensor& out, const Tensor& self, const Scalar& other);  // bitwise_left_shift.Tensor_Scalar_out
Tensor bitwise_left_shift_out(const Tensor& out, const Tensor& self, const Tensor& other);  // bitwise_left_shift.out
Tensor bitwise_not(const Tensor& self);  // bitwise_not
Tensor bitwise_not_(const Tensor& self);  // bitwise_not_
Tensor bitwise_not_out(const Tensor& out, const Tensor& self);  // bitwise_not.out
Tensor bitwise_or(const Tensor& self, const Scalar& other);  // bitwise_or.Scalar
Tensor bitwise_or(const Scalar& self, const Tensor& other);  // bitwise_or.Scalar_Tensor
Tensor bitwise_or(const Tensor& self, const Tensor& other);  // bitwise_or.Tensor
Tensor bitwise_or_(const Tensor& self, const Scalar& other);  // bitwise_or_.Scalar
Tensor bitwise_or_(const Tensor& self, const Tensor& other);  // bitwise_or_.Tensor
Tensor bitwise_or_out(const Tensor& out, const Tensor& self, const Scalar& other);  // bitwise_or.Scalar_out
Tensor bitwise_or_out(const Tensor& out, const Tensor& self, const Tensor& other);  // bitwise_or.out
Tensor bitwise_right_shift(const Scalar& self, const Tensor& other);  // bitwise_right_shift.Scalar_Tensor
Tensor bitwise_right_shift(const Tensor& self, const Tensor& other);  // bitwise_right_shift.Tensor
Tensor bitwise_right_shift(const Tensor& self, const Scalar& other);  // bitwise_right_shift.Tensor_Scalar
Tensor bitwise_right_shift_(const Tensor& self, const Tensor& other);  // bitwise_right_shift_.Tensor
Tensor bitwise_right_shift_(const Tensor& self, const Scalar& other);  // bitwise_right_shift_.Tensor_Scalar
Tensor bitwise_right_shift_out(const Tensor& out, const Tensor& self, const Scalar& other);  // bitwise_right_shift.Tensor_Scalar_out
Tensor bitwise_right_shift_out(const Tensor& out, const Tensor& self, const Tensor& other);  // bitwise_right_shift.out
Tensor bitwise_xor(const Tensor& self, const Scalar& other);  // bitwise_xor.Scalar
Tensor bitwise_xor(const Scalar& self, const Tensor& other);  // bitwise_xor.Scalar_Tensor
Tensor bitwise_xor(const Tensor& self, const Tensor& other);  // bitwise_xor.Tensor
Tensor bitwise_xor_(const Tensor& self, const Scalar& other);  // bitwise_xor_.Scalar
Tensor bitwise_xor_(const Tensor& self, const Tensor& other);  // bitwise_xor_.Tensor
Tensor bitwise_xor_out(const Tensor& out, const Tensor& self, const Scalar& other);  // bitwise_xor.Scalar_out
Tensor bitwise_xor_out(const Tensor& out, const Tensor& self, const Tensor& other);  // bitwise_xor.out
Tensor blackman_window(Int window_length, const keyword::DtypeDeviceArgs& keywords = {});  // blackman_window
Tensor blackman_window(Int window_length, Bool periodic, const keyword::DtypeDeviceArgs& keywords = {});  // blackman_window.periodic
Tensor block_diag(TensorList tensors);  // block_diag
Tensor bmm(const Tensor& self, const Tensor& mat2);  // bmm
Tensor bmm_out(const Tensor& out, const Tensor& self, const Tensor& mat2);  // bmm.out
std::vector<Tensor> broadcast_tensors(TensorList tensors);  // broadcast_tensors
Tensor broadcast_to(const Tensor& self, IntList size);  // broadcast_to
Tensor bucketize(const Scalar& self, const Tensor& boundaries, const keyword::OutInt32RightArgs& keywords = {});  // bucketize.Scalar
Tensor bucketize(const Tensor& self, const Tensor& boundaries, const keyword::OutInt32RightArgs& keywords = {});  // bucketize.Tensor
Tensor cartesian_prod(TensorList tensors);  // cartesian_prod
Tensor cat(TensorList tensors, Int dim = 0);  // cat
Tensor cat_out(const Tensor& out, TensorList tensors, Int dim = 0);  // cat.out
Tensor cauchy(const Tensor& self, Float median = 0., Float sigma = 1.);  // cauchy
Tensor cauchy_(const Tensor& self, Float median = 0., Float sigma = 1.);  // cauchy_
Tensor ccol_indices(const Tensor& self);  // ccol_indices
Tensor cdist(const Tensor& x1, const Tensor& x2, Float p = 2., std::optional<Int> compute_mode = std::nullopt);  // cdist
Tensor ceil(const Tensor& self);  // ceil
Tensor ceil_(const Tensor& self);  // ceil_
Tensor ceil_out(const Tensor& out, const Tensor& self);  // ceil.out
Tensor celu(const Tensor& self, const Scalar& alpha = 1.);  // celu
Tensor celu_(const Tensor& self, const Scalar& alpha = 1.);  // celu_
Tensor celu_out(const Tensor& out, const Tensor& self, const Scalar& alpha = 1.);  // celu.out
Tensor chain_matmul(TensorList matrices);  // chain_matmul
Tensor chain_matmul_out(const Tensor& out, TensorList matrices);  // chain_matmul.out
Tensor channel_shuffle(const Tensor& self, Int groups);  // channel_shuffle
Tensor cholesky(const Tensor& self, Bool upper = false);  // cholesky
Tensor cholesky_inverse(const Tensor& self, Bool upper = false);  // cholesky_inverse
Tensor cholesky_solve(const Tensor& self, const Tensor& input2, Bool upper = false);  // cholesky_solve
std::vector<Tensor> chunk(const Tensor& self, Int chunks, Int dim = 0);  // chunk
Tensor clamp(const Tensor& self, const std::optional<Scalar>& min = std::nullopt, const std::optional<Scalar>& max = std::nullopt);  // clamp
Tensor clamp(const Tensor& self, const std::optional<Tensor>& min, const std::optional<Tensor>& max = std::nullopt);  // clamp.Tensor
Tensor clamp_(const Tensor& self, const std::optional<Scalar>& min = std::nullopt, const std::optional<Scalar>& max = std::nullopt);  // clamp_
Tensor clamp_(const Tensor& self, const std::optional<Tensor>& min, const std::optional<Tensor>& max = std::nullopt);  // clamp_.Tensor
Tensor clamp_max(const Tensor& self, const Scalar& max);  // clamp_max
Tensor clamp_max(const Tensor& self, const Tensor& max);  // clamp_max.Tensor
Tensor clamp_max_(const Tensor& self, const Scalar& max);  // clamp_max_
Tensor clamp_max_(const Tensor& self, const Tensor& max);  // clamp_max_.Tensor
Tensor clamp_max_out(const Tensor& out, const Tensor& self, const Scalar& max);  // clamp_max.out
Tensor clamp_min(const Tensor& self, const Scalar& min);  // clamp_min
Tensor clamp_min(const Tensor& self, const Tensor& min);  // clamp_min.Tensor
Tensor clamp_min_(const Tensor& self, const Scalar& min);  // clamp_min_
Tensor clamp_min_(const Tensor& self, const Tensor& min);  // clamp_min_.Tensor
Tensor clamp_min_out(const Tensor& out, const Tensor& self, const Scalar& min);  // clamp_min.out
Tensor clamp_out(const Tensor& out, const Tensor& self, const std::optional<Scalar>& min = std::nullopt, const std::optional<Scalar>& max = std::nullopt);  // clamp.out
Tensor clone(const Tensor& self, const keyword::MemoryFormatArgs& keywords = {});  // clone
Tensor coalesce(const Tensor& self);  // coalesce
Tensor col2im(const Tensor& self, IntOrList output_size, IntOrList kernel_size, IntOrList dilation, IntOrList padding, IntOrList stride);  // col2im
Tensor col2im_out(const Tensor& out, const Tensor& self, IntOrList output_size, IntOrList kernel_size, IntOrList dilation, IntOrList padding, IntOrList stride);  // col2im.out
Tensor col_indices(const Tensor& self);  // col_indices
Tensor column_stack(TensorList tensors);  // column_stack
Tensor column_stack_out(const Tensor& out, TensorList tensors);  // column_stack.out
Tensor combinations(const Tensor& self, Int r = 2, Bool with_replacement = false);  // combinations
Tensor complex(const Tensor& real, const Tensor& imag);  // complex
Tensor complex_out(const Tensor& out, const Tensor& real, const Tensor& imag);  // complex.out
Tensor concat(TensorList tensors, Int dim = 0);  // concat
Tensor concatenate(TensorList tensors, Int dim = 0);  // concatenate
Tensor conj(const Tensor& self);  // conj
Tensor conj_physical(const Tensor& self);  // conj_physical
Tensor constant_pad_nd(const Tensor& self, IntList pad, const Scalar& value = 0);  // constant_pad_nd
Tensor contiguous(const Tensor& self, const keyword::MemoryFormatArgs2& keywords = {});  // contiguous
Tensor conv1d(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias = std::nullopt, IntOrList stride = {1}, IntOrList padding = {0}, IntOrList dilation = {1}, Int groups = 1);  // conv1d
Tensor conv1d(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, IntOrList stride, std::string_view padding, IntOrList dilation = {1}, Int groups = 1);  // conv1d.padding
Tensor conv2d(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias = std::nullopt, IntOrList stride = {1, 1}, IntOrList padding = {0, 0}, IntOrList dilation = {1, 1}, Int groups = 1);  // conv2d
Tensor conv2d(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, IntOrList stride, std::string_view padding, IntOrList dilation = {1, 1}, Int groups = 1);  // conv2d.padding
Tensor conv3d(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias = std::nullopt, IntOrList stride = {1, 1, 1}, IntOrList padding = {0, 0, 0}, IntOrList dilation = {1, 1, 1}, Int groups = 1);  // conv3d
Tensor conv3d(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, IntOrList stride, std::string_view padding, IntOrList dilation = {1, 1, 1}, Int groups = 1);  // conv3d.padding
Tensor conv_tbc(const Tensor& self, const Tensor& weight, const Tensor& bias, Int pad = 0);  // conv_tbc
Tensor conv_transpose1d(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias = std::nullopt, IntOrList stride = {1}, IntOrList padding = {0}, IntOrList output_padding = {0}, Int groups = 1, IntOrList dilation = {1});  // conv_transpose1d
Tensor conv_transpose2d(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias = std::nullopt, IntOrList stride = {1, 1}, IntOrList padding = {0, 0}, IntOrList output_padding = {0, 0}, Int groups = 1, IntOrList dilation = {1, 1});  // conv_transpose2d.input
Tensor conv_transpose3d(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias = std::nullopt, IntOrList stride = {1, 1, 1}, IntOrList padding = {0, 0, 0}, IntOrList output_padding = {0, 0, 0}, Int groups = 1, IntOrList dilation = {1, 1, 1});  // conv_transpose3d.input
Tensor convolution(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, IntList stride, IntList padding, IntList dilation, Bool transposed, IntList output_padding, Int groups);  // convolution
std::tuple<Tensor, Tensor, Tensor> convolution_backward(const Tensor& grad_output, const Tensor& input, const Tensor& weight, OptionalIntList bias_sizes, IntList stride, IntList padding, IntList dilation, Bool transposed, IntList output_padding, Int groups, BoolList output_mask);  // convolution_backward
Tensor copy_(const Tensor& self, const Tensor& src, Bool non_blocking = false);  // copy_
Tensor copysign(const Tensor& self, const Scalar& other);  // copysign.Scalar
Tensor copysign(const Tensor& self, const Tensor& other);  // copysign.Tensor
Tensor copysign_(const Tensor& self, const Scalar& other);  // copysign_.Scalar
Tensor copysign_(const Tensor& self, const Tensor& other);  // copysign_.Tensor
Tensor copysign_out(const Tensor& out, const Tensor& self, const Scalar& other);  // copysign.Scalar_out
Tensor copysign_out(const Tensor& out, const Tensor& self, const Tensor& other);  // copysign.out
Tensor corrcoef(const Tensor& self);  // corrcoef
Tensor cos(const Tensor& self);  // cos
Tensor cos_(const Tensor& self);  // cos_
Tensor cos_out(const Tensor& out, const Tensor& self);  // cos.out
Tensor cosh(const Tensor& self);  // cosh
Tensor cosh_(const Tensor& self);  // cosh_
Tensor cosh_out(const Tensor& out, const Tensor& self);  // cosh.out
Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2, const Tensor& target, Float margin = 0., Int reduction = 1);  // cosine_embedding_loss
Tensor cosine_similarity(const Tensor& x1, const Tensor& x2, Int dim = 1, Float eps = 1e-08);  // cosine_similarity
int64_t count(TensorList self, const Tensor& el);  // count.Tensor
Tensor count_nonzero(const Tensor& self, std::optional<Int> dim = std::nullopt);  // count_nonzero
Tensor count_nonzero(const Tensor& self, IntList dim);  // count_nonzero.dim_IntList
Tensor cov(const Tensor& self, const keyword::CorrectionFweightsAweightsArgs& keywords = {});  // cov
Tensor cpu(const Tensor& self);  // cpu
Tensor cross(const Tensor& self, const Tensor& other, std::optional<Int> dim = std::nullopt);  // cross
Tensor cross_entropy_loss(const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight = std::nullopt, Int reduction = 1, Int ignore_index = -100, Float label_smoothing = 0.);  // cross_entropy_loss
Tensor crow_indices(const Tensor& self);  // crow_indices
Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, IntList input_lengths, IntList target_lengths, Int blank = 0, Int reduction = 1, Bool zero_infinity = false);  // ctc_loss.IntList
Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths, const Tensor& target_lengths, Int blank = 0, Int reduction = 1, Bool zero_infinity = false);  // ctc_loss.Tensor
std::tuple<Tensor, Tensor> cummax(const Tensor& self, Int dim);  // cummax
std::tuple<Tensor, Tensor> cummin(const Tensor& self, Int dim);  // cummin
Tensor cumprod(const Tensor& self, Int dim, const keyword::DtypeArgs& keywords = {});  // cumprod
Tensor cumprod_(const Tensor& self, Int dim, const keyword::DtypeArgs& keywords = {});  // cumprod_
Tensor cumsum(const Tensor& self, Int dim, const keyword::DtypeArgs& keywords = {});  // cumsum
Tensor cumsum_(const Tensor& self, Int dim, const keyword::DtypeArgs& keywords = {});  // cumsum_
Tensor cumsum_out(const Tensor& out, const Tensor& self, Int dim, const keyword::DtypeArgs& keywords = {});  // cumsum.out
Tensor cumulative_trapezoid(const Tensor& y, const keyword::DxDimArgs& keywords = {});  // cumulative_trapezoid.dx
Tensor cumulative_trapezoid(const Tensor& y, const Tensor& x, const keyword::DimArgs& keywords = {});  // cumulative_trapezoid.x
Tensor data(const Tensor& self);  // data
Tensor deg2rad(const Tensor& self);  // deg2rad
Tensor deg2rad_(const Tensor& self);  // deg2rad_
Tensor deg2rad_out(const Tensor& out, const Tensor& self);  // deg2rad.out
int64_t dense_dim(const Tensor& self);  // dense_dim
Tensor dequantize(const Tensor& self);  // dequantize.self
Tensor det(const Tensor& self);  // det
Tensor detach(const Tensor& self);  // detach
Tensor detach_(const Tensor& self);  // detach_
Tensor diag(const Tensor& self, Int diagonal = 0);  // diag
Tensor diag_embed(const Tensor& self, Int offset = 0, Int dim1 = -2, Int dim2 = -1);  // diag_embed
Tensor diagflat(const Tensor& self, Int offset = 0);  // diagflat
Tensor diagonal(const Tensor& self, Int offset = 0, Int dim1 = 0, Int dim2 = 1);  // diagonal
Tensor diagonal_backward(const Tensor& grad_output, IntList input_sizes, Int offset, Int dim1, Int dim2);  // diagonal_backward
Tensor diagonal_copy(const Tensor& self, Int offset = 0, Int dim1 = 0, Int dim2 = 1);  // diagonal_copy
Tensor diagonal_scatter(const Tensor& self, const Tensor& src, Int offset = 0, Int dim1 = 0, Int dim2 = 1);  // diagonal_scatter
Tensor diff(const Tensor& self, Int n = 1, Int dim = -1, const std::optional<Tensor>& prepend = std::nullopt, const std::optional<Tensor>& append = std::nullopt);  // diff
Tensor diff_out(const Tensor& out, const Tensor& self, Int n = 1, Int dim = -1, const std::optional<Tensor>& prepend = std::nullopt, const std::optional<Tensor>& append = std::nullopt);  // diff.out
Tensor digamma(const Tensor& self);  // digamma
Tensor digamma_(const Tensor& self);  // digamma_
Tensor digamma_out(const Tensor& out, const Tensor& self);  // digamma.out
int64_t dim(const Tensor& self);  // dim
Tensor dist(const Tensor& self, const Tensor& other, const Scalar& p = 2);  // dist
Tensor div(const Tensor& self, const Scalar& other);  // div.Scalar
Tensor div(const Tensor& self, const Tensor& other);  // div.Tensor
Tensor div(const Tensor& self, const Scalar& other, const keyword::RoundingModeArgs& keywords);  // div.Scalar_mode
Tensor div(const Tensor& self, const Tensor& other, const keyword::RoundingModeArgs& keywords);  // div.Tensor_mode
Tensor div_(const Tensor& self, const Scalar& other);  // div_.Scalar
Tensor div_(const Tensor& self, const Tensor& other);  // div_.Tensor
Tensor div_(const Tensor& self, const Scalar& other, const keyword::RoundingModeArgs& keywords);  // div_.Scalar_mode
Tensor div_(const Tensor& self, const Tensor& other, const keyword::RoundingModeArgs& keywords);  // div_.Tensor_mode
Tensor div_out(const Tensor& out, const Tensor& self, const Scalar& other);  // div.Scalar_out
Tensor div_out(const Tensor& out, const Tensor& self, const Tensor& other);  // div.out
Tensor div_out(const Tensor& out, const Tensor& self, const Scalar& other, const keyword::RoundingModeArgs& keywords);  // div.Scalar_mode_out
Tensor div_out(const Tensor& out, const Tensor& self, const Tensor& other, const keyword::RoundingModeArgs& keywords);  // div.Tensor_mode_out
Tensor dot(const Tensor& self, const Tensor& tensor);  // dot
Tensor dot_out(const Tensor& out, const Tensor& self, const Tensor& tensor);  // dot.out
Tensor dropout(const Tensor& input, Float p, Bool train);  // dropout
Tensor dropout_(const Tensor& self, Float p, Bool train);  // dropout_
std::vector<Tensor> dsplit(const Tensor& self, IntList indices);  // dsplit.array
std::vector<Tensor> dsplit(const Tensor& self, Int sections);  // dsplit.int
Tensor dstack(TensorList tensors);  // dstack
Tensor einsum(std::string_view equation, TensorList tensors, const keyword::PathArgs& keywords = {});  // einsum
int64_t element_size(const Tensor& self);  // element_size
Tensor elu(const Tensor& self, const Scalar& alpha = 1, const Scalar& scale = 1, const Scalar& input_scale = 1);  // elu
Tensor elu_(const Tensor& self, const Scalar& alpha = 1, const Scalar& scale = 1, const Scalar& input_scale = 1);  // elu_
Tensor elu_backward(const Tensor& grad_output, const Scalar& alpha, const Scalar& scale, const Scalar& input_scale, Bool is_result, const Tensor& self_or_result);  // elu_backward
Tensor elu_out(const Tensor& out, const Tensor& self, const Scalar& alpha = 1, const Scalar& scale = 1, const Scalar& input_scale = 1);  // elu.out
Tensor embedding(const Tensor& weight, const Tensor& indices, Int padding_idx = -1, Bool scale_grad_by_freq = false, Bool sparse = false);  // embedding
std::tuple<Tensor, Tensor, Tensor, Tensor> embedding_bag(const Tensor& weight, const Tensor& indices, const Tensor& offsets, Bool scale_grad_by_freq = false, Int mode = 0, Bool sparse = false, const std::optional<Tensor>& per_sample_weights = std::nullopt, Bool include_last_offset = false);  // embedding_bag
std::tuple<Tensor, Tensor, Tensor, Tensor> embedding_bag(const Tensor& weight, const Tensor& indices, const Tensor& offsets, Bool scale_grad_by_freq, Int mode, Bool sparse, const std::optional<Tensor>& per_sample_weights, Bool include_last_offset, std::optional<Int> padding_idx);  // embedding_bag.padding_idx
Tensor embedding_dense_backward(const Tensor& grad_output, const Tensor& indices, Int num_weights, Int padding_idx, Bool scale_grad_by_freq);  // embedding_dense_backward
Tensor embedding_renorm_(const Tensor& self, const Tensor& indices, Float max_norm, Float norm_type);  // embedding_renorm_
Tensor embedding_sparse_backward(const Tensor& grad, const Tensor& indices, Int num_weights, Int padding_idx, Bool scale_grad_by_freq);  // embedding_sparse_backward
Tensor empty(IntList size, const keyword::DtypeDeviceMemoryFormatArgs& keywords = {});  // empty.memory_format
Tensor empty_like(const Tensor& self, const keyword::DtypeDeviceMemoryFormatArgs& keywords = {});  // empty_like
Tensor empty_strided(IntList size, IntList stride, const keyword::DtypeDeviceArgs& keywords = {});  // empty_strided
Tensor eq(const Tensor& self, const Scalar& other);  // eq.Scalar
Tensor eq(const Tensor& self, const Tensor& other);  // eq.Tensor
bool eq(TensorList a, TensorList b);  // eq.Tensor_list
Tensor eq_(const Tensor& self, const Scalar& other);  // eq_.Scalar
Tensor eq_(const Tensor& self, const Tensor& other);  // eq_.Tensor
Tensor eq_out(const Tensor& out, const Tensor& self, const Scalar& other);  // eq.Scalar_out
Tensor eq_out(const Tensor& out, const Tensor& self, const Tensor& other);  // eq.out
bool equal(const Tensor& self, const Tensor& other);  // equal
Tensor erf(const Tensor& self);  // erf
Tensor erf_(const Tensor& self);  // erf_
Tensor erf_out(const Tensor& out, const Tensor& self);  // erf.out
Tensor erfc(const Tensor& self);  // erfc
Tensor erfc_(const Tensor& self);  // erfc_
Tensor erfc_out(const Tensor& out, const Tensor& self);  // erfc.out
Tensor erfinv(const Tensor& self);  // erfinv
Tensor erfinv_(const Tensor& self);  // erfinv_
Tensor erfinv_out(const Tensor& out, const Tensor& self);  // erfinv.out
Tensor exp(const Tensor& self);  // exp
Tensor exp2(const Tensor& self);  // exp2
Tensor exp2_(const Tensor& self);  // exp2_
Tensor exp2_out(const Tensor& out, const Tensor& self);  // exp2.out
Tensor exp_(const Tensor& self);  // exp_
Tensor exp_out(const Tensor& out, const Tensor& self);  // exp.out
Tensor expand(const Tensor& self, IntList size, const keyword::ImplicitArgs& keywords = {});  // expand
Tensor expand_as(const Tensor& self, const Tensor& other);  // expand_as
Tensor expand_copy(const Tensor& self, IntList size, const keyword::ImplicitArgs& keywords = {});  // expand_copy
Tensor expm1(const Tensor& self);  // expm1
Tensor expm1_(const Tensor& self);  // expm1_
Tensor expm1_out(const Tensor& out, const Tensor& self);  // expm1.out
Tensor exponential(const Tensor& self, Float lambd = 1.);  // exponential
Tensor exponential_(const Tensor& self, Float lambd = 1.);  // exponential_
Tensor eye(Int n, const keyword::DtypeDeviceArgs& keywords = {});  // eye
Tensor eye(Int n, Int m, const keyword::DtypeDeviceArgs& keywords = {});  // eye.m
Tensor fake_quantize_per_channel_affine(const Tensor& self, const Tensor& scale, const Tensor& zero_point, Int axis, Int quant_min, Int quant_max);  // fake_quantize_per_channel_affine
std::tuple<Tensor, Tensor> fake_quantize_per_channel_affine_cachemask(const Tensor& self, const Tensor& scale, const Tensor& zero_point, Int axis, Int quant_min, Int quant_max);  // fake_quantize_per_channel_affine_cachemask
Tensor fake_quantize_per_channel_affine_cachemask_backward(const Tensor& grad, const Tensor& mask);  // fake_quantize_per_channel_affine_cachemask_backward
Tensor fake_quantize_per_tensor_affine(const Tensor& self, Float scale, Int zero_point, Int quant_min, Int quant_max);  // fake_quantize_per_tensor_affine
Tensor fake_quantize_per_tensor_affine(const Tensor& self, const Tensor& scale, const Tensor& zero_point, Int quant_min, Int quant_max);  // fake_quantize_per_tensor_affine.tensor_qparams
std::tuple<Tensor, Tensor> fake_quantize_per_tensor_affine_cachemask(const Tensor& self, Float scale, Int zero_point, Int quant_min, Int quant_max);  // fake_quantize_per_tensor_affine_cachemask
Tensor fake_quantize_per_tensor_affine_cachemask_backward(const Tensor& grad, const Tensor& mask);  // fake_quantize_per_tensor_affine_cachemask_backward
Tensor feature_alpha_dropout(const Tensor& input, Float p, Bool train);  // feature_alpha_dropout
Tensor feature_alpha_dropout_(const Tensor& self, Float p, Bool train);  // feature_alpha_dropout_
Tensor feature_dropout(const Tensor& input, Float p, Bool train);  // feature_dropout
Tensor feature_dropout_(const Tensor& self, Float p, Bool train);  // feature_dropout_
Tensor fft_fft(const Tensor& self, std::optional<Int> n = std::nullopt, Int dim = -1, std::optional<std::string_view> norm = std::nullopt);  // fft_fft
Tensor fft_fft2(const Tensor& self, OptionalIntOrList s = std::nullopt, IntOrList dim = {-2, -1}, std::optional<std::string_view> norm = std::nullopt);  // fft_fft2
Tensor fft_fft2_out(const Tensor& out, const Tensor& self, OptionalIntOrList s = std::nullopt, IntOrList dim = {-2, -1}, std::optional<std::string_view> norm = std::nullopt);  // fft_fft2.out
Tensor fft_fft_out(const Tensor& out, const Tensor& self, std::optional<Int> n = std::nullopt, Int dim = -1, std::optional<std::string_view> norm = std::nullopt);  // fft_fft.out
Tensor fft_fftfreq(Int n, Float d = 1., const keyword::DtypeDeviceArgs& keywords = {});  // fft_fftfreq
Tensor fft_fftn(const Tensor& self, OptionalIntOrList s = std::nullopt, OptionalIntOrList dim = std::nullopt, std::optional<std::string_view> norm = std::nullopt);  // fft_fftn
Tensor fft_fftn_out(const Tensor& out, const Tensor& self, OptionalIntOrList s = std::nullopt, OptionalIntOrList dim = std::nullopt, std::optional<std::string_view> norm = std::nullopt);  // fft_fftn.out
Tensor fft_fftshift(const Tensor& self, OptionalIntOrList dim = std::nullopt);  // fft_fftshift
Tensor fft_hfft(const Tensor& self, std::optional<Int> n = std::nullopt, Int dim = -1, std::optional<std::string_view> norm = std::nullopt);  // fft_hfft
Tensor fft_hfft2(const Tensor& self, OptionalIntOrList s = std::nullopt, IntOrList dim = {-2, -1}, std::optional<std::string_view> norm = std::nullopt);  // fft_hfft2
Tensor fft_hfft2_out(const Tensor& out, const Tensor& self, OptionalIntOrList s = std::nullopt, IntOrList dim = {-2, -1}, std::optional<std::string_view> norm = std::nullopt);  // fft_hfft2.out
Tensor fft_hfft_out(const Tensor& out, const Tensor& self, std::optional<Int> n = std::nullopt, Int dim = -1, std::optional<std::string_view> norm = std::nullopt);  // fft_hfft.out
Tensor fft_hfftn(const Tensor& self, OptionalIntOrList s = std::nullopt, OptionalIntOrList dim = std::nullopt, std::optional<std::string_view> norm = std::nullopt);  // fft_hfftn
Tensor fft_hfftn_out(const Tensor& out, const Tensor& self, OptionalIntOrList s = std::nullopt, OptionalIntOrList dim = std::nullopt, std::optional<std::string_view> norm = std::nullopt);  // fft_hfftn.out
Tensor fft_ifft(const Tensor& self, std::optional<Int> n = std::nullopt, Int dim = -1, std::optional<std::string_view> norm = std::nullopt);  // fft_ifft
Tensor fft_ifft2(const Tensor& self, OptionalIntOrList s = std::nullopt, IntOrList dim = {-2, -1}, std::optional<std::string_view> norm = std::nullopt);  // fft_ifft2
Tensor fft_ifft2_out(const Tensor& out, const Tensor& self, OptionalIntOrList s = std::nullopt, IntOrList dim = {-2, -1}, std::optional<std::string_view> norm = std::nullopt);  // fft_ifft2.out
Tensor fft_ifft_out(const Tensor& out, const Tensor& self, std::optional<Int> n = std::nullopt, Int dim = -1, std::optional<std::string_view> norm = std::nullopt);  // fft_ifft.out
Tensor fft_ifftn(const Tensor& self, OptionalIntOrList s = std::nullopt, OptionalIntOrList dim = std::nullopt, std::optional<std::string_view> norm = std::nullopt);  // fft_ifftn
Tensor fft_ifftn_out(const Tensor& out, const Tensor& self, OptionalIntOrList s = std::nullopt, OptionalIntOrList dim = std::nullopt, std::optional<std::string_view> norm = std::nullopt);  // fft_ifftn.out
Tensor fft_ifftshift(const Tensor& self, OptionalIntOrList dim = std::nullopt);  // fft_ifftshift
Tensor fft_ihfft(const Tensor& self, std::optional<Int> n = std::nullopt, Int dim = -1, std::optional<std::string_view> norm = std::nullopt);  // fft_ihfft
Tensor fft_ihfft2(const Tensor& self, OptionalIntOrList s = std::nullopt, IntOrList dim = {-2, -1}, std::optional<std::string_view> norm = std::nullopt);  // fft_ihfft2
Tensor fft_ihfft2_out(const Tensor& out, const Tensor& self, OptionalIntOrList s = std::nullopt, IntOrList dim = {-2, -1}, std::optional<std::string_view> norm = std::nullopt);  // fft_ihfft2.out
Tensor fft_ihfft_out(const Tensor& out, const Tensor& self, std::optional<Int> n = std::nullopt, Int dim = -1, std::optional<std::string_view> norm = std::nullopt);  // fft_ihfft.out
Tensor fft_ihfftn(const Tensor& self, OptionalIntOrList s = std::nullopt, OptionalIntOrList dim = std::nullopt, std::optional<std::string_view> norm = std::nullopt);  // fft_ihfftn
Tensor fft_ihfftn_out(const Tensor& out, const Tensor& self, OptionalIntOrList s = std::nullopt, OptionalIntOrList dim = std::nullopt, std::optional<std::string_view> norm = std::nullopt);  // fft_ihfftn.out
Tensor fft_irfft(const Tensor& self, std::optional<Int> n = std::nullopt, Int dim = -1, std::optional<std::string_view> norm = std::nullopt);  // fft_irfft
Tensor fft_irfft2(const Tensor& self, OptionalIntOrList s = std::nullopt, IntOrList dim = {-2, -1}, std::optional<std::string_view> norm = std::nullopt);  // fft_irfft2
Tensor fft_irfft2_out(const Tensor& out, const Tensor& self, OptionalIntOrList s = std::nullopt, IntOrList dim = {-2, -1}, std::optional<std::string_view> norm = std::nullopt);  // fft_irfft2.out
Tensor fft_irfft_out(const Tensor& out, const Tensor& self, std::optional<Int> n = std::nullopt, Int dim = -1, std::optional<std::string_view> norm = std::nullopt);  // fft_irfft.out
Tensor fft_irfftn(const Tensor& self, OptionalIntOrList s = std::nullopt, OptionalIntOrList dim = std::nullopt, std::optional<std::string_view> norm = std::nullopt);  // fft_irfftn
Tensor fft_irfftn_out(const Tensor& out, const Tensor& self, OptionalIntOrList s = std::nullopt, OptionalIntOrList dim = std::nullopt, std::optional<std::string_view> norm = std::nullopt);  // fft_irfftn.out
Tensor fft_rfft(const Tensor& self, std::optional<Int> n = std::nullopt, Int dim = -1, std::optional<std::string_view> norm = std::nullopt);  // fft_rfft
Tensor fft_rfft2(const Tensor& self, OptionalIntOrList s = std::nullopt, IntOrList dim = {-2, -1}, std::optional<std::string_view> norm = std::nullopt);  // fft_rfft2
Tensor fft_rfft2_out(const Tensor& out, const Tensor& self, OptionalIntOrList s = std::nullopt, IntOrList dim = {-2, -1}, std::optional<std::string_view> norm = std::nullopt);  // fft_rfft2.out
Tensor fft_rfft_out(const Tensor& out, const Tensor& self, std::optional<Int> n = std::nullopt, Int dim = -1, std::optional<std::string_view> norm = std::nullopt);  // fft_rfft.out
Tensor fft_rfftfreq(Int n, Float d = 1., const keyword::DtypeDeviceArgs& keywords = {});  // fft_rfftfreq
Tensor fft_rfftn(const Tensor& self, OptionalIntOrList s = std::nullopt, OptionalIntOrList dim = std::nullopt, std::optional<std::string_view> norm = std::nullopt);  // fft_rfftn
Tensor fft_rfftn_out(const Tensor& out, const Tensor& self, OptionalIntOrList s = std::nullopt, OptionalIntOrList dim = std::nullopt, std::optional<std::string_view> norm = std::nullopt);  // fft_rfftn.out
Tensor fill(const Tensor& self, const Scalar& value);  // fill.Scalar
Tensor fill(const Tensor& self, const Tensor& value);  // fill.Tensor
Tensor fill_(const Tensor& self, const Scalar& value);  // fill_.Scalar
Tensor fill_(const Tensor& self, const Tensor& value);  // fill_.Tensor
Tensor fill_diagonal_(const Tensor& self, const Scalar& fill_value, Bool wrap = false);  // fill_diagonal_
Tensor flatten(const Tensor& self, Int start_dim = 0, Int end_dim = -1);  // flatten.using_ints
Tensor flip(const Tensor& self, IntList dims);  // flip
Tensor fliplr(const Tensor& self);  // fliplr
Tensor flipud(const Tensor& self);  // flipud
Tensor float_power(const Scalar& self, const Tensor& exponent);  // float_power.Scalar
Tensor float_power(const Tensor& self, const Scalar& exponent);  // float_power.Tensor_Scalar
Tensor float_power(const Tensor& self, const Tensor& exponent);  // float_power.Tensor_Tensor
Tensor float_power_(const Tensor& self, const Scalar& exponent);  // float_power_.Scalar
Tensor float_power_(const Tensor& self, const Tensor& exponent);  // float_power_.Tensor
Tensor floor(const Tensor& self);  // floor
Tensor floor_(const Tensor& self);  // floor_
Tensor floor_divide(const Tensor& self, const Tensor& other);  // floor_divide
Tensor floor_divide(const Tensor& self, const Scalar& other);  // floor_divide.Scalar
Tensor floor_divide_(const Tensor& self, const Tensor& other);  // floor_divide_
Tensor floor_divide_(const Tensor& self, const Scalar& other);  // floor_divide_.Scalar
Tensor floor_divide_out(const Tensor& out, const Tensor& self, const Scalar& other);  // floor_divide.Scalar_out
Tensor floor_divide_out(const Tensor& out, const Tensor& self, const Tensor& other);  // floor_divide.out
Tensor floor_out(const Tensor& out, const Tensor& self);  // floor.out
Tensor fmax(const Tensor& self, const Tensor& other);  // fmax
Tensor fmax_(const Tensor& self, const Tensor& other);  // fmax_
Tensor fmax_out(const Tensor& out, const Tensor& self, const Tensor& other);  // fmax.out
Tensor fmin(const Tensor& self, const Tensor& other);  // fmin
Tensor fmin_(const Tensor& self, const Tensor& other);  // fmin_
Tensor fmin_out(const Tensor& out, const Tensor& self, const Tensor& other);  // fmin.out
Tensor fmod(const Tensor& self, const Scalar& other);  // fmod.Scalar
Tensor fmod(const Tensor& self, const Tensor& other);  // fmod.Tensor
Tensor fmod_(const Tensor& self, const Scalar& other);  // fmod_.Scalar
Tensor fmod_(const Tensor& self, const Tensor& other);  // fmod_.Tensor
Tensor fmod_out(const Tensor& out, const Tensor& self, const Scalar& other);  // fmod.Scalar_out
Tensor fmod_out(const Tensor& out, const Tensor& self, const Tensor& other);  // fmod.out
Tensor frac(const Tensor& self);  // frac
Tensor frac_(const Tensor& self);  // frac_
Tensor frac_out(const Tensor& out, const Tensor& self);  // frac.out
std::tuple<Tensor, Tensor> fractional_max_pool2d(const Tensor& self, IntOrList kernel_size, IntOrList output_size, const Tensor& random_samples);  // fractional_max_pool2d
Tensor fractional_max_pool2d_backward(const Tensor& grad_output, const Tensor& self, IntOrList kernel_size, IntOrList output_size, const Tensor& indices);  // fractional_max_pool2d_backward
std::tuple<Tensor, Tensor> fractional_max_pool3d(const Tensor& self, IntOrList kernel_size, IntOrList output_size, const Tensor& random_samples);  // fractional_max_pool3d
Tensor fractional_max_pool3d_backward(const Tensor& grad_output, const Tensor& self, IntOrList kernel_size, IntOrList output_size, const Tensor& indices);  // fractional_max_pool3d_backward
std::tuple<Tensor, Tensor> frexp(const Tensor& self);  // frexp.Tensor
Tensor frobenius_norm(const Tensor& self);  // frobenius_norm
Tensor frobenius_norm(const Tensor& self, IntOrList dim, Bool keepdim = false);  // frobenius_norm.dim
Tensor full(IntList size, const Scalar& fill_value, const keyword::DtypeDeviceArgs& keywords = {});  // full
Tensor full_like(const Tensor& self, const Scalar& fill_value, const keyword::DtypeDeviceMemoryFormatArgs& keywords = {});  // full_like
Tensor fused_moving_avg_obs_fake_quant(const Tensor& self, const Tensor& observer_on, const Tensor& fake_quant_on, const Tensor& running_min, const Tensor& running_max, const Tensor& scale, const Tensor& zero_point, Float averaging_const, Int quant_min, Int quant_max, Int ch_axis, Bool per_row_fake_quant = false, Bool symmetric_quant = false);  // fused_moving_avg_obs_fake_quant
Tensor gather(const Tensor& self, Int dim, const Tensor& index, const keyword::SparseGradArgs& keywords = {});  // gather
Tensor gather_out(const Tensor& out, const Tensor& self, Int dim, const Tensor& index, const keyword::SparseGradArgs& keywords = {});  // gather.out
Tensor gcd(const Tensor& self, const Tensor& other);  // gcd
Tensor gcd_(const Tensor& self, const Tensor& other);  // gcd_
Tensor gcd_out(const Tensor& out, const Tensor& self, const Tensor& other);  // gcd.out
Tensor ge(const Tensor& self, const Scalar& other);  // ge.Scalar
Tensor ge(const Tensor& self, const Tensor& other);  // ge.Tensor
Tensor ge_(const Tensor& self, const Scalar& other);  // ge_.Scalar
Tensor ge_(const Tensor& self, const Tensor& other);  // ge_.Tensor
Tensor ge_out(const Tensor& out, const Tensor& self, const Scalar& other);  // ge.Scalar_out
Tensor ge_out(const Tensor& out, const Tensor& self, const Tensor& other);  // ge.out
Tensor gelu(const Tensor& self, const keyword::ApproximateArgs& keywords = {});  // gelu
Tensor gelu_(const Tensor& self, const keyword::ApproximateArgs& keywords = {});  // gelu_
Tensor gelu_backward(const Tensor& grad_output, const Tensor& self, const keyword::ApproximateArgs& keywords = {});  // gelu_backward
Tensor gelu_out(const Tensor& out, const Tensor& self, const keyword::ApproximateArgs& keywords = {});  // gelu.out
Tensor geometric(const Tensor& self, Float p);  // geometric
Tensor geometric_(const Tensor& self, Float p);  // geometric_
std::tuple<Tensor, Tensor> geqrf(const Tensor& self);  // geqrf
Tensor ger(const Tensor& self, const Tensor& vec2);  // ger
Tensor ger_out(const Tensor& out, const Tensor& self, const Tensor& vec2);  // ger.out
int64_t get_device(const Tensor& self);  // get_device
Tensor glu(const Tensor& self, Int dim = -1);  // glu
Tensor glu_backward(const Tensor& grad_output, const Tensor& self, Int dim);  // glu_backward
std::vector<Tensor> gradient(const Tensor& self, const keyword::SpacingDimEdgeOrderArgs& keywords = {});  // gradient.scalarint
std::vector<Tensor> gradient(const Tensor& self, const keyword::DimEdgeOrderArgs& keywords);  // gradient.array
std::vector<Tensor> gradient(const Tensor& self, const keyword::SpacingDimEdgeOrderArgs2& keywords);  // gradient.scalararray
std::vector<Tensor> gradient(const Tensor& self, const keyword::SpacingDimEdgeOrderArgs3& keywords);  // gradient.scalarrayarray
std::vector<Tensor> gradient(const Tensor& self, const keyword::SpacingDimEdgeOrderArgs4& keywords);  // gradient.scalarrayint
std::vector<Tensor> gradient(const Tensor& self, const keyword::SpacingDimEdgeOrderArgs5& keywords);  // gradient.tensorarray
std::vector<Tensor> gradient(const Tensor& self, const keyword::SpacingDimEdgeOrderArgs6& keywords);  // gradient.tensorarrayint
Tensor grid_sampler(const Tensor& input, const Tensor& grid, Int interpolation_mode, Int padding_mode, Bool align_corners);  // grid_sampler
Tensor grid_sampler_2d(const Tensor& input, const Tensor& grid, Int interpolation_mode, Int padding_mode, Bool align_corners);  // grid_sampler_2d
std::tuple<Tensor, Tensor> grid_sampler_2d_backward(const Tensor& grad_output, const Tensor& input, const Tensor& grid, Int interpolation_mode, Int padding_mode, Bool align_corners, BoolList output_mask);  // grid_sampler_2d_backward
Tensor grid_sampler_3d(const Tensor& input, const Tensor& grid, Int interpolation_mode, Int padding_mode, Bool align_corners);  // grid_sampler_3d
std::tuple<Tensor, Tensor> grid_sampler_3d_backward(const Tensor& grad_output, const Tensor& input, const Tensor& grid, Int interpolation_mode, Int padding_mode, Bool align_corners, BoolList output_mask);  // grid_sampler_3d_backward
Tensor group_norm(const Tensor& input, Int num_groups, const std::optional<Tensor>& weight = std::nullopt, const std::optional<Tensor>& bias = std::nullopt, Float eps = 1.0000000000000001e-05, Bool cudnn_enabled = true);  // group_norm
std::tuple<Tensor, Tensor> gru(const Tensor& data, const Tensor& batch_sizes, const Tensor& hx, TensorList params, Bool has_biases, Int num_layers, Float dropout, Bool train, Bool bidirectional);  // gru.data
std::tuple<Tensor, Tensor> gru(const Tensor& input, const Tensor& hx, TensorList params, Bool has_biases, Int num_layers, Float dropout, Bool train, Bool bidirectional, Bool batch_first);  // gru.input
Tensor gru_cell(const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh, const std::optional<Tensor>& b_ih = std::nullopt, const std::optional<Tensor>& b_hh = std::nullopt);  // gru_cell
Tensor gt(const Tensor& self, const Scalar& other);  // gt.Scalar
Tensor gt(const Tensor& self, const Tensor& other);  // gt.Tensor
Tensor gt_(const Tensor& self, const Scalar& other);  // gt_.Scalar
Tensor gt_(const Tensor& self, const Tensor& other);  // gt_.Tensor
Tensor gt_out(const Tensor& out, const Tensor& self, const Scalar& other);  // gt.Scalar_out
Tensor gt_out(const Tensor& out, const Tensor& self, const Tensor& other);  // gt.out
Tensor hamming_window(Int window_length, const keyword::DtypeDeviceArgs& keywords = {});  // hamming_window
Tensor hamming_window(Int window_length, Bool periodic, const keyword::DtypeDeviceArgs& keywords = {});  // hamming_window.periodic
Tensor hamming_window(Int window_length, Bool periodic, Float alpha, const keyword::DtypeDeviceArgs& keywords = {});  // hamming_window.periodic_alpha
Tensor hamming_window(Int window_length, Bool periodic, Float alpha, Float beta, const keyword::DtypeDeviceArgs& keywords = {});  // hamming_window.periodic_alpha_beta
Tensor hann_window(Int window_length, const keyword::DtypeDeviceArgs& keywords = {});  // hann_window
Tensor hann_window(Int window_length, Bool periodic, const keyword::DtypeDeviceArgs& keywords = {});  // hann_window.periodic
Tensor hardshrink(const Tensor& self, const Scalar& lambd = 0.5);  // hardshrink
Tensor hardshrink_(const Tensor& self, const Scalar& lambd = 0.5);  // hardshrink_
Tensor hardshrink_backward(const Tensor& grad_out, const Tensor& self, const Scalar& lambd);  // hardshrink_backward
Tensor hardshrink_out(const Tensor& out, const Tensor& self, const Scalar& lambd = 0.5);  // hardshrink.out
Tensor hardsigmoid(const Tensor& self);  // hardsigmoid
Tensor hardsigmoid_(const Tensor& self);  // hardsigmoid_
Tensor hardsigmoid_backward(const Tensor& grad_output, const Tensor& self);  // hardsigmoid_backward
Tensor hardsigmoid_out(const Tensor& out, const Tensor& self);  // hardsigmoid.out
Tensor hardswish(const Tensor& self);  // hardswish
Tensor hardswish_(const Tensor& self);  // hardswish_
Tensor hardswish_backward(const Tensor& grad_output, const Tensor& self);  // hardswish_backward
Tensor hardswish_out(const Tensor& out, const Tensor& self);  // hardswish.out
Tensor hardtanh(const Tensor& self, const Scalar& min_val = -1, const Scalar& max_val = 1);  // hardtanh
Tensor hardtanh_(const Tensor& self, const Scalar& min_val = -1, const Scalar& max_val = 1);  // hardtanh_
Tensor hardtanh_backward(const Tensor& grad_output, const Tensor& self, const Scalar& min_val, const Scalar& max_val);  // hardtanh_backward
Tensor hardtanh_out(const Tensor& out, const Tensor& self, const Scalar& min_val = -1, const Scalar& max_val = 1);  // hardtanh.out
Tensor heaviside(const Tensor& self, const Tensor& values);  // heaviside
Tensor heaviside_(const Tensor& self, const Tensor& values);  // heaviside_
Tensor heaviside_out(const Tensor& out, const Tensor& self, const Tensor& values);  // heaviside.out
Tensor hinge_embedding_loss(const Tensor& self, const Tensor& target, Float margin = 1., Int reduction = 1);  // hinge_embedding_loss
Tensor histc(const Tensor& self, Int bins = 100, const Scalar& min = 0, const Scalar& max = 0);  // histc
Tensor histc_out(const Tensor& out, const Tensor& self, Int bins = 100, const Scalar& min = 0, const Scalar& max = 0);  // histc.out
std::tuple<Tensor, Tensor> histogram(const Tensor& self, Int bins = 100, const keyword::RangeWeightDensityArgs& keywords = {});  // histogram.bin_ct
std::tuple<Tensor, Tensor> histogram(const Tensor& self, const Tensor& bins, const keyword::WeightDensityArgs& keywords = {});  // histogram.bins_tensor
std::tuple<Tensor, std::vector<Tensor>> histogramdd(const Tensor& self, IntList bins, OptionalFloatList range = std::nullopt, const std::optional<Tensor>& weight = std::nullopt, Bool density = false);  // histogramdd
std::tuple<Tensor, std::vector<Tensor>> histogramdd(const Tensor& self, TensorList bins, OptionalFloatList range = std::nullopt, const std::optional<Tensor>& weight = std::nullopt, Bool density = false);  // histogramdd.TensorList_bins
std::tuple<Tensor, std::vector<Tensor>> histogramdd(const Tensor& self, Int bins, OptionalFloatList range = std::nullopt, const std::optional<Tensor>& weight = std::nullopt, Bool density = false);  // histogramdd.int_bins
std::vector<Tensor> hsplit(const Tensor& self, IntList indices);  // hsplit.array
std::vector<Tensor> hsplit(const Tensor& self, Int sections);  // hsplit.int
Tensor hspmm(const Tensor& mat1, const Tensor& mat2);  // hspmm
Tensor hstack(TensorList tensors);  // hstack
Tensor huber_loss(const Tensor& self, const Tensor& target, Int reduction = 1, Float delta = 1.);  // huber_loss
Tensor huber_loss_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target, Int reduction, Float delta);  // huber_loss_backward
Tensor hypot(const Tensor& self, const Tensor& other);  // hypot
Tensor hypot_(const Tensor& self, const Tensor& other);  // hypot_
Tensor hypot_out(const Tensor& out, const Tensor& self, const Tensor& other);  // hypot.out
Tensor i0(const Tensor& self);  // i0
Tensor i0_(const Tensor& self);  // i0_
Tensor i0_out(const Tensor& out, const Tensor& self);  // i0.out
Tensor igamma(const Tensor& self, const Tensor& other);  // igamma
Tensor igamma_(const Tensor& self, const Tensor& other);  // igamma_
Tensor igamma_out(const Tensor& out, const Tensor& self, const Tensor& other);  // igamma.out
Tensor igammac(const Tensor& self, const Tensor& other);  // igammac
Tensor igammac_(const Tensor& self, const Tensor& other);  // igammac_
Tensor igammac_out(const Tensor& out, const Tensor& self, const Tensor& other);  // igammac.out
Tensor im2col(const Tensor& self, IntOrList kernel_size, IntOrList dilation, IntOrList padding, IntOrList stride);  // im2col
Tensor im2col_out(const Tensor& out, const Tensor& self, IntOrList kernel_size, IntOrList dilation, IntOrList padding, IntOrList stride);  // im2col.out
Tensor imag(const Tensor& self);  // imag
Tensor index_add(const Tensor& self, Int dim, const Tensor& index, const Tensor& source, const keyword::AlphaArgs& keywords = {});  // index_add
Tensor index_add_(const Tensor& self, Int dim, const Tensor& index, const Tensor& source, const keyword::AlphaArgs& keywords = {});  // index_add_
Tensor index_copy(const Tensor& self, Int dim, const Tensor& index, const Tensor& source);  // index_copy
Tensor index_copy_(const Tensor& self, Int dim, const Tensor& index, const Tensor& source);  // index_copy_
Tensor index_fill(const Tensor& self, Int dim, const Tensor& index, const Scalar& value);  // index_fill.int_Scalar
Tensor index_fill(const Tensor& self, Int dim, const Tensor& index, const Tensor& value);  // index_fill.int_Tensor
Tensor index_fill_(const Tensor& self, Int dim, const Tensor& index, const Scalar& value);  // index_fill_.int_Scalar
Tensor index_fill_(const Tensor& self, Int dim, const Tensor& index, const Tensor& value);  // index_fill_.int_Tensor
Tensor index_reduce(const Tensor& self, Int dim, const Tensor& index, const Tensor& source, std::string_view reduce, const keyword::IncludeSelfArgs& keywords = {});  // index_reduce
Tensor index_reduce_(const Tensor& self, Int dim, const Tensor& index, const Tensor& source, std::string_view reduce, const keyword::IncludeSelfArgs& keywords = {});  // index_reduce_
Tensor index_select(const Tensor& self, Int dim, const Tensor& index);  // index_select
Tensor index_select_backward(const Tensor& grad, IntList self_sizes, Int dim, const Tensor& index);  // index_select_backward
Tensor index_select_out(const Tensor& out, const Tensor& self, Int dim, const Tensor& index);  // index_select.out
Tensor indices(const Tensor& self);  // indices
Tensor inner(const Tensor& self, const Tensor& other);  // inner
Tensor inner_out(const Tensor& out, const Tensor& self, const Tensor& other);  // inner.out
Tensor instance_norm(const Tensor& input, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias, const std::optional<Tensor>& running_mean, const std::optional<Tensor>& running_var, Bool use_input_stats, Float momentum, Float eps, Bool cudnn_enabled);  // instance_norm
Tensor int_repr(const Tensor& self);  // int_repr
Tensor inverse(const Tensor& self);  // inverse
bool is_coalesced(const Tensor& self);  // is_coalesced
bool is_complex(const Tensor& self);  // is_complex
bool is_conj(const Tensor& self);  // is_conj
bool is_contiguous(const Tensor& self);  // is_contiguous
bool is_contiguous(const Tensor& self, MemoryFormat memory_format);  // is_contiguous.memory_format
bool is_floating_point(const Tensor& self);  // is_floating_point
bool is_inference(const Tensor& self);  // is_inference
bool is_leaf(const Tensor& self);  // is_leaf
bool is_neg(const Tensor& self);  // is_neg
bool is_nonzero(const Tensor& self);  // is_nonzero
bool is_same_size(const Tensor& self, const Tensor& other);  // is_same_size
bool is_signed(const Tensor& self);  // is_signed
Tensor isclose(const Tensor& self, const Tensor& other, Float rtol = 1.0000000000000001e-05, Float atol = 1e-08, Bool equal_nan = false);  // isclose
Tensor isfinite(const Tensor& self);  // isfinite
Tensor isfinite_out(const Tensor& out, const Tensor& self);  // isfinite.out
Tensor isin(const Scalar& element, const Tensor& test_elements, const keyword::AssumeUniqueInvertArgs& keywords = {});  // isin.Scalar_Tensor
Tensor isin(const Tensor& elements, const Scalar& test_element, const keyword::AssumeUniqueInvertArgs& keywords = {});  // isin.Tensor_Scalar
Tensor isin(const Tensor& elements, const Tensor& test_elements, const keyword::AssumeUniqueInvertArgs& keywords = {});  // isin.Tensor_Tensor
Tensor isinf(const Tensor& self);  // isinf
Tensor isinf_out(const Tensor& out, const Tensor& self);  // isinf.out
Tensor isnan(const Tensor& self);  // isnan
Tensor isnan_out(const Tensor& out, const Tensor& self);  // isnan.out
Tensor isneginf(const Tensor& self);  // isneginf
Tensor isneginf_out(const Tensor& out, const Tensor& self);  // isneginf.out
Tensor isposinf(const Tensor& self);  // isposinf
Tensor isposinf_out(const Tensor& out, const Tensor& self);  // isposinf.out
Tensor isreal(const Tensor& self);  // isreal
Tensor istft(const Tensor& self, Int n_fft, std::optional<Int> hop_length = std::nullopt, std::optional<Int> win_length = std::nullopt, const std::optional<Tensor>& window = std::nullopt, Bool center = true, Bool normalized = false, std::optional<Bool> onesided = std::nullopt, std::optional<Int> length = std::nullopt, Bool return_complex = false);  // istft
Scalar item(const Tensor& self);  // item
Tensor kaiser_window(Int window_length, const keyword::DtypeDeviceArgs& keywords = {});  // kaiser_window
Tensor kaiser_window(Int window_length, Bool periodic, const keyword::DtypeDeviceArgs& keywords = {});  // kaiser_window.periodic
Tensor kaiser_window(Int window_length, Bool periodic, Float beta, const keyword::DtypeDeviceArgs& keywords = {});  // kaiser_window.beta
Tensor kl_div(const Tensor& self, const Tensor& target, Int reduction = 1, const keyword::LogTargetArgs& keywords = {});  // kl_div
Tensor kron(const Tensor& self, const Tensor& other);  // kron
Tensor kron_out(const Tensor& out, const Tensor& self, const Tensor& other);  // kron.out
std::tuple<Tensor, Tensor> kthvalue(const Tensor& self, Int k, Int dim = -1, Bool keepdim = false);  // kthvalue
Tensor l1_loss(const Tensor& self, const Tensor& target, Int reduction = 1);  // l1_loss
Tensor layer_norm(const Tensor& input, IntList normalized_shape, const std::optional<Tensor>& weight = std::nullopt, const std::optional<Tensor>& bias = std::nullopt, Float eps = 1.0000000000000001e-05, Bool cudnn_enable = true);  // layer_norm
Tensor lcm(const Tensor& self, const Tensor& other);  // lcm
Tensor lcm_(const Tensor& self, const Tensor& other);  // lcm_
Tensor lcm_out(const Tensor& out, const Tensor& self, const Tensor& other);  // lcm.out
Tensor ldexp(const Tensor& self, const Tensor& other);  // ldexp.Tensor
Tensor ldexp_(const Tensor& self, const Tensor& other);  // ldexp_
Tensor le(const Tensor& self, const Scalar& other);  // le.Scalar
Tensor le(const Tensor& self, const Tensor& other);  // le.Tensor
Tensor le_(const Tensor& self, const Scalar& other);  // le_.Scalar
Tensor le_(const Tensor& self, const Tensor& other);  // le_.Tensor
Tensor le_out(const Tensor& out, const Tensor& self, const Scalar& other);  // le.Scalar_out
Tensor le_out(const Tensor& out, const Tensor& self, const Tensor& other);  // le.out
Tensor leaky_relu(const Tensor& self, const Scalar& negative_slope = 0.01);  // leaky_relu
Tensor leaky_relu_(const Tensor& self, const Scalar& negative_slope = 0.01);  // leaky_relu_
Tensor leaky_relu_backward(const Tensor& grad_output, const Tensor& self, const Scalar& negative_slope, Bool self_is_result);  // leaky_relu_backward
Tensor leaky_relu_out(const Tensor& out, const Tensor& self, const Scalar& negative_slope = 0.01);  // leaky_relu.out
int64_t len(const Tensor& t);  // len.Tensor
Tensor lerp(const Tensor& self, const Tensor& end, const Scalar& weight);  // lerp.Scalar
Tensor lerp(const Tensor& self, const Tensor& end, const Tensor& weight);  // lerp.Tensor
Tensor lerp_(const Tensor& self, const Tensor& end, const Scalar& weight);  // lerp_.Scalar
Tensor lerp_(const Tensor& self, const Tensor& end, const Tensor& weight);  // lerp_.Tensor
Tensor lerp_out(const Tensor& out, const Tensor& self, const Tensor& end, const Scalar& weight);  // lerp.Scalar_out
Tensor lerp_out(const Tensor& out, const Tensor& self, const Tensor& end, const Tensor& weight);  // lerp.out
Tensor lgamma(const Tensor& self);  // lgamma
Tensor lgamma_(const Tensor& self);  // lgamma_
Tensor lgamma_out(const Tensor& out, const Tensor& self);  // lgamma.out
Tensor lift_fresh(const Tensor& self);  // lift_fresh
Tensor linalg_cholesky(const Tensor& self, const keyword::UpperArgs& keywords = {});  // linalg_cholesky
std::tuple<Tensor, Tensor> linalg_cholesky_ex(const Tensor& self, const keyword::UpperCheckErrorsArgs& keywords = {});  // linalg_cholesky_ex
Tensor linalg_cond(const Tensor& self, const std::optional<Scalar>& p = std::nullopt);  // linalg_cond
Tensor linalg_cond(const Tensor& self, std::string_view p);  // linalg_cond.p_str
Tensor linalg_cond_out(const Tensor& out, const Tensor& self, const std::optional<Scalar>& p = std::nullopt);  // linalg_cond.out
Tensor linalg_cross(const Tensor& self, const Tensor& other, const keyword::DimArgs& keywords = {});  // linalg_cross
Tensor linalg_det(const Tensor& A);  // linalg_det
Tensor linalg_diagonal(const Tensor& A, const keyword::OffsetDim1Dim2Args& keywords = {});  // linalg_diagonal
std::tuple<Tensor, Tensor> linalg_eig(const Tensor& self);  // linalg_eig
std::tuple<Tensor, Tensor> linalg_eigh(const Tensor& self, std::string_view UPLO = "L");  // linalg_eigh
Tensor linalg_eigvals(const Tensor& self);  // linalg_eigvals
Tensor linalg_eigvals_out(const Tensor& out, const Tensor& self);  // linalg_eigvals.out
Tensor linalg_eigvalsh(const Tensor& self, std::string_view UPLO = "L");  // linalg_eigvalsh
Tensor linalg_eigvalsh_out(const Tensor& out, const Tensor& self, std::string_view UPLO = "L");  // linalg_eigvalsh.out
Tensor linalg_householder_product(const Tensor& input, const Tensor& tau);  // linalg_householder_product
Tensor linalg_householder_product_out(const Tensor& out, const Tensor& input, const Tensor& tau);  // linalg_householder_product.out
Tensor linalg_inv(const Tensor& A);  // linalg_inv
std::tuple<Tensor, Tensor> linalg_inv_ex(const Tensor& A, const keyword::CheckErrorsArgs& keywords = {});  // linalg_inv_ex
std::tuple<Tensor, Tensor> linalg_ldl_factor(const Tensor& self, const keyword::HermitianArgs& keywords = {});  // linalg_ldl_factor
std::tuple<Tensor, Tensor, Tensor> linalg_ldl_factor_ex(const Tensor& self, const keyword::HermitianCheckErrorsArgs& keywords = {});  // linalg_ldl_factor_ex
Tensor linalg_ldl_solve(const Tensor& LD, const Tensor& pivots, const Tensor& B, const keyword::HermitianArgs& keywords = {});  // linalg_ldl_solve
Tensor linalg_ldl_solve_out(const Tensor& out, const Tensor& LD, const Tensor& pivots, const Tensor& B, const keyword::HermitianArgs& keywords = {});  // linalg_ldl_solve.out
std::tuple<Tensor, Tensor, Tensor, Tensor> linalg_lstsq(const Tensor& self, const Tensor& b, std::optional<Float> rcond = std::nullopt, const keyword::DriverArgs& keywords = {});  // linalg_lstsq
std::tuple<Tensor, Tensor, Tensor> linalg_lu(const Tensor& A, const keyword::PivotArgs& keywords = {});  // linalg_lu
std::tuple<Tensor, Tensor> linalg_lu_factor(const Tensor& A, const keyword::PivotArgs& keywords = {});  // linalg_lu_factor
std::tuple<Tensor, Tensor, Tensor> linalg_lu_factor_ex(const Tensor& A, const keyword::PivotCheckErrorsArgs& keywords = {});  // linalg_lu_factor_ex
Tensor linalg_lu_solve(const Tensor& LU, const Tensor& pivots, const Tensor& B, const keyword::LeftAdjointArgs& keywords = {});  // linalg_lu_solve
Tensor linalg_matrix_exp(const Tensor& self);  // linalg_matrix_exp
Tensor linalg_matrix_exp_out(const Tensor& out, const Tensor& self);  // linalg_matrix_exp.out
Tensor linalg_matrix_norm(const Tensor& self, const Scalar& ord, IntList dim = {-2, -1}, Bool keepdim = false, const keyword::DtypeArgs& keywords = {});  // linalg_matrix_norm
Tensor linalg_matrix_norm(const Tensor& self, std::string_view ord = "fro", IntList dim = {-2, -1}, Bool keepdim = false, const keyword::DtypeArgs& keywords = {});  // linalg_matrix_norm.str_ord
Tensor linalg_matrix_norm_out(const Tensor& out, const Tensor& self, const Scalar& ord, IntList dim = {-2, -1}, Bool keepdim = false, const keyword::DtypeArgs& keywords = {});  // linalg_matrix_norm.out
Tensor linalg_matrix_power(const Tensor& self, Int n);  // linalg_matrix_power
Tensor linalg_matrix_power_out(const Tensor& out, const Tensor& self, Int n);  // linalg_matrix_power.out
Tensor linalg_matrix_rank(const Tensor& self, Float tol, Bool hermitian = false);  // linalg_matrix_rank
Tensor linalg_matrix_rank(const Tensor& self, const keyword::AtolRtolHermitianArgs& keywords = {});  // linalg_matrix_rank.atol_rtol_float
Tensor linalg_matrix_rank(const Tensor& input, const keyword::AtolRtolHermitianArgs2& keywords);  // linalg_matrix_rank.atol_rtol_tensor
Tensor linalg_matrix_rank(const Tensor& input, const Tensor& tol, Bool hermitian = false);  // linalg_matrix_rank.tol_tensor
Tensor linalg_matrix_rank_out(const Tensor& out, const Tensor& self, Float tol, Bool hermitian = false);  // linalg_matrix_rank.out
Tensor linalg_multi_dot(TensorList tensors);  // linalg_multi_dot
Tensor linalg_multi_dot_out(const Tensor& out, TensorList tensors);  // linalg_multi_dot.out
Tensor linalg_norm(const Tensor& self, const std::optional<Scalar>& ord = std::nullopt, OptionalIntOrList dim = std::nullopt, Bool keepdim = false, const keyword::DtypeArgs& keywords = {});  // linalg_norm
Tensor linalg_norm(const Tensor& self, std::string_view ord, OptionalIntOrList dim = std::nullopt, Bool keepdim = false, const keyword::DtypeArgs& keywords = {});  // linalg_norm.ord_str
Tensor linalg_norm_out(const Tensor& out, const Tensor& self, const std::optional<Scalar>& ord = std::nullopt, OptionalIntOrList dim = std::nullopt, Bool keepdim = false, const keyword::DtypeArgs& keywords = {});  // linalg_norm.out
Tensor linalg_pinv(const Tensor& self, Float rcond, Bool hermitian = false);  // linalg_pinv
Tensor linalg_pinv(const Tensor& self, const keyword::AtolRtolHermitianArgs& keywords = {});  // linalg_pinv.atol_rtol_float
Tensor linalg_pinv(const Tensor& self, const keyword::AtolRtolHermitianArgs2& keywords);  // linalg_pinv.atol_rtol_tensor
Tensor linalg_pinv(const Tensor& self, const Tensor& rcond, Bool hermitian = false);  // linalg_pinv.rcond_tensor
Tensor linalg_pinv_out(const Tensor& out, const Tensor& self, Float rcond, Bool hermitian = false);  // linalg_pinv.out
std::tuple<Tensor, Tensor> linalg_qr(const Tensor& A, std::string_view mode = "reduced");  // linalg_qr
std::tuple<Tensor, Tensor> linalg_slogdet(const Tensor& A);  // linalg_slogdet
Tensor linalg_solve(const Tensor& A, const Tensor& B, const keyword::LeftArgs& keywords = {});  // linalg_solve
std::tuple<Tensor, Tensor> linalg_solve_ex(const Tensor& A, const Tensor& B, const keyword::LeftCheckErrorsArgs& keywords = {});  // linalg_solve_ex
Tensor linalg_solve_triangular(const Tensor& self, const Tensor& B, const keyword::UpperLeftUnitriangularArgs& keywords);  // linalg_solve_triangular
Tensor linalg_solve_triangular_out(const Tensor& out, const Tensor& self, const Tensor& B, const keyword::UpperLeftUnitriangularArgs& keywords);  // linalg_solve_triangular.out
std::tuple<Tensor, Tensor, Tensor> linalg_svd(const Tensor& A, Bool full_matrices = true, const keyword::DriverArgs& keywords = {});  // linalg_svd
Tensor linalg_svdvals(const Tensor& A, const keyword::DriverArgs& keywords = {});  // linalg_svdvals
Tensor linalg_svdvals_out(const Tensor& out, const Tensor& A, const keyword::DriverArgs& keywords = {});  // linalg_svdvals.out
Tensor linalg_tensorinv(const Tensor& self, Int ind = 2);  // linalg_tensorinv
Tensor linalg_tensorinv_out(const Tensor& out, const Tensor& self, Int ind = 2);  // linalg_tensorinv.out
Tensor linalg_tensorsolve(const Tensor& self, const Tensor& other, OptionalIntList dims = std::nullopt);  // linalg_tensorsolve
Tensor linalg_tensorsolve_out(const Tensor& out, const Tensor& self, const Tensor& other, OptionalIntList dims = std::nullopt);  // linalg_tensorsolve.out
Tensor linalg_vander(const Tensor& x, const keyword::NArgs& keywords = {});  // linalg_vander
Tensor linalg_vecdot(const Tensor& x, const Tensor& y, const keyword::DimArgs& keywords = {});  // linalg_vecdot
Tensor linalg_vecdot_out(const Tensor& out, const Tensor& x, const Tensor& y, const keyword::DimArgs& keywords = {});  // linalg_vecdot.out
Tensor linalg_vector_norm(const Tensor& self, const Scalar& ord = 2, OptionalIntOrList dim = std::nullopt, Bool keepdim = false, const keyword::DtypeArgs& keywords = {});  // linalg_vector_norm
Tensor linalg_vector_norm_out(const Tensor& out, const Tensor& self, const Scalar& ord = 2, OptionalIntOrList dim = std::nullopt, Bool keepdim = false, const keyword::DtypeArgs& keywords = {});  // linalg_vector_norm.out
Tensor linear(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias = std::nullopt);  // linear
Tensor linear_out(const Tensor& out, const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias = std::nullopt);  // linear.out
Tensor linspace(const Scalar& start, const Scalar& end, Int steps, const keyword::DtypeDeviceArgs& keywords = {});  // linspace
Tensor linspace(const Scalar& start, const Tensor& end, Int steps, const keyword::DtypeDeviceArgs& keywords = {});  // linspace.Scalar_Tensor
Tensor linspace(const Tensor& start, const Scalar& end, Int steps, const keyword::DtypeDeviceArgs& keywords = {});  // linspace.Tensor_Scalar
Tensor linspace(const Tensor& start, const Tensor& end, Int steps, const keyword::DtypeDeviceArgs& keywords = {});  // linspace.Tensor_Tensor
Tensor log(const Tensor& self);  // log
Tensor log10(const Tensor& self);  // log10
Tensor log10_(const Tensor& self);  // log10_
Tensor log10_out(const Tensor& out, const Tensor& self);  // log10.out
Tensor log1p(const Tensor& self);  // log1p
Tensor log1p_(const Tensor& self);  // log1p_
Tensor log1p_out(const Tensor& out, const Tensor& self);  // log1p.out
Tensor log2(const Tensor& self);  // log2
Tensor log2_(const Tensor& self);  // log2_
Tensor log2_out(const Tensor& out, const Tensor& self);  // log2.out
Tensor log_(const Tensor& self);  // log_
Tensor log_normal(const Tensor& self, Float mean = 1., Float std = 2.);  // log_normal
Tensor log_normal_(const Tensor& self, Float mean = 1., Float std = 2.);  // log_normal_
Tensor log_out(const Tensor& out, const Tensor& self);  // log.out
Tensor log_sigmoid(const Tensor& self);  // log_sigmoid
Tensor log_sigmoid_(const Tensor& self);  // log_sigmoid_
Tensor log_sigmoid_backward(const Tensor& grad_output, const Tensor& self, const Tensor& buffer);  // log_sigmoid_backward
std::tuple<Tensor, Tensor> log_sigmoid_forward(const Tensor& self);  // log_sigmoid_forward
Tensor log_sigmoid_out(const Tensor& out, const Tensor& self);  // log_sigmoid.out
Tensor log_softmax(const Tensor& self, Int dim, std::optional<DType> dtype = std::nullopt);  // log_softmax.int
Tensor logaddexp(const Tensor& self, const Tensor& other);  // logaddexp
Tensor logaddexp2(const Tensor& self, const Tensor& other);  // logaddexp2
Tensor logaddexp2_out(const Tensor& out, const Tensor& self, const Tensor& other);  // logaddexp2.out
Tensor logaddexp_out(const Tensor& out, const Tensor& self, const Tensor& other);  // logaddexp.out
Tensor logcumsumexp(const Tensor& self, Int dim);  // logcumsumexp
Tensor logdet(const Tensor& self);  // logdet
Tensor logical_and(const Tensor& self, const Tensor& other);  // logical_and
Tensor logical_and_(const Tensor& self, const Tensor& other);  // logical_and_
Tensor logical_and_out(const Tensor& out, const Tensor& self, const Tensor& other);  // logical_and.out
Tensor logical_not(const Tensor& self);  // logical_not
Tensor logical_not_(const Tensor& self);  // logical_not_
Tensor logical_not_out(const Tensor& out, const Tensor& self);  // logical_not.out
Tensor logical_or(const Tensor& self, const Tensor& other);  // logical_or
Tensor logical_or_(const Tensor& self, const Tensor& other);  // logical_or_
Tensor logical_or_out(const Tensor& out, const Tensor& self, const Tensor& other);  // logical_or.out
Tensor logical_xor(const Tensor& self, const Tensor& other);  // logical_xor
Tensor logical_xor_(const Tensor& self, const Tensor& other);  // logical_xor_
Tensor logical_xor_out(const Tensor& out, const Tensor& self, const Tensor& other);  // logical_xor.out
Tensor logit(const Tensor& self, std::optional<Float> eps = std::nullopt);  // logit
Tensor logit_(const Tensor& self, std::optional<Float> eps = std::nullopt);  // logit_
Tensor logit_backward(const Tensor& grad_output, const Tensor& self, std::optional<Float> eps = std::nullopt);  // logit_backward
Tensor logit_out(const Tensor& out, const Tensor& self, std::optional<Float> eps = std::nullopt);  // logit.out
Tensor logspace(const Scalar& start, const Scalar& end, Int steps, Float base = 10., const keyword::DtypeDeviceArgs& keywords = {});  // logspace
Tensor logspace(const Scalar& start, const Tensor& end, Int steps, Float base = 10., const keyword::DtypeDeviceArgs& keywords = {});  // logspace.Scalar_Tensor
Tensor logspace(const Tensor& start, const Scalar& end, Int steps, Float base = 10., const keyword::DtypeDeviceArgs& keywords = {});  // logspace.Tensor_Scalar
Tensor logspace(const Tensor& start, const Tensor& end, Int steps, Float base = 10., const keyword::DtypeDeviceArgs& keywords = {});  // logspace.Tensor_Tensor
Tensor logsumexp(const Tensor& self, IntOrList dim, Bool keepdim = false);  // logsumexp
std::tuple<Tensor, Tensor, Tensor> lstm(const Tensor& data, const Tensor& batch_sizes, TensorList hx, TensorList params, Bool has_biases, Int num_layers, Float dropout, Bool train, Bool bidirectional);  // lstm.data
std::tuple<Tensor, Tensor, Tensor> lstm(const Tensor& input, TensorList hx, TensorList params, Bool has_biases, Int num_layers, Float dropout, Bool train, Bool bidirectional, Bool batch_first);  // lstm.input
std::tuple<Tensor, Tensor> lstm_cell(const Tensor& input, TensorList hx, const Tensor& w_ih, const Tensor& w_hh, const std::optional<Tensor>& b_ih = std::nullopt, const std::optional<Tensor>& b_hh = std::nullopt);  // lstm_cell
Tensor lt(const Tensor& self, const Scalar& other);  // lt.Scalar
Tensor lt(const Tensor& self, const Tensor& other);  // lt.Tensor
Tensor lt_(const Tensor& self, const Scalar& other);  // lt_.Scalar
Tensor lt_(const Tensor& self, const Tensor& other);  // lt_.Tensor
Tensor lt_out(const Tensor& out, const Tensor& self, const Scalar& other);  // lt.Scalar_out
Tensor lt_out(const Tensor& out, const Tensor& self, const Tensor& other);  // lt.out
Tensor lu_solve(const Tensor& self, const Tensor& LU_data, const Tensor& LU_pivots);  // lu_solve
std::tuple<Tensor, Tensor, Tensor> lu_unpack(const Tensor& LU_data, const Tensor& LU_pivots, Bool unpack_data = true, Bool unpack_pivots = true);  // lu_unpack
Tensor mH(const Tensor& self);  // mH
Tensor mT(const Tensor& self);  // mT
Tensor margin_ranking_loss(const Tensor& input1, const Tensor& input2, const Tensor& target, Float margin = 0., Int reduction = 1);  // margin_ranking_loss
Tensor masked_fill(const Tensor& self, const Tensor& mask, const Scalar& value);  // masked_fill.Scalar
Tensor masked_fill(const Tensor& self, const Tensor& mask, const Tensor& value);  // masked_fill.Tensor
Tensor masked_fill_(const Tensor& self, const Tensor& mask, const Scalar& value);  // masked_fill_.Scalar
Tensor masked_fill_(const Tensor& self, const Tensor& mask, const Tensor& value);  // masked_fill_.Tensor
Tensor masked_fill_out(const Tensor& out, const Tensor& self, const Tensor& mask, const Scalar& value);  // masked_fill.Scalar_out
Tensor masked_fill_out(const Tensor& out, const Tensor& self, const Tensor& mask, const Tensor& value);  // masked_fill.out
Tensor masked_scatter(const Tensor& self, const Tensor& mask, const Tensor& source);  // masked_scatter
Tensor masked_scatter_(const Tensor& self, const Tensor& mask, const Tensor& source);  // masked_scatter_
Tensor masked_scatter_backward(const Tensor& grad_output, const Tensor& mask, IntList sizes);  // masked_scatter_backward
Tensor masked_select(const Tensor& self, const Tensor& mask);  // masked_select
Tensor masked_select_backward(const Tensor& grad, const Tensor& input, const Tensor& mask);  // masked_select_backward
Tensor matmul(const Tensor& self, const Tensor& other);  // matmul
Tensor matmul_out(const Tensor& out, const Tensor& self, const Tensor& other);  // matmul.out
Tensor matrix_H(const Tensor& self);  // matrix_H
Tensor matrix_exp(const Tensor& self);  // matrix_exp
Tensor matrix_power(const Tensor& self, Int n);  // matrix_power
Tensor matrix_power_out(const Tensor& out, const Tensor& self, Int n);  // matrix_power.out
Tensor max(const Tensor& self);  // max
std::tuple<Tensor, Tensor> max(const Tensor& self, Int dim, Bool keepdim = false);  // max.dim
Tensor max(const Tensor& self, const Tensor& other);  // max.other
Tensor max_pool1d(const Tensor& self, IntOrList kernel_size, IntOrList stride = {}, IntOrList padding = {0}, IntOrList dilation = {1}, Bool ceil_mode = false);  // max_pool1d
std::tuple<Tensor, Tensor> max_pool1d_with_indices(const Tensor& self, IntOrList kernel_size, IntOrList stride = {}, IntOrList padding = {0}, IntOrList dilation = {1}, Bool ceil_mode = false);  // max_pool1d_with_indices
Tensor max_pool2d(const Tensor& self, IntOrList kernel_size, IntOrList stride = {}, IntOrList padding = {0, 0}, IntOrList dilation = {1, 1}, Bool ceil_mode = false);  // max_pool2d
std::tuple<Tensor, Tensor> max_pool2d_with_indices(const Tensor& self, IntOrList kernel_size, IntOrList stride = {}, IntOrList padding = {0, 0}, IntOrList dilation = {1, 1}, Bool ceil_mode = false);  // max_pool2d_with_indices
Tensor max_pool2d_with_indices_backward(const Tensor& grad_output, const Tensor& self, IntOrList kernel_size, IntOrList stride, IntOrList padding, IntOrList dilation, Bool ceil_mode, const Tensor& indices);  // max_pool2d_with_indices_backward
Tensor max_pool3d(const Tensor& self, IntOrList kernel_size, IntOrList stride = {}, IntOrList padding = {0, 0, 0}, IntOrList dilation = {1, 1, 1}, Bool ceil_mode = false);  // max_pool3d
std::tuple<Tensor, Tensor> max_pool3d_with_indices(const Tensor& self, IntOrList kernel_size, IntOrList stride = {}, IntOrList padding = {0, 0, 0}, IntOrList dilation = {1, 1, 1}, Bool ceil_mode = false);  // max_pool3d_with_indices
Tensor max_pool3d_with_indices_backward(const Tensor& grad_output, const Tensor& self, IntOrList kernel_size, IntOrList stride, IntOrList padding, IntOrList dilation, Bool ceil_mode, const Tensor& indices);  // max_pool3d_with_indices_backward
Tensor max_unpool2d(const Tensor& self, const Tensor& indices, IntOrList output_size);  // max_unpool2d
Tensor max_unpool3d(const Tensor& self, const Tensor& indices, IntOrList output_size, IntOrList stride, IntOrList padding);  // max_unpool3d
Tensor maximum(const Tensor& self, const Tensor& other);  // maximum
Tensor maximum_(const Tensor& self, const Tensor& other);  // maximum_
Tensor maximum_out(const Tensor& out, const Tensor& self, const Tensor& other);  // maximum.out
Tensor mean(const Tensor& self, const keyword::DtypeArgs& keywords = {});  // mean
Tensor mean(const Tensor& self, OptionalIntOrList dim, Bool keepdim = false, const keyword::DtypeArgs& keywords = {});  // mean.dim
Tensor mean_out(const Tensor& out, const Tensor& self, OptionalIntOrList dim, Bool keepdim = false, const keyword::DtypeArgs& keywords = {});  // mean.dim_out
Tensor median(const Tensor& self);  // median
std::tuple<Tensor, Tensor> median(const Tensor& self, Int dim, Bool keepdim = false);  // median.dim
std::vector<Tensor> meshgrid(TensorList tensors);  // meshgrid
std::vector<Tensor> meshgrid(TensorList tensors, const keyword::IndexingArgs& keywords);  // meshgrid.indexing
Tensor min(const Tensor& self);  // min
std::tuple<Tensor, Tensor> min(const Tensor& self, Int dim, Bool keepdim = false);  // min.dim
Tensor min(const Tensor& self, const Tensor& other);  // min.other
Tensor minimum(const Tensor& self, const Tensor& other);  // minimum
Tensor minimum_(const Tensor& self, const Tensor& other);  // minimum_
Tensor minimum_out(const Tensor& out, const Tensor& self, const Tensor& other);  // minimum.out
Tensor mish(const Tensor& self);  // mish
Tensor mish_(const Tensor& self);  // mish_
Tensor mish_backward(const Tensor& grad_output, const Tensor& self);  // mish_backward
Tensor mish_out(const Tensor& out, const Tensor& self);  // mish.out
Tensor mm(const Tensor& self, const Tensor& mat2);  // mm
Tensor mm_out(const Tensor& out, const Tensor& self, const Tensor& mat2);  // mm.out
std::tuple<Tensor, Tensor> mode(const Tensor& self, Int dim = -1, Bool keepdim = false);  // mode
Tensor moveaxis(const Tensor& self, Int source, Int destination);  // moveaxis.int
Tensor moveaxis(const Tensor& self, IntList source, IntList destination);  // moveaxis.intlist
Tensor movedim(const Tensor& self, Int source, Int destination);  // movedim.int
Tensor movedim(const Tensor& self, IntList source, IntList destination);  // movedim.intlist
Tensor mse_loss(const Tensor& self, const Tensor& target, Int reduction = 1);  // mse_loss
Tensor mse_loss_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target, Int reduction);  // mse_loss_backward
Tensor msort(const Tensor& self);  // msort
Tensor mul(const Tensor& self, const Scalar& other);  // mul.Scalar
Tensor mul(const Tensor& self, const Tensor& other);  // mul.Tensor
Tensor mul_(const Tensor& self, const Scalar& other);  // mul_.Scalar
Tensor mul_(const Tensor& self, const Tensor& other);  // mul_.Tensor
Tensor mul_out(const Tensor& out, const Tensor& self, const Scalar& other);  // mul.Scalar_out
Tensor mul_out(const Tensor& out, const Tensor& self, const Tensor& other);  // mul.out
Tensor multi_margin_loss(const Tensor& self, const Tensor& target, const Scalar& p = 1, const Scalar& margin = 1, const std::optional<Tensor>& weight = std::nullopt, Int reduction = 1);  // multi_margin_loss
Tensor multi_margin_loss_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target, const Scalar& p, const Scalar& margin, const std::optional<Tensor>& weight = std::nullopt, Int reduction = 1);  // multi_margin_loss_backward
Tensor multilabel_margin_loss(const Tensor& self, const Tensor& target, Int reduction = 1);  // multilabel_margin_loss
Tensor multilabel_margin_loss_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target, Int reduction, const Tensor& is_target);  // multilabel_margin_loss_backward
std::tuple<Tensor, Tensor> multilabel_margin_loss_forward(const Tensor& self, const Tensor& target, Int reduction);  // multilabel_margin_loss_forward
Tensor multinomial(const Tensor& self, Int num_samples, Bool replacement = false);  // multinomial
Tensor mv(const Tensor& self, const Tensor& vec);  // mv
Tensor mv_out(const Tensor& out, const Tensor& self, const Tensor& vec);  // mv.out
Tensor mvlgamma(const Tensor& self, Int p);  // mvlgamma
Tensor mvlgamma_(const Tensor& self, Int p);  // mvlgamma_
Tensor mvlgamma_out(const Tensor& out, const Tensor& self, Int p);  // mvlgamma.out
Tensor nan_to_num(const Tensor& self, std::optional<Float> nan = std::nullopt, std::optional<Float> posinf = std::nullopt, std::optional<Float> neginf = std::nullopt);  // nan_to_num
Tensor nan_to_num_(const Tensor& self, std::optional<Float> nan = std::nullopt, std::optional<Float> posinf = std::nullopt, std::optional<Float> neginf = std::nullopt);  // nan_to_num_
Tensor nan_to_num_out(const Tensor& out, const Tensor& self, std::optional<Float> nan = std::nullopt, std::optional<Float> posinf = std::nullopt, std::optional<Float> neginf = std::nullopt);  // nan_to_num.out
Tensor nanmean(const Tensor& self, OptionalIntOrList dim = std::nullopt, Bool keepdim = false, const keyword::DtypeArgs& keywords = {});  // nanmean
Tensor nanmedian(const Tensor& self);  // nanmedian
std::tuple<Tensor, Tensor> nanmedian(const Tensor& self, Int dim, Bool keepdim = false);  // nanmedian.dim
Tensor nanquantile(const Tensor& self, const Tensor& q, std::optional<Int> dim = std::nullopt, Bool keepdim = false, const keyword::InterpolationArgs& keywords = {});  // nanquantile
Tensor nanquantile(const Tensor& self, Float q, std::optional<Int> dim = std::nullopt, Bool keepdim = false, const keyword::InterpolationArgs& keywords = {});  // nanquantile.scalar
Tensor nanquantile_out(const Tensor& out, const Tensor& self, const Tensor& q, std::optional<Int> dim = std::nullopt, Bool keepdim = false, const keyword::InterpolationArgs& keywords = {});  // nanquantile.out
Tensor nanquantile_out(const Tensor& out, const Tensor& self, Float q, std::optional<Int> dim = std::nullopt, Bool keepdim = false, const keyword::InterpolationArgs& keywords = {});  // nanquantile.scalar_out
Tensor nansum(const Tensor& self, OptionalIntOrList dim = std::nullopt, Bool keepdim = false, const keyword::DtypeArgs& keywords = {});  // nansum
Tensor narrow(const Tensor& self, Int dim, Int start, Int length);  // narrow
Tensor narrow(const Tensor& self, Int dim, const Tensor& start, Int length);  // narrow.Tensor
Tensor narrow_copy(const Tensor& self, Int dim, Int start, Int length);  // narrow_copy
std::tuple<Tensor, Tensor, Tensor> native_batch_norm(const Tensor& input, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias, const std::optional<Tensor>& running_mean, const std::optional<Tensor>& running_var, Bool training, Float momentum, Float eps);  // native_batch_norm
std::tuple<Tensor, Tensor, Tensor> native_batch_norm_backward(const Tensor& grad_out, const Tensor& input, const std::optional<Tensor>& weight, const std::optional<Tensor>& running_mean, const std::optional<Tensor>& running_var, const std::optional<Tensor>& save_mean, const std::optional<Tensor>& save_invstd, Bool train, Float eps, BoolList output_mask);  // native_batch_norm_backward
std::tuple<Tensor, Tensor> native_dropout(const Tensor& input, Float p, std::optional<Bool> train);  // native_dropout
Tensor native_dropout_backward(const Tensor& grad_output, const Tensor& mask, Float scale);  // native_dropout_backward
std::tuple<Tensor, Tensor, Tensor> native_group_norm(const Tensor& input, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias, Int N, Int C, Int HxW, Int group, Float eps);  // native_group_norm
std::tuple<Tensor, Tensor, Tensor> native_group_norm_backward(const Tensor& grad_out, const Tensor& input, const Tensor& mean, const Tensor& rstd, const std::optional<Tensor>& weight, Int N, Int C, Int HxW, Int group, BoolList output_mask);  // native_group_norm_backward
std::tuple<Tensor, Tensor, Tensor> native_layer_norm(const Tensor& input, IntList normalized_shape, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias, Float eps);  // native_layer_norm
std::tuple<Tensor, Tensor, Tensor> native_layer_norm_backward(const Tensor& grad_out, const Tensor& input, IntList normalized_shape, const Tensor& mean, const Tensor& rstd, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias, BoolList output_mask);  // native_layer_norm_backward
Tensor ne(const Tensor& self, const Scalar& other);  // ne.Scalar
Tensor ne(const Tensor& self, const Tensor& other);  // ne.Tensor
bool ne(TensorList a, TensorList b);  // ne.Tensor_list
Tensor ne_(const Tensor& self, const Scalar& other);  // ne_.Scalar
Tensor ne_(const Tensor& self, const Tensor& other);  // ne_.Tensor
Tensor ne_out(const Tensor& out, const Tensor& self, const Scalar& other);  // ne.Scalar_out
Tensor ne_out(const Tensor& out, const Tensor& self, const Tensor& other);  // ne.out
Tensor neg(const Tensor& self);  // neg
Tensor neg_(const Tensor& self);  // neg_
Tensor neg_out(const Tensor& out, const Tensor& self);  // neg.out
Tensor new_empty(const Tensor& self, IntList size, const keyword::DtypeDeviceArgs& keywords = {});  // new_empty
Tensor new_empty_strided(const Tensor& self, IntList size, IntList stride, const keyword::DtypeDeviceArgs& keywords = {});  // new_empty_strided
Tensor new_full(const Tensor& self, IntList size, const Scalar& fill_value, const keyword::DtypeDeviceArgs& keywords = {});  // new_full
Tensor new_ones(const Tensor& self, IntList size, const keyword::DtypeDeviceArgs& keywords = {});  // new_ones
Tensor new_zeros(const Tensor& self, IntList size, const keyword::DtypeDeviceArgs& keywords = {});  // new_zeros
Tensor nextafter(const Tensor& self, const Tensor& other);  // nextafter
Tensor nextafter_(const Tensor& self, const Tensor& other);  // nextafter_
Tensor nextafter_out(const Tensor& out, const Tensor& self, const Tensor& other);  // nextafter.out
Tensor nll_loss(const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight = std::nullopt, Int reduction = 1, Int ignore_index = -100);  // nll_loss
Tensor nll_loss2d(const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight = std::nullopt, Int reduction = 1, Int ignore_index = -100);  // nll_loss2d
Tensor nll_loss2d_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight, Int reduction, Int ignore_index, const Tensor& total_weight);  // nll_loss2d_backward
std::tuple<Tensor, Tensor> nll_loss2d_forward(const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight, Int reduction, Int ignore_index);  // nll_loss2d_forward
Tensor nll_loss_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight, Int reduction, Int ignore_index, const Tensor& total_weight);  // nll_loss_backward
std::tuple<Tensor, Tensor> nll_loss_forward(const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight, Int reduction, Int ignore_index);  // nll_loss_forward
Tensor nll_loss_nd(const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight = std::nullopt, Int reduction = 1, Int ignore_index = -100);  // nll_loss_nd
Tensor nonzero(const Tensor& self);  // nonzero
std::vector<Tensor> nonzero_numpy(const Tensor& self);  // nonzero_numpy
Tensor nonzero_static(const Tensor& self, const keyword::SizeFillValueArgs& keywords);  // nonzero_static
Tensor norm(const Tensor& self, const Scalar& p = 2);  // norm.Scalar
Tensor norm(const Tensor& self, const std::optional<Scalar>& p, IntOrList dim, Bool keepdim = false);  // norm.ScalarOpt_dim
Tensor norm(const Tensor& self, const std::optional<Scalar>& p, const keyword::DtypeArgs2& keywords);  // norm.ScalarOpt_dtype
Tensor norm(const Tensor& self, const std::optional<Scalar>& p, IntOrList dim, Bool keepdim, const keyword::DtypeArgs2& keywords);  // norm.ScalarOpt_dim_dtype
Tensor norm_except_dim(const Tensor& v, Int pow = 2, Int dim = 0);  // norm_except_dim
Tensor norm_out(const Tensor& out, const Tensor& self, const std::optional<Scalar>& p, IntOrList dim, Bool keepdim = false);  // norm.ScalarOpt_dim_out
Tensor norm_out(const Tensor& out, const Tensor& self, const std::optional<Scalar>& p, IntOrList dim, Bool keepdim, const keyword::DtypeArgs2& keywords);  // norm.ScalarOpt_dim_dtype_out
Tensor normal(const Tensor& mean, Float std = 1.);  // normal.Tensor_float
Tensor normal(const Tensor& mean, const Tensor& std);  // normal.Tensor_Tensor
Tensor normal(Float mean, const Tensor& std);  // normal.float_Tensor
Tensor normal(Float mean, Float std, IntList size, const keyword::DtypeDeviceArgs& keywords = {});  // normal.float_float
Tensor normal_(const Tensor& self, Float mean = 0., Float std = 1.);  // normal_
Tensor normal_functional(const Tensor& self, Float mean = 0., Float std = 1.);  // normal_functional
Tensor nuclear_norm(const Tensor& self, Bool keepdim = false);  // nuclear_norm
Tensor nuclear_norm(const Tensor& self, IntOrList dim, Bool keepdim = false);  // nuclear_norm.dim
Tensor nuclear_norm_out(const Tensor& out, const Tensor& self, Bool keepdim = false);  // nuclear_norm.out
int64_t numel(const Tensor& self);  // numel
Tensor numpy_T(const Tensor& self);  // numpy_T
Tensor one_hot(const Tensor& self, Int num_classes = -1);  // one_hot
Tensor ones(IntList size, const keyword::DtypeDeviceArgs& keywords = {});  // ones
Tensor ones_like(const Tensor& self, const keyword::DtypeDeviceMemoryFormatArgs& keywords = {});  // ones_like
Tensor orgqr(const Tensor& self, const Tensor& input2);  // orgqr
Tensor ormqr(const Tensor& self, const Tensor& input2, const Tensor& input3, Bool left = true, Bool transpose = false);  // ormqr
Tensor ormqr_out(const Tensor& out, const Tensor& self, const Tensor& input2, const Tensor& input3, Bool left = true, Bool transpose = false);  // ormqr.out
Tensor outer(const Tensor& self, const Tensor& vec2);  // outer
Tensor outer_out(const Tensor& out, const Tensor& self, const Tensor& vec2);  // outer.out
int64_t output_nr(const Tensor& self);  // output_nr
Tensor pad(const Tensor& self, IntList pad, std::string_view mode = "constant", std::optional<Float> value = std::nullopt);  // pad
Tensor pad_sequence(TensorList sequences, Bool batch_first = false, Float padding_value = 0., std::string_view padding_side = "right");  // pad_sequence
Tensor pairwise_distance(const Tensor& x1, const Tensor& x2, Float p = 2., Float eps = 9.9999999999999995e-07, Bool keepdim = false);  // pairwise_distance
Tensor pdist(const Tensor& self, Float p = 2.);  // pdist
Tensor permute(const Tensor& self, IntList dims);  // permute
Tensor permute_copy(const Tensor& self, IntList dims);  // permute_copy
Tensor pinverse(const Tensor& self, Float rcond = 1.0000000000000001e-15);  // pinverse
Tensor pixel_shuffle(const Tensor& self, Int upscale_factor);  // pixel_shuffle
Tensor pixel_unshuffle(const Tensor& self, Int downscale_factor);  // pixel_unshuffle
Tensor poisson(const Tensor& self);  // poisson
Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, Bool log_input, Bool full, Float eps, Int reduction);  // poisson_nll_loss
Tensor polar(const Tensor& abs, const Tensor& angle);  // polar
Tensor polar_out(const Tensor& out, const Tensor& abs, const Tensor& angle);  // polar.out
Tensor polygamma(Int n, const Tensor& self);  // polygamma
Tensor polygamma_(const Tensor& self, Int n);  // polygamma_
Tensor polygamma_out(const Tensor& out, Int n, const Tensor& self);  // polygamma.out
Tensor positive(const Tensor& self);  // positive
Tensor pow(const Scalar& self, const Tensor& exponent);  // pow.Scalar
Tensor pow(const Tensor& self, const Scalar& exponent);  // pow.Tensor_Scalar
Tensor pow(const Tensor& self, const Tensor& exponent);  // pow.Tensor_Tensor
Tensor pow_(const Tensor& self, const Scalar& exponent);  // pow_.Tensor_Scalar
Tensor pow_(const Tensor& self, const Tensor& exponent);  // pow_.Tensor_Tensor
Tensor pow_out(const Tensor& out, const Scalar& self, const Tensor& exponent);  // pow.Scalar_out
Tensor pow_out(const Tensor& out, const Tensor& self, const Scalar& exponent);  // pow.Tensor_Scalar_out
Tensor pow_out(const Tensor& out, const Tensor& self, const Tensor& exponent);  // pow.Tensor_Tensor_out
Tensor prelu(const Tensor& self, const Tensor& weight);  // prelu
std::tuple<Tensor, Tensor> prelu_backward(const Tensor& grad_output, const Tensor& self, const Tensor& weight);  // prelu_backward
Tensor prod(const Tensor& self, const keyword::DtypeArgs& keywords = {});  // prod
Tensor prod(const Tensor& self, Int dim, Bool keepdim = false, const keyword::DtypeArgs& keywords = {});  // prod.dim_int
Tensor put(const Tensor& self, const Tensor& index, const Tensor& source, Bool accumulate = false);  // put
Tensor put_(const Tensor& self, const Tensor& index, const Tensor& source, Bool accumulate = false);  // put_
int64_t q_per_channel_axis(const Tensor& self);  // q_per_channel_axis
Tensor q_per_channel_scales(const Tensor& self);  // q_per_channel_scales
Tensor q_per_channel_zero_points(const Tensor& self);  // q_per_channel_zero_points
double q_scale(const Tensor& self);  // q_scale
int64_t q_zero_point(const Tensor& self);  // q_zero_point
std::tuple<Tensor, Tensor> qr(const Tensor& self, Bool some = true);  // qr
int64_t qscheme(const Tensor& self);  // qscheme
Tensor quantile(const Tensor& self, const Tensor& q, std::optional<Int> dim = std::nullopt, Bool keepdim = false, const keyword::InterpolationArgs& keywords = {});  // quantile
Tensor quantile(const Tensor& self, Float q, std::optional<Int> dim = std::nullopt, Bool keepdim = false, const keyword::InterpolationArgs& keywords = {});  // quantile.scalar
Tensor quantile_out(const Tensor& out, const Tensor& self, const Tensor& q, std::optional<Int> dim = std::nullopt, Bool keepdim = false, const keyword::InterpolationArgs& keywords = {});  // quantile.out
Tensor quantile_out(const Tensor& out, const Tensor& self, Float q, std::optional<Int> dim = std::nullopt, Bool keepdim = false, const keyword::InterpolationArgs& keywords = {});  // quantile.scalar_out
Tensor quantize_per_channel(const Tensor& self, const Tensor& scales, const Tensor& zero_points, Int axis, DType dtype);  // quantize_per_channel
Tensor quantize_per_tensor(const Tensor& self, Float scale, Int zero_point, DType dtype);  // quantize_per_tensor
Tensor quantize_per_tensor(const Tensor& self, const Tensor& scale, const Tensor& zero_point, DType dtype);  // quantize_per_tensor.tensor_qparams
Tensor rad2deg(const Tensor& self);  // rad2deg
Tensor rad2deg_(const Tensor& self);  // rad2deg_
Tensor rad2deg_out(const Tensor& out, const Tensor& self);  // rad2deg.out
Tensor rand(IntList size, const keyword::DtypeDeviceArgs& keywords = {});  // rand
Tensor rand_like(const Tensor& self, const keyword::DtypeDeviceMemoryFormatArgs& keywords = {});  // rand_like
Tensor randint(Int high, IntList size, const keyword::DtypeDeviceArgs2& keywords = {});  // randint
Tensor randint(Int low, Int high, IntList size, const keyword::DtypeDeviceArgs2& keywords = {});  // randint.low
Tensor randint_like(const Tensor& self, Int high, const keyword::DtypeDeviceMemoryFormatArgs& keywords = {});  // randint_like
Tensor randint_like(const Tensor& self, Int low, Int high, const keyword::DtypeDeviceMemoryFormatArgs& keywords = {});  // randint_like.low_dtype
Tensor randn(IntList size, const keyword::DtypeDeviceArgs& keywords = {});  // randn
Tensor randn_like(const Tensor& self, const keyword::DtypeDeviceMemoryFormatArgs& keywords = {});  // randn_like
Tensor random(const Tensor& self);  // random
Tensor random(const Tensor& self, Int to);  // random.to
Tensor random(const Tensor& self, Int from, std::optional<Int> to);  // random.from
Tensor random_(const Tensor& self);  // random_
Tensor random_(const Tensor& self, Int to);  // random_.to
Tensor random_(const Tensor& self, Int from, std::optional<Int> to);  // random_.from
Tensor randperm(Int n, const keyword::DtypeDeviceArgs2& keywords = {});  // randperm
Tensor range(const Scalar& start, const Scalar& end, const keyword::DtypeDeviceArgs& keywords = {});  // range
Tensor range(const Scalar& start, const Scalar& end, const Scalar& step, const keyword::DtypeDeviceArgs& keywords = {});  // range.step
Tensor ravel(const Tensor& self);  // ravel
Tensor real(const Tensor& self);  // real
Tensor reciprocal(const Tensor& self);  // reciprocal
Tensor reciprocal_(const Tensor& self);  // reciprocal_
Tensor reciprocal_out(const Tensor& out, const Tensor& self);  // reciprocal.out
Tensor reflection_pad1d(const Tensor& self, IntOrList padding);  // reflection_pad1d
Tensor reflection_pad1d_backward(const Tensor& grad_output, const Tensor& self, IntOrList padding);  // reflection_pad1d_backward
Tensor reflection_pad2d(const Tensor& self, IntOrList padding);  // reflection_pad2d
Tensor reflection_pad2d_backward(const Tensor& grad_output, const Tensor& self, IntOrList padding);  // reflection_pad2d_backward
Tensor reflection_pad3d(const Tensor& self, IntOrList padding);  // reflection_pad3d
Tensor reflection_pad3d_backward(const Tensor& grad_output, const Tensor& self, IntOrList padding);  // reflection_pad3d_backward
Tensor relu(const Tensor& self);  // relu
Tensor relu6(const Tensor& self);  // relu6
Tensor relu6_(const Tensor& self);  // relu6_
Tensor relu6_out(const Tensor& out, const Tensor& self);  // relu6.out
Tensor relu_(const Tensor& self);  // relu_
Tensor relu_out(const Tensor& out, const Tensor& self);  // relu.out
Tensor remainder(const Tensor& self, const Scalar& other);  // remainder.Scalar
Tensor remainder(const Scalar& self, const Tensor& other);  // remainder.Scalar_Tensor
Tensor remainder(const Tensor& self, const Tensor& other);  // remainder.Tensor
Tensor remainder_(const Tensor& self, const Scalar& other);  // remainder_.Scalar
Tensor remainder_(const Tensor& self, const Tensor& other);  // remainder_.Tensor
Tensor remainder_out(const Tensor& out, const Tensor& self, const Scalar& other);  // remainder.Scalar_out
Tensor remainder_out(const Tensor& out, const Tensor& self, const Tensor& other);  // remainder.out
Tensor renorm(const Tensor& self, const Scalar& p, Int dim, const Scalar& maxnorm);  // renorm
Tensor renorm_(const Tensor& self, const Scalar& p, Int dim, const Scalar& maxnorm);  // renorm_
Tensor renorm_out(const Tensor& out, const Tensor& self, const Scalar& p, Int dim, const Scalar& maxnorm);  // renorm.out
Tensor repeat(const Tensor& self, IntList repeats);  // repeat
Tensor repeat_interleave(const Tensor& repeats, const keyword::OutputSizeArgs& keywords = {});  // repeat_interleave.Tensor
Tensor repeat_interleave(const Tensor& self, const Tensor& repeats, std::optional<Int> dim = std::nullopt, const keyword::OutputSizeArgs& keywords = {});  // repeat_interleave.self_Tensor
Tensor repeat_interleave(const Tensor& self, Int repeats, std::optional<Int> dim = std::nullopt, const keyword::OutputSizeArgs& keywords = {});  // repeat_interleave.self_int
Tensor replication_pad1d(const Tensor& self, IntOrList padding);  // replication_pad1d
Tensor replication_pad1d_backward(const Tensor& grad_output, const Tensor& self, IntOrList padding);  // replication_pad1d_backward
Tensor replication_pad2d(const Tensor& self, IntOrList padding);  // replication_pad2d
Tensor replication_pad2d_backward(const Tensor& grad_output, const Tensor& self, IntOrList padding);  // replication_pad2d_backward
Tensor replication_pad3d(const Tensor& self, IntOrList padding);  // replication_pad3d
Tensor replication_pad3d_backward(const Tensor& grad_output, const Tensor& self, IntOrList padding);  // replication_pad3d_backward
Tensor requires_grad_(const Tensor& self, Bool requires_grad = true);  // requires_grad_
Tensor reshape(const Tensor& self, IntList shape);  // reshape
Tensor reshape_as(const Tensor& self, const Tensor& other);  // reshape_as
Tensor resolve_conj(const Tensor& self);  // resolve_conj
Tensor resolve_neg(const Tensor& self);  // resolve_neg
DType result_type(const Tensor& tensor, const Scalar& other);  // result_type.Scalar
DType result_type(const Scalar& scalar, const Tensor& tensor);  // result_type.Scalar_Tensor
DType result_type(const Tensor& tensor, const Tensor& other);  // result_type.Tensor
bool retains_grad(const Tensor& self);  // retains_grad
Tensor rms_norm(const Tensor& input, IntList normalized_shape, const std::optional<Tensor>& weight = std::nullopt, std::optional<Float> eps = std::nullopt);  // rms_norm
std::tuple<Tensor, Tensor> rnn_relu(const Tensor& data, const Tensor& batch_sizes, const Tensor& hx, TensorList params, Bool has_biases, Int num_layers, Float dropout, Bool train, Bool bidirectional);  // rnn_relu.data
std::tuple<Tensor, Tensor> rnn_relu(const Tensor& input, const Tensor& hx, TensorList params, Bool has_biases, Int num_layers, Float dropout, Bool train, Bool bidirectional, Bool batch_first);  // rnn_relu.input
Tensor rnn_relu_cell(const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh, const std::optional<Tensor>& b_ih = std::nullopt, const std::optional<Tensor>& b_hh = std::nullopt);  // rnn_relu_cell
std::tuple<Tensor, Tensor> rnn_tanh(const Tensor& data, const Tensor& batch_sizes, const Tensor& hx, TensorList params, Bool has_biases, Int num_layers, Float dropout, Bool train, Bool bidirectional);  // rnn_tanh.data
std::tuple<Tensor, Tensor> rnn_tanh(const Tensor& input, const Tensor& hx, TensorList params, Bool has_biases, Int num_layers, Float dropout, Bool train, Bool bidirectional, Bool batch_first);  // rnn_tanh.input
Tensor rnn_tanh_cell(const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh, const std::optional<Tensor>& b_ih = std::nullopt, const std::optional<Tensor>& b_hh = std::nullopt);  // rnn_tanh_cell
Tensor roll(const Tensor& self, IntOrList shifts, IntOrList dims = {});  // roll
Tensor rot90(const Tensor& self, Int k = 1, IntList dims = {0, 1});  // rot90
Tensor round(const Tensor& self);  // round
Tensor round(const Tensor& self, const keyword::DecimalsArgs& keywords);  // round.decimals
Tensor round_(const Tensor& self);  // round_
Tensor round_(const Tensor& self, const keyword::DecimalsArgs& keywords);  // round_.decimals
Tensor round_out(const Tensor& out, const Tensor& self);  // round.out
Tensor round_out(const Tensor& out, const Tensor& self, const keyword::DecimalsArgs& keywords);  // round.decimals_out
Tensor row_indices(const Tensor& self);  // row_indices
Tensor row_stack(TensorList tensors);  // row_stack
Tensor rrelu(const Tensor& self, const Scalar& lower = 0.125, const Scalar& upper = 0.33333333333333331, Bool training = false);  // rrelu
Tensor rrelu_(const Tensor& self, const Scalar& lower = 0.125, const Scalar& upper = 0.33333333333333331, Bool training = false);  // rrelu_
Tensor rrelu_with_noise(const Tensor& self, const Tensor& noise, const Scalar& lower = 0.125, const Scalar& upper = 0.33333333333333331, Bool training = false);  // rrelu_with_noise
Tensor rrelu_with_noise_(const Tensor& self, const Tensor& noise, const Scalar& lower = 0.125, const Scalar& upper = 0.33333333333333331, Bool training = false);  // rrelu_with_noise_
Tensor rrelu_with_noise_backward(const Tensor& grad_output, const Tensor& self, const Tensor& noise, const Scalar& lower, const Scalar& upper, Bool training, Bool self_is_result);  // rrelu_with_noise_backward
Tensor rsqrt(const Tensor& self);  // rsqrt
Tensor rsqrt_(const Tensor& self);  // rsqrt_
Tensor rsqrt_out(const Tensor& out, const Tensor& self);  // rsqrt.out
Tensor rsub(const Tensor& self, const Scalar& other, const Scalar& alpha = 1);  // rsub.Scalar
Tensor rsub(const Tensor& self, const Tensor& other, const keyword::AlphaArgs& keywords = {});  // rsub.Tensor
Tensor rsub_(const Tensor& self, const Scalar& other, const Scalar& alpha = 1);  // rsub_.Scalar
Tensor rsub_(const Tensor& self, const Tensor& other, const keyword::AlphaArgs& keywords = {});  // rsub_.Tensor
Tensor rsub_out(const Tensor& out, const Tensor& self, const Scalar& other, const Scalar& alpha = 1);  // rsub.Scalar_out
Tensor rsub_out(const Tensor& out, const Tensor& self, const Tensor& other, const keyword::AlphaArgs& keywords = {});  // rsub.out
Tensor scalar_tensor(const Scalar& s, const keyword::DtypeDeviceArgs& keywords = {});  // scalar_tensor
Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value, const std::optional<Tensor>& attn_mask = std::nullopt, Float dropout_p = 0., Bool is_causal = false, const keyword::ScaleEnableGqaArgs& keywords = {});  // scaled_dot_product_attention
Tensor scatter(const Tensor& self, Int dim, const Tensor& index, const Tensor& src);  // scatter.src
Tensor scatter(const Tensor& self, Int dim, const Tensor& index, const Scalar& value);  // scatter.value
Tensor scatter(const Tensor& self, Int dim, const Tensor& index, const Tensor& src, const keyword::ReduceArgs& keywords);  // scatter.reduce
Tensor scatter(const Tensor& self, Int dim, const Tensor& index, const Scalar& value, const keyword::ReduceArgs& keywords);  // scatter.value_reduce
Tensor scatter_(const Tensor& self, Int dim, const Tensor& index, const Tensor& src);  // scatter_.src
Tensor scatter_(const Tensor& self, Int dim, const Tensor& index, const Scalar& value);  // scatter_.value
Tensor scatter_(const Tensor& self, Int dim, const Tensor& index, const Tensor& src, const keyword::ReduceArgs& keywords);  // scatter_.reduce
Tensor scatter_(const Tensor& self, Int dim, const Tensor& index, const Scalar& value, const keyword::ReduceArgs& keywords);  // scatter_.value_reduce
Tensor scatter_add(const Tensor& self, Int dim, const Tensor& index, const Tensor& src);  // scatter_add
Tensor scatter_add_(const Tensor& self, Int dim, const Tensor& index, const Tensor& src);  // scatter_add_
Tensor scatter_reduce(const Tensor& self, Int dim, const Tensor& index, const Tensor& src, std::string_view reduce, const keyword::IncludeSelfArgs& keywords = {});  // scatter_reduce.two
Tensor scatter_reduce_(const Tensor& self, Int dim, const Tensor& index, const Tensor& src, std::string_view reduce, const keyword::IncludeSelfArgs& keywords = {});  // scatter_reduce_.two
Tensor searchsorted(const Tensor& sorted_sequence, const Scalar& self, const keyword::OutInt32RightSideSorterArgs& keywords = {});  // searchsorted.Scalar
Tensor searchsorted(const Tensor& sorted_sequence, const Tensor& self, const keyword::OutInt32RightSideSorterArgs& keywords = {});  // searchsorted.Tensor
Tensor segment_reduce(const Tensor& data, std::string_view reduce, const keyword::LengthsIndicesOffsetsAxisUnsafeInitialArgs& keywords = {});  // segment_reduce
Tensor select(const Tensor& self, Int dim, Int index);  // select.int
Tensor select_backward(const Tensor& grad_output, IntList input_sizes, Int dim, Int index);  // select_backward
Tensor select_copy(const Tensor& self, Int dim, Int index);  // select_copy.int
Tensor select_scatter(const Tensor& self, const Tensor& src, Int dim, Int index);  // select_scatter
Tensor selu(const Tensor& self);  // selu
Tensor selu_(const Tensor& self);  // selu_
Tensor selu_out(const Tensor& out, const Tensor& self);  // selu.out
Tensor sgn(const Tensor& self);  // sgn
Tensor sgn_(const Tensor& self);  // sgn_
Tensor sgn_out(const Tensor& out, const Tensor& self);  // sgn.out
Tensor sigmoid(const Tensor& self);  // sigmoid
Tensor sigmoid_(const Tensor& self);  // sigmoid_
Tensor sigmoid_backward(const Tensor& grad_output, const Tensor& output);  // sigmoid_backward
Tensor sigmoid_out(const Tensor& out, const Tensor& self);  // sigmoid.out
Tensor sign(const Tensor& self);  // sign
Tensor sign_(const Tensor& self);  // sign_
Tensor sign_out(const Tensor& out, const Tensor& self);  // sign.out
Tensor signbit(const Tensor& self);  // signbit
Tensor signbit_out(const Tensor& out, const Tensor& self);  // signbit.out
Tensor silu(const Tensor& self);  // silu
Tensor silu_(const Tensor& self);  // silu_
Tensor silu_backward(const Tensor& grad_output, const Tensor& self);  // silu_backward
Tensor silu_out(const Tensor& out, const Tensor& self);  // silu.out
Tensor sin(const Tensor& self);  // sin
Tensor sin_(const Tensor& self);  // sin_
Tensor sin_out(const Tensor& out, const Tensor& self);  // sin.out
Tensor sinc(const Tensor& self);  // sinc
Tensor sinc_(const Tensor& self);  // sinc_
Tensor sinc_out(const Tensor& out, const Tensor& self);  // sinc.out
Tensor sinh(const Tensor& self);  // sinh
Tensor sinh_(const Tensor& self);  // sinh_
Tensor sinh_out(const Tensor& out, const Tensor& self);  // sinh.out
Dims size(const Tensor& self);  // size
int64_t size(const Tensor& self, Int dim);  // size.int
Tensor slice(const Tensor& self, Int dim = 0, std::optional<Int> start = std::nullopt, std::optional<Int> end = std::nullopt, Int step = 1);  // slice.Tensor
Tensor slice_backward(const Tensor& grad_output, IntList input_sizes, Int dim, Int start, Int end, Int step);  // slice_backward
Tensor slice_copy(const Tensor& self, Int dim = 0, std::optional<Int> start = std::nullopt, std::optional<Int> end = std::nullopt, Int step = 1);  // slice_copy.Tensor
Tensor slice_scatter(const Tensor& self, const Tensor& src, Int dim = 0, std::optional<Int> start = std::nullopt, std::optional<Int> end = std::nullopt, Int step = 1);  // slice_scatter
std::tuple<Tensor, Tensor> slogdet(const Tensor& self);  // slogdet
Tensor smm(const Tensor& self, const Tensor& mat2);  // smm
Tensor smooth_l1_loss(const Tensor& self, const Tensor& target, Int reduction = 1, Float beta = 1.);  // smooth_l1_loss
Tensor smooth_l1_loss_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target, Int reduction, Float beta);  // smooth_l1_loss_backward
Tensor soft_margin_loss(const Tensor& self, const Tensor& target, Int reduction = 1);  // soft_margin_loss
Tensor soft_margin_loss_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target, Int reduction);  // soft_margin_loss_backward
Tensor softmax(const Tensor& self, Int dim, std::optional<DType> dtype = std::nullopt);  // softmax.int
Tensor softplus(const Tensor& self, const Scalar& beta = 1, const Scalar& threshold = 20);  // softplus
Tensor softplus_(const Tensor& self, const Scalar& beta = 1, const Scalar& threshold = 20);  // softplus_
Tensor softplus_backward(const Tensor& grad_output, const Tensor& self, const Scalar& beta, const Scalar& threshold);  // softplus_backward
Tensor softplus_out(const Tensor& out, const Tensor& self, const Scalar& beta = 1, const Scalar& threshold = 20);  // softplus.out
Tensor softshrink(const Tensor& self, const Scalar& lambd = 0.5);  // softshrink
Tensor softshrink_(const Tensor& self, const Scalar& lambd = 0.5);  // softshrink_
Tensor softshrink_backward(const Tensor& grad_output, const Tensor& self, const Scalar& lambd);  // softshrink_backward
Tensor softshrink_out(const Tensor& out, const Tensor& self, const Scalar& lambd = 0.5);  // softshrink.out
std::tuple<Tensor, Tensor> sort(const Tensor& self, Int dim = -1, Bool descending = false);  // sort
std::tuple<Tensor, Tensor> sort(const Tensor& self, const keyword::StableDimDescendingArgs2& keywords);  // sort.stable
std::vector<Tensor> sorted(TensorList input);  // sorted.Tensor
Tensor sparse_bsc_tensor(const Tensor& ccol_indices, const Tensor& row_indices, const Tensor& values, const keyword::DtypeDeviceArgs& keywords = {});  // sparse_bsc_tensor.ccol_row_value
Tensor sparse_bsc_tensor(const Tensor& ccol_indices, const Tensor& row_indices, const Tensor& values, IntList size, const keyword::DtypeDeviceArgs& keywords = {});  // sparse_bsc_tensor.ccol_row_value_size
Tensor sparse_bsr_tensor(const Tensor& crow_indices, const Tensor& col_indices, const Tensor& values, const keyword::DtypeDeviceArgs& keywords = {});  // sparse_bsr_tensor.crow_col_value
Tensor sparse_bsr_tensor(const Tensor& crow_indices, const Tensor& col_indices, const Tensor& values, IntList size, const keyword::DtypeDeviceArgs& keywords = {});  // sparse_bsr_tensor.crow_col_value_size
Tensor sparse_compressed_tensor(const Tensor& compressed_indices, const Tensor& plain_indices, const Tensor& values, const keyword::DtypeDeviceArgs& keywords = {});  // sparse_compressed_tensor.comp_plain_value
Tensor sparse_compressed_tensor(const Tensor& compressed_indices, const Tensor& plain_indices, const Tensor& values, IntList size, const keyword::DtypeDeviceArgs& keywords = {});  // sparse_compressed_tensor.comp_plain_value_size
Tensor sparse_coo_tensor(IntList size, const keyword::DtypeDeviceArgs& keywords = {});  // sparse_coo_tensor.size
Tensor sparse_coo_tensor(const Tensor& indices, const Tensor& values, const keyword::DtypeDeviceIsCoalescedArgs& keywords = {});  // sparse_coo_tensor.indices
Tensor sparse_coo_tensor(const Tensor& indices, const Tensor& values, IntList size, const keyword::DtypeDeviceIsCoalescedArgs& keywords = {});  // sparse_coo_tensor.indices_size
Tensor sparse_csc_tensor(const Tensor& ccol_indices, const Tensor& row_indices, const Tensor& values, const keyword::DtypeDeviceArgs& keywords = {});  // sparse_csc_tensor.ccol_row_value
Tensor sparse_csc_tensor(const Tensor& ccol_indices, const Tensor& row_indices, const Tensor& values, IntList size, const keyword::DtypeDeviceArgs& keywords = {});  // sparse_csc_tensor.ccol_row_value_size
Tensor sparse_csr_tensor(const Tensor& crow_indices, const Tensor& col_indices, const Tensor& values, const keyword::DtypeDeviceArgs& keywords = {});  // sparse_csr_tensor.crow_col_value
Tensor sparse_csr_tensor(const Tensor& crow_indices, const Tensor& col_indices, const Tensor& values, IntList size, const keyword::DtypeDeviceArgs& keywords = {});  // sparse_csr_tensor.crow_col_value_size
int64_t sparse_dim(const Tensor& self);  // sparse_dim
Tensor sparse_mask(const Tensor& self, const Tensor& mask);  // sparse_mask
Tensor sparse_sampled_addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const keyword::BetaAlphaArgs& keywords = {});  // sparse_sampled_addmm
Tensor special_airy_ai(const Tensor& x);  // special_airy_ai
Tensor special_airy_ai_out(const Tensor& out, const Tensor& x);  // special_airy_ai.out
Tensor special_bessel_j0(const Tensor& self);  // special_bessel_j0
Tensor special_bessel_j0_out(const Tensor& out, const Tensor& self);  // special_bessel_j0.out
Tensor special_bessel_j1(const Tensor& self);  // special_bessel_j1
Tensor special_bessel_j1_out(const Tensor& out, const Tensor& self);  // special_bessel_j1.out
Tensor special_bessel_y0(const Tensor& self);  // special_bessel_y0
Tensor special_bessel_y0_out(const Tensor& out, const Tensor& self);  // special_bessel_y0.out
Tensor special_bessel_y1(const Tensor& self);  // special_bessel_y1
Tensor special_bessel_y1_out(const Tensor& out, const Tensor& self);  // special_bessel_y1.out
Tensor special_chebyshev_polynomial_t(const Tensor& x, const Tensor& n);  // special_chebyshev_polynomial_t
Tensor special_chebyshev_polynomial_t(const Tensor& x, const Scalar& n);  // special_chebyshev_polynomial_t.n_scalar
Tensor special_chebyshev_polynomial_t(const Scalar& x, const Tensor& n);  // special_chebyshev_polynomial_t.x_scalar
Tensor special_chebyshev_polynomial_t_out(const Tensor& out, const Tensor& x, const Scalar& n);  // special_chebyshev_polynomial_t.n_scalar_out
Tensor special_chebyshev_polynomial_t_out(const Tensor& out, const Tensor& x, const Tensor& n);  // special_chebyshev_polynomial_t.out
Tensor special_chebyshev_polynomial_t_out(const Tensor& out, const Scalar& x, const Tensor& n);  // special_chebyshev_polynomial_t.x_scalar_out
Tensor special_chebyshev_polynomial_u(const Tensor& x, const Tensor& n);  // special_chebyshev_polynomial_u
Tensor special_chebyshev_polynomial_u(const Tensor& x, const Scalar& n);  // special_chebyshev_polynomial_u.n_scalar
Tensor special_chebyshev_polynomial_u(const Scalar& x, const Tensor& n);  // special_chebyshev_polynomial_u.x_scalar
Tensor special_chebyshev_polynomial_u_out(const Tensor& out, const Tensor& x, const Scalar& n);  // special_chebyshev_polynomial_u.n_scalar_out
Tensor special_chebyshev_polynomial_u_out(const Tensor& out, const Tensor& x, const Tensor& n);  // special_chebyshev_polynomial_u.out
Tensor special_chebyshev_polynomial_u_out(const Tensor& out, const Scalar& x, const Tensor& n);  // special_chebyshev_polynomial_u.x_scalar_out
Tensor special_chebyshev_polynomial_v(const Tensor& x, const Tensor& n);  // special_chebyshev_polynomial_v
Tensor special_chebyshev_polynomial_v(const Tensor& x, const Scalar& n);  // special_chebyshev_polynomial_v.n_scalar
Tensor special_chebyshev_polynomial_v(const Scalar& x, const Tensor& n);  // special_chebyshev_polynomial_v.x_scalar
Tensor special_chebyshev_polynomial_v_out(const Tensor& out, const Tensor& x, const Scalar& n);  // special_chebyshev_polynomial_v.n_scalar_out
Tensor special_chebyshev_polynomial_v_out(const Tensor& out, const Tensor& x, const Tensor& n);  // special_chebyshev_polynomial_v.out
Tensor special_chebyshev_polynomial_v_out(const Tensor& out, const Scalar& x, const Tensor& n);  // special_chebyshev_polynomial_v.x_scalar_out
Tensor special_chebyshev_polynomial_w(const Tensor& x, const Tensor& n);  // special_chebyshev_polynomial_w
Tensor special_chebyshev_polynomial_w(const Tensor& x, const Scalar& n);  // special_chebyshev_polynomial_w.n_scalar
Tensor special_chebyshev_polynomial_w(const Scalar& x, const Tensor& n);  // special_chebyshev_polynomial_w.x_scalar
Tensor special_chebyshev_polynomial_w_out(const Tensor& out, const Tensor& x, const Scalar& n);  // special_chebyshev_polynomial_w.n_scalar_out
Tensor special_chebyshev_polynomial_w_out(const Tensor& out, const Tensor& x, const Tensor& n);  // special_chebyshev_polynomial_w.out
Tensor special_chebyshev_polynomial_w_out(const Tensor& out, const Scalar& x, const Tensor& n);  // special_chebyshev_polynomial_w.x_scalar_out
Tensor special_entr(const Tensor& self);  // special_entr
Tensor special_entr_out(const Tensor& out, const Tensor& self);  // special_entr.out
Tensor special_erfcx(const Tensor& self);  // special_erfcx
Tensor special_erfcx_out(const Tensor& out, const Tensor& self);  // special_erfcx.out
Tensor special_hermite_polynomial_h(const Tensor& x, const Tensor& n);  // special_hermite_polynomial_h
Tensor special_hermite_polynomial_h(const Tensor& x, const Scalar& n);  // special_hermite_polynomial_h.n_scalar
Tensor special_hermite_polynomial_h(const Scalar& x, const Tensor& n);  // special_hermite_polynomial_h.x_scalar
Tensor special_hermite_polynomial_h_out(const Tensor& out, const Tensor& x, const Scalar& n);  // special_hermite_polynomial_h.n_scalar_out
Tensor special_hermite_polynomial_h_out(const Tensor& out, const Tensor& x, const Tensor& n);  // special_hermite_polynomial_h.out
Tensor special_hermite_polynomial_h_out(const Tensor& out, const Scalar& x, const Tensor& n);  // special_hermite_polynomial_h.x_scalar_out
Tensor special_hermite_polynomial_he(const Tensor& x, const Tensor& n);  // special_hermite_polynomial_he
Tensor special_hermite_polynomial_he(const Tensor& x, const Scalar& n);  // special_hermite_polynomial_he.n_scalar
Tensor special_hermite_polynomial_he(const Scalar& x, const Tensor& n);  // special_hermite_polynomial_he.x_scalar
Tensor special_hermite_polynomial_he_out(const Tensor& out, const Tensor& x, const Scalar& n);  // special_hermite_polynomial_he.n_scalar_out
Tensor special_hermite_polynomial_he_out(const Tensor& out, const Tensor& x, const Tensor& n);  // special_hermite_polynomial_he.out
Tensor special_hermite_polynomial_he_out(const Tensor& out, const Scalar& x, const Tensor& n);  // special_hermite_polynomial_he.x_scalar_out
Tensor special_i0e(const Tensor& self);  // special_i0e
Tensor special_i0e_out(const Tensor& out, const Tensor& self);  // special_i0e.out
Tensor special_i1(const Tensor& self);  // special_i1
Tensor special_i1_out(const Tensor& out, const Tensor& self);  // special_i1.out
Tensor special_i1e(const Tensor& self);  // special_i1e
Tensor special_i1e_out(const Tensor& out, const Tensor& self);  // special_i1e.out
Tensor special_laguerre_polynomial_l(const Tensor& x, const Tensor& n);  // special_laguerre_polynomial_l
Tensor special_laguerre_polynomial_l(const Tensor& x, const Scalar& n);  // special_laguerre_polynomial_l.n_scalar
Tensor special_laguerre_polynomial_l(const Scalar& x, const Tensor& n);  // special_laguerre_polynomial_l.x_scalar
Tensor special_laguerre_polynomial_l_out(const Tensor& out, const Tensor& x, const Scalar& n);  // special_laguerre_polynomial_l.n_scalar_out
Tensor special_laguerre_polynomial_l_out(const Tensor& out, const Tensor& x, const Tensor& n);  // special_laguerre_polynomial_l.out
Tensor special_laguerre_polynomial_l_out(const Tensor& out, const Scalar& x, const Tensor& n);  // special_laguerre_polynomial_l.x_scalar_out
Tensor special_legendre_polynomial_p(const Tensor& x, const Tensor& n);  // special_legendre_polynomial_p
Tensor special_legendre_polynomial_p(const Tensor& x, const Scalar& n);  // special_legendre_polynomial_p.n_scalar
Tensor special_legendre_polynomial_p(const Scalar& x, const Tensor& n);  // special_legendre_polynomial_p.x_scalar
Tensor special_legendre_polynomial_p_out(const Tensor& out, const Tensor& x, const Scalar& n);  // special_legendre_polynomial_p.n_scalar_out
Tensor special_legendre_polynomial_p_out(const Tensor& out, const Tensor& x, const Tensor& n);  // special_legendre_polynomial_p.out
Tensor special_legendre_polynomial_p_out(const Tensor& out, const Scalar& x, const Tensor& n);  // special_legendre_polynomial_p.x_scalar_out
Tensor special_log_ndtr(const Tensor& self);  // special_log_ndtr
Tensor special_log_ndtr_out(const Tensor& out, const Tensor& self);  // special_log_ndtr.out
Tensor special_modified_bessel_i0(const Tensor& self);  // special_modified_bessel_i0
Tensor special_modified_bessel_i0_out(const Tensor& out, const Tensor& self);  // special_modified_bessel_i0.out
Tensor special_modified_bessel_i1(const Tensor& self);  // special_modified_bessel_i1
Tensor special_modified_bessel_i1_out(const Tensor& out, const Tensor& self);  // special_modified_bessel_i1.out
Tensor special_modified_bessel_k0(const Tensor& self);  // special_modified_bessel_k0
Tensor special_modified_bessel_k0_out(const Tensor& out, const Tensor& self);  // special_modified_bessel_k0.out
Tensor special_modified_bessel_k1(const Tensor& self);  // special_modified_bessel_k1
Tensor special_modified_bessel_k1_out(const Tensor& out, const Tensor& self);  // special_modified_bessel_k1.out
Tensor special_ndtr(const Tensor& self);  // special_ndtr
Tensor special_ndtr_out(const Tensor& out, const Tensor& self);  // special_ndtr.out
Tensor special_ndtri(const Tensor& self);  // special_ndtri
Tensor special_ndtri_out(const Tensor& out, const Tensor& self);  // special_ndtri.out
Tensor special_scaled_modified_bessel_k0(const Tensor& x);  // special_scaled_modified_bessel_k0
Tensor special_scaled_modified_bessel_k0_out(const Tensor& out, const Tensor& x);  // special_scaled_modified_bessel_k0.out
Tensor special_scaled_modified_bessel_k1(const Tensor& x);  // special_scaled_modified_bessel_k1
Tensor special_scaled_modified_bessel_k1_out(const Tensor& out, const Tensor& x);  // special_scaled_modified_bessel_k1.out
Tensor special_shifted_chebyshev_polynomial_t(const Tensor& x, const Tensor& n);  // special_shifted_chebyshev_polynomial_t
Tensor special_shifted_chebyshev_polynomial_t(const Tensor& x, const Scalar& n);  // special_shifted_chebyshev_polynomial_t.n_scalar
Tensor special_shifted_chebyshev_polynomial_t(const Scalar& x, const Tensor& n);  // special_shifted_chebyshev_polynomial_t.x_scalar
Tensor special_shifted_chebyshev_polynomial_t_out(const Tensor& out, const Tensor& x, const Scalar& n);  // special_shifted_chebyshev_polynomial_t.n_scalar_out
Tensor special_shifted_chebyshev_polynomial_t_out(const Tensor& out, const Tensor& x, const Tensor& n);  // special_shifted_chebyshev_polynomial_t.out
Tensor special_shifted_chebyshev_polynomial_t_out(const Tensor& out, const Scalar& x, const Tensor& n);  // special_shifted_chebyshev_polynomial_t.x_scalar_out
Tensor special_shifted_chebyshev_polynomial_u(const Tensor& x, const Tensor& n);  // special_shifted_chebyshev_polynomial_u
Tensor special_shifted_chebyshev_polynomial_u(const Tensor& x, const Scalar& n);  // special_shifted_chebyshev_polynomial_u.n_scalar
Tensor special_shifted_chebyshev_polynomial_u(const Scalar& x, const Tensor& n);  // special_shifted_chebyshev_polynomial_u.x_scalar
Tensor special_shifted_chebyshev_polynomial_u_out(const Tensor& out, const Tensor& x, const Scalar& n);  // special_shifted_chebyshev_polynomial_u.n_scalar_out
Tensor special_shifted_chebyshev_polynomial_u_out(const Tensor& out, const Tensor& x, const Tensor& n);  // special_shifted_chebyshev_polynomial_u.out
Tensor special_shifted_chebyshev_polynomial_u_out(const Tensor& out, const Scalar& x, const Tensor& n);  // special_shifted_chebyshev_polynomial_u.x_scalar_out
Tensor special_shifted_chebyshev_polynomial_v(const Tensor& x, const Tensor& n);  // special_shifted_chebyshev_polynomial_v
Tensor special_shifted_chebyshev_polynomial_v(const Tensor& x, const Scalar& n);  // special_shifted_chebyshev_polynomial_v.n_scalar
Tensor special_shifted_chebyshev_polynomial_v(const Scalar& x, const Tensor& n);  // special_shifted_chebyshev_polynomial_v.x_scalar
Tensor special_shifted_chebyshev_polynomial_v_out(const Tensor& out, const Tensor& x, const Scalar& n);  // special_shifted_chebyshev_polynomial_v.n_scalar_out
Tensor special_shifted_chebyshev_polynomial_v_out(const Tensor& out, const Tensor& x, const Tensor& n);  // special_shifted_chebyshev_polynomial_v.out
Tensor special_shifted_chebyshev_polynomial_v_out(const Tensor& out, const Scalar& x, const Tensor& n);  // special_shifted_chebyshev_polynomial_v.x_scalar_out
Tensor special_shifted_chebyshev_polynomial_w(const Tensor& x, const Tensor& n);  // special_shifted_chebyshev_polynomial_w
Tensor special_shifted_chebyshev_polynomial_w(const Tensor& x, const Scalar& n);  // special_shifted_chebyshev_polynomial_w.n_scalar
Tensor special_shifted_chebyshev_polynomial_w(const Scalar& x, const Tensor& n);  // special_shifted_chebyshev_polynomial_w.x_scalar
Tensor special_shifted_chebyshev_polynomial_w_out(const Tensor& out, const Tensor& x, const Scalar& n);  // special_shifted_chebyshev_polynomial_w.n_scalar_out
Tensor special_shifted_chebyshev_polynomial_w_out(const Tensor& out, const Tensor& x, const Tensor& n);  // special_shifted_chebyshev_polynomial_w.out
Tensor special_shifted_chebyshev_polynomial_w_out(const Tensor& out, const Scalar& x, const Tensor& n);  // special_shifted_chebyshev_polynomial_w.x_scalar_out
Tensor special_spherical_bessel_j0(const Tensor& x);  // special_spherical_bessel_j0
Tensor special_spherical_bessel_j0_out(const Tensor& out, const Tensor& x);  // special_spherical_bessel_j0.out
Tensor special_xlog1py(const Tensor& self, const Tensor& other);  // special_xlog1py
Tensor special_xlog1py(const Tensor& self, const Scalar& other);  // special_xlog1py.other_scalar
Tensor special_xlog1py(const Scalar& self, const Tensor& other);  // special_xlog1py.self_scalar
Tensor special_xlog1py_out(const Tensor& out, const Tensor& self, const Scalar& other);  // special_xlog1py.other_scalar_out
Tensor special_xlog1py_out(const Tensor& out, const Tensor& self, const Tensor& other);  // special_xlog1py.out
Tensor special_xlog1py_out(const Tensor& out, const Scalar& self, const Tensor& other);  // special_xlog1py.self_scalar_out
Tensor special_zeta(const Tensor& self, const Tensor& other);  // special_zeta
Tensor special_zeta(const Tensor& self, const Scalar& other);  // special_zeta.other_scalar
Tensor special_zeta(const Scalar& self, const Tensor& other);  // special_zeta.self_scalar
Tensor special_zeta_out(const Tensor& out, const Tensor& self, const Scalar& other);  // special_zeta.other_scalar_out
Tensor special_zeta_out(const Tensor& out, const Tensor& self, const Tensor& other);  // special_zeta.out
Tensor special_zeta_out(const Tensor& out, const Scalar& self, const Tensor& other);  // special_zeta.self_scalar_out
std::vector<Tensor> split(const Tensor& self, IntList split_sizes, Int dim = 0);  // split
std::vector<Tensor> split(const Tensor& self, Int split_size, Int dim = 0);  // split.Tensor
std::vector<Tensor> split_copy(const Tensor& self, Int split_size, Int dim = 0);  // split_copy.Tensor
std::vector<Tensor> split_with_sizes(const Tensor& self, IntList split_sizes, Int dim = 0);  // split_with_sizes
std::vector<Tensor> split_with_sizes_copy(const Tensor& self, IntList split_sizes, Int dim = 0);  // split_with_sizes_copy
Tensor sqrt(const Tensor& self);  // sqrt
Tensor sqrt_(const Tensor& self);  // sqrt_
Tensor sqrt_out(const Tensor& out, const Tensor& self);  // sqrt.out
Tensor square(const Tensor& self);  // square
Tensor square_(const Tensor& self);  // square_
Tensor square_out(const Tensor& out, const Tensor& self);  // square.out
Tensor squeeze(const Tensor& self);  // squeeze
Tensor squeeze(const Tensor& self, Int dim);  // squeeze.dim
Tensor squeeze(const Tensor& self, IntList dim);  // squeeze.dims
Tensor squeeze_(const Tensor& self);  // squeeze_
Tensor squeeze_(const Tensor& self, Int dim);  // squeeze_.dim
Tensor squeeze_(const Tensor& self, IntList dim);  // squeeze_.dims
Tensor squeeze_copy(const Tensor& self);  // squeeze_copy
Tensor squeeze_copy(const Tensor& self, Int dim);  // squeeze_copy.dim
Tensor squeeze_copy(const Tensor& self, IntList dim);  // squeeze_copy.dims
Tensor sspaddmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const keyword::BetaAlphaArgs& keywords = {});  // sspaddmm
Tensor stack(TensorList tensors, Int dim = 0);  // stack
Tensor stack_out(const Tensor& out, TensorList tensors, Int dim = 0);  // stack.out
Tensor std(const Tensor& self, Bool unbiased = true);  // std
Tensor std(const Tensor& self, OptionalIntOrList dim, const keyword::CorrectionKeepdimArgs& keywords = {});  // std.correction
Tensor std(const Tensor& self, OptionalIntOrList dim, Bool unbiased, Bool keepdim = false);  // std.dim
std::tuple<Tensor, Tensor> std_mean(const Tensor& self, Bool unbiased = true);  // std_mean
std::tuple<Tensor, Tensor> std_mean(const Tensor& self, OptionalIntOrList dim, const keyword::CorrectionKeepdimArgs& keywords = {});  // std_mean.correction
std::tuple<Tensor, Tensor> std_mean(const Tensor& self, OptionalIntOrList dim, Bool unbiased, Bool keepdim = false);  // std_mean.dim
Tensor stft(const Tensor& self, Int n_fft, std::optional<Int> hop_length = std::nullopt, std::optional<Int> win_length = std::nullopt, const std::optional<Tensor>& window = std::nullopt, Bool normalized = false, std::optional<Bool> onesided = std::nullopt, std::optional<Bool> return_complex = std::nullopt, std::optional<Bool> align_to_window = std::nullopt);  // stft
Tensor stft(const Tensor& self, Int n_fft, std::optional<Int> hop_length, std::optional<Int> win_length, const std::optional<Tensor>& window, Bool center, std::string_view pad_mode, Bool normalized = false, std::optional<Bool> onesided = std::nullopt, std::optional<Bool> return_complex = std::nullopt, std::optional<Bool> align_to_window = std::nullopt);  // stft.center
int64_t storage_offset(const Tensor& self);  // storage_offset
Dims stride(const Tensor& self);  // stride
int64_t stride(const Tensor& self, Int dim);  // stride.int
Tensor sub(const Tensor& self, const Scalar& other, const Scalar& alpha = 1);  // sub.Scalar
Tensor sub(const Tensor& self, const Tensor& other, const keyword::AlphaArgs& keywords = {});  // sub.Tensor
Tensor sub_(const Tensor& self, const Scalar& other, const Scalar& alpha = 1);  // sub_.Scalar
Tensor sub_(const Tensor& self, const Tensor& other, const keyword::AlphaArgs& keywords = {});  // sub_.Tensor
Tensor sub_out(const Tensor& out, const Tensor& self, const Scalar& other, const Scalar& alpha = 1);  // sub.Scalar_out
Tensor sub_out(const Tensor& out, const Tensor& self, const Tensor& other, const keyword::AlphaArgs& keywords = {});  // sub.out
Tensor sum(const Tensor& self, const keyword::DtypeArgs& keywords = {});  // sum
Tensor sum(const Tensor& self, OptionalIntOrList dim, Bool keepdim = false, const keyword::DtypeArgs& keywords = {});  // sum.dim_IntList
Tensor sum_out(const Tensor& out, const Tensor& self, OptionalIntOrList dim, Bool keepdim = false, const keyword::DtypeArgs& keywords = {});  // sum.dim_IntList_out
Tensor sum_to_size(const Tensor& self, IntList size);  // sum_to_size
std::tuple<Tensor, Tensor, Tensor> svd(const Tensor& self, Bool some = true, Bool compute_uv = true);  // svd
Tensor swapaxes(const Tensor& self, Int axis0, Int axis1);  // swapaxes
Tensor swapaxes_(const Tensor& self, Int axis0, Int axis1);  // swapaxes_
Tensor swapdims(const Tensor& self, Int dim0, Int dim1);  // swapdims
Tensor swapdims_(const Tensor& self, Int dim0, Int dim1);  // swapdims_
std::tuple<Tensor, Tensor> symeig(const Tensor& self, Bool eigenvectors = false, Bool upper = true);  // symeig
Tensor t(const Tensor& self);  // t
Tensor t_(const Tensor& self);  // t_
Tensor t_copy(const Tensor& self);  // t_copy
Tensor take(const Tensor& self, const Tensor& index);  // take
Tensor take_along_dim(const Tensor& self, const Tensor& indices, std::optional<Int> dim = std::nullopt);  // take_along_dim
Tensor take_along_dim_out(const Tensor& out, const Tensor& self, const Tensor& indices, std::optional<Int> dim = std::nullopt);  // take_along_dim.out
Tensor tan(const Tensor& self);  // tan
Tensor tan_(const Tensor& self);  // tan_
Tensor tan_out(const Tensor& out, const Tensor& self);  // tan.out
Tensor tanh(const Tensor& self);  // tanh
Tensor tanh_(const Tensor& self);  // tanh_
Tensor tanh_backward(const Tensor& grad_output, const Tensor& output);  // tanh_backward
Tensor tanh_out(const Tensor& out, const Tensor& self);  // tanh.out
Tensor tensor(Bool t, const keyword::DtypeDeviceRequiresGradArgs& keywords = {});  // tensor.bool
Tensor tensor(Float t, const keyword::DtypeDeviceRequiresGradArgs& keywords = {});  // tensor.float
Tensor tensor(Int t, const keyword::DtypeDeviceRequiresGradArgs& keywords = {});  // tensor.int
std::vector<Tensor> tensor_split(const Tensor& self, IntList indices, Int dim = 0);  // tensor_split.indices
std::vector<Tensor> tensor_split(const Tensor& self, Int sections, Int dim = 0);  // tensor_split.sections
std::vector<Tensor> tensor_split(const Tensor& self, const Tensor& tensor_indices_or_sections, Int dim = 0);  // tensor_split.tensor_indices_or_sections
Tensor tensordot(const Tensor& self, const Tensor& other, IntList dims_self, IntList dims_other);  // tensordot
Tensor threshold(const Tensor& self, const Scalar& threshold, const Scalar& value);  // threshold
Tensor threshold_(const Tensor& self, const Scalar& threshold, const Scalar& value);  // threshold_
Tensor threshold_backward(const Tensor& grad_output, const Tensor& self, const Scalar& threshold);  // threshold_backward
Tensor threshold_out(const Tensor& out, const Tensor& self, const Scalar& threshold, const Scalar& value);  // threshold.out
Tensor tile(const Tensor& self, IntList dims);  // tile
Tensor to(const Tensor& self, const keyword::DtypeDeviceNonBlockingCopyMemoryFormatArgs& keywords = {});  // to.dtype_layout
Tensor to(const Tensor& self, DType dtype, Bool non_blocking = false, Bool copy = false, std::optional<MemoryFormat> memory_format = std::nullopt);  // to.dtype
Tensor to(const Tensor& self, const Tensor& other, Bool non_blocking = false, Bool copy = false, std::optional<MemoryFormat> memory_format = std::nullopt);  // to.other
Tensor to(const Tensor& self, const Device& device, DType dtype, Bool non_blocking = false, Bool copy = false, std::optional<MemoryFormat> memory_format = std::nullopt);  // to.device
Tensor to_dense(const Tensor& self, std::optional<DType> dtype = std::nullopt, const keyword::MaskedGradArgs& keywords = {});  // to_dense
Tensor to_padded_tensor(const Tensor& self, Float padding, OptionalIntList output_size = std::nullopt);  // to_padded_tensor
Tensor to_sparse(const Tensor& self, const keyword::BlocksizeDenseDimArgs& keywords = {});  // to_sparse
Tensor to_sparse(const Tensor& self, Int sparse_dim);  // to_sparse.sparse_dim
Tensor to_sparse_bsc(const Tensor& self, IntOrList blocksize, std::optional<Int> dense_dim = std::nullopt);  // to_sparse_bsc
Tensor to_sparse_bsr(const Tensor& self, IntOrList blocksize, std::optional<Int> dense_dim = std::nullopt);  // to_sparse_bsr
Tensor to_sparse_csc(const Tensor& self, std::optional<Int> dense_dim = std::nullopt);  // to_sparse_csc
Tensor to_sparse_csr(const Tensor& self, std::optional<Int> dense_dim = std::nullopt);  // to_sparse_csr
std::tuple<Tensor, Tensor> topk(const Tensor& self, Int k, Int dim = -1, Bool largest = true, Bool sorted = true);  // topk
Tensor trace(const Tensor& self);  // trace
Tensor trace_backward(const Tensor& grad, IntList sizes);  // trace_backward
Tensor transpose(const Tensor& self, Int dim0, Int dim1);  // transpose.int
Tensor transpose_(const Tensor& self, Int dim0, Int dim1);  // transpose_
Tensor transpose_copy(const Tensor& self, Int dim0, Int dim1);  // transpose_copy.int
Tensor trapezoid(const Tensor& y, const keyword::DxDimArgs& keywords = {});  // trapezoid.dx
Tensor trapezoid(const Tensor& y, const Tensor& x, const keyword::DimArgs& keywords = {});  // trapezoid.x
Tensor trapz(const Tensor& y, const keyword::DxDimArgs2& keywords = {});  // trapz.dx
Tensor trapz(const Tensor& y, const Tensor& x, const keyword::DimArgs& keywords = {});  // trapz.x
std::tuple<Tensor, Tensor> triangular_solve(const Tensor& self, const Tensor& A, Bool upper = true, Bool transpose = false, Bool unitriangular = false);  // triangular_solve
Tensor tril(const Tensor& self, Int diagonal = 0);  // tril
Tensor tril_(const Tensor& self, Int diagonal = 0);  // tril_
Tensor tril_indices(Int row, Int col, Int offset = 0, const keyword::DtypeDeviceArgs2& keywords = {});  // tril_indices
Tensor tril_out(const Tensor& out, const Tensor& self, Int diagonal = 0);  // tril.out
Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative, Float margin = 1., Float p = 2., Float eps = 9.9999999999999995e-07, Bool swap = false, Int reduction = 1);  // triplet_margin_loss
Tensor triu(const Tensor& self, Int diagonal = 0);  // triu
Tensor triu_(const Tensor& self, Int diagonal = 0);  // triu_
Tensor triu_indices(Int row, Int col, Int offset = 0, const keyword::DtypeDeviceArgs2& keywords = {});  // triu_indices
Tensor triu_out(const Tensor& out, const Tensor& self, Int diagonal = 0);  // triu.out
Tensor trunc(const Tensor& self);  // trunc
Tensor trunc_(const Tensor& self);  // trunc_
Tensor trunc_out(const Tensor& out, const Tensor& self);  // trunc.out
Tensor type_as(const Tensor& self, const Tensor& other);  // type_as
std::vector<Tensor> unbind(const Tensor& self, Int dim = 0);  // unbind.int
std::vector<Tensor> unbind_copy(const Tensor& self, Int dim = 0);  // unbind_copy.int
Tensor unflatten(const Tensor& self, Int dim, IntList sizes);  // unflatten.int
Tensor unfold(const Tensor& self, Int dimension, Int size, Int step);  // unfold
Tensor unfold_backward(const Tensor& grad_in, IntList input_sizes, Int dim, Int size, Int step);  // unfold_backward
Tensor unfold_copy(const Tensor& self, Int dimension, Int size, Int step);  // unfold_copy
Tensor uniform(const Tensor& self, Float from = 0., Float to = 1.);  // uniform
Tensor uniform_(const Tensor& self, Float from = 0., Float to = 1.);  // uniform_
std::tuple<Tensor, Tensor, Tensor> unique_consecutive(const Tensor& self, Bool return_inverse = false, Bool return_counts = false, std::optional<Int> dim = std::nullopt);  // unique_consecutive
std::tuple<Tensor, Tensor, Tensor> unique_dim(const Tensor& self, Int dim, Bool sorted = true, Bool return_inverse = false, Bool return_counts = false);  // unique_dim
std::tuple<Tensor, Tensor, Tensor> unique_dim_consecutive(const Tensor& self, Int dim, Bool return_inverse = false, Bool return_counts = false);  // unique_dim_consecutive
std::vector<Tensor> unsafe_chunk(const Tensor& self, Int chunks, Int dim = 0);  // unsafe_chunk
std::vector<Tensor> unsafe_split(const Tensor& self, Int split_size, Int dim = 0);  // unsafe_split.Tensor
std::vector<Tensor> unsafe_split_with_sizes(const Tensor& self, IntList split_sizes, Int dim = 0);  // unsafe_split_with_sizes
Tensor unsqueeze(const Tensor& self, Int dim);  // unsqueeze
Tensor unsqueeze_(const Tensor& self, Int dim);  // unsqueeze_
Tensor unsqueeze_copy(const Tensor& self, Int dim);  // unsqueeze_copy
Tensor upsample_bicubic2d(const Tensor& self, IntOrList output_size, Bool align_corners, std::optional<Float> scales_h = std::nullopt, std::optional<Float> scales_w = std::nullopt);  // upsample_bicubic2d
Tensor upsample_bicubic2d(const Tensor& input, OptionalIntList output_size, Bool align_corners, OptionalFloatList scale_factors);  // upsample_bicubic2d.vec
Tensor upsample_bicubic2d_backward(const Tensor& grad_output, IntOrList output_size, IntOrList input_size, Bool align_corners, std::optional<Float> scales_h = std::nullopt, std::optional<Float> scales_w = std::nullopt);  // upsample_bicubic2d_backward
Tensor upsample_bicubic2d_out(const Tensor& out, const Tensor& self, IntOrList output_size, Bool align_corners, std::optional<Float> scales_h = std::nullopt, std::optional<Float> scales_w = std::nullopt);  // upsample_bicubic2d.out
Tensor upsample_bicubic2d_out(const Tensor& out, const Tensor& input, OptionalIntList output_size, Bool align_corners, OptionalFloatList scale_factors);  // upsample_bicubic2d.vec_out
Tensor upsample_bilinear2d(const Tensor& self, IntOrList output_size, Bool align_corners, std::optional<Float> scales_h = std::nullopt, std::optional<Float> scales_w = std::nullopt);  // upsample_bilinear2d
Tensor upsample_bilinear2d(const Tensor& input, OptionalIntList output_size, Bool align_corners, OptionalFloatList scale_factors);  // upsample_bilinear2d.vec
Tensor upsample_bilinear2d_backward(const Tensor& grad_output, IntOrList output_size, IntOrList input_size, Bool align_corners, std::optional<Float> scales_h = std::nullopt, std::optional<Float> scales_w = std::nullopt);  // upsample_bilinear2d_backward
Tensor upsample_bilinear2d_out(const Tensor& out, const Tensor& self, IntOrList output_size, Bool align_corners, std::optional<Float> scales_h = std::nullopt, std::optional<Float> scales_w = std::nullopt);  // upsample_bilinear2d.out
Tensor upsample_bilinear2d_out(const Tensor& out, const Tensor& input, OptionalIntList output_size, Bool align_corners, OptionalFloatList scale_factors);  // upsample_bilinear2d.vec_out
Tensor upsample_linear1d(const Tensor& self, IntOrList output_size, Bool align_corners, std::optional<Float> scales = std::nullopt);  // upsample_linear1d
Tensor upsample_linear1d(const Tensor& input, OptionalIntList output_size, Bool align_corners, OptionalFloatList scale_factors);  // upsample_linear1d.vec
Tensor upsample_linear1d_backward(const Tensor& grad_output, IntOrList output_size, IntOrList input_size, Bool align_corners, std::optional<Float> scales = std::nullopt);  // upsample_linear1d_backward
Tensor upsample_linear1d_out(const Tensor& out, const Tensor& self, IntOrList output_size, Bool align_corners, std::optional<Float> scales = std::nullopt);  // upsample_linear1d.out
Tensor upsample_linear1d_out(const Tensor& out, const Tensor& input, OptionalIntList output_size, Bool align_corners, OptionalFloatList scale_factors);  // upsample_linear1d.vec_out
Tensor upsample_nearest1d(const Tensor& self, IntOrList output_size, std::optional<Float> scales = std::nullopt);  // upsample_nearest1d
Tensor upsample_nearest1d(const Tensor& input, OptionalIntList output_size, OptionalFloatList scale_factors);  // upsample_nearest1d.vec
Tensor upsample_nearest1d_backward(const Tensor& grad_output, IntOrList output_size, IntOrList input_size, std::optional<Float> scales = std::nullopt);  // upsample_nearest1d_backward
Tensor upsample_nearest1d_out(const Tensor& out, const Tensor& self, IntOrList output_size, std::optional<Float> scales = std::nullopt);  // upsample_nearest1d.out
Tensor upsample_nearest1d_out(const Tensor& out, const Tensor& input, OptionalIntList output_size, OptionalFloatList scale_factors);  // upsample_nearest1d.vec_out
Tensor upsample_nearest2d(const Tensor& self, IntOrList output_size, std::optional<Float> scales_h = std::nullopt, std::optional<Float> scales_w = std::nullopt);  // upsample_nearest2d
Tensor upsample_nearest2d(const Tensor& input, OptionalIntList output_size, OptionalFloatList scale_factors);  // upsample_nearest2d.vec
Tensor upsample_nearest2d_backward(const Tensor& grad_output, IntOrList output_size, IntOrList input_size, std::optional<Float> scales_h = std::nullopt, std::optional<Float> scales_w = std::nullopt);  // upsample_nearest2d_backward
Tensor upsample_nearest2d_out(const Tensor& out, const Tensor& self, IntOrList output_size, std::optional<Float> scales_h = std::nullopt, std::optional<Float> scales_w = std::nullopt);  // upsample_nearest2d.out
Tensor upsample_nearest2d_out(const Tensor& out, const Tensor& input, OptionalIntList output_size, OptionalFloatList scale_factors);  // upsample_nearest2d.vec_out
Tensor upsample_nearest3d(const Tensor& self, IntOrList output_size, std::optional<Float> scales_d = std::nullopt, std::optional<Float> scales_h = std::nullopt, std::optional<Float> scales_w = std::nullopt);  // upsample_nearest3d
Tensor upsample_nearest3d(const Tensor& input, OptionalIntList output_size, OptionalFloatList scale_factors);  // upsample_nearest3d.vec
Tensor upsample_nearest3d_backward(const Tensor& grad_output, IntOrList output_size, IntOrList input_size, std::optional<Float> scales_d = std::nullopt, std::optional<Float> scales_h = std::nullopt, std::optional<Float> scales_w = std::nullopt);  // upsample_nearest3d_backward
Tensor upsample_nearest3d_out(const Tensor& out, const Tensor& self, IntOrList output_size, std::optional<Float> scales_d = std::nullopt, std::optional<Float> scales_h = std::nullopt, std::optional<Float> scales_w = std::nullopt);  // upsample_nearest3d.out
Tensor upsample_nearest3d_out(const Tensor& out, const Tensor& input, OptionalIntList output_size, OptionalFloatList scale_factors);  // upsample_nearest3d.vec_out
Tensor upsample_trilinear3d(const Tensor& self, IntOrList output_size, Bool align_corners, std::optional<Float> scales_d = std::nullopt, std::optional<Float> scales_h = std::nullopt, std::optional<Float> scales_w = std::nullopt);  // upsample_trilinear3d
Tensor upsample_trilinear3d(const Tensor& input, OptionalIntList output_size, Bool align_corners, OptionalFloatList scale_factors);  // upsample_trilinear3d.vec
Tensor upsample_trilinear3d_backward(const Tensor& grad_output, IntOrList output_size, IntOrList input_size, Bool align_corners, std::optional<Float> scales_d = std::nullopt, std::optional<Float> scales_h = std::nullopt, std::optional<Float> scales_w = std::nullopt);  // upsample_trilinear3d_backward
Tensor upsample_trilinear3d_out(const Tensor& out, const Tensor& self, IntOrList output_size, Bool align_corners, std::optional<Float> scales_d = std::nullopt, std::optional<Float> scales_h = std::nullopt, std::optional<Float> scales_w = std::nullopt);  // upsample_trilinear3d.out
Tensor upsample_trilinear3d_out(const Tensor& out, const Tensor& input, OptionalIntList output_size, Bool align_corners, OptionalFloatList scale_factors);  // upsample_trilinear3d.vec_out
Tensor value_selecting_reduction_backward(const Tensor& grad, Int dim, const Tensor& indices, IntList sizes, Bool keepdim);  // value_selecting_reduction_backward
Tensor values(const Tensor& self);  // values
Tensor vander(const Tensor& x, std::optional<Int> N = std::nullopt, Bool increasing = false);  // vander
Tensor var(const Tensor& self, Bool unbiased = true);  // var
Tensor var(const Tensor& self, OptionalIntOrList dim, const keyword::CorrectionKeepdimArgs& keywords = {});  // var.correction
Tensor var(const Tensor& self, OptionalIntOrList dim, Bool unbiased, Bool keepdim = false);  // var.dim
std::tuple<Tensor, Tensor> var_mean(const Tensor& self, Bool unbiased = true);  // var_mean
std::tuple<Tensor, Tensor> var_mean(const Tensor& self, OptionalIntOrList dim, const keyword::CorrectionKeepdimArgs& keywords = {});  // var_mean.correction
std::tuple<Tensor, Tensor> var_mean(const Tensor& self, OptionalIntOrList dim, Bool unbiased, Bool keepdim = false);  // var_mean.dim
Tensor vdot(const Tensor& self, const Tensor& other);  // vdot
Tensor vdot_out(const Tensor& out, const Tensor& self, const Tensor& other);  // vdot.out
Tensor view(const Tensor& self, IntList size);  // view
Tensor view(const Tensor& self, DType dtype);  // view.dtype
Tensor view_as(const Tensor& self, const Tensor& other);  // view_as
Tensor view_as_complex(const Tensor& self);  // view_as_complex
Tensor view_as_real(const Tensor& self);  // view_as_real
Tensor view_copy(const Tensor& self, IntList size);  // view_copy
Tensor view_copy(const Tensor& self, DType dtype);  // view_copy.dtype
std::vector<Tensor> vsplit(const Tensor& self, IntList indices);  // vsplit.array
std::vector<Tensor> vsplit(const Tensor& self, Int sections);  // vsplit.int
Tensor vstack(TensorList tensors);  // vstack
std::vector<Tensor> where(const Tensor& condition);  // where
Tensor where(const Tensor& condition, const Scalar& self, const Scalar& other);  // where.Scalar
Tensor where(const Tensor& condition, const Tensor& self, const Scalar& other);  // where.ScalarOther
Tensor where(const Tensor& condition, const Scalar& self, const Tensor& other);  // where.ScalarSelf
Tensor where(const Tensor& condition, const Tensor& self, const Tensor& other);  // where.self
Tensor xlogy(const Tensor& self, const Scalar& other);  // xlogy.Scalar_Other
Tensor xlogy(const Scalar& self, const Tensor& other);  // xlogy.Scalar_Self
Tensor xlogy(const Tensor& self, const Tensor& other);  // xlogy.Tensor
Tensor xlogy_(const Tensor& self, const Scalar& other);  // xlogy_.Scalar_Other
Tensor xlogy_(const Tensor& self, const Tensor& other);  // xlogy_.Tensor
Tensor xlogy_out(const Tensor& out, const Tensor& self, const Scalar& other);  // xlogy.Scalar_Other_out
Tensor xlogy_out(const Tensor& out, const Scalar& self, const Tensor& other);  // xlogy.Scalar_Self_out
Tensor xlogy_out(const Tensor& out, const Tensor& self, const Tensor& other);  // xlogy.out
Tensor zero_(const Tensor& self);  // zero_
Tensor zeros(IntList size, const keyword::DtypeDeviceArgs& keywords = {});  // zeros
Tensor zeros_like(const Tensor& self, const keyword::DtypeDeviceMemoryFormatArgs& keywords = {});  // zeros_like

}  // namespace tensord
