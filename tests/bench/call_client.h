#pragma once

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

// Closed loops of unary calls whose messages are raw bytes, for the benchmarks: nothing is parsed or copied here.
namespace bench {

using Clock = std::chrono::steady_clock;

// The same as in the daemon: the read size grows with the data on the connection.
constexpr int kMinChunkBytes = 64 << 10, kMaxChunkBytes = 16 << 20;

template <class Arguments>
void tune_channel(Arguments&& set) {
  set(GRPC_ARG_TCP_READ_CHUNK_SIZE, kMinChunkBytes);
  set(GRPC_ARG_TCP_MIN_READ_CHUNK_SIZE, kMinChunkBytes);
  set(GRPC_ARG_TCP_MAX_READ_CHUNK_SIZE, kMaxChunkBytes);
}

// One closed loop over a connection of its own: each call starts after the previous response, with the next of
// `requests`, which must outlive it. A failed call ends the process.
class Client {
 public:
  Client(const std::string& address, std::string method, int id, const std::vector<grpc::ByteBuffer>& requests)
      : method_(std::move(method)), requests_(requests), next_(static_cast<size_t>(id)) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    arguments.SetInt("bench.connection", id);
    tune_channel([&](const char* name, int value) { arguments.SetInt(name, value); });
    stub_ = std::make_unique<grpc::GenericStub>(
        grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments));
  }
  void start(grpc::CompletionQueue* queue) {
    context_ = std::make_unique<grpc::ClientContext>();
    started_ = Clock::now();
    call_ = stub_->PrepareUnaryCall(context_.get(), method_, requests_[next_++ % requests_.size()], queue);
    call_->StartCall();
    call_->Finish(&response_, &status_, this);
  }
  double finish_us() {
    if (!status_.ok()) {
      std::fprintf(stderr, "call failed: %s\n", status_.error_message().c_str());
      std::exit(1);
    }
    const double us = std::chrono::duration<double, std::micro>(Clock::now() - started_).count();
    response_bytes_ = response_.Length();
    response_.Clear();
    return us;
  }
  size_t response_bytes() const { return response_bytes_; }  // of the last call

 private:
  const std::string method_;
  const std::vector<grpc::ByteBuffer>& requests_;
  size_t next_;
  std::unique_ptr<grpc::GenericStub> stub_;
  std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<grpc::ClientAsyncResponseReader<grpc::ByteBuffer>> call_;
  grpc::ByteBuffer response_;
  size_t response_bytes_ = 0;
  grpc::Status status_;
  Clock::time_point started_;
};

struct Burst {
  std::vector<double> latencies_us;
  double calls_per_s;
};

// Runs all clients at the same time for `seconds`; each makes at least one call.
inline Burst run_burst(std::vector<std::unique_ptr<Client>>& clients, double seconds) {
  grpc::CompletionQueue queue;
  Burst out;
  const auto start = Clock::now();
  const auto end = start + std::chrono::duration<double>(seconds);
  for (auto& client : clients) client->start(&queue);
  size_t open = clients.size();
  void* tag = nullptr;
  bool ok = false;
  while (open > 0 && queue.Next(&tag, &ok)) {
    auto* client = static_cast<Client*>(tag);
    out.latencies_us.push_back(client->finish_us());
    if (Clock::now() < end) {
      client->start(&queue);
    } else {
      --open;
    }
  }
  const double elapsed = std::chrono::duration<double>(Clock::now() - start).count();
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) continue;
  out.calls_per_s = static_cast<double>(out.latencies_us.size()) / elapsed;
  return out;
}

// 0 without values.
inline double quantile(std::vector<double> values, double part) {
  if (values.empty()) return 0;
  const auto at = std::min(static_cast<size_t>(part * static_cast<double>(values.size())), values.size() - 1);
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(at), values.end());
  return values[at];
}

}  // namespace bench
