// Labels that clients may ask for instead of numbers of versions.
#include <gtest/gtest.h>

#include "tests/server/repository/repository_fixture.h"

namespace tensord::server::repository_labels_test {
namespace {

class RepositoryLabelsTest : public fixtures::RepositoryFixture {
 protected:
  void start_explicit() {
    start({.roots = {}, .only = {"m"}, .mode = ControlMode::kExplicit, .copies_archives = true});
  }
};

TEST_F(RepositoryLabelsTest, NameVersions) {
  for (const char* version : {"1", "2", "3"}) add("m", version, std::string("number:") + version);
  configure("m",
            "version_policy: { all {} } parameters { key: \"version_labels\" value: { string_value: \"stable=1\" } }");
  start_explicit();
  EXPECT_EQ(ask("m", "stable"), 1);
  EXPECT_EQ(error_of([&] { repository_->find("m", "canary"); }).first, ErrorCode::kInvalidArgument);
  repository_->set_labels("m", "stable=2,canary=3");
  EXPECT_EQ(ask("m", "stable"), 2);
  EXPECT_EQ(ask("m", "canary"), 3);
  EXPECT_EQ(
      error_of([&] { repository_->find("m", "stabel"); }).second,
      "failed to get model version from specified version string 'stabel' (an integral value greater than or equal "
      "to 0 is expected), or a label; did you mean 'stable'? There are '1', '2', '3', 'canary', 'stable'");
  EXPECT_EQ(error_of([&] { repository_->find("m", "4"); }).second,
            "Request for unknown model: 'm' version 4 is not found; there are '1', '2', '3'");
  // In one step: all or none.
  EXPECT_EQ(error_of([&] { repository_->set_labels("m", "stable=3,canary=7"); }).first, ErrorCode::kNotFound);
  EXPECT_EQ(ask("m", "stable"), 2);
  for (const char* text : {"", "stable", "=1", "1=2", "a b=1", "stable=x", "stable=-1", "stable=1,stable=2"}) {
    EXPECT_EQ(error_of([&] { repository_->set_labels("m", text); }).first, ErrorCode::kInvalidArgument) << text;
  }
  // A load leaves moved labels alone, unless the configuration has others.
  add("m", "1", "number:10");
  repository_->load({.name = "m", .config = {}, .files = {}});
  EXPECT_EQ(ask("m", "stable"), 2);
  configure("m",
            "version_policy: { all {} } parameters { key: \"version_labels\" value: { string_value: \"stable=3\" } }");
  repository_->load({.name = "m", .config = {}, .files = {}});
  EXPECT_EQ(ask("m", "stable"), 3);
  repository_->set_labels("m", "stable=");
  EXPECT_EQ(error_of([&] { repository_->find("m", "stable"); }).first, ErrorCode::kInvalidArgument);
}

TEST_F(RepositoryLabelsTest, TheyAreOfVersionsThatServe) {
  for (const char* version : {"1", "2"}) add("m", version, std::string("number:") + version);
  add("m", "3", "broken");
  configure("m", "version_policy: { all {} }");
  start_explicit();
  EXPECT_EQ(states("m"), "1 READY, 2 READY, 3 UNAVAILABLE: not a model: broken");
  const auto [code, message] = error_of([&] { repository_->set_labels("m", "stable=2,newest=3"); });
  EXPECT_EQ(code, ErrorCode::kNotFound);
  EXPECT_EQ(message, "version label 'newest': model 'm' does not serve version 3");
  EXPECT_EQ(error_of([&] { repository_->find("m", "stable"); }).first, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace tensord::server::repository_labels_test
