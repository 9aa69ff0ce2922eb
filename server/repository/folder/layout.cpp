#include "server/repository/folder/layout.h"

#include <fcntl.h>
#include <stdio.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstring>
#include <map>

#include "core/base/atomic_file.h"
#include "core/base/error.h"
#include "core/base/read_whole_file.h"
#include "core/base/utf8.h"
#include "core/jit/importers/format.h"
#include "server/config/pbtxt/model_config_text.h"
#include "server/repository/folder/layout_hints.h"

namespace tensord::server {
namespace {

namespace fs = std::filesystem;

constexpr uintmax_t kMaxConfigBytes = 1 << 20;
constexpr const char* kWithdrawn = ".withdrawn";

bool is_inside(const fs::path& path, const fs::path& root) {
  return std::mismatch(root.begin(), root.end(), path.begin(), path.end()).first == root.end();
}

// The canonical path of a file in the repository; throws if it leads outside.
fs::path resolve(const fs::path& path, const fs::path& root) {
  std::error_code error;
  fs::path real = fs::canonical(path, error);
  if (error) fail(ErrorCode::kNotFound, path.string(), ": ", error.message());
  check(is_inside(real, root), path.string(), ": leads out of the model repository");
  return real;
}

}  // namespace

uint64_t ModelLayout::Version::file_bytes() const {
  std::error_code error;
  const uint64_t size = fs::file_size(file, error);
  return error ? 0 : size;
}

bool is_plain_name(const std::string& name) {
  if (name.empty() || name.size() > NAME_MAX || name[0] == '.' || !is_utf8(name)) return false;
  return std::none_of(name.begin(), name.end(), [](char c) {
    return c == '/' || c == '\\' || static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
  });
}

int64_t version_number(const std::string& name) {
  int64_t number = 0;  // also set if the number overflows or is missing
  const char* const end = std::from_chars(name.data(), name.data() + name.size(), number).ptr;
  const bool is_whole = end == name.data() + name.size() && name[0] != '0';
  return is_whole ? std::max<int64_t>(number, 0) : 0;
}

namespace {

// The number of a withdrawn version, named ".2.withdrawn"; 0 for other names.
int64_t withdrawn_number(const std::string& name) {
  if (!name.starts_with('.') || !name.ends_with(kWithdrawn)) return 0;
  return version_number(name.substr(1, name.size() - 1 - std::strlen(kWithdrawn)));
}

// The path of a file that config.pbtxt names, in the model's folder or in its subfolder `below`.
std::string side_file(const fs::path& folder, const char* below, const std::string& name, const fs::path& root,
                      const std::string& field) {
  check(is_plain_name(name), folder.string(), "/config.pbtxt: ", field, " '", name, "' is not a plain file name");
  const fs::path real = resolve(folder / below / name, root);
  check(fs::is_regular_file(real), real.string(), ": not a file");
  return real.string();
}

// As in Triton, warm-up data is in <model>/warmup and initial states are in <model>/initial_state.
void resolve_side_files(const fs::path& folder, const fs::path& root, ModelConfig& config) {
  for (ModelConfig::Warmup& warmup : config.warmups) {
    const std::string where = concat("model_warmup '", warmup.name, "': ");
    for (auto& [name, input] : warmup.inputs) {
      if (input.source != ModelConfig::Warmup::Source::kFile) continue;
      input.file = side_file(folder, "warmup", input.file, root, where + "input_data_file");
    }
    if (!warmup.recorded_file.empty()) {
      warmup.recorded_file = side_file(folder, "warmup", warmup.recorded_file, root, where + "recorded file");
    }
  }
  for (ModelConfig::TensorConfig& output : config.outputs) {
    if (output.label_filename.empty()) continue;
    output.label_filename = side_file(folder, "", output.label_filename, root, "label_filename");
  }
  if (!config.sequence_batching) return;
  for (SequenceBatchingConfig::State& state : config.sequence_batching->states) {
    if (state.initial_file.empty()) continue;
    state.initial_file = side_file(folder, "initial_state", state.initial_file, root, "initial_state data_file");
  }
}

bool is_there(const fs::path& file) {
  std::error_code error;
  return fs::exists(fs::symlink_status(file, error));
}

// Reads configs/<config_name>.pbtxt if the model has one, otherwise config.pbtxt.
ModelConfig read_config(const fs::path& folder, const fs::path& root, const std::string& config_name,
                        std::vector<std::string>& warnings) {
  fs::path file = folder / "configs" / concat(config_name, ".pbtxt");
  if (config_name.empty() || !is_there(file)) file = folder / "config.pbtxt";
  if (!is_there(file)) return {};
  const fs::path real = resolve(file, root);
  check(fs::is_regular_file(real), file.string(), ": not a file");
  check(fs::file_size(real) <= kMaxConfigBytes, file.string(), ": larger than ", kMaxConfigBytes, " bytes");
  const std::optional<std::string> text = read_whole_file(real.string());
  if (!text) fail(ErrorCode::kUnavailable, file.string(), ": cannot be read");
  return parse_model_config(*text, file.string(), &warnings);
}

// An ensemble computes nothing itself: the models of its steps have parameters of their own for that.
void warn_of_parameters(const ModelConfig& ensemble, std::vector<std::string>& warnings) {
  std::string without_effect;
  for (const ModelParameter& about : model_parameters()) {
    const std::string key(about.key);
    const bool is_heeded = key == "version_labels" || key == "warmup_requests";
    if (is_heeded || !ensemble.parameters.contains(key)) continue;
    without_effect += (without_effect.empty() ? "" : ", ") + key;
  }
  if (without_effect.empty()) return;
  warnings.push_back(
      concat("parameters ", without_effect, " have no effect on an ensemble; give them to the models of its steps"));
}

std::vector<int64_t> choose_versions(std::vector<int64_t> found, const ModelConfig& config,
                                     std::vector<std::string>& warnings) {
  std::sort(found.begin(), found.end());
  switch (config.version_policy) {
    case ModelConfig::VersionPolicy::kAll: break;
    case ModelConfig::VersionPolicy::kSpecific: {
      std::vector<int64_t> wanted = config.specific_versions;
      std::sort(wanted.begin(), wanted.end());
      wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
      std::erase_if(wanted, [&](int64_t number) {
        const bool is_there = std::binary_search(found.begin(), found.end(), number);
        if (!is_there) warnings.push_back(concat("version_policy names version ", number, ", which is not there"));
        return !is_there;
      });
      return wanted;
    }
    case ModelConfig::VersionPolicy::kLatest:
      if (found.size() > config.latest_versions) found.erase(found.begin(), found.end() - config.latest_versions);
  }
  return found;
}

}  // namespace

const std::vector<std::string>& default_file_names() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names{"model.pt"};
    for (const jit::ModelFormat* format : jit::model_formats()) names.emplace_back(format->file_name);
    return names;
  }();
  return kNames;
}

