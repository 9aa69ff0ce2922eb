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

// A request and the way to answer it. The handler answers once, now or later: with answer(), or with start(), any
// number of send(), and finish(). Thread-safe; request and body do not change.
class HttpExchange : public std::enable_shared_from_this<HttpExchange> {
 public:
  HttpExchange(std::shared_ptr<EventLoop> loop, uint64_t connection, HttpHead head, HttpBody body,
               HttpMemoryQuota quota, int64_t began_ns);

  const HttpHead& head() const { return head_; }
  const HttpBody& body() const { return body_; }
  // When the head and the whole request were received, on Clock::system().
  int64_t began_ns() const { return began_ns_; }
  int64_t arrived_ns() const { return arrived_ns_; }

  void answer(HttpAnswer answer);

  // A streamed answer: its head, then non-empty pieces. send() returns false if the client is gone, does not read, or
  // there is no memory; the connection is then closed.
  void start(HttpAnswer head);
  bool send(HttpPiece text);
  bool send(std::string text) { return send(HttpPiece{std::move(text)}); }
  void finish();

  // The client is gone or has lost interest. May become true at any time.
  bool is_gone() const { return is_gone_.load(std::memory_order_relaxed); }
  // Calls the function once when that happens, on the loop's thread, or now if it already has.
  void when_gone(std::function<void()> callback);

  // Called on the loop's thread when the whole answer was sent. Set it before the answer is passed.
  void when_sent(std::function<void()> callback) { on_sent_ = std::move(callback); }

  // Releases the object on the loop's thread, once nothing there uses it.
  void release_later(std::shared_ptr<const void> owner);

  // Called by the connection.
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
