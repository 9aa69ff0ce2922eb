#pragma once

#include <cstdint>
#include <type_traits>

namespace tensord {

// Threads that parallel work started from the calling thread may use, itself
// included. Each thread has its own budget (OpenMP's per-thread setting), so
// every worker of the server has a team of its own and oneDNN, OpenBLAS and
// tensord's kernels share it. Default: the cores this process may use, cgroup
// quota included.
void set_thread_budget(int threads);
int thread_budget();

// Cores this process may use: affinity mask and cgroup CPU quota, at least 1.
int available_cores();

namespace detail {
using RangeFn = void (*)(void* argument, int64_t begin, int64_t end);
void parallel_for_erased(int64_t count, int64_t grain, RangeFn fn, void* argument);
}  // namespace detail

// Calls fn(begin, end) on disjoint ranges that cover [0, count), from several
// threads of the caller's budget, with its ExecutionContext. Ranges hold at least `grain` items, so work
// smaller than two grains runs on the calling thread. Inside a parallel_for it
// runs on the calling thread. The first exception is thrown to the caller after
// all ranges ended.
template <class Fn>
void parallel_for(int64_t count, int64_t grain, Fn&& fn) {
  using Plain = std::remove_reference_t<Fn>;
  detail::parallel_for_erased(
      count, grain, [](void* argument, int64_t begin, int64_t end) { (*static_cast<Plain*>(argument))(begin, end); },
      const_cast<void*>(static_cast<const void*>(&fn)));
}

// Below this much work per thread, waking the thread costs more than it saves.
inline constexpr double kMinPartNs = 10'000;

// Into how many parts work of `count` items is worth cutting for `threads` threads, 1 to `threads`. For those
// who cut once and run often.
inline int parallel_parts(int64_t count, double cost_per_item_ns, int threads) {
  const double worth = static_cast<double>(count) * cost_per_item_ns / kMinPartNs;
  const int64_t max_parts = count < threads ? count : threads;
  if (!(worth >= 2) || max_parts < 2) return 1;
  return worth < static_cast<double>(max_parts) ? static_cast<int>(worth) : static_cast<int>(max_parts);
}

// The same as parallel_for, cut by what an item costs on one thread: less than 20 microseconds in all
// runs on the calling thread.
template <class Fn>
void parallel_for_cost(int64_t count, double cost_per_item_ns, Fn&& fn) {
  const double grain = cost_per_item_ns > 0 ? kMinPartNs / cost_per_item_ns : static_cast<double>(count);
  const bool is_small = grain > static_cast<double>(count);
  parallel_for(count, is_small ? (count > 1 ? count : 1) : static_cast<int64_t>(grain) + 1, fn);
}

// Calls fn(part) once for each part in [0, parts), from at most the caller's budget of threads, for work
// that was cut beforehand: what a part does never depends on how many threads there are.
template <class Fn>
void parallel_run(int parts, Fn&& fn) {
  parallel_for(parts, 1, [&fn](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) fn(static_cast<int>(part));
  });
}

}  // namespace tensord