std::string model_file_name(const ModelLayout& model, const std::string& of_format) {
  return model.config.default_model_filename.empty() ? of_format : model.config.default_model_filename;
}

std::string format_file_name(const fs::path& file) {
  const jit::ModelFormat* const format = jit::find_format(file.string());
  return format ? format->file_name : default_file_names().front();
}

namespace {

// Name of the model file in a version's folder.
std::string find_file_name(const fs::path& version, const ModelConfig& config) {
  if (!config.default_model_filename.empty()) return config.default_model_filename;
  std::vector<std::string> found;
  for (const std::string& name : default_file_names()) {
    std::error_code error;
    if (fs::symlink_status(version / name, error).type() != fs::file_type::not_found) found.push_back(name);
  }
  check(found.size() < 2, version.string(), ": has '", found.empty() ? "" : found[0], "' and '",
        found.empty() ? "" : found.back(), "': say default_model_filename in config.pbtxt");
  return found.empty() ? default_file_names().front() : found[0];
}

}  // namespace

fs::path version_file(const ModelLayout& model, int64_t number) {
  const fs::path version = model.folder / std::to_string(number);
  // An ensemble consists of its configuration only.
  if (model.config.is_ensemble()) return resolve(version, model.root);
  const std::string name = find_file_name(version, model.config);
  const fs::path named = version / name;
  std::error_code error;
  if (fs::is_directory(version, error) && fs::symlink_status(named, error).type() == fs::file_type::not_found) {
    fail(ErrorCode::kNotFound, named.string(), " is not there; ", hint_for_file(version, name));
  }
  fs::path file = resolve(named, model.root);
  check(fs::is_regular_file(file), file.string(), ": not a file");
  return file;
}

namespace {

// The weights file next to a version's file after symlinks are resolved. Other weights in the version's own folder are
// an error, because which of the two is used would depend on how the file is opened.
fs::path weights_of(const fs::path& file, const fs::path& version, const fs::path& root) {
  const std::string beside = jit::weights_beside(file.string()), named = jit::weights_beside((version / "_").string());
  const fs::path weights = beside.empty() ? fs::path() : resolve(beside, root);
  check(named.empty() || resolve(named, root) == weights, named, ": lies in another folder than ", file.string(),
        ", to which the model's link leads");
  return weights;
}

void read_model(const fs::path& folder, const fs::path& root, const ModelConfig* config, const std::string& config_name,
                ModelLayout& model) {
  const fs::path real_folder = resolve(folder, root);
  model.root = root;
  model.folder = real_folder;
  model.config = config ? *config : read_config(real_folder, root, config_name, model.warnings);
  check(model.config.name.empty() || model.config.name == model.name, folder.string(),
        "/config.pbtxt: the model is named '", model.config.name, "', but its folder '", model.name, "'");
  if (model.config.is_ensemble()) warn_of_parameters(model.config, model.warnings);
  const std::string file_name = model_file_name(model, default_file_names().front());
  resolve_side_files(real_folder, root, model.config);
  check(is_plain_name(file_name), folder.string(), "/config.pbtxt: default_model_filename '", file_name,
        "' is not a plain file name");

  std::vector<int64_t> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(real_folder)) {
    const std::string name = entry.path().filename().string();
    if (const int64_t number = version_number(name)) found.push_back(number);
    model.largest_number = std::max(model.largest_number, withdrawn_number(name));
  }
  if (!found.empty()) model.largest_number = std::max(model.largest_number, std::ranges::max(found));
  for (const int64_t number : choose_versions(std::move(found), model.config, model.warnings)) {
    ModelLayout::Version version{.number = number, .file = {}, .weights = {}, .error = {}};
    try {
      version.file = version_file(model, number);
      if (!model.config.is_ensemble())
        version.weights = weights_of(version.file, model.folder / std::to_string(number), root);
    } catch (const Error& error) {
      version.file.clear();
      version.error = error.what();
    }
    model.versions.push_back(std::move(version));
  }
  if (model.versions.empty()) return;
  for (std::string& hint : hints_for_model(real_folder)) model.warnings.push_back(std::move(hint));
}

}  // namespace

