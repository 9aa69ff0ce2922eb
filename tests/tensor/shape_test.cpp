#include "core/tensor/shape.h"

#include <gtest/gtest.h>

#include "core/base/error.h"

namespace tensord::shape_test {
namespace {

constexpr int64_t kBig = int64_t{1} << 40;

ErrorCode code_of(const auto& run) {
  try {
    run();
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::kInternal;
}

TEST(DimsTest, GrowsPastItsInlineRoom) {
  Dims dims;
  for (int64_t i = 0; i < 20; ++i) dims.push_back(i);
  EXPECT_EQ(dims.size(), 20u);
  dims.insert(5, 100);
  EXPECT_EQ(dims[5], 100);
  EXPECT_EQ(dims[6], 5);
  dims.erase(5);
  for (int64_t i = 0; i < 20; ++i) EXPECT_EQ(dims[static_cast<size_t>(i)], i);
  const Dims copy = dims;
  Dims moved = std::move(dims);
  EXPECT_EQ(moved, copy);
  moved.resize(2);
  moved.resize(4);
  EXPECT_EQ(moved, (Dims{0, 1, 0, 0}));
  EXPECT_EQ(to_string(moved), "[0, 1, 0, 0]");
}

TEST(ShapeTest, NumelIsChecked) {
  EXPECT_EQ(checked_numel(Dims{}), 1);
  EXPECT_EQ(checked_numel(Dims{2, 3, 4}), 24);
  EXPECT_EQ(checked_numel(Dims{kBig, kBig, 0}), 0);
  EXPECT_EQ(checked_numel(Dims{0, kBig, kBig}), 0);
  EXPECT_EQ(code_of([] { checked_numel(Dims{kBig, kBig}); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([] { checked_numel(Dims{2, -1}); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([] { checked_numel(Dims(65, 1)); }), ErrorCode::kInvalidArgument);
}

TEST(ShapeTest, Strides) {
  EXPECT_EQ(contiguous_strides(Dims{2, 3, 4}), (Dims{12, 4, 1}));
  EXPECT_EQ(contiguous_strides(Dims{2, 0, 4}), (Dims{4, 4, 1}));
  EXPECT_EQ(channels_last_strides(Dims{2, 3, 4, 5}), (Dims{60, 1, 15, 3}));
  EXPECT_EQ(channels_last_strides(Dims{2, 3, 4, 5, 6}), (Dims{360, 1, 90, 18, 3}));
  EXPECT_EQ(code_of([] { channels_last_strides(Dims{2, 3}); }), ErrorCode::kInvalidArgument);
}

TEST(ShapeTest, Contiguity) {
  EXPECT_TRUE(is_contiguous(Dims{2, 1, 4}, Dims{4, 99, 1}));
  EXPECT_TRUE(is_contiguous(Dims{2, 0}, Dims{7, 7}));
  EXPECT_FALSE(is_contiguous(Dims{2, 3}, Dims{1, 2}));
  EXPECT_TRUE(is_channels_last(Dims{2, 3, 4, 5}, Dims{60, 1, 15, 3}));
  EXPECT_FALSE(is_channels_last(Dims{2, 3, 4, 5}, Dims{60, 20, 5, 1}));
  EXPECT_TRUE(is_non_overlapping_and_dense(Dims{2, 3, 4}, Dims{1, 8, 2}));
  EXPECT_FALSE(is_non_overlapping_and_dense(Dims{2, 3}, Dims{0, 1}));
  EXPECT_FALSE(is_non_overlapping_and_dense(Dims{2, 3}, Dims{6, 2}));
  EXPECT_TRUE(is_non_overlapping_and_dense(Dims{}, Dims{}));
  EXPECT_TRUE(is_non_overlapping_and_dense(Dims{1, 2, 1}, Dims{7, 1, 9})) << "of one element no stride is used";
}

TEST(ShapeTest, Broadcasting) {
  EXPECT_EQ(broadcast_sizes(Dims{3, 1}, Dims{2, 1, 4}), (Dims{2, 3, 4}));
  EXPECT_EQ(broadcast_sizes(Dims{}, Dims{2}), (Dims{2}));
  EXPECT_EQ(broadcast_sizes(Dims{0, 1}, Dims{1, 5}), (Dims{0, 5}));
  EXPECT_EQ(broadcast_strides(Dims{3, 1}, Dims{1, 7}, Dims{2, 3, 4}), (Dims{0, 1, 0}));
  try {
    broadcast_sizes(Dims{2, 3}, Dims{2, 4});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1");
  }
  EXPECT_EQ(code_of([] { broadcast_sizes(Dims{0}, Dims{2}); }), ErrorCode::kInvalidArgument);
}

TEST(ShapeTest, WrapDim) {
  EXPECT_EQ(wrap_dim(-1, 3), 2);
  EXPECT_EQ(wrap_dim(-1, 0), 0);
  EXPECT_EQ(wrap_dim(0, 0), 0);
  EXPECT_EQ(code_of([] { wrap_dim(3, 3); }), ErrorCode::kOutOfRange);
  EXPECT_EQ(code_of([] { wrap_dim(INT64_MIN, 3); }), ErrorCode::kOutOfRange);
  EXPECT_EQ(code_of([] { wrap_dim(1, 0); }), ErrorCode::kOutOfRange);
}

TEST(ShapeTest, InferViewSizes) {
  EXPECT_EQ(infer_view_sizes(Dims{2, -1}, 6), (Dims{2, 3}));
  EXPECT_EQ(infer_view_sizes(Dims{-1}, 0), (Dims{0}));
  EXPECT_EQ(infer_view_sizes(Dims{}, 1), (Dims{}));
  for (const Dims& bad : {Dims{-1, -1}, Dims{4, -1}, Dims{2, 2}, Dims{-2, 3}, Dims{kBig, kBig}, Dims{0, -1}}) {
    EXPECT_EQ(code_of([&] { infer_view_sizes(bad, 6); }), ErrorCode::kInvalidArgument) << to_string(bad);
  }
}

TEST(ShapeTest, ViewStrides) {
  bool possible = false;
  EXPECT_EQ(view_strides(Dims{2, 3, 4}, Dims{12, 4, 1}, Dims{6, 2, 2}, &possible), (Dims{4, 2, 1}));
  EXPECT_TRUE(possible);
  EXPECT_EQ(view_strides(Dims{4, 6}, Dims{12, 1}, Dims{2, 2, 3, 2}, &possible), (Dims{24, 12, 2, 1}));
  EXPECT_TRUE(possible);
  view_strides(Dims{3, 2}, Dims{1, 3}, Dims{6}, &possible);
  EXPECT_FALSE(possible) << "a transposed matrix has no flat view";
  // A dimension of one element may have any stride: (1, 2, 3) with its first two transposed is contiguous.
  EXPECT_EQ(view_strides(Dims{2, 1, 3}, Dims{3, 6, 1}, Dims{6}, &possible), (Dims{1}));
  EXPECT_TRUE(possible);
  EXPECT_EQ(view_strides(Dims{1, 4, 1}, Dims{77, 2, 5}, Dims{2, 2}, &possible), (Dims{4, 2}));
  EXPECT_TRUE(possible);
  EXPECT_EQ(view_strides(Dims{2, 3}, Dims{0, 1}, Dims{2, 3, 1}, &possible), (Dims{0, 1, 1}));
  EXPECT_TRUE(possible);
  view_strides(Dims{2, 0}, Dims{1, 1}, Dims{0, 5}, &possible);
  EXPECT_TRUE(possible);
}

}  // namespace
}  // namespace tensord::shape_test
