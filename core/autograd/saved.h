#pragma once

#include <cstdint>
#include <memory>

#include "core/autograd/hooks/saved_hooks.h"
#include "core/autograd/node.h"
#include "core/tensor/tensor.h"

namespace tensord::autograd {

// Throws Error for a tensor that autograd must not keep: one made in inference mode.
void check_savable(const Tensor& tensor);

// Throws Error when the memory of a saved tensor was written since it had this version. `computed_by`
// is null for a leaf.
void check_version(const Tensor& saved, uint32_t version, const Node* computed_by, uint32_t output_nr);

// The text for a pass over what an earlier one released.
[[noreturn]] void fail_released();

// A tensor kept for a backward pass, which sees it as it was: writing it meanwhile is an error. A result of
// the node that keeps it is kept without its history, which would own the node.
class SavedTensor {
 public:
  SavedTensor() = default;
  // `owner`: the node that keeps it, when the tensor is its result number `output_nr`, which has a gradient.
  explicit SavedTensor(const Tensor& tensor, const Node* owner = nullptr, uint32_t output_nr = 0);
  // Undefined when an undefined one was saved. Throws Error when it was written.
  Tensor unpack() const;

 private:
  Tensor tensor_;
  std::unique_ptr<PackedTensor> packed_;  // in place of tensor_, where there were hooks
  const Node* owner_ = nullptr;           // not owned: it owns this
  uint32_t version_ = 0, output_nr_ = 0;
};

}  // namespace tensord::autograd
