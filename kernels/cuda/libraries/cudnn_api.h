#pragma once

#include <cstddef>
#include <cstdint>

#include "core/tensor/cuda/api.h"

// What is called of cuDNN 9, as in cublaslt_api.h.
namespace tensord::cuda::cudnn {

using Status = int32_t;  // cudnnStatus_t
inline constexpr Status kSuccess = 0, kBadParam = 2000, kNotSupported = 3000;
inline constexpr Status kAllocFailed = 4003;  // of the host
// A failure of any reason that is a number from kNotSupported on and below the next thousand is one of no support.
inline constexpr bool is_not_supported(Status status) { return status >= kNotSupported && status < 4000; }

using DataType = int32_t;  // cudnnDataType_t
inline constexpr DataType kFloat32 = 0, kFloat64 = 1, kFloat16 = 2, kBFloat16 = 9;

inline constexpr int32_t kDense = 0;                                       // cudnnTensorFormat_t: NCHW
inline constexpr int32_t kCrossCorrelation = 1;                            // cudnnConvolutionMode_t
inline constexpr int32_t kDefaultMath = 0, kTensorMath = 1, kFmaMath = 3;  // cudnnMathType_t; kFmaMath: without TF32
inline constexpr int32_t kDeterministic = 1;                               // cudnnDeterminism_t

using Handle = struct DnnContext*;
using TensorDesc = struct TensorDescData*;
using FilterDesc = struct FilterDescData*;
using ConvDesc = struct ConvDescData*;

// cudnnConvolutionFwdAlgoPerf_t, and those of both gradients.
struct AlgorithmPerf {
  int32_t algorithm;
  Status status;
  float time;
  size_t workspace_bytes;
  int32_t determinism;
  int32_t math;
  int32_t reserved[3];
};

// F(result, name, parameters)
#define TENSORD_CUDNN_FUNCTIONS(F)                                                                                    \
  F(const char*, cudnnGetErrorString, (Status status))                                                                \
  F(size_t, cudnnGetVersion, ())                                                                                      \
  F(Status, cudnnCreate, (Handle * handle))                                                                           \
  F(Status, cudnnSetStream, (Handle handle, StreamHandle stream))                                                     \
  F(Status, cudnnCreateTensorDescriptor, (TensorDesc * desc))                                                         \
  F(Status, cudnnSetTensorNdDescriptor,                                                                               \
    (TensorDesc desc, DataType type, int32_t dims, const int32_t* sizes, const int32_t* strides))                     \
  F(Status, cudnnDestroyTensorDescriptor, (TensorDesc desc))                                                          \
  F(Status, cudnnCreateFilterDescriptor, (FilterDesc * desc))                                                         \
  F(Status, cudnnSetFilterNdDescriptor,                                                                               \
    (FilterDesc desc, DataType type, int32_t format, int32_t dims, const int32_t* sizes))                             \
  F(Status, cudnnDestroyFilterDescriptor, (FilterDesc desc))                                                          \
  F(Status, cudnnCreateConvolutionDescriptor, (ConvDesc * desc))                                                      \
  F(Status, cudnnSetConvolutionNdDescriptor,                                                                          \
    (ConvDesc desc, int32_t spatial, const int32_t* padding, const int32_t* stride, const int32_t* dilation,          \
     int32_t mode, DataType compute))                                                                                 \
  F(Status, cudnnSetConvolutionGroupCount, (ConvDesc desc, int32_t groups))                                           \
  F(Status, cudnnSetConvolutionMathType, (ConvDesc desc, int32_t math))                                               \
  F(Status, cudnnDestroyConvolutionDescriptor, (ConvDesc desc))                                                       \
  F(Status, cudnnGetConvolutionForwardAlgorithm_v7,                                                                   \
    (Handle handle, TensorDesc x, FilterDesc w, ConvDesc conv, TensorDesc y, int32_t wanted, int32_t * count,         \
     AlgorithmPerf * results))                                                                                        \
  F(Status, cudnnGetConvolutionBackwardDataAlgorithm_v7,                                                              \
    (Handle handle, FilterDesc w, TensorDesc dy, ConvDesc conv, TensorDesc dx, int32_t wanted, int32_t * count,       \
     AlgorithmPerf * results))                                                                                        \
  F(Status, cudnnGetConvolutionBackwardFilterAlgorithm_v7,                                                            \
    (Handle handle, TensorDesc x, TensorDesc dy, ConvDesc conv, FilterDesc dw, int32_t wanted, int32_t * count,       \
     AlgorithmPerf * results))                                                                                        \
  F(Status, cudnnConvolutionForward,                                                                                  \
    (Handle handle, const void* alpha, TensorDesc x_desc, const void* x, FilterDesc w_desc, const void* w,            \
     ConvDesc conv, int32_t algorithm, void* workspace, size_t workspace_bytes, const void* beta, TensorDesc y_desc,  \
     void* y))                                                                                                        \
  F(Status, cudnnConvolutionBackwardData,                                                                             \
    (Handle handle, const void* alpha, FilterDesc w_desc, const void* w, TensorDesc dy_desc, const void* dy,          \
     ConvDesc conv, int32_t algorithm, void* workspace, size_t workspace_bytes, const void* beta, TensorDesc dx_desc, \
     void* dx))                                                                                                       \
  F(Status, cudnnConvolutionBackwardFilter,                                                                           \
    (Handle handle, const void* alpha, TensorDesc x_desc, const void* x, TensorDesc dy_desc, const void* dy,          \
     ConvDesc conv, int32_t algorithm, void* workspace, size_t workspace_bytes, const void* beta, FilterDesc dw_desc, \
     void* dw))

struct Functions {
#define F(RESULT, NAME, PARAMETERS) RESULT(*NAME) PARAMETERS = nullptr;
  TENSORD_CUDNN_FUNCTIONS(F)
#undef F
};

inline constexpr char kFile[] = "libcudnn.so.9";

}  // namespace tensord::cuda::cudnn
