// A kernel for each line of kernels/complex/formulas.def, over complex64 and complex128.
#include "kernels/cuda/device.cuh"

#include "kernels/complex/formulas.h"
#include "kernels/cuda/plugin/table.h"

namespace tensord::kernels {
namespace {

using namespace cuda;
namespace cx = complex_loops::cx;

// From the array of operand k, or its constant.
template <class T>
__device__ __forceinline__ T complex_operand(const ComplexJob& job, int k, int64_t offset) {
  using R = complex_loops::Real<T>;
  const R* const pairs = pointer<R>(job.data[k]);
  if (!pairs) return T(static_cast<R>(job.constants[k][0]), static_cast<R>(job.constants[k][1]));
  return T(pairs[2 * offset], pairs[2 * offset + 1]);
}
template <class R>
__device__ __forceinline__ void store_result(void* out, int64_t at, const cx::complex<R>& value) {
  static_cast<R*>(out)[2 * at] = value.real();
  static_cast<R*>(out)[2 * at + 1] = value.imag();
}
template <class R>
__device__ __forceinline__ void store_result(void* out, int64_t at, R value) {
  static_cast<R*>(out)[at] = value;
}

template <ComplexFormula kFormula, class T>
__global__ void complex_kernel(const __grid_constant__ ComplexJob job) {
  for (int64_t i = thread_index(); i < job.numel; i += thread_count()) {
    int64_t offsets[4] = {}, rest = i;
    for (int d = job.ndim - 1; d >= 0; --d) {
      const int64_t at = rest % job.sizes[d];
      rest /= job.sizes[d];
      for (int k = 0; k < 4; ++k) offsets[k] += at * job.strides[k][d];
    }
    T values[3];
    for (int k = 0; k < 3; ++k) values[k] = complex_operand<T>(job, k, offsets[k + 1]);
    const auto result = complex_loops::FormulaOf<kFormula>::run(values[0], values[1], values[2], job.numbers);
    store_result(pointer<void>(job.out), offsets[0], result);
  }
}

template <class R>
void launch_complex(const ComplexJob& job, StreamHandle stream) {
  using Kernel = void (*)(const ComplexJob);
#define FORMULA(NAME, RESULT, ...) complex_kernel<ComplexFormula::NAME, cx::complex<R>>,
  static const Kernel kernels[] = {
#include "kernels/complex/formulas.def"
  };
#undef FORMULA
  launch(kernels[job.formula], dim3(blocks_for(job.numel, 128)), dim3(128), 0, stream, job);
}

}  // namespace

void complex_pointwise(const ComplexJob& job, cuda::StreamHandle stream) {
  job.is_double ? launch_complex<double>(job, stream) : launch_complex<float>(job, stream);
}

}  // namespace tensord::kernels
