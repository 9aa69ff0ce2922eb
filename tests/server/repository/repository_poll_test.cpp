// Models that come and go as the folders change.
#include <atomic>
#include <thread>

#include "tests/server/repository/repository_fixture.h"

namespace tensord::server {
namespace {

namespace fs = std::filesystem;
using testing::request_of;
using testing::Waiter;

class RepositoryPollTest : public testing::RepositoryFixture {
 protected:
  // Without a thread that looks: the test does.
  Repository& start_polling() {
    return start({.roots = {}, .only = {}, .mode = ControlMode::kPoll, .poll_interval_ms = 0, .copies_archives = true});
  }
  void poll() { repository_->poll(); }
};

TEST_F(RepositoryPollTest, FollowsTheFolders) {
  add("a", "1", "number:1");
  start_polling();
  add("a", "2", "number:2");
  add("b", "1", "number:3");
  poll();
  EXPECT_EQ(states("a"), "2 READY");
  EXPECT_EQ(ask("b"), 3);
  fs::remove_all(root() / "a");
  poll();
  EXPECT_EQ(states("a"), "");
  EXPECT_EQ(error_of([&] { repository_->find("a", ""); }).first, ErrorCode::kNotFound);
  EXPECT_TRUE(repository_->is_all_ready());
  add("a", "1", "number:4");
  poll();
  EXPECT_EQ(ask("a"), 4);
  fs::remove_all(root() / "a" / "1");
  add("a", "5", "number:5");
  poll();
  EXPECT_EQ(states("a"), "5 READY");
}

TEST_F(RepositoryPollTest, WhatHasNotChangedIsLeftAlone) {
  add("a", "1", "number:1");
  add("b", "1", "broken");
  start_polling();
  const auto before = repository_->find("a", "");
  const int opened = opened_;
  for (int i = 0; i < 3; ++i) poll();
  EXPECT_EQ(repository_->find("a", ""), before);
  EXPECT_EQ(opened_, opened);  // what is broken is not tried again and again either
  add("b", "1", "number:2");
  poll();
  EXPECT_EQ(ask("b"), 2);
  EXPECT_TRUE(repository_->is_all_ready());
}

TEST_F(RepositoryPollTest, ConfigurationsOfAnotherNameComeAndGo) {
  for (const char* version : {"1", "2", "3"}) add("a", version, concat("number:", version));
  configure("a", "version_policy: { specific: { versions: [1, 3] } }");
  const fs::path custom = root() / "a" / "configs" / "h100.pbtxt";
  write(root() / "a" / "configs" / "v100.pbtxt", "no configuration");
  start({.roots = {}, .only = {}, .mode = ControlMode::kPoll, .poll_interval_ms = 0, .config_name = "h100"});
  EXPECT_EQ(repository_->ready_versions("a"), (std::vector<std::string>{"1", "3"}));
  write(custom, "version_policy: { specific: { versions: [2] } }");
  poll();
  EXPECT_EQ(repository_->ready_versions("a"), std::vector<std::string>{"2"});
  EXPECT_EQ(ask("a"), 2);
  fs::remove(custom);
  poll();
  EXPECT_EQ(repository_->ready_versions("a"), (std::vector<std::string>{"1", "3"}));
}

TEST_F(RepositoryPollTest, BrokenFilesDoNotDisturb) {
  add("m", "1", "number:1");
  start_polling();
  const auto before = repository_->find("m", "");
  add("m", "2", "broken");
  add("other", "1", "broken");
  poll();
  EXPECT_EQ(repository_->find("m", ""), before);
  EXPECT_EQ(states("m"), "1 READY, 2 UNAVAILABLE: not a model: broken");
  EXPECT_TRUE(repository_->is_all_ready());
  configure("m", "max_batch_size: }");
  poll();
  EXPECT_EQ(repository_->find("m", ""), before);
  // In place, as a careless copy does it.
  fs::remove(root() / "m" / "config.pbtxt");
  write(root() / "m" / "1" / "model.pt", "");
  poll();
  EXPECT_EQ(ask("m"), 1);
  fs::remove_all(root());
  poll();
  EXPECT_EQ(ask("m"), 1);
  fs::create_directories(root());
  add("m", "3", "number:3");
  poll();
  EXPECT_EQ(states("m"), "3 READY");
}

TEST_F(RepositoryPollTest, NoRequestFailsWhileVersionsChange) {
  add("m", "1", "number:1");
  start_polling();
  std::atomic<bool> is_over{false};
  std::atomic<int> answered{0}, failed{0};
  std::vector<std::thread> clients;
  for (int i = 0; i < 3; ++i) {
    clients.emplace_back([&] {
      while (!is_over) {
        Waiter waiter;
        const auto model = repository_->find("m", "");
        model->submit(request_of(1), waiter);
        ++(waiter.wait().status.ok() ? answered : failed);
      }
    });
  }
  for (int i = 2; i < 22; ++i) {
    add("m", std::to_string(i), i % 3 == 0 ? "broken" : concat("number:", i));
    if (i % 3 == 1) fs::remove_all(root() / "m" / std::to_string(i - 1));
    poll();
  }
  is_over = true;
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(failed, 0);
  EXPECT_GT(answered, 20);
  EXPECT_EQ(ask("m"), 20);
}

TEST_F(RepositoryPollTest, AThreadLooks) {
  add("m", "1", "number:1");
  start({.roots = {}, .only = {}, .mode = ControlMode::kPoll, .poll_interval_ms = 5});
  add("m", "2", "number:2");
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(200);
  while (states("m") != "2 READY" && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  EXPECT_EQ(states("m"), "2 READY");
}

// Files that were written just now may not be whole yet.
TEST_F(RepositoryPollTest, WhatIsNewRestsFirst) {
  add("m", "1", "number:1");
  start({.roots = {}, .only = {}, .mode = ControlMode::kPoll, .poll_interval_ms = 3'600'000});
  constexpr auto kRest = std::chrono::seconds(1);
  const auto file = [&](int version) { return root() / "m" / std::to_string(version) / "model.pt"; };
  int version = 2;
  for (;; ++version) {
    add("m", std::to_string(version), concat("number:", version));
    const auto start = std::chrono::steady_clock::now();
    fs::last_write_time(file(version), fs::file_time_type::clock::now());
    poll();
    // Where the machine was too busy it has rested by now, and says nothing.
    if (std::chrono::steady_clock::now() - start < kRest) break;
  }
  EXPECT_NE(states("m"), concat(version, " READY"));
  for (int each = 1; each <= version; ++each) {
    fs::last_write_time(file(each), fs::file_time_type::clock::now() - 2 * kRest);
  }
  poll();
  EXPECT_EQ(states("m"), concat(version, " READY"));
}

TEST_F(RepositoryPollTest, TwoOfAName) {
  add("m", "1", "number:1");
  fs::create_directories(root("more"));
  start({.roots = {root().string(), root("more").string()},
         .only = {},
         .mode = ControlMode::kPoll,
         .poll_interval_ms = 0});
  write(root("more") / "m" / "1" / "model.pt", "number:2");
  poll();
  EXPECT_EQ(ask("m"), 1);
  write(root("more") / "n" / "1" / "model.pt", "number:2");
  add("n", "1", "number:1");
  poll();
  EXPECT_EQ(states("n"), " UNAVAILABLE: model appears in two or more repositories");
  fs::remove_all(root() / "n");
  poll();
  EXPECT_EQ(ask("n"), 2);
}

}  // namespace
}  // namespace tensord::server
