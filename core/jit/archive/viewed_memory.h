#pragma once

#include <cstdint>
#include <string>
#include <unordered_set>

#include "core/tensor/memory/owner_limit.h"
#include "core/tensor/tensor.h"

namespace tensord::jit {

// Tensors of a file are views of its bytes, so that a few bytes can stand for any number of elements, by strides of 0
// or by many views. Whatever copies, packs or converts them later makes the memory: so their sum is looked at first.
class ViewedMemory {
 public:
  // Throws Error{kResourceExhausted} where all tensors so far have more elements than bytes to the extent that there is
  // no room for.
  void add(const Tensor& tensor, const std::string& source) {
    uint64_t size = 0;
    if (__builtin_mul_overflow(static_cast<uint64_t>(tensor.numel()), size_of(tensor.dtype()), &size) ||
        __builtin_add_overflow(viewed_, size, &viewed_)) {
      viewed_ = UINT64_MAX;
    }
    if (storages_.insert(tensor.storage().get()).second) stored_ += tensor.storage()->size_bytes();
    if (viewed_ > stored_) check_room(viewed_ - stored_, source);
  }

 private:
  std::unordered_set<const StorageImpl*> storages_;
  uint64_t viewed_ = 0, stored_ = 0;
};

}  // namespace tensord::jit
