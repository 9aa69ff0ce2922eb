#include "server/transport/calls/shared_memory_calls.h"

#include "server/transport/grpc/unary_call.h"

namespace tensord::server {
namespace {

using namespace inference;  // the protocol's messages only

void list_regions(const SharedRegions& regions, const std::string& name, SystemSharedMemoryStatusResponse& response) {
  for (const SystemRegion::Place& place : regions.list(name)) {
    auto& region = (*response.mutable_regions())[place.name];
    region.set_name(place.name);
    region.set_key(place.key);
    region.set_offset(place.offset);
    region.set_byte_size(place.size_bytes);
  }
}

template <class Region>
void forget_regions(SharedRegions& regions, const std::string& name) {
  if (name.empty()) {
    regions.remove_all<Region>();
  } else {
    regions.remove<Region>(name);
  }
}

void wait_system_calls(ServerState& state, InferenceService& service, CallQueue queue) {
  wait_unary<SystemSharedMemoryStatusRequest, SystemSharedMemoryStatusResponse>(
      queue, CallGroup::kSharedMemory, TENSORD_START(service, SystemSharedMemoryStatus),
      [&state](const auto& request, auto& response) { list_regions(state.shared_memory, request.name(), response); });
  wait_unary<SystemSharedMemoryRegisterRequest, SystemSharedMemoryRegisterResponse>(
      queue, CallGroup::kSharedMemory, TENSORD_START(service, SystemSharedMemoryRegister),
      [&state](const auto& request, auto&) {
        state.shared_memory.add({.name = request.name(),
                                 .key = request.key(),
                                 .offset = request.offset(),
                                 .size_bytes = request.byte_size()});
      });
  wait_unary<SystemSharedMemoryUnregisterRequest, SystemSharedMemoryUnregisterResponse>(
      queue, CallGroup::kSharedMemory, TENSORD_START(service, SystemSharedMemoryUnregister),
      [&state](const auto& request, auto&) { forget_regions<SystemRegion>(state.shared_memory, request.name()); });
}

void list_regions(const SharedRegions& regions, const std::string& name, CudaSharedMemoryStatusResponse& response) {
  for (const CudaRegion::Place& place : regions.list<CudaRegion>(name)) {
    auto& region = (*response.mutable_regions())[place.name];
    region.set_name(place.name);
    region.set_device_id(static_cast<uint64_t>(place.device_id));
    region.set_byte_size(place.size_bytes);
  }
}

// Without a GPU the status is empty and unregistering does nothing: clients call both before they register a region.
void wait_cuda_calls(ServerState& state, InferenceService& service, CallQueue queue) {
  wait_unary<CudaSharedMemoryStatusRequest, CudaSharedMemoryStatusResponse>(
      queue, CallGroup::kSharedMemory, TENSORD_START(service, CudaSharedMemoryStatus),
      [&state](const auto& request, auto& response) { list_regions(state.shared_memory, request.name(), response); });
  wait_unary<CudaSharedMemoryRegisterRequest, CudaSharedMemoryRegisterResponse>(
      queue, CallGroup::kSharedMemory, TENSORD_START(service, CudaSharedMemoryRegister),
      [&state](const auto& request, auto&) {
        state.shared_memory.add<CudaRegion>({.name = request.name(),
                                             .handle = request.raw_handle(),
                                             .device_id = request.device_id(),
                                             .size_bytes = request.byte_size()});
      });
  wait_unary<CudaSharedMemoryUnregisterRequest, CudaSharedMemoryUnregisterResponse>(
      queue, CallGroup::kSharedMemory, TENSORD_START(service, CudaSharedMemoryUnregister),
      [&state](const auto& request, auto&) { forget_regions<CudaRegion>(state.shared_memory, request.name()); });
}

}  // namespace

void wait_shared_memory_calls(ServerState& state, InferenceService& service, CallQueue queue) {
  wait_system_calls(state, service, queue);
  wait_cuda_calls(state, service, queue);
}

}  // namespace tensord::server
