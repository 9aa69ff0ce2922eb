#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_set>

#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "server/connections/address_waits.h"
#include "server/connections/flood_policy.h"
#include "server/connections/peer_address.h"

namespace tensord::server {

class GuardedConnection;

// The connections that a gRPC server has, from the moment they are accepted to the moment that gRPC closes them. While
// one is here its frames are counted where gRPC reads and writes (interposed_calls.cpp), and a client that floods
// is cut off. All other files of the process are left alone. Thread-safe; goes when its last connection has ended.
class ConnectionGuard : public std::enable_shared_from_this<ConnectionGuard> {
 public:
  struct Options {
    FloodLimits floods = {};
    int max_connections = 0;      // 0: no limit
    int max_per_address = 0;      // of one address; 0: no limit
    int64_t longest_wait_ns = 0;  // of an address that was cut for its next connection; 0: it may come at once
    const Clock* clock = &Clock::system();
  };
  static std::shared_ptr<ConnectionGuard> make(const Options& options);
  ~ConnectionGuard();

  // Takes a connection that was just accepted, before gRPC has it. False: it is to be closed. Where the limits are
  // reached the one that has been idle for longest makes room.
  bool add(int file, const PeerAddress& address);

  // While this lives, the sessions of TLS that this thread makes are those of this connection.
  class HandOver {
   public:
    explicit HandOver(int file);
    ~HandOver();
    HandOver(const HandOver&) = delete;
    HandOver& operator=(const HandOver&) = delete;
  };

  int connections() const;
  int64_t open_streams() const { return open_streams_.load(std::memory_order_relaxed); }
  // So many were cut for each reason.
  std::array<uint64_t, kCutReasons> cuts() const;
  // New ones that were closed: of all too many, or an address that waits.
  uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }

 private:
  friend GuardedConnection;
  explicit ConnectionGuard(const Options& options) : options_(options), waits_(options.longest_wait_ns) {}

  bool has_too_many_streams() const { return open_streams() > options_.floods.all_open_streams; }
  void cut_busiest();
  void cut(GuardedConnection& connection, CutReason reason);
  void cut_locked(GuardedConnection& connection, CutReason reason) TENSORD_REQUIRES(mutex_);
  bool make_room(const PeerAddress* of) TENSORD_REQUIRES(mutex_);
  int usable() const TENSORD_REQUIRES(mutex_);
  void remove(GuardedConnection& connection);

  const Options options_;
  FloodTotals totals_;
  std::atomic<int64_t> open_streams_{0};  // of all that are not cut
  std::atomic<uint64_t> accepted_{0};     // the time that idle connections are compared by
  std::atomic<uint64_t> refused_{0};
  std::array<std::atomic<uint64_t>, kCutReasons> cuts_{};

  mutable Mutex mutex_;  // also of the files of connections: none is closed while it is held
  std::unordered_set<GuardedConnection*> all_ TENSORD_GUARDED_BY(mutex_);
  std::map<PeerAddress, int> by_address_ TENSORD_GUARDED_BY(mutex_);  // of those that are not cut
  int cut_ TENSORD_GUARDED_BY(mutex_) = 0;                            // of all_
  AddressWaits waits_ TENSORD_GUARDED_BY(mutex_);
};

}  // namespace tensord::server
