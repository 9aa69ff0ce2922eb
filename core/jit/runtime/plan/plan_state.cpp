#include "core/jit/runtime/plan/plan_state.h"

#include <algorithm>
#include <optional>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/jit/runtime/plan/batch_tile_loop.h"
#include "core/jit/runtime/plan/memory_plan.h"
#include "core/jit/runtime/plan/plan_slots.h"
#include "core/ops/operator_scope.h"
#include "core/tensor/device_copy.h"
#include "core/tensor/memory/memory_checks.h"

namespace tensord::jit {

using ops::Value;

namespace {

// Number of plans whose addresses a worker caches.
constexpr size_t kMaxBindings = 256;

void* advance(void* base, int64_t bytes) { return static_cast<char*>(base) + bytes; }

}  // namespace

// The addresses of one plan's tensors for one worker.
struct PlanState::Binding {
  PlanSlots slots;              // to which the addresses point
  std::vector<void*> pointers;  // for each call: its inputs, then its outputs
  std::vector<size_t> first;    // for each call, its start in `pointers`

  // Addresses that change with every run.
  struct Patch {
    size_t pointer;
    uint32_t index;  // of the input or output
    int64_t offset_bytes;
  };
  std::vector<Patch> from_inputs, from_outputs;

  // A call without a prepared form uses tensors over the memory instead.
  struct Kernel {
    std::vector<Value> arguments;
    std::vector<Tensor> operands, outputs;
  };
  std::vector<std::unique_ptr<Kernel>> kernels;  // by call; null for prepared ones
  struct TensorPatch {
    Tensor tensor;
    uint32_t index;
    int64_t offset_bytes;
  };
  std::vector<TensorPatch> tensors_from_inputs, tensors_from_outputs;

  std::vector<Tensor> inputs;   // of the current run
  std::vector<Tensor> outputs;  // bytes of each kOutput root; kept, and reused once the results are gone
  std::vector<Tensor> results;  // returned tensor objects, reused likewise
  std::vector<bool> is_moved;   // per kOutput root: uses the caller's memory in this run

