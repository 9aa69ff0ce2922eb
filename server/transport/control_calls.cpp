#include "server/transport/control_calls.h"

#include "server/executor/status.h"
#include "server/transport/grpc_status.h"

namespace tensord::server {
namespace {

using namespace inference;  // the messages, nothing else

constexpr const char* kExtensions[] = {"binary_tensor_data", "parameters"};

// Runs a handler that may throw Error.
template <class Handler>
grpc::Status guarded(const Handler& handler) {
  try {
    handler();
    return grpc::Status::OK;
  } catch (...) {
    return to_grpc_status(current_exception_status());
  }
}

void add_metadata(const TensorSpec& spec, ModelMetadataResponse::TensorMetadata* out) {
  out->set_name(spec.name);
  if (spec.datatype) out->set_datatype(name_of(*spec.datatype));
  if (!spec.shape) {
    out->add_shape(-1);
  } else {
    for (const int64_t size : *spec.shape) out->add_shape(size);
  }
}

void describe_model(const ServerState& state, const ModelMetadataRequest& request, ModelMetadataResponse& response) {
  const auto model = state.repository.find(request.name(), request.version());
  response.set_name(model->name());
  for (const std::string& version : state.repository.ready_versions(model->name())) response.add_versions(version);
  response.set_platform(model->signature().platform);
  for (const TensorSpec& spec : model->signature().inputs) add_metadata(spec, response.add_inputs());
  for (const TensorSpec& spec : model->signature().outputs) add_metadata(spec, response.add_outputs());
}

}  // namespace

#define TENSORD_START(METHOD)                                                   \
  [&service](auto* context, auto* request, auto* writer, auto* cq, void* tag) { \
    service.Request##METHOD(context, request, writer, cq, cq, tag);             \
  }

void wait_control_calls(ServerState& state, InferenceService& service, CallQueue queue) {
  wait_unary<ServerLiveRequest, ServerLiveResponse>(queue, TENSORD_START(ServerLive), [](const auto&, auto& response) {
    response.set_live(true);
    return grpc::Status::OK;
  });
  wait_unary<ServerReadyRequest, ServerReadyResponse>(queue, TENSORD_START(ServerReady),
                                                      [&state](const auto&, auto& response) {
                                                        response.set_ready(state.is_ready());
                                                        return grpc::Status::OK;
                                                      });
  wait_unary<ModelReadyRequest, ModelReadyResponse>(
      queue, TENSORD_START(ModelReady), [&state](const auto& request, auto& response) {
        return guarded([&] {
          response.set_ready(!state.is_draining && state.repository.is_ready(request.name(), request.version()));
        });
      });
  wait_unary<ServerMetadataRequest, ServerMetadataResponse>(queue, TENSORD_START(ServerMetadata),
                                                            [&state](const auto&, auto& response) {
                                                              response.set_name("tensord");
                                                              response.set_version(state.version);
                                                              for (const char* extension : kExtensions) {
                                                                response.add_extensions(extension);
                                                              }
                                                              if (state.training) response.add_extensions("training");
                                                              return grpc::Status::OK;
                                                            });
  wait_unary<ModelMetadataRequest, ModelMetadataResponse>(
      queue, TENSORD_START(ModelMetadata), [&state](const auto& request, auto& response) {
        return guarded([&] { describe_model(state, request, response); });
      });
}

#undef TENSORD_START

}  // namespace tensord::server
