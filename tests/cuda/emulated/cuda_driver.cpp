// The driver's functions for memory of other processes (server/memory/cuda_driver.h) on the emulated devices. Memory of
// another process is a file in /dev/shm; a handle is its name and, in the last 8 bytes, where in it the exported
// allocation begins. A handle that is open already gives the same address again. They refuse what the driver refuses:
// calls without a context, wrong handles, addresses that are not open.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "tests/cuda/emulated/libraries.h"

#define TENSORD_DRIVER extern "C" [[gnu::visibility("default")]]

namespace tensord::cuda::emulated {
namespace {

constexpr int kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kInvalidDevice = 101, kInvalidContext = 201;
constexpr unsigned kLazyPeerAccess = 1;
constexpr size_t kNameBytes = 56;

struct Handle {
  char name[kNameBytes];
  uint64_t offset;
};
struct Context {
  int device = 0, users = 0;
};
struct Block {
  std::string handle;  // with the device
  char* base = nullptr;
  size_t size_bytes = 0;
  int users = 1;
};

// All of it under machine_mutex().
std::vector<Context>& contexts() {
  static auto* const all = new std::vector<Context>(static_cast<size_t>(devices()));
  return *all;
}
std::map<uint64_t, Block>& blocks() {  // by the address that was returned
  static auto* const all = new std::map<uint64_t, Block>;
  return *all;
}
thread_local std::vector<Context*> current;

// The open block with these bytes; null: there is none.
const Block* find(uint64_t address, size_t count) {
  for (const auto& [start, block] : blocks()) {
    const auto base = reinterpret_cast<uint64_t>(block.base);
    if (address < base || address - base > block.size_bytes) continue;
    if (count <= block.size_bytes - (address - base)) return &block;
  }
  return nullptr;
}

int open_file(int file, uint64_t offset, const std::string& handle, uint64_t* address) {
  struct stat status {};
  if (fstat(file, &status) != 0 || offset >= static_cast<uint64_t>(status.st_size)) return kInvalidValue;
  const auto size_bytes = static_cast<size_t>(status.st_size);
  void* const base = import_memory(current.back()->device, file, size_bytes);
  if (base == nullptr) return kOutOfMemory;
  *address = reinterpret_cast<uint64_t>(base) + offset;
  blocks()[*address] = {handle, static_cast<char*>(base), size_bytes};
  return kSuccess;
}

int copy(uint64_t device, size_t count, void* to, const void* from) {
  if (current.empty()) return kInvalidContext;
  if (find(device, count) == nullptr) return kInvalidValue;
  std::memcpy(to, from, count);
  return kSuccess;
}

}  // namespace

TENSORD_DRIVER int cuInit(unsigned flags) { return flags == 0 ? kSuccess : kInvalidValue; }

TENSORD_DRIVER int cuDeviceGetCount(int* count) {
  *count = devices();
  return kSuccess;
}

TENSORD_DRIVER int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return ordinal >= 0 && ordinal < devices() ? kSuccess : kInvalidDevice;
}

TENSORD_DRIVER int cuDevicePrimaryCtxRetain(void** context, int device) {
  const std::lock_guard lock(machine_mutex());
  Context& found = contexts().at(static_cast<size_t>(device));
  found.device = device;
  ++found.users;
  *context = &found;
  return kSuccess;
}

TENSORD_DRIVER int cuDevicePrimaryCtxRelease_v2(int device) {
  const std::lock_guard lock(machine_mutex());
  return contexts().at(static_cast<size_t>(device)).users-- > 0 ? kSuccess : kInvalidContext;
}

TENSORD_DRIVER int cuCtxPushCurrent_v2(void* context) {
  const std::lock_guard lock(machine_mutex());
  if (static_cast<Context*>(context)->users == 0) return kInvalidContext;
  current.push_back(static_cast<Context*>(context));
  return kSuccess;
}

TENSORD_DRIVER int cuCtxPopCurrent_v2(void** context) {
  if (current.empty()) return kInvalidContext;
  *context = current.back();
  current.pop_back();
  return kSuccess;
}

TENSORD_DRIVER int cuCtxSynchronize() { return current.empty() ? kInvalidContext : kSuccess; }

TENSORD_DRIVER int cuIpcOpenMemHandle_v2(uint64_t* address, Handle handle, unsigned flags) {
  const std::lock_guard lock(machine_mutex());
  if (current.empty()) return kInvalidContext;
  if (flags != kLazyPeerAccess || std::memchr(handle.name, 0, kNameBytes) == nullptr) return kInvalidValue;
  std::string known(reinterpret_cast<const char*>(&handle), sizeof(handle));
  known += std::to_string(current.back()->device);
  for (auto& [start, block] : blocks()) {
    if (block.handle != known) continue;
    ++block.users;
    *address = start;
    return kSuccess;
  }
  const int file = shm_open(handle.name, O_RDWR, 0);
  if (file < 0) return kInvalidValue;
  const int result = open_file(file, handle.offset, known, address);
  close(file);
  return result;
}

TENSORD_DRIVER int cuIpcCloseMemHandle(uint64_t address) {
  const std::lock_guard lock(machine_mutex());
  if (current.empty()) return kInvalidContext;
  const auto found = blocks().find(address);
  if (found == blocks().end()) return kInvalidValue;
  if (--found->second.users > 0) return kSuccess;
  release_memory(found->second.base);
  blocks().erase(found);
  return kSuccess;
}

TENSORD_DRIVER int cuMemGetAddressRange_v2(uint64_t* base, size_t* size_bytes, uint64_t address) {
  const std::lock_guard lock(machine_mutex());
  const Block* const block = current.empty() ? nullptr : find(address, 0);
  if (block == nullptr) return kInvalidValue;
  *base = reinterpret_cast<uint64_t>(block->base);
  *size_bytes = block->size_bytes;
  return kSuccess;
}

TENSORD_DRIVER int cuMemcpyDtoH_v2(void* to, uint64_t from, size_t count) {
  const std::lock_guard lock(machine_mutex());
  return copy(from, count, to, inside(reinterpret_cast<const void*>(from)));
}

TENSORD_DRIVER int cuMemcpyHtoD_v2(uint64_t to, const void* from, size_t count) {
  const std::lock_guard lock(machine_mutex());
  return copy(to, count, inside(reinterpret_cast<const void*>(to)), from);
}

TENSORD_DRIVER int cuGetErrorString(int error, const char** text) {
  *text = error == kOutOfMemory ? "out of memory" : "invalid argument";
  return kSuccess;
}

}  // namespace tensord::cuda::emulated
