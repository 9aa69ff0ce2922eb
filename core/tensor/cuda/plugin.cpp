#include "core/tensor/cuda/plugin.h"

#include <cstdlib>
#include <string_view>

#include "core/base/error.h"
#include "core/base/shared_object.h"

namespace tensord::cuda {
namespace {

struct OpenedPlugin {
  OpenedPlugin() {
    const char* const given = std::getenv("TENSORD_CUDA");
    if (given && std::string_view(given) == "off") {
      problem = "no GPU: TENSORD_CUDA is off";
      return;
    }
    std::string places;
    void* const found =
        find_in_object(places_of_object("libtensord_cuda.so", "TENSORD_CUDA"), kCudaApiFunction, false, places);
    const CudaApi* const opened = found ? reinterpret_cast<CudaApiFunction>(found)() : nullptr;
    if (!opened) {
      problem = "no GPU: the library for CUDA cannot be opened: " + places;
    } else if (std::string_view(opened->interface) != kCudaInterface) {
      problem = concat("no GPU: the library for CUDA is of another build (", opened->interface, ", not ",
                       kCudaInterface, "): ", places);
    } else if (opened->device_count == 0) {
      problem = concat("no GPU: ", opened->problem);
    } else {
      table = opened;
    }
  }
  const CudaApi* table = nullptr;
  std::string problem;
};

const OpenedPlugin& opened_plugin() {
  static const auto* const once = new OpenedPlugin;  // storages may outlive main
  return *once;
}

}  // namespace

const CudaApi* find_api() { return opened_plugin().table; }
const std::string& why_no_devices() { return opened_plugin().problem; }

const CudaApi& api() {
  const CudaApi* const found = find_api();
  if (!found) fail(ErrorCode::kUnimplemented, why_no_devices());
  return *found;
}

}  // namespace tensord::cuda
