#include "core/base/fault_guard.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>

#include "core/base/error.h"
#include "core/base/mutex.h"

namespace tensord {

struct FaultGuard::Range {
  std::atomic<uintptr_t> begin{0};  // 0: free
  std::atomic<size_t> size_bytes{0};
  std::atomic<bool> has_faulted{false};
};

// All guarded ranges. The signal handler reads them without a lock.
struct FaultGuard::Table {
  static constexpr size_t kMaxRanges = 8192;
  Mutex mutex;  // guards the claiming of a range
  std::array<Range, kMaxRanges> ranges;
  struct sigaction previous {};

  // Never destroyed, because a fault may occur while the process exits.
  static Table& get() {
    static Table& table = *new Table;
    return table;
  }

  Table() {
    struct sigaction action {};
    action.sa_sigaction = [](int signal, siginfo_t* info, void* context) { get().on_fault(signal, info, context); };
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    const int error = sigaction(SIGBUS, &action, &previous);
    if (error != 0) fail(ErrorCode::kInternal, "cannot handle SIGBUS");
  }

  // Runs in a signal handler, so it uses only atomics and system calls.
  void on_fault(int signal, siginfo_t* info, void* context) {
    const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
    for (Range& range : ranges) {
      const uintptr_t begin = range.begin.load(std::memory_order_acquire);
      const size_t size = range.size_bytes.load(std::memory_order_acquire);
      const bool is_here = begin != 0 && address >= begin && address - begin < size;
      if (!is_here || range.begin.load(std::memory_order_acquire) != begin) continue;
      range.has_faulted.store(true, std::memory_order_seq_cst);
      // A direct system call, because sanitizers wrap the function of libc.
      const long mapped = syscall(SYS_mmap, begin, size, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
      if (mapped == static_cast<long>(begin)) return;
    }
    pass_on(signal, info, context);
  }

  void pass_on(int signal, siginfo_t* info, void* context) const {
    if (previous.sa_flags & SA_SIGINFO) {
      previous.sa_sigaction(signal, info, context);
    } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
      previous.sa_handler(signal);
    } else {
      // The instruction runs again, raises the signal again, and now ends the process.
      ::signal(SIGBUS, SIG_DFL);
    }
  }
};

FaultGuard::FaultGuard(void* data, size_t size_bytes) : range_(nullptr) {
  Table& table = Table::get();
  const MutexLock lock(table.mutex);
  for (Range& range : table.ranges) {
    if (range.begin.load(std::memory_order_relaxed) != 0) continue;
    range.has_faulted.store(false, std::memory_order_relaxed);
    range.size_bytes.store(size_bytes, std::memory_order_relaxed);
    range.begin.store(reinterpret_cast<uintptr_t>(data), std::memory_order_release);
    range_ = &range;
    return;
  }
  fail(ErrorCode::kResourceExhausted, "more than ", Table::kMaxRanges, " mappings are guarded");
}

FaultGuard::~FaultGuard() { range_->begin.store(0, std::memory_order_release); }

bool FaultGuard::has_faulted() const { return range_->has_faulted.load(std::memory_order_seq_cst); }

}  // namespace tensord
