#include "core/jit/passes/same_constant.h"

#include <array>
#include <bit>

#include "core/base/error.h"

namespace tensord::jit {

using ops::Value;

const Value& constant_of(const GraphValue* value) {
  const Value* const constant = value->constant();
  check_internal(constant != nullptr, "%", value->id(), " is not a constant");
  return *constant;
}

bool is_number_list(const Value& value) {
  constexpr size_t kMaxItems = 64;
  if (!value.is_list() || value.to_list()->items.size() > kMaxItems) return false;
  for (const Value& item : value.to_list()->items) {
    if (!item.is_number()) return false;
  }
  return true;
}

bool same_constant(const Value& a, const Value& b) {
  using Bits = std::array<int64_t, 2>;
  if (a.tag() != b.tag()) return false;
  if (a.is_float()) return std::bit_cast<int64_t>(a.to_float()) == std::bit_cast<int64_t>(b.to_float());
  if (a.is_complex()) return std::bit_cast<Bits>(a.to_complex()) == std::bit_cast<Bits>(b.to_complex());
  if (is_number_list(a) && is_number_list(b)) {
    const auto& items_a = a.to_list()->items;
    const auto& items_b = b.to_list()->items;
    if (items_a.size() != items_b.size()) return false;
    for (size_t i = 0; i < items_a.size(); ++i) {
      if (!same_constant(items_a[i], items_b[i])) return false;
    }
    return true;
  }
  return a.is_same(b);
}

}  // namespace tensord::jit
