#include "core/base/nearest.h"

#include <gtest/gtest.h>

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

TEST(Nearest, SaysWhatThereIs) {
  const std::vector<std::string> names{"bert", "gpt"};
  EXPECT_EQ(right_names("brt", names), "; did you mean 'bert'? There are 'bert', 'gpt'");
  EXPECT_EQ(right_names("whisper", names), "; there are 'bert', 'gpt'");
  EXPECT_EQ(right_names("whisper", names, 1), "; there are 'bert', …");
  EXPECT_EQ(right_names("whisper", {}), "");
}

}  // namespace
}  // namespace tensord
