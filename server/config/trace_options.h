#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace tensord::server {

// Which requests are traced, and what a trace contains.
struct TraceSettings {
  bool has_timestamps = false, has_tensors = false;  // neither: tracing is off
  uint32_t rate = 1000;                              // traces one in `rate` requests; 0: only on request
  int32_t count = -1;                                // remaining number of traces; -1: no limit
  uint32_t log_frequency = 0;                        // traces per file "<file>.0", "<file>.1" …; 0: all in one
  bool is_on() const { return has_timestamps || has_tensors; }
};

// --trace-config, which may be repeated: [MODE,]KEY=VALUE as in Triton.
struct TraceOptions {
  enum class Mode { kTriton, kOpenTelemetry };  // a JSON file; spans to a collector over HTTP
  Mode mode = Mode::kTriton;
  TraceSettings settings;
  std::string file;  // kTriton: the trace file; empty: traces are discarded
  std::string url = "http://localhost:4318/v1/traces";
  std::map<std::string, std::string> resource{{"service.name", "tensord"}};
  uint32_t max_queue_size = 2048;  // spans queued for export; further spans are dropped
  uint32_t schedule_delay_ms = 5000;
  uint32_t max_export_batch_size = 512;  // spans per export request
};

// Values are parsed while the command line is read, so a bad value is a usage error.
void add_trace_options(CLI::App& app, TraceOptions& options);

// Applies one value of --trace-config. Throws Error{kInvalidArgument} that names the problem.
void parse_trace_option(const std::string& text, TraceOptions& options);

// Sets the levels from "OFF", or from "TIMESTAMPS" and "TENSORS". Throws Error{kInvalidArgument}.
void set_trace_levels(const std::vector<std::string>& levels, TraceSettings& settings);

// Parses an integer within the limits. `what` names it in errors. Throws Error{kInvalidArgument}.
int64_t parse_trace_number(const std::string& what, const std::string& text, int64_t min, int64_t max);

// Throws Error{kInvalidArgument} for contradictory options.
void validate(const TraceOptions& options);

}  // namespace tensord::server
