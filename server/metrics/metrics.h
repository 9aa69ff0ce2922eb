#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "server/metrics/model_metrics.h"

namespace tensord::server {

// What a model's plans for input shapes did since it was loaded.
struct PlanCounts {
  bool are_made = false;  // whether the model makes plans at all
  uint64_t hits = 0, misses = 0, evictions = 0, failures = 0, refused = 0;
  double build_seconds = 0;
  uint64_t plans = 0;        // kept now
  uint64_t arena_bytes = 0;  // of the largest
  std::map<std::string, uint64_t> failed_passes;
};

// A training job as its metrics show it.
struct TrainingSample {
  std::string job, model;
  std::string state;  // "RUNNING"
  double step = 0, total_steps = 0, epoch = 0, loss = 0, learning_rate = 0, gradient_norm = 0;
  double samples = 0, samples_per_second = 0, seconds_left = 0, memory_bytes = 0, checkpoint_step = 0;
  std::map<std::string, double> metrics;  // of the last evaluation
  struct Rank {
    int64_t rank = 0;
    std::string host;
    double step = 0, communication_seconds = 0;
  };
  std::vector<Rank> ranks;  // of a job of several processes
  double restarts = 0;      // of them
  double planned_steps = 0;
};

// Connections of gRPC clients.
struct ConnectionCounts {
  double open = 0, open_streams = 0, refused = 0;
  std::map<std::string, double> cut;  // by reason
};

// The daemon's Prometheus metrics: families and memory statistics. Thread-safe.
class Metrics {
 public:
  explicit Metrics(const std::string& version);
  ~Metrics();

  // Of a model's version, made where there are none; the same give the same. They stay until forget().
  ModelMetrics& model(const std::string& name, const std::string& version) { return *share(name, version); }
  // The same; not forgotten as long as somebody has this.
  std::shared_ptr<ModelMetrics> share(const std::string& name, const std::string& version);
  // A version that has ended has no series any more.
  void forget(const std::string& name, const std::string& version);
  // A version was loaded, or could not be; a model was unloaded to make room.
  void count_load(const std::string& name, bool is_success);
  void count_eviction(const std::string& name);
  // Models may be unloaded to make room: the series of that begin with each model's first load.
  void add_evictions();
  // Certificates that changed were taken, or were of no use.
  void count_certificates(bool is_taken);
  // `counts` is asked whenever metrics are read, as long as this lives.
  void watch_plans(const std::string& name, const std::string& version, std::function<PlanCounts()> counts);
  // `samples` is asked for all jobs whenever metrics are read; an empty function ends that.
  void watch_training(std::function<std::vector<TrainingSample>()> samples);
  // The same for connections.
  void watch_connections(std::function<ConnectionCounts()> counts);
  // Requests that name no model that is there; kept apart so that clients cannot make series.
  ModelMetrics& unknown_model() { return *unknown_; }
  // What was counted of every model up to now, in the order of their names; the first one has no name and has the
  // requests for models that are not there.
  std::vector<ModelCounts> model_counts() const;
  // From now on the text has Triton's names beside tensord's.
  void add_triton_names();

  // The metrics as text.
  std::string text() const;
  // The metrics in the form that a client with this Accept header gets: Prometheus's protobuf, which has native
  // histograms, or text.
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
