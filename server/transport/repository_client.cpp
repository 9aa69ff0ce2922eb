#include "server/transport/repository_client.h"

#include <fstream>
#include <sstream>

#include "core/base/error.h"
#include "protos/inference.grpc.pb.h"
#include "server/transport/client_status.h"

namespace tensord::server {
namespace {

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << in.rdbuf();
  if (!in) fail(ErrorCode::kNotFound, path, ": cannot be read");
  return std::move(bytes).str();
}

}  // namespace

struct RepositoryClient::Impl {
  std::unique_ptr<inference::GRPCInferenceService::Stub> stub;
};

RepositoryClient::RepositoryClient(const std::string& address) : impl_(std::make_unique<Impl>()) {
  impl_->stub = inference::GRPCInferenceService::NewStub(connect(address));
}

RepositoryClient::~RepositoryClient() = default;

std::vector<RepositoryClient::Model> RepositoryClient::index(bool only_ready) {
  inference::RepositoryIndexRequest request;
  request.set_ready(only_ready);
  inference::RepositoryIndexResponse response;
  grpc::ClientContext context;
  check_status(impl_->stub->RepositoryIndex(&context, request, &response));
  std::vector<Model> models;
  for (const auto& model : response.models()) {
    models.push_back({model.name(), model.version(), model.state(), model.reason()});
  }
  return models;
}

void RepositoryClient::load(const Load& load) {
  inference::RepositoryModelLoadRequest request;
  request.set_model_name(load.model);
  auto& parameters = *request.mutable_parameters();
  if (load.config) parameters["config"].set_string_param(*load.config);
  for (const auto& [path, file] : load.files) parameters["file:" + path].set_bytes_param(read_file(file));
  inference::RepositoryModelLoadResponse response;
  if (!load.labels_only) {
    grpc::ClientContext context;
    check_status(impl_->stub->RepositoryModelLoad(&context, request, &response));
  }
  if (load.labels.empty()) return;
  // With nothing else: versions stay as they are.
  parameters.clear();
  parameters["version_labels"].set_string_param(load.labels);
  grpc::ClientContext context;
  check_status(impl_->stub->RepositoryModelLoad(&context, request, &response));
}

void RepositoryClient::unload(const std::string& model, bool with_dependents) {
  inference::RepositoryModelUnloadRequest request;
  request.set_model_name(model);
  if (with_dependents) (*request.mutable_parameters())["unload_dependents"].set_bool_param(true);
  inference::RepositoryModelUnloadResponse response;
  grpc::ClientContext context;
  check_status(impl_->stub->RepositoryModelUnload(&context, request, &response));
}

}  // namespace tensord::server
