#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "core/base/mutex.h"
#include "core/base/thread.h"
#include "server/tracing/request_trace.h"

namespace tensord::server {

// Destination of traces. Not thread-safe.
class TraceSink {
 public:
  virtual ~TraceSink() = default;
  // Must not throw; failures are logged, and the traces are lost.
  virtual void write(std::vector<TraceRecord> records) = 0;
  virtual void finish() {}
};

// Passes finished traces to a sink on a thread of its own, started with the first trace. The queue is bounded; further
// traces are dropped and counted, so that requests never wait. Thread-safe.
class TraceExporter {
 public:
  struct Options {
    size_t max_waiting = 2048;
    size_t batch_size = 1;  // traces per write; fewer once `delay_ms` has passed
    int64_t delay_ms = 0;
  };
  TraceExporter(std::unique_ptr<TraceSink> sink, Options options);
  ~TraceExporter();  // calls stop()

  void add(TraceRecord record);
  // Writes the queue; later traces are dropped.
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
  Thread thread_;  // guarded by mutex_ until stopped
};

// A JSON file in Triton's format; a complete JSON document after each write. Throws Error{kUnavailable} if it cannot be
// written. Without a name, traces are dropped.
std::unique_ptr<TraceSink> make_file_sink(const std::string& file);

// Spans for an OpenTelemetry collector: OTLP over HTTP, as JSON.
std::unique_ptr<TraceSink> make_span_sink(const TraceOptions& options);

}  // namespace tensord::server
