// Singular values and vectors.
#include "core/ops/attributes/written.h"
#include "kernels/fused/gradient_expr.h"
#include "kernels/linalg/algebra.h"
#include "kernels/linalg/lapack_complex.h"

namespace tensord::kernels::linalg {
namespace {

using ops::call;
using ops::GradArgs;
using ops::TensorMeta;
using ops::WritesInto;
using Driver = std::optional<std::string>;

std::vector<TensorMeta> infer_svd(const Tensor& a, bool is_full, bool has_vectors, const Driver& driver) {
  check_matrix("linalg.svd", a);
  check_real("linalg.svd", a);
  check(!driver,
        "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend.");
  const int64_t rows = rows_of(a), columns = columns_of(a), steps = std::min(rows, columns);
  const Dims batch = batch_of(a);
  const TensorMeta values = row_major(with(batch, {steps}), real_dtype(a.dtype()), a), none = row_major(Dims{0}, a);
  check_lapack_sizes("linalg.svd", rows, columns);
  if (!has_vectors) return {none, values, none};
  check_lapack_sizes("linalg.svd", rows, is_full ? rows : steps);
  check_lapack_sizes("linalg.svd", columns, is_full ? columns : steps);
  return {column_major(with(batch, {rows, is_full ? rows : steps}), a), values,
          column_major(with(batch, {is_full ? columns : steps, columns}), a)};
}

// Copies matrix `index` into `to`, column by column.
template <class T>
void copy_matrix(const Tensor& x, const Dims& batch, int64_t index, T* to) {
  const Matrix from = matrix_at(x, batch, index);
  for (int64_t c = 0; c < from.cols; ++c) {
    const T* column = static_cast<const T*>(from.data) + c * from.col_stride;
    for (int64_t r = 0; r < from.rows; ++r) *to++ = column[r * from.row_stride];
  }
}

template <class T>
void run_gesdd(const Tensor& a, char job, const Tensor& u, const Tensor& s, const Tensor& vh, const Tensor& codes) {
  const Dims batch = batch_of(a);
  const int m = static_cast<int>(rows_of(a)), n = static_cast<int>(columns_of(a)), lda = leading(m), query = -1;
  const int steps = std::min(m, n), ldu = leading(m), ldvh = job == 'N' ? 1 : leading(rows_of(vh));
  T answer = 0;
  int info = 0;
  using R = decltype(std::abs(T()));
  // Complex routines want real numbers beside.
  const auto gesdd = [&](T* matrix, R* values, T* left, T* right, T* work, const int* size, [[maybe_unused]] R* reals,
                         int* integers, int* code) {
    if constexpr (is_complex_type<T>) {
      Lapack<T>::gesdd(&job, &m, &n, matrix, &lda, values, left, &ldu, right, &ldvh, work, size, reals, integers, code,
                       1);
    } else {
      Lapack<T>::gesdd(&job, &m, &n, matrix, &lda, values, left, &ldu, right, &ldvh, work, size, integers, code, 1);
    }
  };
  gesdd(nullptr, nullptr, nullptr, nullptr, &answer, &query, nullptr, nullptr, &info);
  // As LAPACK's page says of rwork: for values alone 7 of the smaller size, else its square five times or with the
  // larger.
  const int64_t small = steps, large = std::max(m, n);
  const int64_t real_size =
      !is_complex_type<T> ? 1
      : job == 'N'        ? 7 * small
                          : std::max(5 * small * small + 5 * small, 2 * large * small + 2 * small * small + small);
  const int size = work_size(answer);
  for_each_range(count_of(batch), 4 * cost_of(m, n), [&](int64_t begin, int64_t end) {
    const Scratch<T> work(size, read_beyond<T>(large)), copy(int64_t{m} * n, read_beyond<T>(m));
    const Scratch<R> reals(real_size);
    const Scratch<int32_t> integers(int64_t{8} * steps);
    for (int64_t i = begin; i < end; ++i) {
      int32_t& code = codes.data<int32_t>()[i];
      code = is_finite(a, batch, i) ? 0 : kNotFinite;
      if (code != 0) continue;
      copy_matrix(a, batch, i, copy.get());
      std::optional<LapackMatrix<T>> left, right;
      if (job != 'N') left.emplace(u, batch, i), right.emplace(vh, batch, i);
      gesdd(copy.get(), s.data<R>() + i * steps, left ? left->get() : nullptr, right ? right->get() : nullptr,
            work.get(), &size, reals.get(), integers.get(), &code);
    }
  });
}

// Without rows or columns there are no singular values, and any vectors will do: those of the identity.
void fill_identity(const Tensor& x) {
  if (x.numel() == 0) return;
  const Tensor one = identity(rows_of(x), x);
  if (rows_of(x) == columns_of(x)) x.copy_from(one);
}

void svd_kernel(const ops::KernelContext&, const Tensor& a, bool is_full, bool has_vectors, const Driver&, Tensor& u,
                Tensor& s, Tensor& vh) {
  if (a.numel() == 0) {
    if (!has_vectors) return;
    fill_identity(u);
    return fill_identity(vh);
  }
  const char job = !has_vectors ? 'N' : is_full ? 'A' : 'S';
  const Tensor codes = Tensor::empty(batch_of(a), DType::kInt32);
  dispatch_lapack(a.dtype(), "linalg.svd", [&]<class T>() { run_gesdd<T>(a, job, u, s, vh, codes); });
  check_info("linalg.svd", codes);
}

Tensor skew_part(const Tensor& x) { return difference(x, adjoint(x)); }

// With E[i, j] = s_j² - s_i² (1 on the diagonal):
//   gA = U ((skew(Uᵀ gU) / E) S + S (skew(Vᵀ gV) / E) + diag(gS)) Vᵀ, and what lies outside of U's and V's spaces.
std::vector<Tensor> gradient_of_svd(const GradArgs& args) {
  const Tensor& a = args.inputs[0].to_tensor();
  std::vector<Tensor> gradients(args.inputs.size());
  Tensor of_u = args.grad_outputs[0], of_vh = args.grad_outputs[2];
  const Tensor& of_s = args.grad_outputs[1];
  const bool has_vectors = args.inputs[2].to_bool();
  if (!has_vectors) of_u = of_vh = Tensor();
  if (!of_u && !of_s && !of_vh) return gradients;
  const int64_t rows = rows_of(a), columns = columns_of(a), steps = std::min(rows, columns);
  Tensor u = args.outputs[0].to_tensor(), s = args.outputs[1].to_tensor(), vh = args.outputs[2].to_tensor();
  if (!has_vectors) {
    const auto parts = call_for<3>("aten::_linalg_svd", a, false, true);
    u = parts[0], s = parts[1], vh = parts[2];
  }
  u = narrowed(u, -1, 0, steps), vh = narrowed(vh, -2, 0, steps);
  if (of_u) of_u = narrowed(of_u, -1, 0, steps);
  if (of_vh) of_vh = narrowed(of_vh, -2, 0, steps);
  const Tensor by_row = unsqueezed(s, -1), by_column = unsqueezed(s, -2);
  if (!of_u && !of_vh) {
    gradients[0] = matmul(u, product(unsqueezed(of_s, -1), vh));
    return gradients;
  }
  const Tensor gaps = sum_of(product(difference(by_column, by_row), sum_of(by_column, by_row)), identity(steps, a));
  Tensor inner = of_s ? as_diagonal(of_s) : Tensor();
  if (of_u) inner = joined(inner, product(quotient(skew_part(matmul(adjoint(u), of_u)), gaps), by_column));
  if (of_vh) inner = joined(inner, product(by_row, quotient(skew_part(matmul(vh, adjoint(of_vh))), gaps)));
  // Of complex matrices the phases of pairs of vectors turn together.
  if (of_u && of_vh && is_complex(a.dtype())) {
    const Tensor turning = diagonal_of(skew_part(matmul(adjoint(u), of_u)));
    inner = sum_of(inner, as_diagonal(quotient(turning, scaled(s, 2))));
  }
  Tensor of_a = matmul(u, matmul(inner, vh));
  if (of_u && rows > steps) {
    const Tensor outside = difference(of_u, matmul(u, matmul(adjoint(u), of_u)));
    of_a = sum_of(of_a, matmul(quotient(outside, by_column), vh));
  }
  if (of_vh && columns > steps) {
    const Tensor outside = difference(of_vh, matmul(matmul(of_vh, adjoint(vh)), vh));
    of_a = sum_of(of_a, matmul(u, quotient(outside, by_row)));
  }
  gradients[0] = of_a;
  return gradients;
}

OP("aten::_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None) -> (Tensor U, "
   "Tensor "
   "S, Tensor Vh)")
    .infer(infer_svd)
    .gradient(gradient_of_svd)
    .saves("A, result0, result1, result2");
KERNEL("aten::_linalg_svd", kCPU, svd_kernel);

OP("aten::linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)")
    .direct([](const Tensor& a, bool is_full, const ops::Value& driver) -> std::tuple<Tensor, Tensor, Tensor> {
      const auto [u, s, vh] = call_for<3>("aten::_linalg_svd", a, is_full, true, driver);
      return {u, s, vh};
    })
    .composite();
OP("aten::linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor")
    .direct([](const Tensor& a, const ops::Value& driver) {
      return call_for<3>("aten::_linalg_svd", a, false, false, driver)[1];
    })
    .composite()
    .set<WritesInto>(WritesInto::kSameDType)
    .with_out();
OP("aten::svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)")
    .direct([](const Tensor& a, bool is_reduced, bool has_vectors) -> std::tuple<Tensor, Tensor, Tensor> {
      const auto [u, s, vh] = call_for<3>("aten::_linalg_svd", a, !is_reduced, has_vectors);
      if (has_vectors) return {u, s, adjoint(vh)};
      const auto square = [&](int64_t size) {
        return call("aten::zeros", with(batch_of(a), {size, size}), a.dtype(), ops::Value(), a.device());
      };
      return {square(rows_of(a)), s, square(columns_of(a))};
    })
    .composite();

}  // namespace
}  // namespace tensord::kernels::linalg
