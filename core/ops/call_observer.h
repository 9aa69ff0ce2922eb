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

}  // namespace tensord::ops
