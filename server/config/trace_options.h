#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace tensord::server {

// Which requests are traced, and what of them is kept.
struct TraceSettings {
  bool has_timestamps = false, has_tensors = false;  // neither: tracing is off
  uint32_t rate = 1000;                              // one of so many requests; 0: only those that the client traces
  int32_t count = -1;                                // traces still to be made; -1: no end
  uint32_t log_frequency = 0;                        // traces per file "<file>.0", "<file>.1" …; 0: all in one
  bool is_on() const { return has_timestamps || has_tensors; }
};

// --trace-config, which may be given several times: [MODE,]KEY=VALUE as Triton takes it.
struct TraceOptions {
  enum class Mode { kTriton, kOpenTelemetry };  // a JSON file; spans to a collector over HTTP
  Mode mode = Mode::kTriton;
  TraceSettings settings;
  std::string file;  // of kTriton; empty: traces are not kept
  std::string url = "http://localhost:4318/v1/traces";
  std::map<std::string, std::string> resource{{"service.name", "tensord"}};
  uint32_t max_queue_size = 2048;  // spans that wait to be sent; more are dropped
  uint32_t schedule_delay_ms = 5000;
  uint32_t max_export_batch_size = 512;  // spans of one request to the collector
};

// Values are parsed when the flag is read; a bad one is an error of the command line.
void add_trace_options(CLI::App& app, TraceOptions& options);

// Applies one value of --trace-config. Throws Error{kInvalidArgument} naming what is wrong.
void parse_trace_option(const std::string& text, TraceOptions& options);

// Sets the levels from "OFF", or "TIMESTAMPS" and "TENSORS". Throws Error{kInvalidArgument}.
void set_trace_levels(const std::vector<std::string>& levels, TraceSettings& settings);

// Whole numbers within the limits, named `what` in errors. Throws Error{kInvalidArgument}.
int64_t parse_trace_number(const std::string& what, const std::string& text, int64_t min, int64_t max);

// Throws Error{kInvalidArgument} for what does not fit together.
void validate(const TraceOptions& options);

}  // namespace tensord::server
