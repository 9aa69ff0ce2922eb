#pragma once

#include <cstdint>
#include <utility>

#include "core/base/cancellation.h"

namespace tensord::kernels {

// The order `less`, which checks from time to time whether the work is cancelled: sorting many elements takes long.
// Calls are counted in `calls`, which must outlive it; sorts copy their order.
template <class Less>
class WatchedOrder {
 public:
  WatchedOrder(Less less, int64_t& calls) : less_(std::move(less)), calls_(&calls) {}
  template <class T>
  bool operator()(const T& a, const T& b) const {
    constexpr int64_t kCallsToLook = int64_t{1} << 18;
    if (++*calls_ % kCallsToLook == 0) [[unlikely]]
      check_work_cancelled();
    return less_(a, b);
  }

 private:
  Less less_;
  int64_t* calls_;
};

}  // namespace tensord::kernels
