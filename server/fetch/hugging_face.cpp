// Hugging Face's hub and what speaks its protocol: the files of a revision, with their checksums.
#include <nlohmann/json.hpp>

#include "core/base/ascii.h"
#include "server/fetch/checksum.h"
#include "server/fetch/remote_file.h"

namespace tensord::server {
namespace {

using nlohmann::json;

constexpr const char* kDefaultHub = "https://huggingface.co";

struct HubSource {
  std::string repository;  // "owner/name"
  std::string revision = "main";
  std::string file;  // empty: all
};

HubSource parse_hub_source(const std::string& source) {
  std::string rest = source.substr(std::string_view("hf://").size());
  HubSource out;
  const size_t owner_end = rest.find('/');
  check(owner_end != std::string::npos && owner_end > 0, source, ": expected hf://OWNER/NAME[@REVISION][/FILE]");
  const size_t name_end = std::min(rest.find_first_of("@/", owner_end + 1), rest.size());
  out.repository = rest.substr(0, name_end);
  size_t at = name_end;
  if (at < rest.size() && rest[at] == '@') {
    const size_t end = std::min(rest.find('/', at), rest.size());
    out.revision = rest.substr(at + 1, end - at - 1);
    at = end;
  }
  if (at < rest.size()) out.file = rest.substr(at + 1);
  const auto is_word = [](const std::string& text) {
    return !text.empty() && std::ranges::all_of(text, [](char c) {
      return is_ascii_alnum(c) || c == '-' || c == '_' || c == '.' || c == '/';
    }) && text.find("..") == std::string::npos;
  };
  check(is_word(out.repository) && is_word(out.revision) && name_end > owner_end + 1, source,
        ": expected hf://OWNER/NAME[@REVISION][/FILE]");
  return out;
}

json parse_hub_answer(const std::string& text, const HttpUrl& url) {
  json answer = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (answer.is_discarded()) fail(ErrorCode::kDataLoss, url.printable(), ": the answer is not JSON");
  return answer;
}

std::string text_of(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// The next page, from `Link: <URL>; rel="next"`.
std::string next_page(const HttpReply& reply) {
  const std::string link = reply.field("Link");
  const size_t begin = link.find('<'), end = link.find('>');
  const bool is_next = begin != std::string::npos && end != std::string::npos && begin < end &&
                       link.find("rel=\"next\"", end) != std::string::npos;
  return is_next ? link.substr(begin + 1, end - begin - 1) : std::string();
}

RemoteFile file_of(const json& entry, const HttpUrl& url) {
  RemoteFile file{.name = text_of(entry, "path"), .path = {}, .url = {}};
  const auto size = entry.find("size");
  if (file.name.empty() || size == entry.end() || !size->is_number_unsigned()) {
    fail(ErrorCode::kDataLoss, url.printable(), ": the listing has a file without path or size");
  }
  file.size = size->get<uint64_t>();
  const auto lfs = entry.find("lfs");
  if (lfs != entry.end() && lfs->is_object()) {
    file.sha256 = text_of(*lfs, "oid");
    if (file.sha256.starts_with("sha256:")) file.sha256.erase(0, 7);
    if (!is_sha256(file.sha256)) fail(ErrorCode::kDataLoss, url.printable(), ": '", file.name, "' has no SHA-256");
    file.version = file.sha256;
  } else {
    file.git_sha1 = file.version = text_of(entry, "oid");
  }
  return file;
}

}  // namespace

RemoteFiles list_hugging_face(const std::string& source) {
  const HubSource wanted = parse_hub_source(source);
  std::string hub = environment_variable("HF_ENDPOINT");
  if (hub.empty()) hub = kDefaultHub;
  while (hub.ends_with('/')) hub.pop_back();
  RemoteFiles out;
  out.origin = parse_http_url(hub).origin();
  if (const std::string token = environment_variable("HF_TOKEN"); !token.empty()) {
    out.authorize = [token](const HttpUrl&) { return HttpFields{{"Authorization", "Bearer " + token}}; };
  }
  const std::string api = concat(hub, "/api/models/", wanted.repository);
  // The commit, so that all files are of one revision even if the branch moves meanwhile.
  const HttpUrl revision_url = parse_http_url(concat(api, "/revision/", percent_encoded(wanted.revision, true)));
  const std::string commit = text_of(parse_hub_answer(get_listing(revision_url, out), revision_url), "sha");
  const bool is_commit = !commit.empty() && std::ranges::all_of(commit, is_ascii_alnum);
  if (!is_commit) fail(ErrorCode::kDataLoss, revision_url.printable(), ": the answer names no commit");

  HttpUrl url = parse_http_url(concat(api, "/tree/", commit, "?recursive=true"));
  for (size_t page = 0; out.files.size() <= kMaxRemoteFiles; ++page) {
    check(page < kMaxListingPages, url.printable(), ": the listing does not end");
    HttpReply reply;
    const json entries = parse_hub_answer(get_listing(url, out, &reply), url);
    if (!entries.is_array()) fail(ErrorCode::kDataLoss, url.printable(), ": the answer is no list of files");
    for (const json& entry : entries) {
      if (!entry.is_object() || text_of(entry, "type") != "file") continue;
      RemoteFile file = file_of(entry, url);
      if (!wanted.file.empty() && file.name != wanted.file) continue;
      file.url =
          parse_http_url(concat(hub, "/", wanted.repository, "/resolve/", commit, "/", percent_encoded(file.name)));
      out.files.push_back(std::move(file));
    }
    const std::string next = next_page(reply);
    if (next.empty()) break;
    HttpUrl following = resolve_http_url(url, next);
    check(following.origin() == out.origin, url.printable(), ": leads to ", following.printable(), " for more");
    url = std::move(following);
  }
  if (out.files.empty()) {
    fail(ErrorCode::kNotFound, source,
         wanted.file.empty() ? ": the repository has no files" : ": there is no such file");
  }
  out.is_folder = wanted.file.empty();
  if (!out.is_folder) out.files[0].name.erase(0, out.files[0].name.rfind('/') + 1);
  return out;
}

}  // namespace tensord::server
