#include "server/metrics/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <chrono>
#include <map>
#include <mutex>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "server/metrics/allocator_collector.h"
#include "server/metrics/exposition_server.h"
#include "server/metrics/plan_collector.h"
#include "server/metrics/training_collector.h"

namespace tensord::server {
namespace {

constexpr const char* kCodeNames[kStatusCodes] = {
    "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED"};

// 50 us to 10 s; short models take tens of microseconds, long ones seconds.
const prometheus::Histogram::BucketBoundaries& duration_buckets() {
  static const prometheus::Histogram::BucketBoundaries buckets{
      0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10};
  return buckets;
}

double seconds(int64_t ns) { return static_cast<double>(ns) * 1e-9; }

}  // namespace

void ModelMetrics::count_answer(const RequestTimes& times, int status_code) {
  const bool is_known = status_code >= 0 && status_code < kStatusCodes;
  requests_[static_cast<size_t>(is_known ? status_code : 2)]->Increment();
  if (times.compute_start_ns > 0) queue_->Observe(seconds(times.compute_start_ns - times.queue_start_ns));
  total_->Observe(seconds(Clock::system().now_ns() - times.arrived_ns));
}
void ModelMetrics::count_execution(int64_t, const RequestTimes& times) {
  compute_->Observe(seconds(times.compute_end_ns - times.compute_start_ns));
}
void ModelMetrics::add_received(uint64_t bytes) { received_->Increment(static_cast<double>(bytes)); }
void ModelMetrics::add_sent(uint64_t bytes) { sent_->Increment(static_cast<double>(bytes)); }
void ModelMetrics::add_copied(uint64_t bytes) {
  if (bytes != 0) copied_->Increment(static_cast<double>(bytes));
}
void ModelMetrics::add_in_flight(int delta) { in_flight_->Increment(delta); }
void ModelMetrics::set_load_seconds(double value) { load_seconds_->Set(value); }
void ModelMetrics::set_ready(bool is_ready) { ready_->Set(is_ready ? 1 : 0); }

struct Metrics::State {
  std::shared_ptr<prometheus::Registry> registry = std::make_shared<prometheus::Registry>();
  std::shared_ptr<AllocatorCollector> allocators = std::make_shared<AllocatorCollector>();
  PlanCollector plans;
  TrainingCollector training;
  prometheus::Family<prometheus::Counter>& requests = counters("tensord_requests_total", "Requests by status code");
  prometheus::Family<prometheus::Counter>& received =
      counters("tensord_received_bytes_total", "Bytes of request messages");
  prometheus::Family<prometheus::Counter>& sent = counters("tensord_sent_bytes_total", "Bytes of response messages");
  prometheus::Family<prometheus::Counter>& copied =
      counters("tensord_copied_bytes_total", "Payload bytes copied between the wire and the model");
  prometheus::Family<prometheus::Histogram>& queue =
      histograms("tensord_queue_duration_seconds", "Time from arrival to a worker");
  prometheus::Family<prometheus::Histogram>& compute =
      histograms("tensord_compute_duration_seconds", "Time a model ran");
  prometheus::Family<prometheus::Histogram>& total =
      histograms("tensord_request_duration_seconds", "Time from arrival to the response handed to the network");
  prometheus::Family<prometheus::Gauge>& in_flight = gauges("tensord_in_flight_requests", "Requests not yet answered");
  prometheus::Family<prometheus::Gauge>& load =
      gauges("tensord_model_load_duration_seconds", "Time the last load of a model took");
  prometheus::Family<prometheus::Gauge>& ready = gauges("tensord_model_ready", "1 when the model takes requests");

  std::mutex mutex;
  std::map<std::pair<std::string, std::string>, std::unique_ptr<ModelMetrics>> models;  // by mutex
  std::unique_ptr<ExpositionServer> server;

  prometheus::Family<prometheus::Counter>& counters(const char* name, const char* help) {
    return prometheus::BuildCounter().Name(name).Help(help).Register(*registry);
  }
  prometheus::Family<prometheus::Gauge>& gauges(const char* name, const char* help) {
    return prometheus::BuildGauge().Name(name).Help(help).Register(*registry);
  }
  prometheus::Family<prometheus::Histogram>& histograms(const char* name, const char* help) {
    return prometheus::BuildHistogram().Name(name).Help(help).Register(*registry);
  }
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

Metrics::~Metrics() { state_->server.reset(); }

ModelMetrics& Metrics::model(const std::string& name, const std::string& version) {
  const std::lock_guard lock(state_->mutex);
  auto& slot = state_->models[{name, version}];
  if (slot) return *slot;
  slot = std::make_unique<ModelMetrics>();
  prometheus::Labels labels{{"model", name}, {"version", version}};
  for (int code = 0; code < kStatusCodes; ++code) {
    prometheus::Labels with_code = labels;
    with_code["code"] = kCodeNames[code];
    slot->requests_[static_cast<size_t>(code)] = &state_->requests.Add(with_code);
  }
  slot->queue_ = &state_->queue.Add(labels, duration_buckets());
  slot->compute_ = &state_->compute.Add(labels, duration_buckets());
  slot->total_ = &state_->total.Add(labels, duration_buckets());
  slot->received_ = &state_->received.Add(labels);
  slot->sent_ = &state_->sent.Add(labels);
  slot->copied_ = &state_->copied.Add(labels);
  slot->in_flight_ = &state_->in_flight.Add(labels);
  slot->load_seconds_ = &state_->load.Add(labels);
  slot->ready_ = &state_->ready.Add(labels);
  return *slot;
}

void Metrics::watch_plans(const std::string& name, const std::string& version, std::function<PlanCounts()> counts) {
  state_->plans.watch(name, version, std::move(counts));
}

void Metrics::watch_training(std::function<std::vector<TrainingSample>()> samples) {
  state_->training.watch(std::move(samples));
}

int Metrics::listen(const std::string& address, int port) {
  state_->server = std::make_unique<ExpositionServer>(address, port, [this] { return text(); });
  return state_->server->port();
}

std::string Metrics::text() const {
  auto families = state_->registry->Collect();
  for (auto& family : state_->allocators->Collect()) families.push_back(std::move(family));
  for (auto& family : state_->plans.Collect()) families.push_back(std::move(family));
  for (auto& family : state_->training.Collect()) families.push_back(std::move(family));
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace tensord::server
