#include "kernels/view/view.h"

#include <algorithm>
#include <limits>

#include "kernels/expr/expr.h"
#include "ops/view.h"

namespace tensord::kernels {

Tensor transpose(const Tensor& x, int64_t dim0, int64_t dim1) {
  dim0 = wrap_dim(dim0, x.ndim());
  dim1 = wrap_dim(dim1, x.ndim());
  if (dim0 == dim1) return x.as_view(x.sizes(), x.strides(), x.offset());
  Dims sizes = x.sizes(), strides = x.strides();
  std::swap(sizes[dim0], sizes[dim1]);
  std::swap(strides[dim0], strides[dim1]);
  return x.as_view(std::move(sizes), std::move(strides), x.offset());
}

Tensor permute(const Tensor& x, const IntList& dims) {
  const auto ndim = static_cast<size_t>(x.ndim());
  check(dims.size() == ndim,
        "permute(sparse_coo): number of dimensions in the tensor input does not match the length "
        "of the desired ordering of dimensions i.e. input.dim() = ",
        ndim, " is not equal to len(dims) = ", dims.size());
  Dims sizes(ndim, 0), strides(ndim, 0);
  std::vector<bool> seen(ndim);
  for (size_t i = 0; i < ndim; ++i) {
    const auto dim = static_cast<size_t>(wrap_dim(dims[i], x.ndim()));
    check(!seen[dim], "permute(): duplicate dims are not allowed.");
    seen[dim] = true;
    sizes[i] = x.sizes()[dim];
    strides[i] = x.strides()[dim];
  }
  return x.as_view(std::move(sizes), std::move(strides), x.offset());
}

Tensor unsqueeze(const Tensor& x, int64_t dim) {
  dim = wrap_dim(dim, x.ndim() + 1);
  Dims sizes = x.sizes(), strides = x.strides();
  const int64_t stride = dim < x.ndim() ? sizes[dim] * strides[dim] : 1;
  sizes.insert(dim, 1);
  strides.insert(dim, stride);
  return x.as_view(std::move(sizes), std::move(strides), x.offset());
}

namespace {

Tensor squeeze_dim(const Tensor& x, int64_t dim) {
  dim = wrap_dim(dim, x.ndim());
  Dims sizes = x.sizes(), strides = x.strides();
  if (x.ndim() > 0 && sizes[dim] == 1) {
    sizes.erase(dim);
    strides.erase(dim);
  }
  return x.as_view(std::move(sizes), std::move(strides), x.offset());
}

Tensor squeeze_dims(const Tensor& x, const Dims& dims) {
  std::vector<bool> is_named(static_cast<size_t>(std::max<int64_t>(x.ndim(), 1)), false);
  for (const int64_t dim : dims) is_named[static_cast<size_t>(wrap_dim(dim, x.ndim()))] = true;
  Dims sizes, strides;
  for (int64_t d = 0; d < x.ndim(); ++d) {
    if (is_named[static_cast<size_t>(d)] && x.sizes()[d] == 1) continue;
    sizes.push_back(x.sizes()[d]);
    strides.push_back(x.strides()[d]);
  }
  return x.as_view(std::move(sizes), std::move(strides), x.offset());
}

Tensor squeeze_all(const Tensor& x) {
  Dims sizes, strides;
  for (int64_t d = 0; d < x.ndim(); ++d) {
    if (x.sizes()[d] == 1) continue;
    sizes.push_back(x.sizes()[d]);
    strides.push_back(x.strides()[d]);
  }
  return x.as_view(std::move(sizes), std::move(strides), x.offset());
}

}  // namespace

Tensor select(const Tensor& x, int64_t dim, int64_t index) {
  check(x.ndim() > 0, "select() cannot be applied to a 0-dim tensor.");
  dim = wrap_dim(dim, x.ndim());
  Dims sizes = x.sizes(), strides = x.strides();
  const int64_t size = sizes[dim];
  if (index < -size || index >= size) {
    fail(ErrorCode::kOutOfRange, "select(): index ", index, " out of range for tensor of size ", x.sizes(),
         " at dimension ", dim);
  }
  if (index < 0) index += size;
  const int64_t offset = x.offset() + index * strides[dim];
  sizes.erase(dim);
  strides.erase(dim);
  return x.as_view(std::move(sizes), std::move(strides), offset);
}

Tensor slice(const Tensor& x, int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end, int64_t step) {
  check(x.ndim() > 0, "slice() cannot be applied to a 0-dim tensor.");
  dim = wrap_dim(dim, x.ndim());
  check(step > 0, "slice step must be positive");
  Dims sizes = x.sizes(), strides = x.strides();
  const int64_t size = sizes[dim];
  int64_t first = start.value_or(0), last = end.value_or(std::numeric_limits<int64_t>::max());
  if (first < 0) first += size;
  if (last < 0) last += size;
  first = std::clamp<int64_t>(first, 0, size);
  last = std::clamp<int64_t>(last, first, size);
  const int64_t length = last - first;
  sizes[dim] = length == 0 ? 0 : (length - 1) / step + 1;
  const int64_t offset = x.offset() + first * strides[dim];
  // A step larger than the size could overflow the stride; a single element needs none.
  if (sizes[dim] > 1) strides[dim] *= step;
  return x.as_view(std::move(sizes), std::move(strides), offset);
}

Tensor narrow(const Tensor& x, int64_t dim, int64_t start, int64_t length) {
  check(x.ndim() > 0, "narrow() cannot be applied to a 0-dim tensor.");
  check(length >= 0, "narrow(): length must be non-negative.");
  dim = wrap_dim(dim, x.ndim());
  const int64_t size = x.sizes()[dim];
  if (start < -size || start > size) {
    fail(ErrorCode::kOutOfRange, "Dimension out of range (expected to be in range of [", -size, ", ", size - 1,
         "], but got ", start, ")");
  }
  if (start < 0) start += size;
  check(length <= size - start, "start (", start, ") + length (", length, ") exceeds dimension size (", size, ").");
  return slice(x, dim, start, start + length, 1);
}

Tensor expand(const Tensor& x, const IntList& sizes) {
  const auto ndim = static_cast<int64_t>(sizes.size());
  check(ndim >= x.ndim(), "expand(", name_of(x.dtype()), x.sizes(), ", size=", to_string(sizes),
        "): the number of sizes provided (", ndim,
        ") must be greater or equal to the number of dimensions in the tensor (", x.ndim(), ")");
  Dims new_sizes(sizes.size(), 0), strides(sizes.size(), 0);
  for (int64_t i = ndim - 1; i >= 0; --i) {
    const int64_t dim = i - (ndim - x.ndim());
    const int64_t size = dim >= 0 ? x.sizes()[dim] : 1;
    int64_t target = sizes[i];
    if (target == -1) {
      check(dim >= 0, "The expanded size of the tensor (", target,
            ") isn't allowed in a leading, non-existing dimension ", i);
      target = size;
    }
    check(target >= 0, "The expanded size of the tensor (", target,
          ") isn't allowed in a leading, non-existing dimension ", i);
    check(size == target || size == 1, "The expanded size of the tensor (", target, ") must match the existing size (",
          size, ") at non-singleton dimension ", i, ".  Target sizes: ", to_string(sizes),
          ".  Tensor sizes: ", x.sizes());
    new_sizes[i] = target;
    strides[i] = dim >= 0 && size == target ? x.strides()[dim] : 0;
  }
  return x.as_view(std::move(new_sizes), std::move(strides), x.offset());
}

Tensor as_strided(const Tensor& x, const IntList& sizes, const IntList& strides, int64_t offset) {
  if (!x.is_meta()) {
    Tensor out = Tensor::from_storage(x.storage(), sizes, strides, offset, x.dtype());
    return x.as_view(out.sizes(), out.strides(), offset);
  }
  check(sizes.size() == strides.size(), "mismatch in length of strides and shape");
  check(offset >= 0, "Tensor: invalid storage offset ", offset);
  return x.as_view(sizes, strides, offset);
}

Tensor diagonal(const Tensor& x, int64_t offset, int64_t dim1, int64_t dim2) {
  dim1 = wrap_dim(dim1, x.ndim());
  dim2 = wrap_dim(dim2, x.ndim());
  check(dim1 != dim2, "diagonal dimensions cannot be identical ", dim1, ", ", dim2);
  Dims sizes = x.sizes(), strides = x.strides();
  check(offset > -(int64_t{1} << 62) && offset < (int64_t{1} << 62), "diagonal: offset ", offset, " is too large");
  const int64_t length = std::max<int64_t>(
      offset >= 0 ? std::min(sizes[dim1], sizes[dim2] - offset) : std::min(sizes[dim1] + offset, sizes[dim2]), 0);
  int64_t start = x.offset();
  if (length > 0) start += offset >= 0 ? offset * strides[dim2] : -offset * strides[dim1];
  const int64_t stride = strides[dim1] + strides[dim2];
  for (int64_t dim : {std::max(dim1, dim2), std::min(dim1, dim2)}) {
    sizes.erase(dim);
    strides.erase(dim);
  }
  sizes.push_back(length);
  strides.push_back(stride);
  return x.as_view(std::move(sizes), std::move(strides), start);
}

Tensor unfold(const Tensor& x, int64_t dimension, int64_t size, int64_t step) {
  const int64_t dim = wrap_dim(dimension, x.ndim());
  const int64_t length = x.ndim() == 0 ? 1 : x.sizes()[dim];
  check(size <= length, "maximum size for tensor at dimension ", dim, " is ", length, " but size is ", size);
  check(size >= 0, "size is ", size, " but must be >= 0");
  check(step > 0, "step is ", step, " but must be > 0");
  Dims sizes = x.sizes(), strides = x.strides();
  sizes.push_back(size);
  strides.push_back(x.ndim() == 0 ? 1 : strides[dim]);
  if (x.ndim() > 0) {
    sizes[dim] = (length - size) / step + 1;
    if (sizes[dim] > 1) strides[dim] *= step;
  }
  return x.as_view(std::move(sizes), std::move(strides), x.offset());
}

namespace {

Tensor alias(const Tensor& x) { return x.as_view(x.sizes(), x.strides(), x.offset()); }

Tensor transpose_all(const Tensor& x) {
  Dims dims(x.sizes().size(), 0);
  for (size_t i = 0; i < dims.size(); ++i) dims[i] = static_cast<int64_t>(dims.size() - 1 - i);
  return permute(x, dims);
}

Tensor transpose_2d(const Tensor& x) {
  check(x.ndim() <= 2, "t() expects a tensor with <= 2 dimensions, but self is ", x.ndim(), "D");
  return transpose_all(x);
}

Tensor transpose_matrix(const Tensor& x) {
  if (x.ndim() == 0) return alias(x);
  check(x.ndim() >= 2, "tensor.mT is only supported on matrices or batches of matrices. Got ", x.ndim(), "-D tensor.");
  return transpose(x, -2, -1);
}

Tensor transpose_matrix_2d(const Tensor& x) {
  check(x.ndim() == 0 || x.ndim() == 2, "tensor.H is only supported on matrices (2-D tensors). Got ", x.ndim(),
        "-D tensor.");
  if (x.ndim() == 0) return x.as_view(x.sizes(), x.strides(), x.offset());
  return transpose(x, -2, -1);
}

Tensor movedim(const Tensor& x, const IntList& source, const IntList& destination) {
  check(source.size() == destination.size(), "movedim: Invalid source or destination dims: source (", to_string(source),
        " dims) should contain the same number of dims as destination (", to_string(destination), " dims)");
  const auto ndim = static_cast<size_t>(x.ndim());
  Dims order(ndim, -1);
  std::vector<bool> used(ndim);
  for (size_t i = 0; i < source.size(); ++i) {
    const int64_t from = wrap_dim(source[i], x.ndim()), to = wrap_dim(destination[i], x.ndim());
    if (ndim == 0) continue;
    check(!used[from], "movedim: repeated dim in `source` (", to_string(source), ")");
    check(order[to] == -1, "movedim: repeated dim in `destination` (", to_string(destination), ")");
    used[from] = true;
    order[to] = from;
  }
  size_t next = 0;
  for (size_t i = 0; i < ndim; ++i) {
    if (order[i] != -1) continue;
    while (used[next]) ++next;
    order[i] = static_cast<int64_t>(next++);
  }
  return permute(x, order);
}

using gradient::ints_of;
using gradient::of_first;
using gradient::sizes_of;
using ops::GradArgs;

// Gradients of views put the incoming gradient back where it came from.

gradient::GradientFn moved_back(const char* op) {
  return of_first(
      [op](const GradArgs& args, const Tensor& g) { return ops::call_by_name(op, g, args.inputs[2], args.inputs[1]); });
}
gradient::GradientFn same_again(const char* op) {
  return of_first([op](const GradArgs&, const Tensor& g) { return ops::call_by_name(op, g); });
}
gradient::GradientFn fitted() {
  return of_first(
      [](const GradArgs& args, const Tensor& g) { return gradient::fit_gradient(g, args.inputs[0].to_tensor()); });
}
Tensor permute_gradient(const GradArgs& args, const Tensor& g) {
  const Dims dims = ints_of(args, 1);
  Dims back(dims.size(), 0);
  for (size_t i = 0; i < dims.size(); ++i) back[wrap_dim(dims[i], g.ndim())] = static_cast<int64_t>(i);
  return ops::permute(g, back);
}
Tensor select_gradient(const GradArgs& args, const Tensor& g) {
  return ops::select_backward(g, sizes_of(args, 0), args.inputs[1].to_int(), args.inputs[2].to_int());
}
Tensor slice_gradient(const GradArgs& args, const Tensor& g) {
  // Missing bounds are those of the whole dimension.
  const auto bound = [&](size_t i, int64_t otherwise) {
    return args.inputs[i].is_none() ? otherwise : args.inputs[i].to_int();
  };
  return ops::slice_backward(g, sizes_of(args, 0), args.inputs[1].to_int(), bound(2, 0),
                             bound(3, std::numeric_limits<int64_t>::max()), args.inputs[4].to_int());
}
Tensor narrow_gradient(const GradArgs& args, const Tensor& g) {
  const int64_t dim = args.inputs[1].to_int(), start = args.inputs[2].to_int();
  const int64_t first = start < 0 ? start + args.inputs[0].to_tensor().size(dim) : start;
  return ops::slice_backward(g, sizes_of(args, 0), dim, first, first + args.inputs[3].to_int(), 1);
}
Tensor diagonal_gradient(const GradArgs& args, const Tensor& g) {
  return ops::diagonal_backward(g, sizes_of(args, 0), args.inputs[1].to_int(), args.inputs[2].to_int(),
                                args.inputs[3].to_int());
}
Tensor unfold_gradient(const GradArgs& args, const Tensor& g) {
  return ops::unfold_backward(g, sizes_of(args, 0), args.inputs[1].to_int(), args.inputs[2].to_int(),
                              args.inputs[3].to_int());
}
Tensor as_strided_gradient(const GradArgs& args, const Tensor& g) {
  const Tensor& x = args.inputs[0].to_tensor();
  const int64_t offset = args.inputs[3].is_none() ? x.offset() : args.inputs[3].to_int();
  return ops::tensord_as_strided_scatter_add(g, x.sizes(), x.strides(), x.offset(), ops::unbox<Dims>(args.inputs[1]),
                                             ops::unbox<Dims>(args.inputs[2]), offset);
}

#define VIEW(NAME, FUNCTION, GRADIENT) OP(NAME).impl(FUNCTION).gradient(GRADIENT).saves("")
Tensor movedim_int(const Tensor& x, int64_t source, int64_t destination) {
  return movedim(x, Dims{source}, Dims{destination});
}
VIEW("aten::transpose.int", transpose, moved_back("aten::transpose.int"));
VIEW("aten::swapaxes", transpose, moved_back("aten::transpose.int"));
VIEW("aten::swapdims", transpose, moved_back("aten::transpose.int"));
VIEW("aten::t", transpose_2d, same_again("aten::t"));
VIEW("aten::numpy_T", transpose_all, same_again("aten::numpy_T"));
VIEW("aten::matrix_H", transpose_matrix_2d, same_again("aten::matrix_H"));
VIEW("aten::mT", transpose_matrix, same_again("aten::mT"));
VIEW("aten::mH", transpose_matrix, same_again("aten::mT"));
VIEW("aten::permute", permute, of_first(permute_gradient));
VIEW("aten::movedim.intlist", movedim, moved_back("aten::movedim.intlist"));
VIEW("aten::movedim.int", movedim_int, moved_back("aten::movedim.int"));
VIEW("aten::moveaxis.intlist", movedim, moved_back("aten::movedim.intlist"));
VIEW("aten::moveaxis.int", movedim_int, moved_back("aten::movedim.int"));
VIEW("aten::unsqueeze", unsqueeze,
     of_first([](const GradArgs& args, const Tensor& g) { return ops::squeeze(g, args.inputs[1].to_int()); }));
VIEW("aten::squeeze", squeeze_all,
     of_first([](const GradArgs& args, const Tensor& g) { return ops::reshape(g, sizes_of(args, 0)); }));
VIEW("aten::squeeze.dim", squeeze_dim, of_first([](const GradArgs& args, const Tensor& g) {
       const bool is_removed = g.ndim() < args.inputs[0].to_tensor().ndim();
       return is_removed ? ops::unsqueeze(g, args.inputs[1].to_int()) : g;
     }));
VIEW("aten::squeeze.dims", squeeze_dims,
     of_first([](const GradArgs& args, const Tensor& g) { return ops::reshape(g, sizes_of(args, 0)); }));
VIEW("aten::select.int", select, of_first(select_gradient));
VIEW("aten::slice.Tensor", slice, of_first(slice_gradient));
VIEW("aten::narrow", narrow, of_first(narrow_gradient));
VIEW(
    "aten::expand", [](const Tensor& x, const IntList& sizes, bool) { return expand(x, sizes); }, fitted());
VIEW(
    "aten::expand_as", [](const Tensor& x, const Tensor& other) { return expand(x, other.sizes()); }, fitted());
VIEW("aten::broadcast_to", expand, fitted());
VIEW("aten::diagonal", diagonal, of_first(diagonal_gradient));
VIEW("aten::linalg_diagonal", diagonal, of_first(diagonal_gradient));
VIEW("aten::unfold", unfold, of_first(unfold_gradient));
VIEW(
    "aten::as_strided",
    [](const Tensor& x, const IntList& sizes, const IntList& strides, std::optional<int64_t> offset) {
      return as_strided(x, sizes, strides, offset.value_or(x.offset()));
    },
    of_first(as_strided_gradient));
VIEW("aten::alias", alias, of_first([](const GradArgs&, const Tensor& g) { return g; }));
VIEW(
    "aten::positive",
    [](const Tensor& x) {
      check(x.dtype() != DType::kBool, "The `+` operator, on a bool tensor is not supported.");
      return alias(x);
    },
    of_first([](const GradArgs&, const Tensor& g) { return g; }));
OP("aten::detach").impl(alias).constant_result();
OP("prim::data").impl(alias).constant_result();

}  // namespace
}  // namespace tensord::kernels
