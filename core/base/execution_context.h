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

// Whether the calling thread records operators for autograd: PyTorch's grad mode and inference mode. Inference mode
// records nothing, not even the base of a view, and its tensors never take part in autograd, so recording costs
// nothing. The server runs models in inference mode.
struct GradMode {
  bool is_enabled = true;
  bool is_inference = false;
  bool operator==(const GradMode&) const = default;
};

// How numbers are computed where there is a choice: PyTorch's use_deterministic_algorithms and allow_tf32. The CPU's
// kernels do the same with and without; those of CUDA ask.
struct Numerics {
  // The same call gives the same bits again: sums are in a fixed order. What has no such kernel is refused by name.
  bool is_deterministic = false;
  // Operands of float32 products and convolutions may be rounded to TF32's 11 significant bits.
  bool allows_tf32_products = false, allows_tf32_convolutions = false;
  bool operator==(const Numerics&) const = default;
};

// The type that autocast computes in, on each kind of device (core/autograd/autocast.h).
enum class AutocastType : uint8_t { kOff, kBFloat16, kFloat16 };
struct AutocastState {
  AutocastType cpu = AutocastType::kOff, cuda = AutocastType::kOff;
  bool is_cache_enabled = true;
  bool operator==(const AutocastState&) const = default;
};

// All thread-local settings that work depends on. Each thread has one context and changes its fields with ContextPart.
// Code that passes work to another thread captures the context and installs it there with an ExecutionScope, so a new
// field reaches all such threads. Settings of one thread alone (the script it interprets, the node it runs) do not
// belong here.
struct ExecutionContext {
  uint32_t memory_owner = 0;  // the owner that allocations are charged to, an OwnerId (core/tensor/allocator.h)
  int threads = 0;            // thread budget of kernels (parallel.h); 0 means nobody has set one
  GradMode grad_mode;
  Numerics numerics;
  AutocastState autocast;
  // What each call of an operator goes through beside what its tensors ask for, and what it does not go through.
  DispatchKeySet included_keys, excluded_keys;
  // Below: not owned. They live until the scope that set them ends, so long as the thread that has it waits.
  ops::Generator* generator = nullptr;              // null: the default one
  const CancellationScope* cancellation = nullptr;  // the innermost one; null: nobody gives the work up
  const autograd::OriginScope* origin = nullptr;    // what anomaly mode says the thread does
  DeviceStream* stream = nullptr;                   // for work on its device; null: the device's default stream

  bool operator==(const ExecutionContext&) const = default;

  // The full context of the calling thread, for threads that it waits for.
  static ExecutionContext captured();
  // The context without the fields that point into the calling thread's stack, for work that the calling thread does
  // not wait for. Such work draws from the default generator and cannot be cancelled.
  static ExecutionContext detached();
};

namespace detail {
inline constinit thread_local ExecutionContext thread_context;
}

// The calling thread's context, for reading and for changes that outlast a scope (torch.set_grad_enabled). Change the
// thread budget only with set_thread_budget, which also tells OpenMP.
inline ExecutionContext& execution_context() { return detail::thread_context; }

// Sets one field of the calling thread's context until the end of the scope. Scopes nest.
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

// Installs the context of another thread in the calling thread until the end of the scope.
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
