#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tensord {

// The name with the smallest edit distance to `written` (insert, delete, change or swap letters; case is ignored).
// Empty if every name differs in more than a third of its letters.
std::string nearest(std::string_view written, std::span<const std::string> names);

// A hint for an unknown name: "; did you mean 'a'? There are 'a', 'b', …", with the first `max_names` names. Empty if
// there are no names.
std::string right_names(std::string_view written, std::span<const std::string> names, size_t max_names = 20);

}  // namespace tensord
