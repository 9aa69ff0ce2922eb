// Two programs for echo_bench.py. `echo_load serve FILE` is a bare gRPC server: completion
// queues, a thread a core, raw bytes back as they came; it writes its address to FILE.
// `echo_load load SECONDS ROUNDS NAME=ADDRESS…` calls ModelInfer on each target in turn and
// prints one line a combination: bytes, clients, then p50 in us and calls a second by target.
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "protos/inference.grpc.pb.h"

namespace {

using Clock = std::chrono::steady_clock;
using RawService = inference::GRPCInferenceService::WithRawMethod_ModelInfer<inference::GRPCInferenceService::Service>;

constexpr const char* kMethod = "/inference.GRPCInferenceService/ModelInfer";
// As the daemon has them: what is read at a time grows with what a connection brings.
constexpr int kMinChunkBytes = 64 << 10, kMaxChunkBytes = 16 << 20;
constexpr size_t kWarmCalls = 50;
constexpr size_t kWarmBytes = size_t{1} << 30;
// What all clients' requests of a row may take at one time, of the memory that is free: a server holds a request, what
// it made of it and the answer, the clients hold requests and answers, and each keeps some for the next.
constexpr size_t kMemoryShare = 6;

template <class Arguments>
void tune_channel(Arguments&& set) {
  set(GRPC_ARG_TCP_READ_CHUNK_SIZE, kMinChunkBytes);
  set(GRPC_ARG_TCP_MIN_READ_CHUNK_SIZE, kMinChunkBytes);
  set(GRPC_ARG_TCP_MAX_READ_CHUNK_SIZE, kMaxChunkBytes);
}

class BareCall {
 public:
  BareCall(RawService& service, grpc::ServerCompletionQueue* queue) : service_(service), queue_(queue) {
    service_.RequestModelInfer(&context_, &request_, &writer_, queue_, queue_, this);
  }
  void proceed(bool ok) {
    if (!ok || is_answered_) {
      delete this;
      return;
    }
    new BareCall(service_, queue_);
    is_answered_ = true;
    writer_.Finish(request_, grpc::Status::OK, this);
  }

 private:
  RawService& service_;
  grpc::ServerCompletionQueue* queue_;
  grpc::ServerContext context_;
  grpc::ByteBuffer request_;
  grpc::ServerAsyncResponseWriter<grpc::ByteBuffer> writer_{&context_};
  bool is_answered_ = false;
};

int serve(const char* address_file) {
  RawService service;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  builder.SetMaxReceiveMessageSize(INT_MAX);
  tune_channel([&](const char* name, int value) { builder.AddChannelArgument(name, value); });
  std::vector<std::unique_ptr<grpc::ServerCompletionQueue>> queues;
  for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i) {
    queues.push_back(builder.AddCompletionQueue());
  }
  const auto server = builder.BuildAndStart();
  std::vector<std::thread> threads;
  for (const auto& queue : queues) {
    for (int i = 0; i < 16; ++i) new BareCall(service, queue.get());
    threads.emplace_back([queue = queue.get()] {
      void* tag = nullptr;
      bool ok = false;
      while (queue->Next(&tag, &ok)) static_cast<BareCall*>(tag)->proceed(ok);
    });
  }
  std::ofstream(address_file) << "127.0.0.1:" << port << "\n";
  for (std::thread& thread : threads) thread.join();
  return 0;
}

grpc::ByteBuffer make_request(size_t payload_bytes) {
  inference::ModelInferRequest request;
  request.set_model_name("identity");
  auto* input = request.add_inputs();
  input->set_name("x");
  input->set_datatype("FP32");
  input->add_shape(static_cast<int64_t>(payload_bytes / 4));
  request.add_raw_input_contents(std::string(payload_bytes, '\1'));
  grpc::Slice slice(request.SerializeAsString());
  return {&slice, 1};
}

// One closed loop: the next call starts when the last one was answered.
class Client {
 public:
  Client(const std::string& address, int id, const grpc::ByteBuffer& request) : request_(request) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    arguments.SetInt("bench.connection", id);  // another connection for each client
    tune_channel([&](const char* name, int value) { arguments.SetInt(name, value); });
    stub_ = std::make_unique<grpc::GenericStub>(
        grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments));
  }
  void start(grpc::CompletionQueue* queue) {
    context_ = std::make_unique<grpc::ClientContext>();
    started_ = Clock::now();
    call_ = stub_->PrepareUnaryCall(context_.get(), kMethod, request_, queue);
    call_->StartCall();
    call_->Finish(&response_, &status_, this);
  }
  double finish_us() {
    if (!status_.ok()) {
      std::fprintf(stderr, "call failed: %s\n", status_.error_message().c_str());
      std::exit(1);
    }
    const double us = std::chrono::duration<double, std::micro>(Clock::now() - started_).count();
    response_.Clear();
    return us;
  }

 private:
  const grpc::ByteBuffer& request_;
  std::unique_ptr<grpc::GenericStub> stub_;
  std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<grpc::ClientAsyncResponseReader<grpc::ByteBuffer>> call_;
  grpc::ByteBuffer response_;
  grpc::Status status_;
  Clock::time_point started_;
};

