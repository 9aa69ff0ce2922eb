// Operators on sparse tensors of every layout and of edge sizes (empty, one element, blocks, batches, duplicate
// indices) compared with the same operators on the dense tensor.
#include <cmath>
#include <random>

#include "core/ops/sparse.h"
#include "tests/support/operator_rows.h"

namespace tensord::sparse_values_test {
namespace {

using namespace testing_rows;
using ops::SparseLayout;
using ops::SparseTensor;

constexpr SparseLayout kLayouts[] = {SparseLayout::kCoo, SparseLayout::kCsr, SparseLayout::kCsc, SparseLayout::kBsr,
                                     SparseLayout::kBsc};

// Small integers, `kept` of ten nonzero: sums and products are exact in every dtype.
Tensor some(const Dims& sizes, int kept, uint32_t seed, DType dtype = DType::kFloat32) {
  std::minstd_rand random(seed + 1);
  const Tensor out = Tensor::empty(sizes, DType::kFloat32);
  for (int64_t i = 0; i < out.numel(); ++i) {
    const auto value = static_cast<float>(random() % 3 + 1) * (random() % 2 ? 1.0f : -1.0f);
    out.data<float>()[i] = static_cast<int>(random() % 10) < kept ? value : 0.0f;
  }
  return out.to(dtype);
}

Value to_layout(const Tensor& x, SparseLayout layout, const Dims& block = {1, 1}) {
  if (layout == SparseLayout::kCoo) return run("aten::to_sparse", {x});
  if (layout == SparseLayout::kCsr) return run("aten::to_sparse_csr", {x});
  if (layout == SparseLayout::kCsc) return run("aten::to_sparse_csc", {x});
  return run(layout == SparseLayout::kBsr ? "aten::to_sparse_bsr" : "aten::to_sparse_bsc", {x, ints(block)});
}

Tensor dense(const Value& x) { return x.is_strided() ? x.to_tensor() : run("aten::to_dense", {x}).to_tensor(); }

::testing::AssertionResult is_same(const Value& got, const Tensor& expected, double tolerance = 0) {
  const Tensor a = dense(got);
  if (a.sizes() != expected.sizes() || a.dtype() != expected.dtype())
    return ::testing::AssertionFailure() << describe(a) << ", expected " << describe(expected);
  const Tensor x = a.to(DType::kFloat64).contiguous(), y = expected.to(DType::kFloat64).contiguous();
  for (int64_t i = 0; i < x.numel(); ++i) {
    const double p = x.data<double>()[i], q = y.data<double>()[i];
    if (!(p == q || std::abs(p - q) <= tolerance || (std::isnan(p) && std::isnan(q))))
      return ::testing::AssertionFailure() << "element " << i << " is " << p << ", expected " << q;
  }
  return ::testing::AssertionSuccess();
}

// The parts must be consistent, with each index once.
void expect_whole(const Value& x) {
  const SparseTensor* sparse = ops::as_sparse(x);
  ASSERT_NE(sparse, nullptr);
  EXPECT_NO_THROW(sparse->check_invariants());
}

void for_each_matrix(const std::function<void(const Tensor&, SparseLayout, const Value&)>& check_one) {
  uint32_t seed = 0;
  for (const Dims& sizes : {Dims{0, 0}, Dims{0, 4}, Dims{4, 0}, Dims{1, 1}, Dims{1, 6}, Dims{6, 1}, Dims{4, 6}}) {
    for (const int kept : {0, 4, 10}) {
      for (const SparseLayout layout : kLayouts) {
        const bool fits = sizes[0] % 2 == 0 && sizes[1] % 3 == 0;
        const Tensor x = some(sizes, kept, ++seed);
        const Value sparse = to_layout(x, layout, fits ? Dims{2, 3} : Dims{1, 1});
        SCOPED_TRACE(concat(to_string(sizes), " ", kept, " of ten, ", ops::name_of(layout)));
        check_one(x, layout, sparse);
      }
    }
  }
}

TEST(SparseValues, EveryLayoutComesBack) {
  for_each_matrix([](const Tensor& x, SparseLayout layout, const Value& sparse) {
    expect_whole(sparse);
    EXPECT_EQ(ops::as_sparse(sparse)->sparse_layout(), layout);
    EXPECT_TRUE(is_same(sparse, x));
    for (const SparseLayout other : kLayouts) {
      const Value there = run("aten::to_sparse", {sparse, static_cast<int64_t>(other), ints({1, 1})});
      expect_whole(there);
      EXPECT_EQ(ops::as_sparse(there)->sparse_layout(), other);
      EXPECT_TRUE(is_same(there, x)) << ops::name_of(other);
      // Only nonzero elements are stored, except in blocks.
      if (other == SparseLayout::kCoo && !ops::is_blocked(layout)) {
        const Tensor count = ops::call_by_name("aten::count_nonzero", x, Value());
        EXPECT_EQ(ops::as_sparse(there)->nnz(), count.item_int());
      }
    }
  });
}

TEST(SparseValues, BatchesOfMatrices) {
  for (const Dims& sizes : {Dims{3, 2, 3}, Dims{2, 2, 2, 3}, Dims{1, 4, 3}, Dims{0, 2, 3}}) {
    for (const SparseLayout layout : kLayouts) {
      for (const Dims& block : {Dims{1, 1}, Dims{2, 3}}) {
        SCOPED_TRACE(concat(to_string(sizes), ops::name_of(layout), to_string(block)));
        const Tensor x = some(sizes, 10, 5);
        const Value sparse = to_layout(x, layout, block);
        expect_whole(sparse);
        EXPECT_TRUE(is_same(sparse, x));
        EXPECT_TRUE(is_same(run("aten::to_sparse", {sparse}), x));
        if (sizes.size() != 3) continue;
        const Tensor right = some({sizes[0], 3, 2}, 8, 6);
        EXPECT_TRUE(is_same(run("aten::bmm", {sparse, right}), ops::call_by_name("aten::matmul", x, right)));
        const Tensor left = some({sizes[0], 5, sizes[1]}, 8, 7);
        EXPECT_TRUE(is_same(run("aten::bmm", {left, sparse}), ops::call_by_name("aten::matmul", left, x)));
        if (layout == SparseLayout::kCoo || sizes[0] == 0) continue;
        const Tensor turned = ops::call_by_name("aten::transpose.int", x, 1, 2);
        EXPECT_TRUE(is_same(run("aten::transpose.int", {sparse, 1, 2}), turned));
        EXPECT_TRUE(is_same(run("aten::select.int", {sparse, 0, -1}), ops::call_by_name("aten::select.int", x, 0, -1)));
      }
    }
  }
}

TEST(SparseValues, SumsAndProducts) {
  for_each_matrix([](const Tensor& x, SparseLayout layout, const Value& sparse) {
    const Dims& sizes = x.sizes();
    const bool fits = sizes[0] % 2 == 0 && sizes[1] % 3 == 0;
    const Tensor y = some(sizes, 5, 77);
    const Value other = to_layout(y, layout, fits ? Dims{2, 3} : Dims{1, 1});
    for (const double alpha : {1.0, 0.0, -2.0}) {
      const Tensor sum = ops::call_by_name("aten::add.Tensor", x, y, alpha);
      EXPECT_TRUE(is_same(run("aten::add.Tensor", {sparse, other, alpha}), sum));
      EXPECT_TRUE(is_same(run("aten::add.Tensor", {x, other, alpha}), sum));
      EXPECT_TRUE(is_same(run("aten::add_.Tensor", {x.clone(), other, alpha}), sum));
      EXPECT_TRUE(
          is_same(run("aten::sub.Tensor", {sparse, other, alpha}), ops::call_by_name("aten::sub.Tensor", x, y, alpha)));
    }
    const Tensor product = ops::call_by_name("aten::mul.Tensor", x, y);
    for (const Value& got : {run("aten::mul.Tensor", {sparse, other}), run("aten::mul.Tensor", {sparse, y}),
                             run("aten::mul.Tensor", {x, other})}) {
      expect_whole(got);
      EXPECT_TRUE(is_same(got, product));
    }
    EXPECT_TRUE(is_same(run("aten::mul.Scalar", {sparse, 3.0}), ops::call_by_name("aten::mul.Scalar", x, 3.0)));
    EXPECT_TRUE(is_same(run("aten::div.Scalar", {sparse, 2.0}), ops::call_by_name("aten::div.Scalar", x, 2.0)));
    EXPECT_TRUE(is_same(run("aten::abs", {sparse}), ops::call_by_name("aten::abs", x)));
    EXPECT_TRUE(is_same(run("aten::neg", {sparse}), ops::call_by_name("aten::neg", x)));
    EXPECT_TRUE(is_same(run("aten::sum", {sparse}), ops::call_by_name("aten::sum", x)));
    EXPECT_TRUE(is_same(run("aten::norm.Scalar", {sparse, 1.0}), ops::call_by_name("aten::norm.Scalar", x, 1.0)));
    const Value masked = run("aten::sparse_mask", {y, sparse});
    expect_whole(masked);
    if (!ops::is_blocked(layout)) {
      const Tensor is_there = ops::call_by_name("aten::ne.Scalar", x, 0.0);
      EXPECT_TRUE(is_same(masked, ops::call_by_name("aten::mul.Tensor", y, is_there.to(DType::kFloat32))));
    }
  });
}

TEST(SparseValues, ProductsOfMatrices) {
  for_each_matrix([](const Tensor& x, SparseLayout layout, const Value& sparse) {
    const int64_t rows = x.sizes()[0], columns = x.sizes()[1];
    for (const int64_t width : {int64_t{0}, int64_t{1}, int64_t{5}}) {
      const Tensor right = some({columns, width}, 8, 9), left = some({width, rows}, 8, 10);
      EXPECT_TRUE(is_same(run("aten::mm", {sparse, right}), ops::call_by_name("aten::mm", x, right)));
      EXPECT_TRUE(is_same(run("aten::mm", {left, sparse}), ops::call_by_name("aten::mm", left, x)));
      EXPECT_TRUE(is_same(run("aten::matmul", {sparse, right}), ops::call_by_name("aten::mm", x, right)));
      const Value product = run("aten::mm", {sparse, to_layout(right, layout)});
      expect_whole(product);
      EXPECT_TRUE(is_same(product, ops::call_by_name("aten::mm", x, right)));
      const Tensor addend = some({rows, width}, 9, 11);
      for (const double beta : {0.0, 1.0, -3.0}) {
        const Tensor expected = run("aten::addmm", {addend, x, right, beta, 2.0}).to_tensor();
        EXPECT_TRUE(is_same(run("aten::addmm", {addend, sparse, right, beta, 2.0}), expected));
      }
    }
    const Tensor vector = some({columns}, 8, 12), across = some({rows}, 8, 13);
    EXPECT_TRUE(is_same(run("aten::mv", {sparse, vector}), ops::call_by_name("aten::mv", x, vector)));
    EXPECT_TRUE(is_same(run("aten::matmul", {sparse, vector}), ops::call_by_name("aten::mv", x, vector)));
    EXPECT_TRUE(is_same(run("aten::matmul", {across, sparse}), ops::call_by_name("aten::matmul", across, x)));
    EXPECT_TRUE(is_same(run("aten::t", {sparse}), ops::call_by_name("aten::t", x)));
  });
}

TEST(SparseValues, HalvesAreSummedInFloat) {
  // 2048 + 1 + 1 + … is lost in float16 if each sum is rounded.
  const Tensor row = ones({1, 65}, DType::kFloat16);
  row.data<Half>()[0] = Half(2048.0f);
  for (const DType dtype : {DType::kFloat16, DType::kFloat32, DType::kFloat64}) {
    const Value sparse = to_layout(row.to(dtype), SparseLayout::kCsr);
    EXPECT_EQ(run("aten::mm", {sparse, ones({65, 1}, dtype)}).to_tensor().item_double(), 2112);
    const Value one = to_layout(ones({1, 1}, dtype), SparseLayout::kCsr);
    const Value sampled = run("aten::sparse_sampled_addmm", {one, row.to(dtype), ones({65, 1}, dtype), 0.0, 1.0});
    EXPECT_EQ(dense(sampled).item_double(), 2112);
  }
}

TEST(SparseValues, PlacesThatAreThereTwice) {
  const Tensor indices = shaped(longs({2, 0, 2, 1, 2, 0, 1, 3, 1, 0, 1, 0}), {2, 6}),
               values = floats({1, 2, 3, 4, 5, 6});
  const Value x = run("aten::sparse_coo_tensor.indices_size", {indices, values, ints({3, 4})});
  const Tensor whole = dense(x);
  EXPECT_EQ(whole.data<float>()[2 * 4 + 1], 9);
  EXPECT_FALSE(ops::as_sparse(x)->is_coalesced());
  const Value once = run("aten::coalesce", {x});
  expect_whole(once);
  EXPECT_EQ(ops::as_sparse(once)->nnz(), 4);
  EXPECT_TRUE(is_same(once, whole));
  for (const char* name : {"aten::abs", "aten::square", "aten::neg", "aten::relu"})
    EXPECT_TRUE(is_same(run(name, {x}), ops::call_by_name(name, whole))) << name;
  EXPECT_TRUE(is_same(run("aten::mul.Tensor", {x, x}), ops::call_by_name("aten::mul.Tensor", whole, whole)));
  EXPECT_TRUE(is_same(run("aten::add.Tensor", {x, once, 1}), ops::call_by_name("aten::add.Tensor", whole, whole)));
  EXPECT_TRUE(is_same(run("aten::norm.Scalar", {x, 2.0}), ops::call_by_name("aten::norm.Scalar", whole, 2.0), 1e-5));
  EXPECT_TRUE(is_same(run("aten::sum", {x}), ops::call_by_name("aten::sum", whole)));
  EXPECT_TRUE(is_same(run("aten::mm", {x, ones({4, 2})}), ops::call_by_name("aten::mm", whole, ones({4, 2}))));
  EXPECT_TRUE(
      is_same(run("aten::floor_divide.Scalar", {x, 2.0}), ops::call_by_name("aten::floor_divide.Scalar", whole, 2.0)));
  for (const int64_t layout : {2, 4}) EXPECT_TRUE(is_same(run("aten::to_sparse", {x, layout}), whole));
}

// With one sparse dimension, with two, and with a trailing dense dimension.
std::vector<std::pair<Tensor, Value>> tensors_to_move() {
  std::vector<std::pair<Tensor, Value>> out;
  for (const int kept : {0, 5, 10}) {
    const Tensor vector = some({5}, kept, 20), matrix = some({3, 4}, kept, 21), cube = some({3, 4, 2}, kept, 22);
    out.emplace_back(vector, run("aten::to_sparse", {vector}));
    out.emplace_back(matrix, run("aten::to_sparse", {matrix}));
    out.emplace_back(cube, run("aten::to_sparse", {cube}));
    for (const int64_t dims : {1, 2}) out.emplace_back(cube, run("aten::to_sparse.sparse_dim", {cube, dims}));
  }
  return out;
}

TEST(SparseValues, Moves) {
  for (const auto& [x, sparse] : tensors_to_move()) {
    const auto ndim = static_cast<int64_t>(x.sizes().size()), sparse_dim = ops::as_sparse(sparse)->sparse_dim();
    SCOPED_TRACE(concat(to_string(x.sizes()), " of ", sparse_dim, " sparse dimensions"));
    const auto same = [&, &of = x, &by = sparse](const char* name, std::vector<Value> rest) {
      std::vector<Value> ours{by}, theirs{of};
      ours.insert(ours.end(), rest.begin(), rest.end());
      theirs.insert(theirs.end(), rest.begin(), rest.end());
      const Value got = run(name, ours);
      if (!got.is_strided()) expect_whole(got);
      EXPECT_TRUE(is_same(got, run(name, theirs).to_tensor())) << name;
    };
    for (int64_t d = -ndim; d < ndim; ++d) {
      const int64_t size = x.sizes()[static_cast<size_t>(d < 0 ? d + ndim : d)];
      for (const int64_t i : {int64_t{0}, size - 1, -size, int64_t{-1}}) same("aten::select.int", {d, i});
      same("aten::narrow", {d, 0, size});
      same("aten::narrow", {d, 1, size - 1});
      same("aten::narrow", {d, 1, 1});
      same("aten::narrow", {d, -1, 1});
      same("aten::narrow", {d, size, 0});
      same("aten::index_select", {d, longs({size - 1, 0, size - 1, 1})});
      same("aten::index_select", {d, longs({})});
      if (ndim == sparse_dim) same("aten::sum.dim_IntList", {ints({d}), true, kNone});
      same("aten::sum.dim_IntList", {ints({d}), false, kNone});
    }
    for (int64_t d = -ndim - 1; d <= ndim; ++d) same("aten::unsqueeze", {d});
    if (ndim == 2) {
      same("aten::permute", {ints({1, 0})});
      same("aten::permute", {ints({0, 1})});
      same("aten::transpose.int", {0, -1});
      same("aten::transpose.int", {1, 1});
    }
    if (ndim == 3 && sparse_dim == 3) {
      same("aten::permute", {ints({2, 0, 1})});
      same("aten::sum.dim_IntList", {ints({0, 2}), false, kNone});
    }
    if (ndim == 3 && sparse_dim == 1) same("aten::permute", {ints({0, 2, 1})});
    if (ndim == 3 && sparse_dim == 2) same("aten::permute", {ints({1, 0, 2})});
    for (int64_t d = 0; d < sparse_dim; ++d) {
      const Value joined = run("aten::cat", {tensors({sparse, sparse, sparse}), d});
      expect_whole(joined);
      EXPECT_TRUE(is_same(joined, run("aten::cat", {tensors({x, x, x}), d}).to_tensor()));
    }
  }
}

// If all elements are stored, softmax equals that of the dense tensor.
TEST(SparseValues, Softmax) {
  const Tensor x = some({3, 4, 2}, 10, 30);
  for (const int64_t dims : {1, 2, 3}) {
    const Value sparse = run("aten::to_sparse.sparse_dim", {x, dims});
    for (int64_t d = -3; d < 3; ++d) {
      EXPECT_TRUE(is_same(run("aten::softmax.int", {sparse, d, kNone}),
                          run("aten::softmax.int", {x, d, kNone}).to_tensor(), 1e-6));
      EXPECT_TRUE(is_same(run("aten::log_softmax.int", {sparse, d, kNone}),
                          run("aten::log_softmax.int", {x, d, kNone}).to_tensor(), 1e-6));
      const Value wide = run("aten::_sparse_softmax.int", {sparse, d, DType::kFloat64});
      EXPECT_TRUE(is_same(wide, run("aten::softmax.int", {x.to(DType::kFloat64), d, kNone}).to_tensor(), 1e-12));
    }
  }
  // Missing elements do not take part; NaN spreads only within its group.
  const Tensor given = shaped(floats({1, 0, 2, NAN, 3, 0}), {3, 2});
  const Tensor y = dense(run("aten::softmax.int", {run("aten::to_sparse", {given}), 1, kNone}));
  EXPECT_EQ(y.data<float>()[0], 1);
  EXPECT_EQ(y.data<float>()[1], 0);
  EXPECT_TRUE(std::isnan(y.data<float>()[2]) && std::isnan(y.data<float>()[3]));
  EXPECT_EQ(y.data<float>()[4], 1);
}

TEST(SparseValues, TriangularSystems) {
  for (const int64_t size : {0, 1, 4}) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
      const Tensor x = some({size, size}, 7, 40 + static_cast<uint32_t>(size), dtype);
      for (int64_t i = 0; i < size; ++i) x.as_view({}, {}, i * (size + 1)).copy_from(Tensor::scalar(2.0).to(dtype));
      const Value sparse = to_layout(x, SparseLayout::kCsr);
      for (const int64_t width : {0, 1, 3}) {
        const Tensor right = some({size, width}, 10, 41, dtype);
        for (int flags = 0; flags < 8; ++flags) {
          const bool upper = flags & 1, transpose = flags & 2, unit = flags & 4;
          const Value got = run("aten::triangular_solve", {right, sparse, upper, transpose, unit});
          const Tensor expected = run("aten::triangular_solve", {right, x, upper, transpose, unit}).to_tensor();
          EXPECT_TRUE(is_same(got, expected, 1e-3)) << size << " " << width << " " << flags;
        }
      }
    }
  }
}

TEST(SparseValues, SampledProducts) {
  for (const Dims& sizes : {Dims{4, 6}, Dims{1, 1}, Dims{0, 3}, Dims{3, 0}}) {
    const Tensor mask = some(sizes, 5, 50), a = some({sizes[0], 3}, 9, 51), b = some({3, sizes[1]}, 9, 52);
    const Tensor is_there = ops::call_by_name("aten::ne.Scalar", mask, 0.0).to(DType::kFloat32);
    const Tensor product = ops::call_by_name("aten::mul.Tensor", ops::call_by_name("aten::mm", a, b), is_there);
    const Tensor expected =
        ops::call_by_name("aten::add.Tensor", ops::call_by_name("aten::mul.Scalar", product, 2.0), mask, 3.0);
    const Value sparse = to_layout(mask, SparseLayout::kCsr);
    EXPECT_TRUE(is_same(run("aten::sparse_sampled_addmm", {sparse, a, b, 3.0, 2.0}), expected));
  }
}

}  // namespace
}  // namespace tensord::sparse_values_test
