#include "tests/device/async_device.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/execution_context.h"
#include "core/tensor/memory/caching_allocator.h"
#include "core/tensor/memory/pinned_memory.h"
#include "core/tensor/strided_copy.h"
#include "tests/device/seen_tensor.h"

namespace tensord::late {
namespace {

// Reserved address space; pages are allocated when the device writes them.
constexpr size_t kMemoryBytes = size_t{8} << 30;

// One lock for the whole device: work of one stream may run that of another, on any thread.
std::recursive_mutex& device_mutex() {
  static std::recursive_mutex mutex;
  return mutex;
}

// The memory of all devices of this kind, in two mappings of one file. Guarded by device_mutex(), except `seen`.
class Memory {
 public:
  Memory() {
    const int file = memfd_create("late-device", MFD_CLOEXEC);
    check_internal(file >= 0 && ftruncate(file, kMemoryBytes) == 0, "no memory for the device of the tests");
    outside_ = map(file, PROT_NONE);
    inside_ = map(file, PROT_READ | PROT_WRITE);
    close(file);
    free_.emplace(0, kMemoryBytes);
  }

  void* allocate(size_t size_bytes) {
    const size_t size = rounded(size_bytes);
    for (auto it = free_.begin(); it != free_.end(); ++it) {
      const auto [begin, room] = *it;
      if (room < size) continue;
      free_.erase(it);
      if (room > size) free_.emplace(begin + size, room - size);
      return outside_ + begin;
    }
    return nullptr;
  }

  void free(void* data, size_t size_bytes) {
    size_t begin = static_cast<size_t>(static_cast<char*>(data) - outside_), size = rounded(size_bytes);
    madvise(inside_ + begin, size, MADV_REMOVE);
    auto after = free_.lower_bound(begin);
    if (after != free_.end() && after->first == begin + size) {
      size += after->second;
      after = free_.erase(after);
    }
    if (after != free_.begin()) {
      const auto before = std::prev(after);
      if (before->first + before->second == begin) {
        before->second += size;
        return;
      }
    }
    free_.emplace(begin, size);
  }

  bool has(const void* address) const {
    const char* const at = static_cast<const char*>(address);
    return at >= outside_ && at < outside_ + kMemoryBytes;
  }
  void close_to_host() { mprotect(outside_, kMemoryBytes, PROT_NONE); }

  void* seen(void* data) const {
    char* const at = static_cast<char*>(data);
    check_internal(at >= outside_ && at <= outside_ + kMemoryBytes, "the device of the tests was given host memory");
    return inside_ + (at - outside_);
  }

 private:
  static size_t rounded(size_t size) { return (size + 4095) / 4096 * 4096; }
  static char* map(int file, int access) {
    void* data = mmap(nullptr, kMemoryBytes, access, MAP_SHARED | MAP_NORESERVE, file, 0);
    check_internal(data != MAP_FAILED, "no address space for the device of the tests");
    return static_cast<char*>(data);
  }

