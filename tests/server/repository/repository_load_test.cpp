// Models that clients load and unload.
#include <gmock/gmock.h>

#include <atomic>
#include <future>
#include <thread>

#include "core/base/cancellation.h"
#include "tests/server/repository/repository_fixture.h"

namespace tensord::server::repository_load_test {
namespace {

namespace fs = std::filesystem;
using fixtures::request_of;
using fixtures::Waiter;
using std::chrono::milliseconds;

class RepositoryLoadTest : public fixtures::RepositoryFixture {
 protected:
  Repository& start_explicit(std::vector<std::string> only = {}) {
    return start({.roots = {}, .only = std::move(only), .mode = ControlMode::kExplicit, .copies_archives = true});
  }
  void load(const std::string& name) { repository_->load({.name = name, .config = {}, .files = {}}); }
  void unload(const std::string& name, bool with_dependents = false) {
    repository_->wait_until_gone(repository_->unload_for_client(name, with_dependents), milliseconds(60'000));
  }
};

TEST_F(RepositoryLoadTest, NothingIsLoadedUntilItIsAskedFor) {
  add("a", "1", "number:1");
  add("b", "1", "number:2");
  start_explicit({"b"});
  EXPECT_EQ(states("a"), "not loaded");
  EXPECT_EQ(states("b"), "1 READY");
  EXPECT_TRUE(repository_->is_all_ready());
  EXPECT_EQ(error_of([&] { repository_->find("a", ""); }).first, ErrorCode::kNotFound);
  load("a");
  EXPECT_EQ(ask("a"), 1);
  start_explicit({"*"});
  EXPECT_EQ(states("a"), "1 READY");
}

// Loads of "endless" models run until they are cancelled.
class EndlessLoadTest : public RepositoryLoadTest {
 protected:
  std::unique_ptr<const Model> open(const ModelFiles& files, const ModelConfig& config) override {
    const std::string& file = files.model;
    std::string kind;
    std::ifstream(file) >> kind;
    if (kind == "endless") {
      ++begun_;
      begun_.notify_all();
      for (;;) {
        check_work_cancelled();
        std::this_thread::sleep_for(milliseconds(1));
      }
    }
    return RepositoryLoadTest::open(files, config);
  }
  // The error of a load on a thread of its own, once it has begun.
  std::future<std::string> begin_load(const std::string& name) {
    const int before = begun_;
    auto error = std::async(std::launch::async, [this, name] { return error_of([&] { load(name); }).second; });
    begun_.wait(before);
    return error;
  }
  std::atomic<int> begun_{0};
};

TEST_F(EndlessLoadTest, AnUnloadGivesItUpAndOthersGoOn) {
  add("endless", "1", "endless");
  add("endless2", "1", "endless");
  add("good", "1");
  start_explicit();
  auto first = begin_load("endless"), second = begin_load("endless2");
  EXPECT_EQ(states("endless"), "1 LOADING");
  load("good");
  unload("endless");
  EXPECT_THAT(first.get(), ::testing::HasSubstr("the load was canceled: cancelled"));
  EXPECT_EQ(states("endless"), "1 UNAVAILABLE: unloaded");
  EXPECT_EQ(states("endless2"), "1 LOADING");
  repository_->stop();
  EXPECT_THAT(second.get(), ::testing::HasSubstr("canceled"));
  EXPECT_THAT(error_of([&] { load("good2"); }).second, ::testing::Not(::testing::HasSubstr("no error")));
}

TEST_F(EndlessLoadTest, ItsTimeEnds) {
  add("endless", "1", "endless");
  start({.roots = {}, .only = {}, .mode = ControlMode::kExplicit, .load_timeout_ns = 20'000'000});
  EXPECT_THAT(error_of([&] { load("endless"); }).second,
              ::testing::HasSubstr("the load was canceled: it takes too long"));
}

// Runs until it is cancelled, as its warm-up does.
class EndlessWarmUpTest : public RepositoryLoadTest {
 protected:
  std::unique_ptr<const Model> open(const ModelFiles&, const ModelConfig&) override {
    Signature signature = fixtures::signature_of({"x"}, {"OUTPUT__0"});
    signature.inputs[0].datatype = DataType::kFp32;
    signature.inputs[0].shape = signature.outputs[0].shape = Dims{1};
    return std::make_unique<fixtures::FakeModel>(
        std::move(signature),
        [](std::span<const InferTensor* const>, const std::function<bool()>& is_cancelled) -> RunResult {
          while (!is_cancelled()) std::this_thread::sleep_for(milliseconds(1));
          fail(ErrorCode::kCancelled, "the run was cancelled");
        });
  }
};

TEST_F(EndlessWarmUpTest, ItsTimeEnds) {
  add("m", "1");
  start({.roots = {}, .only = {}, .mode = ControlMode::kExplicit, .load_timeout_ns = 20'000'000});
  EXPECT_THAT(error_of([&] { load("m"); }).second, ::testing::HasSubstr("the load was canceled: it takes too long"));
  EXPECT_THAT(states("m"), ::testing::HasSubstr("1 UNAVAILABLE: the load was canceled"));
}

TEST_F(RepositoryLoadTest, UnloadsAndLoadsAgain) {
  add("m", "1", "number:1");
  start_explicit({"m"});
  unload("m");
  EXPECT_EQ(states("m"), "1 UNAVAILABLE: unloaded");
  EXPECT_TRUE(repository_->is_all_ready());
  EXPECT_EQ(error_of([&] { repository_->find("m", ""); }),
            std::pair(ErrorCode::kNotFound, std::string("Request for unknown model: 'm' has no available versions")));
  EXPECT_EQ(error_of([&] { repository_->find("m", "1"); }).first, ErrorCode::kUnavailable);
  unload("m");
  EXPECT_EQ(error_of([&] { unload("never heard of"); }).first, ErrorCode::kNotFound);
  load("m");
  EXPECT_EQ(ask("m"), 1);
}

TEST_F(RepositoryLoadTest, EnsemblesAreThoseOfTheirModelsAsTheyAreNow) {
  const auto ensemble_of = [&](const std::string& name, const std::string& model, const std::string& in,
                               const std::string& out) {
    configure(name, concat("platform: \"ensemble\" ensemble_scheduling { step [ { model_name: \"", model,
                           "\" model_version: -1 input_map { key: \"", in, "\" value: \"in\" } output_map { key: \"",
                           out, "\" value: \"out\" } } ] }"));
    fs::create_directories(root() / name / "1");
  };
  add("m", "1", "shape:2");
  ensemble_of("e", "m", "x", "OUTPUT__0");
  ensemble_of("f", "e", "in", "out");  // an ensemble of an ensemble
  start_explicit({"f"});
  const auto size_of = [&](const std::string& name) {
    const Signature& signature = repository_->find(name, "")->signature();
    EXPECT_EQ(*signature.inputs[0].shape, *signature.outputs[0].shape);
    return (*signature.inputs[0].shape)[0];
  };
  EXPECT_EQ(size_of("f"), 2);
  const auto before = repository_->find("e", "");
  load("m");
  EXPECT_EQ(repository_->find("e", ""), before);  // unchanged
  add("m", "2", "shape:3");
  load("m");
  EXPECT_EQ(size_of("m"), 3);
  EXPECT_EQ(size_of("e"), 3);
  EXPECT_EQ(size_of("f"), 3);
  EXPECT_EQ(states("e"), "1 READY");
  // If the shapes no longer match, the served version stays.
  add("n", "1", "shape:4");
  configure("e",
            "platform: \"ensemble\" ensemble_scheduling { step [ { model_name: \"m\" model_version: -1 input_map { "
            "key: \"x\" value: \"in\" } output_map { key: \"OUTPUT__0\" value: \"mid\" } }, { model_name: \"n\" "
            "model_version: -1 input_map { key: \"x\" value: \"mid\" } output_map { key: \"OUTPUT__0\" value: "
            "\"out\" } } ] }");
  add("m", "3", "shape:4");
  load("m");
  load("e");
  EXPECT_EQ(size_of("e"), 4);
  add("m", "4", "shape:5");
  load("m");
  EXPECT_EQ(size_of("m"), 5);
  EXPECT_EQ(size_of("e"), 4);
  EXPECT_NE(metrics_.text().find("tensord_model_load_failures_total{model=\"e\"} 1"), std::string::npos);
}

// Opening a slow model waits for the gate.
class RepositoryGateTest : public RepositoryLoadTest {
 protected:
  std::unique_ptr<const Model> open(const ModelFiles& files, const ModelConfig& config) override {
    const std::string& file = files.model;
    std::string kind;
    std::ifstream(file) >> kind;
    if (kind == "slow") {
      at_gate_.set_value();
      gate_.get_future().wait();
    }
    return RepositoryLoadTest::open(files, config);
  }
  std::promise<void> at_gate_, gate_;
};

TEST_F(RepositoryGateTest, AStepIsUnloadedAfterTheEnsembleThatIsBeingLoaded) {
  add("first", "1");
  add("gated", "1", "slow");
  configure("e",
            "platform: \"ensemble\" ensemble_scheduling { step [ { model_name: \"first\" model_version: -1 input_map { "
            "key: \"x\" value: \"in\" } output_map { key: \"OUTPUT__0\" value: \"mid\" } }, { model_name: \"gated\" "
            "model_version: -1 input_map { key: \"x\" value: \"mid\" } output_map { key: \"OUTPUT__0\" value: "
            "\"out\" } } ] }");
  fs::create_directories(root() / "e" / "1");
  start_explicit({});
  auto loaded = std::async(std::launch::async, [&] { return error_of([&] { load("e"); }).second; });
  at_gate_.get_future().wait();
  EXPECT_EQ(states("first"), "1 READY");
  auto unloaded = std::async(std::launch::async, [&] { unload("first"); });
  EXPECT_EQ(unloaded.wait_for(milliseconds(50)), std::future_status::timeout);
  gate_.set_value();
  EXPECT_EQ(loaded.get(), "no error");
  unloaded.get();
  EXPECT_EQ(states("first"), "1 UNAVAILABLE: unloaded");
  EXPECT_EQ(states("e").substr(0, 23), "1 UNAVAILABLE: unloaded");
}

TEST_F(RepositoryLoadTest, MetricsOfLoadsAndOfWhatIsServed) {
  add("m", "1", "number:1");
  start_explicit({"m"});
  const auto has = [&](const std::string& line) { return metrics_.text().find(line) != std::string::npos; };
  EXPECT_TRUE(has("tensord_model_ready{model=\"m\",version=\"1\"} 1"));
  EXPECT_TRUE(has("tensord_model_loads_total{model=\"m\"} 1"));
  add("m", "2", "number:2");
  load("m");
  while (has("version=\"1\"")) std::this_thread::yield();  // its series are removed with it
  EXPECT_TRUE(has("tensord_model_ready{model=\"m\",version=\"2\"} 1"));
  add("m", "3", "broken");
  EXPECT_THROW(load("m"), Error);
  EXPECT_TRUE(has("tensord_model_load_failures_total{model=\"m\"} 1"));
  EXPECT_TRUE(has("tensord_model_loads_total{model=\"m\"} 2"));
  fs::remove_all(root() / "m" / "3");
  unload("m");
  EXPECT_FALSE(has("version=\"2\""));
  load("m");
  EXPECT_TRUE(has("tensord_model_ready{model=\"m\",version=\"2\"} 1"));
  EXPECT_TRUE(has("tensord_model_loads_total{model=\"m\"} 3"));
}

TEST_F(RepositoryLoadTest, WhatHasNotChangedIsNotLoadedAgain) {
  add("m", "1", "number:1");
  configure("m", "version_policy: { all {} }");
  start_explicit({"m"});
  const auto before = repository_->find("m", "1");
  load("m");
  EXPECT_EQ(repository_->find("m", "1"), before);
  // A new version leaves the others alone.
  add("m", "2", "number:2");
  load("m");
  EXPECT_EQ(repository_->find("m", "1"), before);
  EXPECT_EQ(ask("m"), 2);
  // Another file at the same path.
  add("m", "1", "number:3");
  load("m");
  EXPECT_EQ(ask("m", "1"), 3);
  // The configuration is part of every version.
  const auto newest = repository_->find("m", "2");
  configure("m", "version_policy: { all {} } instance_group { count: 2 }");
  load("m");
  EXPECT_NE(repository_->find("m", "2"), newest);
}

TEST_F(RepositoryLoadTest, ABrokenVersionDoesNotDisturb) {
  add("m", "1", "number:1");
  start_explicit({"m"});
  add("m", "2", "broken");
  const auto [code, message] = error_of([&] { load("m"); });
  EXPECT_EQ(code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(message, "load failed for model 'm': version 2 is at UNAVAILABLE state: not a model: broken;\n");
  EXPECT_EQ(ask("m"), 1);
  EXPECT_EQ(states("m"), "1 READY, 2 UNAVAILABLE: not a model: broken");
  EXPECT_TRUE(repository_->is_all_ready());
  configure("m", "max_batch_size: }");
  EXPECT_EQ(error_of([&] { load("m"); }).first, ErrorCode::kInvalidArgument);
  EXPECT_EQ(ask("m"), 1);
  fs::remove(root() / "m" / "config.pbtxt");
  add("m", "2", "number:2");
  load("m");
  EXPECT_EQ(states("m"), "2 READY");
}

TEST_F(RepositoryLoadTest, NamesThatAreNone) {
  write(base_ / "outside" / "1" / "model.pt", "identity");
  start_explicit();
  EXPECT_EQ(error_of([&] { load(""); }),
            std::pair(ErrorCode::kInvalidArgument,
                      std::string("Model name cannot be empty. Please enter a valid name to deploy.")));
  for (const char* name : {"../outside", "..", " .. ", "a/b", "/etc", " \t"}) {
    EXPECT_EQ(error_of([&] { load(name); }).first, ErrorCode::kInvalidArgument) << name;
    EXPECT_EQ(error_of([&] { unload(name); }).first, ErrorCode::kNotFound) << name;
  }
  for (const char* name : {".hidden", "...", "a\nb", "a\\b"}) {
    EXPECT_EQ(error_of([&] { load(name); }).first, ErrorCode::kNotFound) << name;
    EXPECT_EQ(error_of([&] { unload(name); }).first, ErrorCode::kNotFound) << name;
  }
  add("there", "1", "number:1");
  EXPECT_EQ(error_of([&] { load("three"); }),
            std::pair(ErrorCode::kNotFound,
                      std::string("failed to load 'three', failed to poll from model repository: no model has this "
                                  "name; did you mean 'there'? There are 'there'")));
  EXPECT_EQ(error_of([&] { unload("ther"); }),
            std::pair(ErrorCode::kNotFound, std::string("Request for unknown model: 'ther' is not found; did you mean "
                                                        "'there'? There are 'there'")));
  unload("there");  // nothing to end
}

TEST_F(RepositoryLoadTest, WhatServesOnSaysThatItsFilesChanged) {
  add("m", "1", "number:1");
  start_explicit({"m"});
  add("m", "1", "broken");
  EXPECT_THROW(load("m"), Error);
  EXPECT_EQ(ask("m"), 1);
  EXPECT_EQ(states("m"), "1 READY: the last change of its files could not be served: not a model: broken");
  add("m", "1", "number:2");
  load("m");
  EXPECT_EQ(ask("m"), 2);
  EXPECT_EQ(states("m"), "1 READY");
}

TEST_F(RepositoryLoadTest, OnlyInModeExplicit) {
  add("m", "1");
  for (const auto& [mode, how] :
       {std::pair(ControlMode::kNone, "in mode none"), std::pair(ControlMode::kPoll, "if polling is enabled")}) {
    start({.roots = {}, .only = {}, .mode = mode, .poll_interval_ms = 0});
    const std::string text = concat("explicit model load / unload is not allowed ", how,
                                    "; the server was not started with --model-control-mode explicit");
    EXPECT_EQ(error_of([&] { load("m"); }), std::pair(ErrorCode::kUnavailable, text));
    EXPECT_EQ(error_of([&] { unload("m"); }), std::pair(ErrorCode::kUnavailable, text));
  }
}

TEST_F(RepositoryLoadTest, FilesOfClients) {
  add("m", "1", "number:1");
  start_explicit({"m"});
  const auto load_files = [&](const std::string& name, std::map<std::string, std::string> files) {
    repository_->load({.name = name, .config = "{\"version_policy\":{\"all\":{}}}", .files = std::move(files)});
  };
  load_files("m", {{"3/model.pt", "number:3"}, {"4/model.pt", "number:4"}});
  EXPECT_EQ(states("m"), "3 READY, 4 READY");
  EXPECT_EQ(ask("m", "3"), 3);
  EXPECT_TRUE(fs::exists(repository_->source_of("m", 4).file));
  // A model may exist only in the load request.
  load_files("brought", {{"1/model.pt", "number:5"}});
  EXPECT_EQ(ask("brought"), 5);
  const fs::path file = repository_->source_of("brought", 1).file;
  unload("brought");
  EXPECT_FALSE(fs::exists(file));
  EXPECT_EQ(states("brought"), "");
  // A load without parameters keeps it; after an unload the repository is used again.
  const std::string brought = states("m");
  load("m");
  EXPECT_EQ(states("m"), brought);
  unload("m");
  load("m");
  EXPECT_EQ(states("m"), "1 READY");
  EXPECT_EQ(ask("m"), 1);
  for (const char* path : {"../m/1/model.pt", "/tmp/model.pt", "1/../../x", "", "1//model.pt", "1/", "a\nb", ".x"}) {
    EXPECT_EQ(error_of([&] { load_files("m", {{path, "number:9"}}); }).first, ErrorCode::kInvalidArgument) << path;
  }
  EXPECT_EQ(error_of([&] {
              repository_->load({.name = "m", .config = {}, .files = {{"1/model.pt", "number:9"}}});
            }).second,
            "failed to load 'm', failed to poll from model repository: Load parameter 'config' must be specified for "
            "model file override");
  EXPECT_EQ(error_of([&] { load_files("m", {{"3/model.pt", "broken"}}); }).first, ErrorCode::kInvalidArgument);
  EXPECT_EQ(ask("m"), 1);
}

TEST_F(RepositoryLoadTest, FilesOfClientsAreBounded) {
  start({.roots = {}, .only = {}, .mode = ControlMode::kExplicit, .override_limit_bytes = 20});
  const auto load_file = [&](const std::string& name) {
    repository_->load({.name = name, .config = "{}", .files = {{"1/model.pt", "number:1    "}}});
  };
  load_file("a");
  EXPECT_EQ(error_of([&] { load_file("b"); }).first, ErrorCode::kResourceExhausted);
  unload("a");
  load_file("b");
  EXPECT_EQ(ask("b"), 1);
}

TEST_F(RepositoryLoadTest, ConfigurationOfClients) {
  add("m", "1", "number:1");
  add("m", "2", "number:2");
  start_explicit({"m"});
  repository_->load({.name = "m", .config = "{\"version_policy\":{\"specific\":{\"versions\":[\"1\"]}}}", .files = {}});
  EXPECT_EQ(states("m"), "1 READY");
  EXPECT_EQ(error_of([&] { repository_->load({.name = "m", .config = "{\"max_batch_size\":", .files = {}}); }).first,
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(error_of([&] { repository_->load({.name = "m", .config = "{\"name\":\"other\"}", .files = {}}); }).first,
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(states("m"), "1 READY");
  load("m");
  EXPECT_EQ(states("m"), "1 READY");
  add("m", "1", "number:7");  // with the client's configuration, but the repository's files
  load("m");
  EXPECT_EQ(ask("m"), 7);
  configure("m", "version_policy: { all {} }");  // used from now on
  load("m");
  EXPECT_EQ(states("m"), "1 READY, 2 READY");
  fs::remove(root() / "m" / "config.pbtxt");
  unload("m");
  load("m");
  EXPECT_EQ(states("m"), "2 READY");
}

TEST_F(RepositoryLoadTest, WeightsAlone) {
  add("m", "1", "number:1");
  Repository::Options options{.roots = {}, .only = {"m"}, .mode = ControlMode::kExplicit};
  options.write_weights = [](const std::string& base, const std::string& weights, const std::string& out) {
    std::string old, changed;
    std::ifstream(base) >> old;
    std::ifstream(weights) >> changed;
    check(changed != "bad", "weights.pt: bad");
    EXPECT_EQ(old.substr(0, 7), "number:");
    std::ofstream(out) << "number:" << changed;
  };
  start(std::move(options));
  const auto load_weights = [&](const std::string& path, const std::string& text) {
    repository_->load({.name = "m", .config = {}, .files = {{path, text}}});
  };
  load_weights("1/weights.pt", "8");
  EXPECT_EQ(states("m"), "1 READY");
  EXPECT_EQ(ask("m"), 8);
  load_weights("2/weights.safetensors", "9");
  EXPECT_EQ(states("m"), "2 READY");
  EXPECT_EQ(ask("m"), 9);
  EXPECT_EQ(error_of([&] { load_weights("2/weights.pt", "bad"); }).first, ErrorCode::kInvalidArgument);
  EXPECT_EQ(error_of([&] { load_weights("1/weights.pt", "7"); }).first, ErrorCode::kInvalidArgument);
  EXPECT_EQ(ask("m"), 9);
  load("m");
  EXPECT_EQ(ask("m"), 1);
}

TEST_F(RepositoryLoadTest, UnloadWaitsForRequestsAndTheirMemory) {
  add("m", "1", "slow");
  start_explicit({"m"});
  Waiter waiter;
  auto model = repository_->find("m", "");
  const MemoryOwnerScope scope(model->owner());
  auto kept = std::make_unique<Tensor>(Tensor::empty(Dims{1000}, DType::kFloat32));
  model->submit(request_of(1), waiter);
  const Repository::Unloading unloading = repository_->unload("m");
  EXPECT_EQ(states("m"), "1 UNLOADING");
  EXPECT_EQ(error_of([&] { repository_->wait_until_gone(unloading, milliseconds(10)); }).first,
            ErrorCode::kDeadlineExceeded);
  EXPECT_TRUE(waiter.wait().status.ok());
  model.reset();
  const auto [code, message] = error_of([&] { repository_->wait_until_gone(unloading, milliseconds(1000)); });
  EXPECT_EQ(code, ErrorCode::kDeadlineExceeded);
  EXPECT_NE(message.find("bytes of its tensors are still in use"), std::string::npos) << message;
  kept.reset();
  repository_->wait_until_gone(unloading, milliseconds(60'000));
  EXPECT_EQ(states("m"), "1 UNAVAILABLE: unloaded");
}

// Of versions that change together all or none: the newest is broken, so those beside it stay as they were.
TEST_F(RepositoryLoadTest, NothingIsAdoptedInPart) {
  for (const char* version : {"1", "2"}) add("m", version, std::string("number:") + version);
  configure("m", "version_policy: { all {} }");
  start_explicit({"m"});
  const auto before = repository_->find("m", "1");
  add("m", "1", "number:10");
  add("m", "2", "broken");
  EXPECT_EQ(error_of([&] { load("m"); }).first, ErrorCode::kInvalidArgument);
  EXPECT_EQ(repository_->find("m", "1"), before);
  EXPECT_EQ(ask("m", "1"), 1);
  EXPECT_EQ(ask("m", "2"), 2);
}

TEST_F(RepositoryLoadTest, ManyAtOnce) {
  for (const char* name : {"a", "b", "c"}) add(name, "1", "number:1");
  start_explicit();
  std::vector<std::thread> threads;
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&, i] {
      const std::string name(1, static_cast<char>('a' + i % 3));
      for (int round = 0; round < 20; ++round) {
        load(name);
        if (i < 3) unload(name);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const char* name : {"a", "b", "c"}) {
    load(name);
    EXPECT_EQ(states(name), "1 READY");
  }
}

}  // namespace
}  // namespace tensord::server::repository_load_test
