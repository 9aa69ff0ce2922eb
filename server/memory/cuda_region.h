#pragma once

#include "server/memory/cuda_driver.h"
#include "server/memory/shared_region.h"

namespace tensord::server {

// GPU memory that a client in another process allocated. The client must not free it while it is registered. Models on
// GPUs read and write it in place if the engine knows the GPU.
class CudaRegion final : public SharedRegion {
 public:
  static constexpr const char* kKind = "cuda";
  struct Place {
    std::string name;
    std::string handle;  // from cudaIpcGetMemHandle, CudaDriver::kHandleBytes
    int64_t device_id = 0;
    uint64_t size_bytes = 0;
  };
  // Throws Error: {kUnimplemented} without a GPU, {kInvalidArgument} for an invalid place.
  explicit CudaRegion(Place place);
  ~CudaRegion() override;
  CudaRegion(const CudaRegion&) = delete;
  CudaRegion& operator=(const CudaRegion&) = delete;

  // Whether this machine supports it. The first call looks for the driver.
  static bool is_supported() { return CudaDriver::instance().device_count() > 0; }

  const Place& place() const { return place_; }
  const std::string& name() const override { return place_.name; }
  uint64_t size_bytes() const override { return place_.size_bytes; }
  uint8_t* data() const override { return nullptr; }
  uint8_t* device_data() const override;
  Device device() const override { return {kCUDA, static_cast<int8_t>(place_.device_id)}; }
  bool is_lost() const override { return false; }  // reading memory that is gone fails instead
  Origin origin() const override;
  void read(uint64_t offset, void* to, uint64_t count) const override;
  void write(uint64_t offset, const void* from, uint64_t count) const override;

 private:
  Place place_;
  CudaDriver::Memory memory_;
};

}  // namespace tensord::server
