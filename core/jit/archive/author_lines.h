#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tensord::jit {

// From an offset of a file of the archive's code on: the line of the model's author that it was made from.
struct AuthorLine {
  uint32_t offset = 0;
  int line = 0;                             // 0: nobody knows
  std::shared_ptr<const std::string> file;  // its name without folders, which are the author's own
};

// What torch.jit.save wrote beside a file of code, with a table of strings or, in older versions, without one.
// Ascending by offset; empty where it is not readable: it is only for messages.
std::vector<AuthorLine> read_author_lines(std::string_view pickle);

}  // namespace tensord::jit
