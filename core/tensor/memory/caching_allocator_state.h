#pragma once

#include <algorithm>
#include <atomic>
#include <deque>
#include <limits>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/mutex.h"
#include "core/tensor/device_runtime.h"
#include "core/tensor/memory/caching_allocator.h"
#include "core/tensor/memory/free_blocks.h"

// The state of a CachingAllocator. caching_allocator.cpp implements it; foreign_blocks.cpp does for memory of a
// StorageAllocator.
namespace tensord {

inline constexpr size_t kMaxRequest = std::numeric_limits<size_t>::max() / 4;

// A freed block that other streams may still use.
struct WaitingBlock {
  Block* block;
  std::vector<std::unique_ptr<DeviceEvent>> events;

  bool is_done() const {
    return std::all_of(events.begin(), events.end(), [](const auto& event) { return event->is_done(); });
  }
};

struct OwnerCount {
  uint64_t live_bytes = 0;
  uint64_t peak_bytes = 0;
};

// Segments removed from the tables, to be returned to the device without the lock.
using Doomed = std::vector<std::pair<char*, size_t>>;

struct CachingAllocator::State {
  explicit State(std::unique_ptr<Allocator> from) : source(std::move(from)) {}

  std::unique_ptr<Allocator> source;
  mutable Mutex mutex;
  Options options TENSORD_GUARDED_BY(mutex);
  AllocatorStats stats TENSORD_GUARDED_BY(mutex);
  StreamBlocks host_blocks TENSORD_GUARDED_BY(mutex);
  std::unordered_map<DeviceStream*, std::unique_ptr<StreamBlocks>> stream_blocks TENSORD_GUARDED_BY(mutex);
  std::vector<WaitingBlock> waiting TENSORD_GUARDED_BY(mutex);
  std::atomic<bool> has_waiting{false};  // whether `waiting` is not empty
  std::vector<std::unique_ptr<Segment>> segments TENSORD_GUARDED_BY(mutex);
  std::deque<Block> blocks TENSORD_GUARDED_BY(mutex);  // stable addresses; unused ones are chained in `spare`
  Block* spare TENSORD_GUARDED_BY(mutex) = nullptr;
  std::vector<OwnerCount> owners TENSORD_GUARDED_BY(mutex);
  std::unordered_map<void*, Block*> given_out TENSORD_GUARDED_BY(mutex);  // blocks from allocate(), not from storages
  bool is_orphaned TENSORD_GUARDED_BY(mutex) = false;  // the allocator is destroyed; the state dies with its last block

  FreeLists& lists(DeviceStream* stream, bool is_small) TENSORD_REQUIRES(mutex) {
    StreamBlocks& blocks_of = stream ? blocks_of_stream(stream) : host_blocks;
    return is_small ? blocks_of.small : blocks_of.large;
  }
  FreeLists& lists(const Block& block) TENSORD_REQUIRES(mutex) { return lists(block.stream, block.segment->is_small); }
  StreamBlocks& blocks_of_stream(DeviceStream* stream) TENSORD_REQUIRES(mutex);
  Block* take(size_t size_bytes, OwnerId owner);
  void give(Block* block);
  // Frees the blocks whose events have passed; with `waits`, waits for all events first.
  void collect_waiting(bool waits);
  Doomed trim_locked(size_t keep_bytes) TENSORD_REQUIRES(mutex);
  void purge_locked() TENSORD_REQUIRES(mutex);
  void return_to_device(const Doomed& doomed);
  // Allocates a block without a segment, in memory from `from`.
  Block* take_foreign(StorageAllocator& from, size_t size_bytes, OwnerId owner);

 private:
  Block* new_block() TENSORD_REQUIRES(mutex);
  void drop_block(Block* block) TENSORD_REQUIRES(mutex);
  Block* take_charged(size_t size_bytes, OwnerId owner, DeviceStream* stream);
  std::vector<std::unique_ptr<DeviceEvent>> events_of(Block* block);
  Block* merge_locked(Block* block) TENSORD_REQUIRES(mutex);
  void adopt_closed_streams(DeviceStream* stream) TENSORD_REQUIRES(mutex);
  Block* take_alone(size_t size) TENSORD_REQUIRES(mutex);
  bool give_alone(Block* block);
  bool give_foreign(Block* block);
  void charge_foreign(size_t size_bytes, OwnerId owner);
  void charge(size_t size_bytes, OwnerId owner) TENSORD_REQUIRES(mutex);
  void uncharge(size_t size_bytes, OwnerId owner) TENSORD_REQUIRES(mutex);
  Block* take_locked(size_t size, bool is_small, DeviceStream* stream) TENSORD_REQUIRES(mutex);
  Block* grow(size_t size, bool is_small, DeviceStream* stream) TENSORD_REQUIRES(mutex);
  Block* add_segment(size_t size, bool is_small, DeviceStream* stream) TENSORD_REQUIRES(mutex);
  void split(Block* block, size_t size) TENSORD_REQUIRES(mutex);
  void check_owner(size_t size_bytes, OwnerId owner) TENSORD_REQUIRES(mutex);
  void fill_with_poison(void* data, size_t size_bytes);
  [[noreturn]] void fail_exhausted(size_t size_bytes) TENSORD_REQUIRES(mutex);
};

}  // namespace tensord
