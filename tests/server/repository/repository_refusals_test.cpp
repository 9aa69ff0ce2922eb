// What the repository refuses, and the error messages.
#include <gmock/gmock.h>

#include "core/base/parallel.h"
#include "server/executor/strategies/response_cache.h"
#include "tests/server/repository/repository_fixture.h"

namespace tensord::server::repository_refusals_test {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class RepositoryRefusals : public fixtures::RepositoryFixture {
 protected:
  void start_explicit() {
    start({.roots = {}, .only = {"*"}, .mode = ControlMode::kExplicit, .copies_archives = true});
  }
  std::pair<ErrorCode, std::string> load(const std::string& name) { return load_with(name, {}, {}); }
  std::pair<ErrorCode, std::string> load_with(const std::string& name, std::optional<std::string> config,
                                              std::map<std::string, std::string> files) {
    return error_of([&] { repository_->load({.name = name, .config = std::move(config), .files = std::move(files)}); });
  }
  std::unique_ptr<const Model> open(const ModelFiles& files, const ModelConfig& config) override {
    const std::string& file = files.model;
    std::string kind;
    std::ifstream(file) >> kind;
    if (kind == "names") fail(ErrorCode::kInvalidArgument, file, " with ", files.weights);
    if (kind == "looks") at_look_.push_back(on_look_());
    if (kind != "threads") return RepositoryFixture::open({kind == "looks" ? file_of("identity") : file}, config);
    return std::make_unique<fixtures::FakeModel>(
        fixtures::signature_of({"x"}, {"OUTPUT__0"}), [](std::span<const InferTensor* const> inputs, const auto&) {
          RunResult result;
          result.outputs.push_back(*inputs[0]);
          result.outputs[0].name = "OUTPUT__0";
          *result.outputs[0].tensor.data<float>() = static_cast<float>(thread_budget());
          return result;
        });
  }
  std::string file_of(const std::string& kind) const {
    write(base_ / "kinds" / kind, kind);
    return base_ / "kinds" / kind;
  }

