#pragma once

#include <algorithm>
#include <chrono>

#include "core/base/cancellation.h"
#include "core/base/execution_context.h"
#include "core/base/mutex.h"

namespace tensord {

// A waiting thread checks for cancellation this often.
constexpr std::chrono::milliseconds kLookInterval{50};

// changed.wait_until(lock, end, condition) that throws Error{kCancelled} once the work of the calling thread is
// cancelled. It checks for cancellation without the lock, because the thread that cancels may wait for others who need
// the lock. Clang cannot follow which mutex `lock` holds; the lock is held again at the end, and while `condition`
// runs.
template <class Condition>
bool cancellable_wait(CondVar& changed, MutexLock& lock, std::chrono::steady_clock::time_point end,
                      Condition condition) TENSORD_NO_THREAD_SAFETY_ANALYSIS {
  using Clock = std::chrono::steady_clock;
  if (execution_context().cancellation == nullptr) {
    if (end != Clock::time_point::max()) return changed.wait_until(lock, end, condition);
    changed.wait(lock, condition);
    return true;
  }
  for (;;) {
    if (changed.wait_until(lock, std::min(end, Clock::now() + kLookInterval), condition)) return true;
    lock.unlock();
    const bool is_late = Clock::now() >= end;
    if (!is_late) check_work_cancelled();
    lock.lock();
    if (is_late) return condition();
  }
}

}  // namespace tensord
