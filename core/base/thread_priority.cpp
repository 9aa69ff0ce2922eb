#include "core/base/thread_priority.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

#include "core/base/log.h"
#include "core/base/thread.h"

namespace tensord {
namespace {

// The shortest turn that Linux gives. Who yields gives up a turn, which with low priority is long: with turns of the
// usual milliseconds a busy machine would hardly let the thread go on.
constexpr uint64_t kTurnNs = 100'000;

// What sched_setattr(2) takes in its first version. <linux/sched/types.h> has it too, but does not go with <sched.h>.
struct SchedulingAttributes {
  uint32_t size = sizeof(SchedulingAttributes);
  uint32_t policy = SCHED_BATCH;
  uint64_t flags = 0;
  int32_t nice = 0;
  uint32_t priority = 0;
  uint64_t runtime_ns = 0, deadline_ns = 0, period_ns = 0;
};

// As the thread has it, which OpenMP's threads inherit; systems without such turns say 0.
bool has_short_turns() {
  SchedulingAttributes attributes;
  return syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0) == 0 && attributes.policy == SCHED_BATCH &&
         attributes.runtime_ns == kTurnNs;
}

enum class Turns : uint8_t { kUnknown, kShort, kUsual };
thread_local Turns turns = Turns::kUnknown;

}  // namespace

void take_low_priority(int nice) {
  if (nice == 0) return;
  turns = Turns::kUnknown;
  // On Linux these are of the thread alone. A smaller value than it has already is not for everyone, and not wanted.
  const id_t thread = static_cast<id_t>(gettid());
  nice = std::max(nice, getpriority(PRIO_PROCESS, thread));
  SchedulingAttributes attributes{.nice = nice, .runtime_ns = kTurnNs};
  if (syscall(SYS_sched_setattr, 0, &attributes, 0) == 0) return;
  setpriority(PRIO_PROCESS, thread, nice);  // better than nothing, where a sandbox has only this
  log(LogLevel::kWarning, "a thread cannot take a low priority; it may slow serving down", {{"nice", int64_t{nice}}});
}

void let_others_run() {
  if (turns == Turns::kUnknown) turns = has_short_turns() ? Turns::kShort : Turns::kUsual;
  if (turns == Turns::kShort) sched_yield();
}

void run_with_nice(int nice, const std::function<void()>& fn) {
  run_on_thread("low-priority", [&] {
    take_low_priority(nice);
    fn();
  });
}

}  // namespace tensord
