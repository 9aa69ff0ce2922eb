#include <algorithm>

#include "kernels/expr/expr.h"
#include "kernels/view/view.h"
#include "ops/view.h"

namespace tensord::kernels {

Tensor view(const Tensor& x, const IntList& sizes) {
  Dims new_sizes = infer_view_sizes(sizes, x.numel());
  bool possible = false;
  Dims strides = view_strides(x.sizes(), x.strides(), new_sizes, &possible);
  check(possible,
        "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
        "contiguous subspaces). Use .reshape(...) instead.");
  return x.as_view(std::move(new_sizes), std::move(strides), x.offset());
}

Tensor reshape(const Tensor& x, const IntList& sizes) {
  Dims new_sizes = infer_view_sizes(sizes, x.numel());
  bool possible = false;
  Dims strides = view_strides(x.sizes(), x.strides(), new_sizes, &possible);
  if (possible) return x.as_view(std::move(new_sizes), std::move(strides), x.offset());
  Dims row_major = contiguous_strides(new_sizes);
  const Tensor copy = x.clone();
  return copy.as_view(std::move(new_sizes), std::move(row_major), copy.offset());
}

namespace {

Tensor flatten(const Tensor& x, int64_t start_dim, int64_t end_dim) {
  start_dim = wrap_dim(start_dim, x.ndim());
  end_dim = wrap_dim(end_dim, x.ndim());
  check(start_dim <= end_dim, "flatten() has invalid args: start_dim cannot come after end_dim");
  if (x.ndim() == 0) return reshape(x, Dims{1});
  if (start_dim == end_dim) return x;
  Dims sizes;
  int64_t merged = 1;
  for (int64_t d = 0; d < x.ndim(); ++d) {
    if (d < start_dim || d > end_dim) {
      sizes.push_back(x.sizes()[d]);
      continue;
    }
    merged *= x.sizes()[d];
    if (d == end_dim) sizes.push_back(merged);
  }
  return reshape(x, sizes);
}

Tensor unflatten(const Tensor& x, int64_t dim, const IntList& sizes) {
  dim = wrap_dim(dim, x.ndim());
  check(!sizes.empty(), "unflatten: sizes must be non-empty");
  check(x.ndim() > 0, "unflatten: a 0-dim tensor has no dimension to split");
  int64_t known = 1;
  std::ptrdiff_t unknown = -1;
  Dims parts = sizes;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i] == -1) {
      check(unknown < 0, "only one dimension can be inferred");
      unknown = static_cast<std::ptrdiff_t>(i);
    } else {
      check(parts[i] >= 0 && !__builtin_mul_overflow(known, parts[i], &known), "invalid shape dimension ", parts[i]);
    }
  }
  const int64_t size = x.sizes()[dim];
  const bool fits = unknown < 0 ? known == size : known > 0 && size % known == 0;
  check(fits, "unflatten: Provided sizes ", to_string(sizes), " don't multiply up to the size of dim ", dim, " (", size,
        ") in the input tensor");
  if (unknown >= 0) parts[unknown] = size / known;
  Dims new_sizes = x.sizes();
  new_sizes.erase(dim);
  for (size_t i = 0; i < parts.size(); ++i) new_sizes.insert(dim + i, parts[i]);
  return view(x, new_sizes);
}

// The same bytes, counted in elements of another width.
struct OtherWidth {
  Dims sizes, strides;
  int64_t offset;

  OtherWidth(const Tensor& x, DType dtype) : sizes(x.sizes()), strides(x.strides()), offset(x.offset()) {
    const auto old_width = static_cast<int64_t>(size_of(x.dtype())), width = static_cast<int64_t>(size_of(dtype));
    if (old_width == width) return;
    const auto need = [&](bool holds, const auto&... what) {
      check(holds, what..., " to view ", name_of(x.dtype()), " as ", name_of(dtype), " (different element sizes)");
    };
    need(x.ndim() > 0, "self.dim() cannot be 0");
    const int64_t last = x.ndim() - 1;
    need(strides[last] == 1, "self.stride(-1) must be 1");
    if (old_width > width) {
      const int64_t ratio = old_width / width;
      sizes[last] *= ratio;
      offset *= ratio;
      for (int64_t d = 0; d < last; ++d) strides[d] *= ratio;
      return;
    }
    const int64_t ratio = width / old_width;
    need(sizes[last] % ratio == 0, "self.size(-1) must be divisible by ", ratio);
    need(offset % ratio == 0, "self.storage_offset() must be divisible by ", ratio);
    for (int64_t d = 0; d < last; ++d) {
      need(strides[d] % ratio == 0, "self.stride(", d, ") must be divisible by ", ratio);
      strides[d] /= ratio;
    }
    sizes[last] /= ratio;
    offset /= ratio;
  }
};

