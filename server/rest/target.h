#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "server/http/message.h"
#include "server/transport/access/call_group.h"

namespace tensord::server {

// Length of the JSON part of a body. Binary tensors follow it.
inline constexpr const char* kJsonLengthHeader = "Inference-Header-Content-Length";

// The calls of the REST protocol.
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

// A parsed path.
struct RestTarget {
  RestCall call = RestCall::kServerMetadata;
  CallGroup group = CallGroup::kMetadata;
  std::string_view methods;  // "GET", "POST", "GET, POST"
  std::string name;          // of the model or region; empty if the path names none
  std::string version;       // empty if the path names none
  bool names_repository = false;

  bool takes(std::string_view method) const;
};

// Returns nullopt if the protocol has no such path. Health paths belong to WebHandler.
std::optional<RestTarget> parse_target(std::string_view path);

// Whether the body is an image file and nothing else: the Content-Type is image/…, and no header says where JSON ends.
bool is_image_body(const HttpHead& head);

}  // namespace tensord::server
