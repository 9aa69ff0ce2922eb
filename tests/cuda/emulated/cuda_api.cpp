// libtensord_cuda_emulated.so: CUDA's devices on the processor, for tests. It stands in the place of libtensord_cuda.so
// by the environment variable TENSORD_CUDA, with the same kernels (kernels/cuda/*.cu). Work runs as late as CUDA
// allows: when somebody waits for it. Host code that touches device memory ends the process.
//   TENSORD_CUDA_SEED=N              the order of threads and blocks (machine.h)
//   TENSORD_CUDA_FAIL_ALLOCATION=N   the N-th allocation finds no memory
//   TENSORD_CUDA_DEVICES=N           1 to 8 devices; 2 without it
//   TENSORD_CUDA_MEMORY=BYTES        of each device
//   TENSORD_CUDA_LOST_WITH=FILE      all devices are lost from when this file is there
//   TENSORD_CUDA_LIMITS=FILE         what kernels take of a chip (kernel_limits.h)
#include "core/tensor/cuda/api.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kernels/cuda/libraries/library.h"
#include "kernels/cuda/plugin/table.h"
#include "tests/cuda/emulated/kernel_limits.h"
#include "tests/cuda/emulated/kernel_names.h"
#include "tests/cuda/emulated/libraries.h"
#include "tests/cuda/emulated/machine.h"
#include "tests/cuda/emulated/memory.h"

using tensord::cuda::Outcome;

struct CUstream_st {
  int device = 0, priority = 0;
  std::deque<std::function<bool()>> queue;  // false: not yet, because another process has not come so far
  uint64_t given = 0;
  uint64_t done() const { return given - queue.size(); }
};
struct CUevent_st {
  int device = 0;
  CUstream_st* stream = nullptr;
  uint64_t point = 0;
};

