#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/ops/value.h"
#include "core/tensor/storage.h"

namespace tensord::jit {

// What the pickle reader needs from its caller.
struct UnpickleContext {
  // The name of the file, for error messages.
  std::string source;
  // Returns the storage with this key. Throws Error if there is none.
  std::function<Storage(const std::string& key)> storage;
  // Resolves types by "__torch__.*" names. Empty if objects are not allowed.
  ops::TypeResolver find_type;
  std::function<ops::Value(const ops::TypePtr& type, const ops::Value& value)> enum_member;
  // Called for every tensor and parameter that is marked as requiring a gradient. May be empty.
  std::function<void(const Tensor& tensor)> requires_grad = {};
  // Gives Python lists and dicts without a type tag the common type of their items.
  bool infer_container_types = false;
  // Accepts NumPy arrays, which become tensors, and Python 2 byte strings.
  bool has_numpy = false;
  size_t max_bytes = size_t{64} << 20;
};

// A value, and the states of its objects, innermost first, which the caller must still put into the objects' slots.
struct Unpickled {
  ops::Value value;
  std::vector<std::pair<ops::ObjectPtr, ops::Value>> states;
};

// Reads pickle protocol 2 as written by torch.save and torch.jit.save. It runs no Python: it supports only the opcodes,
// functions and classes that these writers use, and rejects all others by name. The text is untrusted. Nesting, sizes,
// counts and work are limited, and values that contain themselves are rejected, so callers may recurse over the result.
// Throws Error: kDataLoss (truncated or malformed), kUnimplemented (an unsupported class, function or dtype),
// kResourceExhausted (a limit).
Unpickled unpickle(std::string_view text, const UnpickleContext& context);

// A storage and the key that the pickle refers to it by.
struct PickledStorage {
  std::string key;
  Storage storage;
  size_t offset_bytes = 0;
  size_t size_bytes = 0;
};

// Writes a value in protocol 2 as torch.save does. It collects the tensors' storages in `storages` with the keys "0",
// "1" … Throws Error{kUnimplemented} naming a kind of value that the format does not support.
std::string pickle(const ops::Value& value, std::vector<PickledStorage>* storages);

}  // namespace tensord::jit
