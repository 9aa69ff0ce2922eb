#include "core/ops/call_observer.h"

#include <utility>

#include "core/base/error.h"
#include "core/ops/attributes/written.h"
#include "core/ops/dispatch.h"
#include "core/ops/run.h"

namespace tensord::ops {
namespace {

using Arguments = std::span<const Value>;

thread_local CallObserver* tracer = nullptr;
thread_local CallObserver* recorder = nullptr;

CallObserver*& place_of(Functionality height) { return height == Functionality::kTracer ? tracer : recorder; }

// Reports the call, but not the calls that it makes.
template <Functionality height>
void observe(const KernelFunction&, const Op& op, const CallKeys& keys, Arguments arguments,
             std::vector<Value>& returns) {
  CallObserver* const observer = observer_at(height);
  check_internal(observer != nullptr, "a call is reported to nobody");
  const ObserverScope pause(height, nullptr);
  const size_t before = returns.size();
  observer->before(op, arguments);
  redispatch(op, keys.below(height), arguments, returns);
  observer->after(op, arguments, std::span(returns).subspan(before));
}

// Parts of such tensors are read by code other than operators.
bool is_reported_whole(const CallKeys& keys) { return keys.set.has_any(kCompoundLayouts | Functionality::kComplex); }

void record_composite(const KernelFunction& self, const Op& op, const CallKeys& keys, Arguments arguments,
                      std::vector<Value>& returns) {
  if (is_reported_whole(keys)) return observe<Functionality::kStepRecorder>(self, op, keys, arguments, returns);
  redispatch(op, keys.below(Functionality::kStepRecorder), arguments, returns);
}

// The in-place variant of a composite runs the composite and copies its result into the target.
void record_composite_write(const KernelFunction& self, const Op& op, const CallKeys& keys, Arguments arguments,
                            std::vector<Value>& returns) {
  if (is_reported_whole(keys)) return observe<Functionality::kStepRecorder>(self, op, keys, arguments, returns);
  static const Op& copy = get_op("aten::copy_");
  std::vector<Value> results;
  run(*op.base, arguments, results);
  const Tensor& target = arguments.front().to_tensor();
  check_apart(*op.base, target, arguments.subspan(1));
  check(results.front().to_tensor().sizes() == target.sizes(), op.name(), ": output with shape ", target.sizes(),
        " doesn't match the broadcast shape ", results.front().to_tensor().sizes());
  const Value copied[] = {target, results.front(), false};
  run_below(Functionality::kADInplaceOrView, copy, copied, returns);
}

const KernelFunction kTrace{.run = observe<Functionality::kTracer>};
const KernelFunction kRecord{.run = observe<Functionality::kStepRecorder>};
const KernelFunction kRecordComposite{.run = record_composite};
const KernelFunction kRecordCompositeWrite{.run = record_composite_write};

}  // namespace

void CallObserver::before(const Op&, Arguments) {}

CallObserver* observer_at(Functionality height) { return place_of(height); }

CallObserver* set_observer(Functionality height, CallObserver* observer) {
  DispatchKeySet& included = execution_context().included_keys;
  included = observer ? included | height : included - height;
  return std::exchange(place_of(height), observer);
}

const KernelFunction* tracing_kernel(const Op&) { return &kTrace; }

const KernelFunction* recording_kernel(const Op& op) {
  if (op.is_composite && !op.base) return &kRecordComposite;
  const bool is_inplace = op.base && op.base->schema.name != op.schema.name;
  return is_inplace && op.base->is_composite ? &kRecordCompositeWrite : &kRecord;
}

}  // namespace tensord::ops
