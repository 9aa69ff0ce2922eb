#include "server/transport/calls/repository_calls.h"

#include "core/base/error.h"
#include "server/transport/grpc/unary_call.h"

namespace tensord::server {
namespace {

using namespace inference;  // the protocol's messages only

constexpr const char* kConfig = "config";
constexpr const char* kFilePrefix = "file:";
constexpr const char* kLabels = "version_labels";
constexpr const char* kDependents = "unload_dependents";
// An unload that takes longer continues, but the call reports that the memory is not free yet.
constexpr auto kUnloadTimeout = std::chrono::seconds(60);

void check_repository(const std::string& repository_name) {
  if (!repository_name.empty()) {
    fail(ErrorCode::kUnimplemented, "'repository_name' specification is not supported");
  }
}

}  // namespace

void list_models(const ServerState& state, const RepositoryIndexRequest& request, RepositoryIndexResponse& response) {
  check_repository(request.repository_name());
  for (const Repository::IndexEntry& entry : state.repository.index()) {
    if (request.ready() && entry.state != ModelState::kReady) continue;
    RepositoryIndexResponse::ModelIndex* model = response.add_models();
    model->set_name(entry.name);
    if (!entry.state) continue;
    model->set_version(entry.version);
    model->set_state(to_string(*entry.state));
    model->set_reason(entry.reason);
  }
}

namespace {

const std::string& text_of(const std::string& key, const ModelRepositoryParameter& value) {
  check(value.parameter_choice_case() == ModelRepositoryParameter::kStringParam,
        "invalid value type for load parameter '", key, "', expected string_param.");
  return value.string_param();
}

}  // namespace

void load_model(ServerState& state, RepositoryModelLoadRequest& request) {
  check_repository(request.repository_name());
  Repository::LoadRequest wanted{.name = request.model_name(), .config = {}, .files = {}};
  std::string labels;
  bool is_load = request.parameters().empty();
  for (auto& [key, value] : *request.mutable_parameters()) {
    if (key == kLabels) {
      labels = text_of(key, value);
      continue;
    }
    is_load = true;
    if (key == kConfig) {
      wanted.config = text_of(key, value);
    } else if (key.starts_with(kFilePrefix)) {
      check(value.parameter_choice_case() == ModelRepositoryParameter::kBytesParam, "File parameter '", key,
            "' must have bytes type for its value");
      wanted.files[key.substr(std::string_view(kFilePrefix).size())] = std::move(*value.mutable_bytes_param());
    } else {
      fail(ErrorCode::kInvalidArgument, "unrecognized load parameter '", key, "'");
    }
  }
  request.clear_parameters();
  if (is_load) state.repository.load(wanted);
  if (!labels.empty() || !is_load) state.repository.set_labels(wanted.name, labels);
}

void unload_model(ServerState& state, const RepositoryModelUnloadRequest& request) {
  check_repository(request.repository_name());
  check(!request.model_name().empty(), "an unload names no model");
  bool with_dependents = false;
  for (const auto& [key, value] : request.parameters()) {
    check(key == kDependents, "unrecognized unload parameter '", key, "'");
    check(value.parameter_choice_case() == ModelRepositoryParameter::kBoolParam,
          "invalid value type for unload parameter '", key, "', expected bool_param.");
    with_dependents = value.bool_param();
  }
  state.repository.wait_until_gone(state.repository.unload_for_client(request.model_name(), with_dependents),
                                   kUnloadTimeout);
}

void wait_repository_calls(ServerState& state, InferenceService& service, RepositoryThreads& threads, CallQueue queue) {
  wait_slow_unary<RepositoryIndexRequest, RepositoryIndexResponse>(
      queue, CallGroup::kModelRepository, threads.index, TENSORD_START(service, RepositoryIndex),
      [&state](const auto& request, auto& response) { list_models(state, request, response); });
  wait_slow_unary<RepositoryModelLoadRequest, RepositoryModelLoadResponse>(
      queue, CallGroup::kModelRepository, threads.loads, TENSORD_START(service, RepositoryModelLoad),
      [&state](auto& request, auto&) { load_model(state, request); });
  wait_slow_unary<RepositoryModelUnloadRequest, RepositoryModelUnloadResponse>(
      queue, CallGroup::kModelRepository, threads.unloads, TENSORD_START(service, RepositoryModelUnload),
      [&state](const auto& request, auto&) { unload_model(state, request); });
}

}  // namespace tensord::server
