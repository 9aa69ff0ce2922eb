#include "server/repository/load_planner.h"

#include <algorithm>
#include <set>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/nearest.h"
#include "server/config/pbtxt/model_config_text.h"
#include "server/repository/folder/config_completeness.h"

namespace tensord::server {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxConfigBytes = 1 << 20;
constexpr const char* kWeightNames[] = {"weights.safetensors", "weights.pt"};

// The version of a file that holds weights only, such as "2/weights.pt"; otherwise 0.
int64_t version_of_weights(const std::string& path) {
  const size_t slash = path.find('/');
  const std::string file = path.substr(slash + 1);  // the whole path if it has no folder
  const bool is_weights =
      std::any_of(std::begin(kWeightNames), std::end(kWeightNames), [&](const char* name) { return file == name; });
  return is_weights ? version_number(path.substr(0, slash)) : 0;
}

// Adds a version to a layout and keeps the versions that the policy then selects.
void add_version_file(ModelLayout& layout, int64_t number, const fs::path& file) {
  std::erase_if(layout.versions, [&](const auto& version) { return version.number == number; });
  const auto place = std::ranges::lower_bound(layout.versions, number, {}, &ModelLayout::Version::number);
  layout.versions.insert(place, {.number = number, .file = file, .weights = {}, .error = {}});
  const ModelConfig& config = layout.config;
  if (config.version_policy == ModelConfig::VersionPolicy::kSpecific) {
    const auto& wanted = config.specific_versions;
    check(std::find(wanted.begin(), wanted.end(), number) != wanted.end(), "model '", layout.name,
          "': its version_policy does not name version ", number);
  } else if (config.version_policy == ModelConfig::VersionPolicy::kLatest) {
    while (layout.versions.size() > config.latest_versions) layout.versions.erase(layout.versions.begin());
    check(layout.versions.front().number <= number, "model '", layout.name,
          "': its version_policy wants later versions than ", number);
  }
}

}  // namespace

bool LoadRequest::has_weights_alone() const {
  return !config && files.size() == 1 && version_of_weights(files.begin()->first) > 0;
}

void check_model_name(const std::string& name) {
  constexpr const char* kSpaces = " \t\n\r\f\v";
  const size_t first = name.find_first_not_of(kSpaces);
  check(first != std::string::npos, "Model name cannot be empty. Please enter a valid name to deploy.");
  const std::string trimmed = name.substr(first, name.find_last_not_of(kSpaces) + 1 - first);
  check(trimmed != ".." && name.find('/') == std::string::npos, "invalid model name '", name,
        "', model name must not contain path traversal characters");
  if (is_plain_name(name)) return;
  fail(ErrorCode::kNotFound, "failed to load '", name,
       "', failed to poll from model repository: no model can have this name");
}

std::string LoadPlanner::root_of(const std::string& name) const {
  const std::string root = models_.read(name, [](const ModelEntry& entry) { return entry.root; });
  return root.empty() ? settings_.roots.front() : root;
}

ModelLayout LoadPlanner::scan(const std::string& root, const std::string& name, const ModelConfig* config) const {
  ModelLayout model = scan_model(root, name, config, settings_.config_name);
  if (settings_.needs_complete_configs) check_config_completeness(model);
  return model;
}

VersionSource LoadPlanner::source_of(const std::string& name, int64_t version) const {
  if (version == 0) version = std::stoll(models_.find(name, "")->version());
  if (!models_.has(name)) fail(ErrorCode::kNotFound, "Request for unknown model: '", name, "' is not found");
  const fs::path served = models_.read(name, [&](const ModelEntry& entry) {
    return entry.handle_of(version) ? entry.versions.at(version).served.file : fs::path();
  });
  if (!served.empty()) return {served, version};
  try {
    return {version_file(scan(root_of(name), name), version), version};
  } catch (const Error& error) {
    fail(error.code(), "Request for unknown model: '", name, "' version ", version, " is not found: ", error.what());
  }
}

LoadPlan LoadPlanner::of_folder(const std::string& root, const std::string& name) const {
  LoadPlan plan;
  plan.stamp = stamp_model(fs::path(root) / name);
  plan.layout = scan(root, name);
  plan.is_forced = models_.read(name, [](const ModelEntry& entry) { return entry.plan.is_override(); });
  return plan;
}

bool LoadPlanner::keeps_what_is_served(const LoadRequest& request) const {
  if (request.config || !request.files.empty()) return false;
  return models_.read(request.name, [](const ModelEntry& entry) {
    return entry.is_served() && entry.plan.override_config && !entry.plan.override_folders.empty();
  });
}

