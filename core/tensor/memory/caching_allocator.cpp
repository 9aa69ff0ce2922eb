#include "core/tensor/memory/caching_allocator.h"

#include <algorithm>
#include <cstring>

#include "core/base/error.h"
#include "core/tensor/memory/caching_allocator_state.h"
#include "core/tensor/memory/memory_checks.h"
#include "core/tensor/memory/owner_limit.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace tensord {
namespace {

constexpr size_t kSmallRequest = size_t{1} << 20;  // requests up to this size share segments
constexpr size_t kSmallSegment = size_t{2} << 20;
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kMinSplitLarge = size_t{1} << 20;  // a smaller remainder of a large block is not split off
constexpr size_t kMinPurge = size_t{64} << 10;

size_t round_up(size_t value, size_t multiple) { return (value + multiple - 1) / multiple * multiple; }

// Under AddressSanitizer, free blocks are poisoned, so that a kernel that writes outside of its tensor is caught.
// Otherwise these functions do nothing.
void poison([[maybe_unused]] void* data, [[maybe_unused]] size_t size_bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_poison_memory_region(data, size_bytes);
#endif
}
void unpoison([[maybe_unused]] void* data, [[maybe_unused]] size_t size_bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(data, size_bytes);
#endif
}

}  // namespace

Block* CachingAllocator::State::new_block() {
  if (!spare) return &blocks.emplace_back();
  Block* block = spare;
  spare = block->next_free;
  *block = Block{};
  return block;
}

void CachingAllocator::State::drop_block(Block* block) {
  block->next_free = spare;
  spare = block;
}

StreamBlocks& CachingAllocator::State::blocks_of_stream(DeviceStream* stream) {
  auto& slot = stream_blocks[stream];
  if (!slot) slot = std::make_unique<StreamBlocks>();
  return *slot;
}

Block* CachingAllocator::State::take(size_t size_bytes, OwnerId owner) {
  const Device device = source->device();
  DeviceStream* const stream = device.is_host() ? nullptr : &current_stream(device);
  if (has_waiting.load(std::memory_order_relaxed)) collect_waiting(/*waits=*/false);
  Block* block = take_charged(size_bytes, owner, stream);
  if (!block) {  // blocks of other streams may be waiting for their events
    collect_waiting(/*waits=*/true);
    block = take_charged(size_bytes, owner, stream);
  }
  if (!block) {
    const MutexLock lock(mutex);
    fail_exhausted(size_bytes);
  }
  if (poisons_memory()) fill_with_poison(block->data, size_bytes);
  return block;
}

void CachingAllocator::State::fill_with_poison(void* data, size_t size_bytes) {
  const Device device = source->device();
  if (device.is_host()) {
    std::memset(data, kPoison, size_bytes);
  } else if (size_bytes > 0) {
    device_runtime(device).fill(data, static_cast<uint8_t>(kPoison), size_bytes, current_stream(device));
  }
}

// Returns null if there is no room now but blocks of other streams may become free.
Block* CachingAllocator::State::take_charged(size_t size_bytes, OwnerId owner, DeviceStream* stream) {
  const size_t size = size_bytes > kMaxRequest ? 0 : round_up(std::max<size_t>(size_bytes, 1), kAlignment);
  MutexLock lock(mutex);
  ++stats.allocations;
  if (size == 0) fail_exhausted(size_bytes);
  if (owner >= owners.size()) owners.resize(owner + 1);
  check_owner(size, owner);
  Block* block = source->is_cached() ? take_locked(size, size_bytes <= kSmallRequest, stream)
                                     : take_alone(std::max<size_t>(size_bytes, 1));
  if (!block && has_waiting.load(std::memory_order_relaxed)) {
    --stats.allocations;
    return nullptr;
  }
  if (!block) fail_exhausted(size_bytes);
  block->owner = owner;
  OwnerCount& count = owners[owner];
  count.live_bytes += block->size;
  count.peak_bytes = std::max(count.peak_bytes, count.live_bytes);
  stats.live_bytes += block->size;
  stats.peak_live_bytes = std::max(stats.peak_live_bytes, stats.live_bytes);
  stats.cached_bytes -= block->size;
  if (source->device().is_host()) unpoison(block->data, size_bytes);
  return block;
}

