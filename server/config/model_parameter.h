#pragma once

#include <string_view>

namespace tensord::server {

// Describes one of the `parameters` of config.pbtxt that tensord supports, for the help of `tensord serve`.
struct ModelParameter {
  std::string_view key;
  std::string_view text;
  std::string_view flag = {};  // flag of `serve` with the default; empty if there is none
};

}  // namespace tensord::server
