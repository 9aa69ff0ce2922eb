#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "core/base/error.h"
#include "core/base/execution_context.h"
#include "core/base/parallel.h"
#include "kernels/sparse/rows.h"

namespace tensord::kernels {

using ops::KernelContext;

namespace {

// Halves are summed in float32.
template <class T>
using Sum = std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, float, T>;

int64_t row_width(const Tensor& x) { return x.sizes()[0] > 0 ? x.numel() / x.sizes()[0] : 0; }

void check_places(const int64_t* places, int64_t count, int64_t size) {
  for (int64_t i = 0; i < count; ++i) {
    if (places[i] < 0 || places[i] >= size) fail(ErrorCode::kOutOfRange, "index ", places[i], " is out of range");
  }
}

struct Matrix {
  Matrix(const Tensor& given_starts, const Tensor& given_columns, int64_t column_count)
      : starts(given_starts.contiguous()),
        columns(given_columns.contiguous()),
        start(starts.data<int64_t>()),
        column(columns.data<int64_t>()),
        rows(starts.numel() - 1) {
    check(start[0] == 0 && start[rows] == columns.numel() && std::is_sorted(start, start + rows + 1),
          "the starts of rows are not in order");
    check_places(column, columns.numel(), column_count);
  }
  // The cost of a row when each element costs `ns`.
  double cost(double ns) const {
    return 1 + ns * static_cast<double>(columns.numel()) / static_cast<double>(std::max<int64_t>(rows, 1));
  }
  Tensor starts, columns;
  const int64_t *start, *column;
  int64_t rows;
};

}  // namespace

void scatter_kernel(const KernelContext&, const Tensor& given_places, const Tensor& given, int64_t count, Tensor& out) {
  const Tensor places = given_places.contiguous(), values = given.contiguous();
  const auto* place = places.data<int64_t>();
  const int64_t n = places.numel(), width = n > 0 ? values.numel() / n : 0;
  check_places(place, n, count);
  const bool is_distinct = std::adjacent_find(place, place + n, std::greater_equal<>()) == place + n;
  dispatch_all(values.dtype(), "scatter_rows", [&]<class T>() {
    T* to = out.data<T>();
    const T* from = values.data<T>();
    parallel_for_cost(out.numel(), 0.1, [&](int64_t begin, int64_t end) { std::fill(to + begin, to + end, T(0)); });
    const auto add = [&](int64_t i, int64_t first, int64_t last) {
      T* row = to + place[i] * width;
      const T* term = from + i * width;
      for (int64_t k = first; k < last; ++k) row[k] = static_cast<T>(row[k] + term[k]);
    };
    if (is_distinct) {
      parallel_for_cost(n, 1.0 + static_cast<double>(width), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) add(i, 0, width);
      });
      return;
    }
    // Elements that coincide belong to one thread; each thread takes some of the columns.
    const ContextPart<&ExecutionContext::cancellation> whole(nullptr);  // a narrow part would read as much memory
    parallel_for_cost(width, 2.0 * static_cast<double>(n), [&](int64_t begin, int64_t end) {
      for (int64_t i = 0; i < n; ++i) add(i, begin, end);
    });
  });
}

void gather_kernel(const KernelContext&, const Tensor& given_places, const Tensor& given, Tensor& out) {
  const Tensor places = given_places.contiguous(), x = given.contiguous();
  const auto* place = places.data<int64_t>();
  const int64_t n = places.numel();
  check_places(place, n, x.sizes()[0]);
  const size_t bytes = static_cast<size_t>(row_width(x)) * size_of(x.dtype());
  if (bytes == 0) return;
  const auto* from = static_cast<const char*>(x.raw_data());
  auto* to = static_cast<char*>(out.raw_data());
  parallel_for_cost(n, 2.0 + 0.1 * static_cast<double>(bytes), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      std::memcpy(to + static_cast<size_t>(i) * bytes, from + static_cast<size_t>(place[i]) * bytes, bytes);
  });
}

