#include "core/distributed/group/backend.h"

#include "core/base/error.h"

namespace tensord::distributed {

std::unique_ptr<Transfer> DeviceBackend::start_send(const std::byte*, size_t, int, uint64_t) {
  fail(ErrorCode::kInternal, "messages of a device are sent in its stream");
}
std::unique_ptr<Transfer> DeviceBackend::start_recv(std::byte*, size_t, std::span<const int>, uint64_t) {
  fail(ErrorCode::kInternal, "messages of a device are received in its stream");
}

}  // namespace tensord::distributed
