#include "core/autograd/recorder.h"

#include <algorithm>

#include "core/autograd/anomaly.h"
#include "core/autograd/differentiable.h"
#include "core/autograd/op_info.h"
#include "core/autograd/op_node.h"
#include "core/autograd/variable.h"
#include "core/autograd/view.h"
#include "core/ops/attributes/written.h"
#include "core/ops/dispatch.h"
#include "core/ops/run.h"
#include "ops/view.h"

namespace tensord::autograd {
namespace {

using ops::Op;
using ops::Value;
using Role = OpInfo::Role;
using Arguments = std::span<const Value>;

// Whether fn holds for the argument, or for an item of it.
template <class Fn>
bool any_of(const Value& argument, Fn&& fn) {
  if (argument.is_tensor()) return fn(argument.to_tensor());
  if (!argument.is_list()) return false;
  for (const Value& item : argument.to_list()->items) {
    if (item.is_tensor() && fn(item.to_tensor())) return true;
  }
  return false;
}

bool is_argument(const OpInfo& info, Arguments arguments, const Tensor& tensor) {
  for (const uint8_t i : info.tensors) {
    if (any_of(arguments[i], [&](const Tensor& argument) { return argument.is_same(tensor); })) return true;
  }
  return false;
}

// Bits of the arguments that require a gradient; none if nothing is recorded.
uint64_t requiring_bits(const OpInfo& info, Arguments arguments) {
  uint64_t bits = 0;
  if (!is_grad_enabled()) return bits;
  for (const uint8_t i : info.tensors) {
    if (any_of(arguments[i], [](const Tensor& tensor) { return requires_grad(tensor); })) bits |= uint64_t{1} << i;
  }
  return bits;
}

// A call that autograd handles.
struct Call {
  const OpInfo& info;
  const Op& op;
  const ops::CallKeys& keys;
  Arguments arguments;
  std::vector<Value>& returns;