Block* CachingAllocator::State::take_locked(size_t size, bool is_small, DeviceStream* stream) {
  FreeLists& free_blocks = lists(stream, is_small);
  Block* block = free_blocks.find(size);
  if (!block && stream) {
    adopt_closed_streams(stream);
    block = free_blocks.find(size);
  }
  if (block) {
    ++stats.cache_hits;
  } else {
    block = grow(size, is_small, stream);
    if (!block) return nullptr;
  }
  free_blocks.remove(block);
  block->is_free = false;
  split(block, size);
  return block;
}

// A closed stream has no work left, so any stream may take its free blocks.
void CachingAllocator::State::adopt_closed_streams(DeviceStream* stream) {
  for (auto it = stream_blocks.begin(); it != stream_blocks.end();) {
    DeviceStream* const from = it->first;
    if (from == stream || is_open(from)) {
      ++it;
      continue;
    }
    for (const auto& segment : segments) {
      for (Block* block = segment->first; block; block = block->right) {
        if (block->stream != from) continue;
        if (block->is_free) lists(*block).remove(block);
        block->stream = stream;
        if (block->is_free) lists(*block).insert(block);
      }
    }
    it = stream_blocks.erase(it);
  }
}

// Allocates a block without a segment.
Block* CachingAllocator::State::take_alone(size_t size) {
  if (options.cap_bytes && (size > options.cap_bytes || stats.reserved_bytes > options.cap_bytes - size))
    return nullptr;
  char* data = static_cast<char*>(source->allocate(size));
  if (!data) return nullptr;
  Block* block = new_block();
  block->data = data;
  block->size = size;
  stats.reserved_bytes += size;
  stats.cached_bytes += size;
  return block;
}

// Returns whether the state has to be deleted with this block.
bool CachingAllocator::State::give_alone(Block* block) {
  source->free(block->data, block->size);
  MutexLock lock(mutex);
  owners[block->owner].live_bytes -= block->size;
  stats.live_bytes -= block->size;
  stats.reserved_bytes -= block->size;
  drop_block(block);
  return is_orphaned && stats.live_bytes == 0;
}

// A remainder below kMinSplitLarge stays with a large block, so no block is more than twice its request.
void CachingAllocator::State::split(Block* block, size_t size) {
  const size_t rest_size = block->size - size;
  if (rest_size < (block->segment->is_small ? kAlignment : kMinSplitLarge)) return;
  Block* rest = new_block();
  rest->data = block->data + size;
  rest->size = rest_size;
  rest->segment = block->segment;
  rest->stream = block->stream;
  rest->left = block;
  rest->right = block->right;
  if (rest->right) rest->right->left = rest;
  block->right = rest;
  block->size = size;
  rest->is_free = true;
  lists(*rest).insert(rest);
}

// Tries the usual segment size, then the exact size, then both again after the cache was released.
Block* CachingAllocator::State::grow(size_t size, bool is_small, DeviceStream* stream) {
  const size_t step = size >= 4 * kHugePage ? kHugePage : kHugePage / 8;
  const size_t usual = is_small ? kSmallSegment : round_up(size, step);
  if (Block* block = add_segment(usual, is_small, stream)) return block;
  if (stats.cached_bytes > 0) {
    return_to_device(trim_locked(0));
    if (Block* block = add_segment(usual, is_small, stream)) return block;
  }
  return usual > size ? add_segment(size, is_small, stream) : nullptr;
}

// Returns null if the cap or the device leaves no room.
Block* CachingAllocator::State::add_segment(size_t size, bool is_small, DeviceStream* stream) {
  if (options.cap_bytes && (size > options.cap_bytes || stats.reserved_bytes > options.cap_bytes - size))
    return nullptr;
  char* data = static_cast<char*>(source->allocate(size));
  if (!data) return nullptr;
  auto segment = std::make_unique<Segment>();
  Block* block = new_block();
  segment->data = block->data = data;
  segment->size = block->size = size;
  segment->is_small = is_small;
  segment->first = block;
  segment->index = segments.size();
  block->segment = segment.get();
  block->stream = stream;
  block->is_free = true;
  segments.push_back(std::move(segment));
  lists(*block).insert(block);
  stats.reserved_bytes += size;
  stats.cached_bytes += size;
  if (source->device().is_host()) poison(data, size);
  return block;
}

