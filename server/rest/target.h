#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "server/transport/access/call_group.h"

namespace tensord::server {

// How many bytes of a body are JSON; tensors are behind it.
inline constexpr const char* kJsonLengthHeader = "Inference-Header-Content-Length";

// A call of the REST protocol.
enum class RestCall {
  kServerMetadata,
  kModelMetadata,
  kModelConfig,
  kStatistics,
  kInfer,
  kGenerate,
  kGenerateStream,
  kIndex,
  kLoad,
  kUnload,
  kSystemMemoryStatus,
  kSystemMemoryRegister,
  kSystemMemoryUnregister,
  kCudaMemoryStatus,
  kCudaMemoryRegister,
  kCudaMemoryUnregister,
  kTraceSetting,
  kLogSettings,
  kOpenApi,
};

// What a path names.
struct RestTarget {
  RestCall call = RestCall::kServerMetadata;
  CallGroup group = CallGroup::kMetadata;
  std::string_view methods;  // "GET", "POST", "GET, POST"
  std::string name;          // of the model, or of the region; empty: none
  std::string version;       // empty: none
  bool names_repository = false;

  bool takes(std::string_view method) const;
};

// None: the protocol has no such path. Health is the web's.
std::optional<RestTarget> parse_target(std::string_view path);

}  // namespace tensord::server
