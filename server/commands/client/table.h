#pragma once

#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace tensord::server {

// Rows of text in columns, for people: a header, two spaces between the columns, numbers to the right. Control
// characters, which a server may send, are printed as spaces.
class Table {
 public:
  explicit Table(std::vector<std::string> header);
  // REQUIRES: as many cells as the header has.
  void add(std::vector<std::string> row);
  void print(std::ostream& out) const;

 private:
  std::vector<std::vector<std::string>> rows_;  // the header first
};

// A number with so many significant digits, as "0.0231".
std::string number_text(double value, int digits = 4);
// A number with so many digits behind the point, as "12.340".
std::string fixed_text(double value, int decimals);
// The text with control characters as spaces, and all else that a terminal does not show escaped.
std::string printable(std::string text);
// Of several lines: all but their ends and tabs is escaped.
std::string printable_lines(std::string_view text);
// How many columns of a terminal a text of UTF-8 takes, as far as each character takes one.
size_t width_of(const std::string& text);

}  // namespace tensord::server
