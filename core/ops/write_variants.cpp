// In-place and out= variants of operators: checks and execution.
#include <algorithm>

#include "core/base/error.h"
#include "core/ops/attributes/host_indices.h"
#include "core/ops/attributes/writes_part.h"
#include "core/ops/attributes/written.h"
#include "core/ops/kernel_calls.h"
#include "core/ops/run.h"

namespace tensord::ops {
namespace {

using Arguments = std::span<const Value>;

bool is_on(const Value& input, Device device, bool takes_host_lists) {
  if (input.is_tensor()) {
    if (!input.to_tensor().defined()) return true;
    const TensorImpl& tensor = *input.to_tensor().impl();
    return tensor.device == device || (tensor.sizes.empty() && tensor.device.is_host());
  }
  if (!input.is_list() || input.to_list()->element->kind() != TypeKind::kTensor || takes_host_lists) return true;
  const auto& items = input.to_list()->items;
  return std::all_of(items.begin(), items.end(), [&](const Value& item) { return is_on(item, device, false); });
}
// The target is written where it is, so it must be where the inputs are.
void check_device(const Op& base, const Tensor& target, Arguments inputs) {
  const bool takes_host_lists = base.attributes.get<TakesHostIndices>() != nullptr;
  for (const Value& input : inputs) {
    if (is_on(input, target.device(), takes_host_lists)) continue;
    const Tensor& one = input.is_tensor() ? input.to_tensor() : input.to_list()->items.front().to_tensor();
    fail(ErrorCode::kInvalidArgument, "Expected all tensors to be on the same device, but found ",
         to_string(one.device()), " and ", to_string(target.device()));
  }
}

bool is_apart(const Value& input, const Tensor& target) {
  return !input.is_tensor() || overlap(input.to_tensor(), target) == Overlap::kNo;
}

// Whether the functional kernel may write directly to `target` while it reads the inputs.
bool can_write_directly(const Op& base, const Tensor& target, std::span<const Value> inputs) {
  if (base.attributes.get<WritesPart>())
    return overlap(inputs[0].to_tensor(), target) == Overlap::kFull &&
           std::all_of(inputs.begin() + 1, inputs.end(), [&](const Value& input) { return is_apart(input, target); });
  return base.is_pointwise && std::none_of(inputs.begin(), inputs.end(), [&](const Value& input) {
           return input.is_tensor() && overlap(input.to_tensor(), target) == Overlap::kUnknown;
         });
}

void compute_into(const Op& base, const CallKeys& keys, Arguments inputs, const Tensor& target, DType result_dtype) {
  const Device device = keys.device;
  const bool is_alone = !keys.is_mixed && target.device() == device;
  if (is_alone && base.has_fill(device.kind) && result_dtype == target.dtype() &&
      can_write_directly(base, target, inputs)) {
    Tensor output = target;
    fill_outputs(*base.kernel(device.kind), KernelContext{device}, inputs, std::span(&output, 1));
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

void run_inplace(const KernelFunction&, const Op& op, const CallKeys& keys, Arguments arguments,
                 std::vector<Value>& returns) {
  const Tensor& self = arguments[0].to_tensor();
  const TensorMeta meta = meta_of(*op.base, arguments);
  check(meta.sizes == self.sizes(), "output with shape ", self.sizes(), " doesn't match the broadcast shape ",
        to_string(meta.sizes));
  check_takes(*op.base, meta.dtype, self, arguments);
  check_no_internal_overlap(self);
  if (!self.is_meta()) {
    check_device(*op.base, self, arguments.subspan(1));
    check_writable(self);
    check_apart(*op.base, self, arguments.subspan(1));
    compute_into(*op.base, keys, arguments, self, meta.dtype);
    self.storage()->bump_version();
  }
  returns.push_back(arguments[0]);
}

// out= takes the result's shape, as PyTorch resizes it: in its present memory, where all views see it, or in new
// memory.
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

void run_out(const KernelFunction&, const Op& op, const CallKeys& keys, Arguments arguments,
             std::vector<Value>& returns) {
  const auto inputs = arguments.first(arguments.size() - 1);
  const Tensor& out = arguments.back().to_tensor();
  const TensorMeta meta = meta_of(*op.base, inputs);
  check_takes(*op.base, meta.dtype, out, inputs);
  if (!out.is_meta()) {
    check_device(*op.base, out, inputs);
    check_writable(out);
    const bool is_read =
        std::any_of(inputs.begin(), inputs.end(), [&](const Value& input) { return reads(input, out); });
    const bool fits = out.sizes() == meta.sizes;
    if (fits || is_read || looks_before_resizing(*op.base)) check_apart(*op.base, out, inputs);
    if (looks_before_resizing(*op.base)) {
      check_no_internal_overlap(out);
      // PyTorch's version uses more of its present memory.
      if (!fits) check_apart(*op.base, out.as_view(meta.sizes, contiguous_strides(meta.sizes), out.offset()), inputs);
    }
    check(!is_read || fits || !op.base->is_pointwise, "output with shape ", out.sizes(),
          " doesn't match the broadcast shape ", to_string(meta.sizes));
    const Tensor target = fits ? out : allocate({meta.sizes, out.dtype(), {}, {}}, out.device());
    check_no_internal_overlap(target);
    compute_into(*op.base, keys, inputs, target, meta.dtype);
    if (!fits) resize_to(out, target);
    out.storage()->bump_version();
  }
  returns.push_back(arguments.back());
}

// For complex numbers: runs the functional operator and copies its result into the target. The result is new memory, so
// operands may overlap.
void run_complex_variant(const KernelFunction&, const Op& op, const CallKeys&, Arguments arguments,
                         std::vector<Value>& returns) {
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
    check_device(*op.base, target, inputs);
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

}  // namespace

const KernelFunction kInplaceVariant{.run = with_name<run_inplace>};
const KernelFunction kOutVariant{.run = with_name<run_out>};
const KernelFunction kComplexVariant{.run = with_name<run_complex_variant>};

}  // namespace tensord::ops
