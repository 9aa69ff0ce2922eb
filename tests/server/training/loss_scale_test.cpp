#include <gtest/gtest.h>

#include "server/training/loss_scale.h"

namespace tensord::loss_scale_test {
namespace {

using server::LossScale;

TEST(LossScale, IsHalvedBySkippedStepsAndDoubledByManyGoodOnes) {
  LossScale scale(1024);
  for (int i = 0; i < 1999; ++i) scale.update(true);
  EXPECT_EQ(scale.value(), 1024);
  scale.update(false);
  EXPECT_EQ(scale.value(), 512);
  for (int i = 0; i < 1999; ++i) scale.update(true);
  EXPECT_EQ(scale.value(), 512);
  scale.update(true);
  EXPECT_EQ(scale.value(), 1024);
}

TEST(LossScale, GoesOnFromItsState) {
  LossScale scale(4), other(1);
  for (int i = 0; i < 1500; ++i) scale.update(true);
  other.load_state_dict(scale.state_dict());
  for (int i = 0; i < 500; ++i) other.update(true);
  EXPECT_EQ(other.value(), 8);
}

TEST(LossScale, EndsWhereNoFactorHelps) {
  LossScale scale(1);
  for (int i = 0; i < 24; ++i) scale.update(false);
  EXPECT_EQ(scale.value(), 0x1p-24);
  EXPECT_THROW(scale.update(false), Error);
}

}  // namespace
}  // namespace tensord::loss_scale_test