void CachingAllocator::State::give(Block* block) {
  Doomed doomed;
  bool is_last = false;
  std::vector<std::unique_ptr<DeviceEvent>> events;
  if (block->uses) events = events_of(block);
  if (!block->segment) {
    for (const auto& event : events) event->synchronize();
    is_last = block->foreign ? give_foreign(block) : give_alone(block);
  } else {
    MutexLock lock(mutex);
    if (source->device().is_host()) poison(block->data, block->size);
    owners[block->owner].live_bytes -= block->size;
    stats.live_bytes -= block->size;
    stats.cached_bytes += block->size;
    bool is_whole_segment = false;
    if (events.empty()) {
      block = merge_locked(block);
      is_whole_segment = !block->left && !block->right;
    } else {
      waiting.push_back({block, std::move(events)});
      has_waiting.store(true, std::memory_order_relaxed);
    }
    if (options.high_water_bytes && is_whole_segment && stats.cached_bytes > options.high_water_bytes) {
      doomed = trim_locked(options.high_water_bytes);
    }
    is_last = is_orphaned && stats.live_bytes == 0;
  }
  if (is_last) {
    collect_waiting(/*waits=*/true);
    const MutexLock lock(mutex);
    doomed = trim_locked(0);
  }
  return_to_device(doomed);
  if (is_last) delete this;
}

// Marks the block free in the order of its own stream. Returns the block that it was merged into.
Block* CachingAllocator::State::merge_locked(Block* block) {
  FreeLists& free_blocks = lists(*block);
  if (Block* right = block->right; right && right->is_free && right->stream == block->stream) {
    free_blocks.remove(right);
    block->size += right->size;
    block->right = right->right;
    if (block->right) block->right->left = block;
    drop_block(right);
  }
  if (Block* left = block->left; left && left->is_free && left->stream == block->stream) {
    free_blocks.remove(left);
    left->size += block->size;
    left->right = block->right;
    if (left->right) left->right->left = left;
    drop_block(block);
    block = left;
  }
  block->is_free = true;
  free_blocks.insert(block);
  return block;
}

// Records the events that other streams' uses of the block have to pass.
std::vector<std::unique_ptr<DeviceEvent>> CachingAllocator::State::events_of(Block* block) {
  std::vector<std::unique_ptr<DeviceEvent>> events;
  DeviceRuntime& runtime = device_runtime(source->device());
  for (DeviceStream* const stream : block->uses->take()) {
    std::unique_ptr<DeviceEvent> event = runtime.make_event();
    if (record_if_open(*event, stream)) events.push_back(std::move(event));
  }
  block->uses.reset();
  return events;
}

// Polls events without the lock, because polling may run work that frees memory.
void CachingAllocator::State::collect_waiting(bool waits) {
  std::vector<WaitingBlock> asked;
  {
    const MutexLock lock(mutex);
    asked.swap(waiting);
    has_waiting.store(false, std::memory_order_relaxed);
  }
  std::vector<bool> is_done;
  for (const WaitingBlock& one : asked) {
    for (const auto& event : one.events) {
      if (waits) event->synchronize();
    }
    is_done.push_back(waits || one.is_done());
  }
  const MutexLock lock(mutex);
  for (size_t i = 0; i < asked.size(); ++i) {
    if (is_done[i]) {
      merge_locked(asked[i].block);
    } else {
      waiting.push_back(std::move(asked[i]));
    }
  }
  has_waiting.store(!waiting.empty(), std::memory_order_relaxed);
}

Doomed CachingAllocator::State::trim_locked(size_t keep_bytes) {
  Doomed doomed;
  for (size_t i = segments.size(); i-- > 0 && stats.cached_bytes > keep_bytes;) {
    Segment* segment = segments[i].get();
    Block* block = segment->first;
    if (!block->is_free || block->right) continue;
    lists(*block).remove(block);
    drop_block(block);
    doomed.emplace_back(segment->data, segment->size);
    stats.cached_bytes -= segment->size;
    stats.reserved_bytes -= segment->size;
    std::swap(segments[i], segments.back());
    segments[i]->index = i;
    segments.pop_back();
  }
  return doomed;
}

// Free blocks between blocks in use cannot be returned, but their pages can be released.
void CachingAllocator::State::purge_locked() {
  for (const auto& segment : segments) {
    for (Block* block = segment->first; block; block = block->right) {
      if (block->is_free && block->size >= kMinPurge) source->purge(block->data, block->size);
    }
  }
}

void CachingAllocator::State::return_to_device(const Doomed& doomed) {
  for (const auto& [data, size] : doomed) {
    if (source->device().is_host()) unpoison(data, size);
    source->free(data, size);
  }
}