namespace tensord::cuda::emulated {

std::recursive_mutex& machine_mutex() {
  static auto* const mutex = new std::recursive_mutex;
  return *mutex;
}

int devices() {
  static const auto count = static_cast<int>(std::clamp<uint64_t>(number_in("TENSORD_CUDA_DEVICES", 2), 1, 8));
  return count;
}

namespace {

thread_local int chosen_device = 0;
thread_local std::string last_text;
thread_local Outcome launch_outcome = Outcome::kDone;
std::string lost_text;  // machine_mutex()

Outcome refuse(std::string text) {
  last_text = std::move(text);
  return Outcome::kRefused;
}
Outcome no_memory() {
  last_text = "out of memory";
  return Outcome::kOutOfMemory;
}
// REQUIRES: machine_mutex() is held.
Outcome state() {
  static const char* const lost_with = std::getenv("TENSORD_CUDA_LOST_WITH");
  if (lost_with && lost_text.empty() && access(lost_with, F_OK) == 0) lost_text = "lost for this test";
  if (lost_text.empty()) return Outcome::kDone;
  last_text = lost_text;
  return Outcome::kLost;
}
bool is_device(int device) { return device >= 0 && device < devices(); }

Memory& memory(int device) {
  static auto* const all = new Memory[static_cast<size_t>(devices())];
  return all[device];
}
int device_of(const void* address) {
  for (int i = 0; i < devices(); ++i) {
    if (memory(i).has(address)) return i;
  }
  return -1;
}

std::map<uintptr_t, size_t>& pinned() {
  static auto* const ranges = new std::map<uintptr_t, size_t>;
  return *ranges;
}
bool is_pinned(const void* address) {
  const auto at = reinterpret_cast<uintptr_t>(address);
  const auto after = pinned().upper_bound(at);
  return after != pinned().begin() && at < std::prev(after)->first + std::prev(after)->second;
}

std::vector<CUstream_st*>& streams() {
  static auto* const all = new std::vector<CUstream_st*>;
  return *all;
}

// Runs the stream's work until this many pieces of it are done, or one cannot be done yet.
void run_to(CUstream_st& stream, uint64_t count) {
  while (stream.done() < count && !stream.queue.empty()) {
    auto piece = std::move(stream.queue.front());
    stream.queue.pop_front();
    if (!lost_text.empty() || piece()) continue;
    stream.queue.push_front(std::move(piece));
    return;
  }
}
void run_all(CUstream_st& stream) { run_to(stream, stream.given); }

void give_attempt(CUstream_st& stream, std::function<bool()> piece) {
  stream.queue.push_back(std::move(piece));
  ++stream.given;
}
void give(CUstream_st& stream, std::function<void()> piece) {
  give_attempt(stream, [piece = std::move(piece)] {
    piece();
    return true;
  });
}
// Calls it, under the lock, until it returns true. Others may go on in between.
template <class Fn>
Outcome wait_until(const Fn& is_done) {
  for (;; usleep(50)) {
    const std::lock_guard lock(machine_mutex());
    if (is_done()) return state();
  }
}

bool is_pending(const CUevent_st& event) {
  if (!event.stream || std::ranges::find(streams(), event.stream) == streams().end()) return false;
  return event.stream->done() < event.point;
}

// Devices ----------------------------------------------------------------------------------------------------------

const char* error_text() { return last_text.c_str(); }

Outcome properties(int device, DeviceProperties* out) {
  if (!is_device(device)) return refuse("invalid device ordinal");
  std::snprintf(out->name, sizeof(out->name), "emulated device %d", device);
  out->major = 9;
  out->multiprocessors = 4;
  out->threads_of_multiprocessor = 2048;
  out->max_shared_bytes = 227 << 10;
  out->memory_bytes = memory(device).size();
  return Outcome::kDone;
}
Outcome memory_info(int device, uint64_t* free_bytes, uint64_t* total_bytes) {
  const std::lock_guard lock(machine_mutex());
  if (!is_device(device)) return refuse("invalid device ordinal");
  *free_bytes = memory(device).free_bytes();
  *total_bytes = memory(device).size();
  return state();
}
Outcome set_device(int device, int* before) {
  if (!is_device(device)) return refuse("invalid device ordinal");
  if (before) *before = chosen_device;
  chosen_device = device;
  return Outcome::kDone;
}
Outcome synchronize_device(int device) {
  return wait_until([device] {
    bool is_done = true;
    for (CUstream_st* const stream : std::vector(streams())) {
      if (stream->device != device) continue;
      run_all(*stream);
      is_done = is_done && stream->queue.empty();
    }
    return is_done;
  });
}

Outcome allocate(int device, size_t size_bytes, void** data) {
  const std::lock_guard lock(machine_mutex());
  if (state() != Outcome::kDone) return Outcome::kLost;
  if (!is_device(device)) return refuse("invalid device ordinal");
  static const uint64_t failing = number_in("TENSORD_CUDA_FAIL_ALLOCATION", 0);
  static uint64_t calls = 0;
  *data = ++calls == failing ? nullptr : memory(device).allocate(size_bytes);
  return *data ? Outcome::kDone : no_memory();
}
Outcome free_memory(int device, void* data) {
  synchronize_device(device);
  const std::lock_guard lock(machine_mutex());
  return memory(device).free(data) ? state() : refuse("an address that was not allocated is freed");
}
Outcome allocate_host(size_t size_bytes, void** data) {
  const std::lock_guard lock(machine_mutex());
  if (state() != Outcome::kDone) return Outcome::kLost;
  *data = std::aligned_alloc(4096, (size_bytes + 4095) / 4096 * 4096);
  if (!*data) return no_memory();
  pinned()[reinterpret_cast<uintptr_t>(*data)] = size_bytes;
  return Outcome::kDone;
}
Outcome free_host(void* data) {
  for (int i = 0; i < devices(); ++i) synchronize_device(i);
  const std::lock_guard lock(machine_mutex());
  if (pinned().erase(reinterpret_cast<uintptr_t>(data)) == 0) return refuse("memory that is not pinned is freed");
  std::free(data);
  return state();
}

// Streams, events ---------------------------------------------------------------------------------------------------

Outcome make_stream(int device, int priority, StreamHandle* stream) {
  const std::lock_guard lock(machine_mutex());
  if (!is_device(device)) return refuse("invalid device ordinal");
  *stream = new CUstream_st;
  (*stream)->device = device;
  (*stream)->priority = priority;
  streams().push_back(*stream);
  return state();
}
Outcome synchronize_stream(StreamHandle stream) {
  return wait_until([stream] {
    run_all(*stream);
    return stream->queue.empty();
  });
}
Outcome destroy_stream(StreamHandle stream) {
  synchronize_stream(stream);
  const std::lock_guard lock(machine_mutex());
  std::erase(streams(), stream);
  delete stream;
  return state();
}
Outcome priority_range(int, int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return Outcome::kDone;
}

Outcome make_event(int device, EventHandle* event) {
  *event = new CUevent_st;
  (*event)->device = device;
  return Outcome::kDone;
}
Outcome destroy_event(EventHandle event) {
  delete event;
  return Outcome::kDone;
}
Outcome record_event(EventHandle event, StreamHandle stream) {
  const std::lock_guard lock(machine_mutex());
  if (event->device != stream->device) return refuse("an event of another device is recorded in a stream");
  event->stream = stream;
  event->point = stream->given;
  return state();
}
Outcome wait_event(StreamHandle stream, EventHandle event) {
  const std::lock_guard lock(machine_mutex());
  if (event->stream != stream) {
    give_attempt(*stream, [event = *event] {
      if (is_pending(event)) run_to(*event.stream, event.point);
      return !is_pending(event);
    });
  }
  return state();
}
// Each query that finds work left runs a piece of it, as time would pass.
Outcome query_event(EventHandle event) {
  const std::lock_guard lock(machine_mutex());
  if (state() != Outcome::kDone) return Outcome::kLost;
  if (!is_pending(*event)) return Outcome::kDone;
  run_to(*event->stream, event->stream->done() + 1);
  return Outcome::kNotReady;
}
Outcome synchronize_event(EventHandle event) {
  return wait_until([event] {
    if (is_pending(*event)) run_to(*event->stream, event->point);
    return !is_pending(*event);
  });
}

// Copies --------------------------------------------------------------------------------------------------------------

// What a copy engine reads or writes: device memory in the other mapping.
void* reached(const void* address) {
  const int device = device_of(address);
  return device < 0 ? const_cast<void*>(address) : memory(device).inside(address);
}

Outcome copy(void* to, const void* from, size_t size_bytes, StreamHandle stream) {
  const std::lock_guard lock(machine_mutex());
  if (stream->device != chosen_device) return refuse("a copy in a stream of another device than the current one");
  if (device_of(from) < 0 && !is_pinned(from)) {
    const char* const bytes = static_cast<const char*>(from);
    give(*stream, [to = reached(to), staged = std::vector<char>(bytes, bytes + size_bytes)] {
      std::memcpy(to, staged.data(), staged.size());
    });
  } else {
    give(*stream, [to = reached(to), from = reached(from), size_bytes] { std::memmove(to, from, size_bytes); });
  }
  return state();
}
Outcome copy_peer(void* to, int to_device, const void* from, int from_device, size_t size_bytes, StreamHandle stream) {
  const std::lock_guard lock(machine_mutex());
  if (device_of(to) != to_device || device_of(from) != from_device) return refuse("memory of another device");
  return copy(to, from, size_bytes, stream);
}
Outcome fill(void* data, uint8_t byte, size_t size_bytes, StreamHandle stream) {
  const std::lock_guard lock(machine_mutex());
  if (stream->device != chosen_device) return refuse("a fill in a stream of another device than the current one");
  give(*stream, [data = reached(data), byte, size_bytes] { std::memset(data, byte, size_bytes); });
  return state();
}

// Launches ------------------------------------------------------------------------------------------------------------

Outcome check_launch() {
  const std::lock_guard lock(machine_mutex());
  if (state() != Outcome::kDone) return Outcome::kLost;
  return std::exchange(launch_outcome, Outcome::kDone);
}

struct KnownKernel {
  KernelLimits limits;
  PtxFunction ptx = nullptr;
};
const KnownKernel& known(const void* kernel) {
  static auto* const by_kernel = new std::map<const void*, KnownKernel>;
  const auto [place, is_new] = by_kernel->try_emplace(kernel);
  if (is_new) place->second = {limits_of(kernel), ptx_of(kernel)};
  return place->second;
}

std::map<const void*, size_t>& allowed_shared() {
  static auto* const by_kernel = new std::map<const void*, size_t>;
  return *by_kernel;
}

void report_host_access(int, siginfo_t* info, void*) {
  if (device_of(info->si_addr) >= 0) {
    const char text[] = "emulated CUDA: host code touches device memory\n";
    if (write(2, text, sizeof(text) - 1) < 0) _exit(3);
    void* frames[40];
    backtrace_symbols_fd(frames, backtrace(frames, 40), 2);
  }
  signal(SIGSEGV, SIG_DFL);  // the fault occurs again
}

// This library has the driver's functions too (cuda_driver.cpp).
const char* own_file() {
  Dl_info info{};
  return dladdr(reinterpret_cast<const void*>(&own_file), &info) ? info.dli_fname : "";
}

const CudaApi* make_api() {
  settings().seed = number_in("TENSORD_CUDA_SEED", 0);
  for (int i = 0; i < devices(); ++i) memory(i);
  struct sigaction action {};
  action.sa_sigaction = report_host_access;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, nullptr);
  static const CudaApi api{kCudaInterface,
                           "emulated CUDA",
                           devices(),
                           "",
                           own_file(),
                           error_text,
                           properties,
                           memory_info,
                           set_device,
                           synchronize_device,
                           allocate,
                           free_memory,
                           allocate_host,
                           free_host,
                           make_stream,
                           destroy_stream,
                           synchronize_stream,
                           priority_range,
                           make_event,
                           destroy_event,
                           record_event,
                           wait_event,
                           query_event,
                           synchronize_event,
                           copy,
                           copy_peer,
                           fill,
                           kernels::strided_copy,
                           kernels::kernel_table(),
                           kernels::library_table(),
                           kernels::library_state,
                           check_launch};
  return &api;
}

}  // namespace

