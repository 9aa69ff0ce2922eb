// Operators that run on the host for a tensor on a CUDA device, by copies to the host and back, and the reasons.
#include <initializer_list>

#include "core/ops/attributes/runs_on_host.h"
#include "core/ops/op.h"

namespace tensord::kernels {
namespace {

bool run_on_host(const char* reason, std::initializer_list<const char*> names) {
  for (const char* name : names) ops::set_attribute(name, ops::RunsOnHost{reason});
  return true;
}
#define ON_HOST(REASON, ...) \
  [[maybe_unused]] const bool TENSORD_CONCAT(on_host_, __COUNTER__) = run_on_host(REASON, {__VA_ARGS__})

ON_HOST("cuSOLVER is not called for it yet", "aten::linalg_eig", "aten::linalg_eigvals", "aten::linalg_ldl_factor_ex",
        "aten::linalg_ldl_solve", "aten::linalg_lstsq");
ON_HOST("there is no kernel for it", "aten::linalg_matrix_exp");
ON_HOST("cuSPARSE is not called yet", "tensord::csr_product", "tensord::csr_sampled", "tensord::csr_solve");
ON_HOST("quantized tensors are the processor's", "aten::dequantize.self", "aten::quantize_per_channel",
        "aten::quantize_per_tensor", "aten::quantize_per_tensor.tensor_qparams", "aten::quantized_gru.data",
        "aten::quantized_gru.input", "aten::quantized_lstm.data", "aten::quantized_lstm.input",
        "quantized::embedding_4bit", "quantized::embedding_bag_4bit", "quantized::embedding_bag_byte",
        "quantized::embedding_byte", "quantized::linear_dynamic", "quantized::linear_dynamic_fp16",
        "quantized::linear_relu_dynamic", "quantized::linear_relu_dynamic_fp16",
        "quantized::quantized_gru_cell_dynamic", "quantized::quantized_lstm_cell_dynamic",
        "quantized::quantized_rnn_relu_cell_dynamic", "quantized::quantized_rnn_tanh_cell_dynamic");
ON_HOST("there is no kernel for lines of uneven lengths", "aten::segment_reduce", "aten::_segment_reduce_backward",
        "aten::_nested_tensor_from_mask_left_aligned");
ON_HOST("there is no kernel that sorts slices", "aten::unique_dim", "aten::unique_dim_consecutive");

#undef ON_HOST

}  // namespace
}  // namespace tensord::kernels
