#include "core/autograd/graph_task.h"

#include <algorithm>
#include <exception>

#include "core/autograd/accumulate_grad.h"
#include "core/autograd/anomaly.h"
#include "core/autograd/gradients.h"
#include "core/autograd/hooks/callbacks.h"
#include "core/autograd/hooks/hooks.h"
#include "core/base/cancellation.h"
#include "core/base/error.h"
#include "core/base/mutex.h"
#include "core/base/thread.h"
#include "core/tensor/grad_mode.h"

namespace tensord::autograd {
namespace {

// The node that the calling thread is running, for needs_edge and messages.
struct Running {
  GraphTask* graph = nullptr;
  const NodeTask* task = nullptr;
};
thread_local Running running;

class RunningScope {
 public:
  RunningScope(GraphTask& graph, const NodeTask& task) : before_(running) { running = {&graph, &task}; }
  ~RunningScope() { running = before_; }
  RunningScope(const RunningScope&) = delete;
  RunningScope& operator=(const RunningScope&) = delete;

 private:
  Running before_;
};

void run_tensor_hooks(NodeHooks& hooks, std::vector<Tensor>& gradients) {
  MutexLock lock(hooks.mutex);
  const auto of_tensors = hooks.of_tensors;
  lock.unlock();
  for (const auto& entry : of_tensors) {
    if (!gradients[entry.result].defined()) continue;
    if (Tensor replaced = entry.hook(gradients[entry.result]); replaced.defined()) gradients[entry.result] = replaced;
  }
}

void run_pre_hooks(NodeHooks& hooks, std::vector<Tensor>& gradients) {
  MutexLock lock(hooks.mutex);
  const auto before = hooks.before;
  const auto retained = hooks.retained;
  lock.unlock();
  for (const auto& entry : before) {
    if (auto replaced = entry.hook(gradients)) {
      check(replaced->size() == gradients.size(), "a node's pre-hook returned ", replaced->size(),
            " gradients, expected ", gradients.size());
      gradients = std::move(*replaced);
    }
  }
  for (const auto& [result, slot] : retained) {
    if (!gradients[result].defined()) continue;
    const MutexLock slot_lock(slot->mutex);
    slot->value = slot->value.defined() ? sum_of(slot->value, gradients[result]) : copy_of(gradients[result]);
  }
}

void run_post_hooks(NodeHooks& hooks, std::vector<Tensor>& outputs, const std::vector<Tensor>& gradients) {
  MutexLock lock(hooks.mutex);
  const auto after = hooks.after;
  lock.unlock();
  for (const auto& entry : after) {
    if (auto replaced = entry.hook(outputs, gradients)) {
      check(replaced->size() == outputs.size(), "a node's hook returned ", replaced->size(), " gradients, expected ",
            outputs.size());
      outputs = std::move(*replaced);
    }
  }
}

void check_outputs(const Node& node, std::vector<Tensor>& outputs) {
  const std::span<const Edge> edges = node.next_edges();
  check_internal(outputs.size() == edges.size(), "a node gave ", outputs.size(), " gradients for ", edges.size(),
                 " edges");
  for (size_t i = 0; i < edges.size(); ++i) {
    if (!edges[i] || !outputs[i].defined()) continue;
    const Tensor& like = edges[i].node->results()[edges[i].input_nr];
    if (fits(outputs[i], like)) continue;
    const std::string problem = fit_gradient(outputs[i], like);
    if (problem.empty()) continue;
    fail(ErrorCode::kInvalidArgument, "Function ", node.name(), " returned an invalid gradient at index ", i, " - ",
         problem);
  }
}

// Nodes that support sparse gradients return sparse or dense ones; all others fail here at the latest.
std::vector<Tensor> apply_to_sparse(Node& node, std::vector<Tensor> gradients) {
  std::vector<Tensor> outputs;
  try {
    outputs = node.apply(std::move(gradients));
  } catch (const Error& error) {
    throw Error(error.code(), concat("Function ", node.name(), " does not take a sparse gradient: ", error.what()));
  }
  for (const Tensor& output : outputs) {
    if (output.defined() && output.is_meta())
      fail(ErrorCode::kUnimplemented, "Function ", node.name(), " does not take a sparse gradient");
  }
  return outputs;
}

void check_no_nan(const Node& node, const std::vector<Tensor>& outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].defined() || !has_nan(outputs[i])) continue;
    fail(ErrorCode::kFailedPrecondition, "Function '", node.name(), "' returned nan values in its ", i, "th output.");
  }
}

std::string with_origin(const Node& node, const char* message) {
  std::string text = concat(message, "\nError detected in ", node.name(), ".");
  if (!node.origin().empty()) text += " It is the backward of a call made in\n" + node.origin();
  return text;
}

}  // namespace

