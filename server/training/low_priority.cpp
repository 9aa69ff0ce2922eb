#include "server/training/low_priority.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/base/log.h"

namespace tensord::server {

void take_low_priority() {
  // On Linux both are of the thread alone.
  constexpr int kLargestNice = 19;
  const sched_param parameters{};
  const bool is_nice = setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kLargestNice) == 0;
  if (!is_nice || sched_setscheduler(0, SCHED_BATCH, &parameters) != 0) {
    log(LogLevel::kWarning, "training cannot take a low priority; it may slow serving down");
  }
}

}  // namespace tensord::server
