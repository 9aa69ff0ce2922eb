#include "core/autograd/autocast.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "core/autograd/variable.h"
#include "core/ops/attributes/autocast.h"
#include "core/ops/dispatch.h"
#include "core/ops/run.h"
#include "ops/view.h"

namespace tensord::autograd {
namespace {

using ops::AutocastPolicy;
using ops::Op;
using ops::Value;
using Arguments = std::span<const Value>;

// A parameter and its copy. It holds the parameter and the memory that was cast, so that no others get their addresses.
struct CastParameter {
  Tensor parameter, memory, cast;
  uint32_t version = 0;

  // Not after a write, nor after an assignment to `data`, which gives the parameter other memory.
  bool is_current() const {
    return cast.defined() && version == parameter.version() && memory.storage() == parameter.storage() &&
           memory.offset() == parameter.offset() && memory.sizes() == parameter.sizes() &&
           memory.strides() == parameter.strides();
  }
};

struct AutocastCache {
  int depth = 0;  // of the thread's scopes
  std::map<std::pair<const TensorImpl*, DType>, CastParameter> casts;
};
thread_local AutocastCache autocast_cache;

AutocastType& type_of(AutocastState& state, DeviceKind device) { return device == kCPU ? state.cpu : state.cuda; }

bool is_eligible(const Tensor& tensor, DeviceKind device) {
  return tensor.defined() && tensor.is_strided() && tensor.device().kind == device && is_floating(tensor.dtype()) &&
         tensor.dtype() != DType::kFloat64;
}

bool is_cacheable(const Tensor& tensor, DType dtype) {
  return autocast_cache.depth > 0 && is_autocast_cache_enabled() && is_grad_enabled() && dtype != DType::kFloat32 &&
         tensor.dtype() == DType::kFloat32 && requires_grad(tensor) && is_leaf(tensor) && !is_view(tensor);
}

Tensor cast_tensor(const Tensor& tensor, DType dtype, DeviceKind device) {
  if (!is_eligible(tensor, device) || tensor.dtype() == dtype) return tensor;
  if (!is_cacheable(tensor, dtype)) return ops::to(tensor, dtype);
  CastParameter& known = autocast_cache.casts[{tensor.impl(), dtype}];
  if (!known.is_current()) known = {tensor, detach(tensor), ops::to(tensor, dtype), tensor.version()};
  return known.cast;
}

// Calls fn for each tensor of the arguments, items of lists one by one.
template <class Fn>
void for_each_tensor(Arguments arguments, Fn&& fn) {
  for (const Value& value : arguments) {
    if (value.is_tensor()) fn(value.to_tensor());
    if (!value.is_list()) continue;
    for (const Value& item : value.to_list()->items) {
      if (item.is_tensor()) fn(item.to_tensor());
    }
  }
}

Value cast_value(const Value& value, DType dtype, DeviceKind device) {
  if (value.is_tensor()) return cast_tensor(value.to_tensor(), dtype, device);
  if (!value.is_list()) return value;
  const auto& items = value.to_list()->items;
  const bool is_cast = std::ranges::any_of(items, [&](const Value& item) {
    return item.is_tensor() && is_eligible(item.to_tensor(), device) && item.to_tensor().dtype() != dtype;
  });
  if (!is_cast) return value;
  std::vector<Value> cast;
  cast.reserve(items.size());
  for (const Value& item : items)
    cast.push_back(item.is_tensor() ? Value(cast_tensor(item.to_tensor(), dtype, device)) : item);
  return ops::make_list(value.to_list()->element, std::move(cast));
}

// float32 if an argument has it, or if 16-bit types differ.
DType widest_type(Arguments arguments, DType lower, DeviceKind device) {
  DType widest = lower;
  for_each_tensor(arguments, [&](const Tensor& tensor) {
    if (is_eligible(tensor, device) && tensor.dtype() != lower) widest = DType::kFloat32;
  });
  return widest;
}

[[noreturn]] void refuse(const Op& op) {
  fail(ErrorCode::kInvalidArgument, op.name(),
       " is not safe in autocast: probabilities near 1 round to 1 in 16 bits. Use binary_cross_entropy_with_logits, or "
       "leave autocast for it and cast its input to float32");
}

// The policy's cell. Operators that the call makes are not cast again.
void call_with_casts(const ops::KernelFunction&, const Op& op, const ops::CallKeys& keys, Arguments arguments,
                     std::vector<Value>& returns) {
  const DeviceKind device = keys.device.kind;
  const AutocastPolicy policy = op.attributes.get<ops::Autocast>()->on(device);
  const std::optional<DType> lower = autocast_dtype(device);
  if (!lower || policy == AutocastPolicy::kNone)
    return ops::redispatch(op, keys.below(Functionality::kAutocast), arguments, returns);
  if (policy == AutocastPolicy::kRefused) refuse(op);
  const ContextPart<&ExecutionContext::excluded_keys> below(execution_context().excluded_keys |
                                                            Functionality::kAutocast);
  const DType dtype = policy == AutocastPolicy::kLower     ? *lower
                      : policy == AutocastPolicy::kFloat32 ? DType::kFloat32
                                                           : widest_type(arguments, *lower, device);
  std::vector<Value> cast;
  cast.reserve(arguments.size());
  for (const Value& value : arguments) cast.push_back(cast_value(value, dtype, device));
  ops::run(op, cast, returns);
}

const ops::KernelFunction kCasts{.run = call_with_casts};

const ops::KernelFunction* autocast_kernel(const Op& op) {
  return op.attributes.get<ops::Autocast>() ? &kCasts : nullptr;
}

}  // namespace

void install_autocast() { ops::set_kernels(Functionality::kAutocast, autocast_kernel); }

std::optional<DType> autocast_dtype(DeviceKind device) {
  const AutocastState& state = execution_context().autocast;
  const AutocastType type = device == kCPU ? state.cpu : device == kCUDA ? state.cuda : AutocastType::kOff;
  if (type == AutocastType::kOff) return std::nullopt;
  return type == AutocastType::kBFloat16 ? DType::kBFloat16 : DType::kFloat16;
}

AutocastGuard::AutocastGuard(DeviceKind device, DType dtype, bool is_enabled, bool is_cache_enabled)
    : before_(execution_context().autocast),
      was_included_(execution_context().included_keys.has(Functionality::kAutocast)) {
  check(device == kCPU || device == kCUDA, "autocast: expected the device cpu or cuda, got ", name_of(device));
  check(!is_enabled || dtype == DType::kBFloat16 || dtype == DType::kFloat16,
        "autocast: expected the type bfloat16 or float16, got ", name_of(dtype));
  ExecutionContext& context = execution_context();
  type_of(context.autocast, device) = !is_enabled                 ? AutocastType::kOff
                                      : dtype == DType::kBFloat16 ? AutocastType::kBFloat16
                                                                  : AutocastType::kFloat16;
  context.autocast.is_cache_enabled = is_cache_enabled;
  const bool is_on = context.autocast.cpu != AutocastType::kOff || context.autocast.cuda != AutocastType::kOff;
  context.included_keys =
      is_on ? context.included_keys | Functionality::kAutocast : context.included_keys - Functionality::kAutocast;
  ++autocast_cache.depth;
}

AutocastGuard::~AutocastGuard() {
  ExecutionContext& context = execution_context();
  context.autocast = before_;
  context.included_keys = was_included_ ? context.included_keys | Functionality::kAutocast
                                        : context.included_keys - Functionality::kAutocast;
  if (--autocast_cache.depth == 0) clear_autocast_cache();
}

void clear_autocast_cache() { autocast_cache.casts.clear(); }

}  // namespace tensord::autograd
