// The nested tensors of nn.TransformerEncoder, which skips padded rows in evaluation; see nested.h.
#include "kernels/attention/nested.h"

#include "core/ops/op.h"
#include "core/ops/run.h"
#include "kernels/attention/nested_lengths.h"
#include "ops/pointwise.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

using ops::Value;

Tensor fill_padding(const Tensor& rows, const Tensor& padding, double value) {
  return ops::masked_fill(rows, ops::unsqueeze(padding, int64_t{2}), value);
}

void check_mask(const Tensor& x, const Tensor& mask) {
  check(mask.dtype() == DType::kBool, "Expected mask to be of ScalarType Bool, but got ", name_of(mask.dtype()),
        " instead.");
  check(mask.ndim() == 2, "Padding mask should be 2D");
  check(x.ndim() == 3, "Input should be a 3D tensor, N * L * D");
  check(mask.sizes()[0] == x.sizes()[0] && mask.sizes()[1] == x.sizes()[1], "Mask size should match input size");
}

bool is_left_aligned(const Tensor& x, const Tensor& mask) {
  check_mask(x, mask);
  return NestedLengths(mask).is_left_aligned;
}

// The first rows of each sample, as many as its mask has ones, wherever these ones are.
Value from_mask(const Tensor& x, const Tensor& mask, bool checks_mask) {
  check_mask(x, mask);
  check(x.sizes()[0] > 0, "stack expects a non-empty TensorList");
  const NestedLengths kept(mask);
  check(!checks_mask || kept.is_left_aligned, "Mask must be left-aligned without gaps");
  const Tensor rows = ops::slice(x, int64_t{1}, int64_t{0}, kept.longest(), int64_t{1});
  return IntrusivePtr<ops::OpaqueObject>(make_intrusive<NestedTensor>(rows, kept.padding().to(x.device())));
}

Tensor to_padded(const Value& value, double padding, const std::optional<Dims>& size) {
  const NestedTensor* nested = as_nested(value);
  check(nested, "takes a nested tensor, got ", value.tag_name());
  Tensor filled = fill_padding(nested->rows, nested->padding, padding);
  if (!size) return filled;
  check(size->size() == 3, "Length of output_size does not match NestedTensor dims. Broadcasting is not supported.");
  Dims pad;
  for (size_t i = 3; i-- > 0;) {
    check((*size)[i] >= filled.sizes()[i],
          "Value in output_size is less than NestedTensor padded size. Truncation is not supported.");
    pad.push_back(0);
    pad.push_back((*size)[i] - filled.sizes()[i]);
  }
  return ops::constant_pad_nd(filled, pad, padding);
}

OP("aten::_nested_tensor_from_mask").impl(from_mask).composite().dynamic_shape();
OP("aten::_nested_tensor_from_mask_left_aligned").impl(is_left_aligned).dynamic_shape().kind(ops::OpKind::kAllocating);
OP("aten::to_padded_tensor").impl(to_padded).composite().dynamic_shape();

}  // namespace

NestedTensor::NestedTensor(const Tensor& rows, Tensor padding)
    : rows(fill_padding(rows, padding, 0)), padding(std::move(padding)) {}

const NestedTensor* as_nested(const ops::Value& value) {
  return value.is_opaque() ? dynamic_cast<const NestedTensor*>(value.to_opaque().get()) : nullptr;
}

const Tensor& rows_of(const ops::Value& value) {
  const NestedTensor* nested = as_nested(value);
  return nested ? nested->rows : value.to_tensor();
}

ops::Value with_rows(const NestedTensor& nested, const Tensor& rows) {
  return IntrusivePtr<ops::OpaqueObject>(make_intrusive<NestedTensor>(rows, nested.padding));
}

}  // namespace tensord::kernels