  void build(const Plan& plan, const Storage& arena);
  void add_kernel(const Plan& plan, const PlanCall& call);
  Tensor tensor_for(const Plan& plan, uint32_t id);
  void take_inputs(const Plan& plan, std::span<const Value> arguments);
  void take_outputs(const Plan& plan, const RunOptions& options, std::span<const int32_t> result_numbers);
  void move_outputs(const Plan& plan, std::span<const ResultMemory> result_memory,
                    std::span<const int32_t> result_numbers);
  void patch();
  void record_streams(Device device, const Storage& arena) const;
  void patch(std::vector<TensorPatch>& patches, const std::vector<Tensor>& sources);
  void run_call(const Plan& plan, const PlanCall& call, size_t index, void* scratch);
  void run_loop(const SampleLoop& loop, size_t index, void* scratch, const RunOptions& options,
                const PlanCall** failed);
  void give_results(const Plan& plan, std::vector<Value>& values);
  void release();
  Tensor result(const Plan& plan, uint32_t id, size_t place);
};

void PlanState::Binding::build(const Plan& plan, const Storage& arena) {
  *this = Binding();
  slots = PlanSlots(plan, arena);
  outputs.resize(plan.output_bytes.size());
  is_moved.resize(outputs.size());
  inputs.resize(plan.inputs.size());
  for (const PlanCall& call : plan.calls) {
    first.push_back(pointers.size());
    kernels.push_back(nullptr);
    if (!call.prepared && !call.loop) add_kernel(plan, call);
    for (const auto* tensors : {&call.inputs, &call.outputs}) {
      for (const uint32_t id : *tensors) {
        const PlanTensor& tensor = plan.tensors[id];
        const PlanRoot& root = plan.roots[tensor.root];
        const size_t at = pointers.size();
        pointers.push_back(nullptr);
        if (root.kind == PlanRoot::Kind::kInput) from_inputs.push_back({at, root.index, tensor.offset_bytes});
        if (root.kind == PlanRoot::Kind::kOutput) from_outputs.push_back({at, root.index, tensor.offset_bytes});
        if (root.kind != PlanRoot::Kind::kArena) continue;
        if (char* const memory = slots.root(plan, tensor.root)) pointers[at] = advance(memory, tensor.offset_bytes);
      }
    }
  }
}

Tensor PlanState::Binding::tensor_for(const Plan& plan, uint32_t id) {
  const PlanTensor& at = plan.tensors[id];
  const PlanRoot& root = plan.roots[at.root];
  const auto item = static_cast<int64_t>(size_of(at.meta.dtype()));
  const Tensor tensor = at.meta.as_view(at.meta.sizes(), at.meta.strides(), 0);
  if (root.kind == PlanRoot::Kind::kArena) {
    tensor.impl()->storage = slots.storage(at.root);
    tensor.impl()->offset = (static_cast<int64_t>(slots.storage_offset(plan, at.root)) + at.offset_bytes) / item;
    return tensor;
  }
  auto& patches = root.kind == PlanRoot::Kind::kInput ? tensors_from_inputs : tensors_from_outputs;
  patches.push_back({tensor, root.index, at.offset_bytes});
  return tensor;
}

void PlanState::Binding::add_kernel(const Plan& plan, const PlanCall& call) {
  auto kernel = std::make_unique<Kernel>();
  for (const uint32_t id : call.inputs) kernel->operands.push_back(tensor_for(plan, id));
  size_t next = 0;
  for (const Value& argument : call.arguments)
    kernel->arguments.push_back(with_tensors(argument, kernel->operands, next));
  for (const uint32_t id : call.outputs) kernel->outputs.push_back(tensor_for(plan, id));
  if (call.is_copy && kernel->outputs[0].sizes() != kernel->operands[0].sizes()) {
    // The copy is contiguous, so it may be written in the shape of the source.
    TensorImpl& target = *kernel->outputs[0].impl();
    target.sizes = kernel->operands[0].sizes();
    target.strides = contiguous_strides(target.sizes);
  }
  kernels.back() = std::move(kernel);
}

void PlanState::Binding::take_inputs(const Plan& plan, std::span<const Value> arguments) {
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    const PlanInput& input = plan.inputs[i];
    const Value& argument = arguments[input.argument];
    const Tensor& tensor = input.item < 0 ? argument.to_tensor()
                                          : argument.to_list()->items.at(static_cast<size_t>(input.item)).to_tensor();
    const Tensor& expected = plan.tensors[input.tensor].meta;
    if (tensor.sizes() != expected.sizes() || tensor.dtype() != expected.dtype())
      fail(ErrorCode::kInternal, "a plan for ", describe(expected), " got ", describe(tensor));
    if (tensor.strides() == expected.strides()) {
      inputs[i] = tensor;
    } else {
      inputs[i] = Tensor::empty_strided(expected.sizes(), expected.strides(), expected.dtype(), plan.device);
      inputs[i].copy_from(tensor);
    }
  }
}

// Writes results directly to the caller's memory if there is any.
void PlanState::Binding::move_outputs(const Plan& plan, std::span<const ResultMemory> result_memory,
                                      std::span<const int32_t> result_numbers) {
  for (const ResultMemory& memory : result_memory) {
    for (size_t i = 0; i < result_numbers.size(); ++i) {
      const int32_t root = plan.outputs[i].movable_root;
      if (root < 0 || result_numbers[i] != static_cast<int32_t>(memory.result)) continue;
      const auto bytes = plan.output_bytes[static_cast<size_t>(root)];
      const bool is_aligned = reinterpret_cast<uintptr_t>(memory.storage->data()) % kArenaAlignment == 0;
      if (!is_aligned || memory.storage->size_bytes() < bytes || memory.storage->device() != plan.device) continue;
      const Dims sizes{static_cast<int64_t>(bytes)};
      outputs[static_cast<size_t>(root)] = Tensor::from_storage(memory.storage, sizes, Dims{1}, 0, DType::kUInt8);
      is_moved[static_cast<size_t>(root)] = true;
    }
  }
}

