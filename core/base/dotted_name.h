#pragma once

#include <ranges>
#include <string>
#include <string_view>
#include <vector>

namespace tensord {

/// "encoder.0.weight" is of "encoder", "0" and "weight"; "a." ends with an empty part, and "" has none.
inline std::vector<std::string> dotted_parts(std::string_view name) {
  std::vector<std::string> parts;
  for (const auto part : std::views::split(name, '.')) parts.emplace_back(part.begin(), part.end());
  return parts;
}

}  // namespace tensord
