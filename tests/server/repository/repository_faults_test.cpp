// System errors in the repository: files that cannot be opened or read, full disks.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <dlfcn.h>
#include <cerrno>
#include <thread>

#include "server/repository/folder/layout.h"
#include "tests/server/few_files.h"
#include "tests/server/repository/repository_fixture.h"

// The file whose reads fail, as on a disk with a bad sector.
static std::string unreadable_file;

extern "C" ssize_t read(int descriptor, void* to, size_t size) {
  std::error_code error;
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  if (!unreadable_file.empty() && std::filesystem::read_symlink(link, error) == unreadable_file) {
    errno = EIO;
    return -1;
  }
  return syscall(SYS_read, descriptor, to, size);
}

// Folders with new names cannot be created.
static bool refuses_folders = false;

extern "C" char* mkdtemp(char* pattern) noexcept {
  if (!refuses_folders) return reinterpret_cast<char* (*)(char*)>(dlsym(RTLD_NEXT, "mkdtemp"))(pattern);
  errno = EACCES;
  return nullptr;
}

namespace tensord::server::repository_faults_test {
namespace {

namespace fs = std::filesystem;
using tensord::fixtures::FewFiles;
using ::testing::HasSubstr;

class RepositoryFaults : public fixtures::RepositoryFixture {
 protected:
  ~RepositoryFaults() override {
    unreadable_file.clear();
    refuses_folders = false;
  }
  std::unique_ptr<const Model> open(const ModelFiles& files, const ModelConfig& config) override {
    if (on_open_) std::exchange(on_open_, nullptr)();
    return RepositoryFixture::open(files, config);
  }
  Repository& start_polling() {
    Repository::Options options;
    options.mode = ControlMode::kPoll;
    options.poll_interval_ms = 0;
    options.copies_archives = true;
    options.load_threads = 1;  // they share the file descriptors
    return start(std::move(options));
  }

