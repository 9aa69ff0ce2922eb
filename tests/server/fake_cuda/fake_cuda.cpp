// A fake of the driver's libcuda.so.1: two GPUs whose memory is files in /dev/shm. A handle is the name of such a file
// and, in its last 8 bytes, the offset of the exported allocation. Like the driver it refuses calls without a context,
// invalid handles, and addresses that are not open. A truncated file fails as a GPU does after a bad address.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

namespace {

constexpr int kSuccess = 0, kInvalidValue = 1, kInvalidDevice = 101, kInvalidContext = 201, kIllegalAddress = 700;
constexpr int kDevices = 2;
constexpr unsigned kLazyPeerAccess = 1;

struct Handle {
  char name[56];
  uint64_t offset;
};
struct Context {
  int users = 0;
};
struct Block {
  uint64_t base = 0;
  size_t size_bytes = 0;
  int file = -1;
};

std::mutex mutex;
bool is_ready = false;
std::array<Context, kDevices> contexts;
std::map<uint64_t, Block> blocks;  // by the returned address
thread_local std::vector<void*> current;

// The open block that contains these bytes.
const Block* find(uint64_t address, size_t count) {
  for (const auto& [start, block] : blocks) {
    const bool lies_there = address >= block.base && address - block.base <= block.size_bytes &&
                            count <= block.size_bytes - (address - block.base);
    if (lies_there) return &block;
  }
  return nullptr;
}

int copy(uint64_t device, size_t count, void* to, const void* from) {
  const std::lock_guard lock(mutex);
  if (current.empty()) return kInvalidContext;
  const Block* const block = find(device, count);
  struct stat status {};
  if (block == nullptr || fstat(block->file, &status) != 0 || static_cast<size_t>(status.st_size) < block->size_bytes) {
    return kIllegalAddress;
  }
  std::memcpy(to, from, count);
  return kSuccess;
}

}  // namespace

extern "C" {

int cuInit(unsigned flags) {
  is_ready = flags == 0;
  return is_ready ? kSuccess : kInvalidValue;
}

int cuDeviceGetCount(int* count) {
  *count = kDevices;
  return is_ready ? kSuccess : 3;
}

int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return ordinal >= 0 && ordinal < kDevices ? kSuccess : kInvalidDevice;
}

int cuDevicePrimaryCtxRetain(void** context, int device) {
  const std::lock_guard lock(mutex);
  Context& of_device = contexts[static_cast<size_t>(device)];
  ++of_device.users;
  *context = &of_device;
  return kSuccess;
}

int cuDevicePrimaryCtxRelease_v2(int device) {
  const std::lock_guard lock(mutex);
  return contexts[static_cast<size_t>(device)].users-- > 0 ? kSuccess : kInvalidContext;
}

int cuCtxPushCurrent_v2(void* context) {
  const std::lock_guard lock(mutex);
  if (static_cast<Context*>(context)->users == 0) return kInvalidContext;
  current.push_back(context);
  return kSuccess;
}

int cuCtxPopCurrent_v2(void** context) {
  if (current.empty()) return kInvalidContext;
  *context = current.back();
  current.pop_back();
  return kSuccess;
}

int cuCtxSynchronize() { return current.empty() ? kInvalidContext : kSuccess; }

int cuIpcOpenMemHandle_v2(uint64_t* address, Handle handle, unsigned flags) {
  const std::lock_guard lock(mutex);
  if (current.empty()) return kInvalidContext;
  if (flags != kLazyPeerAccess || std::memchr(handle.name, 0, sizeof(handle.name)) == nullptr) return kInvalidValue;
  const int file = shm_open(handle.name, O_RDWR, 0);
  struct stat status {};
  if (file < 0 || fstat(file, &status) != 0) return kInvalidValue;
  const auto size_bytes = static_cast<size_t>(status.st_size);
  void* const base = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  *address = reinterpret_cast<uint64_t>(base) + handle.offset;
  blocks[*address] = {reinterpret_cast<uint64_t>(base), size_bytes, file};
  return kSuccess;
}

int cuIpcCloseMemHandle(uint64_t address) {
  const std::lock_guard lock(mutex);
  const auto found = blocks.find(address);
  if (current.empty() || found == blocks.end()) return current.empty() ? kInvalidContext : kInvalidValue;
  munmap(reinterpret_cast<void*>(found->second.base), found->second.size_bytes);
  close(found->second.file);
  blocks.erase(found);
  return kSuccess;
}

int cuMemGetAddressRange_v2(uint64_t* base, size_t* size_bytes, uint64_t address) {
  const std::lock_guard lock(mutex);
  const Block* const block = current.empty() ? nullptr : find(address, 0);
  if (block == nullptr) return kInvalidValue;
  *base = block->base;
  *size_bytes = block->size_bytes;
  return kSuccess;
}

int cuMemcpyDtoH_v2(void* to, uint64_t from, size_t count) {
  return copy(from, count, to, reinterpret_cast<const void*>(from));
}

int cuMemcpyHtoD_v2(uint64_t to, const void* from, size_t count) {
  return copy(to, count, reinterpret_cast<void*>(to), from);
}

int cuGetErrorString(int error, const char** text) {
  *text = error == kIllegalAddress ? "an illegal memory access was encountered" : "invalid argument";
  return kSuccess;
}

// For tests: the number of open blocks, and how often contexts are retained.
int fakeCudaOpenBlocks() {
  const std::lock_guard lock(mutex);
  return static_cast<int>(blocks.size());
}
int fakeCudaContextUsers() {
  const std::lock_guard lock(mutex);
  return contexts[0].users + contexts[1].users;
}

}  // extern "C"
