#pragma once

#include <cstddef>
#include <cstdint>

#include "core/tensor/cuda/api.h"

// What is called of cuSOLVER 12 and, for triangular systems, of cuBLAS 13, as in cublaslt_api.h.
namespace tensord::cuda::cusolver {

using Status = int32_t;  // cusolverStatus_t
inline constexpr Status kSuccess = 0, kAllocFailed = 2, kInvalidValue = 3, kNotSupported = 9;

using DataType = int32_t;  // cudaDataType
inline constexpr DataType kFloat32 = 0, kFloat64 = 1, kComplex64 = 4, kComplex128 = 5;

inline constexpr int32_t kLower = 0, kUpper = 1;                             // cublasFillMode_t
inline constexpr int32_t kLeft = 0, kRight = 1;                              // cublasSideMode_t
inline constexpr int32_t kOperationN = 0, kOperationT = 1, kOperationC = 2;  // cublasOperation_t
inline constexpr int32_t kNotUnit = 0, kUnit = 1;                            // cublasDiagType_t
inline constexpr int32_t kWithoutVectors = 0, kWithVectors = 1;              // cusolverEigMode_t

using Handle = struct SolverContext*;
using Params = struct ParamsData*;

// F(result, name, parameters). P is the letter of the type of elements; OR is "or", of complex numbers "un".
#define TENSORD_CUSOLVER_TYPED(F, P, OR)                                                                              \
  F(Status, cusolverDn##P##OR##gqr_bufferSize,                                                                        \
    (Handle handle, int32_t m, int32_t n, int32_t k, const void* a, int32_t lda, const void* tau, int32_t* size))     \
  F(Status, cusolverDn##P##OR##gqr,                                                                                   \
    (Handle handle, int32_t m, int32_t n, int32_t k, void* a, int32_t lda, const void* tau, void* work, int32_t size, \
     int32_t* info))                                                                                                  \
  F(Status, cusolverDn##P##OR##mqr_bufferSize,                                                                        \
    (Handle handle, int32_t side, int32_t operation, int32_t m, int32_t n, int32_t k, const void* a, int32_t lda,     \
     const void* tau, const void* c, int32_t ldc, int32_t* size))                                                     \
  F(Status, cusolverDn##P##OR##mqr,                                                                                   \
    (Handle handle, int32_t side, int32_t operation, int32_t m, int32_t n, int32_t k, const void* a, int32_t lda,     \
     const void* tau, void* c, int32_t ldc, void* work, int32_t size, int32_t* info))                                 \
  F(Status, cusolverDn##P##potrfBatched,                                                                              \
    (Handle handle, int32_t triangle, int32_t n, void* const* a, int32_t lda, int32_t* info, int32_t count))          \
  F(Status, cusolverDn##P##laswp,                                                                                     \
    (Handle handle, int32_t n, void* a, int32_t lda, int32_t first, int32_t last, const int32_t* pivots,              \
     int32_t step))
#define TENSORD_CUSOLVER_FUNCTIONS(F)                                                                                  \
  F(Status, cusolverDnCreate, (Handle * handle))                                                                       \
  F(Status, cusolverDnSetStream, (Handle handle, StreamHandle stream))                                                 \
  F(Status, cusolverDnCreateParams, (Params * params))                                                                 \
  F(Status, cusolverDnXpotrf_bufferSize,                                                                               \
    (Handle handle, Params params, int32_t triangle, int64_t n, DataType type, const void* a, int64_t lda,             \
     DataType compute, size_t* device_bytes, size_t* host_bytes))                                                      \
  F(Status, cusolverDnXpotrf,                                                                                          \
    (Handle handle, Params params, int32_t triangle, int64_t n, DataType type, void* a, int64_t lda, DataType compute, \
     void* device, size_t device_bytes, void* host, size_t host_bytes, int32_t* info))                                 \
  F(Status, cusolverDnXgetrf_bufferSize,                                                                               \
    (Handle handle, Params params, int64_t m, int64_t n, DataType type, const void* a, int64_t lda, DataType compute,  \
     size_t* device_bytes, size_t* host_bytes))                                                                        \
  F(Status, cusolverDnXgetrf,                                                                                          \
    (Handle handle, Params params, int64_t m, int64_t n, DataType type, void* a, int64_t lda, int64_t* pivots,         \
     DataType compute, void* device, size_t device_bytes, void* host, size_t host_bytes, int32_t* info))               \
  F(Status, cusolverDnXgeqrf_bufferSize,                                                                               \
    (Handle handle, Params params, int64_t m, int64_t n, DataType type, const void* a, int64_t lda, DataType tau_type, \
     const void* tau, DataType compute, size_t* device_bytes, size_t* host_bytes))                                     \
  F(Status, cusolverDnXgeqrf,                                                                                          \
    (Handle handle, Params params, int64_t m, int64_t n, DataType type, void* a, int64_t lda, DataType tau_type,       \
     void* tau, DataType compute, void* device, size_t device_bytes, void* host, size_t host_bytes, int32_t* info))    \
  F(Status, cusolverDnXsyevd_bufferSize,                                                                               \
    (Handle handle, Params params, int32_t mode, int32_t triangle, int64_t n, DataType type, const void* a,            \
     int64_t lda, DataType values_type, const void* values, DataType compute, size_t* device_bytes,                    \
     size_t* host_bytes))                                                                                              \
  F(Status, cusolverDnXsyevd,                                                                                          \
    (Handle handle, Params params, int32_t mode, int32_t triangle, int64_t n, DataType type, void* a, int64_t lda,     \
     DataType values_type, void* values, DataType compute, void* device, size_t device_bytes, void* host,              \
     size_t host_bytes, int32_t* info))                                                                                \
  F(Status, cusolverDnXgesvd_bufferSize,                                                                               \
    (Handle handle, Params params, signed char job_u, signed char job_vh, int64_t m, int64_t n, DataType type,         \
     const void* a, int64_t lda, DataType values_type, const void* values, DataType u_type, const void* u,             \
     int64_t ldu, DataType vh_type, const void* vh, int64_t ldvh, DataType compute, size_t* device_bytes,              \
     size_t* host_bytes))                                                                                              \
  F(Status, cusolverDnXgesvd,                                                                                          \
    (Handle handle, Params params, signed char job_u, signed char job_vh, int64_t m, int64_t n, DataType type,         \
     void* a, int64_t lda, DataType values_type, void* values, DataType u_type, void* u, int64_t ldu,                  \
     DataType vh_type, void* vh, int64_t ldvh, DataType compute, void* device, size_t device_bytes, void* host,        \
     size_t host_bytes, int32_t* info))                                                                                \
  TENSORD_CUSOLVER_TYPED(F, S, or)                                                                                     \
  TENSORD_CUSOLVER_TYPED(F, D, or)                                                                                     \
  TENSORD_CUSOLVER_TYPED(F, C, un)                                                                                     \
  TENSORD_CUSOLVER_TYPED(F, Z, un)

struct Functions {
#define F(RESULT, NAME, PARAMETERS) RESULT(*NAME) PARAMETERS = nullptr;
  TENSORD_CUSOLVER_FUNCTIONS(F)
#undef F
};

inline constexpr char kFile[] = "libcusolver.so.12";

}  // namespace tensord::cuda::cusolver