void* seen(const void* address) {
  if (!address) return nullptr;
  const int device = device_of(address);
  if (device == block_.device) return memory(device).inside(address);
  if (device >= 0) fault("a kernel reaches for memory of another device");
  if (!is_pinned(address)) fault("a kernel reaches for memory of the host");
  return const_cast<void*>(address);
}

void allow_shared(const void* kernel, size_t size_bytes) {
  const std::lock_guard lock(machine_mutex());
  allowed_shared()[kernel] = size_bytes;
}

void* seen_or_own(const void* address) { return device_of(address) >= 0 ? seen(address) : const_cast<void*>(address); }

void queue_launch(const void* kernel, dim3 grid, dim3 block, size_t shared_bytes, std::vector<char> parameters,
                  cudaStream_t stream, std::function<void()> body) {
  const std::lock_guard lock(machine_mutex());
  const auto refuse_launch = [](const char* what) { launch_outcome = refuse(what); };
  const uint64_t threads = uint64_t{block.x} * block.y * block.z;
  if (threads == 0 || threads > 1024 || block.x > 1024 || block.y > 1024 || block.z > 64)
    return refuse_launch("a block of a size that CUDA refuses");
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535)
    return refuse_launch("a grid of a size that CUDA refuses");
  const auto allowed = allowed_shared().find(kernel);
  const KernelLimits& limits = known(kernel).limits;
  const size_t shared = shared_bytes + limits.shared_bytes;
  if (shared > (allowed == allowed_shared().end() ? size_t{48} << 10 : allowed->second + limits.shared_bytes) ||
      shared > size_t{227} << 10)
    return refuse_launch("more shared memory than the kernel was allowed");
  const uint64_t of_warp = (static_cast<uint64_t>(limits.registers) * 32 + 255) / 256 * 256;
  if ((threads + 31) / 32 * of_warp > 65536) return refuse_launch("more registers than a multiprocessor has");
  if (parameters.size() > 4096) return refuse_launch("more parameters than CUDA takes");
  if (stream->device != chosen_device)
    return refuse_launch("a launch in a stream of another device than the current one");
  if (const PtxFunction ptx = known(kernel).ptx) body = [ptx, parameters] { ptx(parameters.data()); };
  give(*stream, [launch = Launch{grid, block, shared_bytes, stream->device, std::move(body)}] {
    if (std::string text = run_kernel(launch); !text.empty()) lost_text = "a kernel failed: " + text;
  });
}

