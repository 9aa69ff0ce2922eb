#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/mutex.h"

#include "server/metrics/model_counts.h"
#include "server/metrics/request_times.h"

namespace tensord::server {

// Counts what happens to the requests of one model version. Threads add to sharded atomics, so counting a request takes
// about 100 ns on any number of cores (tests/bench/metrics_bench). Thread-safe.
class ModelMetrics {
 public:
  ModelMetrics(std::string name, std::string version);
  ~ModelMetrics();
  ModelMetrics(const ModelMetrics&) = delete;
  ModelMetrics& operator=(const ModelMetrics&) = delete;

  // Call once per request when its last response is sent. `status_code` is gRPC's; `error` is its message.
  void count_answer(const RequestTimes& times, int status_code, std::string_view error = {});
  // Call once per run of the model; `batch_size` is its number of rows. `times` are those of the first request in the
  // batch.
  void count_execution(int64_t batch_size, const RequestTimes& times, bool is_success = true);
  // Call once per response of a decoupled model, before count_answer() for the last one. `index` counts from 0.
  // `previous_ns` is when the previous response was sent, or when the request arrived. `is_empty`: a final response
  // without outputs.
  void count_response(uint64_t index, const RequestTimes& times, int64_t previous_ns, int status_code, bool is_empty);
  // Count a request answered from the response cache, or a failed lookup; the times cover the lookup and the insertion.
  void count_cache_hit(int64_t ns);
  void count_cache_miss(int64_t ns);
  void add_received(uint64_t bytes);
  void add_sent(uint64_t bytes);
  void add_copied(uint64_t bytes);  // payload bytes that were copied
  void add_in_flight(int delta);    // requests without a final response
  void add_pending(int delta);      // requests waiting for a worker: 1 when queued, -1 when taken or cancelled
  void set_load_seconds(double seconds);
  void set_ready(bool is_ready);
  void set_workers(size_t workers);
  void set_has_cache(bool has_cache);  // whether the model uses the response cache
  void set_tags(std::map<std::string, std::string> tags);
  void set_precision(std::string name);  // as `precision: auto` chose

  ModelCounts counts() const;

 private:
  struct Shard;
  Shard& shard();
  void add_to(ModelCounts& counts, const Shard& shard) const;
  void keep_failure(std::string_view error);

  static constexpr size_t kShards = 16;
  const std::string name_, version_;
  std::array<std::atomic<Shard*>, kShards> shards_{};  // each created when a thread first needs it
  std::atomic<double> load_seconds_{0};
  std::atomic<bool> is_ready_{false}, has_cache_{false};
  std::atomic<size_t> workers_{0};
  mutable Mutex mutex_;
  std::map<std::string, std::string> tags_ TENSORD_GUARDED_BY(mutex_);
  LastFailure last_failure_ TENSORD_GUARDED_BY(mutex_);
  std::string precision_ TENSORD_GUARDED_BY(mutex_);
  std::map<uint64_t, BatchCounts> large_batches_ TENSORD_GUARDED_BY(mutex_);  // batch sizes that shards do not count
  std::vector<ResponseCounts> responses_ TENSORD_GUARDED_BY(mutex_);
};

// Counts a request as pending from construction until end() or destruction. Not thread-safe.
class PendingRequest {
 public:
  explicit PendingRequest(ModelMetrics& metrics) : metrics_(&metrics) { metrics.add_pending(1); }
  ~PendingRequest() { end(); }
  PendingRequest(const PendingRequest&) = delete;
  PendingRequest& operator=(const PendingRequest&) = delete;
  void end() {
    if (metrics_) metrics_->add_pending(-1);
    metrics_ = nullptr;
  }

 private:
  ModelMetrics* metrics_;
};

}  // namespace tensord::server