void PlanState::Binding::take_outputs(const Plan& plan, const RunOptions& options,
                                      std::span<const int32_t> result_numbers) {
  for (Tensor& handle : results) {
    if (!handle.defined()) continue;
    if (handle.impl()->use_count() == 1)
      handle.impl()->storage = nullptr;
    else
      handle = Tensor();
  }
  move_outputs(plan, options.result_memory, result_numbers);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (is_moved[i]) continue;
    // Reusable if this state holds the only reference. On a device, a previous holder may have used the memory in
    // another stream, which only its allocator knows.
    const bool is_free = plan.device.is_host() && outputs[i].defined() && outputs[i].storage()->use_count() == 1;
    if (!is_free) {
      outputs[i] = Tensor::empty(Dims{static_cast<int64_t>(plan.output_bytes[i])}, DType::kUInt8, plan.device);
    }
    if (options.poison && plan.output_bytes[i] > 0) {
      device_runtime(plan.device)
          .fill(outputs[i].raw_data(), static_cast<uint8_t>(kPoison), plan.output_bytes[i],
                current_stream(plan.device));
    }
  }
}

void PlanState::Binding::patch() {
  for (const Patch& patch : from_inputs)
    pointers[patch.pointer] = advance(inputs[patch.index].raw_data(), patch.offset_bytes);
  for (const Patch& patch : from_outputs)
    pointers[patch.pointer] = advance(outputs[patch.index].raw_data(), patch.offset_bytes);
  patch(tensors_from_inputs, inputs);
  patch(tensors_from_outputs, outputs);
}

// The stream's work on these tensors outlasts the run.
void PlanState::Binding::record_streams(Device device, const Storage& arena) const {
  if (device.is_host()) return;
  DeviceStream& stream = current_stream(device);
  arena->record_stream(stream);
  for (const Tensor& input : inputs) input.storage()->record_stream(stream);
  for (const Tensor& output : outputs) output.storage()->record_stream(stream);
}

void PlanState::Binding::patch(std::vector<TensorPatch>& patches, const std::vector<Tensor>& sources) {
  for (TensorPatch& patch : patches) {
    const Tensor& source = sources[patch.index];
    TensorImpl& impl = *patch.tensor.impl();
    const int64_t start = source.offset() * static_cast<int64_t>(size_of(source.dtype()));
    impl.storage = source.storage();
    impl.offset = (start + patch.offset_bytes) / static_cast<int64_t>(size_of(impl.dtype));
  }
}

void PlanState::Binding::run_call(const Plan& plan, const PlanCall& call, size_t index, void* scratch) {
  const ops::KernelContext context{plan.device};
  std::optional<ops::OperatorScope> scope;
  if (call.op && !plan.device.is_host()) scope.emplace(*call.op);
  if (call.prepared) {
    void* const* const at = pointers.data() + first[index];
    return call.prepared->run(context, {at, at + call.inputs.size(), scratch});
  }
  Kernel& kernel = *kernels[index];
  if (call.is_copy) return copy_elements(kernel.outputs[0], kernel.operands[0]);
  const ops::KernelFunction& code = *call.op->kernel(plan.device.kind);
  if (code.fill) return code.fill(context, kernel.arguments, kernel.outputs);
  std::vector<Value> results;
  code.function(kernel.arguments, results);
  size_t next = 0;
  for (const Value& result : results) {
    if (result.is_strided()) kernel.outputs.at(next++).copy_from(result.to_tensor());
    if (!result.is_list()) continue;
    for (const Value& item : result.to_list()->items) kernel.outputs.at(next++).copy_from(item.to_tensor());
  }
}

void PlanState::Binding::run_loop(const SampleLoop& loop, size_t index, void* scratch, const RunOptions& options,
                                  const PlanCall** failed) {
  void* const* const at = pointers.data() + first[index];
  loop.run({at, at + loop.input_strides.size(), scratch}, {options.is_cancelled, options.profile, options.poison},
           failed);
}

Tensor PlanState::Binding::result(const Plan& plan, uint32_t id, size_t place) {
  const PlanTensor& at = plan.tensors[id];
  const PlanRoot& root = plan.roots[at.root];
  const Tensor& source = root.kind == PlanRoot::Kind::kInput ? inputs[root.index] : outputs[root.index];
  if (place >= results.size()) results.resize(place + 1);
  // Tensor objects over the caller's memory are not kept, because they would keep the memory alive.
  const bool is_own = root.kind == PlanRoot::Kind::kOutput && !is_moved[root.index];
  Tensor other;
  Tensor& tensor = is_own ? results[place] : other;
  // A script may have resized the tensor (out=).
  const bool is_kept = tensor.defined() && tensor.sizes() == at.meta.sizes() && tensor.strides() == at.meta.strides();
  if (!is_kept) tensor = at.meta.as_view(at.meta.sizes(), at.meta.strides(), 0);
  const int64_t start = source.offset() * static_cast<int64_t>(size_of(source.dtype()));
  tensor.impl()->storage = source.storage();
  tensor.impl()->offset = (start + at.offset_bytes) / static_cast<int64_t>(size_of(at.meta.dtype()));
  return tensor;
}