  char* outside_ = nullptr;        // the mapping that tensors point to
  char* inside_ = nullptr;         // the mapping that device work uses
  std::map<size_t, size_t> free_;  // offset → size
};

Memory& memory() {
  static Memory* const all = new Memory;  // storages may outlive main
  return *all;
}

// Returns when `done` returns true. It is called with device_mutex() held, repeatedly while other work must run first.
// Do not call it with that mutex held.
template <class Fn>
void wait_until(const Fn& done) {
  for (;;) {
    {
      const std::lock_guard lock(device_mutex());
      if (done()) return;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

// device_mutex() guards all members.
class AsyncStream final : public DeviceStream {
 public:
  explicit AsyncStream(Device device) : DeviceStream(device) {
    const std::lock_guard lock(device_mutex());
    all().push_back(this);
  }
  ~AsyncStream() override {
    wait_until([this] { return run_to(given_); });
    {
      const std::lock_guard lock(device_mutex());
      std::erase(all(), this);
    }
    close();
  }
  void* handle() const override { return const_cast<AsyncStream*>(this); }

  static std::vector<AsyncStream*>& all() {
    static auto* const streams = new std::vector<AsyncStream*>;
    return *streams;
  }

  void give(std::function<void()> work, std::function<bool()> is_ready = nullptr) {
    const std::lock_guard lock(device_mutex());
    queue_.push_back({std::move(work), std::move(is_ready), ExecutionContext::detached()});
    ++given_;
  }

  void synchronize() override {
    wait_until([this, count = given_until_now()] { return run_to(count); });
    const std::lock_guard lock(device_mutex());
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  }

  // Runs work until this many items in total are done; returns false if one cannot start yet.
  bool run_to(uint64_t count) {
    while (done() < count && !queue_.empty()) {
      if (queue_.front().is_ready && !queue_.front().is_ready()) return false;
      const Piece piece = std::move(queue_.front());
      queue_.pop_front();
      try {
        const ExecutionScope scope(piece.context);
        piece.work();
      } catch (...) {
        if (!error_) error_ = std::current_exception();
      }
    }
    return true;
  }

  uint64_t given_until_now() const {
    const std::lock_guard lock(device_mutex());
    return given_;
  }
  uint64_t given() const { return given_; }
  uint64_t done() const { return given_ - queue_.size(); }
  size_t waiting() const { return queue_.size(); }

 private:
  struct Piece {
    std::function<void()> work;
    std::function<bool()> is_ready;  // null: always ready
    ExecutionContext context;
  };
  std::deque<Piece> queue_;
  uint64_t given_ = 0;
  std::exception_ptr error_;  // of the first item that failed since the last wait
};

AsyncStream& async_stream(DeviceStream& stream) { return static_cast<AsyncStream&>(stream); }

class AsyncEvent final : public DeviceEvent {
 public:
  void record(DeviceStream& stream) override {
    const std::lock_guard lock(device_mutex());
    stream_ = &async_stream(stream);
    point_ = stream_->given();
  }
  void hold(DeviceStream& stream) const override {
    if (stream_ == &stream) return;
    async_stream(stream).give([] {}, [event = *this] { return event.advance(); });
  }
  // Polling makes progress: each query that returns false runs one item of work.
  bool is_done() const override {
    const std::lock_guard lock(device_mutex());
    if (!is_pending()) return true;
    stream_->run_to(stream_->done() + 1);
    return false;
  }
  void synchronize() const override {
    wait_until([this] { return advance(); });
  }

 private:
  // Runs the work before the event, and returns whether it is done.
  bool advance() const { return !is_pending() || stream_->run_to(point_); }

  // A destroyed stream has run everything.
  bool is_pending() const {
    const auto& all = AsyncStream::all();
    return std::find(all.begin(), all.end(), stream_) != all.end() && stream_->done() < point_;
  }

  AsyncStream* stream_ = nullptr;
  uint64_t point_ = 0;
};

class AsyncAllocator final : public Allocator {
 public:
  explicit AsyncAllocator(Device device) : device_(device) {}
  void* allocate(size_t size_bytes) override {
    const std::lock_guard lock(device_mutex());
    return memory().allocate(size_bytes);
  }
  // Like cudaFree, waits for all work that may use the memory.
  void free(void* data, size_t size_bytes) override {
    wait_until([] {
      const auto streams = AsyncStream::all();
      return std::all_of(streams.begin(), streams.end(),
                         [](AsyncStream* stream) { return stream->run_to(stream->given()); });
    });
    const std::lock_guard lock(device_mutex());
    memory().free(data, size_bytes);
  }
  Device device() const override { return device_; }

 private:
  const Device device_;
};

class AsyncRuntime final : public DeviceRuntime {
 public:
  int count() const override { return kDevices; }
  std::unique_ptr<Allocator> make_allocator(int index) override {
    return std::make_unique<AsyncAllocator>(Device{kPrivateUse, static_cast<int8_t>(index)});
  }
  DeviceStream& default_stream(int index) override { return index == 0 ? first_ : second_; }
  std::unique_ptr<DeviceStream> make_stream(int index) override {
    return std::make_unique<AsyncStream>(Device{kPrivateUse, static_cast<int8_t>(index)});
  }
  std::unique_ptr<DeviceEvent> make_event() override { return std::make_unique<AsyncEvent>(); }
  void synchronize(int index) override {
    std::vector<AsyncStream*> streams;
    {
      const std::lock_guard lock(device_mutex());
      streams = AsyncStream::all();
    }
    for (AsyncStream* stream : streams) {
      if (stream->device().index == index) stream->synchronize();
    }
  }

  void copy(void* to, Device to_device, const void* from, Device from_device, size_t size_bytes,
            DeviceStream& stream) override {
    if (from_device.is_host()) {
      const auto* const bytes = static_cast<const char*>(from);
      async_stream(stream).give([to = memory().seen(to), staged = std::vector<char>(bytes, bytes + size_bytes)] {
        std::memcpy(to, staged.data(), staged.size());
      });
      return;
    }
    void* const target = to_device.is_host() ? to : memory().seen(to);
    async_stream(stream).give([target, source = memory().seen(const_cast<void*>(from)), size_bytes] {
      std::memmove(target, source, size_bytes);
    });
  }

  void fill(void* data, uint8_t byte, size_t size_bytes, DeviceStream& stream) override {
    async_stream(stream).give([data = memory().seen(data), byte, size_bytes] { std::memset(data, byte, size_bytes); });
  }

  void copy_strided(const Tensor& target, const Tensor& source, DeviceStream& stream) override {
    SeenTensors seen;
    async_stream(stream).give([to = seen.of(target), from = seen.of(source)] { strided_copy(to, from); });
  }

 private:
  AsyncStream first_{kFirst}, second_{kSecond};
};

std::atomic<size_t> touches{0};
struct sigaction action_before;

// Only makes system calls, because it may interrupt anything.
void let_host_in(int number, siginfo_t* info, void*) {
  if (!memory().has(info->si_addr)) {
    sigaction(number, &action_before, nullptr);  // the fault occurs again
    return;
  }
  constexpr uintptr_t kPage = 4096;
  void* const page = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(info->si_addr) / kPage * kPage);
  mprotect(page, kPage, PROT_READ | PROT_WRITE);
  touches.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

HostTouches::HostTouches() {
  memory();
  struct sigaction action {};
  action.sa_sigaction = let_host_in;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, &action_before);
}
HostTouches::~HostTouches() {
  take();
  sigaction(SIGSEGV, &action_before, nullptr);
}
size_t HostTouches::take() {
  const size_t count = touches.exchange(0, std::memory_order_relaxed);
  if (count > 0) memory().close_to_host();
  return count;
}

void install() {
  static auto* const runtime = [] {
    auto* const made = new AsyncRuntime;
    register_device_runtime(kPrivateUse, *made);
    register_pinned_memory(kPrivateUse, make_cpu_source());
    return made;
  }();
  static_cast<void>(runtime);
}

size_t waiting() {
  const std::lock_guard lock(device_mutex());
  size_t count = 0;
  for (const AsyncStream* stream : AsyncStream::all()) count += stream->waiting();
  return count;
}

void queue(DeviceStream& stream, std::function<void()> work) { async_stream(stream).give(std::move(work)); }
void queue(DeviceStream& stream, std::function<bool()> is_ready, std::function<void()> work) {
  async_stream(stream).give(std::move(work), std::move(is_ready));
}

void* as_seen_by_device(void* data) { return memory().seen(data); }

}  // namespace tensord::late
