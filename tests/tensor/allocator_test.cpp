#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <random>
#include <thread>

#include "core/base/error.h"
#include "core/tensor/memory/caching_allocator.h"
#include "core/tensor/memory/owner_limit.h"
#include "core/tensor/tensor.h"

namespace tensord::allocator_test {
namespace {

// A device with a fixed amount of memory that counts its allocations.
struct FakeDevice {
  size_t capacity = size_t{1} << 40;
  size_t taken = 0;
  int allocations = 0;
};

class FakeSource final : public Allocator {
 public:
  explicit FakeSource(FakeDevice& device) : device_(device) {}
  void* allocate(size_t size_bytes) override {
    if (size_bytes > device_.capacity - device_.taken) return nullptr;
    ++device_.allocations;
    device_.taken += size_bytes;
    return std::aligned_alloc(kAlignment, size_bytes);
  }
  void free(void* data, size_t size_bytes) override {
    device_.taken -= size_bytes;
    std::free(data);
  }
  Device device() const override { return {}; }

 private:
  FakeDevice& device_;
};

constexpr size_t kMiB = size_t{1} << 20;

class CachingAllocatorTest : public ::testing::Test {
 protected:
  FakeDevice device;
  CachingAllocator allocator{std::make_unique<FakeSource>(device)};
};

ErrorCode code_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::kInternal;
}

TEST_F(CachingAllocatorTest, SmallRequestsShareASegmentAndAreAligned) {
  std::vector<void*> blocks;
  for (size_t size : {size_t{0}, size_t{1}, size_t{63}, size_t{64}, size_t{65}, size_t{4096}, kMiB}) {
    blocks.push_back(allocator.allocate(size));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(blocks.back()) % kAlignment, 0u);
    std::memset(blocks.back(), 1, size);
  }
  EXPECT_EQ(device.allocations, 1);
  EXPECT_EQ(allocator.stats().reserved_bytes, 2 * kMiB);
  for (void* block : blocks) allocator.free(block);
  EXPECT_EQ(allocator.stats().live_bytes, 0u);
  EXPECT_EQ(allocator.stats().cached_bytes, 2 * kMiB);
}

TEST_F(CachingAllocatorTest, FreedNeighborsMerge) {
  std::vector<void*> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(allocator.allocate(256 << 10));
  EXPECT_EQ(device.allocations, 1);
  for (int i : {1, 3, 5, 7, 0, 2, 6, 4}) allocator.free(blocks[i]);
  void* first = allocator.allocate(kMiB);
  void* second = allocator.allocate(kMiB);
  EXPECT_EQ(device.allocations, 1) << "two halves of the merged segment";
  allocator.free(first);
  allocator.free(second);
  EXPECT_EQ(allocator.trim(), 2 * kMiB);
  EXPECT_EQ(device.taken, 0u);
}

TEST_F(CachingAllocatorTest, BlockIsNeverMoreThanTwiceTheRequest) {
  allocator.free(allocator.allocate(64 * kMiB));
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    const size_t size = kMiB + 1 + random() % (40 * kMiB);
    const uint64_t before = allocator.stats().live_bytes;
    void* block = allocator.allocate(size);
    const uint64_t got = allocator.stats().live_bytes - before;
    EXPECT_GE(got, size);
    EXPECT_LE(got, 2 * size);
    allocator.free(block);
  }
}

TEST_F(CachingAllocatorTest, SteadyStateNeverAsksTheDevice) {
  const std::vector<size_t> sizes = {100, 3 * kMiB, 5000, 7 * kMiB + 12, 64, 2 * kMiB, 300000};
  const auto round = [&] {
    std::vector<void*> blocks;
    for (size_t size : sizes) blocks.push_back(allocator.allocate(size));
    for (void* block : blocks) allocator.free(block);
  };
  round();
  const int warm = device.allocations;
  for (int i = 0; i < 50; ++i) round();
  EXPECT_EQ(device.allocations, warm);
  EXPECT_GE(allocator.stats().cache_hits, 50 * sizes.size());
}

