#pragma once

#include "core/distributed/nccl/nccl_backend.h"
#include "tests/device/async_device.h"
#include "tests/distributed/fake_nccl.h"
#include "tests/distributed/ranks.h"

namespace tensord::distributed::fixtures {

inline constexpr const char* kNccl = "nccl";

// The NCCL backend with the fake function table, on the fake device.
inline BackendFactory fake_nccl_backends() { return nccl_backends_over(fake_nccl::api(), kPrivateUse, 0); }

inline BackendFactory factory_of(const std::string& backend) {
  return backend == kNccl ? fake_nccl_backends() : backends_of(backend);
}
inline std::vector<std::string> names_with_nccl() {
  std::vector<std::string> names = backend_names();
  names.push_back(kNccl);
  return names;
}

inline bool is_on_device() { return device_of_tensors() != Device{}; }

inline bool nccl_has(ReduceOp op, DType dtype) {
  const bool is_bits = op == kBand || op == kBor || op == kBxor;
  return dtype != DType::kInt16 && !is_bits && !(op == kProduct && is_complex(dtype));
}

// While one exists, tensors are created on the device. Its destructor checks that nothing of the fake is left over or
// was misused.
class OnDevice {
 public:
  OnDevice() {
    late::install();
    fake_nccl::reset();
    device_of_tensors() = late::kFirst;
  }
  ~OnDevice() {
    device_of_tensors() = {};
    EXPECT_EQ(fake_nccl::misuses(), std::vector<std::string>());
    EXPECT_EQ(fake_nccl::counts().alive(), 0);
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
};

}  // namespace tensord::distributed::fixtures