void product_kernel(const KernelContext&, const Tensor& starts, const Tensor& columns, const Tensor& given_values,
                    const Tensor& given_dense, Tensor& out) {
  const Matrix matrix(starts, columns, given_dense.sizes()[0]);
  const Tensor values = given_values.contiguous(), dense = given_dense.contiguous();
  const int64_t width = dense.sizes()[1];
  dispatch_all(dense.dtype(), "product", [&]<class T>() {
    const T *value = values.data<T>(), *right = dense.data<T>();
    T* to = out.data<T>();
    parallel_for_cost(matrix.rows, matrix.cost(0.5 * static_cast<double>(width) + 1), [&](int64_t begin, int64_t end) {
      std::vector<Sum<T>> buffer(std::is_same_v<Sum<T>, T> ? 0 : static_cast<size_t>(width));
      for (int64_t row = begin; row < end; ++row) {
        Sum<T>* sum;
        if constexpr (std::is_same_v<Sum<T>, T>) {
          sum = to + row * width;
        } else {
          sum = buffer.data();
        }
        std::fill_n(sum, width, Sum<T>(0));
        for (int64_t i = matrix.start[row]; i < matrix.start[row + 1]; ++i) {
          const auto factor = static_cast<Sum<T>>(value[i]);
          const T* term = right + matrix.column[i] * width;
          for (int64_t k = 0; k < width; ++k)
            sum[k] = static_cast<Sum<T>>(sum[k] + factor * static_cast<Sum<T>>(term[k]));
        }
        if constexpr (!std::is_same_v<Sum<T>, T>) {
          for (int64_t k = 0; k < width; ++k) to[row * width + k] = static_cast<T>(sum[k]);
        }
      }
    });
  });
}

void sampled_kernel(const KernelContext&, const Tensor& starts, const Tensor& columns, const Tensor& given_a,
                    const Tensor& given_b, Tensor& out) {
  const Matrix matrix(starts, columns, given_b.sizes()[0]);
  const Tensor a = given_a.contiguous(), b = given_b.contiguous();
  const int64_t width = a.sizes()[1];
  dispatch_all(a.dtype(), "sampled", [&]<class T>() {
    const T *left = a.data<T>(), *right = b.data<T>();
    T* to = out.data<T>();
    parallel_for_cost(matrix.rows, matrix.cost(0.5 * static_cast<double>(width) + 1), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const T* x = left + row * width;
        for (int64_t i = matrix.start[row]; i < matrix.start[row + 1]; ++i) {
          const T* y = right + matrix.column[i] * width;
          Sum<T> sum(0);
          for (int64_t k = 0; k < width; ++k)
            sum = static_cast<Sum<T>>(sum + static_cast<Sum<T>>(x[k]) * static_cast<Sum<T>>(y[k]));
          to[i] = static_cast<T>(sum);
        }
      }
    });
  });
}

namespace {

template <class T>
struct Triangle {
  const Matrix& matrix;
  const T* value;
  bool is_unit;

  // Columns [first, last) of the right side, in place: x = T⁻¹ x, row by row, starting at the end whose rows depend on
  // no others.
  void solve(T* x, int64_t width, int64_t first, int64_t last, bool upper) const {
    for (int64_t step = 0; step < matrix.rows; ++step) {
      const int64_t row = upper ? matrix.rows - 1 - step : step;
      T diagonal(0);
      for (int64_t i = matrix.start[row]; i < matrix.start[row + 1]; ++i) {
        const int64_t column = matrix.column[i];
        if (column == row) diagonal = static_cast<T>(diagonal + value[i]);
        if (column == row || (column > row) != upper) continue;
        for (int64_t k = first; k < last; ++k) x[row * width + k] -= value[i] * x[column * width + k];
      }
      if (is_unit) continue;
      for (int64_t k = first; k < last; ++k) x[row * width + k] /= diagonal;
    }
  }

  // x = T⁻ᵀ x: once a row is known, it is subtracted from those that depend on it.
  void solve_transposed(T* x, int64_t width, int64_t first, int64_t last, bool upper) const {
    for (int64_t step = 0; step < matrix.rows; ++step) {
      const int64_t row = upper ? step : matrix.rows - 1 - step;
      T diagonal(0);
      for (int64_t i = matrix.start[row]; i < matrix.start[row + 1]; ++i) {
        if (matrix.column[i] == row) diagonal = static_cast<T>(diagonal + value[i]);
      }
      for (int64_t k = first; k < last && !is_unit; ++k) x[row * width + k] /= diagonal;
      for (int64_t i = matrix.start[row]; i < matrix.start[row + 1]; ++i) {
        const int64_t column = matrix.column[i];
        if (column == row || (column > row) != upper) continue;
        for (int64_t k = first; k < last; ++k) x[column * width + k] -= value[i] * x[row * width + k];
      }
    }
  }
};

}  // namespace

