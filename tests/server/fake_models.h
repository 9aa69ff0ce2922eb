#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "server/config/model_config.h"
#include "server/executor/model/model.h"

namespace tensord::server::fixtures {

using RunFn = std::function<RunResult(std::span<const InferTensor* const>, const std::function<bool()>&)>;

// A model that runs a function of the test.
class FakeModel final : public Model {
 public:
  FakeModel(Signature signature, RunFn run) : signature_(std::move(signature)), run_(std::move(run)) {}
  const Signature& signature() const override { return signature_; }
  std::unique_ptr<ModelSession> make_session() const override { return std::make_unique<Session>(run_); }
  void release_unused_memory() const override { ++releases_; }
  int releases() const { return releases_; }

 private:
  struct Session final : ModelSession {
    explicit Session(const RunFn& run) : run_fn(run) {}
    RunResult run(std::span<const InferTensor* const> inputs, const RunOptions& options) override {
      return run_fn(inputs, options.is_cancelled);
    }
    const RunFn& run_fn;
  };
  Signature signature_;
  RunFn run_;
  mutable std::atomic<int> releases_ = 0;
};

inline Signature signature_of(const std::vector<std::string>& inputs, const std::vector<std::string>& outputs) {
  Signature signature;
  signature.platform = "fake";
  for (const auto& name : inputs) {
    TensorSpec spec;
    spec.name = name;
    spec.aliases = {"INPUT__" + std::to_string(signature.inputs.size())};
    signature.inputs.push_back(spec);
  }
  for (const auto& name : outputs) {
    TensorSpec spec;
    spec.name = name;
    signature.outputs.push_back(spec);
  }
  return signature;
}

// Returns its one input.
inline std::unique_ptr<const Model> identity_model(int64_t max_batch_size = 0) {
  Signature signature = signature_of({"x"}, {"OUTPUT__0"});
  signature.max_batch_size = max_batch_size;
  signature.has_bounded_work = true;
  return std::make_unique<FakeModel>(std::move(signature), [](std::span<const InferTensor* const> inputs, const auto&) {
    RunResult result;
    result.outputs.push_back(*inputs[0]);
    result.outputs[0].name = "OUTPUT__0";
    return result;
  });
}

// Runs until it is cancelled or `milliseconds` have passed.
inline std::unique_ptr<const Model> sleepy_model(int milliseconds) {
  return std::make_unique<FakeModel>(
      signature_of({"x"}, {"OUTPUT__0"}),
      [milliseconds](std::span<const InferTensor* const> inputs, const std::function<bool()>& is_cancelled) {
        for (int i = 0; i < milliseconds; ++i) {
          if (is_cancelled()) fail(ErrorCode::kCancelled, "the run was cancelled");
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        RunResult result;
        result.outputs.push_back(*inputs[0]);
        result.outputs[0].name = "OUTPUT__0";
        return result;
      });
}

}  // namespace tensord::server::fixtures
