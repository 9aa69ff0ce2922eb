#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/tensor/allocator.h"
#include "core/tensor/memory/storage_allocator.h"
#include "core/tensor/memory/stream_uses.h"

// Blocks of the caching allocator, and its lists of free blocks.
namespace tensord {

struct Segment;

// A piece of a segment, in use or free. Blocks are linked to their neighbors by address; free ones are also in the list
// of their size class.
struct Block {
  char* data = nullptr;
  size_t size = 0;
  Segment* segment = nullptr;
  Block* left = nullptr;
  Block* right = nullptr;
  Block* next_free = nullptr;
  Block* previous_free = nullptr;
  DeviceStream* stream = nullptr;    // the stream whose order its uses follow; null on the host
  std::unique_ptr<StreamUses> uses;  // set while a storage of a device holds the block
  DataPtr foreign;                   // of a block that a StorageAllocator supplied
  OwnerId owner = 0;
  bool is_free = false;
};

struct Segment {
  char* data = nullptr;
  size_t size = 0;
  bool is_small = false;
  Block* first = nullptr;
  size_t index = 0;  // position in State::segments
};

// Free blocks by size class: exact multiples of kAlignment up to 1 KiB, then 16 classes for each power of two. A bitmap
// of the classes that are not empty makes a search O(1).
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

  // Returns a block of at least `size`: one of the same class if a few probes find it (a block just freed at this size
  // is the first), otherwise one of the next class that is not empty.
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

// The free blocks of one stream, or of the host.
struct StreamBlocks {
  FreeLists small, large;
};

}  // namespace tensord