namespace tensord::cuda::cublas {

using Status = int32_t;  // cublasStatus_t
inline constexpr Status kSuccess = 0, kAllocFailed = 3, kInvalidValue = 7;

using Handle = struct BlasContext*;

#define TENSORD_CUBLAS_TYPED(F, P)                                                                             \
  F(Status, cublas##P##trsm_v2,                                                                                \
    (Handle handle, int32_t side, int32_t triangle, int32_t operation, int32_t diagonal, int32_t m, int32_t n, \
     const void* alpha, const void* a, int32_t lda, void* b, int32_t ldb))                                     \
  F(Status, cublas##P##trsmBatched,                                                                            \
    (Handle handle, int32_t side, int32_t triangle, int32_t operation, int32_t diagonal, int32_t m, int32_t n, \
     const void* alpha, const void* const* a, int32_t lda, void* const* b, int32_t ldb, int32_t count))        \
  F(Status, cublas##P##getrfBatched,                                                                           \
    (Handle handle, int32_t n, void* const* a, int32_t lda, int32_t* pivots, int32_t* info, int32_t count))
#define TENSORD_CUBLAS_FUNCTIONS(F)                                   \
  F(Status, cublasCreate_v2, (Handle * handle))                       \
  F(Status, cublasSetStream_v2, (Handle handle, StreamHandle stream)) \
  TENSORD_CUBLAS_TYPED(F, S)                                          \
  TENSORD_CUBLAS_TYPED(F, D)                                          \
  TENSORD_CUBLAS_TYPED(F, C)                                          \
  TENSORD_CUBLAS_TYPED(F, Z)

struct Functions {
#define F(RESULT, NAME, PARAMETERS) RESULT(*NAME) PARAMETERS = nullptr;
  TENSORD_CUBLAS_FUNCTIONS(F)
#undef F
};

inline constexpr char kFile[] = "libcublas.so.13";

}  // namespace tensord::cuda::cublas
