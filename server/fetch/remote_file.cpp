#include "server/fetch/remote_file.h"

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "core/base/utf8.h"

namespace tensord::server {
namespace {

namespace fs = std::filesystem;

void check_path_name(const std::string& name) {
  bool is_good = !name.empty() && name.size() < PATH_MAX / 2 && is_utf8(name);
  size_t at = 0;
  while (is_good && at <= name.size()) {
    const size_t end = std::min(name.find('/', at), name.size());
    const std::string part = name.substr(at, end - at);
    const bool is_plain = std::ranges::none_of(
        part, [](char c) { return c == '\\' || static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
    is_good = is_plain && !part.empty() && part != "." && part != ".." && part.size() <= NAME_MAX;
    at = end + 1;
  }
  check(is_good, "the source has a file named '", name, "', which is not a relative path of plain names");
}

void add_local(const fs::directory_entry& entry, const fs::path& root, RemoteFiles& out) {
  check(!entry.is_symlink(), entry.path().string(), ": is a symbolic link, and these are not followed");
  if (entry.is_directory()) return;
  check(entry.is_regular_file(), entry.path().string(), ": is neither a file nor a folder");
  out.files.push_back({.name = fs::relative(entry.path(), root).string(),
                       .path = entry.path().string(),
                       .url = {},
                       .size = entry.file_size()});
}

}  // namespace

std::string environment_variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

void check_names(const std::vector<RemoteFile>& files) {
  std::set<std::string> names, folders;
  for (const RemoteFile& file : files) {
    check_path_name(file.name);
    check(names.insert(file.name).second, "the source has two files named '", file.name, "'");
    for (size_t at = file.name.find('/'); at != std::string::npos; at = file.name.find('/', at + 1)) {
      folders.insert(file.name.substr(0, at));
    }
  }
  for (const std::string& name : names) {
    check(!folders.contains(name), "the source has '", name, "' both as a file and as a folder");
  }
}

RemoteFiles list_local(const std::string& path) {
  check(path.starts_with('/'), "file://", path, ": expected an absolute path, as file:///models/resnet");
  const fs::path root = path;
  std::error_code error;
  const fs::directory_entry entry(root, error);
  if (error || !fs::exists(entry.symlink_status())) fail(ErrorCode::kNotFound, "file://", path, ": is not there");
  RemoteFiles out;
  out.is_folder = entry.is_directory() && !entry.is_symlink();
  if (!out.is_folder) {
    add_local(entry, root.parent_path(), out);
    return out;
  }
  try {
    for (const fs::directory_entry& inner : fs::recursive_directory_iterator(root)) {
      add_local(inner, root, out);
      if (out.files.size() > kMaxRemoteFiles) break;
    }
  } catch (const fs::filesystem_error& failure) {
    fail(ErrorCode::kFailedPrecondition, "file://", path, ": ", failure.code().message());
  }
  return out;
}

RemoteFiles list_source(const std::string& source) {
  RemoteFiles out;
  if (source.starts_with("file://")) {
    out = list_local(source.substr(std::string_view("file://").size()));
  } else if (source.starts_with("s3://")) {
    out = list_s3(source);
  } else if (source.starts_with("hf://")) {
    out = list_hugging_face(source);
  } else if (source.starts_with("http://") || source.starts_with("https://")) {
    const HttpUrl url = parse_http_url(source);
    const std::string path = url.path();
    out.origin = url.origin();
    out.files.push_back({.name = path.substr(path.rfind('/') + 1), .path = {}, .url = url});
    check(!out.files[0].name.empty(), url.printable(), ": names a folder; expected a file");
  } else {
    fail(ErrorCode::kInvalidArgument, "'", source, "': expected file:///PATH, http://, https://, s3://BUCKET/KEY or ",
         "hf://OWNER/NAME");
  }
  if (out.files.size() > kMaxRemoteFiles) {
    fail(ErrorCode::kResourceExhausted, source.substr(0, source.find('?')), ": more than ", kMaxRemoteFiles, " files");
  }
  return out;
}

}  // namespace tensord::server
