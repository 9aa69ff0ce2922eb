// Properties of linear algebra that PyTorch cannot check: threads, sizes beyond LAPACK's integers, malicious pivots,
// and gradients of determinants where PyTorch's are rounding errors. Values are in tests/ops/cases/linalg.py.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "core/autograd/engine.h"
#include "core/autograd/variable.h"
#include "core/base/thread_budget_scope.h"
#include "core/ops/run.h"

namespace tensord::linalg_test {
namespace {

using ops::Value;

Tensor sample(const Dims& sizes, uint32_t seed) {
  const Tensor out = Tensor::empty(sizes, DType::kFloat64);
  uint32_t state = seed * 2654435761u + 1;
  for (int64_t i = 0; i < out.numel(); ++i) {
    state = state * 1664525u + 1013904223u;
    out.data<double>()[i] = (state >> 8) / 8388608.0 - 1;
  }
  return out;
}

Tensor matrix(const Dims& sizes, const std::vector<double>& values) {
  const Tensor out = Tensor::empty(sizes, DType::kFloat64);
  std::copy(values.begin(), values.end(), out.data<double>());
  return out;
}

Tensor integers(const std::vector<int32_t>& values) {
  const Tensor out = Tensor::empty(Dims{static_cast<int64_t>(values.size())}, DType::kInt32);
  std::copy(values.begin(), values.end(), out.data<int32_t>());
  return out;
}

std::vector<Value> results_of(const std::string& name, const std::vector<Value>& arguments) {
  const ops::Op& op = ops::get_op(name);
  return ops::run(op, ops::bind(op, arguments));
}

void expect_equal_bits(const Tensor& a, const Tensor& b, const std::string& what) {
  const Tensor x = a.contiguous(), y = b.contiguous();
  ASSERT_EQ(x.size_bytes(), y.size_bytes()) << what;
  EXPECT_EQ(std::memcmp(x.raw_data(), y.raw_data(), x.size_bytes()), 0) << what;
}

std::string error_of(const std::string& name, const std::vector<Value>& arguments) {
  try {
    results_of(name, arguments);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

int threads_of_process() {
  int count = 0;
  for ([[maybe_unused]] const auto& task : std::filesystem::directory_iterator("/proc/self/task")) ++count;
  return count;
}

// Batches and single large matrices.
TEST(Linalg, ResultsDoNotDependOnThreads) {
  const Tensor batch = sample({24, 20, 20}, 1), large = sample({300, 300}, 2);
  for (const char* name : {"aten::linalg_lu_factor_ex", "aten::linalg_inv", "aten::linalg_qr", "aten::_linalg_svd",
                           "aten::_linalg_eigh", "aten::linalg_matrix_exp", "aten::linalg_ldl_factor_ex"}) {
    for (const Tensor& x : {batch, large}) {
      std::vector<std::vector<Value>> runs;
      for (const int threads : {1, 2, 5}) {
        const ThreadBudgetScope scope(threads);
        runs.push_back(results_of(name, {x}));
      }
      for (size_t run = 1; run < runs.size(); ++run) {
        for (size_t i = 0; i < runs[0].size(); ++i) {
          expect_equal_bits(runs[run][i].to_tensor(), runs[0][i].to_tensor(), concat(name, " result ", i));
        }
      }
    }
  }
}

TEST(Linalg, StartsNoThreadsOfItsOwn) {
  const ThreadBudgetScope scope(1);
  const int before = threads_of_process();
  for (const char* name : {"aten::linalg_qr", "aten::_linalg_svd", "aten::_linalg_eigh", "aten::linalg_ldl_factor_ex",
                           "aten::linalg_inv"}) {
    results_of(name, {sample({400, 400}, 3)});
    // Threads that another test has ended may still be listed when this one starts.
    EXPECT_LE(threads_of_process(), before) << name;
  }
  EXPECT_EQ(thread_budget(), 1);
}

// LAPACK uses 32-bit integers; its workspace for the singular vectors of 30000 rows is larger.
TEST(Linalg, RefusesSizesThatLapackCannotCount) {
  const Tensor square = Tensor::meta(Dims{30000, 30000}, DType::kFloat64);
  const Tensor tall = Tensor::meta(Dims{int64_t{1} << 32, 1}, DType::kFloat64);
  for (const char* name : {"aten::_linalg_svd", "aten::_linalg_eigh", "aten::geqrf", "aten::linalg_ldl_factor_ex"}) {
    const ops::Op& op = ops::get_op(name);
    for (const Tensor& x : {square, tall}) {
      if (x.is_same(tall) && op.name() != "aten::_linalg_svd" && op.name() != "aten::geqrf") continue;
      EXPECT_THROW(ops::infer(op, ops::bind(op, {x})), Error) << name << " of " << describe(x);
    }
  }
  const ops::Op& lu = ops::get_op("aten::linalg_lu_factor_ex");
  EXPECT_THROW(ops::infer(lu, ops::bind(lu, {tall})), Error);
  // The full left singular vectors of a tall matrix are a large square.
  const ops::Op& svd = ops::get_op("aten::_linalg_svd");
  const Tensor strip = Tensor::meta(Dims{100000, 2}, DType::kFloat64);
  EXPECT_THROW(ops::infer(svd, ops::bind(svd, {strip, true})), Error);
  EXPECT_NO_THROW(ops::infer(svd, ops::bind(svd, {strip, false})));
}

// PyTorch follows such pivots out of bounds.
TEST(Linalg, RefusesPivotsOutsideOfTheMatrix) {
  const Tensor a = sample({3, 3}, 4), b = sample({3, 2}, 5);
  const std::vector<std::vector<int32_t>> bad = {{1, 2, 4}, {1, 2, 0}, {1, 2, 2147483647}, {-2147483647 - 1, 1, 1}};
  for (const auto& pivots : bad) {
    EXPECT_NE(error_of("aten::lu_solve", {b, a, integers(pivots)}).find("must be between 1 and"), std::string::npos);
    EXPECT_NE(error_of("aten::linalg_ldl_solve", {a, integers(pivots), b}).find("pivots are not those of"),
              std::string::npos);
  }
  // Fewer pivots than rows: PyTorch reads past their end.
  EXPECT_NE(error_of("aten::lu_unpack", {a, integers({1, 2})}).find("must be between 1 and"), std::string::npos);
  // A pair of equal negative numbers is a block of two rows.
  EXPECT_NE(error_of("aten::linalg_ldl_solve", {a, integers({1, 2, -3}), b}).find("not those of"), std::string::npos);
  EXPECT_NE(error_of("aten::linalg_ldl_solve", {a, integers({-3, -2, 3}), b}).find("not those of"), std::string::npos);
  EXPECT_EQ(error_of("aten::linalg_ldl_solve", {a, integers({-3, -3, 3}), b}), "no error");
}

// Infinities and NaN at every position: PyTorch crashes on some, and hangs on others.
TEST(Linalg, WhatIsNotFiniteIsAnsweredOrRefused) {
  for (const double bad : {std::numeric_limits<double>::infinity(), std::nan("")}) {
    for (int64_t at = 0; at < 9; ++at) {
      const Tensor x = sample({3, 3}, 6);
      x.data<double>()[at] = bad;
      for (const char* name : {"aten::_linalg_svd", "aten::_linalg_eigh"}) {
        EXPECT_NE(error_of(name, {x}).find("failed to converge"), std::string::npos) << name;
      }
      for (const char* driver : {"gels", "gelsy", "gelsd", "gelss"}) {
        EXPECT_NE(error_of("aten::linalg_lstsq", {x, sample({3, 1}, 7), Value(), Value(std::string(driver))})
                      .find("must not contain infs or NaNs"),
                  std::string::npos);
      }
      for (const char* name : {"aten::geqrf", "aten::linalg_ldl_factor_ex", "aten::linalg_lu_factor_ex",
                               "aten::linalg_inv_ex", "aten::linalg_cholesky_ex", "aten::linalg_matrix_exp"}) {
        EXPECT_EQ(error_of(name, {x}), "no error") << name;
      }
    }
  }
}

// The derivative of a determinant is the cofactor matrix, whatever the rank. In any other order a product has 2^40
// elements.
TEST(Linalg, ChainsAreMultipliedInTheirBestOrder) {
  constexpr int64_t kMany = 1 << 20;
  const std::vector<std::vector<int64_t>> chains{
      {1, kMany, 1, kMany}, {kMany, 1, kMany, 1}, {1, kMany, 1, kMany, 1, kMany}, {2, kMany, 3, 1, kMany, 2}};
  for (const std::vector<int64_t>& sizes : chains) {
    std::vector<Value> matrices;
    double expected = 1;
    for (size_t i = 0; i + 1 < sizes.size(); ++i) {
      const Dims shape{sizes[i], sizes[i + 1]};
      matrices.emplace_back(ops::call_by_name("aten::ones", shape, DType::kFloat32, Value(), Value(), Value()));
      if (i > 0) expected *= static_cast<double>(sizes[i]);
    }
    const Tensor out =
        ops::call_by_name("aten::linalg_multi_dot", ops::make_list(ops::tensor_type(), std::move(matrices)));
    EXPECT_EQ(out.sizes(), (Dims{sizes.front(), sizes.back()}));
    EXPECT_EQ(
        ops::call_by_name("aten::select.int", ops::call_by_name("aten::reshape", out, Dims{-1}), 0, -1).item_double(),
        expected);
  }
}

TEST(Linalg, DeterminantsOfSingularMatricesHaveGradients) {
  const Tensor x = matrix({2, 3, 3}, {1, 2, 3, 2, 4, 6, 1, 0, 1, 1, 2, 3, 2, 4, 6, 3, 6, 9});
  autograd::set_requires_grad(x);
  const Tensor det = ops::call_by_name("aten::sum", ops::call_by_name("aten::linalg_det", x));
  const Tensor got = autograd::grad(std::span(&det, 1), std::vector<Tensor>{x}, {}, {}).front().contiguous();
  const std::vector<double> cofactors = {4, 4, -4, -2, -2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  for (int64_t i = 0; i < got.numel(); ++i)
    EXPECT_NEAR(got.data<double>()[i], cofactors[static_cast<size_t>(i)], 1e-12) << i;
}

}  // namespace
}  // namespace tensord::linalg_test
