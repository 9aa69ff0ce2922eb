#include "server/web/status_json.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/tensor/memory/accounts.h"
#include "server/training/training_service.h"

namespace tensord::server {
namespace {

using nlohmann::json;

constexpr size_t kMaxCurvePoints = 240;
constexpr size_t kMaxJobs = 50;

// JSON has no infinity and no NaN.
json number(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }

json histogram_json(const DurationHistogram& histogram) {
  return {{"count", histogram.count()},
          {"sum_seconds", static_cast<double>(histogram.sum_ns) * 1e-9},
          {"buckets", to_classic(histogram.intervals).buckets}};
}

json counts_json(const ModelCounts& counts) {
  uint64_t requests = 0;
  for (const uint64_t count : counts.requests) requests += count;
  return {{"requests", requests},
          {"failed", requests - counts.requests[0]},
          {"inferences", counts.inference_count},
          {"executions", counts.execution_count},
          {"in_flight", counts.in_flight},
          {"pending", counts.pending},
          {"received_bytes", counts.received_bytes},
          {"sent_bytes", counts.sent_bytes},
          {"load_seconds", counts.load_seconds},
          {"request", histogram_json(counts[Phase::kRequest])},
          {"queue", histogram_json(counts[Phase::kQueue])},
          {"compute", histogram_json(counts[Phase::kCompute])}};
}

json models_json(const WebSources& sources) {
  std::map<std::pair<std::string, std::string>, ModelCounts> counts;
  for (ModelCounts& of_model : sources.metrics.model_counts()) {
    auto key = std::pair(of_model.name, of_model.version);
    counts.emplace(std::move(key), std::move(of_model));
  }
  json models = json::array();
  for (const Repository::IndexEntry& entry : sources.repository.index()) {
    const char* state = entry.state ? to_string(*entry.state) : "";  // unset if it was never loaded
    json& model = models.emplace_back(
        json{{"name", entry.name}, {"version", entry.version}, {"state", state}, {"reason", entry.reason}});
    const auto found = counts.find({entry.name, entry.version});
    if (found != counts.end()) model["counts"] = counts_json(found->second);
  }
  return models;
}

json memory_json() {
  json owners = json::array();
  for (const OwnerBytes& owner : bytes_of_owners()) {
    if (owner.live_bytes == 0) continue;
    owners.push_back({{"owner", owner.name}, {"bytes", owner.live_bytes}, {"peak_bytes", owner.peak_bytes}});
  }
  return owners;
}

// Over all devices.
json pool_json() {
  uint64_t live = 0, cached = 0;
  for (const auto& [device, allocator] : used_allocators()) {
    const AllocatorStats stats = allocator->stats();
    live += stats.live_bytes;
    cached += stats.cached_bytes;
  }
  return {{"live_bytes", live}, {"cached_bytes", cached}};
}

json curve_json(const TrainingJob& job) {
  const std::vector<CurvePoint> points = job.points_after(-1);
  json curve{{"step", json::array()}, {"loss", json::array()}};
  json evaluations = json::array();
  const size_t stride = (points.size() + kMaxCurvePoints - 1) / kMaxCurvePoints;
  for (size_t i = 0; i < points.size(); ++i) {
    const CurvePoint& point = points[i];
    if (i % stride == 0 || i + 1 == points.size()) {
      curve["step"].push_back(point.step);
      curve["loss"].push_back(number(point.loss));
    }
    if (point.metrics.empty() || evaluations.size() >= kMaxCurvePoints) continue;
    json& evaluation = evaluations.emplace_back(json{{"step", point.step}});
    for (const auto& [name, value] : point.metrics) evaluation[name] = number(value);
  }
  curve["evaluations"] = std::move(evaluations);
  return curve;
}

json job_json(const TrainingJob& job) {
  const JobStatus status = job.status();
  const JobProgress& progress = status.progress;
  json metrics = json::object();
  for (const auto& [name, value] : progress.metrics) metrics[name] = number(value);
  return {{"id", status.id},
          {"name", status.spec.name},
          {"model", status.spec.model.name},
          {"state", to_string(status.state)},
          {"message", status.message},
          {"step", progress.step},
          {"total_steps", progress.total_steps},
          {"epoch", number(progress.epoch)},
          {"loss", number(progress.loss)},
          {"learning_rate", number(progress.learning_rate)},
          {"samples_per_second", number(progress.samples_per_second)},
          {"seconds_left", number(progress.seconds_left)},
          {"published_version", status.published_version},
          {"metrics", std::move(metrics)},
          {"curve", curve_json(job)}};
}

// Newest first.
json jobs_json(const TrainingService* training) {
  json jobs = json::array();
  if (!training) return jobs;
  auto all = training->jobs();
  std::reverse(all.begin(), all.end());
  all.resize(std::min(all.size(), kMaxJobs));
  for (const auto& job : all) jobs.push_back(job_json(*job));
  return jobs;
}

}  // namespace

std::string status_json(const WebSources& sources) {
  const int64_t now = now_ms();
  const json status{{"server",
                     {{"name", "tensord"},
                      {"version", sources.version},
                      {"ready", sources.is_ready()},
                      {"trains", sources.training != nullptr},
                      {"now_ms", now},
                      {"uptime_seconds", static_cast<double>(now - sources.started_unix_ms) * 1e-3}}},
                    {"bucket_limits", std::vector<double>(classic_limits().begin(), classic_limits().end())},
                    {"models", models_json(sources)},
                    {"memory", memory_json()},
                    {"pool", pool_json()},
                    {"jobs", jobs_json(sources.training)}};
  // Names may hold bytes that are not UTF-8.
  return status.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace tensord::server
