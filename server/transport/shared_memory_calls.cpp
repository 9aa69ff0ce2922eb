#include "server/transport/shared_memory_calls.h"

namespace tensord::server {
namespace {

using namespace inference;  // the messages, nothing else

void list_regions(const SharedRegions& regions, const std::string& name, SystemSharedMemoryStatusResponse& response) {
  for (const SharedRegion::Place& place : regions.list(name)) {
    auto& region = (*response.mutable_regions())[place.name];
    region.set_name(place.name);
    region.set_key(place.key);
    region.set_offset(place.offset);
    region.set_byte_size(place.size_bytes);
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
      [&state](const auto& request, auto&) {
        if (request.name().empty()) {
          state.shared_memory.remove_all();
        } else {
          state.shared_memory.remove(request.name());
        }
      });
}

}  // namespace

void wait_shared_memory_calls(ServerState& state, InferenceService& service, CallQueue queue) {
  wait_system_calls(state, service, queue);
  // There are none to list or to forget, which clients ask for before they register any.
  wait_unary<CudaSharedMemoryStatusRequest, CudaSharedMemoryStatusResponse>(
      queue, CallGroup::kSharedMemory, TENSORD_START(service, CudaSharedMemoryStatus), [](const auto& request, auto&) {
        if (request.name().empty()) return;
        fail(ErrorCode::kNotFound, "Unable to find cuda shared memory region: '", request.name(), "'");
      });
  wait_unary<CudaSharedMemoryRegisterRequest, CudaSharedMemoryRegisterResponse>(
      queue, CallGroup::kSharedMemory, TENSORD_START(service, CudaSharedMemoryRegister),
      [](const auto& request, auto&) {
        fail(ErrorCode::kUnimplemented, "failed to register CUDA shared memory region: '", request.name(),
             "', GPUs not supported");
      });
  wait_unary<CudaSharedMemoryUnregisterRequest, CudaSharedMemoryUnregisterResponse>(
      queue, CallGroup::kSharedMemory, TENSORD_START(service, CudaSharedMemoryUnregister), [](const auto&, auto&) {});
}

}  // namespace tensord::server
