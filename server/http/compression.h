#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/http/body_text.h"
#include "server/http/message.h"

namespace tensord::server {

enum class Coding { kIdentity, kDeflate, kGzip };
const char* to_string(Coding coding);  // as in the headers Content-Encoding and Accept-Encoding

// The coding of a request's Content-Encoding. Throws Error{kUnimplemented} for unsupported ones.
Coding request_coding(std::string_view content_encoding);
// The preferred coding of an Accept-Encoding: the largest q, the first of equal ones. Skips malformed and unknown
// parts.
Coding preferred_coding(std::string_view accept_encoding);

// Decompresses a body to at most `max_bytes`. Each piece is charged to `quota` before its allocation; `holds` gets the
// charges. Throws Error{kInvalidArgument} for invalid data, {kResourceExhausted} if the limit is exceeded.
BodyText inflate_body(Coding coding, const std::vector<std::span<const uint8_t>>& packed, uint64_t max_bytes,
                      const HttpMemoryQuota& quota, std::vector<std::shared_ptr<const void>>& holds);

// Compresses the body of an answer, charges it to `quota`, and sets the headers.
void deflate_answer(Coding coding, const HttpMemoryQuota& quota, HttpAnswer& answer);

}  // namespace tensord::server
