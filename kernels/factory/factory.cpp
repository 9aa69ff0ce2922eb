#include <algorithm>

#include "core/ops/complex.h"
#include "core/ops/op.h"
#include "core/ops/run.h"
#include "core/tensor/device_copy.h"
#include "core/tensor/memory_order.h"
#include "core/tensor/strided_copy.h"
#include "kernels/base/number_range.h"
#include "kernels/factory/triangle.h"
#include "ops/view.h"

// Tensors made from sizes and numbers.
namespace tensord::kernels {
namespace {

using ops::IntList;
using ops::KernelContext;
using ops::Scalar;
using ops::TensorMeta;
using ops::Value;
using OptDType = std::optional<DType>;
using OptDevice = std::optional<Device>;
using OptBool = std::optional<bool>;
using OptInt = std::optional<int64_t>;

void check_layout(const Value& layout) {
  check(layout.is_none() || layout.to_int() == 0, "only the strided layout is supported");
}

void check_sizes(const IntList& sizes) {
  for (int64_t size : sizes) {
    check(size >= 0, "Trying to create tensor with negative dimension ", size, ": ", to_string(sizes));
  }
}

void fill(const Tensor& out, const Scalar& value) {
  const Tensor one = ops::tensor_of(value);
  if (out.numel() != 0) out.copy_from(one);
}

// --- from sizes

TensorMeta sized_meta(const IntList& sizes, OptDType dtype, const Value& layout, OptDevice device, OptBool) {
  check_layout(layout);
  check_sizes(sizes);
  return {sizes, dtype.value_or(DType::kFloat32), {}, device.value_or(Device{})};
}
void zeros_kernel(const KernelContext&, const IntList&, OptDType, const Value&, OptDevice, OptBool, Tensor& out) {
  zero_elements(out);
}
void ones_kernel(const KernelContext&, const IntList&, OptDType, const Value&, OptDevice, OptBool, Tensor& out) {
  fill(out, 1);
}

TensorMeta empty_meta(const IntList& sizes, OptDType dtype, const Value& layout, OptDevice device, OptBool pin,
                      OptInt format) {
  TensorMeta meta = sized_meta(sizes, dtype, layout, device, pin);
  if (format.value_or(0) >= 2) meta.strides = channels_last_strides(sizes);
  return meta;
}
// Zeroed, so that a script never reads memory of another request.
void empty_kernel(const KernelContext&, const IntList&, OptDType, const Value&, OptDevice, OptBool, OptInt,
                  Tensor& out) {
  zero_elements(out);
}

TensorMeta empty_strided_meta(const IntList& sizes, const IntList& strides, OptDType dtype, const Value& layout,
                              OptDevice device, OptBool pin) {
  TensorMeta meta = sized_meta(sizes, dtype, layout, device, pin);
  check(sizes.size() == strides.size(), "mismatch in length of strides and shape");
  meta.strides = strides;
  return meta;
}
DType fill_dtype(const Scalar& value, OptDType dtype) { return dtype ? *dtype : value.dtype(); }

TensorMeta full_meta(const IntList& sizes, const Scalar& value, OptDType dtype, const Value& layout, OptDevice device,
                     OptBool pin) {
  return sized_meta(sizes, fill_dtype(value, dtype), layout, device, pin);
}
void full_kernel(const KernelContext&, const IntList&, const Scalar& value, OptDType, const Value&, OptDevice, OptBool,
                 Tensor& out) {
  check_holds("full", out.dtype(), value);
  kernels::fill(out, value);
}

// --- like another tensor

TensorMeta like_meta(const Tensor& x, OptDType dtype, const Value& layout, OptDevice device, OptBool, OptInt format) {
  check_layout(layout);
  TensorMeta meta{x.sizes(), dtype.value_or(x.dtype()), {}, device.value_or(x.device())};
  const int64_t order = format.value_or(1);
  if (order >= 2) meta.strides = channels_last_strides(x.sizes());
  if (order == 1) meta.strides = preserved_strides(x.sizes(), x.strides());
  return meta;
}
void zeros_like_kernel(const KernelContext&, const Tensor&, OptDType, const Value&, OptDevice, OptBool, OptInt,
                       Tensor& out) {
  zero_elements(out);
}
void ones_like_kernel(const KernelContext&, const Tensor&, OptDType, const Value&, OptDevice, OptBool, OptInt,
                      Tensor& out) {
  fill(out, 1);
}

TensorMeta full_like_meta(const Tensor& x, const Scalar&, OptDType dtype, const Value& layout, OptDevice device,
                          OptBool pin, OptInt format) {
  return like_meta(x, dtype, layout, device, pin, format);
}
void full_like_kernel(const KernelContext&, const Tensor&, const Scalar& value, OptDType, const Value&, OptDevice,
                      OptBool, OptInt, Tensor& out) {
  check_holds("full_like", out.dtype(), value);
  kernels::fill(out, value);
}

TensorMeta new_meta(const Tensor& x, const IntList& sizes, OptDType dtype, const Value& layout, OptDevice device,
                    OptBool pin) {
  return sized_meta(sizes, dtype.value_or(x.dtype()), layout, device.value_or(x.device()), pin);
}
TensorMeta new_strided_meta(const Tensor& x, const IntList& sizes, const IntList& strides, OptDType dtype,
                            const Value& layout, OptDevice device, OptBool pin) {
  return empty_strided_meta(sizes, strides, dtype.value_or(x.dtype()), layout, device.value_or(x.device()), pin);
}
void new_zeros_kernel(const KernelContext&, const Tensor&, const IntList&, OptDType, const Value&, OptDevice, OptBool,
                      Tensor& out) {
  zero_elements(out);
}
void new_ones_kernel(const KernelContext&, const Tensor&, const IntList&, OptDType, const Value&, OptDevice, OptBool,
                     Tensor& out) {
  fill(out, 1);
}
TensorMeta new_full_meta(const Tensor& x, const IntList& sizes, const Scalar&, OptDType dtype, const Value& layout,
                         OptDevice device, OptBool pin) {
  return new_meta(x, sizes, dtype, layout, device, pin);
}
void new_full_kernel(const KernelContext&, const Tensor&, const IntList&, const Scalar& value, OptDType, const Value&,
                     OptDevice, OptBool, Tensor& out) {
  check_holds("new_full", out.dtype(), value);
  kernels::fill(out, value);
}

OP("aten::zeros").infer(sized_meta);
IMPL("aten::zeros", kCPU, zeros_kernel);
OP("aten::ones").infer(sized_meta);
IMPL("aten::ones", kCPU, ones_kernel);
OP("aten::empty.memory_format").infer(empty_meta);
IMPL("aten::empty.memory_format", kCPU, empty_kernel);
OP("aten::empty_strided").infer(empty_strided_meta);
OP("aten::full").infer(full_meta);
IMPL("aten::full", kCPU, full_kernel);
OP("aten::zeros_like").infer(like_meta).constant_result();
IMPL("aten::zeros_like", kCPU, zeros_like_kernel);
OP("aten::empty_like").infer(like_meta).constant_result();
IMPL("aten::empty_like", kCPU, zeros_like_kernel);
OP("aten::ones_like").infer(like_meta).constant_result();
IMPL("aten::ones_like", kCPU, ones_like_kernel);
OP("aten::full_like").infer(full_like_meta).constant_result();
IMPL("aten::full_like", kCPU, full_like_kernel);
OP("aten::new_zeros").infer(new_meta).constant_result();
IMPL("aten::new_zeros", kCPU, new_zeros_kernel);
OP("aten::new_empty").infer(new_meta).constant_result();
IMPL("aten::new_empty", kCPU, new_zeros_kernel);
OP("aten::new_empty_strided").infer(new_strided_meta).constant_result();
OP("aten::new_ones").infer(new_meta).constant_result();
IMPL("aten::new_ones", kCPU, new_ones_kernel);
OP("aten::new_full").infer(new_full_meta).constant_result();
IMPL("aten::new_full", kCPU, new_full_kernel);

OP("aten::scalar_tensor").impl([](const Scalar& value, OptDType dtype, const Value&, OptDevice device, OptBool) {
  const Tensor out = Tensor::empty({}, dtype.value_or(DType::kFloat32));
  kernels::fill(out, value);
  return device && *device != Device{} ? ops::to(out, *device, out.dtype()) : out;
});

// Diagonal matrices and index triangles.

TensorMeta eye_meta(int64_t n, int64_t m, OptDType dtype, const Value& layout, OptDevice device, OptBool pin) {
  check(n >= 0, "n must be greater or equal to 0, got ", n);
  check(m >= 0, "m must be greater or equal to 0, got ", m);
  return sized_meta(Dims{n, m}, dtype, layout, device, pin);
}
void eye_kernel(const KernelContext&, int64_t n, int64_t m, OptDType, const Value&, OptDevice, OptBool, Tensor& out) {
  zero_elements(out);
  const int64_t length = std::min(n, m);
  if (length > 0) fill(out.as_view(Dims{length}, Dims{out.strides()[0] + out.strides()[1]}, out.offset()), 1);
}
TensorMeta eye_square_meta(int64_t n, OptDType dtype, const Value& layout, OptDevice device, OptBool pin) {
  return eye_meta(n, n, dtype, layout, device, pin);
}
void eye_square_kernel(const KernelContext& context, int64_t n, OptDType dtype, const Value& layout, OptDevice device,
                       OptBool pin, Tensor& out) {
  eye_kernel(context, n, n, dtype, layout, device, pin, out);
}

template <bool kLower>
Tensor triangle_indices(int64_t rows, int64_t columns, int64_t offset, OptDType dtype, const Value&, OptDevice device,
                        OptBool) {
  check(rows >= 0 && columns >= 0, "the sizes of a triangle must not be negative");
  const Tensor out = indices_of_triangle(rows, columns, offset, kLower);
  return out.to(dtype.value_or(DType::kInt64)).to(device.value_or(Device{}));
}

OP("aten::eye").infer(eye_square_meta);
IMPL("aten::eye", kCPU, eye_square_kernel);
OP("aten::eye.m").infer(eye_meta);
IMPL("aten::eye.m", kCPU, eye_kernel);
OP("aten::tril_indices").impl(triangle_indices<true>);
OP("aten::triu_indices").impl(triangle_indices<false>);

}  // namespace
}  // namespace tensord::kernels
