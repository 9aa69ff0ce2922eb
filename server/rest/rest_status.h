#pragma once

#include <absl/status/status.h>

#include "server/http/message.h"

namespace tensord::server {

// The protocol's error response: an HTTP status and {"error": message}.
HttpAnswer error_answer(const absl::Status& status);
HttpAnswer error_answer(int status, std::string_view text);
HttpAnswer json_answer(std::string json);

}  // namespace tensord::server
