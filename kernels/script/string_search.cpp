#include <algorithm>
#include <cctype>

#include "core/ops/attributes/exported.h"
#include "core/ops/op.h"

// Searching and splitting list_of_strings, on bytes as in libtorch.
namespace tensord::kernels {
namespace {

using ops::List;
using ops::Value;
using Text = const std::string&;

List list_of_strings(std::vector<std::string> parts) {
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
  return {start, end};
}

// libtorch refuses a start beyond the text, and takes an end before the start as the text's end.
std::string_view part_of(Text text, Range range) {
  if (range.begin > static_cast<int64_t>(text.size())) {
    fail(ErrorCode::kOutOfRange, "start ", range.begin, " is behind a text of ", text.size(), " bytes");
  }
  const auto begin = static_cast<size_t>(range.begin);
  return std::string_view(text).substr(
      begin, range.end < range.begin ? std::string_view::npos : static_cast<size_t>(range.end - range.begin));
}

// Unlike in part_of, a range that ends before it starts is empty here, and an empty part is found in it.
template <class Find>
int64_t find_within(Text text, int64_t start, int64_t end, Find find) {
  const Range range = range_of(text, start, end);
  const size_t found = find(range.end > range.begin ? part_of(text, range) : std::string_view());
  return found == std::string_view::npos ? -1 : range.begin + static_cast<int64_t>(found);
}

int64_t find(Text text, Text part, int64_t start, int64_t end) {
  return find_within(text, start, end, [&](std::string_view within) { return within.find(part); });
}

int64_t find_last(Text text, Text part, int64_t start, int64_t end) {
  return find_within(text, start, end, [&](std::string_view within) { return within.rfind(part); });
}

int64_t found_or_fail(int64_t index) {
  check(index >= 0, "ValueError: substring not found");
  return index;
}

// Counts the parts that begin before the end. libtorch never returns for an empty part; here such a part is counted as
// in Python.
int64_t count(Text text, Text part, int64_t start, int64_t end) {
  const Range range = range_of(text, start, end);
  const int64_t last = std::min(range.end, static_cast<int64_t>(text.size()));
  if (part.empty()) return std::max<int64_t>(0, last - range.begin + 1);
  int64_t found = 0;
  for (size_t at = text.find(part, static_cast<size_t>(range.begin));
       at != std::string::npos && static_cast<int64_t>(at) < last; at = text.find(part, at + part.size())) {
    ++found;
  }
  return found;
}

bool starts_with(Text text, Text part, int64_t start, int64_t end) {
  return part_of(text, range_of(text, start, end)).starts_with(part);
}

bool ends_with(Text text, Text part, int64_t start, int64_t end) {
  return part_of(text, range_of(text, start, end)).ends_with(part);
}

bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

// Splits at runs of white space; libtorch takes no limit there.
List split_at_spaces(Text text) {
  std::vector<std::string> parts;
  size_t at = 0;
  while (true) {
    while (at < text.size() && is_space(text[at])) ++at;
    if (at == text.size()) break;
    const size_t begin = at;
    while (at < text.size() && !is_space(text[at])) ++at;
    parts.push_back(text.substr(begin, at - begin));
  }
  return list_of_strings(std::move(parts));
}

List split_text(Text text, const std::optional<std::string>& separator, int64_t limit) {
  if (!separator) return split_at_spaces(text);
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
  return list_of_strings(std::move(parts));
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
  return list_of_strings(std::move(parts));
}

// libtorch splits at every line character, so "\r\n" contains an empty line; with keepends the line ends are items of
// their own.
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
    parts.push_back(text.substr(at, found - at));
    if (keep) parts.push_back(text.substr(found, 1));
    at = found + 1;
  }
  return list_of_strings(std::move(parts));
}

using Parts = std::tuple<std::string, std::string, std::string>;

// An empty separator is found at the beginning, or at the end when searching from the right.
Parts partition(Text text, Text separator) {
  const size_t found = text.find(separator);
  if (found == std::string::npos) return {text, "", ""};
  return {text.substr(0, found), separator, text.substr(found + separator.size())};
}

Parts partition_from_right(Text text, Text separator) {
  const size_t found = text.rfind(separator);
  if (found == std::string::npos) return {"", "", text};
  return {text.substr(0, found), separator, text.substr(found + separator.size())};
}

OP("aten::find").impl(find);
OP("aten::rfind").impl(find_last);
OP("aten::index.str").impl([](Text text, Text part, int64_t start, int64_t end) {
  return found_or_fail(find(text, part, start, end));
});
OP("aten::rindex").impl([](Text text, Text part, int64_t start, int64_t end) {
  return found_or_fail(find_last(text, part, start, end));
});
OP("aten::count").impl(count);
OP("aten::startswith").impl(starts_with);
OP("aten::endswith").impl(ends_with);
OP("aten::__contains__.str_str")
    .impl([](Text text, Text part) { return text.find(part) != std::string::npos; })
    .set<ops::ComparesNumbers>();
OP("aten::split.str").impl(split_text);
OP("aten::rsplit").impl(split_from_right);
OP("aten::splitlines").impl(split_lines);
OP("aten::partition").impl(partition);
OP("aten::rpartition").impl(partition_from_right);

}  // namespace
}  // namespace tensord::kernels
