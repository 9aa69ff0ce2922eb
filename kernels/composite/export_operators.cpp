// Operators that torch.export and PyTorch's decompositions write where a script has another call.
#include <algorithm>
#include <limits>

#include "kernels/expr/compose.h"

#include "ops/factory.h"
#include "ops/index.h"
#include "ops/linear.h"
#include "ops/norm.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"
#include "ops/script.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

using ops::OptionalTensorList;
using ops::Scalar;
using ops::Value;

// A row of nothing but minus infinities gives zeros. It is replaced by zeros before the softmax, so that neither the
// softmax nor its gradients are NaN.
OP("aten::_safe_softmax")
    .impl([](const Tensor& x, int64_t dim, std::optional<DType> dtype) {
      const Tensor is_hidden = ops::eq(x, -std::numeric_limits<double>::infinity());
      const Tensor is_empty = ops::all(is_hidden, dim, true);
      const Tensor seen = ops::masked_fill(x, is_empty, Scalar(0));
      return ops::masked_fill(ops::softmax(seen, dim, dtype), is_empty, Scalar(0));
    })
    .composite();

OP("aten::_embedding_bag")
    .impl([](const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool by_frequency, int64_t mode,
             bool sparse, const Value& weights, bool include_last, int64_t padding) {
      const ops::Op& bag = ops::get_op("aten::embedding_bag.padding_idx");
      const auto out = ops::run(bag, ops::bind(bag, {weight, indices, offsets, by_frequency, mode, sparse, weights,
                                                     include_last, padding < 0 ? Value() : Value(padding)}));
      return std::tuple(out[0].to_tensor(), out[1].to_tensor(), out[2].to_tensor(), out[3].to_tensor());
    })
    .composite();

OP("aten::_is_all_true")
    .impl([](const Tensor& x) {
      check(x.dtype() == DType::kBool, "_is_all_true: expected bool, got ", name_of(x.dtype()));
      return ops::all(x);
    })
    .composite();
OP("aten::_is_any_true")
    .impl([](const Tensor& x) {
      check(x.dtype() == DType::kBool, "_is_any_true: expected bool, got ", name_of(x.dtype()));
      return ops::any(x);
    })
    .composite();

// Products of 8-bit integers, summed in int32.
OP("aten::_int_mm")
    .impl([](const Tensor& a, const Tensor& b) {
      check(a.ndim() == 2, "Expected self to be of dimension 2 but got ", a.ndim());
      check(b.ndim() == 2, "Expected mat2 to be of dimension 2 but got ", b.ndim());
      check(a.dtype() == DType::kInt8 && b.dtype() == DType::kInt8, "_int_mm: expected int8, got ", name_of(a.dtype()),
            " and ", name_of(b.dtype()));
      return ops::matmul(compose::to(a, DType::kInt32), compose::to(b, DType::kInt32));
    })
    .composite();

// The indices of the first `size` nonzero elements; unused places hold `fill_value`.
OP("aten::nonzero_static")
    .impl([](const Tensor& x, int64_t size, int64_t fill_value) {
      check(size >= 0, "nonzero_static: 'size' must be an non-negative integer");
      const Tensor found = ops::nonzero(x);
      const int64_t count = std::min(size, found.size(0));
      const Tensor rest =
          ops::full(Dims{size - count, found.size(1)}, fill_value, {.dtype = DType::kInt64, .device = x.device()});
      return ops::cat({ops::narrow(found, 0, 0, count), rest}, 0);
    })
    .composite();

// The gradients of the elements that were written, then zeros.
OP("aten::masked_scatter_backward")
    .impl([](const Tensor& grad, const Tensor& mask, const Dims& sizes) {
      const int64_t count = checked_numel(sizes);
      const Tensor chosen = ops::masked_select(grad, mask);
      const Tensor zeros = ops::new_zeros(grad, Dims{std::max<int64_t>(0, count - chosen.size(0))});
      const Tensor all = ops::cat({chosen, zeros}, 0);
      return ops::reshape(ops::narrow(all, 0, 0, count), sizes);
    })
    .composite();

