// Printed by scripts/cpp_operators.py from the registry; not to be edited.
// clang-format off
#include "tensord/ops.h"

namespace tensord {

Tensor Tensor::expm1() const& { return tensord::expm1(*this); }
Tensor Tensor::expm1_() const& { return tensord::expm1_(*this); }
Tensor Tensor::exponential() const& { return tensord::exponential(*this); }
Tensor Tensor::exponential(Float lambd) const& { return tensord::exponential(*this, lambd); }
Tensor Tensor::exponential_() const& { return tensord::exponential_(*this); }
Tensor Tensor::exponential_(Float lambd) const& { return tensord::exponential_(*this, lambd); }
Tensor Tensor::fake_quantize_per_channel_affine(const Tensor& scale, const Tensor& zero_point, Int axis, Int quant_min, Int quant_max) const& { return tensord::fake_quantize_per_channel_affine(*this, scale, zero_point, axis, quant_min, quant_max); }
std::tuple<Tensor, Tensor> Tensor::fake_quantize_per_channel_affine_cachemask(const Tensor& scale, const Tensor& zero_point, Int axis, Int quant_min, Int quant_max) const& { return tensord::fake_quantize_per_channel_affine_cachemask(*this, scale, zero_point, axis, quant_min, quant_max); }
Tensor Tensor::fake_quantize_per_tensor_affine(Float scale, Int zero_point, Int quant_min, Int quant_max) const& { return tensord::fake_quantize_per_tensor_affine(*this, scale, zero_point, quant_min, quant_max); }
Tensor Tensor::fake_quantize_per_tensor_affine(const Tensor& scale, const Tensor& zero_point, Int quant_min, Int quant_max) const& { return tensord::fake_quantize_per_tensor_affine(*this, scale, zero_point, quant_min, quant_max); }
std::tuple<Tensor, Tensor> Tensor::fake_quantize_per_tensor_affine_cachemask(Float scale, Int zero_point, Int quant_min, Int quant_max) const& { return tensord::fake_quantize_per_tensor_affine_cachemask(*this, scale, zero_point, quant_min, quant_max); }
Tensor Tensor::feature_alpha_dropout_(Float p, Bool train) const& { return tensord::feature_alpha_dropout_(*this, p, train); }
Tensor Tensor::feature_dropout_(Float p, Bool train) const& { return tensord::feature_dropout_(*this, p, train); }
Tensor Tensor::fft_fft() const& { return tensord::fft_fft(*this); }
Tensor Tensor::fft_fft(std::optional<Int> n) const& { return tensord::fft_fft(*this, n); }
Tensor Tensor::fft_fft(std::optional<Int> n, Int dim) const& { return tensord::fft_fft(*this, n, dim); }
Tensor Tensor::fft_fft(std::optional<Int> n, Int dim, std::optional<std::string_view> norm) const& { return tensord::fft_fft(*this, n, dim, norm); }
Tensor Tensor::fft_fft2() const& { return tensord::fft_fft2(*this); }
Tensor Tensor::fft_fft2(OptionalIntOrList s) const& { return tensord::fft_fft2(*this, s); }
Tensor Tensor::fft_fft2(OptionalIntOrList s, IntOrList dim) const& { return tensord::fft_fft2(*this, s, dim); }
Tensor Tensor::fft_fft2(OptionalIntOrList s, IntOrList dim, std::optional<std::string_view> norm) const& { return tensord::fft_fft2(*this, s, dim, norm); }
Tensor Tensor::fft_fftn() const& { return tensord::fft_fftn(*this); }
Tensor Tensor::fft_fftn(OptionalIntOrList s) const& { return tensord::fft_fftn(*this, s); }
Tensor Tensor::fft_fftn(OptionalIntOrList s, OptionalIntOrList dim) const& { return tensord::fft_fftn(*this, s, dim); }
Tensor Tensor::fft_fftn(OptionalIntOrList s, OptionalIntOrList dim, std::optional<std::string_view> norm) const& { return tensord::fft_fftn(*this, s, dim, norm); }
Tensor Tensor::fft_fftshift() const& { return tensord::fft_fftshift(*this); }
Tensor Tensor::fft_fftshift(OptionalIntOrList dim) const& { return tensord::fft_fftshift(*this, dim); }
Tensor Tensor::fft_hfft() const& { return tensord::fft_hfft(*this); }
Tensor Tensor::fft_hfft(std::optional<Int> n) const& { return tensord::fft_hfft(*this, n); }
Tensor Tensor::fft_hfft(std::optional<Int> n, Int dim) const& { return tensord::fft_hfft(*this, n, dim); }
Tensor Tensor::fft_hfft(std::optional<Int> n, Int dim, std::optional<std::string_view> norm) const& { return tensord::fft_hfft(*this, n, dim, norm); }
Tensor Tensor::fft_hfft2() const& { return tensord::fft_hfft2(*this); }
Tensor Tensor::fft_hfft2(OptionalIntOrList s) const& { return tensord::fft_hfft2(*this, s); }
Tensor Tensor::fft_hfft2(OptionalIntOrList s, IntOrList dim) const& { return tensord::fft_hfft2(*this, s, dim); }
Tensor Tensor::fft_hfft2(OptionalIntOrList s, IntOrList dim, std::optional<std::string_view> norm) const& { return tensord::fft_hfft2(*this, s, dim, norm); }
Tensor Tensor::fft_hfftn() const& { return tensord::fft_hfftn(*this); }
Tensor Tensor::fft_hfftn(OptionalIntOrList s) const& { return tensord::fft_hfftn(*this, s); }
Tensor Tensor::fft_hfftn(OptionalIntOrList s, OptionalIntOrList dim) const& { return tensord::fft_hfftn(*this, s, dim); }
Tensor Tensor::fft_hfftn(OptionalIntOrList s, OptionalIntOrList dim, std::optional<std::string_view> norm) const& { return tensord::fft_hfftn(*this, s, dim, norm); }
Tensor Tensor::fft_ifft() const& { return tensord::fft_ifft(*this); }
Tensor Tensor::fft_ifft(std::optional<Int> n) const& { return tensord::fft_ifft(*this, n); }
Tensor Tensor::fft_ifft(std::optional<Int> n, Int dim) const& { return tensord::fft_ifft(*this, n, dim); }
Tensor Tensor::fft_ifft(std::optional<Int> n, Int dim, std::optional<std::string_view> norm) const& { return tensord::fft_ifft(*this, n, dim, norm); }
Tensor Tensor::fft_ifft2() const& { return tensord::fft_ifft2(*this); }
Tensor Tensor::fft_ifft2(OptionalIntOrList s) const& { return tensord::fft_ifft2(*this, s); }
Tensor Tensor::fft_ifft2(OptionalIntOrList s, IntOrList dim) const& { return tensord::fft_ifft2(*this, s, dim); }
Tensor Tensor::fft_ifft2(OptionalIntOrList s, IntOrList dim, std::optional<std::string_view> norm) const& { return tensord::fft_ifft2(*this, s, dim, norm); }
Tensor Tensor::fft_ifftn() const& { return tensord::fft_ifftn(*this); }
Tensor Tensor::fft_ifftn(OptionalIntOrList s) const& { return tensord::fft_ifftn(*this, s); }
Tensor Tensor::fft_ifftn(OptionalIntOrList s, OptionalIntOrList dim) const& { return tensord::fft_ifftn(*this, s, dim); }
Tensor Tensor::fft_ifftn(OptionalIntOrList s, OptionalIntOrList dim, std::optional<std::string_view> norm) const& { return tensord::fft_ifftn(*this, s, dim, norm); }
Tensor Tensor::fft_ifftshift() const& { return tensord::fft_ifftshift(*this); }
Tensor Tensor::fft_ifftshift(OptionalIntOrList dim) const& { return tensord::fft_ifftshift(*this, dim); }
Tensor Tensor::fft_ihfft() const& { return tensord::fft_ihfft(*this); }
Tensor Tensor::fft_ihfft(std::optional<Int> n) const& { return tensord::fft_ihfft(*this, n); }
Tensor Tensor::fft_ihfft(std::optional<Int> n, Int dim) const& { return tensord::fft_ihfft(*this, n, dim); }
Tensor Tensor::fft_ihfft(std::optional<Int> n, Int dim, std::optional<std::string_view> norm) const& { return tensord::fft_ihfft(*this, n, dim, norm); }
Tensor Tensor::fft_ihfft2() const& { return tensord::fft_ihfft2(*this); }
Tensor Tensor::fft_ihfft2(OptionalIntOrList s) const& { return tensord::fft_ihfft2(*this, s); }
Tensor Tensor::fft_ihfft2(OptionalIntOrList s, IntOrList dim) const& { return tensord::fft_ihfft2(*this, s, dim); }
Tensor Tensor::fft_ihfft2(OptionalIntOrList s, IntOrList dim, std::optional<std::string_view> norm) const& { return tensord::fft_ihfft2(*this, s, dim, norm); }
Tensor Tensor::fft_ihfftn() const& { return tensord::fft_ihfftn(*this); }
Tensor Tensor::fft_ihfftn(OptionalIntOrList s) const& { return tensord::fft_ihfftn(*this, s); }
Tensor Tensor::fft_ihfftn(OptionalIntOrList s, OptionalIntOrList dim) const& { return tensord::fft_ihfftn(*this, s, dim); }
Tensor Tensor::fft_ihfftn(OptionalIntOrList s, OptionalIntOrList dim, std::optional<std::string_view> norm) const& { return tensord::fft_ihfftn(*this, s, dim, norm); }
Tensor Tensor::fft_irfft() const& { return tensord::fft_irfft(*this); }
Tensor Tensor::fft_irfft(std::optional<Int> n) const& { return tensord::fft_irfft(*this, n); }
Tensor Tensor::fft_irfft(std::optional<Int> n, Int dim) const& { return tensord::fft_irfft(*this, n, dim); }
Tensor Tensor::fft_irfft(std::optional<Int> n, Int dim, std::optional<std::string_view> norm) const& { return tensord::fft_irfft(*this, n, dim, norm); }
Tensor Tensor::fft_irfft2() const& { return tensord::fft_irfft2(*this); }
Tensor Tensor::fft_irfft2(OptionalIntOrList s) const& { return tensord::fft_irfft2(*this, s); }
Tensor Tensor::fft_irfft2(OptionalIntOrList s, IntOrList dim) const& { return tensord::fft_irfft2(*this, s, dim); }
Tensor Tensor::fft_irfft2(OptionalIntOrList s, IntOrList dim, std::optional<std::string_view> norm) const& { return tensord::fft_irfft2(*this, s, dim, norm); }
Tensor Tensor::fft_irfftn() const& { return tensord::fft_irfftn(*this); }
Tensor Tensor::fft_irfftn(OptionalIntOrList s) const& { return tensord::fft_irfftn(*this, s); }
Tensor Tensor::fft_irfftn(OptionalIntOrList s, OptionalIntOrList dim) const& { return tensord::fft_irfftn(*this, s, dim); }
Tensor Tensor::fft_irfftn(OptionalIntOrList s, OptionalIntOrList dim, std::optional<std::string_view> norm) const& { return tensord::fft_irfftn(*this, s, dim, norm); }
Tensor Tensor::fft_rfft() const& { return tensord::fft_rfft(*this); }
Tensor Tensor::fft_rfft(std::optional<Int> n) const& { return tensord::fft_rfft(*this, n); }
Tensor Tensor::fft_rfft(std::optional<Int> n, Int dim) const& { return tensord::fft_rfft(*this, n, dim); }
Tensor Tensor::fft_rfft(std::optional<Int> n, Int dim, std::optional<std::string_view> norm) const& { return tensord::fft_rfft(*this, n, dim, norm); }
Tensor Tensor::fft_rfft2() const& { return tensord::fft_rfft2(*this); }
Tensor Tensor::fft_rfft2(OptionalIntOrList s) const& { return tensord::fft_rfft2(*this, s); }
Tensor Tensor::fft_rfft2(OptionalIntOrList s, IntOrList dim) const& { return tensord::fft_rfft2(*this, s, dim); }
Tensor Tensor::fft_rfft2(OptionalIntOrList s, IntOrList dim, std::optional<std::string_view> norm) const& { return tensord::fft_rfft2(*this, s, dim, norm); }
Tensor Tensor::fft_rfftn() const& { return tensord::fft_rfftn(*this); }
Tensor Tensor::fft_rfftn(OptionalIntOrList s) const& { return tensord::fft_rfftn(*this, s); }
Tensor Tensor::fft_rfftn(OptionalIntOrList s, OptionalIntOrList dim) const& { return tensord::fft_rfftn(*this, s, dim); }
Tensor Tensor::fft_rfftn(OptionalIntOrList s, OptionalIntOrList dim, std::optional<std::string_view> norm) const& { return tensord::fft_rfftn(*this, s, dim, norm); }
Tensor Tensor::fill(const Scalar& value) const& { return tensord::fill(*this, value); }
Tensor Tensor::fill(const Tensor& value) const& { return tensord::fill(*this, value); }
Tensor Tensor::fill_(const Scalar& value) const& { return tensord::fill_(*this, value); }
Tensor Tensor::fill_(const Tensor& value) const& { return tensord::fill_(*this, value); }
Tensor Tensor::fill_diagonal_(const Scalar& fill_value) const& { return tensord::fill_diagonal_(*this, fill_value); }
Tensor Tensor::fill_diagonal_(const Scalar& fill_value, Bool wrap) const& { return tensord::fill_diagonal_(*this, fill_value, wrap); }
Tensor Tensor::flatten() const& { return tensord::flatten(*this); }
Tensor Tensor::flatten(Int start_dim) const& { return tensord::flatten(*this, start_dim); }
Tensor Tensor::flatten(Int start_dim, Int end_dim) const& { return tensord::flatten(*this, start_dim, end_dim); }
Tensor Tensor::flip(IntList dims) const& { return tensord::flip(*this, dims); }
Tensor Tensor::fliplr() const& { return tensord::fliplr(*this); }
Tensor Tensor::flipud() const& { return tensord::flipud(*this); }
Tensor Tensor::float_power(const Scalar& exponent) const& { return tensord::float_power(*this, exponent); }
Tensor Tensor::float_power(const Tensor& exponent) const& { return tensord::float_power(*this, exponent); }
Tensor Tensor::float_power_(const Scalar& exponent) const& { return tensord::float_power_(*this, exponent); }
Tensor Tensor::float_power_(const Tensor& exponent) const& { return tensord::float_power_(*this, exponent); }
Tensor Tensor::floor() const& { return tensord::floor(*this); }
Tensor Tensor::floor_() const& { return tensord::floor_(*this); }
Tensor Tensor::floor_divide(const Tensor& other) const& { return tensord::floor_divide(*this, other); }
Tensor Tensor::floor_divide(const Scalar& other) const& { return tensord::floor_divide(*this, other); }
Tensor Tensor::floor_divide_(const Tensor& other) const& { return tensord::floor_divide_(*this, other); }
Tensor Tensor::floor_divide_(const Scalar& other) const& { return tensord::floor_divide_(*this, other); }
Tensor Tensor::fmax(const Tensor& other) const& { return tensord::fmax(*this, other); }
Tensor Tensor::fmax_(const Tensor& other) const& { return tensord::fmax_(*this, other); }
Tensor Tensor::fmin(const Tensor& other) const& { return tensord::fmin(*this, other); }
Tensor Tensor::fmin_(const Tensor& other) const& { return tensord::fmin_(*this, other); }
Tensor Tensor::fmod(const Scalar& other) const& { return tensord::fmod(*this, other); }
Tensor Tensor::fmod(const Tensor& other) const& { return tensord::fmod(*this, other); }
Tensor Tensor::fmod_(const Scalar& other) const& { return tensord::fmod_(*this, other); }
Tensor Tensor::fmod_(const Tensor& other) const& { return tensord::fmod_(*this, other); }
Tensor Tensor::frac() const& { return tensord::frac(*this); }
Tensor Tensor::frac_() const& { return tensord::frac_(*this); }
std::tuple<Tensor, Tensor> Tensor::fractional_max_pool2d(IntOrList kernel_size, IntOrList output_size, const Tensor& random_samples) const& { return tensord::fractional_max_pool2d(*this, kernel_size, output_size, random_samples); }
std::tuple<Tensor, Tensor> Tensor::fractional_max_pool3d(IntOrList kernel_size, IntOrList output_size, const Tensor& random_samples) const& { return tensord::fractional_max_pool3d(*this, kernel_size, output_size, random_samples); }
std::tuple<Tensor, Tensor> Tensor::frexp() const& { return tensord::frexp(*this); }
Tensor Tensor::frobenius_norm() const& { return tensord::frobenius_norm(*this); }
Tensor Tensor::frobenius_norm(IntOrList dim) const& { return tensord::frobenius_norm(*this, dim); }
Tensor Tensor::frobenius_norm(IntOrList dim, Bool keepdim) const& { return tensord::frobenius_norm(*this, dim, keepdim); }
Tensor Tensor::full_like(const Scalar& fill_value) const& { return tensord::full_like(*this, fill_value); }
Tensor Tensor::full_like(const Scalar& fill_value, const keyword::DtypeDeviceMemoryFormatArgs& keywords) const& { return tensord::full_like(*this, fill_value, keywords); }
Tensor Tensor::fused_moving_avg_obs_fake_quant(const Tensor& observer_on, const Tensor& fake_quant_on, const Tensor& running_min, const Tensor& running_max, const Tensor& scale, const Tensor& zero_point, Float averaging_const, Int quant_min, Int quant_max, Int ch_axis) const& { return tensord::fused_moving_avg_obs_fake_quant(*this, observer_on, fake_quant_on, running_min, running_max, scale, zero_point, averaging_const, quant_min, quant_max, ch_axis); }
Tensor Tensor::fused_moving_avg_obs_fake_quant(const Tensor& observer_on, const Tensor& fake_quant_on, const Tensor& running_min, const Tensor& running_max, const Tensor& scale, const Tensor& zero_point, Float averaging_const, Int quant_min, Int quant_max, Int ch_axis, Bool per_row_fake_quant) const& { return tensord::fused_moving_avg_obs_fake_quant(*this, observer_on, fake_quant_on, running_min, running_max, scale, zero_point, averaging_const, quant_min, quant_max, ch_axis, per_row_fake_quant); }
Tensor Tensor::fused_moving_avg_obs_fake_quant(const Tensor& observer_on, const Tensor& fake_quant_on, const Tensor& running_min, const Tensor& running_max, const Tensor& scale, const Tensor& zero_point, Float averaging_const, Int quant_min, Int quant_max, Int ch_axis, Bool per_row_fake_quant, Bool symmetric_quant) const& { return tensord::fused_moving_avg_obs_fake_quant(*this, observer_on, fake_quant_on, running_min, running_max, scale, zero_point, averaging_const, quant_min, quant_max, ch_axis, per_row_fake_quant, symmetric_quant); }
Tensor Tensor::gather(Int dim, const Tensor& index) const& { return tensord::gather(*this, dim, index); }
Tensor Tensor::gather(Int dim, const Tensor& index, const keyword::SparseGradArgs& keywords) const& { return tensord::gather(*this, dim, index, keywords); }
Tensor Tensor::gcd(const Tensor& other) const& { return tensord::gcd(*this, other); }
Tensor Tensor::gcd_(const Tensor& other) const& { return tensord::gcd_(*this, other); }
Tensor Tensor::ge(const Scalar& other) const& { return tensord::ge(*this, other); }
Tensor Tensor::ge(const Tensor& other) const& { return tensord::ge(*this, other); }
Tensor Tensor::ge_(const Scalar& other) const& { return tensord::ge_(*this, other); }
Tensor Tensor::ge_(const Tensor& other) const& { return tensord::ge_(*this, other); }
Tensor Tensor::gelu() const& { return tensord::gelu(*this); }
Tensor Tensor::gelu(const keyword::ApproximateArgs& keywords) const& { return tensord::gelu(*this, keywords); }
Tensor Tensor::gelu_() const& { return tensord::gelu_(*this); }
Tensor Tensor::gelu_(const keyword::ApproximateArgs& keywords) const& { return tensord::gelu_(*this, keywords); }
Tensor Tensor::geometric(Float p) const& { return tensord::geometric(*this, p); }
Tensor Tensor::geometric_(Float p) const& { return tensord::geometric_(*this, p); }
std::tuple<Tensor, Tensor> Tensor::geqrf() const& { return tensord::geqrf(*this); }
Tensor Tensor::ger(const Tensor& vec2) const& { return tensord::ger(*this, vec2); }
int64_t Tensor::get_device() const& { return tensord::get_device(*this); }
Tensor Tensor::glu() const& { return tensord::glu(*this); }
Tensor Tensor::glu(Int dim) const& { return tensord::glu(*this, dim); }
std::vector<Tensor> Tensor::gradient() const& { return tensord::gradient(*this); }
std::vector<Tensor> Tensor::gradient(const keyword::SpacingDimEdgeOrderArgs& keywords) const& { return tensord::gradient(*this, keywords); }
std::vector<Tensor> Tensor::gradient(const keyword::DimEdgeOrderArgs& keywords) const& { return tensord::gradient(*this, keywords); }
std::vector<Tensor> Tensor::gradient(const keyword::SpacingDimEdgeOrderArgs2& keywords) const& { return tensord::gradient(*this, keywords); }
std::vector<Tensor> Tensor::gradient(const keyword::SpacingDimEdgeOrderArgs3& keywords) const& { return tensord::gradient(*this, keywords); }
std::vector<Tensor> Tensor::gradient(const keyword::SpacingDimEdgeOrderArgs4& keywords) const& { return tensord::gradient(*this, keywords); }
std::vector<Tensor> Tensor::gradient(const keyword::SpacingDimEdgeOrderArgs5& keywords) const& { return tensord::gradient(*this, keywords); }
std::vector<Tensor> Tensor::gradient(const keyword::SpacingDimEdgeOrderArgs6& keywords) const& { return tensord::gradient(*this, keywords); }
Tensor Tensor::gt(const Scalar& other) const& { return tensord::gt(*this, other); }
Tensor Tensor::gt(const Tensor& other) const& { return tensord::gt(*this, other); }
Tensor Tensor::gt_(const Scalar& other) const& { return tensord::gt_(*this, other); }
Tensor Tensor::gt_(const Tensor& other) const& { return tensord::gt_(*this, other); }
Tensor Tensor::hardshrink() const& { return tensord::hardshrink(*this); }
Tensor Tensor::hardshrink(const Scalar& lambd) const& { return tensord::hardshrink(*this, lambd); }
Tensor Tensor::hardshrink_() const& { return tensord::hardshrink_(*this); }
Tensor Tensor::hardshrink_(const Scalar& lambd) const& { return tensord::hardshrink_(*this, lambd); }
Tensor Tensor::hardsigmoid() const& { return tensord::hardsigmoid(*this); }
Tensor Tensor::hardsigmoid_() const& { return tensord::hardsigmoid_(*this); }
Tensor Tensor::hardswish() const& { return tensord::hardswish(*this); }
Tensor Tensor::hardswish_() const& { return tensord::hardswish_(*this); }
Tensor Tensor::hardtanh() const& { return tensord::hardtanh(*this); }
Tensor Tensor::hardtanh(const Scalar& min_val) const& { return tensord::hardtanh(*this, min_val); }
Tensor Tensor::hardtanh(const Scalar& min_val, const Scalar& max_val) const& { return tensord::hardtanh(*this, min_val, max_val); }
Tensor Tensor::hardtanh_() const& { return tensord::hardtanh_(*this); }
Tensor Tensor::hardtanh_(const Scalar& min_val) const& { return tensord::hardtanh_(*this, min_val); }
Tensor Tensor::hardtanh_(const Scalar& min_val, const Scalar& max_val) const& { return tensord::hardtanh_(*this, min_val, max_val); }
Tensor Tensor::heaviside(const Tensor& values) const& { return tensord::heaviside(*this, values); }
Tensor Tensor::heaviside_(const Tensor& values) const& { return tensord::heaviside_(*this, values); }
Tensor Tensor::hinge_embedding_loss(const Tensor& target) const& { return tensord::hinge_embedding_loss(*this, target); }
Tensor Tensor::hinge_embedding_loss(const Tensor& target, Float margin) const& { return tensord::hinge_embedding_loss(*this, target, margin); }
Tensor Tensor::hinge_embedding_loss(const Tensor& target, Float margin, Int reduction) const& { return tensord::hinge_embedding_loss(*this, target, margin, reduction); }
Tensor Tensor::histc() const& { return tensord::histc(*this); }
Tensor Tensor::histc(Int bins) const& { return tensord::histc(*this, bins); }
Tensor Tensor::histc(Int bins, const Scalar& min) const& { return tensord::histc(*this, bins, min); }
Tensor Tensor::histc(Int bins, const Scalar& min, const Scalar& max) const& { return tensord::histc(*this, bins, min, max); }
std::tuple<Tensor, Tensor> Tensor::histogram() const& { return tensord::histogram(*this); }
std::tuple<Tensor, Tensor> Tensor::histogram(Int bins) const& { return tensord::histogram(*this, bins); }
std::tuple<Tensor, Tensor> Tensor::histogram(Int bins, const keyword::RangeWeightDensityArgs& keywords) const& { return tensord::histogram(*this, bins, keywords); }
std::tuple<Tensor, Tensor> Tensor::histogram(const Tensor& bins) const& { return tensord::histogram(*this, bins); }
std::tuple<Tensor, Tensor> Tensor::histogram(const Tensor& bins, const keyword::WeightDensityArgs& keywords) const& { return tensord::histogram(*this, bins, keywords); }
std::tuple<Tensor, std::vector<Tensor>> Tensor::histogramdd(IntList bins) const& { return tensord::histogramdd(*this, bins); }
std::tuple<Tensor, std::vector<Tensor>> Tensor::histogramdd(IntList bins, OptionalFloatList range) const& { return tensord::histogramdd(*this, bins, range); }
std::tuple<Tensor, std::vector<Tensor>> Tensor::histogramdd(IntList bins, OptionalFloatList range, const std::optional<Tensor>& weight) const& { return tensord::histogramdd(*this, bins, range, weight); }
std::tuple<Tensor, std::vector<Tensor>> Tensor::histogramdd(IntList bins, OptionalFloatList range, const std::optional<Tensor>& weight, Bool density) const& { return tensord::histogramdd(*this, bins, range, weight, density); }
std::tuple<Tensor, std::vector<Tensor>> Tensor::histogramdd(TensorList bins) const& { return tensord::histogramdd(*this, bins); }
std::tuple<Tensor, std::vector<Tensor>> Tensor::histogramdd(TensorList bins, OptionalFloatList range) const& { return tensord::histogramdd(*this, bins, range); }
std::tuple<Tensor, std::vector<Tensor>> Tensor::histogramdd(TensorList bins, OptionalFloatList range, const std::optional<Tensor>& weight) const& { return tensord::histogramdd(*this, bins, range, weight); }
std::tuple<Tensor, std::vector<Tensor>> Tensor::histogramdd(TensorList bins, OptionalFloatList range, const std::optional<Tensor>& weight, Bool density) const& { return tensord::histogramdd(*this, bins, range, weight, density); }
std::tuple<Tensor, std::vector<Tensor>> Tensor::histogramdd(Int bins) const& { return tensord::histogramdd(*this, bins); }
std::tuple<Tensor, std::vector<Tensor>> Tensor::histogramdd(Int bins, OptionalFloatList range) const& { return tensord::histogramdd(*this, bins, range); }
std::tuple<Tensor, std::vector<Tensor>> Tensor::histogramdd(Int bins, OptionalFloatList range, const std::optional<Tensor>& weight) const& { return tensord::histogramdd(*this, bins, range, weight); }
std::tuple<Tensor, std::vector<Tensor>> Tensor::histogramdd(Int bins, OptionalFloatList range, const std::optional<Tensor>& weight, Bool density) const& { return tensord::histogramdd(*this, bins, range, weight, density); }
std::vector<Tensor> Tensor::hsplit(IntList indices) const& { return tensord::hsplit(*this, indices); }
std::vector<Tensor> Tensor::hsplit(Int sections) const& { return tensord::hsplit(*this, sections); }
Tensor Tensor::huber_loss(const Tensor& target) const& { return tensord::huber_loss(*this, target); }
Tensor Tensor::huber_loss(const Tensor& target, Int reduction) const& { return tensord::huber_loss(*this, target, reduction); }
Tensor Tensor::huber_loss(const Tensor& target, Int reduction, Float delta) const& { return tensord::huber_loss(*this, target, reduction, delta); }
Tensor Tensor::hypot(const Tensor& other) const& { return tensord::hypot(*this, other); }
Tensor Tensor::hypot_(const Tensor& other) const& { return tensord::hypot_(*this, other); }
Tensor Tensor::i0() const& { return tensord::i0(*this); }
Tensor Tensor::i0_() const& { return tensord::i0_(*this); }
Tensor Tensor::igamma(const Tensor& other) const& { return tensord::igamma(*this, other); }
Tensor Tensor::igamma_(const Tensor& other) const& { return tensord::igamma_(*this, other); }
Tensor Tensor::igammac(const Tensor& other) const& { return tensord::igammac(*this, other); }
Tensor Tensor::igammac_(const Tensor& other) const& { return tensord::igammac_(*this, other); }
Tensor Tensor::im2col(IntOrList kernel_size, IntOrList dilation, IntOrList padding, IntOrList stride) const& { return tensord::im2col(*this, kernel_size, dilation, padding, stride); }
Tensor Tensor::imag() const& { return tensord::imag(*this); }
Tensor Tensor::index_add(Int dim, const Tensor& index, const Tensor& source) const& { return tensord::index_add(*this, dim, index, source); }
Tensor Tensor::index_add(Int dim, const Tensor& index, const Tensor& source, const keyword::AlphaArgs& keywords) const& { return tensord::index_add(*this, dim, index, source, keywords); }
Tensor Tensor::index_add_(Int dim, const Tensor& index, const Tensor& source) const& { return tensord::index_add_(*this, dim, index, source); }
Tensor Tensor::index_add_(Int dim, const Tensor& index, const Tensor& source, const keyword::AlphaArgs& keywords) const& { return tensord::index_add_(*this, dim, index, source, keywords); }
Tensor Tensor::index_copy(Int dim, const Tensor& index, const Tensor& source) const& { return tensord::index_copy(*this, dim, index, source); }
Tensor Tensor::index_copy_(Int dim, const Tensor& index, const Tensor& source) const& { return tensord::index_copy_(*this, dim, index, source); }
Tensor Tensor::index_fill(Int dim, const Tensor& index, const Scalar& value) const& { return tensord::index_fill(*this, dim, index, value); }
Tensor Tensor::index_fill(Int dim, const Tensor& index, const Tensor& value) const& { return tensord::index_fill(*this, dim, index, value); }
Tensor Tensor::index_fill_(Int dim, const Tensor& index, const Scalar& value) const& { return tensord::index_fill_(*this, dim, index, value); }
Tensor Tensor::index_fill_(Int dim, const Tensor& index, const Tensor& value) const& { return tensord::index_fill_(*this, dim, index, value); }
Tensor Tensor::index_reduce(Int dim, const Tensor& index, const Tensor& source, std::string_view reduce) const& { return tensord::index_reduce(*this, dim, index, source, reduce); }
Tensor Tensor::index_reduce(Int dim, const Tensor& index, const Tensor& source, std::string_view reduce, const keyword::IncludeSelfArgs& keywords) const& { return tensord::index_reduce(*this, dim, index, source, reduce, keywords); }
Tensor Tensor::index_reduce_(Int dim, const Tensor& index, const Tensor& source, std::string_view reduce) const& { return tensord::index_reduce_(*this, dim, index, source, reduce); }
Tensor Tensor::index_reduce_(Int dim, const Tensor& index, const Tensor& source, std::string_view reduce, const keyword::IncludeSelfArgs& keywords) const& { return tensord::index_reduce_(*this, dim, index, source, reduce, keywords); }
Tensor Tensor::index_select(Int dim, const Tensor& index) const& { return tensord::index_select(*this, dim, index); }
Tensor Tensor::indices() const& { return tensord::indices(*this); }
Tensor Tensor::inner(const Tensor& other) const& { return tensord::inner(*this, other); }
Tensor Tensor::int_repr() const& { return tensord::int_repr(*this); }
Tensor Tensor::inverse() const& { return tensord::inverse(*this); }
bool Tensor::is_coalesced() const& { return tensord::is_coalesced(*this); }
bool Tensor::is_complex() const& { return tensord::is_complex(*this); }
bool Tensor::is_conj() const& { return tensord::is_conj(*this); }
bool Tensor::is_floating_point() const& { return tensord::is_floating_point(*this); }
bool Tensor::is_inference() const& { return tensord::is_inference(*this); }
bool Tensor::is_leaf() const& { return tensord::is_leaf(*this); }
bool Tensor::is_neg() const& { return tensord::is_neg(*this); }
bool Tensor::is_nonzero() const& { return tensord::is_nonzero(*this); }
bool Tensor::is_same_size(const Tensor& other) const& { return tensord::is_same_size(*this, other); }
bool Tensor::is_signed() const& { return tensord::is_signed(*this); }
Tensor Tensor::isclose(const Tensor& other) const& { return tensord::isclose(*this, other); }
Tensor Tensor::isclose(const Tensor& other, Float rtol) const& { return tensord::isclose(*this, other, rtol); }
Tensor Tensor::isclose(const Tensor& other, Float rtol, Float atol) const& { return tensord::isclose(*this, other, rtol, atol); }
Tensor Tensor::isclose(const Tensor& other, Float rtol, Float atol, Bool equal_nan) const& { return tensord::isclose(*this, other, rtol, atol, equal_nan); }
Tensor Tensor::isfinite() const& { return tensord::isfinite(*this); }
Tensor Tensor::isinf() const& { return tensord::isinf(*this); }
Tensor Tensor::isnan() const& { return tensord::isnan(*this); }
Tensor Tensor::isneginf() const& { return tensord::isneginf(*this); }
Tensor Tensor::isposinf() const& { return tensord::isposinf(*this); }
Tensor Tensor::isreal() const& { return tensord::isreal(*this); }
Tensor Tensor::istft(Int n_fft) const& { return tensord::istft(*this, n_fft); }
Tensor Tensor::istft(Int n_fft, std::optional<Int> hop_length) const& { return tensord::istft(*this, n_fft, hop_length); }
Tensor Tensor::istft(Int n_fft, std::optional<Int> hop_length, std::optional<Int> win_length) const& { return tensord::istft(*this, n_fft, hop_length, win_length); }
Tensor Tensor::istft(Int n_fft, std::optional<Int> hop_length, std::optional<Int> win_length, const std::optional<Tensor>& window) const& { return tensord::istft(*this, n_fft, hop_length, win_length, window); }
Tensor Tensor::istft(Int n_fft, std::optional<Int> hop_length, std::optional<Int> win_length, const std::optional<Tensor>& window, Bool center) const& { return tensord::istft(*this, n_fft, hop_length, win_length, window, center); }
Tensor Tensor::istft(Int n_fft, std::optional<Int> hop_length, std::optional<Int> win_length, const std::optional<Tensor>& window, Bool center, Bool normalized) const& { return tensord::istft(*this, n_fft, hop_length, win_length, window, center, normalized); }
Tensor Tensor::istft(Int n_fft, std::optional<Int> hop_length, std::optional<Int> win_length, const std::optional<Tensor>& window, Bool center, Bool normalized, std::optional<Bool> onesided) const& { return tensord::istft(*this, n_fft, hop_length, win_length, window, center, normalized, onesided); }
Tensor Tensor::istft(Int n_fft, std::optional<Int> hop_length, std::optional<Int> win_length, const std::optional<Tensor>& window, Bool center, Bool normalized, std::optional<Bool> onesided, std::optional<Int> length) const& { return tensord::istft(*this, n_fft, hop_length, win_length, window, center, normalized, onesided, length); }
Tensor Tensor::istft(Int n_fft, std::optional<Int> hop_length, std::optional<Int> win_length, const std::optional<Tensor>& window, Bool center, Bool normalized, std::optional<Bool> onesided, std::optional<Int> length, Bool return_complex) const& { return tensord::istft(*this, n_fft, hop_length, win_length, window, center, normalized, onesided, length, return_complex); }
Scalar Tensor::item() const& { return tensord::item(*this); }
Tensor Tensor::kl_div(const Tensor& target) const& { return tensord::kl_div(*this, target); }
Tensor Tensor::kl_div(const Tensor& target, Int reduction) const& { return tensord::kl_div(*this, target, reduction); }
Tensor Tensor::kl_div(const Tensor& target, Int reduction, const keyword::LogTargetArgs& keywords) const& { return tensord::kl_div(*this, target, reduction, keywords); }
Tensor Tensor::kron(const Tensor& other) const& { return tensord::kron(*this, other); }
std::tuple<Tensor, Tensor> Tensor::kthvalue(Int k) const& { return tensord::kthvalue(*this, k); }
std::tuple<Tensor, Tensor> Tensor::kthvalue(Int k, Int dim) const& { return tensord::kthvalue(*this, k, dim); }
std::tuple<Tensor, Tensor> Tensor::kthvalue(Int k, Int dim, Bool keepdim) const& { return tensord::kthvalue(*this, k, dim, keepdim); }
Tensor Tensor::l1_loss(const Tensor& target) const& { return tensord::l1_loss(*this, target); }
Tensor Tensor::l1_loss(const Tensor& target, Int reduction) const& { return tensord::l1_loss(*this, target, reduction); }
Tensor Tensor::lcm(const Tensor& other) const& { return tensord::lcm(*this, other); }
Tensor Tensor::lcm_(const Tensor& other) const& { return tensord::lcm_(*this, other); }
Tensor Tensor::ldexp(const Tensor& other) const& { return tensord::ldexp(*this, other); }
Tensor Tensor::ldexp_(const Tensor& other) const& { return tensord::ldexp_(*this, other); }
Tensor Tensor::le(const Scalar& other) const& { return tensord::le(*this, other); }
Tensor Tensor::le(const Tensor& other) const& { return tensord::le(*this, other); }
Tensor Tensor::le_(const Scalar& other) const& { return tensord::le_(*this, other); }
Tensor Tensor::le_(const Tensor& other) const& { return tensord::le_(*this, other); }
Tensor Tensor::leaky_relu() const& { return tensord::leaky_relu(*this); }
Tensor Tensor::leaky_relu(const Scalar& negative_slope) const& { return tensord::leaky_relu(*this, negative_slope); }
Tensor Tensor::leaky_relu_() const& { return tensord::leaky_relu_(*this); }
Tensor Tensor::leaky_relu_(const Scalar& negative_slope) const& { return tensord::leaky_relu_(*this, negative_slope); }
Tensor Tensor::lerp(const Tensor& end, const Scalar& weight) const& { return tensord::lerp(*this, end, weight); }
Tensor Tensor::lerp(const Tensor& end, const Tensor& weight) const& { return tensord::lerp(*this, end, weight); }
Tensor Tensor::lerp_(const Tensor& end, const Scalar& weight) const& { return tensord::lerp_(*this, end, weight); }
Tensor Tensor::lerp_(const Tensor& end, const Tensor& weight) const& { return tensord::lerp_(*this, end, weight); }
Tensor Tensor::lgamma() const& { return tensord::lgamma(*this); }
Tensor Tensor::lgamma_() const& { return tensord::lgamma_(*this); }
Tensor Tensor::lift_fresh() const& { return tensord::lift_fresh(*this); }
Tensor Tensor::linalg_cholesky() const& { return tensord::linalg_cholesky(*this); }
Tensor Tensor::linalg_cholesky(const keyword::UpperArgs& keywords) const& { return tensord::linalg_cholesky(*this, keywords); }
std::tuple<Tensor, Tensor> Tensor::linalg_cholesky_ex() const& { return tensord::linalg_cholesky_ex(*this); }
std::tuple<Tensor, Tensor> Tensor::linalg_cholesky_ex(const keyword::UpperCheckErrorsArgs& keywords) const& { return tensord::linalg_cholesky_ex(*this, keywords); }
Tensor Tensor::linalg_cond() const& { return tensord::linalg_cond(*this); }
Tensor Tensor::linalg_cond(const std::optional<Scalar>& p) const& { return tensord::linalg_cond(*this, p); }
Tensor Tensor::linalg_cond(std::string_view p) const& { return tensord::linalg_cond(*this, p); }
Tensor Tensor::linalg_cross(const Tensor& other) const& { return tensord::linalg_cross(*this, other); }
Tensor Tensor::linalg_cross(const Tensor& other, const keyword::DimArgs& keywords) const& { return tensord::linalg_cross(*this, other, keywords); }
std::tuple<Tensor, Tensor> Tensor::linalg_eig() const& { return tensord::linalg_eig(*this); }
std::tuple<Tensor, Tensor> Tensor::linalg_eigh() const& { return tensord::linalg_eigh(*this); }
std::tuple<Tensor, Tensor> Tensor::linalg_eigh(std::string_view UPLO) const& { return tensord::linalg_eigh(*this, UPLO); }
Tensor Tensor::linalg_eigvals() const& { return tensord::linalg_eigvals(*this); }
Tensor Tensor::linalg_eigvalsh() const& { return tensord::linalg_eigvalsh(*this); }
Tensor Tensor::linalg_eigvalsh(std::string_view UPLO) const& { return tensord::linalg_eigvalsh(*this, UPLO); }
std::tuple<Tensor, Tensor> Tensor::linalg_ldl_factor() const& { return tensord::linalg_ldl_factor(*this); }
std::tuple<Tensor, Tensor> Tensor::linalg_ldl_factor(const keyword::HermitianArgs& keywords) const& { return tensord::linalg_ldl_factor(*this, keywords); }
std::tuple<Tensor, Tensor, Tensor> Tensor::linalg_ldl_factor_ex() const& { return tensord::linalg_ldl_factor_ex(*this); }
std::tuple<Tensor, Tensor, Tensor> Tensor::linalg_ldl_factor_ex(const keyword::HermitianCheckErrorsArgs& keywords) const& { return tensord::linalg_ldl_factor_ex(*this, keywords); }
std::tuple<Tensor, Tensor, Tensor, Tensor> Tensor::linalg_lstsq(const Tensor& b) const& { return tensord::linalg_lstsq(*this, b); }
std::tuple<Tensor, Tensor, Tensor, Tensor> Tensor::linalg_lstsq(const Tensor& b, std::optional<Float> rcond) const& { return tensord::linalg_lstsq(*this, b, rcond); }
std::tuple<Tensor, Tensor, Tensor, Tensor> Tensor::linalg_lstsq(const Tensor& b, std::optional<Float> rcond, const keyword::DriverArgs& keywords) const& { return tensord::linalg_lstsq(*this, b, rcond, keywords); }
Tensor Tensor::linalg_matrix_exp() const& { return tensord::linalg_matrix_exp(*this); }
Tensor Tensor::linalg_matrix_norm(const Scalar& ord) const& { return tensord::linalg_matrix_norm(*this, ord); }
Tensor Tensor::linalg_matrix_norm(const Scalar& ord, IntList dim) const& { return tensord::linalg_matrix_norm(*this, ord, dim); }
Tensor Tensor::linalg_matrix_norm(const Scalar& ord, IntList dim, Bool keepdim) const& { return tensord::linalg_matrix_norm(*this, ord, dim, keepdim); }
Tensor Tensor::linalg_matrix_norm(const Scalar& ord, IntList dim, Bool keepdim, const keyword::DtypeArgs& keywords) const& { return tensord::linalg_matrix_norm(*this, ord, dim, keepdim, keywords); }
Tensor Tensor::linalg_matrix_norm() const& { return tensord::linalg_matrix_norm(*this); }
Tensor Tensor::linalg_matrix_norm(std::string_view ord) const& { return tensord::linalg_matrix_norm(*this, ord); }
Tensor Tensor::linalg_matrix_norm(std::string_view ord, IntList dim) const& { return tensord::linalg_matrix_norm(*this, ord, dim); }
Tensor Tensor::linalg_matrix_norm(std::string_view ord, IntList dim, Bool keepdim) const& { return tensord::linalg_matrix_norm(*this, ord, dim, keepdim); }
Tensor Tensor::linalg_matrix_norm(std::string_view ord, IntList dim, Bool keepdim, const keyword::DtypeArgs& keywords) const& { return tensord::linalg_matrix_norm(*this, ord, dim, keepdim, keywords); }
Tensor Tensor::linalg_matrix_power(Int n) const& { return tensord::linalg_matrix_power(*this, n); }
Tensor Tensor::linalg_matrix_rank(Float tol) const& { return tensord::linalg_matrix_rank(*this, tol); }
Tensor Tensor::linalg_matrix_rank(Float tol, Bool hermitian) const& { return tensord::linalg_matrix_rank(*this, tol, hermitian); }
Tensor Tensor::linalg_matrix_rank() const& { return tensord::linalg_matrix_rank(*this); }
Tensor Tensor::linalg_matrix_rank(const keyword::AtolRtolHermitianArgs& keywords) const& { return tensord::linalg_matrix_rank(*this, keywords); }
Tensor Tensor::linalg_norm() const& { return tensord::linalg_norm(*this); }
Tensor Tensor::linalg_norm(const std::optional<Scalar>& ord) const& { return tensord::linalg_norm(*this, ord); }
Tensor Tensor::linalg_norm(const std::optional<Scalar>& ord, OptionalIntOrList dim) const& { return tensord::linalg_norm(*this, ord, dim); }
Tensor Tensor::linalg_norm(const std::optional<Scalar>& ord, OptionalIntOrList dim, Bool keepdim) const& { return tensord::linalg_norm(*this, ord, dim, keepdim); }
Tensor Tensor::linalg_norm(const std::optional<Scalar>& ord, OptionalIntOrList dim, Bool keepdim, const keyword::DtypeArgs& keywords) const& { return tensord::linalg_norm(*this, ord, dim, keepdim, keywords); }
Tensor Tensor::linalg_norm(std::string_view ord) const& { return tensord::linalg_norm(*this, ord); }
Tensor Tensor::linalg_norm(std::string_view ord, OptionalIntOrList dim) const& { return tensord::linalg_norm(*this, ord, dim); }
Tensor Tensor::linalg_norm(std::string_view ord, OptionalIntOrList dim, Bool keepdim) const& { return tensord::linalg_norm(*this, ord, dim, keepdim); }
Tensor Tensor::linalg_norm(std::string_view ord, OptionalIntOrList dim, Bool keepdim, const keyword::DtypeArgs& keywords) const& { return tensord::linalg_norm(*this, ord, dim, keepdim, keywords); }
Tensor Tensor::linalg_pinv(Float rcond) const& { return tensord::linalg_pinv(*this, rcond); }
Tensor Tensor::linalg_pinv(Float rcond, Bool hermitian) const& { return tensord::linalg_pinv(*this, rcond, hermitian); }
Tensor Tensor::linalg_pinv() const& { return tensord::linalg_pinv(*this); }
Tensor Tensor::linalg_pinv(const keyword::AtolRtolHermitianArgs& keywords) const& { return tensord::linalg_pinv(*this, keywords); }
Tensor Tensor::linalg_pinv(const keyword::AtolRtolHermitianArgs2& keywords) const& { return tensord::linalg_pinv(*this, keywords); }
Tensor Tensor::linalg_pinv(const Tensor& rcond) const& { return tensord::linalg_pinv(*this, rcond); }
Tensor Tensor::linalg_pinv(const Tensor& rcond, Bool hermitian) const& { return tensord::linalg_pinv(*this, rcond, hermitian); }
Tensor Tensor::linalg_solve_triangular(const Tensor& B, const keyword::UpperLeftUnitriangularArgs& keywords) const& { return tensord::linalg_solve_triangular(*this, B, keywords); }
Tensor Tensor::linalg_tensorinv() const& { return tensord::linalg_tensorinv(*this); }
Tensor Tensor::linalg_tensorinv(Int ind) const& { return tensord::linalg_tensorinv(*this, ind); }
Tensor Tensor::linalg_tensorsolve(const Tensor& other) const& { return tensord::linalg_tensorsolve(*this, other); }
Tensor Tensor::linalg_tensorsolve(const Tensor& other, OptionalIntList dims) const& { return tensord::linalg_tensorsolve(*this, other, dims); }
Tensor Tensor::linalg_vector_norm() const& { return tensord::linalg_vector_norm(*this); }
Tensor Tensor::linalg_vector_norm(const Scalar& ord) const& { return tensord::linalg_vector_norm(*this, ord); }
Tensor Tensor::linalg_vector_norm(const Scalar& ord, OptionalIntOrList dim) const& { return tensord::linalg_vector_norm(*this, ord, dim); }
Tensor Tensor::linalg_vector_norm(const Scalar& ord, OptionalIntOrList dim, Bool keepdim) const& { return tensord::linalg_vector_norm(*this, ord, dim, keepdim); }
Tensor Tensor::linalg_vector_norm(const Scalar& ord, OptionalIntOrList dim, Bool keepdim, const keyword::DtypeArgs& keywords) const& { return tensord::linalg_vector_norm(*this, ord, dim, keepdim, keywords); }
Tensor Tensor::log() const& { return tensord::log(*this); }
Tensor Tensor::log10() const& { return tensord::log10(*this); }
Tensor Tensor::log10_() const& { return tensord::log10_(*this); }
Tensor Tensor::log1p() const& { return tensord::log1p(*this); }

}  // namespace tensord
