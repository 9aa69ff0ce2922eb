// searchsorted and bucketize: where values belong in sorted sequences.
#include "kernels/index/searchsorted.h"

#include <limits>

#include "core/base/error.h"
#include "core/ops/op.h"

namespace tensord::kernels {

using ops::Scalar;
using ops::TensorMeta;
using OptionalTensor = std::optional<Tensor>;
using OptionalString = std::optional<std::string>;

namespace {

bool is_right(bool right, const OptionalString& side) {
  if (!side) return right;
  check(*side == "left" || *side == "right", "torch.searchsorted(): side can only be 'left' or 'right' but got ",
        *side);
  check(*side == "right" || !right,
        "torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True");
  return *side == "right";
}

}  // namespace

Search make_search(const Tensor& sequences, const Tensor& values, bool narrow, bool right, const OptionalString& side,
                   const OptionalTensor& sorter) {
  const Dims &have = sequences.sizes(), &want = values.sizes();
  check(!have.empty(), "torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension");
  check(!want.empty() || have.size() == 1,
        "torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, but we got "
        "boundaries tensor dim(",
        have.size(), ") and input value's dim(0) numel(1)");
  bool matches = have.size() == 1 || have.size() == want.size();
  for (size_t d = 0; matches && have.size() > 1 && d + 1 < have.size(); ++d) matches = have[d] == want[d];
  check(
      matches,
      "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor "
      "and input value tensor must match, but we got boundaries tensor ",
      to_string(have), " and input value tensor ", to_string(want));
  for (const Tensor* tensor : {&sequences, &values}) {
    if (tensor->dtype() == DType::kBool) fail_dtype("searchsorted", DType::kBool);
  }
  if (sorter) {
    check(sorter->sizes() == have,
          "torch.searchsorted(): boundary and sorter must have the same size, but got boundary tensor ",
          to_string(have), "and got sorter tensor ", sorter->sizes());
    check(sorter->dtype() == DType::kInt64,
          "torch.searchsorted(): sorter must be a tensor of long dtype but got dtype ", name_of(sorter->dtype()));
  }
  check(!narrow || have.back() <= std::numeric_limits<int32_t>::max(),
        "torch.searchsorted(): the boundaries are too many for int32 results");
  return {sequences, values, sorter, is_right(right, side), narrow};
}

Search make_buckets(const Tensor& values, const Tensor& boundaries, bool narrow, bool right) {
  check(boundaries.ndim() == 1, "boundaries tensor must be 1 dimension, but got dim(", boundaries.ndim(), ")");
  return make_search(boundaries, values, narrow, right, {}, {});
}

Tensor search_scalar(const Scalar& value) {
  return value.is_float() ? Tensor::scalar(value.to_double()) : Tensor::scalar(value.to_int());
}

namespace {

TensorMeta meta_of(const Search& search) {
  return {search.values.sizes(), search.narrow ? DType::kInt32 : DType::kInt64, {}, search.values.device()};
}

OP("aten::searchsorted.Tensor")
    .infer([](const Tensor& sequence, const Tensor& values, bool narrow, bool right, const OptionalString& side,
              const OptionalTensor& sorter) {
      return meta_of(make_search(sequence, values, narrow, right, side, sorter));
    });
OP("aten::searchsorted.Scalar")
    .infer([](const Tensor& sequence, const Scalar& value, bool narrow, bool right, const OptionalString& side,
              const OptionalTensor& sorter) {
      return meta_of(make_search(sequence, search_scalar(value), narrow, right, side, sorter));
    });
OP("aten::bucketize.Tensor").infer([](const Tensor& values, const Tensor& boundaries, bool narrow, bool right) {
  return meta_of(make_buckets(values, boundaries, narrow, right));
});
OP("aten::bucketize.Scalar").infer([](const Scalar& value, const Tensor& boundaries, bool narrow, bool right) {
  return meta_of(make_buckets(search_scalar(value), boundaries, narrow, right));
});

}  // namespace
}  // namespace tensord::kernels
