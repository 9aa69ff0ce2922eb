#pragma once

#include "core/base/parallel.h"

namespace tensord {

// Sets the calling thread's thread budget until the end of the scope.
class ThreadBudgetScope {
 public:
  explicit ThreadBudgetScope(int threads) : before_(thread_budget()) { set_thread_budget(threads); }
  ~ThreadBudgetScope() { set_thread_budget(before_); }
  ThreadBudgetScope(const ThreadBudgetScope&) = delete;
  ThreadBudgetScope& operator=(const ThreadBudgetScope&) = delete;

 private:
  const int before_;
};

}  // namespace tensord
