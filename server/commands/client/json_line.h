#pragma once

#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "core/base/printable.h"

namespace tensord::server {

// Prints one JSON line and flushes it. Strings of the server may be invalid UTF-8 or unprintable, so they are escaped.
// `Json` is a type of nlohmann.
template <class Json>
void print_json_line(const Json& json) {
  const std::string line = json.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
  std::cout << to_printable_json(line) << std::endl;
}

}  // namespace tensord::server
