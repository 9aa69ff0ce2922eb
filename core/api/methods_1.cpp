// Printed by scripts/cpp_operators.py from the registry; not to be edited.
// clang-format off
#include "tensord/ops.h"

namespace tensord {

Tensor Tensor::abs() const& { return tensord::abs(*this); }
Tensor Tensor::abs_() const& { return tensord::abs_(*this); }
Tensor Tensor::acos() const& { return tensord::acos(*this); }
Tensor Tensor::acos_() const& { return tensord::acos_(*this); }
Tensor Tensor::acosh() const& { return tensord::acosh(*this); }
Tensor Tensor::acosh_() const& { return tensord::acosh_(*this); }
Tensor Tensor::adaptive_avg_pool1d(IntOrList output_size) const& { return tensord::adaptive_avg_pool1d(*this, output_size); }
Tensor Tensor::adaptive_avg_pool2d(IntOrList output_size) const& { return tensord::adaptive_avg_pool2d(*this, output_size); }
Tensor Tensor::adaptive_avg_pool3d(IntOrList output_size) const& { return tensord::adaptive_avg_pool3d(*this, output_size); }
std::tuple<Tensor, Tensor> Tensor::adaptive_max_pool1d(IntOrList output_size) const& { return tensord::adaptive_max_pool1d(*this, output_size); }
std::tuple<Tensor, Tensor> Tensor::adaptive_max_pool2d(IntOrList output_size) const& { return tensord::adaptive_max_pool2d(*this, output_size); }
std::tuple<Tensor, Tensor> Tensor::adaptive_max_pool3d(IntOrList output_size) const& { return tensord::adaptive_max_pool3d(*this, output_size); }
Tensor Tensor::add(const Scalar& other) const& { return tensord::add(*this, other); }
Tensor Tensor::add(const Scalar& other, const Scalar& alpha) const& { return tensord::add(*this, other, alpha); }
Tensor Tensor::add(const Tensor& other) const& { return tensord::add(*this, other); }
Tensor Tensor::add(const Tensor& other, const keyword::AlphaArgs& keywords) const& { return tensord::add(*this, other, keywords); }
Tensor Tensor::add_(const Scalar& other) const& { return tensord::add_(*this, other); }
Tensor Tensor::add_(const Scalar& other, const Scalar& alpha) const& { return tensord::add_(*this, other, alpha); }
Tensor Tensor::add_(const Tensor& other) const& { return tensord::add_(*this, other); }
Tensor Tensor::add_(const Tensor& other, const keyword::AlphaArgs& keywords) const& { return tensord::add_(*this, other, keywords); }
Tensor Tensor::addbmm(const Tensor& batch1, const Tensor& batch2) const& { return tensord::addbmm(*this, batch1, batch2); }
Tensor Tensor::addbmm(const Tensor& batch1, const Tensor& batch2, const keyword::BetaAlphaArgs& keywords) const& { return tensord::addbmm(*this, batch1, batch2, keywords); }
Tensor Tensor::addbmm_(const Tensor& batch1, const Tensor& batch2) const& { return tensord::addbmm_(*this, batch1, batch2); }
Tensor Tensor::addbmm_(const Tensor& batch1, const Tensor& batch2, const keyword::BetaAlphaArgs& keywords) const& { return tensord::addbmm_(*this, batch1, batch2, keywords); }
Tensor Tensor::addcdiv(const Tensor& tensor1, const Tensor& tensor2) const& { return tensord::addcdiv(*this, tensor1, tensor2); }
Tensor Tensor::addcdiv(const Tensor& tensor1, const Tensor& tensor2, const keyword::ValueArgs& keywords) const& { return tensord::addcdiv(*this, tensor1, tensor2, keywords); }
Tensor Tensor::addcdiv_(const Tensor& tensor1, const Tensor& tensor2) const& { return tensord::addcdiv_(*this, tensor1, tensor2); }
Tensor Tensor::addcdiv_(const Tensor& tensor1, const Tensor& tensor2, const keyword::ValueArgs& keywords) const& { return tensord::addcdiv_(*this, tensor1, tensor2, keywords); }
Tensor Tensor::addcmul(const Tensor& tensor1, const Tensor& tensor2) const& { return tensord::addcmul(*this, tensor1, tensor2); }
Tensor Tensor::addcmul(const Tensor& tensor1, const Tensor& tensor2, const keyword::ValueArgs& keywords) const& { return tensord::addcmul(*this, tensor1, tensor2, keywords); }
Tensor Tensor::addcmul_(const Tensor& tensor1, const Tensor& tensor2) const& { return tensord::addcmul_(*this, tensor1, tensor2); }
Tensor Tensor::addcmul_(const Tensor& tensor1, const Tensor& tensor2, const keyword::ValueArgs& keywords) const& { return tensord::addcmul_(*this, tensor1, tensor2, keywords); }
Tensor Tensor::addmm(const Tensor& mat1, const Tensor& mat2) const& { return tensord::addmm(*this, mat1, mat2); }
Tensor Tensor::addmm(const Tensor& mat1, const Tensor& mat2, const keyword::BetaAlphaArgs& keywords) const& { return tensord::addmm(*this, mat1, mat2, keywords); }
Tensor Tensor::addmm_(const Tensor& mat1, const Tensor& mat2) const& { return tensord::addmm_(*this, mat1, mat2); }
Tensor Tensor::addmm_(const Tensor& mat1, const Tensor& mat2, const keyword::BetaAlphaArgs& keywords) const& { return tensord::addmm_(*this, mat1, mat2, keywords); }
Tensor Tensor::addmv(const Tensor& mat, const Tensor& vec) const& { return tensord::addmv(*this, mat, vec); }
Tensor Tensor::addmv(const Tensor& mat, const Tensor& vec, const keyword::BetaAlphaArgs& keywords) const& { return tensord::addmv(*this, mat, vec, keywords); }
Tensor Tensor::addmv_(const Tensor& mat, const Tensor& vec) const& { return tensord::addmv_(*this, mat, vec); }
Tensor Tensor::addmv_(const Tensor& mat, const Tensor& vec, const keyword::BetaAlphaArgs& keywords) const& { return tensord::addmv_(*this, mat, vec, keywords); }
Tensor Tensor::addr(const Tensor& vec1, const Tensor& vec2) const& { return tensord::addr(*this, vec1, vec2); }
Tensor Tensor::addr(const Tensor& vec1, const Tensor& vec2, const keyword::BetaAlphaArgs& keywords) const& { return tensord::addr(*this, vec1, vec2, keywords); }
Tensor Tensor::addr_(const Tensor& vec1, const Tensor& vec2) const& { return tensord::addr_(*this, vec1, vec2); }
Tensor Tensor::addr_(const Tensor& vec1, const Tensor& vec2, const keyword::BetaAlphaArgs& keywords) const& { return tensord::addr_(*this, vec1, vec2, keywords); }
Tensor Tensor::alias() const& { return tensord::alias(*this); }
Tensor Tensor::alias_copy() const& { return tensord::alias_copy(*this); }
Tensor Tensor::all() const& { return tensord::all(*this); }
Tensor Tensor::all(OptionalIntList dim) const& { return tensord::all(*this, dim); }
Tensor Tensor::all(OptionalIntList dim, Bool keepdim) const& { return tensord::all(*this, dim, keepdim); }
Tensor Tensor::all(Int dim) const& { return tensord::all(*this, dim); }
Tensor Tensor::all(Int dim, Bool keepdim) const& { return tensord::all(*this, dim, keepdim); }
bool Tensor::allclose(const Tensor& other) const& { return tensord::allclose(*this, other); }
bool Tensor::allclose(const Tensor& other, Float rtol) const& { return tensord::allclose(*this, other, rtol); }
bool Tensor::allclose(const Tensor& other, Float rtol, Float atol) const& { return tensord::allclose(*this, other, rtol, atol); }
bool Tensor::allclose(const Tensor& other, Float rtol, Float atol, Bool equal_nan) const& { return tensord::allclose(*this, other, rtol, atol, equal_nan); }
Tensor Tensor::alpha_dropout_(Float p, Bool train) const& { return tensord::alpha_dropout_(*this, p, train); }
Tensor Tensor::amax() const& { return tensord::amax(*this); }
Tensor Tensor::amax(IntOrList dim) const& { return tensord::amax(*this, dim); }
Tensor Tensor::amax(IntOrList dim, Bool keepdim) const& { return tensord::amax(*this, dim, keepdim); }
Tensor Tensor::amin() const& { return tensord::amin(*this); }
Tensor Tensor::amin(IntOrList dim) const& { return tensord::amin(*this, dim); }
Tensor Tensor::amin(IntOrList dim, Bool keepdim) const& { return tensord::amin(*this, dim, keepdim); }
std::tuple<Tensor, Tensor> Tensor::aminmax() const& { return tensord::aminmax(*this); }
std::tuple<Tensor, Tensor> Tensor::aminmax(const keyword::DimKeepdimArgs& keywords) const& { return tensord::aminmax(*this, keywords); }
Tensor Tensor::angle() const& { return tensord::angle(*this); }
Tensor Tensor::any() const& { return tensord::any(*this); }
Tensor Tensor::any(OptionalIntList dim) const& { return tensord::any(*this, dim); }
Tensor Tensor::any(OptionalIntList dim, Bool keepdim) const& { return tensord::any(*this, dim, keepdim); }
Tensor Tensor::any(Int dim) const& { return tensord::any(*this, dim); }
Tensor Tensor::any(Int dim, Bool keepdim) const& { return tensord::any(*this, dim, keepdim); }
Tensor Tensor::argmax() const& { return tensord::argmax(*this); }
Tensor Tensor::argmax(std::optional<Int> dim) const& { return tensord::argmax(*this, dim); }
Tensor Tensor::argmax(std::optional<Int> dim, Bool keepdim) const& { return tensord::argmax(*this, dim, keepdim); }
Tensor Tensor::argmin() const& { return tensord::argmin(*this); }
Tensor Tensor::argmin(std::optional<Int> dim) const& { return tensord::argmin(*this, dim); }
Tensor Tensor::argmin(std::optional<Int> dim, Bool keepdim) const& { return tensord::argmin(*this, dim, keepdim); }
Tensor Tensor::argsort() const& { return tensord::argsort(*this); }
Tensor Tensor::argsort(Int dim) const& { return tensord::argsort(*this, dim); }
Tensor Tensor::argsort(Int dim, Bool descending) const& { return tensord::argsort(*this, dim, descending); }
Tensor Tensor::argsort(const keyword::StableDimDescendingArgs& keywords) const& { return tensord::argsort(*this, keywords); }
Tensor Tensor::argwhere() const& { return tensord::argwhere(*this); }
Tensor Tensor::as_strided(IntList size, IntList stride) const& { return tensord::as_strided(*this, size, stride); }
Tensor Tensor::as_strided(IntList size, IntList stride, std::optional<Int> storage_offset) const& { return tensord::as_strided(*this, size, stride, storage_offset); }
Tensor Tensor::as_strided_copy(IntList size, IntList stride) const& { return tensord::as_strided_copy(*this, size, stride); }
Tensor Tensor::as_strided_copy(IntList size, IntList stride, std::optional<Int> storage_offset) const& { return tensord::as_strided_copy(*this, size, stride, storage_offset); }
Tensor Tensor::as_strided_scatter(const Tensor& src, IntList size, IntList stride) const& { return tensord::as_strided_scatter(*this, src, size, stride); }
Tensor Tensor::as_strided_scatter(const Tensor& src, IntList size, IntList stride, std::optional<Int> storage_offset) const& { return tensord::as_strided_scatter(*this, src, size, stride, storage_offset); }
Tensor Tensor::asin() const& { return tensord::asin(*this); }
Tensor Tensor::asin_() const& { return tensord::asin_(*this); }
Tensor Tensor::asinh() const& { return tensord::asinh(*this); }
Tensor Tensor::asinh_() const& { return tensord::asinh_(*this); }
Tensor Tensor::atan() const& { return tensord::atan(*this); }
Tensor Tensor::atan2(const Tensor& other) const& { return tensord::atan2(*this, other); }
Tensor Tensor::atan2_(const Tensor& other) const& { return tensord::atan2_(*this, other); }
Tensor Tensor::atan_() const& { return tensord::atan_(*this); }
Tensor Tensor::atanh() const& { return tensord::atanh(*this); }
Tensor Tensor::atanh_() const& { return tensord::atanh_(*this); }
Tensor Tensor::atleast_1d() const& { return tensord::atleast_1d(*this); }
Tensor Tensor::atleast_2d() const& { return tensord::atleast_2d(*this); }
Tensor Tensor::atleast_3d() const& { return tensord::atleast_3d(*this); }
Tensor Tensor::avg_pool1d(IntOrList kernel_size) const& { return tensord::avg_pool1d(*this, kernel_size); }
Tensor Tensor::avg_pool1d(IntOrList kernel_size, IntOrList stride) const& { return tensord::avg_pool1d(*this, kernel_size, stride); }
Tensor Tensor::avg_pool1d(IntOrList kernel_size, IntOrList stride, IntOrList padding) const& { return tensord::avg_pool1d(*this, kernel_size, stride, padding); }
Tensor Tensor::avg_pool1d(IntOrList kernel_size, IntOrList stride, IntOrList padding, Bool ceil_mode) const& { return tensord::avg_pool1d(*this, kernel_size, stride, padding, ceil_mode); }
Tensor Tensor::avg_pool1d(IntOrList kernel_size, IntOrList stride, IntOrList padding, Bool ceil_mode, Bool count_include_pad) const& { return tensord::avg_pool1d(*this, kernel_size, stride, padding, ceil_mode, count_include_pad); }
Tensor Tensor::avg_pool2d(IntOrList kernel_size) const& { return tensord::avg_pool2d(*this, kernel_size); }
Tensor Tensor::avg_pool2d(IntOrList kernel_size, IntOrList stride) const& { return tensord::avg_pool2d(*this, kernel_size, stride); }
Tensor Tensor::avg_pool2d(IntOrList kernel_size, IntOrList stride, IntOrList padding) const& { return tensord::avg_pool2d(*this, kernel_size, stride, padding); }
Tensor Tensor::avg_pool2d(IntOrList kernel_size, IntOrList stride, IntOrList padding, Bool ceil_mode) const& { return tensord::avg_pool2d(*this, kernel_size, stride, padding, ceil_mode); }
Tensor Tensor::avg_pool2d(IntOrList kernel_size, IntOrList stride, IntOrList padding, Bool ceil_mode, Bool count_include_pad) const& { return tensord::avg_pool2d(*this, kernel_size, stride, padding, ceil_mode, count_include_pad); }
Tensor Tensor::avg_pool2d(IntOrList kernel_size, IntOrList stride, IntOrList padding, Bool ceil_mode, Bool count_include_pad, std::optional<Int> divisor_override) const& { return tensord::avg_pool2d(*this, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override); }
Tensor Tensor::avg_pool3d(IntOrList kernel_size) const& { return tensord::avg_pool3d(*this, kernel_size); }
Tensor Tensor::avg_pool3d(IntOrList kernel_size, IntOrList stride) const& { return tensord::avg_pool3d(*this, kernel_size, stride); }
Tensor Tensor::avg_pool3d(IntOrList kernel_size, IntOrList stride, IntOrList padding) const& { return tensord::avg_pool3d(*this, kernel_size, stride, padding); }
Tensor Tensor::avg_pool3d(IntOrList kernel_size, IntOrList stride, IntOrList padding, Bool ceil_mode) const& { return tensord::avg_pool3d(*this, kernel_size, stride, padding, ceil_mode); }
Tensor Tensor::avg_pool3d(IntOrList kernel_size, IntOrList stride, IntOrList padding, Bool ceil_mode, Bool count_include_pad) const& { return tensord::avg_pool3d(*this, kernel_size, stride, padding, ceil_mode, count_include_pad); }
Tensor Tensor::avg_pool3d(IntOrList kernel_size, IntOrList stride, IntOrList padding, Bool ceil_mode, Bool count_include_pad, std::optional<Int> divisor_override) const& { return tensord::avg_pool3d(*this, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override); }
Tensor Tensor::baddbmm(const Tensor& batch1, const Tensor& batch2) const& { return tensord::baddbmm(*this, batch1, batch2); }
Tensor Tensor::baddbmm(const Tensor& batch1, const Tensor& batch2, const keyword::BetaAlphaArgs& keywords) const& { return tensord::baddbmm(*this, batch1, batch2, keywords); }
Tensor Tensor::baddbmm_(const Tensor& batch1, const Tensor& batch2) const& { return tensord::baddbmm_(*this, batch1, batch2); }
Tensor Tensor::baddbmm_(const Tensor& batch1, const Tensor& batch2, const keyword::BetaAlphaArgs& keywords) const& { return tensord::baddbmm_(*this, batch1, batch2, keywords); }
Tensor Tensor::bernoulli() const& { return tensord::bernoulli(*this); }
Tensor Tensor::bernoulli(Float p) const& { return tensord::bernoulli(*this, p); }
Tensor Tensor::bernoulli_() const& { return tensord::bernoulli_(*this); }
Tensor Tensor::bernoulli_(Float p) const& { return tensord::bernoulli_(*this, p); }
Tensor Tensor::bernoulli_(const Tensor& p) const& { return tensord::bernoulli_(*this, p); }
Tensor Tensor::binary_cross_entropy(const Tensor& target) const& { return tensord::binary_cross_entropy(*this, target); }
Tensor Tensor::binary_cross_entropy(const Tensor& target, const std::optional<Tensor>& weight) const& { return tensord::binary_cross_entropy(*this, target, weight); }
Tensor Tensor::binary_cross_entropy(const Tensor& target, const std::optional<Tensor>& weight, Int reduction) const& { return tensord::binary_cross_entropy(*this, target, weight, reduction); }
Tensor Tensor::binary_cross_entropy_with_logits(const Tensor& target) const& { return tensord::binary_cross_entropy_with_logits(*this, target); }
Tensor Tensor::binary_cross_entropy_with_logits(const Tensor& target, const std::optional<Tensor>& weight) const& { return tensord::binary_cross_entropy_with_logits(*this, target, weight); }
Tensor Tensor::binary_cross_entropy_with_logits(const Tensor& target, const std::optional<Tensor>& weight, const std::optional<Tensor>& pos_weight) const& { return tensord::binary_cross_entropy_with_logits(*this, target, weight, pos_weight); }
Tensor Tensor::binary_cross_entropy_with_logits(const Tensor& target, const std::optional<Tensor>& weight, const std::optional<Tensor>& pos_weight, Int reduction) const& { return tensord::binary_cross_entropy_with_logits(*this, target, weight, pos_weight, reduction); }
Tensor Tensor::bincount() const& { return tensord::bincount(*this); }
Tensor Tensor::bincount(const std::optional<Tensor>& weights) const& { return tensord::bincount(*this, weights); }
Tensor Tensor::bincount(const std::optional<Tensor>& weights, Int minlength) const& { return tensord::bincount(*this, weights, minlength); }
Tensor Tensor::bitwise_and(const Scalar& other) const& { return tensord::bitwise_and(*this, other); }
Tensor Tensor::bitwise_and(const Tensor& other) const& { return tensord::bitwise_and(*this, other); }
Tensor Tensor::bitwise_and_(const Scalar& other) const& { return tensord::bitwise_and_(*this, other); }
Tensor Tensor::bitwise_and_(const Tensor& other) const& { return tensord::bitwise_and_(*this, other); }
Tensor Tensor::bitwise_left_shift(const Tensor& other) const& { return tensord::bitwise_left_shift(*this, other); }
Tensor Tensor::bitwise_left_shift(const Scalar& other) const& { return tensord::bitwise_left_shift(*this, other); }
Tensor Tensor::bitwise_left_shift_(const Tensor& other) const& { return tensord::bitwise_left_shift_(*this, other); }
Tensor Tensor::bitwise_left_shift_(const Scalar& other) const& { return tensord::bitwise_left_shift_(*this, other); }
Tensor Tensor::bitwise_not() const& { return tensord::bitwise_not(*this); }
Tensor Tensor::bitwise_not_() const& { return tensord::bitwise_not_(*this); }
Tensor Tensor::bitwise_or(const Scalar& other) const& { return tensord::bitwise_or(*this, other); }
Tensor Tensor::bitwise_or(const Tensor& other) const& { return tensord::bitwise_or(*this, other); }
Tensor Tensor::bitwise_or_(const Scalar& other) const& { return tensord::bitwise_or_(*this, other); }
Tensor Tensor::bitwise_or_(const Tensor& other) const& { return tensord::bitwise_or_(*this, other); }
Tensor Tensor::bitwise_right_shift(const Tensor& other) const& { return tensord::bitwise_right_shift(*this, other); }
Tensor Tensor::bitwise_right_shift(const Scalar& other) const& { return tensord::bitwise_right_shift(*this, other); }
Tensor Tensor::bitwise_right_shift_(const Tensor& other) const& { return tensord::bitwise_right_shift_(*this, other); }
Tensor Tensor::bitwise_right_shift_(const Scalar& other) const& { return tensord::bitwise_right_shift_(*this, other); }
Tensor Tensor::bitwise_xor(const Scalar& other) const& { return tensord::bitwise_xor(*this, other); }
Tensor Tensor::bitwise_xor(const Tensor& other) const& { return tensord::bitwise_xor(*this, other); }
Tensor Tensor::bitwise_xor_(const Scalar& other) const& { return tensord::bitwise_xor_(*this, other); }
Tensor Tensor::bitwise_xor_(const Tensor& other) const& { return tensord::bitwise_xor_(*this, other); }
Tensor Tensor::bmm(const Tensor& mat2) const& { return tensord::bmm(*this, mat2); }
Tensor Tensor::broadcast_to(IntList size) const& { return tensord::broadcast_to(*this, size); }
Tensor Tensor::bucketize(const Tensor& boundaries) const& { return tensord::bucketize(*this, boundaries); }
Tensor Tensor::bucketize(const Tensor& boundaries, const keyword::OutInt32RightArgs& keywords) const& { return tensord::bucketize(*this, boundaries, keywords); }
Tensor Tensor::cauchy() const& { return tensord::cauchy(*this); }
Tensor Tensor::cauchy(Float median) const& { return tensord::cauchy(*this, median); }
Tensor Tensor::cauchy(Float median, Float sigma) const& { return tensord::cauchy(*this, median, sigma); }
Tensor Tensor::cauchy_() const& { return tensord::cauchy_(*this); }
Tensor Tensor::cauchy_(Float median) const& { return tensord::cauchy_(*this, median); }
Tensor Tensor::cauchy_(Float median, Float sigma) const& { return tensord::cauchy_(*this, median, sigma); }
Tensor Tensor::ccol_indices() const& { return tensord::ccol_indices(*this); }
Tensor Tensor::ceil() const& { return tensord::ceil(*this); }
Tensor Tensor::ceil_() const& { return tensord::ceil_(*this); }
Tensor Tensor::celu() const& { return tensord::celu(*this); }
Tensor Tensor::celu(const Scalar& alpha) const& { return tensord::celu(*this, alpha); }
Tensor Tensor::celu_() const& { return tensord::celu_(*this); }
Tensor Tensor::celu_(const Scalar& alpha) const& { return tensord::celu_(*this, alpha); }
Tensor Tensor::channel_shuffle(Int groups) const& { return tensord::channel_shuffle(*this, groups); }
Tensor Tensor::cholesky() const& { return tensord::cholesky(*this); }
Tensor Tensor::cholesky(Bool upper) const& { return tensord::cholesky(*this, upper); }
Tensor Tensor::cholesky_inverse() const& { return tensord::cholesky_inverse(*this); }
Tensor Tensor::cholesky_inverse(Bool upper) const& { return tensord::cholesky_inverse(*this, upper); }
Tensor Tensor::cholesky_solve(const Tensor& input2) const& { return tensord::cholesky_solve(*this, input2); }
Tensor Tensor::cholesky_solve(const Tensor& input2, Bool upper) const& { return tensord::cholesky_solve(*this, input2, upper); }
std::vector<Tensor> Tensor::chunk(Int chunks) const& { return tensord::chunk(*this, chunks); }
std::vector<Tensor> Tensor::chunk(Int chunks, Int dim) const& { return tensord::chunk(*this, chunks, dim); }
Tensor Tensor::clamp() const& { return tensord::clamp(*this); }
Tensor Tensor::clamp(const std::optional<Scalar>& min) const& { return tensord::clamp(*this, min); }
Tensor Tensor::clamp(const std::optional<Scalar>& min, const std::optional<Scalar>& max) const& { return tensord::clamp(*this, min, max); }
Tensor Tensor::clamp(const std::optional<Tensor>& min) const& { return tensord::clamp(*this, min); }
Tensor Tensor::clamp(const std::optional<Tensor>& min, const std::optional<Tensor>& max) const& { return tensord::clamp(*this, min, max); }
Tensor Tensor::clamp_() const& { return tensord::clamp_(*this); }
Tensor Tensor::clamp_(const std::optional<Scalar>& min) const& { return tensord::clamp_(*this, min); }
Tensor Tensor::clamp_(const std::optional<Scalar>& min, const std::optional<Scalar>& max) const& { return tensord::clamp_(*this, min, max); }
Tensor Tensor::clamp_(const std::optional<Tensor>& min) const& { return tensord::clamp_(*this, min); }
Tensor Tensor::clamp_(const std::optional<Tensor>& min, const std::optional<Tensor>& max) const& { return tensord::clamp_(*this, min, max); }
Tensor Tensor::clamp_max(const Scalar& max) const& { return tensord::clamp_max(*this, max); }
Tensor Tensor::clamp_max(const Tensor& max) const& { return tensord::clamp_max(*this, max); }
Tensor Tensor::clamp_max_(const Scalar& max) const& { return tensord::clamp_max_(*this, max); }
Tensor Tensor::clamp_max_(const Tensor& max) const& { return tensord::clamp_max_(*this, max); }
Tensor Tensor::clamp_min(const Scalar& min) const& { return tensord::clamp_min(*this, min); }
Tensor Tensor::clamp_min(const Tensor& min) const& { return tensord::clamp_min(*this, min); }
Tensor Tensor::clamp_min_(const Scalar& min) const& { return tensord::clamp_min_(*this, min); }
Tensor Tensor::clamp_min_(const Tensor& min) const& { return tensord::clamp_min_(*this, min); }
Tensor Tensor::clone() const& { return tensord::clone(*this); }
Tensor Tensor::clone(const keyword::MemoryFormatArgs& keywords) const& { return tensord::clone(*this, keywords); }
Tensor Tensor::coalesce() const& { return tensord::coalesce(*this); }
Tensor Tensor::col2im(IntOrList output_size, IntOrList kernel_size, IntOrList dilation, IntOrList padding, IntOrList stride) const& { return tensord::col2im(*this, output_size, kernel_size, dilation, padding, stride); }
Tensor Tensor::col_indices() const& { return tensord::col_indices(*this); }
Tensor Tensor::combinations() const& { return tensord::combinations(*this); }
Tensor Tensor::combinations(Int r) const& { return tensord::combinations(*this, r); }
Tensor Tensor::combinations(Int r, Bool with_replacement) const& { return tensord::combinations(*this, r, with_replacement); }
Tensor Tensor::conj() const& { return tensord::conj(*this); }
Tensor Tensor::conj_physical() const& { return tensord::conj_physical(*this); }
Tensor Tensor::constant_pad_nd(IntList pad) const& { return tensord::constant_pad_nd(*this, pad); }
Tensor Tensor::constant_pad_nd(IntList pad, const Scalar& value) const& { return tensord::constant_pad_nd(*this, pad, value); }
Tensor Tensor::contiguous() const& { return tensord::contiguous(*this); }
Tensor Tensor::contiguous(const keyword::MemoryFormatArgs2& keywords) const& { return tensord::contiguous(*this, keywords); }
Tensor Tensor::conv_tbc(const Tensor& weight, const Tensor& bias) const& { return tensord::conv_tbc(*this, weight, bias); }
Tensor Tensor::conv_tbc(const Tensor& weight, const Tensor& bias, Int pad) const& { return tensord::conv_tbc(*this, weight, bias, pad); }
Tensor Tensor::copy_(const Tensor& src) const& { return tensord::copy_(*this, src); }
Tensor Tensor::copy_(const Tensor& src, Bool non_blocking) const& { return tensord::copy_(*this, src, non_blocking); }
Tensor Tensor::copysign(const Scalar& other) const& { return tensord::copysign(*this, other); }
Tensor Tensor::copysign(const Tensor& other) const& { return tensord::copysign(*this, other); }
Tensor Tensor::copysign_(const Scalar& other) const& { return tensord::copysign_(*this, other); }
Tensor Tensor::copysign_(const Tensor& other) const& { return tensord::copysign_(*this, other); }
Tensor Tensor::corrcoef() const& { return tensord::corrcoef(*this); }
Tensor Tensor::cos() const& { return tensord::cos(*this); }
Tensor Tensor::cos_() const& { return tensord::cos_(*this); }
Tensor Tensor::cosh() const& { return tensord::cosh(*this); }
Tensor Tensor::cosh_() const& { return tensord::cosh_(*this); }
Tensor Tensor::count_nonzero() const& { return tensord::count_nonzero(*this); }
Tensor Tensor::count_nonzero(std::optional<Int> dim) const& { return tensord::count_nonzero(*this, dim); }
Tensor Tensor::count_nonzero(IntList dim) const& { return tensord::count_nonzero(*this, dim); }
Tensor Tensor::cov() const& { return tensord::cov(*this); }
Tensor Tensor::cov(const keyword::CorrectionFweightsAweightsArgs& keywords) const& { return tensord::cov(*this, keywords); }
Tensor Tensor::cpu() const& { return tensord::cpu(*this); }
Tensor Tensor::cross(const Tensor& other) const& { return tensord::cross(*this, other); }
Tensor Tensor::cross(const Tensor& other, std::optional<Int> dim) const& { return tensord::cross(*this, other, dim); }
Tensor Tensor::cross_entropy_loss(const Tensor& target) const& { return tensord::cross_entropy_loss(*this, target); }
Tensor Tensor::cross_entropy_loss(const Tensor& target, const std::optional<Tensor>& weight) const& { return tensord::cross_entropy_loss(*this, target, weight); }
Tensor Tensor::cross_entropy_loss(const Tensor& target, const std::optional<Tensor>& weight, Int reduction) const& { return tensord::cross_entropy_loss(*this, target, weight, reduction); }
Tensor Tensor::cross_entropy_loss(const Tensor& target, const std::optional<Tensor>& weight, Int reduction, Int ignore_index) const& { return tensord::cross_entropy_loss(*this, target, weight, reduction, ignore_index); }
Tensor Tensor::cross_entropy_loss(const Tensor& target, const std::optional<Tensor>& weight, Int reduction, Int ignore_index, Float label_smoothing) const& { return tensord::cross_entropy_loss(*this, target, weight, reduction, ignore_index, label_smoothing); }
Tensor Tensor::crow_indices() const& { return tensord::crow_indices(*this); }
std::tuple<Tensor, Tensor> Tensor::cummax(Int dim) const& { return tensord::cummax(*this, dim); }
std::tuple<Tensor, Tensor> Tensor::cummin(Int dim) const& { return tensord::cummin(*this, dim); }
Tensor Tensor::cumprod(Int dim) const& { return tensord::cumprod(*this, dim); }
Tensor Tensor::cumprod(Int dim, const keyword::DtypeArgs& keywords) const& { return tensord::cumprod(*this, dim, keywords); }
Tensor Tensor::cumprod_(Int dim) const& { return tensord::cumprod_(*this, dim); }
Tensor Tensor::cumprod_(Int dim, const keyword::DtypeArgs& keywords) const& { return tensord::cumprod_(*this, dim, keywords); }
Tensor Tensor::cumsum(Int dim) const& { return tensord::cumsum(*this, dim); }
Tensor Tensor::cumsum(Int dim, const keyword::DtypeArgs& keywords) const& { return tensord::cumsum(*this, dim, keywords); }
Tensor Tensor::cumsum_(Int dim) const& { return tensord::cumsum_(*this, dim); }
Tensor Tensor::cumsum_(Int dim, const keyword::DtypeArgs& keywords) const& { return tensord::cumsum_(*this, dim, keywords); }
Tensor Tensor::deg2rad() const& { return tensord::deg2rad(*this); }
Tensor Tensor::deg2rad_() const& { return tensord::deg2rad_(*this); }
int64_t Tensor::dense_dim() const& { return tensord::dense_dim(*this); }
Tensor Tensor::dequantize() const& { return tensord::dequantize(*this); }
Tensor Tensor::det() const& { return tensord::det(*this); }
Tensor Tensor::detach() const& { return tensord::detach(*this); }
Tensor Tensor::detach_() const& { return tensord::detach_(*this); }
Tensor Tensor::diag() const& { return tensord::diag(*this); }
Tensor Tensor::diag(Int diagonal) const& { return tensord::diag(*this, diagonal); }
Tensor Tensor::diag_embed() const& { return tensord::diag_embed(*this); }
Tensor Tensor::diag_embed(Int offset) const& { return tensord::diag_embed(*this, offset); }
Tensor Tensor::diag_embed(Int offset, Int dim1) const& { return tensord::diag_embed(*this, offset, dim1); }
Tensor Tensor::diag_embed(Int offset, Int dim1, Int dim2) const& { return tensord::diag_embed(*this, offset, dim1, dim2); }
Tensor Tensor::diagflat() const& { return tensord::diagflat(*this); }
Tensor Tensor::diagflat(Int offset) const& { return tensord::diagflat(*this, offset); }
Tensor Tensor::diagonal() const& { return tensord::diagonal(*this); }
Tensor Tensor::diagonal(Int offset) const& { return tensord::diagonal(*this, offset); }
Tensor Tensor::diagonal(Int offset, Int dim1) const& { return tensord::diagonal(*this, offset, dim1); }
Tensor Tensor::diagonal(Int offset, Int dim1, Int dim2) const& { return tensord::diagonal(*this, offset, dim1, dim2); }
Tensor Tensor::diagonal_copy() const& { return tensord::diagonal_copy(*this); }
Tensor Tensor::diagonal_copy(Int offset) const& { return tensord::diagonal_copy(*this, offset); }
Tensor Tensor::diagonal_copy(Int offset, Int dim1) const& { return tensord::diagonal_copy(*this, offset, dim1); }
Tensor Tensor::diagonal_copy(Int offset, Int dim1, Int dim2) const& { return tensord::diagonal_copy(*this, offset, dim1, dim2); }
Tensor Tensor::diagonal_scatter(const Tensor& src) const& { return tensord::diagonal_scatter(*this, src); }
Tensor Tensor::diagonal_scatter(const Tensor& src, Int offset) const& { return tensord::diagonal_scatter(*this, src, offset); }
Tensor Tensor::diagonal_scatter(const Tensor& src, Int offset, Int dim1) const& { return tensord::diagonal_scatter(*this, src, offset, dim1); }
Tensor Tensor::diagonal_scatter(const Tensor& src, Int offset, Int dim1, Int dim2) const& { return tensord::diagonal_scatter(*this, src, offset, dim1, dim2); }
Tensor Tensor::diff() const& { return tensord::diff(*this); }
Tensor Tensor::diff(Int n) const& { return tensord::diff(*this, n); }
Tensor Tensor::diff(Int n, Int dim) const& { return tensord::diff(*this, n, dim); }
Tensor Tensor::diff(Int n, Int dim, const std::optional<Tensor>& prepend) const& { return tensord::diff(*this, n, dim, prepend); }
Tensor Tensor::diff(Int n, Int dim, const std::optional<Tensor>& prepend, const std::optional<Tensor>& append) const& { return tensord::diff(*this, n, dim, prepend, append); }
Tensor Tensor::digamma() const& { return tensord::digamma(*this); }
Tensor Tensor::digamma_() const& { return tensord::digamma_(*this); }
int64_t Tensor::dim() const& { return tensord::dim(*this); }
Tensor Tensor::dist(const Tensor& other) const& { return tensord::dist(*this, other); }
Tensor Tensor::dist(const Tensor& other, const Scalar& p) const& { return tensord::dist(*this, other, p); }
Tensor Tensor::div(const Scalar& other) const& { return tensord::div(*this, other); }
Tensor Tensor::div(const Tensor& other) const& { return tensord::div(*this, other); }
Tensor Tensor::div(const Scalar& other, const keyword::RoundingModeArgs& keywords) const& { return tensord::div(*this, other, keywords); }
Tensor Tensor::div(const Tensor& other, const keyword::RoundingModeArgs& keywords) const& { return tensord::div(*this, other, keywords); }
Tensor Tensor::div_(const Scalar& other) const& { return tensord::div_(*this, other); }
Tensor Tensor::div_(const Tensor& other) const& { return tensord::div_(*this, other); }
Tensor Tensor::div_(const Scalar& other, const keyword::RoundingModeArgs& keywords) const& { return tensord::div_(*this, other, keywords); }
Tensor Tensor::div_(const Tensor& other, const keyword::RoundingModeArgs& keywords) const& { return tensord::div_(*this, other, keywords); }
Tensor Tensor::dot(const Tensor& tensor) const& { return tensord::dot(*this, tensor); }
Tensor Tensor::dropout_(Float p, Bool train) const& { return tensord::dropout_(*this, p, train); }
std::vector<Tensor> Tensor::dsplit(IntList indices) const& { return tensord::dsplit(*this, indices); }
std::vector<Tensor> Tensor::dsplit(Int sections) const& { return tensord::dsplit(*this, sections); }
int64_t Tensor::element_size() const& { return tensord::element_size(*this); }
Tensor Tensor::elu() const& { return tensord::elu(*this); }
Tensor Tensor::elu(const Scalar& alpha) const& { return tensord::elu(*this, alpha); }
Tensor Tensor::elu(const Scalar& alpha, const Scalar& scale) const& { return tensord::elu(*this, alpha, scale); }
Tensor Tensor::elu(const Scalar& alpha, const Scalar& scale, const Scalar& input_scale) const& { return tensord::elu(*this, alpha, scale, input_scale); }
Tensor Tensor::elu_() const& { return tensord::elu_(*this); }
Tensor Tensor::elu_(const Scalar& alpha) const& { return tensord::elu_(*this, alpha); }
Tensor Tensor::elu_(const Scalar& alpha, const Scalar& scale) const& { return tensord::elu_(*this, alpha, scale); }
Tensor Tensor::elu_(const Scalar& alpha, const Scalar& scale, const Scalar& input_scale) const& { return tensord::elu_(*this, alpha, scale, input_scale); }
Tensor Tensor::embedding_renorm_(const Tensor& indices, Float max_norm, Float norm_type) const& { return tensord::embedding_renorm_(*this, indices, max_norm, norm_type); }
Tensor Tensor::empty_like() const& { return tensord::empty_like(*this); }
Tensor Tensor::empty_like(const keyword::DtypeDeviceMemoryFormatArgs& keywords) const& { return tensord::empty_like(*this, keywords); }
Tensor Tensor::eq(const Scalar& other) const& { return tensord::eq(*this, other); }
Tensor Tensor::eq(const Tensor& other) const& { return tensord::eq(*this, other); }
Tensor Tensor::eq_(const Scalar& other) const& { return tensord::eq_(*this, other); }
Tensor Tensor::eq_(const Tensor& other) const& { return tensord::eq_(*this, other); }
bool Tensor::equal(const Tensor& other) const& { return tensord::equal(*this, other); }
Tensor Tensor::erf() const& { return tensord::erf(*this); }
Tensor Tensor::erf_() const& { return tensord::erf_(*this); }
Tensor Tensor::erfc() const& { return tensord::erfc(*this); }
Tensor Tensor::erfc_() const& { return tensord::erfc_(*this); }
Tensor Tensor::erfinv() const& { return tensord::erfinv(*this); }
Tensor Tensor::erfinv_() const& { return tensord::erfinv_(*this); }
Tensor Tensor::exp() const& { return tensord::exp(*this); }
Tensor Tensor::exp2() const& { return tensord::exp2(*this); }
Tensor Tensor::exp2_() const& { return tensord::exp2_(*this); }
Tensor Tensor::exp_() const& { return tensord::exp_(*this); }
Tensor Tensor::expand(IntList size) const& { return tensord::expand(*this, size); }
Tensor Tensor::expand(IntList size, const keyword::ImplicitArgs& keywords) const& { return tensord::expand(*this, size, keywords); }
Tensor Tensor::expand_as(const Tensor& other) const& { return tensord::expand_as(*this, other); }
Tensor Tensor::expand_copy(IntList size) const& { return tensord::expand_copy(*this, size); }
Tensor Tensor::expand_copy(IntList size, const keyword::ImplicitArgs& keywords) const& { return tensord::expand_copy(*this, size, keywords); }

}  // namespace tensord