ModelLayout scan_model(const std::string& root_text, const std::string& name, const ModelConfig* config,
                       const std::string& config_name) {
  check(is_plain_name(name), "model '", name, "': not a plain name");
  std::error_code error;
  const fs::path root = fs::canonical(root_text, error);
  if (error) fail(ErrorCode::kNotFound, "model repository ", root_text, ": ", error.message());
  ModelLayout model;
  model.name = name;
  read_model(root / name, root, config, config_name, model);
  return model;
}

int64_t take_next_version(const ModelLayout& model, const fs::path& folder) {
  for (int64_t number = model.largest_number + 1;; ++number) {
    const fs::path target = model.folder / std::to_string(number);
    if (renameat2(AT_FDCWD, folder.c_str(), AT_FDCWD, target.c_str(), RENAME_NOREPLACE) == 0) {
      sync_folder(model.folder.string());
      return number;
    }
    const int error = errno;
    if (error != EEXIST) fail(ErrorCode::kUnavailable, target.string(), ": cannot be made: ", std::strerror(error));
  }
}

fs::path withdraw_version(const ModelLayout& model, int64_t number) {
  const fs::path target = model.folder / concat(".", number, kWithdrawn);
  std::error_code error;
  fs::rename(model.folder / std::to_string(number), target, error);
  if (error) fail(ErrorCode::kUnavailable, target.string(), ": cannot be made: ", error.message());
  sync_folder(model.folder.string());
  return target;
}

void restore_version(const ModelLayout& model, int64_t number, const fs::path& withdrawn) {
  std::error_code error;
  fs::rename(withdrawn, model.folder / std::to_string(number), error);
  if (error) fail(ErrorCode::kUnavailable, withdrawn.string(), ": cannot be moved back: ", error.message());
  sync_folder(model.folder.string());
}

fs::path repository_folder(const std::string& root) {
  std::error_code error;
  const fs::path folder = fs::canonical(root, error);
  if (error || !fs::is_directory(folder)) {
    fail(ErrorCode::kNotFound, "model repository ", root, " is not a folder that can be read");
  }
  return folder;
}

namespace {

// Canonical path of a repository, and the sorted names of its models.
fs::path open_repository(const std::string& root_text, std::vector<std::string>& names) {
  std::error_code error;
  const fs::path root = repository_folder(root_text);
  fs::directory_iterator entries(root, error);
  for (; entries != fs::directory_iterator(); entries.increment(error)) {
    const std::string name = entries->path().filename().string();
    std::error_code ignored;
    if (is_plain_name(name) && entries->is_directory(ignored)) names.push_back(name);
  }
  if (error) fail(ErrorCode::kNotFound, "model repository ", root_text, ": ", error.message());
  std::sort(names.begin(), names.end());
  return root;
}

}  // namespace

std::map<std::string, std::vector<std::string>> list_models(const std::vector<std::string>& roots) {
  std::map<std::string, std::vector<std::string>> all;
  for (const std::string& root : roots) {
    std::vector<std::string> names;
    open_repository(root, names);
    for (const std::string& name : names) all[name].push_back(root);
  }
  return all;
}

std::vector<ModelLayout> scan_repository(const std::string& root_text) {
  std::vector<std::string> names;
  const fs::path root = open_repository(root_text, names);
  std::vector<ModelLayout> models;
  for (const std::string& name : names) {
    ModelLayout model;
    model.name = name;
    try {
      read_model(root / name, root, nullptr, "", model);
    } catch (const std::exception& failure) {
      model.error = failure.what();
    }
    models.push_back(std::move(model));
  }
  return models;
}

std::vector<ModelLayout> scan_repositories(const std::vector<std::string>& roots) {
  std::map<std::string, ModelLayout> all;
  for (const std::string& root : roots) {
    for (ModelLayout& model : scan_repository(root)) {
      const auto [slot, is_new] = all.try_emplace(model.name, model);
      if (!is_new) {
        slot->second.error = concat("model '", model.name, "' appears in two or more repositories");
        slot->second.versions.clear();
      }
    }
  }
  std::vector<ModelLayout> out;
  for (auto& [name, model] : all) out.push_back(std::move(model));
  return out;
}

}  // namespace tensord::server
