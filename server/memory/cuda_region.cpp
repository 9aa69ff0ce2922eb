#include "server/memory/cuda_region.h"

#include <bit>
#include <utility>

#include "core/base/error.h"
#include "core/tensor/cuda/runtime.h"

namespace tensord::server {
namespace {

// Adds the region's name to errors.
template <class Fn>
void with_name(const char* what, const std::string& name, Fn&& fn) {
  try {
    fn();
  } catch (const Error& error) {
    throw Error(error.code(), concat(what, " CUDA shared memory region '", name, "': ", error.what()));
  }
}

// The address space of GPU memory, for overlap checks. No file system has this device number.
constexpr uint64_t kCudaSpace = UINT64_MAX;

}  // namespace

CudaRegion::CudaRegion(Place place) : place_(std::move(place)) {
  const CudaDriver& driver = CudaDriver::instance();
  if (driver.device_count() == 0) {
    fail(ErrorCode::kUnimplemented, "failed to register CUDA shared memory region: '", place_.name,
         "', GPUs not supported");
  }
  with_name("failed to register", place_.name, [&] {
    check(place_.device_id >= 0 && place_.device_id < driver.device_count(), "there is no GPU ", place_.device_id);
    check(place_.size_bytes > 0, "byte_size must be above 0");
    memory_ = driver.open(static_cast<int>(place_.device_id), place_.handle);
    if (place_.size_bytes <= memory_.size_bytes) return;
    driver.close(memory_);
    fail(ErrorCode::kInvalidArgument, "byte_size ", place_.size_bytes, " exceeds the ", memory_.size_bytes,
         " bytes that are there");
  });
}

uint8_t* CudaRegion::device_data() const {
  if (place_.device_id >= cuda::device_count()) return nullptr;
  return std::bit_cast<uint8_t*>(memory_.address);
}

CudaRegion::~CudaRegion() { CudaDriver::instance().close(memory_); }

SharedRegion::Origin CudaRegion::origin() const {
  return {.space = kCudaSpace, .object = static_cast<uint64_t>(place_.device_id), .offset = memory_.address};
}

void CudaRegion::read(uint64_t offset, void* to, uint64_t count) const {
  with_name("cannot read", place_.name, [&] { CudaDriver::instance().read(memory_, offset, to, count); });
}

void CudaRegion::write(uint64_t offset, const void* from, uint64_t count) const {
  with_name("cannot write", place_.name, [&] { CudaDriver::instance().write(memory_, offset, from, count); });
}

}  // namespace tensord::server
