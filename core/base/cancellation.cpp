#include "core/base/cancellation.h"

#include <utility>

#include "core/base/clock.h"
#include "core/base/error.h"

namespace tensord {
namespace {

thread_local const CancellationScope* innermost = nullptr;

}  // namespace

CancellationScope::CancellationScope(std::function<bool()> is_cancelled, int64_t deadline_ns)
    : is_cancelled_(std::move(is_cancelled)), deadline_ns_(deadline_ns), outer_(innermost) {
  innermost = this;
}

CancellationScope::~CancellationScope() { innermost = outer_; }

const CancellationScope* CancellationScope::current() { return innermost; }

CancellationScope::Share::Share(const CancellationScope* scope) : before_(std::exchange(innermost, scope)) {}

CancellationScope::Share::~Share() { innermost = before_; }

void check_work_cancelled() {
  for (const CancellationScope* scope = innermost; scope != nullptr; scope = scope->outer_) {
    if (scope->is_cancelled_ && scope->is_cancelled_()) fail(ErrorCode::kCancelled, "cancelled");
    const bool is_late = scope->deadline_ns_ != INT64_MAX && Clock::system().now_ns() >= scope->deadline_ns_;
    if (is_late) fail(ErrorCode::kDeadlineExceeded, "it takes too long");
  }
}

bool is_work_cancelled() {
  for (const CancellationScope* scope = innermost; scope != nullptr; scope = scope->outer_) {
    if (scope->is_cancelled_ && scope->is_cancelled_()) return true;
    if (scope->deadline_ns_ != INT64_MAX && Clock::system().now_ns() >= scope->deadline_ns_) return true;
  }
  return false;
}

}  // namespace tensord
