#pragma once

#include <string>

#include "core/ops/schema.h"
#include "core/ops/value.h"
#include "server/executor/model/model.h"

namespace tensord::server {

// T of Optional[T], and of T.
inline const ops::Type& without_optional(const ops::Type& type) {
  return type.kind() == ops::TypeKind::kOptional ? *type.element() : type;
}

inline bool is_list_of_strings(const ops::Type& type) {
  return type.kind() == ops::TypeKind::kList && type.element()->kind() == ops::TypeKind::kString;
}

// Whether a request's tensor can become a value of this type: Tensor, int, float, bool,
// number, str, lists of int, float, bool and str, lists of lists of str (two dimensions), and Optional of those.
bool is_feedable(const ops::Type& type);
// Whether that tensor has to be BYTES.
bool takes_bytes(const ops::Type& type);

// Makes the argument's value. Throws Error{kInvalidArgument} naming the input when a single
// number is wanted and the tensor has another count of elements.
ops::Value to_argument(const ops::Type& type, const InferTensor& input);

// What the configuration says of an input, against the type that its tensor has to become a value of. Throws
// Error{kInvalidArgument} that begins with `file` where no request could be answered; gives back what may not be
// meant, or nothing.
std::string check_configured(const ops::Type& type, const TensorSpec& spec, bool has_batch, const std::string& file);

}  // namespace tensord::server
