// Compares what is declared here of NVIDIA's libraries with NVIDIA's own headers, where they are installed.
#include <cstdint>
#include <type_traits>

#if __has_include(<cublasLt.h>)
#include <cublasLt.h>

#include "kernels/cuda/libraries/cublaslt_api.h"
#endif
#if __has_include(<cudnn.h>)
#include <cudnn.h>

#include "kernels/cuda/libraries/cudnn_api.h"
#endif
#if __has_include(<cusolverDn.h>)
#include <cublas_v2.h>
#include <cusolverDn.h>

#include "kernels/cuda/libraries/cusolver_api.h"
#endif
#if __has_include(<cufftXt.h>)
#include <cufftXt.h>

#include "kernels/cuda/libraries/cufft_api.h"
#endif

namespace tensord::cuda {
namespace {

// Types as a call passes them: pointers of any kind, enumerators as numbers.
template <class T>
using Passed = std::conditional_t<std::is_pointer_v<T>, const void*, std::conditional_t<std::is_enum_v<T>, int32_t, T>>;
template <class F>
struct Call;
template <class R, class... A>
struct Call<R (*)(A...)> {
  using Type = Passed<R> (*)(Passed<A>...);
};
template <class A, class B>
[[maybe_unused]] constexpr bool kSameCall = std::is_same_v<typename Call<A>::Type, typename Call<B>::Type>;

#if __has_include(<cublasLt.h>)
#define F(RESULT, NAME, PARAMETERS) static_assert(kSameCall<decltype(&::NAME), decltype(cublaslt::Functions::NAME)>);
TENSORD_CUBLASLT_FUNCTIONS(F)
#undef F
static_assert(cublaslt::kSuccess == CUBLAS_STATUS_SUCCESS && cublaslt::kAllocFailed == CUBLAS_STATUS_ALLOC_FAILED &&
              cublaslt::kInvalidValue == CUBLAS_STATUS_INVALID_VALUE &&
              cublaslt::kNotSupported == CUBLAS_STATUS_NOT_SUPPORTED);
static_assert(cublaslt::kFloat32 == CUDA_R_32F && cublaslt::kFloat64 == CUDA_R_64F &&
              cublaslt::kFloat16 == CUDA_R_16F && cublaslt::kBFloat16 == CUDA_R_16BF);
static_assert(cublaslt::kCompute32F == CUBLAS_COMPUTE_32F && cublaslt::kCompute64F == CUBLAS_COMPUTE_64F &&
              cublaslt::kCompute32FTf32 == CUBLAS_COMPUTE_32F_FAST_TF32);
static_assert(cublaslt::kOperationN == CUBLAS_OP_N && cublaslt::kOperationT == CUBLAS_OP_T);
static_assert(cublaslt::kEpilogueDefault == CUBLASLT_EPILOGUE_DEFAULT &&
              cublaslt::kEpilogueBias == CUBLASLT_EPILOGUE_BIAS && cublaslt::kEpilogueRelu == CUBLASLT_EPILOGUE_RELU &&
              cublaslt::kEpilogueGelu == CUBLASLT_EPILOGUE_GELU &&
              (cublaslt::kEpilogueRelu | cublaslt::kEpilogueBias) == CUBLASLT_EPILOGUE_RELU_BIAS &&
              (cublaslt::kEpilogueGelu | cublaslt::kEpilogueBias) == CUBLASLT_EPILOGUE_GELU_BIAS);
static_assert(cublaslt::kReductionCompute == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
static_assert(cublaslt::kTransposeA == CUBLASLT_MATMUL_DESC_TRANSA &&
              cublaslt::kTransposeB == CUBLASLT_MATMUL_DESC_TRANSB &&
              cublaslt::kEpilogue == CUBLASLT_MATMUL_DESC_EPILOGUE &&
              cublaslt::kBiasPointer == CUBLASLT_MATMUL_DESC_BIAS_POINTER);
static_assert(cublaslt::kBatchCount == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT &&
              cublaslt::kBatchStride == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
static_assert(cublaslt::kMaxWorkspace == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES &&
              cublaslt::kReductionMask == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK &&
              cublaslt::kAlignmentA == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES &&
              cublaslt::kAlignmentB == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES &&
              cublaslt::kAlignmentC == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES &&
              cublaslt::kAlignmentD == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
static_assert(sizeof(cublaslt::Algorithm) == sizeof(cublasLtMatmulAlgo_t) &&
              sizeof(cublaslt::HeuristicResult) == sizeof(cublasLtMatmulHeuristicResult_t) &&
              offsetof(cublaslt::HeuristicResult, workspace_bytes) ==
                  offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize) &&
              offsetof(cublaslt::HeuristicResult, state) == offsetof(cublasLtMatmulHeuristicResult_t, state));
#endif

#if __has_include(<cufftXt.h>)
#define F(RESULT, NAME, PARAMETERS) static_assert(kSameCall<decltype(&::NAME), decltype(cufft::Functions::NAME)>);
TENSORD_CUFFT_FUNCTIONS(F)
#undef F
static_assert(cufft::kSuccess == CUFFT_SUCCESS && cufft::kInvalidPlan == CUFFT_INVALID_PLAN &&
              cufft::kAllocFailed == CUFFT_ALLOC_FAILED && cufft::kInvalidValue == CUFFT_INVALID_VALUE &&
              cufft::kInvalidSize == CUFFT_INVALID_SIZE && cufft::kUnaligned == CUFFT_UNALIGNED_DATA &&
              cufft::kNoWorkspace == CUFFT_NO_WORKSPACE);
static_assert(cufft::kFloat32 == CUDA_R_32F && cufft::kFloat64 == CUDA_R_64F && cufft::kComplex64 == CUDA_C_32F &&
              cufft::kComplex128 == CUDA_C_64F);
static_assert(cufft::kForward == CUFFT_FORWARD && cufft::kInverse == CUFFT_INVERSE);
#endif

#if __has_include(<cusolverDn.h>)
#define F(RESULT, NAME, PARAMETERS) static_assert(kSameCall<decltype(&::NAME), decltype(cusolver::Functions::NAME)>);
TENSORD_CUSOLVER_FUNCTIONS(F)
#undef F
#define F(RESULT, NAME, PARAMETERS) static_assert(kSameCall<decltype(&::NAME), decltype(cublas::Functions::NAME)>);
TENSORD_CUBLAS_FUNCTIONS(F)
#undef F
static_assert(cusolver::kSuccess == CUSOLVER_STATUS_SUCCESS && cusolver::kAllocFailed == CUSOLVER_STATUS_ALLOC_FAILED &&
              cusolver::kInvalidValue == CUSOLVER_STATUS_INVALID_VALUE &&
              cusolver::kNotSupported == CUSOLVER_STATUS_NOT_SUPPORTED);
static_assert(cusolver::kFloat32 == CUDA_R_32F && cusolver::kFloat64 == CUDA_R_64F &&
              cusolver::kComplex64 == CUDA_C_32F && cusolver::kComplex128 == CUDA_C_64F);
static_assert(cusolver::kLower == CUBLAS_FILL_MODE_LOWER && cusolver::kUpper == CUBLAS_FILL_MODE_UPPER &&
              cusolver::kLeft == CUBLAS_SIDE_LEFT && cusolver::kRight == CUBLAS_SIDE_RIGHT &&
              cusolver::kOperationN == CUBLAS_OP_N && cusolver::kOperationT == CUBLAS_OP_T &&
              cusolver::kOperationC == CUBLAS_OP_C && cusolver::kNotUnit == CUBLAS_DIAG_NON_UNIT &&
              cusolver::kUnit == CUBLAS_DIAG_UNIT);
static_assert(cusolver::kWithoutVectors == CUSOLVER_EIG_MODE_NOVECTOR &&
              cusolver::kWithVectors == CUSOLVER_EIG_MODE_VECTOR);
static_assert(cublas::kSuccess == CUBLAS_STATUS_SUCCESS && cublas::kAllocFailed == CUBLAS_STATUS_ALLOC_FAILED &&
              cublas::kInvalidValue == CUBLAS_STATUS_INVALID_VALUE);
#endif

#if __has_include(<cudnn.h>)
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // cuDNN's graphs are to replace its functions
#define F(RESULT, NAME, PARAMETERS) static_assert(kSameCall<decltype(&::NAME), decltype(cudnn::Functions::NAME)>);
TENSORD_CUDNN_FUNCTIONS(F)
#undef F
static_assert(cudnn::kSuccess == CUDNN_STATUS_SUCCESS && cudnn::kBadParam == CUDNN_STATUS_BAD_PARAM &&
              cudnn::kNotSupported == CUDNN_STATUS_NOT_SUPPORTED &&
              cudnn::kAllocFailed == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
static_assert(cudnn::kFloat32 == CUDNN_DATA_FLOAT && cudnn::kFloat64 == CUDNN_DATA_DOUBLE &&
              cudnn::kFloat16 == CUDNN_DATA_HALF && cudnn::kBFloat16 == CUDNN_DATA_BFLOAT16);
static_assert(cudnn::kDense == CUDNN_TENSOR_NCHW && cudnn::kCrossCorrelation == CUDNN_CROSS_CORRELATION &&
              cudnn::kDefaultMath == CUDNN_DEFAULT_MATH && cudnn::kTensorMath == CUDNN_TENSOR_OP_MATH &&
              cudnn::kFmaMath == CUDNN_FMA_MATH && cudnn::kDeterministic == CUDNN_DETERMINISTIC);
static_assert(sizeof(cudnn::AlgorithmPerf) == sizeof(cudnnConvolutionFwdAlgoPerf_t) &&
              sizeof(cudnn::AlgorithmPerf) == sizeof(cudnnConvolutionBwdDataAlgoPerf_t) &&
              sizeof(cudnn::AlgorithmPerf) == sizeof(cudnnConvolutionBwdFilterAlgoPerf_t) &&
              offsetof(cudnn::AlgorithmPerf, workspace_bytes) == offsetof(cudnnConvolutionFwdAlgoPerf_t, memory) &&
              offsetof(cudnn::AlgorithmPerf, determinism) == offsetof(cudnnConvolutionFwdAlgoPerf_t, determinism));
#endif

}  // namespace
}  // namespace tensord::cuda
