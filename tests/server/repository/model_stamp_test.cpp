// What is recorded of a model's files, and how deep folders are searched.
#include "server/repository/folder/model_stamp.h"

#include <dirent.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fcntl.h>

#include <fstream>

#include "tests/server/error_of.h"
#include "tests/server/temporary_folder.h"

// readdir returns this many dangling entries before the real ones.
static int entries_more = 0;

extern "C" dirent* readdir(DIR* folder) {
  static const auto real = reinterpret_cast<dirent* (*)(DIR*)>(dlsym(RTLD_NEXT, "readdir"));
  if (entries_more == 0) return real(folder);
  static dirent entry{};
  entry.d_type = DT_LNK;
  const std::string name = "f" + std::to_string(entries_more--);
  name.copy(entry.d_name, sizeof(entry.d_name) - 1);
  entry.d_name[name.size()] = '\0';
  return &entry;
}

namespace tensord::server::model_stamp_test {
namespace {

namespace fs = std::filesystem;

class ModelStamps : public ::testing::Test {
 protected:
  void write(const fs::path& path, const std::string& content = "x") const {
    fs::create_directories((folder_.path() / path).parent_path());
    std::ofstream(folder_.path() / path) << content;
  }
  void set_time(const fs::path& path, int64_t seconds, int64_t nanoseconds) const {
    const timespec both[2] = {{seconds, nanoseconds}, {seconds, nanoseconds}};
    ASSERT_EQ(utimensat(AT_FDCWD, (folder_.path() / path).c_str(), both, 0), 0);
  }
  ModelStamp stamp() const { return stamp_model(folder_.path()); }

  fixtures::TemporaryFolder folder_{"stamps"};
};

TEST_F(ModelStamps, VersionsAndWhatTheyShareAreToldApart) {
  write("1/model.pt");
  write("12/model.pt");
  write("config.pbtxt");
  write("labels/a.txt");
  write(".hidden/x");
  const ModelStamp before = stamp();
  EXPECT_EQ(before.versions.size(), 2u);
  EXPECT_TRUE(before == stamp());
  write(".hidden/y");
  EXPECT_TRUE(before == stamp()) << "what is hidden says nothing";
  for (const char* shared : {"config.pbtxt", "labels/a.txt", "labels/b.txt", "01/model.pt", "other"}) {
    const ModelStamp old = stamp();
    write(shared, "another length of " + std::string(shared));
    const ModelStamp now = stamp();
    EXPECT_NE(now.shared, old.shared) << shared;
    EXPECT_EQ(now.versions, old.versions) << shared;
  }
  const ModelStamp old = stamp();
  write("12/more/weights", "y");
  const ModelStamp now = stamp();
  EXPECT_EQ(now.shared, old.shared);
  EXPECT_EQ(now.versions.at(1), old.versions.at(1));
  EXPECT_NE(now.versions.at(12), old.versions.at(12));
}

TEST_F(ModelStamps, AnyMomentOfAChangeCounts) {
  write("1/model.pt");
  write("1/a");
  set_time("1/a", 1000, 5);
  set_time("1/model.pt", 1000, 7);
  const ModelStamp before = stamp();
  EXPECT_EQ(before.newest_ns, int64_t{1000} * 1'000'000'000 + 7);
  set_time("1/a", 1000, 6);
  EXPECT_FALSE(before == stamp());
  EXPECT_EQ(stamp().newest_ns, before.newest_ns);
  set_time("1/a", 1001, 5);
  EXPECT_EQ(stamp().newest_ns, int64_t{1001} * 1'000'000'000 + 5);
}

// Links may be circular.
TEST_F(ModelStamps, FoldersAreLookedAtToADepth) {
  fs::path deep = "1";
  for (int depth = 1; depth <= 10; ++depth) {
    write(deep / "file");
    const ModelStamp before = stamp();
    write(deep / "file", "longer");
    EXPECT_EQ(before == stamp(), depth > 8) << depth;
    deep /= "d";
  }
  fs::create_directory_symlink(folder_.path(), folder_.path() / "2");
  EXPECT_EQ(stamp().versions.size(), 2u);
}

TEST_F(ModelStamps, FoldersOfManyFilesAreNoModels) {
  entries_more = 100'000;
  EXPECT_EQ(stamp().shared, "");
  EXPECT_EQ(entries_more, 0);
  entries_more = 100'001;
  const Error error = error_of([&] { stamp(); });
  entries_more = 0;
  EXPECT_EQ(error.code(), ErrorCode::kResourceExhausted);
  EXPECT_EQ(std::string(error.what()), folder_.path().string() + ": more than 100000 files");
}

}  // namespace
}  // namespace tensord::server::model_stamp_test
