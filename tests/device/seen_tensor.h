#pragma once

#include <map>
#include <utility>
#include <vector>

#include "core/tensor/tensor.h"
#include "tests/device/async_device.h"

namespace tensord::late {

// Device tensors as host tensors over the device's mapping. Tensors that share a storage share one here. Enqueued work
// does not keep the memory alive: the device frees it in stream order.
class SeenTensors {
 public:
  Tensor of(const Tensor& tensor) {
    if (!tensor.defined() || tensor.is_meta() || tensor.device().is_host()) return tensor;
    auto& [kept, seen] = storages_[tensor.storage().get()];
    if (!seen) {
      kept = tensor.storage().get();
      seen = wrap_storage(as_seen_by_device(tensor.storage()->data()), tensor.storage()->size_bytes(), {}, {},
                          tensor.storage()->is_writable());
    }
    const Tensor out = Tensor::from_storage(seen, tensor.sizes(), tensor.strides(), tensor.offset(), tensor.dtype());
    tensors_.emplace_back(out, tensor);
    return out;
  }

  // The device tensor of a tensor that of() returned, or that shares its storage; otherwise undefined.
  Tensor original(const Tensor& seen_tensor) const {
    for (const auto& [seen, tensor] : tensors_) {
      if (seen.is_same(seen_tensor)) return tensor;
    }
    for (const auto& [address, pair] : storages_) {
      if (pair.second != seen_tensor.storage()) continue;
      return Tensor::from_storage(Storage(pair.first), seen_tensor.sizes(), seen_tensor.strides(), seen_tensor.offset(),
                                  seen_tensor.dtype());
    }
    return {};
  }

 private:
  std::map<const StorageImpl*, std::pair<StorageImpl*, Storage>>
      storages_;                                    // the device's storage, and its view in the device mapping
  std::vector<std::pair<Tensor, Tensor>> tensors_;  // the view, and the device's tensor
};

}  // namespace tensord::late
