#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tensord {

// The name that is closest to what was written, by letters to add, leave out, change or swap; upper and lower case are
// one. Empty where none is near: more than a third of its letters would have to change.
std::string nearest(std::string_view written, std::span<const std::string> names);

// What is right instead of a name that is not there: "; did you mean 'a'? There are 'a', 'b', …", with the first
// `max_names` of them. Empty without names.
std::string right_names(std::string_view written, std::span<const std::string> names, size_t max_names = 20);

}  // namespace tensord
