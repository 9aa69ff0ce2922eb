// Printed by scripts/cpp_operators.py from the registry; not to be edited.
// clang-format off
#include "core/api/call.h"
#include "tensord/ops.h"

namespace tensord {

Tensor abs(const Tensor& self) { TENSORD_CALL("aten::abs", self); }
Tensor abs_(const Tensor& self) { TENSORD_CALL("aten::abs_", self); }
Tensor abs_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::abs.out", self, out); }
Tensor acos(const Tensor& self) { TENSORD_CALL("aten::acos", self); }
Tensor acos_(const Tensor& self) { TENSORD_CALL("aten::acos_", self); }
Tensor acos_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::acos.out", self, out); }
Tensor acosh(const Tensor& self) { TENSORD_CALL("aten::acosh", self); }
Tensor acosh_(const Tensor& self) { TENSORD_CALL("aten::acosh_", self); }
Tensor acosh_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::acosh.out", self, out); }
Tensor adaptive_avg_pool1d(const Tensor& self, IntOrList output_size) { TENSORD_CALL("aten::adaptive_avg_pool1d", self, output_size); }
Tensor adaptive_avg_pool2d(const Tensor& self, IntOrList output_size) { TENSORD_CALL("aten::adaptive_avg_pool2d", self, output_size); }
Tensor adaptive_avg_pool3d(const Tensor& self, IntOrList output_size) { TENSORD_CALL("aten::adaptive_avg_pool3d", self, output_size); }
std::tuple<Tensor, Tensor> adaptive_max_pool1d(const Tensor& self, IntOrList output_size) { TENSORD_CALL("aten::adaptive_max_pool1d", self, output_size); }
std::tuple<Tensor, Tensor> adaptive_max_pool2d(const Tensor& self, IntOrList output_size) { TENSORD_CALL("aten::adaptive_max_pool2d", self, output_size); }
Tensor adaptive_max_pool2d_backward(const Tensor& grad_output, const Tensor& self, const Tensor& indices) { TENSORD_CALL("aten::adaptive_max_pool2d_backward", grad_output, self, indices); }
std::tuple<Tensor, Tensor> adaptive_max_pool3d(const Tensor& self, IntOrList output_size) { TENSORD_CALL("aten::adaptive_max_pool3d", self, output_size); }
Tensor adaptive_max_pool3d_backward(const Tensor& grad_output, const Tensor& self, const Tensor& indices) { TENSORD_CALL("aten::adaptive_max_pool3d_backward", grad_output, self, indices); }
Tensor add(const Tensor& self, const Scalar& other, const Scalar& alpha) { TENSORD_CALL("aten::add.Scalar", self, other, alpha); }
Tensor add(const Tensor& self, const Tensor& other, const keyword::AlphaArgs& keywords) { TENSORD_CALL("aten::add.Tensor", self, other, keywords.alpha); }
Tensor add_(const Tensor& self, const Scalar& other, const Scalar& alpha) { TENSORD_CALL("aten::add_.Scalar", self, other, alpha); }
Tensor add_(const Tensor& self, const Tensor& other, const keyword::AlphaArgs& keywords) { TENSORD_CALL("aten::add_.Tensor", self, other, keywords.alpha); }
Tensor add_out(const Tensor& out, const Tensor& self, const Scalar& other, const Scalar& alpha) { TENSORD_CALL("aten::add.Scalar_out", self, other, alpha, out); }
Tensor add_out(const Tensor& out, const Tensor& self, const Tensor& other, const keyword::AlphaArgs& keywords) { TENSORD_CALL("aten::add.out", self, other, keywords.alpha, out); }
Tensor addbmm(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const keyword::BetaAlphaArgs& keywords) { TENSORD_CALL("aten::addbmm", self, batch1, batch2, keywords.beta, keywords.alpha); }
Tensor addbmm_(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const keyword::BetaAlphaArgs& keywords) { TENSORD_CALL("aten::addbmm_", self, batch1, batch2, keywords.beta, keywords.alpha); }
Tensor addbmm_out(const Tensor& out, const Tensor& self, const Tensor& batch1, const Tensor& batch2, const keyword::BetaAlphaArgs& keywords) { TENSORD_CALL("aten::addbmm.out", self, batch1, batch2, keywords.beta, keywords.alpha, out); }
Tensor addcdiv(const Tensor& self, const Tensor& tensor1, const Tensor& tensor2, const keyword::ValueArgs& keywords) { TENSORD_CALL("aten::addcdiv", self, tensor1, tensor2, keywords.value); }
Tensor addcdiv_(const Tensor& self, const Tensor& tensor1, const Tensor& tensor2, const keyword::ValueArgs& keywords) { TENSORD_CALL("aten::addcdiv_", self, tensor1, tensor2, keywords.value); }
Tensor addcdiv_out(const Tensor& out, const Tensor& self, const Tensor& tensor1, const Tensor& tensor2, const keyword::ValueArgs& keywords) { TENSORD_CALL("aten::addcdiv.out", self, tensor1, tensor2, keywords.value, out); }
Tensor addcmul(const Tensor& self, const Tensor& tensor1, const Tensor& tensor2, const keyword::ValueArgs& keywords) { TENSORD_CALL("aten::addcmul", self, tensor1, tensor2, keywords.value); }
Tensor addcmul_(const Tensor& self, const Tensor& tensor1, const Tensor& tensor2, const keyword::ValueArgs& keywords) { TENSORD_CALL("aten::addcmul_", self, tensor1, tensor2, keywords.value); }
Tensor addcmul_out(const Tensor& out, const Tensor& self, const Tensor& tensor1, const Tensor& tensor2, const keyword::ValueArgs& keywords) { TENSORD_CALL("aten::addcmul.out", self, tensor1, tensor2, keywords.value, out); }
Tensor addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const keyword::BetaAlphaArgs& keywords) { TENSORD_CALL("aten::addmm", self, mat1, mat2, keywords.beta, keywords.alpha); }
Tensor addmm_(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const keyword::BetaAlphaArgs& keywords) { TENSORD_CALL("aten::addmm_", self, mat1, mat2, keywords.beta, keywords.alpha); }
Tensor addmm_out(const Tensor& out, const Tensor& self, const Tensor& mat1, const Tensor& mat2, const keyword::BetaAlphaArgs& keywords) { TENSORD_CALL("aten::addmm.out", self, mat1, mat2, keywords.beta, keywords.alpha, out); }
Tensor addmv(const Tensor& self, const Tensor& mat, const Tensor& vec, const keyword::BetaAlphaArgs& keywords) { TENSORD_CALL("aten::addmv", self, mat, vec, keywords.beta, keywords.alpha); }
Tensor addmv_(const Tensor& self, const Tensor& mat, const Tensor& vec, const keyword::BetaAlphaArgs& keywords) { TENSORD_CALL("aten::addmv_", self, mat, vec, keywords.beta, keywords.alpha); }
Tensor addmv_out(const Tensor& out, const Tensor& self, const Tensor& mat, const Tensor& vec, const keyword::BetaAlphaArgs& keywords) { TENSORD_CALL("aten::addmv.out", self, mat, vec, keywords.beta, keywords.alpha, out); }
Tensor addr(const Tensor& self, const Tensor& vec1, const Tensor& vec2, const keyword::BetaAlphaArgs& keywords) { TENSORD_CALL("aten::addr", self, vec1, vec2, keywords.beta, keywords.alpha); }
Tensor addr_(const Tensor& self, const Tensor& vec1, const Tensor& vec2, const keyword::BetaAlphaArgs& keywords) { TENSORD_CALL("aten::addr_", self, vec1, vec2, keywords.beta, keywords.alpha); }
Tensor addr_out(const Tensor& out, const Tensor& self, const Tensor& vec1, const Tensor& vec2, const keyword::BetaAlphaArgs& keywords) { TENSORD_CALL("aten::addr.out", self, vec1, vec2, keywords.beta, keywords.alpha, out); }
Tensor affine_grid_generator(const Tensor& theta, IntList size, Bool align_corners) { TENSORD_CALL("aten::affine_grid_generator", theta, size, align_corners); }
Tensor alias(const Tensor& self) { TENSORD_CALL("aten::alias", self); }
Tensor alias_copy(const Tensor& self) { TENSORD_CALL("aten::alias_copy", self); }
Tensor all(const Tensor& self) { TENSORD_CALL("aten::all", self); }
Tensor all(const Tensor& self, OptionalIntList dim, Bool keepdim) { TENSORD_CALL("aten::all.dims", self, dim, keepdim); }
Tensor all(const Tensor& self, Int dim, Bool keepdim) { TENSORD_CALL("aten::all.dim", self, dim, keepdim); }
Tensor all_out(const Tensor& out, const Tensor& self, Int dim, Bool keepdim) { TENSORD_CALL("aten::all.dim_out", self, dim, keepdim, out); }
bool allclose(const Tensor& self, const Tensor& other, Float rtol, Float atol, Bool equal_nan) { TENSORD_CALL("aten::allclose", self, other, rtol, atol, equal_nan); }
Tensor alpha_dropout(const Tensor& input, Float p, Bool train) { TENSORD_CALL("aten::alpha_dropout", input, p, train); }
Tensor alpha_dropout_(const Tensor& self, Float p, Bool train) { TENSORD_CALL("aten::alpha_dropout_", self, p, train); }
Tensor amax(const Tensor& self, IntOrList dim, Bool keepdim) { TENSORD_CALL("aten::amax", self, dim, keepdim); }
Tensor amax_out(const Tensor& out, const Tensor& self, IntOrList dim, Bool keepdim) { TENSORD_CALL("aten::amax.out", self, dim, keepdim, out); }
Tensor amin(const Tensor& self, IntOrList dim, Bool keepdim) { TENSORD_CALL("aten::amin", self, dim, keepdim); }
Tensor amin_out(const Tensor& out, const Tensor& self, IntOrList dim, Bool keepdim) { TENSORD_CALL("aten::amin.out", self, dim, keepdim, out); }
std::tuple<Tensor, Tensor> aminmax(const Tensor& self, const keyword::DimKeepdimArgs& keywords) { TENSORD_CALL("aten::aminmax", self, keywords.dim, keywords.keepdim); }
Tensor angle(const Tensor& self) { TENSORD_CALL("aten::angle", self); }
Tensor any(const Tensor& self) { TENSORD_CALL("aten::any", self); }
Tensor any(const Tensor& self, OptionalIntList dim, Bool keepdim) { TENSORD_CALL("aten::any.dims", self, dim, keepdim); }
Tensor any(const Tensor& self, Int dim, Bool keepdim) { TENSORD_CALL("aten::any.dim", self, dim, keepdim); }
Tensor any_out(const Tensor& out, const Tensor& self, Int dim, Bool keepdim) { TENSORD_CALL("aten::any.dim_out", self, dim, keepdim, out); }
Tensor arange(const Scalar& end, const keyword::DtypeDeviceArgs& keywords) { TENSORD_CALL("aten::arange", end, keywords.dtype, nullptr, keywords.device, nullptr); }
Tensor arange(const Scalar& start, const Scalar& end, const keyword::DtypeDeviceArgs& keywords) { TENSORD_CALL("aten::arange.start", start, end, keywords.dtype, nullptr, keywords.device, nullptr); }
Tensor arange(const Scalar& start, const Scalar& end, const Scalar& step, const keyword::DtypeDeviceArgs& keywords) { TENSORD_CALL("aten::arange.start_step", start, end, step, keywords.dtype, nullptr, keywords.device, nullptr); }
Tensor argmax(const Tensor& self, std::optional<Int> dim, Bool keepdim) { TENSORD_CALL("aten::argmax", self, dim, keepdim); }
Tensor argmin(const Tensor& self, std::optional<Int> dim, Bool keepdim) { TENSORD_CALL("aten::argmin", self, dim, keepdim); }
Tensor argsort(const Tensor& self, Int dim, Bool descending) { TENSORD_CALL("aten::argsort", self, dim, descending); }
Tensor argsort(const Tensor& self, const keyword::StableDimDescendingArgs& keywords) { TENSORD_CALL("aten::argsort.stable", self, keywords.stable, keywords.dim, keywords.descending); }
Tensor argwhere(const Tensor& self) { TENSORD_CALL("aten::argwhere", self); }
Tensor as_strided(const Tensor& self, IntList size, IntList stride, std::optional<Int> storage_offset) { TENSORD_CALL("aten::as_strided", self, size, stride, storage_offset); }
Tensor as_strided_copy(const Tensor& self, IntList size, IntList stride, std::optional<Int> storage_offset) { TENSORD_CALL("aten::as_strided_copy", self, size, stride, storage_offset); }
Tensor as_strided_scatter(const Tensor& self, const Tensor& src, IntList size, IntList stride, std::optional<Int> storage_offset) { TENSORD_CALL("aten::as_strided_scatter", self, src, size, stride, storage_offset); }
Tensor as_tensor(const Tensor& data, const keyword::DtypeDeviceArgs& keywords) { TENSORD_CALL("aten::as_tensor", data, keywords.dtype, keywords.device); }
Tensor as_tensor(Bool t, const keyword::DtypeDeviceArgs& keywords) { TENSORD_CALL("aten::as_tensor.bool", t, keywords.dtype, keywords.device); }
Tensor as_tensor(Float t, const keyword::DtypeDeviceArgs& keywords) { TENSORD_CALL("aten::as_tensor.float", t, keywords.dtype, keywords.device); }
Tensor as_tensor(Int t, const keyword::DtypeDeviceArgs& keywords) { TENSORD_CALL("aten::as_tensor.int", t, keywords.dtype, keywords.device); }
Tensor asin(const Tensor& self) { TENSORD_CALL("aten::asin", self); }
Tensor asin_(const Tensor& self) { TENSORD_CALL("aten::asin_", self); }
Tensor asin_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::asin.out", self, out); }
Tensor asinh(const Tensor& self) { TENSORD_CALL("aten::asinh", self); }
Tensor asinh_(const Tensor& self) { TENSORD_CALL("aten::asinh_", self); }
Tensor asinh_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::asinh.out", self, out); }
Tensor atan(const Tensor& self) { TENSORD_CALL("aten::atan", self); }
Tensor atan2(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::atan2", self, other); }
Tensor atan2_(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::atan2_", self, other); }
Tensor atan2_out(const Tensor& out, const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::atan2.out", self, other, out); }
Tensor atan_(const Tensor& self) { TENSORD_CALL("aten::atan_", self); }
Tensor atan_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::atan.out", self, out); }
Tensor atanh(const Tensor& self) { TENSORD_CALL("aten::atanh", self); }
Tensor atanh_(const Tensor& self) { TENSORD_CALL("aten::atanh_", self); }
Tensor atanh_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::atanh.out", self, out); }
Tensor atleast_1d(const Tensor& self) { TENSORD_CALL("aten::atleast_1d", self); }
std::vector<Tensor> atleast_1d(TensorList tensors) { TENSORD_CALL("aten::atleast_1d.Sequence", tensors); }
Tensor atleast_2d(const Tensor& self) { TENSORD_CALL("aten::atleast_2d", self); }
std::vector<Tensor> atleast_2d(TensorList tensors) { TENSORD_CALL("aten::atleast_2d.Sequence", tensors); }
Tensor atleast_3d(const Tensor& self) { TENSORD_CALL("aten::atleast_3d", self); }
std::vector<Tensor> atleast_3d(TensorList tensors) { TENSORD_CALL("aten::atleast_3d.Sequence", tensors); }
Tensor avg_pool1d(const Tensor& self, IntOrList kernel_size, IntOrList stride, IntOrList padding, Bool ceil_mode, Bool count_include_pad) { TENSORD_CALL("aten::avg_pool1d", self, kernel_size, stride, padding, ceil_mode, count_include_pad); }
Tensor avg_pool2d(const Tensor& self, IntOrList kernel_size, IntOrList stride, IntOrList padding, Bool ceil_mode, Bool count_include_pad, std::optional<Int> divisor_override) { TENSORD_CALL("aten::avg_pool2d", self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override); }
Tensor avg_pool2d_backward(const Tensor& grad_output, const Tensor& self, IntOrList kernel_size, IntOrList stride, IntOrList padding, Bool ceil_mode, Bool count_include_pad, std::optional<Int> divisor_override) { TENSORD_CALL("aten::avg_pool2d_backward", grad_output, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override); }
Tensor avg_pool3d(const Tensor& self, IntOrList kernel_size, IntOrList stride, IntOrList padding, Bool ceil_mode, Bool count_include_pad, std::optional<Int> divisor_override) { TENSORD_CALL("aten::avg_pool3d", self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override); }
Tensor avg_pool3d_backward(const Tensor& grad_output, const Tensor& self, IntOrList kernel_size, IntOrList stride, IntOrList padding, Bool ceil_mode, Bool count_include_pad, std::optional<Int> divisor_override) { TENSORD_CALL("aten::avg_pool3d_backward", grad_output, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override); }
Tensor baddbmm(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const keyword::BetaAlphaArgs& keywords) { TENSORD_CALL("aten::baddbmm", self, batch1, batch2, keywords.beta, keywords.alpha); }
Tensor baddbmm_(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const keyword::BetaAlphaArgs& keywords) { TENSORD_CALL("aten::baddbmm_", self, batch1, batch2, keywords.beta, keywords.alpha); }
Tensor baddbmm_out(const Tensor& out, const Tensor& self, const Tensor& batch1, const Tensor& batch2, const keyword::BetaAlphaArgs& keywords) { TENSORD_CALL("aten::baddbmm.out", self, batch1, batch2, keywords.beta, keywords.alpha, out); }
Tensor bartlett_window(Int window_length, const keyword::DtypeDeviceArgs& keywords) { TENSORD_CALL("aten::bartlett_window", window_length, keywords.dtype, nullptr, keywords.device, nullptr); }
Tensor bartlett_window(Int window_length, Bool periodic, const keyword::DtypeDeviceArgs& keywords) { TENSORD_CALL("aten::bartlett_window.periodic", window_length, periodic, keywords.dtype, nullptr, keywords.device, nullptr); }
Tensor batch_norm(const Tensor& input, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias, const std::optional<Tensor>& running_mean, const std::optional<Tensor>& running_var, Bool training, Float momentum, Float eps, Bool cudnn_enabled) { TENSORD_CALL("aten::batch_norm", input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled); }
Tensor bernoulli(const Tensor& self) { TENSORD_CALL("aten::bernoulli", self, nullptr); }
Tensor bernoulli(const Tensor& self, Float p) { TENSORD_CALL("aten::bernoulli.p", self, p, nullptr); }
Tensor bernoulli_(const Tensor& self, Float p) { TENSORD_CALL("aten::bernoulli_.float", self, p, nullptr); }
Tensor bernoulli_(const Tensor& self, const Tensor& p) { TENSORD_CALL("aten::bernoulli_.Tensor", self, p, nullptr); }
Tensor bilinear(const Tensor& input1, const Tensor& input2, const Tensor& weight, const std::optional<Tensor>& bias) { TENSORD_CALL("aten::bilinear", input1, input2, weight, bias); }
Tensor binary_cross_entropy(const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight, Int reduction) { TENSORD_CALL("aten::binary_cross_entropy", self, target, weight, reduction); }
Tensor binary_cross_entropy_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight, Int reduction) { TENSORD_CALL("aten::binary_cross_entropy_backward", grad_output, self, target, weight, reduction); }
Tensor binary_cross_entropy_with_logits(const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight, const std::optional<Tensor>& pos_weight, Int reduction) { TENSORD_CALL("aten::binary_cross_entropy_with_logits", self, target, weight, pos_weight, reduction); }
Tensor bincount(const Tensor& self, const std::optional<Tensor>& weights, Int minlength) { TENSORD_CALL("aten::bincount", self, weights, minlength); }
Tensor binomial(const Tensor& count, const Tensor& prob) { TENSORD_CALL("aten::binomial", count, prob, nullptr); }
Tensor bitwise_and(const Tensor& self, const Scalar& other) { TENSORD_CALL("aten::bitwise_and.Scalar", self, other); }
Tensor bitwise_and(const Scalar& self, const Tensor& other) { TENSORD_CALL("aten::bitwise_and.Scalar_Tensor", self, other); }
Tensor bitwise_and(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::bitwise_and.Tensor", self, other); }
Tensor bitwise_and_(const Tensor& self, const Scalar& other) { TENSORD_CALL("aten::bitwise_and_.Scalar", self, other); }
Tensor bitwise_and_(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::bitwise_and_.Tensor", self, other); }
Tensor bitwise_and_out(const Tensor& out, const Tensor& self, const Scalar& other) { TENSORD_CALL("aten::bitwise_and.Scalar_out", self, other, out); }
Tensor bitwise_and_out(const Tensor& out, const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::bitwise_and.out", self, other, out); }
Tensor bitwise_left_shift(const Scalar& self, const Tensor& other) { TENSORD_CALL("aten::bitwise_left_shift.Scalar_Tensor", self, other); }
Tensor bitwise_left_shift(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::bitwise_left_shift.Tensor", self, other); }
Tensor bitwise_left_shift(const Tensor& self, const Scalar& other) { TENSORD_CALL("aten::bitwise_left_shift.Tensor_Scalar", self, other); }
Tensor bitwise_left_shift_(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::bitwise_left_shift_.Tensor", self, other); }
Tensor bitwise_left_shift_(const Tensor& self, const Scalar& other) { TENSORD_CALL("aten::bitwise_left_shift_.Tensor_Scalar", self, other); }
Tensor bitwise_left_shift_out(const Tensor& out, const Tensor& self, const Scalar& other) { TENSORD_CALL("aten::bitwise_left_shift.Tensor_Scalar_out", self, other, out); }
Tensor bitwise_left_shift_out(const Tensor& out, const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::bitwise_left_shift.out", self, other, out); }
Tensor bitwise_not(const Tensor& self) { TENSORD_CALL("aten::bitwise_not", self); }
Tensor bitwise_not_(const Tensor& self) { TENSORD_CALL("aten::bitwise_not_", self); }
Tensor bitwise_not_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::bitwise_not.out", self, out); }
Tensor bitwise_or(const Tensor& self, const Scalar& other) { TENSORD_CALL("aten::bitwise_or.Scalar", self, other); }
Tensor bitwise_or(const Scalar& self, const Tensor& other) { TENSORD_CALL("aten::bitwise_or.Scalar_Tensor", self, other); }
Tensor bitwise_or(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::bitwise_or.Tensor", self, other); }
Tensor bitwise_or_(const Tensor& self, const Scalar& other) { TENSORD_CALL("aten::bitwise_or_.Scalar", self, other); }
Tensor bitwise_or_(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::bitwise_or_.Tensor", self, other); }
Tensor bitwise_or_out(const Tensor& out, const Tensor& self, const Scalar& other) { TENSORD_CALL("aten::bitwise_or.Scalar_out", self, other, out); }
Tensor bitwise_or_out(const Tensor& out, const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::bitwise_or.out", self, other, out); }
Tensor bitwise_right_shift(const Scalar& self, const Tensor& other) { TENSORD_CALL("aten::bitwise_right_shift.Scalar_Tensor", self, other); }
Tensor bitwise_right_shift(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::bitwise_right_shift.Tensor", self, other); }
Tensor bitwise_right_shift(const Tensor& self, const Scalar& other) { TENSORD_CALL("aten::bitwise_right_shift.Tensor_Scalar", self, other); }
Tensor bitwise_right_shift_(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::bitwise_right_shift_.Tensor", self, other); }
Tensor bitwise_right_shift_(const Tensor& self, const Scalar& other) { TENSORD_CALL("aten::bitwise_right_shift_.Tensor_Scalar", self, other); }
Tensor bitwise_right_shift_out(const Tensor& out, const Tensor& self, const Scalar& other) { TENSORD_CALL("aten::bitwise_right_shift.Tensor_Scalar_out", self, other, out); }
Tensor bitwise_right_shift_out(const Tensor& out, const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::bitwise_right_shift.out", self, other, out); }
Tensor bitwise_xor(const Tensor& self, const Scalar& other) { TENSORD_CALL("aten::bitwise_xor.Scalar", self, other); }
Tensor bitwise_xor(const Scalar& self, const Tensor& other) { TENSORD_CALL("aten::bitwise_xor.Scalar_Tensor", self, other); }
Tensor bitwise_xor(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::bitwise_xor.Tensor", self, other); }
Tensor bitwise_xor_(const Tensor& self, const Scalar& other) { TENSORD_CALL("aten::bitwise_xor_.Scalar", self, other); }
Tensor bitwise_xor_(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::bitwise_xor_.Tensor", self, other); }
Tensor bitwise_xor_out(const Tensor& out, const Tensor& self, const Scalar& other) { TENSORD_CALL("aten::bitwise_xor.Scalar_out", self, other, out); }
Tensor bitwise_xor_out(const Tensor& out, const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::bitwise_xor.out", self, other, out); }
Tensor blackman_window(Int window_length, const keyword::DtypeDeviceArgs& keywords) { TENSORD_CALL("aten::blackman_window", window_length, keywords.dtype, nullptr, keywords.device, nullptr); }
Tensor blackman_window(Int window_length, Bool periodic, const keyword::DtypeDeviceArgs& keywords) { TENSORD_CALL("aten::blackman_window.periodic", window_length, periodic, keywords.dtype, nullptr, keywords.device, nullptr); }
Tensor block_diag(TensorList tensors) { TENSORD_CALL("aten::block_diag", tensors); }
Tensor bmm(const Tensor& self, const Tensor& mat2) { TENSORD_CALL("aten::bmm", self, mat2); }
Tensor bmm_out(const Tensor& out, const Tensor& self, const Tensor& mat2) { TENSORD_CALL("aten::bmm.out", self, mat2, out); }
std::vector<Tensor> broadcast_tensors(TensorList tensors) { TENSORD_CALL("aten::broadcast_tensors", tensors); }
Tensor broadcast_to(const Tensor& self, IntList size) { TENSORD_CALL("aten::broadcast_to", self, size); }
Tensor bucketize(const Scalar& self, const Tensor& boundaries, const keyword::OutInt32RightArgs& keywords) { TENSORD_CALL("aten::bucketize.Scalar", self, boundaries, keywords.out_int32, keywords.right); }
Tensor bucketize(const Tensor& self, const Tensor& boundaries, const keyword::OutInt32RightArgs& keywords) { TENSORD_CALL("aten::bucketize.Tensor", self, boundaries, keywords.out_int32, keywords.right); }
Tensor cartesian_prod(TensorList tensors) { TENSORD_CALL("aten::cartesian_prod", tensors); }
Tensor cat(TensorList tensors, Int dim) { TENSORD_CALL("aten::cat", tensors, dim); }
Tensor cat_out(const Tensor& out, TensorList tensors, Int dim) { TENSORD_CALL("aten::cat.out", tensors, dim, out); }
Tensor cauchy(const Tensor& self, Float median, Float sigma) { TENSORD_CALL("aten::cauchy", self, median, sigma, nullptr); }
Tensor cauchy_(const Tensor& self, Float median, Float sigma) { TENSORD_CALL("aten::cauchy_", self, median, sigma, nullptr); }
Tensor ccol_indices(const Tensor& self) { TENSORD_CALL("aten::ccol_indices", self); }
Tensor cdist(const Tensor& x1, const Tensor& x2, Float p, std::optional<Int> compute_mode) { TENSORD_CALL("aten::cdist", x1, x2, p, compute_mode); }
Tensor ceil(const Tensor& self) { TENSORD_CALL("aten::ceil", self); }
Tensor ceil_(const Tensor& self) { TENSORD_CALL("aten::ceil_", self); }
Tensor ceil_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::ceil.out", self, out); }
Tensor celu(const Tensor& self, const Scalar& alpha) { TENSORD_CALL("aten::celu", self, alpha); }
Tensor celu_(const Tensor& self, const Scalar& alpha) { TENSORD_CALL("aten::celu_", self, alpha); }
Tensor celu_out(const Tensor& out, const Tensor& self, const Scalar& alpha) { TENSORD_CALL("aten::celu.out", self, alpha, out); }
Tensor chain_matmul(TensorList matrices) { TENSORD_CALL("aten::chain_matmul", matrices); }
Tensor chain_matmul_out(const Tensor& out, TensorList matrices) { TENSORD_CALL("aten::chain_matmul.out", matrices, out); }
Tensor channel_shuffle(const Tensor& self, Int groups) { TENSORD_CALL("aten::channel_shuffle", self, groups); }
Tensor cholesky(const Tensor& self, Bool upper) { TENSORD_CALL("aten::cholesky", self, upper); }
Tensor cholesky_inverse(const Tensor& self, Bool upper) { TENSORD_CALL("aten::cholesky_inverse", self, upper); }
Tensor cholesky_solve(const Tensor& self, const Tensor& input2, Bool upper) { TENSORD_CALL("aten::cholesky_solve", self, input2, upper); }
std::vector<Tensor> chunk(const Tensor& self, Int chunks, Int dim) { TENSORD_CALL("aten::chunk", self, chunks, dim); }
Tensor clamp(const Tensor& self, const std::optional<Scalar>& min, const std::optional<Scalar>& max) { TENSORD_CALL("aten::clamp", self, min, max); }
Tensor clamp(const Tensor& self, const std::optional<Tensor>& min, const std::optional<Tensor>& max) { TENSORD_CALL("aten::clamp.Tensor", self, min, max); }
Tensor clamp_(const Tensor& self, const std::optional<Scalar>& min, const std::optional<Scalar>& max) { TENSORD_CALL("aten::clamp_", self, min, max); }
Tensor clamp_(const Tensor& self, const std::optional<Tensor>& min, const std::optional<Tensor>& max) { TENSORD_CALL("aten::clamp_.Tensor", self, min, max); }
Tensor clamp_max(const Tensor& self, const Scalar& max) { TENSORD_CALL("aten::clamp_max", self, max); }
Tensor clamp_max(const Tensor& self, const Tensor& max) { TENSORD_CALL("aten::clamp_max.Tensor", self, max); }
Tensor clamp_max_(const Tensor& self, const Scalar& max) { TENSORD_CALL("aten::clamp_max_", self, max); }
Tensor clamp_max_(const Tensor& self, const Tensor& max) { TENSORD_CALL("aten::clamp_max_.Tensor", self, max); }
Tensor clamp_max_out(const Tensor& out, const Tensor& self, const Scalar& max) { TENSORD_CALL("aten::clamp_max.out", self, max, out); }
Tensor clamp_min(const Tensor& self, const Scalar& min) { TENSORD_CALL("aten::clamp_min", self, min); }
Tensor clamp_min(const Tensor& self, const Tensor& min) { TENSORD_CALL("aten::clamp_min.Tensor", self, min); }
Tensor clamp_min_(const Tensor& self, const Scalar& min) { TENSORD_CALL("aten::clamp_min_", self, min); }
Tensor clamp_min_(const Tensor& self, const Tensor& min) { TENSORD_CALL("aten::clamp_min_.Tensor", self, min); }
Tensor clamp_min_out(const Tensor& out, const Tensor& self, const Scalar& min) { TENSORD_CALL("aten::clamp_min.out", self, min, out); }
Tensor clamp_out(const Tensor& out, const Tensor& self, const std::optional<Scalar>& min, const std::optional<Scalar>& max) { TENSORD_CALL("aten::clamp.out", self, min, max, out); }
Tensor clone(const Tensor& self, const keyword::MemoryFormatArgs& keywords) { TENSORD_CALL("aten::clone", self, keywords.memory_format); }
Tensor coalesce(const Tensor& self) { TENSORD_CALL("aten::coalesce", self); }
Tensor col2im(const Tensor& self, IntOrList output_size, IntOrList kernel_size, IntOrList dilation, IntOrList padding, IntOrList stride) { TENSORD_CALL("aten::col2im", self, output_size, kernel_size, dilation, padding, stride); }
Tensor col2im_out(const Tensor& out, const Tensor& self, IntOrList output_size, IntOrList kernel_size, IntOrList dilation, IntOrList padding, IntOrList stride) { TENSORD_CALL("aten::col2im.out", self, output_size, kernel_size, dilation, padding, stride, out); }
Tensor col_indices(const Tensor& self) { TENSORD_CALL("aten::col_indices", self); }
Tensor column_stack(TensorList tensors) { TENSORD_CALL("aten::column_stack", tensors); }
Tensor column_stack_out(const Tensor& out, TensorList tensors) { TENSORD_CALL("aten::column_stack.out", tensors, out); }
Tensor combinations(const Tensor& self, Int r, Bool with_replacement) { TENSORD_CALL("aten::combinations", self, r, with_replacement); }
Tensor complex(const Tensor& real, const Tensor& imag) { TENSORD_CALL("aten::complex", real, imag); }
Tensor complex_out(const Tensor& out, const Tensor& real, const Tensor& imag) { TENSORD_CALL("aten::complex.out", real, imag, out); }
Tensor concat(TensorList tensors, Int dim) { TENSORD_CALL("aten::concat", tensors, dim); }
Tensor concatenate(TensorList tensors, Int dim) { TENSORD_CALL("aten::concatenate", tensors, dim); }
Tensor conj(const Tensor& self) { TENSORD_CALL("aten::conj", self); }
Tensor conj_physical(const Tensor& self) { TENSORD_CALL("aten::conj_physical", self); }
Tensor constant_pad_nd(const Tensor& self, IntList pad, const Scalar& value) { TENSORD_CALL("aten::constant_pad_nd", self, pad, value); }
Tensor contiguous(const Tensor& self, const keyword::MemoryFormatArgs2& keywords) { TENSORD_CALL("aten::contiguous", self, keywords.memory_format); }
Tensor conv1d(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, IntOrList stride, IntOrList padding, IntOrList dilation, Int groups) { TENSORD_CALL("aten::conv1d", input, weight, bias, stride, padding, dilation, groups); }
Tensor conv1d(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, IntOrList stride, std::string_view padding, IntOrList dilation, Int groups) { TENSORD_CALL("aten::conv1d.padding", input, weight, bias, stride, padding, dilation, groups); }
Tensor conv2d(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, IntOrList stride, IntOrList padding, IntOrList dilation, Int groups) { TENSORD_CALL("aten::conv2d", input, weight, bias, stride, padding, dilation, groups); }
Tensor conv2d(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, IntOrList stride, std::string_view padding, IntOrList dilation, Int groups) { TENSORD_CALL("aten::conv2d.padding", input, weight, bias, stride, padding, dilation, groups); }
Tensor conv3d(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, IntOrList stride, IntOrList padding, IntOrList dilation, Int groups) { TENSORD_CALL("aten::conv3d", input, weight, bias, stride, padding, dilation, groups); }
Tensor conv3d(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, IntOrList stride, std::string_view padding, IntOrList dilation, Int groups) { TENSORD_CALL("aten::conv3d.padding", input, weight, bias, stride, padding, dilation, groups); }
Tensor conv_tbc(const Tensor& self, const Tensor& weight, const Tensor& bias, Int pad) { TENSORD_CALL("aten::conv_tbc", self, weight, bias, pad); }
Tensor conv_transpose1d(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, IntOrList stride, IntOrList padding, IntOrList output_padding, Int groups, IntOrList dilation) { TENSORD_CALL("aten::conv_transpose1d", input, weight, bias, stride, padding, output_padding, groups, dilation); }
Tensor conv_transpose2d(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, IntOrList stride, IntOrList padding, IntOrList output_padding, Int groups, IntOrList dilation) { TENSORD_CALL("aten::conv_transpose2d.input", input, weight, bias, stride, padding, output_padding, groups, dilation); }
Tensor conv_transpose3d(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, IntOrList stride, IntOrList padding, IntOrList output_padding, Int groups, IntOrList dilation) { TENSORD_CALL("aten::conv_transpose3d.input", input, weight, bias, stride, padding, output_padding, groups, dilation); }
Tensor convolution(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, IntList stride, IntList padding, IntList dilation, Bool transposed, IntList output_padding, Int groups) { TENSORD_CALL("aten::convolution", input, weight, bias, stride, padding, dilation, transposed, output_padding, groups); }
std::tuple<Tensor, Tensor, Tensor> convolution_backward(const Tensor& grad_output, const Tensor& input, const Tensor& weight, OptionalIntList bias_sizes, IntList stride, IntList padding, IntList dilation, Bool transposed, IntList output_padding, Int groups, BoolList output_mask) { TENSORD_CALL("aten::convolution_backward", grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, output_mask); }
Tensor copy_(const Tensor& self, const Tensor& src, Bool non_blocking) { TENSORD_CALL("aten::copy_", self, src, non_blocking); }
Tensor copysign(const Tensor& self, const Scalar& other) { TENSORD_CALL("aten::copysign.Scalar", self, other); }
Tensor copysign(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::copysign.Tensor", self, other); }
Tensor copysign_(const Tensor& self, const Scalar& other) { TENSORD_CALL("aten::copysign_.Scalar", self, other); }
Tensor copysign_(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::copysign_.Tensor", self, other); }
Tensor copysign_out(const Tensor& out, const Tensor& self, const Scalar& other) { TENSORD_CALL("aten::copysign.Scalar_out", self, other, out); }
Tensor copysign_out(const Tensor& out, const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::copysign.out", self, other, out); }
Tensor corrcoef(const Tensor& self) { TENSORD_CALL("aten::corrcoef", self); }
Tensor cos(const Tensor& self) { TENSORD_CALL("aten::cos", self); }
Tensor cos_(const Tensor& self) { TENSORD_CALL("aten::cos_", self); }
Tensor cos_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::cos.out", self, out); }
Tensor cosh(const Tensor& self) { TENSORD_CALL("aten::cosh", self); }
Tensor cosh_(const Tensor& self) { TENSORD_CALL("aten::cosh_", self); }
Tensor cosh_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::cosh.out", self, out); }
Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2, const Tensor& target, Float margin, Int reduction) { TENSORD_CALL("aten::cosine_embedding_loss", input1, input2, target, margin, reduction); }
Tensor cosine_similarity(const Tensor& x1, const Tensor& x2, Int dim, Float eps) { TENSORD_CALL("aten::cosine_similarity", x1, x2, dim, eps); }
int64_t count(TensorList self, const Tensor& el) { TENSORD_CALL("aten::count.Tensor", self, el); }
Tensor count_nonzero(const Tensor& self, std::optional<Int> dim) { TENSORD_CALL("aten::count_nonzero", self, dim); }
Tensor count_nonzero(const Tensor& self, IntList dim) { TENSORD_CALL("aten::count_nonzero.dim_IntList", self, dim); }

}  // namespace tensord
