#include "server/fetch/remote_file.h"
#include "server/fetch/s3.h"
#include "tests/fuzz/fuzz.h"

// What a source answers: a listing of S3, whose keys become names of files, and a redirect.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tensord;
  const std::string text(fuzz::text_of(data, size));
  fuzz::may_refuse([&] {
    std::vector<server::RemoteFile> files;
    for (const server::S3Listing::Object& object : server::parse_s3_listing(text, "listing").objects) {
      files.push_back({.name = object.key, .path = {}, .url = {}, .size = object.size});
    }
    server::check_names(files);
    for (const server::RemoteFile& file : files) {
      const std::string inside = "/" + file.name + "/";
      check_internal(!file.name.starts_with('/') && inside.find("/../") == std::string::npos, "a name leads elsewhere");
    }
  });
  return fuzz::may_refuse([&] {
    const server::HttpUrl url = server::resolve_http_url({"https", "host:1", "/a/b?c"}, text);
    check_internal(url.scheme == "http" || url.scheme == "https", "a redirect to another scheme");
    check_internal(url.target.starts_with('/') && url.target.find('\n') == std::string::npos, "a broken target");
  });
}
