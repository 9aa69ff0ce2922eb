// float32 and float64 matrix products with any strides, compared with explicit sums and OpenBLAS.
#include <cblas.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include "core/base/error.h"
#include "core/base/parallel.h"
#include "core/tensor/memory/owner_limit.h"
#include "kernels/base/half_rows.h"
#include "kernels/gemm/gemm.h"

namespace tensord::kernels::gemm_test {
namespace {

enum class Layout { kRows, kColumns, kSparse, kEverySecond };
constexpr Layout kLayouts[] = {Layout::kRows, Layout::kColumns, Layout::kSparse, Layout::kEverySecond};

// The error bound of a sum of `depth` products of numbers up to 1.
template <class T>
double bound_of(int64_t depth) {
  return (std::is_same_v<T, float> ? 1e-6 : 1e-14) * static_cast<double>(depth + 4);
}

// out += 0.5 * left @ right, each row-major or column-major.
void add_half_by_blas(const Matrix& a, const Matrix& b, const Matrix& c, auto* product) {
  using T = std::conditional_t<std::is_same_v<decltype(product), decltype(&cblas_sgemm)>, float, double>;
  const auto order = [](const Matrix& m) { return m.col_stride == 1 ? CblasNoTrans : CblasTrans; };
  const auto step = [](const Matrix& m) { return static_cast<int>(std::max(m.row_stride, m.col_stride)); };
  product(CblasRowMajor, order(a), order(b), static_cast<int>(c.rows), static_cast<int>(c.cols),
          static_cast<int>(a.cols), T(0.5), static_cast<const T*>(a.data), step(a), static_cast<const T*>(b.data),
          step(b), T(1), static_cast<T*>(c.data), step(c));
}

// A matrix with guard values between its elements, which must not be overwritten.
template <class T>
class Filled {
 public:
  Filled(int64_t rows, int64_t cols, Layout layout, uint32_t seed)
      : values_(static_cast<size_t>(2 * (rows + 1) * (cols + 3))) {
    std::mt19937 generator(seed);
    std::uniform_real_distribution<T> numbers(-1, 1);
    for (T& value : values_) value = numbers(generator);
    matrix = {values_.data(), rows, cols, cols, 1};
    if (layout == Layout::kColumns) matrix.row_stride = 1, matrix.col_stride = rows;
    if (layout == Layout::kSparse) matrix.row_stride = cols + 3;
    if (layout == Layout::kEverySecond) matrix.row_stride = 2 * cols, matrix.col_stride = 2;
  }
  Filled(const Filled&) = delete;

  T& at(int64_t row, int64_t col) {
    return values_[static_cast<size_t>(row * matrix.row_stride + col * matrix.col_stride)];
  }
  const std::vector<T>& values() const { return values_; }

  Matrix matrix;

