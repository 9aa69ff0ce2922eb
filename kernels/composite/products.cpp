// Operators composed of a few others: gated units, contractions over any dimensions, cross products, traces.
#include <algorithm>

#include "core/ops/op.h"
#include "core/ops/run.h"
#include "ops/linear.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

Tensor mul(const Tensor& a, const Tensor& b) { return ops::mul(a, b); }

// One half of the dimension, gated by the other.
Tensor glu(const Tensor& x, int64_t dim) {
  check(x.ndim() > 0, "glu does not support 0-dimensional tensors");
  const int64_t wrapped = wrap_dim(dim, x.ndim()), size = x.size(wrapped);
  check(size % 2 == 0, "Halving dimension must be even, but dimension ", wrapped, " is size ", size);
  const Tensor value = ops::slice(x, wrapped, int64_t{0}, size / 2, int64_t{1});
  const Tensor gate = ops::slice(x, wrapped, size / 2, size, int64_t{1});
  return mul(value, ops::sigmoid(gate));
}
OP("aten::glu").impl(glu).composite();

// The dimensions that are not contracted, in order.
Dims free_dims(const Tensor& x, const Dims& contracted) {
  Dims out;
  for (int64_t i = 0; i < x.ndim(); ++i) {
    if (std::find(contracted.begin(), contracted.end(), i) == contracted.end()) out.push_back(i);
  }
  return out;
}

Dims wrapped_dims(const Dims& dims, const Tensor& x) {
  Dims out;
  for (const int64_t dim : dims) {
    const int64_t wrapped = wrap_dim(dim, x.ndim());
    check(std::find(out.begin(), out.end(), wrapped) == out.end(), "dim ", wrapped,
          " appears multiple times in the list of dims");
    out.push_back(wrapped);
  }
  return out;
}

Tensor permuted(const Tensor& x, const Dims& first, const Dims& second, const Dims& sizes) {
  Dims order = first;
  for (const int64_t dim : second) order.push_back(dim);
  return ops::reshape(ops::permute(x, order), sizes);
}

// One matrix product of permuted operands. A contracted dimension of size 1 is expanded.
Tensor tensordot(Tensor a, Tensor b, const Dims& given_a, const Dims& given_b) {
  check(given_a.size() == given_b.size(), "both dimension lists should have same length");
  const Dims dims_a = wrapped_dims(given_a, a), dims_b = wrapped_dims(given_b, b);
  int64_t contracted = 1;
  for (size_t i = 0; i < dims_a.size(); ++i) {
    const int64_t size_a = a.size(dims_a[i]), size_b = b.size(dims_b[i]);
    if (size_b == 1) {
      a = ops::sum(a, Dims{dims_a[i]}, true);
    } else if (size_a == 1) {
      b = ops::sum(b, Dims{dims_b[i]}, true);
    } else {
      check(size_a == size_b, "contracted dimensions need to match, but first has size ", size_a, " in dim ",
            given_a[i], " and second has size ", size_b, " in dim ", given_b[i]);
      contracted *= size_a;
    }
  }
  const Dims free_a = free_dims(a, dims_a), free_b = free_dims(b, dims_b);
  Dims sizes;
  int64_t rows = 1, columns = 1;
  for (const int64_t dim : free_a) {
    sizes.push_back(a.size(dim));
    rows *= a.size(dim);
  }
  for (const int64_t dim : free_b) {
    sizes.push_back(b.size(dim));
    columns *= b.size(dim);
  }
  const Tensor left = permuted(a, free_a, dims_a, Dims{rows, contracted});
  const Tensor right = permuted(b, dims_b, free_b, Dims{contracted, columns});
  return ops::reshape(ops::mm(left, right), sizes);
}
OP("aten::tensordot").impl(tensordot).composite();

OP("aten::trace")
    .impl([](const Tensor& x) {
      check(x.ndim() == 2, "trace: expected a matrix, but got tensor with dim ", x.ndim());
      return ops::sum(ops::diagonal(x));
    })
    .composite();

// Component i is a[i + 1] b[i + 2] - a[i + 2] b[i + 1], counted modulo 3.
Tensor linalg_cross(const Tensor& a, const Tensor& b, int64_t dim) {
  check(a.ndim() == b.ndim(), "linalg.cross: inputs must have the same number of dimensions.");
  const int64_t wrapped = wrap_dim(dim, a.ndim());
  check(a.size(wrapped) == 3 && b.size(wrapped) == 3, "linalg.cross: inputs dimension ", dim,
        " must have length 3. Got ", a.size(wrapped), " and ", b.size(wrapped));
  const auto rolled = [&](const Tensor& x, int64_t by) { return ops::roll(x, Dims{by}, Dims{wrapped}); };
  return ops::sub(mul(rolled(a, -1), rolled(b, -2)), mul(rolled(a, -2), rolled(b, -1)));
}
OP("aten::linalg_cross").impl(linalg_cross).composite();
OP("aten::cross")
    .impl([](const Tensor& a, const Tensor& b, std::optional<int64_t> dim) {
      if (dim) return linalg_cross(a, b, *dim);
      const auto of_three = std::find(a.sizes().begin(), a.sizes().end(), 3);
      check(of_three != a.sizes().end(), "no dimension of size 3 in input");
      return linalg_cross(a, b, of_three - a.sizes().begin());
    })
    .composite();

}  // namespace
}  // namespace tensord::kernels
