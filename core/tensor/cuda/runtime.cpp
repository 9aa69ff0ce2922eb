#include "core/tensor/cuda/runtime.h"

#include <atomic>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/tensor/cuda/plugin.h"

namespace tensord::cuda {
namespace {

std::atomic<const std::string*> lost_reason{nullptr};

}  // namespace

void check_cuda(Outcome outcome, const char* what) {
  if (outcome == Outcome::kDone) return;
  const std::string text = concat(what, ": ", api().error_text());
  if (outcome == Outcome::kLost) {
    const std::string* none = nullptr;
    const auto* const kept = new std::string(text);  // once; it is read until the process ends
    if (lost_reason.compare_exchange_strong(none, kept)) {
      log(LogLevel::kError, "a GPU is lost to this process until it starts again", {{"reason", text}});
    } else {
      delete kept;
    }
  }
  fail(outcome == Outcome::kOutOfMemory ? ErrorCode::kResourceExhausted : ErrorCode::kInternal, text);
}

const char* why_lost() {
  const std::string* const reason = lost_reason.load();
  return reason ? reason->c_str() : "";
}

int device_count() {
  const CudaApi* const table = find_api();
  return table ? table->device_count : 0;
}

const DeviceProperties& device_properties(int index) {
  static const std::vector<DeviceProperties> all = [] {
    std::vector<DeviceProperties> out(static_cast<size_t>(device_count()));
    for (int i = 0; i < device_count(); ++i)
      check_cuda(api().properties(i, &out[static_cast<size_t>(i)]), "properties of a device");
    return out;
  }();
  if (index < 0 || index >= device_count()) fail(ErrorCode::kNotFound, "there is no device cuda:", index);
  return all[static_cast<size_t>(index)];
}

DeviceScope::DeviceScope(int index) {
  int before = 0;
  check_cuda(api().set_device(index, &before), "choice of a device");
  if (before != index) previous_ = before;
}
DeviceScope::~DeviceScope() {
  if (previous_ >= 0) static_cast<void>(api().set_device(previous_, nullptr));
}

}  // namespace tensord::cuda
