#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "server/training/hosts/host_messages.h"
#include "server/training/jobs/file_fingerprint.h"
#include "tests/server/temporary_folder.h"

// Helpers for tests of files that daemons send each other.
namespace tensord::server {

namespace fs = std::filesystem;

// The code and message of a call's error.
template <class Call>
std::pair<ErrorCode, std::string> code_and_text_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  return {ErrorCode::kInternal, "none"};
}

inline std::string content_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline HostFile file_of(const std::string& content, const std::string& path = "f") {
  distributed::Digest hash;
  hash.add(content);
  return {.path = path, .is_data = false, .size_bytes = content.size(), .sha256 = hash.finish()};
}

}  // namespace tensord::server
