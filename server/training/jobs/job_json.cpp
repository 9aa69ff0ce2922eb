#include "server/training/jobs/job_json.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <type_traits>

#include "core/base/error.h"
#include "core/base/utf8.h"
#include "core/nn/optim/optimizer_info.h"

namespace tensord::server {
namespace {

using Json = nlohmann::json;

// One list of fields per struct, for reading and writing: V is a Reader or a Writer.
template <class V, class T>
void fields_of(V& v, T& x, ModelSource*) {
  v("name", x.name), v("version", x.version), v("upload_id", x.upload_id);
}
template <class V, class T>
void fields_of(V& v, T& x, DataSpec*) {
  v("file", x.file), v("streamed", x.streamed), v("inputs", x.inputs), v("shuffle", x.shuffle);
  v("drop_last", x.drop_last), v("max_buffered_bytes", x.max_buffered_bytes);
  v("stream_timeout_seconds", x.stream_timeout_seconds), v("image_parameters", x.image_parameters);
  v("random_resized_crop", x.random_resized_crop), v("random_horizontal_flip", x.random_horizontal_flip);
}
template <class V, class T>
void fields_of(V& v, T& x, LossSpec*) {
  v("method", x.method), v("builtin", x.builtin), v("label", x.label), v("output", x.output);
  v("label_smoothing", x.label_smoothing), v("ignore_index", x.ignore_index), v("delta", x.delta);
  v("class_weights", x.class_weights);
}
template <class V, class T>
void fields_of(V& v, T& x, ParameterGroupSpec*) {
  v("pattern", x.pattern), v("freeze", x.freeze), v.options(x.options);
}
template <class V, class T>
void fields_of(V& v, T& x, OptimizerSpec*) {
  v("name", x.name), v.options(x.options), v("groups", x.groups);
}
template <class V, class T>
void fields_of(V& v, T& x, ScheduleSpec*) {
  v("name", x.name), v("warmup_steps", x.warmup_steps), v("warmup_factor", x.warmup_factor);
  v("by_epoch", x.by_epoch), v("step_size", x.step_size), v("milestones", x.milestones), v("gamma", x.gamma);
  v("t_max", x.t_max), v("min_lr", x.min_lr), v("max_lr", x.max_lr), v("pct_start", x.pct_start);
  v("end_factor", x.end_factor), v("metric", x.metric), v("factor", x.factor), v("patience", x.patience);
}
template <class V, class T>
void fields_of(V& v, T& x, ClippingSpec*) {
  v("norm", x.norm), v("value", x.value);
}
template <class V, class T>
void fields_of(V& v, T& x, EvaluationSpec*) {
  v("fraction", x.fraction), v("file", x.file), v("every_steps", x.every_steps), v("batch_size", x.batch_size);
  v("metrics", x.metrics), v("patience", x.patience);
}
template <class V, class T>
void fields_of(V& v, T& x, CheckpointSpec*) {
  v("every_steps", x.every_steps), v("every_seconds", x.every_seconds), v("keep", x.keep);
}
template <class V, class T>
void fields_of(V& v, T& x, PublishSpec*) {
  v("when", x.when), v("model", x.model), v("metric", x.metric), v("bar", x.bar);
}
template <class V, class T>
void fields_of(V& v, T& x, ResourceSpec*) {
  v("threads", x.threads), v("memory_bytes", x.memory_bytes), v("device", x.device);
}
template <class V, class T>
void fields_of(V& v, T& x, DistributionSpec*) {
  v("world_size", x.world_size), v("processes_per_host", x.processes_per_host), v("max_restarts", x.max_restarts);
  v("timeout_seconds", x.timeout_seconds), v("join_timeout_seconds", x.join_timeout_seconds), v("hosts", x.hosts);
  v("sync_batch_norm", x.sync_batch_norm), v("zero", x.zero), v("compression", x.compression);
  v("compression_rank", x.compression_rank), v("compression_start_step", x.compression_start_step);
  v("backend", x.backend), v("min_world_size", x.min_world_size);
}
template <class V, class T>
void fields_of(V& v, T& x, RankProgress*) {
  v("rank", x.rank), v("host", x.host), v("pid", x.pid), v("step", x.step), v("samples", x.samples);
  v("communication_seconds", x.communication_seconds), v("memory_bytes", x.memory_bytes);
}
template <class V, class T>
void fields_of(V& v, T& x, JobSpec*) {
  v("name", x.name), v("model", x.model), v("data", x.data), v("loss", x.loss), v("optimizer", x.optimizer);
  v("schedule", x.schedule), v("clipping", x.clipping), v("evaluation", x.evaluation), v("epochs", x.epochs);
  v("steps", x.steps), v("batch_size", x.batch_size), v("seed", x.seed), v("checkpoints", x.checkpoints);
  v("publish", x.publish), v("resources", x.resources), v("distribution", x.distribution);
  v("max_seconds", x.max_seconds), v("tags", x.tags), v("ema_decay", x.ema_decay);
  v("accumulation", x.accumulation), v("deterministic", x.deterministic), v("loss_scale", x.loss_scale);
  v("precision", x.precision), v("activation_checkpointing", x.activation_checkpointing);
}
template <class V, class T>
void fields_of(V& v, T& x, JobProgress*) {
  v("step", x.step), v("total_steps", x.total_steps), v("epoch", x.epoch), v("loss", x.loss);
  v("learning_rate", x.learning_rate), v("gradient_norm", x.gradient_norm);
  v("samples_per_second", x.samples_per_second), v("seconds_left", x.seconds_left);
  v("memory_bytes", x.memory_bytes), v("peak_memory_bytes", x.peak_memory_bytes), v("metrics", x.metrics);
  v("best_metric", x.best_metric), v("best_step", x.best_step), v("best_metrics", x.best_metrics);
  v("checkpoint_step", x.checkpoint_step);
  v("samples", x.samples), v("next_batch", x.next_batch), v("ranks", x.ranks), v("restarts", x.restarts);
  v("loss_scale", x.loss_scale), v("skipped_steps", x.skipped_steps);
}
template <class V, class T>
void fields_of(V& v, T& x, CurvePoint*) {
  v("step", x.step), v("epoch", x.epoch), v("loss", x.loss), v("learning_rate", x.learning_rate);
  v("gradient_norm", x.gradient_norm), v("samples_per_second", x.samples_per_second), v("metrics", x.metrics);
}
template <class V, class T>
void fields_of(V& v, T& x, JobStatus*) {
  v("id", x.id), v("spec", x.spec), v("state", x.state), v("message", x.message), v("progress", x.progress);
  v("created_at_ms", x.created_at_ms), v("updated_at_ms", x.updated_at_ms), v("base_version", x.base_version);
  v("published_version", x.published_version);
}

template <class T>
Json write_struct(const T& value);
template <class T>
T read_struct(const Json& json, const std::string& path);

template <class T>
constexpr bool is_vector = false;
template <class T>
constexpr bool is_vector<std::vector<T>> = true;
template <class T>
constexpr bool is_optional = false;
template <class T>
constexpr bool is_optional<std::optional<T>> = true;
template <class T>
constexpr bool is_map = false;
template <class T>
constexpr bool is_map<std::map<std::string, T>> = true;

// JSON has no infinity and no NaN; these are protobuf's spellings.
Json write_number(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "NaN" : std::signbit(value) ? "-Infinity" : "Infinity";
}

template <class T>
Json write(const T& value) {
  if constexpr (std::is_same_v<T, JobState>) {
    return to_string(value);
  } else if constexpr (std::is_same_v<T, double>) {
    return write_number(value);
  } else if constexpr (std::is_same_v<T, std::string>) {
    return to_valid_utf8(value);
  } else if constexpr (std::is_arithmetic_v<T>) {
    return value;
  } else if constexpr (is_optional<T>) {
    return value ? write(*value) : Json();
  } else if constexpr (is_vector<T>) {
    Json out = Json::array();
    for (const auto& item : value) out.push_back(write(item));
    return out;
  } else if constexpr (is_map<T>) {
    Json out = Json::object();
    for (const auto& [key, item] : value) out[to_valid_utf8(key)] = write(item);
    return out;
  } else {
    return write_struct(value);
  }
}

template <class T>
bool is_left_out(const T& value) {
  if constexpr (is_optional<T>) {
    return !value.has_value();
  } else if constexpr (is_vector<T> || is_map<T> || std::is_same_v<T, std::string>) {
    return value.empty();
  } else if constexpr (std::is_arithmetic_v<T>) {
    return value == T{} && !std::signbit(static_cast<double>(value));
  } else {
    return false;
  }
}

struct Writer {
  Json out = Json::object();
  template <class T>
  void operator()(const char* name, const T& value) {
    if (is_left_out(value)) return;
    Json json = write(value);
    if (json.is_object() && json.empty()) return;
    out[name] = std::move(json);
  }
  // Optimizer options are fields next to the others, with the types in the engine's table.
  void options(const OptionValues& values) {
    for (const auto& [name, value] : values) {
      const nn::OptionInfo* const option = nn::find_option(name);
      const bool is_flag = option != nullptr && option->kind == nn::OptionInfo::Kind::kFlag;
      const bool is_whole = option != nullptr && option->kind == nn::OptionInfo::Kind::kInteger;
      if (is_flag && value == 0) continue;
      out[name] = is_flag ? Json(true) : is_whole ? Json(static_cast<int64_t>(value)) : write_number(value);
    }
  }
};

template <class T>
T read_integer(const Json& json, const std::string& path) {
  if (json.is_string()) {
    const auto& text = json.template get_ref<const std::string&>();
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    check(error == std::errc() && end == text.data() + text.size(), path, ": '", text, "' is not a whole number");
    return value;
  }
  check(json.is_number(), path, ": must be a whole number");
  if (json.is_number_unsigned()) {
    const auto value = json.template get<uint64_t>();
    check(value <= static_cast<uint64_t>(std::numeric_limits<T>::max()), path, ": ", value, " is too large");
    return static_cast<T>(value);
  }
  check(json.is_number_integer(), path, ": must be a whole number");
  const auto value = json.template get<int64_t>();
  check(std::is_signed_v<T> || value >= 0, path, ": must not be below 0, got ", value);
  return static_cast<T>(value);
}

// Reads an integer, which may be 5.0 after it passed through protobuf's map.
int64_t read_count(const Json& json, const std::string& path) {
  constexpr double kMax = 9007199254740992;  // all integers up to this are exact
  if (!json.is_number_float()) return read_integer<int64_t>(json, path);
  const auto value = json.get<double>();
  check(value == std::floor(value) && std::abs(value) <= kMax, path, ": must be a whole number");
  return static_cast<int64_t>(value);
}

double read_double(const Json& json, const std::string& path) {
  if (json.is_string()) {
    const auto& text = json.get_ref<const std::string&>();
    if (text == "NaN") return NAN;
    if (text == "Infinity") return INFINITY;
    if (text == "-Infinity") return -INFINITY;
  }
  check(json.is_number(), path, ": must be a number");
  return json.get<double>();
}

template <class T>
T read(const Json& json, const std::string& path) {
  if constexpr (std::is_same_v<T, JobState>) {
    check(json.is_string(), path, ": must be a text");
    return parse_job_state(json.template get<std::string>());
  } else if constexpr (std::is_same_v<T, bool>) {
    check(json.is_boolean(), path, ": must be true or false");
    return json.template get<bool>();
  } else if constexpr (std::is_same_v<T, double>) {
    return read_double(json, path);
  } else if constexpr (std::is_integral_v<T>) {
    return read_integer<T>(json, path);
  } else if constexpr (std::is_same_v<T, std::string>) {
    check(json.is_string(), path, ": must be a text");
    return json.template get<std::string>();
  } else if constexpr (is_optional<T>) {
    if (json.is_null()) return std::nullopt;
    return read<typename T::value_type>(json, path);
  } else if constexpr (is_vector<T>) {
    check(json.is_array(), path, ": must be a list");
    T out;
    for (const Json& item : json) out.push_back(read<typename T::value_type>(item, path));
    return out;
  } else if constexpr (is_map<T>) {
    check(json.is_object(), path, ": must be an object");
    T out;
    for (const auto& [key, item] : json.items()) {
      out[key] = read<typename T::mapped_type>(item, concat(path, ".", key));
    }
    return out;
  } else {
    return read_struct<T>(json, path);
  }
}

void read_option(const nn::OptionInfo& option, const Json& json, const std::string& path, OptionValues& values) {
  switch (option.kind) {
    case nn::OptionInfo::Kind::kFlag:
      if (read<bool>(json, path)) values[option.name] = 1;
      break;
    case nn::OptionInfo::Kind::kInteger: values[option.name] = static_cast<double>(read_count(json, path)); break;
    case nn::OptionInfo::Kind::kNumber: values[option.name] = read_double(json, path); break;
  }
}

struct Reader {
  const Json& json;
  std::string path;
  std::set<std::string> known = {};
  template <class T>
  void operator()(const char* name, T& value) {
    known.insert(name);
    const auto found = json.find(name);
    if (found == json.end() || found->is_null()) return;
    value = read<T>(*found, path.empty() ? std::string(name) : concat(path, ".", name));
  }
  void options(OptionValues& values) {
    for (const auto& [name, item] : json.items()) {
      const nn::OptionInfo* const option = nn::find_option(name);
      if (option == nullptr) continue;
      known.insert(name);
      if (!item.is_null()) read_option(*option, item, concat(path, ".", name), values);
    }
  }
};

template <class T>
Json write_struct(const T& value) {
  Writer writer;
  fields_of(writer, value, static_cast<T*>(nullptr));
  return std::move(writer.out);
}

template <class T>
T read_struct(const Json& json, const std::string& path) {
  check(json.is_object(), path.empty() ? std::string("job") : path, ": must be an object");
  T out;
  Reader reader{json, path};
  fields_of(reader, out, static_cast<T*>(nullptr));
  for (const auto& [key, item] : json.items()) {
    check(reader.known.contains(key), path.empty() ? std::string() : path + ".", key, ": there is no such field");
  }
  return out;
}

}  // namespace

nlohmann::json to_json(const JobSpec& spec) { return write_struct(spec); }
JobSpec job_spec_from_json(const nlohmann::json& json) { return read_struct<JobSpec>(json, ""); }
nlohmann::json to_json(const JobStatus& status) { return write_struct(status); }
JobStatus job_status_from_json(const nlohmann::json& json) { return read_struct<JobStatus>(json, ""); }
nlohmann::json to_json(const CurvePoint& point) { return write_struct(point); }
CurvePoint curve_point_from_json(const nlohmann::json& json) { return read_struct<CurvePoint>(json, ""); }

}  // namespace tensord::server
