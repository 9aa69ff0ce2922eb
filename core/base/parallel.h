#pragma once

#include <cstdint>
#include <type_traits>

namespace tensord {

// The number of threads, including the calling one, that parallel work started from the calling thread may use. Each
// thread has its own budget (OpenMP's per-thread setting), so each worker of the server has its own team, which oneDNN,
// OpenBLAS and tensord's kernels share. Default: the cores that the process may use, including the cgroup quota.
void set_thread_budget(int threads);
int thread_budget();

// The cores that this process may use by its affinity mask and cgroup CPU quota; at least 1.
int available_cores();

namespace detail {
using RangeFn = void (*)(void* argument, int64_t begin, int64_t end);
void parallel_for_erased(int64_t count, int64_t grain, RangeFn fn, void* argument);
}  // namespace detail

// Calls fn(begin, end) on disjoint ranges that cover [0, count), on threads of the caller's budget with its
// ExecutionContext. Each range has at least `grain` items, so work of fewer than two grains runs on the calling thread.
// A nested parallel_for runs on the calling thread. The first exception reaches the caller after all ranges have ended.
template <class Fn>
void parallel_for(int64_t count, int64_t grain, Fn&& fn) {
  using Plain = std::remove_reference_t<Fn>;
  detail::parallel_for_erased(
      count, grain, [](void* argument, int64_t begin, int64_t end) { (*static_cast<Plain*>(argument))(begin, end); },
      const_cast<void*>(static_cast<const void*>(&fn)));
}

// For less work per thread than this, waking the thread costs more than it saves.
inline constexpr double kMinPartNs = 10'000;

// The number of parts, from 1 to `threads`, that work of `count` items is worth splitting into. For callers that split
// once and run often.
inline int parallel_parts(int64_t count, double cost_per_item_ns, int threads) {
  const double worth = static_cast<double>(count) * cost_per_item_ns / kMinPartNs;
  const int64_t max_parts = count < threads ? count : threads;
  if (!(worth >= 2) || max_parts < 2) return 1;
  return worth < static_cast<double>(max_parts) ? static_cast<int>(worth) : static_cast<int>(max_parts);
}

// parallel_for that splits by the cost of an item on one thread. Work below 20 microseconds in total runs on the
// calling thread.
template <class Fn>
void parallel_for_cost(int64_t count, double cost_per_item_ns, Fn&& fn) {
  const double grain = cost_per_item_ns > 0 ? kMinPartNs / cost_per_item_ns : static_cast<double>(count);
  const bool is_small = grain > static_cast<double>(count);
  parallel_for(count, is_small ? (count > 1 ? count : 1) : static_cast<int64_t>(grain) + 1, fn);
}

// Calls fn(part) once for each part in [0, parts) on at most the caller's budget of threads. For work with a fixed
// split: the result of a part never depends on the number of threads.
template <class Fn>
void parallel_run(int parts, Fn&& fn) {
  parallel_for(parts, 1, [&fn](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) fn(static_cast<int>(part));
  });
}

}  // namespace tensord
