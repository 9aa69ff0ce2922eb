#include "server/web/status_json.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/cpu_isa.h"
#include "core/base/error.h"
#include "core/base/memory_limit.h"
#include "core/base/parallel.h"
#include "core/tensor/memory/accounts.h"
#include "server/metrics/process_collector.h"
#include "server/training/training_service.h"

namespace tensord::server {
namespace {

using nlohmann::json;

constexpr size_t kMaxCurvePoints = 1000;  // of each curve
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
  json out{{"requests", requests},
           {"failed", requests - counts.requests[0]},
           {"cancelled", counts.failures[static_cast<size_t>(FailureReason::kCanceled)]},
           {"inferences", counts.inference_count},
           {"executions", counts.execution_count},
           {"in_flight", counts.in_flight},
           {"pending", counts.pending},
           {"received_bytes", counts.received_bytes},
           {"sent_bytes", counts.sent_bytes},
           {"load_seconds", counts.load_seconds},
           {"precision", counts.precision},
           {"last_request_ms", counts.last_request_unix_ms},
           {"last_failure", {{"error", counts.last_failure.error}, {"ms", counts.last_failure.unix_ms}}}};
  if (requests == 0) return out;  // most of a repository's models are idle: no empty histograms
  out["request"] = histogram_json(counts[Phase::kRequest]);
  out["queue"] = histogram_json(counts[Phase::kQueue]);
  out["compute"] = histogram_json(counts[Phase::kCompute]);
  return out;
}

// Host memory of tensors by owner. A version's owner is "NAME/VERSION": packed weights, constants, plans.
std::map<std::string, uint64_t> host_bytes_by_owner() {
  std::map<std::string, uint64_t> bytes;
  for (const auto& [device, allocator] : used_allocators()) {
    if (!device.is_host()) continue;
    for (const OwnerBytes& owner : allocator->owners()) bytes[owner.name] = owner.live_bytes;
  }
  return bytes;
}

json models_json(const WebSources& sources) {
  std::map<std::pair<std::string, std::string>, ModelCounts> counts;
  for (ModelCounts& of_model : sources.metrics.model_counts()) {
    auto key = std::pair(of_model.name, of_model.version);
    counts.emplace(std::move(key), std::move(of_model));
  }
  std::map<std::string, uint64_t> bytes = host_bytes_by_owner();
  json models = json::array();
  for (const Repository::IndexEntry& entry : sources.repository.index()) {
    const char* state = entry.state ? to_string(*entry.state) : "";  // unset if it was never loaded
    json& model = models.emplace_back(json{{"name", entry.name},
                                           {"version", entry.version},
                                           {"state", state},
                                           {"reason", entry.reason},
                                           {"memory_bytes", bytes[entry.name + "/" + entry.version]}});
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

// Of this process. `models`: what models_json made.
json process_json(const json& models) {
  const ProcessUsage usage = process_usage();
  uint64_t model_bytes = 0;
  for (const json& model : models) model_bytes += model["memory_bytes"].get<uint64_t>();
  return {{"cpu_seconds", usage.cpu_seconds},
          {"cores", available_cores()},
          {"resident_bytes", usage.resident_bytes},
          {"file_bytes", usage.file_bytes},
          {"model_bytes", model_bytes},
          {"limit_bytes", memory_limit()},
          {"threads", usage.threads},
          {"instruction_set", to_string(cpu_isa())}};
}

const char* control_mode_name(ControlMode mode) {
  return mode == ControlMode::kExplicit ? "explicit" : mode == ControlMode::kPoll ? "poll" : "none";
}

json server_json(const WebSources& sources) {
  const int64_t now = now_ms();
  const WebSources::Ports ports = sources.ports ? sources.ports() : WebSources::Ports();
  return {{"name", "tensord"},
          {"version", sources.version},
          {"ready", sources.is_ready()},
          {"trains", sources.training != nullptr},
          {"now_ms", now},
          {"started_ms", sources.started_unix_ms},
          {"uptime_seconds", static_cast<double>(now - sources.started_unix_ms) * 1e-3},
          {"grpc", ports.grpc},
          {"http_port", ports.http},
          {"metrics_port", ports.metrics},
          {"control_mode", control_mode_name(sources.repository.mode())},
          {"has_tls", ports.has_tls},
          {"has_tokens", ports.has_tokens}};
}

json job_json(const TrainingJob& job) {
  const uint64_t revision = job.revision();  // read before the rest: what is newer comes again
  const JobStatus status = job.status();
  const JobProgress& progress = status.progress;
  json metrics = json::object();
  for (const auto& [name, value] : progress.metrics) metrics[name] = number(value);
  return {{"id", status.id},
          {"revision", revision},
          {"name", status.spec.name},
          {"model", status.spec.model.name},
          {"optimizer", status.spec.optimizer.name},
          {"batch_size", status.spec.batch_size},
          {"tags", status.spec.tags},
          {"state", to_string(status.state)},
          {"message", status.message},
          {"created_ms", status.created_at_ms},
          {"updated_ms", status.updated_at_ms},
          {"step", progress.step},
          {"total_steps", progress.total_steps},
          {"epoch", number(progress.epoch)},
          {"loss", number(progress.loss)},
          {"learning_rate", number(progress.learning_rate)},
          {"samples_per_second", number(progress.samples_per_second)},
          {"seconds_left", number(progress.seconds_left)},
          {"memory_bytes", progress.memory_bytes},
          {"published_version", status.published_version},
          {"metrics", std::move(metrics)}};
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

// Calls `add` for evenly spaced points of a curve, the last one among them.
template <class Add>
void add_points(const std::vector<const CurvePoint*>& points, const Add& add) {
  const size_t stride = (points.size() + kMaxCurvePoints - 1) / kMaxCurvePoints;
  for (size_t i = 0; i < points.size(); ++i) {
    if ((points.size() - 1 - i) % stride == 0) add(*points[i]);
  }
}

json curves_json(const std::vector<CurvePoint>& points) {
  constexpr std::pair<const char*, double CurvePoint::*> kColumns[] = {
      {"epoch", &CurvePoint::epoch},
      {"loss", &CurvePoint::loss},
      {"learning_rate", &CurvePoint::learning_rate},
      {"gradient_norm", &CurvePoint::gradient_norm},
      {"samples_per_second", &CurvePoint::samples_per_second}};
  std::vector<const CurvePoint*> all;
  std::map<std::string, std::vector<const CurvePoint*>> measured;
  for (const CurvePoint& point : points) {
    all.push_back(&point);
    for (const auto& [name, value] : point.metrics) measured[name].push_back(&point);
  }
  json curve{{"step", json::array()}};
  for (const auto& [name, column] : kColumns) curve[name] = json::array();
  add_points(all, [&](const CurvePoint& point) {
    curve["step"].push_back(point.step);
    for (const auto& [name, column] : kColumns) curve[name].push_back(number(point.*column));
  });
  json metrics = json::object();
  for (const auto& [name, with] : measured) {
    json& metric = metrics[name] = json{{"step", json::array()}, {"value", json::array()}};
    add_points(with, [&metric, &name = name](const CurvePoint& point) {
      metric["step"].push_back(point.step);
      metric["value"].push_back(number(point.metrics.at(name)));
    });
  }
  return {{"train", std::move(curve)}, {"metrics", std::move(metrics)}};
}

// Names and errors may hold bytes that are not UTF-8.
template <class Json>
std::string dump(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string status_json(const WebSources& sources) {
  json models = models_json(sources);
  json process = process_json(models);
  return dump(json{{"server", server_json(sources)},
                   {"process", std::move(process)},
                   {"bucket_limits", std::vector<double>(classic_limits().begin(), classic_limits().end())},
                   {"models", std::move(models)},
                   {"memory", memory_json()},
                   {"pool", pool_json()},
                   {"jobs", jobs_json(sources.training)}});
}

std::string model_status_json(const WebSources& sources, const std::string& name, const std::string& version) {
  const auto model = sources.repository.find(name, version);
  nlohmann::ordered_json out =
      sources.describe ? sources.describe(name, model->version()) : nlohmann::ordered_json::object();
  out["name"] = model->name();
  out["version"] = model->version();
  out["warnings"] = model->warnings();
  out["workers"] = model->workers();
  out["labels"] = sources.repository.labels(name);
  return dump(out);
}

std::string job_status_json(const WebSources& sources, const std::string& id) {
  if (!sources.training) fail(ErrorCode::kNotFound, "training is off: --training-dir");
  const auto job = sources.training->find(id);
  const uint64_t revision = job->revision();
  json out = curves_json(job->points_after(-1));
  out["id"] = job->id();
  out["revision"] = revision;
  return dump(out);
}

}  // namespace tensord::server
