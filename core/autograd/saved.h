#pragma once

#include <cstdint>
#include <memory>

#include "core/autograd/hooks/saved_hooks.h"
#include "core/autograd/node.h"
#include "core/tensor/tensor.h"

namespace tensord::autograd {

// Throws Error for a tensor that autograd must not keep: one made in inference mode.
void check_savable(const Tensor& tensor);

// Throws Error if the memory of a saved tensor was written since it had this version. `computed_by` is null for a leaf.
void check_version(const Tensor& saved, uint32_t version, const Node* computed_by, uint32_t output_nr);

// Throws the error of a pass over tensors that an earlier pass released.
[[noreturn]] void fail_released();

// A tensor saved for a backward pass. Writing its memory in the meantime is an error. If the node that saves it also
// computed it, it is stored without its history, which would own the node.
class SavedTensor {
 public:
  SavedTensor() = default;
  // `owner` is the node that saves it, if the tensor is its result `output_nr` and has a gradient.
  explicit SavedTensor(const Tensor& tensor, const Node* owner = nullptr, uint32_t output_nr = 0);
  // Undefined if an undefined tensor was saved. Throws Error if its memory was written.
  Tensor unpack() const;

 private:
  Tensor tensor_;
  std::unique_ptr<PackedTensor> packed_;  // replaces tensor_ if there were hooks
  const Node* owner_ = nullptr;           // not owned: it owns this object
  uint32_t version_ = 0, output_nr_ = 0;
};

}  // namespace tensord::autograd
