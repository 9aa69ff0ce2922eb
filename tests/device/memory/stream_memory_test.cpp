// Memory used by several streams: a freed block is reused in the order of its own stream, or after the work of the
// other streams.
#include <gtest/gtest.h>

#include "core/tensor/device_runtime.h"
#include "core/tensor/memory/caching_allocator.h"
#include "core/tensor/memory/storage_allocator.h"
#include "core/tensor/tensor.h"
#include "tests/device/async_device.h"

namespace tensord::stream_memory_test {
namespace {

using late::kFirst;
using late::kSecond;
using StreamScope = ContextPart<&ExecutionContext::stream>;

[[maybe_unused]] const bool is_installed = (late::install(), true);

constexpr int64_t kMany = 3 << 20;  // bytes; a segment of its own

Tensor block(Device device = kFirst) { return Tensor::empty(Dims{kMany}, DType::kUInt8, device); }

class StreamMemory : public ::testing::Test {
 protected:
  StreamMemory() {
    for (const Device device : {kFirst, kSecond}) {
      device_runtime(device).synchronize(device.index);
      allocator_for(device).set_options({});
      allocator_for(device).trim();
    }
  }
  ~StreamMemory() override {
    for (const Device device : {kFirst, kSecond}) allocator_for(device).set_options({});
  }
};

TEST_F(StreamMemory, GoesBackToItsOwnStreamAtOnce) {
  const std::unique_ptr<DeviceStream> other = device_runtime(kFirst).make_stream(0);
  Tensor x = block();
  void* const data = x.raw_data();
  late::queue(current_stream(kFirst), [] {});
  x = Tensor();
  {
    const StreamScope scope(other.get());
    EXPECT_NE(block().raw_data(), data);
  }
  EXPECT_EQ(block().raw_data(), data);
  EXPECT_EQ(late::waiting(), 1u);
}

TEST_F(StreamMemory, WaitsForOtherStreamsThatUseIt) {
  const std::unique_ptr<DeviceStream> other = device_runtime(kFirst).make_stream(0);
  Tensor x = block();
  void* const data = x.raw_data();
  bool has_run = false;
  late::queue(*other, [] {});
  late::queue(*other, [&] { has_run = true; });
  x.storage()->record_stream(*other);
  x = Tensor();
  EXPECT_NE(block().raw_data(), data);
  EXPECT_FALSE(has_run);  // the query has run the earlier work
  for (int i = 0; i < 3 && block().raw_data() != data; ++i) EXPECT_LT(i, 2);
  EXPECT_TRUE(has_run);
}

TEST_F(StreamMemory, OfAStreamThatIsGoneIsAnyStreams) {
  std::unique_ptr<DeviceStream> other = device_runtime(kFirst).make_stream(0);
  void* data = nullptr;
  {
    const StreamScope scope(other.get());
    data = block().raw_data();
  }
  EXPECT_NE(block().raw_data(), data);
  allocator_for(kFirst).trim();
  {
    const StreamScope scope(other.get());
    data = block().raw_data();
  }
  other.reset();
  EXPECT_EQ(block().raw_data(), data);
}

TEST_F(StreamMemory, UsersThatAreGoneAreNotWaitedFor) {
  std::unique_ptr<DeviceStream> other = device_runtime(kFirst).make_stream(0);
  Tensor x = block();
  void* const data = x.raw_data();
  x.storage()->record_stream(*other);
  other.reset();
  x = Tensor();
  EXPECT_EQ(block().raw_data(), data);
}

// Instead of refusing memory, the allocator waits for the work.
TEST_F(StreamMemory, IsWaitedForWhenThereIsNoOther) {
  const std::unique_ptr<DeviceStream> other = device_runtime(kSecond).make_stream(1);
  allocator_for(kSecond).set_options({.cap_bytes = kMany + (1 << 20)});
  Tensor x = block(kSecond);
  bool has_run = false;
  for (int i = 0; i < 5; ++i) late::queue(*other, [] {});
  late::queue(*other, [&] { has_run = true; });
  x.storage()->record_stream(*other);
  x = Tensor();
  EXPECT_TRUE(block(kSecond).defined());
  EXPECT_TRUE(has_run);
}

TEST_F(StreamMemory, PartsOfAStorageNoteUsesOfTheWhole) {
  const std::unique_ptr<DeviceStream> other = device_runtime(kFirst).make_stream(0);
  Tensor x = block();
  void* const data = x.raw_data();
  {
    const Storage whole = x.storage();
    const Storage part = wrap_storage(
        data, 100, [whole] {}, kFirst, true, whole->uses());
    for (int i = 0; i < 5; ++i) late::queue(*other, [] {});
    part->record_stream(*other);
  }
  x = Tensor();
  EXPECT_NE(block().raw_data(), data);
}

// A program's own allocator for the second device; when memory is freed, the work enqueued on it has run.
class OwnMemory final : public StorageAllocator {
 public:
  DataPtr allocate(size_t size_bytes, Device device) override {
    return {source().allocate(size_bytes), new size_t{size_bytes}, give_back, device};
  }
  static inline bool has_run = false, had_run = false;

 private:
  static Allocator& source() {
    static Allocator* const source = device_runtime(kSecond).make_allocator(1).release();
    return *source;
  }
  static void give_back(void* context) {
    had_run = has_run;
    delete static_cast<size_t*>(context);
  }
};

TEST_F(StreamMemory, OfAProgramsAllocatorComesBackWhenAllWorkIsDone) {
  OwnMemory allocator;
  const std::unique_ptr<DeviceStream> other = device_runtime(kSecond).make_stream(1);
  ASSERT_TRUE(set_allocator(kPrivateUse, &allocator));
  Tensor own = block(kSecond), noted = block(kSecond);
  ASSERT_TRUE(set_allocator(kPrivateUse, nullptr));
  EXPECT_EQ(get_allocator(kPrivateUse), nullptr);
  late::queue(current_stream(kSecond), [] {});
  late::queue(current_stream(kSecond), [] { OwnMemory::has_run = true; });
  own = Tensor();
  EXPECT_TRUE(OwnMemory::had_run);
  OwnMemory::has_run = OwnMemory::had_run = false;
  for (int i = 0; i < 5; ++i) late::queue(*other, [] {});
  late::queue(*other, [] { OwnMemory::has_run = true; });
  noted.storage()->record_stream(*other);
  noted = Tensor();
  EXPECT_TRUE(OwnMemory::had_run);
  EXPECT_EQ(allocator_for(kSecond).stats().live_bytes, 0u);
}

}  // namespace
}  // namespace tensord::stream_memory_test
