#pragma once

#include "core/jit/runtime/module.h"

namespace tensord::jit {

// Calls fn(LoadOptions, how) for a model as read, after the passes, and with plans on poisoned memory.
template <class Fn>
void in_every_way(Fn&& fn) {
  LoadOptions options;
  options.optimize = false;
  options.plan.is_enabled = false;
  fn(options, "as it was read");
  options.optimize = true;
  fn(options, "optimized");
  options.plan.is_enabled = true;
  options.plan.poison = true;
  fn(options, "planned");
}

}  // namespace tensord::jit
