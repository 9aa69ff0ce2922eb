#include "core/base/device.h"

#include <array>
#include <charconv>

#include "core/base/error.h"

namespace tensord {
namespace {

constexpr std::array<const char*, kDeviceKinds> kNames{"cpu", "cuda", "privateuseone"};

}  // namespace

const char* name_of(DeviceKind kind) {
  const auto index = static_cast<size_t>(kind);
  return index < kNames.size() ? kNames[index] : "unknown";
}

std::string to_string(Device device) {
  return device.is_host() ? name_of(device.kind) : concat(name_of(device.kind), ":", int{device.index});
}

Device parse_device(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  int kind = 0, index = 0;
  while (kind < kDeviceKinds && name != kNames[static_cast<size_t>(kind)]) ++kind;
  bool valid = kind < kDeviceKinds;
  if (colon != std::string_view::npos) {
    const char *begin = text.data() + colon + 1, *end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(begin, end, index);
    valid = valid && error == std::errc() && stop == end && index >= 0 && index < 128;
  }
  check(valid, "device \"", text, "\" is not known; expected cpu, cuda or cuda:N");
  return {static_cast<DeviceKind>(kind), static_cast<int8_t>(index)};
}

}  // namespace tensord
