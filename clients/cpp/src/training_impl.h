#pragma once

#include <memory>

#include "connection.h"
#include "protos/training.grpc.pb.h"
#include "tensord/client/training.h"

namespace tensord::client {

struct TrainingClient::Impl {
  explicit Impl(std::shared_ptr<Connection> connection)
      : connection(std::move(connection)), stub(training::v1::TrainingService::NewStub(this->connection->channel())) {}

  // Throws Error.
  template <class Request, class Response>
  Response call(grpc::Status (training::v1::TrainingService::Stub::*method)(grpc::ClientContext*, const Request&,
                                                                            Response*),
                const Request& request, const CallOptions& options) {
    grpc::ClientContext context;
    connection->prepare(context, options);
    Response response;
    check_status((stub.get()->*method)(&context, request, &response));
    return response;
  }

  const std::shared_ptr<Connection> connection;
  const std::unique_ptr<training::v1::TrainingService::Stub> stub;
};

}  // namespace tensord::client
