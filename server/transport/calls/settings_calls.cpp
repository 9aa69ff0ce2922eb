#include "server/transport/calls/settings_calls.h"

#include <limits>

#include "server/config/log_sink.h"
#include "server/tracing/tracer.h"
#include "server/transport/grpc/unary_call.h"

namespace tensord::server {
namespace {

using namespace inference;  // the protocol's messages only

using TraceValue = TraceSettingRequest::SettingValue;
using LogValue = LogSettingsRequest::SettingValue;

// Parses the only value of a setting; returns nullopt if it was cleared.
std::optional<int64_t> number_of(const std::string& name, const TraceValue& value, int64_t min, int64_t max) {
  if (value.value().empty()) return std::nullopt;
  check(value.value_size() == 1, "expect only 1 value for '", name, "'");
  return parse_trace_number(name, value.value(0), min, max);
}

template <class T>
std::optional<T> number_of(const std::string& name, const TraceValue& value, int64_t min) {
  const auto number = number_of(name, value, min, std::numeric_limits<T>::max());
  return number ? std::optional<T>(static_cast<T>(*number)) : std::nullopt;
}

TraceChanges trace_changes(const TraceSettingRequest& request) {
  TraceChanges changes;
  for (const auto& [name, value] : request.settings()) {
    if (name == "trace_file" || name == "trace_mode") {
      const char* what = name == "trace_file" ? "trace file location" : "trace mode";
      fail(ErrorCode::kUnimplemented, what, " can not be updated through network protocol");
    } else if (name == "trace_level") {
      changes.levels.emplace();
      if (value.value().empty()) continue;
      TraceSettings levels;
      set_trace_levels({value.value().begin(), value.value().end()}, levels);
      changes.levels->emplace(TraceChanges::Levels{levels.has_timestamps, levels.has_tensors});
    } else if (name == "trace_rate") {
      changes.rate = number_of<uint32_t>(name, value, 0);
    } else if (name == "trace_count") {
      changes.count = number_of<int32_t>(name, value, -1);
    } else if (name == "log_frequency") {
      changes.log_frequency = number_of<uint32_t>(name, value, 0);
    } else {
      fail(ErrorCode::kInvalidArgument, "there is no trace setting '", name.substr(0, 64), "'");
    }
  }
  return changes;
}

}  // namespace

void answer_trace_setting(ServerState& state, const TraceSettingRequest& request, TraceSettingResponse& response) {
  const std::string& model = request.model_name();
  check(model.empty() || state.repository.is_ready(model, ""), "Request for unknown model : ", model);
  if (!request.settings().empty()) state.tracer.change(model, trace_changes(request));
  const TraceSettings settings = state.tracer.settings(model);
  const TraceOptions& options = state.tracer.options();
  auto& out = *response.mutable_settings();
  auto& levels = out["trace_level"];
  if (settings.has_timestamps) levels.add_value("TIMESTAMPS");
  if (settings.has_tensors) levels.add_value("TENSORS");
  if (!settings.is_on()) levels.add_value("OFF");
  out["trace_rate"].add_value(std::to_string(settings.rate));
  out["trace_count"].add_value(std::to_string(settings.count));
  if (options.mode == TraceOptions::Mode::kTriton) {
    out["log_frequency"].add_value(std::to_string(settings.log_frequency));
    out["trace_file"].add_value(options.file);
    out["trace_mode"].add_value("triton");
  } else {
    out["trace_mode"].add_value("opentelemetry");
    out["url"].add_value(options.url);
    out["bsp_max_queue_size"].add_value(std::to_string(options.max_queue_size));
    out["bsp_schedule_delay"].add_value(std::to_string(options.schedule_delay_ms));
    out["bsp_max_export_batch_size"].add_value(std::to_string(options.max_export_batch_size));
  }
}

namespace {

bool bool_of(const std::string& name, const LogValue& value) {
  check(value.parameter_choice_case() == LogValue::kBoolParam, "expect boolean for '", name, "'");
  return value.bool_param();
}

void change_logging(const LogSettingsRequest& request, LogSettings& settings) {
  for (const auto& [name, value] : request.settings()) {
    if (name == "log_file") {
      fail(ErrorCode::kUnimplemented, "log file location can not be updated through network protocol");
    } else if (name == "log_info") {
      settings.info = bool_of(name, value);
    } else if (name == "log_warning") {
      settings.warning = bool_of(name, value);
    } else if (name == "log_error") {
      settings.error = bool_of(name, value);
    } else if (name == "log_verbose_level") {
      check(value.parameter_choice_case() == LogValue::kUint32Param, "expect int32 for '", name, "'");
      settings.verbose_level = value.uint32_param();
    } else if (name == "log_format") {
      check(value.parameter_choice_case() == LogValue::kStringParam, "expect string for '", name, "'");
      settings.format = value.string_param();
    } else {
      fail(ErrorCode::kInvalidArgument, "there is no log setting '", name.substr(0, 64), "'");
    }
  }
}

}  // namespace

void answer_log_settings(const LogSettingsRequest& request, LogSettingsResponse& response) {
  if (!request.settings().empty()) {
    change_log_settings([&](LogSettings& settings) { change_logging(request, settings); });
  }
  const LogSettings settings = log_settings();
  auto& out = *response.mutable_settings();
  out["log_file"].set_string_param(settings.file);
  out["log_info"].set_bool_param(settings.info);
  out["log_warning"].set_bool_param(settings.warning);
  out["log_error"].set_bool_param(settings.error);
  out["log_verbose_level"].set_uint32_param(settings.verbose_level);
  out["log_format"].set_string_param(settings.format);
}

void wait_settings_calls(ServerState& state, InferenceService& service, CallQueue queue) {
  wait_unary<TraceSettingRequest, TraceSettingResponse>(
      queue, CallGroup::kTrace, TENSORD_START(service, TraceSetting),
      [&state](const auto& request, auto& response) { answer_trace_setting(state, request, response); });
  wait_unary<LogSettingsRequest, LogSettingsResponse>(
      queue, CallGroup::kLogging, TENSORD_START(service, LogSettings),
      [](const auto& request, auto& response) { answer_log_settings(request, response); });
}

}  // namespace tensord::server
