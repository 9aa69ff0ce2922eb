#pragma once

#include <string_view>

namespace tensord::server {

// Groups of calls for access control, with the names of Triton's --grpc-restricted-protocol.
enum class CallGroup {
  kHealth,
  kMetadata,
  kInference,
  kModelRepository,
  kSharedMemory,
  kModelConfig,
  kStatistics,
  kTrace,
  kLogging,
  kTraining,
  kTrainingHosts,
};
inline constexpr int kCallGroups = 11;
const char* to_string(CallGroup group);  // "model-repository"
// Throws Error{kInvalidArgument}.
CallGroup parse_call_group(std::string_view name);

}  // namespace tensord::server
