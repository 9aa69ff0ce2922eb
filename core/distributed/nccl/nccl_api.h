#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

// Our own declarations of the NCCL functions in use: libnccl.so.2 is opened at run time, and no build needs NCCL. Names
// and values are those of NCCL's interface since 2.14, the first version whose calls can all be non-blocking.
namespace tensord::distributed {

enum class NcclResult : int {
  kSuccess = 0,
  kUnhandledCudaError = 1,
  kSystemError = 2,
  kInternalError = 3,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kRemoteError = 6,
  kInProgress = 7,
  kTimeout = 8,
};
enum class NcclType : int {
  kInt8 = 0,
  kUint8 = 1,
  kInt32 = 2,
  kInt64 = 4,
  kFloat16 = 6,
  kFloat32 = 7,
  kFloat64 = 8,
  kBfloat16 = 9,
};
// A built-in op, or the value of a created one.
enum class NcclOp : int { kSum = 0, kProd = 1, kMax = 2, kMin = 3, kAvg = 4 };

struct NcclUniqueId {
  char bytes[128];
};
// The struct of version 2.14. The library reads only as much as `size` says.
struct NcclConfig {
  size_t size = sizeof(NcclConfig);
  unsigned magic = 0xcafebeef;
  unsigned version = 21400;
  int is_blocking = 0;
};
using NcclComm = void*;
using NcclStream = void*;

constexpr int kNcclScalarOnHost = 1;
constexpr int kMinNcclVersion = 21400;

// "2.14.3" for 21403.
std::string nccl_version_text(int version);

struct NcclApi {
  NcclResult (*get_version)(int* version);
  const char* (*get_error_string)(NcclResult result);
  const char* (*get_last_error)(NcclComm comm);
  NcclResult (*get_unique_id)(NcclUniqueId* id);
  NcclResult (*comm_init)(NcclComm* comm, int size, NcclUniqueId id, int rank, NcclConfig* config);
  NcclResult (*comm_finalize)(NcclComm comm);
  NcclResult (*comm_destroy)(NcclComm comm);
  NcclResult (*comm_abort)(NcclComm comm);
  NcclResult (*comm_async_error)(NcclComm comm, NcclResult* result);
  NcclResult (*op_premul_sum)(NcclOp* op, void* scalar, NcclType type, int residence, NcclComm comm);
  NcclResult (*op_destroy)(NcclOp op, NcclComm comm);
  NcclResult (*group_start)();
  NcclResult (*group_end)();
  NcclResult (*all_reduce)(const void* in, void* out, size_t count, NcclType, NcclOp, NcclComm, NcclStream);
  NcclResult (*reduce)(const void* in, void* out, size_t count, NcclType, NcclOp, int root, NcclComm, NcclStream);
  NcclResult (*broadcast)(const void* in, void* out, size_t count, NcclType, int root, NcclComm, NcclStream);
  NcclResult (*all_gather)(const void* in, void* out, size_t count, NcclType, NcclComm, NcclStream);
  NcclResult (*reduce_scatter)(const void* in, void* out, size_t count, NcclType, NcclOp, NcclComm, NcclStream);
  NcclResult (*send)(const void* in, size_t count, NcclType, int peer, NcclComm, NcclStream);
  NcclResult (*recv)(void* out, size_t count, NcclType, int peer, NcclComm, NcclStream);
};

// Candidate paths of the library: TENSORD_NCCL, or else the bare name (the system's search path) and the folders of
// Python wheels (nvidia/nccl/lib beside the package that contains this code, and of the virtual environment).
std::vector<std::string> nccl_places();

// Opens the first library found and never closes it. Throws Error{kUnimplemented} that lists the reason for each place:
// missing, lacks a function, or too old.
NcclApi open_nccl(const std::vector<std::string>& places);

}  // namespace tensord::distributed
