// Products of several matrices, products of vectors along a dimension, and linear systems of tensors seen as matrices.
#include <algorithm>
#include <limits>

#include "core/ops/attributes/written.h"
#include "kernels/linalg/algebra.h"
#include "ops/factory.h"
#include "ops/linalg.h"
#include "ops/linear.h"
#include "ops/reduce.h"
#include "ops/view.h"

namespace tensord::kernels::linalg {
namespace {

using ops::WritesInto;

// The order of products that takes the fewest multiplications: the product of matrices i to j is split at split[i][j].
// Matrix i has sizes[i] rows and sizes[i + 1] columns.
class ChainOrder {
 public:
  explicit ChainOrder(const std::vector<int64_t>& sizes) : count_(sizes.size() - 1), split_(count_ * count_) {
    std::vector<double> cost(count_ * count_, 0);
    for (size_t length = 1; length < count_; ++length) {
      for (size_t i = 0; i + length < count_; ++i) {
        const size_t j = i + length;
        double best = std::numeric_limits<double>::infinity();
        for (size_t k = i; k < j; ++k) {
          const double own =
              static_cast<double>(sizes[i]) * static_cast<double>(sizes[k + 1]) * static_cast<double>(sizes[j + 1]);
          const double all = cost[i * count_ + k] + cost[(k + 1) * count_ + j] + own;
          if (all < best) best = all, split_[i * count_ + j] = k;
        }
        cost[i * count_ + j] = best;
      }
    }
  }
  Tensor multiply(const std::vector<Tensor>& matrices) const { return multiply(matrices, 0, count_ - 1); }

 private:
  Tensor multiply(const std::vector<Tensor>& matrices, size_t i, size_t j) const {
    if (i == j) return matrices[i];
    const size_t k = split_[i * count_ + j];
    return ops::mm(multiply(matrices, i, k), multiply(matrices, k + 1, j));
  }

  size_t count_;
  std::vector<size_t> split_;
};

constexpr size_t kMaxMatrices = 1000;  // finding the order takes their cube

void check_multi_dot(const std::vector<Tensor>& tensors) {
  const size_t count = tensors.size();
  check(count >= 2, "multi_dot(): expected at least 2 tensors but got ", count);
  check(count <= kMaxMatrices, "multi_dot(): ", count, " tensors are too many");
  const auto check_end = [](const Tensor& x, const char* which) {
    check(x.ndim() == 1 || x.ndim() == 2, "multi_dot(): the ", which, " tensor must be 1D or 2D but got ", x.ndim(),
          "D");
  };
  check_end(tensors.front(), "first");
  check_end(tensors.back(), "last");
  for (size_t i = 1; i + 1 < count; ++i) {
    check(tensors[i].ndim() == 2, "multi_dot(): tensor ", i, " must be 2D but got ", tensors[i].ndim(), "D");
  }
  for (size_t i = 1; i < count; ++i) {
    check(tensors[i].dtype() == tensors[0].dtype(),
          "multi_dot(): all tensors must have be the same dtype but tensor 0 is ", name_of(tensors[0].dtype()),
          " and tensor ", i, " ", name_of(tensors[i].dtype()));
  }
  for (size_t i = 0; i + 1 < count; ++i) {
    const Tensor &a = tensors[i], &b = tensors[i + 1];
    check(a.sizes().back() == b.sizes()[0], "multi_dot(): tensors ", i, " and ", i + 1, " with shapes ", a.sizes(),
          " and ", b.sizes(), " cannot be multiplied");
  }
}

Tensor multi_dot(const std::vector<Tensor>& tensors) {
  check_multi_dot(tensors);
  std::vector<Tensor> matrices = tensors;
  const bool starts_with_vector = tensors.front().ndim() == 1, ends_with_vector = tensors.back().ndim() == 1;
  if (starts_with_vector) matrices.front() = unsqueezed(matrices.front(), 0);
  if (ends_with_vector) matrices.back() = unsqueezed(matrices.back(), 1);
  std::vector<int64_t> sizes{rows_of(matrices.front())};
  for (const Tensor& matrix : matrices) sizes.push_back(columns_of(matrix));
  Tensor out = ChainOrder(sizes).multiply(matrices);
  if (ends_with_vector) out = ops::squeeze(out, -1);
  if (starts_with_vector) out = ops::squeeze(out, 0);
  return out;
}
OP("aten::linalg_multi_dot").impl(multi_dot).composite().set<WritesInto>(WritesInto::kSameDType);
OP("aten::chain_matmul")
    .impl([](const std::vector<Tensor>& matrices) {
      for (const Tensor& matrix : matrices) {
        check(matrix.ndim() == 2, "Tensor dimension is ", matrix.ndim(), ", expected 2 instead.");
      }
      check(!matrices.empty(), "chain_matmul(): Expected one or more matrices");
      return matrices.size() == 1 ? ops::clone(matrices[0]) : multi_dot(matrices);
    })
    .composite()
    .set<WritesInto>(WritesInto::kSameDType);

Tensor vecdot(const Tensor& x, const Tensor& y, int64_t dim) {
  check(x.dtype() == y.dtype(), "linalg.vecdot: Expected x and y to have the same dtype, but found x of type ",
        name_of(x.dtype()), " and y of type ", name_of(y.dtype()), " instead");
  if (x.ndim() == 1 && y.ndim() == 1) return ops::vdot(x, y);
  return ops::sum(product(x, y), Dims{dim}, false, {.dtype = x.dtype()});
}
OP("aten::linalg_vecdot").impl(vecdot).composite().set<WritesInto>(WritesInto::kSameDType);

int64_t product_of(const Dims& sizes, int64_t begin, int64_t end) {
  return checked_numel(sizes.span().subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)));
}
Dims part_of(const Dims& sizes, int64_t begin, int64_t end) {
  return Dims(sizes.span().subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)));
}

