#include "server/web/health_client.h"

#include <httplib.h>

#include <atomic>
#include <chrono>

#include "core/base/error.h"
#include "core/base/mutex.h"
#include "core/base/thread.h"

namespace tensord::server {
namespace {

// Stops the client when the total time limit is over. httplib's own timeouts apply to single reads only, so a slow
// trickle of bytes would never end.
class HealthTimeLimit {
 public:
  HealthTimeLimit(httplib::Client& client, std::chrono::seconds limit)
      : client_(client), end_(std::chrono::steady_clock::now() + limit), thread_("limit", [this] { run(); }) {}
  ~HealthTimeLimit() {
    {
      const MutexLock lock(mutex_);
      is_answered_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  HealthTimeLimit(const HealthTimeLimit&) = delete;
  HealthTimeLimit& operator=(const HealthTimeLimit&) = delete;
  bool is_over() const { return is_over_; }

 private:
  void run() {
    MutexLock lock(mutex_);
    while (!is_answered_) {
      const auto left = end_ - std::chrono::steady_clock::now();
      if (left > left.zero() && changed_.wait_for(lock, left)) continue;
      is_over_ = true;
      client_.stop();
      // A client that was still connecting tries the next address, so stop it again.
      end_ = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
    }
  }

  httplib::Client& client_;
  Mutex mutex_;
  CondVar changed_;
  bool is_answered_ TENSORD_GUARDED_BY(mutex_) = false;
  std::chrono::steady_clock::time_point end_ TENSORD_GUARDED_BY(mutex_);
  std::atomic<bool> is_over_{false};
  Thread thread_;  // declared last: it uses the other members
};

}  // namespace

int ask_health(const std::string& address, const std::string& path, int timeout_secs) {
  httplib::Client client("http://" + address);
  client.set_connection_timeout(timeout_secs);
  client.set_read_timeout(timeout_secs);
  const HealthTimeLimit limit(client, std::chrono::seconds(timeout_secs));
  // Discards the body: the status code says everything.
  const httplib::Result answer = client.Get(path, [](const char*, size_t) { return true; });
  if (answer) return answer->status;
  fail(ErrorCode::kUnavailable, address, ": no answer ",
       limit.is_over() ? concat("within ", timeout_secs, " s") : concat("(", httplib::to_string(answer.error()), ")"));
}

}  // namespace tensord::server
