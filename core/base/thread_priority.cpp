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

// The shortest time slice that Linux grants. A thread that yields gives up its slice, and a low-priority thread waits
// long for the next one; with the usual slices of milliseconds it would make hardly any progress on a busy machine.
constexpr uint64_t kTurnNs = 100'000;

// The first version of the argument of sched_setattr(2). <linux/sched/types.h> has it too but conflicts with <sched.h>.
struct SchedulingAttributes {
  uint32_t size = sizeof(SchedulingAttributes);
  uint32_t policy = SCHED_BATCH;
  uint64_t flags = 0;
  int32_t nice = 0;
  uint32_t priority = 0;
  uint64_t runtime_ns = 0, deadline_ns = 0, period_ns = 0;
};

// Reads the thread's setting, which OpenMP's threads inherit. Systems without such slices report 0.
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
  // On Linux these settings belong to the thread. A thread needs a privilege to lower its nice value, and that is not
  // wanted here.
  const id_t thread = static_cast<id_t>(gettid());
  nice = std::max(nice, getpriority(PRIO_PROCESS, thread));
  SchedulingAttributes attributes{.nice = nice, .runtime_ns = kTurnNs};
  if (syscall(SYS_sched_setattr, 0, &attributes, 0) == 0) return;
  setpriority(PRIO_PROCESS, thread, nice);  // the only setting that some sandboxes allow
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
