#include "protos/model_config_text.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include "core/base/error.h"
#include "core/base/log.h"
#include "protos/model_config.pb.h"

namespace tensord::server {
namespace {

constexpr int kMaxNesting = 32;
constexpr int kMaxWorkers = 256;

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
  const auto& queue = message.dynamic_batching().default_queue_policy();
  out.max_queue_size = queue.max_queue_size();
  out.default_timeout_us = queue.default_timeout_microseconds();
  out.is_decoupled = message.model_transaction_policy().decoupled();
  for (const auto& [name, value] : message.parameters()) out.parameters[name] = value.string_value();
  return out;
}

}  // namespace tensord::server
