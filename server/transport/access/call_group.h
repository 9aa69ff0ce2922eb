#pragma once

#include <string_view>

namespace tensord::server {

// The groups of calls that access is given to, named as Triton's --grpc-restricted-protocol names them.
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
