#pragma once

#include <cstdint>
#include <string>
#include <unordered_set>

#include "core/tensor/memory/owner_limit.h"
#include "core/tensor/tensor.h"

namespace tensord::jit {

// Limits the total size of tensors in a file. Tensors view the bytes of the file, so a few bytes can stand for any
// number of elements, with strides of 0 or with many views. Code that copies, packs or converts such tensors allocates
// their full size, so the total is checked first.
class ViewedMemory {
 public:
  // Throws Error{kResourceExhausted} if the elements of all tensors so far exceed their bytes by more than the
  // available memory.
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
