#pragma once

#include "protos/inference.grpc.pb.h"

namespace tensord::server {

// Every call arrives as bytes, which are decompressed here within limits (unpack.h).
namespace inference_service {
using S = inference::GRPCInferenceService;
using Core = S::WithRawMethod_ServerLive<S::WithRawMethod_ServerReady<
    S::WithRawMethod_ModelReady<S::WithRawMethod_ServerMetadata<S::WithRawMethod_ModelMetadata<S::Service>>>>>;
using Models = S::WithRawMethod_ModelConfig<S::WithRawMethod_ModelStatistics<S::WithRawMethod_RepositoryIndex<
    S::WithRawMethod_RepositoryModelLoad<S::WithRawMethod_RepositoryModelUnload<Core>>>>>;
using SystemMemory = S::WithRawMethod_SystemSharedMemoryStatus<
    S::WithRawMethod_SystemSharedMemoryRegister<S::WithRawMethod_SystemSharedMemoryUnregister<Models>>>;
using CudaMemory = S::WithRawMethod_CudaSharedMemoryStatus<
    S::WithRawMethod_CudaSharedMemoryRegister<S::WithRawMethod_CudaSharedMemoryUnregister<SystemMemory>>>;
using Settings = S::WithRawMethod_TraceSetting<S::WithRawMethod_LogSettings<CudaMemory>>;
}  // namespace inference_service

using InferenceService = inference::GRPCInferenceService::WithRawMethod_ModelInfer<
    inference::GRPCInferenceService::WithRawMethod_ModelStreamInfer<inference_service::Settings>>;

}  // namespace tensord::server