bool has_hooks(const Node& node) {
  NodeHooks* const hooks = node.hooks();
  if (!hooks) return false;
  const MutexLock lock(hooks->mutex);
  return !hooks->of_tensors.empty() || !hooks->before.empty() || !hooks->retained.empty() || !hooks->after.empty();
}
bool has_post_hooks(const Node& node) {
  NodeHooks* const hooks = node.hooks();
  if (!hooks) return false;
  const MutexLock lock(hooks->mutex);
  return !hooks->after.empty();
}
bool needs_edge(size_t index) { return !running.graph || running.graph->needs_edge(*running.task, index); }
void queue_callback(std::function<void()> callback) {
  if (!running.graph) fail(ErrorCode::kFailedPrecondition, "queue_callback: no backward pass runs on this thread");
  running.graph->add_callback(std::move(callback));
}
const Node* running_node() { return running.task ? running.task->node : nullptr; }

bool is_earlier(const NodeTask* a, const NodeTask* b) { return a->node->sequence_nr() < b->node->sequence_nr(); }

// --- set-up

void GraphTask::grow() {
  std::vector<NodeTask*> slots(std::max<size_t>(64, slots_.size() * 2));
  std::swap(slots, slots_);
  for (NodeTask& task : tasks_) {
    size_t at = reinterpret_cast<uintptr_t>(task.node) * 0x9E3779B97F4A7C15u >> 20 & (slots_.size() - 1);
    while (slots_[at]) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = &task;
  }
}

NodeTask& GraphTask::task_of(Node* node) {
  if (tasks_.size() * 2 >= slots_.size()) grow();
  size_t at = reinterpret_cast<uintptr_t>(node) * 0x9E3779B97F4A7C15u >> 20 & (slots_.size() - 1);
  while (slots_[at]) {
    if (slots_[at]->node == node) return *slots_[at];
    at = (at + 1) & (slots_.size() - 1);
  }
  NodeTask& task = tasks_.emplace_back(node);
  task.gradients.resize(node->results().size());
  task.first_edge = ~uint32_t{0};
  slots_[at] = &task;
  return task;
}

void GraphTask::add_root(const Edge& edge, Tensor gradient) {
  roots_.push_back(edge);
  deliver(task_of(edge.node.get()), edge.input_nr, std::move(gradient));
}

size_t GraphTask::add_capture(const Edge& edge) {
  has_targets_ = true;
  captures_.push_back({edge.input_nr, {}});
  NodeTask& task = task_of(edge.node.get());
  task.is_target = true;
  task.captures.push_back(static_cast<uint32_t>(captures_.size() - 1));
  roots_.push_back(edge);  // kept alive
  return captures_.size() - 1;
}

void GraphTask::add_leaf(const Edge& edge) {
  has_targets_ = true;
  NodeTask& task = task_of(edge.node.get());
  task.is_target = true;
  roots_.push_back(edge);
}

// Post-order: records which edges lead to a requested input.
void GraphTask::finish(NodeTask& task) {
  bool leads_to_target = false;
  const std::span<const Edge> edges = task.node->next_edges();
  for (size_t i = 0; i < edges.size(); ++i) {
    NodeTask*& next = edges_[task.first_edge + i];
    if (!next) continue;
    if (next->runs || next->is_target) {
      ++next->dependencies;
      leads_to_target = true;
    } else {
      next = nullptr;
    }
  }
  if (!has_targets_) return;
  const bool is_leaf = edges.empty() && task.is_target && task.captures.empty();
  task.runs = leads_to_target || is_leaf;
}

void GraphTask::discover() {
  struct Visit {
    NodeTask* task;
    uint32_t next = 0;
  };
  std::vector<Visit> stack;
  const auto enter = [&](NodeTask& task) {
    if (task.first_edge != ~uint32_t{0}) return;
    task.first_edge = static_cast<uint32_t>(edges_.size());
    edges_.resize(edges_.size() + task.node->next_edges().size());
    stack.push_back({&task});
  };
  const size_t given = tasks_.size();
  for (size_t i = 0; i < given; ++i) {
    enter(tasks_[i]);
    while (!stack.empty()) {
      Visit& visit = stack.back();
      NodeTask& task = *visit.task;
      const std::span<const Edge> edges = task.node->next_edges();
      if (visit.next == edges.size()) {
        stack.pop_back();
        finish(task);
        continue;
      }
      const uint32_t index = visit.next++;
      if (!edges[index]) continue;
      NodeTask& next = task_of(edges[index].node.get());
      edges_[task.first_edge + index] = &next;
      enter(next);
    }
  }
}

