#include <algorithm>

#include "core/tensor/strided_copy.h"
#include "kernels/fused/gradient_expr.h"
#include "kernels/index/index.h"
#include "kernels/view/view.h"

// Writes by indices along one dimension, and take.
namespace tensord::kernels {
namespace {

using ops::KernelContext;
using ops::Scalar;
using ops::TensorMeta;

// Where the kernel reads self: `out` starts as its copy unless it is self already.
void start_from(const Tensor& self, const Tensor& out) {
  if (overlap(self, out) != Overlap::kFull) strided_copy(out, self);
}

// A copy of the indices as int64; int32 and int64 are accepted.
std::vector<int64_t> read_indices(const Tensor& index, const char* op) {
  check(index.dtype() == DType::kInt64 || index.dtype() == DType::kInt32, op,
        "(): Expected dtype int32 or int64 for index");
  const Tensor wide = index.to(DType::kInt64).contiguous();
  return {wide.data<int64_t>(), wide.data<int64_t>() + wide.numel()};
}

void check_indices(const std::vector<int64_t>& indices, int64_t size) {
  for (int64_t i : indices) {
    if (i < 0 || i >= size) [[unlikely]]
      fail(ErrorCode::kOutOfRange, "index out of range in self");
  }
}

TensorMeta like_self(const Tensor& x) {
  const bool dense = is_non_overlapping_and_dense(x.sizes(), x.strides());
  return {x.sizes(), x.dtype(), dense ? x.strides() : Dims(), x.device()};
}

TensorMeta index_add_meta(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source, const Scalar&) {
  dim = wrap_dim(dim, x.ndim());
  check(index.ndim() <= 1, "index_add(): Index is supposed to be a vector, but got dim: ", index.ndim());
  check(x.dtype() == source.dtype(), "index_add(): self and source must have the same scalar type");
  const int64_t length = source.ndim() == 0 ? 1 : source.sizes()[wrap_dim(dim, source.ndim())];
  check(index.numel() == length, "index_add(): Number of indices (", index.numel(),
        ") should be equal to source.size(dim): (", length, "), for dim: ", dim);
  check(x.ndim() == source.ndim(), "index_add(): self and source must have the same number of dimensions");
  for (int64_t d = 0; d < x.ndim(); ++d) {
    check(d == dim || x.sizes()[d] == source.sizes()[d],
          "index_add(): the sizes of self and source differ at dimension ", d);
  }
  return like_self(x);
}

void index_add_kernel(const KernelContext&, const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source,
                      const Scalar& alpha, Tensor& out) {
  std::vector<int64_t> indices = read_indices(index, "index_add");
  dim = wrap_dim(dim, x.ndim());
  check_indices(indices, x.ndim() == 0 ? 1 : x.sizes()[dim]);
  start_from(x, out);
  if (source.numel() == 0) return;
  dispatch_all(x.dtype(), "index_add", [&]<class T>() {
    const T factor = alpha.to<T>();
    const auto add = [&](const Tensor& to, const Tensor& from) {
      const Tensor dense = from.contiguous();
      const T* value = dense.data<T>();
      T* base = to.data<T>();
      for (int64_t offset : element_offsets(to.sizes(), to.strides()))
        base[offset] = static_cast<T>(base[offset] + *value++ * factor);
    };
    if (x.ndim() == 0) return add(out, source);
    for (size_t i = 0; i < indices.size(); ++i)
      add(select(out, dim, indices[i]), select(source, dim, static_cast<int64_t>(i)));
  });
}

TensorMeta index_copy_meta(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source) {
  return index_add_meta(x, dim, index, source, 1);
}
void index_copy_kernel(const KernelContext&, const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source,
                       Tensor& out) {
  const std::vector<int64_t> indices = read_indices(index, "index_copy");
  dim = wrap_dim(dim, x.ndim());
  check_indices(indices, x.ndim() == 0 ? 1 : x.sizes()[dim]);
  start_from(x, out);
  if (x.ndim() == 0) return strided_copy(out, source);
  for (size_t i = 0; i < indices.size(); ++i)
    strided_copy(select(out, dim, indices[i]), select(source, dim, static_cast<int64_t>(i)));
}

TensorMeta index_fill_meta(const Tensor& x, int64_t dim, const Tensor& index, const Scalar&) {
  wrap_dim(dim, x.ndim());
  check(index.dtype() == DType::kInt64, "index_fill_(): Expected dtype int64 for index.");
  check(index.ndim() <= 1, "Index has to be a vector/scalar");
  return like_self(x);
}
void index_fill_kernel(const KernelContext&, const Tensor& x, int64_t dim, const Tensor& index, const Scalar& value,
                       Tensor& out) {
  const std::vector<int64_t> indices = read_indices(index, "index_fill");
  dim = wrap_dim(dim, x.ndim());
  start_from(x, out);
  const Tensor fill = value.is_float() ? Tensor::scalar(value.to_double()) : Tensor::scalar(value.to_int());
  for (int64_t i : indices) {
    const int64_t at = wrap_position(i, x.ndim() == 0 ? 1 : x.sizes()[dim], dim);
    (x.ndim() == 0 ? out : select(out, dim, at)).copy_from(fill);
  }
}
TensorMeta index_fill_tensor_meta(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& value) {
  check(value.ndim() == 0, "index_fill_ only supports a 0-dimensional value tensor, but got tensor with ", value.ndim(),
        " dimension(s).");
  return index_fill_meta(x, dim, index, 0);
}
void index_fill_tensor_kernel(const KernelContext& context, const Tensor& x, int64_t dim, const Tensor& index,
                              const Tensor& value, Tensor& out) {
  index_fill_kernel(context, x, dim, index,
                    is_floating(value.dtype()) ? Scalar(value.item_double()) : Scalar(value.item_int()), out);
}

TensorMeta take_meta(const Tensor& x, const Tensor& index) {
  check(index.dtype() == DType::kInt64, "take(): Expected a long tensor for index, but got ", name_of(index.dtype()));
  return {index.sizes(), x.dtype(), {}, x.device()};
}
void take_kernel(const KernelContext&, const Tensor& x, const Tensor& index, Tensor& out) {
  const Tensor from = x.contiguous();
  const std::vector<int64_t> indices = read_indices(index, "take");
  dispatch_width(x.dtype(), [&]<class T>() {
    T* to = static_cast<T*>(out.raw_data());
    const T* base = static_cast<const T*>(from.raw_data());
    for (int64_t i : indices) {
      if (i < -x.numel() || i >= x.numel()) {
        fail(ErrorCode::kOutOfRange, "out of range: tried to access index ", i, " on a tensor of ", x.numel(),
             " elements.");
      }
      *to++ = base[i < 0 ? i + x.numel() : i];
    }
  });
}

using gradient::of_first;
using ops::call;
using ops::GradArgs;
using ops::Value;

// A gradient with the rows that were overwritten set to zero.
Tensor without_rows(const GradArgs& args, const Tensor& g) {
  const Tensor& index = args.inputs[2].to_tensor();
  const Tensor wide = index.dtype() == DType::kInt64 ? index : call("aten::to.dtype", index, DType::kInt64);
  return call("aten::index_fill.int_Scalar", g, args.inputs[1], wide, 0);
}
// The rows that the indices name, in the shape of the source.
Tensor rows_for(const GradArgs& args, const Tensor& g) {
  const Tensor rows = call("aten::index_select", g, args.inputs[1], args.inputs[2]);
  return call("aten::reshape", rows, gradient::sizes_of(args, 3));
}
std::vector<Tensor> index_add_gradient(const GradArgs& args) {
  std::vector<Tensor> gradients(args.inputs.size());
  const Tensor& g = args.grad_outputs[0];
  if (!g) return gradients;
  if (args.needs(0)) gradients[0] = g;
  if (args.needs(3)) gradients[3] = call("aten::mul.Scalar", rows_for(args, g), args.inputs[4]);
  return gradients;
}
std::vector<Tensor> index_copy_gradient(const GradArgs& args) {
  std::vector<Tensor> gradients(args.inputs.size());
  const Tensor& g = args.grad_outputs[0];
  if (!g) return gradients;
  if (args.needs(0)) gradients[0] = without_rows(args, g);
  if (args.needs(3)) gradients[3] = rows_for(args, g);
  return gradients;
}
std::vector<Tensor> index_fill_gradient(const GradArgs& args) {
  std::vector<Tensor> gradients(args.inputs.size());
  const Tensor& g = args.grad_outputs[0];
  if (!g) return gradients;
  if (args.needs(0)) gradients[0] = without_rows(args, g);
  if (!args.needs(3) || !args.inputs[3].is_tensor()) return gradients;
  gradients[3] =
      gradient::fit_gradient(call("aten::index_select", g, args.inputs[1], args.inputs[2]), args.inputs[3].to_tensor());
  return gradients;
}
Tensor take_gradient(const GradArgs& args, const Tensor& g) {
  const Tensor flat = call("aten::reshape", gradient::zeros_like(args.inputs[0]), Dims{-1});
  const Value indices = ops::make_list(ops::optional_type(ops::tensor_type()), {args.inputs[1]});
  return call("aten::reshape", call("aten::index_put", flat, indices, g, true), gradient::sizes_of(args, 0));
}

OP("aten::index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor")
    .infer(index_add_meta)
    .gradient(index_add_gradient)
    .saves("index")
    .with_inplace();
KERNEL("aten::index_add", kCPU, index_add_kernel);
OP("aten::index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor")
    .infer(index_copy_meta)
    .gradient(index_copy_gradient)
    .saves("index")
    .with_inplace();
KERNEL("aten::index_copy", kCPU, index_copy_kernel);
OP("aten::index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor")
    .infer(index_fill_meta)
    .gradient(index_fill_gradient)
    .saves("index")
    .with_inplace();
KERNEL("aten::index_fill.int_Scalar", kCPU, index_fill_kernel);
OP("aten::index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor")
    .infer(index_fill_tensor_meta)
    .gradient(index_fill_gradient)
    .saves("index")
    .with_inplace();
KERNEL("aten::index_fill.int_Tensor", kCPU, index_fill_tensor_kernel);
OP("aten::take(Tensor self, Tensor index) -> Tensor").infer(take_meta).gradient(of_first(take_gradient)).saves("index");
KERNEL("aten::take", kCPU, take_kernel);

}  // namespace
}  // namespace tensord::kernels
