// A limit on the memory of loaded models, and loading on demand.
#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "core/base/log.h"
#include "tests/server/repository/repository_fixture.h"

namespace tensord::server::repository_memory_test {
namespace {

namespace fs = std::filesystem;

class RepositoryMemoryTest : public fixtures::RepositoryFixture {
 protected:
  // A model of this size on disk.
  void add_large(const std::string& name, size_t bytes) const {
    std::string text = "number:1 ";
    text.resize(bytes, ' ');
    add(name, "1", text);
  }
  std::unique_ptr<const Model> open(const ModelFiles& files, const ModelConfig& config) override {
    const std::string& file = files.model;
    auto model = RepositoryFixture::open(files, config);
    if (file.find("/vanishes/") != std::string::npos) fs::remove(file);
    return model;
  }
  Repository& start_with(uint64_t limit_bytes, bool on_demand = true) {
    return start({.roots = {},
                  .only = {},
                  .mode = ControlMode::kExplicit,
                  .loads_on_demand = on_demand,
                  .memory_limit_bytes = limit_bytes,
                  .max_queue_size = 4,
                  .load_threads = 2});
  }
  // Requests it as a client whose request may have to wait for the model.
  float demand(const std::string& name) {
    std::atomic<bool> is_there{false};
    if (repository_->load_on_demand(name, [&] {
          is_there = true;
          is_there.notify_all();
        })) {
      is_there.wait(false);
    }
    return ask(name);
  }
};

TEST_F(RepositoryMemoryTest, ARequestLoadsItsModel) {
  add("m", "1", "number:1");
  start_with(0);
  EXPECT_EQ(states("m"), "not loaded");
  EXPECT_EQ(demand("m"), 1);
  EXPECT_FALSE(repository_->load_on_demand("m", [] {}));
  EXPECT_FALSE(repository_->load_on_demand("missing", [] {}));
  EXPECT_FALSE(repository_->load_on_demand("../models", [] {}));
  EXPECT_FALSE(repository_->load_on_demand("", [] {}));
  // An operator's unload takes precedence.
  repository_->unload("m");
  EXPECT_FALSE(repository_->load_on_demand("m", [] {}));
  repository_->load({.name = "m", .config = {}, .files = {}});
  EXPECT_EQ(ask("m"), 1);
}

TEST_F(RepositoryMemoryTest, ManyRequestsLoadItOnce) {
  add("m", "1", "number:1");
  start_with(0);
  std::vector<std::thread> clients;
  for (int i = 0; i < 4; ++i) clients.emplace_back([&] { EXPECT_EQ(demand("m"), 1); });
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(opened_, 1);
}

TEST_F(RepositoryMemoryTest, WhatCannotBeLoadedIsNotTriedForEveryRequest) {
  add("m", "1", "broken");
  start_with(0);
  const auto first = error_of([&] { demand("m"); });
  EXPECT_EQ(first.first, ErrorCode::kUnavailable);
  EXPECT_NE(first.second.find("not a model: broken"), std::string::npos) << first.second;
  EXPECT_EQ(error_of([&] { demand("m"); }), first);
  EXPECT_EQ(opened_, 1);
}

TEST_F(RepositoryMemoryTest, TheLeastRecentlyUsedMakesRoom) {
  for (const char* name : {"a", "b", "c"}) add_large(name, 400);
  start_with(1000);
  demand("a");
  demand("b");
  demand("a");
  demand("c");
  EXPECT_EQ(states("a"), "1 READY");
  EXPECT_EQ(states("b"), "1 UNAVAILABLE: unloaded to make room; a request loads it again");
  EXPECT_NE(metrics_.text().find("tensord_model_evictions_total{model=\"b\"} 1"), std::string::npos);
  EXPECT_EQ(states("c"), "1 READY");
  EXPECT_TRUE(repository_->is_all_ready());
  demand("b");
  EXPECT_EQ(states("a").substr(0, 13), "1 UNAVAILABLE");
  EXPECT_EQ(states("c"), "1 READY");
}

// A model from a client could not be restored: another one is unloaded, though it was used more recently.
TEST_F(RepositoryMemoryTest, WhatComesFromClientsStays) {
  for (const char* name : {"a", "c"}) add_large(name, 400);
  start_with(1000);
  std::string brought = "number:7 ";
  brought.resize(400, ' ');
  repository_->load({.name = "brought", .config = "{}", .files = {{"1/model.pt", brought}}});
  demand("brought");
  demand("a");
  demand("c");
  EXPECT_EQ(ask("brought"), 7);
  EXPECT_NE(states("a").find("unloaded to make room"), std::string::npos);
  EXPECT_EQ(ask("c"), 1);
}

// Small on disk, large in memory: it is refused before it is materialized, so no other model is unloaded for it.
TEST_F(RepositoryMemoryTest, WhatTurnsOutTooLargeIsNotServed) {
  add_large("small", 400);
  add("unpacks", "1", "tensor:5000");
  start_with(1000);
  demand("small");
  const auto [code, message] = error_of([&] { repository_->load({.name = "unpacks", .config = {}, .files = {}}); });
  EXPECT_EQ(code, ErrorCode::kResourceExhausted);
  EXPECT_THAT(message, ::testing::HasSubstr("model 'unpacks' takes more than --model-memory-limit of 1000 leaves: "));
  EXPECT_THAT(message, ::testing::HasSubstr("memory limit of 'unpacks/1' reached"));
  EXPECT_EQ(states("unpacks"), "1 UNAVAILABLE: " + message);
  EXPECT_THAT(metrics_.text(), ::testing::HasSubstr("tensord_model_load_failures_total{model=\"unpacks\"} 1\n"));
  EXPECT_EQ(states("small"), "1 READY");
}

// A model that fits alone, but not beside models that cannot be unloaded, is checked against the limit after its load.
TEST_F(RepositoryMemoryTest, WhatDoesNotFitBesideOthersIsNotServed) {
  add_large("small", 9000);
  add("unpacks", "1", "tensor:5000");
  start_with(10'000, /*on_demand=*/false);
  repository_->load({.name = "small", .config = {}, .files = {}});
  const auto [code, message] = error_of([&] { repository_->load({.name = "unpacks", .config = {}, .files = {}}); });
  EXPECT_EQ(code, ErrorCode::kResourceExhausted);
  EXPECT_THAT(message, ::testing::HasSubstr("bytes, more than --model-memory-limit of 10000 leaves"));
  EXPECT_EQ(states("small"), "1 READY");
}

// At startup too: it is reported once, and the others serve.
TEST_F(RepositoryMemoryTest, WhatIsTooLargeAtTheStartIsCountedOnce) {
  add("m", "1", "number:1");
  add("unpacks", "1", "tensor:5000");
  start({.roots = {}, .only = {}, .memory_limit_bytes = 1000});
  EXPECT_EQ(states("m"), "1 READY");
  EXPECT_THAT(states("unpacks"), ::testing::HasSubstr("more than --model-memory-limit of 1000 leaves"));
  EXPECT_THAT(metrics_.text(), ::testing::HasSubstr("tensord_model_load_failures_total{model=\"unpacks\"} 1\n"));
}

// A new version that is too large leaves the served one unchanged, and is forgotten.
TEST_F(RepositoryMemoryTest, AVersionThatTurnsOutTooLargeIsNotAdded) {
  add("m", "1", "number:1");
  start_with(1000, /*on_demand=*/false);
  repository_->load({.name = "m", .config = {}, .files = {}});
  const auto write_it = [](const fs::path& folder, const std::string& file) { write(folder / file, "tensor:5000"); };
  EXPECT_EQ(error_of([&] { repository_->add_version("m", write_it); }).first, ErrorCode::kResourceExhausted);
  EXPECT_EQ(states("m"), "1 READY");
  EXPECT_EQ(ask("m"), 1);
}

// A version without files needs no room, even if none is left.
TEST_F(RepositoryMemoryTest, WhatHasNoFileTakesNothing) {
  add_large("a", 400);
  fs::create_directories(root() / "empty" / "1");
  add("vanishes", "1", "number:1");
  start_with(1000, /*on_demand=*/false);
  repository_->load({.name = "a", .config = {}, .files = {}});
  repository_->load({.name = "vanishes", .config = {}, .files = {}});
  EXPECT_EQ(ask("vanishes"), 1);
  const MemoryOwnerScope scope(repository_->find("a", "")->owner());
  const Tensor held = Tensor::empty(Dims{5000}, DType::kUInt8);
  EXPECT_THAT(error_of([&] { repository_->load({.name = "empty", .config = {}, .files = {}}); }).second,
              ::testing::HasSubstr("model.pt is not there"));
}

TEST_F(RepositoryMemoryTest, EnsemblesMakeNoRoom) {
  for (const char* name : {"a", "b", "c"}) add_large(name, 400);
  configure("e",
            "platform: 'ensemble' ensemble_scheduling { step { model_name: 'a' model_version: -1 input_map { key: 'x' "
            "value: 'in' } output_map { key: 'OUTPUT__0' value: 'out' } } }");
  fs::create_directories(root() / "e" / "1");
  start_with(1000);
  repository_->load({.name = "e", .config = {}, .files = {}});
  demand("b");
  demand("a");
  demand("c");
  EXPECT_EQ(states("e"), "1 READY");
  EXPECT_EQ(states("a"), "1 READY");
  EXPECT_NE(states("b"), "1 READY");
}

// One loaded version of an on-demand model is enough.
TEST_F(RepositoryMemoryTest, AVersionOfItIsEnough) {
  add("m", "1", "number:1");
  add("m", "2", "broken");
  configure("m", "version_policy: { all {} }");
  start_with(0);
  EXPECT_EQ(demand("m"), 1);
  EXPECT_NE(metrics_.text().find("tensord_model_load_failures_total{model=\"m\"} 1\n"), std::string::npos);
}

TEST_F(RepositoryMemoryTest, TensorsCountToo) {
  add_large("a", 400);
  add_large("b", 400);
  start_with(100'000);
  demand("a");
  Tensor held;
  {
    const MemoryOwnerScope scope(repository_->find("a", "")->owner());
    held = Tensor::empty(Dims{99'900}, DType::kUInt8);
  }
  std::thread release([&] {
    while (states("a") != "1 UNLOADING" && states("a").find("unloaded") == std::string::npos) std::this_thread::yield();
    held = Tensor();
  });
  demand("b");
  release.join();
  EXPECT_NE(states("a").find("unloaded to make room"), std::string::npos);
}

TEST_F(RepositoryMemoryTest, WhatIsTooLargeUnloadsNobody) {
  add_large("small", 400);
  add_large("large", 2000);
  start_with(1000);
  demand("small");
  const auto [code, message] = error_of([&] { repository_->load({.name = "large", .config = {}, .files = {}}); });
  EXPECT_EQ(code, ErrorCode::kResourceExhausted);
  EXPECT_EQ(message, "model 'large' takes 2000 bytes, more than --model-memory-limit of 1000 leaves");
  EXPECT_EQ(states("small"), "1 READY");
  EXPECT_EQ(error_of([&] { demand("large"); }).first, ErrorCode::kUnavailable);
}

// The limit is exact, for several models or one: all of it can be used, and not a byte more.
TEST_F(RepositoryMemoryTest, WhatFitsToTheByteUnloadsNobody) {
  for (const auto& [name, bytes] : {std::pair{"a", 400}, {"b", 600}, {"byte", 10}, {"whole", 1000}, {"more", 1001}}) {
    add_large(name, static_cast<size_t>(bytes));
  }
  start_with(1000);
  demand("a");
  demand("b");
  EXPECT_EQ(states("a"), "1 READY");
  EXPECT_EQ(states("b"), "1 READY");
  demand("byte");
  EXPECT_NE(states("a").find("unloaded to make room"), std::string::npos);
  EXPECT_EQ(states("b"), "1 READY");
  demand("whole");
  EXPECT_NE(states("b").find("unloaded to make room"), std::string::npos);
  EXPECT_NE(states("byte").find("unloaded to make room"), std::string::npos);
  EXPECT_EQ(states("whole"), "1 READY");
  EXPECT_EQ(error_of([&] { demand("more"); }).first, ErrorCode::kUnavailable);
  EXPECT_EQ(states("whole"), "1 READY");
}

TEST_F(RepositoryMemoryTest, WithoutDemandNobodyIsUnloaded) {
  add_large("a", 600);
  add_large("b", 600);
  start_with(1000, /*on_demand=*/false);
  repository_->load({.name = "a", .config = {}, .files = {}});
  EXPECT_EQ(error_of([&] { repository_->load({.name = "b", .config = {}, .files = {}}); }).first,
            ErrorCode::kResourceExhausted);
  EXPECT_EQ(states("a"), "1 READY");
  // A new version of the model may replace it.
  add_large("a", 900);
  repository_->load({.name = "a", .config = {}, .files = {}});
  EXPECT_EQ(states("a"), "1 READY");
}

TEST_F(RepositoryMemoryTest, ManyModelsInLittleRoom) {
  for (int i = 0; i < 6; ++i) add_large(concat("m", i), 400);
  start_with(1000);
  std::vector<std::thread> clients;
  std::atomic<int> answered{0};
  for (int i = 0; i < 3; ++i) {
    clients.emplace_back([&, i] {
      for (int round = 0; round < 20; ++round) {
        // Between the load and the request another model may take the room.
        const auto [code, message] = error_of([&] { demand(concat("m", (i + round) % 6)); });
        if (code == ErrorCode::kInternal) ++answered;
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_GT(answered, 20);
  int ready = 0;
  for (int i = 0; i < 6; ++i) ready += states(concat("m", i)) == "1 READY";
  EXPECT_LE(ready, 2);
}

// The state of the threads of the test below; its hooks cannot see it otherwise.
struct FailedDemand {
  std::atomic<int> opened{0};
  std::atomic<bool> has_failed{false}, is_loading{false}, is_over{false};
};
FailedDemand failed_demand;

void wait_for(const std::atomic<bool>& flag, int ms) {
  for (int i = 0; i < ms && !flag; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

class FailedDemandTest : public RepositoryMemoryTest {
 protected:
  FailedDemandTest() {
    set_log_sink([](LogLevel, std::string_view message, std::initializer_list<LogField>, const std::source_location&) {
      if (message != "model cannot be served") return;
      failed_demand.has_failed = true;
      wait_for(failed_demand.is_loading, 300);
    });
  }
  ~FailedDemandTest() override { set_log_sink(nullptr); }
  std::unique_ptr<const Model> open(const ModelFiles& files, const ModelConfig& config) override {
    check(++failed_demand.opened > 1, "not this time");
    failed_demand.is_loading = true;
    wait_for(failed_demand.is_over, 2000);
    return RepositoryMemoryTest::open(files, config);
  }
};

// An operator's load begins after a load on demand has failed and before the failure is recorded.
TEST_F(FailedDemandTest, IsNotHeldAgainstALoadThatBeganSince) {
  add("m", "1", "number:1");
  start_with(0);
  ASSERT_TRUE(repository_->load_on_demand("m", [] { failed_demand.is_over = true; }));
  wait_for(failed_demand.has_failed, 10'000);
  repository_->load({.name = "m", .config = {}, .files = {}});
  EXPECT_EQ(failed_demand.opened, 2);
  EXPECT_EQ(ask("m"), 1);
}

TEST_F(RepositoryMemoryTest, StoppingAnswersThoseThatWait) {
  add("m", "1", "number:1");
  start_with(0);
  std::atomic<int> called{0};
  for (int i = 0; i < 3; ++i) repository_->load_on_demand("m", [&] { ++called; });
  repository_->stop();
  EXPECT_TRUE(called == 3 || repository_->is_ready("m", ""));
  // Nobody waits any more: if the load ended, or was aborted, there is a result, otherwise a refusal.
  bool waits = false;
  const auto [code, message] = error_of([&] { waits = repository_->load_on_demand("m", [] {}); });
  EXPECT_FALSE(waits);
  if (message != "no error") {
    EXPECT_EQ(code, ErrorCode::kResourceExhausted);
    EXPECT_FALSE(repository_->is_ready("m", ""));
  }
}

}  // namespace
}  // namespace tensord::server::repository_memory_test
