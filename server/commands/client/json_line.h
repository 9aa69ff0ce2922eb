#pragma once

#include <iostream>
#include <nlohmann/json.hpp>

namespace tensord::server {

// Prints a line for programs, at once. What a server sent need not be UTF-8. `Json` is one of nlohmann's types.
template <class Json>
void print_json_line(const Json& json) {
  std::cout << json.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace) << std::endl;
}

}  // namespace tensord::server
