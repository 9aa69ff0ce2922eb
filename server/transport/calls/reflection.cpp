#include "server/transport/calls/reflection.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <grpcpp/support/async_stream.h>

#include <memory>
#include <set>

#include "server/executor/requests/status.h"
#include "server/transport/grpc/grpc_status.h"
#include "server/transport/grpc/message_bytes.h"

namespace tensord::server {
namespace {

using google::protobuf::DescriptorPool;
using google::protobuf::FileDescriptor;

constexpr const char* kServiceNames[] = {
    "inference.GRPCInferenceService",      "grpc.health.v1.Health",
    "tensord.training.v1.TrainingService", "tensord.hosts.v1.HostService",
    "grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"};

template <class Response>
void set_error(Response& response, grpc::StatusCode code, const std::string& message) {
  response.mutable_error_response()->set_error_code(code);
  response.mutable_error_response()->set_error_message(message);
}

template <class FileResponse>
void add_with_imports(const FileDescriptor* file, std::set<std::string>& seen, FileResponse& out) {
  if (!seen.insert(file->name()).second) return;
  google::protobuf::FileDescriptorProto proto;
  file->CopyTo(&proto);
  out.add_file_descriptor_proto(proto.SerializeAsString());
  for (int i = 0; i < file->dependency_count(); ++i) add_with_imports(file->dependency(i), seen, out);
}

template <class Response>
void set_file(Response& response, const FileDescriptor* file, const std::string& name) {
  if (file == nullptr) {
    set_error(response, grpc::StatusCode::NOT_FOUND, "'" + name + "' is not known here");
    return;
  }
  std::set<std::string> seen;
  add_with_imports(file, seen, *response.mutable_file_descriptor_response());
}

template <class Request, class Response>
Response reflect(const Request& request) {
  const DescriptorPool* pool = DescriptorPool::generated_pool();
  Response response;
  response.set_valid_host(request.host());
  *response.mutable_original_request() = request;
  switch (request.message_request_case()) {
    case Request::kListServices:
      for (const char* name : kServiceNames) response.mutable_list_services_response()->add_service()->set_name(name);
      break;
    case Request::kFileByFilename:
      set_file(response, pool->FindFileByName(request.file_by_filename()), request.file_by_filename());
      break;
    case Request::kFileContainingSymbol:
      set_file(response, pool->FindFileContainingSymbol(request.file_containing_symbol()),
               request.file_containing_symbol());
      break;
    case Request::kAllExtensionNumbersOfType:
      if (pool->FindMessageTypeByName(request.all_extension_numbers_of_type()) == nullptr) {
        set_error(response, grpc::StatusCode::NOT_FOUND, "no such type");
      } else {
        response.mutable_all_extension_numbers_response()->set_base_type_name(request.all_extension_numbers_of_type());
      }
      break;
    case Request::kFileContainingExtension:
      set_error(response, grpc::StatusCode::NOT_FOUND, "there are no extensions");
      break;
    default: set_error(response, grpc::StatusCode::INVALID_ARGUMENT, "the request asks for nothing");
  }
  return response;
}

// Reads one request at a time and writes its response, until the client has no more.
template <class Service, class Request, class Response>
class ReflectionCall final : public GrpcCall {
 public:
  ReflectionCall(const CallQueue& queue, Service& service, OpenStreams& streams)
      : GrpcCall(queue, {CallGroup::kMetadata, &streams}), service_(service), streams_(streams) {}

 private:
  void ask(void* tag) override {
    service_.RequestServerReflectionInfo(&context(), &stream_, queue().queue, queue().queue, tag);
  }
  std::shared_ptr<GrpcCall> successor() const override {
    return std::make_shared<ReflectionCall>(queue(), service_, streams_);
  }
  void accept() override { stream_.Read(&bytes_, read_.begin()); }
  void refuse(const grpc::Status& status) override { stream_.Finish(status, finish_tag()); }

  void on_read(bool ok) {
    if (!ok) {
      refuse(grpc::Status::OK);
    } else {
      answer();
    }
  }

  void answer() {
    try {
      // A response contains its request, so both are charged until the client has read it.
      admission_ = queue().limits->hold(2 * bytes_.Length());
      Request request;
      read_message(bytes_, *queue().limits, admission_, request);
      stream_.Write(to_byte_buffer(reflect<Request, Response>(request)), written_.begin());
    } catch (...) {
      refuse(to_grpc_status(current_exception_status()));
    }
  }

  void on_written(bool ok) {
    admission_ = {};
    if (!ok) {
      refuse(grpc::Status::OK);
    } else {
      stream_.Read(&bytes_, read_.begin());
    }
  }

  Service& service_;
  OpenStreams& streams_;
  grpc::ByteBuffer bytes_;
  RequestLimits::Admission admission_;
  grpc::ServerAsyncReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer> stream_{&context()};
  GrpcCall::Operation<ReflectionCall> read_{this, &ReflectionCall::on_read};
  GrpcCall::Operation<ReflectionCall> written_{this, &ReflectionCall::on_written};
};

}  // namespace

void wait_reflection_calls(ReflectionServices& services, OpenStreams& streams, CallQueue queue) {
  namespace v1 = grpc::reflection::v1;
  namespace v1alpha = grpc::reflection::v1alpha;
  using Old = ReflectionServices::Rpcs<v1alpha::ServerReflection>;
  using New = ReflectionServices::Rpcs<v1::ServerReflection>;
  GrpcCall::wait_for<ReflectionCall<New, v1::ServerReflectionRequest, v1::ServerReflectionResponse>>(queue, services.v1,
                                                                                                     streams);
  GrpcCall::wait_for<ReflectionCall<Old, v1alpha::ServerReflectionRequest, v1alpha::ServerReflectionResponse>>(
      queue, services.v1alpha, streams);
}

}  // namespace tensord::server
