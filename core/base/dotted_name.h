#pragma once

#include <ranges>
#include <string>
#include <string_view>
#include <vector>

namespace tensord {

// Splits a name at its dots: "encoder.0.weight" gives "encoder", "0" and "weight". "a." ends with an empty part; "" has
// no parts.
inline std::vector<std::string> dotted_parts(std::string_view name) {
  std::vector<std::string> parts;
  for (const auto part : std::views::split(name, '.')) parts.emplace_back(part.begin(), part.end());
  return parts;
}

}  // namespace tensord
