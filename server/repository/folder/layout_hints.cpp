#include "server/repository/folder/layout_hints.h"

#include <algorithm>
#include <cctype>

#include "core/base/error.h"
#include "core/base/utf8.h"
#include "core/jit/importers/foreign_weights.h"
#include "server/repository/folder/layout.h"

namespace tensord::server {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxNames = 5;        // per message
constexpr size_t kMaxEntries = 10000;  // entries of a folder that are examined

struct Names {
  std::vector<std::string> files, folders;  // without hidden ones, sorted
  std::vector<std::string> nameless;        // folders whose names are not valid model names, in printable form
};

Names names_in(const fs::path& folder) {
  Names names;
  std::error_code error;
  size_t seen = 0;
  for (fs::directory_iterator at(folder, error); at != fs::directory_iterator(); at.increment(error)) {
    const std::string name = at->path().filename().string();
    std::error_code ignored;
    if (++seen > kMaxEntries) break;
    if (is_plain_name(name)) (at->is_directory(ignored) ? names.folders : names.files).push_back(name);
    if (!is_utf8(name) && name[0] != '.' && at->is_directory(ignored)) names.nameless.push_back(to_valid_utf8(name));
  }
  std::sort(names.files.begin(), names.files.end());
  std::sort(names.folders.begin(), names.folders.end());
  std::sort(names.nameless.begin(), names.nameless.end());
  return names;
}

bool is_archive(const std::string& name) {
  if (name.ends_with(".pth")) return true;
  return std::ranges::any_of(default_file_names(), [&](const std::string& known) {
    return name.ends_with(fs::path(known).extension().string());
  });
}

std::vector<std::string> archives_in(const Names& names) {
  std::vector<std::string> out;
  std::copy_if(names.files.begin(), names.files.end(), std::back_inserter(out), is_archive);
  return out;
}

std::string list(const std::vector<std::string>& names) {
  std::string out;
  for (size_t i = 0; i < std::min(names.size(), kMaxNames); ++i) out += concat(i > 0 ? ", '" : "'", names[i], "'");
  return names.size() > kMaxNames ? out + " …" : out;
}

// Names such as "v2", "version-2", "02" or "2.0", which look like a version but are not valid.
bool looks_like_version(const std::string& name) {
  if (version_number(name) > 0) return false;
  std::string rest = name;
  std::transform(rest.begin(), rest.end(), rest.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const char* prefix : {"version", "ver", "v"}) {
    if (!rest.starts_with(prefix)) continue;
    rest.erase(0, std::string_view(prefix).size());
    break;
  }
  if (!rest.empty() && (rest[0] == '-' || rest[0] == '_')) rest.erase(0, 1);
  return !rest.empty() && std::isdigit(static_cast<unsigned char>(rest[0])) &&
         std::all_of(rest.begin(), rest.end(), [](unsigned char c) { return std::isdigit(c) || c == '.' || c == '_'; });
}

bool has_version(const fs::path& model) {
  const Names names = names_in(model);
  return std::any_of(names.folders.begin(), names.folders.end(),
                     [](const std::string& name) { return version_number(name) != 0; });
}

std::vector<std::string> version_like(const Names& names) {
  std::vector<std::string> out;
  std::copy_if(names.folders.begin(), names.folders.end(), std::back_inserter(out), looks_like_version);
  return out;
}

// Names such as "config.pbtx", "config.txt" or "Config.pbtxt", which look like the configuration but are not read.
std::string config_like(const Names& names) {
  if (std::find(names.files.begin(), names.files.end(), "config.pbtxt") != names.files.end()) return {};
  for (const std::string& name : names.files) {
    std::string lower = name;
    std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
    const bool is_text =
        lower.find(".pb") != std::string::npos || lower.ends_with(".txt") || lower.ends_with("prototxt");
    if ((lower.starts_with("config") && is_text) || lower.ends_with(".pbtxt")) return name;
  }
  return {};
}

}  // namespace

namespace {

// The expected name for a file with this extension, or `otherwise`.
std::string name_like(const std::string& file, const std::string& otherwise) {
  for (const std::string& known : default_file_names()) {
    if (fs::path(known).extension() == fs::path(file).extension()) return known;
  }
  return otherwise;
}

}  // namespace

