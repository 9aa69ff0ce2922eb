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

// A sample of one thread of a queue.
struct QueueThreadState {
  bool serves = false;  // takes events
  uint64_t steps = 0;   // started plus finished events: odd while it handles one
  int64_t cpu_ns = 0;   // CPU time used so far
};

// A sample of all threads of a queue, on Clock::system().
struct QueueThreadStates {
  int64_t at_ns = 0;
  std::vector<QueueThreadState> threads;
};

// Judge the serving threads between two samples, without the one that may stop serving (`left_out`; none: their
// number). Stalled: every thread handles one event all the time, or is busy inside gRPC without an event, reading or
// writing a large message.
bool are_stalled(const QueueThreadStates& before, const QueueThreadStates& now, size_t left_out);
// Every thread used one core completely.
bool are_saturated(const QueueThreadStates& before, const QueueThreadStates& now);
// The other threads could have done all the work with time to spare.
bool are_enough(const QueueThreadStates& before, const QueueThreadStates& now, size_t left_out);
// Some thread started or finished an event.
bool had_events(const QueueThreadStates& before, const QueueThreadStates& now);

// The threads that take events (EventTag) from a completion queue and handle them. One always serves, more only while
// they are needed: threads that wait on the same queue pass it on at each event, so with several a small request costs
// a thread switch and finds its data in another core's cache. While there is traffic, one of the threads that do not
// serve watches: it starts to serve when the serving threads are stalled for 2 ms, or saturated for 0.1 s while another
// core is idle. If all threads serve and are stalled, the watchdog takes events too: it handles the light ones
// (EventTag::is_light), such as those of health checks, and leaves the others to the threads that return. So no client
// can block health checks, and they need no queue of their own, whose thread would take turns with the others at
// polling the network.
class QueueThreads {
 public:
  // Starts to serve, with at most `max` threads. REQUIRES: max >= 1; the queue outlives this.
  QueueThreads(grpc::CompletionQueue& queue, int max);
  // Shuts the queue down. Its owner must not do that while these threads serve it.
  void shut_down();
  // Returns when all events are handled. REQUIRES: shut_down() was called.
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
  void run_watchdog();
  bool wait_until_all_serve();
  bool serve_light_ones();
  void wake_for_deferred();
  QueueThreadStates look() const;
  bool wait_for_tick();
  void sleep_until_traffic(const QueueThreadStates& last);

  grpc::CompletionQueue& queue_;
  std::deque<Member> members_;  // the first one always serves
  Mutex watching_;              // held by the thread that watches; the next ones wait for it
  Mutex mutex_;
  CondVar changed_;
  bool is_stopped_ TENSORD_GUARDED_BY(mutex_) = false;
  std::atomic<bool> is_watch_asleep_{false};  // there was no traffic; guarded by mutex_

  // Events that the watchdog took and others have to handle.
  class Wake final : public EventTag {
    void on_event(bool) override {}
  };
  Mutex deferred_mutex_;
  std::deque<std::pair<void*, bool>> deferred_ TENSORD_GUARDED_BY(deferred_mutex_);
  bool is_shut_down_ TENSORD_GUARDED_BY(deferred_mutex_) = false;
  std::atomic<bool> has_deferred_{false};  // whether there are any; set under deferred_mutex_
  Wake wake_;
  grpc::Alarm wake_alarm_;              // delivers wake_ to a thread that waits for events
  std::atomic<bool> is_waking_{false};  // it was not delivered yet
  Thread watchdog_;
};

}  // namespace tensord::server
