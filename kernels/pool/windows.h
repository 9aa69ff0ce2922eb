#pragma once

#include <vector>

#include "core/ops/op.h"
#include "kernels/pool/pool.h"

// The shapes of pooling, shared by its forward and backward. `op` starts the text of errors.
namespace tensord::kernels {

// One number for each spatial dimension.
struct PoolWindow {
  Dims kernel, stride, padding, dilation;
};
// From lists of one or `spatial` numbers; no stride means the kernel's. Throws Error on what PyTorch refuses.
PoolWindow make_pool_window(const char* op, size_t spatial, const Dims& kernel, const Dims& stride, const Dims& padding,
                            const Dims& dilation);

// Sizes of the result. Throws Error where it would be empty.
Dims pooled_sizes(const char* op, const Tensor& input, const PoolWindow& w, bool ceil_mode);
// Averages take tensors without channels; those of 3 dimensions where each output size is 1.
Dims adaptive_pool_sizes(const char* op, const Tensor& input, const Dims& output_size, size_t spatial, bool is_average);

// The result, in the memory order of `input`; and with its indices.
ops::TensorMeta pool_meta(const Tensor& input, const Dims& sizes, DType dtype, size_t spatial);
std::vector<ops::TensorMeta> pool_metas(const ops::TensorMeta& values);

PoolWindows make_pool_windows(const Tensor& input, const Tensor& out, const PoolWindow& w);
PoolWindows adaptive_pool_windows(const Tensor& input, const Tensor& out, size_t spatial);

}  // namespace tensord::kernels
