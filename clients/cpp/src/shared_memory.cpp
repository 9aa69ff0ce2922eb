#include "tensord/client/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <random>

#include "tensord/client/error.h"

namespace tensord::client {
namespace {

// The name must be unique among all processes on this machine.
std::string make_name() {
  static std::atomic<unsigned> count{0};
  std::random_device random;
  return "tensord-" + std::to_string(getpid()) + "-" + std::to_string(random()) + "-" + std::to_string(count++);
}

[[noreturn]] void fail_system(const char* what) {
  throw_error(StatusCode::kResourceExhausted, std::string("shared memory: ") + what + ": " + std::strerror(errno));
}

std::shared_ptr<std::byte> map_object(const std::string& key, size_t size_bytes) {
  const int file = shm_open(key.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
  if (file < 0) fail_system("shm_open");
  // posix_fallocate reserves the memory now. Without it, a write to a full /dev/shm would raise SIGBUS.
  const int error = posix_fallocate(file, 0, static_cast<off_t>(size_bytes));
  void* memory = MAP_FAILED;
  if (error == 0) memory = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED) {
    if (error != 0) errno = error;
    const int reason = errno;
    shm_unlink(key.c_str());
    errno = reason;
    fail_system(error != 0 ? "posix_fallocate" : "mmap");
  }
  return {static_cast<std::byte*>(memory), [size_bytes](std::byte* mapped) { munmap(mapped, size_bytes); }};
}

}  // namespace

SharedMemory::SharedMemory(Client& client, size_t size_bytes)
    : client_(client), name_(make_name()), size_bytes_(size_bytes) {
  if (size_bytes == 0) throw InvalidArgumentError("shared memory of 0 bytes");
  const std::string key = "/" + name_;
  memory_ = map_object(key, size_bytes);
  try {
    client_.register_shared_memory(name_, key, size_bytes);
  } catch (...) {
    shm_unlink(key.c_str());
    throw;
  }
}

SharedMemory::~SharedMemory() {
  try {
    client_.unregister_shared_memory(name_);
  } catch (const Error&) {
    // The server is gone, and its registration with it.
  }
  shm_unlink(("/" + name_).c_str());
}

void SharedMemory::check_range(size_t offset, size_t size_bytes, size_t alignment) const {
  if (offset > size_bytes_ || size_bytes > size_bytes_ - offset) {
    throw InvalidArgumentError(std::to_string(size_bytes) + " bytes at " + std::to_string(offset) +
                               " are not within a region of " + std::to_string(size_bytes_));
  }
  if (offset % alignment != 0) {
    throw InvalidArgumentError("offset " + std::to_string(offset) + " is not a multiple of an element's " +
                               std::to_string(alignment) + " bytes");
  }
}

Tensor SharedMemory::tensor(DataType type, std::vector<int64_t> shape, size_t offset) const {
  if (type == DataType::kBytes) throw UnimplementedError("tensors of BYTES in shared memory");
  size_t size = element_size(type);
  for (const int64_t dim : shape) {
    if (dim < 0 || (dim > 0 && size > size_bytes_ / static_cast<size_t>(dim))) {
      throw InvalidArgumentError("the tensor does not fit into a region of " + std::to_string(size_bytes_) + " bytes");
    }
    size *= static_cast<size_t>(dim);
  }
  check_range(offset, size, element_size(type));
  Tensor tensor = Tensor::share(type, std::move(shape), {memory_, memory_.get() + offset}, size);
  tensor.region_ = RegionSlice{.region = name_, .offset = offset};
  return tensor;
}

}  // namespace tensord::client
