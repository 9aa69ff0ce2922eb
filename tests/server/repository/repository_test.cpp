#include "server/repository/repository.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <thread>

#include "core/base/error.h"
#include "tests/server/fake_models.h"
#include "tests/server/temporary_folder.h"

namespace tensord::server::repository_test {
namespace {

namespace fs = std::filesystem;

class RepositoryTest : public ::testing::Test {
 protected:
  RepositoryTest() { fs::create_directories(root()); }

  fs::path root(const std::string& name = "models") const { return base_ / name; }

  static void write(const fs::path& path, const std::string& text) {
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }

  void add(const std::string& model, const std::string& version, const std::string& kind = "identity",
           const std::string& repository = "models") const {
    write(root(repository) / model / version / "model.pt", kind);
  }

  std::unique_ptr<Repository> load(std::vector<std::string> roots = {}, std::vector<std::string> only = {}) {
    if (roots.empty()) roots = {root().string()};
    Repository::Options options{.roots = roots, .only = std::move(only), .load_threads = 3};
    auto repository = std::make_unique<Repository>(options, open, metrics_);
    EXPECT_FALSE(repository->is_loaded());
    repository->load_all();
    EXPECT_TRUE(repository->is_loaded());
    return repository;
  }

  static std::unique_ptr<const Model> open(const ModelFiles& files, const ModelConfig&) {
    const std::string& file = files.model;
    std::string kind;
    std::ifstream(file) >> kind;
    check(kind == "identity", "not a model: ", kind);
    return fixtures::identity_model();
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

  const fixtures::TemporaryFolder temporary_{"repository"};
  const fs::path base_ = temporary_.path();
  Metrics metrics_{"test"};
};

TEST_F(RepositoryTest, ServesTheLatestVersionByDefault) {
  for (const char* version : {"1", "2", "10", "007", "0", "x1", "-3"}) add("m", version);
  const auto repository = load();
  EXPECT_EQ(repository->ready_versions("m"), (std::vector<std::string>{"10"}));
  EXPECT_EQ(repository->find("m", "")->version(), "10");
  EXPECT_EQ(repository->find("m", "10")->version(), "10");
  for (const char* version : {"2", "0", "007"}) {
    EXPECT_EQ(error_of([&] { repository->find("m", version); }).first, ErrorCode::kNotFound) << version;
  }
  for (const char* model : {"m", "nowhere"}) {
    EXPECT_EQ(error_of([&] { repository->find(model, "-1"); }).first, ErrorCode::kInvalidArgument) << model;
  }
}

TEST_F(RepositoryTest, VersionPolicies) {
  for (const char* model : {"all", "two", "chosen"}) {
    for (const char* version : {"1", "2", "3"}) add(model, version);
  }
  write(root() / "all" / "config.pbtxt", "version_policy { all {} }");
  write(root() / "two" / "config.pbtxt", "version_policy { latest { num_versions: 2 } }");
  write(root() / "chosen" / "config.pbtxt", "version_policy { specific { versions: [1, 9, 1] } }");
  const auto repository = load();
  EXPECT_EQ(repository->ready_versions("all"), (std::vector<std::string>{"1", "2", "3"}));
  EXPECT_EQ(repository->ready_versions("two"), (std::vector<std::string>{"2", "3"}));
  EXPECT_EQ(repository->ready_versions("chosen"), (std::vector<std::string>{"1"}));
  EXPECT_EQ(repository->find("chosen", "")->version(), "1");
  EXPECT_EQ(error_of([&] { repository->find("chosen", "9"); }).first, ErrorCode::kNotFound);
  EXPECT_TRUE(repository->is_all_ready());
  for (const auto& entry : repository->index()) {
    EXPECT_EQ(entry.reason,
              entry.name == "chosen" ? "warning: version_policy names version 9, which is not there" : "");
  }
}

TEST_F(RepositoryTest, FailedModelKeepsItsReason) {
  add("good", "1");
  add("bad", "1", "rubbish");
  const auto repository = load();
  EXPECT_TRUE(repository->is_ready("good", ""));
  EXPECT_FALSE(repository->is_ready("bad", ""));
  EXPECT_FALSE(repository->is_ready("missing", ""));
  EXPECT_FALSE(repository->is_all_ready());
  const auto [code, message] = error_of([&] { repository->find("bad", ""); });
  EXPECT_EQ(code, ErrorCode::kUnavailable);
  EXPECT_EQ(message, "Request for unknown model: 'bad' version 1 is not at ready state: not a model: rubbish");
  const auto index = repository->index();
  ASSERT_EQ(index.size(), 2u);
  EXPECT_EQ(index[0].state, ModelState::kUnavailable);
  EXPECT_EQ(index[0].reason, "not a model: rubbish");
  EXPECT_EQ(index[1].state, ModelState::kReady);
}

TEST_F(RepositoryTest, NoMoreThreadsLoadThanWereGiven) {
  for (const char* model : {"a", "b", "c", "d", "e", "f"}) add(model, "1");
  std::mutex mutex;
  std::set<std::thread::id> threads;
  const auto slow = [&](const ModelFiles& files, const ModelConfig& config) {
    {
      const std::lock_guard lock(mutex);
      threads.insert(std::this_thread::get_id());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // until all of them have a model
    return open(files, config);
  };
  Repository repository({.roots = {root().string()}, .only = {}, .load_threads = 2}, slow, metrics_);
  repository.load_all();
  EXPECT_TRUE(repository.is_all_ready());
  EXPECT_LE(threads.size(), 2u);
}

TEST_F(RepositoryTest, AModelThatCannotBeReadSaysWhy) {
  add("bad", "1");
  write(root() / "bad" / "config.pbtxt", "no configuration");
  const auto repository = load();
  const auto refusal = [&](const char* version) { return error_of([&] { repository->find("bad", version); }); };
  for (const auto& [version, says] : {std::pair("", "Request for unknown model: 'bad' has no available versions: "),
                                      {"1", "Request for unknown model: 'bad' is not at ready state: "}}) {
    EXPECT_EQ(refusal(version).first, ErrorCode::kUnavailable);
    EXPECT_THAT(refusal(version).second, ::testing::StartsWith(says));
    EXPECT_THAT(refusal(version).second, ::testing::HasSubstr("config.pbtxt"));
  }
}

TEST_F(RepositoryTest, NothingLeavesTheRepository) {
  write(base_ / "outside" / "1" / "model.pt", "identity");
  add("link_inside", "1");
  fs::create_directory_symlink(base_ / "outside", root() / "folder_link");
  fs::create_directories(root() / "file_link" / "1");
  fs::create_symlink(base_ / "outside" / "1" / "model.pt", root() / "file_link" / "1" / "model.pt");
  add("config_link", "1");
  write(base_ / "config.pbtxt", "");
  fs::create_symlink(base_ / "config.pbtxt", root() / "config_link" / "config.pbtxt");
  add("traversal", "1");
  write(root() / "traversal" / "config.pbtxt", "default_model_filename: \"../../../outside/1/model.pt\"");
  add("alias_target", "1");
  fs::create_directory_symlink(root() / "alias_target", root() / "alias");
  const auto repository = load();
  for (const char* name : {"folder_link", "file_link", "config_link", "traversal"}) {
    const auto [code, message] = error_of([&] { repository->find(name, ""); });
    EXPECT_EQ(code, ErrorCode::kUnavailable) << name << message;
  }
  EXPECT_TRUE(repository->is_ready("alias", ""));
  EXPECT_EQ(error_of([&] { repository->find("../outside", ""); }).first, ErrorCode::kNotFound);
}

TEST_F(RepositoryTest, ConfigMayNameTheFile) {
  write(root() / "m" / "1" / "weights.pt", "identity");
  write(root() / "m" / "config.pbtxt", "default_model_filename: \"weights.pt\" instance_group { count: 3 }");
  add("misnamed", "1");
  write(root() / "misnamed" / "config.pbtxt", "name: \"other\"");
  const auto repository = load();
  EXPECT_TRUE(repository->is_ready("m", ""));
  EXPECT_NE(error_of([&] { repository->find("misnamed", ""); }).second.find("named 'other'"), std::string::npos);
}

TEST_F(RepositoryTest, ModelInTwoRepositoriesIsAnError) {
  add("twice", "1");
  add("twice", "1", "identity", "more");
  add("once", "1", "identity", "more");
  const auto repository = load({root().string(), root("more").string()});
  EXPECT_NE(error_of([&] { repository->find("twice", ""); }).second.find("two or more repositories"),
            std::string::npos);
  EXPECT_TRUE(repository->is_ready("once", ""));
  EXPECT_EQ(error_of([&] { load({root("missing").string()}); }).first, ErrorCode::kNotFound);
}

TEST_F(RepositoryTest, TheConfigSaysHowManyWorkersAModelHas) {
  add("plain", "1");
  add("three", "1");
  write(root() / "three" / "config.pbtxt", "instance_group [ { count: 3 kind: KIND_CPU } ]");
  Repository repository({.roots = {root().string()}, .only = {}, .workers = 2}, open, metrics_);
  repository.load_all();
  EXPECT_EQ(repository.find("plain", "")->workers(), 2u) << "as the server's options say";
  EXPECT_EQ(repository.find("three", "")->workers(), 3u);
}

TEST_F(RepositoryTest, OnlyTheWantedModels) {
  add("a", "1");
  add("b", "1");
  const auto repository = load({}, {"b"});
  EXPECT_FALSE(repository->has_model("a"));
  EXPECT_TRUE(repository->is_ready("b", ""));
  EXPECT_EQ(error_of([&] {
              load({}, {"b", "gone"});
            }),
            std::pair(ErrorCode::kNotFound,
                      std::string("--load-model gone: model not found in any model repository; there are 'a', 'b'")));
}

TEST_F(RepositoryTest, VersionTexts) {
  add("m", "1");
  const auto repository = load();
  for (const char* text : {"x", "-1", " 1", "1x", "99999999999999999999"}) {
    EXPECT_EQ(error_of([&] { repository->find("m", text); }).first, ErrorCode::kInvalidArgument) << text;
  }
}

}  // namespace
}  // namespace tensord::server::repository_test
