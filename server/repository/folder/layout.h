#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "server/config/model_config.h"

namespace tensord::server {

// A model as it lies on disk: <repository>/<name>/<version>/model.pt (or the file of another format, see
// default_file_names), optional config.pbtxt.
struct ModelLayout {
  struct Version {
    int64_t number = 0;
    std::filesystem::path file;     // resolved; inside the repository. Of an ensemble its folder
    std::filesystem::path weights;  // its weights.safetensors, resolved; empty when there is none
    std::string error;              // why it cannot be loaded; file is empty then

    uint64_t file_bytes() const;  // 0 where no file is: an ensemble has none
  };
  std::string name;
  std::filesystem::path root;    // the repository it lies in
  std::filesystem::path folder;  // resolved
  ModelConfig config;
  std::vector<Version> versions;      // chosen by the version policy, ascending
  int64_t largest_number = 0;         // of all versions that are or were there
  std::string error;                  // what is wrong with the model as a whole, or empty
  std::vector<std::string> warnings;  // what lies there and is not served, and may be meant to be
};

// A name of one folder or file that hides nothing: 1 to 255 bytes, no '/' or '\', no control characters, no dot first.
bool is_plain_name(const std::string& name);

// The number of a version's folder: positive, without leading zeros; 0 for other names.
int64_t version_number(const std::string& name);

// The names of the models in each repository, sorted, without a look inside. Throws Error{kNotFound} when a
// repository is not there.
std::map<std::string, std::vector<std::string>> list_models(const std::vector<std::string>& roots);

// Looks at one repository. Never throws for what is wrong with a single model; throws
// Error{kNotFound} when the folder itself is not there. Symlinks that lead out of the
// repository are refused.
std::vector<ModelLayout> scan_repository(const std::string& root);

// One model of a repository, as it lies there now; with `config` instead of its config.pbtxt, where that is given, or
// by its configs/<config_name>.pbtxt, where that is there.
ModelLayout scan_model(const std::string& root, const std::string& name, const ModelConfig* config = nullptr,
                       const std::string& config_name = {});

// Every repository; a model that lies in two of them is an error of that model.
std::vector<ModelLayout> scan_repositories(const std::vector<std::string>& roots);

// The names that the file of a version may have where config.pbtxt says none: model.pt first, then one for each other
// format of models.
const std::vector<std::string>& default_file_names();
// The one for the format that a model's file has.
std::string format_file_name(const std::filesystem::path& file);

// Where a repository is. Throws Error{kNotFound} when that is no folder.
std::filesystem::path repository_folder(const std::string& root);
// The name for the file of a new version: config.pbtxt says, or that of its format.
std::string model_file_name(const ModelLayout& model, const std::string& of_format);

// The file of a version of the model, whether the policy wants it or not. Throws Error{kNotFound}.
std::filesystem::path version_file(const ModelLayout& model, int64_t number);

// Makes the new folder the model's next version, in one step: a number above all that are or were there, and no
// other process can take it. Gives back the number.
int64_t take_next_version(const ModelLayout& model, const std::filesystem::path& folder);

// Hides a version: it stays on disk, and its number stays taken. Gives back the folder it is in now.
std::filesystem::path withdraw_version(const ModelLayout& model, int64_t number);
void restore_version(const ModelLayout& model, int64_t number, const std::filesystem::path& withdrawn);

}  // namespace tensord::server
