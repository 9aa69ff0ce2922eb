#pragma once

#include <deque>
#include <functional>
#include <span>
#include <vector>

#include "core/autograd/engine.h"
#include "core/autograd/node.h"
#include "core/base/inline_vector.h"
#include "core/base/mutex.h"

namespace tensord::autograd {

// The state of one node in a pass.
struct NodeTask {
  explicit NodeTask(Node* node) : node(node) {}
  Node* node;                          // the roots keep it alive
  uint32_t dependencies = 0;           // edges that have not delivered a gradient yet
  uint32_t first_edge = 0;             // position in GraphTask::edges_
  uint32_t first_inbox = 0;            // position in ParallelPass::inboxes_
  bool runs = true;                    // false: its gradients are not needed
  bool is_target = false;              // the gradient that arrives here was requested
  InlineVector<Tensor, 1> gradients;   // by result of the node
  InlineVector<uint32_t, 1> captures;  // indices into GraphTask::captures_
};

// Heap order: the node with the highest sequence number is first.
bool is_earlier(const NodeTask* a, const NodeTask* b);

// One backward pass: the nodes that it reaches, their dependencies, and the gradients in flight. Used once: add roots
// and targets, then run.
class GraphTask {
 public:
  explicit GraphTask(BackwardOptions options) : options_(options) {}
  GraphTask(const GraphTask&) = delete;
  GraphTask& operator=(const GraphTask&) = delete;

  // The pass starts with this gradient at this edge.
  void add_root(const Edge& edge, Tensor gradient);
  // Requests the gradient that arrives at this edge; nodes on no path to a target do not run. Returns its index.
  size_t add_capture(const Edge& edge);
  // Requests that the leaf's gradient is accumulated.
  void add_leaf(const Edge& edge);

  // Throws the error of the first node that failed. A deeply nested pass continues on a thread of its own.
  void run();

  // Undefined if no gradient arrived.
  Tensor captured(size_t number) const { return captures_[number].gradient; }
  void add_callback(std::function<void()> callback);  // see queue_callback
  bool needs_edge(const NodeTask& task, size_t index) const { return edges_[task.first_edge + index] != nullptr; }

 private:
  struct Capture {
    uint32_t result;
    Tensor gradient;
  };

  NodeTask& task_of(Node* node);
  void grow();
  void discover();
  void finish(NodeTask& task);
  std::vector<NodeTask*> ready_at_start();
  void run_here();
  void run_anywhere();  // here, or on a thread of its own if deeply nested
  void run_serial();
  void run_parallel(int threads);  // graph_parallel.cpp
  // Runs a node with its gradients and returns its outputs, none if it was only a target.
  std::vector<Tensor> run_task(NodeTask& task);
  std::vector<Tensor> run_node(NodeTask& task, std::vector<Tensor> gradients);
  void deliver(NodeTask& task, uint32_t result, Tensor gradient);
  friend class ParallelPass;

  const BackwardOptions options_;
  bool has_targets_ = false;
  std::vector<Edge> roots_;
  std::deque<NodeTask> tasks_;
  std::vector<NodeTask*> slots_;  // a hash table of tasks_ by node
  std::vector<NodeTask*> edges_;  // the target of each edge, by first_edge + index; null if it leads nowhere
  std::vector<Capture> captures_;
  Mutex callbacks_mutex_;
  std::vector<std::function<void()>> callbacks_ TENSORD_GUARDED_BY(callbacks_mutex_);
};

}  // namespace tensord::autograd
