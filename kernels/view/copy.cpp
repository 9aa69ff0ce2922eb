#include "core/base/parallel.h"
#include "core/ops/attributes/batch_independence.h"
#include "core/ops/attributes/converts.h"
#include "core/ops/complex.h"
#include "core/tensor/device_copy.h"
#include "core/tensor/memory_order.h"
#include "kernels/base/number_range.h"
#include "kernels/expr/expr.h"
#include "kernels/view/view.h"
#include "ops/view.h"

// Copies that change memory order, dtype or device, and writes into existing tensors.
namespace tensord::kernels {
namespace {

using ops::Scalar;
using ops::Value;

enum CopyFormat : int64_t { kContiguous = 0, kPreserve = 1, kChannelsLast = 2, kChannelsLast3d = 3 };  // MemoryFormat

void check_format(const Tensor& x, int64_t format) {
  check(format >= kContiguous && format <= kChannelsLast3d, "Unsupported memory format option ", format);
  if (format == kChannelsLast) check(x.ndim() == 4, "required rank 4 tensor to use channels_last format");
  if (format == kChannelsLast3d) check(x.ndim() == 5, "required rank 5 tensor to use channels_last_3d format");
}

bool has_format(const Tensor& x, int64_t format) {
  check_format(x, format);
  if (format == kPreserve) return true;
  return format == kContiguous ? x.is_contiguous() : x.is_channels_last();
}

Dims strides_for(const Tensor& x, int64_t format) {
  check_format(x, format);
  if (format >= kChannelsLast) return channels_last_strides(x.sizes());
  const bool keep = format == kPreserve && is_non_overlapping_and_dense(x.sizes(), x.strides());
  return keep ? x.strides() : contiguous_strides(x.sizes());
}

// New memory of this dtype, device and order; for a meta tensor its description.
Tensor copy_with(const Tensor& x, DType dtype, Device device, const Dims& strides) {
  if (x.is_meta()) return Tensor::meta_strided(x.sizes(), strides, dtype, device);
  Tensor out = Tensor::empty_strided(x.sizes(), strides, dtype, device);
  copy_elements(out, x);
  return out;
}

Tensor copy_as(const Tensor& x, DType dtype, Device device, int64_t format) {
  return copy_with(x, dtype, device, strides_for(x, format));
}

Tensor contiguous(const Tensor& x, int64_t format) {
  check(format != kPreserve, "preserve memory format is unsupported by the contiguous operator");
  return has_format(x, format) ? x : copy_as(x, x.dtype(), x.device(), format);
}

Tensor clone(const Tensor& x, std::optional<int64_t> format) {
  if (format.value_or(kPreserve) == kPreserve)  // keeps the order of dimensions of tensors with gaps too
    return copy_with(x, x.dtype(), x.device(), preserved_strides(x.sizes(), x.strides()));
  return copy_as(x, x.dtype(), x.device(), *format);
}

Tensor convert(const Tensor& x, DType dtype, Device device, bool copy, std::optional<int64_t> format) {
  const bool is_same = x.dtype() == dtype && x.device() == device;
  if (is_same && !copy && has_format(x, format.value_or(kPreserve))) return x;
  return copy_as(x, dtype, device, format.value_or(kPreserve));
}

Tensor to_dtype(const Tensor& x, DType dtype, bool, bool copy, std::optional<int64_t> format) {
  return convert(x, dtype, x.device(), copy, format);
}
Tensor to_device(const Tensor& x, Device device, DType dtype, bool, bool copy, std::optional<int64_t> format) {
  return convert(x, dtype, device, copy, format);
}
Tensor to_other(const Tensor& x, const Tensor& other, bool, bool copy, std::optional<int64_t> format) {
  return convert(x, other.dtype(), other.device(), copy, format);
}
Tensor to_layout(const Tensor& x, std::optional<DType> dtype, const Value& layout, std::optional<Device> device,
                 std::optional<bool>, bool, bool copy, std::optional<int64_t> format) {
  check(layout.is_none() || layout.to_int() == 0, "to: only the strided layout is supported");
  return convert(x, dtype.value_or(x.dtype()), device.value_or(x.device()), copy, format);
}
Tensor to_prim_device(const Tensor& x, std::optional<Device> device, std::optional<int64_t> dtype, bool, bool copy) {
  return convert(x, dtype ? dtype_from_number(*dtype) : x.dtype(), device.value_or(x.device()), copy, {});
}
Tensor to_prim_dtype(const Tensor& x, std::optional<int64_t> dtype, bool, bool copy) {
  return convert(x, dtype ? dtype_from_number(*dtype) : x.dtype(), x.device(), copy, {});
}

// The checks of a target that every in-place operator makes.
void check_writable(const Tensor& x, const char* op) {
  check(x.is_meta() || x.storage()->ensure_writable(), op, ": the tensor is read-only");
  for (int64_t d = 0; d < x.ndim(); ++d) {
    check(x.strides()[d] != 0 || x.sizes()[d] <= 1,
          "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
          "Please clone() the tensor before performing the operation.");
  }
}

Tensor copy_into(const Tensor& x, const Tensor& source, bool) {
  check_writable(x, "copy_");
  const Dims joint = broadcast_sizes(x.sizes(), source.sizes());
  check(joint == x.sizes(), "copy_: a tensor of shape ", source.sizes(), " does not fit into shape ", x.sizes());
  const Tensor from = expand(source, x.sizes());
  if (x.is_meta()) return x;
  check(!source.is_meta(), "copy_: Cannot copy out of meta tensor; no data!");
  check(overlap(x, source) != Overlap::kPartial,
        "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory "
        "location. Please clone() the tensor before performing the operation.");
  const Overlap shared = overlap(x, from);
  if (x.device() != source.device()) {
    x.copy_from(source);  // broadcasts after the bytes have arrived
  } else {
    copy_elements(x, shared == Overlap::kNo || shared == Overlap::kFull ? from : from.clone());
  }
  return x;
}

// Writes each element once: elements that share memory may all get the same number.
Tensor without_repeats(const Tensor& x) {
  Dims sizes = x.sizes();
  for (int64_t d = 0; d < x.ndim(); ++d) {
    if (x.strides()[d] == 0 && sizes[d] > 1) sizes[d] = 1;
  }
  return sizes == x.sizes() ? x : x.as_view(sizes, x.strides(), x.offset());
}

Tensor fill_with(const Tensor& x, const Scalar& value) {
  check_holds("fill_", x.dtype(), value);
  if (x.is_meta() || x.numel() == 0) return x;
  copy_into(without_repeats(x), ops::tensor_of(value), false);
  return x;
}

Tensor zero(const Tensor& x) {
  check(x.is_meta() || x.storage()->ensure_writable(), "zero_: the tensor is read-only");
  if (!x.is_meta() && x.numel() > 0 && is_non_overlapping_and_dense(x.sizes(), x.strides())) {
    zero_elements(x);
    return x;
  }
  return fill_with(x, Scalar(0));
}

using gradient::of_first;
using ops::GradArgs;

// The gradient of a copy: converted back.
Tensor convert_back(const GradArgs& args, const Tensor& g) {
  const Tensor& x = args.inputs[0].to_tensor();
  if (g.device() != x.device()) return ops::to(g, x.device(), x.dtype());
  return g.dtype() == x.dtype() ? g : ops::to(g, x.dtype());
}
Tensor overwritten(const GradArgs&, const Tensor& g) { return gradient::zeros_like(g); }
// The old contents of self have no effect; the second argument is broadcast over it.
std::vector<Tensor> write_gradient(const GradArgs& args) {
  std::vector<Tensor> gradients(args.inputs.size());
  const Tensor& g = args.grad_outputs[0];
  if (!g) return gradients;
  if (args.needs(0)) gradients[0] = gradient::zeros_like(g);
  if (args.needs(1)) gradients[1] = gradient::fit_gradient(g, args.inputs[1].to_tensor());
  return gradients;
}

#define COPY(NAME, ...)                    \
  OP(NAME)                                 \
      .impl(__VA_ARGS__)                   \
      .gradient(of_first(convert_back))    \
      .saves("")                           \
      .set<ops::Converts>(ops::Converts{}) \
      .kind(ops::OpKind::kComposite)
COPY("aten::contiguous", contiguous);
COPY("aten::clone", clone).set<ops::BatchIndependent>(ops::always_batch_independent);
COPY("aten::to.device", to_device);
COPY("aten::to.dtype", to_dtype);
COPY("aten::to.other", to_other);
COPY("aten::to.dtype_layout", to_layout);
COPY("aten::to.prim_Device", to_prim_device);
COPY("aten::to.prim_dtype", to_prim_dtype);
COPY("aten::type_as",
     [](const Tensor& x, const Tensor& other) { return convert(x, other.dtype(), other.device(), false, {}); });
COPY("aten::cpu", [](const Tensor& x) { return convert(x, x.dtype(), Device{}, false, {}); });
#define CAST(NAME, DTYPE) \
  COPY("aten::" NAME, [](const Tensor& x, bool) { return convert(x, DTYPE, x.device(), false, {}); })
CAST("_cast_Float", DType::kFloat32);
CAST("_cast_Double", DType::kFloat64);
CAST("_cast_Half", DType::kFloat16);
CAST("_cast_Int", DType::kInt32);
CAST("_cast_Long", DType::kInt64);
CAST("_cast_Short", DType::kInt16);
CAST("_cast_Char", DType::kInt8);
CAST("_cast_Byte", DType::kUInt8);

OP("aten::copy_").impl(copy_into).gradient(write_gradient).saves("").kind(ops::OpKind::kComposite);
OP("aten::fill_.Scalar").impl(fill_with).gradient(of_first(overwritten)).saves("").kind(ops::OpKind::kComposite);
OP("aten::fill_.Tensor")
    .impl([](const Tensor& x, const Tensor& value) {
      check(value.ndim() == 0, "fill_ only supports 0-dimension value tensor but got tensor with ", value.ndim(),
            " dimensions.");
      return copy_into(x, value, false);
    })
    .gradient(write_gradient)
    .saves("")
    .kind(ops::OpKind::kComposite);
OP("aten::fill.Tensor")
    .impl([](const Tensor& x, const Tensor& value) { return ops::fill_(ops::clone(x), value); })
    .composite();
OP("aten::fill.Scalar")
    .impl([](const Tensor& x, const Scalar& value) {
      return fill_with(copy_as(x, x.dtype(), x.device(), kPreserve), value);
    })
    .gradient(of_first(overwritten))
    .saves("")
    .kind(ops::OpKind::kComposite);
OP("aten::zero_").impl(zero).gradient(of_first(overwritten)).saves("").kind(ops::OpKind::kComposite);

}  // namespace
}  // namespace tensord::kernels
