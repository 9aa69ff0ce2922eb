#include "tests/device/late_kernels.h"

#include <vector>

#include "core/ops/registry.h"
#include "tests/device/late_device.h"
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

ops::KernelFn make_late(const ops::Op& op, const ops::KernelFn& kernel) {
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
    // Numbers are drawn when the call is made, in the order of the calls of all devices.
    context.stream->synchronize();
    run();
  };
}

}  // namespace

void install_kernels() {
  static const bool once = (ops::derive_kernels(kPrivateUse, kCPU, make_late), true);
  static_cast<void>(once);
}

}  // namespace tensord::late
