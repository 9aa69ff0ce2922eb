#pragma once

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "connection.h"
#include "message.h"

namespace tensord::client {

// The call behind a Stream. It lives until the call has ended, even if the Stream is destroyed earlier. No gRPC
// function is called under the mutex, because gRPC may call back on the same thread. Operations started outside of
// callbacks take a hold, so that OnDone waits for them.
struct Stream::Impl : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                      public std::enable_shared_from_this<Stream::Impl> {
 public:
  explicit Impl(std::shared_ptr<Connection> connection) : connection_(std::move(connection)) {}

  grpc::ClientContext& context() { return context_; }
  void start();  // call after `context` is set up
  void send(const Request& request);
  std::optional<StreamResult> receive();
  void finish_sending();
  void cancel() { context_.TryCancel(); }
  // Cancels the call; nobody waits for its end.
  void abandon();

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

 private:
  [[noreturn]] void throw_ended(std::unique_lock<std::mutex>& lock);
  // Starts a read if there is room for another result. Called with the lock, which it releases.
  void read_on(std::unique_lock<std::mutex>& lock, size_t max_results);

  const std::shared_ptr<Connection> connection_;
  grpc::ClientContext context_;
  std::shared_ptr<Impl> self_;  // until OnDone

  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  grpc::ByteBuffer written_, read_;
  std::deque<StreamResult> results_;
  std::map<std::string, OutputRegions> regions_;  // keyed by the ID of a request with outputs in shared memory
  std::exception_ptr unreadable_;                 // set by a malformed response
  bool is_writing_ = false;
  bool is_reading_ = false;
  bool has_finished_sending_ = false;
  bool has_read_all_ = false;
  bool is_done_ = false;
  grpc::Status status_;
};

}  // namespace tensord::client