TEST_F(CachingAllocatorTest, CapIsHardAndNamedInTheError) {
  allocator.set_options({.cap_bytes = 8 * kMiB, .high_water_bytes = 0});
  void* block = allocator.allocate(5 * kMiB);
  EXPECT_EQ(code_of([&] { allocator.allocate(4 * kMiB); }), ErrorCode::kResourceExhausted);
  try {
    allocator.allocate(4 * kMiB);
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(std::to_string(8 * kMiB)), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find(std::to_string(4 * kMiB)), std::string::npos) << error.what();
  }
  EXPECT_EQ(allocator.stats().out_of_memory, 2u);
  allocator.free(block);
  EXPECT_LE(device.taken, 8 * kMiB);
  allocator.free(allocator.allocate(8 * kMiB));  // requires flushing the cache first
}

TEST_F(CachingAllocatorTest, CapBelowASmallSegmentStillServes) {
  allocator.set_options({.cap_bytes = 4096, .high_water_bytes = 0});
  void* block = allocator.allocate(1000);
  EXPECT_LE(device.taken, 4096u);
  allocator.free(block);
}

TEST_F(CachingAllocatorTest, FlushesTheCacheBeforeGivingUp) {
  device.capacity = 20 * kMiB;
  allocator.free(allocator.allocate(12 * kMiB));
  void* block = allocator.allocate(16 * kMiB);
  EXPECT_NE(block, nullptr);
  EXPECT_EQ(allocator.stats().out_of_memory, 0u);
  EXPECT_EQ(code_of([&] { allocator.allocate(16 * kMiB); }), ErrorCode::kResourceExhausted);
  allocator.free(block);
}

TEST_F(CachingAllocatorTest, ImpossibleSizesAreErrors) {
  for (size_t size : {std::numeric_limits<size_t>::max(), std::numeric_limits<size_t>::max() / 2, size_t{1} << 62}) {
    EXPECT_EQ(code_of([&] { allocator.allocate(size); }), ErrorCode::kResourceExhausted);
    EXPECT_EQ(code_of([&] { cpu_allocator().allocate(size); }), ErrorCode::kResourceExhausted);
  }
  EXPECT_EQ(code_of([] { Tensor::empty(Dims{1 << 20, 1 << 20, 64}, DType::kFloat32); }), ErrorCode::kResourceExhausted);
}

TEST_F(CachingAllocatorTest, HighWaterMarkReturnsWhatIsAbove) {
  allocator.set_options({.cap_bytes = 0, .high_water_bytes = 4 * kMiB});
  std::vector<void*> blocks;
  for (int i = 0; i < 6; ++i) blocks.push_back(allocator.allocate(3 * kMiB));
  for (void* block : blocks) allocator.free(block);
  EXPECT_LE(allocator.stats().cached_bytes, 4 * kMiB);
  EXPECT_EQ(device.taken, allocator.stats().reserved_bytes);
}

TEST_F(CachingAllocatorTest, BytesAreChargedToTheOwnerUntilFreedOnAnyThread) {
  const OwnerId owner = memory_owner("resnet50/1");
  EXPECT_EQ(memory_owner("resnet50/1"), owner);
  Storage storage;
  {
    MemoryOwnerScope scope(owner);
    storage = allocator.allocate_storage(1000);
    {
      MemoryOwnerScope inner(memory_owner("job/1"));
      EXPECT_EQ(current_memory_owner(), memory_owner("job/1"));
    }
    EXPECT_EQ(current_memory_owner(), owner);
  }
  EXPECT_EQ(current_memory_owner(), kServerOwner);
  EXPECT_EQ(allocator.live_bytes_of(owner), 1024u);
  std::thread([&] { storage = nullptr; }).join();
  EXPECT_EQ(allocator.live_bytes_of(owner), 0u);
  const auto owners = allocator.owners();
  ASSERT_EQ(owners.size(), 1u);
  EXPECT_EQ(owners[0].name, "resnet50/1");
  EXPECT_EQ(owners[0].peak_bytes, 1024u);
}

