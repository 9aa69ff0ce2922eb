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

// The conversion that gives an argument the type of its parameter.
enum class Conversion : uint8_t {
  kNone,
  kListLiteral,  // an empty list or dict literal, or one whose items match: it gets the expected type
  kTupleToList,
  kRepeat,  // one item for "int[N]"
  kTensorToInt,
  kTensorToFloat,
  kTensorToNumber,  // a 0-D tensor
  kIntToFloat,
  kStringToDevice,
  kMismatch,
};

// Whether TorchScript makes this conversion only if no overload matches without conversions.
bool is_implicit_cast(Conversion conversion);
// The conversion that passes `actual` for `formal`. If no conversion is needed, it binds type variables.
Conversion find_conversion(const ops::Type& formal, const GraphValue& actual, int64_t fixed_list_size,
                           TypeBindings& bindings);

struct NamedValue {
  std::string_view name;
  GraphValue* value;
};

// The source of one argument in a call.
struct BoundArgument {
  GraphValue* value = nullptr;  // null: the default, or `rest`
  Conversion conversion = Conversion::kNone;
  std::vector<GraphValue*> rest;  // the last arguments, gathered into a list: x.view(2, 3)
  bool is_gathered = false;
};
struct BoundCall {
  std::vector<BoundArgument> arguments;  // one per parameter
  std::vector<GraphValue*> varargs;
  bool has_cast = false;
};

// Empty if the arguments do not match; then `reason`, if given, says why.
std::optional<BoundCall> bind_call(const ops::Schema& schema, std::span<GraphValue* const> positional,
                                   std::span<const NamedValue> keywords, std::string* reason = nullptr);

}  // namespace tensord::jit
