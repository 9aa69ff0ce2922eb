// Runs one elementwise formula on a CUDA device.
#include "kernels/pointwise/pointwise_cuda.h"

#include <array>

#include "core/tensor/cuda/cuda_runtime.h"
#include "core/tensor/cuda/runtime.h"
#include "core/tensor/loops.h"
#include "kernels/base/lines.h"
#include "kernels/pointwise/pointwise.h"

namespace tensord::kernels {
namespace {

[[maybe_unused]] const bool pointwise_cuda_registered = (cuda::register_cuda_runtime(), true);

const CudaRows& cuda_rows(Formula formula) {
  static const auto* table = [] {
    auto* rows = new std::array<CudaRows, kFormulas>();
    fill_arith_cuda(rows->data());
    fill_math_cuda(rows->data());
    fill_activation_cuda(rows->data());
    fill_special_cuda(rows->data());
    return rows;
  }();
  return (*table)[static_cast<size_t>(formula)];
}

// Fills operand k; a number or a CPU scalar travels with the launch.
void set_operand(CudaPointwise& job, size_t k, const PointwiseCall& call, const Tensor& out,
                 std::array<Dims, 4>& strides) {
  const Tensor* given = call.tensor(k);
  strides[k + 1] = Dims(out.sizes().size(), 0);
  const bool is_host = given != nullptr && given->device().kind == DeviceKind::kCPU;
  if (given != nullptr && !is_host) {
    const Tensor& tensor = *given;
    job.data[k] = tensor.raw_data();
    job.dtypes[k] = static_cast<int8_t>(tensor.dtype());
    strides[k + 1] = broadcast_strides(tensor.sizes(), tensor.strides(), out.sizes());
  } else if (is_host) {
    job.float_constants[k] = given->item_double();
    job.int_constants[k] = is_floating(given->dtype()) ? 0 : given->item_int();
  } else {
    job.float_constants[k] = call.operands[k].number.to_double();
    job.int_constants[k] = call.operands[k].number.is_float() ? 0 : call.operands[k].number.to_int();
  }
}

}  // namespace

void run_pointwise_cuda(const PointwiseCall& call, Tensor& out, void* stream) {
  if (out.numel() == 0) return;
  const DType loop = loop_dtype(call.compute);
  const CudaRows& rows = cuda_rows(call.formula);
  const CudaLaunch launch = loop == DType::kFloat32 ? rows.f32 : loop == DType::kFloat64 ? rows.f64 : rows.i64;
  check(launch != nullptr, "elementwise operator is not defined for ", name_of(call.compute));
  CudaPointwise job;
  job.numel = out.numel();
  job.out = out.raw_data();
  job.out_dtype = static_cast<int8_t>(out.dtype());
  std::array<Dims, 4> strides;
  strides[0] = out.strides();
  strides[1] = strides[2] = strides[3] = Dims(out.sizes().size(), 0);
  for (size_t k = 0; k < call.count; ++k) set_operand(job, k, call, out, strides);
  const LoopNest<4> nest(out.sizes(), strides);
  if (nest.ndim() > kCudaDims) {
    fail(ErrorCode::kUnimplemented, "elementwise operators on CUDA take at most ", kCudaDims,
         " dimensions that cannot be merged");
  }
  job.ndim = static_cast<int>(nest.ndim());
  job.is_dense = nest.ndim() == 1;
  for (size_t d = 0; d < nest.ndim(); ++d) {
    job.sizes[d] = nest.size(d);
    for (size_t k = 0; k < 4; ++k) {
      job.strides[k][d] = nest.stride(k, d);
      const bool is_tensor = k == 0 || job.data[k - 1] != nullptr;
      job.is_dense = job.is_dense && (!is_tensor || nest.stride(k, d) == 1);
    }
  }
  for (size_t i = 0; i < 3; ++i) {
    job.floats[i] = call.numbers.floats[i];
    job.ints[i] = call.numbers.ints[i];
  }
  const cuda::DeviceScope scope(out.device().index);
  launch(job, static_cast<cudaStream_t>(stream));
  cuda::check_cuda(cudaGetLastError(), "launch of an elementwise kernel");
}

}  // namespace tensord::kernels
