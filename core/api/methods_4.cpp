// Printed by scripts/cpp_operators.py from the registry; not to be edited.
// clang-format off
#include "tensord/ops.h"

namespace tensord {

Tensor Tensor::round_(const keyword::DecimalsArgs& keywords) const& { return tensord::round_(*this, keywords); }
Tensor Tensor::row_indices() const& { return tensord::row_indices(*this); }
Tensor Tensor::rrelu() const& { return tensord::rrelu(*this); }
Tensor Tensor::rrelu(const Scalar& lower) const& { return tensord::rrelu(*this, lower); }
Tensor Tensor::rrelu(const Scalar& lower, const Scalar& upper) const& { return tensord::rrelu(*this, lower, upper); }
Tensor Tensor::rrelu(const Scalar& lower, const Scalar& upper, Bool training) const& { return tensord::rrelu(*this, lower, upper, training); }
Tensor Tensor::rrelu_() const& { return tensord::rrelu_(*this); }
Tensor Tensor::rrelu_(const Scalar& lower) const& { return tensord::rrelu_(*this, lower); }
Tensor Tensor::rrelu_(const Scalar& lower, const Scalar& upper) const& { return tensord::rrelu_(*this, lower, upper); }
Tensor Tensor::rrelu_(const Scalar& lower, const Scalar& upper, Bool training) const& { return tensord::rrelu_(*this, lower, upper, training); }
Tensor Tensor::rrelu_with_noise(const Tensor& noise) const& { return tensord::rrelu_with_noise(*this, noise); }
Tensor Tensor::rrelu_with_noise(const Tensor& noise, const Scalar& lower) const& { return tensord::rrelu_with_noise(*this, noise, lower); }
Tensor Tensor::rrelu_with_noise(const Tensor& noise, const Scalar& lower, const Scalar& upper) const& { return tensord::rrelu_with_noise(*this, noise, lower, upper); }
Tensor Tensor::rrelu_with_noise(const Tensor& noise, const Scalar& lower, const Scalar& upper, Bool training) const& { return tensord::rrelu_with_noise(*this, noise, lower, upper, training); }
Tensor Tensor::rrelu_with_noise_(const Tensor& noise) const& { return tensord::rrelu_with_noise_(*this, noise); }
Tensor Tensor::rrelu_with_noise_(const Tensor& noise, const Scalar& lower) const& { return tensord::rrelu_with_noise_(*this, noise, lower); }
Tensor Tensor::rrelu_with_noise_(const Tensor& noise, const Scalar& lower, const Scalar& upper) const& { return tensord::rrelu_with_noise_(*this, noise, lower, upper); }
Tensor Tensor::rrelu_with_noise_(const Tensor& noise, const Scalar& lower, const Scalar& upper, Bool training) const& { return tensord::rrelu_with_noise_(*this, noise, lower, upper, training); }
Tensor Tensor::rsqrt() const& { return tensord::rsqrt(*this); }
Tensor Tensor::rsqrt_() const& { return tensord::rsqrt_(*this); }
Tensor Tensor::rsub(const Scalar& other) const& { return tensord::rsub(*this, other); }
Tensor Tensor::rsub(const Scalar& other, const Scalar& alpha) const& { return tensord::rsub(*this, other, alpha); }
Tensor Tensor::rsub(const Tensor& other) const& { return tensord::rsub(*this, other); }
Tensor Tensor::rsub(const Tensor& other, const keyword::AlphaArgs& keywords) const& { return tensord::rsub(*this, other, keywords); }
Tensor Tensor::rsub_(const Scalar& other) const& { return tensord::rsub_(*this, other); }
Tensor Tensor::rsub_(const Scalar& other, const Scalar& alpha) const& { return tensord::rsub_(*this, other, alpha); }
Tensor Tensor::rsub_(const Tensor& other) const& { return tensord::rsub_(*this, other); }
Tensor Tensor::rsub_(const Tensor& other, const keyword::AlphaArgs& keywords) const& { return tensord::rsub_(*this, other, keywords); }
Tensor Tensor::scatter(Int dim, const Tensor& index, const Tensor& src) const& { return tensord::scatter(*this, dim, index, src); }
Tensor Tensor::scatter(Int dim, const Tensor& index, const Scalar& value) const& { return tensord::scatter(*this, dim, index, value); }
Tensor Tensor::scatter(Int dim, const Tensor& index, const Tensor& src, const keyword::ReduceArgs& keywords) const& { return tensord::scatter(*this, dim, index, src, keywords); }
Tensor Tensor::scatter(Int dim, const Tensor& index, const Scalar& value, const keyword::ReduceArgs& keywords) const& { return tensord::scatter(*this, dim, index, value, keywords); }
Tensor Tensor::scatter_(Int dim, const Tensor& index, const Tensor& src) const& { return tensord::scatter_(*this, dim, index, src); }
Tensor Tensor::scatter_(Int dim, const Tensor& index, const Scalar& value) const& { return tensord::scatter_(*this, dim, index, value); }
Tensor Tensor::scatter_(Int dim, const Tensor& index, const Tensor& src, const keyword::ReduceArgs& keywords) const& { return tensord::scatter_(*this, dim, index, src, keywords); }
Tensor Tensor::scatter_(Int dim, const Tensor& index, const Scalar& value, const keyword::ReduceArgs& keywords) const& { return tensord::scatter_(*this, dim, index, value, keywords); }
Tensor Tensor::scatter_add(Int dim, const Tensor& index, const Tensor& src) const& { return tensord::scatter_add(*this, dim, index, src); }
Tensor Tensor::scatter_add_(Int dim, const Tensor& index, const Tensor& src) const& { return tensord::scatter_add_(*this, dim, index, src); }
Tensor Tensor::scatter_reduce(Int dim, const Tensor& index, const Tensor& src, std::string_view reduce) const& { return tensord::scatter_reduce(*this, dim, index, src, reduce); }
Tensor Tensor::scatter_reduce(Int dim, const Tensor& index, const Tensor& src, std::string_view reduce, const keyword::IncludeSelfArgs& keywords) const& { return tensord::scatter_reduce(*this, dim, index, src, reduce, keywords); }
Tensor Tensor::scatter_reduce_(Int dim, const Tensor& index, const Tensor& src, std::string_view reduce) const& { return tensord::scatter_reduce_(*this, dim, index, src, reduce); }
Tensor Tensor::scatter_reduce_(Int dim, const Tensor& index, const Tensor& src, std::string_view reduce, const keyword::IncludeSelfArgs& keywords) const& { return tensord::scatter_reduce_(*this, dim, index, src, reduce, keywords); }
Tensor Tensor::select(Int dim, Int index) const& { return tensord::select(*this, dim, index); }
Tensor Tensor::select_copy(Int dim, Int index) const& { return tensord::select_copy(*this, dim, index); }
Tensor Tensor::select_scatter(const Tensor& src, Int dim, Int index) const& { return tensord::select_scatter(*this, src, dim, index); }
Tensor Tensor::selu() const& { return tensord::selu(*this); }
Tensor Tensor::selu_() const& { return tensord::selu_(*this); }
Tensor Tensor::sgn() const& { return tensord::sgn(*this); }
Tensor Tensor::sgn_() const& { return tensord::sgn_(*this); }
Tensor Tensor::sigmoid() const& { return tensord::sigmoid(*this); }
Tensor Tensor::sigmoid_() const& { return tensord::sigmoid_(*this); }
Tensor Tensor::sign() const& { return tensord::sign(*this); }
Tensor Tensor::sign_() const& { return tensord::sign_(*this); }
Tensor Tensor::signbit() const& { return tensord::signbit(*this); }
Tensor Tensor::silu() const& { return tensord::silu(*this); }
Tensor Tensor::silu_() const& { return tensord::silu_(*this); }
Tensor Tensor::sin() const& { return tensord::sin(*this); }
Tensor Tensor::sin_() const& { return tensord::sin_(*this); }
Tensor Tensor::sinc() const& { return tensord::sinc(*this); }
Tensor Tensor::sinc_() const& { return tensord::sinc_(*this); }
Tensor Tensor::sinh() const& { return tensord::sinh(*this); }
Tensor Tensor::sinh_() const& { return tensord::sinh_(*this); }
Tensor Tensor::slice() const& { return tensord::slice(*this); }
Tensor Tensor::slice(Int dim) const& { return tensord::slice(*this, dim); }
Tensor Tensor::slice(Int dim, std::optional<Int> start) const& { return tensord::slice(*this, dim, start); }
Tensor Tensor::slice(Int dim, std::optional<Int> start, std::optional<Int> end) const& { return tensord::slice(*this, dim, start, end); }
Tensor Tensor::slice(Int dim, std::optional<Int> start, std::optional<Int> end, Int step) const& { return tensord::slice(*this, dim, start, end, step); }
Tensor Tensor::slice_copy() const& { return tensord::slice_copy(*this); }
Tensor Tensor::slice_copy(Int dim) const& { return tensord::slice_copy(*this, dim); }
Tensor Tensor::slice_copy(Int dim, std::optional<Int> start) const& { return tensord::slice_copy(*this, dim, start); }
Tensor Tensor::slice_copy(Int dim, std::optional<Int> start, std::optional<Int> end) const& { return tensord::slice_copy(*this, dim, start, end); }
Tensor Tensor::slice_copy(Int dim, std::optional<Int> start, std::optional<Int> end, Int step) const& { return tensord::slice_copy(*this, dim, start, end, step); }
Tensor Tensor::slice_scatter(const Tensor& src) const& { return tensord::slice_scatter(*this, src); }
Tensor Tensor::slice_scatter(const Tensor& src, Int dim) const& { return tensord::slice_scatter(*this, src, dim); }
Tensor Tensor::slice_scatter(const Tensor& src, Int dim, std::optional<Int> start) const& { return tensord::slice_scatter(*this, src, dim, start); }
Tensor Tensor::slice_scatter(const Tensor& src, Int dim, std::optional<Int> start, std::optional<Int> end) const& { return tensord::slice_scatter(*this, src, dim, start, end); }
Tensor Tensor::slice_scatter(const Tensor& src, Int dim, std::optional<Int> start, std::optional<Int> end, Int step) const& { return tensord::slice_scatter(*this, src, dim, start, end, step); }
std::tuple<Tensor, Tensor> Tensor::slogdet() const& { return tensord::slogdet(*this); }
Tensor Tensor::smm(const Tensor& mat2) const& { return tensord::smm(*this, mat2); }
Tensor Tensor::smooth_l1_loss(const Tensor& target) const& { return tensord::smooth_l1_loss(*this, target); }
Tensor Tensor::smooth_l1_loss(const Tensor& target, Int reduction) const& { return tensord::smooth_l1_loss(*this, target, reduction); }
Tensor Tensor::smooth_l1_loss(const Tensor& target, Int reduction, Float beta) const& { return tensord::smooth_l1_loss(*this, target, reduction, beta); }
Tensor Tensor::soft_margin_loss(const Tensor& target) const& { return tensord::soft_margin_loss(*this, target); }
Tensor Tensor::soft_margin_loss(const Tensor& target, Int reduction) const& { return tensord::soft_margin_loss(*this, target, reduction); }
Tensor Tensor::softmax(Int dim) const& { return tensord::softmax(*this, dim); }
Tensor Tensor::softmax(Int dim, std::optional<DType> dtype) const& { return tensord::softmax(*this, dim, dtype); }
Tensor Tensor::softplus() const& { return tensord::softplus(*this); }
Tensor Tensor::softplus(const Scalar& beta) const& { return tensord::softplus(*this, beta); }
Tensor Tensor::softplus(const Scalar& beta, const Scalar& threshold) const& { return tensord::softplus(*this, beta, threshold); }
Tensor Tensor::softplus_() const& { return tensord::softplus_(*this); }
Tensor Tensor::softplus_(const Scalar& beta) const& { return tensord::softplus_(*this, beta); }
Tensor Tensor::softplus_(const Scalar& beta, const Scalar& threshold) const& { return tensord::softplus_(*this, beta, threshold); }
Tensor Tensor::softshrink() const& { return tensord::softshrink(*this); }
Tensor Tensor::softshrink(const Scalar& lambd) const& { return tensord::softshrink(*this, lambd); }
Tensor Tensor::softshrink_() const& { return tensord::softshrink_(*this); }
Tensor Tensor::softshrink_(const Scalar& lambd) const& { return tensord::softshrink_(*this, lambd); }
std::tuple<Tensor, Tensor> Tensor::sort() const& { return tensord::sort(*this); }
std::tuple<Tensor, Tensor> Tensor::sort(Int dim) const& { return tensord::sort(*this, dim); }
std::tuple<Tensor, Tensor> Tensor::sort(Int dim, Bool descending) const& { return tensord::sort(*this, dim, descending); }
std::tuple<Tensor, Tensor> Tensor::sort(const keyword::StableDimDescendingArgs2& keywords) const& { return tensord::sort(*this, keywords); }
int64_t Tensor::sparse_dim() const& { return tensord::sparse_dim(*this); }
Tensor Tensor::sparse_mask(const Tensor& mask) const& { return tensord::sparse_mask(*this, mask); }
Tensor Tensor::sparse_sampled_addmm(const Tensor& mat1, const Tensor& mat2) const& { return tensord::sparse_sampled_addmm(*this, mat1, mat2); }
Tensor Tensor::sparse_sampled_addmm(const Tensor& mat1, const Tensor& mat2, const keyword::BetaAlphaArgs& keywords) const& { return tensord::sparse_sampled_addmm(*this, mat1, mat2, keywords); }
Tensor Tensor::special_bessel_j0() const& { return tensord::special_bessel_j0(*this); }
Tensor Tensor::special_bessel_j1() const& { return tensord::special_bessel_j1(*this); }
Tensor Tensor::special_bessel_y0() const& { return tensord::special_bessel_y0(*this); }
Tensor Tensor::special_bessel_y1() const& { return tensord::special_bessel_y1(*this); }
Tensor Tensor::special_entr() const& { return tensord::special_entr(*this); }
Tensor Tensor::special_erfcx() const& { return tensord::special_erfcx(*this); }
Tensor Tensor::special_i0e() const& { return tensord::special_i0e(*this); }
Tensor Tensor::special_i1() const& { return tensord::special_i1(*this); }
Tensor Tensor::special_i1e() const& { return tensord::special_i1e(*this); }
Tensor Tensor::special_log_ndtr() const& { return tensord::special_log_ndtr(*this); }
Tensor Tensor::special_modified_bessel_i0() const& { return tensord::special_modified_bessel_i0(*this); }
Tensor Tensor::special_modified_bessel_i1() const& { return tensord::special_modified_bessel_i1(*this); }
Tensor Tensor::special_modified_bessel_k0() const& { return tensord::special_modified_bessel_k0(*this); }
Tensor Tensor::special_modified_bessel_k1() const& { return tensord::special_modified_bessel_k1(*this); }
Tensor Tensor::special_ndtr() const& { return tensord::special_ndtr(*this); }
Tensor Tensor::special_ndtri() const& { return tensord::special_ndtri(*this); }
Tensor Tensor::special_xlog1py(const Tensor& other) const& { return tensord::special_xlog1py(*this, other); }
Tensor Tensor::special_xlog1py(const Scalar& other) const& { return tensord::special_xlog1py(*this, other); }
Tensor Tensor::special_zeta(const Tensor& other) const& { return tensord::special_zeta(*this, other); }
Tensor Tensor::special_zeta(const Scalar& other) const& { return tensord::special_zeta(*this, other); }
std::vector<Tensor> Tensor::split(IntList split_sizes) const& { return tensord::split(*this, split_sizes); }
std::vector<Tensor> Tensor::split(IntList split_sizes, Int dim) const& { return tensord::split(*this, split_sizes, dim); }
std::vector<Tensor> Tensor::split(Int split_size) const& { return tensord::split(*this, split_size); }
std::vector<Tensor> Tensor::split(Int split_size, Int dim) const& { return tensord::split(*this, split_size, dim); }
std::vector<Tensor> Tensor::split_copy(Int split_size) const& { return tensord::split_copy(*this, split_size); }
std::vector<Tensor> Tensor::split_copy(Int split_size, Int dim) const& { return tensord::split_copy(*this, split_size, dim); }
std::vector<Tensor> Tensor::split_with_sizes(IntList split_sizes) const& { return tensord::split_with_sizes(*this, split_sizes); }
std::vector<Tensor> Tensor::split_with_sizes(IntList split_sizes, Int dim) const& { return tensord::split_with_sizes(*this, split_sizes, dim); }
std::vector<Tensor> Tensor::split_with_sizes_copy(IntList split_sizes) const& { return tensord::split_with_sizes_copy(*this, split_sizes); }
std::vector<Tensor> Tensor::split_with_sizes_copy(IntList split_sizes, Int dim) const& { return tensord::split_with_sizes_copy(*this, split_sizes, dim); }
Tensor Tensor::sqrt() const& { return tensord::sqrt(*this); }
Tensor Tensor::sqrt_() const& { return tensord::sqrt_(*this); }
Tensor Tensor::square() const& { return tensord::square(*this); }
Tensor Tensor::square_() const& { return tensord::square_(*this); }
Tensor Tensor::squeeze() const& { return tensord::squeeze(*this); }
Tensor Tensor::squeeze(Int dim) const& { return tensord::squeeze(*this, dim); }
Tensor Tensor::squeeze(IntList dim) const& { return tensord::squeeze(*this, dim); }
Tensor Tensor::squeeze_() const& { return tensord::squeeze_(*this); }
Tensor Tensor::squeeze_(Int dim) const& { return tensord::squeeze_(*this, dim); }
Tensor Tensor::squeeze_(IntList dim) const& { return tensord::squeeze_(*this, dim); }
Tensor Tensor::squeeze_copy() const& { return tensord::squeeze_copy(*this); }
Tensor Tensor::squeeze_copy(Int dim) const& { return tensord::squeeze_copy(*this, dim); }
Tensor Tensor::squeeze_copy(IntList dim) const& { return tensord::squeeze_copy(*this, dim); }
Tensor Tensor::sspaddmm(const Tensor& mat1, const Tensor& mat2) const& { return tensord::sspaddmm(*this, mat1, mat2); }
Tensor Tensor::sspaddmm(const Tensor& mat1, const Tensor& mat2, const keyword::BetaAlphaArgs& keywords) const& { return tensord::sspaddmm(*this, mat1, mat2, keywords); }
Tensor Tensor::std() const& { return tensord::std(*this); }
Tensor Tensor::std(Bool unbiased) const& { return tensord::std(*this, unbiased); }
Tensor Tensor::std(OptionalIntOrList dim) const& { return tensord::std(*this, dim); }
Tensor Tensor::std(OptionalIntOrList dim, const keyword::CorrectionKeepdimArgs& keywords) const& { return tensord::std(*this, dim, keywords); }
Tensor Tensor::std(OptionalIntOrList dim, Bool unbiased) const& { return tensord::std(*this, dim, unbiased); }
Tensor Tensor::std(OptionalIntOrList dim, Bool unbiased, Bool keepdim) const& { return tensord::std(*this, dim, unbiased, keepdim); }
std::tuple<Tensor, Tensor> Tensor::std_mean() const& { return tensord::std_mean(*this); }
std::tuple<Tensor, Tensor> Tensor::std_mean(Bool unbiased) const& { return tensord::std_mean(*this, unbiased); }
std::tuple<Tensor, Tensor> Tensor::std_mean(OptionalIntOrList dim) const& { return tensord::std_mean(*this, dim); }
std::tuple<Tensor, Tensor> Tensor::std_mean(OptionalIntOrList dim, const keyword::CorrectionKeepdimArgs& keywords) const& { return tensord::std_mean(*this, dim, keywords); }
std::tuple<Tensor, Tensor> Tensor::std_mean(OptionalIntOrList dim, Bool unbiased) const& { return tensord::std_mean(*this, dim, unbiased); }
std::tuple<Tensor, Tensor> Tensor::std_mean(OptionalIntOrList dim, Bool unbiased, Bool keepdim) const& { return tensord::std_mean(*this, dim, unbiased, keepdim); }
Tensor Tensor::stft(Int n_fft) const& { return tensord::stft(*this, n_fft); }
Tensor Tensor::stft(Int n_fft, std::optional<Int> hop_length) const& { return tensord::stft(*this, n_fft, hop_length); }
Tensor Tensor::stft(Int n_fft, std::optional<Int> hop_length, std::optional<Int> win_length) const& { return tensord::stft(*this, n_fft, hop_length, win_length); }
Tensor Tensor::stft(Int n_fft, std::optional<Int> hop_length, std::optional<Int> win_length, const std::optional<Tensor>& window) const& { return tensord::stft(*this, n_fft, hop_length, win_length, window); }
Tensor Tensor::stft(Int n_fft, std::optional<Int> hop_length, std::optional<Int> win_length, const std::optional<Tensor>& window, Bool normalized) const& { return tensord::stft(*this, n_fft, hop_length, win_length, window, normalized); }
Tensor Tensor::stft(Int n_fft, std::optional<Int> hop_length, std::optional<Int> win_length, const std::optional<Tensor>& window, Bool normalized, std::optional<Bool> onesided) const& { return tensord::stft(*this, n_fft, hop_length, win_length, window, normalized, onesided); }
Tensor Tensor::stft(Int n_fft, std::optional<Int> hop_length, std::optional<Int> win_length, const std::optional<Tensor>& window, Bool normalized, std::optional<Bool> onesided, std::optional<Bool> return_complex) const& { return tensord::stft(*this, n_fft, hop_length, win_length, window, normalized, onesided, return_complex); }
Tensor Tensor::stft(Int n_fft, std::optional<Int> hop_length, std::optional<Int> win_length, const std::optional<Tensor>& window, Bool normalized, std::optional<Bool> onesided, std::optional<Bool> return_complex, std::optional<Bool> align_to_window) const& { return tensord::stft(*this, n_fft, hop_length, win_length, window, normalized, onesided, return_complex, align_to_window); }
Tensor Tensor::stft(Int n_fft, std::optional<Int> hop_length, std::optional<Int> win_length, const std::optional<Tensor>& window, Bool center, std::string_view pad_mode) const& { return tensord::stft(*this, n_fft, hop_length, win_length, window, center, pad_mode); }
Tensor Tensor::stft(Int n_fft, std::optional<Int> hop_length, std::optional<Int> win_length, const std::optional<Tensor>& window, Bool center, std::string_view pad_mode, Bool normalized) const& { return tensord::stft(*this, n_fft, hop_length, win_length, window, center, pad_mode, normalized); }
Tensor Tensor::stft(Int n_fft, std::optional<Int> hop_length, std::optional<Int> win_length, const std::optional<Tensor>& window, Bool center, std::string_view pad_mode, Bool normalized, std::optional<Bool> onesided) const& { return tensord::stft(*this, n_fft, hop_length, win_length, window, center, pad_mode, normalized, onesided); }
Tensor Tensor::stft(Int n_fft, std::optional<Int> hop_length, std::optional<Int> win_length, const std::optional<Tensor>& window, Bool center, std::string_view pad_mode, Bool normalized, std::optional<Bool> onesided, std::optional<Bool> return_complex) const& { return tensord::stft(*this, n_fft, hop_length, win_length, window, center, pad_mode, normalized, onesided, return_complex); }
Tensor Tensor::stft(Int n_fft, std::optional<Int> hop_length, std::optional<Int> win_length, const std::optional<Tensor>& window, Bool center, std::string_view pad_mode, Bool normalized, std::optional<Bool> onesided, std::optional<Bool> return_complex, std::optional<Bool> align_to_window) const& { return tensord::stft(*this, n_fft, hop_length, win_length, window, center, pad_mode, normalized, onesided, return_complex, align_to_window); }
int64_t Tensor::storage_offset() const& { return tensord::storage_offset(*this); }
Tensor Tensor::sub(const Scalar& other) const& { return tensord::sub(*this, other); }
Tensor Tensor::sub(const Scalar& other, const Scalar& alpha) const& { return tensord::sub(*this, other, alpha); }
Tensor Tensor::sub(const Tensor& other) const& { return tensord::sub(*this, other); }
Tensor Tensor::sub(const Tensor& other, const keyword::AlphaArgs& keywords) const& { return tensord::sub(*this, other, keywords); }
Tensor Tensor::sub_(const Scalar& other) const& { return tensord::sub_(*this, other); }
Tensor Tensor::sub_(const Scalar& other, const Scalar& alpha) const& { return tensord::sub_(*this, other, alpha); }
Tensor Tensor::sub_(const Tensor& other) const& { return tensord::sub_(*this, other); }
Tensor Tensor::sub_(const Tensor& other, const keyword::AlphaArgs& keywords) const& { return tensord::sub_(*this, other, keywords); }
Tensor Tensor::sum() const& { return tensord::sum(*this); }
Tensor Tensor::sum(const keyword::DtypeArgs& keywords) const& { return tensord::sum(*this, keywords); }
Tensor Tensor::sum(OptionalIntOrList dim) const& { return tensord::sum(*this, dim); }
Tensor Tensor::sum(OptionalIntOrList dim, Bool keepdim) const& { return tensord::sum(*this, dim, keepdim); }
Tensor Tensor::sum(OptionalIntOrList dim, Bool keepdim, const keyword::DtypeArgs& keywords) const& { return tensord::sum(*this, dim, keepdim, keywords); }
Tensor Tensor::sum_to_size(IntList size) const& { return tensord::sum_to_size(*this, size); }
std::tuple<Tensor, Tensor, Tensor> Tensor::svd() const& { return tensord::svd(*this); }
std::tuple<Tensor, Tensor, Tensor> Tensor::svd(Bool some) const& { return tensord::svd(*this, some); }
std::tuple<Tensor, Tensor, Tensor> Tensor::svd(Bool some, Bool compute_uv) const& { return tensord::svd(*this, some, compute_uv); }
Tensor Tensor::swapaxes(Int axis0, Int axis1) const& { return tensord::swapaxes(*this, axis0, axis1); }
Tensor Tensor::swapaxes_(Int axis0, Int axis1) const& { return tensord::swapaxes_(*this, axis0, axis1); }
Tensor Tensor::swapdims(Int dim0, Int dim1) const& { return tensord::swapdims(*this, dim0, dim1); }
Tensor Tensor::swapdims_(Int dim0, Int dim1) const& { return tensord::swapdims_(*this, dim0, dim1); }
std::tuple<Tensor, Tensor> Tensor::symeig() const& { return tensord::symeig(*this); }
std::tuple<Tensor, Tensor> Tensor::symeig(Bool eigenvectors) const& { return tensord::symeig(*this, eigenvectors); }
std::tuple<Tensor, Tensor> Tensor::symeig(Bool eigenvectors, Bool upper) const& { return tensord::symeig(*this, eigenvectors, upper); }
Tensor Tensor::t() const& { return tensord::t(*this); }
Tensor Tensor::t_() const& { return tensord::t_(*this); }
Tensor Tensor::t_copy() const& { return tensord::t_copy(*this); }
Tensor Tensor::take(const Tensor& index) const& { return tensord::take(*this, index); }
Tensor Tensor::take_along_dim(const Tensor& indices) const& { return tensord::take_along_dim(*this, indices); }
Tensor Tensor::take_along_dim(const Tensor& indices, std::optional<Int> dim) const& { return tensord::take_along_dim(*this, indices, dim); }
Tensor Tensor::tan() const& { return tensord::tan(*this); }
Tensor Tensor::tan_() const& { return tensord::tan_(*this); }
Tensor Tensor::tanh() const& { return tensord::tanh(*this); }
Tensor Tensor::tanh_() const& { return tensord::tanh_(*this); }
std::vector<Tensor> Tensor::tensor_split(IntList indices) const& { return tensord::tensor_split(*this, indices); }
std::vector<Tensor> Tensor::tensor_split(IntList indices, Int dim) const& { return tensord::tensor_split(*this, indices, dim); }
std::vector<Tensor> Tensor::tensor_split(Int sections) const& { return tensord::tensor_split(*this, sections); }
std::vector<Tensor> Tensor::tensor_split(Int sections, Int dim) const& { return tensord::tensor_split(*this, sections, dim); }
std::vector<Tensor> Tensor::tensor_split(const Tensor& tensor_indices_or_sections) const& { return tensord::tensor_split(*this, tensor_indices_or_sections); }
std::vector<Tensor> Tensor::tensor_split(const Tensor& tensor_indices_or_sections, Int dim) const& { return tensord::tensor_split(*this, tensor_indices_or_sections, dim); }
Tensor Tensor::tensordot(const Tensor& other, IntList dims_self, IntList dims_other) const& { return tensord::tensordot(*this, other, dims_self, dims_other); }
Tensor Tensor::threshold(const Scalar& threshold, const Scalar& value) const& { return tensord::threshold(*this, threshold, value); }
Tensor Tensor::threshold_(const Scalar& threshold, const Scalar& value) const& { return tensord::threshold_(*this, threshold, value); }
Tensor Tensor::tile(IntList dims) const& { return tensord::tile(*this, dims); }
Tensor Tensor::to() const& { return tensord::to(*this); }
Tensor Tensor::to(const keyword::DtypeDeviceNonBlockingCopyMemoryFormatArgs& keywords) const& { return tensord::to(*this, keywords); }
Tensor Tensor::to(DType dtype) const& { return tensord::to(*this, dtype); }
Tensor Tensor::to(DType dtype, Bool non_blocking) const& { return tensord::to(*this, dtype, non_blocking); }
Tensor Tensor::to(DType dtype, Bool non_blocking, Bool copy) const& { return tensord::to(*this, dtype, non_blocking, copy); }
Tensor Tensor::to(DType dtype, Bool non_blocking, Bool copy, std::optional<MemoryFormat> memory_format) const& { return tensord::to(*this, dtype, non_blocking, copy, memory_format); }
Tensor Tensor::to(const Tensor& other) const& { return tensord::to(*this, other); }
Tensor Tensor::to(const Tensor& other, Bool non_blocking) const& { return tensord::to(*this, other, non_blocking); }
Tensor Tensor::to(const Tensor& other, Bool non_blocking, Bool copy) const& { return tensord::to(*this, other, non_blocking, copy); }
Tensor Tensor::to(const Tensor& other, Bool non_blocking, Bool copy, std::optional<MemoryFormat> memory_format) const& { return tensord::to(*this, other, non_blocking, copy, memory_format); }
Tensor Tensor::to(const Device& device, DType dtype) const& { return tensord::to(*this, device, dtype); }
Tensor Tensor::to(const Device& device, DType dtype, Bool non_blocking) const& { return tensord::to(*this, device, dtype, non_blocking); }
Tensor Tensor::to(const Device& device, DType dtype, Bool non_blocking, Bool copy) const& { return tensord::to(*this, device, dtype, non_blocking, copy); }
Tensor Tensor::to(const Device& device, DType dtype, Bool non_blocking, Bool copy, std::optional<MemoryFormat> memory_format) const& { return tensord::to(*this, device, dtype, non_blocking, copy, memory_format); }
Tensor Tensor::to_dense() const& { return tensord::to_dense(*this); }
Tensor Tensor::to_dense(std::optional<DType> dtype) const& { return tensord::to_dense(*this, dtype); }
Tensor Tensor::to_dense(std::optional<DType> dtype, const keyword::MaskedGradArgs& keywords) const& { return tensord::to_dense(*this, dtype, keywords); }
Tensor Tensor::to_padded_tensor(Float padding) const& { return tensord::to_padded_tensor(*this, padding); }
Tensor Tensor::to_padded_tensor(Float padding, OptionalIntList output_size) const& { return tensord::to_padded_tensor(*this, padding, output_size); }
Tensor Tensor::to_sparse() const& { return tensord::to_sparse(*this); }
Tensor Tensor::to_sparse(const keyword::BlocksizeDenseDimArgs& keywords) const& { return tensord::to_sparse(*this, keywords); }
Tensor Tensor::to_sparse(Int sparse_dim) const& { return tensord::to_sparse(*this, sparse_dim); }
Tensor Tensor::to_sparse_bsc(IntOrList blocksize) const& { return tensord::to_sparse_bsc(*this, blocksize); }
Tensor Tensor::to_sparse_bsc(IntOrList blocksize, std::optional<Int> dense_dim) const& { return tensord::to_sparse_bsc(*this, blocksize, dense_dim); }
Tensor Tensor::to_sparse_bsr(IntOrList blocksize) const& { return tensord::to_sparse_bsr(*this, blocksize); }
Tensor Tensor::to_sparse_bsr(IntOrList blocksize, std::optional<Int> dense_dim) const& { return tensord::to_sparse_bsr(*this, blocksize, dense_dim); }
Tensor Tensor::to_sparse_csc() const& { return tensord::to_sparse_csc(*this); }
Tensor Tensor::to_sparse_csc(std::optional<Int> dense_dim) const& { return tensord::to_sparse_csc(*this, dense_dim); }
Tensor Tensor::to_sparse_csr() const& { return tensord::to_sparse_csr(*this); }
Tensor Tensor::to_sparse_csr(std::optional<Int> dense_dim) const& { return tensord::to_sparse_csr(*this, dense_dim); }
std::tuple<Tensor, Tensor> Tensor::topk(Int k) const& { return tensord::topk(*this, k); }
std::tuple<Tensor, Tensor> Tensor::topk(Int k, Int dim) const& { return tensord::topk(*this, k, dim); }
std::tuple<Tensor, Tensor> Tensor::topk(Int k, Int dim, Bool largest) const& { return tensord::topk(*this, k, dim, largest); }
std::tuple<Tensor, Tensor> Tensor::topk(Int k, Int dim, Bool largest, Bool sorted) const& { return tensord::topk(*this, k, dim, largest, sorted); }
Tensor Tensor::trace() const& { return tensord::trace(*this); }
Tensor Tensor::transpose(Int dim0, Int dim1) const& { return tensord::transpose(*this, dim0, dim1); }
Tensor Tensor::transpose_(Int dim0, Int dim1) const& { return tensord::transpose_(*this, dim0, dim1); }
Tensor Tensor::transpose_copy(Int dim0, Int dim1) const& { return tensord::transpose_copy(*this, dim0, dim1); }
std::tuple<Tensor, Tensor> Tensor::triangular_solve(const Tensor& A) const& { return tensord::triangular_solve(*this, A); }
std::tuple<Tensor, Tensor> Tensor::triangular_solve(const Tensor& A, Bool upper) const& { return tensord::triangular_solve(*this, A, upper); }
std::tuple<Tensor, Tensor> Tensor::triangular_solve(const Tensor& A, Bool upper, Bool transpose) const& { return tensord::triangular_solve(*this, A, upper, transpose); }
std::tuple<Tensor, Tensor> Tensor::triangular_solve(const Tensor& A, Bool upper, Bool transpose, Bool unitriangular) const& { return tensord::triangular_solve(*this, A, upper, transpose, unitriangular); }
Tensor Tensor::tril() const& { return tensord::tril(*this); }
Tensor Tensor::tril(Int diagonal) const& { return tensord::tril(*this, diagonal); }
Tensor Tensor::tril_() const& { return tensord::tril_(*this); }
Tensor Tensor::tril_(Int diagonal) const& { return tensord::tril_(*this, diagonal); }
Tensor Tensor::triu() const& { return tensord::triu(*this); }
Tensor Tensor::triu(Int diagonal) const& { return tensord::triu(*this, diagonal); }
Tensor Tensor::triu_() const& { return tensord::triu_(*this); }
Tensor Tensor::triu_(Int diagonal) const& { return tensord::triu_(*this, diagonal); }
Tensor Tensor::trunc() const& { return tensord::trunc(*this); }
Tensor Tensor::trunc_() const& { return tensord::trunc_(*this); }
Tensor Tensor::type_as(const Tensor& other) const& { return tensord::type_as(*this, other); }
std::vector<Tensor> Tensor::unbind() const& { return tensord::unbind(*this); }
std::vector<Tensor> Tensor::unbind(Int dim) const& { return tensord::unbind(*this, dim); }
std::vector<Tensor> Tensor::unbind_copy() const& { return tensord::unbind_copy(*this); }
std::vector<Tensor> Tensor::unbind_copy(Int dim) const& { return tensord::unbind_copy(*this, dim); }
Tensor Tensor::unflatten(Int dim, IntList sizes) const& { return tensord::unflatten(*this, dim, sizes); }
Tensor Tensor::unfold(Int dimension, Int size, Int step) const& { return tensord::unfold(*this, dimension, size, step); }
Tensor Tensor::unfold_copy(Int dimension, Int size, Int step) const& { return tensord::unfold_copy(*this, dimension, size, step); }
Tensor Tensor::uniform() const& { return tensord::uniform(*this); }
Tensor Tensor::uniform(Float from) const& { return tensord::uniform(*this, from); }
Tensor Tensor::uniform(Float from, Float to) const& { return tensord::uniform(*this, from, to); }
Tensor Tensor::uniform_() const& { return tensord::uniform_(*this); }
Tensor Tensor::uniform_(Float from) const& { return tensord::uniform_(*this, from); }
Tensor Tensor::uniform_(Float from, Float to) const& { return tensord::uniform_(*this, from, to); }
std::tuple<Tensor, Tensor, Tensor> Tensor::unique_consecutive() const& { return tensord::unique_consecutive(*this); }
std::tuple<Tensor, Tensor, Tensor> Tensor::unique_consecutive(Bool return_inverse) const& { return tensord::unique_consecutive(*this, return_inverse); }
std::tuple<Tensor, Tensor, Tensor> Tensor::unique_consecutive(Bool return_inverse, Bool return_counts) const& { return tensord::unique_consecutive(*this, return_inverse, return_counts); }
std::tuple<Tensor, Tensor, Tensor> Tensor::unique_consecutive(Bool return_inverse, Bool return_counts, std::optional<Int> dim) const& { return tensord::unique_consecutive(*this, return_inverse, return_counts, dim); }
std::tuple<Tensor, Tensor, Tensor> Tensor::unique_dim(Int dim) const& { return tensord::unique_dim(*this, dim); }
std::tuple<Tensor, Tensor, Tensor> Tensor::unique_dim(Int dim, Bool sorted) const& { return tensord::unique_dim(*this, dim, sorted); }
std::tuple<Tensor, Tensor, Tensor> Tensor::unique_dim(Int dim, Bool sorted, Bool return_inverse) const& { return tensord::unique_dim(*this, dim, sorted, return_inverse); }
std::tuple<Tensor, Tensor, Tensor> Tensor::unique_dim(Int dim, Bool sorted, Bool return_inverse, Bool return_counts) const& { return tensord::unique_dim(*this, dim, sorted, return_inverse, return_counts); }
std::tuple<Tensor, Tensor, Tensor> Tensor::unique_dim_consecutive(Int dim) const& { return tensord::unique_dim_consecutive(*this, dim); }
std::tuple<Tensor, Tensor, Tensor> Tensor::unique_dim_consecutive(Int dim, Bool return_inverse) const& { return tensord::unique_dim_consecutive(*this, dim, return_inverse); }
std::tuple<Tensor, Tensor, Tensor> Tensor::unique_dim_consecutive(Int dim, Bool return_inverse, Bool return_counts) const& { return tensord::unique_dim_consecutive(*this, dim, return_inverse, return_counts); }
std::vector<Tensor> Tensor::unsafe_chunk(Int chunks) const& { return tensord::unsafe_chunk(*this, chunks); }
std::vector<Tensor> Tensor::unsafe_chunk(Int chunks, Int dim) const& { return tensord::unsafe_chunk(*this, chunks, dim); }
std::vector<Tensor> Tensor::unsafe_split(Int split_size) const& { return tensord::unsafe_split(*this, split_size); }
std::vector<Tensor> Tensor::unsafe_split(Int split_size, Int dim) const& { return tensord::unsafe_split(*this, split_size, dim); }
std::vector<Tensor> Tensor::unsafe_split_with_sizes(IntList split_sizes) const& { return tensord::unsafe_split_with_sizes(*this, split_sizes); }
std::vector<Tensor> Tensor::unsafe_split_with_sizes(IntList split_sizes, Int dim) const& { return tensord::unsafe_split_with_sizes(*this, split_sizes, dim); }
Tensor Tensor::unsqueeze(Int dim) const& { return tensord::unsqueeze(*this, dim); }
Tensor Tensor::unsqueeze_(Int dim) const& { return tensord::unsqueeze_(*this, dim); }
Tensor Tensor::unsqueeze_copy(Int dim) const& { return tensord::unsqueeze_copy(*this, dim); }
Tensor Tensor::upsample_bicubic2d(IntOrList output_size, Bool align_corners) const& { return tensord::upsample_bicubic2d(*this, output_size, align_corners); }
Tensor Tensor::upsample_bicubic2d(IntOrList output_size, Bool align_corners, std::optional<Float> scales_h) const& { return tensord::upsample_bicubic2d(*this, output_size, align_corners, scales_h); }
Tensor Tensor::upsample_bicubic2d(IntOrList output_size, Bool align_corners, std::optional<Float> scales_h, std::optional<Float> scales_w) const& { return tensord::upsample_bicubic2d(*this, output_size, align_corners, scales_h, scales_w); }
Tensor Tensor::upsample_bilinear2d(IntOrList output_size, Bool align_corners) const& { return tensord::upsample_bilinear2d(*this, output_size, align_corners); }
Tensor Tensor::upsample_bilinear2d(IntOrList output_size, Bool align_corners, std::optional<Float> scales_h) const& { return tensord::upsample_bilinear2d(*this, output_size, align_corners, scales_h); }
Tensor Tensor::upsample_bilinear2d(IntOrList output_size, Bool align_corners, std::optional<Float> scales_h, std::optional<Float> scales_w) const& { return tensord::upsample_bilinear2d(*this, output_size, align_corners, scales_h, scales_w); }
Tensor Tensor::upsample_linear1d(IntOrList output_size, Bool align_corners) const& { return tensord::upsample_linear1d(*this, output_size, align_corners); }
Tensor Tensor::upsample_linear1d(IntOrList output_size, Bool align_corners, std::optional<Float> scales) const& { return tensord::upsample_linear1d(*this, output_size, align_corners, scales); }
Tensor Tensor::upsample_nearest1d(IntOrList output_size) const& { return tensord::upsample_nearest1d(*this, output_size); }
Tensor Tensor::upsample_nearest1d(IntOrList output_size, std::optional<Float> scales) const& { return tensord::upsample_nearest1d(*this, output_size, scales); }
Tensor Tensor::upsample_nearest2d(IntOrList output_size) const& { return tensord::upsample_nearest2d(*this, output_size); }
Tensor Tensor::upsample_nearest2d(IntOrList output_size, std::optional<Float> scales_h) const& { return tensord::upsample_nearest2d(*this, output_size, scales_h); }
Tensor Tensor::upsample_nearest2d(IntOrList output_size, std::optional<Float> scales_h, std::optional<Float> scales_w) const& { return tensord::upsample_nearest2d(*this, output_size, scales_h, scales_w); }
Tensor Tensor::upsample_nearest3d(IntOrList output_size) const& { return tensord::upsample_nearest3d(*this, output_size); }
Tensor Tensor::upsample_nearest3d(IntOrList output_size, std::optional<Float> scales_d) const& { return tensord::upsample_nearest3d(*this, output_size, scales_d); }
Tensor Tensor::upsample_nearest3d(IntOrList output_size, std::optional<Float> scales_d, std::optional<Float> scales_h) const& { return tensord::upsample_nearest3d(*this, output_size, scales_d, scales_h); }
Tensor Tensor::upsample_nearest3d(IntOrList output_size, std::optional<Float> scales_d, std::optional<Float> scales_h, std::optional<Float> scales_w) const& { return tensord::upsample_nearest3d(*this, output_size, scales_d, scales_h, scales_w); }
Tensor Tensor::upsample_trilinear3d(IntOrList output_size, Bool align_corners) const& { return tensord::upsample_trilinear3d(*this, output_size, align_corners); }
Tensor Tensor::upsample_trilinear3d(IntOrList output_size, Bool align_corners, std::optional<Float> scales_d) const& { return tensord::upsample_trilinear3d(*this, output_size, align_corners, scales_d); }
Tensor Tensor::upsample_trilinear3d(IntOrList output_size, Bool align_corners, std::optional<Float> scales_d, std::optional<Float> scales_h) const& { return tensord::upsample_trilinear3d(*this, output_size, align_corners, scales_d, scales_h); }
Tensor Tensor::upsample_trilinear3d(IntOrList output_size, Bool align_corners, std::optional<Float> scales_d, std::optional<Float> scales_h, std::optional<Float> scales_w) const& { return tensord::upsample_trilinear3d(*this, output_size, align_corners, scales_d, scales_h, scales_w); }
Tensor Tensor::values() const& { return tensord::values(*this); }
Tensor Tensor::var() const& { return tensord::var(*this); }
Tensor Tensor::var(Bool unbiased) const& { return tensord::var(*this, unbiased); }
Tensor Tensor::var(OptionalIntOrList dim) const& { return tensord::var(*this, dim); }
Tensor Tensor::var(OptionalIntOrList dim, const keyword::CorrectionKeepdimArgs& keywords) const& { return tensord::var(*this, dim, keywords); }
Tensor Tensor::var(OptionalIntOrList dim, Bool unbiased) const& { return tensord::var(*this, dim, unbiased); }
Tensor Tensor::var(OptionalIntOrList dim, Bool unbiased, Bool keepdim) const& { return tensord::var(*this, dim, unbiased, keepdim); }
std::tuple<Tensor, Tensor> Tensor::var_mean() const& { return tensord::var_mean(*this); }
std::tuple<Tensor, Tensor> Tensor::var_mean(Bool unbiased) const& { return tensord::var_mean(*this, unbiased); }
std::tuple<Tensor, Tensor> Tensor::var_mean(OptionalIntOrList dim) const& { return tensord::var_mean(*this, dim); }
std::tuple<Tensor, Tensor> Tensor::var_mean(OptionalIntOrList dim, const keyword::CorrectionKeepdimArgs& keywords) const& { return tensord::var_mean(*this, dim, keywords); }
std::tuple<Tensor, Tensor> Tensor::var_mean(OptionalIntOrList dim, Bool unbiased) const& { return tensord::var_mean(*this, dim, unbiased); }
std::tuple<Tensor, Tensor> Tensor::var_mean(OptionalIntOrList dim, Bool unbiased, Bool keepdim) const& { return tensord::var_mean(*this, dim, unbiased, keepdim); }
Tensor Tensor::vdot(const Tensor& other) const& { return tensord::vdot(*this, other); }
Tensor Tensor::view(IntList size) const& { return tensord::view(*this, size); }
Tensor Tensor::view(DType dtype) const& { return tensord::view(*this, dtype); }
Tensor Tensor::view_as(const Tensor& other) const& { return tensord::view_as(*this, other); }
Tensor Tensor::view_as_complex() const& { return tensord::view_as_complex(*this); }
Tensor Tensor::view_as_real() const& { return tensord::view_as_real(*this); }
Tensor Tensor::view_copy(IntList size) const& { return tensord::view_copy(*this, size); }
Tensor Tensor::view_copy(DType dtype) const& { return tensord::view_copy(*this, dtype); }
std::vector<Tensor> Tensor::vsplit(IntList indices) const& { return tensord::vsplit(*this, indices); }
std::vector<Tensor> Tensor::vsplit(Int sections) const& { return tensord::vsplit(*this, sections); }
Tensor Tensor::xlogy(const Scalar& other) const& { return tensord::xlogy(*this, other); }
Tensor Tensor::xlogy(const Tensor& other) const& { return tensord::xlogy(*this, other); }
Tensor Tensor::xlogy_(const Scalar& other) const& { return tensord::xlogy_(*this, other); }
Tensor Tensor::xlogy_(const Tensor& other) const& { return tensord::xlogy_(*this, other); }
Tensor Tensor::zero_() const& { return tensord::zero_(*this); }
Tensor Tensor::zeros_like() const& { return tensord::zeros_like(*this); }
Tensor Tensor::zeros_like(const keyword::DtypeDeviceMemoryFormatArgs& keywords) const& { return tensord::zeros_like(*this, keywords); }

}  // namespace tensord
