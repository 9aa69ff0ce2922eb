#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/inline_vector.h"
#include "core/base/intrusive_ptr.h"
#include "core/tensor/tensor.h"

namespace tensord::autograd {

class Node;
using NodePtr = IntrusivePtr<Node>;

// The target of a gradient: input `input_nr` of `node`.
struct Edge {
  NodePtr node;
  uint32_t input_nr = 0;
  explicit operator bool() const { return static_cast<bool>(node); }
};

// Removes a hook on request; the hook stays when the handle is destroyed.
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

struct NodeHooks;

// A function of the backward graph: takes the gradients of a forward call's results and returns those of its inputs.
// Made during the forward call; owned by its results and by the nodes before it. Chains of any length are freed without
// recursion. Thread safety: one thread sets up edges, results and hooks; then any thread may run it.
class Node : public RefCounted {
 public:
  // Runs before the node with the gradients of its results; a returned vector replaces them.
  using PreHook = std::function<std::optional<std::vector<Tensor>>(const std::vector<Tensor>& grad_outputs)>;
  // Runs after it; a returned vector replaces the node's outputs.
  using PostHook = std::function<std::optional<std::vector<Tensor>>(const std::vector<Tensor>& grad_inputs,
                                                                    const std::vector<Tensor>& grad_outputs)>;

  // Nodes made later have greater numbers, and run earlier.
  explicit Node(uint64_t sequence_nr = next_sequence_nr());
  ~Node() override;

  // "MulBackward0", as PyTorch spells it.
  virtual std::string name() const = 0;
  // `gradients` has one item for each result, undefined if none flows; returns one for each of next_edges. Checks the
  // engine's needs_edge() to skip gradients that are not needed.
  virtual std::vector<Tensor> apply(std::vector<Tensor> gradients) = 0;
  // Releases the values that the forward call saved; apply throws afterwards if there were any.
  virtual void release_saved() {}

  uint64_t sequence_nr() const { return sequence_nr_; }
  std::span<const Edge> next_edges() const { return next_edges_; }
  // Meta tensors that describe the gradient of each result. Incoming gradients are summed down to the sizes and
  // converted to the dtype before apply. Undefined for a result without a gradient.
  std::span<const Tensor> results() const { return results_; }

  HookHandle register_prehook(PreHook hook);
  HookHandle register_hook(PostHook hook);

  // For the code that makes a node.
  void add_edge(Edge edge) { next_edges_.push_back(std::move(edge)); }
  void add_result(const Tensor& like);

  // Null if none were registered. For the engine, and for register_hook of tensors.
  NodeHooks* hooks() const { return hooks_.get(); }
  const std::shared_ptr<NodeHooks>& make_hooks();

  // The node that stands for a result in the graph: this node; or, for a write through a view, which only the node of
  // the whole runs (see CopySlices), the view's part of that.
  NodePtr history() const { return whole_ ? whole_->make_part() : NodePtr(const_cast<Node*>(this)); }
  void set_whole(const Node* whole) { whole_ = whole; }

  // In anomaly mode: where the forward call was made; else empty.
  const std::string& origin() const;

 protected:
  static uint64_t next_sequence_nr();
  virtual NodePtr make_part() const { return {}; }

  InlineVector<Edge, 2> next_edges_;
  InlineVector<Tensor, 1> results_;

 private:
  friend void drop(NodePtr node) noexcept;
  const uint64_t sequence_nr_;
  std::shared_ptr<NodeHooks> hooks_;
  std::unique_ptr<std::string> origin_;
  const Node* whole_ = nullptr;  // owns this one
  Node* next_dropped_ = nullptr;
};

// Drops a reference. The last one frees the node, and then the nodes that only it owned, one after the other.
void drop(NodePtr node) noexcept;

// A meta tensor with the same sizes, strides, offset, dtype and device. Shared with the node that computed `tensor`, if
// there is one.
Tensor shape_of(const Tensor& tensor);

// While a node runs: whether its gradient for this edge is needed.
bool needs_edge(size_t index);

}  // namespace tensord::autograd
