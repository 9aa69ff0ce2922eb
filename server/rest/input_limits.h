#pragma once

#include <cstdint>
#include <optional>

#include "server/http/message.h"
#include "server/rest/target.h"

namespace tensord::server {

// What --http-max-input-size forbids, before a body comes: JSON, and a body that is the one input, of more bytes. Where
// it comes in chunks or packed, nobody can say before.
std::optional<HttpAnswer> refuse_length(const RestTarget& target, const HttpHead& head, uint64_t max_input_bytes);

// The same when it is there; `max_input_bytes` of 0 is no limit.
void check_json_bytes(uint64_t bytes, uint64_t max_input_bytes);
void check_raw_bytes(uint64_t bytes, uint64_t max_input_bytes);

}  // namespace tensord::server
