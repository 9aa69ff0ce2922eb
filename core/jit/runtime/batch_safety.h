#pragma once

#include <string>

#include "core/jit/runtime/module.h"

namespace tensord::jit {

// The operator of a method, or of its callees, that makes samples of a batch depend on each other for any layout of the
// batch (ops::mixes_samples); empty if there is none. Requests of several clients must not share a run of such a
// method. If callees are unknown, packed weights in the module count as such an operator.
std::string find_mixing_operator(const Module& module, const Method& method);

}  // namespace tensord::jit
