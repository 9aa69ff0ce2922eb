#include "core/ops/boxed.h"

namespace tensord::ops {

const BoxedTensor* as_boxed(const Value& value) {
  return value.is_opaque() ? dynamic_cast<const BoxedTensor*>(value.to_opaque().get()) : nullptr;
}

const BoxedTensor* find_boxed(std::span<const Value> values) {
  for (const Value& value : values) {
    if (value.is_opaque()) {
      if (const BoxedTensor* found = as_boxed(value)) return found;
    } else if (value.is_list()) {
      const Type* element = value.to_list()->element.get();
      while (element->kind() == TypeKind::kOptional) element = element->element().get();
      if (element->kind() != TypeKind::kTensor) continue;
      for (const Value& item : value.to_list()->items) {
        if (const BoxedTensor* found = as_boxed(item)) return found;
      }
    }
  }
  return nullptr;
}

}  // namespace tensord::ops
