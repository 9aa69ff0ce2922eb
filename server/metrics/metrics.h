#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "server/metrics/model_metrics.h"

namespace tensord::server {

// What a model's plan cache did since the model was loaded.
struct PlanCounts {
  bool are_made = false;  // whether the model makes plans at all
  uint64_t hits = 0, misses = 0, evictions = 0, failures = 0, refused = 0;
  double build_seconds = 0;
  uint64_t plans = 0;        // cached now
  uint64_t arena_bytes = 0;  // of the largest plan
  std::map<std::string, uint64_t> failed_passes;
};

// One training job as metrics show it.
struct TrainingSample {
  std::string job, model;
  std::string state;  // "RUNNING"
  double step = 0, total_steps = 0, epoch = 0, loss = 0, learning_rate = 0, gradient_norm = 0;
  double samples = 0, samples_per_second = 0, seconds_left = 0, memory_bytes = 0, checkpoint_step = 0;
  std::map<std::string, double> metrics;  // from the last evaluation
  struct Rank {
    int64_t rank = 0;
    std::string host;
    double step = 0, communication_seconds = 0;
  };
  std::vector<Rank> ranks;  // of a job with several processes
  double restarts = 0;      // of all ranks together
  double planned_steps = 0;
};

// Connections of gRPC clients.
struct ConnectionCounts {
  double open = 0, open_streams = 0, refused = 0;
  std::map<std::string, double> cut;  // closed by the server, by reason
};

// The daemon's Prometheus registry: metric families and memory statistics. Thread-safe.
class Metrics {
 public:
  explicit Metrics(const std::string& version);
  ~Metrics();

  // Metrics of one model version, created on first use; equal names return the same object. They exist until forget().
  ModelMetrics& model(const std::string& name, const std::string& version) { return *share(name, version); }
  // Does the same, and forget() keeps them while the caller holds the pointer.
  std::shared_ptr<ModelMetrics> share(const std::string& name, const std::string& version);
  // Removes the series of a version that was unloaded.
  void forget(const std::string& name, const std::string& version);
  // Count a load that succeeded or failed, and an unload that made room for another model.
  void count_load(const std::string& name, bool is_success);
  void count_eviction(const std::string& name);
  // Models may be unloaded to make room: the series of that begin with each model's first load.
  void add_evictions();
  // Certificates that changed were taken, or were of no use.
  void count_certificates(bool is_taken);
  // Calls `counts` on each scrape, as long as this object exists.
  void watch_plans(const std::string& name, const std::string& version, std::function<PlanCounts()> counts);
  // Calls `samples` for all jobs on each scrape. An empty function unregisters it.
  void watch_training(std::function<std::vector<TrainingSample>()> samples);
  // Does the same for connections.
  void watch_connections(std::function<ConnectionCounts()> counts);
  // Requests that name an unknown model. They share one series, so that clients cannot create series.
  ModelMetrics& unknown_model() { return *unknown_; }
  // A snapshot of the counters of all models, sorted by name. The first entry has no name and counts requests for
  // unknown models.
  std::vector<ModelCounts> model_counts() const;
  // Adds Triton's metric names next to tensord's from now on.
  void add_triton_names();

  // The metrics in Prometheus's text format.
  std::string text() const;
  // The metrics in the format that a client's Accept header selects: text, or Prometheus's protobuf, which alone has
  // native histograms.
  struct Exposition {
    std::string content_type;
    std::string body;
  };
  Exposition exposition(const std::string& accept) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
  ModelMetrics* unknown_ = nullptr;
};

}  // namespace tensord::server
