#include "server/transport/access.h"

#include <string_view>

#include "core/base/error.h"

namespace tensord::server {
namespace {

// Looks at every byte, so that the time says nothing about where two texts differ.
bool is_same_secret(std::string_view given, std::string_view wanted) {
  unsigned difference = given.size() == wanted.size() ? 0 : 1;
  for (size_t i = 0; i < given.size(); ++i) {
    difference |= static_cast<unsigned char>(given[i]) ^
                  static_cast<unsigned char>(wanted[wanted.empty() ? 0 : i % wanted.size()]);
  }
  return difference == 0;
}

}  // namespace

const char* to_string(CallGroup group) {
  switch (group) {
    case CallGroup::kHealth: return "health";
    case CallGroup::kMetadata: return "metadata";
    case CallGroup::kInference: return "inference";
    case CallGroup::kModelRepository: return "model-repository";
    case CallGroup::kSharedMemory: return "shared-memory";
    case CallGroup::kModelConfig: return "model-config";
    case CallGroup::kStatistics: return "statistics";
    case CallGroup::kTrace: return "trace";
    case CallGroup::kLogging: return "logging";
    case CallGroup::kTraining: return "training";
  }
  return "";
}

grpc::Status AccessPolicy::check(const grpc::ServerContextBase& context, CallGroup group) const {
  const auto rule = rules_.find(group);
  if (rule == rules_.end()) return grpc::Status::OK;
  const auto [first, last] = context.client_metadata().equal_range(rule->second.header);
  for (auto header = first; header != last; ++header) {
    if (is_same_secret({header->second.data(), header->second.size()}, rule->second.value)) return grpc::Status::OK;
  }
  return {grpc::StatusCode::PERMISSION_DENIED,
          concat("This protocol is restricted, expecting header '", rule->second.header, "'")};
}

}  // namespace tensord::server
