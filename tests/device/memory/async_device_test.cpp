// The test device itself, and the DeviceRuntime interface that it shares with the CPU.
#include "tests/device/async_device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <numeric>

#include "core/base/error.h"
#include "core/base/execution_context.h"
#include "core/tensor/memory/accounts.h"
#include "core/tensor/tensor.h"

namespace tensord::async_device_test {
namespace {

using late::kFirst;
using late::kSecond;

[[maybe_unused]] const bool is_installed = (late::install(), true);

Tensor on_device(std::vector<float> values, Device device = kFirst) {
  const Tensor host = Tensor::empty(Dims{static_cast<int64_t>(values.size())}, DType::kFloat32);
  std::copy(values.begin(), values.end(), host.data<float>());
  return host.to(device);
}

std::vector<float> numbers(const Tensor& tensor) {
  const Tensor host = tensor.to(Device{}).contiguous();
  return {host.data<float>(), host.data<float>() + host.numel()};
}

using Numbers = std::vector<float>;

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(AsyncDevice, MemoryIsNotTheHosts) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const Tensor x = on_device({1, 2});
        volatile float read = *x.data<float>();
        static_cast<void>(read);
      },
      ::testing::KilledBySignal(SIGSEGV), "");
  EXPECT_EXIT(*on_device({1}).data<float>() = 2, ::testing::KilledBySignal(SIGSEGV), "");
}
#endif

TEST(AsyncDevice, TouchesOfTheHostCanBeCounted) {
  const Tensor x = on_device({1, 2});
  synchronize(kFirst);
  late::HostTouches touches;
  EXPECT_EQ(touches.take(), 0u);
  EXPECT_EQ(*x.data<float>(), 1);
  EXPECT_EQ(touches.take(), 1u);
  EXPECT_EQ(x.data<float>()[1], 2);
  EXPECT_EQ(touches.take(), 1u);
}

TEST(AsyncDevice, WorkRunsWhenSomebodyWaits) {
  const Tensor x = on_device({1, 2, 3});
  synchronize(kFirst);
  EXPECT_EQ(late::waiting(), 0u);
  device_runtime(kFirst).fill(x.raw_data(), 0, x.size_bytes(), current_stream(kFirst));
  EXPECT_EQ(late::waiting(), 1u);
  const auto* const seen = static_cast<const float*>(late::as_seen_by_device(x.raw_data()));
  EXPECT_EQ(seen[0], 1);
  EXPECT_EQ(numbers(x), (Numbers{0, 0, 0}));  // a copy to the host waits
  EXPECT_EQ(late::waiting(), 0u);
  EXPECT_EQ(seen[0], 0);
}

// The host source of a copy may be overwritten or freed at once.
TEST(AsyncDevice, CopiesFromTheHostTakeItsMemoryAlong) {
  const Tensor host = Tensor::empty(Dims{2}, DType::kFloat32);
  host.data<float>()[0] = 1, host.data<float>()[1] = 2;
  const Tensor x = host.to(kFirst);
  EXPECT_GT(late::waiting(), 0u);
  host.data<float>()[0] = 9;
  EXPECT_EQ(numbers(x), (Numbers{1, 2}));
}

TEST(AsyncDevice, StreamsKnowNothingOfEachOther) {
  DeviceRuntime& runtime = device_runtime(kFirst);
  const Tensor x = on_device({1, 1});
  synchronize(kFirst);
  const auto other = runtime.make_stream(0);
  Numbers before{5, 5}, after{5, 5};
  runtime.fill(x.raw_data(), 0, x.size_bytes(), current_stream(kFirst));
  runtime.copy(before.data(), {}, x.raw_data(), kFirst, 8, *other);
  other->synchronize();
  EXPECT_EQ(before, (Numbers{1, 1}));  // nothing made it wait
  const auto event = runtime.make_event();
  EXPECT_TRUE(event->is_done());
  event->record(current_stream(kFirst));
  event->hold(*other);
  runtime.copy(after.data(), {}, x.raw_data(), kFirst, 8, *other);
  EXPECT_EQ(after, (Numbers{5, 5}));
  other->synchronize();
  EXPECT_EQ(after, (Numbers{0, 0}));
  EXPECT_TRUE(event->is_done());
}

TEST(AsyncDevice, EventsPassWhenTheirWorkHasRun) {
  DeviceRuntime& runtime = device_runtime(kFirst);
  DeviceStream& stream = current_stream(kFirst);
  stream.synchronize();
  int done = 0;
  const auto event = runtime.make_event();
  late::queue(stream, [&] { ++done; });
  late::queue(stream, [&] { ++done; });
  event->record(stream);
  late::queue(stream, [&] { ++done; });
  EXPECT_FALSE(event->is_done());  // runs one item
  EXPECT_EQ(done, 1);
  event->synchronize();
  EXPECT_EQ(done, 2);
  EXPECT_TRUE(event->is_done());
  runtime.synchronize(1);
  EXPECT_EQ(done, 2);
  runtime.synchronize(0);
  EXPECT_EQ(done, 3);
}

