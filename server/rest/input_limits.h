#pragma once

#include <cstdint>
#include <optional>

#include "server/http/message.h"
#include "server/rest/target.h"

namespace tensord::server {

// Enforces --http-max-input-size before the body is read: on the JSON part, or on a raw body. Chunked and compressed
// bodies have no known size yet, so they pass here and are checked later.
std::optional<HttpAnswer> refuse_length(const RestTarget& target, const HttpHead& head, uint64_t max_input_bytes);

// Enforce the same limit on a body that has been read. `max_input_bytes` of 0 means no limit.
void check_json_bytes(uint64_t bytes, uint64_t max_input_bytes);
void check_raw_bytes(uint64_t bytes, uint64_t max_input_bytes);

}  // namespace tensord::server
