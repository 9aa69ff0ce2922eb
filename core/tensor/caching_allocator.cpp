#include "core/tensor/caching_allocator.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <deque>
#include <limits>
#include <mutex>
#include <unordered_map>

#include "core/base/error.h"
#include "core/tensor/device_runtime.h"
#include "core/tensor/memory_checks.h"
#include "core/tensor/owner_limit.h"
#include "core/tensor/poison.h"

namespace tensord {
namespace {

constexpr size_t kSmallRequest = size_t{1} << 20;  // up to this, requests share segments
constexpr size_t kSmallSegment = size_t{2} << 20;
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kMinSplitLarge = size_t{1} << 20;  // smaller rests of large blocks stay with the block
constexpr size_t kMinPurge = size_t{64} << 10;
constexpr size_t kMaxRequest = std::numeric_limits<size_t>::max() / 4;

size_t round_up(size_t value, size_t multiple) { return (value + multiple - 1) / multiple * multiple; }

struct Segment;

// A piece of a segment, in use or free. Neighbours by address are linked, free ones also
// in the list of their size class.
struct Block {
  char* data = nullptr;
  size_t size = 0;
  Segment* segment = nullptr;
  Block* left = nullptr;
  Block* right = nullptr;
  Block* next_free = nullptr;
  Block* previous_free = nullptr;
  OwnerId owner = 0;
  bool is_free = false;
};

struct Segment {
  char* data = nullptr;
  size_t size = 0;
  bool is_small = false;
  Block* first = nullptr;
  size_t index = 0;  // in State::segments
};

// Free blocks by size class: exact multiples of kAlignment up to 1 KiB, then 16 classes
// for each power of two. A bitmap of the classes that have any makes a search O(1).
class FreeLists {
 public:
  void insert(Block* block) {
    const size_t index = class_of(block->size);
    Block*& head = heads_[index];
    block->previous_free = nullptr;
    block->next_free = head;
    if (head) head->previous_free = block;
    head = block;
    bits_[index / 64] |= uint64_t{1} << (index % 64);
  }

  void remove(Block* block) {
    const size_t index = class_of(block->size);
    if (block->next_free) block->next_free->previous_free = block->previous_free;
    if (block->previous_free) {
      block->previous_free->next_free = block->next_free;
    } else {
      heads_[index] = block->next_free;
      if (!heads_[index]) bits_[index / 64] &= ~(uint64_t{1} << (index % 64));
    }
  }

  // A block of at least `size`: one of the same class when a few probes find it (a block just
  // freed at this size is the first), else any of the next class that has one.
  Block* find(size_t size) const {
    const size_t index = class_of(size);
    int probes = 32;
    for (Block* block = heads_[index]; block && probes-- > 0; block = block->next_free) {
      if (block->size >= size) return block;
    }
    for (size_t word = (index + 1) / 64, bit = (index + 1) % 64; word < kWords; ++word, bit = 0) {
      const uint64_t rest = bits_[word] & (~uint64_t{0} << bit);
      if (rest) return heads_[word * 64 + static_cast<size_t>(std::countr_zero(rest))];
    }
    return nullptr;
  }

 private:
  static constexpr size_t kWords = 15;

  static size_t class_of(size_t size) {
    const size_t units = size / kAlignment;
    if (units < 16) return units;
    const size_t log = static_cast<size_t>(std::bit_width(units)) - 1;
    return 16 + (log - 4) * 16 + ((units >> (log - 4)) & 15);
  }

  std::array<Block*, kWords * 64> heads_{};
  std::array<uint64_t, kWords> bits_{};
};

struct OwnerCount {
  uint64_t live_bytes = 0;
  uint64_t peak_bytes = 0;
};

// Segments taken out of the books, to be returned to the device without the lock.
using Doomed = std::vector<std::pair<char*, size_t>>;

}  // namespace

struct CachingAllocator::State {
  explicit State(std::unique_ptr<Allocator> from) : source(std::move(from)) {}

  std::unique_ptr<Allocator> source;
  mutable std::mutex mutex;  // guards all below
  Options options;
  AllocatorStats stats;
  FreeLists small, large;
  std::vector<std::unique_ptr<Segment>> segments;
  std::deque<Block> blocks;  // stable addresses; unused ones are chained in `spare`
  Block* spare = nullptr;
  std::vector<OwnerCount> owners;
  std::unordered_map<void*, Block*> given_out;  // blocks of allocate(), not of storages
  bool is_orphaned = false;                     // the allocator is gone; dies with its last block

