#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>

namespace tensord {

// What the calling thread does from here to the end of the scope may be given up: somebody stops wanting it, or its
// time is over. Long work on that thread looks with check_work_cancelled(). Scopes nest; the outer ones count too.
// Threads that work for this one take the scope over with its ExecutionContext.
class CancellationScope {
 public:
  // `is_cancelled` is called by any thread that works in the scope. `deadline_ns` is of Clock::system(); INT64_MAX:
  // none.
  explicit CancellationScope(std::function<bool()> is_cancelled, int64_t deadline_ns = INT64_MAX);
  ~CancellationScope();
  CancellationScope(const CancellationScope&) = delete;
  CancellationScope& operator=(const CancellationScope&) = delete;

 private:
  friend bool is_work_cancelled();
  friend void check_work_cancelled();
  const std::function<bool()> is_cancelled_;
  const int64_t deadline_ns_;
  const CancellationScope* const outer_;
};

bool is_work_cancelled();
// Throws Error{kCancelled} or Error{kDeadlineExceeded}.
void check_work_cancelled();

// Calls fn(begin, end) for pieces of [0, count) in order, on the calling thread, and looks before each but the first.
// parallel_for does so by itself; this is for long work of one thread.
template <class Fn>
void in_pieces(int64_t count, int64_t piece, Fn&& fn) {
  for (int64_t begin = 0; begin < count; begin += piece) {
    if (begin > 0) check_work_cancelled();
    fn(begin, std::min(count, begin + piece));
  }
}
constexpr int64_t kPieceElements = int64_t{1} << 20;  // some milliseconds of most loops over elements

}  // namespace tensord
