#include "core/jit/frontend/expression_parser.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <span>

#include "core/base/cancellation.h"

namespace tensord::jit {
namespace {

constexpr int kMaxLevel = 220;
constexpr int kMaxTreeDepth = 250;
// Limits the time to search for duplicate keywords.
constexpr size_t kMaxKeywords = 500;

bool is_keyword(std::string_view word) {
  static constexpr std::string_view kWords[] = {"and",  "as",     "assert", "break",  "class",  "continue", "def",
                                                "del",  "elif",   "else",   "except", "for",    "from",     "global",
                                                "if",   "import", "in",     "is",     "lambda", "not",      "or",
                                                "pass", "raise",  "return", "try",    "while",  "with",     "yield"};
  return std::find(std::begin(kWords), std::end(kWords), word) != std::end(kWords);
}

struct BinaryOperator {
  std::string_view text;
  int precedence;  // a higher one binds tighter
};

constexpr BinaryOperator kOperators[] = {{"|", 0}, {"^", 1}, {"&", 2}, {"<<", 3}, {">>", 3}, {"+", 4},
                                         {"-", 4}, {"*", 5}, {"/", 5}, {"//", 5}, {"%", 5},  {"@", 5}};

// Null if the token is none.
const BinaryOperator* find_operator(std::string_view text) {
  const auto* found = std::ranges::find(kOperators, text, &BinaryOperator::text);
  return found == std::end(kOperators) ? nullptr : found;
}

}  // namespace

ExpressionParser::Level::Level(ExpressionParser& parser) : parser_(parser) {
  if (parser.level_ >= kMaxLevel) parser.tokens_.fail("the code is nested too deeply");
  ++parser.level_;
}

Expr& ExpressionParser::make(ExprKind kind, uint32_t begin) {
  Expr& expr = tree_.exprs.emplace_back();
  expr.kind = kind;
  expr.begin = begin;
  return expr;
}

const Expr* ExpressionParser::finish(Expr& expr) {
  expr.end = tokens_.last_end();
  int depth = 0;
  for (const Expr* item : expr.items) depth = std::max<int>(depth, item ? item->depth : 0);
  for (const Keyword& keyword : expr.keywords) depth = std::max<int>(depth, keyword.value->depth);
  if (depth >= kMaxTreeDepth) tree_.source.fail(expr.begin, "the expression is nested too deeply");
  expr.depth = static_cast<uint16_t>(depth + 1);
  return &expr;
}

const Expr* ExpressionParser::binary(std::string_view op, const Expr* left, const Expr* right) {
  Expr& expr = make(ExprKind::kBinary, left->begin);
  expr.text = op;
  expr.items = {left, right};
  return finish(expr);
}

bool ExpressionParser::at_list_end() const {
  const Token& token = tokens_.peek();
  if (token.kind == TokenKind::kNewline || token.kind == TokenKind::kEnd) return true;
  return tokens_.is("=") || tokens_.is(":") || tokens_.is(")") || tokens_.is("]") || tokens_.is("}") ||
         tokens_.is("in") || tokens_.is(";");
}

const Expr* ExpressionParser::expression_list() {
  const Expr* first = expression();
  if (!tokens_.is(",")) return first;
  Expr& tuple = make(ExprKind::kTuple, first->begin);
  tuple.items.push_back(first);
  while (tokens_.take(",") && !at_list_end()) tuple.items.push_back(expression());
  return finish(tuple);
}

const Expr* ExpressionParser::target_list() {
  const Expr* first = postfix();
  if (!tokens_.is(",")) return first;
  Expr& tuple = make(ExprKind::kTuple, first->begin);
  tuple.items.push_back(first);
  while (tokens_.take(",") && !at_list_end()) tuple.items.push_back(postfix());
  return finish(tuple);
}

const Expr* ExpressionParser::expression() {
  check_work_cancelled();
  const Level level(*this);
  const Expr* value = or_test();
  if (!tokens_.is("if")) return value;
  tokens_.next();
  Expr& expr = make(ExprKind::kIfElse, value->begin);
  const Expr* condition = or_test();
  tokens_.expect("else");
  expr.items = {value, condition, expression()};
  return finish(expr);
}

const Expr* ExpressionParser::or_test() {
  const Expr* left = and_test();
  while (tokens_.take("or")) {
    Expr& expr = make(ExprKind::kOr, left->begin);
    expr.items = {left, and_test()};
    left = finish(expr);
  }
  return left;
}

const Expr* ExpressionParser::and_test() {
  const Expr* left = not_test();
  while (tokens_.take("and")) {
    Expr& expr = make(ExprKind::kAnd, left->begin);
    expr.items = {left, not_test()};
    left = finish(expr);
  }
  return left;
}

const Expr* ExpressionParser::not_test() {
  if (!tokens_.is("not")) return comparison();
  const Level level(*this);
  Expr& expr = make(ExprKind::kUnary, tokens_.peek().begin);
  tokens_.next();
  expr.text = "not";
  expr.items = {not_test()};
  return finish(expr);
}

std::string_view ExpressionParser::comparison_operator() {
  for (const std::string_view op : {"<", ">", "<=", ">=", "==", "!="}) {
    if (tokens_.take(op)) return op;
  }
  if (tokens_.take("in")) return "in";
  if (tokens_.take("is")) return tokens_.take("not") ? "is not" : "is";
  if (tokens_.is("not") && tokens_.is("in", 1)) {
    tokens_.next();
    tokens_.next();
    return "not in";
  }
  return {};
}

// "a < b < c" is "a < b and b < c".
const Expr* ExpressionParser::comparison() {
  const Expr* left = operators(0);
  const Expr* result = nullptr;
  for (std::string_view op = comparison_operator(); !op.empty(); op = comparison_operator()) {
    const Expr* right = operators(0);
    const Expr* test = binary(op, left, right);
    if (result) {
      Expr& both = make(ExprKind::kAnd, result->begin);
      both.items = {result, test};
      test = finish(both);
    }
    result = test;
    left = right;
  }
  return result ? result : left;
}

const Expr* ExpressionParser::operators(int lowest) {
  const Expr* left = unary();
  while (tokens_.is(TokenKind::kSymbol)) {
    const BinaryOperator* op = find_operator(tokens_.text(tokens_.peek()));
    if (!op || op->precedence < lowest) break;
    tokens_.next();
    left = binary(op->text, left, operators(op->precedence + 1));
  }
  return left;
}

const Expr* ExpressionParser::unary() {
  for (const std::string_view op : {"-", "+", "~"}) {
    if (!tokens_.is(op)) continue;
    const Level level(*this);
    const uint32_t begin = tokens_.next().begin;
    // The most negative int has no positive counterpart, so the sign is parsed with the literal.
    if (op == "-" && tokens_.is(TokenKind::kInt) && tokens_.text(tokens_.peek()) == "9223372036854775808") {
      tokens_.next();
      Expr& expr = make(ExprKind::kInt, begin);
      expr.int_value = std::numeric_limits<int64_t>::min();
      return finish(expr);
    }
    const Expr* operand = unary();
    Expr& expr = make(ExprKind::kUnary, begin);
    if (op == "-" && operand->kind == ExprKind::kInt && operand->int_value != std::numeric_limits<int64_t>::min()) {
      expr.kind = ExprKind::kInt;
      expr.int_value = -operand->int_value;
    } else if (op == "-" && operand->kind == ExprKind::kFloat) {
      expr.kind = ExprKind::kFloat;
      expr.float_value = -operand->float_value;
    } else {
      expr.text = op;
      expr.items = {operand};
    }
    return finish(expr);
  }
  return power();
}

const Expr* ExpressionParser::power() {
  const Expr* base = postfix();
  if (!tokens_.is("**")) return base;
  const Level level(*this);
  tokens_.next();
  return binary("**", base, unary());
}

const Expr* ExpressionParser::postfix() {
  const Expr* expr = atom();
  while (true) {
    if (tokens_.is("(")) {
      expr = call(expr);
    } else if (tokens_.is("[")) {
      expr = subscript(expr);
    } else if (tokens_.take(".")) {
      if (!tokens_.is(TokenKind::kName)) tokens_.fail("expected a name after '.'");
      Expr& attribute = make(ExprKind::kAttribute, expr->begin);
      attribute.text = tokens_.text(tokens_.next());
      attribute.items = {expr};
      expr = finish(attribute);
    } else {
      return expr;
    }
  }
}

const Expr* ExpressionParser::call(const Expr* callee) {
  const Level level(*this);
  tokens_.expect("(");
  Expr& expr = make(ExprKind::kCall, callee->begin);
  expr.items.push_back(callee);
  while (!tokens_.is(")")) {
    if (tokens_.is("*") || tokens_.is("**")) {
      tokens_.source().fail(ErrorCode::kUnimplemented, tokens_.peek().begin, "starred arguments are not supported");
    }
    if (tokens_.is(TokenKind::kName) && tokens_.is("=", 1)) {
      if (expr.keywords.size() >= kMaxKeywords) tokens_.fail("too many keyword arguments");
      const std::string_view name = tokens_.text(tokens_.next());
      tokens_.next();
      for (const Keyword& other : expr.keywords) {
        if (other.name == name) tokens_.fail("argument '" + std::string(name) + "' is given twice");
      }
      expr.keywords.push_back({name, expression()});
    } else {
      if (!expr.keywords.empty()) tokens_.fail("a positional argument after a keyword argument");
      expr.items.push_back(expression());
    }
    if (!tokens_.take(",")) break;
  }
  tokens_.expect(")");
  return finish(expr);
}

const Expr* ExpressionParser::subscript_item() {
  const uint32_t begin = tokens_.peek().begin;
  const Expr* first = tokens_.is(":") ? nullptr : expression();
  if (!tokens_.is(":")) return first;
  Expr& slice = make(ExprKind::kSlice, begin);
  slice.items = {first, nullptr, nullptr};
  for (size_t i = 1; i < 3 && tokens_.take(":"); ++i) {
    if (!tokens_.is(":") && !tokens_.is("]") && !tokens_.is(",")) slice.items[i] = expression();
  }
  return finish(slice);
}

const Expr* ExpressionParser::subscript(const Expr* base) {
  const Level level(*this);
  tokens_.expect("[");
  const uint32_t begin = tokens_.peek().begin;
  const Expr* index = subscript_item();
  if (tokens_.is(",")) {
    Expr& tuple = make(ExprKind::kTuple, begin);
    tuple.items.push_back(index);
    while (tokens_.take(",") && !tokens_.is("]")) tuple.items.push_back(subscript_item());
    index = finish(tuple);
  }
  tokens_.expect("]");
  Expr& expr = make(ExprKind::kSubscript, base->begin);
  expr.items = {base, index};
  return finish(expr);
}

const Expr* ExpressionParser::atom() {
  const Token& token = tokens_.peek();
  switch (token.kind) {
    case TokenKind::kInt:
    case TokenKind::kFloat:
    case TokenKind::kImaginary: return number();
    case TokenKind::kString: return strings();
    case TokenKind::kName: break;
    default:
      if (tokens_.is("(")) return parenthesized();
      if (tokens_.is("[")) return list();
      if (tokens_.is("{")) return dict();
      if (tokens_.is("...")) {
        tokens_.next();
        return finish(make(ExprKind::kEllipsis, token.begin));
      }
      tokens_.fail("expected an expression");
  }
  const std::string_view name = tokens_.text(token);
  if (is_keyword(name)) tokens_.fail("expected an expression but got '" + std::string(name) + "'");
  tokens_.next();
  const ExprKind kind = name == "True"    ? ExprKind::kTrue
                        : name == "False" ? ExprKind::kFalse
                        : name == "None"  ? ExprKind::kNone
                                          : ExprKind::kName;
  Expr& expr = make(kind, token.begin);
  expr.text = name;
  return finish(expr);
}

const Expr* ExpressionParser::number() {
  const Token& token = tokens_.next();
  std::string text(tokens_.text(token));
  std::erase(text, '_');
  if (token.kind == TokenKind::kInt) {
    Expr& expr = make(ExprKind::kInt, token.begin);
    const bool is_hex = text.size() > 1 && (text[1] == 'x' || text[1] == 'X');
    const char* begin = text.data() + (is_hex ? 2 : 0);
    const auto [end, error] = std::from_chars(begin, text.data() + text.size(), expr.int_value, is_hex ? 16 : 10);
    if (error != std::errc() || end != text.data() + text.size()) {
      tokens_.source().fail(token.begin, "the number does not fit 64 bits");
    }
    return finish(expr);
  }
  const bool is_imaginary = token.kind == TokenKind::kImaginary;
  Expr& expr = make(is_imaginary ? ExprKind::kComplex : ExprKind::kFloat, token.begin);
  const char* last = text.data() + text.size() - (is_imaginary ? 1 : 0);
  const auto [end, error] = std::from_chars(text.data(), last, expr.float_value);
  // Out of the range of double: strtod returns infinity or zero, as Python does.
  if (error == std::errc::result_out_of_range) {
    expr.float_value = std::strtod(text.c_str(), nullptr);
  } else if (error != std::errc() || end != last) {
    tokens_.source().fail(token.begin, "this is not a number");
  }
  return finish(expr);
}

const Expr* ExpressionParser::strings() {
  Expr& expr = make(ExprKind::kString, tokens_.peek().begin);
  std::string text;
  while (tokens_.is(TokenKind::kString)) text += decode_string(tokens_.source(), tokens_.next());
  expr.text = tree_.strings.emplace_back(std::move(text));
  return finish(expr);
}

const Expr* ExpressionParser::parenthesized() {
  const uint32_t begin = tokens_.next().begin;
  if (tokens_.is(")")) {
    tokens_.next();
    return finish(make(ExprKind::kTuple, begin));
  }
  const Expr* inner = expression_list();
  tokens_.expect(")");
  return inner;
}

const Expr* ExpressionParser::list() {
  const Level level(*this);
  Expr& expr = make(ExprKind::kList, tokens_.next().begin);
  while (!tokens_.is("]")) {
    expr.items.push_back(expression());
    if (tokens_.is("for")) {
      tokens_.source().fail(ErrorCode::kUnimplemented, tokens_.peek().begin, "list comprehensions are not supported");
    }
    if (!tokens_.take(",")) break;
  }
  tokens_.expect("]");
  return finish(expr);
}

const Expr* ExpressionParser::dict() {
  const Level level(*this);
  Expr& expr = make(ExprKind::kDict, tokens_.next().begin);
  while (!tokens_.is("}")) {
    expr.items.push_back(expression());
    tokens_.expect(":");
    expr.items.push_back(expression());
    if (!tokens_.take(",")) break;
  }
  tokens_.expect("}");
  return finish(expr);
}

}  // namespace tensord::jit
