#include "kernels/view/cat.h"
#include "core/ops/attributes/batch_independence.h"
#include "core/ops/attributes/written.h"
#include "kernels/expr/expr.h"
#include "kernels/view/view.h"
#include "ops/view.h"

// Joining tensors: cat, stack and others like them.
namespace tensord::kernels {
namespace {

using ops::KernelContext;
using ops::TensorList;
using ops::TensorMeta;
using ops::WritesInto;

DType joint_dtype(const TensorList& tensors) {
  DType dtype = tensors[0].dtype();
  for (const Tensor& x : tensors) dtype = promote_types(dtype, x.dtype());
  return dtype;
}

TensorMeta cat_meta(const TensorList& tensors, int64_t dim) {
  check(!tensors.empty(), "torch.cat(): expected a non-empty list of Tensors");
  const Tensor* first = nullptr;
  for (size_t i = 0; i < tensors.size(); ++i) {
    check(tensors[i].ndim() > 0, "zero-dimensional tensor (at position ", i, ") cannot be concatenated");
    if (!first && !is_skipped(tensors[i])) first = &tensors[i];
  }
  const DType dtype = joint_dtype(tensors);
  if (!first) {
    wrap_dim(dim, 1);
    return {Dims{0}, dtype, {}, tensors[0].device()};
  }
  dim = wrap_dim(dim, first->ndim());
  Dims sizes = first->sizes();
  int64_t total = 0;
  bool all_channels_last = true;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& x = tensors[i];
    if (is_skipped(x)) continue;
    check(x.ndim() == first->ndim(), "Tensors must have same number of dimensions: got ", first->ndim(), " and ",
          x.ndim());
    for (int64_t d = 0; d < x.ndim(); ++d) {
      check(d == dim || x.sizes()[d] == sizes[d], "Sizes of tensors must match except in dimension ", dim,
            ". Expected size ", sizes[d], " but got size ", x.sizes()[d], " for tensor number ", i, " in the list.");
    }
    check(!__builtin_add_overflow(total, x.sizes()[dim], &total), "cat: the joint size overflows");
    all_channels_last = all_channels_last && x.is_channels_last() && !x.is_contiguous();
  }
  sizes[dim] = total;
  Dims strides;
  if (all_channels_last && (sizes.size() == 4 || sizes.size() == 5)) strides = channels_last_strides(sizes);
  return {std::move(sizes), dtype, std::move(strides), first->device()};
}

TensorList unsqueeze_all(const TensorList& tensors, int64_t dim) {
  TensorList out;
  for (const Tensor& x : tensors) out.push_back(unsqueeze(x, dim));
  return out;
}

TensorMeta stack_meta(const TensorList& tensors, int64_t dim) {
  check(!tensors.empty(), "stack expects a non-empty TensorList");
  for (size_t i = 1; i < tensors.size(); ++i) {
    check(tensors[i].sizes() == tensors[0].sizes(), "stack expects each tensor to be equal size, but got ",
          tensors[0].sizes(), " at entry 0 and ", tensors[i].sizes(), " at entry ", i);
  }
  dim = wrap_dim(dim, tensors[0].ndim() + 1);
  Dims sizes = tensors[0].sizes();
  sizes.insert(dim, static_cast<int64_t>(tensors.size()));
  return {std::move(sizes), joint_dtype(tensors), {}, tensors[0].device()};
}

void stack_kernel(const KernelContext& context, const TensorList& tensors, int64_t dim, Tensor& out) {
  cat_kernel(context, unsqueeze_all(tensors, dim), wrap_dim(dim, out.ndim()), out);
}

int64_t hstack_dim(const TensorList& tensors) { return !tensors.empty() && tensors[0].ndim() <= 1 ? 0 : 1; }

TensorList at_least(const TensorList& tensors, int64_t ndim) {
  TensorList out;
  for (Tensor x : tensors) {
    if (x.ndim() == 0) x = unsqueeze(x, 0);
    if (x.ndim() == 1 && ndim >= 2) x = unsqueeze(x, 0);
    if (x.ndim() == 2 && ndim >= 3) x = unsqueeze(x, 2);
    out.push_back(x);
  }
  return out;
}

TensorMeta hstack_meta(const TensorList& tensors) { return cat_meta(at_least(tensors, 1), hstack_dim(tensors)); }
void hstack_kernel(const KernelContext& context, const TensorList& tensors, Tensor& out) {
  cat_kernel(context, at_least(tensors, 1), hstack_dim(tensors), out);
}
TensorMeta vstack_meta(const TensorList& tensors) { return cat_meta(at_least(tensors, 2), 0); }
void vstack_kernel(const KernelContext& context, const TensorList& tensors, Tensor& out) {
  cat_kernel(context, at_least(tensors, 2), 0, out);
}
TensorMeta dstack_meta(const TensorList& tensors) { return cat_meta(at_least(tensors, 3), 2); }
void dstack_kernel(const KernelContext& context, const TensorList& tensors, Tensor& out) {
  cat_kernel(context, at_least(tensors, 3), 2, out);
}

// The part of each input in the gradient of a concatenation along `dim`, in the input's own shape; `joined` are the
// inputs in the shapes in which they were joined.
std::vector<ops::Value> cut(const ops::GradArgs& args, const TensorList& joined, int64_t dim) {
  const Tensor& g = args.grad_outputs[0];
  if (!g) return {ops::Value()};
  const auto& inputs = args.inputs[0].to_list()->items;
  dim = wrap_dim(dim, g.ndim());
  TensorList gradients;
  int64_t start = 0;
  for (size_t i = 0; i < joined.size(); ++i) {
    const Tensor& input = inputs[i].to_tensor();
    if (is_skipped(joined[i])) {
      gradients.push_back(gradient::zeros_like(input));
      continue;
    }
    const int64_t length = joined[i].sizes()[dim];
    Tensor part = ops::narrow(g, dim, start, length);
    if (!(part.sizes() == input.sizes())) part = ops::reshape(part, input.sizes());
    if (part.dtype() != input.dtype()) part = ops::to(part, input.dtype());
    gradients.push_back(part);
    start += length;
  }
  return {ops::make_tensor_list(gradients)};
}
TensorList inputs_of(const ops::GradArgs& args) { return ops::Unbox<TensorList>::get(args.inputs[0]); }
std::vector<ops::Value> cat_gradient(const ops::GradArgs& args) {
  std::vector<ops::Value> gradients = cut(args, inputs_of(args), args.inputs[1].to_int());
  gradients.emplace_back();
  return gradients;
}
std::vector<ops::Value> stack_gradient(const ops::GradArgs& args) {
  const TensorList inputs = inputs_of(args);
  const int64_t dim = wrap_dim(args.inputs[1].to_int(), inputs[0].ndim() + 1);
  std::vector<ops::Value> gradients = cut(args, unsqueeze_all(inputs, dim), dim);
  gradients.emplace_back();
  return gradients;
}
std::vector<ops::Value> hstack_gradient(const ops::GradArgs& args) {
  const TensorList inputs = inputs_of(args);
  return cut(args, at_least(inputs, 1), hstack_dim(inputs));
}
std::vector<ops::Value> vstack_gradient(const ops::GradArgs& args) {
  return cut(args, at_least(inputs_of(args), 2), 0);
}
std::vector<ops::Value> dstack_gradient(const ops::GradArgs& args) {
  return cut(args, at_least(inputs_of(args), 3), 2);
}

OP("aten::cat")
    .set<ops::BatchIndependent>([](std::span<const ops::Value> v) {
      const auto& items = v[0].to_list()->items;
      return !items.empty() && !ops::is_along_samples(v[1], items.front().to_tensor().ndim());
    })
    .infer(cat_meta)
    .gradient(cat_gradient)
    .saves("")
    .set<WritesInto>(WritesInto::kAnyDType, WritesInto::kSharesNothing)
    .keeps_layout();
IMPL("aten::cat", kCPU, cat_kernel);
#define CAT(NAME)                                                                    \
  OP("aten::" NAME).infer(cat_meta).gradient(cat_gradient).saves("").keeps_layout(); \
  IMPL("aten::" NAME, kCPU, cat_kernel)
CAT("concat");
CAT("concatenate");
OP("aten::stack")
    .infer(stack_meta)
    .gradient(stack_gradient)
    .saves("")
    .set<WritesInto>(WritesInto::kAnyDType, WritesInto::kSharesNothing);
IMPL("aten::stack", kCPU, stack_kernel);
#define STACK(NAME, KIND)                                                   \
  OP("aten::" NAME).infer(KIND##_meta).gradient(KIND##_gradient).saves(""); \
  IMPL("aten::" NAME, kCPU, KIND##_kernel)
STACK("hstack", hstack);
STACK("vstack", vstack);
STACK("row_stack", vstack);
STACK("dstack", dstack);

}  // namespace
}  // namespace tensord::kernels
