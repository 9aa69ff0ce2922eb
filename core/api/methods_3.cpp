// Printed by scripts/cpp_operators.py from the registry; not to be edited.
// clang-format off
#include "tensord/ops.h"

namespace tensord {

Tensor Tensor::log1p_() const& { return tensord::log1p_(*this); }
Tensor Tensor::log2() const& { return tensord::log2(*this); }
Tensor Tensor::log2_() const& { return tensord::log2_(*this); }
Tensor Tensor::log_() const& { return tensord::log_(*this); }
Tensor Tensor::log_normal() const& { return tensord::log_normal(*this); }
Tensor Tensor::log_normal(Float mean) const& { return tensord::log_normal(*this, mean); }
Tensor Tensor::log_normal(Float mean, Float std) const& { return tensord::log_normal(*this, mean, std); }
Tensor Tensor::log_normal_() const& { return tensord::log_normal_(*this); }
Tensor Tensor::log_normal_(Float mean) const& { return tensord::log_normal_(*this, mean); }
Tensor Tensor::log_normal_(Float mean, Float std) const& { return tensord::log_normal_(*this, mean, std); }
Tensor Tensor::log_sigmoid() const& { return tensord::log_sigmoid(*this); }
Tensor Tensor::log_sigmoid_() const& { return tensord::log_sigmoid_(*this); }
std::tuple<Tensor, Tensor> Tensor::log_sigmoid_forward() const& { return tensord::log_sigmoid_forward(*this); }
Tensor Tensor::log_softmax(Int dim) const& { return tensord::log_softmax(*this, dim); }
Tensor Tensor::log_softmax(Int dim, std::optional<DType> dtype) const& { return tensord::log_softmax(*this, dim, dtype); }
Tensor Tensor::logaddexp(const Tensor& other) const& { return tensord::logaddexp(*this, other); }
Tensor Tensor::logaddexp2(const Tensor& other) const& { return tensord::logaddexp2(*this, other); }
Tensor Tensor::logcumsumexp(Int dim) const& { return tensord::logcumsumexp(*this, dim); }
Tensor Tensor::logdet() const& { return tensord::logdet(*this); }
Tensor Tensor::logical_and(const Tensor& other) const& { return tensord::logical_and(*this, other); }
Tensor Tensor::logical_and_(const Tensor& other) const& { return tensord::logical_and_(*this, other); }
Tensor Tensor::logical_not() const& { return tensord::logical_not(*this); }
Tensor Tensor::logical_not_() const& { return tensord::logical_not_(*this); }
Tensor Tensor::logical_or(const Tensor& other) const& { return tensord::logical_or(*this, other); }
Tensor Tensor::logical_or_(const Tensor& other) const& { return tensord::logical_or_(*this, other); }
Tensor Tensor::logical_xor(const Tensor& other) const& { return tensord::logical_xor(*this, other); }
Tensor Tensor::logical_xor_(const Tensor& other) const& { return tensord::logical_xor_(*this, other); }
Tensor Tensor::logit() const& { return tensord::logit(*this); }
Tensor Tensor::logit(std::optional<Float> eps) const& { return tensord::logit(*this, eps); }
Tensor Tensor::logit_() const& { return tensord::logit_(*this); }
Tensor Tensor::logit_(std::optional<Float> eps) const& { return tensord::logit_(*this, eps); }
Tensor Tensor::logsumexp(IntOrList dim) const& { return tensord::logsumexp(*this, dim); }
Tensor Tensor::logsumexp(IntOrList dim, Bool keepdim) const& { return tensord::logsumexp(*this, dim, keepdim); }
Tensor Tensor::lt(const Scalar& other) const& { return tensord::lt(*this, other); }
Tensor Tensor::lt(const Tensor& other) const& { return tensord::lt(*this, other); }
Tensor Tensor::lt_(const Scalar& other) const& { return tensord::lt_(*this, other); }
Tensor Tensor::lt_(const Tensor& other) const& { return tensord::lt_(*this, other); }
Tensor Tensor::lu_solve(const Tensor& LU_data, const Tensor& LU_pivots) const& { return tensord::lu_solve(*this, LU_data, LU_pivots); }
Tensor Tensor::mH() const& { return tensord::mH(*this); }
Tensor Tensor::mT() const& { return tensord::mT(*this); }
Tensor Tensor::masked_fill(const Tensor& mask, const Scalar& value) const& { return tensord::masked_fill(*this, mask, value); }
Tensor Tensor::masked_fill(const Tensor& mask, const Tensor& value) const& { return tensord::masked_fill(*this, mask, value); }
Tensor Tensor::masked_fill_(const Tensor& mask, const Scalar& value) const& { return tensord::masked_fill_(*this, mask, value); }
Tensor Tensor::masked_fill_(const Tensor& mask, const Tensor& value) const& { return tensord::masked_fill_(*this, mask, value); }
Tensor Tensor::masked_scatter(const Tensor& mask, const Tensor& source) const& { return tensord::masked_scatter(*this, mask, source); }
Tensor Tensor::masked_scatter_(const Tensor& mask, const Tensor& source) const& { return tensord::masked_scatter_(*this, mask, source); }
Tensor Tensor::masked_select(const Tensor& mask) const& { return tensord::masked_select(*this, mask); }
Tensor Tensor::matmul(const Tensor& other) const& { return tensord::matmul(*this, other); }
Tensor Tensor::matrix_H() const& { return tensord::matrix_H(*this); }
Tensor Tensor::matrix_exp() const& { return tensord::matrix_exp(*this); }
Tensor Tensor::matrix_power(Int n) const& { return tensord::matrix_power(*this, n); }
Tensor Tensor::max() const& { return tensord::max(*this); }
std::tuple<Tensor, Tensor> Tensor::max(Int dim) const& { return tensord::max(*this, dim); }
std::tuple<Tensor, Tensor> Tensor::max(Int dim, Bool keepdim) const& { return tensord::max(*this, dim, keepdim); }
Tensor Tensor::max(const Tensor& other) const& { return tensord::max(*this, other); }
Tensor Tensor::max_pool1d(IntOrList kernel_size) const& { return tensord::max_pool1d(*this, kernel_size); }
Tensor Tensor::max_pool1d(IntOrList kernel_size, IntOrList stride) const& { return tensord::max_pool1d(*this, kernel_size, stride); }
Tensor Tensor::max_pool1d(IntOrList kernel_size, IntOrList stride, IntOrList padding) const& { return tensord::max_pool1d(*this, kernel_size, stride, padding); }
Tensor Tensor::max_pool1d(IntOrList kernel_size, IntOrList stride, IntOrList padding, IntOrList dilation) const& { return tensord::max_pool1d(*this, kernel_size, stride, padding, dilation); }
Tensor Tensor::max_pool1d(IntOrList kernel_size, IntOrList stride, IntOrList padding, IntOrList dilation, Bool ceil_mode) const& { return tensord::max_pool1d(*this, kernel_size, stride, padding, dilation, ceil_mode); }
std::tuple<Tensor, Tensor> Tensor::max_pool1d_with_indices(IntOrList kernel_size) const& { return tensord::max_pool1d_with_indices(*this, kernel_size); }
std::tuple<Tensor, Tensor> Tensor::max_pool1d_with_indices(IntOrList kernel_size, IntOrList stride) const& { return tensord::max_pool1d_with_indices(*this, kernel_size, stride); }
std::tuple<Tensor, Tensor> Tensor::max_pool1d_with_indices(IntOrList kernel_size, IntOrList stride, IntOrList padding) const& { return tensord::max_pool1d_with_indices(*this, kernel_size, stride, padding); }
std::tuple<Tensor, Tensor> Tensor::max_pool1d_with_indices(IntOrList kernel_size, IntOrList stride, IntOrList padding, IntOrList dilation) const& { return tensord::max_pool1d_with_indices(*this, kernel_size, stride, padding, dilation); }
std::tuple<Tensor, Tensor> Tensor::max_pool1d_with_indices(IntOrList kernel_size, IntOrList stride, IntOrList padding, IntOrList dilation, Bool ceil_mode) const& { return tensord::max_pool1d_with_indices(*this, kernel_size, stride, padding, dilation, ceil_mode); }
Tensor Tensor::max_pool2d(IntOrList kernel_size) const& { return tensord::max_pool2d(*this, kernel_size); }
Tensor Tensor::max_pool2d(IntOrList kernel_size, IntOrList stride) const& { return tensord::max_pool2d(*this, kernel_size, stride); }
Tensor Tensor::max_pool2d(IntOrList kernel_size, IntOrList stride, IntOrList padding) const& { return tensord::max_pool2d(*this, kernel_size, stride, padding); }
Tensor Tensor::max_pool2d(IntOrList kernel_size, IntOrList stride, IntOrList padding, IntOrList dilation) const& { return tensord::max_pool2d(*this, kernel_size, stride, padding, dilation); }
Tensor Tensor::max_pool2d(IntOrList kernel_size, IntOrList stride, IntOrList padding, IntOrList dilation, Bool ceil_mode) const& { return tensord::max_pool2d(*this, kernel_size, stride, padding, dilation, ceil_mode); }
std::tuple<Tensor, Tensor> Tensor::max_pool2d_with_indices(IntOrList kernel_size) const& { return tensord::max_pool2d_with_indices(*this, kernel_size); }
std::tuple<Tensor, Tensor> Tensor::max_pool2d_with_indices(IntOrList kernel_size, IntOrList stride) const& { return tensord::max_pool2d_with_indices(*this, kernel_size, stride); }
std::tuple<Tensor, Tensor> Tensor::max_pool2d_with_indices(IntOrList kernel_size, IntOrList stride, IntOrList padding) const& { return tensord::max_pool2d_with_indices(*this, kernel_size, stride, padding); }
std::tuple<Tensor, Tensor> Tensor::max_pool2d_with_indices(IntOrList kernel_size, IntOrList stride, IntOrList padding, IntOrList dilation) const& { return tensord::max_pool2d_with_indices(*this, kernel_size, stride, padding, dilation); }
std::tuple<Tensor, Tensor> Tensor::max_pool2d_with_indices(IntOrList kernel_size, IntOrList stride, IntOrList padding, IntOrList dilation, Bool ceil_mode) const& { return tensord::max_pool2d_with_indices(*this, kernel_size, stride, padding, dilation, ceil_mode); }
Tensor Tensor::max_pool3d(IntOrList kernel_size) const& { return tensord::max_pool3d(*this, kernel_size); }
Tensor Tensor::max_pool3d(IntOrList kernel_size, IntOrList stride) const& { return tensord::max_pool3d(*this, kernel_size, stride); }
Tensor Tensor::max_pool3d(IntOrList kernel_size, IntOrList stride, IntOrList padding) const& { return tensord::max_pool3d(*this, kernel_size, stride, padding); }
Tensor Tensor::max_pool3d(IntOrList kernel_size, IntOrList stride, IntOrList padding, IntOrList dilation) const& { return tensord::max_pool3d(*this, kernel_size, stride, padding, dilation); }
Tensor Tensor::max_pool3d(IntOrList kernel_size, IntOrList stride, IntOrList padding, IntOrList dilation, Bool ceil_mode) const& { return tensord::max_pool3d(*this, kernel_size, stride, padding, dilation, ceil_mode); }
std::tuple<Tensor, Tensor> Tensor::max_pool3d_with_indices(IntOrList kernel_size) const& { return tensord::max_pool3d_with_indices(*this, kernel_size); }
std::tuple<Tensor, Tensor> Tensor::max_pool3d_with_indices(IntOrList kernel_size, IntOrList stride) const& { return tensord::max_pool3d_with_indices(*this, kernel_size, stride); }
std::tuple<Tensor, Tensor> Tensor::max_pool3d_with_indices(IntOrList kernel_size, IntOrList stride, IntOrList padding) const& { return tensord::max_pool3d_with_indices(*this, kernel_size, stride, padding); }
std::tuple<Tensor, Tensor> Tensor::max_pool3d_with_indices(IntOrList kernel_size, IntOrList stride, IntOrList padding, IntOrList dilation) const& { return tensord::max_pool3d_with_indices(*this, kernel_size, stride, padding, dilation); }
std::tuple<Tensor, Tensor> Tensor::max_pool3d_with_indices(IntOrList kernel_size, IntOrList stride, IntOrList padding, IntOrList dilation, Bool ceil_mode) const& { return tensord::max_pool3d_with_indices(*this, kernel_size, stride, padding, dilation, ceil_mode); }
Tensor Tensor::max_unpool2d(const Tensor& indices, IntOrList output_size) const& { return tensord::max_unpool2d(*this, indices, output_size); }
Tensor Tensor::max_unpool3d(const Tensor& indices, IntOrList output_size, IntOrList stride, IntOrList padding) const& { return tensord::max_unpool3d(*this, indices, output_size, stride, padding); }
Tensor Tensor::maximum(const Tensor& other) const& { return tensord::maximum(*this, other); }
Tensor Tensor::maximum_(const Tensor& other) const& { return tensord::maximum_(*this, other); }
Tensor Tensor::mean() const& { return tensord::mean(*this); }
Tensor Tensor::mean(const keyword::DtypeArgs& keywords) const& { return tensord::mean(*this, keywords); }
Tensor Tensor::mean(OptionalIntOrList dim) const& { return tensord::mean(*this, dim); }
Tensor Tensor::mean(OptionalIntOrList dim, Bool keepdim) const& { return tensord::mean(*this, dim, keepdim); }
Tensor Tensor::mean(OptionalIntOrList dim, Bool keepdim, const keyword::DtypeArgs& keywords) const& { return tensord::mean(*this, dim, keepdim, keywords); }
Tensor Tensor::median() const& { return tensord::median(*this); }
std::tuple<Tensor, Tensor> Tensor::median(Int dim) const& { return tensord::median(*this, dim); }
std::tuple<Tensor, Tensor> Tensor::median(Int dim, Bool keepdim) const& { return tensord::median(*this, dim, keepdim); }
Tensor Tensor::min() const& { return tensord::min(*this); }
std::tuple<Tensor, Tensor> Tensor::min(Int dim) const& { return tensord::min(*this, dim); }
std::tuple<Tensor, Tensor> Tensor::min(Int dim, Bool keepdim) const& { return tensord::min(*this, dim, keepdim); }
Tensor Tensor::min(const Tensor& other) const& { return tensord::min(*this, other); }
Tensor Tensor::minimum(const Tensor& other) const& { return tensord::minimum(*this, other); }
Tensor Tensor::minimum_(const Tensor& other) const& { return tensord::minimum_(*this, other); }
Tensor Tensor::mish() const& { return tensord::mish(*this); }
Tensor Tensor::mish_() const& { return tensord::mish_(*this); }
Tensor Tensor::mm(const Tensor& mat2) const& { return tensord::mm(*this, mat2); }
std::tuple<Tensor, Tensor> Tensor::mode() const& { return tensord::mode(*this); }
std::tuple<Tensor, Tensor> Tensor::mode(Int dim) const& { return tensord::mode(*this, dim); }
std::tuple<Tensor, Tensor> Tensor::mode(Int dim, Bool keepdim) const& { return tensord::mode(*this, dim, keepdim); }
Tensor Tensor::moveaxis(Int source, Int destination) const& { return tensord::moveaxis(*this, source, destination); }
Tensor Tensor::moveaxis(IntList source, IntList destination) const& { return tensord::moveaxis(*this, source, destination); }
Tensor Tensor::movedim(Int source, Int destination) const& { return tensord::movedim(*this, source, destination); }
Tensor Tensor::movedim(IntList source, IntList destination) const& { return tensord::movedim(*this, source, destination); }
Tensor Tensor::mse_loss(const Tensor& target) const& { return tensord::mse_loss(*this, target); }
Tensor Tensor::mse_loss(const Tensor& target, Int reduction) const& { return tensord::mse_loss(*this, target, reduction); }
Tensor Tensor::msort() const& { return tensord::msort(*this); }
Tensor Tensor::mul(const Scalar& other) const& { return tensord::mul(*this, other); }
Tensor Tensor::mul(const Tensor& other) const& { return tensord::mul(*this, other); }
Tensor Tensor::mul_(const Scalar& other) const& { return tensord::mul_(*this, other); }
Tensor Tensor::mul_(const Tensor& other) const& { return tensord::mul_(*this, other); }
Tensor Tensor::multi_margin_loss(const Tensor& target) const& { return tensord::multi_margin_loss(*this, target); }
Tensor Tensor::multi_margin_loss(const Tensor& target, const Scalar& p) const& { return tensord::multi_margin_loss(*this, target, p); }
Tensor Tensor::multi_margin_loss(const Tensor& target, const Scalar& p, const Scalar& margin) const& { return tensord::multi_margin_loss(*this, target, p, margin); }
Tensor Tensor::multi_margin_loss(const Tensor& target, const Scalar& p, const Scalar& margin, const std::optional<Tensor>& weight) const& { return tensord::multi_margin_loss(*this, target, p, margin, weight); }
Tensor Tensor::multi_margin_loss(const Tensor& target, const Scalar& p, const Scalar& margin, const std::optional<Tensor>& weight, Int reduction) const& { return tensord::multi_margin_loss(*this, target, p, margin, weight, reduction); }
Tensor Tensor::multilabel_margin_loss(const Tensor& target) const& { return tensord::multilabel_margin_loss(*this, target); }
Tensor Tensor::multilabel_margin_loss(const Tensor& target, Int reduction) const& { return tensord::multilabel_margin_loss(*this, target, reduction); }
std::tuple<Tensor, Tensor> Tensor::multilabel_margin_loss_forward(const Tensor& target, Int reduction) const& { return tensord::multilabel_margin_loss_forward(*this, target, reduction); }
Tensor Tensor::multinomial(Int num_samples) const& { return tensord::multinomial(*this, num_samples); }
Tensor Tensor::multinomial(Int num_samples, Bool replacement) const& { return tensord::multinomial(*this, num_samples, replacement); }
Tensor Tensor::mv(const Tensor& vec) const& { return tensord::mv(*this, vec); }
Tensor Tensor::mvlgamma(Int p) const& { return tensord::mvlgamma(*this, p); }
Tensor Tensor::mvlgamma_(Int p) const& { return tensord::mvlgamma_(*this, p); }
Tensor Tensor::nan_to_num() const& { return tensord::nan_to_num(*this); }
Tensor Tensor::nan_to_num(std::optional<Float> nan) const& { return tensord::nan_to_num(*this, nan); }
Tensor Tensor::nan_to_num(std::optional<Float> nan, std::optional<Float> posinf) const& { return tensord::nan_to_num(*this, nan, posinf); }
Tensor Tensor::nan_to_num(std::optional<Float> nan, std::optional<Float> posinf, std::optional<Float> neginf) const& { return tensord::nan_to_num(*this, nan, posinf, neginf); }
Tensor Tensor::nan_to_num_() const& { return tensord::nan_to_num_(*this); }
Tensor Tensor::nan_to_num_(std::optional<Float> nan) const& { return tensord::nan_to_num_(*this, nan); }
Tensor Tensor::nan_to_num_(std::optional<Float> nan, std::optional<Float> posinf) const& { return tensord::nan_to_num_(*this, nan, posinf); }
Tensor Tensor::nan_to_num_(std::optional<Float> nan, std::optional<Float> posinf, std::optional<Float> neginf) const& { return tensord::nan_to_num_(*this, nan, posinf, neginf); }
Tensor Tensor::nanmean() const& { return tensord::nanmean(*this); }
Tensor Tensor::nanmean(OptionalIntOrList dim) const& { return tensord::nanmean(*this, dim); }
Tensor Tensor::nanmean(OptionalIntOrList dim, Bool keepdim) const& { return tensord::nanmean(*this, dim, keepdim); }
Tensor Tensor::nanmean(OptionalIntOrList dim, Bool keepdim, const keyword::DtypeArgs& keywords) const& { return tensord::nanmean(*this, dim, keepdim, keywords); }
Tensor Tensor::nanmedian() const& { return tensord::nanmedian(*this); }
std::tuple<Tensor, Tensor> Tensor::nanmedian(Int dim) const& { return tensord::nanmedian(*this, dim); }
std::tuple<Tensor, Tensor> Tensor::nanmedian(Int dim, Bool keepdim) const& { return tensord::nanmedian(*this, dim, keepdim); }
Tensor Tensor::nanquantile(const Tensor& q) const& { return tensord::nanquantile(*this, q); }
Tensor Tensor::nanquantile(const Tensor& q, std::optional<Int> dim) const& { return tensord::nanquantile(*this, q, dim); }
Tensor Tensor::nanquantile(const Tensor& q, std::optional<Int> dim, Bool keepdim) const& { return tensord::nanquantile(*this, q, dim, keepdim); }
Tensor Tensor::nanquantile(const Tensor& q, std::optional<Int> dim, Bool keepdim, const keyword::InterpolationArgs& keywords) const& { return tensord::nanquantile(*this, q, dim, keepdim, keywords); }
Tensor Tensor::nanquantile(Float q) const& { return tensord::nanquantile(*this, q); }
Tensor Tensor::nanquantile(Float q, std::optional<Int> dim) const& { return tensord::nanquantile(*this, q, dim); }
Tensor Tensor::nanquantile(Float q, std::optional<Int> dim, Bool keepdim) const& { return tensord::nanquantile(*this, q, dim, keepdim); }
Tensor Tensor::nanquantile(Float q, std::optional<Int> dim, Bool keepdim, const keyword::InterpolationArgs& keywords) const& { return tensord::nanquantile(*this, q, dim, keepdim, keywords); }
Tensor Tensor::nansum() const& { return tensord::nansum(*this); }
Tensor Tensor::nansum(OptionalIntOrList dim) const& { return tensord::nansum(*this, dim); }
Tensor Tensor::nansum(OptionalIntOrList dim, Bool keepdim) const& { return tensord::nansum(*this, dim, keepdim); }
Tensor Tensor::nansum(OptionalIntOrList dim, Bool keepdim, const keyword::DtypeArgs& keywords) const& { return tensord::nansum(*this, dim, keepdim, keywords); }
Tensor Tensor::narrow(Int dim, Int start, Int length) const& { return tensord::narrow(*this, dim, start, length); }
Tensor Tensor::narrow(Int dim, const Tensor& start, Int length) const& { return tensord::narrow(*this, dim, start, length); }
Tensor Tensor::narrow_copy(Int dim, Int start, Int length) const& { return tensord::narrow_copy(*this, dim, start, length); }
Tensor Tensor::ne(const Scalar& other) const& { return tensord::ne(*this, other); }
Tensor Tensor::ne(const Tensor& other) const& { return tensord::ne(*this, other); }
Tensor Tensor::ne_(const Scalar& other) const& { return tensord::ne_(*this, other); }
Tensor Tensor::ne_(const Tensor& other) const& { return tensord::ne_(*this, other); }
Tensor Tensor::neg() const& { return tensord::neg(*this); }
Tensor Tensor::neg_() const& { return tensord::neg_(*this); }
Tensor Tensor::new_empty(IntList size) const& { return tensord::new_empty(*this, size); }
Tensor Tensor::new_empty(IntList size, const keyword::DtypeDeviceArgs& keywords) const& { return tensord::new_empty(*this, size, keywords); }
Tensor Tensor::new_empty_strided(IntList size, IntList stride) const& { return tensord::new_empty_strided(*this, size, stride); }
Tensor Tensor::new_empty_strided(IntList size, IntList stride, const keyword::DtypeDeviceArgs& keywords) const& { return tensord::new_empty_strided(*this, size, stride, keywords); }
Tensor Tensor::new_full(IntList size, const Scalar& fill_value) const& { return tensord::new_full(*this, size, fill_value); }
Tensor Tensor::new_full(IntList size, const Scalar& fill_value, const keyword::DtypeDeviceArgs& keywords) const& { return tensord::new_full(*this, size, fill_value, keywords); }
Tensor Tensor::new_ones(IntList size) const& { return tensord::new_ones(*this, size); }
Tensor Tensor::new_ones(IntList size, const keyword::DtypeDeviceArgs& keywords) const& { return tensord::new_ones(*this, size, keywords); }
Tensor Tensor::new_zeros(IntList size) const& { return tensord::new_zeros(*this, size); }
Tensor Tensor::new_zeros(IntList size, const keyword::DtypeDeviceArgs& keywords) const& { return tensord::new_zeros(*this, size, keywords); }
Tensor Tensor::nextafter(const Tensor& other) const& { return tensord::nextafter(*this, other); }
Tensor Tensor::nextafter_(const Tensor& other) const& { return tensord::nextafter_(*this, other); }
Tensor Tensor::nll_loss(const Tensor& target) const& { return tensord::nll_loss(*this, target); }
Tensor Tensor::nll_loss(const Tensor& target, const std::optional<Tensor>& weight) const& { return tensord::nll_loss(*this, target, weight); }
Tensor Tensor::nll_loss(const Tensor& target, const std::optional<Tensor>& weight, Int reduction) const& { return tensord::nll_loss(*this, target, weight, reduction); }
Tensor Tensor::nll_loss(const Tensor& target, const std::optional<Tensor>& weight, Int reduction, Int ignore_index) const& { return tensord::nll_loss(*this, target, weight, reduction, ignore_index); }
Tensor Tensor::nll_loss2d(const Tensor& target) const& { return tensord::nll_loss2d(*this, target); }
Tensor Tensor::nll_loss2d(const Tensor& target, const std::optional<Tensor>& weight) const& { return tensord::nll_loss2d(*this, target, weight); }
Tensor Tensor::nll_loss2d(const Tensor& target, const std::optional<Tensor>& weight, Int reduction) const& { return tensord::nll_loss2d(*this, target, weight, reduction); }
Tensor Tensor::nll_loss2d(const Tensor& target, const std::optional<Tensor>& weight, Int reduction, Int ignore_index) const& { return tensord::nll_loss2d(*this, target, weight, reduction, ignore_index); }
std::tuple<Tensor, Tensor> Tensor::nll_loss2d_forward(const Tensor& target, const std::optional<Tensor>& weight, Int reduction, Int ignore_index) const& { return tensord::nll_loss2d_forward(*this, target, weight, reduction, ignore_index); }
std::tuple<Tensor, Tensor> Tensor::nll_loss_forward(const Tensor& target, const std::optional<Tensor>& weight, Int reduction, Int ignore_index) const& { return tensord::nll_loss_forward(*this, target, weight, reduction, ignore_index); }
Tensor Tensor::nll_loss_nd(const Tensor& target) const& { return tensord::nll_loss_nd(*this, target); }
Tensor Tensor::nll_loss_nd(const Tensor& target, const std::optional<Tensor>& weight) const& { return tensord::nll_loss_nd(*this, target, weight); }
Tensor Tensor::nll_loss_nd(const Tensor& target, const std::optional<Tensor>& weight, Int reduction) const& { return tensord::nll_loss_nd(*this, target, weight, reduction); }
Tensor Tensor::nll_loss_nd(const Tensor& target, const std::optional<Tensor>& weight, Int reduction, Int ignore_index) const& { return tensord::nll_loss_nd(*this, target, weight, reduction, ignore_index); }
Tensor Tensor::nonzero() const& { return tensord::nonzero(*this); }
std::vector<Tensor> Tensor::nonzero_numpy() const& { return tensord::nonzero_numpy(*this); }
Tensor Tensor::nonzero_static(const keyword::SizeFillValueArgs& keywords) const& { return tensord::nonzero_static(*this, keywords); }
Tensor Tensor::norm() const& { return tensord::norm(*this); }
Tensor Tensor::norm(const Scalar& p) const& { return tensord::norm(*this, p); }
Tensor Tensor::norm(const std::optional<Scalar>& p, IntOrList dim) const& { return tensord::norm(*this, p, dim); }
Tensor Tensor::norm(const std::optional<Scalar>& p, IntOrList dim, Bool keepdim) const& { return tensord::norm(*this, p, dim, keepdim); }
Tensor Tensor::norm(const std::optional<Scalar>& p, const keyword::DtypeArgs2& keywords) const& { return tensord::norm(*this, p, keywords); }
Tensor Tensor::norm(const std::optional<Scalar>& p, IntOrList dim, Bool keepdim, const keyword::DtypeArgs2& keywords) const& { return tensord::norm(*this, p, dim, keepdim, keywords); }
Tensor Tensor::normal_() const& { return tensord::normal_(*this); }
Tensor Tensor::normal_(Float mean) const& { return tensord::normal_(*this, mean); }
Tensor Tensor::normal_(Float mean, Float std) const& { return tensord::normal_(*this, mean, std); }
Tensor Tensor::normal_functional() const& { return tensord::normal_functional(*this); }
Tensor Tensor::normal_functional(Float mean) const& { return tensord::normal_functional(*this, mean); }
Tensor Tensor::normal_functional(Float mean, Float std) const& { return tensord::normal_functional(*this, mean, std); }
Tensor Tensor::nuclear_norm() const& { return tensord::nuclear_norm(*this); }
Tensor Tensor::nuclear_norm(Bool keepdim) const& { return tensord::nuclear_norm(*this, keepdim); }
Tensor Tensor::nuclear_norm(IntOrList dim) const& { return tensord::nuclear_norm(*this, dim); }
Tensor Tensor::nuclear_norm(IntOrList dim, Bool keepdim) const& { return tensord::nuclear_norm(*this, dim, keepdim); }
Tensor Tensor::numpy_T() const& { return tensord::numpy_T(*this); }
Tensor Tensor::one_hot() const& { return tensord::one_hot(*this); }
Tensor Tensor::one_hot(Int num_classes) const& { return tensord::one_hot(*this, num_classes); }
Tensor Tensor::ones_like() const& { return tensord::ones_like(*this); }
Tensor Tensor::ones_like(const keyword::DtypeDeviceMemoryFormatArgs& keywords) const& { return tensord::ones_like(*this, keywords); }
Tensor Tensor::orgqr(const Tensor& input2) const& { return tensord::orgqr(*this, input2); }
Tensor Tensor::ormqr(const Tensor& input2, const Tensor& input3) const& { return tensord::ormqr(*this, input2, input3); }
Tensor Tensor::ormqr(const Tensor& input2, const Tensor& input3, Bool left) const& { return tensord::ormqr(*this, input2, input3, left); }
Tensor Tensor::ormqr(const Tensor& input2, const Tensor& input3, Bool left, Bool transpose) const& { return tensord::ormqr(*this, input2, input3, left, transpose); }
Tensor Tensor::outer(const Tensor& vec2) const& { return tensord::outer(*this, vec2); }
int64_t Tensor::output_nr() const& { return tensord::output_nr(*this); }
Tensor Tensor::pad(IntList pad) const& { return tensord::pad(*this, pad); }
Tensor Tensor::pad(IntList pad, std::string_view mode) const& { return tensord::pad(*this, pad, mode); }
Tensor Tensor::pad(IntList pad, std::string_view mode, std::optional<Float> value) const& { return tensord::pad(*this, pad, mode, value); }
Tensor Tensor::pdist() const& { return tensord::pdist(*this); }
Tensor Tensor::pdist(Float p) const& { return tensord::pdist(*this, p); }
Tensor Tensor::permute(IntList dims) const& { return tensord::permute(*this, dims); }
Tensor Tensor::permute_copy(IntList dims) const& { return tensord::permute_copy(*this, dims); }
Tensor Tensor::pinverse() const& { return tensord::pinverse(*this); }
Tensor Tensor::pinverse(Float rcond) const& { return tensord::pinverse(*this, rcond); }
Tensor Tensor::pixel_shuffle(Int upscale_factor) const& { return tensord::pixel_shuffle(*this, upscale_factor); }
Tensor Tensor::pixel_unshuffle(Int downscale_factor) const& { return tensord::pixel_unshuffle(*this, downscale_factor); }
Tensor Tensor::poisson() const& { return tensord::poisson(*this); }
Tensor Tensor::polygamma_(Int n) const& { return tensord::polygamma_(*this, n); }
Tensor Tensor::positive() const& { return tensord::positive(*this); }
Tensor Tensor::pow(const Scalar& exponent) const& { return tensord::pow(*this, exponent); }
Tensor Tensor::pow(const Tensor& exponent) const& { return tensord::pow(*this, exponent); }
Tensor Tensor::pow_(const Scalar& exponent) const& { return tensord::pow_(*this, exponent); }
Tensor Tensor::pow_(const Tensor& exponent) const& { return tensord::pow_(*this, exponent); }
Tensor Tensor::prelu(const Tensor& weight) const& { return tensord::prelu(*this, weight); }
Tensor Tensor::prod() const& { return tensord::prod(*this); }
Tensor Tensor::prod(const keyword::DtypeArgs& keywords) const& { return tensord::prod(*this, keywords); }
Tensor Tensor::prod(Int dim) const& { return tensord::prod(*this, dim); }
Tensor Tensor::prod(Int dim, Bool keepdim) const& { return tensord::prod(*this, dim, keepdim); }
Tensor Tensor::prod(Int dim, Bool keepdim, const keyword::DtypeArgs& keywords) const& { return tensord::prod(*this, dim, keepdim, keywords); }
Tensor Tensor::put(const Tensor& index, const Tensor& source) const& { return tensord::put(*this, index, source); }
Tensor Tensor::put(const Tensor& index, const Tensor& source, Bool accumulate) const& { return tensord::put(*this, index, source, accumulate); }
Tensor Tensor::put_(const Tensor& index, const Tensor& source) const& { return tensord::put_(*this, index, source); }
Tensor Tensor::put_(const Tensor& index, const Tensor& source, Bool accumulate) const& { return tensord::put_(*this, index, source, accumulate); }
int64_t Tensor::q_per_channel_axis() const& { return tensord::q_per_channel_axis(*this); }
Tensor Tensor::q_per_channel_scales() const& { return tensord::q_per_channel_scales(*this); }
Tensor Tensor::q_per_channel_zero_points() const& { return tensord::q_per_channel_zero_points(*this); }
double Tensor::q_scale() const& { return tensord::q_scale(*this); }
int64_t Tensor::q_zero_point() const& { return tensord::q_zero_point(*this); }
std::tuple<Tensor, Tensor> Tensor::qr() const& { return tensord::qr(*this); }
std::tuple<Tensor, Tensor> Tensor::qr(Bool some) const& { return tensord::qr(*this, some); }
int64_t Tensor::qscheme() const& { return tensord::qscheme(*this); }
Tensor Tensor::quantile(const Tensor& q) const& { return tensord::quantile(*this, q); }
Tensor Tensor::quantile(const Tensor& q, std::optional<Int> dim) const& { return tensord::quantile(*this, q, dim); }
Tensor Tensor::quantile(const Tensor& q, std::optional<Int> dim, Bool keepdim) const& { return tensord::quantile(*this, q, dim, keepdim); }
Tensor Tensor::quantile(const Tensor& q, std::optional<Int> dim, Bool keepdim, const keyword::InterpolationArgs& keywords) const& { return tensord::quantile(*this, q, dim, keepdim, keywords); }
Tensor Tensor::quantile(Float q) const& { return tensord::quantile(*this, q); }
Tensor Tensor::quantile(Float q, std::optional<Int> dim) const& { return tensord::quantile(*this, q, dim); }
Tensor Tensor::quantile(Float q, std::optional<Int> dim, Bool keepdim) const& { return tensord::quantile(*this, q, dim, keepdim); }
Tensor Tensor::quantile(Float q, std::optional<Int> dim, Bool keepdim, const keyword::InterpolationArgs& keywords) const& { return tensord::quantile(*this, q, dim, keepdim, keywords); }
Tensor Tensor::quantize_per_channel(const Tensor& scales, const Tensor& zero_points, Int axis, DType dtype) const& { return tensord::quantize_per_channel(*this, scales, zero_points, axis, dtype); }
Tensor Tensor::quantize_per_tensor(Float scale, Int zero_point, DType dtype) const& { return tensord::quantize_per_tensor(*this, scale, zero_point, dtype); }
Tensor Tensor::quantize_per_tensor(const Tensor& scale, const Tensor& zero_point, DType dtype) const& { return tensord::quantize_per_tensor(*this, scale, zero_point, dtype); }
Tensor Tensor::rad2deg() const& { return tensord::rad2deg(*this); }
Tensor Tensor::rad2deg_() const& { return tensord::rad2deg_(*this); }
Tensor Tensor::rand_like() const& { return tensord::rand_like(*this); }
Tensor Tensor::rand_like(const keyword::DtypeDeviceMemoryFormatArgs& keywords) const& { return tensord::rand_like(*this, keywords); }
Tensor Tensor::randint_like(Int high) const& { return tensord::randint_like(*this, high); }
Tensor Tensor::randint_like(Int high, const keyword::DtypeDeviceMemoryFormatArgs& keywords) const& { return tensord::randint_like(*this, high, keywords); }
Tensor Tensor::randint_like(Int low, Int high) const& { return tensord::randint_like(*this, low, high); }
Tensor Tensor::randint_like(Int low, Int high, const keyword::DtypeDeviceMemoryFormatArgs& keywords) const& { return tensord::randint_like(*this, low, high, keywords); }
Tensor Tensor::randn_like() const& { return tensord::randn_like(*this); }
Tensor Tensor::randn_like(const keyword::DtypeDeviceMemoryFormatArgs& keywords) const& { return tensord::randn_like(*this, keywords); }
Tensor Tensor::random() const& { return tensord::random(*this); }
Tensor Tensor::random(Int to) const& { return tensord::random(*this, to); }
Tensor Tensor::random(Int from, std::optional<Int> to) const& { return tensord::random(*this, from, to); }
Tensor Tensor::random_() const& { return tensord::random_(*this); }
Tensor Tensor::random_(Int to) const& { return tensord::random_(*this, to); }
Tensor Tensor::random_(Int from, std::optional<Int> to) const& { return tensord::random_(*this, from, to); }
Tensor Tensor::ravel() const& { return tensord::ravel(*this); }
Tensor Tensor::real() const& { return tensord::real(*this); }
Tensor Tensor::reciprocal() const& { return tensord::reciprocal(*this); }
Tensor Tensor::reciprocal_() const& { return tensord::reciprocal_(*this); }
Tensor Tensor::reflection_pad1d(IntOrList padding) const& { return tensord::reflection_pad1d(*this, padding); }
Tensor Tensor::reflection_pad2d(IntOrList padding) const& { return tensord::reflection_pad2d(*this, padding); }
Tensor Tensor::reflection_pad3d(IntOrList padding) const& { return tensord::reflection_pad3d(*this, padding); }
Tensor Tensor::relu() const& { return tensord::relu(*this); }
Tensor Tensor::relu6() const& { return tensord::relu6(*this); }
Tensor Tensor::relu6_() const& { return tensord::relu6_(*this); }
Tensor Tensor::relu_() const& { return tensord::relu_(*this); }
Tensor Tensor::remainder(const Scalar& other) const& { return tensord::remainder(*this, other); }
Tensor Tensor::remainder(const Tensor& other) const& { return tensord::remainder(*this, other); }
Tensor Tensor::remainder_(const Scalar& other) const& { return tensord::remainder_(*this, other); }
Tensor Tensor::remainder_(const Tensor& other) const& { return tensord::remainder_(*this, other); }
Tensor Tensor::renorm(const Scalar& p, Int dim, const Scalar& maxnorm) const& { return tensord::renorm(*this, p, dim, maxnorm); }
Tensor Tensor::renorm_(const Scalar& p, Int dim, const Scalar& maxnorm) const& { return tensord::renorm_(*this, p, dim, maxnorm); }
Tensor Tensor::repeat(IntList repeats) const& { return tensord::repeat(*this, repeats); }
Tensor Tensor::repeat_interleave(const Tensor& repeats) const& { return tensord::repeat_interleave(*this, repeats); }
Tensor Tensor::repeat_interleave(const Tensor& repeats, std::optional<Int> dim) const& { return tensord::repeat_interleave(*this, repeats, dim); }
Tensor Tensor::repeat_interleave(const Tensor& repeats, std::optional<Int> dim, const keyword::OutputSizeArgs& keywords) const& { return tensord::repeat_interleave(*this, repeats, dim, keywords); }
Tensor Tensor::repeat_interleave(Int repeats) const& { return tensord::repeat_interleave(*this, repeats); }
Tensor Tensor::repeat_interleave(Int repeats, std::optional<Int> dim) const& { return tensord::repeat_interleave(*this, repeats, dim); }
Tensor Tensor::repeat_interleave(Int repeats, std::optional<Int> dim, const keyword::OutputSizeArgs& keywords) const& { return tensord::repeat_interleave(*this, repeats, dim, keywords); }
Tensor Tensor::replication_pad1d(IntOrList padding) const& { return tensord::replication_pad1d(*this, padding); }
Tensor Tensor::replication_pad2d(IntOrList padding) const& { return tensord::replication_pad2d(*this, padding); }
Tensor Tensor::replication_pad3d(IntOrList padding) const& { return tensord::replication_pad3d(*this, padding); }
Tensor Tensor::requires_grad_() const& { return tensord::requires_grad_(*this); }
Tensor Tensor::requires_grad_(Bool requires_grad) const& { return tensord::requires_grad_(*this, requires_grad); }
Tensor Tensor::reshape(IntList shape) const& { return tensord::reshape(*this, shape); }
Tensor Tensor::reshape_as(const Tensor& other) const& { return tensord::reshape_as(*this, other); }
Tensor Tensor::resolve_conj() const& { return tensord::resolve_conj(*this); }
Tensor Tensor::resolve_neg() const& { return tensord::resolve_neg(*this); }
bool Tensor::retains_grad() const& { return tensord::retains_grad(*this); }
Tensor Tensor::roll(IntOrList shifts) const& { return tensord::roll(*this, shifts); }
Tensor Tensor::roll(IntOrList shifts, IntOrList dims) const& { return tensord::roll(*this, shifts, dims); }
Tensor Tensor::rot90() const& { return tensord::rot90(*this); }
Tensor Tensor::rot90(Int k) const& { return tensord::rot90(*this, k); }
Tensor Tensor::rot90(Int k, IntList dims) const& { return tensord::rot90(*this, k, dims); }
Tensor Tensor::round() const& { return tensord::round(*this); }
Tensor Tensor::round(const keyword::DecimalsArgs& keywords) const& { return tensord::round(*this, keywords); }
Tensor Tensor::round_() const& { return tensord::round_(*this); }

}  // namespace tensord