// --- the pass

void GraphTask::deliver(NodeTask& task, uint32_t result, Tensor gradient) {
  if (gradient.defined()) add_gradient(task.gradients[result], std::move(gradient));
}

std::vector<Tensor> GraphTask::run_node(NodeTask& task, std::vector<Tensor> gradients) {
  Node& node = *task.node;
  NodeHooks* hooks = node.hooks();
  if (hooks) run_pre_hooks(*hooks, gradients);
  const bool has_after = has_post_hooks(node);
  const std::vector<Tensor> kept = has_after ? gradients : std::vector<Tensor>();
  const bool is_sparse = std::ranges::any_of(gradients, [](const Tensor& one) { return one && !one.is_strided(); });
  std::vector<Tensor> outputs =
      is_sparse ? apply_to_sparse(node, std::move(gradients)) : node.apply(std::move(gradients));
  check_outputs(node, outputs);
  if (has_after) {
    run_post_hooks(*hooks, outputs, kept);
    check_outputs(node, outputs);
  }
  if (checks_nan()) check_no_nan(node, outputs);
  if (!options_.retain_graph) node.release_saved();
  return outputs;
}

std::vector<Tensor> GraphTask::run_task(NodeTask& task) {
  std::vector<Tensor> gradients;
  gradients.reserve(task.gradients.size());
  for (Tensor& gradient : task.gradients) gradients.push_back(std::move(gradient));
  task.gradients.clear();
  const RunningScope scope(*this, task);
  try {
    if (NodeHooks* hooks = task.node->hooks()) run_tensor_hooks(*hooks, gradients);
    for (const uint32_t number : task.captures) captures_[number].gradient = gradients[captures_[number].result];
    if (!task.runs) return {};
    return run_node(task, std::move(gradients));
  } catch (const Error& error) {
    if (is_anomaly_mode()) throw Error(error.code(), with_origin(*task.node, error.what()));
    throw;
  }
}

std::vector<NodeTask*> GraphTask::ready_at_start() {
  std::vector<NodeTask*> ready;
  for (NodeTask& task : tasks_) {
    const bool has_gradient = std::any_of(task.gradients.begin(), task.gradients.end(),
                                          [](const Tensor& gradient) { return gradient.defined(); });
    if (task.dependencies == 0 && has_gradient && (task.runs || task.is_target)) ready.push_back(&task);
  }
  std::make_heap(ready.begin(), ready.end(), is_earlier);
  return ready;
}

void GraphTask::run_serial() {
  std::vector<NodeTask*> ready = ready_at_start();
  while (!ready.empty()) {
    std::pop_heap(ready.begin(), ready.end(), is_earlier);
    NodeTask* task = ready.back();
    ready.pop_back();
    check_work_cancelled();
    std::vector<Tensor> outputs = run_task(*task);
    if (!task->runs) continue;
    const std::span<const Edge> edges = task->node->next_edges();
    for (size_t i = 0; i < edges.size(); ++i) {
      NodeTask* next = edges_[task->first_edge + i];
      if (!next) continue;
      deliver(*next, edges[i].input_nr, std::move(outputs[i]));
      if (--next->dependencies > 0) continue;
      ready.push_back(next);
      std::push_heap(ready.begin(), ready.end(), is_earlier);
    }
  }
}

void GraphTask::run_here() {
  const GradModeGuard mode({options_.create_graph, false});
  // Nodes that the pass itself makes are numbered as they come, which must not depend on threads.
  const bool may_share = running.graph == nullptr && !options_.create_graph && tasks_.size() > 2;
  if (options_.threads > 1 && may_share) {
    run_parallel(options_.threads);
  } else {
    run_serial();
  }
}

void GraphTask::add_callback(std::function<void()> callback) {
  const MutexLock lock(callbacks_mutex_);
  callbacks_.push_back(std::move(callback));
}

void GraphTask::run() {
  run_anywhere();
  std::vector<std::function<void()>> callbacks;
  {
    const MutexLock lock(callbacks_mutex_);
    callbacks.swap(callbacks_);
  }
  // A callback may start passes of its own, which have callbacks of their own.
  for (const auto& callback : callbacks) callback();
}

void GraphTask::run_anywhere() {
  // Nested passes use the stack; this many fit on any.
  constexpr int kMaxDepth = 50;
  thread_local int depth = 0;
  discover();
  if (depth >= kMaxDepth) {
    run_on_thread("autograd", [this] { run_here(); });
    return;
  }
  struct Deeper {
    Deeper() { ++depth; }
    ~Deeper() { --depth; }
  };
  const Deeper deeper;
  run_here();
}

}  // namespace tensord::autograd
