#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tensord::server {

// The bytes that base64 stands for, with or without the padding at its end. None: it is no base64.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace tensord::server