TEST(AsyncDevice, ErrorsComeOnceWhenItIsWaitedFor) {
  DeviceStream& stream = current_stream(kFirst);
  late::queue(stream, [] { fail(ErrorCode::kInvalidArgument, "an index is wrong"); });
  int done = 0;
  late::queue(stream, [&] { ++done; });
  try {
    stream.synchronize();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_STREQ(error.what(), "an index is wrong");
  }
  EXPECT_EQ(done, 1);
  stream.synchronize();
}

TEST(AsyncDevice, WorkHasTheContextOfWhoQueuedIt) {
  OwnerId seen = 0;
  {
    const MemoryOwnerScope owner(memory_owner("late"));
    late::queue(current_stream(kFirst), [&] { seen = current_memory_owner(); });
  }
  synchronize(kFirst);
  EXPECT_EQ(memory_owner_name(seen), "late");
  EXPECT_NE(memory_owner_name(current_memory_owner()), "late");
}

// The thread's stream belongs to one device only.
TEST(DeviceRuntime, TheContextHasTheStream) {
  const auto own = device_runtime(kFirst).make_stream(0);
  EXPECT_EQ(&current_stream(kFirst), &device_runtime(kFirst).default_stream(0));
  const ContextPart<&ExecutionContext::stream> scope(own.get());
  EXPECT_EQ(&current_stream(kFirst), own.get());
  EXPECT_EQ(&current_stream(kSecond), &device_runtime(kSecond).default_stream(1));
  EXPECT_EQ(&current_stream({}), &device_runtime({}).default_stream(0));
}

TEST(DeviceRuntime, OfTheProcessorIsThereAndDone) {
  DeviceRuntime& runtime = device_runtime({});
  EXPECT_EQ(runtime.count(), 1);
  const auto stream = runtime.make_stream(0);
  Numbers from{1, 2}, to(2);
  runtime.copy(to.data(), {}, from.data(), {}, 8, *stream);
  EXPECT_EQ(to, from);
  const auto event = runtime.make_event();
  event->record(*stream);
  event->hold(*stream);
  EXPECT_TRUE(event->is_done());
  runtime.fill(to.data(), 0, 8, *stream);
  EXPECT_EQ(to, (Numbers{0, 0}));
  stream->synchronize();
  runtime.synchronize(0);
}

TEST(DeviceRuntime, OfWhatIsNotThereIsAnError) {
  for (const Device device :
       {Device{kPrivateUse, late::kDevices}, Device{kPrivateUse, -1}, Device{static_cast<DeviceKind>(9), 0}}) {
    try {
      Tensor::empty(Dims{1}, DType::kFloat32, device);
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUnimplemented);
    }
  }
}

TEST(DeviceRuntime, MemoryIsChargedAndKeptByTheDevicesAllocator) {
  CachingAllocator& allocator = allocator_for(kSecond);
  EXPECT_EQ(&allocator, &allocator_for(kSecond));
  EXPECT_NE(&allocator, &allocator_for(kFirst));
  const MemoryOwnerScope owner(memory_owner("device-owner"));
  const uint64_t before = allocator.live_bytes_of(current_memory_owner());
  {
    const Tensor x = Tensor::empty(Dims{1 << 20}, DType::kFloat32, kSecond);
    EXPECT_EQ(allocator.live_bytes_of(current_memory_owner()), before + (4u << 20));
  }
  EXPECT_EQ(allocator.live_bytes_of(current_memory_owner()), before);
  EXPECT_GT(allocator.stats().cached_bytes, 0u);
  allocator.trim();
  EXPECT_EQ(allocator.stats().cached_bytes, 0u);
}

TEST(DeviceRuntime, AnOwnerIsCountedOverAllDevices) {
  const MemoryOwnerScope scope(memory_owner("everywhere"));
  const OwnerId owner = current_memory_owner();
  const auto listed = [] {
    const std::vector<OwnerBytes> all = bytes_of_owners();
    EXPECT_EQ(std::ranges::count(all, "everywhere", &OwnerBytes::name), 1);
    return std::ranges::find(all, "everywhere", &OwnerBytes::name)->live_bytes;
  };
  {
    const Tensor here = Tensor::empty(Dims{1 << 18}, DType::kFloat32);
    const Tensor there = Tensor::empty(Dims{1 << 19}, DType::kFloat32, kFirst);
    const Tensor elsewhere = Tensor::empty(Dims{1 << 20}, DType::kFloat32, kSecond);
    EXPECT_EQ(bytes_of_owner(owner), 7u << 20);
    EXPECT_EQ(listed(), 7u << 20);
  }
  EXPECT_EQ(bytes_of_owner(owner), 0u);
  EXPECT_EQ(listed(), 0u);
  trim_allocators();
  for (const auto& [device, allocator] : used_allocators()) EXPECT_EQ(allocator->stats().cached_bytes, 0u);
}

}  // namespace
}  // namespace tensord::async_device_test
