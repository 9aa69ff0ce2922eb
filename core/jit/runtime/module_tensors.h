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

// The object and the modules below it as nn.Module.modules() orders them: each before its submodules, in
// the order of the attributes, and once.
std::vector<ops::ObjectPtr> collect_modules(const ops::ObjectPtr& object);
// The same with their dotted names; the object itself is named "".
std::vector<std::pair<std::string, ops::ObjectPtr>> collect_named_modules(const ops::ObjectPtr& object);
// The one of a dotted name, "" for the object itself. Throws Error{kNotFound}.
ops::ObjectPtr find_module(const ops::ObjectPtr& object, const std::string& name);
// (dotted name, tensor) of the members that the modules' classes list: parameters or buffers. Each
// tensor once, None left out.
std::vector<std::pair<std::string, Tensor>> collect_members(const ops::ObjectPtr& object,
                                                            std::vector<std::string> ops::ClassType::*names);
// (dotted name, slot) of all parameters and buffers that are tensors; one that has several names comes with each.
std::vector<std::pair<std::string, ops::Value*>> collect_member_slots(const ops::ObjectPtr& object);

// Bytes of the storages that the tensors view, each counted once.
size_t storage_bytes(const std::vector<std::pair<std::string, Tensor>>& tensors);

}  // namespace tensord::jit