// Indices where the mask is false may be out of range. They are clamped for the read, and the results are replaced
// afterwards.
OptionalTensorList within(const Tensor& x, const OptionalTensorList& indices) {
  check(static_cast<int64_t>(indices.size()) <= x.ndim(), "too many indices for tensor of dimension ", x.ndim());
  OptionalTensorList out;
  for (size_t i = 0; i < indices.size(); ++i) {
    const auto& index = indices[i];
    check(!index || index->dtype() == DType::kInt64 || index->dtype() == DType::kInt32,
          "tensors used as masked indices must be long or int tensors");
    const int64_t size = x.size(static_cast<int64_t>(i));
    out.push_back(index ? std::optional(ops::clamp(*index, -size, size - 1)) : std::nullopt);
  }
  return out;
}
OP("aten::_unsafe_masked_index")
    .impl([](const Tensor& x, const Tensor& mask, const OptionalTensorList& indices, const Scalar& fill) {
      const Tensor found = ops::index(x, within(x, indices));
      return ops::masked_fill(found, ops::logical_not(mask), fill);
    })
    .composite();
OP("aten::_unsafe_masked_index_put_accumulate")
    .impl([](const Tensor& x, const Tensor& mask, const OptionalTensorList& indices, const Tensor& values) {
      const Tensor kept = ops::masked_fill(values, ops::logical_not(mask), Scalar(0));
      return ops::index_put(x, within(x, indices), kept, true);
    })
    .composite();

// --- bounds that are tensors of one number

Value number_of(const Tensor& x, const char* what) {
  check(x.ndim() == 0, what, " only supports 0-dimensional start and end tensors, but got a tensor with ", x.ndim(),
        " dimension(s).");
  return ops::item(x);
}
#define REST std::optional<DType> dtype, const Value &layout, const Value &device, const Value &pin
#define SPACE(OVERLOAD, START_TYPE, END_TYPE, FROM, TO)                                                            \
  OP("aten::linspace." OVERLOAD)                                                                                   \
      .impl([](const START_TYPE& start, const END_TYPE& end, int64_t steps, REST) {                                \
        return ops::call_by_name("aten::linspace", FROM("linspace"), TO("linspace"), steps, dtype, layout, device, \
                                 pin);                                                                             \
      })                                                                                                           \
      .kind(ops::OpKind::kComposite);                                                                              \
  OP("aten::logspace." OVERLOAD)                                                                                   \
      .impl([](const START_TYPE& start, const END_TYPE& end, int64_t steps, double base, REST) {                   \
        return ops::call_by_name("aten::logspace", FROM("logspace"), TO("logspace"), steps, base, dtype, layout,   \
                                 device, pin);                                                                     \
      })                                                                                                           \
      .kind(ops::OpKind::kComposite);
#define START_TENSOR(NAME) number_of(start, NAME)
#define END_TENSOR(NAME) number_of(end, NAME)
#define START_NUMBER(NAME) Value(start)
#define END_NUMBER(NAME) Value(end)
SPACE("Tensor_Tensor", Tensor, Tensor, START_TENSOR, END_TENSOR)
SPACE("Tensor_Scalar", Tensor, Scalar, START_TENSOR, END_NUMBER)
SPACE("Scalar_Tensor", Scalar, Tensor, START_NUMBER, END_TENSOR)
#undef SPACE
#undef REST

OP("aten::narrow.Tensor")
    .impl([](const Tensor& x, int64_t dim, const Tensor& start, int64_t length) {
      check(start.ndim() == 0 && is_integral(start.dtype(), false), "start must be an 0-dim integral Tensor.");
      return ops::narrow(x, dim, start.item_int(), length);
    })
    .composite()
    .dynamic_shape();

}  // namespace
}  // namespace tensord::kernels
