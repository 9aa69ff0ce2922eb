#include "core/base/thread_priority.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <future>

#include "core/base/log.h"

namespace tensord {

void take_low_priority(int nice) {
  if (nice == 0) return;
  // On Linux both are of the thread alone.
  const sched_param parameters{};
  const bool is_nice = setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), nice) == 0;
  if (!is_nice || sched_setscheduler(0, SCHED_BATCH, &parameters) != 0) {
    log(LogLevel::kWarning, "a thread cannot take a low priority; it may slow serving down", {{"nice", int64_t{nice}}});
  }
}

void run_with_nice(int nice, const std::function<void()>& fn) {
  const auto run = [&] {
    take_low_priority(nice);
    fn();
  };
  std::async(std::launch::async, run).get();
}

}  // namespace tensord
