// Two programs for echo_bench.py. `echo_load serve FILE` is a bare gRPC server: completion queues, one thread for each
// core, raw bytes echoed; it writes its address to FILE. `echo_load load SECONDS ROUNDS BYTES,… CLIENTS,…
// NAME=ADDRESS…` calls ModelInfer on each target in turn and prints one line for each combination: bytes, clients, then
// p50 and p99 in us and calls a second by target.
#include <grpcpp/grpcpp.h>
#include <malloc.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "protos/inference.grpc.pb.h"
#include "tests/bench/call_client.h"

namespace {

using bench::Client;
using RawService = inference::GRPCInferenceService::WithRawMethod_ModelInfer<inference::GRPCInferenceService::Service>;

constexpr const char* kMethod = "/inference.GRPCInferenceService/ModelInfer";
// Memory that a row needs, as multiples of its requests: each server holds them and their responses, the clients hold
// the responses, and all keep buffers for reuse.
constexpr size_t kServerShare = 2, kClientShare = 2;

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
  bench::tune_channel([&](const char* name, int value) { builder.AddChannelArgument(name, value); });
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

struct Target {
  std::string name;
  std::string address;
  std::vector<std::unique_ptr<Client>> clients = {};
  std::vector<double> p50_us = {}, p99_us = {}, calls_per_s = {};
};

void compare(std::vector<Target>& targets, size_t bytes, int clients, double seconds, int rounds) {
  const std::vector<grpc::ByteBuffer> requests{make_request(bytes)};
  for (Target& target : targets) {
    target.clients.clear();
    target.p50_us.clear();
    target.p99_us.clear();
    target.calls_per_s.clear();
    for (int i = 0; i < clients; ++i)
      target.clients.push_back(std::make_unique<Client>(target.address, kMethod, i, requests));
  }
  // Warms up as long as it measures: with large payloads, growing heaps would dominate the time.
  for (Target& target : targets) bench::run_burst(target.clients, seconds * rounds);
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < targets.size(); ++i) {
      Target& target = targets[(i + static_cast<size_t>(round)) % targets.size()];
      const bench::Burst burst = bench::run_burst(target.clients, seconds);
      target.p50_us.push_back(bench::quantile(burst.latencies_us, 0.5));
      target.p99_us.push_back(bench::quantile(burst.latencies_us, 0.99));
      target.calls_per_s.push_back(burst.calls_per_s);
    }
  }
  std::printf("%zu %d", bytes, clients);
  for (Target& target : targets) {
    std::printf(" %s %.1f %.1f %.1f", target.name.c_str(), bench::quantile(target.p50_us, 0.5),
                bench::quantile(target.p99_us, 0.5), bench::quantile(target.calls_per_s, 0.5));
    target.clients.clear();
  }
  std::printf("\n");
  std::fflush(stdout);
}

// "1000,600000"
std::vector<size_t> parse_numbers(const std::string& text) {
  std::vector<size_t> numbers;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) numbers.push_back(std::stoul(part));
  return numbers;
}

size_t available_bytes() {
  std::ifstream file("/proc/meminfo");
  std::string name;
  for (size_t kilobytes = 0; file >> name; file.ignore(INT_MAX, '\n')) {
    if (name == "MemAvailable:" && file >> kilobytes) return kilobytes << 10;
  }
  return 0;
}

int load(double seconds, int rounds, const std::vector<size_t>& payloads, const std::vector<size_t>& client_counts,
         std::vector<Target> targets) {
  for (const size_t bytes : payloads) {
    for (const size_t clients : client_counts) {
      const size_t needed_bytes = (kClientShare + kServerShare * targets.size()) * bytes * clients;
      if (needed_bytes <= available_bytes()) {
        compare(targets, bytes, static_cast<int>(clients), seconds, rounds);
      } else {
        std::fprintf(stderr, "%zu bytes, %zu clients: left out, needs %zu MB of memory\n", bytes, clients,
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
  if (mode == "load" && argc > 6) {
    std::vector<Target> targets;
    for (int i = 6; i < argc; ++i) {
      const std::string argument = argv[i];
      const size_t equals = argument.find('=');
      targets.push_back({argument.substr(0, equals), argument.substr(equals + 1)});
    }
    return load(std::stod(argv[2]), std::stoi(argv[3]), parse_numbers(argv[4]), parse_numbers(argv[5]),
                std::move(targets));
  }
  std::fprintf(stderr,
               "usage: echo_load serve FILE | echo_load load SECONDS ROUNDS BYTES,... CLIENTS,... NAME=ADDRESS...\n");
  return 2;
}
