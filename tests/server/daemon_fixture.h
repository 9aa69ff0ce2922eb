#pragma once

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "protos/inference.grpc.pb.h"
#include "server/daemon/daemon.h"
#include "tests/server/fake_models.h"
#include "tests/server/temporary_folder.h"

namespace tensord::server::fixtures {

// A repository whose model files hold the name of a fake model.
class TemporaryRepository {
  const TemporaryFolder folder_{"daemon"};

 public:
  void add(const std::string& name, int version, const std::string& kind, const std::string& config = "") const {
    const std::filesystem::path folder = root / name / std::to_string(version);
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "model.pt") << kind;
    if (!config.empty()) std::ofstream(root / name / "config.pbtxt") << config;
  }
  const std::filesystem::path root = folder_.path();
};

// A decoupled model: sends one response for each element of its input.
inline std::unique_ptr<const Model> repeat_model() {
  return std::make_unique<FakeModel>(signature_of({"x"}, {"OUTPUT__0"}),
                                     [](std::span<const InferTensor* const> inputs, const auto&) {
                                       RunResult result;
                                       for (int64_t i = 0; i < inputs[0]->tensor.numel(); ++i) {
                                         InferTensor output;
                                         output.name = "OUTPUT__0";
                                         output.datatype = DataType::kUint8;
                                         output.shape = {1};
                                         output.tensor = Tensor::empty(Dims{1}, DType::kUInt8);
                                         *output.tensor.data<uint8_t>() = inputs[0]->tensor.data<uint8_t>()[i];
                                         result.responses.push_back({output});
                                       }
                                       return result;
                                     });
}

// Blocks runs until it is opened, so that tests need not guess how long a run takes.
class Gate {
 public:
  // Returns when the gate is open, or as soon as the run is cancelled.
  void pass(const std::function<bool()>& is_cancelled) {
    ++entered_;
    entered_.notify_all();
    while (!is_open_) {
      if (is_cancelled()) fail(ErrorCode::kCancelled, "the run was cancelled");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  // Waits until this many runs have entered.
  void wait_for(int runs) const {
    for (int seen = entered_; seen < runs; seen = entered_) entered_.wait(seen);
  }
  int entered() const { return entered_; }
  void open() { is_open_ = true; }

 private:
  std::atomic<int> entered_{0};
  std::atomic<bool> is_open_{false};
};

// Returns its one input when the gate is open.
inline std::unique_ptr<const Model> gated_model(Gate& gate) {
  return std::make_unique<FakeModel>(
      signature_of({"x"}, {"OUTPUT__0"}),
      [&gate](std::span<const InferTensor* const> inputs, const std::function<bool()>& is_cancelled) {
        gate.pass(is_cancelled);
        RunResult result;
        result.outputs.push_back(*inputs[0]);
        result.outputs[0].name = "OUTPUT__0";
        return result;
      });
}

// Sends its input as often as its first byte says: many responses from little memory.
inline std::unique_ptr<const Model> flood_model() {
  return std::make_unique<FakeModel>(
      signature_of({"x"}, {"OUTPUT__0"}), [](std::span<const InferTensor* const> inputs, const auto&) {
        InferTensor output = *inputs[0];
        output.name = "OUTPUT__0";
        RunResult result;
        result.responses.assign(inputs[0]->tensor.data<uint8_t>()[0], std::vector<InferTensor>{output});
        return result;
      });
}

// The daemon in this process with fake models, and a client.
class DaemonFixture : public ::testing::Test {
 protected:
  void start(ServerOptions options = {}) {
    options.repository.model_repositories = {repository_.root.string()};
    options.grpc_port = 0;
    options.allow_metrics = false;
    daemon_ = std::make_unique<Daemon>(
        options, [this](const ModelFiles& files, const ModelConfig& config) { return open_fake(files.model, config); },
        "0.0-test");
    daemon_->load();
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    channel_ = grpc::CreateCustomChannel("127.0.0.1:" + std::to_string(daemon_->grpc_port()),
                                         grpc::InsecureChannelCredentials(), arguments);
    stub_ = inference::GRPCInferenceService::NewStub(channel_);
  }

  std::unique_ptr<const Model> open_fake(const std::string& file, const ModelConfig& config) {
    std::string kind;
    std::ifstream(file) >> kind;
    if (kind == "identity") return identity_model(config.max_batch_size);
    if (kind == "gated") return gated_model(gate_);
    if (kind == "sleepy") return sleepy_model(300);
    if (kind == "repeat") return repeat_model();
    if (kind == "flood") return flood_model();
    fail(ErrorCode::kDataLoss, file, ": this is not an archive");
  }

  // The bytes of `raw` as the input `x`.
  static inference::ModelInferRequest request(const std::string& model, const std::string& raw,
                                              const std::string& id = "7") {
    inference::ModelInferRequest out;
    out.set_model_name(model);
    out.set_id(id);
    auto* input = out.add_inputs();
    input->set_name("x");
    input->set_datatype("UINT8");
    input->add_shape(static_cast<int64_t>(raw.size()));
    out.add_raw_input_contents(raw);
    return out;
  }

  grpc::Status infer(const inference::ModelInferRequest& request, inference::ModelInferResponse* response,
                     int deadline_ms = 120'000) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(deadline_ms));
    return stub_->ModelInfer(&context, request, response);
  }

  TemporaryRepository repository_;
  Gate gate_;  // of models of the kind "gated"
  std::unique_ptr<Daemon> daemon_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<inference::GRPCInferenceService::Stub> stub_;
};

}  // namespace tensord::server::fixtures
