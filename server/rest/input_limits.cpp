#include "server/rest/input_limits.h"

#include <charconv>

#include "core/base/error.h"
#include "server/executor/requests/status.h"
#include "server/rest/rest_status.h"

namespace tensord::server {

void check_json_bytes(uint64_t bytes, uint64_t max_input_bytes) {
  check(max_input_bytes == 0 || bytes <= max_input_bytes, "request JSON size of ", bytes,
        " bytes exceeds the maximum allowed input size of ", max_input_bytes,
        " bytes. Use --http-max-input-size to increase the limit.");
}

void check_raw_bytes(uint64_t bytes, uint64_t max_input_bytes) {
  check(max_input_bytes == 0 || bytes <= max_input_bytes, "Raw input has a byte_size (", bytes,
        " bytes) that exceeds the maximum allowed value of ", max_input_bytes,
        " bytes. Use --http-max-input-size to increase the limit.");
}

std::optional<HttpAnswer> refuse_length(const RestTarget& target, const HttpHead& head, uint64_t max_input_bytes) {
  if (!head.content_length || !head.header("Content-Encoding").empty()) return std::nullopt;
  uint64_t json_bytes = *head.content_length;
  if (const std::string_view text = head.header(kJsonLengthHeader); target.call == RestCall::kInfer && !text.empty()) {
    uint64_t said = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), said);
    // A malformed or too large length gets its own error later.
    if (error != std::errc() || said > json_bytes) return std::nullopt;
    json_bytes = said;
  } else if (target.call == RestCall::kInfer && is_image_body(head)) {
    json_bytes = 0;
  }
  try {
    if (json_bytes == 0) {
      check_raw_bytes(*head.content_length, max_input_bytes);
    } else {
      check_json_bytes(json_bytes, max_input_bytes);
    }
  } catch (...) {
    return error_answer(current_exception_status());
  }
  return std::nullopt;
}

}  // namespace tensord::server
