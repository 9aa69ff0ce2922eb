// Version folders are named and renamed in one step that survives a loss of power.
#include <gtest/gtest.h>

#include <fstream>

#include "server/repository/folder/layout.h"
#include "tests/server/error_of.h"
#include "tests/server/temporary_folder.h"
#include "tests/support/synced_files.h"

namespace tensord::server::version_names_test {
namespace {

namespace fs = std::filesystem;

class VersionNames : public ::testing::Test {
 protected:
  VersionNames() {
    model_.folder = folder_.path() / "m";
    for (const char* name : {"1", "2", "next"}) {
      fs::create_directories(model_.folder / name);
      std::ofstream(model_.folder / name / "model.pt") << name;
    }
    model_.largest_number = 2;
    tensord::fixtures::sync_log().clear();
  }
  std::string content(const fs::path& folder) const {
    std::string text;
    std::ifstream(folder / "model.pt") >> text;
    return text;
  }
  std::string fault(const fs::path& from, const fs::path& to) const {
    return tensord::fixtures::sync_log().fault_of(from.string(), to.string(), {});
  }

  fixtures::TemporaryFolder folder_{"versions"};
  ModelLayout model_;
};

TEST_F(VersionNames, ANewOneTakesTheNext) {
  EXPECT_EQ(take_next_version(model_, model_.folder / "next"), 3);
  EXPECT_EQ(content(model_.folder / "3"), "next");
  EXPECT_FALSE(fs::exists(model_.folder / "next"));
  EXPECT_EQ(fault(model_.folder / "next", model_.folder / "3"), "");
}

// Another process may have taken it meanwhile.
TEST_F(VersionNames, ANumberThatIsTakenIsPassedOver) {
  model_.largest_number = 0;
  EXPECT_EQ(take_next_version(model_, model_.folder / "next"), 3);
  for (const char* name : {"1", "2"}) EXPECT_EQ(content(model_.folder / name), name);
  EXPECT_EQ(fault(model_.folder / "next", model_.folder / "3"), "");
  EXPECT_EQ(error_of([&] { take_next_version(model_, model_.folder / "next"); }).code(), ErrorCode::kUnavailable);
}

TEST_F(VersionNames, OneIsWithdrawnAndRestored) {
  const fs::path two = model_.folder / "2", withdrawn = withdraw_version(model_, 2);
  EXPECT_FALSE(fs::exists(two));
  EXPECT_EQ(content(withdrawn), "2");
  EXPECT_EQ(withdrawn.parent_path(), model_.folder);
  EXPECT_EQ(withdrawn.filename().string()[0], '.') << "no version to whoever looks";
  EXPECT_EQ(fault(two, withdrawn), "");
  EXPECT_EQ(error_of([&] { withdraw_version(model_, 2); }).code(), ErrorCode::kUnavailable);
  restore_version(model_, 2, withdrawn);
  EXPECT_EQ(content(two), "2");
  EXPECT_EQ(fault(withdrawn, two), "");
  EXPECT_EQ(error_of([&] { restore_version(model_, 2, withdrawn); }).code(), ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace tensord::server::version_names_test
