#include "core/ops/attributes/rank.h"

#include <algorithm>

namespace tensord::ops {

bool keeps_rank(const Op& op) {
  const auto& arguments = op.schema.arguments;
  if (arguments.empty() || arguments[0].type->kind() != TypeKind::kTensor || op.schema.returns.size() != 1)
    return false;
  if (op.attributes.get<KeepsRank>()) return true;
  if (op.base) return op.base->is_pointwise && op.base->schema.name != op.schema.name;
  const auto is_number = [](const Argument& argument) {
    const Type& type = *argument.type;
    const Type& of = type.kind() == TypeKind::kOptional ? *type.element() : type;
    return of.kind() != TypeKind::kTensor && of.kind() != TypeKind::kList;
  };
  return op.is_pointwise && std::all_of(arguments.begin() + 1, arguments.end(), is_number);
}

}  // namespace tensord::ops