  void compute() const {
    const BelowAutogradScope below;
    ops::redispatch(op, keys.below(Functionality::kADInplaceOrView), arguments, returns);
  }
};

bool share_memory(const Tensor& a, const Tensor& b) {
  return a.is_meta() ? a.alias_id() == b.alias_id() : a.storage() == b.storage();  // no meta tensor has id 0
}

// Visits the tensors among the returns by index, items of lists one by one; None counts.
template <class Fn>
void for_each_result(std::span<const Value> returns, Fn&& fn) {
  for (const Value& value : returns) {
    if (value.is_tensor()) {
      fn(value.to_tensor());
    } else if (value.is_none()) {
      fn(Tensor());
    } else if (is_tensor_list(value)) {
      for (const Value& item : value.to_list()->items) fn(item.is_tensor() ? item.to_tensor() : Tensor());
    }
  }
}

void track_result(const OpInfo& info, const Tensor& source, const Tensor& result) {
  if (!share_memory(source, result)) return;
  if (source.impl()->is_inference) {
    result.impl()->is_inference = true;
    return;
  }
  const Creation creation = !is_grad_enabled() ? Creation::kNoGrad
                            : info.gives_many  ? Creation::kMultiOutput
                                               : Creation::kDefault;
  track_view(source, result, creation);
}

IntrusivePtr<OpNode> make_node(const OpInfo& info, const Op& op) {
  if (!is_anomaly_mode()) [[likely]]
    return make_intrusive<OpNode>(info);
  const OriginScope scope([](const void* op) { return static_cast<const Op*>(op)->schema.full_name(); }, &op);
  return make_intrusive<OpNode>(info);
}

bool writes(const Op& op, Arguments arguments) {
  return op.writes_when == -1 || arguments[static_cast<size_t>(op.writes_when)].to_bool();
}

uint64_t written_bits(const OpInfo& info, const Op& op, Arguments arguments) {
  uint64_t bits = 0;
  if (info.written.empty() || !writes(op, arguments)) return bits;
  for (const uint8_t i : info.written) bits |= uint64_t{1} << i;
  return bits;
}

bool has_floating_result(const OpInfo& info, Arguments arguments, std::span<const Value> results) {
  bool found = false;
  for_each_result(results, [&](const Tensor& result) {
    found |= result.defined() && is_differentiable(result.dtype()) && !is_argument(info, arguments, result);
  });
  return found;
}

void record_call(const Call& call) {
  const auto& [info, op, keys, arguments, returns] = call;
  const size_t first = returns.size();
  IntrusivePtr<OpNode> node;
  const uint64_t requiring = requiring_bits(info, arguments);
  const bool has_gradient = static_cast<bool>(info.gradient_op->gradient);
  if (requiring && has_gradient) {
    node = make_node(info, op);
    node->save_inputs(arguments, requiring, written_bits(info, op, arguments));
  }
  call.compute();
  const auto results = std::span<const Value>(returns).subspan(first);
  if (requiring && !has_gradient && has_floating_result(info, arguments, results)) {
    node = make_node(info, op);  // which will fail
    node->save_inputs(arguments, requiring, 0);
  }
  if (!node && !info.is_view) return;
  const bool has_source = info.is_view && arguments[info.target].is_tensor();
  uint32_t number = 0;
  for_each_result(results, [&](const Tensor& result) {
    const uint32_t result_nr = number++;
    // An operator may return an argument unchanged.
    const bool is_new = result.defined() && !is_argument(info, arguments, result);
    if (is_new && has_source) track_result(info, arguments[info.target].to_tensor(), result);
    if (!node) return;
    node->add_result(is_new ? result : Tensor());
    if (is_new && is_differentiable(result.dtype())) set_history(result, node, result_nr);
  });
  if (node) node->save_outputs(results);
}

void check_not_inference(const OpInfo& info, Arguments arguments) {
  for (const uint8_t i : info.written) {
    if (!arguments[i].is_tensor()) continue;
    check(!arguments[i].to_tensor().impl()->is_inference,
          "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a "
          "normal tensor before doing inplace update.");
  }
}

void record_write(const Call& call) {
  const auto& [info, op, keys, arguments, returns] = call;
  const Tensor target = arguments[info.target].to_tensor();
  const uint64_t requiring = is_differentiable(target.dtype()) ? requiring_bits(info, arguments) : 0;
  if (requiring == 0) return call.compute();
  check_write(target);
  auto node = make_node(info, op);
  node->save_inputs(arguments, requiring, written_bits(info, op, arguments));
  call.compute();
  node->add_result(target);
  const Value result(target);
  node->save_outputs({&result, 1});
  rebase_history(target, node);
}

// The functional variant is recorded; its result is copied into the target.
void record_composite_write(const Call& call) {
  const auto& [info, op, keys, arguments, returns] = call;
  if (requiring_bits(info, arguments) == 0) return call.compute();
  static const Op& copy = ops::get_op("aten::copy_");
  const Tensor& target = arguments[info.target].to_tensor();
  std::vector<Value> given(arguments.begin(), arguments.end()), results;
  const bool is_complex = keys.set.has(Functionality::kComplex);
  if (is_complex) given.front() = ops::clone(target);  // gradients may read it
  ops::run(*op.base, given, results);
  const Tensor& result = results.front().to_tensor();
  if (is_complex) ops::check_takes(*op.base, result.dtype(), target, arguments);
  check(result.sizes() == target.sizes(), op.name(), ": output with shape ", target.sizes(),
        " doesn't match the broadcast shape ", result.sizes());
  const Value copied[] = {target, result, false};
  ops::run(copy, copied, returns);
}

std::string short_name(const Op& op) {
  return op.schema.name.substr(op.schema.name.rfind(':') + 1);  // npos + 1 is 0
}

void record(const ops::KernelFunction&, const Op& op, const ops::CallKeys& keys, Arguments arguments,
            std::vector<Value>& returns) {
  const OpInfo& info = info_of(op);
  const Role role = keys.set.has(Functionality::kComplex) ? info.complex_role : info.role;
  const Call call{info, op, keys, arguments, returns};
  if (role != Role::kPassthrough && !info.written.empty() && writes(op, arguments))
    check_not_inference(info, arguments);
  switch (role) {
    case Role::kPassthrough:
      return ops::redispatch(op, keys.below(Functionality::kADInplaceOrView), arguments, returns);
    case Role::kConstant: return call.compute();
    case Role::kRecord: return record_call(call);
    case Role::kWrite: return record_write(call);
    case Role::kWriteComposite: return record_composite_write(call);
    case Role::kOut:
      if (requiring_bits(info, arguments) != 0) {
        fail(ErrorCode::kInvalidArgument, short_name(op),
             "(): functions with out=... arguments don't support automatic differentiation, but one of the arguments "
             "requires grad.");
      }
      return call.compute();
  }
}

const ops::KernelFunction kRecord{.run = record};

// For calls with a tensor that may need a gradient.
const ops::KernelFunction* autograd_kernel(const Op& op) {
  return OpInfo::role_of(op) == Role::kPassthrough ? nullptr : &kRecord;
}
// For all calls that make views or write, so that views are tracked and inference tensors stay inference tensors.
const ops::KernelFunction* view_kernel(const Op& op) {
  return op.is_view || !op.is_pure ? autograd_kernel(op) : nullptr;
}

}  // namespace

void install_recorder() {
  ops::set_kernels(Functionality::kAutograd, autograd_kernel);
  ops::set_kernels(Functionality::kADInplaceOrView, view_kernel);
}

}  // namespace tensord::autograd
