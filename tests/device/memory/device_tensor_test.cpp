// Tensor's own functions on memory that the host cannot access, compared with host memory.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/tensor/complex.h"
#include "core/tensor/device_copy.h"
#include "core/tensor/device_runtime.h"
#include "core/tensor/memory/caching_allocator.h"
#include "core/tensor/memory/pinned_memory.h"
#include "core/tensor/tensor.h"
#include "tests/device/async_device.h"

namespace tensord::device_tensor_test {
namespace {

using late::kFirst;
using late::kSecond;

[[maybe_unused]] const bool is_installed = (late::install(), true);

// 0.5, -1.5, 2.5 … of any dtype.
Tensor sequence(const Dims& sizes, DType dtype = DType::kFloat32) {
  const Tensor out = Tensor::empty(sizes, DType::kFloat64);
  for (int64_t i = 0; i < out.numel(); ++i) {
    out.data<double>()[i] = (static_cast<double>(i) + 0.5) * (i % 2 == 0 ? 1 : -1);
  }
  return out.to(dtype);
}

// Everything about a tensor except its device.
std::string text_of(const Tensor& tensor) {
  std::string out = concat(describe(tensor), " strides ", to_string(tensor.strides()), ":");
  const Tensor host = tensor.to(Device{}).contiguous();
  const auto* const bytes = static_cast<const unsigned char*>(host.numel() == 0 ? nullptr : host.raw_data());
  for (size_t i = 0; i < host.size_bytes(); ++i) out += concat(" ", int{bytes[i]});
  return out;
}

struct Layout {
  const char* name;
  std::function<Tensor(const Tensor& base)> view;  // of a tensor of 4 × 3 × 2 × 6
};

std::vector<Layout> layouts() {
  return {
      {"dense", [](const Tensor& x) { return x; }},
      {"transposed",
       [](const Tensor& x) {
         return x.as_view({6, 2, 3, 4}, {1, 6, 12, 36}, 0);
       }},
      {"every other",
       [](const Tensor& x) {
         return x.as_view({4, 3, 2, 3}, {36, 12, 6, 2}, 1);
       }},
      {"expanded",
       [](const Tensor& x) {
         return x.as_view({5, 6}, {0, 1}, 6);
       }},
      {"a number", [](const Tensor& x) { return x.as_view({}, {}, 7); }},
      {"empty",
       [](const Tensor& x) {
         return x.as_view({0, 6}, {6, 1}, 3);
       }},
  };
}

constexpr DType kDTypes[] = {DType::kFloat32, DType::kFloat64, DType::kFloat16,   DType::kBFloat16,
                             DType::kInt8,    DType::kUInt8,   DType::kInt16,     DType::kInt32,
                             DType::kInt64,   DType::kBool,    DType::kComplex64, DType::kComplex128};

// Runs fn on a view of host memory and on the same view of device memory.
void expect_same(const std::function<Tensor(const Tensor&)>& fn, DType dtype, const char* what) {
  const Tensor base = sequence({4, 3, 2, 6}, dtype), there = base.to(kFirst);
  for (const Layout& layout : layouts()) {
    const Tensor expected = fn(layout.view(base)), got = fn(layout.view(there));
    EXPECT_EQ(got.device(), kFirst) << what;
    EXPECT_EQ(text_of(got), text_of(expected)) << what << " of " << layout.name << ", " << name_of(dtype);
  }
}

TEST(DeviceTensor, CopiesKeepTheElements) {
  for (const DType dtype : kDTypes) {
    expect_same([](const Tensor& x) { return x; }, dtype, "nothing");
    expect_same([](const Tensor& x) { return x.contiguous(); }, dtype, "contiguous");
    expect_same([](const Tensor& x) { return x.clone(); }, dtype, "clone");
    expect_same([](const Tensor& x) { return x.clone(true); }, dtype, "clone in order");
  }
}

TEST(DeviceTensor, ConvertsBetweenAllDTypes) {
  for (const DType from : kDTypes) {
    for (const DType to : kDTypes) expect_same([&](const Tensor& x) { return x.to(to); }, from, name_of(to));
  }
}

TEST(DeviceTensor, MovesBetweenAnyDevices) {
  const std::vector<Device> devices{{}, kFirst, kSecond};
  const Tensor base = sequence({4, 3, 2, 6});
  for (const Device from : devices) {
    for (const Device to : devices) {
      for (const Layout& layout : layouts()) {
        const Tensor x = layout.view(base.to(from)), moved = x.to(to);
        EXPECT_EQ(moved.device(), to);
        EXPECT_EQ(moved.is_same(x), from == to);
        if (from == to) continue;
        EXPECT_EQ(text_of(moved), text_of(layout.view(base).to(Device{}).clone(true))) << layout.name;
      }
    }
  }
}

// Into every kind of layout, from every kind of source, for every pair of devices.
TEST(DeviceTensor, CopyFromBroadcastsConvertsAndCrosses) {
  const std::vector<Device> devices{{}, kFirst, kSecond};
  const std::vector<Dims> sizes{{}, {6}, {2, 1}, {2, 6}};
  for (const Device to : devices) {
    for (const Device from : devices) {
      for (const DType dtype : {DType::kFloat32, DType::kInt64}) {
        for (const Dims& size : sizes) {
          const Tensor source = sequence(size, dtype);
          const Tensor expected = sequence({3, 2, 9}), memory = expected.to(to).clone();
          expected.as_view({3, 2, 6}, {18, 9, 1}, 2).copy_from(source);
          memory.as_view({3, 2, 6}, {18, 9, 1}, 2).copy_from(source.to(from));
          EXPECT_EQ(text_of(memory), text_of(expected)) << to_string(from) << " to " << to_string(to);
        }
      }
    }
  }
  EXPECT_THROW(sequence({2}).to(kFirst).copy_from(sequence({3}).to(kFirst)), Error);
}

TEST(DeviceTensor, MemoryMayGoBeforeItsCopyHasRun) {
  Tensor kept;
  {
    const Tensor x = sequence({100}).to(kFirst);
    kept = x.to(DType::kFloat64);
  }
  // Reuses the block that was just freed, and writes it later in the same stream.
  const Tensor other = sequence({100}, DType::kInt32).to(DType::kFloat32).to(kFirst);
  EXPECT_GT(late::waiting(), 0u);
  EXPECT_EQ(text_of(kept), text_of(sequence({100}).to(DType::kFloat64)));
  EXPECT_EQ(text_of(other), text_of(sequence({100}, DType::kInt32).to(DType::kFloat32)));
}

TEST(DeviceTensor, ItemsAreReadWhenTheyAreThere) {
  const Tensor x = sequence({4}).to(kFirst), one = x.as_view({}, {}, 2);
  EXPECT_EQ(one.item_double(), 2.5);
  EXPECT_EQ(one.item_int(), 2);
  EXPECT_TRUE(one.item_bool());
  EXPECT_EQ(late::waiting(), 0u);
  EXPECT_THROW(x.item_double(), Error);
}

TEST(DeviceTensor, MetaTensorsHaveADeviceToo) {
  const Tensor x = Tensor::meta(Dims{2, 3}, DType::kFloat32, kFirst);
  EXPECT_EQ(x.to(kSecond).device(), kSecond);
  EXPECT_EQ(x.to(DType::kInt32).device(), kFirst);
  EXPECT_EQ(x.clone().device(), kFirst);
}

TEST(DeviceTensor, PartsOfComplexNumbersAreViews) {
  const Tensor x = sequence({3}, DType::kComplex64);
  EXPECT_EQ(text_of(as_real_pairs(x.to(kFirst))), text_of(as_real_pairs(x)));
}

TEST(PinnedMemory, HoldsACopyThatDevicesTake) {
  for (const Layout& layout : layouts()) {
    for (const DType dtype : {DType::kFloat32, DType::kUInt8, DType::kComplex64}) {
      const Tensor base = sequence({4, 3, 2, 6}).to(dtype), from = layout.view(base);
      EXPECT_FALSE(is_pinned(from));
      const Tensor pinned = pin_memory(from);
      EXPECT_TRUE(is_pinned(pinned)) << layout.name;
      EXPECT_TRUE(is_pinned_address(pinned.raw_data()));
      EXPECT_TRUE(pinned.device().is_host());
      EXPECT_EQ(text_of(pinned.contiguous()), text_of(from.contiguous())) << layout.name;
      if (is_non_overlapping_and_dense(from.sizes(), from.strides())) {
        EXPECT_EQ(pinned.strides(), from.strides());
      }
      EXPECT_EQ(text_of(pinned.to(kFirst).contiguous()), text_of(from.contiguous())) << layout.name;
      EXPECT_TRUE(pin_memory(pinned).is_same(pinned));
    }
  }
}

TEST(PinnedMemory, OfNothingAndOfAViewOfWhatIsPinned) {
  EXPECT_EQ(pin_memory(sequence({0, 3})).sizes(), (Dims{0, 3}));
  const Tensor pinned = pin_memory(sequence({4, 3}));
  EXPECT_TRUE(is_pinned(pinned.as_view({3}, {1}, 3)));
}

TEST(PinnedMemory, WhatIsFreedIsGivenAgainAndCounted) {
  const uint64_t before = cpu_allocator().stats().live_bytes;
  const void* first = nullptr;
  {
    const Tensor pinned = pin_memory(sequence({1000}));
    first = pinned.raw_data();
    EXPECT_GE(cpu_allocator().stats().live_bytes, before + pinned.size_bytes());
  }
  EXPECT_EQ(cpu_allocator().stats().live_bytes, before);
  EXPECT_TRUE(is_pinned_address(first)) << "it was given back to the system";
  EXPECT_EQ(pin_memory(sequence({1000})).raw_data(), first);
}

TEST(PinnedMemory, IsMadeEmptyAndSentAsItIs) {
  const Tensor made = empty_pinned(Dims{4, 3}, DType::kFloat32, kPrivateUse);
  EXPECT_TRUE(is_pinned(made));
  EXPECT_EQ(made.strides(), (Dims{3, 1}));
  EXPECT_TRUE(is_pinned(empty_pinned(Dims{0, 3}, DType::kInt64, kPrivateUse)));
  const Tensor x = sequence({4, 3});
  made.copy_from(x);
  for (const Tensor& from : {made, made.as_view({3, 2}, {1, 3}, 2), made.as_view({0, 3}, {3, 1}, 0), x}) {
    const Tensor sent = send_to(from, kFirst);
    EXPECT_EQ(sent.device(), kFirst);
    EXPECT_EQ(text_of(sent), text_of(from.to(kFirst)));
  }
  EXPECT_TRUE(send_to(x, Device{}).is_same(x));
  EXPECT_THROW(empty_pinned(Dims{3}, DType::kFloat32, kCPU), Error);
}

TEST(PinnedMemory, IsRefusedWhereThereIsNone) {
  const auto code_of = [](const Tensor& tensor, std::optional<DeviceKind> kind = std::nullopt) {
    try {
      pin_memory(tensor, kind);
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::kInternal;
  };
  const Tensor x = sequence({3});
  EXPECT_EQ(code_of(x, kCUDA), ErrorCode::kUnimplemented);
  EXPECT_EQ(code_of(x, kCPU), ErrorCode::kUnimplemented);
  EXPECT_EQ(code_of(x.to(kFirst)), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of(Tensor::meta(Dims{3}, DType::kFloat32)), ErrorCode::kInvalidArgument);
  EXPECT_FALSE(is_pinned(x.to(kFirst)));
}

}  // namespace
}  // namespace tensord::device_tensor_test
