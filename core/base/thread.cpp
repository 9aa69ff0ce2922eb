#include "core/base/thread.h"

#include <pthread.h>

#include <system_error>

#include "core/base/error.h"
#include "core/base/execution_context.h"
#include "core/base/log.h"

namespace tensord {

void log_thread_failure(const char* name, const char* reason) noexcept {
  try {
    log(LogLevel::kError, "unexpected error on a thread", {{"thread", name}, {"reason", reason}});
  } catch (...) {
    // No memory is left even for the log line.
  }
}

Thread::Thread(const char* name, std::function<void()> fn) {
  try {
    thread_ = std::thread([name, fn = std::move(fn)] {
      pthread_setname_np(pthread_self(), name);
      run_logged(name, fn);
    });
  } catch (const std::system_error& error) {
    fail(ErrorCode::kResourceExhausted, "no thread can be started (", name, "): ", error.code().message(),
         "; the limit of threads of the process, its user or its cgroup is reached");
  }
}

void run_on_thread(const char* name, const std::function<void()>& fn) {
  std::exception_ptr error;
  Thread thread(name, [&, context = ExecutionContext::captured()] {
    const ExecutionScope scope(context);
    try {
      fn();
    } catch (...) {
      error = std::current_exception();
    }
  });
  thread.join();
  if (error) std::rethrow_exception(error);
}

}  // namespace tensord
