#pragma once

#include <any>
#include <functional>
#include <memory>

#include "core/autograd/node.h"
#include "core/tensor/tensor.h"

namespace tensord::autograd {

// What happens to tensors that are kept for a backward pass: `pack` is called with each when it is saved, and its
// result is kept in its place; `unpack` gives the tensor back, as often as a pass reads it. They may move it to another
// device or to a file, say, and must give back one of the same sizes, dtype and device, and the same elements: nobody
// checks the elements.
struct SavedTensorHooks {
  std::function<std::any(const Tensor& tensor)> pack;
  std::function<Tensor(const std::any& packed)> unpack;
};

// As long as it lives, what the calling thread records is saved by these hooks, or, with an inner one, by those. The
// hooks live as long as what they packed; a backward pass calls them on its own threads.
class SavedTensorHooksScope {
 public:
  explicit SavedTensorHooksScope(SavedTensorHooks hooks);
  ~SavedTensorHooksScope();
  SavedTensorHooksScope(const SavedTensorHooksScope&) = delete;
  SavedTensorHooksScope& operator=(const SavedTensorHooksScope&) = delete;

 private:
  std::shared_ptr<const SavedTensorHooks> previous_;
};

// Tensors that are only looked at between two backward passes stay on the device; all others lie in the host's memory
// meanwhile: PyTorch's save_on_cpu.
SavedTensorHooks save_on_cpu();

// --- for those who save tensors

// A tensor as hooks packed it, with where its gradient goes.
class PackedTensor {
 public:
  // By the hooks of the calling thread, which there must be (hooks_are_set()).
  explicit PackedTensor(const Tensor& tensor);
  // What `unpack` gives; with `with_history` a pass over it goes on to what computed the tensor. Throws
  // Error{kInvalidArgument} when it is another kind of tensor than was saved.
  Tensor unpack(bool with_history) const;

  ~PackedTensor() { drop(std::move(edge_.node)); }
  PackedTensor(PackedTensor&&) = default;
  PackedTensor& operator=(PackedTensor&&) = default;

 private:
  std::shared_ptr<const SavedTensorHooks> hooks_;
  std::any packed_;
  Tensor shape_;  // meta
  Edge edge_;
};
bool hooks_are_set();

}  // namespace tensord::autograd
