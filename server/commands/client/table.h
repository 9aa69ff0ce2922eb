#pragma once

#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace tensord::server {

// A text table with a header, two spaces between columns and right-aligned numbers. Control characters, which a server
// may send, are printed as spaces.
class Table {
 public:
  explicit Table(std::vector<std::string> header);
  // REQUIRES: as many cells as the header has.
  void add(std::vector<std::string> row);
  void print(std::ostream& out) const;

 private:
  std::vector<std::vector<std::string>> rows_;  // the header is first
};

// Formats with `digits` significant digits: "0.0231".
std::string number_text(double value, int digits = 4);
// Formats with `decimals` digits after the point: "12.340".
std::string fixed_text(double value, int decimals);
// Replaces control characters by spaces and escapes other unprintable characters.
std::string printable(std::string text);
// Escapes unprintable characters except line ends and tabs.
std::string printable_lines(std::string_view text);
// Number of code points in UTF-8 text: its width on a terminal if every character takes one column.
size_t width_of(const std::string& text);

}  // namespace tensord::server
