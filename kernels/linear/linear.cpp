// linear: input @ weight^T + bias over the last dimension of an input of any rank.
#include <optional>

#include "core/ops/attributes/batch_independence.h"
#include "core/ops/attributes/rank.h"
#include "core/ops/attributes/written.h"
#include "core/ops/op.h"
#include "kernels/linear/matmul_gradient.h"

namespace tensord::kernels {
namespace {

using ops::TensorMeta;
using ops::WritesInto;
using MaybeTensor = std::optional<Tensor>;

TensorMeta infer_linear(const Tensor& input, const Tensor& weight, const MaybeTensor& bias) {
  check(input.ndim() >= 1, "linear(): input must be at least 1-D");
  check(weight.ndim() == 2 || weight.ndim() == 1, "linear(): weight must be 1-D or 2-D, but got ", weight.ndim(), "-D");
  const int64_t features = input.sizes().back();
  const int64_t rows = features == 0 ? 0 : input.numel() / features;
  if (weight.ndim() == 1) {
    check(weight.sizes()[0] == features, "size mismatch, got input (", rows, "), mat (", rows, "x", features,
          "), vec (", weight.sizes()[0], ")");
    // As in PyTorch 2, which calls addmm for matrices and for all other biases.
    check(!bias || (bias->ndim() == 0 && input.ndim() != 2), "linear(): mat2 must be a matrix, got 1-D tensor");
  } else {
    check(weight.sizes()[1] == features, "mat1 and mat2 shapes cannot be multiplied (", rows, "x", features, " and ",
          weight.sizes()[1], "x", weight.sizes()[0], ")");
  }
  check(input.dtype() == weight.dtype() && (!bias || bias->dtype() == input.dtype()),
        "linear: expected input, weight and bias to have the same dtype, but got ", name_of(input.dtype()), ", ",
        name_of(weight.dtype()), " and ", bias ? name_of(bias->dtype()) : "none");
  Dims sizes = input.sizes();
  if (weight.ndim() == 1)
    sizes.erase(sizes.size() - 1);
  else
    sizes.back() = weight.sizes()[0];
  if (bias) {
    check(broadcast_sizes(bias->sizes(), sizes) == sizes, "The expanded size of the tensor ", to_string(sizes),
          " must match the existing size of the bias ", bias->sizes());
  }
  return {sizes, input.dtype(), {}, input.device()};
}

OP("aten::linear")
    .set<ops::BatchIndependent>(ops::has_constant_weight)
    .set<ops::KeepsRank>()
    .infer(&infer_linear)
    .gradient(&gradient::of_linear)
    .saves("input, weight")
    .set<WritesInto>(WritesInto::kSameDType);

}  // namespace
}  // namespace tensord::kernels
