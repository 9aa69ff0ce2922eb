#pragma once

#include <exception>
#include <functional>
#include <thread>

namespace tensord {

// As std::thread, which nothing else in core/ and server/ makes (tests/layering.py), but for two things that would end
// the process: an exception that leaves `fn` is logged and ends the thread alone, and a thread that the system does not
// give is an error. To be joined before it goes. It starts with an ExecutionContext of its own; who starts it for work
// of the calling thread gives it that one's.
class Thread {
 public:
  Thread() = default;
  // `name`, up to 15 characters, is what the system shows. Throws Error{kResourceExhausted}.
  Thread(const char* name, std::function<void()> fn);

  bool joinable() const { return thread_.joinable(); }
  void join() { thread_.join(); }
  auto native_handle() { return thread_.native_handle(); }

 private:
  std::thread thread_;
};

// Runs `fn` on a thread of its own, with the ExecutionContext of this one, and returns or throws as it does. Throws
// Error{kResourceExhausted} as well.
void run_on_thread(const char* name, const std::function<void()>& fn);

// Logs what a thread met that has nobody to tell.
void log_thread_failure(const char* name, const char* reason) noexcept;

// Runs `fn`; what it throws is logged and goes no further. For one piece of work of a thread that goes on with the
// next. Gives back whether it threw nothing.
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
