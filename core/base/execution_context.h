#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include "core/base/device.h"
#include "core/base/dispatch_key.h"

namespace tensord {

class CancellationScope;
class DeviceStream;
namespace ops {
class Generator;
}
namespace autograd {
class OriginScope;
}

// Whether the calling thread records what it computes for autograd, as PyTorch's grad mode and
// inference mode. In inference mode nothing is recorded, not even what a view is a view of, and
// tensors made in it never take part in autograd: it costs nothing. Serving runs in it.
struct GradMode {
  bool is_enabled = true;
  bool is_inference = false;
  bool operator==(const GradMode&) const = default;
};

// All that work takes from the thread it runs on. Each thread has one, and changes it by parts (ContextPart). Who has
// another thread work takes `captured()` and puts it in force there with an ExecutionScope: a field that is added here
// arrives everywhere. What belongs to one thread alone (the script it interprets, the node it runs) is not in it.
struct ExecutionContext {
  uint32_t memory_owner = 0;  // who memory is charged to: an OwnerId (core/tensor/allocator.h)
  int threads = 0;            // budget for kernels (parallel.h); 0: nobody has set one
  GradMode grad_mode;
  // What each call of an operator goes through beside what its tensors ask for, and what it does not go through.
  DispatchKeySet included_keys, excluded_keys;
  // Below: not owned. They live until the scope that set them ends, so long as the thread that has it waits.
  ops::Generator* generator = nullptr;              // null: the default one
  const CancellationScope* cancellation = nullptr;  // the innermost one; null: nobody gives the work up
  const autograd::OriginScope* origin = nullptr;    // what anomaly mode says the thread does
  DeviceStream* stream = nullptr;                   // for work on its device; null: the device's default stream

  bool operator==(const ExecutionContext&) const = default;

  // Of the calling thread, whole: for threads that it waits for.
  static ExecutionContext captured();
  // The same for work that the calling thread does not wait for: without what lives on its stack. Such work draws from
  // the default generator and cannot be given up.
  static ExecutionContext detached();
};

namespace detail {
inline constinit thread_local ExecutionContext thread_context;
}

// The calling thread's, for a look and for changes that outlast a scope (torch.set_grad_enabled). The budget of threads
// is changed by set_thread_budget alone, which tells OpenMP.
inline ExecutionContext& execution_context() { return detail::thread_context; }

// Another value for one field of the calling thread's context until the end of the scope; scopes nest.
template <auto Field>
class ContextPart {
 public:
  using Value = std::remove_reference_t<decltype(std::declval<ExecutionContext&>().*Field)>;

  explicit ContextPart(Value value) : before_(std::exchange(execution_context().*Field, value)) {}
  ~ContextPart() { execution_context().*Field = before_; }
  ContextPart(const ContextPart&) = delete;
  ContextPart& operator=(const ContextPart&) = delete;

 private:
  const Value before_;
};

// The whole context of another thread in force in the calling one, until the end of the scope.
class ExecutionScope {
 public:
  explicit ExecutionScope(const ExecutionContext& context);
  ~ExecutionScope();
  ExecutionScope(const ExecutionScope&) = delete;
  ExecutionScope& operator=(const ExecutionScope&) = delete;

 private:
  const ExecutionContext before_;
  const int budget_before_;
};

}  // namespace tensord
