#include "core/base/cancellation.h"

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/execution_context.h"

namespace tensord {

CancellationScope::CancellationScope(std::function<bool()> is_cancelled, int64_t deadline_ns)
    : is_cancelled_(std::move(is_cancelled)), deadline_ns_(deadline_ns), outer_(execution_context().cancellation) {
  execution_context().cancellation = this;
}

CancellationScope::~CancellationScope() { execution_context().cancellation = outer_; }

void check_work_cancelled() {
  for (const CancellationScope* scope = execution_context().cancellation; scope != nullptr; scope = scope->outer_) {
    if (scope->is_cancelled_ && scope->is_cancelled_()) fail(ErrorCode::kCancelled, "cancelled");
    const bool is_late = scope->deadline_ns_ != INT64_MAX && Clock::system().now_ns() >= scope->deadline_ns_;
    if (is_late) fail(ErrorCode::kDeadlineExceeded, "it takes too long");
  }
}

bool is_work_cancelled() {
  for (const CancellationScope* scope = execution_context().cancellation; scope != nullptr; scope = scope->outer_) {
    if (scope->is_cancelled_ && scope->is_cancelled_()) return true;
    if (scope->deadline_ns_ != INT64_MAX && Clock::system().now_ns() >= scope->deadline_ns_) return true;
  }
  return false;
}

}  // namespace tensord
