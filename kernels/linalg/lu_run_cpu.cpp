// LU of batches of matrices, and their row exchanges.
#include "kernels/linalg/lu.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/tensor/complex.h"
#include "kernels/linalg/algebra.h"
#include "kernels/linalg/complex.h"

namespace tensord::kernels::linalg {
namespace {

void lu_factor_kernel(const ops::KernelContext&, const Tensor& a, bool, bool check_errors, Tensor& lu, Tensor& pivots,
                      Tensor& info) {
  lu.copy_from(a);
  const Dims batch = batch_of(a);
  const int64_t rows = rows_of(a), columns = columns_of(a), steps = std::min(rows, columns);
  if (is_complex(a.dtype())) {
    factor_lu_complex(lu, pivots, info);
    if (check_errors) check_info("torch.linalg.lu_factor_ex", info);
    return;
  }
  run_batches(count_of(batch), rows * columns * steps / 3, [&](int64_t i) {
    int32_t* own = pivots.data<int32_t>() + i * steps;
    info.data<int32_t>()[i] = steps == 0 ? 0 : factor_lu(a.dtype(), matrix_at(lu, batch, i), own);
  });
  if (check_errors) check_info("torch.linalg.lu_factor_ex", info);
}

void exchange_rows_kernel(const ops::KernelContext&, const Tensor& x, const Tensor& pivots, bool undoes, Tensor& out) {
  out.copy_from(x);
  if (out.numel() == 0) return;
  const Tensor order = pivots.contiguous();
  const int64_t steps = order.sizes().back(), rows = rows_of(out), columns = columns_of(out);
  const int32_t* all = order.data<int32_t>();
  for (int64_t i = 0; i < order.numel(); ++i) {
    check(all[i] >= 1 && all[i] <= rows,
          "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive."
          "Did you properly pass the result of lu_factor?");
  }
  const Tensor rows_of_pivots = unsqueezed(order, -1);  // so that the last two dimensions are a matrix of one column
  const Dims batch = batch_of(out);
  dispatch_any(out.dtype(), "lu_solve", [&]<class T>() {
    run_batches(count_of(batch), steps * columns, [&](int64_t i) {
      const Matrix matrix = matrix_at(out, batch, i);
      const auto* own = static_cast<const int32_t*>(matrix_at(rows_of_pivots, batch, i).data);
      auto* values = static_cast<T*>(matrix.data);
      for (int64_t c = 0; c < columns; ++c, values += matrix.col_stride) {
        for (int64_t step = 0; step < steps; ++step) {
          const int64_t row = undoes ? steps - 1 - step : step;
          std::swap(values[row * matrix.row_stride], values[(own[row] - 1) * matrix.row_stride]);
        }
      }
    });
  });
}

void sign_of_exchanges_kernel(const ops::KernelContext&, const Tensor& pivots, DType, Tensor& out) {
  const int64_t steps = pivots.sizes().back();
  const Tensor order = pivots.contiguous(), signs = Tensor::empty(out.sizes(), DType::kFloat64);
  for (int64_t i = 0; i < signs.numel(); ++i) {
    int64_t exchanges = 0;
    for (int64_t step = 0; step < steps; ++step) {
      exchanges += order.data<int32_t>()[i * steps + step] != step + 1 ? 1 : 0;
    }
    signs.data<double>()[i] = exchanges % 2 == 0 ? 1 : -1;
  }
  out.copy_from(signs);
}

}  // namespace

bool has_nearly_singular_diagonal(const Tensor& diagonals, double precision) {
  const int64_t size = diagonals.sizes().back();
  for (const double* own = diagonals.data<double>(); size > 0 && own < diagonals.data<double>() + diagonals.numel();
       own += size) {
    const auto [min, max] = std::minmax_element(own, own + size);
    const double bound = 8 * static_cast<double>(size) * precision * *max;
    if (std::isfinite(*max) && *min <= bound) return true;
  }
  return false;
}

namespace {

IMPL("aten::linalg_lu_factor_ex", kCPU, lu_factor_kernel);
IMPL("tensord::exchange_rows", kCPU, exchange_rows_kernel);
IMPL("tensord::sign_of_exchanges", kCPU, sign_of_exchanges_kernel);

}  // namespace
}  // namespace tensord::kernels::linalg
