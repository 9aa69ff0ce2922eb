#pragma once

#include <grpcpp/grpcpp.h>

#include <map>
#include <string>

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
};
const char* to_string(CallGroup group);  // "model-repository"

// Which header a client has to send for calls of a group. Immutable and thread-safe.
class AccessPolicy {
 public:
  struct Rule {
    std::string header;  // lower case
    std::string value;
  };
  AccessPolicy() = default;
  explicit AccessPolicy(std::map<CallGroup, Rule> rules) : rules_(std::move(rules)) {}
  // OK, or PERMISSION_DENIED. Takes the same time for every wrong value.
  grpc::Status check(const grpc::ServerContextBase& context, CallGroup group) const;

 private:
  std::map<CallGroup, Rule> rules_;  // groups without one are open
};

}  // namespace tensord::server
