#pragma once

#include "core/tensor/cuda/api.h"
#include "kernels/cuda/blas_job.h"
#include "kernels/cuda/dnn_job.h"
#include "kernels/cuda/fft_job.h"
#include "kernels/cuda/solver_job.h"

// NVIDIA's libraries behind plain functions, for host halves (launch.h). A library is opened by the first call that
// needs it. The calling thread's device is the stream's; all functions are thread-safe.
namespace tensord::kernels {

struct LibraryTable {
  // Why there is no cuBLASLt; "" where there is one.
  const char* (*why_no_blas)();
  // Finds how the library would compute it, and remembers that by shape. REQUIRES: m, n, k > 0.
  cuda::Outcome (*plan_product)(BlasJob& job);
  // REQUIRES: has_algorithm; the addresses are aligned as they were for plan_product.
  cuda::Outcome (*product)(const BlasJob& job, cuda::StreamHandle stream);

  // The same of cuFFT.
  const char* (*why_no_fft)();
  cuda::Outcome (*plan_fft)(FftJob& job);
  cuda::Outcome (*fft)(const FftJob& job, cuda::StreamHandle stream);

  // The same of cuSOLVER and cuBLAS.
  const char* (*why_no_solver)();
  cuda::Outcome (*plan_solver)(SolverJob& job, cuda::StreamHandle stream);
  cuda::Outcome (*solver)(const SolverJob& job, cuda::StreamHandle stream);

  // The same of cuDNN.
  const char* (*why_no_dnn)();
  cuda::Outcome (*plan_convolution)(DnnConvJob& job, cuda::StreamHandle stream);
  cuda::Outcome (*convolution)(const DnnConvJob& job, cuda::StreamHandle stream);
};

}  // namespace tensord::kernels
