// Products of strided matrices in cuBLASLt's terms: matrices column by column, transposes, batches at one distance.
#include "kernels/cuda/blas_cuda.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/workspace.h"

namespace tensord::kernels {
namespace {

using ops::KernelContext;

constexpr int64_t kMaxCalls = 64;  // for batches at several distances

bool has_blas_dtype(int8_t dtype) {
  const auto type = static_cast<DType>(dtype);
  return type == DType::kFloat32 || type == DType::kFloat16 || type == DType::kBFloat16 || type == DType::kFloat64;
}

struct Side {
  int64_t rows, columns, row_stride, column_stride;
};
// With neighboring elements in each column, or in each row: then its transpose lies column by column.
std::optional<BlasMatrix> as_columns(const Side& x) {
  BlasMatrix out;
  const auto is_set = [&](bool is_transposed, int64_t rows, int64_t columns, int64_t row_stride, int64_t stride) {
    out.is_transposed = is_transposed;
    out.column_stride = columns == 1 ? rows : stride;
    return (rows == 1 || row_stride == 1) && out.column_stride >= rows &&
           out.column_stride <= std::numeric_limits<int32_t>::max();
  };
  if (is_set(false, x.rows, x.columns, x.row_stride, x.column_stride)) return out;
  if (is_set(true, x.columns, x.rows, x.column_stride, x.row_stride)) return out;
  return std::nullopt;
}

// c row by row is its transpose column by column, and cᵀ = bᵀ aᵀ.
ProductJob turned(const ProductJob& p) {
  ProductJob out = p;
  std::swap(out.m, out.n);
  std::swap(out.c_row, out.c_column);
  std::swap(out.a, out.b);
  out.a_row = p.b_column, out.a_column = p.b_row;
  out.b_row = p.a_column, out.b_column = p.a_row;
  std::ranges::copy(p.b_strides, out.a_strides);
  std::ranges::copy(p.a_strides, out.b_strides);
  return out;
}

// The product without batches, or nothing if c does not lie column by column.
std::optional<BlasJob> blas_job(const ProductJob& p) {
  const auto a = as_columns({p.m, p.k, p.a_row, p.a_column}), b = as_columns({p.k, p.n, p.b_row, p.b_column}),
             c = as_columns({p.m, p.n, p.c_row, p.c_column});
  if (!a || !b || !c || c->is_transposed) return std::nullopt;
  BlasJob job;
  job.dtype = p.dtype;
  job.m = p.m, job.n = p.n, job.k = p.k;
  job.alpha = p.alpha, job.beta = p.beta;
  job.a = *a, job.b = *b, job.c = *c;
  job.a.at = p.a, job.b.at = p.b, job.c.at = p.c;
  return job;
}

// One of the dimensions of batches is the library's, the others are calls.
int dimension_of_batches(const ProductJob& p) {
  return static_cast<int>(std::max_element(p.sizes, p.sizes + p.batch_dims) - p.sizes);
}

class Caller {
 public:
  Caller(const KernelContext& context, const ProductJob& product, const BlasJob& job)
      : context_(context), product_(product), job_(job), own_(dimension_of_batches(product)) {
    if (product.batch_dims == 0) return;
    job_.batches = static_cast<int32_t>(product.sizes[own_]);
    job_.a.batch_stride = product.a_strides[own_];
    job_.b.batch_stride = product.b_strides[own_];
    job_.c.batch_stride = product.c_strides[own_];
  }

  // False, and nothing is queued, if the library has no algorithm for it.
  bool queue_all() {
    std::vector<BlasJob> jobs;
    for (int64_t i = 0; i < product_.batches / job_.batches; ++i) {
      jobs.push_back(at(i));
      cuda::check_cuda(library_table().plan_product(jobs.back()), "a product");
      if (!jobs.back().has_algorithm) return false;
    }
    for (BlasJob& job : jobs) queue(job);
    return true;
  }

 private:
  static cuda::DeviceAddress moved(cuda::DeviceAddress from, int64_t bytes) {
    return static_cast<const char*>(from.at) + bytes;
  }
  // Call number `index`.
  BlasJob at(int64_t index) const {
    BlasJob job = job_;
    const auto size = static_cast<int64_t>(size_of(static_cast<DType>(job.dtype)));
    for (int d = product_.batch_dims - 1; d >= 0; --d) {
      if (d == own_) continue;
      const int64_t step = index % product_.sizes[d] * size;
      index /= product_.sizes[d];
      job.a.at = moved(job.a.at, step * product_.a_strides[d]);
      job.b.at = moved(job.b.at, step * product_.b_strides[d]);
      job.c.at = moved(job.c.at, step * product_.c_strides[d]);
    }
    return job;
  }
  void queue(BlasJob& job) const {
    const Workspace workspace(job.workspace_bytes, context_.device);
    job.workspace = workspace.at();
    cuda::check_cuda(library_table().product(job, static_cast<cuda::StreamHandle>(context_.stream->handle())),
                     "a product");
  }

  const KernelContext& context_;
  const ProductJob& product_;
  BlasJob job_;
  int own_;
};

}  // namespace

bool product_by_library(const KernelContext& context, const ProductJob& product, const Tensor& bias,
                        BlasEpilogue epilogue) {
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  if (!has_blas_dtype(product.dtype) || product.k == 0 || std::max({product.m, product.n, product.k}) > kMax)
    return false;
  if (*library_table().why_no_blas() != '\0') return false;
  const int64_t batches = product.batch_dims == 0 ? 1 : product.sizes[dimension_of_batches(product)];
  if (batches > kMax || product.batches / batches > kMaxCalls) return false;
  ProductJob rows = turned(product);
  std::optional<BlasJob> job = blas_job(rows);
  if (!job && !bias) job = blas_job(rows = product);
  if (!job) return false;
  if (bias) job->bias = bias.raw_data();
  job->epilogue = epilogue;
  job->allows_tf32 =
      static_cast<DType>(job->dtype) == DType::kFloat32 && execution_context().numerics.allows_tf32_products;
  const cuda::DeviceScope scope(context.device.index);
  return Caller(context, rows, *job).queue_all();
}

}  // namespace tensord::kernels
