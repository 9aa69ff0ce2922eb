#pragma once

#include <string_view>

namespace tensord::server {

// One of the `parameters` of config.pbtxt that tensord acts on, as the help of `tensord serve` describes it.
struct ModelParameter {
  std::string_view key;
  std::string_view text;
  std::string_view flag = {};  // of `serve`: what models have that do not say; empty where there is none
};

}  // namespace tensord::server
