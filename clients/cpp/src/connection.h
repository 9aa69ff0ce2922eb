#pragma once

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <mutex>
#include <string>

#include "tensord/client/options.h"

namespace tensord::client {

// Throws the Error that says the same, unless the status is OK.
void check_status(const grpc::Status& status);

// The channel of a client, and how its calls are made. Thread-safe.
class Connection {
 public:
  Connection(std::string address, ClientOptions options);

  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }
  // For calls that must not be made a second time.
  std::shared_ptr<grpc::Channel> channel_without_retries();

  // Headers, deadline and compression. Calls that last as long as they take (`is_long`) have a deadline only where
  // `options` has one.
  void prepare(grpc::ClientContext& context, const CallOptions& options, bool is_long = false) const;

 private:
  std::shared_ptr<grpc::Channel> make_channel(bool with_retries) const;

  const std::string address_;
  const ClientOptions options_;
  std::shared_ptr<grpc::Channel> channel_;
  std::mutex mutex_;
  std::shared_ptr<grpc::Channel> plain_channel_;  // by mutex_; made when first wanted
};

}  // namespace tensord::client