 private:
  std::vector<T> values_;
};

struct Sizes {
  int64_t rows, depth, columns;
};

template <class T>
void check_product(const Sizes& s, Layout left, Layout right, Layout out, double alpha, double beta) {
  SCOPED_TRACE(concat(s.rows, "x", s.depth, "x", s.columns, ", layouts ", static_cast<int>(left),
                      static_cast<int>(right), static_cast<int>(out), ", beta ", beta));
  Filled<T> a(s.rows, s.depth, left, 1), b(s.depth, s.columns, right, 2), c(s.rows, s.columns, out, 3),
      wanted(s.rows, s.columns, out, 3);
  for (int64_t i = 0; i < s.rows; ++i) {
    for (int64_t j = 0; j < s.columns; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < s.depth; ++k) sum += static_cast<double>(a.at(i, k)) * static_cast<double>(b.at(k, j));
      wanted.at(i, j) = static_cast<T>(alpha * sum + (beta == 0 ? 0 : beta * wanted.at(i, j)));
    }
  }
  if (beta == 0) c.at(0, 0) = std::numeric_limits<T>::quiet_NaN();  // is not read
  gemm(dtype_of<T>, alpha, a.matrix, b.matrix, beta, c.matrix);
  const double bound = bound_of<T>(s.depth);
  for (size_t i = 0; i < c.values().size(); ++i) ASSERT_NEAR(c.values()[i], wanted.values()[i], bound) << i;
}

template <class T>
void check_large(const Sizes& s, Layout left, Layout right) {
  SCOPED_TRACE(
      concat(s.rows, "x", s.depth, "x", s.columns, ", layouts ", static_cast<int>(left), static_cast<int>(right)));
  Filled<T> a(s.rows, s.depth, left, 1), b(s.depth, s.columns, right, 2), c(s.rows, s.columns, Layout::kRows, 3),
      wanted(s.rows, s.columns, Layout::kRows, 3);
  gemm(dtype_of<T>, 0.5, a.matrix, b.matrix, 1, c.matrix);
  if constexpr (std::is_same_v<T, float>) {
    add_half_by_blas(a.matrix, b.matrix, wanted.matrix, &cblas_sgemm);
  } else {
    add_half_by_blas(a.matrix, b.matrix, wanted.matrix, &cblas_dgemm);
  }
  const double bound = bound_of<T>(s.depth);
  for (size_t i = 0; i < c.values().size(); ++i) ASSERT_NEAR(c.values()[i], wanted.values()[i], bound) << i;
}

template <class T>
class GemmTest : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(GemmTest, Types);

TYPED_TEST(GemmTest, SizesAndStrides) {
  for (const int threads : {1, 3}) {
    set_thread_budget(threads);
    for (const Sizes& s : {Sizes{1, 5, 1},
                           {1, 300, 70},
                           {70, 300, 1},
                           {3, 17, 9},
                           {7, 1, 33},
                           {30, 40, 130},
                           {130, 300, 35},
                           {26, 600, 300},
                           {5, 64, 700}}) {
      for (const Layout left : kLayouts) {
        for (const Layout right : kLayouts) check_product<TypeParam>(s, left, right, Layout::kRows, 1, 0);
      }
      for (const Layout out : kLayouts) {
        for (const double beta : {0.0, 1.0, -0.5})
          check_product<TypeParam>(s, Layout::kRows, Layout::kColumns, out, 2, beta);
      }
    }
  }
}

// Sizes at which every loop of both runs more than once.
TYPED_TEST(GemmTest, LargeOnesEqualOpenBlas) {
  set_thread_budget(2);
  for (const Sizes& s : {Sizes{513, 1030, 700}, Sizes{96, 2048, 1111}, Sizes{1500, 65, 517}}) {
    for (const Layout left : {Layout::kRows, Layout::kColumns}) {
      for (const Layout right : {Layout::kRows, Layout::kColumns}) check_large<TypeParam>(s, left, right);
    }
  }
}

template <class T>
class HalvesTest : public ::testing::Test {};
using HalfTypes = ::testing::Types<Half, BFloat16>;
TYPED_TEST_SUITE(HalvesTest, HalfTypes);

// All 16-bit values, in whole vectors and in the remainder.
TYPED_TEST(HalvesTest, RowsAreConvertedAsSingleNumbersAre) {
  constexpr int64_t kCount = 65'536 - 5;
  std::vector<TypeParam> halves(kCount), back(kCount);
  std::vector<float> wide(kCount);
  for (int64_t i = 0; i < kCount; ++i) halves[i].bits = static_cast<uint16_t>(i + 3);
  widen_row(halves.data(), wide.data(), kCount);
  for (const float factor : {1.0f, 1.1f, 0.3f, 1e-5f, 3e4f}) {
    std::vector<float> numbers(kCount);
    for (int64_t i = 0; i < kCount; ++i) numbers[i] = wide[i] * factor;
    narrow_row(numbers.data(), back.data(), kCount);
    for (int64_t i = 0; i < kCount; ++i) {
      const float expected = halves[i];
      ASSERT_TRUE(wide[i] == expected || (std::isnan(wide[i]) && std::isnan(expected))) << i;
      const TypeParam rounded = numbers[i];
      ASSERT_TRUE(back[i].bits == rounded.bits || (std::isnan(float(back[i])) && std::isnan(numbers[i]))) << numbers[i];
    }
  }
}

// Copies use the same row conversion.
TYPED_TEST(HalvesTest, CopiesConvertAsRowsDo) {
  constexpr int64_t kCount = 65'536;
  const Tensor halves = Tensor::empty(Dims{kCount}, dtype_of<TypeParam>);
  for (int64_t i = 0; i < kCount; ++i) halves.data<TypeParam>()[i].bits = static_cast<uint16_t>(i);
  std::vector<float> wide(kCount);
  widen_row(halves.data<TypeParam>(), wide.data(), kCount);
  const Tensor copy = halves.to(DType::kFloat32);
  EXPECT_EQ(std::memcmp(copy.data<float>(), wide.data(), kCount * sizeof(float)), 0);
  std::vector<TypeParam> back(kCount);
  narrow_row(wide.data(), back.data(), kCount);
  EXPECT_EQ(std::memcmp(copy.to(dtype_of<TypeParam>).raw_data(), back.data(), kCount * sizeof(TypeParam)), 0);
}

// The numbers rounded to T, in separate memory with the layout of `from`, whose numbers are replaced by the rounded
// ones.
template <class T>
Matrix narrow(const Matrix& from, std::vector<T>& memory) {
  const int64_t size = (from.rows - 1) * from.row_stride + (from.cols - 1) * from.col_stride + 1;
  auto* const numbers = static_cast<float*>(from.data);
  memory.assign(static_cast<size_t>(size), T(77.0f));
  for (int64_t r = 0; r < from.rows; ++r) {
    for (int64_t k = 0; k < from.cols; ++k) {
      const int64_t at = r * from.row_stride + k * from.col_stride;
      memory[static_cast<size_t>(at)] = numbers[at];
      numbers[at] = memory[static_cast<size_t>(at)];
    }
  }
  return Matrix{memory.data(), from.rows, from.cols, from.row_stride, from.col_stride};
}

// 16-bit products equal those of the same numbers in float32, rounded once.
template <class T>
void check_halves(const Sizes& s, Layout left, Layout right, Layout out, double alpha, double beta) {
  SCOPED_TRACE(concat(s.rows, "x", s.depth, "x", s.columns, ", layouts ", static_cast<int>(left),
                      static_cast<int>(right), static_cast<int>(out), ", beta ", beta));
  Filled<float> a(s.rows, s.depth, left, 1), b(s.depth, s.columns, right, 2), c(s.rows, s.columns, out, 3);
  std::vector<T> x, y, z;
  const Matrix half_a = narrow(a.matrix, x), half_b = narrow(b.matrix, y), half_c = narrow(c.matrix, z);
  const std::vector<T> before = z;
  gemm(dtype_of<T>, alpha, half_a, half_b, beta, half_c);
  gemm(DType::kFloat32, alpha, a.matrix, b.matrix, beta, c.matrix);
  std::vector<bool> is_written(z.size());
  for (int64_t r = 0; r < s.rows; ++r) {
    for (int64_t k = 0; k < s.columns; ++k) {
      const int64_t at = r * half_c.row_stride + k * half_c.col_stride;
      is_written[static_cast<size_t>(at)] = true;
      const float expected = static_cast<float*>(c.matrix.data)[at], got = z[static_cast<size_t>(at)];
      ASSERT_NEAR(got, expected, (std::is_same_v<T, Half> ? 1e-3 : 8e-3) * (std::abs(expected) + 0.1)) << r << " " << k;
    }
  }
  for (size_t i = 0; i < z.size(); ++i) ASSERT_TRUE(is_written[i] || z[i].bits == before[i].bits) << i;
}

TYPED_TEST(HalvesTest, ProductsOfAnyStrides) {
  for (const int threads : {1, 3}) {
    set_thread_budget(threads);
    for (const Sizes& s : {Sizes{7, 20, 9}, {100, 600, 1}, {2, 90, 300}, {9, 520, 70}, {150, 33, 17}, {90, 40, 80}}) {
      for (const Layout left : kLayouts) {
        for (const Layout right : kLayouts) {
          for (const Layout out : kLayouts) {
            for (const double beta : {0.0, 0.5})
              check_halves<TypeParam>(s, left, right, out, beta == 0 && out == Layout::kRows ? 1 : 2, beta);
          }
        }
      }
    }
  }
}

// A large matrix is read in place, not converted to float32.
TYPED_TEST(HalvesTest, LargeMatricesStayWhereTheyAre) {
  set_thread_budget(1);
  const int64_t kSize = 1024;
  const Tensor large = Tensor::empty(Dims{kSize, kSize}, dtype_of<TypeParam>);
  std::fill_n(large.data<TypeParam>(), kSize * kSize, TypeParam(1.0f));
  const OwnerId owner = memory_owner("a product of halves");
  for (const int64_t columns : {1, 3, 20}) {
    const Tensor some = Tensor::empty(Dims{kSize, columns}, dtype_of<TypeParam>),
                 out = Tensor::empty(Dims{kSize, columns}, dtype_of<TypeParam>);
    std::fill_n(some.data<TypeParam>(), kSize * columns, TypeParam(0.5f));
    const MemoryOwnerScope scope(owner);
    set_owner_limit(owner, large.size_bytes() / 2);
    for (const Matrix& weight : {matrix_of(large), matrix_of(large).transposed()})
      EXPECT_NO_THROW(gemm(dtype_of<TypeParam>, 1, weight, matrix_of(some), 0, matrix_of(out))) << columns;
    set_owner_limit(owner, 0);
    EXPECT_EQ(static_cast<float>(out.data<TypeParam>()[kSize * columns - 1]), kSize / 2);
  }
}

// The same bits, whatever the number of threads.
TYPED_TEST(GemmTest, ThreadsDoNotChangeSums) {
  if (std::is_same_v<TypeParam, float> && uses_sgemm())
    GTEST_SKIP() << "sgemm adds up in an order of its own; gemm_test_avx2 runs this";
  for (const Sizes& s : {Sizes{200, 300, 90}, Sizes{9, 500, 1000}}) {
    Filled<TypeParam> a(s.rows, s.depth, Layout::kRows, 1), b(s.depth, s.columns, Layout::kColumns, 2);
    std::vector<std::vector<TypeParam>> results;
    for (const int threads : {1, 2, 5}) {
      set_thread_budget(threads);
      Filled<TypeParam> c(s.rows, s.columns, Layout::kRows, 3);
      gemm(dtype_of<TypeParam>, 1, a.matrix, b.matrix, 0, c.matrix);
      results.push_back(c.values());
    }
    EXPECT_EQ(results[0], results[1]);
    EXPECT_EQ(results[0], results[2]);
  }
}

}  // namespace
}  // namespace tensord::kernels::gemm_test
