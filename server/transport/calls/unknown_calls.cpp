#include "server/transport/calls/unknown_calls.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <memory>
#include <string_view>
#include <vector>

#include "core/base/nearest.h"

namespace tensord::server {
namespace {

constexpr std::string_view kService = "inference.GRPCInferenceService";
constexpr size_t kMaxShown = 200;

struct Protocol {
  std::string_view package;
  const char* name;
};
constexpr Protocol kProtocols[] = {{"tensorflow.serving.", "TensorFlow Serving's"},
                                   {"tensorflow.", "TensorFlow's"},
                                   {"org.pytorch.serve.", "TorchServe's"},
                                   {"seldon.protos.", "Seldon's v1"},
                                   {"caikit.", "Caikit's"},
                                   {"fmaas.", "TGIS's"},
                                   {"ray.serve.", "Ray Serve's"},
                                   {"bentoml.", "BentoML's"},
                                   {"onnxruntime.server.", "ONNX Runtime Server's"},
                                   {"nvidia.", "another of NVIDIA's"}};

// The methods of a service that this program has; empty for others.
std::vector<std::string> methods_of(std::string_view service) {
  std::vector<std::string> names;
  const auto* known = google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(std::string(service));
  for (int i = 0; known != nullptr && i < known->method_count(); ++i) names.push_back(known->method(i)->name());
  return names;
}

class UnknownCall final : public GrpcCall {
 public:
  UnknownCall(const CallQueue& queue, grpc::AsyncGenericService& service)
      : GrpcCall(queue, {CallGroup::kHealth}), service_(service) {}

 private:
  void ask(void* tag) override {
    service_.RequestCall(&generic_context(), &stream_, queue().queue, queue().queue, tag);
  }
  std::shared_ptr<GrpcCall> successor() const override { return std::make_shared<UnknownCall>(queue(), service_); }
  void accept() override {
    refuse({grpc::StatusCode::UNIMPLEMENTED, describe_unknown_method(generic_context().method())});
  }
  void refuse(const grpc::Status& status) override { stream_.Finish(status, finish_tag()); }

  grpc::AsyncGenericService& service_;
  grpc::GenericServerAsyncReaderWriter stream_{&context()};
};

}  // namespace

std::string describe_unknown_method(const std::string& method) {
  const std::string_view path = std::string_view(method).substr(method.starts_with('/') ? 1 : 0);
  const size_t slash = path.find('/');
  const std::string_view service = path.substr(0, slash);
  const std::string_view name = slash == std::string_view::npos ? std::string_view() : path.substr(slash + 1);
  if (const auto names = methods_of(service); !names.empty() && std::ranges::find(names, name) == names.end()) {
    const std::string near = nearest(name, names);
    return "there is no method " + std::string(name.substr(0, kMaxShown)) + " in " + std::string(service) +
           (near.empty() ? "" : "; did you mean " + near + "?");
  }
  std::string whose;
  for (const Protocol& protocol : kProtocols) {
    if (whose.empty() && service.starts_with(protocol.package)) whose = std::string(", ") + protocol.name + " protocol";
  }
  return "there is no service " + std::string(service.substr(0, kMaxShown)) + whose +
         "; this server speaks KServe's v2 protocol, as Triton does: " + std::string(kService);
}

void wait_unknown_calls(grpc::AsyncGenericService& service, const CallQueue& queue) {
  GrpcCall::wait_for<UnknownCall>(queue, service);
}

}  // namespace tensord::server