void* import_memory(int device, int file, size_t size_bytes) { return memory(device).import(file, size_bytes); }
void release_memory(void* data) {
  const int device = device_of(data);
  synchronize_device(device);
  memory(device).free(data);
}

int device_of_stream(StreamHandle stream) { return stream->device; }
void queue_work(StreamHandle stream, std::function<void()> work) { give(*stream, std::move(work)); }
void queue_attempt(StreamHandle stream, std::function<bool()> work) { give_attempt(*stream, std::move(work)); }
size_t room_on(int device, const void* address) {
  return memory(device).has(address) ? memory(device).room(address) : 0;
}
void* inside(const void* address) { return reached(address); }

}  // namespace tensord::cuda::emulated

namespace tensord::cuda {

Outcome refuse_call(std::string text) { return emulated::refuse(std::move(text)); }
Outcome no_memory_for_call(std::string) { return emulated::no_memory(); }
int current_device() { return emulated::chosen_device; }

}  // namespace tensord::cuda

extern "C" [[gnu::visibility("default")]] const tensord::cuda::CudaApi* tensord_cuda_api() {
  static const tensord::cuda::CudaApi* const api = tensord::cuda::emulated::make_api();
  return api;
}

// For tests/device/cuda_fixture.h.
extern "C" [[gnu::visibility("default")]] uint64_t tensord_cuda_queued_work(const CUstream_st* stream) {
  const std::lock_guard lock(tensord::cuda::emulated::machine_mutex());
  return stream->given;
}