  std::function<void()> on_open_;  // called for the next model
};

TEST_F(RepositoryFaults, ALookWithoutFilesChangesNothing) {
  add("a", "1", "number:1");
  start_polling();
  add("a", "2", "number:2");
  add("b", "1", "number:3");
  {
    const FewFiles none(0);
    repository_->poll();
    EXPECT_EQ(ask("a"), 1);
    EXPECT_EQ(repository_->ready_versions("a"), std::vector<std::string>{"1"});
  }
  repository_->poll();
  EXPECT_EQ(ask("a"), 2);
  EXPECT_EQ(ask("b"), 3);
}

// One descriptor is enough to scan, but not to copy.
TEST_F(RepositoryFaults, WhatHadTooFewFilesIsTriedAgain) {
  add("a", "1", "number:1");
  start_polling();
  add("a", "2", "number:2");
  add("b", "1", "number:3");
  {
    const FewFiles one(1);
    repository_->poll();
    EXPECT_EQ(ask("a"), 1);
    EXPECT_THROW(ask("b"), Error);
    EXPECT_THAT(states("b"), HasSubstr("model.pt: cannot be copied: Too many open files"));
  }
  repository_->poll();
  EXPECT_EQ(ask("a"), 2);
  EXPECT_EQ(ask("b"), 3);
  const int opened = opened_;
  repository_->poll();
  EXPECT_EQ(opened_, opened);
}

TEST_F(RepositoryFaults, ALoadWithoutFilesLeavesWhatServes) {
  add("a", "1", "number:1");
  start({.roots = {}, .only = {"a"}, .mode = ControlMode::kExplicit, .copies_archives = true});
  add("a", "2", "number:2");
  for (const size_t left : {0, 1}) {
    const FewFiles few(left);
    EXPECT_ANY_THROW(repository_->load({.name = "a", .config = {}, .files = {}})) << left;
    EXPECT_EQ(ask("a"), 1);
  }
  repository_->load({.name = "a", .config = {}, .files = {}});
  EXPECT_EQ(ask("a"), 2);
}

// It is not served as if the file were empty.
TEST_F(RepositoryFaults, AConfigurationThatCannotBeReadIsNoEmptyOne) {
  add("a", "1", "number:1");
  add("a", "2", "number:2");
  configure("a", "version_policy: { specific: { versions: [1] } }");
  unreadable_file = fs::canonical(root() / "a" / "config.pbtxt");
  start_polling();
  EXPECT_THROW(ask("a"), Error);
  EXPECT_THAT(states("a"), HasSubstr("config.pbtxt: cannot be read"));
  repository_->poll();
  EXPECT_THROW(ask("a"), Error);
  unreadable_file.clear();
  repository_->poll();
  EXPECT_EQ(ask("a"), 1);
  EXPECT_EQ(states("a"), "1 READY");
}

// A file may become unreadable while the models before it are loaded: that error may be transient too.
TEST_F(RepositoryFaults, WhatCannotBeReadAtItsTurnIsTriedAgain) {
  add("a", "1", "number:1");
  add("b", "1", "number:1");
  configure("b", "version_policy: { all {} }");
  on_open_ = [&] {
    add("b", "2", "number:2");
    unreadable_file = fs::canonical(root() / "b" / "config.pbtxt");
  };
  start_polling();
  EXPECT_THAT(states("b"), HasSubstr("config.pbtxt: cannot be read"));
  unreadable_file.clear();
  repository_->poll();
  EXPECT_EQ(states("b"), "1 READY, 2 READY");
}

TEST_F(RepositoryFaults, LinksThatLeadNowhereAreNamed) {
  add("a", "1", "number:1");
  fs::create_symlink(base_ / "nothing", root() / "a" / "2");
  add("b", "1", "number:1");
  fs::create_symlink(base_ / "nothing", root() / "b" / "config.pbtxt");
  fs::create_symlink(root() / "itself", root() / "itself");
  add("c", "1", "number:1");
  fs::create_directories(root() / "c" / "config.pbtxt");
  start_polling();
  EXPECT_THAT(states("a"), HasSubstr("UNAVAILABLE: "));
  EXPECT_THAT(states("b"), HasSubstr("config.pbtxt: No such file or directory"));
  EXPECT_THAT(states("c"), HasSubstr("config.pbtxt: not a file"));
  EXPECT_EQ(states("itself"), "");
}

TEST_F(RepositoryFaults, ARepositoryThatIsGoneTakesNothingAway) {
  add("a", "1", "number:1");
  start_polling();
  fs::rename(root(), base_ / "elsewhere");
  repository_->poll();
  EXPECT_EQ(ask("a"), 1);
  write(root(), "a file where the folder was");
  repository_->poll();
  EXPECT_EQ(ask("a"), 1);
  fs::remove(root());
  fs::rename(base_ / "elsewhere", root());
  repository_->poll();
  EXPECT_EQ(ask("a"), 1);
}

// A version that could not be written leaves nothing behind.
TEST_F(RepositoryFaults, AVersionThatCannotBeWrittenLeavesNothing) {
  add("a", "1", "number:1");
  start_polling();
  const auto entries = [&](const std::string& model) {
    return std::distance(fs::directory_iterator(root() / model), fs::directory_iterator());
  };
  for (const char* model : {"a", "new"}) {
    EXPECT_ANY_THROW(repository_->add_version(model, [](const fs::path& folder, const std::string& name) {
      write(folder / name, "number:2");
      fail(ErrorCode::kResourceExhausted, "disk full");
    }));
  }
  EXPECT_EQ(entries("a"), 1);
  EXPECT_FALSE(fs::exists(root() / "new"));
  fs::rename(root() / "a", root() / "gone");
  write(root() / "a", "a file where the folder was");
  const auto [code, text] = error_of([&] {
    repository_->add_version("a", [](const fs::path& folder, const std::string& name) { write(folder / name, "x"); });
  });
  EXPECT_NE(code, ErrorCode::kInternal) << text;
  EXPECT_EQ(ask("a"), 1);
}

TEST_F(RepositoryFaults, AVersionNeedsAFolder) {
  add("a", "1", "number:1");
  start_polling();
  refuses_folders = true;
  const auto [code, text] = error_of([&] { repository_->add_version("a", [](const fs::path&, const auto&) {}); });
  EXPECT_EQ(code, ErrorCode::kUnavailable);
  EXPECT_THAT(text, HasSubstr("/a: no folder can be made in it"));
}

// A caller that waited for the name finds nothing, and leaves nothing.
TEST_F(RepositoryFaults, AModelThatNeverWasIsNotUnloaded) {
  start_polling();
  std::thread other;
  on_open_ = [&] {
    other = std::thread([&] { repository_->unload("new"); });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  };
  EXPECT_ANY_THROW(repository_->add_version(
      "new", [](const fs::path& folder, const std::string& name) { write(folder / name, "broken"); }));
  other.join();
  EXPECT_FALSE(repository_->has_model("new"));
  EXPECT_EQ(states("new"), "");
}

}  // namespace
}  // namespace tensord::server::repository_faults_test
