// Zeros for tensors whose elements do not fill their memory: the gaps are zeroed too.
#include "core/ops/op.h"

namespace tensord::kernels {
namespace {

using ops::IntList;
using ops::KernelContext;
using ops::Value;
using OptDType = std::optional<DType>;
using OptDevice = std::optional<Device>;
using OptBool = std::optional<bool>;

void empty_strided_kernel(const KernelContext&, const IntList&, const IntList&, OptDType, const Value&, OptDevice,
                          OptBool, Tensor& out) {
  if (out.numel() == 0) return;
  DeviceRuntime& runtime = device_runtime(out.device());
  runtime.fill(out.storage()->data(), 0, out.storage()->size_bytes(), current_stream(out.device()));
}

void new_strided_kernel(const KernelContext& context, const Tensor&, const IntList& sizes, const IntList& strides,
                        OptDType dtype, const Value& layout, OptDevice device, OptBool pin, Tensor& out) {
  empty_strided_kernel(context, sizes, strides, dtype, layout, device, pin, out);
}

IMPL("aten::empty_strided", kCPU, empty_strided_kernel);
IMPL("aten::new_empty_strided", kCPU, new_strided_kernel);

}  // namespace
}  // namespace tensord::kernels
