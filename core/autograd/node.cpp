#include "core/autograd/node.h"

#include <algorithm>

#include "core/autograd/anomaly.h"
#include "core/autograd/differentiable.h"
#include "core/autograd/hooks/hooks.h"
#include "core/base/mutex.h"

namespace tensord::autograd {
namespace {

// Nodes whose last reference was dropped while another node was being freed on this thread. Plain pointers, because the
// last destructors of a thread may free tensors.
thread_local Node* dropped = nullptr;
thread_local bool is_dropping = false;

template <class Entry>
void erase(std::vector<Entry>& entries, uint64_t id) {
  std::erase_if(entries, [id](const Entry& entry) { return entry.id == id; });
}

}  // namespace

void drop(NodePtr node) noexcept {
  if (!node) return;
  Node* last = node.detach();
  if (last->use_count() > 1) return last->release();
  if (is_dropping) {
    last->next_dropped_ = dropped;
    dropped = last;
    return;
  }
  is_dropping = true;
  last->release();
  while (dropped) {
    Node* next = std::exchange(dropped, dropped->next_dropped_);
    next->release();
  }
  is_dropping = false;
}

uint64_t Node::next_sequence_nr() {
  static std::atomic<uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

Node::Node(uint64_t sequence_nr) : sequence_nr_(sequence_nr) {
  if (is_anomaly_mode()) origin_ = std::make_unique<std::string>(describe_origin());
}

Node::~Node() {
  for (Edge& edge : next_edges_) drop(std::move(edge.node));
}

const std::string& Node::origin() const {
  static const std::string nothing;
  return origin_ ? *origin_ : nothing;
}

void Node::add_result(const Tensor& like) {
  if (!like.defined() || !is_differentiable(like.dtype())) {
    results_.emplace_back();
    return;
  }
  Tensor meta = Tensor::meta_strided(like.sizes(), like.strides(), like.dtype(), like.device());
  meta.impl()->offset = like.offset();
  results_.push_back(std::move(meta));
}

const std::shared_ptr<NodeHooks>& Node::make_hooks() {
  static Mutex mutex;
  const MutexLock lock(mutex);
  if (!hooks_) hooks_ = std::make_shared<NodeHooks>();
  return hooks_;
}

HookHandle Node::register_prehook(PreHook hook) {
  const auto& hooks = make_hooks();
  const MutexLock lock(hooks->mutex);
  const uint64_t id = ++hooks->last_id;
  hooks->before.push_back({id, 0, std::move(hook)});
  return HookHandle([weak = std::weak_ptr(hooks), id] {
    if (const auto hooks = weak.lock()) {
      const MutexLock lock(hooks->mutex);
      erase(hooks->before, id);
    }
  });
}

HookHandle Node::register_hook(PostHook hook) {
  const auto& hooks = make_hooks();
  const MutexLock lock(hooks->mutex);
  const uint64_t id = ++hooks->last_id;
  hooks->after.push_back({id, 0, std::move(hook)});
  return HookHandle([weak = std::weak_ptr(hooks), id] {
    if (const auto hooks = weak.lock()) {
      const MutexLock lock(hooks->mutex);
      erase(hooks->after, id);
    }
  });
}

Tensor shape_of(const Tensor& tensor) {
  if (const TensorState* state = state_of(tensor); state && state->grad_fn) {
    // Unless it was given other memory in the meantime.
    const Tensor& known = state->grad_fn->results()[state->output_nr];
    if (known.sizes() == tensor.sizes() && known.strides() == tensor.strides() && known.offset() == tensor.offset() &&
        known.device() == tensor.device()) {
      return known;
    }
  }
  Tensor meta = Tensor::meta_strided(tensor.sizes(), tensor.strides(), tensor.dtype(), tensor.device());
  meta.impl()->offset = tensor.offset();
  return meta;
}

}  // namespace tensord::autograd
