#pragma once

#include <string>
#include <vector>

#include "core/distributed/group/backend.h"
#include "core/tensor/tensor.h"

namespace tensord::distributed {

// Throws Error that names operation and argument if the tensor is undefined, or if the backend cannot use its memory
// (another device, or a meta tensor).
void check_source(Backend& backend, const std::string& operation, const char* argument, const Tensor& tensor);
// Also throws if the tensor cannot be written: read-only memory, or elements that share memory.
void check_target(Backend& backend, const std::string& operation, const char* argument, const Tensor& tensor);
// Throws Error that names operation and argument if dtype or device differ from those of `like`.
void check_alike(const std::string& operation, const char* argument, const Tensor& tensor, const Tensor& like);

// Several tensors as one dense buffer, in index order whatever their strides, because backends see only bytes and other
// ranks may have other strides. A single dense tensor is used in place. On a device, copies are enqueued in the current
// stream, and the tensors' memory is recorded as used there.
class Packed {
 public:
  explicit Packed(std::vector<Tensor> tensors);
  explicit Packed(const Tensor& tensor) : Packed(std::vector<Tensor>{tensor}) {}

  // Uses a separate buffer, if the tensors must not be changed.
  void own();
  void pack() const;    // from the tensors
  void unpack() const;  // to the tensors
  std::byte* data() const { return data_; }
  size_t count() const { return count_; }
  size_t size_bytes() const { return count_ * element_bytes_; }
  size_t element_bytes() const { return element_bytes_; }
  DType dtype() const { return tensors_.front().dtype(); }
  Device device() const { return tensors_.front().device(); }

 private:
  template <class Fn>
  void for_parts(const Fn& fn) const;

  const std::vector<Tensor> tensors_;
  size_t count_ = 0;
  size_t element_bytes_ = 1;
  Tensor memory_;  // undefined: the memory of the only tensor is used
  std::byte* data_ = nullptr;
};

}  // namespace tensord::distributed
