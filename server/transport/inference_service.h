#pragma once

#include "protos/inference.grpc.pb.h"

namespace tensord::server {

// ModelInfer and ModelStreamInfer arrive as bytes, everything else as messages.
namespace inference_service {
using S = inference::GRPCInferenceService;
using Core = S::WithAsyncMethod_ServerLive<S::WithAsyncMethod_ServerReady<
    S::WithAsyncMethod_ModelReady<S::WithAsyncMethod_ServerMetadata<S::WithAsyncMethod_ModelMetadata<S::Service>>>>>;
using Models = S::WithAsyncMethod_ModelConfig<S::WithAsyncMethod_ModelStatistics<S::WithAsyncMethod_RepositoryIndex<
    S::WithAsyncMethod_RepositoryModelLoad<S::WithAsyncMethod_RepositoryModelUnload<Core>>>>>;
using SystemMemory = S::WithAsyncMethod_SystemSharedMemoryStatus<
    S::WithAsyncMethod_SystemSharedMemoryRegister<S::WithAsyncMethod_SystemSharedMemoryUnregister<Models>>>;
using CudaMemory = S::WithAsyncMethod_CudaSharedMemoryStatus<
    S::WithAsyncMethod_CudaSharedMemoryRegister<S::WithAsyncMethod_CudaSharedMemoryUnregister<SystemMemory>>>;
using Settings = S::WithAsyncMethod_TraceSetting<S::WithAsyncMethod_LogSettings<CudaMemory>>;
}  // namespace inference_service

using InferenceService = inference::GRPCInferenceService::WithRawMethod_ModelInfer<
    inference::GRPCInferenceService::WithRawMethod_ModelStreamInfer<inference_service::Settings>>;

}  // namespace tensord::server
