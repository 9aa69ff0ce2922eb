#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "core/base/file_descriptor.h"
#include "core/tensor/memory/storage_allocator.h"

namespace tensord {

// Memory that other processes can have too, by a descriptor: an anonymous file (memfd) that is mapped, of a size that
// nobody can change any more (a file that shrinks would be SIGBUS in who reads it), all of it taken from the system
// when it is made. It is gone when the last process has let go; nothing is left behind by one that is killed. All of
// this is thread-safe.

// Gives such memory, of the host. Each piece keeps a descriptor open.
StorageAllocator& shared_memory_allocator();

// The file that a range of this process's memory lies in.
struct SharedPlace {
  std::shared_ptr<const FileDescriptor> file;
  uint64_t file_bytes = 0;
  uint64_t offset_bytes = 0;  // of the range in the file
};
// Nothing unless all of the storage lies in memory of shared_memory_allocator or map_shared.
std::optional<SharedPlace> shared_place(const Storage& storage);

// Maps the first `size_bytes` of a file that another process sent, who may be a stranger. The descriptor is duplicated.
// The storage is writable unless the descriptor or a seal forbids it. Its bytes are those of no memory owner. Throws
// Error{kInvalidArgument} when it is no memory whose size is sealed, is smaller, or has parts without memory.
Storage map_shared(int file, uint64_t size_bytes);

}  // namespace tensord