namespace {

// Describes weights of other libraries in the folder, or in its only subfolder, as in a downloaded checkpoint.
std::string foreign_weights(const fs::path& folder, const Names& names) {
  std::string what = jit::describe_foreign_weights(folder.string());
  if (what.empty() && names.folders.size() == 1) {
    what = jit::describe_foreign_weights((folder / names.folders[0]).string());
    if (!what.empty()) what = concat("has '", names.folders[0], "', which ", what);
  }
  return what;
}

}  // namespace

std::string hint_for_file(const fs::path& version, const std::string& file_name) {
  const Names names = names_in(version);
  const std::vector<std::string> archives = archives_in(names);
  if (archives.size() == 1) {
    return concat("the folder has '", archives[0], "': rename it to ", name_like(archives[0], file_name),
                  ", or say default_model_filename: \"", archives[0], "\" in config.pbtxt");
  }
  if (!archives.empty()) return concat("the folder has ", list(archives), ": name one of them ", file_name);
  if (names.files.empty() && names.folders.empty()) return "the folder is empty";
  if (const std::string what = foreign_weights(version, names); !what.empty()) return concat("the folder ", what);
  return concat("the folder has ", list(names.files.empty() ? names.folders : names.files), " and no model");
}

std::string hint_for_versions(const fs::path& model) {
  const std::string name = model.filename().string();
  const Names names = names_in(model);
  if (const auto versions = version_like(names); !versions.empty()) {
    return concat(list(versions),
                  " is not a version: a version's folder is a whole number without anything before it, as '", name,
                  "/1'");
  }
  const std::vector<std::string> archives = archives_in(names);
  if (!archives.empty() && version_number(name) > 0) {
    return concat(list(archives), " lies in it, and its name is a version's: '",
                  model.parent_path().filename().string(),
                  "' is a model's folder, and --model-repository takes the folder above that");
  }
  if (!archives.empty()) {
    return concat(list(archives), " lies in the model's folder: move it into a version's folder, as '", name, "/1/",
                  name_like(archives[0], default_file_names().front()), "'");
  }
  for (const std::string& folder : names.folders) {
    if (!has_version(model / folder)) continue;
    return concat("'", name, "/", folder, "' has versions: '", name,
                  "' is a repository itself, and --model-repository takes its path");
  }
  if (names.files.empty() && names.folders.empty()) return "its folder is empty";
  if (const std::string what = foreign_weights(model, names); !what.empty())
    return concat("its folder ", what, "; expected '", name, "/1/model.pt2' or the like");
  return concat("its folder has ", list(names.folders.empty() ? names.files : names.folders), ", expected '", name,
                "/1/model.pt'");
}

std::vector<std::string> hints_for_model(const fs::path& model) {
  std::vector<std::string> hints;
  const Names names = names_in(model);
  if (const auto versions = version_like(names); !versions.empty()) {
    hints.push_back(concat(list(versions), " is not a version: a version's folder is a whole number"));
  }
  if (const auto archives = archives_in(names); !archives.empty()) {
    hints.push_back(concat(list(archives), " lies beside the versions' folders and is not served"));
  }
  if (const std::string config = config_like(names); !config.empty()) {
    hints.push_back(concat("'", config, "' is not read: a configuration is called config.pbtxt"));
  }
  return hints;
}

std::vector<std::string> hints_for_repository(const fs::path& root) {
  std::vector<std::string> hints;
  const Names names = names_in(root);
  for (const std::string& file : archives_in(names)) {
    if (hints.size() >= kMaxNames) break;
    hints.push_back(concat("'", file, "' is not served: expected '", fs::path(file).stem().string(), "/1/",
                           name_like(file, default_file_names().front()), "'"));
  }
  if (!names.nameless.empty()) {
    hints.push_back(concat(list(names.nameless), " is not served: its name is not UTF-8"));
  }
  if (config_like(names).empty() &&
      std::find(names.files.begin(), names.files.end(), "config.pbtxt") == names.files.end())
    return hints;
  hints.push_back(
      "a config.pbtxt lies in the repository itself: --model-repository seems to be a model's folder, and takes "
      "the one above it");
  return hints;
}

}  // namespace tensord::server
