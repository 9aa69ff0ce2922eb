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

// Where a gradient goes: input `input_nr` of `node`.
struct Edge {
  NodePtr node;
  uint32_t input_nr = 0;
  explicit operator bool() const { return static_cast<bool>(node); }
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

struct NodeHooks;

// A function of the backward graph: takes the gradients of a forward call's results and gives
// those of its inputs. Made while the forward runs; owned by the tensors that came of it and by
// the nodes before it. Chains of any length are freed without recursion.
// Thread-safety: edges, results and hooks are set up by one thread; then any thread may run it.
class Node : public RefCounted {
 public:
  // Runs before the node with the gradients of its results; a returned vector replaces them.
  using PreHook = std::function<std::optional<std::vector<Tensor>>(const std::vector<Tensor>& grad_outputs)>;
  // Runs after it; a returned vector replaces what the node gave.
  using PostHook = std::function<std::optional<std::vector<Tensor>>(const std::vector<Tensor>& grad_inputs,
                                                                    const std::vector<Tensor>& grad_outputs)>;

  // Nodes made later have greater numbers, and run earlier.
  explicit Node(uint64_t sequence_nr = next_sequence_nr());
  ~Node() override;

  // "MulBackward0", as PyTorch spells it.
  virtual std::string name() const = 0;
  // `gradients` has one item for each result, undefined where none flows; gives one for each of
  // next_edges. Reads engine's needs_edge() to leave out what nobody asked for.
  virtual std::vector<Tensor> apply(std::vector<Tensor> gradients) = 0;
  // Drops what the forward saved; apply throws afterwards if that was anything.
  virtual void release_saved() {}

  uint64_t sequence_nr() const { return sequence_nr_; }
  std::span<const Edge> next_edges() const { return next_edges_; }
  // Meta tensors: what gradients of a result must look like. They are summed down to its sizes and
  // converted to its dtype before they come here. Undefined for a result that has no gradient.
  std::span<const Tensor> results() const { return results_; }

  HookHandle register_prehook(PreHook hook);
  HookHandle register_hook(PostHook hook);

  // For those who make a node.
  void add_edge(Edge edge) { next_edges_.push_back(std::move(edge)); }
  void add_result(const Tensor& like);

  // Null when nobody registered any. For the engine and register_hook of tensors.
  NodeHooks* hooks() const { return hooks_.get(); }
  const std::shared_ptr<NodeHooks>& make_hooks();

  // The node that a result of this one has in the graph: this one; for a write through a view, which only the node
  // of the whole runs (see CopySlices), the view's part of that.
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

// Gives up a reference. The last one frees the node, and nodes that hang on it one after the other.
void drop(NodePtr node) noexcept;

// A meta tensor of the same sizes, strides, offset, dtype and device. Shared with the node that
// computed `tensor` when it has one.
Tensor shape_of(const Tensor& tensor);

// While a node runs: whether somebody asked for what it gives to this edge.
bool needs_edge(size_t index);

}  // namespace tensord::autograd
