// Repeats by the numbers in a tensor.
#include <algorithm>

#include "core/ops/run.h"
#include "kernels/view/view.h"
#include "ops/embedding.h"
#include "ops/factory.h"
#include "ops/index.h"
#include "ops/reduce.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

// Sums of all counts up to each. Their total must fit into int64.
Tensor sums_of_repeats(const Tensor& counts) {
  const auto is_right = [&] {
    return ops::min(counts).item_int() >= 0 && ops::sum(counts.to(DType::kFloat64)).item_double() < 9e18;
  };
  check(counts.numel() == 0 || is_right(), "repeats can not be negative");
  return ops::cumsum(counts, 0);
}

// Position i as often as counts[i] says.
Tensor repeated_positions(const Tensor& counts, std::optional<int64_t> output_size) {
  const Tensor sums = sums_of_repeats(counts);
  const int64_t total = sums.numel() == 0 ? 0 : select(sums, 0, -1).item_int();
  check(!output_size || *output_size == total, "allocated size does not match required size");
  if (!counts.device().is_host()) {
    const Tensor places = ops::arange(total, {.dtype = DType::kInt64, .device = counts.device()});
    return ops::searchsorted(sums, places, {.right = true});
  }
  const Tensor out = Tensor::empty(Dims{total}, DType::kInt64);
  int64_t* to = out.data<int64_t>();
  for (int64_t i = 0; i < counts.numel(); ++i) to = std::fill_n(to, counts.data<int64_t>()[i], i);
  return out;
}

Tensor interleave_tensor(const Tensor& x, const Tensor& repeats, std::optional<int64_t> dim,
                         std::optional<int64_t> output_size) {
  if (repeats.is_meta())
    fail(ErrorCode::kUnimplemented, "repeat_interleave: the result's shape depends on the tensor's data");
  const Tensor in = dim ? (x.ndim() == 0 ? unsqueeze(x, 0) : x) : reshape(x, Dims{-1});
  const int64_t at = wrap_dim(dim.value_or(0), in.ndim());
  check(repeats.ndim() <= 1, "repeats must be 0-dim or 1-dim tensor");
  check(repeats.dtype() == DType::kInt64 || repeats.dtype() == DType::kInt32, "repeats has to be Long or Int tensor");
  const Tensor counts = repeats.to(DType::kInt64).contiguous();
  if (counts.numel() == 1) return ops::repeat_interleave(in, counts.item_int(), at);
  check(counts.numel() == in.sizes()[at],
        "repeats must have the same size as input along dim, but got repeats.size(0) = ", counts.numel(),
        " and input.size(", at, ") = ", in.sizes()[at]);
  return ops::index_select(in, at, repeated_positions(counts, output_size));
}

Tensor interleave_indices(const Tensor& repeats, std::optional<int64_t> output_size) {
  check(repeats.ndim() == 1, "repeat_interleave only accept 1D vector as repeat");
  const Tensor positions = ops::arange(repeats.numel(), {.dtype = DType::kInt64, .device = repeats.device()});
  return interleave_tensor(positions, repeats, 0, output_size).to(repeats.dtype());
}

IMPL("aten::repeat_interleave.self_Tensor", kCPU, interleave_tensor);
IMPL("aten::repeat_interleave.Tensor", kCPU, interleave_indices);
IMPL("aten::repeat_interleave.self_Tensor", kCUDA, interleave_tensor);
IMPL("aten::repeat_interleave.Tensor", kCUDA, interleave_indices);

}  // namespace
}  // namespace tensord::kernels
