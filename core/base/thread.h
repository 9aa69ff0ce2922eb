#pragma once

#include <exception>
#include <functional>
#include <thread>

namespace tensord {

// Wraps std::thread, which nothing else in core/ and server/ creates (tests/layering.py). Two events that would end the
// process do not: an exception that leaves `fn` is logged and ends only the thread, and a failure to start the thread
// throws. Join it before its destruction. The thread starts with a default ExecutionContext; code that starts it for
// the calling thread's work passes the context on.
class Thread {
 public:
  Thread() = default;
  // The system displays `name`, up to 15 characters. Throws Error{kResourceExhausted}.
  Thread(const char* name, std::function<void()> fn);

  bool joinable() const { return thread_.joinable(); }
  void join() { thread_.join(); }
  auto native_handle() { return thread_.native_handle(); }

 private:
  std::thread thread_;
};

// Runs `fn` on a new thread with the calling thread's ExecutionContext, and returns or throws as `fn` does. Also throws
// Error{kResourceExhausted}.
void run_on_thread(const char* name, const std::function<void()>& fn);

// Logs an exception of a thread that has no caller to report it to.
void log_thread_failure(const char* name, const char* reason) noexcept;

// Runs `fn` and logs its exception instead of passing it on. For one piece of work of a thread that continues with the
// next one. Returns whether `fn` threw nothing.
template <class Fn>
bool run_logged(const char* name, Fn&& fn) noexcept {
  try {
    fn();
    return true;
  } catch (const std::exception& error) {
    log_thread_failure(name, error.what());
  } catch (...) {
    log_thread_failure(name, "not an exception of ours");
  }
  return false;
}

}  // namespace tensord
