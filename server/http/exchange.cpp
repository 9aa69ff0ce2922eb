#include "server/http/exchange.h"

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/mutex.h"
#include "server/http/connection.h"
#include "server/http/event_loop.h"

namespace tensord::server {
namespace {

// A client with this much unsent data of a stream does not read it.
constexpr size_t kMaxUnsentBytes = size_t{64} << 20;
// Overhead of one queued piece of a stream.
constexpr size_t kSendBytes = 512;

}  // namespace

HttpExchange::HttpExchange(std::shared_ptr<EventLoop> loop, uint64_t connection, HttpHead head, HttpBody body,
                           HttpMemoryQuota quota, int64_t began_ns)
    : loop_(std::move(loop)),
      connection_(connection),
      head_(std::move(head)),
      body_(std::move(body)),
      quota_(std::move(quota)),
      began_ns_(began_ns),
      arrived_ns_(Clock::system().now_ns()) {}

void HttpExchange::answer(HttpAnswer answer) {
  std::shared_ptr<const void> hold;
  try {
    const uint64_t bytes = answer.uncharged_bytes();
    if (quota_ && bytes > kUncountedBytes) hold = quota_(bytes);
  } catch (const Error& error) {
    answer = HttpAnswer::no_room(error.what());
    answer.ends_connection = true;
  }
  loop_->run([id = connection_, answer = std::move(answer), hold = std::move(hold)](EventLoop& loop) mutable {
    if (Connection* connection = loop.find(id)) connection->answer(std::move(answer), std::move(hold));
  });
}

void HttpExchange::start(HttpAnswer head) {
  loop_->run([id = connection_, head = std::move(head)](EventLoop& loop) mutable {
    if (Connection* connection = loop.find(id)) connection->start_stream(std::move(head));
  });
}

bool HttpExchange::send(HttpPiece text) {
  if (is_gone()) return false;
  const size_t bytes = text.size_bytes();
  const size_t unsent = unsent_bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  if (unsent > kMaxUnsentBytes || !charge(text)) {
    log(LogLevel::kWarning, "a stream is closed: its client does not read, or the memory quota is used up",
        {{"unsent_bytes", unsent}});
    loop_->run([id = connection_](EventLoop& loop) { loop.cut(id); });
    return false;
  }
  loop_->run([id = connection_, text = std::move(text)](EventLoop& loop) mutable {
    if (Connection* connection = loop.find(id)) connection->send_chunk(std::move(text));
  });
  return true;
}

bool HttpExchange::charge(HttpPiece& text) const {
  if (!quota_ || text.is_charged) return true;
  try {
    text.owner = quota_(text.text.size() + kSendBytes);
    return text.is_charged = true;
  } catch (const Error&) {
    return false;
  }
}

void HttpExchange::finish() {
  loop_->run([id = connection_](EventLoop& loop) {
    if (Connection* connection = loop.find(id)) connection->finish_stream();
  });
}

void HttpExchange::release_later(std::shared_ptr<const void> owner) {
  loop_->run([owner = std::move(owner)](EventLoop& loop) mutable { loop.release_later(std::move(owner)); });
}

void HttpExchange::when_gone(std::function<void()> callback) {
  {
    const MutexLock lock(mutex_);
    if (!is_gone()) {
      on_gone_ = std::move(callback);
      return;
    }
  }
  callback();
}

void HttpExchange::record_gone() {
  std::function<void()> callback;
  {
    const MutexLock lock(mutex_);
    is_gone_.store(true, std::memory_order_relaxed);
    callback.swap(on_gone_);
  }
  if (callback) callback();
}

}  // namespace tensord::server
