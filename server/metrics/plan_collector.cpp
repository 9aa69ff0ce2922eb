#include "server/metrics/plan_collector.h"

#include "core/base/mutex.h"

namespace tensord::server {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

struct PlanSeries {
  const char* name;
  const char* help;
  MetricType type;
  double (*value)(const PlanCounts&);
};

constexpr PlanSeries kPlanSeries[] = {
    {"tensord_plan_cache_hits_total", "Runs that found a plan for their input shapes", MetricType::Counter,
     [](const PlanCounts& counts) { return static_cast<double>(counts.hits); }},
    {"tensord_plan_cache_misses_total", "Runs that made a plan", MetricType::Counter,
     [](const PlanCounts& counts) { return static_cast<double>(counts.misses); }},
    {"tensord_plan_cache_evictions_total", "Plans that went to make room", MetricType::Counter,
     [](const PlanCounts& counts) { return static_cast<double>(counts.evictions); }},
    {"tensord_plan_failures_total", "Input shapes that are interpreted because no plan could be made",
     MetricType::Counter, [](const PlanCounts& counts) { return static_cast<double>(counts.failures); }},
    {"tensord_plan_refused_total", "Of these, plans that were made but not proven; a bug in tensord",
     MetricType::Counter, [](const PlanCounts& counts) { return static_cast<double>(counts.refused); }},
    {"tensord_plan_build_seconds_total", "Time spent making plans", MetricType::Counter,
     [](const PlanCounts& counts) { return counts.build_seconds; }},
    {"tensord_plans", "Plans kept", MetricType::Gauge,
     [](const PlanCounts& counts) { return static_cast<double>(counts.plans); }},
    {"tensord_plan_arena_bytes", "Memory that a worker runs the largest plan in", MetricType::Gauge,
     [](const PlanCounts& counts) { return static_cast<double>(counts.arena_bytes); }},
};

}  // namespace

void PlanCollector::watch(const std::string& model, const std::string& version, std::function<PlanCounts()> counts) {
  const MutexLock lock(mutex_);
  models_[{model, version}] = std::move(counts);
}

void PlanCollector::forget(const std::string& model, const std::string& version) {
  const MutexLock lock(mutex_);
  models_.erase({model, version});
}

std::vector<MetricFamily> PlanCollector::Collect() const {
  std::vector<MetricFamily> families;
  for (const PlanSeries& series : kPlanSeries) {
    MetricFamily& family = families.emplace_back();
    family.name = series.name;
    family.help = series.help;
    family.type = series.type;
  }
  MetricFamily failed;
  failed.name = "tensord_pass_failed_total";
  failed.help = "Passes that failed and were left out, at load or for a plan; a bug in tensord";
  failed.type = MetricType::Counter;
  const MutexLock lock(mutex_);
  for (const auto& [model, read] : models_) {
    const PlanCounts counts = read();
    for (const auto& [pass, count] : counts.failed_passes) {
      ClientMetric& metric = failed.metric.emplace_back();
      metric.label = {{"model", model.first}, {"version", model.second}, {"pass", pass}};
      metric.counter.value = static_cast<double>(count);
    }
    if (!counts.are_made) continue;
    for (size_t i = 0; i < families.size(); ++i) {
      ClientMetric& metric = families[i].metric.emplace_back();
      metric.label = {{"model", model.first}, {"version", model.second}};
      const double value = kPlanSeries[i].value(counts);
      (families[i].type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
    }
  }
  families.push_back(std::move(failed));
  std::erase_if(families, [](const MetricFamily& family) { return family.metric.empty(); });
  return families;
}

}  // namespace tensord::server
