#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <thread>

#include "core/base/error.h"
#include "server/repository/repository.h"
#include "tests/server/repository/repository_fixture.h"
#include "tests/server/temporary_folder.h"

namespace tensord::server::repository_changes_test {
namespace {

namespace fs = std::filesystem;

using fixtures::request_of;
using fixtures::Waiter;

class RepositoryChangesTest : public ::testing::Test {
 protected:
  void add(const std::string& model, const std::string& version) const {
    fs::create_directories(root_ / model / version);
    std::ofstream(root_ / model / version / "model.pt") << "identity";
  }
  void configure(const std::string& model, const std::string& text) const {
    std::ofstream(root_ / model / "config.pbtxt") << text;
  }

  std::unique_ptr<Repository> load() {
    Repository::Options options{.roots = {root_.string()}, .only = {}};
    auto repository = std::make_unique<Repository>(options, open, metrics_);
    repository->load_all();
    return repository;
  }

  static std::unique_ptr<const Model> open(const ModelFiles& files, const ModelConfig&) {
    const std::string& file = files.model;
    std::string kind;
    std::ifstream(file) >> kind;
    check(kind != "broken", "a broken model");
    return kind == "slow" ? fixtures::sleepy_model(100) : fixtures::identity_model();
  }

  static Repository::WriteVersion writer(const std::string& kind) {
    return [kind](const fs::path& folder, const std::string& file) { std::ofstream(folder / file) << kind; };
  }

  static std::vector<std::string> names_in(const fs::path& folder) {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename().string());
    return {names.begin(), names.end()};
  }

