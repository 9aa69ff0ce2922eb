// Matrix products: schemas and shapes.
#include <ostream>

#include "core/ops/attributes/batch_independence.h"
#include "core/ops/attributes/written.h"
#include "core/ops/op.h"
#include "kernels/linear/matmul_gradient.h"

namespace tensord::kernels {
namespace {

using ops::Scalar;
using ops::TensorMeta;
using ops::WritesInto;

// Makes the text only in the case of an error: that takes longer than a small product.
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

OP("aten::mm")
    .set<ops::BatchIndependent>([](std::span<const ops::Value> v) { return ops::is_constant_tensor(v[1]); })
    .infer(&infer_mm)
    .gradient(&gradient::of_mm)
    .saves("self, mat2")
    .set<WritesInto>(WritesInto::kSameDType);
OP("aten::bmm")
    .set<ops::BatchIndependent>(ops::always_batch_independent)
    .infer(&infer_bmm)
    .gradient(&gradient::of_bmm)
    .saves("self, mat2")
    .set<WritesInto>(WritesInto::kSameDType);
OP("aten::mv").infer(&infer_mv).gradient(&gradient::of_mv).saves("self, vec").set<WritesInto>(WritesInto::kSameDType);
OP("aten::dot")
    .infer(&infer_dot)
    .gradient(&gradient::of_dot)
    .saves("self, tensor")
    .set<WritesInto>(WritesInto::kSameDType);
OP("aten::vdot")
    .infer(&infer_dot)
    .gradient(&gradient::of_dot)
    .saves("self, other")
    .set<WritesInto>(WritesInto::kSameDType);
OP("aten::addmm")
    .infer(&infer_addmm)
    .gradient(&gradient::of_addmm)
    .saves("mat1, mat2")
    .set<WritesInto>(WritesInto::kSameDType, WritesInto::kSharesWhole);
OP("aten::baddbmm")
    .infer(&infer_baddbmm)
    .gradient(&gradient::of_baddbmm)
    .saves("batch1, batch2")
    .set<WritesInto>(WritesInto::kSameDType, WritesInto::kSharesWhole);
OP("aten::addbmm")
    .infer(&infer_addbmm)
    .gradient(&gradient::of_addbmm)
    .saves("batch1, batch2")
    .set<WritesInto>(WritesInto::kSameDType, WritesInto::kSharesWhole);
OP("aten::addmv")
    .infer(&infer_addmv)
    .gradient(&gradient::of_addmv)
    .saves("mat, vec")
    .set<WritesInto>(WritesInto::kSameDType, WritesInto::kSharesWhole);
// matmul: vectors become matrices, batch dimensions broadcast.
TensorMeta infer_matmul(const Tensor& a, const Tensor& b) {
  check(a.ndim() > 0 && b.ndim() > 0, "both arguments to matmul need to be at least 1D, but they are ", a.ndim(),
        "D and ", b.ndim(), "D");
  check_dtypes("matmul", a, b);
  Dims left = a.sizes(), right = b.sizes();
  if (a.ndim() == 1) left.insert(0, 1);
  if (b.ndim() == 1) right.push_back(1);
  const size_t na = left.size(), nb = right.size();
  const Dims rows_a{left[na - 2], left[na - 1]}, rows_b{right[nb - 2], right[nb - 1]};
  if (a.ndim() == 1 && b.ndim() == 1) {
    check(rows_a[1] == rows_b[0], "inconsistent tensor size, expected tensor [", rows_a[1], "] and src [", rows_b[0],
          "] to have the same number of elements, but got ", rows_a[1], " and ", rows_b[0], " elements respectively");
  }
  check(rows_a[1] == rows_b[0], "mat1 and mat2 shapes cannot be multiplied ", Shapes{rows_a, rows_b});
  Dims out = broadcast_sizes(left.span().first(na - 2), right.span().first(nb - 2));
  if (a.ndim() > 1) out.push_back(rows_a[0]);
  if (b.ndim() > 1) out.push_back(rows_b[1]);
  return {std::move(out), a.dtype(), {}, a.device()};
}

// A matrix with fewer dimensions is the same for all samples; two 2-d operands are one product.
bool is_matmul_batch_independent(std::span<const ops::Value> v) {
  const auto ndim_of = [](const ops::Value& value) { return value.is_tensor() ? value.to_tensor().ndim() : 0; };
  return ops::is_constant_tensor(v[1]) ? ndim_of(v[1]) <= 2 : std::max(ndim_of(v[0]), ndim_of(v[1])) >= 3;
}

OP("aten::matmul")
    .set<ops::BatchIndependent>(is_matmul_batch_independent)
    .infer(&infer_matmul)
    .gradient(&gradient::of_matmul)
    .saves("self, other")
    .set<WritesInto>(WritesInto::kSameDType);

TensorMeta infer_outer(const Tensor& a, const Tensor& b) {
  check(a.ndim() == 1 && b.ndim() == 1, "outer: expected two 1-D tensors, but got ", a.ndim(), "-D and ", b.ndim(),
        "-D");
  return {Dims{a.numel(), b.numel()}, promote_types(a.dtype(), b.dtype()), {}, a.device()};
}
OP("aten::outer")
    .infer(&infer_outer)
    .gradient(&gradient::of_outer)
    .saves("self, vec2")
    .set<WritesInto>(WritesInto::kAnyDType, WritesInto::kSharesWhole);
OP("aten::ger")
    .infer(&infer_outer)
    .gradient(&gradient::of_outer)
    .saves("self, vec2")
    .set<WritesInto>(WritesInto::kAnyDType, WritesInto::kSharesWhole);

}  // namespace
}  // namespace tensord::kernels
