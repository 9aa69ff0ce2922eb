// Elementwise formulas of complex numbers on a CUDA device.
#include <array>

#include "core/tensor/complex.h"
#include "core/tensor/loops.h"
#include "kernels/complex/elementwise.h"
#include "kernels/cuda/launch.h"

namespace tensord::kernels {
namespace {

// Fills operand k; a number or a CPU scalar travels with the launch. Returns what it reads, for as long as the job is
// not queued.
Tensor set_complex_operand(ComplexJob& job, size_t k, DType dtype, const Operand& operand, const Tensor& out,
                           std::array<Dims, 4>& strides) {
  const auto set_constant = [&](std::complex<double> number) {
    job.constants[k][0] = number.real(), job.constants[k][1] = number.imag();
  };
  if (!operand.tensor) return set_constant(operand.number.to_complex()), Tensor();
  const Tensor& given = *operand.tensor;
  if (given.device().is_host()) return set_constant(item_complex(given)), Tensor();
  const Tensor tensor = given.to(dtype);
  job.data[k] = tensor.raw_data();
  strides[k + 1] = broadcast_strides(tensor.sizes(), tensor.strides(), out.sizes());
  return tensor;
}

}  // namespace

void run_complex_cuda(ComplexFormula formula, DType dtype, Operands operands, const std::array<double, 3>& numbers,
                      const Tensor& out) {
  ComplexJob job;
  job.formula = static_cast<uint8_t>(formula);
  job.is_double = dtype == DType::kComplex128;
  job.numel = out.numel();
  job.out = out.raw_data();
  std::copy(numbers.begin(), numbers.end(), job.numbers);
  std::array<Dims, 4> strides;
  strides[0] = out.strides();
  strides[1] = strides[2] = strides[3] = Dims(out.sizes().size(), 0);
  std::array<Tensor, 3> kept;
  for (size_t k = 0; k < operands.size(); ++k) kept[k] = set_complex_operand(job, k, dtype, operands[k], out, strides);
  const LoopNest<4> nest(out.sizes(), strides);
  check(nest.ndim() <= kCudaDims, "elementwise operators on CUDA take at most ", kCudaDims,
        " dimensions that cannot be merged");
  job.ndim = static_cast<int>(nest.ndim());
  for (size_t d = 0; d < nest.ndim(); ++d) {
    job.sizes[d] = nest.size(d);
    for (size_t k = 0; k < 4; ++k) job.strides[k][d] = nest.stride(k, d);
  }
  launch(ops::KernelContext(out.device()), &KernelTable::complex_pointwise, job);
}

}  // namespace tensord::kernels
