// Printed by scripts/cpp_operators.py from the registry; not to be edited.
// clang-format off
#include "core/api/call.h"
#include "tensord/ops.h"

namespace tensord {

Tensor special_scaled_modified_bessel_k0(const Tensor& x) { TENSORD_CALL("aten::special_scaled_modified_bessel_k0", x); }
Tensor special_scaled_modified_bessel_k0_out(const Tensor& out, const Tensor& x) { TENSORD_CALL("aten::special_scaled_modified_bessel_k0.out", x, out); }
Tensor special_scaled_modified_bessel_k1(const Tensor& x) { TENSORD_CALL("aten::special_scaled_modified_bessel_k1", x); }
Tensor special_scaled_modified_bessel_k1_out(const Tensor& out, const Tensor& x) { TENSORD_CALL("aten::special_scaled_modified_bessel_k1.out", x, out); }
Tensor special_shifted_chebyshev_polynomial_t(const Tensor& x, const Tensor& n) { TENSORD_CALL("aten::special_shifted_chebyshev_polynomial_t", x, n); }
Tensor special_shifted_chebyshev_polynomial_t(const Tensor& x, const Scalar& n) { TENSORD_CALL("aten::special_shifted_chebyshev_polynomial_t.n_scalar", x, n); }
Tensor special_shifted_chebyshev_polynomial_t(const Scalar& x, const Tensor& n) { TENSORD_CALL("aten::special_shifted_chebyshev_polynomial_t.x_scalar", x, n); }
Tensor special_shifted_chebyshev_polynomial_t_out(const Tensor& out, const Tensor& x, const Scalar& n) { TENSORD_CALL("aten::special_shifted_chebyshev_polynomial_t.n_scalar_out", x, n, out); }
Tensor special_shifted_chebyshev_polynomial_t_out(const Tensor& out, const Tensor& x, const Tensor& n) { TENSORD_CALL("aten::special_shifted_chebyshev_polynomial_t.out", x, n, out); }
Tensor special_shifted_chebyshev_polynomial_t_out(const Tensor& out, const Scalar& x, const Tensor& n) { TENSORD_CALL("aten::special_shifted_chebyshev_polynomial_t.x_scalar_out", x, n, out); }
Tensor special_shifted_chebyshev_polynomial_u(const Tensor& x, const Tensor& n) { TENSORD_CALL("aten::special_shifted_chebyshev_polynomial_u", x, n); }
Tensor special_shifted_chebyshev_polynomial_u(const Tensor& x, const Scalar& n) { TENSORD_CALL("aten::special_shifted_chebyshev_polynomial_u.n_scalar", x, n); }
Tensor special_shifted_chebyshev_polynomial_u(const Scalar& x, const Tensor& n) { TENSORD_CALL("aten::special_shifted_chebyshev_polynomial_u.x_scalar", x, n); }
Tensor special_shifted_chebyshev_polynomial_u_out(const Tensor& out, const Tensor& x, const Scalar& n) { TENSORD_CALL("aten::special_shifted_chebyshev_polynomial_u.n_scalar_out", x, n, out); }
Tensor special_shifted_chebyshev_polynomial_u_out(const Tensor& out, const Tensor& x, const Tensor& n) { TENSORD_CALL("aten::special_shifted_chebyshev_polynomial_u.out", x, n, out); }
Tensor special_shifted_chebyshev_polynomial_u_out(const Tensor& out, const Scalar& x, const Tensor& n) { TENSORD_CALL("aten::special_shifted_chebyshev_polynomial_u.x_scalar_out", x, n, out); }
Tensor special_shifted_chebyshev_polynomial_v(const Tensor& x, const Tensor& n) { TENSORD_CALL("aten::special_shifted_chebyshev_polynomial_v", x, n); }
Tensor special_shifted_chebyshev_polynomial_v(const Tensor& x, const Scalar& n) { TENSORD_CALL("aten::special_shifted_chebyshev_polynomial_v.n_scalar", x, n); }
Tensor special_shifted_chebyshev_polynomial_v(const Scalar& x, const Tensor& n) { TENSORD_CALL("aten::special_shifted_chebyshev_polynomial_v.x_scalar", x, n); }
Tensor special_shifted_chebyshev_polynomial_v_out(const Tensor& out, const Tensor& x, const Scalar& n) { TENSORD_CALL("aten::special_shifted_chebyshev_polynomial_v.n_scalar_out", x, n, out); }
Tensor special_shifted_chebyshev_polynomial_v_out(const Tensor& out, const Tensor& x, const Tensor& n) { TENSORD_CALL("aten::special_shifted_chebyshev_polynomial_v.out", x, n, out); }
Tensor special_shifted_chebyshev_polynomial_v_out(const Tensor& out, const Scalar& x, const Tensor& n) { TENSORD_CALL("aten::special_shifted_chebyshev_polynomial_v.x_scalar_out", x, n, out); }
Tensor special_shifted_chebyshev_polynomial_w(const Tensor& x, const Tensor& n) { TENSORD_CALL("aten::special_shifted_chebyshev_polynomial_w", x, n); }
Tensor special_shifted_chebyshev_polynomial_w(const Tensor& x, const Scalar& n) { TENSORD_CALL("aten::special_shifted_chebyshev_polynomial_w.n_scalar", x, n); }
Tensor special_shifted_chebyshev_polynomial_w(const Scalar& x, const Tensor& n) { TENSORD_CALL("aten::special_shifted_chebyshev_polynomial_w.x_scalar", x, n); }
Tensor special_shifted_chebyshev_polynomial_w_out(const Tensor& out, const Tensor& x, const Scalar& n) { TENSORD_CALL("aten::special_shifted_chebyshev_polynomial_w.n_scalar_out", x, n, out); }
Tensor special_shifted_chebyshev_polynomial_w_out(const Tensor& out, const Tensor& x, const Tensor& n) { TENSORD_CALL("aten::special_shifted_chebyshev_polynomial_w.out", x, n, out); }
Tensor special_shifted_chebyshev_polynomial_w_out(const Tensor& out, const Scalar& x, const Tensor& n) { TENSORD_CALL("aten::special_shifted_chebyshev_polynomial_w.x_scalar_out", x, n, out); }
Tensor special_spherical_bessel_j0(const Tensor& x) { TENSORD_CALL("aten::special_spherical_bessel_j0", x); }
Tensor special_spherical_bessel_j0_out(const Tensor& out, const Tensor& x) { TENSORD_CALL("aten::special_spherical_bessel_j0.out", x, out); }
Tensor special_xlog1py(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::special_xlog1py", self, other); }
Tensor special_xlog1py(const Tensor& self, const Scalar& other) { TENSORD_CALL("aten::special_xlog1py.other_scalar", self, other); }
Tensor special_xlog1py(const Scalar& self, const Tensor& other) { TENSORD_CALL("aten::special_xlog1py.self_scalar", self, other); }
Tensor special_xlog1py_out(const Tensor& out, const Tensor& self, const Scalar& other) { TENSORD_CALL("aten::special_xlog1py.other_scalar_out", self, other, out); }
Tensor special_xlog1py_out(const Tensor& out, const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::special_xlog1py.out", self, other, out); }
Tensor special_xlog1py_out(const Tensor& out, const Scalar& self, const Tensor& other) { TENSORD_CALL("aten::special_xlog1py.self_scalar_out", self, other, out); }
Tensor special_zeta(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::special_zeta", self, other); }
Tensor special_zeta(const Tensor& self, const Scalar& other) { TENSORD_CALL("aten::special_zeta.other_scalar", self, other); }
Tensor special_zeta(const Scalar& self, const Tensor& other) { TENSORD_CALL("aten::special_zeta.self_scalar", self, other); }
Tensor special_zeta_out(const Tensor& out, const Tensor& self, const Scalar& other) { TENSORD_CALL("aten::special_zeta.other_scalar_out", self, other, out); }
Tensor special_zeta_out(const Tensor& out, const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::special_zeta.out", self, other, out); }
Tensor special_zeta_out(const Tensor& out, const Scalar& self, const Tensor& other) { TENSORD_CALL("aten::special_zeta.self_scalar_out", self, other, out); }
std::vector<Tensor> split(const Tensor& self, IntList split_sizes, Int dim) { TENSORD_CALL("aten::split", self, split_sizes, dim); }
std::vector<Tensor> split(const Tensor& self, Int split_size, Int dim) { TENSORD_CALL("aten::split.Tensor", self, split_size, dim); }
std::vector<Tensor> split_copy(const Tensor& self, Int split_size, Int dim) { TENSORD_CALL("aten::split_copy.Tensor", self, split_size, dim); }
std::vector<Tensor> split_with_sizes(const Tensor& self, IntList split_sizes, Int dim) { TENSORD_CALL("aten::split_with_sizes", self, split_sizes, dim); }
std::vector<Tensor> split_with_sizes_copy(const Tensor& self, IntList split_sizes, Int dim) { TENSORD_CALL("aten::split_with_sizes_copy", self, split_sizes, dim); }
Tensor sqrt(const Tensor& self) { TENSORD_CALL("aten::sqrt", self); }
Tensor sqrt_(const Tensor& self) { TENSORD_CALL("aten::sqrt_", self); }
Tensor sqrt_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::sqrt.out", self, out); }
Tensor square(const Tensor& self) { TENSORD_CALL("aten::square", self); }
Tensor square_(const Tensor& self) { TENSORD_CALL("aten::square_", self); }
Tensor square_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::square.out", self, out); }
Tensor squeeze(const Tensor& self) { TENSORD_CALL("aten::squeeze", self); }
Tensor squeeze(const Tensor& self, Int dim) { TENSORD_CALL("aten::squeeze.dim", self, dim); }
Tensor squeeze(const Tensor& self, IntList dim) { TENSORD_CALL("aten::squeeze.dims", self, dim); }
Tensor squeeze_(const Tensor& self) { TENSORD_CALL("aten::squeeze_", self); }
Tensor squeeze_(const Tensor& self, Int dim) { TENSORD_CALL("aten::squeeze_.dim", self, dim); }
Tensor squeeze_(const Tensor& self, IntList dim) { TENSORD_CALL("aten::squeeze_.dims", self, dim); }
Tensor squeeze_copy(const Tensor& self) { TENSORD_CALL("aten::squeeze_copy", self); }
Tensor squeeze_copy(const Tensor& self, Int dim) { TENSORD_CALL("aten::squeeze_copy.dim", self, dim); }
Tensor squeeze_copy(const Tensor& self, IntList dim) { TENSORD_CALL("aten::squeeze_copy.dims", self, dim); }
Tensor sspaddmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const keyword::BetaAlphaArgs& keywords) { TENSORD_CALL("aten::sspaddmm", self, mat1, mat2, keywords.beta, keywords.alpha); }
Tensor stack(TensorList tensors, Int dim) { TENSORD_CALL("aten::stack", tensors, dim); }
Tensor stack_out(const Tensor& out, TensorList tensors, Int dim) { TENSORD_CALL("aten::stack.out", tensors, dim, out); }
Tensor std(const Tensor& self, Bool unbiased) { TENSORD_CALL("aten::std", self, unbiased); }
Tensor std(const Tensor& self, OptionalIntOrList dim, const keyword::CorrectionKeepdimArgs& keywords) { TENSORD_CALL("aten::std.correction", self, dim, keywords.correction, keywords.keepdim); }
Tensor std(const Tensor& self, OptionalIntOrList dim, Bool unbiased, Bool keepdim) { TENSORD_CALL("aten::std.dim", self, dim, unbiased, keepdim); }
std::tuple<Tensor, Tensor> std_mean(const Tensor& self, Bool unbiased) { TENSORD_CALL("aten::std_mean", self, unbiased); }
std::tuple<Tensor, Tensor> std_mean(const Tensor& self, OptionalIntOrList dim, const keyword::CorrectionKeepdimArgs& keywords) { TENSORD_CALL("aten::std_mean.correction", self, dim, keywords.correction, keywords.keepdim); }
std::tuple<Tensor, Tensor> std_mean(const Tensor& self, OptionalIntOrList dim, Bool unbiased, Bool keepdim) { TENSORD_CALL("aten::std_mean.dim", self, dim, unbiased, keepdim); }
Tensor stft(const Tensor& self, Int n_fft, std::optional<Int> hop_length, std::optional<Int> win_length, const std::optional<Tensor>& window, Bool normalized, std::optional<Bool> onesided, std::optional<Bool> return_complex, std::optional<Bool> align_to_window) { TENSORD_CALL("aten::stft", self, n_fft, hop_length, win_length, window, normalized, onesided, return_complex, align_to_window); }
Tensor stft(const Tensor& self, Int n_fft, std::optional<Int> hop_length, std::optional<Int> win_length, const std::optional<Tensor>& window, Bool center, std::string_view pad_mode, Bool normalized, std::optional<Bool> onesided, std::optional<Bool> return_complex, std::optional<Bool> align_to_window) { TENSORD_CALL("aten::stft.center", self, n_fft, hop_length, win_length, window, center, pad_mode, normalized, onesided, return_complex, align_to_window); }
int64_t storage_offset(const Tensor& self) { TENSORD_CALL("aten::storage_offset", self); }
Dims stride(const Tensor& self) { TENSORD_CALL("aten::stride", self); }
int64_t stride(const Tensor& self, Int dim) { TENSORD_CALL("aten::stride.int", self, dim); }
Tensor sub(const Tensor& self, const Scalar& other, const Scalar& alpha) { TENSORD_CALL("aten::sub.Scalar", self, other, alpha); }
Tensor sub(const Tensor& self, const Tensor& other, const keyword::AlphaArgs& keywords) { TENSORD_CALL("aten::sub.Tensor", self, other, keywords.alpha); }
Tensor sub_(const Tensor& self, const Scalar& other, const Scalar& alpha) { TENSORD_CALL("aten::sub_.Scalar", self, other, alpha); }
Tensor sub_(const Tensor& self, const Tensor& other, const keyword::AlphaArgs& keywords) { TENSORD_CALL("aten::sub_.Tensor", self, other, keywords.alpha); }
Tensor sub_out(const Tensor& out, const Tensor& self, const Scalar& other, const Scalar& alpha) { TENSORD_CALL("aten::sub.Scalar_out", self, other, alpha, out); }
Tensor sub_out(const Tensor& out, const Tensor& self, const Tensor& other, const keyword::AlphaArgs& keywords) { TENSORD_CALL("aten::sub.out", self, other, keywords.alpha, out); }
Tensor sum(const Tensor& self, const keyword::DtypeArgs& keywords) { TENSORD_CALL("aten::sum", self, keywords.dtype); }
Tensor sum(const Tensor& self, OptionalIntOrList dim, Bool keepdim, const keyword::DtypeArgs& keywords) { TENSORD_CALL("aten::sum.dim_IntList", self, dim, keepdim, keywords.dtype); }
Tensor sum_out(const Tensor& out, const Tensor& self, OptionalIntOrList dim, Bool keepdim, const keyword::DtypeArgs& keywords) { TENSORD_CALL("aten::sum.dim_IntList_out", self, dim, keepdim, keywords.dtype, out); }
Tensor sum_to_size(const Tensor& self, IntList size) { TENSORD_CALL("aten::sum_to_size", self, size); }
std::tuple<Tensor, Tensor, Tensor> svd(const Tensor& self, Bool some, Bool compute_uv) { TENSORD_CALL("aten::svd", self, some, compute_uv); }
Tensor swapaxes(const Tensor& self, Int axis0, Int axis1) { TENSORD_CALL("aten::swapaxes", self, axis0, axis1); }
Tensor swapaxes_(const Tensor& self, Int axis0, Int axis1) { TENSORD_CALL("aten::swapaxes_", self, axis0, axis1); }
Tensor swapdims(const Tensor& self, Int dim0, Int dim1) { TENSORD_CALL("aten::swapdims", self, dim0, dim1); }
Tensor swapdims_(const Tensor& self, Int dim0, Int dim1) { TENSORD_CALL("aten::swapdims_", self, dim0, dim1); }
std::tuple<Tensor, Tensor> symeig(const Tensor& self, Bool eigenvectors, Bool upper) { TENSORD_CALL("aten::symeig", self, eigenvectors, upper); }
Tensor t(const Tensor& self) { TENSORD_CALL("aten::t", self); }
Tensor t_(const Tensor& self) { TENSORD_CALL("aten::t_", self); }
Tensor t_copy(const Tensor& self) { TENSORD_CALL("aten::t_copy", self); }
Tensor take(const Tensor& self, const Tensor& index) { TENSORD_CALL("aten::take", self, index); }
Tensor take_along_dim(const Tensor& self, const Tensor& indices, std::optional<Int> dim) { TENSORD_CALL("aten::take_along_dim", self, indices, dim); }
Tensor take_along_dim_out(const Tensor& out, const Tensor& self, const Tensor& indices, std::optional<Int> dim) { TENSORD_CALL("aten::take_along_dim.out", self, indices, dim, out); }
Tensor tan(const Tensor& self) { TENSORD_CALL("aten::tan", self); }
Tensor tan_(const Tensor& self) { TENSORD_CALL("aten::tan_", self); }
Tensor tan_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::tan.out", self, out); }
Tensor tanh(const Tensor& self) { TENSORD_CALL("aten::tanh", self); }
Tensor tanh_(const Tensor& self) { TENSORD_CALL("aten::tanh_", self); }
Tensor tanh_backward(const Tensor& grad_output, const Tensor& output) { TENSORD_CALL("aten::tanh_backward", grad_output, output); }
Tensor tanh_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::tanh.out", self, out); }
Tensor tensor(Bool t, const keyword::DtypeDeviceRequiresGradArgs& keywords) { TENSORD_CALL("aten::tensor.bool", t, keywords.dtype, keywords.device, keywords.requires_grad); }
Tensor tensor(Float t, const keyword::DtypeDeviceRequiresGradArgs& keywords) { TENSORD_CALL("aten::tensor.float", t, keywords.dtype, keywords.device, keywords.requires_grad); }
Tensor tensor(Int t, const keyword::DtypeDeviceRequiresGradArgs& keywords) { TENSORD_CALL("aten::tensor.int", t, keywords.dtype, keywords.device, keywords.requires_grad); }
std::vector<Tensor> tensor_split(const Tensor& self, IntList indices, Int dim) { TENSORD_CALL("aten::tensor_split.indices", self, indices, dim); }
std::vector<Tensor> tensor_split(const Tensor& self, Int sections, Int dim) { TENSORD_CALL("aten::tensor_split.sections", self, sections, dim); }
std::vector<Tensor> tensor_split(const Tensor& self, const Tensor& tensor_indices_or_sections, Int dim) { TENSORD_CALL("aten::tensor_split.tensor_indices_or_sections", self, tensor_indices_or_sections, dim); }
Tensor tensordot(const Tensor& self, const Tensor& other, IntList dims_self, IntList dims_other) { TENSORD_CALL("aten::tensordot", self, other, dims_self, dims_other); }
Tensor threshold(const Tensor& self, const Scalar& threshold, const Scalar& value) { TENSORD_CALL("aten::threshold", self, threshold, value); }
Tensor threshold_(const Tensor& self, const Scalar& threshold, const Scalar& value) { TENSORD_CALL("aten::threshold_", self, threshold, value); }
Tensor threshold_backward(const Tensor& grad_output, const Tensor& self, const Scalar& threshold) { TENSORD_CALL("aten::threshold_backward", grad_output, self, threshold); }
Tensor threshold_out(const Tensor& out, const Tensor& self, const Scalar& threshold, const Scalar& value) { TENSORD_CALL("aten::threshold.out", self, threshold, value, out); }
Tensor tile(const Tensor& self, IntList dims) { TENSORD_CALL("aten::tile", self, dims); }
Tensor to(const Tensor& self, const keyword::DtypeDeviceNonBlockingCopyMemoryFormatArgs& keywords) { TENSORD_CALL("aten::to.dtype_layout", self, keywords.dtype, nullptr, keywords.device, nullptr, keywords.non_blocking, keywords.copy, keywords.memory_format); }
Tensor to(const Tensor& self, DType dtype, Bool non_blocking, Bool copy, std::optional<MemoryFormat> memory_format) { TENSORD_CALL("aten::to.dtype", self, dtype, non_blocking, copy, memory_format); }
Tensor to(const Tensor& self, const Tensor& other, Bool non_blocking, Bool copy, std::optional<MemoryFormat> memory_format) { TENSORD_CALL("aten::to.other", self, other, non_blocking, copy, memory_format); }
Tensor to(const Tensor& self, const Device& device, DType dtype, Bool non_blocking, Bool copy, std::optional<MemoryFormat> memory_format) { TENSORD_CALL("aten::to.device", self, device, dtype, non_blocking, copy, memory_format); }
Tensor to_dense(const Tensor& self, std::optional<DType> dtype, const keyword::MaskedGradArgs& keywords) { TENSORD_CALL("aten::to_dense", self, dtype, keywords.masked_grad); }
Tensor to_padded_tensor(const Tensor& self, Float padding, OptionalIntList output_size) { TENSORD_CALL("aten::to_padded_tensor", self, padding, output_size); }
Tensor to_sparse(const Tensor& self, const keyword::BlocksizeDenseDimArgs& keywords) { TENSORD_CALL("aten::to_sparse", self, nullptr, keywords.blocksize, keywords.dense_dim); }
Tensor to_sparse(const Tensor& self, Int sparse_dim) { TENSORD_CALL("aten::to_sparse.sparse_dim", self, sparse_dim); }
Tensor to_sparse_bsc(const Tensor& self, IntOrList blocksize, std::optional<Int> dense_dim) { TENSORD_CALL("aten::to_sparse_bsc", self, blocksize, dense_dim); }
Tensor to_sparse_bsr(const Tensor& self, IntOrList blocksize, std::optional<Int> dense_dim) { TENSORD_CALL("aten::to_sparse_bsr", self, blocksize, dense_dim); }
Tensor to_sparse_csc(const Tensor& self, std::optional<Int> dense_dim) { TENSORD_CALL("aten::to_sparse_csc", self, dense_dim); }
Tensor to_sparse_csr(const Tensor& self, std::optional<Int> dense_dim) { TENSORD_CALL("aten::to_sparse_csr", self, dense_dim); }
std::tuple<Tensor, Tensor> topk(const Tensor& self, Int k, Int dim, Bool largest, Bool sorted) { TENSORD_CALL("aten::topk", self, k, dim, largest, sorted); }
Tensor trace(const Tensor& self) { TENSORD_CALL("aten::trace", self); }
Tensor trace_backward(const Tensor& grad, IntList sizes) { TENSORD_CALL("aten::trace_backward", grad, sizes); }
Tensor transpose(const Tensor& self, Int dim0, Int dim1) { TENSORD_CALL("aten::transpose.int", self, dim0, dim1); }
Tensor transpose_(const Tensor& self, Int dim0, Int dim1) { TENSORD_CALL("aten::transpose_", self, dim0, dim1); }
Tensor transpose_copy(const Tensor& self, Int dim0, Int dim1) { TENSORD_CALL("aten::transpose_copy.int", self, dim0, dim1); }
Tensor trapezoid(const Tensor& y, const keyword::DxDimArgs& keywords) { TENSORD_CALL("aten::trapezoid.dx", y, keywords.dx, keywords.dim); }
Tensor trapezoid(const Tensor& y, const Tensor& x, const keyword::DimArgs& keywords) { TENSORD_CALL("aten::trapezoid.x", y, x, keywords.dim); }
Tensor trapz(const Tensor& y, const keyword::DxDimArgs2& keywords) { TENSORD_CALL("aten::trapz.dx", y, keywords.dx, keywords.dim); }
Tensor trapz(const Tensor& y, const Tensor& x, const keyword::DimArgs& keywords) { TENSORD_CALL("aten::trapz.x", y, x, keywords.dim); }
std::tuple<Tensor, Tensor> triangular_solve(const Tensor& self, const Tensor& A, Bool upper, Bool transpose, Bool unitriangular) { TENSORD_CALL("aten::triangular_solve", self, A, upper, transpose, unitriangular); }
Tensor tril(const Tensor& self, Int diagonal) { TENSORD_CALL("aten::tril", self, diagonal); }
Tensor tril_(const Tensor& self, Int diagonal) { TENSORD_CALL("aten::tril_", self, diagonal); }
Tensor tril_indices(Int row, Int col, Int offset, const keyword::DtypeDeviceArgs2& keywords) { TENSORD_CALL("aten::tril_indices", row, col, offset, keywords.dtype, nullptr, keywords.device, nullptr); }
Tensor tril_out(const Tensor& out, const Tensor& self, Int diagonal) { TENSORD_CALL("aten::tril.out", self, diagonal, out); }
Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative, Float margin, Float p, Float eps, Bool swap, Int reduction) { TENSORD_CALL("aten::triplet_margin_loss", anchor, positive, negative, margin, p, eps, swap, reduction); }
Tensor triu(const Tensor& self, Int diagonal) { TENSORD_CALL("aten::triu", self, diagonal); }
Tensor triu_(const Tensor& self, Int diagonal) { TENSORD_CALL("aten::triu_", self, diagonal); }
Tensor triu_indices(Int row, Int col, Int offset, const keyword::DtypeDeviceArgs2& keywords) { TENSORD_CALL("aten::triu_indices", row, col, offset, keywords.dtype, nullptr, keywords.device, nullptr); }
Tensor triu_out(const Tensor& out, const Tensor& self, Int diagonal) { TENSORD_CALL("aten::triu.out", self, diagonal, out); }
Tensor trunc(const Tensor& self) { TENSORD_CALL("aten::trunc", self); }
Tensor trunc_(const Tensor& self) { TENSORD_CALL("aten::trunc_", self); }
Tensor trunc_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::trunc.out", self, out); }
Tensor type_as(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::type_as", self, other); }
std::vector<Tensor> unbind(const Tensor& self, Int dim) { TENSORD_CALL("aten::unbind.int", self, dim); }
std::vector<Tensor> unbind_copy(const Tensor& self, Int dim) { TENSORD_CALL("aten::unbind_copy.int", self, dim); }
Tensor unflatten(const Tensor& self, Int dim, IntList sizes) { TENSORD_CALL("aten::unflatten.int", self, dim, sizes); }
Tensor unfold(const Tensor& self, Int dimension, Int size, Int step) { TENSORD_CALL("aten::unfold", self, dimension, size, step); }
Tensor unfold_backward(const Tensor& grad_in, IntList input_sizes, Int dim, Int size, Int step) { TENSORD_CALL("aten::unfold_backward", grad_in, input_sizes, dim, size, step); }
Tensor unfold_copy(const Tensor& self, Int dimension, Int size, Int step) { TENSORD_CALL("aten::unfold_copy", self, dimension, size, step); }
Tensor uniform(const Tensor& self, Float from, Float to) { TENSORD_CALL("aten::uniform", self, from, to, nullptr); }
Tensor uniform_(const Tensor& self, Float from, Float to) { TENSORD_CALL("aten::uniform_", self, from, to, nullptr); }
std::tuple<Tensor, Tensor, Tensor> unique_consecutive(const Tensor& self, Bool return_inverse, Bool return_counts, std::optional<Int> dim) { TENSORD_CALL("aten::unique_consecutive", self, return_inverse, return_counts, dim); }
std::tuple<Tensor, Tensor, Tensor> unique_dim(const Tensor& self, Int dim, Bool sorted, Bool return_inverse, Bool return_counts) { TENSORD_CALL("aten::unique_dim", self, dim, sorted, return_inverse, return_counts); }
std::tuple<Tensor, Tensor, Tensor> unique_dim_consecutive(const Tensor& self, Int dim, Bool return_inverse, Bool return_counts) { TENSORD_CALL("aten::unique_dim_consecutive", self, dim, return_inverse, return_counts); }
std::vector<Tensor> unsafe_chunk(const Tensor& self, Int chunks, Int dim) { TENSORD_CALL("aten::unsafe_chunk", self, chunks, dim); }
std::vector<Tensor> unsafe_split(const Tensor& self, Int split_size, Int dim) { TENSORD_CALL("aten::unsafe_split.Tensor", self, split_size, dim); }
std::vector<Tensor> unsafe_split_with_sizes(const Tensor& self, IntList split_sizes, Int dim) { TENSORD_CALL("aten::unsafe_split_with_sizes", self, split_sizes, dim); }
Tensor unsqueeze(const Tensor& self, Int dim) { TENSORD_CALL("aten::unsqueeze", self, dim); }
Tensor unsqueeze_(const Tensor& self, Int dim) { TENSORD_CALL("aten::unsqueeze_", self, dim); }
Tensor unsqueeze_copy(const Tensor& self, Int dim) { TENSORD_CALL("aten::unsqueeze_copy", self, dim); }
Tensor upsample_bicubic2d(const Tensor& self, IntOrList output_size, Bool align_corners, std::optional<Float> scales_h, std::optional<Float> scales_w) { TENSORD_CALL("aten::upsample_bicubic2d", self, output_size, align_corners, scales_h, scales_w); }
Tensor upsample_bicubic2d(const Tensor& input, OptionalIntList output_size, Bool align_corners, OptionalFloatList scale_factors) { TENSORD_CALL("aten::upsample_bicubic2d.vec", input, output_size, align_corners, scale_factors); }
Tensor upsample_bicubic2d_backward(const Tensor& grad_output, IntOrList output_size, IntOrList input_size, Bool align_corners, std::optional<Float> scales_h, std::optional<Float> scales_w) { TENSORD_CALL("aten::upsample_bicubic2d_backward", grad_output, output_size, input_size, align_corners, scales_h, scales_w); }
Tensor upsample_bicubic2d_out(const Tensor& out, const Tensor& self, IntOrList output_size, Bool align_corners, std::optional<Float> scales_h, std::optional<Float> scales_w) { TENSORD_CALL("aten::upsample_bicubic2d.out", self, output_size, align_corners, scales_h, scales_w, out); }
Tensor upsample_bicubic2d_out(const Tensor& out, const Tensor& input, OptionalIntList output_size, Bool align_corners, OptionalFloatList scale_factors) { TENSORD_CALL("aten::upsample_bicubic2d.vec_out", input, output_size, align_corners, scale_factors, out); }
Tensor upsample_bilinear2d(const Tensor& self, IntOrList output_size, Bool align_corners, std::optional<Float> scales_h, std::optional<Float> scales_w) { TENSORD_CALL("aten::upsample_bilinear2d", self, output_size, align_corners, scales_h, scales_w); }
Tensor upsample_bilinear2d(const Tensor& input, OptionalIntList output_size, Bool align_corners, OptionalFloatList scale_factors) { TENSORD_CALL("aten::upsample_bilinear2d.vec", input, output_size, align_corners, scale_factors); }
Tensor upsample_bilinear2d_backward(const Tensor& grad_output, IntOrList output_size, IntOrList input_size, Bool align_corners, std::optional<Float> scales_h, std::optional<Float> scales_w) { TENSORD_CALL("aten::upsample_bilinear2d_backward", grad_output, output_size, input_size, align_corners, scales_h, scales_w); }
Tensor upsample_bilinear2d_out(const Tensor& out, const Tensor& self, IntOrList output_size, Bool align_corners, std::optional<Float> scales_h, std::optional<Float> scales_w) { TENSORD_CALL("aten::upsample_bilinear2d.out", self, output_size, align_corners, scales_h, scales_w, out); }
Tensor upsample_bilinear2d_out(const Tensor& out, const Tensor& input, OptionalIntList output_size, Bool align_corners, OptionalFloatList scale_factors) { TENSORD_CALL("aten::upsample_bilinear2d.vec_out", input, output_size, align_corners, scale_factors, out); }
Tensor upsample_linear1d(const Tensor& self, IntOrList output_size, Bool align_corners, std::optional<Float> scales) { TENSORD_CALL("aten::upsample_linear1d", self, output_size, align_corners, scales); }
Tensor upsample_linear1d(const Tensor& input, OptionalIntList output_size, Bool align_corners, OptionalFloatList scale_factors) { TENSORD_CALL("aten::upsample_linear1d.vec", input, output_size, align_corners, scale_factors); }
Tensor upsample_linear1d_backward(const Tensor& grad_output, IntOrList output_size, IntOrList input_size, Bool align_corners, std::optional<Float> scales) { TENSORD_CALL("aten::upsample_linear1d_backward", grad_output, output_size, input_size, align_corners, scales); }
Tensor upsample_linear1d_out(const Tensor& out, const Tensor& self, IntOrList output_size, Bool align_corners, std::optional<Float> scales) { TENSORD_CALL("aten::upsample_linear1d.out", self, output_size, align_corners, scales, out); }
Tensor upsample_linear1d_out(const Tensor& out, const Tensor& input, OptionalIntList output_size, Bool align_corners, OptionalFloatList scale_factors) { TENSORD_CALL("aten::upsample_linear1d.vec_out", input, output_size, align_corners, scale_factors, out); }
Tensor upsample_nearest1d(const Tensor& self, IntOrList output_size, std::optional<Float> scales) { TENSORD_CALL("aten::upsample_nearest1d", self, output_size, scales); }
Tensor upsample_nearest1d(const Tensor& input, OptionalIntList output_size, OptionalFloatList scale_factors) { TENSORD_CALL("aten::upsample_nearest1d.vec", input, output_size, scale_factors); }
Tensor upsample_nearest1d_backward(const Tensor& grad_output, IntOrList output_size, IntOrList input_size, std::optional<Float> scales) { TENSORD_CALL("aten::upsample_nearest1d_backward", grad_output, output_size, input_size, scales); }
Tensor upsample_nearest1d_out(const Tensor& out, const Tensor& self, IntOrList output_size, std::optional<Float> scales) { TENSORD_CALL("aten::upsample_nearest1d.out", self, output_size, scales, out); }
Tensor upsample_nearest1d_out(const Tensor& out, const Tensor& input, OptionalIntList output_size, OptionalFloatList scale_factors) { TENSORD_CALL("aten::upsample_nearest1d.vec_out", input, output_size, scale_factors, out); }
Tensor upsample_nearest2d(const Tensor& self, IntOrList output_size, std::optional<Float> scales_h, std::optional<Float> scales_w) { TENSORD_CALL("aten::upsample_nearest2d", self, output_size, scales_h, scales_w); }
Tensor upsample_nearest2d(const Tensor& input, OptionalIntList output_size, OptionalFloatList scale_factors) { TENSORD_CALL("aten::upsample_nearest2d.vec", input, output_size, scale_factors); }
Tensor upsample_nearest2d_backward(const Tensor& grad_output, IntOrList output_size, IntOrList input_size, std::optional<Float> scales_h, std::optional<Float> scales_w) { TENSORD_CALL("aten::upsample_nearest2d_backward", grad_output, output_size, input_size, scales_h, scales_w); }
Tensor upsample_nearest2d_out(const Tensor& out, const Tensor& self, IntOrList output_size, std::optional<Float> scales_h, std::optional<Float> scales_w) { TENSORD_CALL("aten::upsample_nearest2d.out", self, output_size, scales_h, scales_w, out); }
Tensor upsample_nearest2d_out(const Tensor& out, const Tensor& input, OptionalIntList output_size, OptionalFloatList scale_factors) { TENSORD_CALL("aten::upsample_nearest2d.vec_out", input, output_size, scale_factors, out); }
Tensor upsample_nearest3d(const Tensor& self, IntOrList output_size, std::optional<Float> scales_d, std::optional<Float> scales_h, std::optional<Float> scales_w) { TENSORD_CALL("aten::upsample_nearest3d", self, output_size, scales_d, scales_h, scales_w); }
Tensor upsample_nearest3d(const Tensor& input, OptionalIntList output_size, OptionalFloatList scale_factors) { TENSORD_CALL("aten::upsample_nearest3d.vec", input, output_size, scale_factors); }
Tensor upsample_nearest3d_backward(const Tensor& grad_output, IntOrList output_size, IntOrList input_size, std::optional<Float> scales_d, std::optional<Float> scales_h, std::optional<Float> scales_w) { TENSORD_CALL("aten::upsample_nearest3d_backward", grad_output, output_size, input_size, scales_d, scales_h, scales_w); }
Tensor upsample_nearest3d_out(const Tensor& out, const Tensor& self, IntOrList output_size, std::optional<Float> scales_d, std::optional<Float> scales_h, std::optional<Float> scales_w) { TENSORD_CALL("aten::upsample_nearest3d.out", self, output_size, scales_d, scales_h, scales_w, out); }
Tensor upsample_nearest3d_out(const Tensor& out, const Tensor& input, OptionalIntList output_size, OptionalFloatList scale_factors) { TENSORD_CALL("aten::upsample_nearest3d.vec_out", input, output_size, scale_factors, out); }
Tensor upsample_trilinear3d(const Tensor& self, IntOrList output_size, Bool align_corners, std::optional<Float> scales_d, std::optional<Float> scales_h, std::optional<Float> scales_w) { TENSORD_CALL("aten::upsample_trilinear3d", self, output_size, align_corners, scales_d, scales_h, scales_w); }
Tensor upsample_trilinear3d(const Tensor& input, OptionalIntList output_size, Bool align_corners, OptionalFloatList scale_factors) { TENSORD_CALL("aten::upsample_trilinear3d.vec", input, output_size, align_corners, scale_factors); }
Tensor upsample_trilinear3d_backward(const Tensor& grad_output, IntOrList output_size, IntOrList input_size, Bool align_corners, std::optional<Float> scales_d, std::optional<Float> scales_h, std::optional<Float> scales_w) { TENSORD_CALL("aten::upsample_trilinear3d_backward", grad_output, output_size, input_size, align_corners, scales_d, scales_h, scales_w); }
Tensor upsample_trilinear3d_out(const Tensor& out, const Tensor& self, IntOrList output_size, Bool align_corners, std::optional<Float> scales_d, std::optional<Float> scales_h, std::optional<Float> scales_w) { TENSORD_CALL("aten::upsample_trilinear3d.out", self, output_size, align_corners, scales_d, scales_h, scales_w, out); }
Tensor upsample_trilinear3d_out(const Tensor& out, const Tensor& input, OptionalIntList output_size, Bool align_corners, OptionalFloatList scale_factors) { TENSORD_CALL("aten::upsample_trilinear3d.vec_out", input, output_size, align_corners, scale_factors, out); }
Tensor value_selecting_reduction_backward(const Tensor& grad, Int dim, const Tensor& indices, IntList sizes, Bool keepdim) { TENSORD_CALL("aten::value_selecting_reduction_backward", grad, dim, indices, sizes, keepdim); }
Tensor values(const Tensor& self) { TENSORD_CALL("aten::values", self); }
Tensor vander(const Tensor& x, std::optional<Int> N, Bool increasing) { TENSORD_CALL("aten::vander", x, N, increasing); }
Tensor var(const Tensor& self, Bool unbiased) { TENSORD_CALL("aten::var", self, unbiased); }
Tensor var(const Tensor& self, OptionalIntOrList dim, const keyword::CorrectionKeepdimArgs& keywords) { TENSORD_CALL("aten::var.correction", self, dim, keywords.correction, keywords.keepdim); }
Tensor var(const Tensor& self, OptionalIntOrList dim, Bool unbiased, Bool keepdim) { TENSORD_CALL("aten::var.dim", self, dim, unbiased, keepdim); }
std::tuple<Tensor, Tensor> var_mean(const Tensor& self, Bool unbiased) { TENSORD_CALL("aten::var_mean", self, unbiased); }
std::tuple<Tensor, Tensor> var_mean(const Tensor& self, OptionalIntOrList dim, const keyword::CorrectionKeepdimArgs& keywords) { TENSORD_CALL("aten::var_mean.correction", self, dim, keywords.correction, keywords.keepdim); }
std::tuple<Tensor, Tensor> var_mean(const Tensor& self, OptionalIntOrList dim, Bool unbiased, Bool keepdim) { TENSORD_CALL("aten::var_mean.dim", self, dim, unbiased, keepdim); }
Tensor vdot(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::vdot", self, other); }
Tensor vdot_out(const Tensor& out, const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::vdot.out", self, other, out); }
Tensor view(const Tensor& self, IntList size) { TENSORD_CALL("aten::view", self, size); }
Tensor view(const Tensor& self, DType dtype) { TENSORD_CALL("aten::view.dtype", self, dtype); }
Tensor view_as(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::view_as", self, other); }
Tensor view_as_complex(const Tensor& self) { TENSORD_CALL("aten::view_as_complex", self); }
Tensor view_as_real(const Tensor& self) { TENSORD_CALL("aten::view_as_real", self); }
Tensor view_copy(const Tensor& self, IntList size) { TENSORD_CALL("aten::view_copy", self, size); }
Tensor view_copy(const Tensor& self, DType dtype) { TENSORD_CALL("aten::view_copy.dtype", self, dtype); }
std::vector<Tensor> vsplit(const Tensor& self, IntList indices) { TENSORD_CALL("aten::vsplit.array", self, indices); }
std::vector<Tensor> vsplit(const Tensor& self, Int sections) { TENSORD_CALL("aten::vsplit.int", self, sections); }
Tensor vstack(TensorList tensors) { TENSORD_CALL("aten::vstack", tensors); }
std::vector<Tensor> where(const Tensor& condition) { TENSORD_CALL("aten::where", condition); }
Tensor where(const Tensor& condition, const Scalar& self, const Scalar& other) { TENSORD_CALL("aten::where.Scalar", condition, self, other); }
Tensor where(const Tensor& condition, const Tensor& self, const Scalar& other) { TENSORD_CALL("aten::where.ScalarOther", condition, self, other); }
Tensor where(const Tensor& condition, const Scalar& self, const Tensor& other) { TENSORD_CALL("aten::where.ScalarSelf", condition, self, other); }
Tensor where(const Tensor& condition, const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::where.self", condition, self, other); }
Tensor xlogy(const Tensor& self, const Scalar& other) { TENSORD_CALL("aten::xlogy.Scalar_Other", self, other); }
Tensor xlogy(const Scalar& self, const Tensor& other) { TENSORD_CALL("aten::xlogy.Scalar_Self", self, other); }
Tensor xlogy(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::xlogy.Tensor", self, other); }
Tensor xlogy_(const Tensor& self, const Scalar& other) { TENSORD_CALL("aten::xlogy_.Scalar_Other", self, other); }
Tensor xlogy_(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::xlogy_.Tensor", self, other); }
Tensor xlogy_out(const Tensor& out, const Tensor& self, const Scalar& other) { TENSORD_CALL("aten::xlogy.Scalar_Other_out", self, other, out); }
Tensor xlogy_out(const Tensor& out, const Scalar& self, const Tensor& other) { TENSORD_CALL("aten::xlogy.Scalar_Self_out", self, other, out); }
Tensor xlogy_out(const Tensor& out, const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::xlogy.out", self, other, out); }
Tensor zero_(const Tensor& self) { TENSORD_CALL("aten::zero_", self); }
Tensor zeros(IntList size, const keyword::DtypeDeviceArgs& keywords) { TENSORD_CALL("aten::zeros", size, keywords.dtype, nullptr, keywords.device, nullptr); }
Tensor zeros_like(const Tensor& self, const keyword::DtypeDeviceMemoryFormatArgs& keywords) { TENSORD_CALL("aten::zeros_like", self, keywords.dtype, nullptr, keywords.device, nullptr, keywords.memory_format); }

}  // namespace tensord
