// Printed by scripts/cpp_operators.py from the registry; not to be edited.
// clang-format off
#include "core/api/call.h"
#include "tensord/ops.h"

namespace tensord {

Tensor real(const Tensor& self) { TENSORD_CALL("aten::real", self); }
Tensor reciprocal(const Tensor& self) { TENSORD_CALL("aten::reciprocal", self); }
Tensor reciprocal_(const Tensor& self) { TENSORD_CALL("aten::reciprocal_", self); }
Tensor reciprocal_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::reciprocal.out", self, out); }
Tensor reflection_pad1d(const Tensor& self, IntOrList padding) { TENSORD_CALL("aten::reflection_pad1d", self, padding); }
Tensor reflection_pad1d_backward(const Tensor& grad_output, const Tensor& self, IntOrList padding) { TENSORD_CALL("aten::reflection_pad1d_backward", grad_output, self, padding); }
Tensor reflection_pad2d(const Tensor& self, IntOrList padding) { TENSORD_CALL("aten::reflection_pad2d", self, padding); }
Tensor reflection_pad2d_backward(const Tensor& grad_output, const Tensor& self, IntOrList padding) { TENSORD_CALL("aten::reflection_pad2d_backward", grad_output, self, padding); }
Tensor reflection_pad3d(const Tensor& self, IntOrList padding) { TENSORD_CALL("aten::reflection_pad3d", self, padding); }
Tensor reflection_pad3d_backward(const Tensor& grad_output, const Tensor& self, IntOrList padding) { TENSORD_CALL("aten::reflection_pad3d_backward", grad_output, self, padding); }
Tensor relu(const Tensor& self) { TENSORD_CALL("aten::relu", self); }
Tensor relu6(const Tensor& self) { TENSORD_CALL("aten::relu6", self); }
Tensor relu6_(const Tensor& self) { TENSORD_CALL("aten::relu6_", self); }
Tensor relu6_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::relu6.out", self, out); }
Tensor relu_(const Tensor& self) { TENSORD_CALL("aten::relu_", self); }
Tensor relu_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::relu.out", self, out); }
Tensor remainder(const Tensor& self, const Scalar& other) { TENSORD_CALL("aten::remainder.Scalar", self, other); }
Tensor remainder(const Scalar& self, const Tensor& other) { TENSORD_CALL("aten::remainder.Scalar_Tensor", self, other); }
Tensor remainder(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::remainder.Tensor", self, other); }
Tensor remainder_(const Tensor& self, const Scalar& other) { TENSORD_CALL("aten::remainder_.Scalar", self, other); }
Tensor remainder_(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::remainder_.Tensor", self, other); }
Tensor remainder_out(const Tensor& out, const Tensor& self, const Scalar& other) { TENSORD_CALL("aten::remainder.Scalar_out", self, other, out); }
Tensor remainder_out(const Tensor& out, const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::remainder.out", self, other, out); }
Tensor renorm(const Tensor& self, const Scalar& p, Int dim, const Scalar& maxnorm) { TENSORD_CALL("aten::renorm", self, p, dim, maxnorm); }
Tensor renorm_(const Tensor& self, const Scalar& p, Int dim, const Scalar& maxnorm) { TENSORD_CALL("aten::renorm_", self, p, dim, maxnorm); }
Tensor renorm_out(const Tensor& out, const Tensor& self, const Scalar& p, Int dim, const Scalar& maxnorm) { TENSORD_CALL("aten::renorm.out", self, p, dim, maxnorm, out); }
Tensor repeat(const Tensor& self, IntList repeats) { TENSORD_CALL("aten::repeat", self, repeats); }
Tensor repeat_interleave(const Tensor& repeats, const keyword::OutputSizeArgs& keywords) { TENSORD_CALL("aten::repeat_interleave.Tensor", repeats, keywords.output_size); }
Tensor repeat_interleave(const Tensor& self, const Tensor& repeats, std::optional<Int> dim, const keyword::OutputSizeArgs& keywords) { TENSORD_CALL("aten::repeat_interleave.self_Tensor", self, repeats, dim, keywords.output_size); }
Tensor repeat_interleave(const Tensor& self, Int repeats, std::optional<Int> dim, const keyword::OutputSizeArgs& keywords) { TENSORD_CALL("aten::repeat_interleave.self_int", self, repeats, dim, keywords.output_size); }
Tensor replication_pad1d(const Tensor& self, IntOrList padding) { TENSORD_CALL("aten::replication_pad1d", self, padding); }
Tensor replication_pad1d_backward(const Tensor& grad_output, const Tensor& self, IntOrList padding) { TENSORD_CALL("aten::replication_pad1d_backward", grad_output, self, padding); }
Tensor replication_pad2d(const Tensor& self, IntOrList padding) { TENSORD_CALL("aten::replication_pad2d", self, padding); }
Tensor replication_pad2d_backward(const Tensor& grad_output, const Tensor& self, IntOrList padding) { TENSORD_CALL("aten::replication_pad2d_backward", grad_output, self, padding); }
Tensor replication_pad3d(const Tensor& self, IntOrList padding) { TENSORD_CALL("aten::replication_pad3d", self, padding); }
Tensor replication_pad3d_backward(const Tensor& grad_output, const Tensor& self, IntOrList padding) { TENSORD_CALL("aten::replication_pad3d_backward", grad_output, self, padding); }
Tensor requires_grad_(const Tensor& self, Bool requires_grad) { TENSORD_CALL("aten::requires_grad_", self, requires_grad); }
Tensor reshape(const Tensor& self, IntList shape) { TENSORD_CALL("aten::reshape", self, shape); }
Tensor reshape_as(const Tensor& self, const Tensor& other) { TENSORD_CALL("aten::reshape_as", self, other); }
Tensor resolve_conj(const Tensor& self) { TENSORD_CALL("aten::resolve_conj", self); }
Tensor resolve_neg(const Tensor& self) { TENSORD_CALL("aten::resolve_neg", self); }
DType result_type(const Tensor& tensor, const Scalar& other) { TENSORD_CALL("aten::result_type.Scalar", tensor, other); }
DType result_type(const Scalar& scalar, const Tensor& tensor) { TENSORD_CALL("aten::result_type.Scalar_Tensor", scalar, tensor); }
DType result_type(const Tensor& tensor, const Tensor& other) { TENSORD_CALL("aten::result_type.Tensor", tensor, other); }
bool retains_grad(const Tensor& self) { TENSORD_CALL("aten::retains_grad", self); }
Tensor rms_norm(const Tensor& input, IntList normalized_shape, const std::optional<Tensor>& weight, std::optional<Float> eps) { TENSORD_CALL("aten::rms_norm", input, normalized_shape, weight, eps); }
std::tuple<Tensor, Tensor> rnn_relu(const Tensor& data, const Tensor& batch_sizes, const Tensor& hx, TensorList params, Bool has_biases, Int num_layers, Float dropout, Bool train, Bool bidirectional) { TENSORD_CALL("aten::rnn_relu.data", data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional); }
std::tuple<Tensor, Tensor> rnn_relu(const Tensor& input, const Tensor& hx, TensorList params, Bool has_biases, Int num_layers, Float dropout, Bool train, Bool bidirectional, Bool batch_first) { TENSORD_CALL("aten::rnn_relu.input", input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first); }
Tensor rnn_relu_cell(const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh, const std::optional<Tensor>& b_ih, const std::optional<Tensor>& b_hh) { TENSORD_CALL("aten::rnn_relu_cell", input, hx, w_ih, w_hh, b_ih, b_hh); }
std::tuple<Tensor, Tensor> rnn_tanh(const Tensor& data, const Tensor& batch_sizes, const Tensor& hx, TensorList params, Bool has_biases, Int num_layers, Float dropout, Bool train, Bool bidirectional) { TENSORD_CALL("aten::rnn_tanh.data", data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional); }
std::tuple<Tensor, Tensor> rnn_tanh(const Tensor& input, const Tensor& hx, TensorList params, Bool has_biases, Int num_layers, Float dropout, Bool train, Bool bidirectional, Bool batch_first) { TENSORD_CALL("aten::rnn_tanh.input", input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first); }
Tensor rnn_tanh_cell(const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh, const std::optional<Tensor>& b_ih, const std::optional<Tensor>& b_hh) { TENSORD_CALL("aten::rnn_tanh_cell", input, hx, w_ih, w_hh, b_ih, b_hh); }
Tensor roll(const Tensor& self, IntOrList shifts, IntOrList dims) { TENSORD_CALL("aten::roll", self, shifts, dims); }
Tensor rot90(const Tensor& self, Int k, IntList dims) { TENSORD_CALL("aten::rot90", self, k, dims); }
Tensor round(const Tensor& self) { TENSORD_CALL("aten::round", self); }
Tensor round(const Tensor& self, const keyword::DecimalsArgs& keywords) { TENSORD_CALL("aten::round.decimals", self, keywords.decimals); }
Tensor round_(const Tensor& self) { TENSORD_CALL("aten::round_", self); }
Tensor round_(const Tensor& self, const keyword::DecimalsArgs& keywords) { TENSORD_CALL("aten::round_.decimals", self, keywords.decimals); }
Tensor round_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::round.out", self, out); }
Tensor round_out(const Tensor& out, const Tensor& self, const keyword::DecimalsArgs& keywords) { TENSORD_CALL("aten::round.decimals_out", self, keywords.decimals, out); }
Tensor row_indices(const Tensor& self) { TENSORD_CALL("aten::row_indices", self); }
Tensor row_stack(TensorList tensors) { TENSORD_CALL("aten::row_stack", tensors); }
Tensor rrelu(const Tensor& self, const Scalar& lower, const Scalar& upper, Bool training) { TENSORD_CALL("aten::rrelu", self, lower, upper, training, nullptr); }
Tensor rrelu_(const Tensor& self, const Scalar& lower, const Scalar& upper, Bool training) { TENSORD_CALL("aten::rrelu_", self, lower, upper, training, nullptr); }
Tensor rrelu_with_noise(const Tensor& self, const Tensor& noise, const Scalar& lower, const Scalar& upper, Bool training) { TENSORD_CALL("aten::rrelu_with_noise", self, noise, lower, upper, training, nullptr); }
Tensor rrelu_with_noise_(const Tensor& self, const Tensor& noise, const Scalar& lower, const Scalar& upper, Bool training) { TENSORD_CALL("aten::rrelu_with_noise_", self, noise, lower, upper, training, nullptr); }
Tensor rrelu_with_noise_backward(const Tensor& grad_output, const Tensor& self, const Tensor& noise, const Scalar& lower, const Scalar& upper, Bool training, Bool self_is_result) { TENSORD_CALL("aten::rrelu_with_noise_backward", grad_output, self, noise, lower, upper, training, self_is_result); }
Tensor rsqrt(const Tensor& self) { TENSORD_CALL("aten::rsqrt", self); }
Tensor rsqrt_(const Tensor& self) { TENSORD_CALL("aten::rsqrt_", self); }
Tensor rsqrt_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::rsqrt.out", self, out); }
Tensor rsub(const Tensor& self, const Scalar& other, const Scalar& alpha) { TENSORD_CALL("aten::rsub.Scalar", self, other, alpha); }
Tensor rsub(const Tensor& self, const Tensor& other, const keyword::AlphaArgs& keywords) { TENSORD_CALL("aten::rsub.Tensor", self, other, keywords.alpha); }
Tensor rsub_(const Tensor& self, const Scalar& other, const Scalar& alpha) { TENSORD_CALL("aten::rsub_.Scalar", self, other, alpha); }
Tensor rsub_(const Tensor& self, const Tensor& other, const keyword::AlphaArgs& keywords) { TENSORD_CALL("aten::rsub_.Tensor", self, other, keywords.alpha); }
Tensor rsub_out(const Tensor& out, const Tensor& self, const Scalar& other, const Scalar& alpha) { TENSORD_CALL("aten::rsub.Scalar_out", self, other, alpha, out); }
Tensor rsub_out(const Tensor& out, const Tensor& self, const Tensor& other, const keyword::AlphaArgs& keywords) { TENSORD_CALL("aten::rsub.out", self, other, keywords.alpha, out); }
Tensor scalar_tensor(const Scalar& s, const keyword::DtypeDeviceArgs& keywords) { TENSORD_CALL("aten::scalar_tensor", s, keywords.dtype, nullptr, keywords.device, nullptr); }
Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value, const std::optional<Tensor>& attn_mask, Float dropout_p, Bool is_causal, const keyword::ScaleEnableGqaArgs& keywords) { TENSORD_CALL("aten::scaled_dot_product_attention", query, key, value, attn_mask, dropout_p, is_causal, keywords.scale, keywords.enable_gqa); }
Tensor scatter(const Tensor& self, Int dim, const Tensor& index, const Tensor& src) { TENSORD_CALL("aten::scatter.src", self, dim, index, src); }
Tensor scatter(const Tensor& self, Int dim, const Tensor& index, const Scalar& value) { TENSORD_CALL("aten::scatter.value", self, dim, index, value); }
Tensor scatter(const Tensor& self, Int dim, const Tensor& index, const Tensor& src, const keyword::ReduceArgs& keywords) { TENSORD_CALL("aten::scatter.reduce", self, dim, index, src, keywords.reduce); }
Tensor scatter(const Tensor& self, Int dim, const Tensor& index, const Scalar& value, const keyword::ReduceArgs& keywords) { TENSORD_CALL("aten::scatter.value_reduce", self, dim, index, value, keywords.reduce); }
Tensor scatter_(const Tensor& self, Int dim, const Tensor& index, const Tensor& src) { TENSORD_CALL("aten::scatter_.src", self, dim, index, src); }
Tensor scatter_(const Tensor& self, Int dim, const Tensor& index, const Scalar& value) { TENSORD_CALL("aten::scatter_.value", self, dim, index, value); }
Tensor scatter_(const Tensor& self, Int dim, const Tensor& index, const Tensor& src, const keyword::ReduceArgs& keywords) { TENSORD_CALL("aten::scatter_.reduce", self, dim, index, src, keywords.reduce); }
Tensor scatter_(const Tensor& self, Int dim, const Tensor& index, const Scalar& value, const keyword::ReduceArgs& keywords) { TENSORD_CALL("aten::scatter_.value_reduce", self, dim, index, value, keywords.reduce); }
Tensor scatter_add(const Tensor& self, Int dim, const Tensor& index, const Tensor& src) { TENSORD_CALL("aten::scatter_add", self, dim, index, src); }
Tensor scatter_add_(const Tensor& self, Int dim, const Tensor& index, const Tensor& src) { TENSORD_CALL("aten::scatter_add_", self, dim, index, src); }
Tensor scatter_reduce(const Tensor& self, Int dim, const Tensor& index, const Tensor& src, std::string_view reduce, const keyword::IncludeSelfArgs& keywords) { TENSORD_CALL("aten::scatter_reduce.two", self, dim, index, src, reduce, keywords.include_self); }
Tensor scatter_reduce_(const Tensor& self, Int dim, const Tensor& index, const Tensor& src, std::string_view reduce, const keyword::IncludeSelfArgs& keywords) { TENSORD_CALL("aten::scatter_reduce_.two", self, dim, index, src, reduce, keywords.include_self); }
Tensor searchsorted(const Tensor& sorted_sequence, const Scalar& self, const keyword::OutInt32RightSideSorterArgs& keywords) { TENSORD_CALL("aten::searchsorted.Scalar", sorted_sequence, self, keywords.out_int32, keywords.right, keywords.side, keywords.sorter); }
Tensor searchsorted(const Tensor& sorted_sequence, const Tensor& self, const keyword::OutInt32RightSideSorterArgs& keywords) { TENSORD_CALL("aten::searchsorted.Tensor", sorted_sequence, self, keywords.out_int32, keywords.right, keywords.side, keywords.sorter); }
Tensor segment_reduce(const Tensor& data, std::string_view reduce, const keyword::LengthsIndicesOffsetsAxisUnsafeInitialArgs& keywords) { TENSORD_CALL("aten::segment_reduce", data, reduce, keywords.lengths, keywords.indices, keywords.offsets, keywords.axis, keywords.unsafe, keywords.initial); }
Tensor select(const Tensor& self, Int dim, Int index) { TENSORD_CALL("aten::select.int", self, dim, index); }
Tensor select_backward(const Tensor& grad_output, IntList input_sizes, Int dim, Int index) { TENSORD_CALL("aten::select_backward", grad_output, input_sizes, dim, index); }
Tensor select_copy(const Tensor& self, Int dim, Int index) { TENSORD_CALL("aten::select_copy.int", self, dim, index); }
Tensor select_scatter(const Tensor& self, const Tensor& src, Int dim, Int index) { TENSORD_CALL("aten::select_scatter", self, src, dim, index); }
Tensor selu(const Tensor& self) { TENSORD_CALL("aten::selu", self); }
Tensor selu_(const Tensor& self) { TENSORD_CALL("aten::selu_", self); }
Tensor selu_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::selu.out", self, out); }
Tensor sgn(const Tensor& self) { TENSORD_CALL("aten::sgn", self); }
Tensor sgn_(const Tensor& self) { TENSORD_CALL("aten::sgn_", self); }
Tensor sgn_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::sgn.out", self, out); }
Tensor sigmoid(const Tensor& self) { TENSORD_CALL("aten::sigmoid", self); }
Tensor sigmoid_(const Tensor& self) { TENSORD_CALL("aten::sigmoid_", self); }
Tensor sigmoid_backward(const Tensor& grad_output, const Tensor& output) { TENSORD_CALL("aten::sigmoid_backward", grad_output, output); }
Tensor sigmoid_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::sigmoid.out", self, out); }
Tensor sign(const Tensor& self) { TENSORD_CALL("aten::sign", self); }
Tensor sign_(const Tensor& self) { TENSORD_CALL("aten::sign_", self); }
Tensor sign_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::sign.out", self, out); }
Tensor signbit(const Tensor& self) { TENSORD_CALL("aten::signbit", self); }
Tensor signbit_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::signbit.out", self, out); }
Tensor silu(const Tensor& self) { TENSORD_CALL("aten::silu", self); }
Tensor silu_(const Tensor& self) { TENSORD_CALL("aten::silu_", self); }
Tensor silu_backward(const Tensor& grad_output, const Tensor& self) { TENSORD_CALL("aten::silu_backward", grad_output, self); }
Tensor silu_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::silu.out", self, out); }
Tensor sin(const Tensor& self) { TENSORD_CALL("aten::sin", self); }
Tensor sin_(const Tensor& self) { TENSORD_CALL("aten::sin_", self); }
Tensor sin_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::sin.out", self, out); }
Tensor sinc(const Tensor& self) { TENSORD_CALL("aten::sinc", self); }
Tensor sinc_(const Tensor& self) { TENSORD_CALL("aten::sinc_", self); }
Tensor sinc_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::sinc.out", self, out); }
Tensor sinh(const Tensor& self) { TENSORD_CALL("aten::sinh", self); }
Tensor sinh_(const Tensor& self) { TENSORD_CALL("aten::sinh_", self); }
Tensor sinh_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::sinh.out", self, out); }
Dims size(const Tensor& self) { TENSORD_CALL("aten::size", self); }
int64_t size(const Tensor& self, Int dim) { TENSORD_CALL("aten::size.int", self, dim); }
Tensor slice(const Tensor& self, Int dim, std::optional<Int> start, std::optional<Int> end, Int step) { TENSORD_CALL("aten::slice.Tensor", self, dim, start, end, step); }
Tensor slice_backward(const Tensor& grad_output, IntList input_sizes, Int dim, Int start, Int end, Int step) { TENSORD_CALL("aten::slice_backward", grad_output, input_sizes, dim, start, end, step); }
Tensor slice_copy(const Tensor& self, Int dim, std::optional<Int> start, std::optional<Int> end, Int step) { TENSORD_CALL("aten::slice_copy.Tensor", self, dim, start, end, step); }
Tensor slice_scatter(const Tensor& self, const Tensor& src, Int dim, std::optional<Int> start, std::optional<Int> end, Int step) { TENSORD_CALL("aten::slice_scatter", self, src, dim, start, end, step); }
std::tuple<Tensor, Tensor> slogdet(const Tensor& self) { TENSORD_CALL("aten::slogdet", self); }
Tensor smm(const Tensor& self, const Tensor& mat2) { TENSORD_CALL("aten::smm", self, mat2); }
Tensor smooth_l1_loss(const Tensor& self, const Tensor& target, Int reduction, Float beta) { TENSORD_CALL("aten::smooth_l1_loss", self, target, reduction, beta); }
Tensor smooth_l1_loss_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target, Int reduction, Float beta) { TENSORD_CALL("aten::smooth_l1_loss_backward", grad_output, self, target, reduction, beta); }
Tensor soft_margin_loss(const Tensor& self, const Tensor& target, Int reduction) { TENSORD_CALL("aten::soft_margin_loss", self, target, reduction); }
Tensor soft_margin_loss_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target, Int reduction) { TENSORD_CALL("aten::soft_margin_loss_backward", grad_output, self, target, reduction); }
Tensor softmax(const Tensor& self, Int dim, std::optional<DType> dtype) { TENSORD_CALL("aten::softmax.int", self, dim, dtype); }
Tensor softplus(const Tensor& self, const Scalar& beta, const Scalar& threshold) { TENSORD_CALL("aten::softplus", self, beta, threshold); }
Tensor softplus_(const Tensor& self, const Scalar& beta, const Scalar& threshold) { TENSORD_CALL("aten::softplus_", self, beta, threshold); }
Tensor softplus_backward(const Tensor& grad_output, const Tensor& self, const Scalar& beta, const Scalar& threshold) { TENSORD_CALL("aten::softplus_backward", grad_output, self, beta, threshold); }
Tensor softplus_out(const Tensor& out, const Tensor& self, const Scalar& beta, const Scalar& threshold) { TENSORD_CALL("aten::softplus.out", self, beta, threshold, out); }
Tensor softshrink(const Tensor& self, const Scalar& lambd) { TENSORD_CALL("aten::softshrink", self, lambd); }
Tensor softshrink_(const Tensor& self, const Scalar& lambd) { TENSORD_CALL("aten::softshrink_", self, lambd); }
Tensor softshrink_backward(const Tensor& grad_output, const Tensor& self, const Scalar& lambd) { TENSORD_CALL("aten::softshrink_backward", grad_output, self, lambd); }
Tensor softshrink_out(const Tensor& out, const Tensor& self, const Scalar& lambd) { TENSORD_CALL("aten::softshrink.out", self, lambd, out); }
std::tuple<Tensor, Tensor> sort(const Tensor& self, Int dim, Bool descending) { TENSORD_CALL("aten::sort", self, dim, descending); }
std::tuple<Tensor, Tensor> sort(const Tensor& self, const keyword::StableDimDescendingArgs2& keywords) { TENSORD_CALL("aten::sort.stable", self, keywords.stable, keywords.dim, keywords.descending); }
std::vector<Tensor> sorted(TensorList input) { TENSORD_CALL("aten::sorted.Tensor", input); }
Tensor sparse_bsc_tensor(const Tensor& ccol_indices, const Tensor& row_indices, const Tensor& values, const keyword::DtypeDeviceArgs& keywords) { TENSORD_CALL("aten::sparse_bsc_tensor.ccol_row_value", ccol_indices, row_indices, values, keywords.dtype, nullptr, keywords.device, nullptr); }
Tensor sparse_bsc_tensor(const Tensor& ccol_indices, const Tensor& row_indices, const Tensor& values, IntList size, const keyword::DtypeDeviceArgs& keywords) { TENSORD_CALL("aten::sparse_bsc_tensor.ccol_row_value_size", ccol_indices, row_indices, values, size, keywords.dtype, nullptr, keywords.device, nullptr); }
Tensor sparse_bsr_tensor(const Tensor& crow_indices, const Tensor& col_indices, const Tensor& values, const keyword::DtypeDeviceArgs& keywords) { TENSORD_CALL("aten::sparse_bsr_tensor.crow_col_value", crow_indices, col_indices, values, keywords.dtype, nullptr, keywords.device, nullptr); }
Tensor sparse_bsr_tensor(const Tensor& crow_indices, const Tensor& col_indices, const Tensor& values, IntList size, const keyword::DtypeDeviceArgs& keywords) { TENSORD_CALL("aten::sparse_bsr_tensor.crow_col_value_size", crow_indices, col_indices, values, size, keywords.dtype, nullptr, keywords.device, nullptr); }
Tensor sparse_compressed_tensor(const Tensor& compressed_indices, const Tensor& plain_indices, const Tensor& values, const keyword::DtypeDeviceArgs& keywords) { TENSORD_CALL("aten::sparse_compressed_tensor.comp_plain_value", compressed_indices, plain_indices, values, keywords.dtype, nullptr, keywords.device, nullptr); }
Tensor sparse_compressed_tensor(const Tensor& compressed_indices, const Tensor& plain_indices, const Tensor& values, IntList size, const keyword::DtypeDeviceArgs& keywords) { TENSORD_CALL("aten::sparse_compressed_tensor.comp_plain_value_size", compressed_indices, plain_indices, values, size, keywords.dtype, nullptr, keywords.device, nullptr); }
Tensor sparse_coo_tensor(IntList size, const keyword::DtypeDeviceArgs& keywords) { TENSORD_CALL("aten::sparse_coo_tensor.size", size, keywords.dtype, nullptr, keywords.device, nullptr); }
Tensor sparse_coo_tensor(const Tensor& indices, const Tensor& values, const keyword::DtypeDeviceIsCoalescedArgs& keywords) { TENSORD_CALL("aten::sparse_coo_tensor.indices", indices, values, keywords.dtype, nullptr, keywords.device, nullptr, keywords.is_coalesced); }
Tensor sparse_coo_tensor(const Tensor& indices, const Tensor& values, IntList size, const keyword::DtypeDeviceIsCoalescedArgs& keywords) { TENSORD_CALL("aten::sparse_coo_tensor.indices_size", indices, values, size, keywords.dtype, nullptr, keywords.device, nullptr, keywords.is_coalesced); }
Tensor sparse_csc_tensor(const Tensor& ccol_indices, const Tensor& row_indices, const Tensor& values, const keyword::DtypeDeviceArgs& keywords) { TENSORD_CALL("aten::sparse_csc_tensor.ccol_row_value", ccol_indices, row_indices, values, keywords.dtype, nullptr, keywords.device, nullptr); }
Tensor sparse_csc_tensor(const Tensor& ccol_indices, const Tensor& row_indices, const Tensor& values, IntList size, const keyword::DtypeDeviceArgs& keywords) { TENSORD_CALL("aten::sparse_csc_tensor.ccol_row_value_size", ccol_indices, row_indices, values, size, keywords.dtype, nullptr, keywords.device, nullptr); }
Tensor sparse_csr_tensor(const Tensor& crow_indices, const Tensor& col_indices, const Tensor& values, const keyword::DtypeDeviceArgs& keywords) { TENSORD_CALL("aten::sparse_csr_tensor.crow_col_value", crow_indices, col_indices, values, keywords.dtype, nullptr, keywords.device, nullptr); }
Tensor sparse_csr_tensor(const Tensor& crow_indices, const Tensor& col_indices, const Tensor& values, IntList size, const keyword::DtypeDeviceArgs& keywords) { TENSORD_CALL("aten::sparse_csr_tensor.crow_col_value_size", crow_indices, col_indices, values, size, keywords.dtype, nullptr, keywords.device, nullptr); }
int64_t sparse_dim(const Tensor& self) { TENSORD_CALL("aten::sparse_dim", self); }
Tensor sparse_mask(const Tensor& self, const Tensor& mask) { TENSORD_CALL("aten::sparse_mask", self, mask); }
Tensor sparse_sampled_addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const keyword::BetaAlphaArgs& keywords) { TENSORD_CALL("aten::sparse_sampled_addmm", self, mat1, mat2, keywords.beta, keywords.alpha); }
Tensor special_airy_ai(const Tensor& x) { TENSORD_CALL("aten::special_airy_ai", x); }
Tensor special_airy_ai_out(const Tensor& out, const Tensor& x) { TENSORD_CALL("aten::special_airy_ai.out", x, out); }
Tensor special_bessel_j0(const Tensor& self) { TENSORD_CALL("aten::special_bessel_j0", self); }
Tensor special_bessel_j0_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::special_bessel_j0.out", self, out); }
Tensor special_bessel_j1(const Tensor& self) { TENSORD_CALL("aten::special_bessel_j1", self); }
Tensor special_bessel_j1_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::special_bessel_j1.out", self, out); }
Tensor special_bessel_y0(const Tensor& self) { TENSORD_CALL("aten::special_bessel_y0", self); }
Tensor special_bessel_y0_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::special_bessel_y0.out", self, out); }
Tensor special_bessel_y1(const Tensor& self) { TENSORD_CALL("aten::special_bessel_y1", self); }
Tensor special_bessel_y1_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::special_bessel_y1.out", self, out); }
Tensor special_chebyshev_polynomial_t(const Tensor& x, const Tensor& n) { TENSORD_CALL("aten::special_chebyshev_polynomial_t", x, n); }
Tensor special_chebyshev_polynomial_t(const Tensor& x, const Scalar& n) { TENSORD_CALL("aten::special_chebyshev_polynomial_t.n_scalar", x, n); }
Tensor special_chebyshev_polynomial_t(const Scalar& x, const Tensor& n) { TENSORD_CALL("aten::special_chebyshev_polynomial_t.x_scalar", x, n); }
Tensor special_chebyshev_polynomial_t_out(const Tensor& out, const Tensor& x, const Scalar& n) { TENSORD_CALL("aten::special_chebyshev_polynomial_t.n_scalar_out", x, n, out); }
Tensor special_chebyshev_polynomial_t_out(const Tensor& out, const Tensor& x, const Tensor& n) { TENSORD_CALL("aten::special_chebyshev_polynomial_t.out", x, n, out); }
Tensor special_chebyshev_polynomial_t_out(const Tensor& out, const Scalar& x, const Tensor& n) { TENSORD_CALL("aten::special_chebyshev_polynomial_t.x_scalar_out", x, n, out); }
Tensor special_chebyshev_polynomial_u(const Tensor& x, const Tensor& n) { TENSORD_CALL("aten::special_chebyshev_polynomial_u", x, n); }
Tensor special_chebyshev_polynomial_u(const Tensor& x, const Scalar& n) { TENSORD_CALL("aten::special_chebyshev_polynomial_u.n_scalar", x, n); }
Tensor special_chebyshev_polynomial_u(const Scalar& x, const Tensor& n) { TENSORD_CALL("aten::special_chebyshev_polynomial_u.x_scalar", x, n); }
Tensor special_chebyshev_polynomial_u_out(const Tensor& out, const Tensor& x, const Scalar& n) { TENSORD_CALL("aten::special_chebyshev_polynomial_u.n_scalar_out", x, n, out); }
Tensor special_chebyshev_polynomial_u_out(const Tensor& out, const Tensor& x, const Tensor& n) { TENSORD_CALL("aten::special_chebyshev_polynomial_u.out", x, n, out); }
Tensor special_chebyshev_polynomial_u_out(const Tensor& out, const Scalar& x, const Tensor& n) { TENSORD_CALL("aten::special_chebyshev_polynomial_u.x_scalar_out", x, n, out); }
Tensor special_chebyshev_polynomial_v(const Tensor& x, const Tensor& n) { TENSORD_CALL("aten::special_chebyshev_polynomial_v", x, n); }
Tensor special_chebyshev_polynomial_v(const Tensor& x, const Scalar& n) { TENSORD_CALL("aten::special_chebyshev_polynomial_v.n_scalar", x, n); }
Tensor special_chebyshev_polynomial_v(const Scalar& x, const Tensor& n) { TENSORD_CALL("aten::special_chebyshev_polynomial_v.x_scalar", x, n); }
Tensor special_chebyshev_polynomial_v_out(const Tensor& out, const Tensor& x, const Scalar& n) { TENSORD_CALL("aten::special_chebyshev_polynomial_v.n_scalar_out", x, n, out); }
Tensor special_chebyshev_polynomial_v_out(const Tensor& out, const Tensor& x, const Tensor& n) { TENSORD_CALL("aten::special_chebyshev_polynomial_v.out", x, n, out); }
Tensor special_chebyshev_polynomial_v_out(const Tensor& out, const Scalar& x, const Tensor& n) { TENSORD_CALL("aten::special_chebyshev_polynomial_v.x_scalar_out", x, n, out); }
Tensor special_chebyshev_polynomial_w(const Tensor& x, const Tensor& n) { TENSORD_CALL("aten::special_chebyshev_polynomial_w", x, n); }
Tensor special_chebyshev_polynomial_w(const Tensor& x, const Scalar& n) { TENSORD_CALL("aten::special_chebyshev_polynomial_w.n_scalar", x, n); }
Tensor special_chebyshev_polynomial_w(const Scalar& x, const Tensor& n) { TENSORD_CALL("aten::special_chebyshev_polynomial_w.x_scalar", x, n); }
Tensor special_chebyshev_polynomial_w_out(const Tensor& out, const Tensor& x, const Scalar& n) { TENSORD_CALL("aten::special_chebyshev_polynomial_w.n_scalar_out", x, n, out); }
Tensor special_chebyshev_polynomial_w_out(const Tensor& out, const Tensor& x, const Tensor& n) { TENSORD_CALL("aten::special_chebyshev_polynomial_w.out", x, n, out); }
Tensor special_chebyshev_polynomial_w_out(const Tensor& out, const Scalar& x, const Tensor& n) { TENSORD_CALL("aten::special_chebyshev_polynomial_w.x_scalar_out", x, n, out); }
Tensor special_entr(const Tensor& self) { TENSORD_CALL("aten::special_entr", self); }
Tensor special_entr_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::special_entr.out", self, out); }
Tensor special_erfcx(const Tensor& self) { TENSORD_CALL("aten::special_erfcx", self); }
Tensor special_erfcx_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::special_erfcx.out", self, out); }
Tensor special_hermite_polynomial_h(const Tensor& x, const Tensor& n) { TENSORD_CALL("aten::special_hermite_polynomial_h", x, n); }
Tensor special_hermite_polynomial_h(const Tensor& x, const Scalar& n) { TENSORD_CALL("aten::special_hermite_polynomial_h.n_scalar", x, n); }
Tensor special_hermite_polynomial_h(const Scalar& x, const Tensor& n) { TENSORD_CALL("aten::special_hermite_polynomial_h.x_scalar", x, n); }
Tensor special_hermite_polynomial_h_out(const Tensor& out, const Tensor& x, const Scalar& n) { TENSORD_CALL("aten::special_hermite_polynomial_h.n_scalar_out", x, n, out); }
Tensor special_hermite_polynomial_h_out(const Tensor& out, const Tensor& x, const Tensor& n) { TENSORD_CALL("aten::special_hermite_polynomial_h.out", x, n, out); }
Tensor special_hermite_polynomial_h_out(const Tensor& out, const Scalar& x, const Tensor& n) { TENSORD_CALL("aten::special_hermite_polynomial_h.x_scalar_out", x, n, out); }
Tensor special_hermite_polynomial_he(const Tensor& x, const Tensor& n) { TENSORD_CALL("aten::special_hermite_polynomial_he", x, n); }
Tensor special_hermite_polynomial_he(const Tensor& x, const Scalar& n) { TENSORD_CALL("aten::special_hermite_polynomial_he.n_scalar", x, n); }
Tensor special_hermite_polynomial_he(const Scalar& x, const Tensor& n) { TENSORD_CALL("aten::special_hermite_polynomial_he.x_scalar", x, n); }
Tensor special_hermite_polynomial_he_out(const Tensor& out, const Tensor& x, const Scalar& n) { TENSORD_CALL("aten::special_hermite_polynomial_he.n_scalar_out", x, n, out); }
Tensor special_hermite_polynomial_he_out(const Tensor& out, const Tensor& x, const Tensor& n) { TENSORD_CALL("aten::special_hermite_polynomial_he.out", x, n, out); }
Tensor special_hermite_polynomial_he_out(const Tensor& out, const Scalar& x, const Tensor& n) { TENSORD_CALL("aten::special_hermite_polynomial_he.x_scalar_out", x, n, out); }
Tensor special_i0e(const Tensor& self) { TENSORD_CALL("aten::special_i0e", self); }
Tensor special_i0e_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::special_i0e.out", self, out); }
Tensor special_i1(const Tensor& self) { TENSORD_CALL("aten::special_i1", self); }
Tensor special_i1_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::special_i1.out", self, out); }
Tensor special_i1e(const Tensor& self) { TENSORD_CALL("aten::special_i1e", self); }
Tensor special_i1e_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::special_i1e.out", self, out); }
Tensor special_laguerre_polynomial_l(const Tensor& x, const Tensor& n) { TENSORD_CALL("aten::special_laguerre_polynomial_l", x, n); }
Tensor special_laguerre_polynomial_l(const Tensor& x, const Scalar& n) { TENSORD_CALL("aten::special_laguerre_polynomial_l.n_scalar", x, n); }
Tensor special_laguerre_polynomial_l(const Scalar& x, const Tensor& n) { TENSORD_CALL("aten::special_laguerre_polynomial_l.x_scalar", x, n); }
Tensor special_laguerre_polynomial_l_out(const Tensor& out, const Tensor& x, const Scalar& n) { TENSORD_CALL("aten::special_laguerre_polynomial_l.n_scalar_out", x, n, out); }
Tensor special_laguerre_polynomial_l_out(const Tensor& out, const Tensor& x, const Tensor& n) { TENSORD_CALL("aten::special_laguerre_polynomial_l.out", x, n, out); }
Tensor special_laguerre_polynomial_l_out(const Tensor& out, const Scalar& x, const Tensor& n) { TENSORD_CALL("aten::special_laguerre_polynomial_l.x_scalar_out", x, n, out); }
Tensor special_legendre_polynomial_p(const Tensor& x, const Tensor& n) { TENSORD_CALL("aten::special_legendre_polynomial_p", x, n); }
Tensor special_legendre_polynomial_p(const Tensor& x, const Scalar& n) { TENSORD_CALL("aten::special_legendre_polynomial_p.n_scalar", x, n); }
Tensor special_legendre_polynomial_p(const Scalar& x, const Tensor& n) { TENSORD_CALL("aten::special_legendre_polynomial_p.x_scalar", x, n); }
Tensor special_legendre_polynomial_p_out(const Tensor& out, const Tensor& x, const Scalar& n) { TENSORD_CALL("aten::special_legendre_polynomial_p.n_scalar_out", x, n, out); }
Tensor special_legendre_polynomial_p_out(const Tensor& out, const Tensor& x, const Tensor& n) { TENSORD_CALL("aten::special_legendre_polynomial_p.out", x, n, out); }
Tensor special_legendre_polynomial_p_out(const Tensor& out, const Scalar& x, const Tensor& n) { TENSORD_CALL("aten::special_legendre_polynomial_p.x_scalar_out", x, n, out); }
Tensor special_log_ndtr(const Tensor& self) { TENSORD_CALL("aten::special_log_ndtr", self); }
Tensor special_log_ndtr_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::special_log_ndtr.out", self, out); }
Tensor special_modified_bessel_i0(const Tensor& self) { TENSORD_CALL("aten::special_modified_bessel_i0", self); }
Tensor special_modified_bessel_i0_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::special_modified_bessel_i0.out", self, out); }
Tensor special_modified_bessel_i1(const Tensor& self) { TENSORD_CALL("aten::special_modified_bessel_i1", self); }
Tensor special_modified_bessel_i1_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::special_modified_bessel_i1.out", self, out); }
Tensor special_modified_bessel_k0(const Tensor& self) { TENSORD_CALL("aten::special_modified_bessel_k0", self); }
Tensor special_modified_bessel_k0_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::special_modified_bessel_k0.out", self, out); }
Tensor special_modified_bessel_k1(const Tensor& self) { TENSORD_CALL("aten::special_modified_bessel_k1", self); }
Tensor special_modified_bessel_k1_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::special_modified_bessel_k1.out", self, out); }
Tensor special_ndtr(const Tensor& self) { TENSORD_CALL("aten::special_ndtr", self); }
Tensor special_ndtr_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::special_ndtr.out", self, out); }
Tensor special_ndtri(const Tensor& self) { TENSORD_CALL("aten::special_ndtri", self); }
Tensor special_ndtri_out(const Tensor& out, const Tensor& self) { TENSORD_CALL("aten::special_ndtri.out", self, out); }

}  // namespace tensord
