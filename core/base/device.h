#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tensord {

// kPrivateUse is a device that a program registers itself, under PyTorch's name for such devices. The second device of
// the tests is one.
enum class DeviceKind : int8_t { kCPU = 0, kCUDA = 1, kPrivateUse = 2 };
inline constexpr int kDeviceKinds = 3;
inline constexpr DeviceKind kCPU = DeviceKind::kCPU;
inline constexpr DeviceKind kCUDA = DeviceKind::kCUDA;
inline constexpr DeviceKind kPrivateUse = DeviceKind::kPrivateUse;

struct Device {
  DeviceKind kind = DeviceKind::kCPU;
  int8_t index = 0;
  bool operator==(const Device&) const = default;
  // Whether the CPU can read and write the device's memory.
  bool is_host() const { return kind == DeviceKind::kCPU; }
};

// "cpu", "cuda", "privateuseone".
const char* name_of(DeviceKind kind);
// "cpu", "cuda:0".
std::string to_string(Device device);
// Accepts the name of a kind alone or with ":N". Throws Error{kInvalidArgument} otherwise.
Device parse_device(std::string_view text);

}  // namespace tensord
