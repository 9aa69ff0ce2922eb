#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "core/base/file_descriptor.h"
#include "core/tensor/memory/storage_allocator.h"

namespace tensord {

// Memory that other processes can map by a descriptor: an anonymous file (memfd) whose size is sealed (truncating a
// mapped file would be SIGBUS for its readers), with all pages allocated when it is made. It is freed when the last
// process unmaps it; a killed process leaves nothing behind. All of this is thread-safe.

// Allocates such memory on the host. Each piece keeps a descriptor open.
StorageAllocator& shared_memory_allocator();

// The file that holds a range of this process's memory.
struct SharedPlace {
  std::shared_ptr<const FileDescriptor> file;
  uint64_t file_bytes = 0;
  uint64_t offset_bytes = 0;  // of the range, in the file
};
// Returns nothing unless the whole storage lies in memory of shared_memory_allocator or map_shared.
std::optional<SharedPlace> shared_place(const Storage& storage);

// Maps the first `size_bytes` of a file that another, untrusted process sent. The descriptor is duplicated. The storage
// is writable unless the descriptor or a seal forbids it. Its bytes are not charged to any owner. Throws
// Error{kInvalidArgument} if the file is not memory of sealed size, is smaller, or has holes.
Storage map_shared(int file, uint64_t size_bytes);

}  // namespace tensord
