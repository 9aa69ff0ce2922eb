#include "server/executor/model/model_of_devices.h"

#include <algorithm>

#include "core/base/error.h"

namespace tensord::server {
namespace {

void add(const PlanCounts& one, PlanCounts& sum) {
  sum.are_made = sum.are_made || one.are_made;
  sum.hits += one.hits;
  sum.misses += one.misses;
  sum.evictions += one.evictions;
  sum.failures += one.failures;
  sum.refused += one.refused;
  sum.build_seconds += one.build_seconds;
  sum.plans += one.plans;
  sum.arena_bytes = std::max(sum.arena_bytes, one.arena_bytes);
  for (const auto& [pass, count] : one.failed_passes) sum.failed_passes[pass] += count;
}

class ModelOfDevices final : public Model {
 public:
  ModelOfDevices(std::vector<std::unique_ptr<const Model>> models, std::vector<Device> instances)
      : models_(std::move(models)), signature_(models_.front()->signature()) {
    signature_.instances = std::move(instances);
    check(models_.size() == 1 || !signature_.keeps_state, "instance_group: a model that keeps state in its attributes ",
          "cannot have instances on several devices");
  }
  const Signature& signature() const override { return signature_; }
  std::vector<std::string> warnings() const override { return models_.front()->warnings(); }
  std::unique_ptr<ModelSession> make_session() const override { return models_.front()->make_session(); }
  std::unique_ptr<ModelSession> make_session_of(size_t instance) const override {
    const Device device = signature_.instances.at(instance);
    const auto found = std::ranges::find(models_, device, [](const auto& model) { return model->signature().device; });
    return (*found)->make_session();
  }
  void release_unused_memory() const override {
    for (const auto& model : models_) model->release_unused_memory();
  }
  PlanCounts plan_counts() const override {
    PlanCounts sum = models_.front()->plan_counts();
    for (size_t i = 1; i < models_.size(); ++i) add(models_[i]->plan_counts(), sum);
    return sum;
  }

 private:
  const std::vector<std::unique_ptr<const Model>> models_;  // by device
  Signature signature_;
};

}  // namespace

std::unique_ptr<Model> make_model_of_devices(std::vector<std::unique_ptr<const Model>> models,
                                             std::vector<Device> instances) {
  return std::make_unique<ModelOfDevices>(std::move(models), std::move(instances));
}

}  // namespace tensord::server
