#include <algorithm>
#include <cctype>

#include "core/ops/op.h"

// Searching and splitting strings, on bytes as in libtorch.
namespace tensord::kernels {
namespace {

using ops::List;
using ops::Value;
using Text = const std::string&;

List strings(std::vector<std::string> parts) {
  std::vector<Value> items;
  for (std::string& part : parts) items.emplace_back(std::move(part));
  return ops::make_list(ops::string_type(), std::move(items));
}

struct Range {
  int64_t begin, end;
};

// start and end as in libtorch, where the default end of -1 means the last byte is included.
Range range_of(Text text, int64_t start, int64_t end) {
  const auto size = static_cast<int64_t>(text.size());
  if (start < 0) start = std::max<int64_t>(0, start + size);
  if (end < 0) end = std::max<int64_t>(0, end + size + 1);
  return {start, std::min(end, size)};
}

int64_t find(Text text, Text part, int64_t start, int64_t end) {
  const Range range = range_of(text, start, end);
  if (range.begin > range.end) return -1;
  const size_t found = std::string_view(text).substr(0, range.end).find(part, range.begin);
  return found == std::string::npos ? -1 : static_cast<int64_t>(found);
}

int64_t find_last(Text text, Text part, int64_t start, int64_t end) {
  const Range range = range_of(text, start, end);
  if (range.begin > range.end) return -1;
  const size_t found = std::string_view(text).substr(0, range.end).rfind(part);
  return found == std::string::npos || static_cast<int64_t>(found) < range.begin ? -1 : static_cast<int64_t>(found);
}

int64_t found_or_fail(int64_t index) {
  check(index >= 0, "ValueError: substring not found");
  return index;
}

int64_t count(Text text, Text part, int64_t start, int64_t end) {
  const Range range = range_of(text, start, end);
  if (range.begin > range.end) return 0;
  if (part.empty()) return range.end - range.begin + 1;
  const std::string_view window = std::string_view(text).substr(range.begin, range.end - range.begin);
  int64_t found = 0;
  for (size_t at = window.find(part); at != std::string_view::npos; at = window.find(part, at + part.size())) ++found;
  return found;
}

bool starts_with(Text text, Text part, int64_t start, int64_t end) {
  const Range range = range_of(text, start, end);
  return range.begin <= range.end &&
         std::string_view(text).substr(range.begin, range.end - range.begin).starts_with(part);
}

bool ends_with(Text text, Text part, int64_t start, int64_t end) {
  const Range range = range_of(text, start, end);
  return range.begin <= range.end &&
         std::string_view(text).substr(range.begin, range.end - range.begin).ends_with(part);
}

bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

// At runs of white space; at most `limit` cuts.
List split_at_spaces(Text text, int64_t limit) {
  std::vector<std::string> parts;
  size_t at = 0;
  while (true) {
    while (at < text.size() && is_space(text[at])) ++at;
    if (at == text.size()) break;
    if (limit >= 0 && static_cast<int64_t>(parts.size()) == limit) {
      parts.push_back(text.substr(at));
      break;
    }
    const size_t begin = at;
    while (at < text.size() && !is_space(text[at])) ++at;
    parts.push_back(text.substr(begin, at - begin));
  }
  return strings(std::move(parts));
}

List split(Text text, const std::optional<std::string>& separator, int64_t limit) {
  if (!separator) return split_at_spaces(text, limit);
  check(!separator->empty(), "ValueError: empty separator");
  std::vector<std::string> parts;
  size_t at = 0;
  while (limit < 0 || static_cast<int64_t>(parts.size()) < limit) {
    const size_t found = text.find(*separator, at);
    if (found == std::string::npos) break;
    parts.push_back(text.substr(at, found - at));
    at = found + separator->size();
  }
  parts.push_back(text.substr(at));
  return strings(std::move(parts));
}

List split_from_right(Text text, Text separator, int64_t limit) {
  check(!separator.empty(), "ValueError: empty separator");
  std::vector<std::string> parts;
  std::string rest = text;
  while (limit < 0 || static_cast<int64_t>(parts.size()) < limit) {
    const size_t found = rest.rfind(separator);
    if (found == std::string::npos) break;
    parts.push_back(rest.substr(found + separator.size()));
    rest.resize(found);
  }
  parts.push_back(rest);
  std::reverse(parts.begin(), parts.end());
  return strings(std::move(parts));
}

// libtorch cuts at every line character, so "\r\n" gives an empty line between.
List split_lines(Text text, bool keep) {
  std::vector<std::string> parts;
  constexpr std::string_view kEnds = "\n\r\v\f\x1c\x1d\x1e\x85";
  size_t at = 0;
  while (at < text.size()) {
    const size_t found = text.find_first_of(kEnds, at);
    if (found == std::string::npos) {
      parts.push_back(text.substr(at));
      break;
    }
    parts.push_back(text.substr(at, found - at + (keep ? 1 : 0)));
    at = found + 1;
  }
  return strings(std::move(parts));
}

using Parts = std::tuple<std::string, std::string, std::string>;

Parts partition(Text text, Text separator) {
  check(!separator.empty(), "ValueError: empty separator");
  const size_t found = text.find(separator);
  if (found == std::string::npos) return {text, "", ""};
  return {text.substr(0, found), separator, text.substr(found + separator.size())};
}

Parts partition_from_right(Text text, Text separator) {
  check(!separator.empty(), "ValueError: empty separator");
  const size_t found = text.rfind(separator);
  if (found == std::string::npos) return {"", "", text};
  return {text.substr(0, found), separator, text.substr(found + separator.size())};
}

OP("aten::find(str self, str substr, int start=0, int end=-1) -> int").direct(find);
OP("aten::rfind(str self, str substr, int start=0, int end=-1) -> int").direct(find_last);
OP("aten::index.str(str self, str substr, int start=0, int end=-1) -> int")
    .direct([](Text text, Text part, int64_t start, int64_t end) {
      return found_or_fail(find(text, part, start, end));
    });
OP("aten::rindex(str self, str substr, int start=0, int end=-1) -> int")
    .direct([](Text text, Text part, int64_t start, int64_t end) {
      return found_or_fail(find_last(text, part, start, end));
    });
OP("aten::count(str self, str substr, int start=0, int end=-1) -> int").direct(count);
OP("aten::startswith(str self, str substr, int start=0, int end=-1) -> bool").direct(starts_with);
OP("aten::endswith(str self, str substr, int start=0, int end=-1) -> bool").direct(ends_with);
OP("aten::__contains__.str_str(str self, str item) -> bool").direct([](Text text, Text part) {
  return text.find(part) != std::string::npos;
});
OP("aten::split.str(str self, str? separator=None, int max=-1) -> str[]").direct(split);
OP("aten::rsplit(str self, str separator=\" \", int max=-1) -> str[]").direct(split_from_right);
OP("aten::splitlines(str self, bool keepends=False) -> str[]").direct(split_lines);
OP("aten::partition(str self, str separator) -> (str, str, str)").direct(partition);
OP("aten::rpartition(str self, str separator) -> (str, str, str)").direct(partition_from_right);

}  // namespace
}  // namespace tensord::kernels
