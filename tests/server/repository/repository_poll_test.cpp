// Models that appear and disappear as the folders change.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "core/base/log.h"
#include "tests/server/repository/repository_fixture.h"

// The time of day in nanoseconds, if a test sets it.
static std::atomic<int64_t> time_of_day_ns{0};

extern "C" int clock_gettime(clockid_t clock, timespec* out) noexcept {
  const int64_t said_ns = time_of_day_ns;
  if (clock != CLOCK_REALTIME || said_ns == 0) return static_cast<int>(syscall(SYS_clock_gettime, clock, out));
  *out = {said_ns / 1'000'000'000, said_ns % 1'000'000'000};
  return 0;
}

namespace tensord::server::repository_poll_test {
namespace {

std::atomic<int> models_gone{0};

void count_lines(LogLevel, std::string_view message, std::initializer_list<LogField>, const std::source_location&) {
  models_gone += message == "model is not in the repository any more";
}

namespace fs = std::filesystem;
using fixtures::request_of;
using fixtures::Waiter;
using ::testing::HasSubstr;

class RepositoryPollTest : public fixtures::RepositoryFixture {
 protected:
  // Without a polling thread: the test polls.
  Repository& start_polling() {
    return start({.roots = {}, .only = {}, .mode = ControlMode::kPoll, .poll_interval_ms = 0, .copies_archives = true});
  }
  void poll() { repository_->poll(); }
};

TEST_F(RepositoryPollTest, WhatIsGoneGoesOnce) {
  set_log_sink(count_lines);
  add("a", "1", "number:1");
  add("b", "1", "number:1");
  configure("b", "max_batch_size: }");
  add("c", "1", "broken");
  add(".hidden", "1", "number:1");
  fs::create_directories(root() / "empty");
  start_polling();
  EXPECT_EQ(states(".hidden"), "");
  EXPECT_EQ(states("empty"), "not loaded");
  for (const char* name : {"a", "b", "c", "empty"}) fs::remove_all(root() / name);
  for (int i = 0; i < 3; ++i) {
    poll();
    for (const char* name : {"a", "b", "c", "empty"}) EXPECT_EQ(states(name), "") << name;
    EXPECT_EQ(models_gone, 3);
  }
}

TEST_F(RepositoryPollTest, ItsVersionsMayGoAndComeBack) {
  add("a", "1", "number:1");
  start_polling();
  fs::remove_all(root() / "a" / "1");
  poll();
  EXPECT_EQ(states("a"), "not loaded");
  EXPECT_FALSE(repository_->is_ready("a", ""));
  add("a", "1", "number:2");
  poll();
  EXPECT_EQ(ask("a"), 2);
}

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
  EXPECT_EQ(opened_, opened);  // nor is a broken one retried over and over
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
  // In place, as a careless copy does.
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

TEST_F(RepositoryPollTest, ASecondOfANameIsNothingToOneThatServes) {
  add("m", "1", "number:1");
  fs::create_directories(root("second"));
  start({.roots = {root().string(), root("second").string()},
         .only = {},
         .mode = ControlMode::kPoll,
         .poll_interval_ms = 0});
  const auto before = repository_->find("m", "");
  write(root("second") / "m/1/model.pt", "number:2");
  write(root("second") / "new/1/model.pt", "number:3");
  add("new", "1", "number:4");
  add("m", "2", "number:5");
  for (int i = 0; i < 2; ++i) {
    poll();
    EXPECT_EQ(repository_->find("m", ""), before);
    EXPECT_EQ(states("m"), "1 READY");
    EXPECT_THAT(error_of([&] { repository_->find("new", ""); }).second, HasSubstr("two or more repositories"));
  }
  fs::remove_all(root("second") / "m");
  fs::remove_all(root() / "new");
  poll();
  EXPECT_EQ(ask("m"), 5);
  EXPECT_EQ(ask("new"), 3);
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

// Files that were just written may be incomplete.
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
    // On a busy machine the delay may already be over; then the test proves nothing.
    if (std::chrono::steady_clock::now() - start < kRest) break;
  }
  EXPECT_NE(states("m"), concat(version, " READY"));
  for (int each = 1; each <= version; ++each) {
    fs::last_write_time(file(each), fs::file_time_type::clock::now() - 2 * kRest);
  }
  poll();
  EXPECT_EQ(states("m"), concat(version, " READY"));
}

// Waits one second; timestamps in the future are not waited for.
TEST_F(RepositoryPollTest, HowLongWhatIsNewRests) {
  add("m", "1", "number:1");
  start({.roots = {}, .only = {}, .mode = ControlMode::kPoll, .poll_interval_ms = 3'600'000});
  constexpr int64_t kSecond = 1'000'000'000;
  int64_t written_ns = int64_t{2'000'000'000} * kSecond;
  int version = 1;
  for (const auto& [age_ns, is_loaded] :
       {std::pair{int64_t{0}, false}, {kSecond - 1, false}, {kSecond, true}, {int64_t{-1}, true}}) {
    ++version;
    written_ns += 100 * kSecond;
    add("m", std::to_string(version), concat("number:", version));
    const timespec both[2] = {{written_ns / kSecond, 0}, {written_ns / kSecond, 0}};
    const fs::path file = root() / "m" / std::to_string(version) / "model.pt";
    ASSERT_EQ(utimensat(AT_FDCWD, file.c_str(), both, 0), 0);
    time_of_day_ns = written_ns + age_ns;
    poll();
    EXPECT_EQ(ask("m") == static_cast<float>(version), is_loaded) << age_ns;
    time_of_day_ns = written_ns + 2 * kSecond;
    poll();
    EXPECT_EQ(ask("m"), static_cast<float>(version));
  }
  time_of_day_ns = 0;
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
}  // namespace tensord::server::repository_poll_test
