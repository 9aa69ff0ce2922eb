#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/private_copy.h"
#include "server/repository/repository.h"
#include "tests/server/fake_models.h"
#include "tests/server/temporary_folder.h"

namespace tensord::server::fixtures {

// Waits for the response to one request.
class Waiter final : public InferSink {
 public:
  void respond(InferResult result, bool) override {
    const std::lock_guard lock(mutex_);
    result_ = std::move(result);
    is_done_ = true;
    changed_.notify_all();
  }
  bool is_cancelled() const override { return false; }
  InferResult wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return is_done_; });
    return std::move(result_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  InferResult result_;
  bool is_done_ = false;
};

inline InferRequest request_of(float value) {
  InferRequest request;
  InferTensor input;
  input.name = "x";
  input.shape = {1};
  input.tensor = Tensor::empty(Dims{1}, DType::kFloat32);
  *input.tensor.data<float>() = value;
  request.inputs.push_back(std::move(input));
  request.input_indices = {0};
  return request;
}

// A repository in a temporary folder, whose model files hold one word: the kind of fake model. "broken" cannot be
// opened; "number:7" responds 7 to everything; "shape:7" takes seven elements and returns them; "tensor:7" holds seven
// bytes.
class RepositoryFixture : public ::testing::Test {
 protected:
  RepositoryFixture() { std::filesystem::create_directories(root()); }

  std::filesystem::path root(const std::string& name = "models") const { return base_ / name; }

  static void write(const std::filesystem::path& path, const std::string& text) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  // Writes the file atomically.
  void add(const std::string& model, const std::string& version, const std::string& kind = "identity") const {
    write(base_ / "new", kind);
    std::filesystem::create_directories(root() / model / version);
    std::filesystem::rename(base_ / "new", root() / model / version / "model.pt");
  }
  void configure(const std::string& model, const std::string& text) const {
    write(root() / model / "config.pbtxt", text);
  }

  Repository& start(Repository::Options options) {
    if (options.roots.empty()) options.roots = {root().string()};
    repository_ = std::make_unique<Repository>(
        std::move(options),
        [this](const ModelFiles& files, const ModelConfig& config) {
          if (files.are_copied) copy_privately(files.model);  // as the engine does
          return open(files, config);
        },
        metrics_);
    repository_->load_all();
    return *repository_;
  }

  virtual std::unique_ptr<const Model> open(const ModelFiles& files, const ModelConfig&) {
    const std::string& file = files.model;
    std::string kind;
    std::ifstream(file) >> kind;
    ++opened_;
    check(kind == "identity" || kind == "slow" || kind.starts_with("number:") || kind.starts_with("shape:") ||
              kind.starts_with("tensor:"),
          "not a model: ", kind);
    if (kind.starts_with("tensor:")) return holding_model(std::stoll(kind.substr(7)));
    if (kind.starts_with("shape:")) return shape_model(std::stoll(kind.substr(6)));
    if (kind == "slow") return sleepy_model(100);
    return kind == "identity" ? identity_model() : number_model(std::stof(kind.substr(7)));
  }

  // An identity model of one size.
  static std::unique_ptr<const Model> shape_model(int64_t size) {
    Signature signature = signature_of({"x"}, {"OUTPUT__0"});
    signature.inputs[0].shape = signature.outputs[0].shape = Dims{size};
    return std::make_unique<FakeModel>(std::move(signature),
                                       [](std::span<const InferTensor* const> inputs, const auto&) {
                                         RunResult result;
                                         result.outputs.push_back(*inputs[0]);
                                         result.outputs[0].name = "OUTPUT__0";
                                         return result;
                                       });
  }

  static std::unique_ptr<const Model> holding_model(int64_t size_bytes) {
    const Tensor held = Tensor::empty(Dims{size_bytes}, DType::kUInt8);
    return std::make_unique<FakeModel>(signature_of({"x"}, {"OUTPUT__0"}),
                                       [held](std::span<const InferTensor* const> inputs, const auto&) {
                                         RunResult result;
                                         result.outputs.push_back(*inputs[0]);
                                         result.outputs[0].name = "OUTPUT__0";
                                         return result;
                                       });
  }

  static std::unique_ptr<const Model> number_model(float number) {
    return std::make_unique<FakeModel>(signature_of({"x"}, {"OUTPUT__0"}),
                                       [number](std::span<const InferTensor* const> inputs, const auto&) {
                                         RunResult result;
                                         result.outputs.push_back(*inputs[0]);
                                         result.outputs[0].name = "OUTPUT__0";
                                         result.outputs[0].tensor = Tensor::empty(Dims{1}, DType::kFloat32);
                                         *result.outputs[0].tensor.data<float>() = number;
                                         return result;
                                       });
  }

  // The model's response; throws as find() does.
  float ask(const std::string& model, const std::string& version = "") const {
    Waiter waiter;
    const auto handle = repository_->find(model, version);
    handle->submit(request_of(-1), waiter);
    const InferResult result = waiter.wait();
    EXPECT_TRUE(result.status.ok()) << result.status;
    return result.status.ok() ? *result.outputs.at(0).tensor.data<float>() : 0;
  }

  template <class Action>
  static std::pair<ErrorCode, std::string> error_of(const Action& action) {
    try {
      action();
    } catch (const Error& error) {
      return {error.code(), error.what()};
    }
    return {ErrorCode::kInternal, "no error"};
  }

  // "1 READY, 2 UNAVAILABLE: reason" of one model.
  std::string states(const std::string& model) const {
    std::string out;
    for (const auto& entry : repository_->index()) {
      if (entry.name != model) continue;
      out += out.empty() ? "" : ", ";
      out += entry.state ? concat(entry.version, " ", to_string(*entry.state)) : "not loaded";
      if (!entry.reason.empty()) out += ": " + entry.reason;
    }
    return out;
  }

  const TemporaryFolder temporary_{"repository"};
  const std::filesystem::path base_ = temporary_.path();
  Metrics metrics_{"test"};
  std::unique_ptr<Repository> repository_;
  std::atomic<int> opened_{0};
};

}  // namespace tensord::server::fixtures
