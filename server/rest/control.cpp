#include "server/rest/control.h"

#include <absl/strings/escaping.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/utf8.h"
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
#include "server/transport/infer/message.h"

namespace tensord::server {
namespace {

using namespace inference;  // the protocol's messages only
using Json = nlohmann::ordered_json;

// Maximum number of members in the body of a load, an unload or a settings call. A load may carry that many files.
constexpr size_t kMaxMembers = 1024;

HttpAnswer to_answer(const Json& json) {
  return json_answer(json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

// Streaming access to the JSON body of a call. Only the members that a call asks for are kept.
struct ControlBody {
  std::string_view json;
  const CallCharge& charge;

  // Calls `member(reader, key)` for each member of the object; `member` must consume the value. An empty body has no
  // members.
  template <class Member>
  void object(Member member) const {
    if (json.empty()) return;
    JsonReader reader(json, &charge);
    reader.object([&](const std::string& key) { member(reader, key); });
    reader.finish();
  }

  // Does the same for each entry of the member "parameters", and bounds their number.
  template <class Parameter>
  void parameters(Parameter parameter) const {
    object([&](JsonReader& reader, const std::string& key) {
      if (key != "parameters") return void(reader.skip());
      check(reader.peek() == JsonReader::Kind::kObject, "Unable to parse 'parameters'");
      reader.object([&, count = size_t{0}](const std::string& name) mutable {
        check(++count <= kMaxMembers, "request has more than ", kMaxMembers, " parameters");
        charge.grow(kParameterBytes + name.size());
        parameter(reader, name);
      });
    });
  }
};

uint64_t read_unsigned(JsonReader& reader, const std::string& name) {
  check(reader.peek() == JsonReader::Kind::kNumber, "Unable to parse '", name, "'");
  const std::string_view text = reader.number();
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  check(error == std::errc() && end == text.data() + text.size(), "Unable to parse '", name, "'");
  return number;
}

// Reads a string and checks that it is UTF-8.
std::string read_text(JsonReader& reader, const std::string& name) {
  check(reader.peek() == JsonReader::Kind::kString, "Unable to parse '", name, "'");
  std::string text = reader.string();
  if (!is_utf8(text)) reader.fail_here("Invalid encoding in string.");
  return text;
}

std::string read_base64(JsonReader& reader, const std::string& name, const CallCharge& charge,
                        const std::string& failure) {
  const std::string text = read_text(reader, name);
  charge.grow(text.size());
  std::string bytes;
  check(absl::Base64Unescape(text, &bytes), failure);
  return bytes;
}

void check_repository(const RestTarget& target) {
  if (target.names_repository) {
    fail(ErrorCode::kUnimplemented, "'repository_name' specification is not supported");
  }
}

HttpAnswer answer_index(const ServerState& state, const RestTarget& target, const ControlBody& body) {
  check_repository(target);
  RepositoryIndexRequest request;
  body.object([&](JsonReader& reader, const std::string& key) {
    if (key != "ready") return void(reader.skip());
    check(reader.peek() == JsonReader::Kind::kBool, "Invalid value for 'ready': expected a boolean");
    request.set_ready(reader.boolean());
  });
  RepositoryIndexResponse response;
  list_models(state, request, response);
  Json models = Json::array();
  for (const auto& model : response.models()) {
    Json& entry = models.emplace_back(Json{{"name", model.name()}});
    if (!model.version().empty()) entry["version"] = model.version();
    if (!model.state().empty()) entry["state"] = model.state();
    entry["reason"] = model.reason();  // clients' types require the field, even when it is empty
  }
  return to_answer(models);
}

HttpAnswer load(ServerState& state, const RestTarget& target, const ControlBody& body) {
  check_repository(target);
  RepositoryModelLoadRequest request;
  request.set_model_name(target.name);
  body.parameters([&](JsonReader& reader, const std::string& key) {
    check(reader.peek() == JsonReader::Kind::kString, "Unable to parse '", key, "': its value is not a string");
    auto& parameter = (*request.mutable_parameters())[key];
    if (key.starts_with("file:")) {
      parameter.set_bytes_param(
          read_base64(reader, key, body.charge, concat("failed to decode base64 of parameter '", key, "'")));
    } else {
      parameter.set_string_param(read_text(reader, key));
    }
  });
  body.charge.check_wanted();
  load_model(state, request);
  return {.type = {}};
}

HttpAnswer unload(ServerState& state, const RestTarget& target, const ControlBody& body) {
  check_repository(target);
  RepositoryModelUnloadRequest request;
  request.set_model_name(target.name);
  body.parameters([&](JsonReader& reader, const std::string& key) {
    check(reader.peek() == JsonReader::Kind::kBool, "Unable to parse '", key, "': its value is not a boolean");
    (*request.mutable_parameters())[key].set_bool_param(reader.boolean());
  });
  body.charge.check_wanted();
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

using ReadMember = std::function<void(JsonReader& reader, const std::string& name)>;

// Reads the listed members. Each of them is required unless it is in `there`.
void read_members(const ControlBody& body, const std::vector<std::pair<std::string, ReadMember>>& members,
                  std::set<std::string> there = {}) {
  body.object([&](JsonReader& reader, const std::string& name) {
    const auto found = std::ranges::find(members, name, &std::pair<std::string, ReadMember>::first);
    if (found == members.end()) return void(reader.skip());
    found->second(reader, name);
    there.insert(name);
  });
  for (const auto& [name, read] : members) check(there.contains(name), "Unable to parse '", name, "'");
}

ReadMember read_into(uint64_t& number) {
  return [&number](JsonReader& reader, const std::string& name) { number = read_unsigned(reader, name); };
}

void register_system(SharedRegions& regions, const std::string& name, const ControlBody& body) {
  SystemRegion::Place place{.name = name, .key = {}, .offset = 0, .size_bytes = 0};
  const ReadMember key = [&](JsonReader& reader, const std::string& member) { place.key = read_text(reader, member); };
  read_members(body, {{"key", key}, {"offset", read_into(place.offset)}, {"byte_size", read_into(place.size_bytes)}},
               {"offset"});
  regions.add(std::move(place));
}

void register_cuda(SharedRegions& regions, const std::string& name, const ControlBody& body) {
  std::optional<std::string> handle;
  uint64_t device = 0, size_bytes = 0;
  const ReadMember raw_handle = [&](JsonReader& reader, const std::string& member) {
    check(reader.peek() == JsonReader::Kind::kObject, "Unable to parse 'raw_handle'");
    reader.object([&](const std::string& key) {
      if (key != "b64") return void(reader.skip());
      handle = read_base64(reader, member, body.charge, "failed to decode 'raw_handle'");
    });
  };
  read_members(body,
               {{"raw_handle", raw_handle}, {"device_id", read_into(device)}, {"byte_size", read_into(size_bytes)}});
  check(handle.has_value(), "Unable to parse 'raw_handle'");
  regions.add<CudaRegion>({.name = name,
                           .handle = std::move(*handle),
                           .device_id = static_cast<int64_t>(device),
                           .size_bytes = size_bytes});
}

// Reads the value of a setting: a string, an integer or a boolean.
std::string setting_text(JsonReader& reader, const std::string& name) {
  switch (reader.peek()) {
    case JsonReader::Kind::kString: return read_text(reader, name);
    case JsonReader::Kind::kBool: return reader.boolean() ? "true" : "false";
    case JsonReader::Kind::kNumber: {
      const std::string_view text = reader.number();
      if (text.find_first_of(".eEnN") == std::string_view::npos) return std::string(text);
      break;
    }
    default: break;
  }
  fail(ErrorCode::kInvalidArgument, "Unable to parse '", name, "'");
}

// Calls `change(reader, name, count)` for each setting in the body.
template <class Change>
void read_settings(const ControlBody& body, const Change& change) {
  body.object([&, count = size_t{0}](JsonReader& reader, const std::string& name) mutable {
    check(++count <= kMaxMembers, "request has more than ", kMaxMembers, " settings");
    body.charge.grow(kParameterBytes + name.size());
    change(reader, name);
  });
}

HttpAnswer trace_setting(ServerState& state, const RestTarget& target, const ControlBody& body) {
  TraceSettingRequest request;
  request.set_model_name(target.name);
  read_settings(body, [&](JsonReader& reader, const std::string& name) {
    auto& setting = (*request.mutable_settings())[name];  // a setting without values is cleared
    setting.clear_value();
    if (reader.peek() == JsonReader::Kind::kArray) {
      reader.array([&] {
        check(static_cast<size_t>(setting.value_size()) < kMaxMembers, "setting '", name, "' has more than ",
              kMaxMembers, " values");
        body.charge.grow(kParameterBytes);
        setting.add_value(setting_text(reader, name));
      });
    } else if (reader.peek() == JsonReader::Kind::kNull) {
      reader.null();
    } else {
      setting.add_value(setting_text(reader, name));
    }
  });
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

HttpAnswer log_settings(const ControlBody& body) {
  LogSettingsRequest request;
  read_settings(body, [&](JsonReader& reader, const std::string& name) {
    switch (reader.peek()) {
      case JsonReader::Kind::kNull: return reader.null();
      case JsonReader::Kind::kBool: return (*request.mutable_settings())[name].set_bool_param(reader.boolean());
      case JsonReader::Kind::kNumber: {
        const uint64_t number = read_unsigned(reader, name);
        check(number <= UINT32_MAX, "Unable to parse '", name, "'");
        return (*request.mutable_settings())[name].set_uint32_param(static_cast<uint32_t>(number));
      }
      default: return (*request.mutable_settings())[name].set_string_param(read_text(reader, name));
    }
  });
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

Json model_metadata(const ServerState& state, const std::string& name, const std::string& version) {
  ModelMetadataRequest request;
  request.set_name(name);
  request.set_version(version);
  ModelMetadataResponse response;
  describe_model(state, request, response);
  Json json = to_json(response);
  if (response.properties().empty()) json.erase("properties");  // `properties` is a field of KServe, not of Triton
  return json;
}

Json model_config(const ServerState& state, const std::string& name, const std::string& version) {
  return to_json(to_model_config(*state.repository.find(name, version)));
}

HttpAnswer describe_target(const ServerState& state, const RestTarget& target) {
  switch (target.call) {
    case RestCall::kServerMetadata: {
      ServerMetadataResponse response;
      describe_server(state, response);
      return to_answer(to_json(response));
    }
    case RestCall::kModelMetadata: return to_answer(model_metadata(state, target.name, target.version));
    case RestCall::kModelConfig: return to_answer(model_config(state, target.name, target.version));
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

HttpAnswer route(ServerState& state, const RestTarget& target, bool is_post, const ControlBody& body) {
  SharedRegions& regions = state.shared_memory;
  const ControlBody changes{is_post ? body.json : std::string_view(), body.charge};
  switch (target.call) {
    case RestCall::kIndex: return answer_index(state, target, body);
    case RestCall::kLoad: return load(state, target, body);
    case RestCall::kUnload: return unload(state, target, body);
    case RestCall::kSystemMemoryStatus: return system_status(regions, target.name);
    case RestCall::kCudaMemoryStatus: return cuda_status(regions, target.name);
    case RestCall::kSystemMemoryRegister: register_system(regions, target.name, body); break;
    case RestCall::kCudaMemoryRegister: register_cuda(regions, target.name, body); break;
    case RestCall::kSystemMemoryUnregister: forget_regions<SystemRegion>(regions, target.name); break;
    case RestCall::kCudaMemoryUnregister: forget_regions<CudaRegion>(regions, target.name); break;
    case RestCall::kTraceSetting: return trace_setting(state, target, changes);
    case RestCall::kLogSettings: return log_settings(changes);
    case RestCall::kOpenApi: return json_answer(kOpenApi);
    default: return describe_target(state, target);
  }
  return {.type = {}};
}

}  // namespace

Json describe_served(const ServerState& state, const std::string& name, const std::string& version) {
  return {{"metadata", model_metadata(state, name, version)}, {"config", model_config(state, name, version)}};
}

HttpAnswer answer_control(ServerState& state, const RestTarget& target, bool is_post, std::string_view body,
                          const CallCharge& charge) {
  try {
    check_json_bytes(body.size(), state.http_max_input_bytes);
    return route(state, target, is_post, {body, charge});
  } catch (...) {
    return error_answer(current_exception_status());
  }
}

}  // namespace tensord::server
