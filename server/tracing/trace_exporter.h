#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "core/base/mutex.h"
#include "core/base/thread.h"
#include "server/tracing/request_trace.h"

namespace tensord::server {

// Where traces end up. For one thread.
class TraceSink {
 public:
  virtual ~TraceSink() = default;
  // Must not throw; what cannot be written is logged and lost.
  virtual void write(std::vector<TraceRecord> records) = 0;
  virtual void finish() {}
};

// Hands finished traces to a sink on a thread of its own, which starts with the first of them. A bounded number of
// them waits; more are dropped and counted, so that requests never wait for traces. Thread-safe.
class TraceExporter {
 public:
  struct Options {
    size_t max_waiting = 2048;
    size_t batch_size = 1;  // so many are written at once, or all that there are when `delay_ms` is over
    int64_t delay_ms = 0;
  };
  TraceExporter(std::unique_ptr<TraceSink> sink, Options options);
  ~TraceExporter();  // stops

  void add(TraceRecord record);
  // Writes what waits; what comes later is dropped.
  void stop();

 private:
  void work();

  const std::unique_ptr<TraceSink> sink_;
  const Options options_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<TraceRecord> waiting_ TENSORD_GUARDED_BY(mutex_);
  uint64_t dropped_ TENSORD_GUARDED_BY(mutex_) = 0;
  bool is_stopped_ TENSORD_GUARDED_BY(mutex_) = false;
  Thread thread_;  // by mutex_ until it is stopped
};

// A JSON file in the form that Triton writes; a whole JSON document after each write. Throws Error{kUnavailable} when
// it cannot be written. Without a name, traces are dropped.
std::unique_ptr<TraceSink> make_file_sink(const std::string& file);

// Spans for a collector of OpenTelemetry: OTLP over HTTP, as JSON.
std::unique_ptr<TraceSink> make_span_sink(const TraceOptions& options);

}  // namespace tensord::server
