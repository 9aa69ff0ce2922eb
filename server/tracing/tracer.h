#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/mutex.h"

#include "server/config/trace_options.h"
#include "server/tracing/request_trace.h"

namespace tensord::server {

// A request that may be traced.
struct TracedRequest {
  std::string_view model = {}, version = {}, request_id = {};
  std::string_view traceparent = {};  // the header of this name; may be empty
  TransportStamps transport = kGrpcStamps;
  int64_t read_start_ns = 0;  // when waiting for its bytes began; 0: unknown
  int64_t arrived_ns = 0;
};

// A change by TraceSetting. Fields that are not set do not change; a setting that is cleared falls back to the
// server's, and the server's to its initial value.
struct TraceChanges {
  struct Levels {
    bool has_timestamps = false, has_tensors = false;
  };
  std::optional<std::optional<Levels>> levels;
  std::optional<std::optional<uint32_t>> rate;
  std::optional<std::optional<int32_t>> count;
  std::optional<std::optional<uint32_t>> log_frequency;
};

// Decides which requests are traced. Thread-safe; start() costs one atomic load while tracing is off.
class Tracer {
 public:
  // Throws Error{kUnavailable} if the trace file cannot be written.
  explicit Tracer(TraceOptions options);
  ~Tracer();

  bool is_on() const { return is_on_.load(std::memory_order_relaxed); }
  // Null if the request is not traced.
  std::shared_ptr<RequestTrace> start(const TracedRequest& request) { return is_on() ? sample(request) : nullptr; }

  // `model` empty: the server's settings, which apply to models without their own.
  TraceSettings settings(const std::string& model) const;
  // Throws Error{kInvalidArgument}.
  void change(const std::string& model, const TraceChanges& changes);
  const TraceOptions& options() const { return options_; }

  // Where this server listens, which spans of requests say. An address that stands for all of a machine's is told as
  // the machine's name.
  void set_places(ServerPlace grpc, ServerPlace http);

  // Exports all traces; afterwards nothing is traced.
  void stop();

 private:
  // Settings of a model; unset ones are the server's.
  struct Overrides {
    std::optional<TraceChanges::Levels> levels;
    std::optional<uint32_t> rate, log_frequency;
    std::optional<int32_t> count;
    uint64_t seen = 0;  // requests seen
    bool is_empty() const { return !levels && !rate && !log_frequency && !count; }
  };
  std::shared_ptr<RequestTrace> sample(const TracedRequest& request);
  TraceSettings settings_of(const Overrides* overrides) const TENSORD_REQUIRES(mutex_);
  void update_is_on() TENSORD_REQUIRES(mutex_);

  const TraceOptions options_;
  const std::shared_ptr<TraceExporter> exporter_;
  std::atomic<bool> is_on_{false};
  mutable Mutex mutex_;
  TraceSettings settings_ TENSORD_GUARDED_BY(mutex_);  // the server's
  uint64_t seen_ TENSORD_GUARDED_BY(mutex_) = 0;
  ServerPlace grpc_ TENSORD_GUARDED_BY(mutex_), http_ TENSORD_GUARDED_BY(mutex_);
  bool is_stopped_ TENSORD_GUARDED_BY(mutex_) = false;
  std::map<std::string, Overrides> models_ TENSORD_GUARDED_BY(mutex_);
};

}  // namespace tensord::server
