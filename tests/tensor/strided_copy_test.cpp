#include "core/tensor/strided_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace tensord::strided_copy_test {
namespace {

// Element by element, by the definition of strides.
template <class To, class From, class Convert>
void expect_copied(const Tensor& target, const Tensor& source, Convert convert) {
  const Dims& sizes = target.sizes();
  Dims index(sizes.size(), 0);
  for (int64_t n = 0; n < target.numel(); ++n) {
    int64_t t = 0, s = 0;
    for (size_t d = 0; d < sizes.size(); ++d) {
      t += index[d] * target.strides()[d];
      s += index[d] * source.strides()[d];
    }
    ASSERT_EQ(static_cast<double>(target.data<To>()[t]), static_cast<double>(convert(source.data<From>()[s])))
        << to_string(index) << " of " << to_string(sizes);
    for (size_t d = sizes.size(); d-- > 0;) {
      if (++index[d] < sizes[d]) break;
      index[d] = 0;
    }
  }
}

Tensor random_tensor(const Dims& sizes, DType dtype, uint32_t seed) {
  Tensor out = Tensor::empty(sizes, dtype);
  std::mt19937 random(seed);
  dispatch_all(dtype, "test", [&]<class T>() {
    for (int64_t i = 0; i < out.numel(); ++i) out.data<T>()[i] = static_cast<T>(static_cast<float>(random() % 100));
  });
  return out;
}

// Every order of dimensions on both sides, with gaps, at sizes around the block size.
TEST(StridedCopyTest, AnyOrderOfDimensions) {
  const int64_t orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  for (const Dims& sizes : {Dims{3, 17, 16}, Dims{1, 33, 5}, Dims{40, 1, 70}, Dims{2, 64, 64}, Dims{2, 2, 2}}) {
    for (const auto& to_order : orders) {
      for (const auto& from_order : orders) {
        for (const int64_t gap : {1, 2}) {
          const auto make = [&](const int64_t* order, uint32_t seed) {
            Dims strides(3, 0);
            int64_t step = gap;
            for (int k = 2; k >= 0; --k) {
              strides[static_cast<size_t>(order[k])] = step;
              step *= sizes[static_cast<size_t>(order[k])];
            }
            return random_tensor({step}, DType::kFloat32, seed).as_view(sizes, strides, 0);
          };
          const Tensor target = make(to_order, 1), source = make(from_order, 2);
          strided_copy(target, source);
          expect_copied<float, float>(target, source, [](float x) { return x; });
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(StridedCopyTest, GapsAreLeftAlone) {
  const Tensor base = random_tensor({8}, DType::kFloat32, 3);
  const Tensor before = base.clone();
  strided_copy(base.as_view({4}, {2}, 0), random_tensor({4}, DType::kFloat32, 4));
  for (int i = 1; i < 8; i += 2) EXPECT_EQ(base.data<float>()[i], before.data<float>()[i]);
}

TEST(StridedCopyTest, ReadsBroadcastSources) {
  const Tensor row = random_tensor({1, 5}, DType::kFloat32, 5);
  Tensor target = Tensor::empty(Dims{300, 5}, DType::kFloat32);
  target.copy_from(row);
  expect_copied<float, float>(target, row.as_view({300, 5}, {0, 1}, 0), [](float x) { return x; });
  EXPECT_THROW(target.copy_from(random_tensor({301, 5}, DType::kFloat32, 1)), Error);
  EXPECT_THROW(row.copy_from(target), Error);
}

TEST(StridedCopyTest, EveryPairOfDtypes) {
  const DType all[] = {DType::kUInt8,   DType::kInt8,    DType::kInt16,   DType::kInt32, DType::kInt64,
                       DType::kFloat16, DType::kFloat32, DType::kFloat64, DType::kBool,  DType::kBFloat16};
  for (const DType from : all) {
    for (const DType to : all) {
      const Tensor source = random_tensor({7, 9}, from, 6).as_view({9, 7}, {1, 9}, 0);
      const Tensor target = Tensor::empty(Dims{9, 7}, to);
      strided_copy(target, source);
      dispatch_all(to, "test", [&]<class To>() {
        dispatch_all(from, "test", [&]<class From>() {
          expect_copied<To, From>(target, source, [](From x) {
            if constexpr (std::is_same_v<To, bool>)
              return static_cast<double>(x) != 0;
            else
              return static_cast<To>(static_cast<float>(x));
          });
        });
      });
    }
  }
}

// Contiguous rows of halves are converted by the registered functions.
TEST(StridedCopyTest, RowsOfHalvesGoByTheGivenFunctions) {
  set_half_rows({[](const Half*, float* to, int64_t count) { std::fill_n(to, count, 1.0f); },
                 [](const BFloat16*, float* to, int64_t count) { std::fill_n(to, count, 2.0f); },
                 [](const float*, Half* to, int64_t count) { std::fill_n(to, count, Half(3.0f)); },
                 [](const float*, BFloat16* to, int64_t count) { std::fill_n(to, count, BFloat16(4.0f)); }});
  const auto last = [](DType from, DType to) {
    const Tensor copy = random_tensor({3, 5}, from, 8).to(to).to(DType::kFloat64);
    return copy.data<double>()[14];
  };
  EXPECT_EQ(last(DType::kFloat16, DType::kFloat32), 1);
  EXPECT_EQ(last(DType::kBFloat16, DType::kFloat32), 2);
  EXPECT_EQ(last(DType::kFloat32, DType::kFloat16), 3);
  EXPECT_EQ(last(DType::kFloat32, DType::kBFloat16), 4);
  const Tensor columns = random_tensor({1}, DType::kFloat16, 9).as_view({3, 5}, {0, 0}, 0);
  EXPECT_NE(columns.to(DType::kFloat32).data<float>()[14], 1);
  set_half_rows({});
}

// Values whose conversion C++ leaves undefined have a defined result.
TEST(StridedCopyTest, FloatsOutsideOfTheIntegerRange) {
  Tensor source = Tensor::empty(Dims{3}, DType::kFloat32);
  source.data<float>()[0] = -1;
  source.data<float>()[1] = 1e30f;
  source.data<float>()[2] = NAN;
  const Tensor bytes = source.to(DType::kUInt8);
  EXPECT_EQ(bytes.data<uint8_t>()[0], 255);
  const Tensor longs = source.to(DType::kInt64);
  EXPECT_EQ(longs.data<int64_t>()[1], INT64_MIN);
  EXPECT_EQ(longs.data<int64_t>()[2], INT64_MIN);
  EXPECT_TRUE(source.to(DType::kBool).data<bool>()[2]);
}

TEST(StridedCopyTest, LargeCopiesUseTheTeamAndAgree) {
  const Tensor source = random_tensor({513, 1027}, DType::kFloat32, 7);
  const Tensor target = source.as_view({1027, 513}, {1, 1027}, 0).contiguous();
  expect_copied<float, float>(target, source.as_view({1027, 513}, {1, 1027}, 0), [](float x) { return x; });
}

TEST(StridedCopyTest, EmptyTensors) {
  Tensor empty = Tensor::empty(Dims{0, 4}, DType::kFloat32);
  empty.copy_from(random_tensor({1, 4}, DType::kInt64, 1));
  EXPECT_EQ(empty.clone().numel(), 0);
}

}  // namespace
}  // namespace tensord::strided_copy_test
