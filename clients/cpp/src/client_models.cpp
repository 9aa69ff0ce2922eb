#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <charconv>
#include <thread>

#include "client_impl.h"
#include "tensord/client/error.h"

namespace tensord::client {
namespace {

using Stub = inference::GRPCInferenceService::Stub;

// Polling interval of wait_until_ready().
constexpr auto kReadyInterval = std::chrono::milliseconds(20);

std::vector<TensorMetadata> tensors_of(
    const google::protobuf::RepeatedPtrField<inference::ModelMetadataResponse::TensorMetadata>& tensors) {
  std::vector<TensorMetadata> out;
  for (const auto& tensor : tensors) {
    out.push_back({tensor.name(), tensor.datatype(), {tensor.shape().begin(), tensor.shape().end()}});
  }
  return out;
}

ModelStatistics::Duration duration_of(const inference::StatisticDuration& duration) {
  return {duration.count(), duration.ns()};
}

ModelStatistics statistics_of(const inference::ModelStatistics& from) {
  const inference::InferStatistics& times = from.inference_stats();
  return {.name = from.name(),
          .version = from.version(),
          .last_inference_ms = from.last_inference(),
          .inference_count = from.inference_count(),
          .execution_count = from.execution_count(),
          .success = duration_of(times.success()),
          .fail = duration_of(times.fail()),
          .queue = duration_of(times.queue()),
          .compute_input = duration_of(times.compute_input()),
          .compute_infer = duration_of(times.compute_infer()),
          .compute_output = duration_of(times.compute_output()),
          .cache_hit = duration_of(times.cache_hit()),
          .cache_miss = duration_of(times.cache_miss())};
}

// Returns false instead of throwing if the server is unreachable.
template <class Call>
bool answers_true(Call call) {
  try {
    return call();
  } catch (const Error& error) {
    if (error.code() == StatusCode::kUnavailable || error.code() == StatusCode::kDeadlineExceeded) return false;
    throw;
  }
}

void set_log_setting(const std::string& text, inference::LogSettingsRequest::SettingValue& value) {
  uint32_t number = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number);
  if (text == "true" || text == "false") {
    value.set_bool_param(text == "true");
  } else if (error == std::errc() && at == end) {
    value.set_uint32_param(number);
  } else {
    value.set_string_param(text);
  }
}

}  // namespace

bool Client::is_live(const CallOptions& options) {
  return answers_true([&] { return impl_->call(&Stub::ServerLive, inference::ServerLiveRequest(), options).live(); });
}

bool Client::is_ready(const CallOptions& options) {
  return answers_true(
      [&] { return impl_->call(&Stub::ServerReady, inference::ServerReadyRequest(), options).ready(); });
}

bool Client::is_model_ready(const std::string& model, const std::string& version, const CallOptions& options) {
  inference::ModelReadyRequest request;
  request.set_name(model);
  request.set_version(version);
  return answers_true([&] { return impl_->call(&Stub::ModelReady, request, options).ready(); });
}

void Client::wait_until_ready(std::chrono::milliseconds timeout) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (left.count() <= 0) throw DeadlineExceededError("the server was not ready in time");
    if (is_ready({.timeout = left, .headers = {}})) return;
    std::this_thread::sleep_for(std::min<std::chrono::milliseconds>(kReadyInterval, left));
  }
}

ServerMetadata Client::server_metadata(const CallOptions& options) {
  const auto response = impl_->call(&Stub::ServerMetadata, inference::ServerMetadataRequest(), options);
  return {response.name(), response.version(), {response.extensions().begin(), response.extensions().end()}};
}

ModelMetadata Client::model_metadata(const std::string& model, const std::string& version, const CallOptions& options) {
  inference::ModelMetadataRequest request;
  request.set_name(model);
  request.set_version(version);
  const auto response = impl_->call(&Stub::ModelMetadata, request, options);
  return {.name = response.name(),
          .versions = {response.versions().begin(), response.versions().end()},
          .platform = response.platform(),
          .inputs = tensors_of(response.inputs()),
          .outputs = tensors_of(response.outputs())};
}

std::string Client::model_config_json(const std::string& model, const std::string& version,
                                      const CallOptions& options) {
  inference::ModelConfigRequest request;
  request.set_name(model);
  request.set_version(version);
  const auto response = impl_->call(&Stub::ModelConfig, request, options);
  google::protobuf::util::JsonPrintOptions print;
  print.preserve_proto_field_names = true;
  std::string json;
  const auto status = google::protobuf::util::MessageToJsonString(response.config(), &json, print);
  if (!status.ok()) throw_error(StatusCode::kDataLoss, "the model's configuration: " + status.ToString());
  return json;
}

