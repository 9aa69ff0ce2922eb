#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/ops/value.h"

namespace tensord::jit {

// (dotted name, tensor) of every tensor attribute below an object, in the order of the
// attributes; items of lists, tuples and dicts are named by index or key. Each object is
// visited once.
std::vector<std::pair<std::string, Tensor>> collect_tensors(const ops::ObjectPtr& object);

// Bytes of the storages that the tensors view, each counted once.
size_t storage_bytes(const std::vector<std::pair<std::string, Tensor>>& tensors);

}  // namespace tensord::jit
