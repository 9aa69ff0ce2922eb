#pragma once

#include <absl/status/status.h>

#include "server/http/message.h"

namespace tensord::server {

// The protocol's answer for what went wrong: its code, and {"error": text}.
HttpAnswer error_answer(const absl::Status& status);
HttpAnswer error_answer(int status, std::string_view text);
HttpAnswer json_answer(std::string json);

}  // namespace tensord::server
