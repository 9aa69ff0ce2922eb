#include "server/transport/grpc/queue_threads.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <fstream>
#include <string>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/base/parallel.h"

namespace tensord::server {
namespace {

constexpr int64_t kTickNs = 2'000'000;
constexpr int kWindowTicks = 50;

// Thresholds for adding and removing a thread: the CPU share of the threads, and the share that the remaining ones
// would have. The gap prevents oscillation.
constexpr double kFullShare = 0.9;
constexpr double kEnoughShare = 0.7;

// CPU share of a tick above which a thread inside gRPC is computing and not waiting there.
constexpr double kBusyShare = 0.5;

// Idle cores required before another one is used. When clients or models use the cores, competing threads take longer
// in total than one alone.
constexpr double kIdleCores = 0.5;

struct Use {
  int serving = 0;   // threads that served during the whole tick
  int stalled = 0;   // of those
  double cores = 0;  // used by all threads, also by one that is not counted
};

Use use_between(const QueueThreadStates& before, const QueueThreadStates& now, size_t left_out) {
  Use use;
  const auto elapsed_ns = static_cast<double>(std::max<int64_t>(now.at_ns - before.at_ns, 1));
  for (size_t i = 0; i < now.threads.size(); ++i) {
    const QueueThreadState& then = before.threads[i];
    const QueueThreadState& thread = now.threads[i];
    if (!then.serves || !thread.serves) continue;
    const double share = static_cast<double>(thread.cpu_ns - then.cpu_ns) / elapsed_ns;
    use.cores += share;
    if (i == left_out) continue;
    const bool is_with_event = thread.steps % 2 == 1;
    ++use.serving;
    if (thread.steps == then.steps && (is_with_event || share > kBusyShare)) ++use.stalled;
  }
  return use;
}

// Summed idle time of all cores since boot. An underestimate if it cannot be read.
int64_t idle_ns() {
  std::ifstream file("/proc/stat");
  std::string name;
  int64_t user = 0, nice = 0, system = 0, idle = 0, waiting_for_disk = 0;
  file >> name >> user >> nice >> system >> idle >> waiting_for_disk;
  return (idle + waiting_for_disk) * (1'000'000'000 / sysconf(_SC_CLK_TCK));
}

gpr_timespec after_tick() {
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_nanos(kTickNs, GPR_TIMESPAN));
}

}  // namespace

bool are_stalled(const QueueThreadStates& before, const QueueThreadStates& now, size_t left_out) {
  const Use use = use_between(before, now, left_out);
  return use.serving > 0 && use.stalled == use.serving;
}

bool are_saturated(const QueueThreadStates& before, const QueueThreadStates& now) {
  const Use use = use_between(before, now, now.threads.size());
  return use.serving > 0 && use.cores >= kFullShare * use.serving;
}

bool are_enough(const QueueThreadStates& before, const QueueThreadStates& now, size_t left_out) {
  const Use use = use_between(before, now, left_out);
  return use.cores < kEnoughShare * use.serving;
}

bool had_events(const QueueThreadStates& before, const QueueThreadStates& now) {
  for (size_t i = 0; i < now.threads.size(); ++i) {
    if (now.threads[i].steps != before.threads[i].steps) return true;
  }
  return false;
}

QueueThreads::QueueThreads(grpc::CompletionQueue& queue, int max) : queue_(queue), members_(static_cast<size_t>(max)) {
  members_[0].thread = Thread("grpc-queue", [this] { serve_always(members_[0]); });
  try {
    for (size_t i = 1; i < members_.size(); ++i) {
      members_[i].thread = Thread("grpc-queue", [this, i] { serve_when_needed(i); });
    }
  } catch (const Error& error) {
    log(LogLevel::kWarning, "fewer threads serve gRPC than wanted", {{"reason", error.what()}});
  }
  watchdog_ = Thread("grpc-watchdog", [this] { run_watchdog(); });
}

void QueueThreads::shut_down() {
  const MutexLock lock(deferred_mutex_);
  is_shut_down_ = true;
  queue_.Shutdown();
}

QueueThreads::~QueueThreads() {
  for (Member& member : members_) {
    if (member.thread.joinable()) member.thread.join();
  }
  watchdog_.join();
}

void QueueThreads::serve_always(Member& me) {
  set_thread_budget(1);  // models with short runs run here
  pthread_getcpuclockid(pthread_self(), &me.cpu_clock);
  me.serves = true;
  if (members_.size() == 1) {
    const MutexLock lock(mutex_);
    changed_.notify_all();
  }
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) handle(me, tag, ok);
  take_deferred(me);
  me.serves = false;
  {
    const MutexLock lock(mutex_);
    is_stopped_ = true;
  }
  changed_.notify_all();
}

void QueueThreads::serve_when_needed(size_t index) {
  set_thread_budget(1);
  pthread_getcpuclockid(pthread_self(), &members_[index].cpu_clock);
  while (watch()) serve_while_needed(index);
}

// Returns true when another thread is needed, false when the queue is shut down.
bool QueueThreads::watch() {
  const MutexLock place(watching_);
  for (bool was_saturated = false;;) {
    const QueueThreadStates begin = look();
    const int64_t idle_before_ns = was_saturated ? idle_ns() : 0;
    QueueThreadStates last = begin;
    for (int tick = 0; tick < kWindowTicks; ++tick) {
      if (!wait_for_tick()) return false;
      QueueThreadStates now = look();
      if (are_stalled(last, now, members_.size())) return true;
      last = std::move(now);
    }
    const bool is_saturated = are_saturated(begin, last);
    if (was_saturated && is_saturated) {
      const auto idle_cores =
          static_cast<double>(idle_ns() - idle_before_ns) / static_cast<double>(last.at_ns - begin.at_ns);
      if (idle_cores >= kIdleCores) return true;
    }
    was_saturated = is_saturated;
    if (!had_events(begin, last)) sleep_until_traffic(last);
  }
}

