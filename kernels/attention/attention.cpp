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

// The same, with what a gradient by kernels needs: log(sum(exp(scores))) of each row, in float32, or float64 for
// float64; and the state of the generator that dropout of the weights drew from (two of int64: seed and offset). On
// CUDA alone; elsewhere training composes attention of plain operators.
OP("tensord::attention_training")
    .infer([](const Tensor& query, const Tensor& key, const Tensor& value, const MaybeTensor& mask, double scale,
              const std::optional<double>& fill, bool, bool, bool, double dropout) -> std::vector<TensorMeta> {
      check(dropout >= 0 && dropout <= 1, "dropout probability has to be between 0 and 1, but got ", dropout);
      const TensorMeta out = infer_attention(query, key, value, mask, scale, fill, true, false, false, false);
      const Dims rows = out.sizes.span().first(out.sizes.size() - 1);
      const DType sums = query.dtype() == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
      return {out, {rows, sums, {}, query.device()}, {Dims{2}, DType::kInt64, {}, query.device()}};
    })
    .gradient(&gradient_of_attention_training)
    .saves("query, key, value, mask, result0, result1, result2")
    .random();

// The gradients of query, key and value that the mask asks for; the others have no elements.
OP("tensord::attention_backward")
    .infer([](const Tensor& grad, const Tensor& query, const Tensor& key, const Tensor& value, const MaybeTensor& mask,
              const Tensor& result, const Tensor& statistics, const Tensor& philox, double scale,
              const std::optional<double>& fill, bool, bool, bool, double,
              const std::vector<bool>& needed) -> std::vector<TensorMeta> {
      const TensorMeta out = infer_attention(query, key, value, mask, scale, fill, true, false, false, false);
      const Dims rows = out.sizes.span().first(out.sizes.size() - 1);
      const DType sums = query.dtype() == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
      for (const Tensor* t : {&grad, &result})
        check(t->sizes() == out.sizes && t->dtype() == query.dtype(), "attention_backward: got ", describe(*t),
              " for a result of ", to_string(out.sizes));
      check(statistics.sizes() == rows && statistics.dtype() == sums && statistics.is_contiguous(),
            "attention_backward: got statistics ", describe(statistics));
      check(philox.sizes() == Dims{2} && philox.dtype() == DType::kInt64 && philox.is_contiguous(),
            "attention_backward: got a state ", describe(philox));
      check(needed.size() == 3, "attention_backward: output_mask must have 3 items");
      const auto meta = [&](size_t i, const Tensor& x) {
        return TensorMeta{needed[i] ? x.sizes() : Dims{0}, x.dtype(), {}, x.device()};
      };
      return {meta(0, query), meta(1, key), meta(2, value)};
    });

// What the dropout of attention_training multiplied the weights by: zeros and 1 / (1 - dropout).
OP("tensord::attention_kept")
    .infer([](const Tensor& statistics, const Tensor& philox, int64_t keys, double) -> TensorMeta {
      check(statistics.ndim() >= 1 && statistics.is_contiguous() && is_floating(statistics.dtype()) && keys >= 0 &&
                philox.sizes() == Dims{2} && philox.dtype() == DType::kInt64 && philox.is_contiguous(),
            "attention_kept: got ", describe(statistics), " and ", describe(philox));
      Dims sizes = statistics.sizes();
      sizes.push_back(keys);
      return {sizes, statistics.dtype(), {}, statistics.device()};
    })
    .constant_result();

}  // namespace
}  // namespace tensord::kernels
