#include "server/transport/calls/control_calls.h"

#include "server/transport/grpc/unary_call.h"

namespace tensord::server {
namespace {

using namespace inference;  // the protocol's messages only

// Extensions of Triton's protocol that are always available.
constexpr const char* kExtensions[] = {"classification",
                                       "sequence",
                                       "model_repository",
                                       "model_repository(unload_dependents)",
                                       "schedule_policy",
                                       "model_configuration",
                                       "binary_tensor_data",
                                       "parameters",
                                       "statistics",
                                       "trace",
                                       "logging"};

void add_metadata(const TensorSpec& spec, ModelMetadataResponse::TensorMetadata* out) {
  out->set_name(spec.name);
  if (spec.datatype) out->set_datatype(name_of(*spec.datatype));
  if (!spec.shape) {
    out->add_shape(-1);
  } else {
    for (const int64_t size : *spec.shape) out->add_shape(size);
  }
}

}  // namespace

void describe_model(const ServerState& state, const ModelMetadataRequest& request, ModelMetadataResponse& response) {
  const auto model = state.repository.find(request.name(), request.version());
  response.set_name(model->name());
  for (const std::string& version : state.repository.ready_versions(model->name())) response.add_versions(version);
  const Signature signature = model->described();
  response.set_platform(signature.platform);
  for (const TensorSpec& spec : signature.inputs) add_metadata(spec, response.add_inputs());
  for (const TensorSpec& spec : signature.outputs) add_metadata(spec, response.add_outputs());
}

void describe_server(const ServerState& state, ServerMetadataResponse& response) {
  response.set_name(state.id);
  response.set_version(state.version);
  for (const char* extension : kExtensions) response.add_extensions(extension);
  if (state.shared_memory.is_enabled()) {
    response.add_extensions("system_shared_memory");
    if (CudaRegion::is_supported()) response.add_extensions("cuda_shared_memory");
  }
  if (state.training) response.add_extensions("training");
}

void wait_control_calls(ServerState& state, InferenceService& service, CallQueue queue) {
  wait_unary<ServerLiveRequest, ServerLiveResponse>(queue, CallGroup::kHealth, TENSORD_START(service, ServerLive),
                                                    [](const auto&, auto& response) { response.set_live(true); });
  wait_unary<ServerReadyRequest, ServerReadyResponse>(
      queue, CallGroup::kHealth, TENSORD_START(service, ServerReady),
      [&state](const auto&, auto& response) { response.set_ready(state.is_ready()); });
  wait_unary<ModelReadyRequest, ModelReadyResponse>(
      queue, CallGroup::kHealth, TENSORD_START(service, ModelReady),
      // Never loads a model: the call needs no token, and a load could evict another model.
      [&state](const auto& request, auto& response) {
        response.set_ready(!state.is_leaving && state.repository.is_ready(request.name(), request.version()));
      });
  wait_unary<ServerMetadataRequest, ServerMetadataResponse>(
      queue, CallGroup::kMetadata, TENSORD_START(service, ServerMetadata),
      [&state](const auto&, auto& response) { describe_server(state, response); });
  wait_unary<ModelMetadataRequest, ModelMetadataResponse>(
      queue, CallGroup::kMetadata, TENSORD_START(service, ModelMetadata),
      on_demand(state.repository,
                [&state](const auto& request, auto& response) { describe_model(state, request, response); }));
}

}  // namespace tensord::server
