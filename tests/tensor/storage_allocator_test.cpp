#include "core/tensor/memory/storage_allocator.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <set>
#include <thread>

#include "core/base/error.h"
#include "core/tensor/memory/caching_allocator.h"
#include "core/tensor/memory/owner_limit.h"
#include "core/tensor/tensor.h"

namespace tensord::storage_allocator_test {
namespace {

using ::testing::HasSubstr;

struct Failure {
  ErrorCode code = ErrorCode::kScriptRaised;
  std::string text = "no error";
};

Failure failure_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  return {};
}

// Live allocations by address; global, because deleters are plain functions.
std::mutex live_mutex;
std::set<void*> live;

void give_back(void* data) {
  const std::lock_guard lock(live_mutex);
  EXPECT_EQ(live.erase(data), 1u);
  std::free(data);
}

class Counting : public StorageAllocator {
 public:
  DataPtr allocate(size_t size_bytes, Device device) override {
    ++calls;
    last_bytes = size_bytes;
    if (throws) throw std::bad_alloc();
    if (is_empty) return {};
    void* const data = std::aligned_alloc(kAlignment, (size_bytes + 2 * kAlignment) / kAlignment * kAlignment);
    const std::lock_guard lock(live_mutex);
    live.insert(data);
    return {static_cast<char*>(data) + shift, data, give_back, wrong_device.value_or(device)};
  }
  DeleterFnPtr raw_deleter() const override { return give_back; }

