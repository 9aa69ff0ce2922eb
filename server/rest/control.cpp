#include "server/rest/control.h"

#include <absl/strings/escaping.h>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "protos/inference.pb.h"
#include "server/executor/requests/status.h"
#include "server/rest/input_limits.h"
#include "server/rest/json_reader.h"
#include "server/rest/message_json.h"
#include "server/rest/openapi.h"
#include "server/rest/rest_status.h"
#include "server/transport/calls/control_calls.h"
#include "server/transport/calls/model_config_message.h"
#include "server/transport/calls/repository_calls.h"
#include "server/transport/calls/settings_calls.h"
#include "server/transport/calls/statistics_calls.h"

namespace tensord::server {
namespace {

using namespace inference;  // the messages, nothing else
using Json = nlohmann::ordered_json;

constexpr int kMaxRequestDepth = 100;

HttpAnswer to_answer(const Json& json) {
  return json_answer(json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

// An object; of an empty body an empty one.
Json parse_object(std::string_view body) {
  if (body.empty()) return Json::object();
  const auto callback = [](int depth, Json::parse_event_t, Json&) {
    check(depth <= kMaxRequestDepth,
          "failed to parse the request JSON buffer: JSON nesting depth exceeds maximum allowed limit (100)");
    return true;
  };
  Json json;
  try {
    json = Json::parse(body, callback);
  } catch (const Json::parse_error& error) {
    fail(ErrorCode::kInvalidArgument, "failed to parse the request JSON buffer: Invalid value. at ",
         error.byte == 0 ? 0 : error.byte - 1);
  } catch (const Json::out_of_range&) {
    fail(ErrorCode::kInvalidArgument,
         "failed to parse the request JSON buffer: Number too big to be stored in double.");
  }
  check(json.is_object(), "failed to parse the request JSON buffer: an object is expected at 0");
  return json;
}

const Json* find_key(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found == json.end() ? nullptr : &*found;
}

uint64_t number_of(const Json& json, const char* name, bool is_needed) {
  const Json* value = find_key(json, name);
  if (!value && !is_needed) return 0;
  check(value && value->is_number_unsigned(), "Unable to parse '", name, "'");
  return value->get<uint64_t>();
}

void check_repository(const RestTarget& target) {
  if (target.names_repository) {
    fail(ErrorCode::kUnimplemented, "'repository_name' specification is not supported");
  }
}

HttpAnswer answer_index(const ServerState& state, const RestTarget& target, std::string_view body) {
  check_repository(target);
  RepositoryIndexRequest request;
  if (!body.empty()) {
    JsonReader reader(body);
    reader.object([&](const std::string& key) {
      if (key != "ready") return void(reader.skip());
      check(reader.peek() == JsonReader::Kind::kBool, "Invalid value for 'ready': expected a boolean");
      request.set_ready(reader.boolean());
    });
    reader.finish();
  }
  RepositoryIndexResponse response;
  list_models(state, request, response);
  Json models = Json::array();
  for (const auto& model : response.models()) {
    Json& entry = models.emplace_back(Json{{"name", model.name()}});
    if (!model.version().empty()) entry["version"] = model.version();
    if (!model.state().empty()) entry["state"] = model.state();
    if (!model.reason().empty()) entry["reason"] = model.reason();
  }
  return to_answer(models);
}

HttpAnswer load(ServerState& state, const RestTarget& target, std::string_view body) {
  check_repository(target);
  const Json json = parse_object(body);
  RepositoryModelLoadRequest request;
  request.set_model_name(target.name);
  if (const Json* parameters = find_key(json, "parameters")) {
    check(parameters->is_object(), "Unable to parse 'parameters'");
    for (const auto& [key, value] : parameters->items()) {
      check(value.is_string(), "Unable to parse '", key, "': its value is no string");
      const std::string& text = value.get_ref<const std::string&>();
      auto& parameter = (*request.mutable_parameters())[key];
      if (!key.starts_with("file:")) {
        parameter.set_string_param(text);
        continue;
      }
      std::string bytes;
      check(absl::Base64Unescape(text, &bytes), "failed to decode base64 of parameter '", key, "'");
      parameter.set_bytes_param(std::move(bytes));
    }
  }
  load_model(state, request);
  return {.type = {}};
}

HttpAnswer unload(ServerState& state, const RestTarget& target, std::string_view body) {
  check_repository(target);
  const Json json = parse_object(body);
  RepositoryModelUnloadRequest request;
  request.set_model_name(target.name);
  if (const Json* parameters = find_key(json, "parameters")) {
    check(parameters->is_object(), "Unable to parse 'parameters'");
    for (const auto& [key, value] : parameters->items()) {
      check(value.is_boolean(), "Unable to parse '", key, "': its value is no boolean");
      (*request.mutable_parameters())[key].set_bool_param(value.get<bool>());
    }
  }
  unload_model(state, request);
  return {.type = {}};
}

template <class Region>
void forget_regions(SharedRegions& regions, const std::string& name) {
  if (name.empty()) {
    regions.remove_all<Region>();
  } else {
    regions.remove<Region>(name);
  }
}

HttpAnswer system_status(const SharedRegions& regions, const std::string& name) {
  Json list = Json::array();
  for (const SystemRegion::Place& place : regions.list(name)) {
    list.push_back(
        {{"name", place.name}, {"key", place.key}, {"offset", place.offset}, {"byte_size", place.size_bytes}});
  }
  return to_answer(list);
}

HttpAnswer cuda_status(const SharedRegions& regions, const std::string& name) {
  Json list = Json::array();
  for (const CudaRegion::Place& place : regions.list<CudaRegion>(name)) {
    list.push_back({{"name", place.name}, {"device_id", place.device_id}, {"byte_size", place.size_bytes}});
  }
  return to_answer(list);
}

void register_system(SharedRegions& regions, const std::string& name, const Json& json) {
  const Json* key = find_key(json, "key");
  check(key && key->is_string(), "Unable to parse 'key'");
  regions.add({.name = name,
               .key = key->get<std::string>(),
               .offset = number_of(json, "offset", /*is_needed=*/false),
               .size_bytes = number_of(json, "byte_size", /*is_needed=*/true)});
}

void register_cuda(SharedRegions& regions, const std::string& name, const Json& json) {
  const Json* handle = find_key(json, "raw_handle");
  const Json* base64 = handle && handle->is_object() ? find_key(*handle, "b64") : nullptr;
  check(base64 && base64->is_string(), "Unable to parse 'raw_handle'");
  std::string bytes;
  check(absl::Base64Unescape(base64->get_ref<const std::string&>(), &bytes), "failed to decode 'raw_handle'");
  regions.add<CudaRegion>({.name = name,
                           .handle = std::move(bytes),
                           .device_id = static_cast<int64_t>(number_of(json, "device_id", /*is_needed=*/true)),
                           .size_bytes = number_of(json, "byte_size", /*is_needed=*/true)});
}

std::string setting_text(const std::string& name, const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  check(value.is_number_integer() || value.is_boolean(), "Unable to parse '", name, "'");
  return value.dump();
}

HttpAnswer trace_setting(ServerState& state, const RestTarget& target, std::string_view body) {
  TraceSettingRequest request;
  request.set_model_name(target.name);
  const Json changes = parse_object(body);
  for (const auto& [name, value] : changes.items()) {
    auto& setting = (*request.mutable_settings())[name];  // without values: it is cleared
    if (value.is_array()) {
      for (const Json& element : value) setting.add_value(setting_text(name, element));
    } else if (!value.is_null()) {
      setting.add_value(setting_text(name, value));
    }
  }
  TraceSettingResponse response;
  answer_trace_setting(state, request, response);
  Json json = Json::object();
  for (const auto& [name, value] : response.settings()) {
    if (name == "trace_level") {
      json[name] = std::vector<std::string>(value.value().begin(), value.value().end());
    } else {
      json[name] = value.value().empty() ? "" : value.value(0);
    }
  }
  return to_answer(json);
}

HttpAnswer log_settings(std::string_view body) {
  LogSettingsRequest request;
  const Json changes = parse_object(body);
  for (const auto& [name, value] : changes.items()) {
    if (value.is_null()) continue;
    auto& setting = (*request.mutable_settings())[name];
    if (value.is_boolean()) {
      setting.set_bool_param(value.get<bool>());
    } else if (value.is_number_unsigned() && value.get<uint64_t>() <= UINT32_MAX) {
      setting.set_uint32_param(value.get<uint32_t>());
    } else {
      check(value.is_string(), "Unable to parse '", name, "'");
      setting.set_string_param(value.get<std::string>());
    }
  }
  LogSettingsResponse response;
  answer_log_settings(request, response);
  Json json = Json::object();
  for (const auto& [name, value] : response.settings()) {
    if (value.has_bool_param()) json[name] = value.bool_param();
    if (value.has_uint32_param()) json[name] = value.uint32_param();
    if (value.has_string_param()) json[name] = value.string_param();
  }
  return to_answer(json);
}

HttpAnswer describe_target(const ServerState& state, const RestTarget& target) {
  switch (target.call) {
    case RestCall::kServerMetadata: {
      ServerMetadataResponse response;
      describe_server(state, response);
      return to_answer(to_json(response));
    }
    case RestCall::kModelMetadata: {
      ModelMetadataRequest request;
      request.set_name(target.name);
      request.set_version(target.version);
      ModelMetadataResponse response;
      describe_model(state, request, response);
      Json json = to_json(response);
      if (response.properties().empty()) json.erase("properties");  // KServe's alone
      return to_answer(json);
    }
    case RestCall::kModelConfig:
      return to_answer(to_json(to_model_config(*state.repository.find(target.name, target.version))));
    default: {
      ModelStatisticsRequest request;
      request.set_name(target.name);
      request.set_version(target.version);
      ModelStatisticsResponse response;
      answer_statistics(state, request, response);
      return to_answer(to_json(response));
    }
  }
}

HttpAnswer route(ServerState& state, const RestTarget& target, bool is_post, std::string_view body) {
  SharedRegions& regions = state.shared_memory;
  switch (target.call) {
    case RestCall::kIndex: return answer_index(state, target, body);
    case RestCall::kLoad: return load(state, target, body);
    case RestCall::kUnload: return unload(state, target, body);
    case RestCall::kSystemMemoryStatus: return system_status(regions, target.name);
    case RestCall::kCudaMemoryStatus: return cuda_status(regions, target.name);
    case RestCall::kSystemMemoryRegister: register_system(regions, target.name, parse_object(body)); break;
    case RestCall::kCudaMemoryRegister: register_cuda(regions, target.name, parse_object(body)); break;
    case RestCall::kSystemMemoryUnregister: forget_regions<SystemRegion>(regions, target.name); break;
    case RestCall::kCudaMemoryUnregister: forget_regions<CudaRegion>(regions, target.name); break;
    case RestCall::kTraceSetting: return trace_setting(state, target, is_post ? body : std::string_view());
    case RestCall::kLogSettings: return log_settings(is_post ? body : std::string_view());
    case RestCall::kOpenApi: return json_answer(kOpenApi);
    default: return describe_target(state, target);
  }
  return {.type = {}};
}

}  // namespace

HttpAnswer answer_control(ServerState& state, const RestTarget& target, bool is_post, std::string_view body) {
  try {
    check_json_bytes(body.size(), state.http_max_input_bytes);
    return route(state, target, is_post, body);
  } catch (...) {
    return error_answer(current_exception_status());
  }
}

}  // namespace tensord::server
