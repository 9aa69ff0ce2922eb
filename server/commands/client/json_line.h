#pragma once

#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "core/base/printable.h"

namespace tensord::server {

// Prints a line for programs, at once. What a server sent need not be UTF-8, nor fit to be shown. `Json` is one of
// nlohmann's types.
template <class Json>
void print_json_line(const Json& json) {
  const std::string line = json.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
  std::cout << to_printable_json(line) << std::endl;
}

}  // namespace tensord::server
