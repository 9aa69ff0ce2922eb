// Ensembles and their component models: what is loaded, unloaded and reloaded together.
#include <gmock/gmock.h>

#include <future>

#include "tests/server/repository/repository_fixture.h"

namespace tensord::server::repository_ensembles_test {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using ::testing::HasSubstr;

// Opening a slow model waits for the gate.
class RepositoryEnsembles : public fixtures::RepositoryFixture {
 protected:
  // An ensemble of sequential steps; models whose names begin with "e" are ensembles themselves.
  void add_ensemble(const std::string& name, const std::vector<std::string>& steps, const std::string& more = "") {
    std::string text = more + " platform: 'ensemble' ensemble_scheduling {";
    for (size_t i = 0; i < steps.size(); ++i) {
      const bool is_ensemble = steps[i].starts_with('e');
      text += concat(" step { model_name: '", steps[i], "' model_version: -1 input_map { key: '",
                     is_ensemble ? "in" : "x", "' value: '", i == 0 ? "in" : concat("t", i), "' } output_map { key: '",
                     is_ensemble ? "out" : "OUTPUT__0", "' value: '",
                     i + 1 == steps.size() ? "out" : concat("t", i + 1), "' } }");
    }
    configure(name, text + " }");
    fs::create_directories(root() / name / "1");
  }
  std::unique_ptr<const Model> open(const ModelFiles& files, const ModelConfig& config) override {
    const std::string& file = files.model;
    std::string kind;
    std::ifstream(file) >> kind;
    if (kind == "slow") {
      at_gate_.set_value();
      gate_.get_future().wait();
    }
    return RepositoryFixture::open(files, config);
  }
  void start_explicit() { start({.roots = {}, .only = {}, .mode = ControlMode::kExplicit}); }
  void start_polling() { start({.roots = {}, .only = {}, .mode = ControlMode::kPoll, .poll_interval_ms = 0}); }
  void load(const std::string& name) { repository_->load({.name = name, .config = {}, .files = {}}); }
  std::future<void> begin_load(const std::string& name) {
    return std::async(std::launch::async, [this, name] { load(name); });
  }
  void unload(const std::string& name, bool with_dependents) {
    repository_->wait_until_gone(repository_->unload_for_client(name, with_dependents), milliseconds(60'000));
  }
  bool has_line(const std::string& line) const { return metrics_.text().find(line + "\n") != std::string::npos; }

  std::promise<void> at_gate_, gate_;
};

constexpr const char* kUnloaded = "1 UNAVAILABLE: unloaded";

TEST_F(RepositoryEnsembles, NoneRunsItself) {
  add("a", "1");
  add_ensemble("e1", {"a", "e2"});
  add_ensemble("e2", {"e1"});
  add_ensemble("e3", {"b/c"});
  start_explicit();
  EXPECT_THAT(error_of([&] { load("e1"); }).second, HasSubstr("the ensemble runs itself"));
  EXPECT_THAT(error_of([&] { load("e3"); }).second, HasSubstr("must not contain path traversal characters"));
}

TEST_F(RepositoryEnsembles, WhatWasLoadedAlongGoesAlong) {
  add("a", "1");
  add("own", "1");
  add_ensemble("e1", {"a", "own", "a"});
  add_ensemble("e2", {"a"});
  start_explicit();
  load("own");
  load("e1");
  load("e2");
  unload("e1", true);
  EXPECT_EQ(states("e1"), kUnloaded);
  EXPECT_EQ(states("own"), "1 READY");
  EXPECT_EQ(states("a"), "1 READY") << "e2 runs it";
  unload("e2", false);
  EXPECT_EQ(states("a"), "1 READY") << "nobody asked for more";
  load("e2");
  unload("e2", true);
  EXPECT_EQ(states("a"), kUnloaded) << "it came along with e1";
  load("e1");
  unload("e1", true);
  EXPECT_EQ(states("a"), kUnloaded);
  EXPECT_EQ(states("own"), "1 READY");
}

TEST_F(RepositoryEnsembles, SayWhyTheyWent) {
  add("a", "1");
  add_ensemble("e1", {"a"});
  start_explicit();
  load("e1");
  unload("a", false);
  EXPECT_EQ(states("e1"), concat(kUnloaded, " with model 'a', which it runs"));
  load("a");
  EXPECT_EQ(states("e1"), "1 READY") << "it waited for that";
  unload("a", true);
  EXPECT_EQ(states("e1"), kUnloaded);
  load("a");
  EXPECT_EQ(states("e1"), kUnloaded) << "it was unloaded by name";
}

TEST_F(RepositoryEnsembles, WaitForTheirOwnSteps) {
  add("a", "1");
  add("b", "1");
  add_ensemble("e1", {"a"});
  start_explicit();
  load("e1");
  unload("a", false);
  load("b");
  EXPECT_EQ(states("a"), kUnloaded) << "nobody loaded it";
  EXPECT_THAT(states("e1"), HasSubstr(kUnloaded));
}

TEST_F(RepositoryEnsembles, WhatIsLoadedByItselfMeanwhileStays) {
  add("gated", "1", "slow");
  add_ensemble("e1", {"gated"});
  start_explicit();
  auto by_itself = begin_load("gated");
  at_gate_.get_future().wait();
  auto along = begin_load("e1");
  EXPECT_EQ(along.wait_for(milliseconds(50)), std::future_status::timeout);
  gate_.set_value();
  by_itself.get();
  along.get();
  unload("e1", true);
  EXPECT_EQ(states("gated"), "1 READY");
}

TEST_F(RepositoryEnsembles, WhatIsLoadedAlongWithTwoGoesWithTheLast) {
  add("gated", "1", "slow");
  add_ensemble("e1", {"gated"});
  add_ensemble("e2", {"gated"});
  start_explicit();
  auto first = begin_load("e1");
  at_gate_.get_future().wait();
  auto second = begin_load("e2");
  EXPECT_EQ(second.wait_for(milliseconds(50)), std::future_status::timeout);
  gate_.set_value();
  first.get();
  second.get();
  unload("e1", true);
  EXPECT_EQ(states("gated"), "1 READY");
  unload("e2", true);
  EXPECT_EQ(states("gated"), kUnloaded);
}

// Component models are loaded first, whatever their names are.
TEST_F(RepositoryEnsembles, AreLoadedBehindThoseThatTheyRun) {
  add("a", "1", "number:1");
  add_ensemble("e1", {"e2"});
  add_ensemble("e2", {"e3"});
  add_ensemble("e3", {"a"});
  start_polling();
  for (const char* name : {"e1", "e2", "e3"}) {
    EXPECT_EQ(states(name), "1 READY");
    EXPECT_FALSE(has_line(concat("tensord_model_load_failures_total{model=\"", name, "\"} 1")));
  }
}

// A poll loads an ensemble once, however many of its parts have changed.
TEST_F(RepositoryEnsembles, ALookLoadsEachOnce) {
  add_ensemble("e1", {"a"});
  start_polling();
  EXPECT_TRUE(has_line("tensord_model_load_failures_total{model=\"e1\"} 1"));
  repository_->poll();
  EXPECT_TRUE(has_line("tensord_model_load_failures_total{model=\"e1\"} 1"));
  add("a", "1", "broken");
  add_ensemble("e1", {"a"}, "version_policy: { all {} }");
  repository_->poll();
  EXPECT_TRUE(has_line("tensord_model_load_failures_total{model=\"e1\"} 2")) << metrics_.text();
  add("a", "1", "number:1");
  repository_->poll();
  EXPECT_EQ(states("e1"), "1 READY");
}

TEST_F(RepositoryEnsembles, OneThatIsGoneDoesNotDisturbTheLook) {
  add_ensemble("e1", {"a"});
  start_polling();
  fs::remove_all(root() / "e1");
  add("a", "1", "number:1");
  repository_->poll();
  EXPECT_EQ(states("a"), "1 READY");
  EXPECT_EQ(states("e1"), "");
}

}  // namespace
}  // namespace tensord::server::repository_ensembles_test
