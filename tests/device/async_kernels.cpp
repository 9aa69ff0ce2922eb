#include "tests/device/async_kernels.h"

#include <vector>

#include "core/ops/registry.h"
#include "tests/device/async_device.h"
#include "tests/device/seen_tensor.h"

namespace tensord::late {
namespace {

using ops::Value;

Value seen_value(const Value& value, SeenTensors& seen) {
  if (value.is_tensor()) {
    const Tensor& tensor = value.to_tensor();
    const bool is_on_host = tensor.defined() && !tensor.is_meta() && tensor.device().is_host();
    return is_on_host ? tensor.clone(/*preserve_strides=*/true) : seen.of(tensor);
  }
  if (value.is_list()) {
    ops::List out = ops::make_list(value.to_list()->element);
    for (const Value& item : value.to_list()->items) out->items.push_back(seen_value(item, seen));
    return out;
  }
  return value;
}

ops::FillFn make_late(const ops::Op& op, const ops::FillFn& kernel) {
  return [&op, kernel](const ops::KernelContext& context, std::span<const Value> arguments, std::span<Tensor> outputs) {
    SeenTensors seen;
    std::vector<Value> values;
    for (const Value& argument : arguments) values.push_back(seen_value(argument, seen));
    std::vector<Tensor> results;
    for (const Tensor& output : outputs) results.push_back(seen.of(output));
    const auto run = [&op, kernel, values = std::move(values), results = std::move(results)] {
      std::vector<Tensor> written = results;
      try {
        kernel(ops::KernelContext(), values, written);
        for (size_t i = 0; i < results.size(); ++i) {
          if (!written[i].is_same(results[i])) fail(ErrorCode::kInternal, "another tensor stands in result ", i);
        }
      } catch (const Error& error) {
        throw Error(error.code(), concat(op.schema.full_name(), ": ", error.what()));
      }
    };
    if (!op.is_random) return queue(*context.stream, run);
    // Random numbers are drawn at the time of the call, in the order of calls on all devices.
    context.stream->synchronize();
    run();
  };
}

bool is_on_device(const Tensor& tensor) { return tensor.defined() && tensor.device().kind == kPrivateUse; }

// The first device tensor among tensors and lists of them; undefined if there is none.
Tensor device_tensor(std::span<const Value> values) {
  for (const Value& value : values) {
    Tensor found;
    if (value.is_tensor() && is_on_device(value.to_tensor())) found = value.to_tensor();
    if (value.is_list()) found = device_tensor(value.to_list()->items);
    if (found.defined()) return found;
  }
  return {};
}

// A result in an argument's memory stays there; all others are moved to the device.
Value moved_back(const Value& value, Device device, const SeenTensors& seen) {
  if (value.is_tensor() && value.to_tensor().defined() && !value.to_tensor().is_meta()) {
    const Tensor& tensor = value.to_tensor();
    const Tensor original = seen.original(tensor);
    return original.defined() ? original : tensor.to(device);
  }
  if (value.is_list()) {
    ops::List out = ops::make_list(value.to_list()->element);
    for (const Value& item : value.to_list()->items) out->items.push_back(moved_back(item, device, seen));
    return out;
  }
  return value;
}

// What is made is known when it was computed, so the host waits, as it does on any device.
ops::ReturnFn make_async_dynamic(const ops::Op&, const ops::ReturnFn& entry) {
  return [entry](std::span<const Value> arguments, std::vector<Value>& returns) {
    const Tensor first = device_tensor(arguments);
    if (!first.defined() || first.is_meta()) return entry(arguments, returns);
    current_stream(first.device()).synchronize();
    SeenTensors seen;
    std::vector<Value> values, results;
    for (const Value& argument : arguments) values.push_back(seen_value(argument, seen));
    entry(values, results);
    for (const Value& result : results) returns.push_back(moved_back(result, first.device(), seen));
  };
}

}  // namespace

void install_kernels() {
  static const bool once = (ops::derive_kernels({kPrivateUse, kCPU, make_late, make_async_dynamic}), true);
  static_cast<void>(once);
}

}  // namespace tensord::late