TEST_F(CachingAllocatorTest, RandomUseKeepsBlocksApartAndBooksExact) {
  struct Live {
    unsigned char* data;
    size_t size;
    unsigned char mark;
  };
  std::vector<Live> live;
  std::mt19937 random(7);
  for (int step = 0; step < 20000; ++step) {
    if (live.size() < 40 && random() % 2) {
      const size_t size = random() % 8 == 0 ? random() % (3 * kMiB) : random() % 5000;
      auto* data = static_cast<unsigned char*>(allocator.allocate(size));
      const auto mark = static_cast<unsigned char>(random());
      if (size) data[0] = data[size - 1] = data[size / 2] = mark;
      live.push_back({data, size, mark});
    } else if (!live.empty()) {
      const size_t at = random() % live.size();
      const Live& item = live[at];
      if (item.size) {
        ASSERT_TRUE(item.data[0] == item.mark && item.data[item.size - 1] == item.mark &&
                    item.data[item.size / 2] == item.mark);
      }
      allocator.free(item.data);
      live[at] = live.back();
      live.pop_back();
    }
    const AllocatorStats stats = allocator.stats();
    ASSERT_EQ(stats.live_bytes + stats.cached_bytes, stats.reserved_bytes);
    ASSERT_EQ(stats.reserved_bytes, device.taken);
  }
  for (const Live& item : live) allocator.free(item.data);
  allocator.trim();
  EXPECT_EQ(device.taken, 0u);
}

TEST(CpuAllocatorTest, ThreadsShareIt) {
  const uint64_t before = cpu_allocator().stats().live_bytes;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      std::mt19937 random(t);
      std::vector<Storage> kept(16);
      for (int i = 0; i < 20000; ++i) {
        Storage& slot = kept[random() % kept.size()];
        slot = allocate_storage(random() % 100000, {});
        if (slot->size_bytes()) *static_cast<char*>(slot->data()) = 1;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(cpu_allocator().stats().live_bytes, before);
}

TEST(CpuAllocatorTest, StorageMayOutliveAnAllocator) {
  FakeDevice device;
  auto allocator = std::make_unique<CachingAllocator>(std::make_unique<FakeSource>(device));
  Storage storage = allocator->allocate_storage(100);
  allocator.reset();
  std::memset(storage->data(), 3, 100);
  storage = nullptr;
}

TEST(CpuAllocatorTest, OwnersHaveLimits) {
  const OwnerId owner = memory_owner("limited"), other = memory_owner("unlimited");
  set_owner_limit(owner, 1000);
  EXPECT_EQ(owner_limit(owner), 1000u);
  EXPECT_EQ(owner_limit(other), 0u);
  const MemoryOwnerScope scope(owner);
  const Storage storage = allocate_storage(600, {});
  EXPECT_FALSE(was_limit_reached(owner));
  EXPECT_EQ(code_of([] { allocate_storage(400, {}); }), ErrorCode::kResourceExhausted);
  EXPECT_TRUE(was_limit_reached(owner));
  set_owner_limit(owner, 1000);
  EXPECT_FALSE(was_limit_reached(owner));
  EXPECT_EQ(code_of([] { check_room(1000, "a file"); }), ErrorCode::kResourceExhausted);
  EXPECT_TRUE(was_limit_reached(owner));
  EXPECT_FALSE(was_limit_reached(other));
  EXPECT_EQ(code_of([] { allocate_storage(size_t{1} << 40, {}); }), ErrorCode::kResourceExhausted);
  EXPECT_EQ(allocate_storage(300, {})->size_bytes(), 300u);
  {
    const MemoryOwnerScope other_scope(other);
    EXPECT_EQ(allocate_storage(5000, {})->size_bytes(), 5000u);
  }
  set_owner_limit(owner, 0);
  EXPECT_EQ(allocate_storage(5000, {})->size_bytes(), 5000u);
}

TEST(CpuAllocatorTest, OwnersGetAllOfTheirLimit) {
  const OwnerId owner = memory_owner("limited to the byte");
  set_owner_limit(owner, 8192);
  const MemoryOwnerScope scope(owner);
  EXPECT_EQ(allocate_storage(8192, {})->size_bytes(), 8192u);
  const Storage first = allocate_storage(4096, {});
  const Storage second = allocate_storage(4096, {});
  EXPECT_EQ(code_of([] { allocate_storage(1, {}); }), ErrorCode::kResourceExhausted);
}

TEST(AllocatorForTest, UnknownDeviceIsRefused) {
  EXPECT_EQ(&allocator_for({}), &cpu_allocator());
  EXPECT_EQ(code_of([] { allocator_for({static_cast<DeviceKind>(7), 0}); }), ErrorCode::kUnimplemented);
}

}  // namespace
}  // namespace tensord::allocator_test
