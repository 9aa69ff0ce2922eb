#pragma once

#include <mutex>
#include <vector>

#include "core/autograd/meta.h"
#include "core/autograd/node.h"
#include "core/autograd/variable.h"

namespace tensord::autograd {

// What was registered on a node. Thread-safe; hooks run on copies of the lists.
struct NodeHooks {
  template <class Hook>
  struct Entry {
    uint64_t id;
    uint32_t result;  // of tensor hooks: which of the node's results
    Hook hook;
  };
  std::mutex mutex;
  uint64_t last_id = 0;
  std::vector<Entry<TensorHook>> of_tensors;  // first, in the order they came
  std::vector<Entry<Node::PreHook>> before;   // then these
  // Gradients that stay where they can be read (retain_grad), after every hook changed them.
  std::vector<std::pair<uint32_t, IntrusivePtr<GradSlot>>> retained;
  std::vector<Entry<Node::PostHook>> after;
};

// Whether hooks run after the node.
bool has_post_hooks(const Node& node);

}  // namespace tensord::autograd
