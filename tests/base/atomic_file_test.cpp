#include "core/base/atomic_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "core/base/error.h"
#include "tests/support/synced_files.h"

namespace tensord::atomic_file_test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class AtomicFileTest : public ::testing::Test {
 protected:
  AtomicFileTest() : folder_(::testing::TempDir() + "atomic_file_test." + std::to_string(getpid())) {
    fs::create_directories(folder_);
  }
  ~AtomicFileTest() override { fs::remove_all(folder_); }

  std::string path() const { return folder_ + "/a file"; }
  std::string content() const {
    std::ifstream in(path(), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  auto count() const { return std::distance(fs::directory_iterator(folder_), {}); }

  const std::string folder_;
};

template <class Fn>
Error error_of(Fn&& fn) {
  try {
    fn();
  } catch (const Error& error) {
    return error;
  }
  return {ErrorCode::kInternal, "no error"};
}

TEST_F(AtomicFileTest, ReplacesWhatWasThereInOneStep) {
  std::ofstream(path()) << "before";
  {
    AtomicFile file(path());
    file.write("after");
    EXPECT_EQ(content(), "before");
    file.commit();
  }
  EXPECT_EQ(content(), "after");
  EXPECT_EQ(count(), 1);
  EXPECT_EQ(fs::status(path()).permissions() & fs::perms::others_read, fs::perms::others_read);
}

TEST_F(AtomicFileTest, IsOnTheDiskBeforeItHasItsName) {
  std::string temporary;
  {
    AtomicFile file(path());
    file.write("content");
    temporary = fs::directory_iterator(folder_)->path().string();
    fixtures::sync_log().clear();
    file.commit();
  }
  EXPECT_EQ(fixtures::sync_log().fault_of(temporary, path(), {temporary}), "");
}

TEST_F(AtomicFileTest, ACopyIsOnTheDiskToo) {
  const std::string from = folder_ + "/from";
  std::string large(3 << 20, 'x');
  large.back() = 'y';
  std::ofstream(from) << large;
  fixtures::sync_log().clear();
  copy_to_disk(from, path());
  EXPECT_EQ(content(), large);
  const std::string& renamed = fixtures::sync_log().events.at(1);
  const std::string temporary = renamed.substr(7, renamed.size() - path().size() - 8);
  EXPECT_EQ(fixtures::sync_log().fault_of(temporary, path(), {temporary}), "");
  EXPECT_EQ(error_of([&] { copy_to_disk(folder_ + "/none", path()); }).code(), ErrorCode::kUnavailable);
  EXPECT_EQ(content(), large);
}

TEST_F(AtomicFileTest, LeavesNothingWithoutCommit) {
  { AtomicFile(path()).write("lost"); }
  EXPECT_EQ(count(), 0);
}

TEST_F(AtomicFileTest, SaysWhyItCannotBeWritten) {
  const Error missing = error_of([] { AtomicFile("/nonexistent/file"); });
  EXPECT_EQ(missing.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(missing.what(), StartsWith("/nonexistent/file: cannot be written: No such file"));
  fs::create_directory(path());
  const Error folder = error_of([&] {
    AtomicFile file(path());
    file.commit();
  });
  EXPECT_EQ(folder.code(), ErrorCode::kUnavailable);
  EXPECT_EQ(count(), 1) << "no temporary file is left";
}

// A file size limit simulates a full disk.
TEST_F(AtomicFileTest, AFullDiskIsTold) {
  std::ofstream(path()) << "before";
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{1 << 16, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const Error error = error_of([&] {
    AtomicFile file(path());
    file.write(std::string(1 << 20, 'x'));
    file.commit();
  });
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(error.code(), ErrorCode::kResourceExhausted);
  EXPECT_THAT(error.what(), HasSubstr("File too large"));
  EXPECT_EQ(content(), "before");
  EXPECT_EQ(count(), 1);
}

}  // namespace
}  // namespace tensord::atomic_file_test
