#include "protos/model_config_text.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <charconv>
#include <sstream>

#include "core/base/error.h"
#include "core/base/log.h"
#include "protos/model_config.pb.h"

namespace tensord::server {
namespace {

constexpr int kMaxNesting = 32;
constexpr int kMaxWorkers = 256;
constexpr uint32_t kMaxWarmupRuns = 10000;
constexpr int kMaxPlans = 65536;
constexpr int kMaxThreads = 1024;

class Collector final : public google::protobuf::io::ErrorCollector {
 public:
  explicit Collector(const std::string& origin) : origin_(origin) {}
  // Lines and columns come counted from 0.
  void AddError(int line, google::protobuf::io::ColumnNumber column, const std::string& message) override {
    if (error.empty()) error = concat(origin_, ":", line + 1, ":", column + 1, ": ", message);
  }
  void AddWarning(int line, google::protobuf::io::ColumnNumber, const std::string& message) override {
    log(LogLevel::kWarning, "config field skipped", {{"file", origin_}, {"line", line + 1}, {"reason", message}});
  }
  std::string error;

 private:
  const std::string& origin_;
};

// "TYPE_FP32" is "FP32" on the wire, TYPE_STRING is "BYTES".
std::string wire_datatype(inference::DataType type) {
  if (type == inference::TYPE_INVALID) return "";
  if (type == inference::TYPE_STRING) return "BYTES";
  return inference::DataType_Name(type).substr(5);
}

template <class Message>
ModelConfig::TensorConfig to_tensor_config(const Message& message, const std::string& origin) {
  ModelConfig::TensorConfig out;
  check(!message.name().empty(), origin, ": an input or output has no name");
  out.name = message.name();
  check(inference::DataType_IsValid(message.data_type()), origin, ": unknown data_type of '", out.name, "'");
  out.datatype = wire_datatype(message.data_type());
  out.has_dims = message.dims_size() > 0;
  for (int64_t dim : message.dims()) {
    check(dim >= -1 && dim != 0, origin, ": dims of '", out.name, "' must be positive or -1, got ", dim);
    out.dims.push_back(dim);
  }
  out.has_reshape = message.has_reshape();
  for (int64_t dim : message.reshape().shape()) out.reshape.push_back(dim);
  return out;
}

void read_version_policy(const inference::ModelVersionPolicy& policy, ModelConfig& out) {
  if (policy.has_all()) {
    out.version_policy = ModelConfig::VersionPolicy::kAll;
  } else if (policy.has_specific()) {
    out.version_policy = ModelConfig::VersionPolicy::kSpecific;
    out.specific_versions.assign(policy.specific().versions().begin(), policy.specific().versions().end());
  } else if (policy.has_latest() && policy.latest().num_versions() > 0) {
    out.latest_versions = policy.latest().num_versions();
  }
}

void read_warmup_input(const std::string& name, const inference::ModelWarmup::Input& message, const std::string& origin,
                       ModelConfig::Warmup& out) {
  ModelConfig::Warmup::Input input;
  check(inference::DataType_IsValid(message.data_type()) && message.data_type() != inference::TYPE_INVALID, origin,
        ": model_warmup '", out.name, "': input '", name, "' needs a data_type");
  input.datatype = wire_datatype(message.data_type());
  for (const int64_t dim : message.dims()) {
    check(dim > 0, origin, ": model_warmup '", out.name, "': dims of '", name, "' must be positive, got ", dim);
    input.dims.push_back(dim);
  }
  using Source = ModelConfig::Warmup::Source;
  switch (message.input_data_type_case()) {
    case inference::ModelWarmup::Input::kZeroData: input.source = Source::kZeros; break;
    case inference::ModelWarmup::Input::kRandomData: input.source = Source::kRandom; break;
    case inference::ModelWarmup::Input::kInputDataFile:
      input.source = Source::kFile;
      input.file = message.input_data_file();
      break;
    default:
      fail(ErrorCode::kInvalidArgument, origin, ": model_warmup '", out.name, "': input '", name,
           "' needs zero_data, random_data or input_data_file");
  }
  out.inputs.emplace(name, std::move(input));
}

void read_warmup(const inference::ModelWarmup& message, const std::string& origin, ModelConfig& out) {
  ModelConfig::Warmup warmup;
  warmup.name = message.name();
  check(message.count() <= kMaxWarmupRuns, origin, ": model_warmup '", warmup.name, "': count must be 0 to ",
        kMaxWarmupRuns, ", got ", message.count());
  warmup.count = std::max(1u, message.count());
  warmup.batch_size = std::max(1u, message.batch_size());
  const int64_t max_batch_size = std::max<int64_t>(1, out.max_batch_size);
  check(warmup.batch_size <= max_batch_size, origin, ": model_warmup '", warmup.name, "': batch_size must be 1 to ",
        max_batch_size, ", got ", warmup.batch_size);
  for (const auto& [name, input] : message.inputs()) read_warmup_input(name, input, origin, warmup);
  out.warmups.push_back(std::move(warmup));
}

QueuePolicyConfig to_queue_policy(const inference::ModelQueuePolicy& policy) {
  QueuePolicyConfig out;
  if (policy.timeout_action() == inference::ModelQueuePolicy::DELAY) {
    out.timeout_action = QueuePolicyConfig::TimeoutAction::kDelay;
  }
  out.default_timeout_us = policy.default_timeout_microseconds();
  out.allows_timeout_override = policy.allow_timeout_override();
  out.max_queue_size = policy.max_queue_size();
  return out;
}

DynamicBatchingConfig to_dynamic_batching(const inference::ModelDynamicBatching& batching, int64_t max_batch_size,
                                          const std::string& origin) {
  DynamicBatchingConfig out;
  for (const int64_t size : batching.preferred_batch_size()) {
    check(size >= 1 && size <= max_batch_size, origin, ": dynamic_batching.preferred_batch_size must be 1 to ",
          max_batch_size, ", got ", size);
    out.preferred_batch_sizes.push_back(size);
  }
  out.max_queue_delay_us = batching.max_queue_delay_microseconds();
  out.preserves_ordering = batching.preserve_ordering();
  out.priority_levels = batching.priority_levels();
  out.default_priority_level = batching.default_priority_level();
  out.default_queue_policy = to_queue_policy(batching.default_queue_policy());
  for (const auto& [level, policy] : batching.priority_queue_policy()) {
    out.priority_queue_policies[level] = to_queue_policy(policy);
  }
  return out;
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, ',');) {
    const size_t begin = part.find_first_not_of(' ');
    if (begin != std::string::npos) parts.push_back(part.substr(begin, part.find_last_not_of(' ') - begin + 1));
  }
  return parts;
}

