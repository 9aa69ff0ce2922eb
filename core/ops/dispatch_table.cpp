#include "core/ops/dispatch_table.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/ops/attributes/runs_on_host.h"
#include "core/ops/dispatch.h"

namespace tensord::ops {
namespace {

constexpr DeviceKind kAllDevices[] = {kCPU, kCUDA, kPrivateUse};
static_assert(std::size(kAllDevices) == kDeviceKinds);

const Type& innermost(const Type& type) {
  const bool is_wrapper = type.kind() == TypeKind::kOptional || type.kind() == TypeKind::kList;
  return is_wrapper ? innermost(*type.element()) : type;
}
bool has_tensors(const std::vector<Argument>& arguments) {
  return std::ranges::any_of(arguments,
                             [](const Argument& one) { return innermost(*one.type).kind() == TypeKind::kTensor; });
}

// For an operator that is not a variant of another.
OpKind kind_of(const Op& op, bool has_function) {
  if (op.is_kind_marked) return op.kind;
  if (!has_function) return op.infer ? OpKind::kStructured : OpKind::kAllocating;
  if (op.is_composite) return OpKind::kComposite;
  if (op.is_view) return OpKind::kView;
  return has_tensors(op.schema.arguments) && has_tensors(op.schema.returns) ? OpKind::kAllocating : OpKind::kScript;
}

bool is_of_device(const Op& op) { return op.kind == OpKind::kStructured || op.kind == OpKind::kAllocating; }

// Whether the operator's own kernel is right for complex tensors because it does not read elements.
bool is_blind(const Op& op) {
  if (op.is_view || op.kind == OpKind::kView || op.reads_only_shape || op.schema.is_vararg) return true;
  return op.tensor_arguments == 0 && op.number_arguments == 0;
}

const KernelFunction*& cell(Op& op, Functionality layout, DeviceKind device) {
  return op.table[cell_of(layout, device)];
}

}  // namespace

void set_key_arguments(Op& op) {
  const auto& arguments = op.schema.arguments;
  check_internal(arguments.size() <= 64, op.name(), " has more arguments than a mask has bits");
  for (size_t i = 0; i < arguments.size(); ++i) {
    const TypeKind kind = innermost(*arguments[i].type).kind();
    if (kind == TypeKind::kTensor) op.tensor_arguments |= uint64_t{1} << i;
    if (kind == TypeKind::kNumber) op.number_arguments |= uint64_t{1} << i;
    if (kind == TypeKind::kDevice) op.device_argument = static_cast<int>(i);
  }
}

void TableBuilder::set_function(Op& op, KernelFunction function) { functions_.emplace_back(&op, std::move(function)); }

void TableBuilder::set(Op& op, DispatchKey key, const KernelFunction& kernel) {
  KernelFunction own = kernel;
  own.run = runner_of(kernel, key.layouts);
  const KernelFunction* const kept = keep(std::move(own));
  for (int layout = 0; layout < kLayoutCount; ++layout) {
    if (!key.layouts.has(static_cast<Functionality>(layout))) continue;
    for (const DeviceKind device : kAllDevices) {
      if (device != key.device && !key.is_composite) continue;
      const KernelFunction*& place = cell(op, static_cast<Functionality>(layout), device);
      check(place == nullptr, op.schema.full_name(), " has two kernels for ",
            name_of(static_cast<Functionality>(layout)), " on ", name_of(device));
      place = kept;
    }
  }
}

void TableBuilder::set_same_as_dense(Op& op) { same_as_dense_.push_back(&op); }

void TableBuilder::build(const std::vector<std::unique_ptr<Op>>& ops, const Report& report) {
  for (const auto& op : ops) set_key_arguments(*op);
  std::unordered_map<const Op*, KernelFunction*> functions;
  for (auto& [op, function] : functions_) {
    if (!functions.emplace(op, &function).second) report(op->schema.full_name() + " has two functions");
  }
  for (const auto& op : ops) {
    if (op->base) continue;
    const auto it = functions.find(op.get());
    fill_own(*op, it == functions.end() ? nullptr : it->second, report);
    for (const DerivedKernels& derived : derived_) fill_derived_device(*op, derived);
  }
  functions_.clear();
  for (Op* const op : same_as_dense_) fill_complex(*op);
  for (const auto& op : ops) {
    if (op->base) continue;
    if (is_blind(*op) && op->complex_rule == ComplexGradient::kNone) op->complex_rule = ComplexGradient::kLinear;
    if (is_blind(*op)) fill_complex(*op);
  }
  for (const auto& op : ops) {
    if (!op->base) fill_on_host(*op, report);
  }
  for (const auto& op : ops) {
    if (op->base) fill_variant(*op, report);
  }
  for (const auto& op : ops) fill_functionalities(*op);
}

void TableBuilder::fill_own(Op& op, KernelFunction* function, const Report& report) {
  const std::string name = op.schema.full_name();
  op.kind = kind_of(op, function != nullptr);
  const auto has_any = [&](auto&& is) {
    return std::ranges::any_of(kAllDevices, [&](DeviceKind d) { return op.kernel(d) && is(*op.kernel(d)); });
  };
  const bool has_fill = has_any([](const KernelFunction& kernel) { return static_cast<bool>(kernel.fill); });
  const bool has_own = has_any([](const KernelFunction& kernel) { return static_cast<bool>(kernel.function); });
  if (op.infer && (function || has_own)) report(name + " has infer, and code that allocates");
  if (!op.infer && has_fill) report(name + " has a kernel for outputs that are there, and no infer");
  if (op.infer ? op.kind != OpKind::kStructured : op.kind == OpKind::kStructured)
    report(name + " is not of the kind that it is marked as");
  if (!is_of_device(op) && has_own) report(name + " is the same on all devices, and has a kernel of one");
  if (op.is_composite && op.kind != OpKind::kComposite)
    report(name + " is marked as a composite and as something else");
  if (function) {
    if (is_of_device(op) && op.kernel(kCPU)) return report(name + " has two kernels for the CPU");
    const KernelFunction* const kept = keep(std::move(*function));
    kernels_.back().run = runner_of(*kept, Functionality::kDense);
    for (const DeviceKind device : kAllDevices) {
      if (device == kCPU || !is_of_device(op)) cell(op, Functionality::kDense, device) = kept;
    }
  }
  if (!op.infer && std::ranges::all_of(op.table, [](const KernelFunction* one) { return one == nullptr; }))
    report(name + " has no code");
}

void TableBuilder::fill_derived_device(Op& op, const DerivedKernels& derived) {
  for (const Functionality layout : {Functionality::kDense, Functionality::kComplex}) {
    const KernelFunction* const like = cell(op, layout, derived.like);
    const KernelFunction*& own = cell(op, layout, derived.device);
    if (!like || own) continue;
    // Of what is not derived there is nothing.
    KernelFunction made{.run = like->run, .origin = like->origin};
    if (like->fill) made.fill = derived.fill(op, like->fill);
    if (like->function) made.function = derived.function(op, like->function);
    if (made.fill || made.function) own = keep(std::move(made));
  }
}

// The dense kernel serves complex numbers if there is no other.
void TableBuilder::fill_complex(Op& op) {
  for (const DeviceKind device : kAllDevices) {
    const KernelFunction*& place = cell(op, Functionality::kComplex, device);
    if (!place) place = op.kernel(device);
  }
}

void TableBuilder::fill_on_host(Op& op, const Report& report) {
  if (!op.attributes.get<RunsOnHost>()) return;
  for (const Functionality layout : {Functionality::kDense, Functionality::kComplex, Functionality::kQuantized}) {
    for (const DeviceKind device : kAllDevices) {
      const KernelFunction*& place = cell(op, layout, device);
      if (!place && cell(op, layout, kCPU)) place = &kOnHost;
    }
  }
  if (!is_of_device(op)) report(op.schema.full_name() + " is the same on all devices, and RunsOnHost");
  const auto writes_list = [](const Argument& argument) {
    return argument.alias.is_write && argument.type->kind() == TypeKind::kList;
  };
  if (std::ranges::any_of(op.schema.arguments, writes_list)) {
    report(op.schema.full_name() + " writes a list of tensors, which RunsOnHost does not copy back");
  }
}

void TableBuilder::fill_variant(Op& op, const Report& report) {
  const Op& base = *op.base;
  const std::string name = op.schema.full_name();
  op.kind = base.kind;
  if (op.infer) report(name + " is a variant of " + base.schema.full_name() + " and has infer of its own");
  const bool is_inplace = base.schema.name != op.schema.name;
  for (const DeviceKind device : kAllDevices) {
    for (const Functionality layout : {Functionality::kDense, Functionality::kComplex}) {
      const KernelFunction*& place = cell(op, layout, device);
      if (place) report(name + " is a variant of " + base.schema.full_name() + " and has code of its own");
      // Only the target of an out= variant may be complex, as in polar.
      const bool takes_target = layout == Functionality::kComplex && !is_inplace && base.kernel(device);
      if (!base.table[cell_of(layout, device)] && !takes_target) continue;
      place = layout == Functionality::kComplex ? &kComplexVariant : is_inplace ? &kInplaceVariant : &kOutVariant;
    }
  }
}

void TableBuilder::fill_functionalities(Op& op) {
  const auto put = [&](Functionality functionality, const KernelFunction* kernel) {
    if (!kernel) return;
    op.table[cell_of(functionality, kCPU)] = kernel;
    op.handled |= functionality;
  };
  if (op.infer) put(Functionality::kShapeInference, &kShapesOrCode);
  put(Functionality::kStepRecorder, recording_kernel(op));
  put(Functionality::kTracer, tracing_kernel(op));
  for (const auto& [functionality, choose] : choosers_) put(functionality, choose(op));
}

std::shared_ptr<const Op> with_function(const Op& op, ReturnFn function) {
  struct Own {
    Op op;
    KernelFunction kernel;
  };
  const auto own = std::make_shared<Own>();
  own->kernel.function = std::move(function);
  own->op.schema = op.schema;
  own->op.writes_when = op.writes_when;
  own->op.is_pure = op.is_pure;
  own->op.is_composite = true;
  own->op.kind = OpKind::kComposite;
  set_key_arguments(own->op);
  for (int layout = 0; layout < kLayoutCount; ++layout) {
    for (const DeviceKind device : kAllDevices)
      own->op.table[cell_of(static_cast<Functionality>(layout), device)] = &own->kernel;
  }
  own->kernel.run = runner_of(own->kernel, Functionality::kDense);
  own->op.table[cell_of(Functionality::kTracer, kCPU)] = tracing_kernel(own->op);
  own->op.handled |= Functionality::kTracer;
  if (const KernelFunction* recording = recording_kernel(own->op)) {
    own->op.table[cell_of(Functionality::kStepRecorder, kCPU)] = recording;
    own->op.handled |= Functionality::kStepRecorder;
  }
  return {own, &own->op};
}

}  // namespace tensord::ops
