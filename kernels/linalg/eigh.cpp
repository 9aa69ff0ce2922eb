// Eigenvalues and vectors of symmetric matrices.
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

bool is_upper_triangle(const std::string& uplo) {
  check(uplo.size() == 1 && std::string_view("LlUu").find(uplo[0]) != std::string_view::npos,
        "Expected UPLO argument to be 'L' or 'U', but got ", uplo);
  return uplo[0] == 'U' || uplo[0] == 'u';
}

std::vector<TensorMeta> infer_eigh(const Tensor& a, const std::string& uplo, bool has_vectors) {
  check_square("linalg.eigh", a);
  is_upper_triangle(uplo);
  if (!has_lapack_dtype(a)) fail_dtype("linalg_eigh_cpu", a.dtype());
  check_lapack_sizes("linalg.eigh", rows_of(a), columns_of(a));
  const TensorMeta values = row_major(with(batch_of(a), {rows_of(a)}), real_dtype(a.dtype()), a);
  return {values, has_vectors ? column_major(a.sizes(), a) : row_major(Dims{0}, a)};
}

template <class T>
void run_syevd(const Tensor& a, bool is_upper, bool has_vectors, const Tensor& values, const Tensor& codes) {
  const Dims batch = batch_of(a);
  const int n = static_cast<int>(rows_of(a)), lda = leading(n), query = -1;
  const char job = has_vectors ? 'V' : 'N', triangle = is_upper ? 'U' : 'L';
  T answer = 0;
  int integer_answer = 0, info = 0;
  Lapack<T>::syevd(&job, &triangle, &n, nullptr, &lda, nullptr, &answer, &query, &integer_answer, &query, &info, 1, 1);
  const int size = work_size(answer), integer_size = std::max(integer_answer, 1);
  for_each_range(count_of(batch), 2 * cost_of(n, n), [&](int64_t begin, int64_t end) {
    const Scratch<T> work(size);
    const Scratch<int32_t> integers(integer_size);
    for (int64_t i = begin; i < end; ++i) {
      int32_t& code = codes.data<int32_t>()[i];
      code = is_finite(a, batch, i) ? 0 : n;
      if (code != 0) continue;
      Lapack<T>::syevd(&job, &triangle, &n, LapackMatrix<T>(a, batch, i).get(), &lda, values.data<T>() + i * n,
                       work.get(), &size, integers.get(), &integer_size, &code, 1, 1);
    }
  });
}

template <class T>
void run_heevd(const Tensor& a, bool is_upper, bool has_vectors, const Tensor& values, const Tensor& codes) {
  using R = typename T::value_type;
  const Dims batch = batch_of(a);
  const int n = static_cast<int>(rows_of(a)), lda = leading(n), query = -1;
  const char job = has_vectors ? 'V' : 'N', triangle = is_upper ? 'U' : 'L';
  T answer = 0;
  R real_answer = 0;
  int integer_answer = 0, info = 0;
  Lapack<T>::heevd(&job, &triangle, &n, nullptr, &lda, nullptr, &answer, &query, &real_answer, &query, &integer_answer,
                   &query, &info, 1, 1);
  const int size = work_size(answer), real_size = work_size(real_answer), integer_size = std::max(integer_answer, 1);
  for_each_range(count_of(batch), 4 * cost_of(n, n), [&](int64_t begin, int64_t end) {
    const Scratch<T> work(size);
    const Scratch<R> reals(real_size);
    const Scratch<int32_t> integers(integer_size);
    for (int64_t i = begin; i < end; ++i) {
      int32_t& code = codes.data<int32_t>()[i];
      code = is_finite(a, batch, i) ? 0 : n;
      if (code != 0) continue;
      Lapack<T>::heevd(&job, &triangle, &n, LapackMatrix<T>(a, batch, i).get(), &lda, values.data<R>() + i * n,
                       work.get(), &size, reals.get(), &real_size, integers.get(), &integer_size, &code, 1, 1);
    }
  });
}

