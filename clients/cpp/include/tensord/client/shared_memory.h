#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tensord/client/client.h"

namespace tensord::client {

// Memory shared by this process and a server on the same machine. The constructor creates and registers it, the
// destructor unregisters and removes it. The server must allow it (tensord: --allow-client-shm true). Tensors in it
// keep the memory mapped, but must not be used in requests after it is destroyed. Thread-safe, except for the caller's
// own writes to the memory.
class SharedMemory {
 public:
  // `client` must outlive it. Throws Error.
  SharedMemory(Client& client, size_t size_bytes);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  const std::string& name() const { return name_; }
  std::span<std::byte> bytes() const { return {memory_.get(), size_bytes_}; }
  // The elements at `offset`, to write before a request or to read after it. Throws InvalidArgumentError if they do not
  // fit or `offset` is not a multiple of the element size.
  template <Element T>
  std::span<T> values(size_t offset, size_t count) const {
    check_range(offset, count * sizeof(T), sizeof(T));
    return {reinterpret_cast<T*>(memory_.get() + offset), count};
  }
  // A tensor at `offset`, for Input::tensor and Output::into. Not for BYTES.
  Tensor tensor(DataType type, std::vector<int64_t> shape, size_t offset = 0) const;

 private:
  void check_range(size_t offset, size_t size_bytes, size_t alignment) const;

  Client& client_;
  std::string name_;  // of the region; with a slash, of the shared memory object
  size_t size_bytes_;
  std::shared_ptr<std::byte> memory_;
};

}  // namespace tensord::client
