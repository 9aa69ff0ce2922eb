#include "core/tensor/dtype.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace tensord::dtype_test {
namespace {

// By the definition of binary16: sign, 5 bits of exponent, 10 of mantissa.
double half_value(uint16_t bits) {
  const double sign = bits & 0x8000 ? -1 : 1;
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  if (exponent == 31) return mantissa ? std::numeric_limits<double>::quiet_NaN() : sign * INFINITY;
  return sign * (exponent ? std::ldexp(1024 + mantissa, exponent - 25) : std::ldexp(mantissa, -24));
}

TEST(HalfTest, AllPatternsConvertAndComeBack) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto pattern = static_cast<uint16_t>(bits);
    const float value = Half::to_float(pattern);
    const double expected = half_value(pattern);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(value)) << bits;
      EXPECT_TRUE(std::isnan(Half::to_float(Half::from_float(value)))) << bits;
      continue;
    }
    ASSERT_EQ(value, expected) << bits;
    ASSERT_EQ(std::signbit(value), (bits & 0x8000) != 0) << bits;
    ASSERT_EQ(Half::from_float(value), pattern) << bits;
  }
}

// Halfway between neighbors rounds to even; slightly more or less rounds to the nearer one.
TEST(HalfTest, RoundsToNearestEven) {
  for (uint32_t bits = 0; bits < 0x7bff; ++bits) {
    const auto low = static_cast<uint16_t>(bits), high = static_cast<uint16_t>(bits + 1);
    const auto middle = static_cast<float>((half_value(low) + half_value(high)) / 2);
    ASSERT_EQ(Half::from_float(middle), bits & 1 ? high : low) << bits;
    ASSERT_EQ(Half::from_float(std::nextafterf(middle, 0)), low) << bits;
    ASSERT_EQ(Half::from_float(std::nextafterf(middle, INFINITY)), high) << bits;
  }
  EXPECT_EQ(Half::from_float(65519.996f), 0x7bff);
  EXPECT_EQ(Half::from_float(65520.f), 0x7c00);
  EXPECT_EQ(Half::from_float(-1e30f), 0xfc00);
  EXPECT_EQ(Half::from_float(1e-30f), 0);
  EXPECT_EQ(Half::from_float(-1e-30f), 0x8000);
}

TEST(BFloat16Test, AllPatternsConvertAndRoundToNearestEven) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    BFloat16 value;
    value.bits = static_cast<uint16_t>(bits);
    const float wide = value;
    ASSERT_EQ(std::bit_cast<uint32_t>(wide), bits << 16);
    if (std::isnan(wide)) {
      ASSERT_TRUE(std::isnan(static_cast<float>(BFloat16(wide))));
      continue;
    }
    ASSERT_EQ(BFloat16(wide).bits, bits);
    if (std::isinf(wide) || (bits & 0x7fff) == 0x7f7f) continue;
    const auto middle = std::bit_cast<float>(bits << 16 | 0x8000);
    ASSERT_EQ(BFloat16(middle).bits, bits & 1 ? bits + 1 : bits);
    ASSERT_EQ(BFloat16(std::bit_cast<float>(bits << 16 | 0x7fff)).bits, bits);
    ASSERT_EQ(BFloat16(std::bit_cast<float>(bits << 16 | 0x8001)).bits, bits + 1);
  }
  EXPECT_TRUE(std::isinf(static_cast<float>(BFloat16(std::numeric_limits<float>::max()))));
}

TEST(DTypeTest, NumbersArePyTorchs) {
  EXPECT_EQ(dtype_from_number(6), DType::kFloat32);
  EXPECT_EQ(dtype_from_number(9), DType::kComplex64);
  EXPECT_EQ(dtype_from_number(10), DType::kComplex128);
  EXPECT_EQ(dtype_from_number(15), DType::kBFloat16);
  EXPECT_THROW(dtype_from_number(-1), Error);
  EXPECT_THROW(dtype_from_number(16), Error);
  for (int64_t refused : {8, 12, 13, 14}) {
    try {
      dtype_from_number(refused);
      ADD_FAILURE() << refused;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUnimplemented) << refused;
    }
  }
}

// torch.promote_types, rows and columns in the order of kAll.
TEST(DTypeTest, PromotionIsPyTorchs) {
  const DType u8 = DType::kUInt8, i8 = DType::kInt8, i16 = DType::kInt16, i32 = DType::kInt32, i64 = DType::kInt64,
              f16 = DType::kFloat16, f32 = DType::kFloat32, f64 = DType::kFloat64, b = DType::kBool,
              bf = DType::kBFloat16;
  const DType all[] = {u8, i8, i16, i32, i64, f16, f32, f64, b, bf};
  const DType expected[10][10] = {
      {u8, i16, i16, i32, i64, f16, f32, f64, u8, bf},    {i16, i8, i16, i32, i64, f16, f32, f64, i8, bf},
      {i16, i16, i16, i32, i64, f16, f32, f64, i16, bf},  {i32, i32, i32, i32, i64, f16, f32, f64, i32, bf},
      {i64, i64, i64, i64, i64, f16, f32, f64, i64, bf},  {f16, f16, f16, f16, f16, f16, f32, f64, f16, f32},
      {f32, f32, f32, f32, f32, f32, f32, f64, f32, f32}, {f64, f64, f64, f64, f64, f64, f64, f64, f64, f64},
      {u8, i8, i16, i32, i64, f16, f32, f64, b, bf},      {bf, bf, bf, bf, bf, f32, f32, f64, bf, bf},
  };
  for (int i = 0; i < 10; ++i) {
    for (int j = 0; j < 10; ++j)
      EXPECT_EQ(promote_types(all[i], all[j]), expected[i][j]) << name_of(all[i]) << name_of(all[j]);
  }
}

TEST(DTypeTest, CanCastForInPlaceResults) {
  EXPECT_TRUE(can_cast(DType::kInt64, DType::kFloat16));
  EXPECT_TRUE(can_cast(DType::kFloat64, DType::kFloat16));
  EXPECT_TRUE(can_cast(DType::kBool, DType::kUInt8));
  EXPECT_FALSE(can_cast(DType::kFloat32, DType::kInt64));
  EXPECT_FALSE(can_cast(DType::kInt32, DType::kBool));
}

TEST(DTypeTest, DispatchNamesTheOperatorItRefuses) {
  try {
    dispatch_floating(DType::kInt32, "softmax", []<class T>() {});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("softmax"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("int32"), std::string::npos);
  }
  EXPECT_EQ(dispatch_all(DType::kBFloat16, "x", []<class T>() { return sizeof(T); }), 2u);
}

}  // namespace
}  // namespace tensord::dtype_test
