#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/ops/value.h"
#include "core/tensor/tensor.h"

namespace tensord::server {

// An exponential moving average of the parameters that a job trains, as PyTorch's get_ema_multi_avg_fn: the first
// update takes them over. 16-bit parameters have an average in float32. Not thread-safe.
class WeightAverage {
 public:
  WeightAverage(std::vector<std::pair<std::string, Tensor>> parameters, double decay);

  // After each step: average = decay · average + (1 - decay) · parameter.
  void update();

  // While it lives the parameters have the averages as values. Without an average, or before its first update, it does
  // nothing.
  class Scope {
   public:
    explicit Scope(const WeightAverage* average);
    ~Scope();
    Scope(const Scope&) = delete;

   private:
    const WeightAverage* average_;
    std::vector<Tensor> trained_;
  };

  // By parameter; None before the first update.
  ops::Value state_dict() const;
  // Throws Error if it is of other parameters.
  void load_state_dict(const ops::Value& state);

 private:
  const std::vector<std::pair<std::string, Tensor>> parameters_;
  const double decay_;
  std::vector<Tensor> averages_;  // empty before the first update
};

}  // namespace tensord::server