void CachingAllocator::State::check_owner(size_t size_bytes, OwnerId owner) {
  const uint64_t limit = owner_limit(owner);
  const uint64_t live_bytes = owners[owner].live_bytes;
  if (limit == 0 || (size_bytes <= limit && live_bytes <= limit - size_bytes)) return;
  ++stats.out_of_memory;
  note_limit_reached(owner);
  fail(ErrorCode::kResourceExhausted, "memory limit of '", memory_owner_name(owner), "' reached: asked for ",
       size_bytes, " bytes; limit ", limit, ", in use ", live_bytes);
}

void CachingAllocator::State::fail_exhausted(size_t size_bytes) {
  ++stats.out_of_memory;
  const std::string cap = options.cap_bytes ? concat(options.cap_bytes, " bytes") : std::string("none");
  fail(ErrorCode::kResourceExhausted, "out of memory on ", to_string(source->device()), ": asked for ", size_bytes,
       " bytes; cap ", cap, ", in use ", stats.live_bytes, ", cached ", stats.cached_bytes, ", reserved ",
       stats.reserved_bytes);
}

CachingAllocator::CachingAllocator(std::unique_ptr<Allocator> source)
    : state_(std::make_unique<State>(std::move(source))) {}

CachingAllocator::~CachingAllocator() {
  trim(0);
  MutexLock lock(state_->mutex);
  if (state_->stats.live_bytes == 0) return;
  // Storages that outlive the allocator still return their blocks to this state.
  state_->is_orphaned = true;
  [[maybe_unused]] const State* kept = state_.release();
}

void* CachingAllocator::allocate(size_t size_bytes) {
  Block* block = state_->take(size_bytes, current_memory_owner());
  MutexLock lock(state_->mutex);
  state_->given_out.emplace(block->data, block);
  return block->data;
}

void CachingAllocator::free(void* data) {
  if (!data) return;
  Block* block = nullptr;
  {
    MutexLock lock(state_->mutex);
    const auto it = state_->given_out.find(data);
    check_internal(it != state_->given_out.end(), "free of memory that this allocator did not give");
    block = it->second;
    state_->given_out.erase(it);
  }
  state_->give(block);
}

Storage CachingAllocator::allocate_storage(size_t size_bytes, StorageAllocator* from) {
  const OwnerId owner = current_memory_owner();
  Block* block =
      from && size_bytes > 0 ? state_->take_foreign(*from, size_bytes, owner) : state_->take(size_bytes, owner);
  const Device device = state_->source->device();
  if (!device.is_host()) {
    const DeviceStream& own = block->stream ? *block->stream : current_stream(device);
    block->uses = std::make_unique<StreamUses>(own);
  }
  // The capture is two words, which std::function stores without a heap allocation.
  return wrap_storage(
      block->data, size_bytes, [state = state_.get(), block] { state->give(block); }, device, /*is_writable=*/true,
      block->uses.get());
}

void CachingAllocator::set_options(Options options) {
  MutexLock lock(state_->mutex);
  state_->options = options;
}

size_t CachingAllocator::trim(size_t keep_bytes) {
  Doomed doomed;
  {
    MutexLock lock(state_->mutex);
    doomed = state_->trim_locked(keep_bytes);
    if (state_->stats.cached_bytes > keep_bytes) state_->purge_locked();
  }
  state_->return_to_device(doomed);
  size_t bytes = 0;
  for (const auto& [data, size] : doomed) bytes += size;
  return bytes;
}

AllocatorStats CachingAllocator::stats() const {
  MutexLock lock(state_->mutex);
  return state_->stats;
}

std::vector<OwnerBytes> CachingAllocator::owners() const {
  MutexLock lock(state_->mutex);
  std::vector<OwnerBytes> out;
  for (size_t owner = 0; owner < state_->owners.size(); ++owner) {
    const OwnerCount& count = state_->owners[owner];
    if (count.peak_bytes == 0) continue;
    out.push_back({memory_owner_name(static_cast<OwnerId>(owner)), count.live_bytes, count.peak_bytes});
  }
  return out;
}

uint64_t CachingAllocator::live_bytes_of(OwnerId owner) const {
  MutexLock lock(state_->mutex);
  return owner < state_->owners.size() ? state_->owners[owner].live_bytes : 0;
}

}  // namespace tensord
