#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/http/body_text.h"
#include "server/http/message.h"

namespace tensord::server {

enum class Coding { kIdentity, kDeflate, kGzip };
const char* to_string(Coding coding);  // of the headers Content-Encoding and Accept-Encoding

// Of a request's Content-Encoding. Throws Error{kUnimplemented} for another one.
Coding request_coding(std::string_view content_encoding);
// What an Accept-Encoding prefers: the largest q, of equals the first. Parts that are malformed or unknown are skipped.
Coding preferred_coding(std::string_view accept_encoding);

// The plain bytes of a body, of at most `max_bytes`. Each piece is counted by `quota` before it is allocated; `holds`
// has what it counts by. Throws Error{kInvalidArgument} for what cannot be unpacked, {kResourceExhausted} for too much.
BodyText inflate_body(Coding coding, const std::vector<std::span<const uint8_t>>& packed, uint64_t max_bytes,
                      const HttpMemoryQuota& quota, std::vector<std::shared_ptr<const void>>& holds);

// Packs the body of an answer, counted by `quota`, and says so in its headers.
void deflate_answer(Coding coding, const HttpMemoryQuota& quota, HttpAnswer& answer);

}  // namespace tensord::server
