// Repeats by the numbers in a tensor.
#include <algorithm>

#include "core/ops/run.h"
#include "kernels/view/view.h"
#include "ops/embedding.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

Tensor interleave_tensor(const Tensor& x, const Tensor& repeats, std::optional<int64_t> dim,
                         std::optional<int64_t> output_size) {
  if (repeats.is_meta())
    fail(ErrorCode::kUnimplemented, "repeat_interleave: the result's shape depends on the tensor's data");
  const Tensor in = dim ? (x.ndim() == 0 ? unsqueeze(x, 0) : x) : reshape(x, Dims{-1});
  const int64_t at = wrap_dim(dim.value_or(0), in.ndim());
  check(repeats.ndim() <= 1, "repeats must be 0-dim or 1-dim tensor");
  check(repeats.dtype() == DType::kInt64 || repeats.dtype() == DType::kInt32, "repeats has to be Long or Int tensor");
  const Tensor wide = repeats.to(DType::kInt64).contiguous();
  const int64_t* counts = wide.data<int64_t>();
  if (wide.numel() == 1) return ops::repeat_interleave(in, counts[0], at);
  check(wide.numel() == in.sizes()[at],
        "repeats must have the same size as input along dim, but got repeats.size(0) = ", wide.numel(),
        " and input.size(", at, ") = ", in.sizes()[at]);
  int64_t total = 0;
  for (int64_t i = 0; i < wide.numel(); ++i) {
    check(counts[i] >= 0 && !__builtin_add_overflow(total, counts[i], &total), "repeats can not be negative");
  }
  check(!output_size || *output_size == total, "allocated size does not match required size");
  const Tensor positions = Tensor::empty(Dims{total}, DType::kInt64);
  int64_t* to = positions.data<int64_t>();
  for (int64_t i = 0; i < wide.numel(); ++i) to = std::fill_n(to, counts[i], i);
  return ops::index_select(in, at, positions);
}

Tensor interleave_indices(const Tensor& repeats, std::optional<int64_t> output_size) {
  check(repeats.ndim() == 1, "repeat_interleave only accept 1D vector as repeat");
  const Tensor positions = Tensor::empty(Dims{repeats.numel()}, DType::kInt64);
  for (int64_t i = 0; i < repeats.numel(); ++i) positions.data<int64_t>()[i] = i;
  return interleave_tensor(positions, repeats, 0, output_size).to(repeats.dtype());
}

IMPL("aten::repeat_interleave.self_Tensor", kCPU, interleave_tensor);
IMPL("aten::repeat_interleave.Tensor", kCPU, interleave_indices);

}  // namespace
}  // namespace tensord::kernels
