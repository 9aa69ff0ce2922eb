#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tensord {

enum class DeviceKind : int8_t { kCPU = 0, kCUDA = 1 };
inline constexpr int kDeviceKinds = 2;
inline constexpr DeviceKind kCPU = DeviceKind::kCPU;
inline constexpr DeviceKind kCUDA = DeviceKind::kCUDA;

struct Device {
  DeviceKind kind = DeviceKind::kCPU;
  int8_t index = 0;
  bool operator==(const Device&) const = default;
};

// "cpu", "cuda:0".
std::string to_string(Device device);
// Accepts "cpu", "cuda", "cuda:N"; throws Error{kInvalidArgument} otherwise.
Device parse_device(std::string_view text);

}  // namespace tensord
