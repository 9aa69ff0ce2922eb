#include "server/training/low_priority.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/base/log.h"

namespace tensord::server {

void take_low_priority(int nice) {
  if (nice == 0) return;
  // On Linux both are of the thread alone.
  const sched_param parameters{};
  const bool is_nice = setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), nice) == 0;
  if (!is_nice || sched_setscheduler(0, SCHED_BATCH, &parameters) != 0) {
    log(LogLevel::kWarning, "training cannot take a low priority; it may slow serving down");
  }
}

}  // namespace tensord::server
