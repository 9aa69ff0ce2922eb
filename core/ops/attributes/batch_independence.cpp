#include "core/ops/attributes/batch_independence.h"

#include <algorithm>

namespace tensord::ops {

using Arguments = std::span<const Value>;

bool is_batch_independent(const Op& op, Arguments arguments) {
  if (op.is_pointwise) return true;
  const auto* attribute = op.attributes.get<BatchIndependent>();
  return attribute && attribute->says(arguments);
}

bool mixes_samples(const Op& op) { return op.attributes.get<MixesSamples>() != nullptr; }

bool always_batch_independent(Arguments) { return true; }

bool is_constant_tensor(const Value& value) { return value.is_tensor() && !value.to_tensor().is_meta(); }

bool has_constant_weight(Arguments v) {
  return is_constant_tensor(v[1]) && (v.size() < 3 || !v[2].is_tensor() || is_constant_tensor(v[2]));
}

bool is_along_samples(const Value& dims, int64_t ndim) {
  const auto is_first = [ndim](const Value& dim) {
    return !dim.is_int() || dim.to_int() == 0 || dim.to_int() == -ndim;
  };
  if (!dims.is_list()) return is_first(dims);
  const auto& items = dims.to_list()->items;
  return items.empty() || std::any_of(items.begin(), items.end(), is_first);
}

bool works_along_other_dims(Arguments v) {
  return !is_along_samples(v[1], v[0].is_tensor() ? v[0].to_tensor().ndim() : 0);
}

}  // namespace tensord::ops