void QueueThreads::serve_while_needed(size_t index) {
  Member& me = members_[index];
  me.serves = true;
  if (all_serve()) {
    const MutexLock lock(mutex_);  // the watchdog sees it, or is already waiting
    changed_.notify_all();
  }
  QueueThreadStates last = look();
  void* tag = nullptr;
  bool ok = false;
  for (bool is_needed = true; is_needed;) {
    const auto status = queue_.AsyncNext(&tag, &ok, after_tick());
    if (status == grpc::CompletionQueue::SHUTDOWN) break;
    if (status == grpc::CompletionQueue::GOT_EVENT) handle(me, tag, ok);
    if (Clock::system().now_ns() - last.at_ns < kTickNs) continue;
    QueueThreadStates now = look();
    is_needed = !are_enough(last, now, index) || are_stalled(last, now, index);
    last = std::move(now);
  }
  me.serves = false;
}

void QueueThreads::handle(Member& me, void* tag, bool ok) {
  take(me, tag, ok);
  if (has_deferred_.load(std::memory_order_relaxed)) take_deferred(me);
}

void QueueThreads::take_deferred(Member& me) {
  for (;;) {
    std::pair<void*, bool> event;
    {
      const MutexLock lock(deferred_mutex_);
      if (deferred_.empty()) return;
      event = deferred_.front();
      deferred_.pop_front();
      has_deferred_ = !deferred_.empty();
    }
    take(me, event.first, event.second);
  }
}

void QueueThreads::take(Member& me, void* tag, bool ok) {
  me.steps.fetch_add(1);  // before the next line, because the watchdog checks again before it sleeps
  if (is_watch_asleep_.load()) {
    {
      const MutexLock lock(mutex_);
      is_watch_asleep_ = false;
    }
    changed_.notify_all();
  }
  if (tag == &wake_) is_waking_ = false;
  run_logged("grpc-queue", [&] { EventTag::of(tag).on_event(ok); });
  me.steps.fetch_add(1);
}

bool QueueThreads::all_serve() const {
  return std::all_of(members_.begin(), members_.end(), [](const Member& member) { return member.serves.load(); });
}

bool QueueThreads::wait_until_all_serve() {
  MutexLock lock(mutex_);
  changed_.wait(lock, [this]() TENSORD_REQUIRES(mutex_) { return is_stopped_ || all_serve(); });
  return !is_stopped_;
}

void QueueThreads::run_watchdog() {
  while (wait_until_all_serve()) {
    QueueThreadStates last = look();
    for (int quiet_ticks = 0; all_serve();) {
      if (!wait_for_tick()) return;
      QueueThreadStates now = look();
      if (are_stalled(last, now, members_.size())) {
        if (!serve_light_ones()) return;
      } else {
        wake_for_deferred();
        quiet_ticks = had_events(last, now) ? 0 : quiet_ticks + 1;
      }
      if (quiet_ticks == kWindowTicks) {
        sleep_until_traffic(now);
        quiet_ticks = 0;
      }
      last = std::move(now);
    }
    wake_for_deferred();
  }
}

// Serves for one tick. Returns false when the queue is shut down.
bool QueueThreads::serve_light_ones() {
  void* tag = nullptr;
  bool ok = false;
  const gpr_timespec end = after_tick();
  for (;;) {
    const auto status = queue_.AsyncNext(&tag, &ok, end);
    if (status != grpc::CompletionQueue::GOT_EVENT) return status == grpc::CompletionQueue::TIMEOUT;
    if (tag == &wake_) {
      is_waking_ = false;
      continue;
    }
    EventTag& event = EventTag::of(tag);
    if (event.is_light()) {
      event.on_event(ok);
      continue;
    }
    const MutexLock lock(deferred_mutex_);
    deferred_.emplace_back(tag, ok);
    has_deferred_ = true;
  }
}

// Threads that return check by themselves, but all of them may be waiting for events by now.
void QueueThreads::wake_for_deferred() {
  const MutexLock lock(deferred_mutex_);
  // A queue that is shut down blocks nobody and accepts no alarm.
  if (deferred_.empty() || is_shut_down_ || is_waking_.exchange(true)) return;
  wake_alarm_.Set(&queue_, gpr_now(GPR_CLOCK_MONOTONIC), wake_.tag());
}

QueueThreadStates QueueThreads::look() const {
  QueueThreadStates states{.at_ns = Clock::system().now_ns(), .threads = {}};
  states.threads.reserve(members_.size());
  for (const Member& member : members_) {
    QueueThreadState& state = states.threads.emplace_back();
    state.serves = member.serves;
    state.steps = member.steps;
    timespec cpu{};
    if (state.serves) {
      clock_gettime(member.cpu_clock, &cpu);
      state.cpu_ns = int64_t{cpu.tv_sec} * 1'000'000'000 + cpu.tv_nsec;
    }
  }
  return states;
}

// Returns false when the queue is shut down.
bool QueueThreads::wait_for_tick() {
  MutexLock lock(mutex_);
  return !changed_.wait_for(lock, std::chrono::nanoseconds(kTickNs),
                            [this]() TENSORD_REQUIRES(mutex_) { return is_stopped_; });
}

void QueueThreads::sleep_until_traffic(const QueueThreadStates& last) {
  MutexLock lock(mutex_);
  is_watch_asleep_ = true;
  if (had_events(last, look())) is_watch_asleep_ = false;  // a thread that started before this flag was visible
  changed_.wait(lock, [this]() TENSORD_REQUIRES(mutex_) { return !is_watch_asleep_ || is_stopped_; });
}

}  // namespace tensord::server
