#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/jit/ir/graph.h"
#include "core/jit/ir/type_match.h"
#include "core/ops/op.h"

namespace tensord::jit {

// What has to be done to an argument so that it has the type of its parameter.
enum class Conversion : uint8_t {
  kNone,
  kListLiteral,  // an empty list or dict literal, or one whose items fit: typed as asked for
  kTupleToList,
  kRepeat,  // one item for "int[N]"
  kTensorToInt,
  kTensorToFloat,
  kTensorToNumber,  // of 0 dimensions
  kIntToFloat,
  kStringToDevice,
  kMismatch,
};

// Whether TorchScript makes the conversion only when no overload fits without any.
bool is_implicit_cast(Conversion conversion);
// How `actual` can be passed for `formal`; binds type variables when it fits as it is.
Conversion find_conversion(const ops::Type& formal, const GraphValue& actual, int64_t fixed_list_size,
                           TypeBindings& bindings);

struct NamedValue {
  std::string_view name;
  GraphValue* value;
};

// Which value goes where in a call of one schema.
struct BoundArgument {
  GraphValue* value = nullptr;  // null: the default, or `rest`
  Conversion conversion = Conversion::kNone;
  std::vector<GraphValue*> rest;  // the last arguments gathered into a list: x.view(2, 3)
  bool is_gathered = false;
};
struct BoundCall {
  std::vector<BoundArgument> arguments;  // one per parameter
  std::vector<GraphValue*> varargs;
  bool has_cast = false;
};

// Null when the values do not fit; then `reason`, when given, says why.
std::optional<BoundCall> bind_call(const ops::Schema& schema, std::span<GraphValue* const> positional,
                                   std::span<const NamedValue> keywords, std::string* reason = nullptr);

}  // namespace tensord::jit
