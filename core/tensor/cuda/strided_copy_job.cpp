#include "core/tensor/cuda/strided_copy_job.h"

#include "core/base/error.h"
#include "core/tensor/loops.h"

namespace tensord::cuda {

StridedCopyJob strided_copy_job(const Tensor& target, const Tensor& source) {
  const LoopNest<2> nest(target.sizes(), {target.strides(), source.strides()});
  if (nest.ndim() > static_cast<size_t>(kCopyDims)) {
    fail(ErrorCode::kUnimplemented, "a copy on cuda of more than ", kCopyDims,
         " dimensions that cannot be merged: ", describe(source), " to ", describe(target));
  }
  for (const DType dtype : {target.dtype(), source.dtype()}) {
    if (size_of(dtype) == 0 || dtype == DType::kComplex32) fail_dtype("copy", dtype);
  }
  StridedCopyJob job;
  job.numel = nest.numel();
  job.ndim = static_cast<int>(nest.ndim());
  for (size_t d = 0; d < nest.ndim(); ++d) {
    job.sizes[d] = nest.size(d);
    job.to_strides[d] = nest.stride(0, d);
    job.from_strides[d] = nest.stride(1, d);
  }
  job.to = target.raw_data();
  job.from = source.raw_data();
  job.to_dtype = static_cast<int8_t>(target.dtype());
  job.from_dtype = static_cast<int8_t>(source.dtype());
  return job;
}

}  // namespace tensord::cuda
