#include "core/tensor/device.h"

#include <charconv>

#include "core/base/error.h"

namespace tensord {

std::string to_string(Device device) {
  return device.kind == DeviceKind::kCPU ? "cpu" : concat("cuda:", int{device.index});
}

Device parse_device(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view kind = text.substr(0, colon);
  int index = 0;
  bool valid = kind == "cpu" || kind == "cuda";
  if (colon != std::string_view::npos) {
    const char *begin = text.data() + colon + 1, *end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(begin, end, index);
    valid = valid && error == std::errc() && stop == end && index >= 0 && index < 128;
  }
  check(valid, "device \"", text, "\" is not known; expected cpu, cuda or cuda:N");
  return {kind == "cpu" ? DeviceKind::kCPU : DeviceKind::kCUDA, static_cast<int8_t>(index)};
}

}  // namespace tensord
