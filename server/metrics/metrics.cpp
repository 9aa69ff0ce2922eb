#include "server/metrics/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <atomic>
#include <chrono>
#include <map>

#include "core/base/error.h"
#include "core/base/mutex.h"
#include "server/metrics/allocator_collector.h"
#include "server/metrics/connection_collector.h"
#include "server/metrics/gpu_collector.h"
#include "server/metrics/model_collector.h"
#include "server/metrics/openmetrics_format.h"
#include "server/metrics/plan_collector.h"
#include "server/metrics/process_collector.h"
#include "server/metrics/training_collector.h"

namespace tensord::server {
struct Metrics::State {
  std::shared_ptr<prometheus::Registry> registry = std::make_shared<prometheus::Registry>();
  std::shared_ptr<AllocatorCollector> allocators = std::make_shared<AllocatorCollector>();
  PlanCollector plans;
  TrainingCollector training;
  ConnectionCollector connections;
  std::atomic<bool> has_triton_names{false}, has_evictions{false};
  mutable MachineCollector machine;
  GpuCollector gpus;

  Mutex mutex;
  std::map<std::pair<std::string, std::string>, std::shared_ptr<ModelMetrics>> models TENSORD_GUARDED_BY(mutex);

  std::vector<prometheus::MetricFamily> collect(const std::vector<ModelCounts>& counts) const;
  prometheus::Family<prometheus::Gauge>& gauges(const char* name, const char* help) {
    return prometheus::BuildGauge().Name(name).Help(help).Register(*registry);
  }
  prometheus::Family<prometheus::Counter>& counters(const char* name, const char* help) {
    return prometheus::BuildCounter().Name(name).Help(help).Register(*registry);
  }
  prometheus::Family<prometheus::Counter>& loads = counters("tensord_model_loads_total", "Versions that were loaded");
  prometheus::Family<prometheus::Counter>& load_failures =
      counters("tensord_model_load_failures_total", "Models and versions that could not be loaded");
  prometheus::Family<prometheus::Counter>& evictions =
      counters("tensord_model_evictions_total", "Models that were unloaded to make room for others");
  prometheus::Family<prometheus::Counter>& certificates =
      counters("tensord_certificate_changes_total",
               "Certificates that changed on disk, by result: taken, or refused and not served");
};

Metrics::Metrics(const std::string& version) : state_(std::make_unique<State>()) {
  state_->gauges("tensord_build_info", "Version of the daemon; always 1")
      .Add({{"version", version}, {"compiler", concat("gcc ", __GNUC__, ".", __GNUC_MINOR__)}})
      .Set(1);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  state_->gauges("tensord_start_time_seconds", "Unix time the daemon started")
      .Add({})
      .Set(std::chrono::duration<double>(now).count());
  unknown_ = &model("", "");
}

Metrics::~Metrics() = default;

std::shared_ptr<ModelMetrics> Metrics::share(const std::string& name, const std::string& version) {
  const MutexLock lock(state_->mutex);
  auto& slot = state_->models[{name, version}];
  if (!slot) slot = std::make_shared<ModelMetrics>(name, version);
  return slot;
}

void Metrics::forget(const std::string& name, const std::string& version) {
  const MutexLock lock(state_->mutex);
  const auto found = state_->models.find({name, version});
  // A second owner is a load of the same version that called share() under this lock.
  if (found == state_->models.end() || found->second.use_count() > 1) return;
  state_->models.erase(found);
  state_->plans.forget(name, version);
}

// All of them begin with the first: Prometheus sees no rise of a series that was not there before.
void Metrics::count_load(const std::string& name, bool is_success) {
  const prometheus::Labels labels{{"model", name}};
  state_->loads.Add(labels).Increment(is_success ? 1 : 0);
  state_->load_failures.Add(labels).Increment(is_success ? 0 : 1);
  if (state_->has_evictions) state_->evictions.Add(labels);
}

void Metrics::add_evictions() { state_->has_evictions = true; }

void Metrics::count_eviction(const std::string& name) { state_->evictions.Add({{"model", name}}).Increment(); }

void Metrics::count_certificates(bool is_taken) {
  state_->certificates.Add({{"result", "taken"}}).Increment(is_taken ? 1 : 0);
  state_->certificates.Add({{"result", "refused"}}).Increment(is_taken ? 0 : 1);
}

std::vector<ModelCounts> Metrics::model_counts() const {
  const MutexLock lock(state_->mutex);
  std::vector<ModelCounts> out;
  out.reserve(state_->models.size());
  for (const auto& [key, model] : state_->models) out.push_back(model->counts());
  return out;
}

void Metrics::add_triton_names() { state_->has_triton_names = true; }

void Metrics::watch_plans(const std::string& name, const std::string& version, std::function<PlanCounts()> counts) {
  state_->plans.watch(name, version, std::move(counts));
}

void Metrics::watch_training(std::function<std::vector<TrainingSample>()> samples) {
  state_->training.watch(std::move(samples));
}

void Metrics::watch_connections(std::function<ConnectionCounts()> counts) {
  state_->connections.watch(std::move(counts));
}

std::vector<prometheus::MetricFamily> Metrics::State::collect(const std::vector<ModelCounts>& counts) const {
  auto families = registry->Collect();
  const auto add = [&families](std::vector<prometheus::MetricFamily> more) {
    for (auto& family : more) families.push_back(std::move(family));
  };
  add(model_families(counts));
  if (has_triton_names) {
    add(triton_families(counts));
    add(machine.families());
    add(gpus.families(GpuCollector::Names::kTriton));
  }
  add(process_families());
  add(gpus.families(GpuCollector::Names::kOwn));
  add(allocators->Collect());
  add(plans.Collect());
  add(training.Collect());
  add(connections.Collect());
  return families;
}

std::string Metrics::text() const { return prometheus::TextSerializer().Serialize(state_->collect(model_counts())); }

Metrics::Exposition Metrics::exposition(const std::string& accept) const {
  if (!accepts_protobuf(accept) && prefers_openmetrics(accept)) {
    return {kOpenMetricsContentType, to_openmetrics(state_->collect(model_counts()))};
  }
  if (!accepts_protobuf(accept)) return {"text/plain; version=0.0.4; charset=utf-8", text()};
  const std::vector<ModelCounts> counts = model_counts();
  return {kProtobufContentType, to_protobuf(state_->collect(counts), model_native_histograms(counts))};
}

}  // namespace tensord::server
