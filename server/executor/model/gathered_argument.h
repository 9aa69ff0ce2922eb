#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "core/ops/schema.h"
#include "core/ops/value.h"
#include "server/config/model_config.h"
#include "server/executor/model/model.h"

namespace tensord::server {

// Arguments that are made of several inputs: Dict[str, Tensor], whose inputs are named by key, and List[Tensor], whose
// inputs are named by argument and position ("xs__0"). config.pbtxt lists the inputs.

// One input of such an argument.
struct ArgumentPart {
  std::string key;  // dict: the key; list: the input's name
  int spec = -1;    // index of the input in the signature
};

// An argument of the method and the input that feeds it.
struct BoundArgument {
  const ops::Argument* argument;
  bool is_written = false;               // the method may write to it
  int spec = -1;                         // index of the input; -1: always the default value
  std::vector<ArgumentPart> parts = {};  // the inputs of a dict or list of tensors, used instead of `spec`

  bool has_spec(int wanted) const {
    return spec == wanted || std::ranges::find(parts, wanted, &ArgumentPart::spec) != parts.end();
  }
};

// Whether the type is Dict[str, Tensor], List[Tensor], or Optional of these.
bool is_gathered(const ops::Type& type);

// The configured inputs that belong to argument `index` of the method, in order. Throws Error{kInvalidArgument} that
// starts with `file` if a required argument has none, a position is missing, or a key could belong to two dicts (with
// several dicts, an input is named ARGUMENT__KEY).
std::vector<std::string> gathered_names(const std::string& file, const ops::Schema& schema, size_t index,
                                        const ModelConfig& config);
// The key or position of an input in the argument.
std::string part_key(const ops::Argument& argument, const std::string& input);

// The argument's value from the parts that are present; null: not given. Throws Error{kInvalidArgument} if a list lacks
// a part before one that is present.
ops::Value gather_argument(const ops::Type& type, std::span<const ArgumentPart> parts,
                           std::span<const ops::Value> tensors);

}  // namespace tensord::server
