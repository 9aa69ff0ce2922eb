#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "core/base/mutex.h"
#include "core/base/thread.h"
#include "server/transport/grpc/event_tag.h"

namespace tensord::server {

// What was seen of one thread of a queue at one time.
struct QueueThreadState {
  bool serves = false;  // it takes events
  uint64_t steps = 0;   // events begun and events ended: odd while it is with one
  int64_t cpu_ns = 0;   // processor time that it has had
};

// All threads of a queue at one time, on Clock::system().
struct QueueThreadStates {
  int64_t at_ns = 0;
  std::vector<QueueThreadState> threads;
};

// What those did that served from `before` to `now`, without one that may leave (`left_out`; none: their number).
// Held up: with one event all the time, or busy inside gRPC without one, which reads or writes a large message then.
bool are_stalled(const QueueThreadStates& before, const QueueThreadStates& now, size_t left_out);
// Each had a core and used it to the full.
bool are_saturated(const QueueThreadStates& before, const QueueThreadStates& now);
// What all had to do would have left the others some time.
bool are_enough(const QueueThreadStates& before, const QueueThreadStates& now, size_t left_out);
// Some thread took an event or ended one.
bool had_events(const QueueThreadStates& before, const QueueThreadStates& now);

// The threads that take events (EventTag) from a completion queue and handle them: one always, more only while they are
// needed. A second thread is not free: threads that wait on one queue hand it to each other at each event, so a small
// request costs a switch of threads, and finds its data in the other core's cache. While there is traffic, one of the
// threads that do not serve watches: it serves when those that do are stalled for 2 ms, or saturated for 0.1 s while
// another core is idle. When all of them serve and are stalled, by whatever it is, one more looks out: it takes events
// too, handles the light ones (EventTag::is_light), such as those of health calls, and leaves the others for those that
// come back. So no client can hold up health, and a queue of its own for health, whose thread would take turns with the
// others at waiting for the network, is not needed.
class QueueThreads {
 public:
  // Serves from now on, with `most` threads at most. REQUIRES: most >= 1; the queue outlives this.
  QueueThreads(grpc::CompletionQueue& queue, int max);
  // Shuts the queue down, as its owner must not do while these serve it.
  void shut_down();
  // All its events are handled when this returns. REQUIRES: the queue was shut down.
  ~QueueThreads();
  QueueThreads(const QueueThreads&) = delete;
  QueueThreads& operator=(const QueueThreads&) = delete;

 private:
  struct Member {
    Thread thread;
    clockid_t cpu_clock = 0;  // set before it serves
    std::atomic<bool> serves{false};
    std::atomic<uint64_t> steps{0};
  };

  void serve_always(Member& me);
  void serve_when_needed(size_t index);
  bool watch();
  void serve_while_needed(size_t index);
  void handle(Member& me, void* tag, bool ok);
  void take(Member& me, void* tag, bool ok);
  void take_deferred(Member& me);
  bool all_serve() const;
  void watch();
  bool wait_until_all_serve();
  bool serve_light_ones();
  void wake_for_deferred();
  QueueThreadStates look() const;
  bool wait_for_tick();
  void sleep_until_traffic(const QueueThreadStates& last);

  grpc::CompletionQueue& queue_;
  std::deque<Member> members_;  // the first serves always
  Mutex watching_;              // held by the one that watches; the next ones wait for its place
  Mutex mutex_;
  CondVar changed_;
  bool is_stopped_ TENSORD_GUARDED_BY(mutex_) = false;
  std::atomic<bool> is_watch_asleep_{false};  // there was no traffic; set by mutex_

  // What the one that looks out took and others are to handle.
  class Wake final : public EventTag {
    void on_event(bool) override {}
  };
  Mutex deferred_mutex_;
  std::deque<std::pair<void*, bool>> deferred_ TENSORD_GUARDED_BY(deferred_mutex_);
  bool is_shut_down_ TENSORD_GUARDED_BY(deferred_mutex_) = false;
  std::atomic<bool> has_deferred_{false};  // whether there are any, set by deferred_mutex_
  Wake wake_;
  grpc::Alarm wake_alarm_;              // brings wake_ to one that waits for events
  std::atomic<bool> is_waking_{false};  // and it has not come yet
  Thread watchdog_;
};

}  // namespace tensord::server
