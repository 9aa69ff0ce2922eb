#include "core/base/parallel.h"

#include <omp.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "core/base/cancellation.h"
#include "core/base/execution_context.h"
#include "core/base/memory_limit.h"
#include "core/base/sanitizer_order.h"
#include "core/base/team.h"
#include "core/base/thread.h"

namespace tensord {
int available_cores() {
  static const int cores = [] {
    cpu_set_t mask;
    int from_mask = 1;
    if (sched_getaffinity(0, sizeof(mask), &mask) == 0) from_mask = std::max(1, CPU_COUNT(&mask));
    const int quota = quota_cores(cgroup_folders("cpu"));
    return quota > 0 ? std::min(quota, from_mask) : from_mask;
  }();
  return cores;
}

namespace {

constexpr int kMaxBudget = 1024;
thread_local int proven_threads = 1;  // see largest_team()

// Starts threads to find how many of the wanted ones (including the calling one) can exist at once now. If that is
// fewer, returns half of it: the memory of stacks that have just ended may not be free yet when the team starts.
int count_possible_threads(int wanted) {
  std::atomic<bool> is_over{false};
  std::atomic<size_t> ready{0};
  const auto probe = [&] {
    // The first malloc call of a thread reserves memory that stays reserved, so the team's threads will not have it.
    void* volatile room = std::malloc(1);
    std::free(room);
    ++ready;
    ready.notify_one();
    is_over.wait(false);
  };
  std::vector<Thread> others;
  try {
    others.reserve(static_cast<size_t>(wanted));
    for (int i = 1; i < wanted; ++i) others.emplace_back("probe", probe);
  } catch (const std::exception&) {
    // The threads that did start are the possible ones.
  }
  for (size_t now = ready; now < others.size(); now = ready) ready.wait(now);
  is_over = true;
  is_over.notify_all();
  for (Thread& other : others) other.join();
  const int possible = 1 + static_cast<int>(others.size());
  return possible == wanted ? wanted : std::max(1, possible / 2);
}

int prove_threads(int wanted) {
  if (wanted > proven_threads) proven_threads = std::max(proven_threads, count_possible_threads(wanted));
  return std::min(wanted, proven_threads);
}

}  // namespace

int largest_team() { return proven_threads; }

// OpenMP ends the process if it cannot start a thread, so a budget that the system cannot satisfy is reduced to the
// largest possible one.
void set_thread_budget(int threads) {
  const int possible = prove_threads(std::clamp(threads, 1, kMaxBudget));
  omp_set_num_threads(possible);
  execution_context().threads = possible;
}

int thread_budget() { return omp_in_parallel() ? 1 : std::min(omp_get_max_threads(), kMaxBudget); }

namespace {

// Runs cancellable work in pieces and checks for cancellation between them. The first piece takes about 0.3 ms by the
// grain (one item if the grain does not tell), so short work is one piece; later pieces grow up to kPieceNs. Piece
// sizes are multiples of the first one, so vectorized loops split at the same places as before.
void run_in_pieces(detail::RangeFn fn, void* argument, int64_t begin, int64_t end, int64_t grain) {
  using Clock = std::chrono::steady_clock;
  constexpr int64_t kFirstGrains = 32, kGrowth = 16, kPieceNs = 20'000'000;
  int64_t size = grain > 1 ? grain * std::min(kFirstGrains, (end - begin) / grain + 1) : 1;
  while (end - begin >= size + grain) {
    const auto start = Clock::now();
    fn(argument, begin, begin + size);
    begin += size;
    // If an exception already unwinds this thread, it ends the work; no second exception is needed.
    if (std::uncaught_exceptions() == 0) check_work_cancelled();
    const int64_t ns = std::chrono::nanoseconds(Clock::now() - start).count();
    size *= std::min({kGrowth, std::max<int64_t>(1, kPieceNs / (ns + 1)), (end - begin) / size + 1});
  }
  fn(argument, begin, end);
}

}  // namespace

namespace detail {

TENSORD_NOT_THREAD_SANITIZED void parallel_for_erased(int64_t count, int64_t grain, RangeFn fn, void* argument) {
  if (count <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  int64_t parts = std::min<int64_t>(thread_budget(), count / grain);
  if (parts > proven_threads) [[unlikely]]
    parts = prove_threads(static_cast<int>(parts));  // nobody has set a budget
  const bool may_end_early = execution_context().cancellation != nullptr;
  if (parts <= 1) {
    may_end_early ? run_in_pieces(fn, argument, 0, count, grain) : fn(argument, 0, count);
    return;
  }
  std::exception_ptr error;
  std::atomic<bool> failed{false};
  // An exception on one thread cancels the other threads through a scope of the team. The caller receives only the
  // first exception.
  std::optional<CancellationScope> team_scope;
  if (may_end_early) team_scope.emplace([&failed] { return failed.load(std::memory_order_relaxed); });
  ExecutionContext context = execution_context();
  context.threads = 1;  // what OpenMP uses inside a team
  sanitizer_release(&context);
#pragma omp parallel num_threads(static_cast <int>(parts))
  {
    sanitizer_acquire(&context);
    const int64_t team = omp_get_num_threads(), index = omp_get_thread_num();
    const int64_t begin = count * index / team, end = count * (index + 1) / team;
    try {
      const ExecutionScope scope(context);
      if (begin < end) may_end_early ? run_in_pieces(fn, argument, begin, end, grain) : fn(argument, begin, end);
    } catch (...) {
      if (!failed.exchange(true)) error = std::current_exception();
    }
    sanitizer_release(&failed);
  }
  sanitizer_acquire(&failed);
  if (error) std::rethrow_exception(error);
}

}  // namespace detail
}  // namespace tensord