  FreeLists& lists(const Segment& segment) { return segment.is_small ? small : large; }
  Block* take(size_t size_bytes, OwnerId owner);
  void give(Block* block);
  Doomed trim_locked(size_t keep_bytes);
  void purge_locked();
  void return_to_device(const Doomed& doomed);

 private:
  Block* new_block();
  void drop_block(Block* block);
  Block* take_charged(size_t size_bytes, OwnerId owner);
  Block* take_alone(size_t size);
  bool give_alone(Block* block);
  Block* take_locked(size_t size, bool is_small);
  Block* grow(size_t size, bool is_small);
  Block* add_segment(size_t size, bool is_small);
  void split(Block* block, size_t size);
  void check_owner(size_t size_bytes, OwnerId owner);
  void fill_with_poison(void* data, size_t size_bytes);
  [[noreturn]] void fail_exhausted(size_t size_bytes);
};

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

Block* CachingAllocator::State::take(size_t size_bytes, OwnerId owner) {
  Block* block = take_charged(size_bytes, owner);
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

Block* CachingAllocator::State::take_charged(size_t size_bytes, OwnerId owner) {
  const size_t size = size_bytes > kMaxRequest ? 0 : round_up(std::max<size_t>(size_bytes, 1), kAlignment);
  std::lock_guard lock(mutex);
  ++stats.allocations;
  if (size == 0) fail_exhausted(size_bytes);
  if (owner >= owners.size()) owners.resize(owner + 1);
  check_owner(size, owner);
  Block* block = source->is_cached() ? take_locked(size, size_bytes <= kSmallRequest)
                                     : take_alone(std::max<size_t>(size_bytes, 1));
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

Block* CachingAllocator::State::take_locked(size_t size, bool is_small) {
  FreeLists& free_blocks = is_small ? small : large;
  Block* block = free_blocks.find(size);
  if (block) {
    ++stats.cache_hits;
  } else {
    block = grow(size, is_small);
    if (!block) return nullptr;
  }
  free_blocks.remove(block);
  block->is_free = false;
  split(block, size);
  return block;
}

// A block without a segment.
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

// Gives back whether the state is to die with it.
bool CachingAllocator::State::give_alone(Block* block) {
  source->free(block->data, block->size);
  std::lock_guard lock(mutex);
  owners[block->owner].live_bytes -= block->size;
  stats.live_bytes -= block->size;
  stats.reserved_bytes -= block->size;
  drop_block(block);
  return is_orphaned && stats.live_bytes == 0;
}

// Large blocks keep a rest below kMinSplitLarge, so no block is more than twice its request.
void CachingAllocator::State::split(Block* block, size_t size) {
  const size_t rest_size = block->size - size;
  if (rest_size < (block->segment->is_small ? kAlignment : kMinSplitLarge)) return;
  Block* rest = new_block();
  rest->data = block->data + size;
  rest->size = rest_size;
  rest->segment = block->segment;
  rest->left = block;
  rest->right = block->right;
  if (rest->right) rest->right->left = rest;
  block->right = rest;
  block->size = size;
  rest->is_free = true;
  lists(*rest->segment).insert(rest);
}

// First the usual segment size, then just what is asked for, then both again without the cache.
Block* CachingAllocator::State::grow(size_t size, bool is_small) {
  const size_t step = size >= 4 * kHugePage ? kHugePage : kHugePage / 8;
  const size_t usual = is_small ? kSmallSegment : round_up(size, step);
  if (Block* block = add_segment(usual, is_small)) return block;
  if (stats.cached_bytes > 0) {
    return_to_device(trim_locked(0));
    if (Block* block = add_segment(usual, is_small)) return block;
  }
  return usual > size ? add_segment(size, is_small) : nullptr;
}

// Null when the cap or the device has no room.
Block* CachingAllocator::State::add_segment(size_t size, bool is_small) {
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
  block->is_free = true;
  segments.push_back(std::move(segment));
  lists(*block->segment).insert(block);
  stats.reserved_bytes += size;
  stats.cached_bytes += size;
  if (source->device().is_host()) poison(data, size);
  return block;
}

void CachingAllocator::State::give(Block* block) {
  Doomed doomed;
  bool is_last = false;
  if (!block->segment) {
    is_last = give_alone(block);
  } else {
    std::lock_guard lock(mutex);
    if (source->device().is_host()) poison(block->data, block->size);
    owners[block->owner].live_bytes -= block->size;
    stats.live_bytes -= block->size;
    stats.cached_bytes += block->size;
    FreeLists& free_blocks = lists(*block->segment);
    if (Block* right = block->right; right && right->is_free) {
      free_blocks.remove(right);
      block->size += right->size;
      block->right = right->right;
      if (block->right) block->right->left = block;
      drop_block(right);
    }
    if (Block* left = block->left; left && left->is_free) {
      free_blocks.remove(left);
      left->size += block->size;
      left->right = block->right;
      if (left->right) left->right->left = left;
      drop_block(block);
      block = left;
    }
    block->is_free = true;
    free_blocks.insert(block);
    const bool is_whole_segment = !block->left && !block->right;
    if (options.high_water_bytes && is_whole_segment && stats.cached_bytes > options.high_water_bytes) {
      doomed = trim_locked(options.high_water_bytes);
    }
    is_last = is_orphaned && stats.live_bytes == 0;
    if (is_last) doomed = trim_locked(0);
  }
  return_to_device(doomed);
  if (is_last) delete this;
}

Doomed CachingAllocator::State::trim_locked(size_t keep_bytes) {
  Doomed doomed;
  for (size_t i = segments.size(); i-- > 0 && stats.cached_bytes > keep_bytes;) {
    Segment* segment = segments[i].get();
    Block* block = segment->first;
    if (!block->is_free || block->right) continue;
    lists(*segment).remove(block);
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

// Free blocks between others in use cannot be returned, but need no memory.
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
  std::lock_guard lock(state_->mutex);
  if (state_->stats.live_bytes == 0) return;
  // Storages that outlive the allocator still return their blocks to this state.
  state_->is_orphaned = true;
  (void)state_.release();
}

void* CachingAllocator::allocate(size_t size_bytes) {
  Block* block = state_->take(size_bytes, current_memory_owner());
  std::lock_guard lock(state_->mutex);
  state_->given_out.emplace(block->data, block);
  return block->data;
}

void CachingAllocator::free(void* data) {
  if (!data) return;
  Block* block = nullptr;
  {
    std::lock_guard lock(state_->mutex);
    const auto it = state_->given_out.find(data);
    check_internal(it != state_->given_out.end(), "free of memory that this allocator did not give");
    block = it->second;
    state_->given_out.erase(it);
  }
  state_->give(block);
}

Storage CachingAllocator::allocate_storage(size_t size_bytes) {
  Block* block = state_->take(size_bytes, current_memory_owner());
  // Two words: std::function keeps them without a heap block.
  return wrap_storage(
      block->data, size_bytes, [state = state_.get(), block] { state->give(block); }, state_->source->device());
}

void CachingAllocator::set_options(Options options) {
  std::lock_guard lock(state_->mutex);
  state_->options = options;
}

size_t CachingAllocator::trim(size_t keep_bytes) {
  Doomed doomed;
  {
    std::lock_guard lock(state_->mutex);
    doomed = state_->trim_locked(keep_bytes);
    if (state_->stats.cached_bytes > keep_bytes) state_->purge_locked();
  }
  state_->return_to_device(doomed);
  size_t bytes = 0;
  for (const auto& [data, size] : doomed) bytes += size;
  return bytes;
}

AllocatorStats CachingAllocator::stats() const {
  std::lock_guard lock(state_->mutex);
  return state_->stats;
}

std::vector<OwnerBytes> CachingAllocator::owners() const {
  std::lock_guard lock(state_->mutex);
  std::vector<OwnerBytes> out;
  for (size_t owner = 0; owner < state_->owners.size(); ++owner) {
    const OwnerCount& count = state_->owners[owner];
    if (count.peak_bytes == 0) continue;
    out.push_back({memory_owner_name(static_cast<OwnerId>(owner)), count.live_bytes, count.peak_bytes});
  }
  return out;
}

uint64_t CachingAllocator::live_bytes_of(OwnerId owner) const {
  std::lock_guard lock(state_->mutex);
  return owner < state_->owners.size() ? state_->owners[owner].live_bytes : 0;
}

}  // namespace tensord
