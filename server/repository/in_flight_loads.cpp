#include "server/repository/in_flight_loads.h"

#include "core/base/clock.h"
#include "core/base/mutex.h"

namespace tensord::server {

namespace {

// A load that ends within this time finishes normally before the unload runs: clients may send both at once.
constexpr int64_t kGraceNs = 2'000'000'000;

}  // namespace

InFlightLoads::Load::Load(InFlightLoads& in_flight_loads, const std::string& name)
    : in_flight_loads_(in_flight_loads),
      name_(name),
      began_ns_(Clock::system().now_ns()),
      scope_([this] { return is_cancelled(); },
             in_flight_loads.timeout_ns_ > 0 ? began_ns_ + in_flight_loads.timeout_ns_ : INT64_MAX) {
  const MutexLock lock(in_flight_loads_.mutex_);
  place_ = in_flight_loads_.in_flight_loads_.insert(in_flight_loads_.in_flight_loads_.end(), this);
}

bool InFlightLoads::Load::is_cancelled() const {
  if (in_flight_loads_.is_closed_.load(std::memory_order_relaxed)) return true;
  return is_cancelled_.load(std::memory_order_relaxed) && Clock::system().now_ns() >= began_ns_ + kGraceNs;
}

InFlightLoads::Load::~Load() {
  const MutexLock lock(in_flight_loads_.mutex_);
  in_flight_loads_.in_flight_loads_.erase(place_);
}

void InFlightLoads::cancel(const std::string& name) {
  const MutexLock lock(mutex_);
  for (Load* load : in_flight_loads_) {
    if (load->name_ == name) load->is_cancelled_ = true;
  }
}

void InFlightLoads::cancel_all() { is_closed_ = true; }

}  // namespace tensord::server
