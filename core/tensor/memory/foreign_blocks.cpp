#include <algorithm>
#include <limits>
#include <new>

#include "core/base/error.h"
#include "core/tensor/memory/caching_allocator_state.h"
#include "core/tensor/memory/memory_checks.h"

// Blocks in memory that a StorageAllocator supplied: charged and limited like others, but not cached.
namespace tensord {
namespace {

// The allocator belongs to a program, so its results are checked, and it is called without locks.
DataPtr memory_from(StorageAllocator& from, size_t size_bytes, Device device) {
  DataPtr memory;
  try {
    memory = from.allocate(size_bytes, device);
  } catch (const std::bad_alloc&) {
  }
  if (!memory) {
    fail(ErrorCode::kResourceExhausted, "out of memory on ", to_string(device),
         ": the allocator that was set for it gave none for ", size_bytes, " bytes");
  }
  const auto address = reinterpret_cast<uintptr_t>(memory.get());
  if (address % kAlignment != 0) {
    fail(ErrorCode::kInternal, "the allocator that was set for ", to_string(device), " gave memory at address ",
         address, ", which is not aligned to ", kAlignment, " bytes");
  }
  if (memory.device() != device) {
    fail(ErrorCode::kInternal, "the allocator that was set for ", to_string(device), " gave memory of ",
         to_string(memory.device()));
  }
  return memory;
}

}  // namespace

void CachingAllocator::State::charge(size_t size_bytes, OwnerId owner) {
  OwnerCount& count = owners[owner];
  count.live_bytes += size_bytes;
  count.peak_bytes = std::max(count.peak_bytes, count.live_bytes);
  stats.reserved_bytes += size_bytes;
  stats.live_bytes += size_bytes;
  stats.peak_live_bytes = std::max(stats.peak_live_bytes, stats.live_bytes);
}

void CachingAllocator::State::uncharge(size_t size_bytes, OwnerId owner) {
  owners[owner].live_bytes -= size_bytes;
  stats.reserved_bytes -= size_bytes;
  stats.live_bytes -= size_bytes;
}

// Charges before the memory is requested, so that limits hold.
void CachingAllocator::State::charge_foreign(size_t size_bytes, OwnerId owner) {
  Doomed doomed;
  bool is_charged = false;
  {
    const MutexLock lock(mutex);
    ++stats.allocations;
    if (size_bytes > kMaxRequest) fail_exhausted(size_bytes);
    if (owner >= owners.size()) owners.resize(owner + 1);
    check_owner(size_bytes, owner);
    const size_t cap = options.cap_bytes ? options.cap_bytes : std::numeric_limits<size_t>::max();
    const size_t max = cap - std::min(cap, size_bytes);  // may be reserved beside it
    if (stats.reserved_bytes > max) doomed = trim_locked(0);
    is_charged = size_bytes <= cap && stats.reserved_bytes <= max;
    if (is_charged) charge(size_bytes, owner);
  }
  return_to_device(doomed);
  if (is_charged) return;
  const MutexLock lock(mutex);
  fail_exhausted(size_bytes);
}

Block* CachingAllocator::State::take_foreign(StorageAllocator& from, size_t size_bytes, OwnerId owner) {
  const Device device = source->device();
  DeviceStream* const stream = device.is_host() ? nullptr : &current_stream(device);
  charge_foreign(size_bytes, owner);
  DataPtr memory;
  try {
    memory = memory_from(from, size_bytes, device);
    if (poisons_memory()) fill_with_poison(memory.get(), size_bytes);
  } catch (...) {
    const MutexLock lock(mutex);
    uncharge(size_bytes, owner);
    ++stats.out_of_memory;
    throw;
  }
  const MutexLock lock(mutex);
  Block* block = new_block();
  block->data = static_cast<char*>(memory.get());
  block->size = size_bytes;
  block->stream = stream;
  block->owner = owner;
  block->foreign = std::move(memory);
  return block;
}

// Returns whether the state has to be deleted with this block.
bool CachingAllocator::State::give_foreign(Block* block) {
  // The cache would reuse the block in the order of its own stream. The program that gets it back need not know of
  // streams.
  if (block->stream) {
    const std::unique_ptr<DeviceEvent> event = device_runtime(source->device()).make_event();
    if (record_if_open(*event, block->stream)) event->synchronize();
  }
  block->foreign.clear();
  const MutexLock lock(mutex);
  uncharge(block->size, block->owner);
  drop_block(block);
  return is_orphaned && stats.live_bytes == 0;
}

}  // namespace tensord
