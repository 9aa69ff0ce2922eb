#pragma once

#include <vector>

#include "core/autograd/meta.h"
#include "core/autograd/node.h"
#include "core/autograd/variable.h"
#include "core/base/mutex.h"

namespace tensord::autograd {

// What was registered on a node. Thread-safe; hooks run on copies of the lists.
struct NodeHooks {
  template <class Hook>
  struct Entry {
    uint64_t id;
    uint32_t result;  // of tensor hooks: which of the node's results
    Hook hook;
  };
  Mutex mutex;
  uint64_t last_id TENSORD_GUARDED_BY(mutex) = 0;
  std::vector<Entry<TensorHook>> of_tensors TENSORD_GUARDED_BY(mutex);  // first, in the order they came
  std::vector<Entry<Node::PreHook>> before TENSORD_GUARDED_BY(mutex);   // then these
  // Gradients that stay where they can be read (retain_grad), after every hook changed them.
  std::vector<std::pair<uint32_t, IntrusivePtr<GradSlot>>> retained TENSORD_GUARDED_BY(mutex);
  std::vector<Entry<Node::PostHook>> after TENSORD_GUARDED_BY(mutex);
};

// Whether there are hooks of any kind now.
bool has_hooks(const Node& node);
// Whether hooks run after the node.
bool has_post_hooks(const Node& node);

}  // namespace tensord::autograd
