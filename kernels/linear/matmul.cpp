// Matrix products: schemas and shapes, and matmul over any ranks as views of mm and bmm.
#include <optional>
#include <ostream>

#include "core/base/parallel.h"
#include "core/ops/op.h"
#include "core/ops/run.h"
#include "core/ops/samples.h"
#include "core/tensor/strided_copy.h"
#include "kernels/gemm/gemm.h"
#include "kernels/linear/matmul_gradient.h"

namespace tensord::kernels {
namespace {

using ops::Scalar;
using ops::TensorMeta;
using Context = const ops::KernelContext&;

// A text only where something is wrong: making it takes longer than a small product.
struct Shapes {
  const Dims &a, &b;
};
std::ostream& operator<<(std::ostream& out, const Shapes& s) {
  return out << "(" << s.a[0] << "x" << s.a[1] << " and " << s.b[0] << "x" << s.b[1] << ")";
}

void check_dtypes(const char* op, const Tensor& a, const Tensor& b) {
  check(a.dtype() == b.dtype(), op, ": expected both tensors to have the same dtype, but got ", name_of(a.dtype()),
        " and ", name_of(b.dtype()));
  check(a.dtype() != DType::kBool, "\"", op, "\" is not supported for bool");
}

Dims mm_sizes(const char* op, const Tensor& a, const Tensor& b) {
  check(a.ndim() == 2, op, ": the first matrix must be 2-D, but got ", a.ndim(), "-D");
  check(b.ndim() == 2, op, ": mat2 must be a matrix, but got ", b.ndim(), "-D tensor");
  check(a.sizes()[1] == b.sizes()[0], "mat1 and mat2 shapes cannot be multiplied ", Shapes{a.sizes(), b.sizes()});
  check_dtypes(op, a, b);
  return Dims{a.sizes()[0], b.sizes()[1]};
}

Dims bmm_sizes(const char* op, const Tensor& a, const Tensor& b) {
  check(a.ndim() == 3, op, ": batch1 must be a 3D tensor, but got ", a.ndim(), "-D");
  check(b.ndim() == 3, op, ": batch2 must be a 3D tensor, but got ", b.ndim(), "-D");
  check(a.sizes()[0] == b.sizes()[0] && a.sizes()[2] == b.sizes()[1],
        "Expected size for first two dimensions of batch2 tensor to be: [", a.sizes()[0], ", ", a.sizes()[2],
        "] but got: [", b.sizes()[0], ", ", b.sizes()[1], "].");
  check_dtypes(op, a, b);
  return Dims{a.sizes()[0], a.sizes()[1], b.sizes()[2]};
}

Dims mv_sizes(const char* op, const Tensor& matrix, const Tensor& vector) {
  check(matrix.ndim() == 2 && vector.ndim() == 1, "vector + matrix @ vector expected, got ", matrix.ndim(), ", ",
        vector.ndim());
  check(matrix.sizes()[1] == vector.sizes()[0], "size mismatch, got input (", matrix.sizes()[0], "), mat (",
        matrix.sizes()[0], "x", matrix.sizes()[1], "), vec (", vector.sizes()[0], ")");
  check_dtypes(op, matrix, vector);
  return Dims{matrix.sizes()[0]};
}

Tensor as_column(const Tensor& v) { return v.as_view(Dims{v.sizes()[0], 1}, Dims{v.strides()[0], 1}, v.offset()); }
Tensor as_row(const Tensor& v) {
  return v.as_view(Dims{1, v.sizes()[0]}, Dims{v.sizes()[0], v.strides()[0]}, v.offset());
}

TensorMeta infer_mm(const Tensor& a, const Tensor& b) { return {mm_sizes("mm", a, b), a.dtype(), {}, a.device()}; }
TensorMeta infer_bmm(const Tensor& a, const Tensor& b) { return {bmm_sizes("bmm", a, b), a.dtype(), {}, a.device()}; }
TensorMeta infer_mv(const Tensor& a, const Tensor& b) { return {mv_sizes("mv", a, b), a.dtype(), {}, a.device()}; }
TensorMeta infer_dot(const Tensor& a, const Tensor& b) {
  check(a.ndim() == 1 && b.ndim() == 1, "1D tensors expected, but got ", a.ndim(), "D and ", b.ndim(), "D tensors");
  check(a.numel() == b.numel(), "inconsistent tensor size, expected tensor [", a.numel(), "] and src [", b.numel(),
        "] to have the same number of elements, but got ", a.numel(), " and ", b.numel(), " elements respectively");
  check_dtypes("dot", a, b);
  return {Dims{}, a.dtype(), {}, a.device()};
}

void check_addend(const char* op, const Tensor& self, const Tensor& mat, const Dims& sizes) {
  check_dtypes(op, self, mat);
  const bool expands = broadcast_sizes(self.sizes(), sizes) == sizes;
  check(expands, op, ": the expanded size of the tensor ", to_string(sizes), " must match the existing size ",
        self.sizes());
}
TensorMeta infer_addmm(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar&, const Scalar&) {
  const Dims sizes = mm_sizes("addmm", a, b);
  check_addend("addmm", self, a, sizes);
  return {sizes, a.dtype(), {}, a.device()};
}
TensorMeta infer_baddbmm(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar&, const Scalar&) {
  const Dims sizes = bmm_sizes("baddbmm", a, b);
  check_addend("baddbmm", self, a, sizes);
  return {sizes, a.dtype(), {}, a.device()};
}
TensorMeta infer_addbmm(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar&, const Scalar&) {
  const Dims batched = bmm_sizes("addbmm", a, b), sizes{batched[1], batched[2]};
  check_addend("addbmm", self, a, sizes);
  return {sizes, a.dtype(), {}, a.device()};
}
TensorMeta infer_addmv(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar&, const Scalar&) {
  const Dims sizes = mv_sizes("addmv", a, b);
  check_addend("addmv", self, a, sizes);
  return {sizes, a.dtype(), {}, a.device()};
}

// Puts self, broadcast, into out; gives back the factor that the product's addition applies to it.
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

OP("aten::mm(Tensor self, Tensor mat2) -> Tensor")
    .set<ops::KeepsSamples>([](std::span<const ops::Value> v) { return ops::is_constant_tensor(v[1]); })
    .infer(&infer_mm)
    .gradient(&gradient::of_mm)
    .saves("self, mat2")
    .with_out();
OP("aten::bmm(Tensor self, Tensor mat2) -> Tensor")
    .set<ops::KeepsSamples>(ops::always_keeps_samples)
    .infer(&infer_bmm)
    .gradient(&gradient::of_bmm)
    .saves("self, mat2")
    .with_out();
OP("aten::mv(Tensor self, Tensor vec) -> Tensor")
    .infer(&infer_mv)
    .gradient(&gradient::of_mv)
    .saves("self, vec")
    .with_out();
OP("aten::dot(Tensor self, Tensor tensor) -> Tensor")
    .infer(&infer_dot)
    .gradient(&gradient::of_dot)
    .saves("self, tensor")
    .with_out();
OP("aten::vdot(Tensor self, Tensor other) -> Tensor")
    .infer(&infer_dot)
    .gradient(&gradient::of_dot)
    .saves("self, other")
    .with_out();
OP("aten::addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor")
    .infer(&infer_addmm)
    .gradient(&gradient::of_addmm)
    .saves("mat1, mat2")
    .with_inplace()
    .with_out();
OP("aten::baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor")
    .infer(&infer_baddbmm)
    .gradient(&gradient::of_baddbmm)
    .saves("batch1, batch2")
    .with_inplace()
    .with_out();
OP("aten::addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor")
    .infer(&infer_addbmm)
    .gradient(&gradient::of_addbmm)
    .saves("batch1, batch2")
    .with_inplace()
    .with_out();
OP("aten::addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor")
    .infer(&infer_addmv)
    .gradient(&gradient::of_addmv)
    .saves("mat, vec")
    .with_inplace()
    .with_out();
KERNEL("aten::mm", DeviceKind::kCPU, &run_mm);
KERNEL("aten::bmm", DeviceKind::kCPU, &run_bmm);
KERNEL("aten::mv", DeviceKind::kCPU, &run_mv);
KERNEL("aten::dot", DeviceKind::kCPU, &run_dot);
KERNEL("aten::vdot", DeviceKind::kCPU, &run_dot);
KERNEL("aten::addmm", DeviceKind::kCPU, &run_addmm);
KERNEL("aten::baddbmm", DeviceKind::kCPU, &run_baddbmm);
KERNEL("aten::addbmm", DeviceKind::kCPU, &run_addbmm);
KERNEL("aten::addmv", DeviceKind::kCPU, &run_addmv);

// matmul: vectors become matrices, batch dimensions broadcast.
struct MatmulShape {
  Dims a, a_strides, b, b_strides;  // at least 2-d
  Dims batch;                       // broadcast batch sizes
  Dims out;                         // as returned
};

MatmulShape matmul_shape(const Tensor& a, const Tensor& b) {
  check(a.ndim() > 0 && b.ndim() > 0, "both arguments to matmul need to be at least 1D, but they are ", a.ndim(),
        "D and ", b.ndim(), "D");
  check_dtypes("matmul", a, b);
  MatmulShape s{a.sizes(), a.strides(), b.sizes(), b.strides(), {}, {}};
  if (a.ndim() == 1) {
    s.a.insert(0, 1);
    s.a_strides.insert(0, 0);
  }
  if (b.ndim() == 1) {
    s.b.push_back(1);
    s.b_strides.push_back(1);
  }
  const size_t na = s.a.size(), nb = s.b.size();
  const Dims rows_a{s.a[na - 2], s.a[na - 1]}, rows_b{s.b[nb - 2], s.b[nb - 1]};
  if (a.ndim() == 1 && b.ndim() == 1) {
    check(rows_a[1] == rows_b[0], "inconsistent tensor size, expected tensor [", rows_a[1], "] and src [", rows_b[0],
          "] to have the same number of elements, but got ", rows_a[1], " and ", rows_b[0], " elements respectively");
  }
  check(rows_a[1] == rows_b[0], "mat1 and mat2 shapes cannot be multiplied ", Shapes{rows_a, rows_b});
  s.batch = broadcast_sizes(s.a.span().first(na - 2), s.b.span().first(nb - 2));
  s.out = s.batch;
  if (a.ndim() > 1) s.out.push_back(rows_a[0]);
  if (b.ndim() > 1) s.out.push_back(rows_b[1]);
  return s;
}

TensorMeta infer_matmul(const Tensor& a, const Tensor& b) {
  return {matmul_shape(a, b).out, a.dtype(), {}, a.device()};
}

// The rows of all batches as one matrix, when the memory allows it.
std::optional<Matrix> folded_rows(const Tensor& a, const Dims& sizes, const Dims& strides, int64_t rows) {
  const int64_t k = sizes.back();
  bool possible = false;
  const Dims folded = view_strides(sizes, strides, Dims{rows, k}, &possible);
  if (!possible) return std::nullopt;
  return Matrix{a.raw_data(), rows, k, folded[0], folded[1]};
}

void run_matmul(Context, const Tensor& a, const Tensor& b, Tensor& out) {
  const MatmulShape s = matmul_shape(a, b);
  const size_t na = s.a.size(), nb = s.b.size();
  const int64_t m = s.a[na - 2], n = s.b[nb - 1];
  if (out.numel() == 0) return;
  if (nb == 2) {
    // One matrix on the right: all rows of the left in one product.
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

// A matrix of fewer dimensions belongs to all samples; two of two dimensions are one product.
bool matmul_keeps_samples(std::span<const ops::Value> v) {
  const auto ndim_of = [](const ops::Value& value) { return value.is_tensor() ? value.to_tensor().ndim() : 0; };
  return ops::is_constant_tensor(v[1]) ? ndim_of(v[1]) <= 2 : std::max(ndim_of(v[0]), ndim_of(v[1])) >= 3;
}

OP("aten::matmul(Tensor self, Tensor other) -> Tensor")
    .set<ops::KeepsSamples>(matmul_keeps_samples)
    .infer(&infer_matmul)
    .gradient(&gradient::of_matmul)
    .saves("self, other")
    .with_out();
KERNEL("aten::matmul", DeviceKind::kCPU, &run_matmul);

TensorMeta infer_outer(const Tensor& a, const Tensor& b) {
  check(a.ndim() == 1 && b.ndim() == 1, "outer: expected two 1-D tensors, but got ", a.ndim(), "-D and ", b.ndim(),
        "-D");
  return {Dims{a.numel(), b.numel()}, promote_types(a.dtype(), b.dtype()), {}, a.device()};
}
void run_outer(Context context, const Tensor& a, const Tensor& b, Tensor& out) {
  if (out.numel() == 0) return;
  static const ops::Op& multiply = ops::get_op("aten::mul.Tensor");  // whose loops are vectorised for every dtype
  const ops::Value operands[] = {a.as_view({a.numel(), 1}, {a.strides()[0], 1}, a.offset()), b};
  multiply.kernels[static_cast<size_t>(kCPU)](context, operands, std::span(&out, 1));
}
OP("aten::outer(Tensor self, Tensor vec2) -> Tensor")
    .infer(&infer_outer)
    .gradient(&gradient::of_outer)
    .saves("self, vec2")
    .with_out();
OP("aten::ger(Tensor self, Tensor vec2) -> Tensor")
    .infer(&infer_outer)
    .gradient(&gradient::of_outer)
    .saves("self, vec2")
    .with_out();
KERNEL("aten::outer", DeviceKind::kCPU, &run_outer);
KERNEL("aten::ger", DeviceKind::kCPU, &run_outer);

}  // namespace
}  // namespace tensord::kernels
