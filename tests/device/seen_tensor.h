#pragma once

#include <map>

#include "core/tensor/tensor.h"
#include "tests/device/late_device.h"

namespace tensord::late {

// Tensors of the device as tensors of the host over the memory that the device's work sees. Those that share a storage
// share one here. Nothing is kept alive: the memory is the device's own business, in the order of its streams.
class SeenTensors {
 public:
  Tensor of(const Tensor& tensor) {
    if (!tensor.defined() || tensor.is_meta() || tensor.device().is_host()) return tensor;
    Storage& seen = storages_[tensor.storage().get()];
    if (!seen) {
      seen = wrap_storage(as_seen_by_device(tensor.storage()->data()), tensor.storage()->size_bytes(), {}, {},
                          tensor.storage()->is_writable());
    }
    return Tensor::from_storage(seen, tensor.sizes(), tensor.strides(), tensor.offset(), tensor.dtype());
  }

 private:
  std::map<const StorageImpl*, Storage> storages_;
};

}  // namespace tensord::late
