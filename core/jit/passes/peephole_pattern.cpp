#include "core/jit/passes/peephole_pattern.h"

#include <cctype>

#include "core/base/error.h"
#include "core/ops/attributes/rank.h"
#include "core/ops/registry.h"

namespace tensord::jit {

namespace {

class PatternParser {
 public:
  explicit PatternParser(std::string_view text) : text_(text) {}

  Pattern parse_all() {
    Pattern pattern = parse();
    if (position_ != text_.size()) error();
    return pattern;
  }

 private:
  [[noreturn]] void error() const {
    fail(ErrorCode::kInternal, "peephole pattern \"", text_, "\" does not parse at ", position_);
  }

  bool take(char c) {
    while (position_ < text_.size() && text_[position_] == ' ') ++position_;
    if (position_ >= text_.size() || text_[position_] != c) return false;
    ++position_;
    return true;
  }

  std::string word() {
    while (position_ < text_.size() && text_[position_] == ' ') ++position_;
    size_t begin = position_;
    while (position_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[position_])) ||
                                        std::string_view("_.:-*~").find(text_[position_]) != std::string_view::npos)) {
      ++position_;
    }
    if (begin == position_) error();
    return std::string(text_.substr(begin, position_ - begin));
  }

  Pattern parse() {
    Pattern out;
    std::string name = word();
    if (take('=')) {
      out.name = name;
      name = word();
    }
    if (take('(')) {
      out.kind = Pattern::Kind::kCall;
      out.swaps = name.ends_with('~');
      if (out.swaps) name.pop_back();
      if (name.ends_with(".*")) {
        const auto overloads = ops::find_overloads(name.substr(0, name.size() - 2));
        out.ops.assign(overloads.begin(), overloads.end());
      } else if (name == "keeps_rank") {
        for (const ops::Op* op : ops::all_ops()) {
          if (ops::keeps_rank(*op)) out.ops.push_back(op);
        }
      } else if (const ops::Op* op = ops::find_op(name)) {
        out.ops.push_back(op);
      }
      while (!take(')')) {
        if (!out.arguments.empty() && !take(',')) error();
        Pattern argument = parse();
        out.is_open = argument.name == "...";
        if (!out.is_open) out.arguments.push_back(std::move(argument));
      }
      return out;
    }
    if (name == "_") return out;
    out.kind = Pattern::Kind::kLiteral;
    if (name == "None") return out;
    if (name == "True" || name == "False") {
      out.literal = name == "True";
    } else if (std::isdigit(static_cast<unsigned char>(name[0])) || name[0] == '-') {
      out.literal =
          name.find('.') == std::string::npos ? ops::Value(int64_t{std::stoll(name)}) : ops::Value(std::stod(name));
    } else {
      out.kind = Pattern::Kind::kName;
      out.name = name;
    }
    return out;
  }

  std::string_view text_;
  size_t position_ = 0;
};

}  // namespace

bool Pattern::is_incomplete() const {
  if (kind == Kind::kCall && ops.empty()) return true;
  for (const Pattern& argument : arguments) {
    if (argument.is_incomplete()) return true;
  }
  return false;
}

Pattern parse_pattern(std::string_view text) { return PatternParser(text).parse_all(); }

}  // namespace tensord::jit
