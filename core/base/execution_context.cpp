#include "core/base/execution_context.h"

#include <omp.h>

#include "core/base/parallel.h"

namespace tensord {

ExecutionContext ExecutionContext::captured() {
  ExecutionContext out = execution_context();
  out.threads = thread_budget();
  out.included_keys = out.included_keys - kThreadKeys;
  return out;
}

ExecutionContext ExecutionContext::detached() {
  ExecutionContext out = captured();
  out.generator = nullptr;
  out.cancellation = nullptr;
  out.origin = nullptr;
  out.stream = nullptr;
  return out;
}

// OpenMP holds the thread budget. The new budget must be checked for being possible (parallel.cpp); the old one was
// checked already.
ExecutionScope::ExecutionScope(const ExecutionContext& context)
    : before_(execution_context()), budget_before_(thread_budget()) {
  execution_context() = context;
  if (context.threads > 0 && context.threads != budget_before_) set_thread_budget(context.threads);
}

ExecutionScope::~ExecutionScope() {
  if (thread_budget() != budget_before_) omp_set_num_threads(budget_before_);
  execution_context() = before_;
}

}  // namespace tensord
