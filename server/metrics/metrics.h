#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "server/metrics/request_times.h"

namespace prometheus {
class Counter;
class Gauge;
class Histogram;
class Registry;
}  // namespace prometheus

namespace tensord::server {

inline constexpr int kStatusCodes = 17;  // gRPC's, 0 is OK

// Handles of one model version's series, looked up once so that a request only adds to
// atomics. Thread-safe. Owned by Metrics.
class ModelMetrics {
 public:
  // Once for every request when its last answer goes out; `status_code` is gRPC's.
  void count_answer(const RequestTimes& times, int status_code);
  // Once for every run of the model, `batch_size` rows of requests together. Times of the first of them.
  void count_execution(int64_t batch_size, const RequestTimes& times);
  void add_received(uint64_t bytes);
  void add_sent(uint64_t bytes);
  void add_copied(uint64_t bytes);  // payload bytes that were copied on their way
  void add_in_flight(int delta);
  void set_load_seconds(double seconds);
  void set_ready(bool is_ready);

 private:
  friend class Metrics;
  std::array<prometheus::Counter*, kStatusCodes> requests_{};
  prometheus::Histogram* queue_ = nullptr;
  prometheus::Histogram* compute_ = nullptr;
  prometheus::Histogram* total_ = nullptr;
  prometheus::Counter* received_ = nullptr;
  prometheus::Counter* sent_ = nullptr;
  prometheus::Counter* copied_ = nullptr;
  prometheus::Gauge* in_flight_ = nullptr;
  prometheus::Gauge* load_seconds_ = nullptr;
  prometheus::Gauge* ready_ = nullptr;
};

// What a model's plans for input shapes did since it was loaded.
struct PlanCounts {
  uint64_t hits = 0, misses = 0, evictions = 0, failures = 0;
  double build_seconds = 0;
  uint64_t plans = 0;        // kept now
  uint64_t arena_bytes = 0;  // of the largest
};

// A training job as its metrics show it.
struct TrainingSample {
  std::string job, model;
  std::string state;  // "RUNNING"
  double step = 0, total_steps = 0, epoch = 0, loss = 0, learning_rate = 0, gradient_norm = 0;
  double samples = 0, samples_per_second = 0, seconds_left = 0, memory_bytes = 0, checkpoint_step = 0;
  std::map<std::string, double> metrics;  // of the last evaluation
};

// The daemon's Prometheus metrics: families, memory statistics and the HTTP port they are
// read from. Thread-safe.
class Metrics {
 public:
  explicit Metrics(const std::string& version);
  ~Metrics();

  // Lives as long as this. The same model and version give the same handles.
  ModelMetrics& model(const std::string& name, const std::string& version);
  // `counts` is asked whenever metrics are read, as long as this lives.
  void watch_plans(const std::string& name, const std::string& version, std::function<PlanCounts()> counts);
  // `samples` is asked for all jobs whenever metrics are read; an empty function ends that.
  void watch_training(std::function<std::vector<TrainingSample>()> samples);
  // Requests that name no model that is there; kept apart so that clients cannot make series.
  ModelMetrics& unknown_model() { return *unknown_; }

  // Serves GET /metrics. Throws Error{kUnavailable} when the address cannot be bound.
  // Gives back the port.
  int listen(const std::string& address, int port);
  // The exposition text.
  std::string text() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
  ModelMetrics* unknown_ = nullptr;
};

}  // namespace tensord::server
