#pragma once

#include <cmath>
#include <cstdint>

#include "core/base/error.h"
#include "server/training/value_dict.h"

namespace tensord::server {

// The factor by which a job multiplies its loss, so that small gradients do not vanish in float16, by the rules of
// PyTorch's GradScaler: a step whose gradients (here: or loss) are not finite is skipped and halves it, 2000 other
// steps in a row double it. Part of checkpoints. Not thread-safe.
class LossScale {
 public:
  // REQUIRES: a positive finite number.
  explicit LossScale(double initial) : value_(initial) {}

  double value() const { return value_; }
  // Whether another step may be skipped.
  bool may_skip() const { return value_ / 2 >= kSmallest; }

  // What a step's loss and gradients, computed with value(), were. Throws Error{kFailedPrecondition} when no factor
  // helps.
  void update(bool is_finite) {
    if (is_finite) {
      if (++good_steps_ < kGrowthInterval) return;
      good_steps_ = 0;
      if (std::isfinite(value_ * 2)) value_ *= 2;
      return;
    }
    good_steps_ = 0;
    value_ /= 2;
    if (value_ < kSmallest)
      fail(ErrorCode::kFailedPrecondition, "the gradient is not finite, whatever the loss is multiplied by");
  }

  ops::Value state_dict() const {
    ValueDict dict;
    dict.set("value", value_);
    dict.set("good_steps", good_steps_);
    return dict.value();
  }
  void load_state_dict(const ops::Value& state) {
    const ValueDict dict(state);
    value_ = dict.at("value").to_float();
    good_steps_ = dict.at("good_steps").to_int();
  }

 private:
  static constexpr int64_t kGrowthInterval = 2000;
  static constexpr double kSmallest = 0x1p-24;

  double value_;
  int64_t good_steps_ = 0;
};

}  // namespace tensord::server
