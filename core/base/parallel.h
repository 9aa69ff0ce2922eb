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
using RangeFn = void (*)(void* context, int64_t begin, int64_t end);
void parallel_for_erased(int64_t count, int64_t grain, RangeFn fn, void* context);
}  // namespace detail

// Calls fn(begin, end) on disjoint ranges that cover [0, count), from several
// threads of the caller's budget. Ranges hold at least `grain` items, so work
// smaller than two grains runs on the calling thread. Inside a parallel_for it
// runs on the calling thread. The first exception is thrown to the caller after
// all ranges ended.
template <class Fn>
void parallel_for(int64_t count, int64_t grain, Fn&& fn) {
  using Plain = std::remove_reference_t<Fn>;
  detail::parallel_for_erased(
      count, grain, [](void* context, int64_t begin, int64_t end) { (*static_cast<Plain*>(context))(begin, end); },
      const_cast<void*>(static_cast<const void*>(&fn)));
}

}  // namespace tensord