void PlanState::Binding::give_results(const Plan& plan, std::vector<Value>& values) {
  size_t place = 0;
  for (const PlanOutput& output : plan.outputs) {
    if (!output.is_list) {
      values.emplace_back(result(plan, output.tensors[0], place++));
      continue;
    }
    std::vector<Tensor> items;
    for (const uint32_t id : output.tensors) items.push_back(result(plan, id, place++));
    values.push_back(ops::make_tensor_list(items));
  }
}

// The caller's tensors are not kept.
void PlanState::Binding::release() {
  std::fill(inputs.begin(), inputs.end(), Tensor());
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (is_moved[i]) outputs[i] = Tensor();
    is_moved[i] = false;
  }
  for (TensorPatch& patch : tensors_from_inputs) patch.tensor.impl()->storage = nullptr;
  for (TensorPatch& patch : tensors_from_outputs) patch.tensor.impl()->storage = nullptr;
}

PlanState::PlanState() = default;
PlanState::~PlanState() = default;

size_t PlanState::arena_bytes() const {
  size_t bytes = 0;
  for (const Tensor& arena : arenas_) bytes += arena.size_bytes();
  return bytes;
}

Tensor& PlanState::arena_of(Device device) {
  for (Tensor& arena : arenas_) {
    if (arena.device() == device) return arena;
  }
  return arenas_.emplace_back(Tensor::empty(Dims{0}, DType::kUInt8, device));
}

PlanState::Binding& PlanState::bind(const Plan& plan) {
  const size_t bytes = PlanSlots::arena_bytes(plan);
  // Allocated even if all tensors are empty: kernels expect tensors with memory.
  Tensor& arena = arena_of(plan.device);
  if (arena.size_bytes() < bytes) {
    // Bindings into the old arena are rebuilt when they are next used.
    bindings_.clear();
    order_.clear();
    arena = Tensor::empty(Dims{0}, DType::kUInt8, plan.device);
    arena = Tensor::empty(Dims{static_cast<int64_t>(bytes)}, DType::kUInt8, plan.device);
  }
  std::unique_ptr<Binding>& binding = bindings_[plan.id];
  if (binding) return *binding;
  binding = std::make_unique<Binding>();
  binding->build(plan, arena.storage());
  Binding& bound = *binding;
  order_.push_back(plan.id);
  if (order_.size() > kMaxBindings) {
    bindings_.erase(order_.front());
    order_.erase(order_.begin());
  }
  return bound;
}

void PlanState::run(const Plan& plan, std::span<const Value> arguments, std::vector<Value>& results,
                    const RunOptions& options, std::span<const int32_t> result_numbers, const PlanCall** failed_call) {
  Binding& binding = bind(plan);
  const struct Release {
    Binding& binding;
    ~Release() { binding.release(); }
  } release{binding};
  binding.take_inputs(plan, arguments);
  binding.take_outputs(plan, options, result_numbers);
  if (options.poison) binding.slots.poison(plan);
  binding.patch();
  binding.record_streams(plan.device, arena_of(plan.device).storage());
  for (size_t i = 0; i < plan.calls.size(); ++i) {
    const PlanCall& call = plan.calls[i];
    *failed_call = &call;
    if (options.is_cancelled && (*options.is_cancelled)()) fail(ErrorCode::kCancelled, "cancelled");
    void* const scratch = binding.slots.scratch(plan, i);
    if (call.loop) {
      binding.run_loop(*call.loop, i, scratch, options, failed_call);
      continue;
    }
    if (!options.profile) {
      binding.run_call(plan, call, i, scratch);
      continue;
    }
    const int64_t start_ns = Clock::system().now_ns();
    binding.run_call(plan, call, i, scratch);
    options.profile->add(call.name, call.detail, start_ns, Clock::system().now_ns() - start_ns, call.cost.flops,
                         call.cost.bytes);
  }
  binding.give_results(plan, results);
}

}  // namespace tensord::jit
