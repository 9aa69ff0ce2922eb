#include "core/base/read_whole_file.h"

#include <fstream>

namespace tensord {

std::optional<std::string> read_whole_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in.is_open()) return std::nullopt;
  // Uses read(), because stream iterators throw their own exception where the path is a folder.
  std::string text;
  for (char piece[4096]; in.read(piece, sizeof(piece)), in.gcount() > 0;)
    text.append(piece, static_cast<size_t>(in.gcount()));
  if (in.bad()) return std::nullopt;
  return text;
}

}  // namespace tensord
