// The client of idle_streams_bench.py. `idle_streams ADDRESS COUNT CONNECTIONS REQUESTS` opens streams, sends some
// requests on each and reads the responses, prints "open" and keeps the streams until its input ends.
#include <grpcpp/grpcpp.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "protos/inference.grpc.pb.h"

namespace {

using inference::ModelInferRequest;
using inference::ModelStreamInferResponse;

struct Stream {
  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientAsyncReaderWriter<ModelInferRequest, ModelStreamInferResponse>> call;
  ModelStreamInferResponse response;
};

ModelInferRequest make_request() {
  ModelInferRequest request;
  request.set_model_name("identity");
  auto* input = request.add_inputs();
  input->set_name("x");
  input->set_datatype("FP32");
  input->add_shape(16);
  request.add_raw_input_contents(std::string(64, '\1'));
  return request;
}

void wait_for(grpc::CompletionQueue& queue, size_t events) {
  void* tag = nullptr;
  bool ok = false;
  for (size_t i = 0; i < events; ++i) {
    if (!queue.Next(&tag, &ok) || !ok) {
      std::fprintf(stderr, "a stream failed\n");
      std::exit(1);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const size_t count = std::strtoul(argv[2], nullptr, 10);
  const size_t connections = std::strtoul(argv[3], nullptr, 10);
  const size_t requests = std::strtoul(argv[4], nullptr, 10);
  std::vector<std::unique_ptr<inference::GRPCInferenceService::Stub>> stubs;
  for (size_t i = 0; i < connections; ++i) {
    grpc::ChannelArguments arguments;
    arguments.SetInt("bench.connection", static_cast<int>(i));
    stubs.push_back(inference::GRPCInferenceService::NewStub(
        grpc::CreateCustomChannel(argv[1], grpc::InsecureChannelCredentials(), arguments)));
  }
  grpc::CompletionQueue queue;
  std::vector<Stream> streams(count);
  for (size_t i = 0; i < count; ++i) {
    streams[i].call = stubs[i % connections]->AsyncModelStreamInfer(&streams[i].context, &queue, &streams[i]);
  }
  wait_for(queue, count);
  const ModelInferRequest request = make_request();
  for (size_t round = 0; round < requests; ++round) {
    for (Stream& stream : streams) {
      stream.call->Write(request, &stream);
      stream.call->Read(&stream.response, &stream);
    }
    wait_for(queue, 2 * count);
  }
  std::printf("open\n");
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  std::_Exit(0);
}
