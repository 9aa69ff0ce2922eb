#include "core/ops/run.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "core/base/error.h"
#include "core/ops/attributes/writes_part.h"
#include "core/ops/attributes/written.h"
#include "core/ops/boxed.h"
#include "core/ops/call_observer.h"
#include "core/ops/complex.h"
#include "core/ops/named_error.h"

namespace tensord::ops {
namespace {

// The device an operator runs on: that of its tensors. CPU tensors without dimensions may
// join tensors of another device.
Device device_of(const Op& op, std::span<const Value> arguments) {
  Device device;
  bool is_known = false, from_scalar = false;
  const auto visit = [&](const Tensor& tensor) {
    if (!tensor.defined()) return;
    const bool is_scalar = tensor.ndim() == 0 && tensor.device().is_host();
    if (!is_known || (from_scalar && !is_scalar)) {
      device = tensor.device();
      from_scalar = is_scalar;
      is_known = true;
    } else if (!(tensor.device() == device) && !is_scalar) {
      fail(ErrorCode::kInvalidArgument, "Expected all tensors to be on the same device, but found ", to_string(device),
           " and ", to_string(tensor.device()));
    }
  };
  for (const Value& argument : arguments) {
    if (argument.is_tensor()) visit(argument.to_tensor());
    if (argument.is_list() && argument.to_list()->element->kind() == TypeKind::kTensor) {
      for (const Value& item : argument.to_list()->items) {
        if (item.is_tensor()) visit(item.to_tensor());
      }
    }
  }
  if (!is_known) {
    for (size_t i = 0; i < arguments.size() && i < op.schema.arguments.size(); ++i) {
      if (arguments[i].is_device()) device = arguments[i].to_device();
    }
  }
  return device;
}

const KernelFn& kernel_of(const Op& op, Device device) {
  const KernelFn& kernel = op.kernels[static_cast<size_t>(device.kind)];
  if (!kernel) {
    fail(ErrorCode::kUnimplemented, "has no kernel for ", name_of(device.kind));
  }
  return kernel;
}

const DirectFn& dynamic_of(const Op& op, Device device) {
  const DirectFn& entry = op.dynamic[static_cast<size_t>(device.kind)];
  if (!entry) fail(ErrorCode::kUnimplemented, "has no kernel for ", name_of(device.kind));
  return entry;
}

void run_direct(const Op& op, std::span<const Value> arguments, std::vector<Value>& returns) {
  if (op.way != Way::kDynamic) return op.direct(arguments, returns);
  dynamic_of(op, device_of(op, arguments))(arguments, returns);
}

// The stream's work on them outlasts the call.
void record_streams(DeviceStream& stream, const Value& value) {
  if (value.is_tensor() && value.to_tensor().defined() && value.to_tensor().storage()) {
    value.to_tensor().storage()->record_stream(stream);
  } else if (value.is_list() && value.to_list()->element->kind() == TypeKind::kTensor) {
    for (const Value& item : value.to_list()->items) record_streams(stream, item);
  }
}

void run_kernel(const KernelFn& kernel, const KernelContext& context, std::span<const Value> arguments,
                std::span<Tensor> outputs) {
  kernel(context, arguments, outputs);
  if (!context.stream) return;
  for (const Value& argument : arguments) record_streams(*context.stream, argument);
  for (const Tensor& output : outputs) record_streams(*context.stream, output);
}

Tensor allocate(const TensorMeta& meta, Device device) {
  if (meta.strides.empty() || meta.sizes.empty()) return Tensor::empty(meta.sizes, meta.dtype, device);
  return Tensor::empty_strided(meta.sizes, meta.strides, meta.dtype, device);
}

Tensor meta_tensor(const TensorMeta& meta, Device device) {
  if (meta.strides.empty() || meta.sizes.empty()) return Tensor::meta(meta.sizes, meta.dtype, device);
  return Tensor::meta_strided(meta.sizes, meta.strides, meta.dtype, device);
}

// While a direct operator is asked for shapes, what it calls is asked for no more, where a tensor has no data.
using InferringScope = ContextPart<&ExecutionContext::is_inferring>;

bool has_no_data(const Value& value) {
  if (value.is_tensor()) return value.to_tensor().is_meta();
  if (!value.is_list() || value.to_list()->element->kind() == TypeKind::kInt) return false;
  const auto& items = value.to_list()->items;
  return std::any_of(items.begin(), items.end(), has_no_data);
}

void run_compute(const Op& op, std::span<const Value> arguments, std::vector<Value>& returns) {
  const std::vector<TensorMeta> metas = op.infer(arguments);
  const Device device = device_of(op, arguments);
  if (execution_context().is_inferring && std::any_of(arguments.begin(), arguments.end(), has_no_data)) {
    for (const TensorMeta& meta : metas) returns.emplace_back(meta_tensor(meta, device));
    return;
  }
  const KernelFn& kernel = kernel_of(op, device);
  constexpr size_t kMax = 8;
  check_internal(metas.size() <= kMax, "too many outputs");
  Tensor outputs[kMax];
  for (size_t i = 0; i < metas.size(); ++i) outputs[i] = allocate(metas[i], device);
  run_kernel(kernel, KernelContext{device}, arguments, std::span(outputs, metas.size()));
  for (size_t i = 0; i < metas.size(); ++i) returns.emplace_back(outputs[i]);
}

bool is_apart(const Value& input, const Tensor& target) {
  return !input.is_tensor() || overlap(input.to_tensor(), target) == Overlap::kNo;
}

// Whether the functional kernel may write straight into `target` while it reads the inputs.
bool can_write_directly(const Op& base, const Tensor& target, std::span<const Value> inputs) {
  if (base.attributes.get<WritesPart>())
    return overlap(inputs[0].to_tensor(), target) == Overlap::kFull &&
           std::all_of(inputs.begin() + 1, inputs.end(), [&](const Value& input) { return is_apart(input, target); });
  return base.is_pointwise && std::none_of(inputs.begin(), inputs.end(), [&](const Value& input) {
           return input.is_tensor() && overlap(input.to_tensor(), target) == Overlap::kUnknown;
         });
}

void compute_into(const Op& base, std::span<const Value> inputs, const Tensor& target, DType result_dtype) {
  const Device device = target.device();
  if (base.infer && result_dtype == target.dtype() && can_write_directly(base, target, inputs)) {
    Tensor output = target;
    run_kernel(kernel_of(base, device), KernelContext{device}, inputs, std::span(&output, 1));
    return;
  }
  std::vector<Value> results;
  run(base, inputs, results);
  target.copy_from(results.front().to_tensor());
}

TensorMeta meta_of(const Op& base, std::span<const Value> inputs) {
  if (base.infer) return std::move(base.infer(inputs).front());
  const std::vector<Value> shapes = infer(base, inputs);
  const Tensor& tensor = shapes.front().to_tensor();
  return {tensor.sizes(), tensor.dtype(), tensor.strides(), tensor.device()};
}

void run_inplace(const Op& op, std::span<const Value> arguments, std::vector<Value>& returns) {
  const Tensor& self = arguments[0].to_tensor();
  const TensorMeta meta = meta_of(*op.base, arguments);
  check(meta.sizes == self.sizes(), "output with shape ", self.sizes(), " doesn't match the broadcast shape ",
        to_string(meta.sizes));
  check_takes(*op.base, meta.dtype, self, arguments);
  check_no_internal_overlap(self);
  if (!self.is_meta()) {
    check_writable(self);
    check_apart(*op.base, self, arguments.subspan(1));
    compute_into(*op.base, arguments, self, meta.dtype);
    self.storage()->bump_version();
  }
  returns.push_back(arguments[0]);
}

// out= takes the result's shape, as PyTorch resizes it: in the memory that it has, where all views see it, else in
// memory of its own.
void resize_to(const Tensor& out, const Tensor& result) {
  TensorImpl& impl = *out.impl();
  const StorageImpl& storage = *impl.storage;
  const bool fits = (impl.offset + result.numel()) * static_cast<int64_t>(size_of(out.dtype())) <=
                    static_cast<int64_t>(storage.size_bytes());
  check(fits || impl.numel == 0 || storage.use_count() == 1, "out: a tensor of shape ", out.sizes(),
        " has no room for the result of shape ", result.sizes(),
        ", and views share its memory; give one of that shape");
  impl.sizes = result.sizes();
  impl.strides = contiguous_strides(result.sizes());
  impl.numel = result.numel();
  if (fits) {
    out.copy_from(result);
  } else {
    impl.storage = result.storage();
    impl.offset = result.offset();
  }
}

bool reads(const Value& input, const Tensor& tensor) {
  if (input.is_tensor()) return input.to_tensor().is_same(tensor);
  if (!input.is_list() || input.to_list()->element->kind() != TypeKind::kTensor) return false;
  const auto& items = input.to_list()->items;
  return std::any_of(items.begin(), items.end(), [&](const Value& item) { return reads(item, tensor); });
}

void run_out(const Op& op, std::span<const Value> arguments, std::vector<Value>& returns) {
  const auto inputs = arguments.first(arguments.size() - 1);
  const Tensor& out = arguments.back().to_tensor();
  const TensorMeta meta = meta_of(*op.base, inputs);
  check_takes(*op.base, meta.dtype, out, inputs);
  if (!out.is_meta()) {
    check_writable(out);
    const bool is_read =
        std::any_of(inputs.begin(), inputs.end(), [&](const Value& input) { return reads(input, out); });
    const bool fits = out.sizes() == meta.sizes;
    if (fits || is_read || looks_before_resizing(*op.base)) check_apart(*op.base, out, inputs);
    if (looks_before_resizing(*op.base)) {
      check_no_internal_overlap(out);
      // PyTorch's takes more of the memory that it has.
      if (!fits) check_apart(*op.base, out.as_view(meta.sizes, contiguous_strides(meta.sizes), out.offset()), inputs);
    }
    check(!is_read || fits || !op.base->is_pointwise, "output with shape ", out.sizes(),
          " doesn't match the broadcast shape ", to_string(meta.sizes));
    const Tensor target = fits ? out : allocate({meta.sizes, out.dtype(), {}, {}}, out.device());
    check_no_internal_overlap(target);
    compute_into(*op.base, inputs, target, meta.dtype);
    if (!fits) resize_to(out, target);
    out.storage()->bump_version();
  }
  returns.push_back(arguments.back());
}

// Tensors that the schema marks as written: checked before, counted after.
template <class Fn>
void for_each_written(const Op& op, std::span<const Value> arguments, Fn&& fn) {
  if (op.is_pure || (op.writes_when >= 0 && !arguments[static_cast<size_t>(op.writes_when)].to_bool())) return;
  for (size_t i = 0; i < op.schema.arguments.size() && i < arguments.size(); ++i) {
    if (op.schema.arguments[i].alias.is_write && arguments[i].is_tensor() && !arguments[i].to_tensor().is_meta()) {
      fn(arguments[i].to_tensor());
    }
  }
}

void bump_version(const Tensor& tensor) { tensor.storage()->bump_version(); }

[[noreturn]] void rethrow_with_name(const Op& op, const Error& error) {
  const std::string name = op.schema.name;
  const std::string_view message = error.what();
  const bool is_named = dynamic_cast<const NamedError*>(&error) != nullptr || message.starts_with(name);
  if (error.code() == ErrorCode::kScriptRaised || error.code() == ErrorCode::kCancelled || is_named) {
    throw Error(error.code(), error.what());
  }
  throw Error(error.code(), concat(name, ": ", message));
}

std::atomic<RecordFn> recorder{nullptr};

bool knows_autograd(const Value& value) {
  if (value.is_tensor()) return static_cast<bool>(value.to_tensor().impl()->autograd);
  if (!value.is_list() || value.to_list()->element->kind() == TypeKind::kInt) return false;
  const auto& items = value.to_list()->items;
  return std::any_of(items.begin(), items.end(), knows_autograd);
}

}  // namespace

// --- complex tensors

namespace {

// What runs for complex tensors; null: the operator's own code.
const DirectFn* complex_function(const Op& op, std::span<const Value> arguments) {
  const ComplexForm& form = checked_complex_form(op);
  if (form.composite) return &form.composite;
  if (form.is_own_code()) return nullptr;
  const Device device = device_of(op, arguments);
  const DirectFn& own = form.dynamic[static_cast<size_t>(device.kind)];
  if (!own) fail(ErrorCode::kUnimplemented, "has no kernel of complex numbers for ", name_of(device.kind));
  return &own;
}

// In-place and out= forms: the functional form, copied into the target. Its result is new memory, so operands may
// overlap.
void write_complex(const Op& op, std::span<const Value> arguments, std::vector<Value>& returns) {
  const bool is_inplace = op.base->schema.name != op.schema.name;
  const auto inputs = is_inplace ? arguments : arguments.first(arguments.size() - 1);
  const Value& written = is_inplace ? arguments.front() : arguments.back();
  const Tensor& target = written.to_tensor();
  std::vector<Value> results;
  run(*op.base, inputs, results);
  const Tensor& result = results.front().to_tensor();
  check_takes(*op.base, result.dtype(), target, inputs);
  if (is_inplace) {
    check(result.sizes() == target.sizes(), "output with shape ", target.sizes(), " doesn't match the broadcast shape ",
          result.sizes());
  }
  if (!target.is_meta()) {
    check_writable(target);
    if (target.sizes() == result.sizes()) check_apart(*op.base, target, is_inplace ? inputs.subspan(1) : inputs);
    if (target.sizes() == result.sizes()) {
      check_no_internal_overlap(target);
      target.copy_from(result);
    } else {
      Tensor fresh = allocate({result.sizes(), target.dtype(), {}, {}}, target.device());
      fresh.copy_from(result);
      resize_to(target, fresh);
    }
    target.storage()->bump_version();
  }
  returns.push_back(written);
}

// A form whose gradient is that of the operators that it calls is recorded as these.
bool run_complex_composite(const Op& op, std::span<const Value> arguments, std::vector<Value>& returns) {
  const Op& functional = op.base ? *op.base : op;
  const ComplexForm* form = complex_form(functional);
  if (!form || form->rule != ComplexGradient::kOfCalls) return false;
  if (!op.base) {
    form->composite(arguments, returns);
    return true;
  }
  if (functional.schema.name == op.schema.name) return false;  // out=: never recorded
  // Of a copy, which gradients may read after the target is written.
  std::vector<Value> given(arguments.begin(), arguments.end()), results;
  if (is_grad_enabled()) given.front() = call("aten::clone", given.front());
  run(functional, given, results);
  const Tensor &target = arguments.front().to_tensor(), &result = results.front().to_tensor();
  check_takes(functional, result.dtype(), target, arguments);
  check(result.sizes() == target.sizes(), "output with shape ", target.sizes(), " doesn't match the broadcast shape ",
        result.sizes());
  static const Op& copy = get_op("aten::copy_");
  const Value copied[] = {target, result, false};
  run(copy, copied, returns);
  return true;
}

}  // namespace

void set_recorder(RecordFn function) { recorder.store(function, std::memory_order_release); }

namespace {

thread_local CallObserver* observer = nullptr;
thread_local ComputeObserver* watcher = nullptr;  // of what is computed

void run_observed(const Op& op, std::span<const Value> arguments, std::vector<Value>& returns) {
  struct Pause {  // what the operator calls is its own affair
    CallObserver* paused = set_call_observer(nullptr);
    ~Pause() { set_call_observer(paused); }
  } pause;
  const size_t before = returns.size();
  run(op, arguments, returns);
  pause.paused->called(op, arguments, std::span(returns).subspan(before));
}

}  // namespace

CallObserver* set_call_observer(CallObserver* next) { return std::exchange(observer, next); }
CallObserver* call_observer() { return observer; }
ComputeObserver* set_compute_observer(ComputeObserver* next) { return std::exchange(watcher, next); }
ComputeObserver* compute_observer() { return watcher; }

void run(const Op& op, std::span<const Value> arguments, std::vector<Value>& returns) {
  if (observer) [[unlikely]]
    return run_observed(op, arguments, returns);
  if (find_boxed(arguments)) [[unlikely]]
    return compute(op, arguments, returns);  // what their form calls is recorded
  if (has_complex(arguments)) [[unlikely]] {
    try {
      if (run_complex_composite(op, arguments, returns)) return;
    } catch (const Error& error) {
      rethrow_with_name(op, error);
    }
  }
  if (!is_inference_mode()) {
    const RecordFn record = recorder.load(std::memory_order_acquire);
    if (record && (op.is_view || !op.is_pure || std::any_of(arguments.begin(), arguments.end(), knows_autograd))) {
      return record(op, arguments, returns);
    }
  }
  compute(op, arguments, returns);
}

namespace {

void compute_unwatched(const Op& op, std::span<const Value> arguments, std::vector<Value>& returns) {
  try {
    if (const BoxedTensor* boxed = find_boxed(arguments)) [[unlikely]]
      return checked_boxed_form(op, *boxed)(arguments, returns);
    const DirectFn* complex = nullptr;
    if (has_complex(arguments)) [[unlikely]] {
      if (op.base) return write_complex(op, arguments, returns);
      complex = complex_function(op, arguments);
    }
    if (op.base) return (op.base->schema.name != op.schema.name ? run_inplace : run_out)(op, arguments, returns);
    for_each_written(op, arguments, check_writable);
    if (complex) {
      (*complex)(arguments, returns);
    } else if (op.direct) {
      run_direct(op, arguments, returns);
    } else {
      run_compute(op, arguments, returns);
    }
    for_each_written(op, arguments, bump_version);
  } catch (const Error& error) {
    // What is given up half-way has changed what it writes to.
    if (error.code() == ErrorCode::kCancelled || error.code() == ErrorCode::kDeadlineExceeded)
      for_each_written(op, arguments, bump_version);
    rethrow_with_name(op, error);
  }
}

// The in-place form of a composite is the composite, copied into the target.
void compute_composite_write(const Op& op, std::span<const Value> arguments, std::vector<Value>& returns) {
  static const Op& copy = get_op("aten::copy_");
  std::vector<Value> results;
  run(*op.base, arguments, results);
  const Tensor& target = arguments.front().to_tensor();
  check_apart(*op.base, target, arguments.subspan(1));
  check(results.front().to_tensor().sizes() == target.sizes(), op.name(), ": output with shape ", target.sizes(),
        " doesn't match the broadcast shape ", results.front().to_tensor().sizes());
  const Value copied[] = {target, results.front(), false};
  compute(copy, copied, returns);
}

void compute_watched(const Op& op, std::span<const Value> arguments, std::vector<Value>& returns) {
  if (!find_boxed(arguments) && !has_complex(arguments)) {
    if (op.is_composite && !op.base) return compute_unwatched(op, arguments, returns);
    if (op.base && op.base->is_composite && op.base->schema.name != op.schema.name)
      return compute_composite_write(op, arguments, returns);
  }
  struct Pause {
    ComputeObserver* paused = set_compute_observer(nullptr);
    ~Pause() { set_compute_observer(paused); }
  } pause;
  const size_t before = returns.size();
  pause.paused->computing(op, arguments);
  compute_unwatched(op, arguments, returns);
  pause.paused->computed(op, arguments, std::span(returns).subspan(before));
}

}  // namespace

void compute(const Op& op, std::span<const Value> arguments, std::vector<Value>& returns) {
  if (watcher) [[unlikely]]
    return compute_watched(op, arguments, returns);
  compute_unwatched(op, arguments, returns);
}

std::vector<Value> run(const Op& op, std::span<const Value> arguments) {
  std::vector<Value> returns;
  run(op, arguments, returns);
  return returns;
}

std::vector<Value> infer(const Op& op, std::span<const Value> arguments) {
  if (op.has_dynamic_shape) {
    fail(ErrorCode::kUnimplemented, op.schema.full_name(), ": the output shape depends on data");
  }
  std::vector<Value> returns;
  try {
    const InferringScope inferring(true);
    // Their results are not known by shape alone.
    if (const BoxedTensor* boxed = find_boxed(arguments))
      fail(ErrorCode::kUnimplemented, boxed->describe(), " is run, not inferred");
    const DirectFn* complex = has_complex(arguments) && !op.base ? complex_function(op, arguments) : nullptr;
    if (complex) {
      (*complex)(arguments, returns);
    } else if (op.direct) {
      run_direct(op, arguments, returns);
    } else if (op.base) {
      returns.push_back(op.base->schema.name != op.schema.name ? arguments.front() : arguments.back());
    } else {
      const Device device = device_of(op, arguments);
      for (const TensorMeta& meta : op.infer(arguments)) returns.emplace_back(meta_tensor(meta, device));
    }
  } catch (const Error& error) {
    rethrow_with_name(op, error);
  }
  return returns;
}

}  // namespace tensord::ops
