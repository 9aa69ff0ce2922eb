#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tensord::jit {

// Maps code of the archive, from an offset on, to the line of the model author's source that it was compiled from.
struct AuthorLine {
  uint32_t offset = 0;
  int line = 0;                             // 0: unknown
  std::shared_ptr<const std::string> file;  // without folders, which are private to the author; torch/… for PyTorch
};

// Reads the debug file that torch.jit.save writes next to a code file; it has a string table except in older versions.
// Sorted by offset. Empty if it cannot be read, because only error messages use it.
std::vector<AuthorLine> read_author_lines(std::string_view pickle);

}  // namespace tensord::jit
