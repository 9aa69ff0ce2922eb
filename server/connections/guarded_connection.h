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

// A connection of a ConnectionGuard, as the interposed calls see it. Held by the table of files until gRPC closes the
// file, and by its session of TLS.
class GuardedConnection {
 public:
  GuardedConnection(std::shared_ptr<ConnectionGuard> guard, int file, const PeerAddress& address)
      : guard_(std::move(guard)), address_(address), file_(file) {}
  ~GuardedConnection();

  // What was read from the file, or written to it. False: the connection is cut; gRPC is to see none of it.
  bool read_file(const iovec* pieces, size_t size);
  void wrote_file(const iovec* pieces, size_t size);
  // What came out of, or went into, the session of TLS.
  bool read_session(const void* data, size_t size);
  void wrote_session(const void* data, size_t size);

  bool is_cut() const { return is_cut_.load(std::memory_order_relaxed); }
  // Its file has frames of TLS from now on.
  void set_session() { has_session_.store(true, std::memory_order_relaxed); }
  // gRPC closes the file.
  void file_closes();

  void hold() { holders_.fetch_add(1, std::memory_order_relaxed); }
  void let_go() {
    if (holders_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

 private:
  friend ConnectionGuard;
  bool look_at_received(const iovec* pieces, size_t size);
  void look_at_sent(const iovec* pieces, size_t size);
  // What the guard has in its sum follows; true: it has become more.
  bool record_streams(int64_t open_streams);

  const std::shared_ptr<ConnectionGuard> guard_;
  const PeerAddress address_;
  std::atomic<int> holders_{1};
  std::atomic<bool> is_cut_{false};
  std::atomic<bool> has_session_{false};
  std::atomic<uint64_t> last_active_{0};  // of the guard's accepted_, twice
  std::atomic<int64_t> open_streams_{0};  // as far as the guard has them in its sum

  int file_;  // by the guard's mutex; -1: closed

  Mutex mutex_;  // the guard's is never taken with it
  FrameReader received_{/*is_from_client=*/true}, sent_{/*is_from_client=*/false};
  FloodPolicy policy_{guard_->options_.floods, guard_->totals_, *guard_->options_.clock};
};

// The connection of this file, or null: of all files but those of gRPC servers.
GuardedConnection* guarded_connection(int file);
void set_guarded_connection(int file, GuardedConnection* connection);
// Of the thread, while it hands one over; else null.
GuardedConnection*& connection_handed_over();
// Files from here on cannot be guarded.
inline constexpr int kMaxFiles = 1 << 20;

// Makes sure that the interposed calls are linked.
void link_interposed_calls();

}  // namespace tensord::server
