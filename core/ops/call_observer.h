#pragma once

#include <span>

#include "core/ops/op.h"

namespace tensord::ops {

// Told of every operator that a thread calls, after it ran: not of those that operators call in turn. Tracing is made
// of it.
class CallObserver {
 public:
  virtual ~CallObserver() = default;
  // What it throws comes out of the call. Arguments as the operator got them; what it wrote in place is written. It may
  // put others in the place of the returns.
  virtual void called(const Op& op, std::span<const Value> arguments, std::span<Value> returns) = 0;
};

// The calling thread's observer; null: none. Gives the one before.
CallObserver* set_call_observer(CallObserver* observer);
CallObserver* call_observer();

// Reports every operator that a thread computes, below autograd. A composite operator is reported as the operators that
// it calls, and operators of a backward pass are reported like any others. Calls made inside non-composite operators
// are not reported.
class ComputeObserver {
 public:
  virtual ~ComputeObserver() = default;
  // Before the operator runs, and after. What they throw comes out of the call.
  virtual void computing(const Op& op, std::span<const Value> arguments) = 0;
  virtual void computed(const Op& op, std::span<const Value> arguments, std::span<const Value> returns) = 0;
};

// The calling thread's; null: none. Gives the one before. While there is one, gradients are computed operator by
// operator, not fused.
ComputeObserver* set_compute_observer(ComputeObserver* observer);
ComputeObserver* compute_observer();

}  // namespace tensord::ops