void solve_kernel(const KernelContext&, const Tensor& starts, const Tensor& columns, const Tensor& given_values,
                  const Tensor& right, bool upper, bool transpose, bool unitriangular, Tensor& out) {
  const Matrix matrix(starts, columns, right.sizes()[0]);
  const Tensor values = given_values.contiguous();
  out.copy_from(right);
  const int64_t width = right.sizes()[1];
  const auto solve = [&]<class T>() {
    const Triangle<T> triangle{matrix, values.data<T>(), unitriangular};
    T* x = out.data<T>();
    const double cost = static_cast<double>(matrix.rows) * matrix.cost(1);
    const ContextPart<&ExecutionContext::cancellation> whole(nullptr);  // a narrow part would read as much memory
    parallel_for_cost(width, cost, [&](int64_t begin, int64_t end) {
      transpose ? triangle.solve_transposed(x, width, begin, end, upper) : triangle.solve(x, width, begin, end, upper);
    });
  };
  if (out.dtype() == DType::kFloat32) return solve.operator()<float>();
  if (out.dtype() == DType::kFloat64) return solve.operator()<double>();
  fail(ErrorCode::kUnimplemented, "is implemented for float32 and float64, but got ", name_of(out.dtype()));
}

void softmax_kernel(const KernelContext&, const Tensor& given_groups, const Tensor& given, int64_t count, bool is_log,
                    Tensor& out) {
  const Tensor groups = given_groups.contiguous(), values = given.contiguous();
  const auto* group = groups.data<int64_t>();
  const int64_t n = groups.numel(), width = n > 0 ? values.numel() / n : 0;
  check_places(group, n, count);
  dispatch_floating(values.dtype(), "softmax", [&]<class T>() {
    const T* x = values.data<T>();
    T* y = out.data<T>();
    // Each thread takes whole columns of the dense sizes.
    parallel_for_cost(width, 20.0 * static_cast<double>(n), [&](int64_t begin, int64_t end) {
      std::vector<Sum<T>> max(static_cast<size_t>(count)), total(static_cast<size_t>(count));
      for (int64_t k = begin; k < end; ++k) {
        std::fill(max.begin(), max.end(), -std::numeric_limits<Sum<T>>::infinity());
        std::fill(total.begin(), total.end(), Sum<T>(0));
        const auto at = [&](int64_t i) { return static_cast<Sum<T>>(x[i * width + k]); };
        for (int64_t i = 0; i < n; ++i) {
          auto& m = max[static_cast<size_t>(group[i])];
          m = std::isnan(at(i)) ? at(i) : std::max(m, at(i));
        }
        for (int64_t i = 0; i < n; ++i) {
          const auto g = static_cast<size_t>(group[i]);
          total[g] += std::exp(at(i) - max[g]);
        }
        for (int64_t i = 0; i < n; ++i) {
          const auto g = static_cast<size_t>(group[i]);
          const Sum<T> shifted = at(i) - max[g];
          y[i * width + k] = static_cast<T>(is_log ? shifted - std::log(total[g]) : std::exp(shifted) / total[g]);
        }
      }
    });
  });
}

namespace {

IMPL("tensord::scatter_rows", DeviceKind::kCPU, scatter_kernel);
IMPL("tensord::gather_rows", DeviceKind::kCPU, gather_kernel);
IMPL("tensord::csr_product", DeviceKind::kCPU, product_kernel);
IMPL("tensord::csr_sampled", DeviceKind::kCPU, sampled_kernel);
IMPL("tensord::csr_solve", DeviceKind::kCPU, solve_kernel);
IMPL("tensord::group_softmax", DeviceKind::kCPU, softmax_kernel);

}  // namespace
}  // namespace tensord::kernels
