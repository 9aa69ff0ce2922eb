#include "server/config/trace_options.h"

#include <CLI/CLI.hpp>

#include <charconv>
#include <limits>

#include "core/base/error.h"

namespace tensord::server {
namespace {

constexpr int64_t kMaxUint32 = std::numeric_limits<uint32_t>::max(), kMaxInt32 = std::numeric_limits<int32_t>::max();

void set_global(const std::string& key, const std::string& value, TraceOptions& options) {
  TraceSettings& settings = options.settings;
  if (key == "mode") {
    check(value == "triton" || value == "opentelemetry", "--trace-config mode must be triton or opentelemetry, got '",
          value, "'");
    options.mode = value == "triton" ? TraceOptions::Mode::kTriton : TraceOptions::Mode::kOpenTelemetry;
  } else if (key == "level") {
    // The flag may be repeated, with one level each time.
    check(value == "OFF" || value == "TIMESTAMPS" || value == "TENSORS", "--trace-config level must be OFF, ",
          "TIMESTAMPS or TENSORS, got '", value, "'");
    if (value == "OFF") settings.has_timestamps = settings.has_tensors = false;
    if (value == "TIMESTAMPS") settings.has_timestamps = true;
    if (value == "TENSORS") settings.has_tensors = true;
  } else if (key == "rate") {
    settings.rate = static_cast<uint32_t>(parse_trace_number("--trace-config rate", value, 0, kMaxUint32));
  } else if (key == "count") {
    settings.count = static_cast<int32_t>(parse_trace_number("--trace-config count", value, -1, kMaxInt32));
  } else {
    fail(ErrorCode::kInvalidArgument, "--trace-config has no setting '", key, "'");
  }
}

void set_triton(const std::string& key, const std::string& value, TraceOptions& options) {
  if (key == "file") {
    options.file = value;
  } else if (key == "log-frequency") {
    options.settings.log_frequency =
        static_cast<uint32_t>(parse_trace_number("--trace-config log-frequency", value, 0, kMaxUint32));
  } else {
    fail(ErrorCode::kInvalidArgument, "--trace-config triton has no setting '", key, "'");
  }
}

void set_open_telemetry(const std::string& key, const std::string& value, TraceOptions& options) {
  const auto number = [&](int64_t max) {
    return static_cast<uint32_t>(parse_trace_number("--trace-config opentelemetry," + key, value, 1, max));
  };
  constexpr int64_t kMaxSpans = 1 << 20, kMaxDelayMs = 3'600'000;
  if (key == "url") {
    check(value.starts_with("http://"), "--trace-config opentelemetry,url must start with http://, got '", value, "'");
    options.url = value;
  } else if (key == "resource") {
    const size_t equals = value.find('=');
    check(equals != std::string::npos && equals > 0, "--trace-config opentelemetry,resource must be KEY=VALUE, got '",
          value, "'");
    options.resource[value.substr(0, equals)] = value.substr(equals + 1);
  } else if (key == "bsp_max_queue_size") {
    options.max_queue_size = number(kMaxSpans);
  } else if (key == "bsp_schedule_delay") {
    options.schedule_delay_ms = number(kMaxDelayMs);
  } else if (key == "bsp_max_export_batch_size") {
    options.max_export_batch_size = number(kMaxSpans);
  } else {
    fail(ErrorCode::kInvalidArgument, "--trace-config opentelemetry has no setting '", key, "'");
  }
}

}  // namespace

int64_t parse_trace_number(const std::string& what, const std::string& text, int64_t min, int64_t max) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number = error != std::errc::invalid_argument && end == text.data() + text.size();
  check(is_number, "Unable to parse '", what, "', got: ", text.substr(0, 64));
  check(error == std::errc() && number >= min && number <= max, "Unable to parse '", what,
        "', value is out of range [ ", min, ", ", max, " ], got: ", text.substr(0, 64));
  return number;
}

void set_trace_levels(const std::vector<std::string>& levels, TraceSettings& settings) {
  bool has_timestamps = false, has_tensors = false;
  for (const std::string& level : levels) {
    if (level == "OFF") {
      check(levels.size() == 1, "Expect only one trace level 'OFF' is specified");
    } else if (level == "TIMESTAMPS") {
      has_timestamps = true;
    } else {
      check(level == "TENSORS", "trace_level must be OFF, TIMESTAMPS or TENSORS, got '", level.substr(0, 64), "'");
      has_tensors = true;
    }
  }
  settings.has_timestamps = has_timestamps;
  settings.has_tensors = has_tensors;
}

void parse_trace_option(const std::string& text, TraceOptions& options) {
  const size_t equals = text.find('='), comma = text.find(',');
  check(equals != std::string::npos, "--trace-config must be [MODE,]KEY=VALUE, got '", text, "'");
  const std::string value = text.substr(equals + 1);
  if (comma > equals) {
    set_global(text.substr(0, equals), value, options);
    return;
  }
  const std::string mode = text.substr(0, comma), key = text.substr(comma + 1, equals - comma - 1);
  check(mode == "triton" || mode == "opentelemetry", "--trace-config has no mode '", mode, "'");
  (mode == "triton" ? set_triton : set_open_telemetry)(key, value, options);
}

namespace {

// Triton's flags from before --trace-config.
void add_old_trace_options(CLI::App& app, TraceOptions& options) {
  const auto add = [&](const char* flag, const char* setting) {
    app.add_option_function<std::vector<std::string>>(
           flag,
           [&options, setting](const std::vector<std::string>& values) {
             try {
               for (const std::string& value : values) parse_trace_option(concat(setting, "=", value), options);
             } catch (const Error& error) {
               throw CLI::ValidationError(error.what());
             }
           },
           concat("As --trace-config ", setting, "=…, the current form in Triton"))
        ->allow_extra_args(false);
  };
  add("--trace-file", "triton,file");
  add("--trace-level", "level");
  add("--trace-rate", "rate");
  add("--trace-count", "count");
  add("--log-frequency", "triton,log-frequency");
}

}  // namespace

void add_trace_options(CLI::App& app, TraceOptions& options) {
  app.add_option_function<std::vector<std::string>>(
         "--trace-config",
         [&options](const std::vector<std::string>& values) {
           try {
             for (const std::string& value : values) parse_trace_option(value, options);
           } catch (const Error& error) {
             throw CLI::ValidationError(error.what());
           }
         },
         "Request traces: mode=triton|opentelemetry, level=TIMESTAMPS|TENSORS, rate=N, count=N, triton,file=PATH, "
         "triton,log-frequency=N, opentelemetry,url=URL, opentelemetry,resource=KEY=VALUE; may be repeated")
      ->allow_extra_args(false);
  add_old_trace_options(app, options);
}

void validate(const TraceOptions& options) {
  const bool is_spans = options.mode == TraceOptions::Mode::kOpenTelemetry;
  check(!is_spans || !options.settings.has_tensors, "--trace-config level=TENSORS needs mode=triton");
  check(options.max_export_batch_size <= options.max_queue_size,
        "--trace-config opentelemetry,bsp_max_export_batch_size must not be larger than bsp_max_queue_size");
}

}  // namespace tensord::server
