// tensord::attention: softmax(scale * query @ key^T, masked) @ value as one call. Made by the pass fuse_attention
// and by composites. Schema and shapes.
#include <optional>

#include "core/ops/attributes/batch_independence.h"
#include "core/ops/op.h"
#include "kernels/attention/attention_gradient.h"

namespace tensord::kernels {
namespace {

using ops::TensorMeta;
using MaybeTensor = std::optional<Tensor>;

struct Sizes {
  Dims batch;  // of all operands, broadcast
  int64_t queries, keys, depth, value_depth;
};

Sizes sizes_of(const Tensor& query, const Tensor& key, const Tensor& value, const MaybeTensor& mask) {
  for (const Tensor* t : {&query, &key, &value}) {
    check(t->ndim() >= 2, "attention: query, key and value must have at least 2 dimensions, but got ", t->ndim());
    check(t->dtype() == query.dtype() && is_floating(t->dtype()),
          "attention: query, key and value must have the same floating point dtype");
  }
  const auto at = [](const Tensor& t, int64_t from_end) { return t.sizes()[static_cast<size_t>(t.ndim() - from_end)]; };
  const auto batch = [](const Tensor& t) { return t.sizes().span().first(t.sizes().size() - 2); };
  Sizes s{{}, at(query, 2), at(key, 2), at(query, 1), at(value, 1)};
  check(at(key, 1) == s.depth, "attention: query and key have different widths, ", s.depth, " and ", at(key, 1));
  check(at(value, 2) == s.keys, "attention: there are ", s.keys, " keys and ", at(value, 2), " values");
  s.batch = broadcast_sizes(batch(query), batch(key));
  if (mask) {
    Dims scores = s.batch;
    scores.push_back(s.queries);
    scores.push_back(s.keys);
    const Dims masked = broadcast_sizes(scores, mask->sizes());
    const size_t n = masked.size();
    check(masked[n - 2] == s.queries && masked[n - 1] == s.keys, "attention: a mask of shape ", mask->sizes(),
          " does not fit scores of shape ", to_string(scores));
    s.batch = masked.span().first(n - 2);
  }
  s.batch = broadcast_sizes(s.batch, batch(value));
  return s;
}

TensorMeta infer_attention(const Tensor& query, const Tensor& key, const Tensor& value, const MaybeTensor& mask, double,
                           const std::optional<double>& fill, bool, bool, bool transposes, bool) {
  const Sizes s = sizes_of(query, key, value, mask);
  if (mask)
    check(mask->dtype() == (fill ? DType::kBool : query.dtype()), "attention: a mask of ", name_of(mask->dtype()),
          fill ? " cannot be filled" : " cannot be added");
  Dims sizes = s.batch;
  sizes.push_back(s.queries);
  if (transposes) {
    check(!s.batch.empty(), "attention: there are no heads to transpose");
    std::swap(sizes[sizes.size() - 1], sizes[sizes.size() - 2]);
  }
  sizes.push_back(s.value_depth);
  return {sizes, query.dtype(), {}, query.device()};
}

// `mask` is added to the scores. With `fill`, `mask` is a bool tensor instead, and scores become `fill` where it equals
// `fills_where`. With `transposes` the result has heads and rows swapped, the layout that multi-head attention
// continues with. A query whose scores are all minus infinity gives zeros and no gradient with `is_safe`, and NaN
// without it, as softmax does.
OP("tensord::attention")
    .set<ops::BatchIndependent>([](std::span<const ops::Value> v) { return v[0].to_tensor().ndim() >= 3; })
    .infer(&infer_attention)
    .gradient(&gradient_of_attention)
    .saves("query, key, value, mask");

}  // namespace
}  // namespace tensord::kernels
