#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tensord::server {

// What a folder has that somebody may have meant to be served, in the words of what is expected. All of them look at
// names, and at first bytes of files of weights, never throw, and give back "" or nothing where there is nothing to
// say.

// Of a version's folder without the model's file.
std::string hint_for_file(const std::filesystem::path& version, const std::string& file_name);
// Of a model's folder without versions.
std::string hint_for_versions(const std::filesystem::path& model);
// Of a model's folder with versions: what looks like another one, or like a configuration.
std::vector<std::string> hints_for_model(const std::filesystem::path& model);
// Of a repository: files that lie beside its models.
std::vector<std::string> hints_for_repository(const std::filesystem::path& root);

}  // namespace tensord::server
