#include "core/tensor/tensor.h"

#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "core/tensor/lend.h"

namespace tensord::tensor_test {
namespace {

Tensor arange(const Dims& sizes) {
  Tensor out = Tensor::empty(sizes, DType::kFloat32);
  std::iota(out.data<float>(), out.data<float>() + out.numel(), 0.f);
  return out;
}

ErrorCode code_of(const auto& run) {
  try {
    run();
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::kInternal;
}

TEST(TensorTest, HandlesAndViewsShare) {
  Tensor base = arange({3, 4});
  Tensor same = base;
  EXPECT_TRUE(same.is_same(base));
  Tensor row = base.as_view({4}, {1}, 4);
  EXPECT_FALSE(row.is_same(base));
  EXPECT_EQ(row.storage(), base.storage());
  base.data<float>()[5] = 50;
  EXPECT_EQ(row.data<float>()[1], 50);
  EXPECT_EQ(describe(row), "float32[4]");
  EXPECT_EQ(describe(Tensor()), "undefined");
}

TEST(TensorTest, VersionCountsWritesThroughAnyView) {
  Tensor base = arange({4});
  Tensor view = base.as_view({2}, {1}, 0);
  EXPECT_EQ(view.version(), 0u);
  base.storage()->bump_version();
  view.storage()->bump_version();
  EXPECT_EQ(base.version(), 2u);
  EXPECT_EQ(view.version(), 2u);
  EXPECT_EQ(base.clone().version(), 0u);
}

TEST(TensorTest, WhatIsLentIsCopiedByTheFirstWrite) {
  const Tensor base = arange({3, 4});
  const Tensor lent = lend(base.as_view({2, 2}, {4, 1}, 5));  // 6 elements, starting at 5
  const Tensor view = lent.as_view({2}, {1}, 4);
  EXPECT_EQ(lent.raw_data(), base.data<float>() + 5);
  EXPECT_FALSE(lent.storage()->is_writable());
  EXPECT_FALSE(lent.storage()->was_copied());
  ASSERT_TRUE(lent.storage()->ensure_writable());
  EXPECT_TRUE(lent.storage()->was_copied());
  EXPECT_EQ(lent.storage()->size_bytes(), 6 * sizeof(float));
  const void* const copy = lent.raw_data();
  ASSERT_TRUE(lent.storage()->ensure_writable());
  EXPECT_EQ(lent.raw_data(), copy);
  *lent.data<float>() = 50;
  EXPECT_EQ(base.data<float>()[5], 5);
  EXPECT_EQ(view.data<float>()[1], 10);
  view.data<float>()[1] = 100;
  EXPECT_EQ(lent.data<float>()[5], 100);
  EXPECT_EQ(base.data<float>()[10], 10);
}

TEST(TensorTest, WhatIsReadOnlyStaysSo) {
  const Tensor base = arange({3});
  const Tensor same = read_only(base);
  EXPECT_EQ(same.raw_data(), base.raw_data());
  EXPECT_FALSE(same.storage()->ensure_writable());
  EXPECT_FALSE(same.storage()->was_copied());
  EXPECT_TRUE(base.storage()->ensure_writable());
  EXPECT_EQ(lend(arange({0})).storage()->size_bytes(), 0);
}

TEST(TensorTest, ThreadsThatWriteFirstMakeOneCopy) {
  for (int round = 0; round < 100; ++round) {
    const Tensor base = arange({64}), lent = lend(base);
    const auto write = [&](int64_t first) {
      lent.storage()->ensure_writable();
      for (int64_t i = first; i < 64; i += 2) lent.data<float>()[i] += 1;
    };
    std::thread other(write, 1);
    write(0);
    other.join();
    for (int64_t i = 0; i < 64; ++i) ASSERT_EQ(lent.data<float>()[i], static_cast<float>(i + 1));
  }
}

TEST(TensorTest, StorageLivesAsLongAsAView) {
  int freed = 0;
  float bytes[4] = {1, 2, 3, 4};
  Tensor view;
  {
    Tensor whole =
        Tensor::from_storage(wrap_storage(bytes, sizeof bytes, [&] { ++freed; }), Dims{4}, Dims{1}, 0, DType::kFloat32);
    view = whole.as_view({2}, {1}, 2);
  }
  EXPECT_EQ(freed, 0);
  EXPECT_EQ(view.data<float>()[0], 3);
  view = Tensor();
  EXPECT_EQ(freed, 1);
}

TEST(TensorTest, FromStorageChecksItsBounds) {
  const Storage storage = allocate_storage(48, {});
  const auto make = [&](Dims sizes, Dims strides, int64_t offset) {
    return code_of([&] { Tensor::from_storage(storage, sizes, strides, offset, DType::kFloat32); });
  };
  EXPECT_EQ(make({3, 4}, {4, 1}, 0), ErrorCode::kInternal);  // no error
  EXPECT_EQ(make({0}, {1}, 12), ErrorCode::kInternal);
  EXPECT_EQ(make({3, 4}, {0, 0}, 11), ErrorCode::kInternal);
  EXPECT_EQ(make({3, 4}, {4, 1}, 1), ErrorCode::kInvalidArgument);
  EXPECT_EQ(make({13}, {1}, 0), ErrorCode::kInvalidArgument);
  EXPECT_EQ(make({1}, {1}, 12), ErrorCode::kInvalidArgument);
  EXPECT_EQ(make({1}, {1}, -1), ErrorCode::kInvalidArgument);
  EXPECT_EQ(make({2}, {-1}, 1), ErrorCode::kInvalidArgument);
  EXPECT_EQ(make({2}, {INT64_MAX}, 1), ErrorCode::kInvalidArgument);
  EXPECT_EQ(make({2, 2}, {1}, 0), ErrorCode::kInvalidArgument);
  const auto complex = [&](int64_t count) {
    return code_of([&] { Tensor::from_storage(storage, Dims{count}, Dims{1}, 0, DType::kComplex64); });
  };
  EXPECT_EQ(complex(6), ErrorCode::kInternal);
  EXPECT_EQ(complex(7), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] { Tensor::from_storage(storage, Dims{1}, Dims{1}, 0, DType::kComplex32); }),
            ErrorCode::kUnimplemented);
}

TEST(TensorTest, ImpossibleShapesAreErrors) {
  constexpr int64_t kBig = int64_t{1} << 40;
  EXPECT_EQ(code_of([] { Tensor::empty(Dims{kBig, kBig}, DType::kFloat32); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([] { Tensor::empty(Dims{int64_t{1} << 61}, DType::kFloat64); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([] { Tensor::empty(Dims{int64_t{1} << 55}, DType::kFloat32); }), ErrorCode::kResourceExhausted);
  EXPECT_EQ(code_of([] { Tensor::empty(Dims{-3}, DType::kFloat32); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([] { Tensor::empty_strided(Dims{3}, Dims{INT64_MAX / 2}, DType::kFloat32); }),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([] { Tensor::empty(Dims{2, kBig, kBig}, DType::kFloat32); }), ErrorCode::kInvalidArgument);
  const Tensor empty = Tensor::empty(Dims{0, kBig, kBig, kBig}, DType::kFloat32);
  EXPECT_EQ(empty.numel(), 0);
  EXPECT_TRUE(empty.is_contiguous());
  EXPECT_EQ(empty.clone(true).sizes(), empty.sizes());
}

TEST(TensorTest, MetaHasNoStorage) {
  const Tensor meta = Tensor::meta(Dims{2, 3}, DType::kInt64);
  EXPECT_TRUE(meta.is_meta());
  EXPECT_EQ(meta.strides(), (Dims{3, 1}));
  EXPECT_TRUE(meta.clone().is_meta());
  EXPECT_EQ(meta.to(DType::kBool).dtype(), DType::kBool);
}

TEST(TensorTest, CloneKeepsStridesOnlyWhenAskedAndDense) {
  const Tensor base = arange({3, 4});
  const Tensor transposed = base.as_view({4, 3}, {1, 4}, 0);
  EXPECT_EQ(transposed.clone().strides(), (Dims{3, 1}));
  EXPECT_EQ(transposed.clone(true).strides(), (Dims{1, 4}));
  EXPECT_EQ(base.as_view({3, 2}, {4, 2}, 0).clone(true).strides(), (Dims{2, 1}));
  EXPECT_TRUE(base.contiguous().is_same(base));
  const Tensor copy = transposed.contiguous();
  EXPECT_EQ(copy.data<float>()[1], 4);
  EXPECT_NE(copy.storage(), base.storage());
}

TEST(TensorTest, Items) {
  EXPECT_EQ(Tensor::scalar(2.5).item_double(), 2.5);
  EXPECT_EQ(Tensor::scalar<int64_t>(7).item_int(), 7);
  EXPECT_TRUE(Tensor::scalar(0.5f).item_bool());
  EXPECT_EQ(Tensor::scalar(1.5, DType::kBFloat16).item_double(), 1.5);
  EXPECT_EQ(code_of([] { arange({2}).item_double(); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([] { arange({0}).item_bool(); }), ErrorCode::kInvalidArgument);
}

TEST(TensorTest, Overlap) {
  const Tensor base = arange({4, 4});
  EXPECT_EQ(overlap(base, base), Overlap::kFull);
  EXPECT_EQ(overlap(base, arange({4, 4})), Overlap::kNo);
  EXPECT_EQ(overlap(base.as_view({4}, {1}, 0), base.as_view({4}, {1}, 4)), Overlap::kNo);
  EXPECT_EQ(overlap(base.as_view({4}, {1}, 0), base.as_view({4}, {1}, 2)), Overlap::kPartial);
  EXPECT_EQ(overlap(base, base.as_view({4, 4}, {1, 4}, 0)), Overlap::kPartial);
  EXPECT_EQ(overlap(base.as_view({4}, {4}, 0), base.as_view({4}, {4}, 1)), Overlap::kUnknown);
}

// Every query of an undefined tensor is an error that names the function, never a crash.
TEST(Tensor, UndefinedAnswersWithAnError) {
  const Tensor none, some = Tensor::empty(Dims{2}, DType::kFloat32);
  const auto message = [](const auto& ask) -> std::string {
    try {
      ask();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(message([&] { none.sizes(); }), "sizes of an undefined tensor");
  EXPECT_EQ(message([&] { none.dtype(); }), "dtype of an undefined tensor");
  EXPECT_EQ(message([&] { none.device(); }), "device of an undefined tensor");
  EXPECT_EQ(message([&] { none.numel(); }), "numel of an undefined tensor");
  EXPECT_EQ(message([&] { none.storage(); }), "storage of an undefined tensor");
  EXPECT_EQ(message([&] { none.raw_data(); }), "data of an undefined tensor");
  EXPECT_EQ(message([&] { none.as_view({}, {}, 0); }), "a view of an undefined tensor");
  const std::vector<std::function<void()>> others{
      [&] { none.strides(); },          [&] { none.size(0); },
      [&] { none.stride(0); },          [&] { none.ndim(); },
      [&] { none.offset(); },           [&] { none.size_bytes(); },
      [&] { none.is_meta(); },          [&] { none.alias_id(); },
      [&] { none.version(); },          [&] { none.is_contiguous(); },
      [&] { none.is_channels_last(); }, [&] { none.data<float>(); },
      [&] { none.contiguous(); },       [&] { none.clone(); },
      [&] { none.to(DType::kInt64); },  [&] { none.to(Device{}); },
      [&] { none.copy_from(some); },    [&] { some.copy_from(none); },
      [&] { none.item_double(); },      [&] { none.item_int(); },
      [&] { none.item_bool(); },
  };
  for (const auto& ask : others) EXPECT_NE(message(ask).find("of an undefined tensor"), std::string::npos);
}

}  // namespace
}  // namespace tensord::tensor_test
