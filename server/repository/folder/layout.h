#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "server/config/model_config.h"

namespace tensord::server {

// A model on disk: <repository>/<name>/<version>/model.pt (or the file of another format, see default_file_names), and
// an optional config.pbtxt.
struct ModelLayout {
  struct Version {
    int64_t number = 0;
    std::filesystem::path file;     // resolved; inside the repository. Of an ensemble, its folder
    std::filesystem::path weights;  // its weights.safetensors, resolved; empty: none
    std::string error;              // why it cannot be loaded; `file` is then empty

    uint64_t file_bytes() const;  // 0 for ensembles, which have no file
  };
  std::string name;
  std::filesystem::path root;    // the repository
  std::filesystem::path folder;  // resolved
  ModelConfig config;
  std::vector<Version> versions;      // selected by the version policy, ascending
  int64_t largest_number = 0;         // of all versions that exist or existed
  std::string error;                  // what is wrong with the whole model; may be empty
  std::vector<std::string> warnings;  // folders that are not served but look as if they should be
};

// Whether the name is that of a visible file or folder: 1 to 255 bytes, no '/' or '\\', no control characters, no
// leading dot.
bool is_plain_name(const std::string& name);

// The number of a version folder: positive, without leading zeros; 0 for other names.
int64_t version_number(const std::string& name);

// The names of the models in each repository, sorted; does not read the models' folders. Throws Error{kNotFound} if a
// repository is missing.
std::map<std::string, std::vector<std::string>> list_models(const std::vector<std::string>& roots);

// Reads one repository. Problems of a single model are stored in it, not thrown. Throws Error{kNotFound} if the
// repository is missing. Symlinks that lead out of the repository are refused.
std::vector<ModelLayout> scan_repository(const std::string& root);

// Reads one model of a repository, with `config` in place of its config.pbtxt if given, or else with
// configs/<config_name>.pbtxt if that exists.
ModelLayout scan_model(const std::string& root, const std::string& name, const ModelConfig* config = nullptr,
                       const std::string& config_name = {});

// All repositories. A model that is in two of them gets an error.
std::vector<ModelLayout> scan_repositories(const std::vector<std::string>& roots);

// File names of a version if config.pbtxt does not set one: model.pt first, then one for each other format.
const std::vector<std::string>& default_file_names();
// The default file name of the format of a model's file.
std::string format_file_name(const std::filesystem::path& file);

// The repository's folder. Throws Error{kNotFound} if it is not a folder.
std::filesystem::path repository_folder(const std::string& root);
// The file name for a new version: the configured one, or that of its format.
std::string model_file_name(const ModelLayout& model, const std::string& of_format);

// The file of a version, whether or not the version policy selects it. Throws Error{kNotFound}.
std::filesystem::path version_file(const ModelLayout& model, int64_t number);

// Renames the new folder to the model's next version, atomically and safe against other processes. The number is above
// those of all versions that exist or existed. Returns it.
int64_t take_next_version(const ModelLayout& model, const std::filesystem::path& folder);

// Hides a version: its files stay on disk and its number stays in use. Returns its new folder.
std::filesystem::path withdraw_version(const ModelLayout& model, int64_t number);
void restore_version(const ModelLayout& model, int64_t number, const std::filesystem::path& withdrawn);

}  // namespace tensord::server
