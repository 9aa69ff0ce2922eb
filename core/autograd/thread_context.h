#pragma once

#include "core/base/parallel.h"
#include "core/tensor/allocator.h"
#include "core/tensor/grad_mode.h"

namespace tensord::autograd {

// What another thread that works for this one must take over: who memory is charged to, grad mode.
class ThreadContext {
 public:
  ThreadContext() : owner_(current_memory_owner()), mode_(current_grad_mode) {}

  // Puts it in force in the calling thread, with a budget of threads for kernels.
  class Scope {
   public:
    Scope(const ThreadContext& context, int budget)
        : budget_before_(thread_budget()), owner_(context.owner_), mode_(context.mode_) {
      set_thread_budget(budget);
    }
    ~Scope() { set_thread_budget(budget_before_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    int budget_before_;
    MemoryOwnerScope owner_;
    GradModeGuard mode_;
  };

 private:
  OwnerId owner_;
  GradMode mode_;
};

}  // namespace tensord::autograd
