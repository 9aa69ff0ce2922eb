// Printed by scripts/cpp_operators.py from the registry; not to be edited.
// clang-format off
#include "core/api/call.h"
#include "tensord/ops.h"

namespace tensord {

Tensor gt_(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::gt_.Tensor", self, other); }
Tensor gt_out(const Tensor& out, const Tensor& self, const Scalar& other) { TENSORD_CALL("aten::gt.Scalar_out", self, other, out); }
Tensor gt_out(const Tensor& out, const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::gt.out", self, other, out); }
Tensor hamming_window(Int window_length, const keyword::DtypeDeviceArgs& keywords) { TENSORD_CALL("aten::hamming_window", window_length, keywords.dtype, nullptr, keywords.device, nullptr); }
Tensor hamming_window(Int window_length, Bool periodic, const keyword::DtypeDeviceArgs& keywords) { TENSORD_CALL("aten::hamming_window.periodic", window_length, periodic, keywords.dtype, nullptr, keywords.device, nullptr); }
Tensor hamming_window(Int window_length, Bool periodic, Float alpha, const keyword::DtypeDeviceArgs& keywords) { TENSORD_CALL("aten::hamming_window.periodic_alpha", window_length, periodic, alpha, keywords.dtype, nullptr, keywords.device, nullptr); }
Tensor hamming_window(Int window_length, Bool periodic, Float alpha, Float beta, const keyword::DtypeDeviceArgs& keywords) { TENSORD_CALL("aten::hamming_window.periodic_alpha_beta", window_length, periodic, alpha, beta, keywords.dtype, nullptr, keywords.device, nullptr); }
Tensor hann_window(Int window_length, const keyword::DtypeDeviceArgs& keywords) { TENSORD_CALL("aten::hann_window", window_length, keywords.dtype, nullptr, keywords.device, nullptr); }
Tensor hann_window(Int window_length, Bool periodic, const keyword::DtypeDeviceArgs& keywords) { TENSORD_CALL("aten::hann_window.periodic", window_length, periodic, keywords.dtype, nullptr, keywords.device, nullptr); }
Tensor hardshrink(const Tensor& self, const Scalar& lambd) { TENSORD_CALL("aten::hardshrink", self, lambd); }
Tensor hardshrink_(const Tensor& self, const Scalar& lambd) { TENSORD_CALL("aten::hardshrink_", self, lambd); }
Tensor hardshrink_backward(const Tensor& grad_out, const Tensor& self, const Scalar& lambd) { TENSORD_CALL("aten::hardshrink_backward", grad_out, self, lambd); }
Tensor hardshrink_out(const Tensor& out, const Tensor& self, const Scalar& lambd) { TENSORD_CALL("aten::hardshrink.out", self, lambd, out); }
Tensor hardsigmoid(const Tensor& self) { TENSORD_CALL("aten::hardsigmoid", self); }
Tensor hardsigmoid_(const Tensor& self) { TENSORD_CALL("aten::hardsigmoid_", self); }
Tensor hardsigmoid_backward(const Tensor& grad_output, const Tensor& self) { TENSORD_CALL("aten::hardsigmoid_backward", grad_output, self); }
Tensor hardsigmoid_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::hardsigmoid.out", self, out); }
Tensor hardswish(const Tensor& self) { TENSORD_CALL("aten::hardswish", self); }
Tensor hardswish_(const Tensor& self) { TENSORD_CALL("aten::hardswish_", self); }
Tensor hardswish_backward(const Tensor& grad_output, const Tensor& self) { TENSORD_CALL("aten::hardswish_backward", grad_output, self); }
Tensor hardswish_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::hardswish.out", self, out); }
Tensor hardtanh(const Tensor& self, const Scalar& min_val, const Scalar& max_val) { TENSORD_CALL("aten::hardtanh", self, min_val, max_val); }
Tensor hardtanh_(const Tensor& self, const Scalar& min_val, const Scalar& max_val) { TENSORD_CALL("aten::hardtanh_", self, min_val, max_val); }
Tensor hardtanh_backward(const Tensor& grad_output, const Tensor& self, const Scalar& min_val, const Scalar& max_val) { TENSORD_CALL("aten::hardtanh_backward", grad_output, self, min_val, max_val); }
Tensor hardtanh_out(const Tensor& out, const Tensor& self, const Scalar& min_val, const Scalar& max_val) { TENSORD_CALL("aten::hardtanh.out", self, min_val, max_val, out); }
Tensor heaviside(const Tensor& self, const Tensor& values) { TENSORD_CALL("aten::heaviside", self, values); }
Tensor heaviside_(const Tensor& self, const Tensor& values) { TENSORD_CALL("aten::heaviside_", self, values); }
Tensor heaviside_out(const Tensor& out, const Tensor& self, const Tensor& values) { TENSORD_CALL("aten::heaviside.out", self, values, out); }
Tensor hinge_embedding_loss(const Tensor& self, const Tensor& target, Float margin, Int reduction) { TENSORD_CALL("aten::hinge_embedding_loss", self, target, margin, reduction); }
Tensor histc(const Tensor& self, Int bins, const Scalar& min, const Scalar& max) { TENSORD_CALL("aten::histc", self, bins, min, max); }
Tensor histc_out(const Tensor& out, const Tensor& self, Int bins, const Scalar& min, const Scalar& max) { TENSORD_CALL("aten::histc.out", self, bins, min, max, out); }
std::tuple<Tensor, Tensor> histogram(const Tensor& self, Int bins, const keyword::RangeWeightDensityArgs& keywords) { TENSORD_CALL("aten::histogram.bin_ct", self, bins, keywords.range, keywords.weight, keywords.density); }
std::tuple<Tensor, Tensor> histogram(const Tensor& self, const Tensor& bins, const keyword::WeightDensityArgs& keywords) { TENSORD_CALL("aten::histogram.bins_tensor", self, bins, keywords.weight, keywords.density); }
std::tuple<Tensor, std::vector<Tensor>> histogramdd(const Tensor& self, IntList bins, OptionalFloatList range, const std::optional<Tensor>& weight, Bool density) { TENSORD_CALL("aten::histogramdd", self, bins, range, weight, density); }
std::tuple<Tensor, std::vector<Tensor>> histogramdd(const Tensor& self, TensorList bins, OptionalFloatList range, const std::optional<Tensor>& weight, Bool density) { TENSORD_CALL("aten::histogramdd.TensorList_bins", self, bins, range, weight, density); }
std::tuple<Tensor, std::vector<Tensor>> histogramdd(const Tensor& self, Int bins, OptionalFloatList range, const std::optional<Tensor>& weight, Bool density) { TENSORD_CALL("aten::histogramdd.int_bins", self, bins, range, weight, density); }
std::vector<Tensor> hsplit(const Tensor& self, IntList indices) { TENSORD_CALL("aten::hsplit.array", self, indices); }
std::vector<Tensor> hsplit(const Tensor& self, Int sections) { TENSORD_CALL("aten::hsplit.int", self, sections); }
Tensor hspmm(const Tensor& mat1, const Tensor& mat2) { TENSORD_CALL("aten::hspmm", mat1, mat2); }
Tensor hstack(TensorList tensors) { TENSORD_CALL("aten::hstack", tensors); }
Tensor huber_loss(const Tensor& self, const Tensor& target, Int reduction, Float delta) { TENSORD_CALL("aten::huber_loss", self, target, reduction, delta); }
Tensor huber_loss_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target, Int reduction, Float delta) { TENSORD_CALL("aten::huber_loss_backward", grad_output, self, target, reduction, delta); }
Tensor hypot(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::hypot", self, other); }
Tensor hypot_(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::hypot_", self, other); }
Tensor hypot_out(const Tensor& out, const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::hypot.out", self, other, out); }
Tensor i0(const Tensor& self) { TENSORD_CALL("aten::i0", self); }
Tensor i0_(const Tensor& self) { TENSORD_CALL("aten::i0_", self); }
Tensor i0_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::i0.out", self, out); }
Tensor igamma(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::igamma", self, other); }
Tensor igamma_(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::igamma_", self, other); }
Tensor igamma_out(const Tensor& out, const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::igamma.out", self, other, out); }
Tensor igammac(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::igammac", self, other); }
Tensor igammac_(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::igammac_", self, other); }
Tensor igammac_out(const Tensor& out, const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::igammac.out", self, other, out); }
Tensor im2col(const Tensor& self, IntOrList kernel_size, IntOrList dilation, IntOrList padding, IntOrList stride) { TENSORD_CALL("aten::im2col", self, kernel_size, dilation, padding, stride); }
Tensor im2col_out(const Tensor& out, const Tensor& self, IntOrList kernel_size, IntOrList dilation, IntOrList padding, IntOrList stride) { TENSORD_CALL("aten::im2col.out", self, kernel_size, dilation, padding, stride, out); }
Tensor imag(const Tensor& self) { TENSORD_CALL("aten::imag", self); }
Tensor index_add(const Tensor& self, Int dim, const Tensor& index, const Tensor& source, const keyword::AlphaArgs& keywords) { TENSORD_CALL("aten::index_add", self, dim, index, source, keywords.alpha); }
Tensor index_add_(const Tensor& self, Int dim, const Tensor& index, const Tensor& source, const keyword::AlphaArgs& keywords) { TENSORD_CALL("aten::index_add_", self, dim, index, source, keywords.alpha); }
Tensor index_copy(const Tensor& self, Int dim, const Tensor& index, const Tensor& source) { TENSORD_CALL("aten::index_copy", self, dim, index, source); }
Tensor index_copy_(const Tensor& self, Int dim, const Tensor& index, const Tensor& source) { TENSORD_CALL("aten::index_copy_", self, dim, index, source); }
Tensor index_fill(const Tensor& self, Int dim, const Tensor& index, const Scalar& value) { TENSORD_CALL("aten::index_fill.int_Scalar", self, dim, index, value); }
Tensor index_fill(const Tensor& self, Int dim, const Tensor& index, const Tensor& value) { TENSORD_CALL("aten::index_fill.int_Tensor", self, dim, index, value); }
Tensor index_fill_(const Tensor& self, Int dim, const Tensor& index, const Scalar& value) { TENSORD_CALL("aten::index_fill_.int_Scalar", self, dim, index, value); }
Tensor index_fill_(const Tensor& self, Int dim, const Tensor& index, const Tensor& value) { TENSORD_CALL("aten::index_fill_.int_Tensor", self, dim, index, value); }
Tensor index_reduce(const Tensor& self, Int dim, const Tensor& index, const Tensor& source, std::string_view reduce, const keyword::IncludeSelfArgs& keywords) { TENSORD_CALL("aten::index_reduce", self, dim, index, source, reduce, keywords.include_self); }
Tensor index_reduce_(const Tensor& self, Int dim, const Tensor& index, const Tensor& source, std::string_view reduce, const keyword::IncludeSelfArgs& keywords) { TENSORD_CALL("aten::index_reduce_", self, dim, index, source, reduce, keywords.include_self); }
Tensor index_select(const Tensor& self, Int dim, const Tensor& index) { TENSORD_CALL("aten::index_select", self, dim, index); }
Tensor index_select_backward(const Tensor& grad, IntList self_sizes, Int dim, const Tensor& index) { TENSORD_CALL("aten::index_select_backward", grad, self_sizes, dim, index); }
Tensor index_select_out(const Tensor& out, const Tensor& self, Int dim, const Tensor& index) { TENSORD_CALL("aten::index_select.out", self, dim, index, out); }
Tensor indices(const Tensor& self) { TENSORD_CALL("aten::indices", self); }
Tensor inner(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::inner", self, other); }
Tensor inner_out(const Tensor& out, const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::inner.out", self, other, out); }
Tensor instance_norm(const Tensor& input, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias, const std::optional<Tensor>& running_mean, const std::optional<Tensor>& running_var, Bool use_input_stats, Float momentum, Float eps, Bool cudnn_enabled) { TENSORD_CALL("aten::instance_norm", input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, cudnn_enabled); }
Tensor int_repr(const Tensor& self) { TENSORD_CALL("aten::int_repr", self); }
Tensor inverse(const Tensor& self) { TENSORD_CALL("aten::inverse", self); }
bool is_coalesced(const Tensor& self) { TENSORD_CALL("aten::is_coalesced", self); }
bool is_complex(const Tensor& self) { TENSORD_CALL("aten::is_complex", self); }
bool is_conj(const Tensor& self) { TENSORD_CALL("aten::is_conj", self); }
bool is_contiguous(const Tensor& self) { TENSORD_CALL("aten::is_contiguous", self); }
bool is_contiguous(const Tensor& self, MemoryFormat memory_format) { TENSORD_CALL("aten::is_contiguous.memory_format", self, memory_format); }
bool is_floating_point(const Tensor& self) { TENSORD_CALL("aten::is_floating_point", self); }
bool is_inference(const Tensor& self) { TENSORD_CALL("aten::is_inference", self); }
bool is_leaf(const Tensor& self) { TENSORD_CALL("aten::is_leaf", self); }
bool is_neg(const Tensor& self) { TENSORD_CALL("aten::is_neg", self); }
bool is_nonzero(const Tensor& self) { TENSORD_CALL("aten::is_nonzero", self); }
bool is_same_size(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::is_same_size", self, other); }
bool is_signed(const Tensor& self) { TENSORD_CALL("aten::is_signed", self); }
Tensor isclose(const Tensor& self, const Tensor& other, Float rtol, Float atol, Bool equal_nan) { TENSORD_CALL("aten::isclose", self, other, rtol, atol, equal_nan); }
Tensor isfinite(const Tensor& self) { TENSORD_CALL("aten::isfinite", self); }
Tensor isfinite_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::isfinite.out", self, out); }
Tensor isin(const Scalar& element, const Tensor& test_elements, const keyword::AssumeUniqueInvertArgs& keywords) { TENSORD_CALL("aten::isin.Scalar_Tensor", element, test_elements, keywords.assume_unique, keywords.invert); }
Tensor isin(const Tensor& elements, const Scalar& test_element, const keyword::AssumeUniqueInvertArgs& keywords) { TENSORD_CALL("aten::isin.Tensor_Scalar", elements, test_element, keywords.assume_unique, keywords.invert); }
Tensor isin(const Tensor& elements, const Tensor& test_elements, const keyword::AssumeUniqueInvertArgs& keywords) { TENSORD_CALL("aten::isin.Tensor_Tensor", elements, test_elements, keywords.assume_unique, keywords.invert); }
Tensor isinf(const Tensor& self) { TENSORD_CALL("aten::isinf", self); }
Tensor isinf_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::isinf.out", self, out); }
Tensor isnan(const Tensor& self) { TENSORD_CALL("aten::isnan", self); }
Tensor isnan_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::isnan.out", self, out); }
Tensor isneginf(const Tensor& self) { TENSORD_CALL("aten::isneginf", self); }
Tensor isneginf_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::isneginf.out", self, out); }
Tensor isposinf(const Tensor& self) { TENSORD_CALL("aten::isposinf", self); }
Tensor isposinf_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::isposinf.out", self, out); }
Tensor isreal(const Tensor& self) { TENSORD_CALL("aten::isreal", self); }
Tensor istft(const Tensor& self, Int n_fft, std::optional<Int> hop_length, std::optional<Int> win_length, const std::optional<Tensor>& window, Bool center, Bool normalized, std::optional<Bool> onesided, std::optional<Int> length, Bool return_complex) { TENSORD_CALL("aten::istft", self, n_fft, hop_length, win_length, window, center, normalized, onesided, length, return_complex); }
Scalar item(const Tensor& self) { TENSORD_CALL("aten::item", self); }
Tensor kaiser_window(Int window_length, const keyword::DtypeDeviceArgs& keywords) { TENSORD_CALL("aten::kaiser_window", window_length, keywords.dtype, nullptr, keywords.device, nullptr); }
Tensor kaiser_window(Int window_length, Bool periodic, const keyword::DtypeDeviceArgs& keywords) { TENSORD_CALL("aten::kaiser_window.periodic", window_length, periodic, keywords.dtype, nullptr, keywords.device, nullptr); }
Tensor kaiser_window(Int window_length, Bool periodic, Float beta, const keyword::DtypeDeviceArgs& keywords) { TENSORD_CALL("aten::kaiser_window.beta", window_length, periodic, beta, keywords.dtype, nullptr, keywords.device, nullptr); }
Tensor kl_div(const Tensor& self, const Tensor& target, Int reduction, const keyword::LogTargetArgs& keywords) { TENSORD_CALL("aten::kl_div", self, target, reduction, keywords.log_target); }
Tensor kron(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::kron", self, other); }
Tensor kron_out(const Tensor& out, const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::kron.out", self, other, out); }
std::tuple<Tensor, Tensor> kthvalue(const Tensor& self, Int k, Int dim, Bool keepdim) { TENSORD_CALL("aten::kthvalue", self, k, dim, keepdim); }
Tensor l1_loss(const Tensor& self, const Tensor& target, Int reduction) { TENSORD_CALL("aten::l1_loss", self, target, reduction); }
Tensor layer_norm(const Tensor& input, IntList normalized_shape, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias, Float eps, Bool cudnn_enable) { TENSORD_CALL("aten::layer_norm", input, normalized_shape, weight, bias, eps, cudnn_enable); }
Tensor lcm(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::lcm", self, other); }
Tensor lcm_(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::lcm_", self, other); }
Tensor lcm_out(const Tensor& out, const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::lcm.out", self, other, out); }
Tensor ldexp(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::ldexp.Tensor", self, other); }
Tensor ldexp_(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::ldexp_", self, other); }
Tensor le(const Tensor& self, const Scalar& other) { TENSORD_CALL("aten::le.Scalar", self, other); }
Tensor le(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::le.Tensor", self, other); }
Tensor le_(const Tensor& self, const Scalar& other) { TENSORD_CALL("aten::le_.Scalar", self, other); }
Tensor le_(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::le_.Tensor", self, other); }
Tensor le_out(const Tensor& out, const Tensor& self, const Scalar& other) { TENSORD_CALL("aten::le.Scalar_out", self, other, out); }
Tensor le_out(const Tensor& out, const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::le.out", self, other, out); }
Tensor leaky_relu(const Tensor& self, const Scalar& negative_slope) { TENSORD_CALL("aten::leaky_relu", self, negative_slope); }
Tensor leaky_relu_(const Tensor& self, const Scalar& negative_slope) { TENSORD_CALL("aten::leaky_relu_", self, negative_slope); }
Tensor leaky_relu_backward(const Tensor& grad_output, const Tensor& self, const Scalar& negative_slope, Bool self_is_result) { TENSORD_CALL("aten::leaky_relu_backward", grad_output, self, negative_slope, self_is_result); }
Tensor leaky_relu_out(const Tensor& out, const Tensor& self, const Scalar& negative_slope) { TENSORD_CALL("aten::leaky_relu.out", self, negative_slope, out); }
int64_t len(const Tensor& t) { TENSORD_CALL("aten::len.Tensor", t); }
Tensor lerp(const Tensor& self, const Tensor& end, const Scalar& weight) { TENSORD_CALL("aten::lerp.Scalar", self, end, weight); }
Tensor lerp(const Tensor& self, const Tensor& end, const Tensor& weight) { TENSORD_CALL("aten::lerp.Tensor", self, end, weight); }
Tensor lerp_(const Tensor& self, const Tensor& end, const Scalar& weight) { TENSORD_CALL("aten::lerp_.Scalar", self, end, weight); }
Tensor lerp_(const Tensor& self, const Tensor& end, const Tensor& weight) { TENSORD_CALL("aten::lerp_.Tensor", self, end, weight); }
Tensor lerp_out(const Tensor& out, const Tensor& self, const Tensor& end, const Scalar& weight) { TENSORD_CALL("aten::lerp.Scalar_out", self, end, weight, out); }
Tensor lerp_out(const Tensor& out, const Tensor& self, const Tensor& end, const Tensor& weight) { TENSORD_CALL("aten::lerp.out", self, end, weight, out); }
Tensor lgamma(const Tensor& self) { TENSORD_CALL("aten::lgamma", self); }
Tensor lgamma_(const Tensor& self) { TENSORD_CALL("aten::lgamma_", self); }
Tensor lgamma_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::lgamma.out", self, out); }
Tensor lift_fresh(const Tensor& self) { TENSORD_CALL("aten::lift_fresh", self); }
Tensor linalg_cholesky(const Tensor& self, const keyword::UpperArgs& keywords) { TENSORD_CALL("aten::linalg_cholesky", self, keywords.upper); }
std::tuple<Tensor, Tensor> linalg_cholesky_ex(const Tensor& self, const keyword::UpperCheckErrorsArgs& keywords) { TENSORD_CALL("aten::linalg_cholesky_ex", self, keywords.upper, keywords.check_errors); }
Tensor linalg_cond(const Tensor& self, const std::optional<Scalar>& p) { TENSORD_CALL("aten::linalg_cond", self, p); }
Tensor linalg_cond(const Tensor& self, std::string_view p) { TENSORD_CALL("aten::linalg_cond.p_str", self, p); }
Tensor linalg_cond_out(const Tensor& out, const Tensor& self, const std::optional<Scalar>& p) { TENSORD_CALL("aten::linalg_cond.out", self, p, out); }
Tensor linalg_cross(const Tensor& self, const Tensor& other, const keyword::DimArgs& keywords) { TENSORD_CALL("aten::linalg_cross", self, other, keywords.dim); }
Tensor linalg_det(const Tensor& A) { TENSORD_CALL("aten::linalg_det", A); }
Tensor linalg_diagonal(const Tensor& A, const keyword::OffsetDim1Dim2Args& keywords) { TENSORD_CALL("aten::linalg_diagonal", A, keywords.offset, keywords.dim1, keywords.dim2); }
std::tuple<Tensor, Tensor> linalg_eig(const Tensor& self) { TENSORD_CALL("aten::linalg_eig", self); }
std::tuple<Tensor, Tensor> linalg_eigh(const Tensor& self, std::string_view UPLO) { TENSORD_CALL("aten::linalg_eigh", self, UPLO); }
Tensor linalg_eigvals(const Tensor& self) { TENSORD_CALL("aten::linalg_eigvals", self); }
Tensor linalg_eigvals_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::linalg_eigvals.out", self, out); }
Tensor linalg_eigvalsh(const Tensor& self, std::string_view UPLO) { TENSORD_CALL("aten::linalg_eigvalsh", self, UPLO); }
Tensor linalg_eigvalsh_out(const Tensor& out, const Tensor& self, std::string_view UPLO) { TENSORD_CALL("aten::linalg_eigvalsh.out", self, UPLO, out); }
Tensor linalg_householder_product(const Tensor& input, const Tensor& tau) { TENSORD_CALL("aten::linalg_householder_product", input, tau); }
Tensor linalg_householder_product_out(const Tensor& out, const Tensor& input, const Tensor& tau) { TENSORD_CALL("aten::linalg_householder_product.out", input, tau, out); }
Tensor linalg_inv(const Tensor& A) { TENSORD_CALL("aten::linalg_inv", A); }
std::tuple<Tensor, Tensor> linalg_inv_ex(const Tensor& A, const keyword::CheckErrorsArgs& keywords) { TENSORD_CALL("aten::linalg_inv_ex", A, keywords.check_errors); }
std::tuple<Tensor, Tensor> linalg_ldl_factor(const Tensor& self, const keyword::HermitianArgs& keywords) { TENSORD_CALL("aten::linalg_ldl_factor", self, keywords.hermitian); }
std::tuple<Tensor, Tensor, Tensor> linalg_ldl_factor_ex(const Tensor& self, const keyword::HermitianCheckErrorsArgs& keywords) { TENSORD_CALL("aten::linalg_ldl_factor_ex", self, keywords.hermitian, keywords.check_errors); }
Tensor linalg_ldl_solve(const Tensor& LD, const Tensor& pivots, const Tensor& B, const keyword::HermitianArgs& keywords) { TENSORD_CALL("aten::linalg_ldl_solve", LD, pivots, B, keywords.hermitian); }
Tensor linalg_ldl_solve_out(const Tensor& out, const Tensor& LD, const Tensor& pivots, const Tensor& B, const keyword::HermitianArgs& keywords) { TENSORD_CALL("aten::linalg_ldl_solve.out", LD, pivots, B, keywords.hermitian, out); }
std::tuple<Tensor, Tensor, Tensor, Tensor> linalg_lstsq(const Tensor& self, const Tensor& b, std::optional<Float> rcond, const keyword::DriverArgs& keywords) { TENSORD_CALL("aten::linalg_lstsq", self, b, rcond, keywords.driver); }
std::tuple<Tensor, Tensor, Tensor> linalg_lu(const Tensor& A, const keyword::PivotArgs& keywords) { TENSORD_CALL("aten::linalg_lu", A, keywords.pivot); }
std::tuple<Tensor, Tensor> linalg_lu_factor(const Tensor& A, const keyword::PivotArgs& keywords) { TENSORD_CALL("aten::linalg_lu_factor", A, keywords.pivot); }
std::tuple<Tensor, Tensor, Tensor> linalg_lu_factor_ex(const Tensor& A, const keyword::PivotCheckErrorsArgs& keywords) { TENSORD_CALL("aten::linalg_lu_factor_ex", A, keywords.pivot, keywords.check_errors); }
Tensor linalg_lu_solve(const Tensor& LU, const Tensor& pivots, const Tensor& B, const keyword::LeftAdjointArgs& keywords) { TENSORD_CALL("aten::linalg_lu_solve", LU, pivots, B, keywords.left, keywords.adjoint); }
Tensor linalg_matrix_exp(const Tensor& self) { TENSORD_CALL("aten::linalg_matrix_exp", self); }
Tensor linalg_matrix_exp_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::linalg_matrix_exp.out", self, out); }
Tensor linalg_matrix_norm(const Tensor& self, const Scalar& ord, IntList dim, Bool keepdim, const keyword::DtypeArgs& keywords) { TENSORD_CALL("aten::linalg_matrix_norm", self, ord, dim, keepdim, keywords.dtype); }
Tensor linalg_matrix_norm(const Tensor& self, std::string_view ord, IntList dim, Bool keepdim, const keyword::DtypeArgs& keywords) { TENSORD_CALL("aten::linalg_matrix_norm.str_ord", self, ord, dim, keepdim, keywords.dtype); }
Tensor linalg_matrix_norm_out(const Tensor& out, const Tensor& self, const Scalar& ord, IntList dim, Bool keepdim, const keyword::DtypeArgs& keywords) { TENSORD_CALL("aten::linalg_matrix_norm.out", self, ord, dim, keepdim, keywords.dtype, out); }
Tensor linalg_matrix_power(const Tensor& self, Int n) { TENSORD_CALL("aten::linalg_matrix_power", self, n); }
Tensor linalg_matrix_power_out(const Tensor& out, const Tensor& self, Int n) { TENSORD_CALL("aten::linalg_matrix_power.out", self, n, out); }
Tensor linalg_matrix_rank(const Tensor& self, Float tol, Bool hermitian) { TENSORD_CALL("aten::linalg_matrix_rank", self, tol, hermitian); }
Tensor linalg_matrix_rank(const Tensor& self, const keyword::AtolRtolHermitianArgs& keywords) { TENSORD_CALL("aten::linalg_matrix_rank.atol_rtol_float", self, keywords.atol, keywords.rtol, keywords.hermitian); }
Tensor linalg_matrix_rank(const Tensor& input, const keyword::AtolRtolHermitianArgs2& keywords) { TENSORD_CALL("aten::linalg_matrix_rank.atol_rtol_tensor", input, keywords.atol, keywords.rtol, keywords.hermitian); }
Tensor linalg_matrix_rank(const Tensor& input, const Tensor& tol, Bool hermitian) { TENSORD_CALL("aten::linalg_matrix_rank.tol_tensor", input, tol, hermitian); }
Tensor linalg_matrix_rank_out(const Tensor& out, const Tensor& self, Float tol, Bool hermitian) { TENSORD_CALL("aten::linalg_matrix_rank.out", self, tol, hermitian, out); }
Tensor linalg_multi_dot(TensorList tensors) { TENSORD_CALL("aten::linalg_multi_dot", tensors); }
Tensor linalg_multi_dot_out(const Tensor& out, TensorList tensors) { TENSORD_CALL("aten::linalg_multi_dot.out", tensors, out); }
Tensor linalg_norm(const Tensor& self, const std::optional<Scalar>& ord, OptionalIntOrList dim, Bool keepdim, const keyword::DtypeArgs& keywords) { TENSORD_CALL("aten::linalg_norm", self, ord, dim, keepdim, keywords.dtype); }
Tensor linalg_norm(const Tensor& self, std::string_view ord, OptionalIntOrList dim, Bool keepdim, const keyword::DtypeArgs& keywords) { TENSORD_CALL("aten::linalg_norm.ord_str", self, ord, dim, keepdim, keywords.dtype); }
Tensor linalg_norm_out(const Tensor& out, const Tensor& self, const std::optional<Scalar>& ord, OptionalIntOrList dim, Bool keepdim, const keyword::DtypeArgs& keywords) { TENSORD_CALL("aten::linalg_norm.out", self, ord, dim, keepdim, keywords.dtype, out); }
Tensor linalg_pinv(const Tensor& self, Float rcond, Bool hermitian) { TENSORD_CALL("aten::linalg_pinv", self, rcond, hermitian); }
Tensor linalg_pinv(const Tensor& self, const keyword::AtolRtolHermitianArgs& keywords) { TENSORD_CALL("aten::linalg_pinv.atol_rtol_float", self, keywords.atol, keywords.rtol, keywords.hermitian); }
Tensor linalg_pinv(const Tensor& self, const keyword::AtolRtolHermitianArgs2& keywords) { TENSORD_CALL("aten::linalg_pinv.atol_rtol_tensor", self, keywords.atol, keywords.rtol, keywords.hermitian); }
Tensor linalg_pinv(const Tensor& self, const Tensor& rcond, Bool hermitian) { TENSORD_CALL("aten::linalg_pinv.rcond_tensor", self, rcond, hermitian); }
Tensor linalg_pinv_out(const Tensor& out, const Tensor& self, Float rcond, Bool hermitian) { TENSORD_CALL("aten::linalg_pinv.out", self, rcond, hermitian, out); }
std::tuple<Tensor, Tensor> linalg_qr(const Tensor& A, std::string_view mode) { TENSORD_CALL("aten::linalg_qr", A, mode); }
std::tuple<Tensor, Tensor> linalg_slogdet(const Tensor& A) { TENSORD_CALL("aten::linalg_slogdet", A); }
Tensor linalg_solve(const Tensor& A, const Tensor& B, const keyword::LeftArgs& keywords) { TENSORD_CALL("aten::linalg_solve", A, B, keywords.left); }
std::tuple<Tensor, Tensor> linalg_solve_ex(const Tensor& A, const Tensor& B, const keyword::LeftCheckErrorsArgs& keywords) { TENSORD_CALL("aten::linalg_solve_ex", A, B, keywords.left, keywords.check_errors); }
Tensor linalg_solve_triangular(const Tensor& self, const Tensor& B, const keyword::UpperLeftUnitriangularArgs& keywords) { TENSORD_CALL("aten::linalg_solve_triangular", self, B, keywords.upper, keywords.left, keywords.unitriangular); }
Tensor linalg_solve_triangular_out(const Tensor& out, const Tensor& self, const Tensor& B, const keyword::UpperLeftUnitriangularArgs& keywords) { TENSORD_CALL("aten::linalg_solve_triangular.out", self, B, keywords.upper, keywords.left, keywords.unitriangular, out); }
std::tuple<Tensor, Tensor, Tensor> linalg_svd(const Tensor& A, Bool full_matrices, const keyword::DriverArgs& keywords) { TENSORD_CALL("aten::linalg_svd", A, full_matrices, keywords.driver); }
Tensor linalg_svdvals(const Tensor& A, const keyword::DriverArgs& keywords) { TENSORD_CALL("aten::linalg_svdvals", A, keywords.driver); }
Tensor linalg_svdvals_out(const Tensor& out, const Tensor& A, const keyword::DriverArgs& keywords) { TENSORD_CALL("aten::linalg_svdvals.out", A, keywords.driver, out); }
Tensor linalg_tensorinv(const Tensor& self, Int ind) { TENSORD_CALL("aten::linalg_tensorinv", self, ind); }
Tensor linalg_tensorinv_out(const Tensor& out, const Tensor& self, Int ind) { TENSORD_CALL("aten::linalg_tensorinv.out", self, ind, out); }
Tensor linalg_tensorsolve(const Tensor& self, const Tensor& other, OptionalIntList dims) { TENSORD_CALL("aten::linalg_tensorsolve", self, other, dims); }
Tensor linalg_tensorsolve_out(const Tensor& out, const Tensor& self, const Tensor& other, OptionalIntList dims) { TENSORD_CALL("aten::linalg_tensorsolve.out", self, other, dims, out); }
Tensor linalg_vander(const Tensor& x, const keyword::NArgs& keywords) { TENSORD_CALL("aten::linalg_vander", x, keywords.N); }
Tensor linalg_vecdot(const Tensor& x, const Tensor& y, const keyword::DimArgs& keywords) { TENSORD_CALL("aten::linalg_vecdot", x, y, keywords.dim); }
Tensor linalg_vecdot_out(const Tensor& out, const Tensor& x, const Tensor& y, const keyword::DimArgs& keywords) { TENSORD_CALL("aten::linalg_vecdot.out", x, y, keywords.dim, out); }
Tensor linalg_vector_norm(const Tensor& self, const Scalar& ord, OptionalIntOrList dim, Bool keepdim, const keyword::DtypeArgs& keywords) { TENSORD_CALL("aten::linalg_vector_norm", self, ord, dim, keepdim, keywords.dtype); }
Tensor linalg_vector_norm_out(const Tensor& out, const Tensor& self, const Scalar& ord, OptionalIntOrList dim, Bool keepdim, const keyword::DtypeArgs& keywords) { TENSORD_CALL("aten::linalg_vector_norm.out", self, ord, dim, keepdim, keywords.dtype, out); }
Tensor linear(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias) { TENSORD_CALL("aten::linear", input, weight, bias); }
Tensor linear_out(const Tensor& out, const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias) { TENSORD_CALL("aten::linear.out", input, weight, bias, out); }
Tensor linspace(const Scalar& start, const Scalar& end, Int steps, const keyword::DtypeDeviceArgs& keywords) { TENSORD_CALL("aten::linspace", start, end, steps, keywords.dtype, nullptr, keywords.device, nullptr); }
Tensor linspace(const Scalar& start, const Tensor& end, Int steps, const keyword::DtypeDeviceArgs& keywords) { TENSORD_CALL("aten::linspace.Scalar_Tensor", start, end, steps, keywords.dtype, nullptr, keywords.device, nullptr); }
Tensor linspace(const Tensor& start, const Scalar& end, Int steps, const keyword::DtypeDeviceArgs& keywords) { TENSORD_CALL("aten::linspace.Tensor_Scalar", start, end, steps, keywords.dtype, nullptr, keywords.device, nullptr); }
Tensor linspace(const Tensor& start, const Tensor& end, Int steps, const keyword::DtypeDeviceArgs& keywords) { TENSORD_CALL("aten::linspace.Tensor_Tensor", start, end, steps, keywords.dtype, nullptr, keywords.device, nullptr); }
Tensor log(const Tensor& self) { TENSORD_CALL("aten::log", self); }
Tensor log10(const Tensor& self) { TENSORD_CALL("aten::log10", self); }
Tensor log10_(const Tensor& self) { TENSORD_CALL("aten::log10_", self); }
Tensor log10_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::log10.out", self, out); }
Tensor log1p(const Tensor& self) { TENSORD_CALL("aten::log1p", self); }
Tensor log1p_(const Tensor& self) { TENSORD_CALL("aten::log1p_", self); }
Tensor log1p_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::log1p.out", self, out); }
Tensor log2(const Tensor& self) { TENSORD_CALL("aten::log2", self); }
Tensor log2_(const Tensor& self) { TENSORD_CALL("aten::log2_", self); }
Tensor log2_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::log2.out", self, out); }
Tensor log_(const Tensor& self) { TENSORD_CALL("aten::log_", self); }
Tensor log_normal(const Tensor& self, Float mean, Float std) { TENSORD_CALL("aten::log_normal", self, mean, std, nullptr); }
Tensor log_normal_(const Tensor& self, Float mean, Float std) { TENSORD_CALL("aten::log_normal_", self, mean, std, nullptr); }
Tensor log_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::log.out", self, out); }
Tensor log_sigmoid(const Tensor& self) { TENSORD_CALL("aten::log_sigmoid", self); }
Tensor log_sigmoid_(const Tensor& self) { TENSORD_CALL("aten::log_sigmoid_", self); }
Tensor log_sigmoid_backward(const Tensor& grad_output, const Tensor& self, const Tensor& buffer) { TENSORD_CALL("aten::log_sigmoid_backward", grad_output, self, buffer); }
std::tuple<Tensor, Tensor> log_sigmoid_forward(const Tensor& self) { TENSORD_CALL("aten::log_sigmoid_forward", self); }
Tensor log_sigmoid_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::log_sigmoid.out", self, out); }
Tensor log_softmax(const Tensor& self, Int dim, std::optional<DType> dtype) { TENSORD_CALL("aten::log_softmax.int", self, dim, dtype); }
Tensor logaddexp(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::logaddexp", self, other); }
Tensor logaddexp2(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::logaddexp2", self, other); }
Tensor logaddexp2_out(const Tensor& out, const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::logaddexp2.out", self, other, out); }
Tensor logaddexp_out(const Tensor& out, const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::logaddexp.out", self, other, out); }
Tensor logcumsumexp(const Tensor& self, Int dim) { TENSORD_CALL("aten::logcumsumexp", self, dim); }
Tensor logdet(const Tensor& self) { TENSORD_CALL("aten::logdet", self); }
Tensor logical_and(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::logical_and", self, other); }
Tensor logical_and_(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::logical_and_", self, other); }
Tensor logical_and_out(const Tensor& out, const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::logical_and.out", self, other, out); }
Tensor logical_not(const Tensor& self) { TENSORD_CALL("aten::logical_not", self); }
Tensor logical_not_(const Tensor& self) { TENSORD_CALL("aten::logical_not_", self); }
Tensor logical_not_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::logical_not.out", self, out); }
Tensor logical_or(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::logical_or", self, other); }
Tensor logical_or_(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::logical_or_", self, other); }

}  // namespace tensord
