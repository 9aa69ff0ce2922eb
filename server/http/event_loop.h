#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <unordered_map>
#include <vector>

#include "core/base/mutex.h"
#include "core/base/thread.h"
#include "server/http/connection.h"
#include "server/http/connection_table.h"
#include "server/http/handler.h"
#include "server/http/origins.h"
#include "server/http/timer_wheel.h"

namespace tensord::server {

// State shared by the loops of a port.
struct LoopContext {
  HttpHandler& handler;
  HttpMemoryQuota quota;
  HttpDeadlines deadlines;
  AllowedOrigins origins;
  ConnectionTable table;
  std::vector<EventLoop*> loops = {};  // set before they start
};

// A thread that serves connections: epoll, deadlines, and functions posted by other threads. Exchanges may outlive the
// thread.
class EventLoop : public std::enable_shared_from_this<EventLoop> {
 public:
  using Task = std::function<void(EventLoop&)>;
  // Creates the socket of an accepted connection; null: close it.
  using MakeSocket = std::function<std::unique_ptr<HttpSocket>(int file)>;

  EventLoop(std::shared_ptr<LoopContext> context, int number);
  ~EventLoop();

  void listen(int listener, MakeSocket make_socket);  // call before it starts
  void start();
  // Accepts no new connections or requests, lets the current ones finish until the deadline, then closes the rest.
  void stop(int64_t deadline_ns);
  void join();

  // Runs a function on the loop's thread: immediately if called there. Does nothing after the loop has ended.
  // Thread-safe.
  template <class Fn>
  void run(Fn&& fn) {
    if (std::this_thread::get_id() == thread_id_.load(std::memory_order_relaxed)) {
      fn(*this);
    } else {
      post(std::make_shared<std::decay_t<Fn>>(std::forward<Fn>(fn)));
    }
  }

  // On the loop's thread.
  Connection* find(uint64_t connection);
  void cut(uint64_t connection);
  LoopContext& context() { return *context_; }
  TimerWheel& timers() { return timers_; }
  int64_t now_ns() const { return now_ns_; }
  std::vector<uint8_t>& scratch() { return scratch_; }
  void add_turn(uint64_t connection) { turns_.push_back(connection); }
  // Destroyed at the end of the turn, because it may still be in use.
  void retire(uint64_t connection) { retired_.push_back(connection); }
  void set_phase(Connection& connection, ConnectionTable::Phase phase);
  int number() const { return number_; }
  void release_later(std::shared_ptr<const void> owner) { owners_.push_back(std::move(owner)); }

 private:
  template <class Fn>
  void post(std::shared_ptr<Fn> fn) {
    post_task([fn = std::move(fn)](EventLoop& loop) { (*fn)(loop); });
  }
  void post_task(Task task);
  void serve();
  int timeout_ms() const;
  void handle_event(uint64_t id, uint32_t events);
  void run_tasks();
  void run_turns();
  void accept_some(size_t listener);
  void add(int file, const std::string& address, const MakeSocket& make_socket);
  void cut_elsewhere(const ConnectionTable::Victim& victim);
  void remove_retired();
  void begin_stop(int64_t deadline_ns);

  const std::shared_ptr<LoopContext> context_;
  const int number_;
  int poll_ = -1, wake_ = -1, spare_ = -1;
  struct Listener {
    int file;
    MakeSocket make_socket;
  };
  std::vector<Listener> listeners_;
  Thread thread_;
  std::atomic<std::thread::id> thread_id_{};

  Mutex mutex_;
  std::vector<Task> tasks_ TENSORD_GUARDED_BY(mutex_);
  bool is_over_ TENSORD_GUARDED_BY(mutex_) = false;

  // On the loop's thread only:
  int64_t now_ns_;
  TimerWheel timers_;
  std::vector<uint8_t> scratch_;
  uint64_t next_id_ = 0;
  std::unordered_map<uint64_t, std::unique_ptr<Connection>> connections_;
  std::vector<uint64_t> turns_, retired_;
  std::vector<std::shared_ptr<const void>> owners_;  // destroyed at the end of a turn
  int64_t stop_ns_ = 0;                              // 0: not stopping
};

}  // namespace tensord::server
