#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tensord {

// The name with the smallest edit distance to `written` (insert, delete, change or swap letters; case is ignored).
// If every name differs in more than a third of its letters: the only one that starts with `written`, or nothing.
std::string nearest(std::string_view written, std::span<const std::string> names);

// A hint for a path where nothing is, from the names in its folder: "; did you mean 'a/b.pt'?". Empty if no name is
// near.
std::string nearest_file(const std::string& path);

// A hint for an unknown name: "; did you mean 'a'? There are 'a', 'b', …", with the first `max_names` names. Empty if
// there are no names.
std::string right_names(std::string_view written, std::span<const std::string> names, size_t max_names = 20);

}  // namespace tensord
