#pragma once

#include <span>

#include "core/ops/op.h"

namespace tensord::ops {

// Sees the operators that a thread calls, at one of two heights:
//   Functionality::kTracer        above autograd: each operator that is called, whole; not those that it calls in turn.
//                                 Tracing is made of it.
//   Functionality::kStepRecorder  below autograd: each operator that is computed. A composite operator is reported as
//                                 the operators that it calls, and operators of a backward pass like any others. Calls
//                                 made inside operators that are not composite are not reported. While there is one,
//                                 gradients are computed operator by operator, not fused.
// What it throws comes out of the call. Observers stay with their thread.
class CallObserver {
 public:
  virtual ~CallObserver() = default;
  virtual void before(const Op& op, std::span<const Value> arguments);
  // Called after in-place writes are done. It may replace the returns.
  virtual void after(const Op& op, std::span<const Value> arguments, std::span<Value> returns) = 0;
};

// The calling thread's observer at a height, or null.
CallObserver* observer_at(Functionality height);
// Returns the previous one.
CallObserver* set_observer(Functionality height, CallObserver* observer);

// Sets an observer until the end of the scope.
class ObserverScope {
 public:
  ObserverScope(Functionality height, CallObserver* observer)
      : height_(height), before_(set_observer(height, observer)) {}
  ~ObserverScope() { set_observer(height_, before_); }
  ObserverScope(const ObserverScope&) = delete;
  ObserverScope& operator=(const ObserverScope&) = delete;

 private:
  const Functionality height_;
  CallObserver* const before_;
};

}  // namespace tensord::ops
