#include "core/base/nearest.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace tensord {
namespace {

TEST(Nearest, TakesTheNameWithTheFewestSlips) {
  const std::vector<std::string> names{"resnet50", "resnet18", "bert", "x"};
  EXPECT_EQ(nearest("resnet5", names), "resnet50");
  EXPECT_EQ(nearest("ResNet81", names), "resnet18");  // swapped
  EXPECT_EQ(nearest("brt", names), "bert");
  EXPECT_EQ(nearest("bertt", names), "bert");
  EXPECT_EQ(nearest("bart", names), "bert");
}

TEST(Nearest, TakesNoneThatIsFar) {
  const std::vector<std::string> names{"resnet50", "bert", "x"};
  EXPECT_EQ(nearest("whisper", names), "");
  EXPECT_EQ(nearest("y", names), "");
  EXPECT_EQ(nearest("", names), "");
  EXPECT_EQ(nearest(std::string(1 << 20, 'a'), names), "");
}

TEST(Nearest, TakesTheOnlyNameThatBeginsSo) {
  const std::vector<std::string> names{"sha256", "model-repository", "model-control-mode"};
  EXPECT_EQ(nearest("sha", names), "sha256");
  EXPECT_EQ(nearest("model-repo", names), "model-repository");
  EXPECT_EQ(nearest("model-", names), "");
  EXPECT_EQ(nearest("sh", names), "");
}

TEST(Nearest, LooksForFiles) {
  const std::string folder = ::testing::TempDir() + "nearest_files";
  std::filesystem::create_directories(folder + "/models");
  EXPECT_EQ(nearest_file(folder + "/modles"), "; did you mean '" + folder + "/models'?");
  EXPECT_EQ(nearest_file(folder + "/modles/"), "; did you mean '" + folder + "/models'?");
  EXPECT_EQ(nearest_file(folder + "/other"), "");
  EXPECT_EQ(nearest_file("/no/such/folder/x"), "");
}

TEST(Nearest, SaysWhatThereIs) {
  const std::vector<std::string> names{"bert", "gpt"};
  EXPECT_EQ(right_names("brt", names), "; did you mean 'bert'? There are 'bert', 'gpt'");
  EXPECT_EQ(right_names("whisper", names), "; there are 'bert', 'gpt'");
  EXPECT_EQ(right_names("whisper", names, 1), "; there are 'bert', …");
  EXPECT_EQ(right_names("whisper", {}), "");
}

}  // namespace
}  // namespace tensord
