#pragma once

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <mutex>
#include <string>

#include "tensord/client/options.h"

namespace tensord::client {

// Throws the matching Error unless the status is OK.
void check_status(const grpc::Status& status);

// A client's channel and the settings of its calls. Thread-safe.
class Connection {
 public:
  Connection(std::string address, ClientOptions options);

  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }
  // For calls that must not be repeated.
  std::shared_ptr<grpc::Channel> channel_without_retries();

  // Sets headers, deadline and compression. Long-running calls (`is_long`) have a deadline only if `options` has one.
  void prepare(grpc::ClientContext& context, const CallOptions& options, bool is_long = false) const;

 private:
  std::shared_ptr<grpc::Channel> make_channel(bool with_retries) const;

  const std::string address_;
  const ClientOptions options_;
  std::shared_ptr<grpc::Channel> channel_;
  std::mutex mutex_;
  std::shared_ptr<grpc::Channel> plain_channel_;  // guarded by mutex_; created on first use
};

}  // namespace tensord::client
