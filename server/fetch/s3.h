#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/fetch/http_get.h"

namespace tensord::server {

struct S3Credentials {
  std::string key_id, secret, session_token;
};

// The fields of a GET without a body, signed by AWS Signature Version 4. `time` is seconds since 1970. The query of the
// URL must be in canonical form: sorted and percent-encoded.
HttpFields sign_s3(const HttpUrl& url, const S3Credentials& credentials, const std::string& region, int64_t time);

// One page of ListObjectsV2.
struct S3Listing {
  struct Object {
    std::string key, etag;
    uint64_t size = 0;
  };
  std::vector<Object> objects;
  std::string next;  // the continuation token; empty: the last page
};
// Untrusted. Throws Error{kDataLoss} that starts with `source`.
S3Listing parse_s3_listing(std::string_view xml, const std::string& source);

}  // namespace tensord::server
