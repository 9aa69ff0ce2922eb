#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tensord::server {

// Hints for files and folders that look as if they were meant to be served, and what is expected instead. These
// functions read names, and the first bytes of weights files; they never throw, and return an empty result if there is
// nothing to say.

// For a version folder without the model's file.
std::string hint_for_file(const std::filesystem::path& version, const std::string& file_name);
// For a model folder without versions.
std::string hint_for_versions(const std::filesystem::path& model);
// For a model folder with versions: other folders that look like versions, files that look like configurations.
std::vector<std::string> hints_for_model(const std::filesystem::path& model);
// For a repository: files beside its models.
std::vector<std::string> hints_for_repository(const std::filesystem::path& root);

}  // namespace tensord::server
