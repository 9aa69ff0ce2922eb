#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/intrusive_ptr.h"
#include "core/tensor/tensor.h"

namespace tensord::autograd {

class Node;
using NodePtr = IntrusivePtr<Node>;

// Where a gradient goes: input `input_nr` of `node`.
struct Edge {
  NodePtr node;
  uint32_t input_nr = 0;
  explicit operator bool() const { return static_cast<bool>(node); }
};

// A function of the backward graph: takes the gradients of a forward call's results and gives
// those of its inputs. Made while the forward runs; owned by the tensors that came of it and by
// the nodes after it.
class Node : public RefCounted {
 public:
  // What gradients of a result must look like; they are broadcast down and converted to it.
  struct Result {
    Dims sizes;
    DType dtype = DType::kFloat32;
    Device device;
  };
  using PreHook = std::function<std::optional<std::vector<Tensor>>(const std::vector<Tensor>& grad_outputs)>;
  using PostHook = std::function<std::optional<std::vector<Tensor>>(const std::vector<Tensor>& grad_inputs,
                                                                    const std::vector<Tensor>& grad_outputs)>;

  Node();
  ~Node() override;

  // "MulBackward0", as PyTorch spells it.
  virtual std::string name() const = 0;
  // `gradients` has one item for each result, undefined where none flows; gives one for each of next_edges.
  virtual std::vector<Tensor> apply(std::vector<Tensor> gradients) = 0;
  // Drops what the forward saved; apply throws afterwards.
  virtual void release_saved() {}

  uint64_t sequence_nr() const { return sequence_nr_; }
  const std::vector<Edge>& next_edges() const { return next_edges_; }
  const std::vector<Result>& results() const { return results_; }

 protected:
  friend class Recorder;
  friend class Engine;
  std::vector<Edge> next_edges_;
  std::vector<Result> results_;
  uint64_t sequence_nr_;
};

// Takes a hook away again; the hook stays when the handle goes.
class HookHandle {
 public:
  HookHandle() = default;
  explicit HookHandle(std::function<void()> remove) : remove_(std::move(remove)) {}
  void remove() {
    if (remove_) std::exchange(remove_, nullptr)();
  }

 private:
  std::function<void()> remove_;
};

}  // namespace tensord::autograd
