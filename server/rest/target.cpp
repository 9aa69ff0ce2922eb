#include "server/rest/target.h"

#include <algorithm>
#include <vector>

#include "core/base/ascii.h"

namespace tensord::server {
namespace {

using Segments = std::vector<std::string_view>;

Segments split(std::string_view path) {
  Segments segments;
  while (path.starts_with('/')) {
    path.remove_prefix(1);
    const size_t slash = path.find('/');
    segments.push_back(path.substr(0, slash));
    path = slash == std::string_view::npos ? std::string_view() : path.substr(slash);
  }
  return segments;
}

struct Action {
  std::string_view name;
  RestCall call;
  CallGroup group;
  std::string_view methods;
};

constexpr std::string_view kGet = "GET", kPost = "POST", kBoth = "GET, POST";

// Actions that may follow a model's name.
constexpr Action kModelActions[] = {
    {"", RestCall::kModelMetadata, CallGroup::kMetadata, kGet},
    {"config", RestCall::kModelConfig, CallGroup::kModelConfig, kGet},
    {"stats", RestCall::kStatistics, CallGroup::kStatistics, kGet},
    {"infer", RestCall::kInfer, CallGroup::kInference, kPost},
    {"generate", RestCall::kGenerate, CallGroup::kInference, kPost},
    {"generate_stream", RestCall::kGenerateStream, CallGroup::kInference, kPost},
    {"trace/setting", RestCall::kTraceSetting, CallGroup::kTrace, kBoth},
};
// Actions that may follow the name of a shared-memory region.
constexpr Action kSystemActions[] = {
    {"status", RestCall::kSystemMemoryStatus, CallGroup::kSharedMemory, kGet},
    {"register", RestCall::kSystemMemoryRegister, CallGroup::kSharedMemory, kPost},
    {"unregister", RestCall::kSystemMemoryUnregister, CallGroup::kSharedMemory, kPost},
};
constexpr Action kCudaActions[] = {
    {"status", RestCall::kCudaMemoryStatus, CallGroup::kSharedMemory, kGet},
    {"register", RestCall::kCudaMemoryRegister, CallGroup::kSharedMemory, kPost},
    {"unregister", RestCall::kCudaMemoryUnregister, CallGroup::kSharedMemory, kPost},
};
constexpr Action kServerActions[] = {
    {"", RestCall::kServerMetadata, CallGroup::kMetadata, kGet},
    {"trace/setting", RestCall::kTraceSetting, CallGroup::kTrace, kBoth},
    {"logging", RestCall::kLogSettings, CallGroup::kLogging, kBoth},
    {"openapi.json", RestCall::kOpenApi, CallGroup::kMetadata, kGet},
    {"models/stats", RestCall::kStatistics, CallGroup::kStatistics, kGet},
    {"repository/index", RestCall::kIndex, CallGroup::kModelRepository, kPost},
};
constexpr Action kRepositoryActions[] = {
    {"load", RestCall::kLoad, CallGroup::kModelRepository, kPost},
    {"unload", RestCall::kUnload, CallGroup::kModelRepository, kPost},
};

std::string joined(const Segments& segments, size_t begin) {
  std::string text;
  for (size_t i = begin; i < segments.size(); ++i) {
    if (i > begin) text += '/';
    text += segments[i];
  }
  return text;
}

template <size_t N>
std::optional<RestTarget> find_action(const Action (&actions)[N], const std::string& name) {
  for (const Action& action : actions) {
    if (action.name != name) continue;
    RestTarget target;
    target.call = action.call;
    target.group = action.group;
    target.methods = action.methods;
    return target;
  }
  return std::nullopt;
}

// models/NAME[/versions/VERSION][/ACTION]
std::optional<RestTarget> model_target(const Segments& segments) {
  size_t next = 2;
  std::string version;
  if (segments.size() > 3 && segments[2] == "versions") {
    version = segments[3];
    if (version.empty()) return std::nullopt;
    next = 4;
  }
  std::optional<RestTarget> target = find_action(kModelActions, joined(segments, next));
  if (!target || segments[1].empty()) return std::nullopt;
  if (target->call == RestCall::kTraceSetting && !version.empty()) return std::nullopt;
  target->name = segments[1];
  target->version = std::move(version);
  return target;
}

// systemsharedmemory[/region/NAME]/ACTION
template <size_t N>
std::optional<RestTarget> memory_target(const Action (&actions)[N], const Segments& segments) {
  const bool has_name = segments.size() == 4 && segments[1] == "region" && !segments[2].empty();
  if (!has_name && segments.size() != 2) return std::nullopt;
  std::optional<RestTarget> target = find_action(actions, std::string(segments.back()));
  if (target && has_name) target->name = segments[2];
  const bool needs_name = target && target->methods == kPost && segments.back() == "register";
  return needs_name && !has_name ? std::nullopt : target;
}

// repository[/REPOSITORY]/models/NAME/ACTION, repository/REPOSITORY/index
std::optional<RestTarget> repository_target(Segments segments) {
  const bool names_repository = segments.size() == 5 || (segments.size() == 3 && segments[2] == "index");
  if (names_repository) segments.erase(segments.begin() + 1);
  std::optional<RestTarget> target;
  if (segments.size() == 2 && segments[1] == "index") {
    target = find_action(kServerActions, "repository/index");
  } else if (segments.size() == 4 && segments[1] == "models" && !segments[2].empty()) {
    target = find_action(kRepositoryActions, std::string(segments[3]));
    if (target) target->name = segments[2];
  }
  if (target) target->names_repository = names_repository;
  return target;
}

}  // namespace

bool RestTarget::takes(std::string_view method) const {
  return methods == kBoth ? method == kGet || method == kPost : method == methods;
}

std::optional<RestTarget> parse_target(std::string_view path) {
  Segments segments = split(path);
  if (segments.empty() || segments[0] != "v2") return std::nullopt;
  segments.erase(segments.begin());
  if (std::optional<RestTarget> target = find_action(kServerActions, joined(segments, 0))) return target;
  if (segments.size() < 2) return std::nullopt;
  if (segments[0] == "models") return model_target(segments);
  if (segments[0] == "systemsharedmemory") return memory_target(kSystemActions, segments);
  if (segments[0] == "cudasharedmemory") return memory_target(kCudaActions, segments);
  if (segments[0] == "repository") return repository_target(std::move(segments));
  return std::nullopt;
}

bool is_image_body(const HttpHead& head) {
  constexpr std::string_view kImage = "image/";
  const std::string_view type = head.header("Content-Type");
  const auto is_same = [](char a, char b) { return to_ascii_lower(a) == b; };
  return std::ranges::equal(type.substr(0, kImage.size()), kImage, is_same) && head.header(kJsonLengthHeader).empty();
}

}  // namespace tensord::server
