#include "server/fetch/s3.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <charconv>
#include <ctime>

#include "core/distributed/hmac.h"
#include "server/fetch/checksum.h"
#include "server/fetch/remote_file.h"

namespace tensord::server {
namespace {

using distributed::hex_of;
using distributed::hmac_sha256;

constexpr const char* kS3Service = "s3";

std::string utc(int64_t time, const char* format) {
  const auto seconds = static_cast<time_t>(time);
  tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, format, &parts)};
}

// The text of the first <tag>…</tag> from `at` on, before `end`; moves `at` behind it.
std::optional<std::string_view> next_element(std::string_view xml, std::string_view tag, size_t& at) {
  const std::string open = concat("<", tag, ">"), close = concat("</", tag, ">");
  const size_t begin = xml.find(open, at);
  if (begin == std::string_view::npos) return std::nullopt;
  const size_t from = begin + open.size(), end = xml.find(close, from);
  if (end == std::string_view::npos) return std::nullopt;
  at = end + close.size();
  return xml.substr(from, end - from);
}

std::string unescaped(std::string_view text) {
  static constexpr std::pair<std::string_view, char> kEntities[] = {
      {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}, {"&amp;", '&'}, {"&#34;", '"'}, {"&#39;", '\''}};
  std::string out;
  for (size_t i = 0; i < text.size();) {
    bool is_entity = false;
    for (const auto& [entity, character] : kEntities) {
      if (!text.substr(i).starts_with(entity)) continue;
      out += character;
      i += entity.size();
      is_entity = true;
      break;
    }
    if (!is_entity) out += text[i++];
  }
  return out;
}

std::string element(std::string_view xml, std::string_view tag) {
  size_t at = 0;
  return unescaped(next_element(xml, tag, at).value_or(""));
}

// What the environment says of S3, as AWS's own tools read it.
struct S3Place {
  std::string bucket, region;
  S3Credentials credentials;
  HttpUrl root;  // of the bucket; its target is "/" or "/BUCKET"
};

S3Place s3_place(const std::string& bucket) {
  const auto first = [](std::initializer_list<const char*> names) {
    for (const char* name : names) {
      if (std::string value = environment_variable(name); !value.empty()) return value;
    }
    return std::string();
  };
  S3Place place{.bucket = bucket, .region = first({"AWS_REGION", "AWS_DEFAULT_REGION"}), .credentials = {}, .root = {}};
  if (place.region.empty()) place.region = "us-east-1";
  place.credentials = {environment_variable("AWS_ACCESS_KEY_ID"), environment_variable("AWS_SECRET_ACCESS_KEY"),
                       environment_variable("AWS_SESSION_TOKEN")};
  check(place.credentials.key_id.empty() == place.credentials.secret.empty(),
        "s3: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY need each other");
  const std::string endpoint = first({"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"});
  const bool has_dots = bucket.find('.') != std::string::npos;  // a certificate for *.s3… does not cover these
  if (endpoint.empty() && !has_dots) {
    place.root = parse_http_url(concat("https://", bucket, ".s3.", place.region, ".amazonaws.com/"));
    return place;
  }
  const std::string host = endpoint.empty() ? concat("https://s3.", place.region, ".amazonaws.com") : endpoint;
  place.root = parse_http_url(host);
  check(place.root.target == "/", "AWS_ENDPOINT_URL: ", place.root.printable(), " must not have a path");
  place.root.target = "/" + bucket;
  return place;
}

HttpUrl s3_url(const S3Place& place, const std::string& key) {
  HttpUrl url = place.root;
  url.target = concat(url.target == "/" ? "" : url.target, "/", percent_encoded(key));
  return url;
}

void list_prefix(const S3Place& place, const std::string& prefix, RemoteFiles& out) {
  std::string token;
  size_t pages = 0;
  do {
    HttpUrl url = place.root;
    url.target =
        concat(url.target, "?", token.empty() ? "" : "continuation-token=" + percent_encoded(token, true) + "&",
               "list-type=2&prefix=", percent_encoded(prefix, true));
    const S3Listing page = parse_s3_listing(get_listing(url, out), url.printable());
    for (const S3Listing::Object& object : page.objects) {
      const bool is_below = object.key.starts_with(prefix);
      check(is_below, url.printable(), ": lists a key that does not begin with ", prefix);
      if (object.key.ends_with('/')) continue;  // a folder, as consoles make them
      out.files.push_back({.name = object.key.substr(prefix.size()),
                           .path = {},
                           .url = s3_url(place, object.key),
                           .size = object.size,
                           .version = object.etag});
    }
    if (out.files.size() > kMaxRemoteFiles) return;  // list_source() refuses it
    check(++pages < kMaxListingPages, url.printable(), ": the listing does not end");
    token = page.next;
  } while (!token.empty());
  if (out.files.empty()) fail(ErrorCode::kNotFound, "s3://", place.bucket, "/", prefix, ": no object begins so");
}

}  // namespace

