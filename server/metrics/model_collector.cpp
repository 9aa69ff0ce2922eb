#include "server/metrics/model_collector.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "server/metrics/metric_families.h"

namespace tensord::server {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

constexpr const char* kCodeNames[kStatusCodes] = {
    "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED"};

// Which models have a series: not those for which it could never be anything but 0.
enum class Shown {
  kAlways,
  kForModels,     // not for the requests to models that are not there
  kForCached,     // models whose answers the response cache keeps
  kForDecoupled,  // those of which an answer was counted
};

struct ModelSeries {
  const char* name;
  const char* help;
  MetricType type;
  double (*value)(const ModelCounts&);
  Shown shown = Shown::kForModels;
};

bool is_shown(Shown shown, const ModelCounts& model) {
  switch (shown) {
    case Shown::kAlways: return true;
    case Shown::kForModels: return !model.name.empty();
    case Shown::kForCached: return model.has_cache;
    case Shown::kForDecoupled: return !model.responses.empty();
  }
  return true;
}

constexpr ModelSeries kModelSeries[] = {
    {"tensord_received_bytes_total", "Bytes of request messages", MetricType::Counter,
     [](const ModelCounts& m) { return static_cast<double>(m.received_bytes); }, Shown::kAlways},
    {"tensord_sent_bytes_total", "Bytes of response messages", MetricType::Counter,
     [](const ModelCounts& m) { return static_cast<double>(m.sent_bytes); }, Shown::kAlways},
    {"tensord_copied_bytes_total", "Payload bytes copied between the wire and the model", MetricType::Counter,
     [](const ModelCounts& m) { return static_cast<double>(m.copied_bytes); }},
    {"tensord_inferences_total", "Rows of requests that runs of the model answered", MetricType::Counter,
     [](const ModelCounts& m) { return static_cast<double>(m.inference_count); }},
    {"tensord_executions_total", "Runs of the model, each of a whole batch", MetricType::Counter,
     [](const ModelCounts& m) { return static_cast<double>(m.execution_count); }},
    {"tensord_failed_executions_total", "Runs of the model that ended with an error", MetricType::Counter,
     [](const ModelCounts& m) { return static_cast<double>(m.failed_executions); }},
    {"tensord_cache_hits_total", "Requests answered from the response cache", MetricType::Counter,
     [](const ModelCounts& m) { return static_cast<double>(m.cache_hit.count); }, Shown::kForCached},
    {"tensord_cache_misses_total", "Requests looked up in the response cache without success", MetricType::Counter,
     [](const ModelCounts& m) { return static_cast<double>(m.cache_miss.count); }, Shown::kForCached},
    {"tensord_in_flight_requests", "Requests not yet answered", MetricType::Gauge,
     [](const ModelCounts& m) { return static_cast<double>(m.in_flight); }, Shown::kAlways},
    {"tensord_pending_requests", "Requests that wait for a worker", MetricType::Gauge,
     [](const ModelCounts& m) { return static_cast<double>(m.pending); }},
    {"tensord_model_workers", "Runs of the model that can go on at once; 0 for an ensemble", MetricType::Gauge,
     [](const ModelCounts& m) { return static_cast<double>(m.workers); }},
    {"tensord_model_load_duration_seconds", "Time the last load of a model took", MetricType::Gauge,
     [](const ModelCounts& m) { return m.load_seconds; }},
    {"tensord_model_ready", "1 when the model takes requests", MetricType::Gauge,
     [](const ModelCounts& m) { return m.is_ready ? 1.0 : 0.0; }},
};

struct Histogram {
  Phase phase;
  const char* name;
  const char* help;
  Shown shown = Shown::kForModels;
};

constexpr Histogram kHistograms[] = {
    {Phase::kRequest, "tensord_request_duration_seconds", "Time from arrival to the response handed to the network",
     Shown::kAlways},
    {Phase::kQueue, "tensord_queue_duration_seconds", "Time that requests waited for a worker"},
    {Phase::kComputeInput, "tensord_compute_input_duration_seconds", "Time to gather the inputs of a run"},
    {Phase::kCompute, "tensord_compute_duration_seconds", "Time a model ran"},
    {Phase::kComputeOutput, "tensord_compute_output_duration_seconds", "Time to take apart the outputs of a run"},
    {Phase::kFirstResponse, "tensord_first_response_duration_seconds",
     "Time from arrival to the first answer of a decoupled model", Shown::kForDecoupled},
    {Phase::kNextResponse, "tensord_next_response_duration_seconds",
     "Time from one answer of a decoupled model to the next", Shown::kForDecoupled},
};

Labels labels_of(const ModelCounts& model) {
  Labels labels{{"model", model.name}, {"version", model.version}};
  for (const auto& [key, value] : model.tags) labels.push_back({"_" + key, value});
  return labels;
}

Labels with(Labels labels, const char* name, const char* value) {
  labels.push_back({name, value});
  return labels;
}

// Sorts as Triton does: some programs match whole lines with patterns.
Labels sorted(Labels labels) {
  std::sort(labels.begin(), labels.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return labels;
}

double seconds(uint64_t ns) { return static_cast<double>(ns) * 1e-9; }
double micros(uint64_t ns) { return std::floor(static_cast<double>(ns) * 1e-3); }

void add_histogram(MetricFamily& to, const ModelCounts& model, const DurationHistogram& histogram) {
  const ClassicCounts classic = to_classic(histogram.intervals);
  ClientMetric& metric = to.metric.emplace_back();
  metric.label = labels_of(model);
  uint64_t count = 0;
  for (size_t i = 0; i < classic.buckets.size(); ++i) {
    count += classic.buckets[i];
    const double limit = i < kClassicBuckets ? classic_limits()[i] : std::numeric_limits<double>::infinity();
    metric.histogram.bucket.push_back({count, limit});
  }
  metric.histogram.sample_count = count;
  metric.histogram.sample_sum = seconds(histogram.sum_ns);
}

// Buckets for batch sizes 1, 2, 4 … 1024.
void add_batch_sizes(MetricFamily& to, const ModelCounts& model) {
  ClientMetric& metric = to.metric.emplace_back();
  metric.label = labels_of(model);
  uint64_t count = 0, rows = 0;
  auto batch = model.batches.begin();
  const auto add_until = [&](uint64_t limit) {
    for (; batch != model.batches.end() && batch->first <= limit; ++batch) {
      count += batch->second.count;
      rows += batch->second.count * batch->first;
    }
  };
  for (uint64_t limit = 1; limit <= 1024; limit *= 2) {
    add_until(limit);
    metric.histogram.bucket.push_back({count, static_cast<double>(limit)});
  }
  add_until(std::numeric_limits<uint64_t>::max());
  metric.histogram.bucket.push_back({count, std::numeric_limits<double>::infinity()});
  metric.histogram.sample_count = count;
  metric.histogram.sample_sum = static_cast<double>(rows);
}

}  // namespace

std::vector<MetricFamily> model_families(const std::vector<ModelCounts>& models) {
  std::vector<MetricFamily> families;
  MetricFamily requests = make_family("tensord_requests_total", "Requests by status code", MetricType::Counter);
  MetricFamily failures = make_family("tensord_request_failures_total",
                                      "Requests that were not answered well, by reason", MetricType::Counter);
  MetricFamily precisions =
      make_family("tensord_model_precision", "1 for the precision that precision: auto has chosen", MetricType::Gauge);
  MetricFamily batches = make_family("tensord_batch_size", "Rows of a run of the model", MetricType::Histogram);
  for (const ModelCounts& model : models) {
    const Labels labels = labels_of(model);
    for (size_t code = 0; code < model.requests.size(); ++code) {
      add_sample(requests, with(labels, "code", kCodeNames[code]), static_cast<double>(model.requests[code]));
    }
    for (size_t reason = 0; reason < model.failures.size(); ++reason) {
      add_sample(failures, with(labels, "reason", to_string(static_cast<FailureReason>(reason))),
                 static_cast<double>(model.failures[reason]));
    }
    if (!model.precision.empty()) add_sample(precisions, with(labels, "precision", model.precision.c_str()), 1);
    if (is_shown(Shown::kForModels, model)) add_batch_sizes(batches, model);
  }
  families.push_back(std::move(requests));
  families.push_back(std::move(failures));
  families.push_back(std::move(precisions));
  for (const ModelSeries& series : kModelSeries) {
    MetricFamily& family = families.emplace_back(make_family(series.name, series.help, series.type));
    for (const ModelCounts& model : models) {
      if (is_shown(series.shown, model)) add_sample(family, labels_of(model), series.value(model));
    }
  }
  for (const Histogram& of : kHistograms) {
    MetricFamily& family = families.emplace_back(make_family(of.name, of.help, MetricType::Histogram));
    for (const ModelCounts& model : models) {
      if (is_shown(of.shown, model)) add_histogram(family, model, model[of.phase]);
    }
  }
  families.push_back(std::move(batches));
  std::erase_if(families, [](const MetricFamily& family) { return family.metric.empty(); });
  return families;
}

NativeHistograms model_native_histograms(const std::vector<ModelCounts>& models) {
  NativeHistograms out;
  for (const Histogram& of : kHistograms) {
    for (const ModelCounts& model : models) {
      if (is_shown(of.shown, model)) out[of.name].push_back(to_native(model[of.phase].intervals));
    }
  }
  return out;
}

std::vector<MetricFamily> triton_families(const std::vector<ModelCounts>& models) {
  static constexpr ModelSeries kTriton[] = {
      {"nv_inference_request_success", "Requests that were answered well", MetricType::Counter,
       [](const ModelCounts& m) { return static_cast<double>(m.success.count); }},
      {"nv_inference_count", "Rows of requests that runs of the model answered", MetricType::Counter,
       [](const ModelCounts& m) { return static_cast<double>(m.inference_count); }},
      {"nv_inference_exec_count", "Runs of the model, each of a whole batch", MetricType::Counter,
       [](const ModelCounts& m) { return static_cast<double>(m.execution_count); }},
      {"nv_inference_request_duration_us", "Microseconds from arrival to answer, of requests answered well",
       MetricType::Counter, [](const ModelCounts& m) { return micros(m.success.ns); }},
      {"nv_inference_queue_duration_us", "Microseconds that requests waited", MetricType::Counter,
       [](const ModelCounts& m) { return micros(m.queue.ns); }},
      {"nv_inference_compute_input_duration_us", "Microseconds to gather inputs", MetricType::Counter,
       [](const ModelCounts& m) { return micros(m.compute_input.ns); }},
      {"nv_inference_compute_infer_duration_us", "Microseconds that the model ran", MetricType::Counter,
       [](const ModelCounts& m) { return micros(m.compute_infer.ns); }},
      {"nv_inference_compute_output_duration_us", "Microseconds to take apart outputs", MetricType::Counter,
       [](const ModelCounts& m) { return micros(m.compute_output.ns); }},
      {"nv_cache_num_hits_per_model", "Requests answered from the response cache", MetricType::Counter,
       [](const ModelCounts& m) { return static_cast<double>(m.cache_hit.count); }, Shown::kForCached},
      {"nv_cache_num_misses_per_model", "Requests looked up in the response cache without success", MetricType::Counter,
       [](const ModelCounts& m) { return static_cast<double>(m.cache_miss.count); }, Shown::kForCached},
      {"nv_cache_hit_duration_per_model", "Microseconds spent on hits of the response cache", MetricType::Counter,
       [](const ModelCounts& m) { return micros(m.cache_hit.ns); }, Shown::kForCached},
      {"nv_cache_miss_duration_per_model", "Microseconds spent on misses of the response cache", MetricType::Counter,
       [](const ModelCounts& m) { return micros(m.cache_miss.ns); }, Shown::kForCached},
      {"nv_inference_pending_request_count", "Requests that wait for a worker", MetricType::Gauge,
       [](const ModelCounts& m) { return static_cast<double>(m.pending); }},
      {"nv_model_load_duration_secs", "Seconds that the last load of the model took", MetricType::Gauge,
       [](const ModelCounts& m) { return m.load_seconds; }},
  };
  std::vector<MetricFamily> families;
  MetricFamily failures = make_family("nv_inference_request_failure", "Requests that were not answered well, by reason",
                                      MetricType::Counter);
  for (const ModelCounts& model : models) {
    if (model.name.empty()) continue;  // requests for unknown models, for which Triton has no series
    for (size_t reason = 0; reason < model.failures.size(); ++reason) {
      add_sample(failures, sorted(with(labels_of(model), "reason", to_string(static_cast<FailureReason>(reason)))),
                 static_cast<double>(model.failures[reason]));
    }
  }
  families.push_back(std::move(failures));
  for (const ModelSeries& series : kTriton) {
    MetricFamily& family = families.emplace_back(make_family(series.name, series.help, series.type));
    for (const ModelCounts& model : models) {
      if (is_shown(series.shown, model)) add_sample(family, sorted(labels_of(model)), series.value(model));
    }
  }
  std::erase_if(families, [](const MetricFamily& family) { return family.metric.empty(); });
  return families;
}

}  // namespace tensord::server
