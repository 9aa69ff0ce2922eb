// Matrix products on a CUDA device: views of the operands as (batches of) matrices.
#include "kernels/cuda/product_cuda.h"

#include <optional>

#include "core/ops/run.h"
#include "core/tensor/loops.h"
#include "kernels/cuda/blas_cuda.h"
#include "kernels/cuda/launch.h"
#include "kernels/view/view.h"

namespace tensord::kernels {
namespace {

using ops::KernelContext;
using ops::Scalar;

Dims leading(const Dims& dims) { return Dims(dims.span().first(dims.size() - 2)); }

// Of tensors of at least two dimensions; the leading dimensions of a and b are broadcast to c's.
ProductJob product_job(double alpha, const Tensor& a, const Tensor& b, double beta, const Tensor& c) {
  const Dims batch = leading(c.sizes());
  const LoopNest<3> nest(batch,
                         {leading(c.strides()), broadcast_strides(leading(a.sizes()), leading(a.strides()), batch),
                          broadcast_strides(leading(b.sizes()), leading(b.strides()), batch)});
  if (nest.ndim() > static_cast<size_t>(kProductDims))
    fail(ErrorCode::kUnimplemented, "products on CUDA take at most ", kProductDims,
         " dimensions of batches that cannot be merged");
  ProductJob job;
  job.dtype = static_cast<int8_t>(c.dtype());
  job.m = c.size(-2), job.n = c.size(-1), job.k = a.size(-1);
  job.batches = nest.numel();
  const auto strides = [](const Tensor& x, int64_t& row, int64_t& column) {
    const size_t ndim = x.strides().size();
    row = x.strides()[ndim - 2], column = x.strides()[ndim - 1];
  };
  strides(a, job.a_row, job.a_column);
  strides(b, job.b_row, job.b_column);
  strides(c, job.c_row, job.c_column);
  job.batch_dims = static_cast<int>(nest.ndim());
  for (size_t d = 0; d < nest.ndim(); ++d) {
    job.sizes[d] = nest.size(d);
    job.c_strides[d] = nest.stride(0, d);
    job.a_strides[d] = nest.stride(1, d);
    job.b_strides[d] = nest.stride(2, d);
  }
  job.alpha = alpha, job.beta = beta;
  job.a = a.raw_data(), job.b = b.raw_data(), job.c = c.raw_data();
  return job;
}

// What the epilogue does, in place.
void activate(const KernelContext& context, const Tensor& x, BlasEpilogue epilogue) {
  if (epilogue == BlasEpilogue::kNone) return;
  static const ops::Op &relu = ops::get_op("aten::relu"), &gelu = ops::get_op("aten::gelu");
  Tensor out = x;
  const ops::Value arguments[] = {x, std::string("tanh")};
  const bool is_relu = epilogue == BlasEpilogue::kRelu;
  (is_relu ? relu : gelu).kernel(kCUDA)->fill(context, std::span(arguments, is_relu ? 1 : 2), std::span(&out, 1));
}

// With a bias, it is added to each row of c, and beta is 0.
void product(const KernelContext& context, double alpha, const Tensor& a, const Tensor& b, double beta, const Tensor& c,
             const Tensor& bias = {}, BlasEpilogue epilogue = BlasEpilogue::kNone) {
  if (c.numel() == 0) return;
  ProductJob job = product_job(alpha, a, b, beta, c);
  if (product_by_library(context, job, bias, epilogue)) return;
  if (bias) return c.copy_from(bias), product(context, alpha, a, b, 1, c, {}, epilogue);
  constexpr int64_t kMaxTiles = int64_t{1} << 31;
  check((job.m / 32 + 1) * (job.n / 32 + 1) < kMaxTiles, "a product on CUDA of more tiles than a grid has blocks");
  launch(context, &KernelTable::product, job);
  activate(context, c, epilogue);
}

Tensor as_column(const Tensor& v) { return unsqueeze(v, v.ndim()); }
Tensor as_row(const Tensor& v) { return unsqueeze(v, v.ndim() - 1); }

// Copies self, broadcast, into `out`. Returns the factor by which the product's kernel scales what is there.
double start_from(const Tensor& self, const Scalar& beta, const Tensor& out) {
  if (beta.to_double() != 0 && !self.is_same(out)) out.copy_from(self);
  return beta.to_double();
}

// Whether it is one number for each column of `out`, side by side.
bool is_row(const Tensor& self, const Tensor& out) {
  return self.ndim() == 1 && self.size(0) == out.size(-1) && (self.size(0) == 1 || self.stride(0) == 1) &&
         self.dtype() == out.dtype();
}

void mm_cuda(const KernelContext& context, const Tensor& a, const Tensor& b, Tensor& out) {
  product(context, 1, a, b, 0, out);
}
void mv_cuda(const KernelContext& context, const Tensor& a, const Tensor& b, Tensor& out) {
  product(context, 1, a, as_column(b), 0, as_column(out));
}
void dot_cuda(const KernelContext& context, const Tensor& a, const Tensor& b, Tensor& out) {
  product(context, 1, as_row(a), as_column(b), 0, out.as_view({1, 1}, {1, 1}, out.offset()));
}
void addmm_cuda(const KernelContext& context, const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta,
                const Scalar& alpha, Tensor& out) {
  if (beta.to_double() == 1 && is_row(self, out)) return product(context, alpha.to_double(), a, b, 0, out, self);
  product(context, alpha.to_double(), a, b, start_from(self, beta, out), out);
}
void addmv_cuda(const KernelContext& context, const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta,
                const Scalar& alpha, Tensor& out) {
  product(context, alpha.to_double(), a, as_column(b), start_from(self, beta, out), as_column(out));
}
void addbmm_cuda(const KernelContext& context, const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta,
                 const Scalar& alpha, Tensor& out) {
  double scale = start_from(self, beta, out);
  for (int64_t i = 0; i < a.sizes()[0]; ++i, scale = 1)
    product(context, alpha.to_double(), select(a, 0, i), select(b, 0, i), scale, out);
  if (a.sizes()[0] == 0) {
    const Tensor none_left = Tensor::empty(Dims{out.size(0), 0}, out.dtype(), out.device());
    const Tensor none_right = Tensor::empty(Dims{0, out.size(1)}, out.dtype(), out.device());
    product(context, 0, none_left, none_right, scale, out);
  }
}

// With one matrix on the right, all rows of the left form one matrix if their memory allows it.
Tensor rows_of(const Tensor& a) { return a.is_contiguous() ? view(a, {-1, a.sizes().back()}) : a; }
void product_of_rows(const KernelContext& context, const Tensor& a, const Tensor& b, double beta, const Tensor& out,
                     const Tensor& bias = {}, BlasEpilogue epilogue = BlasEpilogue::kNone) {
  if (out.numel() == 0) return;
  const bool is_folded = a.numel() != 0 && a.is_contiguous() && out.is_contiguous();
  if (is_folded) return product(context, 1, rows_of(a), b, beta, rows_of(out), bias, epilogue);
  product(context, 1, a, b, beta, out, bias, epilogue);
}

void matmul_cuda(const KernelContext& context, const Tensor& a, const Tensor& b, Tensor& out) {
  Tensor left = a, right = b, to = out;
  if (b.ndim() == 1) right = as_column(b), to = as_column(to);
  if (a.ndim() == 1) left = as_row(a), to = unsqueeze(to, to.ndim() - 1);
  if (right.ndim() == 2 && left.ndim() > 2) return product_of_rows(context, left, right, 0, to);
  product(context, 1, left, right, 0, to);
}

void linear_cuda(const KernelContext& context, const Tensor& input, const Tensor& weight,
                 const std::optional<Tensor>& bias, Tensor& out) {
  linear_on_cuda(context, input, weight, bias, BlasEpilogue::kNone, out);
}

void outer_cuda(const KernelContext& context, const Tensor& a, const Tensor& b, Tensor& out) {
  if (out.numel() == 0) return;
  static const ops::Op& multiply = ops::get_op("aten::mul.Tensor");
  const ops::Value operands[] = {as_column(a), b};
  multiply.kernel(kCUDA)->fill(context, operands, std::span(&out, 1));
}

IMPL("aten::mm", kCUDA, mm_cuda);
IMPL("aten::bmm", kCUDA, mm_cuda);
IMPL("aten::mv", kCUDA, mv_cuda);
IMPL("aten::dot", kCUDA, dot_cuda);
IMPL("aten::vdot", kCUDA, dot_cuda);
IMPL("aten::addmm", kCUDA, addmm_cuda);
IMPL("aten::baddbmm", kCUDA, addmm_cuda);
IMPL("aten::addbmm", kCUDA, addbmm_cuda);
IMPL("aten::addmv", kCUDA, addmv_cuda);
IMPL("aten::matmul", kCUDA, matmul_cuda);
IMPL("aten::linear", kCUDA, linear_cuda);
IMPL("aten::outer", kCUDA, outer_cuda);
IMPL("aten::ger", kCUDA, outer_cuda);

}  // namespace

void linear_on_cuda(const KernelContext& context, const Tensor& input, const Tensor& weight,
                    const std::optional<Tensor>& bias, BlasEpilogue epilogue, Tensor& out) {
  if (out.numel() == 0) return;
  const bool is_vector = weight.ndim() == 1;
  const Tensor right = is_vector ? as_column(weight) : transpose(weight, 0, 1);
  Tensor left = input, to = is_vector ? as_column(out) : out;
  if (left.ndim() == 1) left = unsqueeze(left, 0), to = unsqueeze(to, 0);
  if (bias && is_row(*bias, to)) return product_of_rows(context, left, right, 0, to, *bias, epilogue);
  if (bias) out.copy_from(*bias);
  product_of_rows(context, left, right, bias ? 1 : 0, to, {}, epilogue);
}

}  // namespace tensord::kernels
