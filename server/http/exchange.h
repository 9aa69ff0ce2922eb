#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "core/base/mutex.h"

#include "server/http/body.h"
#include "server/http/message.h"

namespace tensord::server {

class EventLoop;

// A request, and the way back to its client. The handler that got it answers it once, at once or later: with answer(),
// or with start(), any number of send(), and finish(). Thread-safe but for request and body, which do not change.
class HttpExchange : public std::enable_shared_from_this<HttpExchange> {
 public:
  HttpExchange(std::shared_ptr<EventLoop> loop, uint64_t connection, HttpHead head, HttpBody body,
               HttpMemoryQuota quota, int64_t began_ns);

  const HttpHead& head() const { return head_; }
  const HttpBody& body() const { return body_; }
  // When its head was there, and when all of it was, on Clock::system().
  int64_t began_ns() const { return began_ns_; }
  int64_t arrived_ns() const { return arrived_ns_; }

  void answer(HttpAnswer answer);

  // An answer without an end: its head, then what is sent as it comes, no empty text. False: the client has gone, does
  // not read, or there is no memory for more; the connection is cut then.
  void start(HttpAnswer head);
  bool send(HttpPiece text);
  bool send(std::string text) { return send(HttpPiece{std::move(text)}); }
  void finish();

  // The client has gone or does not want the answer any more. May turn true at any time.
  bool is_gone() const { return is_gone_.load(std::memory_order_relaxed); }
  // Called once, on the loop's thread, or here, when it is gone.
  void when_gone(std::function<void()> callback);

  // Called on the loop's thread when the whole answer is sent; set before that is given, by who gives it.
  void when_sent(std::function<void()> callback) { on_sent_ = std::move(callback); }

  // Lets go of it on the loop's thread, when nothing else is under way there.
  void release_later(std::shared_ptr<const void> owner);

  // Of the connection.
  void record_gone();
  void record_answered() {
    if (on_sent_) on_sent_();
  }
  void record_sent(size_t bytes) { unsent_bytes_.fetch_sub(bytes, std::memory_order_relaxed); }

 private:
  bool charge(HttpPiece& text) const;

  const std::shared_ptr<EventLoop> loop_;
  const uint64_t connection_;
  const HttpHead head_;
  const HttpBody body_;
  const HttpMemoryQuota quota_;
  const int64_t began_ns_, arrived_ns_;
  std::atomic<bool> is_gone_{false};
  std::atomic<size_t> unsent_bytes_{0};
  std::function<void()> on_sent_;
  Mutex mutex_;
  std::function<void()> on_gone_ TENSORD_GUARDED_BY(mutex_);
};

}  // namespace tensord::server
