#include "server/connections/connection_guard.h"

#include <sys/socket.h>

#include <algorithm>

#include "core/base/log.h"
#include "core/base/mutex.h"
#include "server/connections/guarded_connection.h"

namespace tensord::server {
namespace {

// Closed connections count until gRPC has closed them, except for this many, which may be replaced at once.
constexpr int kMaxEnding = 128;

}  // namespace

std::shared_ptr<ConnectionGuard> ConnectionGuard::make(const Options& options) {
  link_interposed_calls();
  return std::shared_ptr<ConnectionGuard>(new ConnectionGuard(options));
}

ConnectionGuard::~ConnectionGuard() = default;

bool ConnectionGuard::add(int file, const PeerAddress& address) {
  const MutexLock lock(mutex_);
  bool is_taken = file < kMaxFiles && !waits_.waits(address, options_.clock->now_ns());
  if (is_taken && options_.max_per_address > 0 && address.is_known()) {
    const auto found = by_address_.find(address);
    is_taken = found == by_address_.end() || found->second < options_.max_per_address || make_room(&address);
  }
  if (is_taken && options_.max_connections > 0) {
    const bool has_room = usable() < options_.max_connections || make_room(nullptr);
    is_taken = has_room && static_cast<int>(all_.size()) < options_.max_connections + kMaxEnding;
  }
  if (!is_taken) {
    refused_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  auto* connection = new GuardedConnection(shared_from_this(), file, address);
  connection->last_active_ = 2 * (accepted_.fetch_add(1, std::memory_order_relaxed) + 1);
  all_.insert(connection);
  if (address.is_known()) ++by_address_[address];
  set_guarded_connection(file, connection);
  return true;
}

int ConnectionGuard::usable() const { return static_cast<int>(all_.size()) - cut_; }

int ConnectionGuard::connections() const {
  const MutexLock lock(mutex_);
  return usable();
}

// Closes the connection without open calls that has been idle longest: of this address, or of the address with the most
// connections. Returns false if none is idle.
bool ConnectionGuard::make_room(const PeerAddress* of) {
  GuardedConnection* chosen = nullptr;
  int max = 0;
  for (GuardedConnection* connection : all_) {
    if (connection->is_cut() || connection->open_streams_.load(std::memory_order_relaxed) > 0) continue;
    if (of && connection->address_ != *of) continue;
    const auto found = by_address_.find(connection->address_);
    const int here = found == by_address_.end() ? 0 : found->second;
    const bool is_older = chosen && connection->last_active_ < chosen->last_active_;
    if (!chosen || here > max || (here == max && is_older)) {
      chosen = connection;
      max = here;
    }
  }
  if (chosen) cut_locked(*chosen, CutReason::kIdle);
  return chosen != nullptr;
}

// The server-wide limit on open calls is exceeded, so the connection with the most calls is closed.
void ConnectionGuard::cut_busiest() {
  const MutexLock lock(mutex_);
  if (!has_too_many_streams()) return;
  GuardedConnection* chosen = nullptr;
  int64_t max = 0;
  for (GuardedConnection* connection : all_) {
    const int64_t streams = connection->open_streams_.load(std::memory_order_relaxed);
    if (connection->is_cut() || streams <= max) continue;
    chosen = connection;
    max = streams;
  }
  if (chosen) cut_locked(*chosen, CutReason::kAllOpenStreams);
}

void ConnectionGuard::cut(GuardedConnection& connection, CutReason reason) {
  const MutexLock lock(mutex_);
  cut_locked(connection, reason);
}

void ConnectionGuard::cut_locked(GuardedConnection& connection, CutReason reason) {
  if (connection.is_cut_.exchange(true)) return;
  connection.record_streams(0);
  cuts_[static_cast<size_t>(reason)].fetch_add(1, std::memory_order_relaxed);
  if (connection.file_ < 0) return;
  ++cut_;
  const auto found = by_address_.find(connection.address_);
  if (found != by_address_.end() && --found->second == 0) by_address_.erase(found);
  shutdown(connection.file_, SHUT_RDWR);
  if (reason == CutReason::kIdle) return;
  waits_.record_cut(connection.address_, options_.clock->now_ns());
  log(LogLevel::kWarning, "a connection was cut: its client floods the server",
      {{"peer", connection.address_.text()}, {"reason", to_string(reason)}});
}

void ConnectionGuard::remove(GuardedConnection& connection) {
  const MutexLock lock(mutex_);
  connection.file_ = -1;
  all_.erase(&connection);
  if (connection.is_cut()) {
    --cut_;
  } else if (const auto found = by_address_.find(connection.address_); found != by_address_.end()) {
    if (--found->second == 0) by_address_.erase(found);
  }
  connection.record_streams(0);
}

std::array<uint64_t, kCutReasons> ConnectionGuard::cuts() const {
  std::array<uint64_t, kCutReasons> out{};
  for (size_t i = 0; i < kCutReasons; ++i) out[i] = cuts_[i].load(std::memory_order_relaxed);
  return out;
}

ConnectionGuard::HandOver::HandOver(int file) { connection_handed_over() = guarded_connection(file); }

ConnectionGuard::HandOver::~HandOver() { connection_handed_over() = nullptr; }

}  // namespace tensord::server