// The `parameters` of config.pbtxt that mean something here; others belong to other servers.
class ParameterReader {
 public:
  ParameterReader(const std::string& origin, ModelConfig& out) : origin_(origin), out_(out) {}

  void read(const std::string& key, const std::string& value) const {
    EngineOverrides& engine = out_.engine;
    if (key == "precision") {
      engine.precision = one_of(key, value, {"f32", "bf16", "int8"});
    } else if (key == "plan_cache_size") {
      engine.plan_cache_size = number(key, value, kMaxPlans);
    } else if (key == "jit_disable") {
      engine.disabled_passes = split(value);
    } else if (key == "jit_limit") {
      engine.pass_limits = split(value);
    } else if (key == "DISABLE_OPTIMIZED_EXECUTION") {
      engine.optimize = one_of(key, value, {"true", "false"}) == "false";
    } else if (key == "INTRA_OP_THREAD_COUNT") {
      out_.threads = number(key, value, kMaxThreads);
    }
  }

 private:
  std::string one_of(const std::string& key, const std::string& value, std::vector<std::string> choices) const {
    std::string list;
    for (size_t i = 0; i < choices.size(); ++i) {
      if (choices[i] == value) return value;
      list += concat(i == 0 ? "" : i + 1 == choices.size() ? " or " : ", ", choices[i]);
    }
    fail(ErrorCode::kInvalidArgument, origin_, ": parameters '", key, "' must be ", list, ", got '", value, "'");
  }

  int number(const std::string& key, const std::string& value, int most) const {
    int number = -1;
    const char* end = value.data() + value.size();
    const auto [stop, error] = std::from_chars(value.data(), end, number);
    check(error == std::errc() && stop == end && number >= 0 && number <= most, origin_, ": parameters '", key,
          "' must be 0 to ", most, ", got '", value, "'");
    return number;
  }

  const std::string& origin_;
  ModelConfig& out_;
};

}  // namespace

ModelConfig parse_model_config(const std::string& text, const std::string& origin) {
  Collector collector(origin);
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&collector);
  parser.AllowUnknownField(true);
  parser.AllowUnknownExtension(true);
  parser.SetRecursionLimit(kMaxNesting);
  inference::ModelConfig message;
  if (!parser.ParseFromString(text, &message)) {
    fail(ErrorCode::kInvalidArgument, collector.error.empty() ? concat(origin, ": malformed") : collector.error);
  }

  ModelConfig out;
  out.name = message.name();
  out.platform = message.platform();
  out.backend = message.backend();
  out.default_model_filename = message.default_model_filename();
  read_version_policy(message.version_policy(), out);
  check(message.max_batch_size() >= 0, origin, ": max_batch_size must not be negative");
  out.max_batch_size = message.max_batch_size();
  for (const auto& input : message.input()) {
    out.inputs.push_back(to_tensor_config(input, origin));
    out.inputs.back().is_optional = input.optional();
  }
  for (const auto& output : message.output()) out.outputs.push_back(to_tensor_config(output, origin));
  for (const auto& group : message.instance_group()) {
    check(group.count() >= 0 && group.count() <= kMaxWorkers, origin, ": instance_group.count must be 0 to ",
          kMaxWorkers, ", got ", group.count());
    out.workers += group.count() == 0 ? 1 : group.count();
    check(out.workers <= kMaxWorkers, origin, ": more than ", kMaxWorkers, " instances");
  }
  if (message.has_dynamic_batching()) {
    out.dynamic_batching = to_dynamic_batching(message.dynamic_batching(), out.max_batch_size, origin);
  }
  for (const auto& warmup : message.model_warmup()) read_warmup(warmup, origin, out);
  out.is_decoupled = message.model_transaction_policy().decoupled();
  for (const auto& [name, value] : message.parameters()) out.parameters[name] = value.string_value();
  const ParameterReader reader(origin, out);
  for (const auto& [name, value] : out.parameters) reader.read(name, value);
  return out;
}

}  // namespace tensord::server