// The inverse of the map from the later dimensions to the first `ind`.
Tensor tensorinv(const Tensor& a, int64_t ind) {
  check(ind > 0, "Expected a strictly positive integer for 'ind', but got ", ind);
  const int64_t split = std::min(ind, a.ndim());
  const int64_t rows = product_of(a.sizes(), 0, split), columns = product_of(a.sizes(), split, a.ndim());
  check(rows == columns,
        "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got ", columns,
        " != ", rows);
  Dims sizes = part_of(a.sizes(), split, a.ndim());
  for (const int64_t size : part_of(a.sizes(), 0, split)) sizes.push_back(size);
  const Tensor inverse = ops::linalg_inv(ops::reshape(a, Dims{rows, columns}));
  return ops::reshape(inverse, sizes);
}
OP("aten::linalg_tensorinv").impl(tensorinv).composite();

Tensor tensorsolve(const Tensor& given_a, const Tensor& b, const std::optional<ops::IntList>& dims) {
  Tensor a = given_a;
  if (dims) {  // these go to the end
    Dims order, last;
    for (const int64_t dim : *dims) last.push_back(wrap_dim(dim, a.ndim()));
    for (int64_t d = 0; d < a.ndim(); ++d) {
      if (std::find(last.begin(), last.end(), d) == last.end()) order.push_back(d);
    }
    for (const int64_t dim : last) order.push_back(dim);
    a = ops::permute(a, order);
  }
  const int64_t split = std::min(b.ndim(), a.ndim());
  const int64_t rows = product_of(a.sizes(), 0, split), columns = product_of(a.sizes(), split, a.ndim());
  check(rows == columns,
        "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), but "
        "got ",
        columns, " != ", rows);
  const Tensor x = ops::linalg_solve(ops::reshape(a, Dims{rows, columns}), ops::reshape(b, Dims{b.numel()}));
  return ops::reshape(x, part_of(a.sizes(), split, a.ndim()));
}
OP("aten::linalg_tensorsolve").impl(tensorsolve).composite();

// Powers of x from the first one on, `count` of them.
Tensor powers_of(const Tensor& x, int64_t count) {
  Dims sizes = x.sizes();
  sizes.push_back(1);
  const Tensor ones = ops::ones(sizes, {.dtype = x.dtype(), .device = x.device()});
  if (count == 1) return ones;
  sizes.back() = count - 1;
  const Tensor repeated = ops::expand(unsqueezed(x, -1), sizes);
  return ops::cumprod(concatenated(ones, repeated, -1), -1);
}

OP("aten::linalg_vander")
    .impl([](const Tensor& x, std::optional<int64_t> given) {
      check(x.dtype() != DType::kBool,
            "linalg.vander supports floating point, complex, and integer tensors, but got Bool");
      const Tensor vector = x.ndim() == 0 ? unsqueezed(x, -1) : x;
      const int64_t count = given.value_or(vector.sizes().back());
      check(count > 1, "N must be greater than 1.");
      return powers_of(vector, count);
    })
    .composite();
OP("aten::vander")
    .impl([](const Tensor& x, std::optional<int64_t> given, bool is_increasing) {
      check(x.ndim() == 1, "x must be a one-dimensional tensor.");
      const int64_t count = given.value_or(x.sizes()[0]);
      check(count >= 0, "N must be non-negative.");
      // Integers become int64, in which PyTorch multiplies.
      const Tensor wide = is_floating(x.dtype()) || is_complex(x.dtype()) ? x : ops::to(x, DType::kInt64);
      if (count == 0) return ops::empty(Dims{x.sizes()[0], 0}, {.dtype = wide.dtype(), .device = x.device()});
      const Tensor powers = powers_of(wide, count);
      return is_increasing ? powers : ops::flip(powers, Dims{1});
    })
    .composite();

}  // namespace
}  // namespace tensord::kernels::linalg
