// f64 products of matrices with any strides, against sums written out and OpenBLAS.
#include <cblas.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "core/base/error.h"
#include "core/base/parallel.h"
#include "kernels/gemm.h"

namespace tensord::kernels {
namespace {

enum class Layout { kRows, kColumns, kSparse, kEverySecond };
constexpr Layout kLayouts[] = {Layout::kRows, Layout::kColumns, Layout::kSparse, Layout::kEverySecond};

// A matrix with numbers also between its elements, which nobody may write.
class Filled {
 public:
  Filled(int64_t rows, int64_t cols, Layout layout, uint32_t seed)
      : values_(static_cast<size_t>(2 * (rows + 1) * (cols + 3))) {
    std::mt19937 generator(seed);
    std::uniform_real_distribution<double> numbers(-1, 1);
    for (double& value : values_) value = numbers(generator);
    matrix = {values_.data(), rows, cols, cols, 1};
    if (layout == Layout::kColumns) matrix.row_stride = 1, matrix.col_stride = rows;
    if (layout == Layout::kSparse) matrix.row_stride = cols + 3;
    if (layout == Layout::kEverySecond) matrix.row_stride = 2 * cols, matrix.col_stride = 2;
  }
  Filled(const Filled&) = delete;

  double& at(int64_t row, int64_t col) {
    return values_[static_cast<size_t>(row * matrix.row_stride + col * matrix.col_stride)];
  }
  const std::vector<double>& values() const { return values_; }

  Matrix matrix;

 private:
  std::vector<double> values_;
};

struct Sizes {
  int64_t rows, depth, columns;
};

void check_product(const Sizes& s, Layout left, Layout right, Layout out, double alpha, double beta) {
  SCOPED_TRACE(concat(s.rows, "x", s.depth, "x", s.columns, ", layouts ", static_cast<int>(left),
                      static_cast<int>(right), static_cast<int>(out), ", beta ", beta));
  Filled a(s.rows, s.depth, left, 1), b(s.depth, s.columns, right, 2), c(s.rows, s.columns, out, 3),
      wanted(s.rows, s.columns, out, 3);
  for (int64_t i = 0; i < s.rows; ++i) {
    for (int64_t j = 0; j < s.columns; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < s.depth; ++k) sum += a.at(i, k) * b.at(k, j);
      wanted.at(i, j) = alpha * sum + (beta == 0 ? 0 : beta * wanted.at(i, j));
    }
  }
  if (beta == 0) c.at(0, 0) = std::nan("");  // is not read
  gemm(DType::kFloat64, alpha, a.matrix, b.matrix, beta, c.matrix);
  const double bound = 1e-14 * static_cast<double>(s.depth + 4);
  for (size_t i = 0; i < c.values().size(); ++i) ASSERT_NEAR(c.values()[i], wanted.values()[i], bound) << i;
}

TEST(GemmF64, SizesAndStrides) {
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
        for (const Layout right : kLayouts) check_product(s, left, right, Layout::kRows, 1, 0);
      }
      for (const Layout out : kLayouts) {
        for (const double beta : {0.0, 1.0, -0.5}) check_product(s, Layout::kRows, Layout::kColumns, out, 2, beta);
      }
    }
  }
}

// Sizes at which every loop of both goes round more than once.
TEST(GemmF64, LargeOnesEqualOpenBlas) {
  set_thread_budget(2);
  for (const Sizes& s : {Sizes{513, 1030, 700}, Sizes{96, 2048, 1111}, Sizes{1500, 65, 517}}) {
    for (const bool is_turned : {false, true}) {
      SCOPED_TRACE(concat(s.rows, "x", s.depth, "x", s.columns, is_turned ? ", right one by columns" : ""));
      Filled a(s.rows, s.depth, Layout::kRows, 1);
      Filled b(s.depth, s.columns, is_turned ? Layout::kColumns : Layout::kRows, 2);
      Filled c(s.rows, s.columns, Layout::kRows, 3), wanted(s.rows, s.columns, Layout::kRows, 3);
      gemm(DType::kFloat64, 0.5, a.matrix, b.matrix, 1, c.matrix);
      cblas_dgemm(CblasRowMajor, CblasNoTrans, is_turned ? CblasTrans : CblasNoTrans, static_cast<int>(s.rows),
                  static_cast<int>(s.columns), static_cast<int>(s.depth), 0.5, &a.at(0, 0), static_cast<int>(s.depth),
                  &b.at(0, 0), static_cast<int>(is_turned ? s.depth : s.columns), 1, &wanted.at(0, 0),
                  static_cast<int>(s.columns));
      const double bound = 1e-14 * static_cast<double>(s.depth + 4);
      for (size_t i = 0; i < c.values().size(); ++i) ASSERT_NEAR(c.values()[i], wanted.values()[i], bound) << i;
    }
  }
}

// The same bits, whatever the number of threads.
TEST(GemmF64, ThreadsDoNotChangeSums) {
  for (const Sizes& s : {Sizes{200, 300, 90}, Sizes{9, 500, 1000}}) {
    Filled a(s.rows, s.depth, Layout::kRows, 1), b(s.depth, s.columns, Layout::kColumns, 2);
    std::vector<std::vector<double>> results;
    for (const int threads : {1, 2, 5}) {
      set_thread_budget(threads);
      Filled c(s.rows, s.columns, Layout::kRows, 3);
      gemm(DType::kFloat64, 1, a.matrix, b.matrix, 0, c.matrix);
      results.push_back(c.values());
    }
    EXPECT_EQ(results[0], results[1]);
    EXPECT_EQ(results[0], results[2]);
  }
}

}  // namespace
}  // namespace tensord::kernels
