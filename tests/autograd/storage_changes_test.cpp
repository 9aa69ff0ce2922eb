// Tensors that get other memory or another shape: their contents, the effect on saved tensors, and refused calls.
#include "core/autograd/storage_changes.h"

#include "core/ops/sparse.h"
#include "core/tensor/grad_mode.h"
#include "core/tensor/memory/shared_tensor.h"
#include "tests/autograd/support.h"

namespace tensord::autograd::storage_changes_test {
namespace {

constexpr size_t kItem = sizeof(double);

// The code and the message.
struct Refusal {
  ErrorCode code{};
  std::string message = "no error";
};

template <class Fn>
Refusal refusal_of(Fn&& fn) {
  try {
    fn();
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  return {};
}

// A tensor whose memory was written `count` times.
Tensor written(const Numbers& values, int count) {
  const Tensor out = constant(values);
  for (int i = 0; i < count; ++i) out.storage()->bump_version();
  return out;
}

TEST(Resize, WithinItsMemory) {
  const Tensor x = written({1, 2, 3, 4, 5, 6}, 3);
  const void* const memory = x.raw_data();
  resize_(x, Dims{2, 2});
  EXPECT_EQ(x.sizes(), (Dims{2, 2}));
  EXPECT_EQ(x.strides(), (Dims{2, 1}));
  EXPECT_EQ(x.numel(), 4);
  EXPECT_EQ(numbers(x), (Numbers{1, 2, 3, 4}));
  EXPECT_EQ(x.version(), 4u);
  resize_(x, Dims{3, 2});  // all of it
  EXPECT_EQ(numbers(x), (Numbers{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(x.raw_data(), memory);
  EXPECT_EQ(x.storage()->size_bytes(), 6 * kItem);
  resize_(x, Dims{3, 0});
  EXPECT_EQ(x.numel(), 0);
  EXPECT_EQ(x.raw_data(), memory);
}

TEST(Resize, ToWhatItHasDoesNothing) {
  const Tensor x = written({1, 2, 3, 4, 5, 6}, 1);
  set_(x, x.storage(), 0, Dims{2, 3}, Dims{1, 2});
  const uint32_t version = x.version();
  resize_(x, Dims{2, 3});
  EXPECT_EQ(x.strides(), (Dims{1, 2}));
  EXPECT_EQ(x.version(), version);
}

TEST(Resize, BeyondItsMemoryKeepsWhatIsThere) {
  const Tensor x = written({1, 2, 3, 4, 5, 6}, 3);
  const Storage before = allocate_storage(1, Device{});  // so that the new memory gets another address
  resize_(x, Dims{7});
  EXPECT_EQ(x.storage()->size_bytes(), 7 * kItem);
  Numbers found = numbers(x);
  found.pop_back();
  EXPECT_EQ(found, (Numbers{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(x.version(), 4u);  // the old version, plus one
  // From its storage offset on.
  const Tensor y = constant({1, 2, 3});
  set_(y, y.storage(), 2, Dims{1}, Dims{1});
  resize_(y, Dims{1, 1});
  EXPECT_EQ(y.storage()->size_bytes(), 3 * kItem);
  resize_(y, Dims{2});
  EXPECT_EQ(y.storage()->size_bytes(), 4 * kItem);
  EXPECT_EQ(numbers(y)[0], 3);
}

TEST(Resize, WithoutElementsNeedsNoMemory) {
  const Tensor x = constant({1, 2, 3});
  set_(x, x.storage(), 3, Dims{0}, Dims{1});
  resize_storage_(x, kItem);
  resize_(x, Dims{0, 5});
  EXPECT_EQ(x.storage()->size_bytes(), kItem);
}

TEST(Resize, SizesThatOverflow) {
  const auto message = [](int64_t offset, const Dims& sizes) {
    const Tensor x = constant({1, 2, 3});
    set_(x, x.storage(), offset, Dims{1}, Dims{1});
    const std::string text = error_of([&] { resize_(x, sizes); });
    EXPECT_EQ(x.sizes(), Dims{1});
    return text;
  };
  EXPECT_THAT(message(0, Dims{int64_t{1} << 60}), HasSubstr("in bytes overflows"));
  EXPECT_THAT(message(1, Dims{INT64_MAX}), HasSubstr("in bytes overflows"));
  EXPECT_NE(message(0, Dims{int64_t{1} << 62, 4}), "no error");
}

TEST(Resize, MemoryThatOthersHold) {
  const Tensor x = constant({1, 2, 3, 4});
  const Tensor part = slice(x, 1, 3);
  for (const auto& grow :
       {std::function([&] { resize_(x, Dims{5}); }), std::function([&] { resize_storage_(x, 8); })}) {
    const Refusal refusal = refusal_of(grow);
    EXPECT_EQ(refusal.code, ErrorCode::kFailedPrecondition);
    EXPECT_THAT(refusal.message, HasSubstr("resize_: the tensor's memory is held by 1 more"));
  }
  resize_(x, Dims{2});  // the memory is large enough
  EXPECT_EQ(numbers(part), (Numbers{2, 3}));

  double elements[4] = {1, 2, 3, 4};
  const Tensor fixed = Tensor::from_storage(wrap_storage(
                                                elements, sizeof(elements), [] {}, {}, /*is_writable=*/false),
                                            Dims{4}, Dims{1}, 0, DType::kFloat64);
  EXPECT_EQ(error_of([&] { resize_(fixed, Dims{5}); }), "resize_: the tensor's memory is read-only");
  EXPECT_EQ(error_of([&] { resize_storage_(fixed, 64); }), "resize_: the tensor's memory is read-only");

  const Tensor shared = constant({1, 2});
  share_memory_(shared);
  EXPECT_EQ(error_of([&] { resize_(shared, Dims{3}); }), "resize_: memory that processes share keeps its size");
  EXPECT_EQ(error_of([&] { resize_(shared, Dims{1}); }), "no error");
}

TEST(Set, SharesMemoryAndShape) {
  const Tensor x = constant({1, 2}), y = ops::call_by_name("aten::t", constant({1, 2, 3, 4, 5, 6}, Dims{2, 3}));
  set_(x, y);
  EXPECT_TRUE(x.storage() == y.storage());
  EXPECT_EQ(x.sizes(), (Dims{3, 2}));
  EXPECT_EQ(x.strides(), (Dims{1, 3}));
  EXPECT_EQ(x.numel(), 6);
  EXPECT_EQ(numbers(x), numbers(y));
  set_(x, y.storage(), 1, Dims{2, 2}, Dims{3, 1});
  EXPECT_EQ(x.offset(), 1);
  EXPECT_EQ(numbers(x), (Numbers{2, 3, 5, 6}));
}

// Versions only grow, so a saved tensor is detected as modified.
TEST(Set, CountsAsAWrite) {
  const auto version_after = [](int own, int of_source) {
    const Tensor x = written({1, 2}, own), source = written({3, 4}, of_source);
    set_(x, source);
    return x.version();
  };
  EXPECT_EQ(version_after(0, 0), 1u);
  EXPECT_EQ(version_after(3, 0), 4u);
  EXPECT_EQ(version_after(3, 3), 4u);
  EXPECT_EQ(version_after(0, 3), 3u);
}

TEST(Set, WhatIsRefused) {
  const Tensor x = constant({1, 2}), source = constant({3, 4});
  const auto from = [&](const Tensor& other) { return error_of([&] { set_(x, other); }); };
  EXPECT_EQ(from(Tensor()), "set_: argument 'source' has no memory (undefined, meta or sparse)");
  EXPECT_EQ(from(Tensor::meta(Dims{2}, DType::kFloat64)),
            "set_: argument 'source' has no memory (undefined, meta or sparse)");
  EXPECT_EQ(from(leaf({1, 2})), "set_: the source takes part in a gradient; give it source.detach()");
  EXPECT_EQ(from(constant({1, 2}, Dims{2}, DType::kFloat32)), "set_: expected float64, got float32");
  EXPECT_EQ(error_of([&] { set_(x, Storage(), 0, Dims{1}, Dims{1}); }), "set_: there is no storage");
  EXPECT_NE(error_of([&] { set_(x, source.storage(), 1, Dims{2}, Dims{1}); }), "no error");
  EXPECT_EQ(numbers(x), (Numbers{1, 2}));
  EXPECT_EQ(from(source), "no error");
}

TEST(ResizeStorage, KeepsTheFirstBytes) {
  const Tensor x = written({1, 2, 3, 4}, 2);
  const void* const memory = x.raw_data();
  resize_storage_(x, 4 * kItem);
  EXPECT_EQ(x.raw_data(), memory);
  EXPECT_EQ(x.version(), 2u);
  resize_storage_(x, 9 * kItem);
  EXPECT_EQ(x.storage()->size_bytes(), 9 * kItem);
  EXPECT_EQ(numbers(x), (Numbers{1, 2, 3, 4}));
  EXPECT_EQ(x.version(), 3u);
  const Refusal refusal = refusal_of([&] { resize_storage_(x, 4 * kItem - 1); });
  EXPECT_EQ(refusal.code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(x.storage()->size_bytes(), 9 * kItem);
  EXPECT_EQ(x.version(), 3u);
  resize_storage_(x, 4 * kItem);
  EXPECT_EQ(numbers(x), (Numbers{1, 2, 3, 4}));
  EXPECT_EQ(x.version(), 4u);
}

TEST(StorageChanges, AreSeenByWhoSavedTheTensor) {
  const std::vector<std::function<void(const Tensor&)>> changes{[](const Tensor& x) {
                                                                  resize_(x, Dims{2, 1});
                                                                },
                                                                [](const Tensor& x) { resize_(x, Dims{5}); },
                                                                [](const Tensor& x) {
                                                                  set_(x, constant({5, 6}));
                                                                },
                                                                [](const Tensor& x) { resize_storage_(x, 64); }};
  for (size_t i = 0; i < changes.size(); ++i) {
    SCOPED_TRACE(i);
    const Tensor w = leaf({1, 2}), x = constant({3, 4});
    const Tensor y = sum(mul(w, x));
    changes[i](x);
    EXPECT_THAT(error_of([&] { backward(y); }), HasSubstr("has been modified by an inplace operation"));
  }
}

TEST(StorageChanges, AViewIsOneNoMore) {
  for (const bool is_set : {false, true}) {
    const Tensor base = constant({1, 2, 3, 4}), view = slice(base, 1, 3);
    const Tensor w = leaf({1});
    ASSERT_TRUE(is_view(view));
    if (is_set) {
      set_(view, constant({7, 8}));
    } else {
      resize_(view, Dims{1});
    }
    EXPECT_FALSE(is_view(view));
    add_in_place(view, w);  // the base is not updated
    EXPECT_TRUE(requires_grad(view));
    EXPECT_FALSE(requires_grad(base));
  }
}

// Each change refuses the same tensors.
TEST(StorageChanges, TensorsThatKeepTheirMemory) {
  const std::vector<std::pair<std::string, std::function<void(const Tensor&)>>> changes{
      {"resize_", [](const Tensor& x) { resize_(x, Dims{1}); }},
      {"set_",
       [](const Tensor& x) {
         set_(x, constant({5, 6}));
       }},
      {"resize_", [](const Tensor& x) { resize_storage_(x, 64); }}};
  for (const auto& [name, change] : changes) {
    SCOPED_TRACE(name);
    const auto refusal = [&](const Tensor& x) { return error_of([&] { change(x); }); };
    EXPECT_EQ(refusal(constant({1, 2})), "no error");
    EXPECT_EQ(refusal(Tensor()), name + ": argument 'self' is an undefined tensor");
    EXPECT_EQ(refusal(Tensor::meta(Dims{2}, DType::kFloat64)), name + ": a tensor without memory (meta or sparse)");
    const auto made_in_inference = [] {
      const GradModeGuard mode({false, true});
      return constant({1, 2});
    }();
    EXPECT_THAT(refusal(made_in_inference), HasSubstr(name + ": a tensor made in inference mode"));
    EXPECT_THAT(refusal(leaf({1, 2})), HasSubstr(name + ": the tensor takes part in a gradient"));
    EXPECT_THAT(refusal(scale(leaf({1, 2}), 2)), HasSubstr(name + ": the tensor takes part in a gradient"));
    const Tensor x = leaf({1, 2});
    const Tensor part = [&] {
      const NoGradGuard no_grad;
      return slice(x, 0, 2);
    }();
    EXPECT_THAT(refusal(part), HasSubstr("takes part in a gradient"));
    EXPECT_EQ(numbers(x), (Numbers{1, 2}));
  }
}

}  // namespace
}  // namespace tensord::autograd::storage_changes_test