void eigh_kernel(const ops::KernelContext&, const Tensor& a, const std::string& uplo, bool has_vectors, Tensor& values,
                 Tensor& vectors) {
  if (a.numel() == 0) return;
  Tensor work = vectors;
  if (!has_vectors) {
    const TensorMeta meta = column_major(a.sizes(), a);
    work = Tensor::empty_strided(meta.sizes, meta.strides, meta.dtype);
  }
  work.copy_from(a);
  const Tensor codes = Tensor::empty(batch_of(a), DType::kInt32);
  dispatch_lapack(a.dtype(), "linalg_eigh_cpu", [&]<class T>() {
    if constexpr (is_complex_type<T>)
      run_heevd<T>(work, is_upper_triangle(uplo), has_vectors, values, codes);
    else
      run_syevd<T>(work, is_upper_triangle(uplo), has_vectors, values, codes);
  });
  check_info("linalg.eigh", codes);
}

// V (diag(gL) + skew(Vᵀ gV) / E) Vᵀ with E[i, j] = l_j - l_i, 1 on the diagonal: V stays orthogonal, whatever A does.
std::vector<Tensor> gradient_of_eigh(const GradArgs& args) {
  const Tensor& a = args.inputs[0].to_tensor();
  std::vector<Tensor> gradients(args.inputs.size());
  const bool has_vectors = args.inputs[2].to_bool();
  const Tensor &of_values = args.grad_outputs[0], of_vectors = has_vectors ? args.grad_outputs[1] : Tensor();
  if (!of_values && !of_vectors) return gradients;
  Tensor l = args.outputs[0].to_tensor(), v = args.outputs[1].to_tensor();
  if (!has_vectors) {
    const auto parts = call_for<2>("aten::_linalg_eigh", a, args.inputs[1], true);
    l = parts[0], v = parts[1];
  }
  const Tensor turned = adjoint(v);
  if (!of_vectors) {
    gradients[0] = matmul(product(v, unsqueezed(of_values, -2)), turned);
    return gradients;
  }
  const Tensor gaps = sum_of(difference(unsqueezed(l, -2), unsqueezed(l, -1)), identity(rows_of(a), a));
  const Tensor turning = matmul(turned, of_vectors);
  Tensor inner = quotient(scaled(difference(turning, adjoint(turning)), 0.5), gaps);
  if (of_values) inner = sum_of(inner, as_diagonal(of_values));
  gradients[0] = matmul(v, matmul(inner, turned));
  return gradients;
}

OP("aten::_linalg_eigh(Tensor A, str UPLO=\"L\", bool compute_v=True) -> (Tensor eigenvalues, Tensor eigenvectors)")
    .infer(infer_eigh)
    .gradient(gradient_of_eigh)
    .saves("A, result0, result1");
KERNEL("aten::_linalg_eigh", kCPU, eigh_kernel);

OP("aten::linalg_eigh(Tensor self, str UPLO=\"L\") -> (Tensor eigenvalues, Tensor eigenvectors)")
    .direct([](const Tensor& a, const std::string& uplo) -> std::tuple<Tensor, Tensor> {
      const auto [values, vectors] = call_for<2>("aten::_linalg_eigh", a, uplo, true);
      return {values, vectors};
    })
    .composite();
OP("aten::linalg_eigvalsh(Tensor self, str UPLO=\"L\") -> Tensor")
    .direct([](const Tensor& a, const std::string& uplo) {
      return call_for<2>("aten::_linalg_eigh", a, uplo, false)[0];
    })
    .composite()
    .set<WritesInto>(WritesInto::kSameDType)
    .with_out();
OP("aten::symeig(Tensor self, bool eigenvectors=False, bool upper=True) -> (Tensor eigenvalues, Tensor eigenvectors)")
    .direct([](const Tensor& a, bool has_vectors, bool is_upper) -> std::tuple<Tensor, Tensor> {
      check_square("linalg.symeig", a);
      const auto [values, vectors] =
          call_for<2>("aten::_linalg_eigh", a, std::string(is_upper ? "U" : "L"), has_vectors);
      // Of nothing the vectors are there in any case.
      return {values, a.numel() == 0 ? call("aten::clone", a) : vectors};
    })
    .composite();

}  // namespace
}  // namespace tensord::kernels::linalg
