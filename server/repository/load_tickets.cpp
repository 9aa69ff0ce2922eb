#include "server/repository/load_tickets.h"

#include "core/base/clock.h"
#include "core/base/mutex.h"

namespace tensord::server {

namespace {

// A load that takes no longer ends as it would without the unload, which then has its turn: clients may send both at
// once.
constexpr int64_t kGraceNs = 2'000'000'000;

}  // namespace

LoadTickets::Ticket::Ticket(LoadTickets& tickets, const std::string& name)
    : tickets_(tickets),
      name_(name),
      began_ns_(Clock::system().now_ns()),
      scope_([this] { return is_given_up(); }, tickets.timeout_ns_ > 0 ? began_ns_ + tickets.timeout_ns_ : INT64_MAX) {
  const MutexLock lock(tickets_.mutex_);
  place_ = tickets_.tickets_.insert(tickets_.tickets_.end(), this);
}

bool LoadTickets::Ticket::is_given_up() const {
  if (tickets_.is_closed_.load(std::memory_order_relaxed)) return true;
  return is_cancelled_.load(std::memory_order_relaxed) && Clock::system().now_ns() >= began_ns_ + kGraceNs;
}

LoadTickets::Ticket::~Ticket() {
  const MutexLock lock(tickets_.mutex_);
  tickets_.tickets_.erase(place_);
}

void LoadTickets::cancel(const std::string& name) {
  const MutexLock lock(mutex_);
  for (Ticket* ticket : tickets_) {
    if (ticket->name_ == name) ticket->is_cancelled_ = true;
  }
}

void LoadTickets::cancel_all() { is_closed_ = true; }

}  // namespace tensord::server
