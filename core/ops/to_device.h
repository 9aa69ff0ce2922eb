#pragma once

#include <vector>

#include "core/ops/value.h"

namespace tensord::ops {

// The same value with its tensors on a device, including those in lists, tuples and dicts; lists and dicts are new
// ones. Work on a device is finished when its results have reached the host.
Value to_device(const Value& value, Device device);
std::vector<Value> to_device(std::vector<Value> values, Device device);

}  // namespace tensord::ops
