#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/ops/schema.h"
#include "core/ops/value.h"
#include "server/config/model_config.h"
#include "server/executor/model/model.h"

namespace tensord::server {

// Arguments that several inputs make: Dict[str, Tensor], whose inputs are named by their keys, and List[Tensor], whose
// inputs are named by the argument and a place ("xs__0"); config.pbtxt says which inputs there are.

// One input of such an argument.
struct ArgumentPart {
  std::string key;  // of a dict; of a list, whose parts are in order, the input's name
  int spec = -1;    // of the signature's inputs
};

// Whether the type is one of the two, or Optional of it.
bool is_gathered(const ops::Type& type);

// The names of the configuration's inputs that belong to argument `index` of the method, in their order. Throws
// Error{kInvalidArgument} that begins with `file`: none are named where the argument has to be there, places are
// missing, two dicts whose keys could be of either (with several, an input is named ARGUMENT__KEY).
std::vector<std::string> gathered_names(const std::string& file, const ops::Schema& schema, size_t index,
                                        const ModelConfig& config);
// What an input is called in the argument.
std::string part_key(const ops::Argument& argument, const std::string& input);

// The argument's value of the parts that there are; null: not given. Throws Error{kInvalidArgument} where a part of a
// list is missing before one that is there.
ops::Value gather_argument(const ops::Type& type, std::span<const ArgumentPart> parts,
                           std::span<const ops::Value> tensors);

}  // namespace tensord::server
