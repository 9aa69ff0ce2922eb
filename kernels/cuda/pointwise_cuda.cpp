// Runs one elementwise formula on a CUDA device.
#include "kernels/pointwise/pointwise.h"

#include <array>

#include "core/tensor/loops.h"
#include "kernels/base/lines.h"
#include "kernels/cuda/launch.h"

namespace tensord::kernels {
namespace {

[[maybe_unused]] const bool cuda_registered = (cuda::register_cuda_runtime(), true);

// The dtype that the loop computes in. A 0-d operand may have a wider dtype than the result, and is rounded to the
// result's first.
Tensor as_computed(const Tensor& given, const PointwiseCall& call) {
  const bool narrows = given.ndim() == 0 && given.dtype() != call.compute && loop_dtype(call.compute) != call.compute;
  return narrows ? given.to(call.compute) : given;
}

// Fills in operand k. A number, or a 0-d tensor in host memory, travels with the launch. `tensor` is the memory that
// the operand reads.
void set_operand(PointwiseJob& job, size_t k, const PointwiseCall& call, const Tensor& out,
                 std::array<Dims, 4>& strides, Tensor& tensor) {
  strides[k + 1] = Dims(out.sizes().size(), 0);
  const bool is_integer = loop_dtype(call.compute) == DType::kInt64;
  if (!call.tensor(k)) {
    const ops::Scalar& number = call.operands[k].number;
    if (is_integer)
      job.int_constants[k] = number.to_int();
    else
      job.float_constants[k] = number.to_double();
    return;
  }
  tensor = as_computed(*call.tensor(k), call);
  if (!tensor.device().is_host()) {
    job.data[k] = tensor.raw_data();
    job.dtypes[k] = static_cast<int8_t>(tensor.dtype());
    strides[k + 1] = broadcast_strides(tensor.sizes(), tensor.strides(), out.sizes());
  } else if (is_integer) {
    job.int_constants[k] = tensor.item_int();
  } else {
    job.float_constants[k] = tensor.item_double();
  }
}

bool begins_pack(cuda::DeviceAddress address, DType dtype) {
  return reinterpret_cast<uintptr_t>(address.at) % (4 * size_of(dtype)) == 0;
}

void set_nest(PointwiseJob& job, const LoopNest<4>& nest) {
  if (nest.ndim() > kCudaDims) {
    fail(ErrorCode::kUnimplemented, "elementwise operators on CUDA take at most ", kCudaDims,
         " dimensions that cannot be merged");
  }
  job.ndim = static_cast<int>(nest.ndim());
  job.is_dense = nest.ndim() == 1;
  job.is_aligned = begins_pack(job.out, static_cast<DType>(job.out_dtype));
  for (size_t d = 0; d < nest.ndim(); ++d) {
    job.sizes[d] = nest.size(d);
    for (size_t k = 0; k < 4; ++k) {
      job.strides[k][d] = nest.stride(k, d);
      const bool is_tensor = k == 0 || job.data[k - 1].at != nullptr;
      job.is_dense = job.is_dense && (!is_tensor || nest.stride(k, d) == 1);
    }
  }
  for (size_t k = 0; k < 3; ++k) {
    if (job.data[k].at) job.is_aligned = job.is_aligned && begins_pack(job.data[k], static_cast<DType>(job.dtypes[k]));
  }
}

}  // namespace

void run_pointwise_cuda(const ops::KernelContext& context, const PointwiseCall& call, Tensor& out) {
  if (out.numel() == 0) return;
  const DType loop = loop_dtype(call.compute);
  PointwiseJob job;
  job.formula = static_cast<uint16_t>(call.formula);
  job.compute = static_cast<int8_t>(loop);
  job.checks_divisor = call.checks_divisor();
  job.numel = out.numel();
  job.out = out.raw_data();
  job.out_dtype = static_cast<int8_t>(out.dtype());
  std::array<Dims, 4> strides;
  strides[0] = out.strides();
  strides[1] = strides[2] = strides[3] = Dims(out.sizes().size(), 0);
  std::array<Tensor, 3> tensors;
  for (size_t k = 0; k < call.count; ++k) set_operand(job, k, call, out, strides, tensors[k]);
  set_nest(job, LoopNest<4>(out.sizes(), strides));
  for (size_t i = 0; i < 3; ++i) {
    job.floats[i] = call.numbers.floats[i];
    job.ints[i] = call.numbers.ints[i];
  }
  job.errors = errors_of(context);
  launch(context, &KernelTable::pointwise, job);
}

}  // namespace tensord::kernels
