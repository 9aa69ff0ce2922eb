#include "core/tensor/lend.h"

#include <array>
#include <cstdint>

#include "core/base/mutex.h"
#include "core/tensor/device_runtime.h"
#include "core/tensor/shape.h"

namespace tensord {
namespace {

// From the first element to the end of the last. Strides are never negative.
size_t extent_bytes(const Tensor& tensor) {
  if (tensor.numel() == 0) return 0;
  int64_t last = 0;
  for (size_t i = 0; i < tensor.sizes().size(); ++i) last += (tensor.sizes()[i] - 1) * tensor.strides()[i];
  return static_cast<size_t>(last + 1) * size_of(tensor.dtype());
}

}  // namespace

void StorageImpl::copy_lent() {
  // Two threads of one script may make the first write. Storages share the locks, so copies of different storages
  // rarely wait for each other.
  static std::array<Mutex, 16> mutexes;
  const MutexLock lock(mutexes[reinterpret_cast<uintptr_t>(this) / sizeof(StorageImpl) % mutexes.size()]);
  if (is_writable()) return;
  copy_ = allocate_storage(size_bytes_, device_);
  DeviceStream& stream = current_stream(device_);
  device_runtime(device_).copy(copy_->data(), device_, data(), device_, size_bytes_, stream);
  record_stream(stream);
  uses_ = copy_->uses();
  data_.store(copy_->data(), std::memory_order_relaxed);
  is_writable_.store(true, std::memory_order_release);
}

Tensor read_only(const Tensor& tensor) {
  void* const data = tensor.raw_data();
  Storage storage = wrap_storage(
      data, extent_bytes(tensor), [tensor] {}, tensor.device(), /*is_writable=*/false, tensor.storage()->uses());
  return Tensor::from_storage(std::move(storage), tensor.sizes(), tensor.strides(), 0, tensor.dtype());
}

Tensor lend(const Tensor& tensor) {
  Tensor lent = read_only(tensor);
  lent.storage()->set_lent();
  return lent;
}

}  // namespace tensord
