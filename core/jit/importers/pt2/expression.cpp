#include "core/jit/importers/pt2/expression.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>

#include "core/base/error.h"

namespace tensord::jit::pt2 {
namespace {

using Kind = Expression::Kind;

constexpr int kMaxExpressionDepth = 100;
constexpr size_t kMaxText = 1 << 16;

// Names of SymPy's classes and Python's functions that are operations of Expression.
struct Name {
  std::string_view name, operation;
};
constexpr Name kNames[] = {
    {"Add", "+"},
    {"Mul", "*"},
    {"FloorDiv", "//"},
    {"CleanDiv", "//"},
    {"Mod", "%"},
    {"PythonMod", "%"},
    {"Max", "max"},
    {"Min", "min"},
    {"max", "max"},
    {"min", "min"},
    {"torch.sym_max", "max"},
    {"torch.sym_min", "min"},
    {"IntTrueDiv", "/"},
    {"FloatTrueDiv", "/"},
    {"Eq", "=="},
    {"Equality", "=="},
    {"Ne", "!="},
    {"Unequality", "!="},
    {"LessThan", "<="},
    {"StrictLessThan", "<"},
    {"GreaterThan", ">="},
    {"StrictGreaterThan", ">"},
    {"And", "and"},
    {"Or", "or"},
    {"Not", "not"},
    {"PowByNatural", "**"},
    {"Pow", "**"},
    {"floor", "floor"},
    {"math.floor", "floor"},
    {"ceiling", "ceil"},
    {"math.ceil", "ceil"},
    {"math.trunc", "trunc"},
    {"int", "trunc"},
    {"float", "float"},
    {"ToFloat", "float"},
    {"abs", "abs"},
    {"Abs", "abs"},
    {"math.sqrt", "sqrt"},
};

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Expression run() {
    if (text_.size() > kMaxText) refuse("it is too long");
    Expression out = disjunction();
    skip_spaces();
    if (at_ != text_.size()) refuse(concat("unexpected '", text_.substr(at_, 8), "'"));
    return out;
  }

 private:
  struct Level {
    explicit Level(Parser& parser) : parser(parser) {
      if (++parser.depth_ > kMaxExpressionDepth) parser.refuse("it is nested too deep");
    }
    ~Level() { --parser.depth_; }
    Parser& parser;
  };

  [[noreturn]] void refuse(const std::string& why) const {
    fail(ErrorCode::kUnimplemented, "'", text_.substr(0, 200), "': ", why);
  }

  void skip_spaces() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool take(std::string_view token) {
    skip_spaces();
    if (!text_.substr(at_).starts_with(token)) return false;
    const bool is_word = std::isalpha(static_cast<unsigned char>(token[0]));
    if (is_word && at_ + token.size() < text_.size() && is_name(text_[at_ + token.size()])) return false;
    at_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!take(token)) refuse(concat("expected '", token, "' at character ", at_));
  }
  static bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

  static Expression call(std::string_view operation, std::vector<Expression> operands) {
    Expression out;
    out.kind = Kind::kCall;
    out.text = operation;
    out.operands = std::move(operands);
    return out;
  }

  // A left-associative chain of operators of one precedence level.
  template <class Next>
  Expression chain(std::initializer_list<std::string_view> operators, Next next) {
    const Level level(*this);
    Expression left = next();
    for (int count = 0;; ++count) {
      std::optional<std::string_view> found;
      for (const std::string_view candidate : operators) {
        // "*" must not match the first half of "**", nor "/" that of "//".
        skip_spaces();
        const std::string_view rest = text_.substr(at_);
        if (candidate.size() == 1 && (candidate == "*" || candidate == "/") && rest.size() > 1 &&
            rest[1] == candidate[0])
          continue;
        if (take(candidate)) {
          found = candidate;
          break;
        }
      }
      if (!found) return left;
      if (count > kMaxExpressionDepth) refuse("it is too long");
      std::vector<Expression> operands;
      operands.push_back(std::move(left));
      operands.push_back(next());
      left = call(*found, std::move(operands));
    }
  }

  Expression disjunction() {
    return chain({"or"}, [this] { return conjunction(); });
  }
  Expression conjunction() {
    return chain({"and"}, [this] { return negation(); });
  }
  Expression negation() {
    const Level level(*this);
    if (!take("not")) return comparison();
    std::vector<Expression> operand;
    operand.push_back(negation());
    return call("not", std::move(operand));
  }
  Expression comparison() {
    const Level level(*this);
    Expression left = sum();
    for (const std::string_view op : {"==", "!=", "<=", ">=", "<", ">"}) {
      if (!take(op)) continue;
      std::vector<Expression> operands;
      operands.push_back(std::move(left));
      operands.push_back(sum());
      return call(op, std::move(operands));
    }
    return left;
  }
  Expression sum() {
    return chain({"+", "-"}, [this] { return product(); });
  }
  Expression product() {
    return chain({"*", "//", "/", "%"}, [this] { return factor(); });
  }
  Expression factor() {
    const Level level(*this);
    if (take("-")) {
      std::vector<Expression> operand;
      operand.push_back(factor());
      return call("neg", std::move(operand));
    }
    Expression base = atom();
    if (!take("**")) return base;
    std::vector<Expression> operands;
    operands.push_back(std::move(base));
    operands.push_back(factor());
    return call("**", std::move(operands));
  }

