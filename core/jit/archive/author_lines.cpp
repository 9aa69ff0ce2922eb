#include "core/jit/archive/author_lines.h"

#include <algorithm>
#include <map>
#include <optional>

#include "core/base/error.h"
#include "core/jit/archive/pickle.h"

namespace tensord::jit {
namespace {

using ops::Value;

constexpr std::string_view kWithTable = "FORMAT_WITH_STRING_TABLE";

// An author's file is named without its folders; one of PyTorch's own as "torch/nn/modules/linear.py".
std::string without_folders(const std::string& path) {
  const size_t package = path.find("-packages/torch/");
  if (package != std::string::npos) return path.substr(path.find("torch/", package));
  return path.substr(path.find_last_of("/\\") + 1);
}

const std::vector<Value>* items_of(const Value& value) {
  if (value.is_tuple()) return &value.to_tuple()->items;
  return value.is_list() ? &value.to_list()->items : nullptr;
}

const std::vector<Value>* items_of(const Value& value, size_t count) {
  const std::vector<Value>* items = items_of(value);
  return items && items->size() == count ? items : nullptr;
}

class LineReader {
 public:
  std::vector<AuthorLine> read(const Value& whole) {
    const std::vector<Value>* parts = items_of(whole);
    if (!parts || parts->empty()) return {};
    if (parts->size() == 3 && (*parts)[0].is_string() && (*parts)[0].to_string() == kWithTable) {
      table_ = items_of((*parts)[1]);
      parts = table_ ? items_of((*parts)[2]) : nullptr;
    }
    std::vector<AuthorLine> lines;
    if (!parts) return lines;
    for (const Value& entry : *parts) {
      if (std::optional<AuthorLine> line = read_entry(entry)) lines.push_back(std::move(*line));
    }
    std::ranges::stable_sort(lines, {}, &AuthorLine::offset);
    return lines;
  }

 private:
  // (offset, (source, begin, end), tag)
  std::optional<AuthorLine> read_entry(const Value& entry) {
    const std::vector<Value>* parts = items_of(entry);
    if (!parts || parts->size() < 2 || !(*parts)[0].is_int()) return std::nullopt;
    const std::vector<Value>* range = items_of((*parts)[1], 3);
    if (!range || !(*range)[1].is_int()) return std::nullopt;
    const int64_t offset = (*parts)[0].to_int();
    if (offset < 0 || offset > UINT32_MAX) return std::nullopt;
    AuthorLine out;
    out.offset = static_cast<uint32_t>(offset);
    place((*range)[0], (*range)[1].to_int(), out);
    return out;
  }

  struct Source {
    std::shared_ptr<const std::string> file;  // null: unknown
    int64_t first_line = 0;
    std::vector<uint32_t> line_ends;
  };

  void place(const Value& source, int64_t begin, AuthorLine& out) {
    const Source& known = source_of(source);
    if (!known.file || begin < 0) return;
    const auto before =
        std::ranges::lower_bound(known.line_ends, static_cast<uint64_t>(begin)) - known.line_ends.begin();
    out.line = static_cast<int>(known.first_line + before);
    out.file = known.file;
  }

  // Reads (text, file name, number of its first line). Most ranges share one source.
  const Source& source_of(const Value& source) {
    const auto [at, is_new] = sources_.emplace(source.is_tuple() ? source.identity() : nullptr, Source{});
    Source& out = at->second;
    const std::vector<Value>* parts = items_of(source, 3);
    if (!is_new || !parts || !(*parts)[2].is_int()) return out;
    const std::string name = text((*parts)[1]);
    const std::string base = without_folders(name);
    const std::string code = text((*parts)[0]);
    text_bytes_ += code.size();
    const int64_t first = (*parts)[2].to_int();
    if (base.empty() || text_bytes_ > kMaxTextBytes || first < 0 || first > INT32_MAX / 2) return out;
    out.first_line = first;
    for (size_t i = 0; i < code.size(); ++i) {
      if (code[i] == '\n') out.line_ends.push_back(static_cast<uint32_t>(i));
    }
    std::shared_ptr<const std::string>& file = files_[base];
    if (!file) file = std::make_shared<const std::string>(base);
    out.file = file;
    return out;
  }

  // Resolves a text, or its index in the string table. A list of indices gives the concatenation of the texts.
  std::string text(const Value& value) const {
    if (value.is_string()) return value.to_string();
    if (value.is_int()) {
      const int64_t number = value.to_int();
      const bool is_there = table_ && number >= 0 && number < std::ssize(*table_);
      const Value* found = is_there ? &(*table_)[static_cast<size_t>(number)] : nullptr;
      return found && found->is_string() ? found->to_string() : std::string();
    }
    std::string out;
    const std::vector<Value>* items = items_of(value);
    if (!items || items->size() > kMaxParts) return out;
    for (const Value& item : *items) {
      if (item.is_int() && out.size() <= kMaxTextBytes) out += text(item);
    }
    return out;
  }

  static constexpr size_t kMaxParts = 1 << 16, kMaxTextBytes = 64 << 20;
  const std::vector<Value>* table_ = nullptr;
  std::map<std::string, std::shared_ptr<const std::string>> files_;
  std::map<const void*, Source> sources_;
  size_t text_bytes_ = 0;
};

}  // namespace

std::vector<AuthorLine> read_author_lines(std::string_view pickle) {
  try {
    UnpickleContext context;
    context.source = "debug_pkl";
    const Unpickled read = unpickle(pickle, context);
    return LineReader().read(read.value);
  } catch (const Error&) {
    return {};
  }
}

}  // namespace tensord::jit
