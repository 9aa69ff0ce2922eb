#pragma once

#include <string>

#include "core/jit/runtime/module.h"

namespace tensord::jit {

// The operator of a method, or of what it calls, that makes the samples of a batch depend on each other whatever way
// they lie (ops::mixes_samples); empty when there is none. Requests of several callers must not share a run of such a
// method. Where calls are not known by name, packed weights in the module count as such an operator.
std::string find_mixing_operator(const Module& module, const Method& method);

}  // namespace tensord::jit
