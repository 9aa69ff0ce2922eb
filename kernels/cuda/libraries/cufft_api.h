#pragma once

#include <cstddef>
#include <cstdint>

#include "core/tensor/cuda/api.h"

// What is called of cuFFT 12, as in cublaslt_api.h.
namespace tensord::cuda::cufft {

using Status = int32_t;  // cufftResult
inline constexpr Status kSuccess = 0, kInvalidPlan = 1, kAllocFailed = 2, kInvalidValue = 4, kInvalidSize = 8,
                        kUnaligned = 9, kNoWorkspace = 13;

using DataType = int32_t;  // cudaDataType
inline constexpr DataType kFloat32 = 0, kFloat64 = 1, kComplex64 = 4, kComplex128 = 5;

inline constexpr int32_t kForward = -1, kInverse = 1;

using Plan = int32_t;  // cufftHandle

// F(result, name, parameters)
#define TENSORD_CUFFT_FUNCTIONS(F)                                                                               \
  F(Status, cufftGetVersion, (int32_t * version))                                                                \
  F(Status, cufftCreate, (Plan * plan))                                                                          \
  F(Status, cufftDestroy, (Plan plan))                                                                           \
  F(Status, cufftSetAutoAllocation, (Plan plan, int32_t allocates))                                              \
  F(Status, cufftXtMakePlanMany,                                                                                 \
    (Plan plan, int32_t rank, long long* sizes, long long* in_sizes, long long in_stride, long long in_distance, \
     DataType in_type, long long* out_sizes, long long out_stride, long long out_distance, DataType out_type,    \
     long long batches, size_t* workspace_bytes, DataType compute_type))                                         \
  F(Status, cufftSetStream, (Plan plan, StreamHandle stream))                                                    \
  F(Status, cufftSetWorkArea, (Plan plan, void* workspace))                                                      \
  F(Status, cufftXtExec, (Plan plan, void* in, void* out, int32_t direction))

struct Functions {
#define F(RESULT, NAME, PARAMETERS) RESULT(*NAME) PARAMETERS = nullptr;
  TENSORD_CUFFT_FUNCTIONS(F)
#undef F
};

inline constexpr char kFile[] = "libcufft.so.12";

}  // namespace tensord::cuda::cufft