HttpFields sign_s3(const HttpUrl& url, const S3Credentials& credentials, const std::string& region, int64_t time) {
  const std::string stamp = utc(time, "%Y%m%dT%H%M%SZ"), day = stamp.substr(0, 8), nothing = sha256_hex("");
  HttpFields fields{{"host", url.authority}, {"x-amz-content-sha256", nothing}, {"x-amz-date", stamp}};
  if (!credentials.session_token.empty()) fields.emplace_back("x-amz-security-token", credentials.session_token);
  std::string canonical_fields, names;
  for (const auto& [name, value] : fields) {
    canonical_fields += concat(name, ":", value, "\n");
    names += concat(names.empty() ? "" : ";", name);
  }
  const size_t query = url.target.find('?');
  const std::string canonical =
      concat("GET\n", url.path(), "\n", query == std::string::npos ? "" : url.target.substr(query + 1), "\n",
             canonical_fields, "\n", names, "\n", nothing);
  const std::string scope = concat(day, "/", region, "/", kS3Service, "/aws4_request");
  const std::string to_sign = concat("AWS4-HMAC-SHA256\n", stamp, "\n", scope, "\n", sha256_hex(canonical));
  std::string key = hmac_sha256("AWS4" + credentials.secret, day);
  for (const std::string_view part :
       {std::string_view(region), std::string_view(kS3Service), std::string_view("aws4_request")}) {
    key = hmac_sha256(key, part);
  }
  fields.emplace_back("Authorization",
                      concat("AWS4-HMAC-SHA256 Credential=", credentials.key_id, "/", scope, ", SignedHeaders=", names,
                             ", Signature=", hex_of(hmac_sha256(key, to_sign))));
  return fields;
}

S3Listing parse_s3_listing(std::string_view xml, const std::string& source) {
  if (xml.find("<ListBucketResult") == std::string_view::npos) {
    fail(ErrorCode::kDataLoss, source, ": the answer is no listing of S3");
  }
  S3Listing out;
  size_t at = 0;
  while (const auto contents = next_element(xml, "Contents", at)) {
    S3Listing::Object object{element(*contents, "Key"), element(*contents, "ETag")};
    const std::string size = element(*contents, "Size");
    const auto [end, error] = std::from_chars(size.data(), size.data() + size.size(), object.size);
    if (object.key.empty() || error != std::errc() || end != size.data() + size.size()) {
      fail(ErrorCode::kDataLoss, source, ": the listing has an object without key or size");
    }
    out.objects.push_back(std::move(object));
  }
  if (element(xml, "IsTruncated") == "true") {
    out.next = element(xml, "NextContinuationToken");
    if (out.next.empty()) fail(ErrorCode::kDataLoss, source, ": the listing has no continuation token");
  }
  return out;
}

RemoteFiles list_s3(const std::string& source) {
  const std::string rest = source.substr(std::string_view("s3://").size());
  const size_t slash = std::min(rest.find('/'), rest.size());
  const std::string bucket = rest.substr(0, slash), key = slash < rest.size() ? rest.substr(slash + 1) : "";
  const bool is_name =
      !bucket.empty() && bucket.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789.-") == std::string::npos;
  check(is_name, source, ": expected s3://BUCKET/KEY, or s3://BUCKET/PREFIX/ for all below");
  const S3Place place = s3_place(bucket);
  RemoteFiles out;
  out.origin = place.root.origin();
  if (!place.credentials.key_id.empty()) {
    out.authorize = [place](const HttpUrl& url) {
      return sign_s3(url, place.credentials, place.region, static_cast<int64_t>(::time(nullptr)));
    };
  }
  out.is_folder = key.empty() || key.ends_with('/');
  if (out.is_folder) {
    list_prefix(place, key, out);
  } else {
    out.files.push_back({.name = key.substr(key.rfind('/') + 1), .path = {}, .url = s3_url(place, key)});
  }
  return out;
}

}  // namespace tensord::server