struct Sample {
  double p50_us;
  double calls_per_s;
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

Sample run_burst(std::vector<std::unique_ptr<Client>>& clients, double seconds) {
  grpc::CompletionQueue queue;
  std::vector<double> latencies;
  const auto start = Clock::now();
  const auto end = start + std::chrono::duration<double>(seconds);
  for (auto& client : clients) client->start(&queue);
  size_t open = clients.size();
  void* tag = nullptr;
  bool ok = false;
  while (open > 0 && queue.Next(&tag, &ok)) {
    auto* client = static_cast<Client*>(tag);
    latencies.push_back(client->finish_us());
    if (Clock::now() < end) {
      client->start(&queue);
    } else {
      --open;
    }
  }
  const double elapsed = std::chrono::duration<double>(Clock::now() - start).count();
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) continue;
  const double count = static_cast<double>(latencies.size());
  return {median(std::move(latencies)), count / elapsed};
}

struct Target {
  std::string name;
  std::string address;
  std::vector<std::unique_ptr<Client>> clients;
  std::vector<double> p50_us, calls_per_s;
};

void compare(std::vector<Target>& targets, size_t bytes, int clients, double seconds, int rounds) {
  const grpc::ByteBuffer request = make_request(bytes);
  for (Target& target : targets) {
    target.clients.clear();
    target.p50_us.clear();
    target.calls_per_s.clear();
    for (int i = 0; i < clients; ++i) target.clients.push_back(std::make_unique<Client>(target.address, i, request));
    const auto warm_calls = static_cast<int>(std::min<size_t>(kWarmCalls, kWarmBytes / bytes));
    for (int i = 0; i < warm_calls / clients + 1; ++i) run_burst(target.clients, 0);
  }
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < targets.size(); ++i) {
      Target& target = targets[(i + static_cast<size_t>(round)) % targets.size()];
      const Sample sample = run_burst(target.clients, seconds);
      target.p50_us.push_back(sample.p50_us);
      target.calls_per_s.push_back(sample.calls_per_s);
    }
  }
  std::printf("%zu %d", bytes, clients);
  for (Target& target : targets) {
    std::printf(" %s %.1f %.1f", target.name.c_str(), median(target.p50_us), median(target.calls_per_s));
    target.clients.clear();
  }
  std::printf("\n");
  std::fflush(stdout);
}

size_t available_bytes() {
  std::ifstream file("/proc/meminfo");
  std::string name;
  for (size_t kilobytes = 0; file >> name; file.ignore(INT_MAX, '\n')) {
    if (name == "MemAvailable:" && file >> kilobytes) return kilobytes << 10;
  }
  return 0;
}

int load(double seconds, int rounds, std::vector<Target> targets) {
  for (const size_t bytes : {size_t{1000}, size_t{600'000}, size_t{4'000'000}, size_t{64'000'000}}) {
    for (const int clients : {1, 16, 64}) {
      const size_t needed_bytes = kMemoryShare * bytes * static_cast<size_t>(clients);
      if (needed_bytes <= available_bytes()) {
        compare(targets, bytes, clients, seconds, rounds);
      } else {
        std::fprintf(stderr, "%zu bytes, %d clients: left out, needs %zu MB of memory\n", bytes, clients,
                     needed_bytes >> 20);
      }
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "serve" && argc == 3) return serve(argv[2]);
  if (mode == "load" && argc > 4) {
    std::vector<Target> targets;
    for (int i = 4; i < argc; ++i) {
      const std::string argument = argv[i];
      const size_t equals = argument.find('=');
      targets.push_back({argument.substr(0, equals), argument.substr(equals + 1), {}, {}, {}});
    }
    return load(std::stod(argv[2]), std::stoi(argv[3]), std::move(targets));
  }
  std::fprintf(stderr, "usage: echo_load serve FILE | echo_load load SECONDS ROUNDS NAME=ADDRESS...\n");
  return 2;
}
