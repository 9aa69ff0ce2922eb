#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "connection.h"
#include "protos/inference.grpc.pb.h"
#include "tensord/client/client.h"

namespace tensord::client {

struct Client::Impl {
  Impl(const std::string& address, ClientOptions options)
      : connection(std::make_shared<Connection>(address, std::move(options))),
        stub(inference::GRPCInferenceService::NewStub(connection->channel())) {}

  // Makes a unary call of the inference service. Throws Error.
  template <class Request, class Response>
  Response call(grpc::Status (inference::GRPCInferenceService::Stub::*method)(grpc::ClientContext*, const Request&,
                                                                              Response*),
                const Request& request, const CallOptions& options) {
    grpc::ClientContext context;
    connection->prepare(context, options);
    Response response;
    check_status((stub.get()->*method)(&context, request, &response));
    return response;
  }

  // Adds missing input names, which it asks the server for once per model.
  Request with_names(Request request, const CallOptions& options, Client& client);

  const std::shared_ptr<Connection> connection;
  const std::unique_ptr<inference::GRPCInferenceService::Stub> stub;
  std::mutex mutex;
  std::map<std::string, std::vector<std::string>> input_names;  // guarded by mutex; keyed by model
};

}  // namespace tensord::client
