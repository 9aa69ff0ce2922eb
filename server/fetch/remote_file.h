#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "server/fetch/http_get.h"

namespace tensord::server {

// A file of a source, and what the source says of it.
struct RemoteFile {
  std::string name;  // relative, with '/' between folders; untrusted until check_names()
  std::string path;  // of file:// sources: the file here
  HttpUrl url;       // of all others
  std::optional<uint64_t> size = {};
  std::string sha256 = {}, git_sha1 = {};  // hexadecimal; empty: unknown
  std::string version = {};                // changes with the contents; empty: unknown
};

// What a source contains, and how to ask for it.
struct RemoteFiles {
  bool is_folder = false;  // false: exactly one file
  std::vector<RemoteFile> files;
  // The fields of a request to this URL, credentials among them. Only called for URLs of `origin`.
  std::function<HttpFields(const HttpUrl&)> authorize = [](const HttpUrl&) { return HttpFields(); };
  std::string origin = {};
};

// Lists a source: file:///PATH, http(s)://HOST/PATH (one file), s3://BUCKET/KEY (one object; a prefix if it ends with
// '/'), hf://OWNER/NAME[@REVISION][/FILE]. Throws Error that starts with what was asked: kInvalidArgument (no such
// source), kNotFound, kFailedPrecondition (no access), kUnavailable, kResourceExhausted (more than kMaxRemoteFiles).
RemoteFiles list_source(const std::string& source);
constexpr size_t kMaxRemoteFiles = 10'000;
// Pages of a listing, which may be without files.
constexpr size_t kMaxListingPages = 1'000;

RemoteFiles list_local(const std::string& path);
RemoteFiles list_s3(const std::string& source);
RemoteFiles list_hugging_face(const std::string& source);

// Throws Error{kInvalidArgument} unless each name is a relative path of plain names: no "..", no absolute path, no
// hidden meaning. Two files must not have one name, nor one be a folder of the other.
void check_names(const std::vector<RemoteFile>& files);

// The value of a variable of the environment; empty if it is not set.
std::string environment_variable(const char* name);

// GETs a small text such as a listing, with redirects and retries. `reply` gets the last answer. Throws as
// list_source().
std::string get_listing(const HttpUrl& url, const RemoteFiles& remote, HttpReply* reply = nullptr);

}  // namespace tensord::server
