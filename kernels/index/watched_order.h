#pragma once

#include <cstdint>
#include <utility>

#include "core/base/cancellation.h"

namespace tensord::kernels {

// The order `less`, which looks now and then whether the work is given up: a sort of many elements takes long. Its
// calls are counted in `calls`, which outlives it; sorts copy their order.
template <class Less>
class WatchedOrder {
 public:
  WatchedOrder(Less less, int64_t& calls) : less_(std::move(less)), calls_(&calls) {}
  bool operator()(int64_t a, int64_t b) const {
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
