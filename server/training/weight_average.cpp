#include "server/training/weight_average.h"

#include "core/base/error.h"
#include "core/ops/to_device.h"
#include "core/tensor/grad_mode.h"
#include "ops/optim.h"
#include "ops/view.h"
#include "server/training/value_dict.h"

namespace tensord::server {
namespace {

DType averaged_type(const Tensor& parameter) {
  return size_of(parameter.dtype()) < 4 ? DType::kFloat32 : parameter.dtype();
}

}  // namespace

WeightAverage::WeightAverage(std::vector<std::pair<std::string, Tensor>> parameters, double decay)
    : parameters_(std::move(parameters)), decay_(decay) {}

void WeightAverage::update() {
  const NoGradGuard no_grad;
  if (averages_.empty()) {
    for (const auto& [name, parameter] : parameters_)
      averages_.push_back(ops::to(parameter, averaged_type(parameter), false, /*copy=*/true));
    return;
  }
  std::vector<Tensor> parameters;
  for (const auto& [name, parameter] : parameters_) parameters.push_back(parameter);
  ops::tensord_average_step_(averages_, parameters, 1 - decay_);  // on a GPU one launch for 24 of them
}

WeightAverage::Scope::Scope(const WeightAverage* average) : average_(average) {
  if (!average_ || average_->averages_.empty()) return;
  const NoGradGuard no_grad;
  for (size_t i = 0; i < average_->parameters_.size(); ++i) {
    const Tensor& parameter = average_->parameters_[i].second;
    trained_.push_back(ops::clone(parameter));
    ops::copy_(parameter, average_->averages_[i]);
  }
}

WeightAverage::Scope::~Scope() {
  const NoGradGuard no_grad;
  for (size_t i = 0; i < trained_.size(); ++i) ops::copy_(average_->parameters_[i].second, trained_[i]);
}

ops::Value WeightAverage::state_dict() const {
  if (averages_.empty()) return {};
  ValueDict dict;
  for (size_t i = 0; i < averages_.size(); ++i) {
    dict.set(parameters_[i].first.c_str(), ops::to_device(averages_[i], Device{}));
  }
  return dict.value();
}

void WeightAverage::load_state_dict(const ops::Value& state) {
  averages_.clear();
  if (state.is_none()) return;
  const ValueDict dict(state);
  for (const auto& [name, parameter] : parameters_) {
    const Tensor average = dict.at(name.c_str()).to_tensor();
    check(average.sizes() == parameter.sizes(), "the average of '", name, "' has shape ", average.sizes(),
          ", the parameter ", parameter.sizes());
    averages_.push_back(average.to(parameter.device()));
  }
}

}  // namespace tensord::server
