#include "core/jit/frontend/source_text.h"

#include <algorithm>

namespace tensord::jit {
namespace {

// Offsets have 32 bits; the largest known file is below 1 MB.
constexpr size_t kMaxSourceBytes = size_t{256} << 20;
// Of longer lines, errors show only the part around the caret.
constexpr size_t kMaxShownColumns = 140;

std::string caret_text(std::string_view line, size_t column) {
  const size_t begin = line.size() > kMaxShownColumns ? column - std::min(column, kMaxShownColumns / 2) : 0;
  std::string shown(line.substr(begin, kMaxShownColumns));
  std::replace_if(
      shown.begin(), shown.end(), [](unsigned char c) { return c < 0x20; }, ' ');
  return "\n  " + shown + "\n  " + std::string(column - begin, ' ') + "^";
}

}  // namespace

SourceText::SourceText(std::string name, std::string text) {
  check(text.size() <= kMaxSourceBytes, name, ": the file has ", text.size(), " bytes, more than ", kMaxSourceBytes);
  line_begins_.push_back(0);
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n') line_begins_.push_back(static_cast<uint32_t>(i + 1));
  }
  name_ = std::make_shared<const std::string>(std::move(name));
  text_ = std::make_shared<const std::string>(std::move(text));
}

void SourceText::set_origins(std::vector<SourceOrigin> origins) {
  origins_ = std::make_shared<const std::vector<SourceOrigin>>(std::move(origins));
}

const SourceOrigin* SourceText::origin(size_t offset) const {
  if (!origins_) return nullptr;
  const auto after = std::ranges::upper_bound(*origins_, offset, {}, &SourceOrigin::offset);
  if (after == origins_->begin()) return nullptr;
  const SourceOrigin& found = *std::prev(after);
  return found.line > 0 && found.file ? &found : nullptr;
}

SourceLocation SourceText::location(size_t offset) const {
  const SourceOrigin* found = origin(offset);
  return found ? SourceLocation{found->file, nullptr, found->line, 1} : own_location(offset);
}

SourceLocation SourceText::own_location(size_t offset) const {
  const auto after = std::upper_bound(line_begins_.begin(), line_begins_.end(), static_cast<uint32_t>(offset));
  const auto line = static_cast<size_t>(after - line_begins_.begin());
  return {name_, text_, static_cast<int>(line), static_cast<int>(offset - line_begins_[line - 1] + 1)};
}

void SourceText::fail(ErrorCode code, size_t offset, const std::string& message) const {
  const SourceLocation at = own_location(offset);
  const SourceOrigin* written = origin(offset);
  const size_t begin = line_begins_[static_cast<size_t>(at.line - 1)];
  const std::string_view rest = text().substr(begin);
  const std::string_view line = rest.substr(0, rest.find('\n'));
  const std::string place = written ? concat(*written->file, ":", written->line, ": ") : std::string();
  throw Error(code, concat(name(), ":", at.line, ":", at.column, ": ", place, message,
                           caret_text(line, static_cast<size_t>(at.column - 1))));
}

}  // namespace tensord::jit
