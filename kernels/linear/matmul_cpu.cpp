// Matrix products on the CPU: gemm on the operands in place; matmul over any ranks as one product or a batch.
#include <optional>

#include "core/ops/op.h"
#include "core/ops/run.h"
#include "kernels/gemm/gemm.h"

namespace tensord::kernels {
namespace {

using ops::Scalar;
using Context = const ops::KernelContext&;

Tensor as_column(const Tensor& v) { return v.as_view(Dims{v.sizes()[0], 1}, Dims{v.strides()[0], 1}, v.offset()); }
Tensor as_row(const Tensor& v) {
  return v.as_view(Dims{1, v.sizes()[0]}, Dims{v.sizes()[0], v.strides()[0]}, v.offset());
}

// Copies self, broadcast, into `out`. Returns the factor by which gemm scales what is there.
double start_from(const Tensor& self, const Scalar& beta, Tensor& out) {
  if (beta.to_double() != 0) start_product(self, out);
  return beta.to_double();
}

void run_mm(Context, const Tensor& a, const Tensor& b, Tensor& out) {
  gemm(out.dtype(), 1, matrix_of(a), matrix_of(b), 0, matrix_of(out));
}
void run_bmm(Context, const Tensor& a, const Tensor& b, Tensor& out) { batched_gemm(1, a, b, 0, out); }
void run_mv(Context, const Tensor& a, const Tensor& b, Tensor& out) {
  gemm(out.dtype(), 1, matrix_of(a), matrix_of(as_column(b)), 0, matrix_of(as_column(out)));
}
void run_dot(Context, const Tensor& a, const Tensor& b, Tensor& out) {
  gemm(out.dtype(), 1, matrix_of(as_row(a)), matrix_of(as_column(b)), 0, {out.raw_data(), 1, 1, 1, 1});
}
void run_addmm(Context, const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha,
               Tensor& out) {
  gemm(out.dtype(), alpha.to_double(), matrix_of(a), matrix_of(b), start_from(self, beta, out), matrix_of(out));
}
void run_baddbmm(Context, const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha,
                 Tensor& out) {
  batched_gemm(alpha.to_double(), a, b, start_from(self, beta, out), out);
}
void run_addbmm(Context, const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha,
                Tensor& out) {
  double scale = start_from(self, beta, out);
  for (int64_t i = 0; i < a.sizes()[0]; ++i, scale = 1) {
    gemm(out.dtype(), alpha.to_double(), matrix_of(a, i * a.strides()[0]), matrix_of(b, i * b.strides()[0]), scale,
         matrix_of(out));
  }
  if (a.sizes()[0] == 0)
    gemm(out.dtype(), 0, {nullptr, out.sizes()[0], 0, 1, 1}, {nullptr, 0, out.sizes()[1], 1, 1}, scale, matrix_of(out));
}
void run_addmv(Context, const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha,
               Tensor& out) {
  const double scale = start_from(self, beta, out);
  gemm(out.dtype(), alpha.to_double(), matrix_of(a), matrix_of(as_column(b)), scale, matrix_of(as_column(out)));
}

// Vectors become matrices, batch dimensions broadcast.
struct MatmulShape {
  MatmulShape(const Tensor& left, const Tensor& right)
      : a(left.sizes()), a_strides(left.strides()), b(right.sizes()), b_strides(right.strides()) {
    if (left.ndim() == 1) {
      a.insert(0, 1);
      a_strides.insert(0, 0);
    }
    if (right.ndim() == 1) {
      b.push_back(1);
      b_strides.push_back(1);
    }
    batch = broadcast_sizes(a.span().first(a.size() - 2), b.span().first(b.size() - 2));
  }
  Dims a, a_strides, b, b_strides;  // at least 2-d
  Dims batch;                       // broadcast batch sizes
};

// The rows of all batches as one matrix, if the memory layout allows it.
std::optional<Matrix> folded_rows(const Tensor& a, const Dims& sizes, const Dims& strides, int64_t rows) {
  const int64_t k = sizes.back();
  bool possible = false;
  const Dims folded = view_strides(sizes, strides, Dims{rows, k}, &possible);
  if (!possible) return std::nullopt;
  return Matrix{a.raw_data(), rows, k, folded[0], folded[1]};
}

void run_matmul(Context, const Tensor& a, const Tensor& b, Tensor& out) {
  const MatmulShape s(a, b);
  const size_t na = s.a.size(), nb = s.b.size();
  const int64_t m = s.a[na - 2], n = s.b[nb - 1];
  if (out.numel() == 0) return;
  if (nb == 2) {
    // With one matrix on the right, all rows of the left are one product.
    const int64_t rows = out.numel() / n, k = s.a[na - 1];
    Tensor dense;
    std::optional<Matrix> left = folded_rows(a, s.a, s.a_strides, rows);
    if (!left) {
      dense = a.contiguous();
      left = Matrix{dense.raw_data(), rows, k, k, 1};
    }
    const Matrix right{b.raw_data(), s.b[0], s.b[1], s.b_strides[0], s.b_strides[1]};
    return gemm(out.dtype(), 1, *left, right, 0, {out.raw_data(), rows, n, n, 1});
  }
  const auto batch_strides = [&](const Dims& sizes, const Dims& strides) {
    const size_t ndim = sizes.size();
    return broadcast_strides(sizes.span().first(ndim - 2), strides.span().first(ndim - 2), s.batch);
  };
  const Dims a_batch = batch_strides(s.a, s.a_strides), b_batch = batch_strides(s.b, s.b_strides);
  const int64_t count = checked_numel(s.batch), work = m * n * s.a[na - 1];
  const auto size = static_cast<int64_t>(size_of(out.dtype()));
  const auto one = [&](int64_t i) {
    int64_t a_offset = 0, b_offset = 0;
    for (int64_t d = static_cast<int64_t>(s.batch.size()) - 1, rest = i; d >= 0; rest /= s.batch[d], --d) {
      a_offset += rest % s.batch[d] * a_batch[d];
      b_offset += rest % s.batch[d] * b_batch[d];
    }
    gemm(out.dtype(), 1,
         {static_cast<char*>(a.raw_data()) + a_offset * size, m, s.a[na - 1], s.a_strides[na - 2], s.a_strides[na - 1]},
         {static_cast<char*>(b.raw_data()) + b_offset * size, s.b[nb - 2], n, s.b_strides[nb - 2], s.b_strides[nb - 1]},
         0, {static_cast<char*>(out.raw_data()) + i * m * n * size, m, n, n, 1});
  };
  run_batches(count, work, one);
}

void run_outer(Context context, const Tensor& a, const Tensor& b, Tensor& out) {
  if (out.numel() == 0) return;
  static const ops::Op& multiply = ops::get_op("aten::mul.Tensor");  // whose loops are vectorized for every dtype
  const ops::Value operands[] = {a.as_view({a.numel(), 1}, {a.strides()[0], 1}, a.offset()), b};
  multiply.kernel(DeviceKind::kCPU)->fill(context, operands, std::span(&out, 1));
}

IMPL("aten::mm", DeviceKind::kCPU, &run_mm);
IMPL("aten::bmm", DeviceKind::kCPU, &run_bmm);
IMPL("aten::mv", DeviceKind::kCPU, &run_mv);
IMPL("aten::dot", DeviceKind::kCPU, &run_dot);
IMPL("aten::vdot", DeviceKind::kCPU, &run_dot);
IMPL("aten::addmm", DeviceKind::kCPU, &run_addmm);
IMPL("aten::baddbmm", DeviceKind::kCPU, &run_baddbmm);
IMPL("aten::addbmm", DeviceKind::kCPU, &run_addbmm);
IMPL("aten::addmv", DeviceKind::kCPU, &run_addmv);
IMPL("aten::matmul", DeviceKind::kCPU, &run_matmul);
IMPL("aten::outer", DeviceKind::kCPU, &run_outer);
IMPL("aten::ger", DeviceKind::kCPU, &run_outer);

}  // namespace
}  // namespace tensord::kernels
