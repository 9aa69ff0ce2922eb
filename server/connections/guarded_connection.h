#pragma once

#include <sys/uio.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/base/mutex.h"

#include "server/connections/connection_guard.h"
#include "server/connections/flood_policy.h"
#include "server/connections/frame_reader.h"

namespace tensord::server {

// A connection of a ConnectionGuard, as the interposed calls see it. Owned by the table of descriptors until gRPC
// closes the descriptor, and by its TLS session.
class GuardedConnection {
 public:
  GuardedConnection(std::shared_ptr<ConnectionGuard> guard, int file, const PeerAddress& address)
      : guard_(std::move(guard)), address_(address), file_(file) {}
  ~GuardedConnection();

  // Bytes read from or written to the descriptor. False: the connection is cut, and gRPC must not see them.
  bool read_file(const iovec* pieces, size_t size);
  void wrote_file(const iovec* pieces, size_t size);
  // Bytes that left or entered the TLS session.
  bool read_session(const void* data, size_t size);
  void wrote_session(const void* data, size_t size);

  bool is_cut() const { return is_cut_.load(std::memory_order_relaxed); }
  // From now on the descriptor carries TLS records.
  void set_session() { has_session_.store(true, std::memory_order_relaxed); }
  // gRPC closes the descriptor.
  void file_closes();

  void hold() { holders_.fetch_add(1, std::memory_order_relaxed); }
  void let_go() {
    if (holders_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

 private:
  friend ConnectionGuard;
  bool look_at_received(const iovec* pieces, size_t size);
  void look_at_sent(const iovec* pieces, size_t size);
  // Updates the guard's total; true: it has grown.
  bool record_streams(int64_t open_streams);

  const std::shared_ptr<ConnectionGuard> guard_;
  const PeerAddress address_;
  std::atomic<int> holders_{1};
  std::atomic<bool> is_cut_{false};
  std::atomic<bool> has_session_{false};
  std::atomic<uint64_t> last_active_{0};  // twice the guard's accepted_
  std::atomic<int64_t> open_streams_{0};  // as counted in the guard's total

  int file_;  // guarded by the guard's mutex; -1: closed

  Mutex mutex_;  // never held together with the guard's mutex
  FrameReader received_{/*is_from_client=*/true}, sent_{/*is_from_client=*/false};
  FloodPolicy policy_{guard_->options_.floods, guard_->totals_, *guard_->options_.clock};
};

// The connection of a descriptor; null for descriptors that are not a gRPC server's.
GuardedConnection* guarded_connection(int file);
void set_guarded_connection(int file, GuardedConnection* connection);
// Of this thread, while it hands one over; otherwise null.
GuardedConnection*& connection_handed_over();
// Descriptors from this one on cannot be guarded.
inline constexpr int kMaxFiles = 1 << 20;

// Makes sure that the interposed calls are linked.
void link_interposed_calls();

}  // namespace tensord::server
