#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/ops/value.h"
#include "core/tensor/storage.h"

namespace tensord::jit {

// What the reader of a pickle asks its surroundings.
struct UnpickleContext {
  // The file's name, which messages start with.
  std::string source;
  // The bytes of the storage with this key. Throws Error when there are none.
  std::function<Storage(const std::string& key)> storage;
  // Types of "__torch__.*" names; empty where objects are not allowed.
  ops::TypeResolver find_type;
  std::function<ops::Value(const ops::TypePtr& type, const ops::Value& value)> enum_member;
  // Told of every tensor and parameter that was written as requiring a gradient. May be empty.
  std::function<void(const Tensor& tensor)> requires_grad = {};
  // Python lists and dicts without a type tag get the type their items have in common.
  bool infer_container_types = false;
  // NumPy's arrays, which become tensors, and the byte strings of Python 2.
  bool has_numpy = false;
  size_t max_bytes = size_t{64} << 20;
};

// A value and the states of its objects, innermost first, which are still to be
// put into the objects' slots.
struct Unpickled {
  ops::Value value;
  std::vector<std::pair<ops::ObjectPtr, ops::Value>> states;
};

// Reads pickle protocol 2 as torch.save and torch.jit.save write it. Only the opcodes, functions and
// classes that these use are known, and no Python is run; anything else is refused by name. The
// text is taken to be hostile: nesting, sizes, counts and work are bounded, and values that contain
// themselves are refused, so whoever walks the result may recurse. Throws Error: kDataLoss (truncated or malformed),
// kUnimplemented (a class, function or dtype that is not supported), kResourceExhausted (a bound).
Unpickled unpickle(std::string_view text, const UnpickleContext& context);

// A storage that a pickle refers to by its key.
struct PickledStorage {
  std::string key;
  Storage storage;
  size_t offset_bytes = 0;
  size_t size_bytes = 0;
};

// Writes a value in protocol 2 as torch.save does; tensors' bytes are left in `storages`, keyed "0", "1" …
// Throws Error{kUnimplemented} naming a kind of value that cannot be written.
std::string pickle(const ops::Value& value, std::vector<PickledStorage>* storages);

}  // namespace tensord::jit
