// Factorizations on a CUDA device by cuSOLVER and cuBLAS, many small matrices at once where they have it; without them,
// by LAPACK and copies to the host and back.
#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/ops/run.h"
#include "core/tensor/complex.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/workspace.h"
#include "kernels/linalg/algebra.h"
#include "kernels/linalg/eigh.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"

namespace tensord::kernels::linalg {
namespace {

using ops::KernelContext;
using ops::TensorMeta;
using ops::Value;

// Runs the CPU's kernel, if there is no library. Returns whether it did.
bool solved_on_host(const char* name, std::vector<Value> arguments, std::initializer_list<Tensor> results) {
  if (*library_table().why_no_solver() == '\0') return false;
  for (Value& argument : arguments) {
    if (argument.is_tensor()) argument = argument.to_tensor().to(Device{});
  }
  std::vector<Tensor> there;
  for (const Tensor& result : results)
    there.push_back(Tensor::empty_strided(result.sizes(), result.strides(), result.dtype()));
  ops::get_op(name).kernel(kCPU)->fill(KernelContext(), arguments, there);
  for (size_t i = 0; i < there.size(); ++i) std::data(results)[i].copy_from(there[i]);
  return true;
}

int64_t leading_of(int64_t rows) { return std::max<int64_t>(1, rows); }

// A column-major matrix, or batch of them, with the values of x.
Tensor columns_of_copy(const Tensor& x) {
  const TensorMeta meta = column_major(x.sizes(), x);
  const Tensor out = Tensor::empty_strided(meta.sizes, meta.strides, meta.dtype, x.device());
  out.copy_from(x);
  return out;
}
Tensor int32s(const Dims& sizes, const KernelContext& context) {
  const Tensor out = Tensor::empty(sizes, DType::kInt32, context.device);
  ops::zero_(out);
  return out;
}

// What one matrix has of a tensor whose batches are dense.
struct Piece {
  cuda::DeviceAddress SolverJob::*place;
  Tensor tensor;
  int64_t elements;  // of each matrix
};

// Larger matrices fill a chip one by one.
constexpr int64_t kMaxOfMany = 256;

// Whether one call takes a batch of these.
bool takes_many(const SolverJob& job, int64_t count) {
  const bool is_known = job.task == SolverTask::kCholesky || job.task == SolverTask::kTriangular ||
                        (job.task == SolverTask::kLu && job.m == job.n);
  return is_known && count > 1 && count <= std::numeric_limits<int32_t>::max() && std::max(job.m, job.n) <= kMaxOfMany;
}

// The addresses of matrices, on the device.
template <class Fn>
Tensor list_of(int64_t count, Device device, const Fn& address) {
  const Tensor list = Tensor::empty(Dims{count}, DType::kInt64);
  for (int64_t i = 0; i < count; ++i) list.data<int64_t>()[i] = reinterpret_cast<int64_t>(address(i));
  return list.to(device);
}

// Queues one call for all matrices; `a` and `b` are lists of their addresses.
void run_many(const KernelContext& context, SolverJob job, int64_t count, const Tensor& a, const Tensor& b) {
  const cuda::DeviceScope scope(context.device.index);
  job.count = count;
  job.a = a.raw_data();
  if (b.defined()) job.b = b.raw_data();
  cuda::check_cuda(library_table().solver(job, static_cast<cuda::StreamHandle>(context.stream->handle())),
                   "linear algebra");
}

// Queues the job for each matrix of a batch; its pieces, the first of which is `a`, lie one after the other.
void run_solver(const KernelContext& context, SolverJob job, int64_t count, const std::vector<Piece>& pieces) {
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  check(std::max({job.m, job.n, job.k}) <= kMax, "a matrix that is too large for cuSOLVER");
  const cuda::DeviceScope scope(context.device.index);
  const auto stream = static_cast<cuda::StreamHandle>(context.stream->handle());
  const auto put = [&](int64_t index) {
    for (const Piece& piece : pieces) {
      const auto bytes = index * piece.elements * static_cast<int64_t>(size_of(piece.tensor.dtype()));
      job.*piece.place = static_cast<const char*>(piece.tensor.raw_data()) + bytes;
    }
  };
  if (count == 0) return;
  put(0);
  if (takes_many(job, count)) {
    const Piece& a = pieces.front();
    const auto stride = a.elements * static_cast<int64_t>(size_of(a.tensor.dtype()));
    return run_many(context, job, count,
                    list_of(count, context.device,
                            [&](int64_t i) { return static_cast<const char*>(a.tensor.raw_data()) + i * stride; }),
                    {});
  }
  cuda::check_cuda(library_table().plan_solver(job, stream), "linear algebra");
  const Workspace workspace(job.workspace_bytes, context.device);
  job.workspace = workspace.at();
  for (int64_t i = 0; i < count; ++i) {
    put(i);
    cuda::check_cuda(library_table().solver(job, stream), "linear algebra");
  }
}

SolverJob job_of(SolverTask task, const Tensor& a) {
  SolverJob job;
  job.task = task;
  job.dtype = static_cast<int8_t>(a.dtype());
  job.m = rows_of(a), job.n = columns_of(a);
  job.a_leading = leading_of(job.m);
  return job;
}

void cholesky_cuda(const KernelContext& context, const Tensor& a, bool is_upper, bool check_errors, Tensor& l,
                   Tensor& info) {
  if (solved_on_host("aten::linalg_cholesky_ex", {a, is_upper, check_errors}, {l, info})) return;
  l.copy_from(a);
  ops::zero_(info);
  if (l.numel() != 0) {
    SolverJob job = job_of(SolverTask::kCholesky, l);
    job.is_upper = is_upper;
    run_solver(context, job, count_of(batch_of(a)), {{&SolverJob::a, l, job.m * job.n}, {&SolverJob::info, info, 1}});
    l.copy_from(is_upper ? upper_part(l) : lower_part(l));  // the library leaves the other triangle
  }
  if (check_errors) check_info("linalg.cholesky_ex", info);
}

void lu_factor_cuda(const KernelContext& context, const Tensor& a, bool pivot, bool check_errors, Tensor& lu,
                    Tensor& pivots, Tensor& info) {
  if (solved_on_host("aten::linalg_lu_factor_ex", {a, pivot, check_errors}, {lu, pivots, info})) return;
  lu.copy_from(a);
  ops::zero_(info);
  if (lu.numel() != 0) {
    const SolverJob job = job_of(SolverTask::kLu, lu);
    const int64_t count = count_of(batch_of(a));
    const DType dtype = takes_many(job, count) ? DType::kInt32 : DType::kInt64;
    const Tensor found = Tensor::empty(pivots.sizes(), dtype, context.device);
    run_solver(context, job, count,
               {{&SolverJob::a, lu, job.m * job.n},
                {&SolverJob::numbers, found, std::min(job.m, job.n)},
                {&SolverJob::info, info, 1}});
    pivots.copy_from(found);
  }
  if (check_errors) check_info("torch.linalg.lu_factor_ex", info);
}

void exchange_rows_cuda(const KernelContext& context, const Tensor& x, const Tensor& pivots, bool is_undone,
                        Tensor& out) {
  if (!has_lapack_dtype(x) || solved_on_host("tensord::exchange_rows", {x, pivots, is_undone}, {out})) {
    if (!has_lapack_dtype(x)) fail_dtype("exchange_rows", x.dtype());
    return;
  }
  out.copy_from(x);
  const int64_t steps = pivots.sizes().back();
  if (out.numel() == 0 || steps == 0) return;
  const Tensor low = ops::amin(pivots), high = ops::amax(pivots);
  check(pivots.numel() == 0 || (low.item_int() >= 1 && high.item_int() <= rows_of(out)),
        "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive."
        "Did you properly pass the result of lu_factor?");
  const Dims batch = batch_of(out);
  const Tensor order = ops::contiguous(ops::expand(pivots, with(batch, {steps})));
  SolverJob job = job_of(SolverTask::kExchangeRows, out);
  job.k = steps;
  job.is_undone = is_undone;
  run_solver(context, job, count_of(batch), {{&SolverJob::a, out, job.m * job.n}, {&SolverJob::numbers, order, steps}});
}

void sign_of_exchanges_cuda(const KernelContext& context, const Tensor& pivots, DType, Tensor& out) {
  const int64_t steps = pivots.sizes().back();
  const Tensor own =
      ops::arange(ops::Scalar(int64_t{1}), ops::Scalar(steps + 1), {.dtype = DType::kInt32, .device = context.device});
  const Tensor exchanges = ops::sum(ops::ne(pivots, own), Dims{-1});
  const Tensor odd = ops::remainder(exchanges, ops::Scalar(int64_t{2}));
  out.copy_from(ops::where(ops::ne(odd, ops::Scalar(int64_t{0})), ops::Scalar(int64_t{-1}), ops::Scalar(int64_t{1})));
}

void geqrf_cuda(const KernelContext& context, const Tensor& a, Tensor& out, Tensor& tau) {
  if (solved_on_host("aten::geqrf", {a}, {out, tau})) return;
  out.copy_from(a);
  if (out.numel() == 0) return;
  const SolverJob job = job_of(SolverTask::kHouseholder, out);
  const Dims batch = batch_of(a);
  run_solver(context, job, count_of(batch),
             {{&SolverJob::a, out, job.m * job.n},
              {&SolverJob::numbers, tau, std::min(job.m, job.n)},
              {&SolverJob::info, int32s(batch, context), 1}});
}

void householder_product_cuda(const KernelContext& context, const Tensor& a, const Tensor& tau, Tensor& out) {
  if (solved_on_host("aten::linalg_householder_product", {a, tau}, {out})) return;
  const int64_t steps = tau.sizes().back();
  if (out.numel() == 0) return;
  if (steps == 0) {
    out.copy_from(ops::eye(rows_of(a), columns_of(a), {.dtype = a.dtype(), .device = a.device()}));
    return;
  }
  out.copy_from(a);
  SolverJob job = job_of(SolverTask::kReflectors, out);
  job.k = steps;
  const Dims batch = batch_of(a);
  run_solver(context, job, count_of(batch),
             {{&SolverJob::a, out, job.m * job.n},
              {&SolverJob::numbers, tau.contiguous(), steps},
              {&SolverJob::info, int32s(batch, context), 1}});
}

void ormqr_cuda(const KernelContext& context, const Tensor& a, const Tensor& tau, const Tensor& other, bool is_left,
                bool is_transposed, Tensor& out) {
  if (solved_on_host("aten::ormqr", {a, tau, other, is_left, is_transposed}, {out})) return;
  out.copy_from(other);
  const int64_t steps = tau.sizes().back();
  if (out.numel() == 0 || steps == 0) return;
  const Tensor reflections = columns_of_copy(a);
  SolverJob job = job_of(SolverTask::kReflect, out);
  job.k = steps;
  job.is_left = is_left, job.is_turned = is_transposed;
  job.b_leading = job.a_leading;
  job.a_leading = leading_of(rows_of(a));
  const Dims batch = batch_of(a);
  run_solver(context, job, count_of(batch),
             {{&SolverJob::a, reflections, rows_of(a) * columns_of(a)},
              {&SolverJob::b, out, job.m * job.n},
              {&SolverJob::numbers, tau.contiguous(), steps},
              {&SolverJob::info, int32s(batch, context), 1}});
}

// `info`, with `code` for matrices that have infinities or NaN.
Tensor with_finite(const Tensor& a, const Tensor& info, int64_t code) {
  const Tensor is_finite = ops::all(ops::all(ops::isfinite(a), -1), -1);
  return ops::where(is_finite, info, ops::Scalar(code));
}

void eigh_cuda(const KernelContext& context, const Tensor& a, const std::string& uplo, bool has_vectors, Tensor& values,
               Tensor& vectors) {
  if (a.numel() == 0) return;
  if (solved_on_host("aten::_linalg_eigh", {a, uplo, has_vectors}, {values, vectors})) return;
  const Tensor work = has_vectors ? vectors : columns_of_copy(a);
  if (has_vectors) work.copy_from(a);
  const Dims batch = batch_of(a);
  const Tensor info = int32s(batch, context);
  SolverJob job = job_of(SolverTask::kSymmetric, work);
  job.is_upper = is_upper_triangle(uplo);
  job.has_vectors = has_vectors;
  run_solver(context, job, count_of(batch),
             {{&SolverJob::a, work, job.m * job.n}, {&SolverJob::numbers, values, job.n}, {&SolverJob::info, info, 1}});
  check_info("linalg.eigh", with_finite(a, info, job.n));
}

// The library wants no fewer rows than columns: of others it gets the adjoint, whose vectors are those of the other
// side.
void svd_of_tall(const KernelContext& context, const Tensor& a, bool is_full, bool has_vectors, const Tensor& u,
                 const Tensor& s, const Tensor& vh, const Tensor& info) {
  const Tensor work = columns_of_copy(a);
  SolverJob job = job_of(SolverTask::kSingular, work);
  job.has_vectors = has_vectors, job.is_full = is_full;
  std::vector<Piece> pieces{
      {&SolverJob::a, work, job.m * job.n}, {&SolverJob::numbers, s, job.n}, {&SolverJob::info, info, 1}};
  job.b_leading = leading_of(job.m), job.c_leading = leading_of(job.n);
  if (has_vectors) {
    pieces.push_back({&SolverJob::b, u, rows_of(u) * columns_of(u)});
    pieces.push_back({&SolverJob::c, vh, rows_of(vh) * columns_of(vh)});
  }
  run_solver(context, job, count_of(batch_of(a)), pieces);
}

void fill_with_identity(const Tensor& x) {
  if (x.numel() != 0 && rows_of(x) == columns_of(x)) x.copy_from(identity(rows_of(x), x));
}

void svd_cuda(const KernelContext& context, const Tensor& a, bool is_full, bool has_vectors,
              const std::optional<std::string>& driver, Tensor& u, Tensor& s, Tensor& vh) {
  if (a.numel() == 0) {
    if (has_vectors) fill_with_identity(u), fill_with_identity(vh);
    return;
  }
  const Value no_driver = driver ? Value(*driver) : Value();
  if (solved_on_host("aten::_linalg_svd", {a, is_full, has_vectors, no_driver}, {u, s, vh})) return;
  const Tensor info = int32s(batch_of(a), context);
  if (rows_of(a) >= columns_of(a)) {
    svd_of_tall(context, a, is_full, has_vectors, u, s, vh, info);
  } else {
    const Tensor left = has_vectors ? columns_of_copy(transposed(vh)) : vh,
                 right = has_vectors ? columns_of_copy(transposed(u)) : u;
    svd_of_tall(context, adjoint(a), is_full, has_vectors, left, s, right, info);
    if (has_vectors) u.copy_from(adjoint(right)), vh.copy_from(adjoint(left));
  }
  check_info("linalg.svd", with_finite(a, info, kNotFinite));
}

// As cuBLAS takes the triangle: column by column or, `is_turned`, row by row.
struct TriangleOperand {
  Tensor tensor;
  bool is_turned = false;
  int64_t leading = 1;
};
TriangleOperand triangle_of(const Tensor& a) {
  const int64_t n = rows_of(a), row = a.stride(-2), column = a.stride(-1);
  if ((n == 1 || row == 1) && (n == 1 || column >= n)) return {a, false, n == 1 ? 1 : column};
  if (column == 1 && row >= n) return {a, true, row};
  return {columns_of_copy(a), false, leading_of(n)};
}

void solve_triangular_cuda(const KernelContext& context, const Tensor& a, const Tensor& b, bool is_upper, bool is_left,
                           bool is_unit, Tensor& out) {
  const std::vector<Value> arguments{a, b, is_upper, is_left, is_unit};
  if (solved_on_host("aten::linalg_solve_triangular", arguments, {out})) return;
  out.copy_from(b);
  if (out.numel() == 0) return;
  const TriangleOperand triangle = triangle_of(a);
  SolverJob job = job_of(SolverTask::kTriangular, out);
  job.b_leading = job.a_leading;
  job.a_leading = triangle.leading;
  job.is_turned = triangle.is_turned;
  job.is_upper = is_upper != triangle.is_turned;
  job.is_left = is_left, job.is_unit = is_unit;
  const Dims batch = batch_of(out);
  const int64_t count = count_of(batch);
  if (takes_many(job, count)) {
    const auto of = [&](const Tensor& x) {
      return list_of(count, context.device, [&](int64_t i) { return matrix_at(x, batch, i).data; });
    };
    return run_many(context, job, count, of(triangle.tensor), of(out));
  }
  for (int64_t i = 0; i < count; ++i) {
    job.a = matrix_at(triangle.tensor, batch, i).data;
    job.b = matrix_at(out, batch, i).data;
    run_solver(context, job, 1, {});
  }
}

IMPL("aten::linalg_cholesky_ex", kCUDA, cholesky_cuda);
IMPL("aten::linalg_lu_factor_ex", kCUDA, lu_factor_cuda);
IMPL("tensord::exchange_rows", kCUDA, exchange_rows_cuda);
IMPL("tensord::sign_of_exchanges", kCUDA, sign_of_exchanges_cuda);
IMPL("aten::geqrf", kCUDA, geqrf_cuda);
IMPL("aten::linalg_householder_product", kCUDA, householder_product_cuda);
IMPL("aten::ormqr", kCUDA, ormqr_cuda);
IMPL("aten::_linalg_eigh", kCUDA, eigh_cuda);
IMPL("aten::_linalg_svd", kCUDA, svd_cuda);
IMPL("aten::linalg_solve_triangular", kCUDA, solve_triangular_cuda);

}  // namespace
}  // namespace tensord::kernels::linalg