  std::atomic<int> calls{0};
  std::atomic<size_t> last_bytes{0};
  bool is_empty = false, throws = false;
  size_t shift = 0;
  std::optional<Device> wrong_device;
};

// Restores the engine's own allocator at the end.
class Chosen {
 public:
  explicit Chosen(StorageAllocator& allocator) { EXPECT_TRUE(set_allocator(kCPU, &allocator)); }
  ~Chosen() { set_allocator(kCPU, nullptr, 255); }
};

TEST(DataPtrTest, MovesAndRunsItsDeleterOnce) {
  static int runs = 0;
  int value = 7, context = 0;
  {
    DataPtr a(
        &value, &context, [](void* given) { ++*static_cast<int*>(given), ++runs; }, Device{});
    EXPECT_EQ(a.get(), &value);
    EXPECT_EQ(a.get_context(), &context);
    DataPtr b(std::move(a));
    EXPECT_FALSE(a);  // NOLINT: a moved one is empty, and that is stated
    EXPECT_TRUE(b);
    EXPECT_EQ(runs, 0);
    a = std::move(b);
    a.clear();
    EXPECT_EQ(runs, 1);
    EXPECT_FALSE(a);
  }
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(context, 1);
  {
    DataPtr given_up(
        &value, &context, [](void*) { ++runs; }, Device{});
    EXPECT_EQ(given_up.release_context(), &context);
    const DataPtr not_owned(&value, Device{});
  }
  EXPECT_EQ(runs, 1);
}

TEST(StorageAllocatorTest, TensorsTakeTheirMemoryFromIt) {
  Counting allocator;
  const MemoryOwnerScope owner(memory_owner("brings-memory"));
  const Tensor outside = Tensor::empty(Dims{100}, DType::kFloat32);
  const uint64_t before = cpu_allocator().live_bytes_of(current_memory_owner());
  EXPECT_EQ(get_allocator(kCPU), nullptr);
  {
    const Chosen chosen(allocator);
    EXPECT_EQ(get_allocator(kCPU), &allocator);
    const Tensor x = Tensor::empty(Dims{1000}, DType::kFloat32);
    EXPECT_EQ(allocator.calls, 1);
    EXPECT_EQ(allocator.last_bytes, 4000u);
    EXPECT_EQ(live.count(x.raw_data()), 1u);
    EXPECT_EQ(live.count(outside.raw_data()), 0u);
    EXPECT_EQ(cpu_allocator().live_bytes_of(current_memory_owner()), before + 4000);
    const Tensor y = x.clone();
    EXPECT_EQ(live.size(), 2u);
    EXPECT_EQ(Tensor::empty(Dims{0}, DType::kFloat32).numel(), 0);
    EXPECT_EQ(allocator.calls, 2);
  }
  EXPECT_TRUE(live.empty());
  EXPECT_EQ(cpu_allocator().live_bytes_of(current_memory_owner()), before);
}

TEST(StorageAllocatorTest, StoragesOutliveTheChoice) {
  Counting first, second;
  Tensor a, b, c;
  {
    const Chosen chosen(first);
    a = Tensor::scalar(1.f);
    const Chosen other(second);
    b = Tensor::scalar(2.f);
  }
  c = Tensor::scalar(3.f);
  EXPECT_EQ(first.calls, 1);
  EXPECT_EQ(second.calls, 1);
  EXPECT_EQ(live.size(), 2u);
  EXPECT_EQ(a.item_double() + b.item_double() + c.item_double(), 6);
  std::thread([&] { a = {}; }).join();  // may be freed on any thread
  EXPECT_EQ(live.size(), 1u);
  b = {};
  EXPECT_TRUE(live.empty());
}

TEST(StorageAllocatorTest, AHigherPriorityStays) {
  Counting high, low;
  EXPECT_TRUE(set_allocator(kCPU, &high, 3));
  EXPECT_FALSE(set_allocator(kCPU, &low, 2));
  EXPECT_FALSE(set_allocator(kCPU, nullptr, 2));
  EXPECT_EQ(get_allocator(kCPU), &high);
  EXPECT_TRUE(set_allocator(kCPU, &low, 3));
  EXPECT_EQ(get_allocator(kCPU), &low);
  EXPECT_TRUE(set_allocator(kCPU, nullptr, 3));
  EXPECT_EQ(get_allocator(kCPU), nullptr);
  EXPECT_TRUE(set_allocator(kCPU, &low));
  EXPECT_TRUE(set_allocator(kCPU, nullptr));
  EXPECT_EQ(failure_of([&] { set_allocator(static_cast<DeviceKind>(9), &low); }).code, ErrorCode::kInvalidArgument);
}

TEST(StorageAllocatorTest, WhatItGivesIsLookedAt) {
  Counting allocator;
  const Chosen chosen(allocator);
  const AllocatorStats before = cpu_allocator().stats();
  const auto take = [] { Tensor::empty(Dims{10}, DType::kFloat32); };
  allocator.is_empty = true;
  Failure failure = failure_of(take);
  EXPECT_EQ(failure.code, ErrorCode::kResourceExhausted);
  EXPECT_THAT(failure.text, HasSubstr("the allocator that was set for it gave none for 40 bytes"));
  allocator.throws = true;
  EXPECT_EQ(failure_of(take).code, ErrorCode::kResourceExhausted);
  allocator.throws = allocator.is_empty = false;
  allocator.shift = 8;
  failure = failure_of(take);
  EXPECT_EQ(failure.code, ErrorCode::kInternal);
  EXPECT_THAT(failure.text, HasSubstr("not aligned to 64 bytes"));
  allocator.shift = 0;
  allocator.wrong_device = Device{kCUDA, 1};
  EXPECT_THAT(failure_of(take).text, HasSubstr("for cpu gave memory of cuda:1"));
  EXPECT_TRUE(live.empty());  // a refused allocation is freed
  EXPECT_EQ(cpu_allocator().stats().live_bytes, before.live_bytes);
  EXPECT_EQ(cpu_allocator().stats().reserved_bytes, before.reserved_bytes);
  EXPECT_EQ(cpu_allocator().stats().out_of_memory, before.out_of_memory + 4);
}

TEST(StorageAllocatorTest, LimitsHold) {
  Counting allocator;
  const Chosen chosen(allocator);
  const MemoryOwnerScope owner(memory_owner("brings-little"));
  set_owner_limit(current_memory_owner(), 1000);
  const Storage kept = allocate_storage(600, {});
  EXPECT_EQ(failure_of([] { allocate_storage(401, {}); }).code, ErrorCode::kResourceExhausted);
  EXPECT_EQ(allocate_storage(400, {})->size_bytes(), 400u);
  EXPECT_EQ(failure_of([] { allocate_storage(~size_t{0}, {}); }).code, ErrorCode::kResourceExhausted);
  set_owner_limit(current_memory_owner(), 0);
  cpu_allocator().set_options({.cap_bytes = cpu_allocator().stats().live_bytes + 5000});
  const Failure failure = failure_of([] { allocate_storage(5001, {}); });
  const bool fits = allocate_storage(5000, {})->size_bytes() == 5000;  // cached blocks are freed for it
  cpu_allocator().set_options({});
  EXPECT_EQ(failure.code, ErrorCode::kResourceExhausted);
  EXPECT_TRUE(fits);
}

TEST(StorageAllocatorTest, RawMemory) {
  Counting allocator;
  void* const data = allocator.raw_allocate(100);
  EXPECT_EQ(live.count(data), 1u);
  allocator.raw_deallocate(data);
  allocator.raw_deallocate(nullptr);
  EXPECT_TRUE(live.empty());
  allocator.shift = 64;  // its context differs from its data pointer
  EXPECT_EQ(failure_of([&] { allocator.raw_allocate(100); }).code, ErrorCode::kInternal);
  allocator.is_empty = true;
  EXPECT_EQ(allocator.raw_allocate(100), nullptr);
  class WithContext final : public Counting {
    DeleterFnPtr raw_deleter() const override { return nullptr; }
  } other;
  EXPECT_EQ(failure_of([&] { other.raw_allocate(100); }).code, ErrorCode::kFailedPrecondition);
  EXPECT_TRUE(live.empty());
}

TEST(StorageAllocatorTest, ChangesWhileThreadsAllocate) {
  Counting allocator;
  std::atomic<bool> is_over{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      std::vector<Tensor> kept(16);
      for (size_t i = 0; !is_over; ++i) {
        Tensor& x = kept[i % kept.size()];
        x = Tensor::empty(Dims{static_cast<int64_t>(i % 500 + 1)}, DType::kInt64);
        x.data<int64_t>()[0] = 1;
      }
    });
  }
  while (allocator.calls < 1000) {
    set_allocator(kCPU, &allocator);
    std::this_thread::yield();
    set_allocator(kCPU, nullptr);
  }
  is_over = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(live.empty());
}

}  // namespace
}  // namespace tensord::storage_allocator_test
