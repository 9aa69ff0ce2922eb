// Printed by scripts/cpp_operators.py from the registry; not to be edited.
// clang-format off
#include "core/api/call.h"
#include "tensord/ops.h"

namespace tensord {

Tensor logical_or_out(const Tensor& out, const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::logical_or.out", self, other, out); }
Tensor logical_xor(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::logical_xor", self, other); }
Tensor logical_xor_(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::logical_xor_", self, other); }
Tensor logical_xor_out(const Tensor& out, const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::logical_xor.out", self, other, out); }
Tensor logit(const Tensor& self, std::optional<Float> eps) { TENSORD_CALL("aten::logit", self, eps); }
Tensor logit_(const Tensor& self, std::optional<Float> eps) { TENSORD_CALL("aten::logit_", self, eps); }
Tensor logit_backward(const Tensor& grad_output, const Tensor& self, std::optional<Float> eps) { TENSORD_CALL("aten::logit_backward", grad_output, self, eps); }
Tensor logit_out(const Tensor& out, const Tensor& self, std::optional<Float> eps) { TENSORD_CALL("aten::logit.out", self, eps, out); }
Tensor logspace(const Scalar& start, const Scalar& end, Int steps, Float base, const keyword::DtypeDeviceArgs& keywords) { TENSORD_CALL("aten::logspace", start, end, steps, base, keywords.dtype, nullptr, keywords.device, nullptr); }
Tensor logspace(const Scalar& start, const Tensor& end, Int steps, Float base, const keyword::DtypeDeviceArgs& keywords) { TENSORD_CALL("aten::logspace.Scalar_Tensor", start, end, steps, base, keywords.dtype, nullptr, keywords.device, nullptr); }
Tensor logspace(const Tensor& start, const Scalar& end, Int steps, Float base, const keyword::DtypeDeviceArgs& keywords) { TENSORD_CALL("aten::logspace.Tensor_Scalar", start, end, steps, base, keywords.dtype, nullptr, keywords.device, nullptr); }
Tensor logspace(const Tensor& start, const Tensor& end, Int steps, Float base, const keyword::DtypeDeviceArgs& keywords) { TENSORD_CALL("aten::logspace.Tensor_Tensor", start, end, steps, base, keywords.dtype, nullptr, keywords.device, nullptr); }
Tensor logsumexp(const Tensor& self, IntOrList dim, Bool keepdim) { TENSORD_CALL("aten::logsumexp", self, dim, keepdim); }
std::tuple<Tensor, Tensor, Tensor> lstm(const Tensor& data, const Tensor& batch_sizes, TensorList hx, TensorList params, Bool has_biases, Int num_layers, Float dropout, Bool train, Bool bidirectional) { TENSORD_CALL("aten::lstm.data", data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional); }
std::tuple<Tensor, Tensor, Tensor> lstm(const Tensor& input, TensorList hx, TensorList params, Bool has_biases, Int num_layers, Float dropout, Bool train, Bool bidirectional, Bool batch_first) { TENSORD_CALL("aten::lstm.input", input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first); }
std::tuple<Tensor, Tensor> lstm_cell(const Tensor& input, TensorList hx, const Tensor& w_ih, const Tensor& w_hh, const std::optional<Tensor>& b_ih, const std::optional<Tensor>& b_hh) { TENSORD_CALL("aten::lstm_cell", input, hx, w_ih, w_hh, b_ih, b_hh); }
Tensor lt(const Tensor& self, const Scalar& other) { TENSORD_CALL("aten::lt.Scalar", self, other); }
Tensor lt(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::lt.Tensor", self, other); }
Tensor lt_(const Tensor& self, const Scalar& other) { TENSORD_CALL("aten::lt_.Scalar", self, other); }
Tensor lt_(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::lt_.Tensor", self, other); }
Tensor lt_out(const Tensor& out, const Tensor& self, const Scalar& other) { TENSORD_CALL("aten::lt.Scalar_out", self, other, out); }
Tensor lt_out(const Tensor& out, const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::lt.out", self, other, out); }
Tensor lu_solve(const Tensor& self, const Tensor& LU_data, const Tensor& LU_pivots) { TENSORD_CALL("aten::lu_solve", self, LU_data, LU_pivots); }
std::tuple<Tensor, Tensor, Tensor> lu_unpack(const Tensor& LU_data, const Tensor& LU_pivots, Bool unpack_data, Bool unpack_pivots) { TENSORD_CALL("aten::lu_unpack", LU_data, LU_pivots, unpack_data, unpack_pivots); }
Tensor mH(const Tensor& self) { TENSORD_CALL("aten::mH", self); }
Tensor mT(const Tensor& self) { TENSORD_CALL("aten::mT", self); }
Tensor margin_ranking_loss(const Tensor& input1, const Tensor& input2, const Tensor& target, Float margin, Int reduction) { TENSORD_CALL("aten::margin_ranking_loss", input1, input2, target, margin, reduction); }
Tensor masked_fill(const Tensor& self, const Tensor& mask, const Scalar& value) { TENSORD_CALL("aten::masked_fill.Scalar", self, mask, value); }
Tensor masked_fill(const Tensor& self, const Tensor& mask, const Tensor& value) { TENSORD_CALL("aten::masked_fill.Tensor", self, mask, value); }
Tensor masked_fill_(const Tensor& self, const Tensor& mask, const Scalar& value) { TENSORD_CALL("aten::masked_fill_.Scalar", self, mask, value); }
Tensor masked_fill_(const Tensor& self, const Tensor& mask, const Tensor& value) { TENSORD_CALL("aten::masked_fill_.Tensor", self, mask, value); }
Tensor masked_fill_out(const Tensor& out, const Tensor& self, const Tensor& mask, const Scalar& value) { TENSORD_CALL("aten::masked_fill.Scalar_out", self, mask, value, out); }
Tensor masked_fill_out(const Tensor& out, const Tensor& self, const Tensor& mask, const Tensor& value) { TENSORD_CALL("aten::masked_fill.out", self, mask, value, out); }
Tensor masked_scatter(const Tensor& self, const Tensor& mask, const Tensor& source) { TENSORD_CALL("aten::masked_scatter", self, mask, source); }
Tensor masked_scatter_(const Tensor& self, const Tensor& mask, const Tensor& source) { TENSORD_CALL("aten::masked_scatter_", self, mask, source); }
Tensor masked_scatter_backward(const Tensor& grad_output, const Tensor& mask, IntList sizes) { TENSORD_CALL("aten::masked_scatter_backward", grad_output, mask, sizes); }
Tensor masked_select(const Tensor& self, const Tensor& mask) { TENSORD_CALL("aten::masked_select", self, mask); }
Tensor masked_select_backward(const Tensor& grad, const Tensor& input, const Tensor& mask) { TENSORD_CALL("aten::masked_select_backward", grad, input, mask); }
Tensor matmul(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::matmul", self, other); }
Tensor matmul_out(const Tensor& out, const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::matmul.out", self, other, out); }
Tensor matrix_H(const Tensor& self) { TENSORD_CALL("aten::matrix_H", self); }
Tensor matrix_exp(const Tensor& self) { TENSORD_CALL("aten::matrix_exp", self); }
Tensor matrix_power(const Tensor& self, Int n) { TENSORD_CALL("aten::matrix_power", self, n); }
Tensor matrix_power_out(const Tensor& out, const Tensor& self, Int n) { TENSORD_CALL("aten::matrix_power.out", self, n, out); }
Tensor max(const Tensor& self) { TENSORD_CALL("aten::max", self); }
std::tuple<Tensor, Tensor> max(const Tensor& self, Int dim, Bool keepdim) { TENSORD_CALL("aten::max.dim", self, dim, keepdim); }
Tensor max(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::max.other", self, other); }
Tensor max_pool1d(const Tensor& self, IntOrList kernel_size, IntOrList stride, IntOrList padding, IntOrList dilation, Bool ceil_mode) { TENSORD_CALL("aten::max_pool1d", self, kernel_size, stride, padding, dilation, ceil_mode); }
std::tuple<Tensor, Tensor> max_pool1d_with_indices(const Tensor& self, IntOrList kernel_size, IntOrList stride, IntOrList padding, IntOrList dilation, Bool ceil_mode) { TENSORD_CALL("aten::max_pool1d_with_indices", self, kernel_size, stride, padding, dilation, ceil_mode); }
Tensor max_pool2d(const Tensor& self, IntOrList kernel_size, IntOrList stride, IntOrList padding, IntOrList dilation, Bool ceil_mode) { TENSORD_CALL("aten::max_pool2d", self, kernel_size, stride, padding, dilation, ceil_mode); }
std::tuple<Tensor, Tensor> max_pool2d_with_indices(const Tensor& self, IntOrList kernel_size, IntOrList stride, IntOrList padding, IntOrList dilation, Bool ceil_mode) { TENSORD_CALL("aten::max_pool2d_with_indices", self, kernel_size, stride, padding, dilation, ceil_mode); }
Tensor max_pool2d_with_indices_backward(const Tensor& grad_output, const Tensor& self, IntOrList kernel_size, IntOrList stride, IntOrList padding, IntOrList dilation, Bool ceil_mode, const Tensor& indices) { TENSORD_CALL("aten::max_pool2d_with_indices_backward", grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices); }
Tensor max_pool3d(const Tensor& self, IntOrList kernel_size, IntOrList stride, IntOrList padding, IntOrList dilation, Bool ceil_mode) { TENSORD_CALL("aten::max_pool3d", self, kernel_size, stride, padding, dilation, ceil_mode); }
std::tuple<Tensor, Tensor> max_pool3d_with_indices(const Tensor& self, IntOrList kernel_size, IntOrList stride, IntOrList padding, IntOrList dilation, Bool ceil_mode) { TENSORD_CALL("aten::max_pool3d_with_indices", self, kernel_size, stride, padding, dilation, ceil_mode); }
Tensor max_pool3d_with_indices_backward(const Tensor& grad_output, const Tensor& self, IntOrList kernel_size, IntOrList stride, IntOrList padding, IntOrList dilation, Bool ceil_mode, const Tensor& indices) { TENSORD_CALL("aten::max_pool3d_with_indices_backward", grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices); }
Tensor max_unpool2d(const Tensor& self, const Tensor& indices, IntOrList output_size) { TENSORD_CALL("aten::max_unpool2d", self, indices, output_size); }
Tensor max_unpool3d(const Tensor& self, const Tensor& indices, IntOrList output_size, IntOrList stride, IntOrList padding) { TENSORD_CALL("aten::max_unpool3d", self, indices, output_size, stride, padding); }
Tensor maximum(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::maximum", self, other); }
Tensor maximum_(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::maximum_", self, other); }
Tensor maximum_out(const Tensor& out, const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::maximum.out", self, other, out); }
Tensor mean(const Tensor& self, const keyword::DtypeArgs& keywords) { TENSORD_CALL("aten::mean", self, keywords.dtype); }
Tensor mean(const Tensor& self, OptionalIntOrList dim, Bool keepdim, const keyword::DtypeArgs& keywords) { TENSORD_CALL("aten::mean.dim", self, dim, keepdim, keywords.dtype); }
Tensor mean_out(const Tensor& out, const Tensor& self, OptionalIntOrList dim, Bool keepdim, const keyword::DtypeArgs& keywords) { TENSORD_CALL("aten::mean.dim_out", self, dim, keepdim, keywords.dtype, out); }
Tensor median(const Tensor& self) { TENSORD_CALL("aten::median", self); }
std::tuple<Tensor, Tensor> median(const Tensor& self, Int dim, Bool keepdim) { TENSORD_CALL("aten::median.dim", self, dim, keepdim); }
std::vector<Tensor> meshgrid(TensorList tensors) { TENSORD_CALL("aten::meshgrid", tensors); }
std::vector<Tensor> meshgrid(TensorList tensors, const keyword::IndexingArgs& keywords) { TENSORD_CALL("aten::meshgrid.indexing", tensors, keywords.indexing); }
Tensor min(const Tensor& self) { TENSORD_CALL("aten::min", self); }
std::tuple<Tensor, Tensor> min(const Tensor& self, Int dim, Bool keepdim) { TENSORD_CALL("aten::min.dim", self, dim, keepdim); }
Tensor min(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::min.other", self, other); }
Tensor minimum(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::minimum", self, other); }
Tensor minimum_(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::minimum_", self, other); }
Tensor minimum_out(const Tensor& out, const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::minimum.out", self, other, out); }
Tensor mish(const Tensor& self) { TENSORD_CALL("aten::mish", self); }
Tensor mish_(const Tensor& self) { TENSORD_CALL("aten::mish_", self); }
Tensor mish_backward(const Tensor& grad_output, const Tensor& self) { TENSORD_CALL("aten::mish_backward", grad_output, self); }
Tensor mish_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::mish.out", self, out); }
Tensor mm(const Tensor& self, const Tensor& mat2) { TENSORD_CALL("aten::mm", self, mat2); }
Tensor mm_out(const Tensor& out, const Tensor& self, const Tensor& mat2) { TENSORD_CALL("aten::mm.out", self, mat2, out); }
std::tuple<Tensor, Tensor> mode(const Tensor& self, Int dim, Bool keepdim) { TENSORD_CALL("aten::mode", self, dim, keepdim); }
Tensor moveaxis(const Tensor& self, Int source, Int destination) { TENSORD_CALL("aten::moveaxis.int", self, source, destination); }
Tensor moveaxis(const Tensor& self, IntList source, IntList destination) { TENSORD_CALL("aten::moveaxis.intlist", self, source, destination); }
Tensor movedim(const Tensor& self, Int source, Int destination) { TENSORD_CALL("aten::movedim.int", self, source, destination); }
Tensor movedim(const Tensor& self, IntList source, IntList destination) { TENSORD_CALL("aten::movedim.intlist", self, source, destination); }
Tensor mse_loss(const Tensor& self, const Tensor& target, Int reduction) { TENSORD_CALL("aten::mse_loss", self, target, reduction); }
Tensor mse_loss_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target, Int reduction) { TENSORD_CALL("aten::mse_loss_backward", grad_output, self, target, reduction); }
Tensor msort(const Tensor& self) { TENSORD_CALL("aten::msort", self); }
Tensor mul(const Tensor& self, const Scalar& other) { TENSORD_CALL("aten::mul.Scalar", self, other); }
Tensor mul(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::mul.Tensor", self, other); }
Tensor mul_(const Tensor& self, const Scalar& other) { TENSORD_CALL("aten::mul_.Scalar", self, other); }
Tensor mul_(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::mul_.Tensor", self, other); }
Tensor mul_out(const Tensor& out, const Tensor& self, const Scalar& other) { TENSORD_CALL("aten::mul.Scalar_out", self, other, out); }
Tensor mul_out(const Tensor& out, const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::mul.out", self, other, out); }
Tensor multi_margin_loss(const Tensor& self, const Tensor& target, const Scalar& p, const Scalar& margin, const std::optional<Tensor>& weight, Int reduction) { TENSORD_CALL("aten::multi_margin_loss", self, target, p, margin, weight, reduction); }
Tensor multi_margin_loss_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target, const Scalar& p, const Scalar& margin, const std::optional<Tensor>& weight, Int reduction) { TENSORD_CALL("aten::multi_margin_loss_backward", grad_output, self, target, p, margin, weight, reduction); }
Tensor multilabel_margin_loss(const Tensor& self, const Tensor& target, Int reduction) { TENSORD_CALL("aten::multilabel_margin_loss", self, target, reduction); }
Tensor multilabel_margin_loss_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target, Int reduction, const Tensor& is_target) { TENSORD_CALL("aten::multilabel_margin_loss_backward", grad_output, self, target, reduction, is_target); }
std::tuple<Tensor, Tensor> multilabel_margin_loss_forward(const Tensor& self, const Tensor& target, Int reduction) { TENSORD_CALL("aten::multilabel_margin_loss_forward", self, target, reduction); }
Tensor multinomial(const Tensor& self, Int num_samples, Bool replacement) { TENSORD_CALL("aten::multinomial", self, num_samples, replacement, nullptr); }
Tensor mv(const Tensor& self, const Tensor& vec) { TENSORD_CALL("aten::mv", self, vec); }
Tensor mv_out(const Tensor& out, const Tensor& self, const Tensor& vec) { TENSORD_CALL("aten::mv.out", self, vec, out); }
Tensor mvlgamma(const Tensor& self, Int p) { TENSORD_CALL("aten::mvlgamma", self, p); }
Tensor mvlgamma_(const Tensor& self, Int p) { TENSORD_CALL("aten::mvlgamma_", self, p); }
Tensor mvlgamma_out(const Tensor& out, const Tensor& self, Int p) { TENSORD_CALL("aten::mvlgamma.out", self, p, out); }
Tensor nan_to_num(const Tensor& self, std::optional<Float> nan, std::optional<Float> posinf, std::optional<Float> neginf) { TENSORD_CALL("aten::nan_to_num", self, nan, posinf, neginf); }
Tensor nan_to_num_(const Tensor& self, std::optional<Float> nan, std::optional<Float> posinf, std::optional<Float> neginf) { TENSORD_CALL("aten::nan_to_num_", self, nan, posinf, neginf); }
Tensor nan_to_num_out(const Tensor& out, const Tensor& self, std::optional<Float> nan, std::optional<Float> posinf, std::optional<Float> neginf) { TENSORD_CALL("aten::nan_to_num.out", self, nan, posinf, neginf, out); }
Tensor nanmean(const Tensor& self, OptionalIntOrList dim, Bool keepdim, const keyword::DtypeArgs& keywords) { TENSORD_CALL("aten::nanmean", self, dim, keepdim, keywords.dtype); }
Tensor nanmedian(const Tensor& self) { TENSORD_CALL("aten::nanmedian", self); }
std::tuple<Tensor, Tensor> nanmedian(const Tensor& self, Int dim, Bool keepdim) { TENSORD_CALL("aten::nanmedian.dim", self, dim, keepdim); }
Tensor nanquantile(const Tensor& self, const Tensor& q, std::optional<Int> dim, Bool keepdim, const keyword::InterpolationArgs& keywords) { TENSORD_CALL("aten::nanquantile", self, q, dim, keepdim, keywords.interpolation); }
Tensor nanquantile(const Tensor& self, Float q, std::optional<Int> dim, Bool keepdim, const keyword::InterpolationArgs& keywords) { TENSORD_CALL("aten::nanquantile.scalar", self, q, dim, keepdim, keywords.interpolation); }
Tensor nanquantile_out(const Tensor& out, const Tensor& self, const Tensor& q, std::optional<Int> dim, Bool keepdim, const keyword::InterpolationArgs& keywords) { TENSORD_CALL("aten::nanquantile.out", self, q, dim, keepdim, keywords.interpolation, out); }
Tensor nanquantile_out(const Tensor& out, const Tensor& self, Float q, std::optional<Int> dim, Bool keepdim, const keyword::InterpolationArgs& keywords) { TENSORD_CALL("aten::nanquantile.scalar_out", self, q, dim, keepdim, keywords.interpolation, out); }
Tensor nansum(const Tensor& self, OptionalIntOrList dim, Bool keepdim, const keyword::DtypeArgs& keywords) { TENSORD_CALL("aten::nansum", self, dim, keepdim, keywords.dtype); }
Tensor narrow(const Tensor& self, Int dim, Int start, Int length) { TENSORD_CALL("aten::narrow", self, dim, start, length); }
Tensor narrow(const Tensor& self, Int dim, const Tensor& start, Int length) { TENSORD_CALL("aten::narrow.Tensor", self, dim, start, length); }
Tensor narrow_copy(const Tensor& self, Int dim, Int start, Int length) { TENSORD_CALL("aten::narrow_copy", self, dim, start, length); }
std::tuple<Tensor, Tensor, Tensor> native_batch_norm(const Tensor& input, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias, const std::optional<Tensor>& running_mean, const std::optional<Tensor>& running_var, Bool training, Float momentum, Float eps) { TENSORD_CALL("aten::native_batch_norm", input, weight, bias, running_mean, running_var, training, momentum, eps); }
std::tuple<Tensor, Tensor, Tensor> native_batch_norm_backward(const Tensor& grad_out, const Tensor& input, const std::optional<Tensor>& weight, const std::optional<Tensor>& running_mean, const std::optional<Tensor>& running_var, const std::optional<Tensor>& save_mean, const std::optional<Tensor>& save_invstd, Bool train, Float eps, BoolList output_mask) { TENSORD_CALL("aten::native_batch_norm_backward", grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, output_mask); }
std::tuple<Tensor, Tensor> native_dropout(const Tensor& input, Float p, std::optional<Bool> train) { TENSORD_CALL("aten::native_dropout", input, p, train); }
Tensor native_dropout_backward(const Tensor& grad_output, const Tensor& mask, Float scale) { TENSORD_CALL("aten::native_dropout_backward", grad_output, mask, scale); }
std::tuple<Tensor, Tensor, Tensor> native_group_norm(const Tensor& input, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias, Int N, Int C, Int HxW, Int group, Float eps) { TENSORD_CALL("aten::native_group_norm", input, weight, bias, N, C, HxW, group, eps); }
std::tuple<Tensor, Tensor, Tensor> native_group_norm_backward(const Tensor& grad_out, const Tensor& input, const Tensor& mean, const Tensor& rstd, const std::optional<Tensor>& weight, Int N, Int C, Int HxW, Int group, BoolList output_mask) { TENSORD_CALL("aten::native_group_norm_backward", grad_out, input, mean, rstd, weight, N, C, HxW, group, output_mask); }
std::tuple<Tensor, Tensor, Tensor> native_layer_norm(const Tensor& input, IntList normalized_shape, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias, Float eps) { TENSORD_CALL("aten::native_layer_norm", input, normalized_shape, weight, bias, eps); }
std::tuple<Tensor, Tensor, Tensor> native_layer_norm_backward(const Tensor& grad_out, const Tensor& input, IntList normalized_shape, const Tensor& mean, const Tensor& rstd, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias, BoolList output_mask) { TENSORD_CALL("aten::native_layer_norm_backward", grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask); }
Tensor ne(const Tensor& self, const Scalar& other) { TENSORD_CALL("aten::ne.Scalar", self, other); }
Tensor ne(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::ne.Tensor", self, other); }
bool ne(TensorList a, TensorList b) { TENSORD_CALL("aten::ne.Tensor_list", a, b); }
Tensor ne_(const Tensor& self, const Scalar& other) { TENSORD_CALL("aten::ne_.Scalar", self, other); }
Tensor ne_(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::ne_.Tensor", self, other); }
Tensor ne_out(const Tensor& out, const Tensor& self, const Scalar& other) { TENSORD_CALL("aten::ne.Scalar_out", self, other, out); }
Tensor ne_out(const Tensor& out, const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::ne.out", self, other, out); }
Tensor neg(const Tensor& self) { TENSORD_CALL("aten::neg", self); }
Tensor neg_(const Tensor& self) { TENSORD_CALL("aten::neg_", self); }
Tensor neg_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::neg.out", self, out); }
Tensor new_empty(const Tensor& self, IntList size, const keyword::DtypeDeviceArgs& keywords) { TENSORD_CALL("aten::new_empty", self, size, keywords.dtype, nullptr, keywords.device, nullptr); }
Tensor new_empty_strided(const Tensor& self, IntList size, IntList stride, const keyword::DtypeDeviceArgs& keywords) { TENSORD_CALL("aten::new_empty_strided", self, size, stride, keywords.dtype, nullptr, keywords.device, nullptr); }
Tensor new_full(const Tensor& self, IntList size, const Scalar& fill_value, const keyword::DtypeDeviceArgs& keywords) { TENSORD_CALL("aten::new_full", self, size, fill_value, keywords.dtype, nullptr, keywords.device, nullptr); }
Tensor new_ones(const Tensor& self, IntList size, const keyword::DtypeDeviceArgs& keywords) { TENSORD_CALL("aten::new_ones", self, size, keywords.dtype, nullptr, keywords.device, nullptr); }
Tensor new_zeros(const Tensor& self, IntList size, const keyword::DtypeDeviceArgs& keywords) { TENSORD_CALL("aten::new_zeros", self, size, keywords.dtype, nullptr, keywords.device, nullptr); }
Tensor nextafter(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::nextafter", self, other); }
Tensor nextafter_(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::nextafter_", self, other); }
Tensor nextafter_out(const Tensor& out, const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::nextafter.out", self, other, out); }
Tensor nll_loss(const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight, Int reduction, Int ignore_index) { TENSORD_CALL("aten::nll_loss", self, target, weight, reduction, ignore_index); }
Tensor nll_loss2d(const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight, Int reduction, Int ignore_index) { TENSORD_CALL("aten::nll_loss2d", self, target, weight, reduction, ignore_index); }
Tensor nll_loss2d_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight, Int reduction, Int ignore_index, const Tensor& total_weight) { TENSORD_CALL("aten::nll_loss2d_backward", grad_output, self, target, weight, reduction, ignore_index, total_weight); }
std::tuple<Tensor, Tensor> nll_loss2d_forward(const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight, Int reduction, Int ignore_index) { TENSORD_CALL("aten::nll_loss2d_forward", self, target, weight, reduction, ignore_index); }
Tensor nll_loss_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight, Int reduction, Int ignore_index, const Tensor& total_weight) { TENSORD_CALL("aten::nll_loss_backward", grad_output, self, target, weight, reduction, ignore_index, total_weight); }
std::tuple<Tensor, Tensor> nll_loss_forward(const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight, Int reduction, Int ignore_index) { TENSORD_CALL("aten::nll_loss_forward", self, target, weight, reduction, ignore_index); }
Tensor nll_loss_nd(const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight, Int reduction, Int ignore_index) { TENSORD_CALL("aten::nll_loss_nd", self, target, weight, reduction, ignore_index); }
Tensor nonzero(const Tensor& self) { TENSORD_CALL("aten::nonzero", self); }
std::vector<Tensor> nonzero_numpy(const Tensor& self) { TENSORD_CALL("aten::nonzero_numpy", self); }
Tensor nonzero_static(const Tensor& self, const keyword::SizeFillValueArgs& keywords) { TENSORD_CALL("aten::nonzero_static", self, keywords.size, keywords.fill_value); }
Tensor norm(const Tensor& self, const Scalar& p) { TENSORD_CALL("aten::norm.Scalar", self, p); }
Tensor norm(const Tensor& self, const std::optional<Scalar>& p, IntOrList dim, Bool keepdim) { TENSORD_CALL("aten::norm.ScalarOpt_dim", self, p, dim, keepdim); }
Tensor norm(const Tensor& self, const std::optional<Scalar>& p, const keyword::DtypeArgs2& keywords) { TENSORD_CALL("aten::norm.ScalarOpt_dtype", self, p, keywords.dtype); }
Tensor norm(const Tensor& self, const std::optional<Scalar>& p, IntOrList dim, Bool keepdim, const keyword::DtypeArgs2& keywords) { TENSORD_CALL("aten::norm.ScalarOpt_dim_dtype", self, p, dim, keepdim, keywords.dtype); }
Tensor norm_except_dim(const Tensor& v, Int pow, Int dim) { TENSORD_CALL("aten::norm_except_dim", v, pow, dim); }
Tensor norm_out(const Tensor& out, const Tensor& self, const std::optional<Scalar>& p, IntOrList dim, Bool keepdim) { TENSORD_CALL("aten::norm.ScalarOpt_dim_out", self, p, dim, keepdim, out); }
Tensor norm_out(const Tensor& out, const Tensor& self, const std::optional<Scalar>& p, IntOrList dim, Bool keepdim, const keyword::DtypeArgs2& keywords) { TENSORD_CALL("aten::norm.ScalarOpt_dim_dtype_out", self, p, dim, keepdim, keywords.dtype, out); }
Tensor normal(const Tensor& mean, Float std) { TENSORD_CALL("aten::normal.Tensor_float", mean, std, nullptr); }
Tensor normal(const Tensor& mean, const Tensor& std) { TENSORD_CALL("aten::normal.Tensor_Tensor", mean, std, nullptr); }
Tensor normal(Float mean, const Tensor& std) { TENSORD_CALL("aten::normal.float_Tensor", mean, std, nullptr); }
Tensor normal(Float mean, Float std, IntList size, const keyword::DtypeDeviceArgs& keywords) { TENSORD_CALL("aten::normal.float_float", mean, std, size, nullptr, keywords.dtype, nullptr, keywords.device, nullptr); }
Tensor normal_(const Tensor& self, Float mean, Float std) { TENSORD_CALL("aten::normal_", self, mean, std, nullptr); }
Tensor normal_functional(const Tensor& self, Float mean, Float std) { TENSORD_CALL("aten::normal_functional", self, mean, std, nullptr); }
Tensor nuclear_norm(const Tensor& self, Bool keepdim) { TENSORD_CALL("aten::nuclear_norm", self, keepdim); }
Tensor nuclear_norm(const Tensor& self, IntOrList dim, Bool keepdim) { TENSORD_CALL("aten::nuclear_norm.dim", self, dim, keepdim); }
Tensor nuclear_norm_out(const Tensor& out, const Tensor& self, Bool keepdim) { TENSORD_CALL("aten::nuclear_norm.out", self, keepdim, out); }
int64_t numel(const Tensor& self) { TENSORD_CALL("aten::numel", self); }
Tensor numpy_T(const Tensor& self) { TENSORD_CALL("aten::numpy_T", self); }
Tensor one_hot(const Tensor& self, Int num_classes) { TENSORD_CALL("aten::one_hot", self, num_classes); }
Tensor ones(IntList size, const keyword::DtypeDeviceArgs& keywords) { TENSORD_CALL("aten::ones", size, keywords.dtype, nullptr, keywords.device, nullptr); }
Tensor ones_like(const Tensor& self, const keyword::DtypeDeviceMemoryFormatArgs& keywords) { TENSORD_CALL("aten::ones_like", self, keywords.dtype, nullptr, keywords.device, nullptr, keywords.memory_format); }
Tensor orgqr(const Tensor& self, const Tensor& input2) { TENSORD_CALL("aten::orgqr", self, input2); }
Tensor ormqr(const Tensor& self, const Tensor& input2, const Tensor& input3, Bool left, Bool transpose) { TENSORD_CALL("aten::ormqr", self, input2, input3, left, transpose); }
Tensor ormqr_out(const Tensor& out, const Tensor& self, const Tensor& input2, const Tensor& input3, Bool left, Bool transpose) { TENSORD_CALL("aten::ormqr.out", self, input2, input3, left, transpose, out); }
Tensor outer(const Tensor& self, const Tensor& vec2) { TENSORD_CALL("aten::outer", self, vec2); }
Tensor outer_out(const Tensor& out, const Tensor& self, const Tensor& vec2) { TENSORD_CALL("aten::outer.out", self, vec2, out); }
int64_t output_nr(const Tensor& self) { TENSORD_CALL("aten::output_nr", self); }
Tensor pad(const Tensor& self, IntList pad, std::string_view mode, std::optional<Float> value) { TENSORD_CALL("aten::pad", self, pad, mode, value); }
Tensor pad_sequence(TensorList sequences, Bool batch_first, Float padding_value, std::string_view padding_side) { TENSORD_CALL("aten::pad_sequence", sequences, batch_first, padding_value, padding_side); }
Tensor pairwise_distance(const Tensor& x1, const Tensor& x2, Float p, Float eps, Bool keepdim) { TENSORD_CALL("aten::pairwise_distance", x1, x2, p, eps, keepdim); }
Tensor pdist(const Tensor& self, Float p) { TENSORD_CALL("aten::pdist", self, p); }
Tensor permute(const Tensor& self, IntList dims) { TENSORD_CALL("aten::permute", self, dims); }
Tensor permute_copy(const Tensor& self, IntList dims) { TENSORD_CALL("aten::permute_copy", self, dims); }
Tensor pinverse(const Tensor& self, Float rcond) { TENSORD_CALL("aten::pinverse", self, rcond); }
Tensor pixel_shuffle(const Tensor& self, Int upscale_factor) { TENSORD_CALL("aten::pixel_shuffle", self, upscale_factor); }
Tensor pixel_unshuffle(const Tensor& self, Int downscale_factor) { TENSORD_CALL("aten::pixel_unshuffle", self, downscale_factor); }
Tensor poisson(const Tensor& self) { TENSORD_CALL("aten::poisson", self, nullptr); }
Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, Bool log_input, Bool full, Float eps, Int reduction) { TENSORD_CALL("aten::poisson_nll_loss", input, target, log_input, full, eps, reduction); }
Tensor polar(const Tensor& abs, const Tensor& angle) { TENSORD_CALL("aten::polar", abs, angle); }
Tensor polar_out(const Tensor& out, const Tensor& abs, const Tensor& angle) { TENSORD_CALL("aten::polar.out", abs, angle, out); }
Tensor polygamma(Int n, const Tensor& self) { TENSORD_CALL("aten::polygamma", n, self); }
Tensor polygamma_(const Tensor& self, Int n) { TENSORD_CALL("aten::polygamma_", self, n); }
Tensor polygamma_out(const Tensor& out, Int n, const Tensor& self) { TENSORD_CALL("aten::polygamma.out", n, self, out); }
Tensor positive(const Tensor& self) { TENSORD_CALL("aten::positive", self); }
Tensor pow(const Scalar& self, const Tensor& exponent) { TENSORD_CALL("aten::pow.Scalar", self, exponent); }
Tensor pow(const Tensor& self, const Scalar& exponent) { TENSORD_CALL("aten::pow.Tensor_Scalar", self, exponent); }
Tensor pow(const Tensor& self, const Tensor& exponent) { TENSORD_CALL("aten::pow.Tensor_Tensor", self, exponent); }
Tensor pow_(const Tensor& self, const Scalar& exponent) { TENSORD_CALL("aten::pow_.Tensor_Scalar", self, exponent); }
Tensor pow_(const Tensor& self, const Tensor& exponent) { TENSORD_CALL("aten::pow_.Tensor_Tensor", self, exponent); }
Tensor pow_out(const Tensor& out, const Scalar& self, const Tensor& exponent) { TENSORD_CALL("aten::pow.Scalar_out", self, exponent, out); }
Tensor pow_out(const Tensor& out, const Tensor& self, const Scalar& exponent) { TENSORD_CALL("aten::pow.Tensor_Scalar_out", self, exponent, out); }
Tensor pow_out(const Tensor& out, const Tensor& self, const Tensor& exponent) { TENSORD_CALL("aten::pow.Tensor_Tensor_out", self, exponent, out); }
Tensor prelu(const Tensor& self, const Tensor& weight) { TENSORD_CALL("aten::prelu", self, weight); }
std::tuple<Tensor, Tensor> prelu_backward(const Tensor& grad_output, const Tensor& self, const Tensor& weight) { TENSORD_CALL("aten::prelu_backward", grad_output, self, weight); }
Tensor prod(const Tensor& self, const keyword::DtypeArgs& keywords) { TENSORD_CALL("aten::prod", self, keywords.dtype); }
Tensor prod(const Tensor& self, Int dim, Bool keepdim, const keyword::DtypeArgs& keywords) { TENSORD_CALL("aten::prod.dim_int", self, dim, keepdim, keywords.dtype); }
Tensor put(const Tensor& self, const Tensor& index, const Tensor& source, Bool accumulate) { TENSORD_CALL("aten::put", self, index, source, accumulate); }
Tensor put_(const Tensor& self, const Tensor& index, const Tensor& source, Bool accumulate) { TENSORD_CALL("aten::put_", self, index, source, accumulate); }
int64_t q_per_channel_axis(const Tensor& self) { TENSORD_CALL("aten::q_per_channel_axis", self); }
Tensor q_per_channel_scales(const Tensor& self) { TENSORD_CALL("aten::q_per_channel_scales", self); }
Tensor q_per_channel_zero_points(const Tensor& self) { TENSORD_CALL("aten::q_per_channel_zero_points", self); }
double q_scale(const Tensor& self) { TENSORD_CALL("aten::q_scale", self); }
int64_t q_zero_point(const Tensor& self) { TENSORD_CALL("aten::q_zero_point", self); }
std::tuple<Tensor, Tensor> qr(const Tensor& self, Bool some) { TENSORD_CALL("aten::qr", self, some); }
int64_t qscheme(const Tensor& self) { TENSORD_CALL("aten::qscheme", self); }
Tensor quantile(const Tensor& self, const Tensor& q, std::optional<Int> dim, Bool keepdim, const keyword::InterpolationArgs& keywords) { TENSORD_CALL("aten::quantile", self, q, dim, keepdim, keywords.interpolation); }
Tensor quantile(const Tensor& self, Float q, std::optional<Int> dim, Bool keepdim, const keyword::InterpolationArgs& keywords) { TENSORD_CALL("aten::quantile.scalar", self, q, dim, keepdim, keywords.interpolation); }
Tensor quantile_out(const Tensor& out, const Tensor& self, const Tensor& q, std::optional<Int> dim, Bool keepdim, const keyword::InterpolationArgs& keywords) { TENSORD_CALL("aten::quantile.out", self, q, dim, keepdim, keywords.interpolation, out); }
Tensor quantile_out(const Tensor& out, const Tensor& self, Float q, std::optional<Int> dim, Bool keepdim, const keyword::InterpolationArgs& keywords) { TENSORD_CALL("aten::quantile.scalar_out", self, q, dim, keepdim, keywords.interpolation, out); }
Tensor quantize_per_channel(const Tensor& self, const Tensor& scales, const Tensor& zero_points, Int axis, DType dtype) { TENSORD_CALL("aten::quantize_per_channel", self, scales, zero_points, axis, dtype); }
Tensor quantize_per_tensor(const Tensor& self, Float scale, Int zero_point, DType dtype) { TENSORD_CALL("aten::quantize_per_tensor", self, scale, zero_point, dtype); }
Tensor quantize_per_tensor(const Tensor& self, const Tensor& scale, const Tensor& zero_point, DType dtype) { TENSORD_CALL("aten::quantize_per_tensor.tensor_qparams", self, scale, zero_point, dtype); }
Tensor rad2deg(const Tensor& self) { TENSORD_CALL("aten::rad2deg", self); }
Tensor rad2deg_(const Tensor& self) { TENSORD_CALL("aten::rad2deg_", self); }
Tensor rad2deg_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::rad2deg.out", self, out); }
Tensor rand(IntList size, const keyword::DtypeDeviceArgs& keywords) { TENSORD_CALL("aten::rand", size, keywords.dtype, nullptr, keywords.device, nullptr); }
Tensor rand_like(const Tensor& self, const keyword::DtypeDeviceMemoryFormatArgs& keywords) { TENSORD_CALL("aten::rand_like", self, keywords.dtype, nullptr, keywords.device, nullptr, keywords.memory_format); }
Tensor randint(Int high, IntList size, const keyword::DtypeDeviceArgs2& keywords) { TENSORD_CALL("aten::randint", high, size, keywords.dtype, nullptr, keywords.device, nullptr); }
Tensor randint(Int low, Int high, IntList size, const keyword::DtypeDeviceArgs2& keywords) { TENSORD_CALL("aten::randint.low", low, high, size, keywords.dtype, nullptr, keywords.device, nullptr); }
Tensor randint_like(const Tensor& self, Int high, const keyword::DtypeDeviceMemoryFormatArgs& keywords) { TENSORD_CALL("aten::randint_like", self, high, keywords.dtype, nullptr, keywords.device, nullptr, keywords.memory_format); }
Tensor randint_like(const Tensor& self, Int low, Int high, const keyword::DtypeDeviceMemoryFormatArgs& keywords) { TENSORD_CALL("aten::randint_like.low_dtype", self, low, high, keywords.dtype, nullptr, keywords.device, nullptr, keywords.memory_format); }
Tensor randn(IntList size, const keyword::DtypeDeviceArgs& keywords) { TENSORD_CALL("aten::randn", size, keywords.dtype, nullptr, keywords.device, nullptr); }
Tensor randn_like(const Tensor& self, const keyword::DtypeDeviceMemoryFormatArgs& keywords) { TENSORD_CALL("aten::randn_like", self, keywords.dtype, nullptr, keywords.device, nullptr, keywords.memory_format); }
Tensor random(const Tensor& self) { TENSORD_CALL("aten::random", self, nullptr); }
Tensor random(const Tensor& self, Int to) { TENSORD_CALL("aten::random.to", self, to, nullptr); }
Tensor random(const Tensor& self, Int from, std::optional<Int> to) { TENSORD_CALL("aten::random.from", self, from, to, nullptr); }
Tensor random_(const Tensor& self) { TENSORD_CALL("aten::random_", self, nullptr); }
Tensor random_(const Tensor& self, Int to) { TENSORD_CALL("aten::random_.to", self, to, nullptr); }
Tensor random_(const Tensor& self, Int from, std::optional<Int> to) { TENSORD_CALL("aten::random_.from", self, from, to, nullptr); }
Tensor randperm(Int n, const keyword::DtypeDeviceArgs2& keywords) { TENSORD_CALL("aten::randperm", n, keywords.dtype, nullptr, keywords.device, nullptr); }
Tensor range(const Scalar& start, const Scalar& end, const keyword::DtypeDeviceArgs& keywords) { TENSORD_CALL("aten::range", start, end, keywords.dtype, nullptr, keywords.device, nullptr); }
Tensor range(const Scalar& start, const Scalar& end, const Scalar& step, const keyword::DtypeDeviceArgs& keywords) { TENSORD_CALL("aten::range.step", start, end, step, keywords.dtype, nullptr, keywords.device, nullptr); }
Tensor ravel(const Tensor& self) { TENSORD_CALL("aten::ravel", self); }

}  // namespace tensord