std::vector<ModelStatistics> Client::statistics(const std::string& model, const std::string& version,
                                                const CallOptions& options) {
  inference::ModelStatisticsRequest request;
  request.set_name(model);
  request.set_version(version);
  std::vector<ModelStatistics> out;
  const auto response = impl_->call(&Stub::ModelStatistics, request, options);
  for (const auto& of_model : response.model_stats()) {
    out.push_back(statistics_of(of_model));
  }
  return out;
}

std::vector<ModelState> Client::models(bool only_ready, const CallOptions& options) {
  inference::RepositoryIndexRequest request;
  request.set_ready(only_ready);
  std::vector<ModelState> out;
  const auto response = impl_->call(&Stub::RepositoryIndex, request, options);
  for (const auto& model : response.models()) {
    out.push_back({model.name(), model.version(), model.state(), model.reason()});
  }
  return out;
}

void Client::load_model(const std::string& model, const LoadOptions& load, const CallOptions& options) {
  inference::RepositoryModelLoadRequest request;
  request.set_model_name(model);
  auto& parameters = *request.mutable_parameters();
  if (!load.config.empty()) parameters["config"].set_string_param(load.config);
  for (const auto& [path, bytes] : load.files) parameters["file:" + path].set_bytes_param(bytes);
  for (const auto& [name, value] : load.parameters) parameters[name].set_string_param(value);
  impl_->call(&Stub::RepositoryModelLoad, request, options);
  // The reloaded model may have different inputs.
  const std::lock_guard lock(impl_->mutex);
  impl_->input_names.erase(model);
}

void Client::unload_model(const std::string& model, bool with_dependents, const CallOptions& options) {
  inference::RepositoryModelUnloadRequest request;
  request.set_model_name(model);
  if (with_dependents) (*request.mutable_parameters())["unload_dependents"].set_bool_param(true);
  impl_->call(&Stub::RepositoryModelUnload, request, options);
}

Settings Client::trace_settings(const Settings& changes, const std::string& model, const CallOptions& options) {
  inference::TraceSettingRequest request;
  request.set_model_name(model);
  for (const auto& [name, values] : changes) {
    auto& setting = (*request.mutable_settings())[name];
    for (const std::string& value : values) setting.add_value(value);
  }
  Settings out;
  const auto response = impl_->call(&Stub::TraceSetting, request, options);
  for (const auto& [name, values] : response.settings()) {
    out[name] = {values.value().begin(), values.value().end()};
  }
  return out;
}

Settings Client::log_settings(const Settings& changes, const CallOptions& options) {
  inference::LogSettingsRequest request;
  for (const auto& [name, values] : changes) {
    if (values.size() != 1) throw InvalidArgumentError("log setting '" + name + "' takes one value");
    set_log_setting(values[0], (*request.mutable_settings())[name]);
  }
  using Choice = inference::LogSettingsResponse::SettingValue::ParameterChoiceCase;
  Settings out;
  const auto response = impl_->call(&Stub::LogSettings, request, options);
  for (const auto& [name, value] : response.settings()) {
    switch (value.parameter_choice_case()) {
      case Choice::kBoolParam: out[name] = {value.bool_param() ? "true" : "false"}; break;
      case Choice::kUint32Param: out[name] = {std::to_string(value.uint32_param())}; break;
      default: out[name] = {value.string_param()};
    }
  }
  return out;
}

void Client::register_shared_memory(const std::string& name, const std::string& key, size_t size_bytes, size_t offset,
                                    const CallOptions& options) {
  inference::SystemSharedMemoryRegisterRequest request;
  request.set_name(name);
  request.set_key(key);
  request.set_offset(offset);
  request.set_byte_size(size_bytes);
  impl_->call(&Stub::SystemSharedMemoryRegister, request, options);
}

void Client::unregister_shared_memory(const std::string& name, const CallOptions& options) {
  inference::SystemSharedMemoryUnregisterRequest request;
  request.set_name(name);
  impl_->call(&Stub::SystemSharedMemoryUnregister, request, options);
}

std::vector<SharedMemoryStatus> Client::shared_memory(const CallOptions& options) {
  const inference::SystemSharedMemoryStatusRequest request;
  std::vector<SharedMemoryStatus> out;
  const auto response = impl_->call(&Stub::SystemSharedMemoryStatus, request, options);
  for (const auto& [name, region] : response.regions()) {
    out.push_back({name, region.key(), region.offset(), region.byte_size()});
  }
  return out;
}

}  // namespace tensord::client
