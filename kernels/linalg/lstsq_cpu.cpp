// Least squares by LAPACK.
#include <algorithm>
#include <limits>
#include <optional>
#include <string>

#include "kernels/linalg/algebra.h"
#include "kernels/linalg/lapack_complex.h"
#include "ops/reduce.h"
#include "ops/view.h"

namespace tensord::kernels::linalg {
namespace {

constexpr const char* kLstsqName = "torch.linalg.lstsq";

enum class Driver { kGels, kGelsy, kGelsd, kGelss };

Driver driver_of(const std::optional<std::string>& name) {
  if (!name || *name == "gelsy") return Driver::kGelsy;
  if (*name == "gels") return Driver::kGels;
  if (*name == "gelsd") return Driver::kGelsd;
  check(*name == "gelss", kLstsqName, ": parameter `driver` should be one of (gels, gelsy, gelsd, gelss)");
  return Driver::kGelss;
}

// One problem: `a` of m rows and n columns, and `b` of max(m, n) rows. Both are overwritten.
template <class T>
struct Problem {
  using R = decltype(std::abs(T()));
  int m, n, columns;
  R condition;

  // With size -1, `work` returns the size that is needed.
  int run(Driver driver, T* a, T* b, R* values, int* rank, T* work, int size, [[maybe_unused]] R* reals,
          int* integers) const {
    const int lda = leading(m), ldb = leading(std::max(m, n));
    int code = 0;
    const char turn = 'N';
    switch (driver) {
      case Driver::kGels: Lapack<T>::gels(&turn, &m, &n, &columns, a, &lda, b, &ldb, work, &size, &code, 1); break;
      case Driver::kGelsy:
        if constexpr (is_complex_type<T>)
          Lapack<T>::gelsy(&m, &n, &columns, a, &lda, b, &ldb, integers, &condition, rank, work, &size, reals, &code);
        else
          Lapack<T>::gelsy(&m, &n, &columns, a, &lda, b, &ldb, integers, &condition, rank, work, &size, &code);
        break;
      case Driver::kGelsd:
        if constexpr (is_complex_type<T>)
          Lapack<T>::gelsd(&m, &n, &columns, a, &lda, b, &ldb, values, &condition, rank, work, &size, reals, integers,
                           &code);
        else
          Lapack<T>::gelsd(&m, &n, &columns, a, &lda, b, &ldb, values, &condition, rank, work, &size, integers, &code);
        break;
      case Driver::kGelss:
        if constexpr (is_complex_type<T>)
          Lapack<T>::gelss(&m, &n, &columns, a, &lda, b, &ldb, values, &condition, rank, work, &size, reals, &code);
        else
          Lapack<T>::gelss(&m, &n, &columns, a, &lda, b, &ldb, values, &condition, rank, work, &size, &code);
        break;
    }
    return code;
  }
};

struct Parts {
  Tensor a, b, ranks, values, info;  // column-major copies, and the results beside the solution
};

template <class T>
void run_batches_of(Driver driver, double condition, const Parts& parts) {
  const Dims batch = batch_of(parts.a);
  const Problem<T> problem{static_cast<int>(rows_of(parts.a)), static_cast<int>(columns_of(parts.a)),
                           static_cast<int>(columns_of(parts.b)), static_cast<typename Problem<T>::R>(condition)};
  using R = typename Problem<T>::R;
  const int64_t steps = std::min(problem.m, problem.n);
  T answer = 0;
  int integer_answer = 0, unused_rank = 0;
  T unused = 0;
  R unused_value = 0, real_answer = 0;
  problem.run(driver, &unused, &unused, &unused_value, &unused_rank, &answer, -1, &real_answer, &integer_answer);
  // gelsy needs twice the columns, gelss five times the smaller size; gelsd tells what it needs.
  const int64_t real_size =
      std::max<int64_t>({static_cast<int64_t>(real_answer) + 1, 2 * int64_t{problem.n}, 5 * steps});
  const int size = work_size(answer), integer_size = std::max({integer_answer, problem.n, 1});
  for_each_range(count_of(batch), 4 * cost_of(problem.m, problem.n), [&](int64_t begin, int64_t end) {
    const Scratch<T> work(size);
    const Scratch<R> reals(real_size);
    const Scratch<int32_t> integers(integer_size);
    for (int64_t i = begin; i < end; ++i) {
      check(is_finite(parts.a, batch, i) && is_finite(parts.b, batch, i), kLstsqName,
            ": input and other must not contain infs or NaNs");
      std::fill_n(integers.get(), integer_size, 0);
      parts.info.data<int32_t>()[i] =
          problem.run(driver, LapackMatrix<T>(parts.a, batch, i).get(), LapackMatrix<T>(parts.b, batch, i).get(),
                      parts.values.data<R>() + i * steps, parts.ranks.data<int32_t>() + i, work.get(), size,
                      reals.get(), integers.get());
    }
  });
}

Tensor columns_of_rows(const Tensor& x, int64_t rows) {
  const ops::TensorMeta meta = column_major(with(batch_of(x), {rows, columns_of(x)}), x);
  Tensor out = Tensor::empty_strided(meta.sizes, meta.strides, meta.dtype);
  if (out.numel() == 0) return out;
  out.copy_from(Tensor::scalar(0.0));
  if (x.numel() != 0) narrowed(out, -2, 0, rows_of(x)).copy_from(x);
  return out;
}

bool is_lstsq_vector(const Tensor& a, const Tensor& b) { return a.ndim() - 1 == b.ndim(); }

void check_lstsq(const Tensor& a, const Tensor& b) {
  check(a.ndim() >= 2, kLstsqName, ": input must have at least 2 dimensions.");
  check(b.ndim() >= 1, kLstsqName, ": other must have at least 1 dimension.");
  check(a.dtype() == b.dtype(), kLstsqName, ": Expected input and other to have the same dtype, but got input's dtype ",
        name_of(a.dtype()), " and other's dtype ", name_of(b.dtype()));
  check(a.ndim() >= b.ndim() && a.ndim() - b.ndim() <= 1, kLstsqName,
        ": input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1");
  const int64_t rows = is_lstsq_vector(a, b) ? b.sizes().back() : rows_of(b);
  check(rows == rows_of(a), kLstsqName, ": input.size(-2) should match other.size(",
        is_lstsq_vector(a, b) ? "-1" : "-2", ")");
  if (!has_lapack_dtype(a)) {
    fail(ErrorCode::kInvalidArgument, "This function doesn't handle types other than float and double");
  }
  check_lapack_sizes(kLstsqName, rows_of(a), columns_of(a));
}

// The sum of squares of B's residual, if every matrix has full rank and more rows than columns.
Tensor residuals_of(Driver driver, const Parts& parts, int64_t rows, int64_t columns) {
  Tensor none = Tensor::empty(Dims{0}, real_dtype(parts.b.dtype()));
  if (driver == Driver::kGelsy || rows <= columns) return none;
  if (driver != Driver::kGels) {
    for (int64_t i = 0; i < parts.ranks.numel(); ++i) {
      if (parts.ranks.data<int32_t>()[i] != columns) return none;
    }
  }
  const Tensor rest = narrowed(parts.b, -2, columns, rows - columns);
  return ops::sum(product(absolute_of(rest), absolute_of(rest)), Dims{-2});
}

ops::Returns lstsq(const Tensor& a, const Tensor& given_b, std::optional<double> rcond,
                   const std::optional<std::string>& driver_name) {
  check_lstsq(a, given_b);
  const Driver driver = driver_of(driver_name);
  const Tensor b = is_lstsq_vector(a, given_b) ? unsqueezed(given_b, -1) : given_b;
  const int64_t rows = rows_of(a), columns = columns_of(a);
  const Dims batch = broadcast_sizes(batch_of(a), batch_of(b));
  const double precision = real_dtype(a.dtype()) == DType::kFloat32 ? std::numeric_limits<float>::epsilon()
                                                                    : std::numeric_limits<double>::epsilon();
  Parts parts;
  parts.a = columns_of_rows(ops::expand(a, with(batch, {rows, columns})), rows);
  parts.b = columns_of_rows(ops::expand(b, with(batch, {rows, columns_of(b)})), std::max(rows, columns));
  parts.ranks = Tensor::empty(batch, DType::kInt32), parts.info = Tensor::empty(batch, DType::kInt32);
  parts.values = Tensor::empty(with(batch, {std::min(rows, columns)}), real_dtype(a.dtype()));
  if (parts.ranks.numel() != 0) parts.ranks.copy_from(Tensor::scalar(int32_t{0}));
  if (a.numel() != 0 && b.numel() != 0) {
    const double condition = rcond.value_or(precision * static_cast<double>(std::max(rows, columns)));
    dispatch_lapack(a.dtype(), kLstsqName, [&]<class T>() { run_batches_of<T>(driver, condition, parts); });
    check_info(kLstsqName, parts.info);
  } else if (parts.b.numel() != 0) {
    parts.b.copy_from(Tensor::scalar(0.0));
  }
  Tensor solution = narrowed(parts.b, -2, 0, columns);
  if (is_lstsq_vector(a, given_b)) solution = ops::squeeze(solution, -1);
  const Tensor no_ranks = Tensor::empty(Dims{0}, DType::kInt64),
               no_values = Tensor::empty(Dims{0}, real_dtype(a.dtype()));
  const bool has_values = driver == Driver::kGelsd || driver == Driver::kGelss;
  return {{solution, residuals_of(driver, parts, rows, columns),
           driver == Driver::kGels ? no_ranks : parts.ranks.to(DType::kInt64), has_values ? parts.values : no_values}};
}

IMPL("aten::linalg_lstsq", kCPU, lstsq);

}  // namespace
}  // namespace tensord::kernels::linalg
