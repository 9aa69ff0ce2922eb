#include "callback_threads.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <memory>

namespace tensord::client {
namespace {

struct CancelledCall {
  grpc::ClientContext context;
  grpc::Slice nothing;
  grpc::ByteBuffer request{&nothing, 1}, response;
};

// A channel is registered with the threads only when it makes a call. This call ends before anything is sent.
std::shared_ptr<grpc::Channel>* channel_with_a_call() {
  auto* channel =
      new std::shared_ptr<grpc::Channel>(grpc::CreateChannel("unix:/nonexistent", grpc::InsecureChannelCredentials()));
  const auto call = std::make_shared<CancelledCall>();
  call->context.TryCancel();
  grpc::GenericStub(*channel).UnaryCall(&call->context, "/none/None", {}, &call->request, &call->response,
                                        [call](const grpc::Status&) {});
  return channel;
}

}  // namespace

void keep_callback_threads() { [[maybe_unused]] static const auto* const kept = channel_with_a_call(); }

}  // namespace tensord::client
