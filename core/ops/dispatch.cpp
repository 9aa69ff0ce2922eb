#include "core/ops/dispatch.h"

#include <bit>

#include "core/base/error.h"
#include "core/ops/run.h"

namespace tensord::ops {
namespace {

// Collects the keys of a call's tensors and numbers.
class KeyCollector {
 public:
  void add(const Value& value) {
    if (value.is_tensor()) return add(*value.to_tensor().impl());
    if (value.is_list()) {
      for (const Value& item : value.to_list()->items) add(item);
    } else if (value.is_complex()) {
      keys_.set |= Functionality::kComplex;
    }
  }

  bool has_device() const { return has_device_; }
  CallKeys& keys() { return keys_; }

 private:
  void add(const TensorImpl& tensor) {
    keys_.set |= tensor.keys();
    // A 0-d CPU tensor may be mixed with tensors on another device.
    const bool is_scalar = tensor.sizes.empty() && tensor.device.is_host();
    if (!has_device_ || (is_from_scalar_ && !is_scalar)) {
      keys_.device = tensor.device;
      is_from_scalar_ = is_scalar;
      has_device_ = true;
    } else if (!is_scalar && !(tensor.device == keys_.device)) {
      keys_.is_mixed = true;
      keys_.other = tensor.device;
    }
  }

  CallKeys keys_;
  bool has_device_ = false, is_from_scalar_ = false;
};

// With the keys that the calling thread includes and excludes.
CallKeys keys_in_thread(const Op& op, std::span<const Value> arguments) {
  CallKeys keys = keys_of(op, arguments);
  const ExecutionContext& context = execution_context();
  keys.set = (keys.set | context.included_keys) - context.excluded_keys;
  if (context.grad_mode.is_inference || keys.set.has_any(kCompoundLayouts)) keys.set = keys.set - kAutogradKeys;
  return keys;
}

}  // namespace

CallKeys keys_of(const Op& op, std::span<const Value> arguments) {
  KeyCollector collector;
  collector.keys().set = Functionality::kDense;
  for (uint64_t left = op.tensor_arguments | op.number_arguments; left != 0; left &= left - 1) {
    const auto i = static_cast<size_t>(std::countr_zero(left));
    if (i >= arguments.size()) break;
    collector.add(arguments[i]);
  }
  CallKeys& keys = collector.keys();
  const auto device = static_cast<size_t>(op.device_argument);
  // Structured operators with a device argument make a tensor like another, whose elements they do not read.
  if (device < arguments.size() && arguments[device].is_device() &&
      (!collector.has_device() || op.kind == OpKind::kStructured)) {
    keys.device = arguments[device].to_device();
  }
  return keys;
}

void run(const Op& op, std::span<const Value> arguments, std::vector<Value>& returns) {
  redispatch(op, keys_in_thread(op, arguments), arguments, returns);
}

void redispatch(const Op& op, const CallKeys& keys, std::span<const Value> arguments, std::vector<Value>& returns) {
  const Functionality next = (keys.set & op.handled).highest();
  const KernelFunction* const kernel = op.table[cell_of(next, keys.device.kind)];
  if (!kernel) [[unlikely]]
    fail_no_kernel(op, keys);
  kernel->run(*kernel, op, keys, arguments, returns);
}

void run_below(Functionality one, const Op& op, std::span<const Value> arguments, std::vector<Value>& returns) {
  redispatch(op, keys_in_thread(op, arguments).below(one), arguments, returns);
}

std::vector<Value> run(const Op& op, std::span<const Value> arguments) {
  std::vector<Value> returns;
  run(op, arguments, returns);
  return returns;
}

void check_one_device(const CallKeys& keys) {
  if (!keys.is_mixed) [[likely]]
    return;
  fail(ErrorCode::kInvalidArgument, "Expected all tensors to be on the same device, but found ", to_string(keys.device),
       " and ", to_string(keys.other));
}

namespace {

// A device that only some programs register is not named to others.
bool is_worth_saying(DeviceKind kind) {
  if (kind != kPrivateUse) return true;
  try {
    device_runtime({kind, 0});
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

std::string kernels_of(const Op& op) {
  static constexpr const char* kDevices[kDeviceKinds] = {"CPU", "CUDA", "PrivateUse"};
  std::string out;
  for (int row = 0; row < kLayoutCount; ++row) {
    const auto layout = static_cast<Functionality>(row);
    std::string devices;
    for (int device = 0; device < kDeviceKinds; ++device) {
      const auto kind = static_cast<DeviceKind>(device);
      if (!op.table[cell_of(layout, kind)] || !is_worth_saying(kind)) continue;
      devices += (devices.empty() ? "" : ", ") + std::string(kDevices[device]);
    }
    if (devices.empty()) continue;
    out += out.empty() ? "" : ", ";
    out += layout == Functionality::kDense ? devices : concat(name_of(layout), " (", devices, ")");
  }
  return out.empty() ? "none" : out;
}

bool has_kernel(const Op& op, const Tensor& tensor) {
  return op.table[cell_of((tensor.impl()->keys() & kLayoutKeys).highest(), tensor.device().kind)] != nullptr;
}

void fail_no_kernel(const Op& op, const CallKeys& keys) {
  const Functionality layout = (keys.set & kLayoutKeys).highest();
  fail(ErrorCode::kUnimplemented, op.schema.full_name(), " has no kernel for ",
       layout == Functionality::kDense ? "" : concat(name_of(layout), " on "), name_of(keys.device.kind),
       "; it has: ", kernels_of(op));
}

}  // namespace tensord::ops
