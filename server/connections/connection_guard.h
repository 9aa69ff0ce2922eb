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

// The connections of a gRPC server, from accept to close. Their frames are counted where gRPC reads and writes
// (interposed_calls.cpp), and a client that floods the server is disconnected. Other descriptors of the process are not
// affected. Thread-safe; destroyed when its last connection has ended.
class ConnectionGuard : public std::enable_shared_from_this<ConnectionGuard> {
 public:
  struct Options {
    FloodLimits floods = {};
    int max_connections = 0;      // 0: no limit
    int max_per_address = 0;      // of one address; 0: no limit
    int64_t longest_wait_ns = 0;  // the longest wait of an address that was cut; 0: it may reconnect at once
    const Clock* clock = &Clock::system();
  };
  static std::shared_ptr<ConnectionGuard> make(const Options& options);
  ~ConnectionGuard();

  // Registers an accepted connection, before gRPC has it. False: close it. At the limit, the connection that has been
  // idle longest is closed instead.
  bool add(int file, const PeerAddress& address);

  // While this lives, TLS sessions that this thread creates belong to this connection.
  class HandOver {
   public:
    explicit HandOver(int file);
    ~HandOver();
    HandOver(const HandOver&) = delete;
    HandOver& operator=(const HandOver&) = delete;
  };

  int connections() const;
  int64_t open_streams() const { return open_streams_.load(std::memory_order_relaxed); }
  // Number of connections cut, by reason.
  std::array<uint64_t, kCutReasons> cuts() const;
  // Number of new connections that were refused, because of the limit or an address that must wait.
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
  std::atomic<int64_t> open_streams_{0};  // of all connections that are not cut
  std::atomic<uint64_t> accepted_{0};     // clock that idle connections are compared by
  std::atomic<uint64_t> refused_{0};
  std::array<std::atomic<uint64_t>, kCutReasons> cuts_{};

  mutable Mutex mutex_;  // also guards the connections' descriptors: none is closed while it is held
  std::unordered_set<GuardedConnection*> all_ TENSORD_GUARDED_BY(mutex_);
  std::map<PeerAddress, int> by_address_ TENSORD_GUARDED_BY(mutex_);  // of connections that are not cut
  int cut_ TENSORD_GUARDED_BY(mutex_) = 0;                            // of all_
  AddressWaits waits_ TENSORD_GUARDED_BY(mutex_);
};

}  // namespace tensord::server