  std::function<std::string()> on_look_;
  std::vector<std::string> at_look_;
};

TEST_F(RepositoryRefusals, WhatIsToBeLoadedSoonIsLoading) {
  add("a", "1", "looks");
  add("b", "1");
  on_look_ = [&] {
    return concat(states("b"), "\n", error_of([&] { repository_->find("b", ""); }).second, "\n",
                  error_of([&] { repository_->find("b", "1"); }).second);
  };
  start({});
  const std::string loading = "Request for unknown model: 'b' version 1 is not at ready state: LOADING";
  EXPECT_THAT(at_look_, ::testing::ElementsAre("1 LOADING\n" + loading + "\n" + loading));
  EXPECT_EQ(states("b"), "1 READY");
}

TEST_F(RepositoryRefusals, WithoutLabelsThereAreNone) {
  add("m", "1");
  configure("m", "parameters { key: 'version_labels' value: { string_value: 'stable=1' } }");
  start({.roots = {}, .only = {}, .allows_labels = false});
  EXPECT_EQ(error_of([&] { repository_->find("m", "stable"); }).first, ErrorCode::kInvalidArgument);
  EXPECT_EQ(error_of([&] { repository_->set_labels("m", "new=1"); }).first, ErrorCode::kUnimplemented);
  start({});
  EXPECT_TRUE(repository_->is_ready("m", "stable"));
  EXPECT_EQ(error_of([&] { repository_->set_labels("none", "new=1"); }),
            std::pair(ErrorCode::kNotFound, std::string("Request for unknown model: 'none' is not found")));
  EXPECT_THAT(error_of([&] { repository_->set_labels("mm", "new=1"); }).second, HasSubstr("did you mean 'm'?"));
}

TEST_F(RepositoryRefusals, ModelsThatAreNotThere) {
  start_explicit();
  add("m", "1");
  const std::pair of_m{ErrorCode::kNotFound, std::string("Request for unknown model: 'm' is not found")};
  EXPECT_EQ(error_of([&] { repository_->source_of("m", 1); }), of_m);
  EXPECT_EQ(error_of([&] { repository_->source_of("m", 0); }), of_m);
  EXPECT_EQ(error_of([&] { repository_->unload("m"); }), of_m);
  EXPECT_EQ(load("m").second, "no error");
  EXPECT_TRUE(fs::exists(repository_->source_of("m", 1).file));
  // A failed version of a model that still serves is only reported.
  add("m", "2", "broken");
  EXPECT_THAT(load("m").second, HasSubstr("not a model: broken"));
  EXPECT_THAT(states("m"), HasSubstr("2 UNAVAILABLE: not a model: broken"));
  EXPECT_EQ(error_of([&] { repository_->find("m", "2"); }).first, ErrorCode::kNotFound);
}

TEST_F(RepositoryRefusals, ConfigurationsThatAreNotServed) {
  add("m", "1");
  start_explicit();
  const auto [code, text] = load_with("m", R"({"platform": "tensorflow_graphdef"})", {});
  EXPECT_EQ(code, ErrorCode::kUnimplemented);
  EXPECT_THAT(text, StartsWith("failed to load 'm', failed to poll from model repository: "));
}

// A warning about a field of a valid configuration names where it is from, and is not an error.
TEST_F(RepositoryRefusals, ConfigurationsOfALoadAreNamedAsWhatTheyAre) {
  add("m", "1");
  start_explicit();
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(load_with("m", R"({"optimization": {"priority": "PRIORITY_MAX"}})", {}).second, "no error");
  const std::string logged = ::testing::internal::GetCapturedStderr();
  const size_t at = logged.find("parameter 'config' of model 'm'");
  EXPECT_NE(at, std::string::npos);
  EXPECT_EQ(logged.find("config field not used", at), std::string::npos) << "once";
  EXPECT_THAT(logged, ::testing::Not(HasSubstr("nvalid")));
  EXPECT_THAT(load_with("m", R"({"max_batch_size": -1})", {}).second,
              HasSubstr("model repository: Invalid config override: parameter 'config' of model 'm': max_batch_size"));
  EXPECT_THAT(load_with("m", "{", {}).second, HasSubstr("Invalid config override: parameter 'config' of model 'm'"));
}

TEST_F(RepositoryRefusals, WeightsAloneNeedAModelThatTakesThem) {
  add("m", "1", "number:1");
  add("n", "1", "number:1");
  configure("n", "version_policy: { specific: { versions: [1, 3] } }");
  configure("e",
            "platform: 'ensemble' ensemble_scheduling { step { model_name: 'm' model_version: -1 input_map { key: 'x' "
            "value: 'in' } output_map { key: 'OUTPUT__0' value: 'out' } } }");
  fs::create_directories(root() / "e" / "1");
  start_explicit();
  EXPECT_EQ(load_with("m", {}, {{"2/weights.pt", "5"}}).first, ErrorCode::kUnimplemented);
  Repository::Options options{.roots = {}, .only = {"*"}, .mode = ControlMode::kExplicit};
  options.write_weights = [](const std::string&, const std::string&, const std::string& out) {
    std::ofstream(out) << "number:5";
  };
  start(std::move(options));
  EXPECT_EQ(load_with("e", {}, {{"2/weights.pt", "5"}}).first, ErrorCode::kUnimplemented);
  EXPECT_THAT(load_with("n", {}, {{"2/weights.pt", "5"}}).second,
              HasSubstr("its version_policy does not name version 2"));
  EXPECT_EQ(load_with("n", {}, {{"3/weights.pt", "5"}}).second, "no error");
  EXPECT_EQ(repository_->ready_versions("n"), (std::vector<std::string>{"1", "3"}));
  // Without a folder it is not a valid name for weights.
  EXPECT_THAT(load_with("m", {}, {{"weights.pt", "5"}}).second, HasSubstr("Load parameter 'config' must be specified"));
}

TEST_F(RepositoryRefusals, NothingIsLoadedAfterTheEnd) {
  add("m", "1");
  start_explicit();
  EXPECT_EQ(load("m").second, "no error");
  repository_->stop();
  EXPECT_NE(load("m").second, "no error");
  EXPECT_EQ(states("m"), "1 READY");
}

// Weights beside a model are found where its link points.
TEST_F(RepositoryRefusals, WeightsLieBesideTheirModel) {
  const fs::path model = root() / "m";
  write(model / "files" / "model.pt", "identity");
  fs::create_directories(model / "1");
  fs::create_symlink("../files/model.pt", model / "1" / "model.pt");
  const auto reload = [&] {
    start_explicit();
    return states("m");
  };
  EXPECT_EQ(reload(), "1 READY");
  write(model / "1" / "weights.safetensors", "");
  EXPECT_THAT(reload(), HasSubstr("weights.safetensors: lies in another folder than "));
  write(model / "files" / "weights.safetensors", "");
  EXPECT_THAT(reload(), HasSubstr("weights.safetensors: lies in another folder than "));
  fs::remove(model / "1" / "weights.safetensors");
  EXPECT_EQ(reload(), "1 READY");
  fs::create_symlink("../files/weights.safetensors", model / "1" / "weights.safetensors");
  EXPECT_EQ(reload(), "1 READY");
}

// Whether they are copied or not.
TEST_F(RepositoryRefusals, FilesAreCalledByTheirNames) {
  add("m", "1", "names");
  write(root() / "m" / "1" / "weights.safetensors", "");
  start_explicit();
  const std::string folder = fs::canonical(root() / "m" / "1");
  EXPECT_EQ(states("m"), concat("1 UNAVAILABLE: ", folder, "/model.pt with ", folder, "/weights.safetensors"));
}

TEST_F(RepositoryRefusals, RunsGetTheThreadsThatTheOptionsSay) {
  add("m", "1", "threads");
  for (const int threads : {1, 2}) {
    start({.roots = {}, .only = {}, .threads_per_worker = threads});
    EXPECT_EQ(ask("m"), static_cast<float>(std::min(threads, available_cores())));
  }
  // Or the model's configuration.
  configure("m", "parameters: { key: 'INTRA_OP_THREAD_COUNT' value: { string_value: '1' } }");
  start({.roots = {}, .only = {}, .threads_per_worker = 2});
  EXPECT_EQ(ask("m"), 1);
}

TEST_F(RepositoryRefusals, AResponseCacheIsTheServers) {
  add("m", "1");
  configure("m", "response_cache: { enable: true }");
  ResponseCache cache(1 << 20);
  for (ResponseCache* const given : {&cache, static_cast<ResponseCache*>(nullptr)}) {
    ::testing::internal::CaptureStderr();
    start({.roots = {}, .only = {}, .cache = given});
    const std::string log = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(states("m"), "1 READY");
    EXPECT_EQ(log.find("response_cache not used") == std::string::npos, given != nullptr) << log;
  }
  repository_.reset();
}

// Only names that refer to files are checked against the files.
TEST_F(RepositoryRefusals, WarmUpRequestsWithoutFiles) {
  add("m", "1");
  configure("m",
            "model_warmup: [ { name: 'w' batch_size: 1 inputs: { key: 'x' value: { data_type: TYPE_FP32 dims: [ 1 ] "
            "zero_data: true } } } ]");
  start({});
  EXPECT_EQ(states("m"), "1 READY");
}

// Memory counts as used until the last of it is released, whatever else is served; not if the same version serves
// again.
TEST_F(RepositoryRefusals, AnUnloadWaitsForItsOwnMemory) {
  add("m", "1", "tensor:5000");
  add("other", "1", "tensor:5000");
  start_explicit();
  Tensor held;
  {
    const MemoryOwnerScope scope(repository_->find("m", "")->owner());
    held = Tensor::empty(Dims{100}, DType::kUInt8);
  }
  const Repository::Unloading unloading = repository_->unload("m");
  EXPECT_THAT(error_of([&] { repository_->wait_until_gone(unloading, milliseconds(100)); }).second,
              HasSubstr("bytes of its tensors are still in use"));
  EXPECT_EQ(load("m").second, "no error");
  EXPECT_EQ(error_of([&] { repository_->wait_until_gone(unloading, milliseconds(2000)); }).second, "no error");
}

}  // namespace
}  // namespace tensord::server::repository_refusals_test