  template <class Action>
  static ErrorCode code_of(const Action& action) {
    try {
      action();
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::kInternal;
  }

  const fixtures::TemporaryFolder temporary_{"changes"};
  const fs::path root_ = temporary_.path();
  Metrics metrics_{"test"};
};

TEST_F(RepositoryChangesTest, ANewVersionTakesOver) {
  add("m", "1");
  const auto repository = load();
  const auto old = repository->find("m", "");
  const auto added = repository->add_version("m", writer("identity"));
  EXPECT_EQ(added.version, 2);
  EXPECT_TRUE(added.is_served);
  EXPECT_EQ(repository->find("m", "")->version(), "2");
  EXPECT_EQ(repository->ready_versions("m"), (std::vector<std::string>{"2"}));
  EXPECT_EQ(code_of([&] { repository->find("m", "1"); }), ErrorCode::kUnavailable);  // it existed
  EXPECT_TRUE(repository->is_all_ready());
  EXPECT_EQ(repository->source_of("m", 0).version, 2);
  EXPECT_EQ(repository->source_of("m", 1).file, fs::canonical(root_ / "m" / "1" / "model.pt"));
  EXPECT_EQ(code_of([&] { repository->source_of("m", 5); }), ErrorCode::kNotFound);
  // Holders of the old version can still use it.
  Waiter waiter;
  old->submit(request_of(3), waiter);
  EXPECT_TRUE(waiter.wait().status.ok());
}

TEST_F(RepositoryChangesTest, AModelMayBeNew) {
  const auto repository = load();
  EXPECT_EQ(repository->add_version("fresh", writer("identity")).version, 1);
  EXPECT_EQ(repository->find("fresh", "")->version(), "1");
}

TEST_F(RepositoryChangesTest, ABrokenVersionChangesNothing) {
  add("m", "1");
  const auto repository = load();
  EXPECT_EQ(code_of([&] { repository->add_version("m", writer("broken")); }), ErrorCode::kFailedPrecondition);
  EXPECT_EQ(code_of([&] {
              repository->add_version(
                  "m", [](const fs::path&, const std::string&) { fail(ErrorCode::kResourceExhausted, "disk full"); });
            }),
            ErrorCode::kResourceExhausted);
  EXPECT_EQ(repository->find("m", "")->version(), "1");
  EXPECT_TRUE(repository->is_all_ready());
  EXPECT_EQ(names_in(root_ / "m"), (std::vector<std::string>{"1"}));
  EXPECT_EQ(code_of([&] { repository->add_version("fresh", writer("broken")); }), ErrorCode::kFailedPrecondition);
  EXPECT_FALSE(fs::exists(root_ / "fresh"));
}

TEST_F(RepositoryChangesTest, VersionsNeverCollide) {
  add("m", "3");
  const auto repository = load();
  std::vector<int64_t> versions(8);
  std::vector<std::thread> threads;
  for (int64_t& version : versions) {
    threads.emplace_back([&] { version = repository->add_version("m", writer("identity")).version; });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(std::set<int64_t>(versions.begin(), versions.end()), (std::set<int64_t>{4, 5, 6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(repository->find("m", "")->version(), "11");
}

TEST_F(RepositoryChangesTest, AFolderOfAnotherProcessIsNotTaken) {
  add("m", "1");
  const auto repository = load();
  const auto added = repository->add_version("m", [&](const fs::path& folder, const std::string& file) {
    add("m", "2");  // while this one was being written
    writer("identity")(folder, file);
  });
  EXPECT_EQ(added.version, 3);
  EXPECT_EQ(names_in(root_ / "m"), (std::vector<std::string>{"1", "2", "3"}));
}

TEST_F(RepositoryChangesTest, AFolderMayBeGone) {
  add("m", "1");
  const auto repository = load();
  fs::remove_all(root_ / "m");
  EXPECT_EQ(repository->add_version("m", writer("identity")).version, 2);
  EXPECT_EQ(repository->find("m", "")->version(), "2");
}

TEST_F(RepositoryChangesTest, ThePolicyDecidesWhatIsServed) {
  add("all", "1");
  configure("all", "version_policy: { all {} }");
  add("chosen", "1");
  configure("chosen", "version_policy: { specific { versions: [ 1 ] } }");
  const auto repository = load();
  EXPECT_TRUE(repository->add_version("all", writer("identity")).is_served);
  EXPECT_EQ(repository->ready_versions("all"), (std::vector<std::string>{"1", "2"}));
  EXPECT_FALSE(repository->add_version("chosen", writer("identity")).is_served);
  EXPECT_EQ(repository->ready_versions("chosen"), (std::vector<std::string>{"1"}));
  EXPECT_EQ(code_of([&] { repository->roll_back("chosen"); }), ErrorCode::kFailedPrecondition);
}

TEST_F(RepositoryChangesTest, RollsBackAndNeverUsesANumberAgain) {
  add("m", "1");
  const auto repository = load();
  EXPECT_EQ(code_of([&] { repository->roll_back("m"); }), ErrorCode::kFailedPrecondition);
  EXPECT_EQ(repository->find("m", "")->version(), "1");
  repository->add_version("m", writer("identity"));
  const auto result = repository->roll_back("m");
  EXPECT_EQ(result.withdrawn, 2);
  EXPECT_EQ(result.served, 1);
  EXPECT_EQ(repository->ready_versions("m"), (std::vector<std::string>{"1"}));
  EXPECT_EQ(repository->add_version("m", writer("identity")).version, 3);
  EXPECT_EQ(repository->roll_back("m").served, 1);
  EXPECT_EQ(names_in(root_ / "m"), (std::vector<std::string>{".2.withdrawn", ".3.withdrawn", "1"}));
  EXPECT_EQ(code_of([&] { repository->roll_back("missing"); }), ErrorCode::kNotFound);
}

TEST_F(RepositoryChangesTest, UnloadsWithRequestsUnderWay) {
  add("m", "1");
  std::ofstream(root_ / "m" / "1" / "model.pt") << "slow";
  const auto repository = load();
  Waiter waiter;
  auto model = repository->find("m", "");
  model->submit(request_of(1), waiter);
  repository->unload("m");
  EXPECT_EQ(code_of([&] { repository->find("m", ""); }), ErrorCode::kNotFound);
  EXPECT_TRUE(waiter.wait().status.ok());
  model.reset();
}

TEST_F(RepositoryChangesTest, NoRequestFailsWhileVersionsChange) {
  add("m", "1");
  const auto repository = load();
  std::atomic<bool> is_over{false};
  std::atomic<int> answered{0}, failed{0};
  std::vector<std::thread> clients;
  for (int i = 0; i < 3; ++i) {
    clients.emplace_back([&] {
      while (!is_over) {
        Waiter waiter;
        const auto model = repository->find("m", "");
        model->submit(request_of(1), waiter);
        ++(waiter.wait().status.ok() ? answered : failed);
      }
    });
  }
  for (int i = 0; i < 20; ++i) {
    repository->add_version("m", writer("identity"));
    if (i % 4 == 3) repository->roll_back("m");
  }
  is_over = true;
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(failed, 0);
  EXPECT_GT(answered, 20);
}

}  // namespace
}  // namespace tensord::server::repository_changes_test
