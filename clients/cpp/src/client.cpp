#include "tensord/client/client.h"

#include <utility>

#include "callback_threads.h"
#include "client_impl.h"
#include "message.h"
#include "stream_impl.h"
#include "tensord/client/training.h"
#include "training_impl.h"

namespace tensord::client {
namespace {

constexpr const char* kInfer = "/inference.GRPCInferenceService/ModelInfer";

// A request of a sequence changes the model's state, so it must not be retried.
grpc::GenericStub infer_stub(Connection& connection, const Request& request) {
  return grpc::GenericStub(request.sequence ? connection.channel_without_retries() : connection.channel());
}

// State of an asynchronous call until it ends.
struct AsyncCall {
  grpc::ClientContext context;
  grpc::ByteBuffer request, response;
  OutputRegions regions;
  Client::OnResult on_result;

  void finish(const grpc::Status& status) {
    Result result;
    std::exception_ptr error;
    try {
      check_status(status);
      result = decode(response, regions);
    } catch (...) {
      error = std::current_exception();
    }
    on_result(error, std::move(result));
  }
};

bool has_names(const Request& request) {
  for (const Input& input : request.inputs) {
    if (input.name.empty()) return false;
  }
  return true;
}

}  // namespace

Client::Client(const std::string& address, ClientOptions options)
    : impl_(std::make_shared<Impl>(address, std::move(options))) {}
Client::~Client() = default;
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;

Request Client::Impl::with_names(Request request, const CallOptions& options, Client& client) {
  if (has_names(request)) return request;
  std::vector<std::string> names;
  {
    const std::lock_guard lock(mutex);
    const auto found = input_names.find(request.model);
    if (found != input_names.end()) names = found->second;
  }
  if (names.size() < request.inputs.size()) {
    names.clear();
    for (const auto& input : client.model_metadata(request.model, request.version, options).inputs) {
      names.push_back(input.name);
    }
    if (names.size() < request.inputs.size()) {
      throw InvalidArgumentError("model '" + request.model + "' has " + std::to_string(names.size()) + " inputs, got " +
                                 std::to_string(request.inputs.size()));
    }
    const std::lock_guard lock(mutex);
    input_names[request.model] = names;
  }
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    if (request.inputs[i].name.empty()) request.inputs[i].name = names[i];
  }
  return request;
}

Result Client::infer(const Request& request, const CallOptions& options) {
  if (!has_names(request)) return infer(impl_->with_names(request, options, *this), options);
  const grpc::ByteBuffer message = encode(request);
  grpc::ClientContext context;
  impl_->connection->prepare(context, options);
  grpc::CompletionQueue queue;
  const auto call = infer_stub(*impl_->connection, request).PrepareUnaryCall(&context, kInfer, message, &queue);
  grpc::ByteBuffer response;
  grpc::Status status;
  call->StartCall();
  call->Finish(&response, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  queue.Shutdown();
  check_status(status);
  return decode(response, output_regions(request));
}

Result Client::infer(const std::string& model, std::vector<Tensor> inputs, const CallOptions& options) {
  Request request{.model = model, .inputs = {}};
  for (Tensor& input : inputs) request.inputs.push_back({.name = {}, .tensor = std::move(input)});
  return infer(request, options);
}

std::future<Result> Client::infer_async(Request request, const CallOptions& options) {
  const auto promise = std::make_shared<std::promise<Result>>();
  std::future<Result> future = promise->get_future();
  infer_async(
      std::move(request),
      [promise](std::exception_ptr error, Result result) {
        if (error) return promise->set_exception(error);
        promise->set_value(std::move(result));
      },
      options);
  return future;
}

void Client::infer_async(Request request, OnResult on_result, const CallOptions& options) {
  const Request named = impl_->with_names(std::move(request), options, *this);
  const auto call = std::make_shared<AsyncCall>();
  call->request = encode(named);
  call->regions = output_regions(named);
  call->on_result = std::move(on_result);
  impl_->connection->prepare(call->context, options);
  keep_callback_threads();
  infer_stub(*impl_->connection, named)
      .UnaryCall(&call->context, kInfer, {}, &call->request, &call->response,
                 [call](const grpc::Status& status) { call->finish(status); });
}

Stream Client::open_stream(const CallOptions& options) {
  auto stream = std::make_shared<Stream::Impl>(impl_->connection);
  impl_->connection->prepare(stream->context(), options, /*is_long=*/true);
  stream->start();
  return Stream(std::move(stream));
}

TrainingClient Client::training() { return TrainingClient(std::make_shared<TrainingClient::Impl>(impl_->connection)); }

}  // namespace tensord::client