Tensor view_as_dtype(const Tensor& x, DType dtype) {
  const OtherWidth to(x, dtype);
  if (!x.is_meta()) return Tensor::from_storage(x.storage(), to.sizes, to.strides, to.offset, dtype);
  // Stays a view of the same memory: a plan treats a result that is not a view as a copy, which would convert.
  const Tensor view = x.as_view(to.sizes, to.strides, to.offset);
  view.impl()->dtype = dtype;
  return view;
}

Tensor reshape_alias(const Tensor& x, const IntList& sizes, const IntList&) { return view(x, sizes); }

Tensor at_least_dims(const Tensor& x, int64_t ndim) {
  if (x.ndim() >= ndim) return x;
  switch (ndim) {
    case 1: return reshape(x, Dims{1});
    case 2: return x.ndim() == 0 ? reshape(x, Dims{1, 1}) : unsqueeze(x, 0);
    default:
      if (x.ndim() == 0) return reshape(x, Dims{1, 1, 1});
      return x.ndim() == 1 ? unsqueeze(unsqueeze(x, 0), -1) : unsqueeze(x, -1);
  }
}

template <int kDims>
std::vector<Tensor> all_at_least(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> out;
  for (const Tensor& x : tensors) out.push_back(at_least_dims(x, kDims));
  return out;
}

using gradient::of_first;

Tensor reshape_back(const ops::GradArgs& args, const Tensor& g) { return ops::reshape(g, gradient::sizes_of(args, 0)); }
std::vector<ops::Value> reshape_all_back(const ops::GradArgs& args) {
  std::vector<Tensor> gradients;
  const auto& inputs = args.inputs[0].to_list()->items;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& g = args.grad_outputs[i];
    gradients.push_back(g ? ops::reshape(g, inputs[i].to_tensor().sizes()) : Tensor());
  }
  return {ops::make_tensor_list(gradients)};
}

#define RESHAPE(NAME, FUNCTION) OP(NAME).impl(FUNCTION).gradient(of_first(reshape_back)).saves("")
RESHAPE("aten::view", view);
RESHAPE("aten::view_as", [](const Tensor& x, const Tensor& other) { return view(x, other.sizes()); });
RESHAPE("aten::reshape", reshape);
RESHAPE("aten::reshape_as", [](const Tensor& x, const Tensor& other) { return reshape(x, other.sizes()); });
RESHAPE("aten::_reshape_alias", reshape_alias);
RESHAPE("aten::_unsafe_view", [](const Tensor& x, const IntList& sizes) { return view(x, sizes).clone(true); });
RESHAPE("aten::flatten.using_ints", flatten);
RESHAPE("aten::ravel", [](const Tensor& x) { return reshape(x, Dims{-1}); });
RESHAPE("aten::unflatten.int", unflatten);
RESHAPE("aten::atleast_1d", [](const Tensor& x) { return at_least_dims(x, 1); });
RESHAPE("aten::atleast_2d", [](const Tensor& x) { return at_least_dims(x, 2); });
RESHAPE("aten::atleast_3d", [](const Tensor& x) { return at_least_dims(x, 3); });
#define RESHAPE_ALL(NAME, FUNCTION) OP(NAME).impl(FUNCTION).gradient(reshape_all_back).saves("")
RESHAPE_ALL("aten::atleast_1d.Sequence", all_at_least<1>);
RESHAPE_ALL("aten::atleast_2d.Sequence", all_at_least<2>);
RESHAPE_ALL("aten::atleast_3d.Sequence", all_at_least<3>);
OP("aten::view.dtype").impl(view_as_dtype).constant_result();

}  // namespace
}  // namespace tensord::kernels
