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

// The object and its submodules in the order of nn.Module.modules(): each before its submodules, in the order of
// attributes, and once.
std::vector<ops::ObjectPtr> collect_modules(const ops::ObjectPtr& object);
// The same with dotted names; the object itself is named "".
std::vector<std::pair<std::string, ops::ObjectPtr>> collect_named_modules(const ops::ObjectPtr& object);
// The module with a dotted name, "" for the object itself. Throws Error{kNotFound}.
ops::ObjectPtr find_module(const ops::ObjectPtr& object, const std::string& name);
// (dotted name, tensor) of the parameters or buffers that the modules' classes list. Each tensor once; None is skipped.
std::vector<std::pair<std::string, Tensor>> collect_members(const ops::ObjectPtr& object,
                                                            std::vector<std::string> ops::ClassType::*names);
// (dotted name, slot) of all parameters and buffers that are tensors; a tensor with several names is listed under each.
std::vector<std::pair<std::string, ops::Value*>> collect_member_slots(const ops::ObjectPtr& object);

// Bytes of the storages that the tensors use, each counted once.
size_t storage_bytes(const std::vector<std::pair<std::string, Tensor>>& tensors);

}  // namespace tensord::jit
