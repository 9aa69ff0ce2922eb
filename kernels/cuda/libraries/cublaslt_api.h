#pragma once

#include <cstddef>
#include <cstdint>

#include "core/tensor/cuda/api.h"

// What is called of cuBLASLt 13: the functions by NVIDIA's names, and the documented numbers of its enumerators, so
// that tests need no header of NVIDIA's. nvidia_headers.cpp compares all of it with those headers.
namespace tensord::cuda::cublaslt {

using Status = int32_t;  // cublasStatus_t
inline constexpr Status kSuccess = 0, kAllocFailed = 3, kInvalidValue = 7, kNotSupported = 15;

using DataType = int32_t;  // cudaDataType
inline constexpr DataType kFloat32 = 0, kFloat64 = 1, kFloat16 = 2, kBFloat16 = 14;

using ComputeKind = int32_t;  // cublasComputeType_t
// kCompute32FTf32: operands of float32 may be rounded to TF32.
inline constexpr ComputeKind kCompute32F = 68, kCompute64F = 70, kCompute32FTf32 = 77;

inline constexpr int32_t kOperationN = 0, kOperationT = 1;  // cublasOperation_t
inline constexpr int32_t kOrderColumns = 0;                 // cublasLtOrder_t
// cublasLtEpilogue_t; gelu by tanh.
inline constexpr uint32_t kEpilogueDefault = 1, kEpilogueRelu = 2, kEpilogueBias = 4, kEpilogueGelu = 32;
inline constexpr uint32_t kReductionCompute = 2;  // cublasLtReductionScheme_t

using Attribute = int32_t;
// cublasLtMatmulDescAttributes_t
inline constexpr Attribute kTransposeA = 3, kTransposeB = 4, kEpilogue = 7, kBiasPointer = 8;
// cublasLtMatrixLayoutAttribute_t
inline constexpr Attribute kBatchCount = 5, kBatchStride = 6;
// cublasLtMatmulPreferenceAttributes_t
inline constexpr Attribute kMaxWorkspace = 1, kReductionMask = 3, kAlignmentA = 5, kAlignmentB = 6, kAlignmentC = 7,
                           kAlignmentD = 8;

using Handle = struct LtContext*;
using MatmulDesc = struct MatmulDescData*;
using MatrixLayout = struct LayoutData*;
using Preference = struct PreferenceData*;
struct Algorithm {
  uint64_t words[8];
};
struct HeuristicResult {
  Algorithm algorithm;
  size_t workspace_bytes;
  Status state;
  float waves;
  int32_t reserved[4];
};

// F(result, name, parameters)
#define TENSORD_CUBLASLT_FUNCTIONS(F)                                                                                \
  F(const char*, cublasLtGetStatusString, (Status status))                                                           \
  F(size_t, cublasLtGetVersion, ())                                                                                  \
  F(Status, cublasLtCreate, (Handle * handle))                                                                       \
  F(Status, cublasLtMatmulDescCreate, (MatmulDesc * desc, ComputeKind compute, DataType scale))                      \
  F(Status, cublasLtMatmulDescDestroy, (MatmulDesc desc))                                                            \
  F(Status, cublasLtMatmulDescSetAttribute, (MatmulDesc desc, Attribute attribute, const void* value, size_t bytes)) \
  F(Status, cublasLtMatrixLayoutCreate,                                                                              \
    (MatrixLayout * layout, DataType type, uint64_t rows, uint64_t columns, int64_t ld))                             \
  F(Status, cublasLtMatrixLayoutDestroy, (MatrixLayout layout))                                                      \
  F(Status, cublasLtMatrixLayoutSetAttribute,                                                                        \
    (MatrixLayout layout, Attribute attribute, const void* value, size_t bytes))                                     \
  F(Status, cublasLtMatmulPreferenceCreate, (Preference * preference))                                               \
  F(Status, cublasLtMatmulPreferenceDestroy, (Preference preference))                                                \
  F(Status, cublasLtMatmulPreferenceSetAttribute,                                                                    \
    (Preference preference, Attribute attribute, const void* value, size_t bytes))                                   \
  F(Status, cublasLtMatmulAlgoGetHeuristic,                                                                          \
    (Handle handle, MatmulDesc desc, MatrixLayout a, MatrixLayout b, MatrixLayout c, MatrixLayout d,                 \
     Preference preference, int wanted, HeuristicResult* results, int* count))                                       \
  F(Status, cublasLtMatmul,                                                                                          \
    (Handle handle, MatmulDesc desc, const void* alpha, const void* a, MatrixLayout a_layout, const void* b,         \
     MatrixLayout b_layout, const void* beta, const void* c, MatrixLayout c_layout, void* d, MatrixLayout d_layout,  \
     const Algorithm* algorithm, void* workspace, size_t workspace_bytes, StreamHandle stream))

struct Functions {
#define F(RESULT, NAME, PARAMETERS) RESULT(*NAME) PARAMETERS = nullptr;
  TENSORD_CUBLASLT_FUNCTIONS(F)
#undef F
};

inline constexpr char kFile[] = "libcublasLt.so.13";

}  // namespace tensord::cuda::cublaslt