bool LoadPlanner::is_served(const LoadPlan& plan) const {
  if (plan.is_forced || plan.forced_version) return false;
  return models_.read(plan.layout.name, [&](const ModelEntry& entry) { return entry.serves_all_of(plan); });
}

std::string LoadPlanner::find_root(const std::string& name) const {
  std::string root;
  for (const std::string& candidate : settings_.roots) {
    std::error_code error;
    if (!fs::is_directory(fs::path(candidate) / name, error)) continue;
    check(root.empty(), kTwoRepositories);
    root = candidate;
  }
  return root;
}

std::vector<std::string> LoadPlanner::known_names() const {
  std::set<std::string> names;
  for (const auto& [name, roots] : list_models(settings_.roots)) names.insert(name);
  models_.read([&](const ModelTable::Models& models) {
    for (const auto& [name, entry] : models) names.insert(name);
    return true;
  });
  return {names.begin(), names.end()};
}

std::shared_ptr<const ModelConfig> LoadPlanner::config_for(const LoadRequest& request, const std::string& shared_stamp,
                                                           const LoadPlan* earlier) const {
  if (request.config) {
    if (earlier) return earlier->override_config;
    check(request.config->size() <= kMaxConfigBytes, "parameter 'config' is larger than ", kMaxConfigBytes, " bytes");
    try {
      // The log names a valid override by this too, so what makes an error of it comes after.
      const std::string origin = concat("parameter 'config' of model '", request.name, "'");
      return std::make_shared<const ModelConfig>(parse_model_config_json(*request.config, origin));
    } catch (const Error& error) {
      throw Error(error.code(), concat("Invalid config override: ", error.what()));
    }
  }
  return models_.read(request.name, [&](const ModelEntry& entry) {
    // An override sent by a client is kept until config.pbtxt changes on disk.
    const bool is_same = entry.is_served() && entry.plan.stamp.shared == shared_stamp;
    return is_same ? entry.plan.override_config : nullptr;
  });
}

LoadPlan LoadPlanner::of_request(const LoadRequest& request, const LoadPlan* earlier) {
  if (request.has_weights_alone()) return with_weights(request);
  try {
    return of_whole(request, earlier);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kInvalidArgument && error.code() != ErrorCode::kUnimplemented) throw;
    const std::string text =
        concat("failed to load '", request.name, "', failed to poll from model repository: ", error.what());
    log(LogLevel::kWarning, "load refused", {{"model", request.name}, {"reason", text}});
    throw Error(error.code(), text);
  }
}

LoadPlan LoadPlanner::of_whole(const LoadRequest& request, const LoadPlan* earlier) {
  const std::string& name = request.name;
  check(request.files.empty() || request.config, "Load parameter 'config' must be specified for model file override");
  LoadPlan plan;
  const std::string root = request.files.empty() ? find_root(name) : "";
  if (!root.empty()) plan.stamp = stamp_model(fs::path(root) / name);
  plan.override_config = config_for(request, plan.stamp.shared, earlier);
  plan.is_forced = request.config.has_value();
  if (!request.files.empty()) {
    plan.override_folders.push_back(overrides_.add(name, request.files));
    plan.layout = scan(plan.override_folders[0]->root().string(), name, plan.override_config.get());
    return plan;
  }
  if (root.empty()) {
    fail(ErrorCode::kNotFound, "failed to load '", name,
         "', failed to poll from model repository: no model has this name", right_names(name, known_names()));
  }
  try {
    plan.layout = scan(root, name, plan.override_config.get());
  } catch (const Error& error) {
    fail(ErrorCode::kInvalidArgument, error.what());
  }
  return plan;
}

LoadPlan LoadPlanner::with_weights(const LoadRequest& request) {
  const auto& [path, weights] = *request.files.begin();
  const int64_t number = version_of_weights(path);
  const VersionSource base = source_of(request.name, 0);
  LoadPlan plan = models_.plan_of_served(request.name).value();  // the caller holds the lock of the name
  if (plan.layout.config.is_ensemble() || !settings_.write_weights) {
    fail(ErrorCode::kUnimplemented, "file:", path, ": model '", request.name, "' has no weights of its own");
  }
  const auto folder = overrides_.add(request.name, request.files, fs::file_size(base.file));
  const fs::path brought = folder->root() / request.name / path;
  const fs::path archive = brought.parent_path() / model_file_name(plan.layout, format_file_name(base.file));
  settings_.write_weights(base.file.string(), brought.string(), archive.string());
  fs::remove(brought);
  add_version_file(plan.layout, number, archive);
  plan.override_folders.push_back(folder);
  plan.is_forced = false;
  plan.forced_version = number;
  return plan;
}

}  // namespace tensord::server
