#pragma once

#include <cstdint>
#include <string_view>

#include "core/base/device.h"

namespace tensord::ops {

// What autocast does with the floating arguments of an operator, with PyTorch's lists. float64 and integers stay.
enum class AutocastPolicy : uint8_t {
  kNone,     // nothing; the operators that it calls have policies of their own
  kLower,    // computes in bfloat16 or float16
  kFloat32,  // computes in float32
  kPromote,  // computes in the widest of its arguments' types
  kRefused,  // fails, because 16 bits cannot hold its inputs well enough
};

// An operator's attribute, from the marks in kernels/*/*.ops: "autocast lower" for all devices, "autocast cpu f32" for
// one. Its in-place and out= variants have none: they compute in the type of what they write.
struct Autocast {
  AutocastPolicy cpu = AutocastPolicy::kNone, cuda = AutocastPolicy::kNone;

  AutocastPolicy on(DeviceKind device) const {
    return device == kCPU ? cpu : device == kCUDA ? cuda : AutocastPolicy::kNone;
  }
  // Adds a mark without its first word: "lower", "cuda promote". Throws Error{kInvalidArgument} for other texts.
  void add(std::string_view mark);
  bool operator==(const Autocast&) const = default;
};

}  // namespace tensord::ops