  Expression atom() {
    const Level level(*this);
    if (take("(")) {
      Expression inner = disjunction();
      expect(")");
      return inner;
    }
    skip_spaces();
    if (at_ >= text_.size()) refuse("it ends too early");
    const char c = text_[at_];
    if (std::isdigit(static_cast<unsigned char>(c)) || c == '.') return number();
    if (c == '\'' || c == '"') {
      Expression out;
      out.kind = Kind::kText;
      out.text = quoted();
      return out;
    }
    if (!is_name(c)) refuse(concat("unexpected '", c, "'"));
    return named();
  }

  Expression number() {
    Expression out;
    const char* begin = text_.data() + at_;
    const char* end = text_.data() + text_.size();
    auto [stop, error] = std::from_chars(begin, end, out.number);
    if (error != std::errc()) stop = begin;
    if (stop != begin && (stop == end || (*stop != '.' && *stop != 'e'))) {
      at_ += static_cast<size_t>(stop - begin);
      return out;
    }
    out.kind = Kind::kFloat;
    const auto real = std::from_chars(begin, end, out.real);
    if (real.ec != std::errc()) refuse("a number is malformed");
    at_ += static_cast<size_t>(real.ptr - begin);
    return out;
  }

  std::string quoted() {
    const char quote = text_[at_++];
    const size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != quote) ++at_;
    if (at_ >= text_.size()) refuse("a text does not end");
    return std::string(text_.substr(begin, at_++ - begin));
  }

  Expression named() {
    const size_t begin = at_;
    while (at_ < text_.size() && (is_name(text_[at_]) || text_[at_] == '.')) ++at_;
    const std::string name(text_.substr(begin, at_ - begin));
    Expression out;
    if (name == "True" || name == "true" || name == "False" || name == "false") {
      out.kind = Kind::kBool;
      out.number = name == "True" || name == "true";
      return out;
    }
    if (name == "L") return source();
    if (!take("(")) {
      if (name.find('.') != std::string::npos) refuse(concat("'", name, "' is not known"));
      out.kind = Kind::kSymbol;
      out.text = name;
      return out;
    }
    if (name == "Symbol") return symbol();
    std::vector<Expression> operands = arguments();
    if (name == "Integer" && operands.size() == 1) return std::move(operands[0]);
    const auto known = std::ranges::find(kNames, std::string_view(name), &Name::name);
    if (known == std::end(kNames)) refuse(concat("'", name, "' is not known"));
    if (operands.empty()) refuse(concat("'", name, "' has no operands"));
    return call(known->operation, std::move(operands));
  }

  std::vector<Expression> arguments() {
    std::vector<Expression> operands;
    if (take(")")) return operands;
    do {
      operands.push_back(disjunction());
    } while (take(","));
    expect(")");
    return operands;
  }

  // Parses Symbol('s0', positive=True, integer=True) and ignores the assumptions.
  Expression symbol() {
    skip_spaces();
    if (at_ >= text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) refuse("a symbol has no name");
    Expression out;
    out.kind = Kind::kSymbol;
    out.text = quoted();
    while (!take(")")) {
      if (at_ >= text_.size()) refuse("a symbol does not end");
      ++at_;
    }
    return out;
  }

  // Parses L['x'][0].size()[1].
  Expression source() {
    Expression out;
    out.kind = Kind::kSource;
    while (take("[")) {
      skip_spaces();
      if (at_ >= text_.size()) refuse("it ends too early");
      if (text_[at_] == '\'' || text_[at_] == '"') {
        out.path.push_back(quoted());
      } else {
        const Expression index = number();
        if (index.kind != Kind::kInt) refuse("an index is not an integer");
        out.path.push_back(std::to_string(index.number));
      }
      expect("]");
    }
    // A field of a dataclass is an attribute.
    while (take(".")) {
      const size_t begin = at_;
      while (at_ < text_.size() && is_name(text_[at_])) ++at_;
      const std::string name(text_.substr(begin, at_ - begin));
      const bool is_call = take("(");
      if (is_call) expect(")");
      if (!is_call && name != "shape") {
        out.path.push_back(name);
        continue;
      }
      out.call = name == "shape" ? "size" : name;
      if (take("[")) {
        const Expression index = number();
        if (index.kind != Kind::kInt) refuse("an index is not an integer");
        out.number = index.number;
        expect("]");
      }
    }
    return out;
  }

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
};

void collect(const Expression& expression, std::vector<std::string>& names) {
  if (expression.kind == Kind::kSymbol && std::ranges::find(names, expression.text) == names.end()) {
    names.push_back(expression.text);
  }
  for (const Expression& operand : expression.operands) collect(operand, names);
}

}  // namespace

Expression parse_expression(std::string_view text) { return Parser(text).run(); }

std::vector<std::string> symbols_of(const Expression& expression) {
  std::vector<std::string> names;
  collect(expression, names);
  return names;
}

}  // namespace tensord::jit::pt2
