#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <future>
#include <map>

#include "core/base/error.h"
#include "server/executor/model/model_version.h"
#include "server/executor/strategies/ensemble_plan.h"
#include "tests/server/fake_models.h"
#include "tests/server/fake_sink.h"

namespace tensord::server::fixtures {

inline InferTensor floats(const std::string& name, std::vector<float> values) {
  InferTensor out;
  out.name = name;
  out.shape = {static_cast<int64_t>(values.size())};
  out.tensor = Tensor::empty(out.shape, DType::kFloat32);
  std::copy(values.begin(), values.end(), out.tensor.data<float>());
  return out;
}

// Collects responses until the final one.
class Answers final : public InferSink {
 public:
  void respond(InferResult result, bool is_final) override {
    results.push_back(std::move(result));
    if (is_final) done_.set_value();
  }
  bool is_cancelled() const override { return is_cancelled_flag; }
  void wait() { ASSERT_EQ(done_.get_future().wait_for(std::chrono::seconds(200)), std::future_status::ready); }

  std::vector<InferResult> results;
  std::atomic<bool> is_cancelled_flag{false};

 private:
  std::promise<void> done_;
};

inline ModelConfig::TensorConfig named(const std::string& name, const std::string& datatype = "") {
  ModelConfig::TensorConfig config;
  config.name = name;
  config.datatype = datatype;
  return config;
}

using Function = std::function<std::vector<InferTensor>(const std::vector<InferTensor>&)>;

class EnsembleTest : public ::testing::Test, public ModelDirectory {
 protected:
  std::shared_ptr<ModelVersion> find(const std::string& name, const std::string& version) const override {
    found_version = version;
    const auto found = models_.find(name);
    if (found == models_.end()) fail(ErrorCode::kNotFound, "Request for unknown model: '", name, "' is not found");
    return found->second;
  }

  void add(const std::string& name, std::unique_ptr<const Model> model, ModelConfig config = {}, int workers = 1) {
    ModelVersion::Options options;
    options.workers = workers;
    options.directory = this;
    ModelMetrics& metrics = metrics_.model(name, "1");
    models_[name] = std::make_shared<ModelVersion>(name, 1, std::move(model), std::move(config), options, metrics);
  }

  void add_function(const std::string& name, const std::vector<std::string>& inputs,
                    const std::vector<std::string>& outputs, const Function& function) {
    add(name, std::make_unique<FakeModel>(signature_of(inputs, outputs),
                                          [function](std::span<const InferTensor* const> inputs, const auto&) {
                                            std::vector<InferTensor> copies;
                                            for (const InferTensor* input : inputs) copies.push_back(*input);
                                            RunResult result;
                                            result.outputs = function(copies);
                                            return result;
                                          }));
  }

  void add_plus(const std::string& name, float number) {
    add_function(name, {"x"}, {"y"}, [number](const std::vector<InferTensor>& inputs) {
      std::vector<float> values = values_of(inputs[0]);
      for (float& value : values) value += number;
      return std::vector<InferTensor>{floats("y", values)};
    });
  }

  // Returns its input of this shape, and records the sizes that it saw.
  void add_identity(const std::string& name, int64_t max_batch_size, const Dims& shape,
                    DataType datatype = DataType::kFp32, ModelConfig config = {}) {
    Signature signature = signature_of({"x"}, {"y"});
    signature.max_batch_size = max_batch_size;
    signature.inputs[0].datatype = datatype;
    signature.inputs[0].shape = signature.outputs[0].shape = shape;
    const auto run = [this](std::span<const InferTensor* const> inputs, const auto&) {
      RunResult result;
      result.outputs.push_back(*inputs[0]);
      result.outputs[0].name = "y";
      seen_shapes.push_back(inputs[0]->shape);
      return result;
    };
    add(name, std::make_unique<FakeModel>(std::move(signature), run), std::move(config));
  }

  // Sends one response for each element.
  void add_items(const std::string& name) {
    ModelConfig config;
    config.is_decoupled = true;
    add(name,
        std::make_unique<FakeModel>(signature_of({"x"}, {"y"}),
                                    [](std::span<const InferTensor* const> inputs, const auto&) {
                                      RunResult result;
                                      for (const float value : values_of(*inputs[0])) {
                                        result.responses.push_back({floats("y", {value})});
                                      }
                                      return result;
                                    }),
        config);
  }

  // Waits until it is cancelled.
  void add_endless(const std::string& name) {
    add(name, std::make_unique<FakeModel>(signature_of({"x"}, {"y"}),
                                          [this](auto, const std::function<bool()>& is_cancelled) -> RunResult {
                                            ++endless_runs;
                                            while (!is_cancelled())
                                              std::this_thread::sleep_for(std::chrono::milliseconds(1));
                                            fail(ErrorCode::kCancelled, "the run was cancelled");
                                          }));
  }

  static ModelConfig config_of(std::vector<EnsembleStepConfig> steps) {
    ModelConfig config;
    config.platform = "ensemble";
    config.ensemble_steps = std::move(steps);
    return config;
  }

  void add_ensemble(const std::string& name, ModelConfig config) {
    std::unique_ptr<const Model> model = make_ensemble_model(name, config, *this);
    add(name, std::move(model), std::move(config));
  }

  std::string refusal(const ModelConfig& config, const std::string& name = "all") {
    try {
      make_ensemble_model(name, config, *this);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }

  void submit(const std::string& name, std::vector<InferTensor> inputs, Answers& answers,
              std::vector<std::string> outputs = {}) {
    InferRequest request;
    for (InferTensor& input : inputs) {
      const auto& specs = models_[name]->signature().inputs;
      const auto spec = std::find_if(specs.begin(), specs.end(), [&](auto& it) { return it.name == input.name; });
      request.input_indices.push_back(static_cast<size_t>(spec - specs.begin()));
    }
    request.inputs = std::move(inputs);
    request.requested_outputs = std::move(outputs);
    models_[name]->submit(std::move(request), answers);
  }

  Metrics metrics_{"test"};
  std::map<std::string, std::shared_ptr<ModelVersion>> models_;
  mutable std::string found_version;  // that was looked up last
  std::atomic<int> endless_runs{0};
  std::vector<Dims> seen_shapes;  // recorded by add_identity(), of sequential steps
};

inline ModelConfig::TensorConfig sized(const std::string& name, std::vector<int64_t> dims) {
  ModelConfig::TensorConfig config = named(name, "FP32");
  config.dims = std::move(dims);
  config.has_dims = true;
  return config;
}

inline const EnsembleStepConfig kFirst{
    .model = "one", .version = -1, .input_map = {{"x", "in"}}, .output_map = {{"y", "a"}}};
inline const EnsembleStepConfig kSecond{
    .model = "ten", .version = -1, .input_map = {{"x", "a"}}, .output_map = {{"y", "b"}}};

}  // namespace tensord::server::fixtures
