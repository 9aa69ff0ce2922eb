// Files of other hosts, cached by content: what counts, what stays, what is fetched again.
#include "server/training/hosts/file_cache.h"

#include <gmock/gmock.h>

#include <fstream>
#include <sstream>

#include "tests/server/error_of.h"
#include "tests/server/temporary_folder.h"

namespace tensord::server::file_cache_test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

HostFile file_of(const std::string& content) {
  distributed::Digest hash;
  hash.add(content);
  return {.path = "data/x.pt", .is_data = true, .size_bytes = content.size(), .sha256 = hash.finish()};
}
std::string text_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

struct FileCacheTest : ::testing::Test {
  // Places a file of this content, which the other host serves as `served`.
  void place(FileCache& cache, const std::string& content, const std::string& served) {
    const fs::path to = folder.path() / concat("placed", placed++);
    cache.place(
        file_of(content), to,
        [&](const HostFile&, const FileCache::Take& take) {
          ++fetched;
          for (size_t i = 0; i < served.size(); i += 3) take(std::string_view(served).substr(i, 3));
        },
        [this] { return is_cancelled; });
    EXPECT_EQ(text_of(to), content);
  }
  void place(FileCache& cache, const std::string& content) { place(cache, content, content); }
  size_t cached() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(folder.path() / "cache"), fs::directory_iterator()));
  }

  fixtures::TemporaryFolder folder{"file_cache"};
  int placed = 0, fetched = 0;
  bool is_cancelled = false;
};

TEST_F(FileCacheTest, AFileComesOnce) {
  FileCache cache(folder.path() / "cache", 0);
  place(cache, "hello");
  place(cache, "hello");
  place(cache, "");
  EXPECT_EQ(fetched, 2);
  // A new process still finds it.
  FileCache again(folder.path() / "cache", 0);
  place(again, "hello");
  EXPECT_EQ(fetched, 2);
}

TEST_F(FileCacheTest, OtherBytesThanWereAnnouncedAreNone) {
  FileCache cache(folder.path() / "cache", 0);
  for (const std::string served : {"hellO", "hell", "", "hello!", "hello hello hello"}) {
    EXPECT_EQ(error_of([&] { place(cache, "hello", served); }).code(), ErrorCode::kDataLoss) << served;
    EXPECT_EQ(cached(), 0u) << served;
  }
  place(cache, "hello");
}

TEST_F(FileCacheTest, ACopyThatHasChangedIsFetchedAgain) {
  FileCache cache(folder.path() / "cache", 0);
  place(cache, "hello");
  std::ofstream(folder.path() / "cache" / file_of("hello").sha256) << "other";
  place(cache, "hello");
  EXPECT_EQ(fetched, 2);
}

TEST_F(FileCacheTest, NamesAreNoPaths) {
  FileCache cache(folder.path() / "cache", 0);
  for (const std::string& sha256 :
       {std::string("../../etc/passwd"), std::string(), std::string(63, 'a'), std::string(64, 'A')}) {
    HostFile file = file_of("hello");
    file.sha256 = sha256;
    const Error error = error_of([&] {
      cache.place(
          file, folder.path() / "to", [](const HostFile&, const FileCache::Take&) {}, [] { return false; });
    });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.what(), HasSubstr("is not a SHA-256"));
  }
}

TEST_F(FileCacheTest, TheOldestMakeRoom) {
  FileCache cache(folder.path() / "cache", 10);
  const auto age = [&](const std::string& content, int hours) {
    fs::last_write_time(folder.path() / "cache" / file_of(content).sha256,
                        fs::file_time_type::clock::now() - std::chrono::hours(hours));
  };
  place(cache, "aaaa"), age("aaaa", 3);
  place(cache, "bbbb"), age("bbbb", 2);
  place(cache, "aaaa");  // used last
  age("aaaa", 1);
  place(cache, "cccc");
  EXPECT_EQ(fetched, 3);
  place(cache, "aaaa");
  EXPECT_EQ(fetched, 3);
  place(cache, "bbbb");
  EXPECT_EQ(fetched, 4);
  const Error error = error_of([&] { place(cache, "more than ten bytes"); });
  EXPECT_EQ(error.code(), ErrorCode::kResourceExhausted);
  EXPECT_THAT(error.what(), HasSubstr("--join-cache"));
}

TEST_F(FileCacheTest, AStartThatIsGivenUpLeavesNothing) {
  FileCache cache(folder.path() / "cache", 0);
  is_cancelled = true;
  EXPECT_EQ(error_of([&] { place(cache, "hello"); }).code(), ErrorCode::kCancelled);
  EXPECT_EQ(cached(), 0u);
}

TEST_F(FileCacheTest, ACheckThatIsGivenUpSaysSo) {
  FileCache cache(folder.path() / "cache", 0);
  place(cache, "hello");
  is_cancelled = true;
  const Error error = error_of([&] { place(cache, "hello"); });
  EXPECT_EQ(error.code(), ErrorCode::kCancelled);
  EXPECT_EQ(cached(), 1u);
  EXPECT_EQ(fetched, 1);
}

TEST_F(FileCacheTest, FilesThatAreGoneMakeNoRoom) {
  FileCache cache(folder.path() / "cache", 10);
  place(cache, "aaaaa");
  const fs::path gone = folder.path() / "cache" / std::string(64, 'a'), sizeless = gone.string() + 'b';
  fs::create_symlink(folder.path() / "nowhere", gone);  // like an entry that disappears during the scan
  fs::create_directory(sizeless);
  place(cache, "bbbbbb");
  EXPECT_TRUE(fs::is_symlink(gone));
  EXPECT_TRUE(fs::is_directory(sizeless));
  EXPECT_FALSE(fs::exists(folder.path() / "cache" / file_of("aaaaa").sha256));
}

TEST_F(FileCacheTest, AFolderThatCannotBeMadeIsNamed) {
  std::ofstream(folder.path() / "file") << "f";
  const Error error = error_of([&] { FileCache(folder.path() / "file" / "cache", 0); });
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(error.what(), HasSubstr("cannot be made"));
}

TEST_F(FileCacheTest, WhatAnEarlierProcessWasNotDoneWithIsRemoved) {
  fs::create_directories(folder.path() / "cache");
  std::ofstream(folder.path() / "cache" / (file_of("hello").sha256 + ".tmp123")) << "hel";
  fs::create_directories(folder.path() / "cache" / "folder");
  const FileCache cache(folder.path() / "cache", 0);
  EXPECT_EQ(cached(), 0u);
}

TEST_F(FileCacheTest, WhatFetchThrowsComesOut) {
  FileCache cache(folder.path() / "cache", 0);
  const Error error = error_of([&] {
    cache.place(
        file_of("hello"), folder.path() / "to",
        [](const HostFile&, const FileCache::Take& take) {
          take("he");
          fail(ErrorCode::kUnavailable, "cut off");
        },
        [] { return false; });
  });
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_EQ(cached(), 0u);
}

}  // namespace
}  // namespace tensord::server::file_cache_test
