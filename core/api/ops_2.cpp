// Printed by scripts/cpp_operators.py from the registry; not to be edited.
// clang-format off
#include "core/api/call.h"
#include "tensord/ops.h"

namespace tensord {

Tensor cov(const Tensor& self, const keyword::CorrectionFweightsAweightsArgs& keywords) { TENSORD_CALL("aten::cov", self, keywords.correction, keywords.fweights, keywords.aweights); }
Tensor cpu(const Tensor& self) { TENSORD_CALL("aten::cpu", self); }
Tensor cross(const Tensor& self, const Tensor& other, std::optional<Int> dim) { TENSORD_CALL("aten::cross", self, other, dim); }
Tensor cross_entropy_loss(const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight, Int reduction, Int ignore_index, Float label_smoothing) { TENSORD_CALL("aten::cross_entropy_loss", self, target, weight, reduction, ignore_index, label_smoothing); }
Tensor crow_indices(const Tensor& self) { TENSORD_CALL("aten::crow_indices", self); }
Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, IntList input_lengths, IntList target_lengths, Int blank, Int reduction, Bool zero_infinity) { TENSORD_CALL("aten::ctc_loss.IntList", log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity); }
Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths, const Tensor& target_lengths, Int blank, Int reduction, Bool zero_infinity) { TENSORD_CALL("aten::ctc_loss.Tensor", log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity); }
std::tuple<Tensor, Tensor> cummax(const Tensor& self, Int dim) { TENSORD_CALL("aten::cummax", self, dim); }
std::tuple<Tensor, Tensor> cummin(const Tensor& self, Int dim) { TENSORD_CALL("aten::cummin", self, dim); }
Tensor cumprod(const Tensor& self, Int dim, const keyword::DtypeArgs& keywords) { TENSORD_CALL("aten::cumprod", self, dim, keywords.dtype); }
Tensor cumprod_(const Tensor& self, Int dim, const keyword::DtypeArgs& keywords) { TENSORD_CALL("aten::cumprod_", self, dim, keywords.dtype); }
Tensor cumsum(const Tensor& self, Int dim, const keyword::DtypeArgs& keywords) { TENSORD_CALL("aten::cumsum", self, dim, keywords.dtype); }
Tensor cumsum_(const Tensor& self, Int dim, const keyword::DtypeArgs& keywords) { TENSORD_CALL("aten::cumsum_", self, dim, keywords.dtype); }
Tensor cumsum_out(const Tensor& out, const Tensor& self, Int dim, const keyword::DtypeArgs& keywords) { TENSORD_CALL("aten::cumsum.out", self, dim, keywords.dtype, out); }
Tensor cumulative_trapezoid(const Tensor& y, const keyword::DxDimArgs& keywords) { TENSORD_CALL("aten::cumulative_trapezoid.dx", y, keywords.dx, keywords.dim); }
Tensor cumulative_trapezoid(const Tensor& y, const Tensor& x, const keyword::DimArgs& keywords) { TENSORD_CALL("aten::cumulative_trapezoid.x", y, x, keywords.dim); }
Tensor data(const Tensor& self) { TENSORD_CALL("aten::data", self); }
Tensor deg2rad(const Tensor& self) { TENSORD_CALL("aten::deg2rad", self); }
Tensor deg2rad_(const Tensor& self) { TENSORD_CALL("aten::deg2rad_", self); }
Tensor deg2rad_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::deg2rad.out", self, out); }
int64_t dense_dim(const Tensor& self) { TENSORD_CALL("aten::dense_dim", self); }
Tensor dequantize(const Tensor& self) { TENSORD_CALL("aten::dequantize.self", self); }
Tensor det(const Tensor& self) { TENSORD_CALL("aten::det", self); }
Tensor detach(const Tensor& self) { TENSORD_CALL("aten::detach", self); }
Tensor detach_(const Tensor& self) { TENSORD_CALL("aten::detach_", self); }
Tensor diag(const Tensor& self, Int diagonal) { TENSORD_CALL("aten::diag", self, diagonal); }
Tensor diag_embed(const Tensor& self, Int offset, Int dim1, Int dim2) { TENSORD_CALL("aten::diag_embed", self, offset, dim1, dim2); }
Tensor diagflat(const Tensor& self, Int offset) { TENSORD_CALL("aten::diagflat", self, offset); }
Tensor diagonal(const Tensor& self, Int offset, Int dim1, Int dim2) { TENSORD_CALL("aten::diagonal", self, offset, dim1, dim2); }
Tensor diagonal_backward(const Tensor& grad_output, IntList input_sizes, Int offset, Int dim1, Int dim2) { TENSORD_CALL("aten::diagonal_backward", grad_output, input_sizes, offset, dim1, dim2); }
Tensor diagonal_copy(const Tensor& self, Int offset, Int dim1, Int dim2) { TENSORD_CALL("aten::diagonal_copy", self, offset, dim1, dim2); }
Tensor diagonal_scatter(const Tensor& self, const Tensor& src, Int offset, Int dim1, Int dim2) { TENSORD_CALL("aten::diagonal_scatter", self, src, offset, dim1, dim2); }
Tensor diff(const Tensor& self, Int n, Int dim, const std::optional<Tensor>& prepend, const std::optional<Tensor>& append) { TENSORD_CALL("aten::diff", self, n, dim, prepend, append); }
Tensor diff_out(const Tensor& out, const Tensor& self, Int n, Int dim, const std::optional<Tensor>& prepend, const std::optional<Tensor>& append) { TENSORD_CALL("aten::diff.out", self, n, dim, prepend, append, out); }
Tensor digamma(const Tensor& self) { TENSORD_CALL("aten::digamma", self); }
Tensor digamma_(const Tensor& self) { TENSORD_CALL("aten::digamma_", self); }
Tensor digamma_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::digamma.out", self, out); }
int64_t dim(const Tensor& self) { TENSORD_CALL("aten::dim", self); }
Tensor dist(const Tensor& self, const Tensor& other, const Scalar& p) { TENSORD_CALL("aten::dist", self, other, p); }
Tensor div(const Tensor& self, const Scalar& other) { TENSORD_CALL("aten::div.Scalar", self, other); }
Tensor div(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::div.Tensor", self, other); }
Tensor div(const Tensor& self, const Scalar& other, const keyword::RoundingModeArgs& keywords) { TENSORD_CALL("aten::div.Scalar_mode", self, other, keywords.rounding_mode); }
Tensor div(const Tensor& self, const Tensor& other, const keyword::RoundingModeArgs& keywords) { TENSORD_CALL("aten::div.Tensor_mode", self, other, keywords.rounding_mode); }
Tensor div_(const Tensor& self, const Scalar& other) { TENSORD_CALL("aten::div_.Scalar", self, other); }
Tensor div_(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::div_.Tensor", self, other); }
Tensor div_(const Tensor& self, const Scalar& other, const keyword::RoundingModeArgs& keywords) { TENSORD_CALL("aten::div_.Scalar_mode", self, other, keywords.rounding_mode); }
Tensor div_(const Tensor& self, const Tensor& other, const keyword::RoundingModeArgs& keywords) { TENSORD_CALL("aten::div_.Tensor_mode", self, other, keywords.rounding_mode); }
Tensor div_out(const Tensor& out, const Tensor& self, const Scalar& other) { TENSORD_CALL("aten::div.Scalar_out", self, other, out); }
Tensor div_out(const Tensor& out, const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::div.out", self, other, out); }
Tensor div_out(const Tensor& out, const Tensor& self, const Scalar& other, const keyword::RoundingModeArgs& keywords) { TENSORD_CALL("aten::div.Scalar_mode_out", self, other, keywords.rounding_mode, out); }
Tensor div_out(const Tensor& out, const Tensor& self, const Tensor& other, const keyword::RoundingModeArgs& keywords) { TENSORD_CALL("aten::div.Tensor_mode_out", self, other, keywords.rounding_mode, out); }
Tensor dot(const Tensor& self, const Tensor& tensor) { TENSORD_CALL("aten::dot", self, tensor); }
Tensor dot_out(const Tensor& out, const Tensor& self, const Tensor& tensor) { TENSORD_CALL("aten::dot.out", self, tensor, out); }
Tensor dropout(const Tensor& input, Float p, Bool train) { TENSORD_CALL("aten::dropout", input, p, train); }
Tensor dropout_(const Tensor& self, Float p, Bool train) { TENSORD_CALL("aten::dropout_", self, p, train); }
std::vector<Tensor> dsplit(const Tensor& self, IntList indices) { TENSORD_CALL("aten::dsplit.array", self, indices); }
std::vector<Tensor> dsplit(const Tensor& self, Int sections) { TENSORD_CALL("aten::dsplit.int", self, sections); }
Tensor dstack(TensorList tensors) { TENSORD_CALL("aten::dstack", tensors); }
Tensor einsum(std::string_view equation, TensorList tensors, const keyword::PathArgs& keywords) { TENSORD_CALL("aten::einsum", equation, tensors, keywords.path); }
int64_t element_size(const Tensor& self) { TENSORD_CALL("aten::element_size", self); }
Tensor elu(const Tensor& self, const Scalar& alpha, const Scalar& scale, const Scalar& input_scale) { TENSORD_CALL("aten::elu", self, alpha, scale, input_scale); }
Tensor elu_(const Tensor& self, const Scalar& alpha, const Scalar& scale, const Scalar& input_scale) { TENSORD_CALL("aten::elu_", self, alpha, scale, input_scale); }
Tensor elu_backward(const Tensor& grad_output, const Scalar& alpha, const Scalar& scale, const Scalar& input_scale, Bool is_result, const Tensor& self_or_result) { TENSORD_CALL("aten::elu_backward", grad_output, alpha, scale, input_scale, is_result, self_or_result); }
Tensor elu_out(const Tensor& out, const Tensor& self, const Scalar& alpha, const Scalar& scale, const Scalar& input_scale) { TENSORD_CALL("aten::elu.out", self, alpha, scale, input_scale, out); }
Tensor embedding(const Tensor& weight, const Tensor& indices, Int padding_idx, Bool scale_grad_by_freq, Bool sparse) { TENSORD_CALL("aten::embedding", weight, indices, padding_idx, scale_grad_by_freq, sparse); }
std::tuple<Tensor, Tensor, Tensor, Tensor> embedding_bag(const Tensor& weight, const Tensor& indices, const Tensor& offsets, Bool scale_grad_by_freq, Int mode, Bool sparse, const std::optional<Tensor>& per_sample_weights, Bool include_last_offset) { TENSORD_CALL("aten::embedding_bag", weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset); }
std::tuple<Tensor, Tensor, Tensor, Tensor> embedding_bag(const Tensor& weight, const Tensor& indices, const Tensor& offsets, Bool scale_grad_by_freq, Int mode, Bool sparse, const std::optional<Tensor>& per_sample_weights, Bool include_last_offset, std::optional<Int> padding_idx) { TENSORD_CALL("aten::embedding_bag.padding_idx", weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding_idx); }
Tensor embedding_dense_backward(const Tensor& grad_output, const Tensor& indices, Int num_weights, Int padding_idx, Bool scale_grad_by_freq) { TENSORD_CALL("aten::embedding_dense_backward", grad_output, indices, num_weights, padding_idx, scale_grad_by_freq); }
Tensor embedding_renorm_(const Tensor& self, const Tensor& indices, Float max_norm, Float norm_type) { TENSORD_CALL("aten::embedding_renorm_", self, indices, max_norm, norm_type); }
Tensor embedding_sparse_backward(const Tensor& grad, const Tensor& indices, Int num_weights, Int padding_idx, Bool scale_grad_by_freq) { TENSORD_CALL("aten::embedding_sparse_backward", grad, indices, num_weights, padding_idx, scale_grad_by_freq); }
Tensor empty(IntList size, const keyword::DtypeDeviceMemoryFormatArgs& keywords) { TENSORD_CALL("aten::empty.memory_format", size, keywords.dtype, nullptr, keywords.device, nullptr, keywords.memory_format); }
Tensor empty_like(const Tensor& self, const keyword::DtypeDeviceMemoryFormatArgs& keywords) { TENSORD_CALL("aten::empty_like", self, keywords.dtype, nullptr, keywords.device, nullptr, keywords.memory_format); }
Tensor empty_strided(IntList size, IntList stride, const keyword::DtypeDeviceArgs& keywords) { TENSORD_CALL("aten::empty_strided", size, stride, keywords.dtype, nullptr, keywords.device, nullptr); }
Tensor eq(const Tensor& self, const Scalar& other) { TENSORD_CALL("aten::eq.Scalar", self, other); }
Tensor eq(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::eq.Tensor", self, other); }
bool eq(TensorList a, TensorList b) { TENSORD_CALL("aten::eq.Tensor_list", a, b); }
Tensor eq_(const Tensor& self, const Scalar& other) { TENSORD_CALL("aten::eq_.Scalar", self, other); }
Tensor eq_(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::eq_.Tensor", self, other); }
Tensor eq_out(const Tensor& out, const Tensor& self, const Scalar& other) { TENSORD_CALL("aten::eq.Scalar_out", self, other, out); }
Tensor eq_out(const Tensor& out, const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::eq.out", self, other, out); }
bool equal(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::equal", self, other); }
Tensor erf(const Tensor& self) { TENSORD_CALL("aten::erf", self); }
Tensor erf_(const Tensor& self) { TENSORD_CALL("aten::erf_", self); }
Tensor erf_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::erf.out", self, out); }
Tensor erfc(const Tensor& self) { TENSORD_CALL("aten::erfc", self); }
Tensor erfc_(const Tensor& self) { TENSORD_CALL("aten::erfc_", self); }
Tensor erfc_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::erfc.out", self, out); }
Tensor erfinv(const Tensor& self) { TENSORD_CALL("aten::erfinv", self); }
Tensor erfinv_(const Tensor& self) { TENSORD_CALL("aten::erfinv_", self); }
Tensor erfinv_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::erfinv.out", self, out); }
Tensor exp(const Tensor& self) { TENSORD_CALL("aten::exp", self); }
Tensor exp2(const Tensor& self) { TENSORD_CALL("aten::exp2", self); }
Tensor exp2_(const Tensor& self) { TENSORD_CALL("aten::exp2_", self); }
Tensor exp2_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::exp2.out", self, out); }
Tensor exp_(const Tensor& self) { TENSORD_CALL("aten::exp_", self); }
Tensor exp_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::exp.out", self, out); }
Tensor expand(const Tensor& self, IntList size, const keyword::ImplicitArgs& keywords) { TENSORD_CALL("aten::expand", self, size, keywords.implicit); }
Tensor expand_as(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::expand_as", self, other); }
Tensor expand_copy(const Tensor& self, IntList size, const keyword::ImplicitArgs& keywords) { TENSORD_CALL("aten::expand_copy", self, size, keywords.implicit); }
Tensor expm1(const Tensor& self) { TENSORD_CALL("aten::expm1", self); }
Tensor expm1_(const Tensor& self) { TENSORD_CALL("aten::expm1_", self); }
Tensor expm1_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::expm1.out", self, out); }
Tensor exponential(const Tensor& self, Float lambd) { TENSORD_CALL("aten::exponential", self, lambd, nullptr); }
Tensor exponential_(const Tensor& self, Float lambd) { TENSORD_CALL("aten::exponential_", self, lambd, nullptr); }
Tensor eye(Int n, const keyword::DtypeDeviceArgs& keywords) { TENSORD_CALL("aten::eye", n, keywords.dtype, nullptr, keywords.device, nullptr); }
Tensor eye(Int n, Int m, const keyword::DtypeDeviceArgs& keywords) { TENSORD_CALL("aten::eye.m", n, m, keywords.dtype, nullptr, keywords.device, nullptr); }
Tensor fake_quantize_per_channel_affine(const Tensor& self, const Tensor& scale, const Tensor& zero_point, Int axis, Int quant_min, Int quant_max) { TENSORD_CALL("aten::fake_quantize_per_channel_affine", self, scale, zero_point, axis, quant_min, quant_max); }
std::tuple<Tensor, Tensor> fake_quantize_per_channel_affine_cachemask(const Tensor& self, const Tensor& scale, const Tensor& zero_point, Int axis, Int quant_min, Int quant_max) { TENSORD_CALL("aten::fake_quantize_per_channel_affine_cachemask", self, scale, zero_point, axis, quant_min, quant_max); }
Tensor fake_quantize_per_channel_affine_cachemask_backward(const Tensor& grad, const Tensor& mask) { TENSORD_CALL("aten::fake_quantize_per_channel_affine_cachemask_backward", grad, mask); }
Tensor fake_quantize_per_tensor_affine(const Tensor& self, Float scale, Int zero_point, Int quant_min, Int quant_max) { TENSORD_CALL("aten::fake_quantize_per_tensor_affine", self, scale, zero_point, quant_min, quant_max); }
Tensor fake_quantize_per_tensor_affine(const Tensor& self, const Tensor& scale, const Tensor& zero_point, Int quant_min, Int quant_max) { TENSORD_CALL("aten::fake_quantize_per_tensor_affine.tensor_qparams", self, scale, zero_point, quant_min, quant_max); }
std::tuple<Tensor, Tensor> fake_quantize_per_tensor_affine_cachemask(const Tensor& self, Float scale, Int zero_point, Int quant_min, Int quant_max) { TENSORD_CALL("aten::fake_quantize_per_tensor_affine_cachemask", self, scale, zero_point, quant_min, quant_max); }
Tensor fake_quantize_per_tensor_affine_cachemask_backward(const Tensor& grad, const Tensor& mask) { TENSORD_CALL("aten::fake_quantize_per_tensor_affine_cachemask_backward", grad, mask); }
Tensor feature_alpha_dropout(const Tensor& input, Float p, Bool train) { TENSORD_CALL("aten::feature_alpha_dropout", input, p, train); }
Tensor feature_alpha_dropout_(const Tensor& self, Float p, Bool train) { TENSORD_CALL("aten::feature_alpha_dropout_", self, p, train); }
Tensor feature_dropout(const Tensor& input, Float p, Bool train) { TENSORD_CALL("aten::feature_dropout", input, p, train); }
Tensor feature_dropout_(const Tensor& self, Float p, Bool train) { TENSORD_CALL("aten::feature_dropout_", self, p, train); }
Tensor fft_fft(const Tensor& self, std::optional<Int> n, Int dim, std::optional<std::string_view> norm) { TENSORD_CALL("aten::fft_fft", self, n, dim, norm); }
Tensor fft_fft2(const Tensor& self, OptionalIntOrList s, IntOrList dim, std::optional<std::string_view> norm) { TENSORD_CALL("aten::fft_fft2", self, s, dim, norm); }
Tensor fft_fft2_out(const Tensor& out, const Tensor& self, OptionalIntOrList s, IntOrList dim, std::optional<std::string_view> norm) { TENSORD_CALL("aten::fft_fft2.out", self, s, dim, norm, out); }
Tensor fft_fft_out(const Tensor& out, const Tensor& self, std::optional<Int> n, Int dim, std::optional<std::string_view> norm) { TENSORD_CALL("aten::fft_fft.out", self, n, dim, norm, out); }
Tensor fft_fftfreq(Int n, Float d, const keyword::DtypeDeviceArgs& keywords) { TENSORD_CALL("aten::fft_fftfreq", n, d, keywords.dtype, nullptr, keywords.device, nullptr); }
Tensor fft_fftn(const Tensor& self, OptionalIntOrList s, OptionalIntOrList dim, std::optional<std::string_view> norm) { TENSORD_CALL("aten::fft_fftn", self, s, dim, norm); }
Tensor fft_fftn_out(const Tensor& out, const Tensor& self, OptionalIntOrList s, OptionalIntOrList dim, std::optional<std::string_view> norm) { TENSORD_CALL("aten::fft_fftn.out", self, s, dim, norm, out); }
Tensor fft_fftshift(const Tensor& self, OptionalIntOrList dim) { TENSORD_CALL("aten::fft_fftshift", self, dim); }
Tensor fft_hfft(const Tensor& self, std::optional<Int> n, Int dim, std::optional<std::string_view> norm) { TENSORD_CALL("aten::fft_hfft", self, n, dim, norm); }
Tensor fft_hfft2(const Tensor& self, OptionalIntOrList s, IntOrList dim, std::optional<std::string_view> norm) { TENSORD_CALL("aten::fft_hfft2", self, s, dim, norm); }
Tensor fft_hfft2_out(const Tensor& out, const Tensor& self, OptionalIntOrList s, IntOrList dim, std::optional<std::string_view> norm) { TENSORD_CALL("aten::fft_hfft2.out", self, s, dim, norm, out); }
Tensor fft_hfft_out(const Tensor& out, const Tensor& self, std::optional<Int> n, Int dim, std::optional<std::string_view> norm) { TENSORD_CALL("aten::fft_hfft.out", self, n, dim, norm, out); }
Tensor fft_hfftn(const Tensor& self, OptionalIntOrList s, OptionalIntOrList dim, std::optional<std::string_view> norm) { TENSORD_CALL("aten::fft_hfftn", self, s, dim, norm); }
Tensor fft_hfftn_out(const Tensor& out, const Tensor& self, OptionalIntOrList s, OptionalIntOrList dim, std::optional<std::string_view> norm) { TENSORD_CALL("aten::fft_hfftn.out", self, s, dim, norm, out); }
Tensor fft_ifft(const Tensor& self, std::optional<Int> n, Int dim, std::optional<std::string_view> norm) { TENSORD_CALL("aten::fft_ifft", self, n, dim, norm); }
Tensor fft_ifft2(const Tensor& self, OptionalIntOrList s, IntOrList dim, std::optional<std::string_view> norm) { TENSORD_CALL("aten::fft_ifft2", self, s, dim, norm); }
Tensor fft_ifft2_out(const Tensor& out, const Tensor& self, OptionalIntOrList s, IntOrList dim, std::optional<std::string_view> norm) { TENSORD_CALL("aten::fft_ifft2.out", self, s, dim, norm, out); }
Tensor fft_ifft_out(const Tensor& out, const Tensor& self, std::optional<Int> n, Int dim, std::optional<std::string_view> norm) { TENSORD_CALL("aten::fft_ifft.out", self, n, dim, norm, out); }
Tensor fft_ifftn(const Tensor& self, OptionalIntOrList s, OptionalIntOrList dim, std::optional<std::string_view> norm) { TENSORD_CALL("aten::fft_ifftn", self, s, dim, norm); }
Tensor fft_ifftn_out(const Tensor& out, const Tensor& self, OptionalIntOrList s, OptionalIntOrList dim, std::optional<std::string_view> norm) { TENSORD_CALL("aten::fft_ifftn.out", self, s, dim, norm, out); }
Tensor fft_ifftshift(const Tensor& self, OptionalIntOrList dim) { TENSORD_CALL("aten::fft_ifftshift", self, dim); }
Tensor fft_ihfft(const Tensor& self, std::optional<Int> n, Int dim, std::optional<std::string_view> norm) { TENSORD_CALL("aten::fft_ihfft", self, n, dim, norm); }
Tensor fft_ihfft2(const Tensor& self, OptionalIntOrList s, IntOrList dim, std::optional<std::string_view> norm) { TENSORD_CALL("aten::fft_ihfft2", self, s, dim, norm); }
Tensor fft_ihfft2_out(const Tensor& out, const Tensor& self, OptionalIntOrList s, IntOrList dim, std::optional<std::string_view> norm) { TENSORD_CALL("aten::fft_ihfft2.out", self, s, dim, norm, out); }
Tensor fft_ihfft_out(const Tensor& out, const Tensor& self, std::optional<Int> n, Int dim, std::optional<std::string_view> norm) { TENSORD_CALL("aten::fft_ihfft.out", self, n, dim, norm, out); }
Tensor fft_ihfftn(const Tensor& self, OptionalIntOrList s, OptionalIntOrList dim, std::optional<std::string_view> norm) { TENSORD_CALL("aten::fft_ihfftn", self, s, dim, norm); }
Tensor fft_ihfftn_out(const Tensor& out, const Tensor& self, OptionalIntOrList s, OptionalIntOrList dim, std::optional<std::string_view> norm) { TENSORD_CALL("aten::fft_ihfftn.out", self, s, dim, norm, out); }
Tensor fft_irfft(const Tensor& self, std::optional<Int> n, Int dim, std::optional<std::string_view> norm) { TENSORD_CALL("aten::fft_irfft", self, n, dim, norm); }
Tensor fft_irfft2(const Tensor& self, OptionalIntOrList s, IntOrList dim, std::optional<std::string_view> norm) { TENSORD_CALL("aten::fft_irfft2", self, s, dim, norm); }
Tensor fft_irfft2_out(const Tensor& out, const Tensor& self, OptionalIntOrList s, IntOrList dim, std::optional<std::string_view> norm) { TENSORD_CALL("aten::fft_irfft2.out", self, s, dim, norm, out); }
Tensor fft_irfft_out(const Tensor& out, const Tensor& self, std::optional<Int> n, Int dim, std::optional<std::string_view> norm) { TENSORD_CALL("aten::fft_irfft.out", self, n, dim, norm, out); }
Tensor fft_irfftn(const Tensor& self, OptionalIntOrList s, OptionalIntOrList dim, std::optional<std::string_view> norm) { TENSORD_CALL("aten::fft_irfftn", self, s, dim, norm); }
Tensor fft_irfftn_out(const Tensor& out, const Tensor& self, OptionalIntOrList s, OptionalIntOrList dim, std::optional<std::string_view> norm) { TENSORD_CALL("aten::fft_irfftn.out", self, s, dim, norm, out); }
Tensor fft_rfft(const Tensor& self, std::optional<Int> n, Int dim, std::optional<std::string_view> norm) { TENSORD_CALL("aten::fft_rfft", self, n, dim, norm); }
Tensor fft_rfft2(const Tensor& self, OptionalIntOrList s, IntOrList dim, std::optional<std::string_view> norm) { TENSORD_CALL("aten::fft_rfft2", self, s, dim, norm); }
Tensor fft_rfft2_out(const Tensor& out, const Tensor& self, OptionalIntOrList s, IntOrList dim, std::optional<std::string_view> norm) { TENSORD_CALL("aten::fft_rfft2.out", self, s, dim, norm, out); }
Tensor fft_rfft_out(const Tensor& out, const Tensor& self, std::optional<Int> n, Int dim, std::optional<std::string_view> norm) { TENSORD_CALL("aten::fft_rfft.out", self, n, dim, norm, out); }
Tensor fft_rfftfreq(Int n, Float d, const keyword::DtypeDeviceArgs& keywords) { TENSORD_CALL("aten::fft_rfftfreq", n, d, keywords.dtype, nullptr, keywords.device, nullptr); }
Tensor fft_rfftn(const Tensor& self, OptionalIntOrList s, OptionalIntOrList dim, std::optional<std::string_view> norm) { TENSORD_CALL("aten::fft_rfftn", self, s, dim, norm); }
Tensor fft_rfftn_out(const Tensor& out, const Tensor& self, OptionalIntOrList s, OptionalIntOrList dim, std::optional<std::string_view> norm) { TENSORD_CALL("aten::fft_rfftn.out", self, s, dim, norm, out); }
Tensor fill(const Tensor& self, const Scalar& value) { TENSORD_CALL("aten::fill.Scalar", self, value); }
Tensor fill(const Tensor& self, const Tensor& value) { TENSORD_CALL("aten::fill.Tensor", self, value); }
Tensor fill_(const Tensor& self, const Scalar& value) { TENSORD_CALL("aten::fill_.Scalar", self, value); }
Tensor fill_(const Tensor& self, const Tensor& value) { TENSORD_CALL("aten::fill_.Tensor", self, value); }
Tensor fill_diagonal_(const Tensor& self, const Scalar& fill_value, Bool wrap) { TENSORD_CALL("aten::fill_diagonal_", self, fill_value, wrap); }
Tensor flatten(const Tensor& self, Int start_dim, Int end_dim) { TENSORD_CALL("aten::flatten.using_ints", self, start_dim, end_dim); }
Tensor flip(const Tensor& self, IntList dims) { TENSORD_CALL("aten::flip", self, dims); }
Tensor fliplr(const Tensor& self) { TENSORD_CALL("aten::fliplr", self); }
Tensor flipud(const Tensor& self) { TENSORD_CALL("aten::flipud", self); }
Tensor float_power(const Scalar& self, const Tensor& exponent) { TENSORD_CALL("aten::float_power.Scalar", self, exponent); }
Tensor float_power(const Tensor& self, const Scalar& exponent) { TENSORD_CALL("aten::float_power.Tensor_Scalar", self, exponent); }
Tensor float_power(const Tensor& self, const Tensor& exponent) { TENSORD_CALL("aten::float_power.Tensor_Tensor", self, exponent); }
Tensor float_power_(const Tensor& self, const Scalar& exponent) { TENSORD_CALL("aten::float_power_.Scalar", self, exponent); }
Tensor float_power_(const Tensor& self, const Tensor& exponent) { TENSORD_CALL("aten::float_power_.Tensor", self, exponent); }
Tensor floor(const Tensor& self) { TENSORD_CALL("aten::floor", self); }
Tensor floor_(const Tensor& self) { TENSORD_CALL("aten::floor_", self); }
Tensor floor_divide(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::floor_divide", self, other); }
Tensor floor_divide(const Tensor& self, const Scalar& other) { TENSORD_CALL("aten::floor_divide.Scalar", self, other); }
Tensor floor_divide_(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::floor_divide_", self, other); }
Tensor floor_divide_(const Tensor& self, const Scalar& other) { TENSORD_CALL("aten::floor_divide_.Scalar", self, other); }
Tensor floor_divide_out(const Tensor& out, const Tensor& self, const Scalar& other) { TENSORD_CALL("aten::floor_divide.Scalar_out", self, other, out); }
Tensor floor_divide_out(const Tensor& out, const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::floor_divide.out", self, other, out); }
Tensor floor_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::floor.out", self, out); }
Tensor fmax(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::fmax", self, other); }
Tensor fmax_(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::fmax_", self, other); }
Tensor fmax_out(const Tensor& out, const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::fmax.out", self, other, out); }
Tensor fmin(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::fmin", self, other); }
Tensor fmin_(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::fmin_", self, other); }
Tensor fmin_out(const Tensor& out, const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::fmin.out", self, other, out); }
Tensor fmod(const Tensor& self, const Scalar& other) { TENSORD_CALL("aten::fmod.Scalar", self, other); }
Tensor fmod(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::fmod.Tensor", self, other); }
Tensor fmod_(const Tensor& self, const Scalar& other) { TENSORD_CALL("aten::fmod_.Scalar", self, other); }
Tensor fmod_(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::fmod_.Tensor", self, other); }
Tensor fmod_out(const Tensor& out, const Tensor& self, const Scalar& other) { TENSORD_CALL("aten::fmod.Scalar_out", self, other, out); }
Tensor fmod_out(const Tensor& out, const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::fmod.out", self, other, out); }
Tensor frac(const Tensor& self) { TENSORD_CALL("aten::frac", self); }
Tensor frac_(const Tensor& self) { TENSORD_CALL("aten::frac_", self); }
Tensor frac_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::frac.out", self, out); }
std::tuple<Tensor, Tensor> fractional_max_pool2d(const Tensor& self, IntOrList kernel_size, IntOrList output_size, const Tensor& random_samples) { TENSORD_CALL("aten::fractional_max_pool2d", self, kernel_size, output_size, random_samples); }
Tensor fractional_max_pool2d_backward(const Tensor& grad_output, const Tensor& self, IntOrList kernel_size, IntOrList output_size, const Tensor& indices) { TENSORD_CALL("aten::fractional_max_pool2d_backward", grad_output, self, kernel_size, output_size, indices); }
std::tuple<Tensor, Tensor> fractional_max_pool3d(const Tensor& self, IntOrList kernel_size, IntOrList output_size, const Tensor& random_samples) { TENSORD_CALL("aten::fractional_max_pool3d", self, kernel_size, output_size, random_samples); }
Tensor fractional_max_pool3d_backward(const Tensor& grad_output, const Tensor& self, IntOrList kernel_size, IntOrList output_size, const Tensor& indices) { TENSORD_CALL("aten::fractional_max_pool3d_backward", grad_output, self, kernel_size, output_size, indices); }
std::tuple<Tensor, Tensor> frexp(const Tensor& self) { TENSORD_CALL("aten::frexp.Tensor", self); }
Tensor frobenius_norm(const Tensor& self) { TENSORD_CALL("aten::frobenius_norm", self); }
Tensor frobenius_norm(const Tensor& self, IntOrList dim, Bool keepdim) { TENSORD_CALL("aten::frobenius_norm.dim", self, dim, keepdim); }
Tensor full(IntList size, const Scalar& fill_value, const keyword::DtypeDeviceArgs& keywords) { TENSORD_CALL("aten::full", size, fill_value, keywords.dtype, nullptr, keywords.device, nullptr); }
Tensor full_like(const Tensor& self, const Scalar& fill_value, const keyword::DtypeDeviceMemoryFormatArgs& keywords) { TENSORD_CALL("aten::full_like", self, fill_value, keywords.dtype, nullptr, keywords.device, nullptr, keywords.memory_format); }
Tensor fused_moving_avg_obs_fake_quant(const Tensor& self, const Tensor& observer_on, const Tensor& fake_quant_on, const Tensor& running_min, const Tensor& running_max, const Tensor& scale, const Tensor& zero_point, Float averaging_const, Int quant_min, Int quant_max, Int ch_axis, Bool per_row_fake_quant, Bool symmetric_quant) { TENSORD_CALL("aten::fused_moving_avg_obs_fake_quant", self, observer_on, fake_quant_on, running_min, running_max, scale, zero_point, averaging_const, quant_min, quant_max, ch_axis, per_row_fake_quant, symmetric_quant); }
Tensor gather(const Tensor& self, Int dim, const Tensor& index, const keyword::SparseGradArgs& keywords) { TENSORD_CALL("aten::gather", self, dim, index, keywords.sparse_grad); }
Tensor gather_out(const Tensor& out, const Tensor& self, Int dim, const Tensor& index, const keyword::SparseGradArgs& keywords) { TENSORD_CALL("aten::gather.out", self, dim, index, keywords.sparse_grad, out); }
Tensor gcd(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::gcd", self, other); }
Tensor gcd_(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::gcd_", self, other); }
Tensor gcd_out(const Tensor& out, const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::gcd.out", self, other, out); }
Tensor ge(const Tensor& self, const Scalar& other) { TENSORD_CALL("aten::ge.Scalar", self, other); }
Tensor ge(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::ge.Tensor", self, other); }
Tensor ge_(const Tensor& self, const Scalar& other) { TENSORD_CALL("aten::ge_.Scalar", self, other); }
Tensor ge_(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::ge_.Tensor", self, other); }
Tensor ge_out(const Tensor& out, const Tensor& self, const Scalar& other) { TENSORD_CALL("aten::ge.Scalar_out", self, other, out); }
Tensor ge_out(const Tensor& out, const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::ge.out", self, other, out); }
Tensor gelu(const Tensor& self, const keyword::ApproximateArgs& keywords) { TENSORD_CALL("aten::gelu", self, keywords.approximate); }
Tensor gelu_(const Tensor& self, const keyword::ApproximateArgs& keywords) { TENSORD_CALL("aten::gelu_", self, keywords.approximate); }
Tensor gelu_backward(const Tensor& grad_output, const Tensor& self, const keyword::ApproximateArgs& keywords) { TENSORD_CALL("aten::gelu_backward", grad_output, self, keywords.approximate); }
Tensor gelu_out(const Tensor& out, const Tensor& self, const keyword::ApproximateArgs& keywords) { TENSORD_CALL("aten::gelu.out", self, keywords.approximate, out); }
Tensor geometric(const Tensor& self, Float p) { TENSORD_CALL("aten::geometric", self, p, nullptr); }
Tensor geometric_(const Tensor& self, Float p) { TENSORD_CALL("aten::geometric_", self, p, nullptr); }
std::tuple<Tensor, Tensor> geqrf(const Tensor& self) { TENSORD_CALL("aten::geqrf", self); }
Tensor ger(const Tensor& self, const Tensor& vec2) { TENSORD_CALL("aten::ger", self, vec2); }
Tensor ger_out(const Tensor& out, const Tensor& self, const Tensor& vec2) { TENSORD_CALL("aten::ger.out", self, vec2, out); }
int64_t get_device(const Tensor& self) { TENSORD_CALL("aten::get_device", self); }
Tensor glu(const Tensor& self, Int dim) { TENSORD_CALL("aten::glu", self, dim); }
Tensor glu_backward(const Tensor& grad_output, const Tensor& self, Int dim) { TENSORD_CALL("aten::glu_backward", grad_output, self, dim); }
std::vector<Tensor> gradient(const Tensor& self, const keyword::SpacingDimEdgeOrderArgs& keywords) { TENSORD_CALL("aten::gradient.scalarint", self, keywords.spacing, keywords.dim, keywords.edge_order); }
std::vector<Tensor> gradient(const Tensor& self, const keyword::DimEdgeOrderArgs& keywords) { TENSORD_CALL("aten::gradient.array", self, keywords.dim, keywords.edge_order); }
std::vector<Tensor> gradient(const Tensor& self, const keyword::SpacingDimEdgeOrderArgs2& keywords) { TENSORD_CALL("aten::gradient.scalararray", self, keywords.spacing, keywords.dim, keywords.edge_order); }
std::vector<Tensor> gradient(const Tensor& self, const keyword::SpacingDimEdgeOrderArgs3& keywords) { TENSORD_CALL("aten::gradient.scalarrayarray", self, keywords.spacing, keywords.dim, keywords.edge_order); }
std::vector<Tensor> gradient(const Tensor& self, const keyword::SpacingDimEdgeOrderArgs4& keywords) { TENSORD_CALL("aten::gradient.scalarrayint", self, keywords.spacing, keywords.dim, keywords.edge_order); }
std::vector<Tensor> gradient(const Tensor& self, const keyword::SpacingDimEdgeOrderArgs5& keywords) { TENSORD_CALL("aten::gradient.tensorarray", self, keywords.spacing, keywords.dim, keywords.edge_order); }
std::vector<Tensor> gradient(const Tensor& self, const keyword::SpacingDimEdgeOrderArgs6& keywords) { TENSORD_CALL("aten::gradient.tensorarrayint", self, keywords.spacing, keywords.dim, keywords.edge_order); }
Tensor grid_sampler(const Tensor& input, const Tensor& grid, Int interpolation_mode, Int padding_mode, Bool align_corners) { TENSORD_CALL("aten::grid_sampler", input, grid, interpolation_mode, padding_mode, align_corners); }
Tensor grid_sampler_2d(const Tensor& input, const Tensor& grid, Int interpolation_mode, Int padding_mode, Bool align_corners) { TENSORD_CALL("aten::grid_sampler_2d", input, grid, interpolation_mode, padding_mode, align_corners); }
std::tuple<Tensor, Tensor> grid_sampler_2d_backward(const Tensor& grad_output, const Tensor& input, const Tensor& grid, Int interpolation_mode, Int padding_mode, Bool align_corners, BoolList output_mask) { TENSORD_CALL("aten::grid_sampler_2d_backward", grad_output, input, grid, interpolation_mode, padding_mode, align_corners, output_mask); }
Tensor grid_sampler_3d(const Tensor& input, const Tensor& grid, Int interpolation_mode, Int padding_mode, Bool align_corners) { TENSORD_CALL("aten::grid_sampler_3d", input, grid, interpolation_mode, padding_mode, align_corners); }
std::tuple<Tensor, Tensor> grid_sampler_3d_backward(const Tensor& grad_output, const Tensor& input, const Tensor& grid, Int interpolation_mode, Int padding_mode, Bool align_corners, BoolList output_mask) { TENSORD_CALL("aten::grid_sampler_3d_backward", grad_output, input, grid, interpolation_mode, padding_mode, align_corners, output_mask); }
Tensor group_norm(const Tensor& input, Int num_groups, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias, Float eps, Bool cudnn_enabled) { TENSORD_CALL("aten::group_norm", input, num_groups, weight, bias, eps, cudnn_enabled); }
std::tuple<Tensor, Tensor> gru(const Tensor& data, const Tensor& batch_sizes, const Tensor& hx, TensorList params, Bool has_biases, Int num_layers, Float dropout, Bool train, Bool bidirectional) { TENSORD_CALL("aten::gru.data", data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional); }
std::tuple<Tensor, Tensor> gru(const Tensor& input, const Tensor& hx, TensorList params, Bool has_biases, Int num_layers, Float dropout, Bool train, Bool bidirectional, Bool batch_first) { TENSORD_CALL("aten::gru.input", input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first); }
Tensor gru_cell(const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh, const std::optional<Tensor>& b_ih, const std::optional<Tensor>& b_hh) { TENSORD_CALL("aten::gru_cell", input, hx, w_ih, w_hh, b_ih, b_hh); }
Tensor gt(const Tensor& self, const Scalar& other) { TENSORD_CALL("aten::gt.Scalar", self, other); }
Tensor gt(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::gt.Tensor", self, other); }
Tensor gt_(const Tensor& self, const Scalar& other) { TENSORD_CALL("aten::gt_.Scalar", self, other); }

}  // namespace tensord
