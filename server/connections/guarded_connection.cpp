#include "server/connections/guarded_connection.h"

#include <algorithm>
#include <array>

#include "core/base/mutex.h"

namespace tensord::server {
namespace {

std::array<std::atomic<GuardedConnection*>, kMaxFiles> connections;
thread_local GuardedConnection* handed_over = nullptr;

// Calls visit(data, size) for the parts of `pieces` that hold the first `size` bytes.
template <class Visit>
void each_piece(const iovec* pieces, size_t size, Visit visit) {
  for (; size > 0; ++pieces) {
    const size_t here = std::min(size, pieces->iov_len);
    visit(static_cast<const uint8_t*>(pieces->iov_base), here);
    size -= here;
  }
}

}  // namespace

GuardedConnection* guarded_connection(int file) {
  return static_cast<unsigned>(file) < static_cast<unsigned>(kMaxFiles)
             ? connections[static_cast<size_t>(file)].load(std::memory_order_acquire)
             : nullptr;
}

void set_guarded_connection(int file, GuardedConnection* connection) {
  connections[static_cast<size_t>(file)].store(connection, std::memory_order_release);
}

GuardedConnection*& connection_handed_over() { return handed_over; }

GuardedConnection::~GuardedConnection() { record_streams(0); }

bool GuardedConnection::read_file(const iovec* pieces, size_t size) {
  if (is_cut()) return false;
  // Orders connections by activity: this one is newer than the last accepted one.
  last_active_.store(2 * guard_->accepted_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  return has_session_.load(std::memory_order_relaxed) || look_at_received(pieces, size);
}

void GuardedConnection::wrote_file(const iovec* pieces, size_t size) {
  if (!has_session_.load(std::memory_order_relaxed)) look_at_sent(pieces, size);
}

bool GuardedConnection::read_session(const void* data, size_t size) {
  const iovec piece{const_cast<void*>(data), size};
  return !is_cut() && look_at_received(&piece, size);
}

void GuardedConnection::wrote_session(const void* data, size_t size) {
  const iovec piece{const_cast<void*>(data), size};
  look_at_sent(&piece, size);
}

bool GuardedConnection::look_at_received(const iovec* pieces, size_t size) {
  CutReason reason = CutReason::kNone;
  bool has_more_streams = false;
  {
    const MutexLock lock(mutex_);
    each_piece(pieces, size, [&](const uint8_t* data, size_t bytes) {
      received_.read(data, bytes, [&](const FrameHead& frame) {
        if (reason == CutReason::kNone) reason = policy_.received(frame);
      });
    });
    has_more_streams = record_streams(static_cast<int64_t>(policy_.open_streams()));
  }
  if (reason != CutReason::kNone) guard_->cut(*this, reason);
  if (has_more_streams && guard_->has_too_many_streams()) guard_->cut_busiest();
  return !is_cut();
}

void GuardedConnection::look_at_sent(const iovec* pieces, size_t size) {
  CutReason reason = CutReason::kNone;
  {
    const MutexLock lock(mutex_);
    each_piece(pieces, size, [&](const uint8_t* data, size_t bytes) {
      sent_.read(data, bytes, [&](const FrameHead& frame) {
        if (reason == CutReason::kNone) reason = policy_.sent(frame);
      });
    });
    record_streams(static_cast<int64_t>(policy_.open_streams()));
  }
  if (reason != CutReason::kNone) guard_->cut(*this, reason);
}

bool GuardedConnection::record_streams(int64_t open_streams) {
  if (is_cut()) open_streams = 0;  // gRPC ends its calls when it sees the closed connection
  if (open_streams == open_streams_.load(std::memory_order_relaxed)) return false;
  const int64_t change = open_streams - open_streams_.exchange(open_streams, std::memory_order_relaxed);
  guard_->open_streams_.fetch_add(change, std::memory_order_relaxed);
  return change > 0;
}

void GuardedConnection::file_closes() {
  guard_->remove(*this);
  let_go();
}

}  // namespace tensord::server
