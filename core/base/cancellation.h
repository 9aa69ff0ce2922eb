#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>

namespace tensord {

// Makes the calling thread's work cancellable until the end of the scope: the caller may give the result up, or a
// deadline may pass. Long work on the thread polls check_work_cancelled(). Scopes nest, and outer scopes still apply.
// Threads that work for this one inherit the scope with its ExecutionContext.
class CancellationScope {
 public:
  // Any thread that works in the scope calls `is_cancelled`. `deadline_ns` is a time of Clock::system(); INT64_MAX
  // means no deadline.
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

// Calls fn(begin, end) for successive pieces of [0, count) on the calling thread, and checks for cancellation before
// each piece except the first. parallel_for checks by itself; this is for long single-threaded work.
template <class Fn>
void in_pieces(int64_t count, int64_t piece, Fn&& fn) {
  for (int64_t begin = 0; begin < count; begin += piece) {
    if (begin > 0) check_work_cancelled();
    fn(begin, std::min(count, begin + piece));
  }
}
constexpr int64_t kPieceElements = int64_t{1} << 20;  // a few milliseconds for most loops over elements

}  // namespace tensord
