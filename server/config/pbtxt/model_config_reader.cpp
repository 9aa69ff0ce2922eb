#include "server/config/pbtxt/model_config_reader.h"

#include <algorithm>
#include <set>

#include "core/base/error.h"

namespace tensord::server {
namespace {

constexpr int kMaxWorkers = 256;
constexpr int kMaxGpus = 128;
constexpr uint32_t kMaxWarmupRuns = 10000;
constexpr int kMaxRank = 64;

void check_dims(const google::protobuf::RepeatedField<int64_t>& dims, const std::string& what) {
  check(dims.size() <= kMaxRank, what, " has more than ", kMaxRank, " dims");
  for (const int64_t dim : dims) {
    check(dim >= -1 && dim != 0, "dims of ", what, " must be positive or -1, got ", dim);
  }
}

// Products of the static sizes between dynamic dimensions. A reshape may only regroup sizes between the same two
// dynamic dimensions.
std::vector<double> sizes_between_open(const std::vector<int64_t>& dims) {
  std::vector<double> sizes{1};
  for (const int64_t dim : dims) {
    if (dim < 0) {
      sizes.push_back(1);
    } else {
      sizes.back() *= static_cast<double>(dim);
    }
  }
  return sizes;
}

template <class Message>
void read_reshape(const Message& message, const std::string& origin, bool has_batch, ModelConfig::TensorConfig& out) {
  out.has_reshape = message.has_reshape();
  if (!out.has_reshape) return;
  check_dims(message.reshape().shape(), concat("reshape of '", out.name, "'"));
  out.reshape.assign(message.reshape().shape().begin(), message.reshape().shape().end());
  check(has_batch || !out.reshape.empty(), origin, ": reshape of '", out.name,
        "' must have a shape where max_batch_size is 0");
  check(!out.has_dims || sizes_between_open(out.dims) == sizes_between_open(out.reshape), origin,
        ": dims and reshape of '", out.name, "' must have the same number of elements, and -1 for the same of them");
}

template <class Message>
ModelConfig::TensorConfig to_tensor_config(const Message& message, const std::string& origin, bool has_batch) {
  ModelConfig::TensorConfig out;
  check(!message.name().empty(), origin, ": an input or output has no name");
  out.name = message.name();
  check(inference::DataType_IsValid(message.data_type()), origin, ": unknown data_type of '", out.name, "'");
  out.datatype = wire_datatype(message.data_type());
  out.has_dims = message.dims_size() > 0;
  check_dims(message.dims(), concat(origin, ": '", out.name, "'"));
  out.dims.assign(message.dims().begin(), message.dims().end());
  check(!message.is_shape_tensor(), origin, ": is_shape_tensor of '", out.name, "' is not supported");
  read_reshape(message, origin, has_batch, out);
  return out;
}

void read_tensors(const inference::ModelConfig& message, const std::string& origin, ModelConfig& out) {
  const bool has_batch = out.max_batch_size > 0;
  std::set<std::string> names;
  for (const auto& input : message.input()) {
    out.inputs.push_back(to_tensor_config(input, origin, has_batch));
    out.inputs.back().is_optional = input.optional();
    out.inputs.back().allows_ragged_batch = input.allow_ragged_batch();
    check(names.insert(input.name()).second, origin, ": input '", input.name(), "' appears twice");
    check(!input.allow_ragged_batch() || has_batch, origin, ": input '", input.name(),
          "': allow_ragged_batch needs a max_batch_size above 0");
  }
  names.clear();
  for (const auto& output : message.output()) {
    out.outputs.push_back(to_tensor_config(output, origin, has_batch));
    out.outputs.back().label_filename = output.label_filename();
    check(names.insert(output.name()).second, origin, ": output '", output.name(), "' appears twice");
  }
}

void read_version_policy(const inference::ModelVersionPolicy& policy, const std::string& origin, ModelConfig& out) {
  if (policy.has_all()) {
    out.version_policy = ModelConfig::VersionPolicy::kAll;
  } else if (policy.has_specific()) {
    out.version_policy = ModelConfig::VersionPolicy::kSpecific;
    out.specific_versions.assign(policy.specific().versions().begin(), policy.specific().versions().end());
    for (const int64_t version : out.specific_versions) {
      check(version > 0, origin, ": version_policy.specific.versions must be positive, got ", version);
    }
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
  check(message.dims_size() <= kMaxRank, origin, ": model_warmup '", out.name, "': input '", name,
        "' has too many dims");
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

RateLimiterConfig to_rate_limiter(const inference::ModelRateLimiter& message, const std::string& origin) {
  RateLimiterConfig out;
  out.priority = message.priority();
  for (const auto& resource : message.resources()) {
    check(!resource.name().empty(), origin, ": a resource of instance_group.rate_limiter has no name");
    check(resource.count() > 0, origin, ": instance_group.rate_limiter: resource '", resource.name(),
          "' needs a count above 0");
    out.resources.push_back({resource.name(), resource.global(), resource.count()});
  }
  return out;
}

bool is_same(const RateLimiterConfig& a, const RateLimiterConfig& b) {
  return a.priority == b.priority && std::equal(a.resources.begin(), a.resources.end(), b.resources.begin(),
                                                b.resources.end(), [](const auto& one, const auto& other) {
                                                  return one.name == other.name && one.is_global == other.is_global &&
                                                         one.count == other.count;
                                                });
}

InstanceGroupConfig to_instance_group(const inference::ModelInstanceGroup& message) {
  using Kind = InstanceGroupConfig::Kind;
  InstanceGroupConfig out;
  out.name = message.name();
  switch (message.kind()) {
    case inference::ModelInstanceGroup::KIND_GPU: out.kind = Kind::kGpu; break;
    case inference::ModelInstanceGroup::KIND_CPU: out.kind = Kind::kCpu; break;
    case inference::ModelInstanceGroup::KIND_MODEL: out.kind = Kind::kModel; break;
    default: break;
  }
  out.count = message.count() == 0 ? 1 : message.count();
  out.gpus.assign(message.gpus().begin(), message.gpus().end());
  out.host_policy = message.host_policy();
  return out;
}

void read_instance_groups(const inference::ModelConfig& message, const std::string& origin, ModelConfig& out) {
  bool is_first = true;
  for (const auto& group : message.instance_group()) {
    check(group.kind() != inference::ModelInstanceGroup::KIND_CPU || group.gpus_size() == 0, origin,
          ": instance group ", group.name(), " has kind KIND_CPU but specifies one or more GPUs");
    check(group.count() >= 0 && group.count() <= kMaxWorkers, origin, ": instance_group.count must be 0 to ",
          kMaxWorkers, ", got ", group.count());
    for (const int gpu : group.gpus())
      check(gpu >= 0 && gpu < kMaxGpus, origin, ": instance group ", group.name(), ": there is no GPU ", gpu);
    if (group.passive()) continue;
    out.instance_groups.push_back(to_instance_group(group));
    out.workers += out.instance_groups.back().count;
    check(out.workers <= kMaxWorkers, origin, ": more than ", kMaxWorkers, " instances");
    const RateLimiterConfig limits = to_rate_limiter(group.rate_limiter(), origin);
    check(is_first || is_same(limits, out.rate_limiter), origin,
          ": rate_limiter must be the same in every instance_group");
    out.rate_limiter = limits;
    is_first = false;
  }
  check(!is_first || message.instance_group_size() == 0, origin, ": every instance_group is passive");
}

void check_platform(const ModelConfig& config, const std::string& origin) {
  const auto refuse = [&](const char* field, const std::string& value) {
    fail(ErrorCode::kUnimplemented, origin, ": ", field, " '", value,
         "' is not supported; models are of PyTorch (pytorch_libtorch), of ONNX (onnxruntime_onnx) or ensembles");
  };
  const std::string& platform = config.platform;
  const bool is_known =
      platform.empty() || platform == "pytorch_libtorch" || platform == "onnxruntime_onnx" || platform == "ensemble";
  if (!is_known) refuse("platform", platform);
  const std::string& backend = config.backend;
  const bool is_backend = backend.empty() || backend == "pytorch" || backend == "onnxruntime" || backend == "ensemble";
  if (!is_backend) refuse("backend", backend);
}

}  // namespace

std::string wire_datatype(inference::DataType type) {
  if (type == inference::TYPE_INVALID) return "";
  if (type == inference::TYPE_STRING) return "BYTES";
  return inference::DataType_Name(type).substr(5);
}

inference::DataType config_datatype(const std::string& wire) {
  if (wire == "BYTES") return inference::TYPE_STRING;
  inference::DataType type = inference::TYPE_INVALID;
  return inference::DataType_Parse("TYPE_" + wire, &type) ? type : inference::TYPE_INVALID;
}

ModelConfig read_model_config(const inference::ModelConfig& message, const std::string& origin) {
  check_unused_fields(message, origin);
  ModelConfig out;
  out.name = message.name();
  out.platform = message.platform();
  out.backend = message.backend();
  check_platform(out, origin);
  out.default_model_filename = message.default_model_filename();
  read_version_policy(message.version_policy(), origin, out);
  check(message.max_batch_size() >= 0, origin, ": max_batch_size must not be negative");
  out.max_batch_size = message.max_batch_size();
  read_tensors(message, origin, out);
  read_instance_groups(message, origin, out);
  out.is_decoupled = message.model_transaction_policy().decoupled();
  out.has_response_cache = message.response_cache().enable();
  read_schedulers(message, origin, out);
  for (const auto& warmup : message.model_warmup()) read_warmup(warmup, origin, out);
  for (const auto& [name, value] : message.metric_tags()) out.metric_tags[name] = value;
  for (const auto& [name, value] : message.parameters()) out.parameters[name] = value.string_value();
  read_parameters(origin, out);
  out.source = message.SerializeAsString();
  inference::ModelConfig again;
  check(again.ParseFromString(out.source), origin, ": a text in it is not UTF-8");
  return out;
}

}  // namespace tensord::server
