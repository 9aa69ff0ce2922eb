#include "core/jit/frontend/lexer.h"

#include <algorithm>
#include <cctype>

#include "core/base/ascii.h"
#include "core/base/utf8.h"

namespace tensord::jit {
namespace {

constexpr size_t kMaxBracketDepth = 200;
constexpr size_t kMaxIndentDepth = 100;

bool is_name_start(char c) { return is_ascii_letter(c) || c == '_' || static_cast<unsigned char>(c) >= 0x80; }
bool is_name_part(char c) { return is_name_start(c) || is_ascii_digit(c); }

class Lexer {
 public:
  explicit Lexer(const SourceText& source) : source_(source), text_(source.text()) {}

  std::vector<Token> run() {
    while (at_ < text_.size()) {
      if (at_line_start_) {
        if (!indentation()) continue;
      }
      token();
    }
    if (!brackets_.empty()) source_.fail(brackets_.back(), "the bracket is never closed");
    if (!tokens_.empty() && tokens_.back().kind != TokenKind::kNewline) push(TokenKind::kNewline, at_, at_);
    for (; indents_.size() > 1; indents_.pop_back()) push(TokenKind::kDedent, at_, at_);
    push(TokenKind::kEnd, at_, at_);
    return std::move(tokens_);
  }

 private:
  char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  void push(TokenKind kind, size_t begin, size_t end) {
    tokens_.push_back({kind, static_cast<uint32_t>(begin), static_cast<uint32_t>(end)});
  }
  bool is_line_end(size_t at) const {
    return at >= text_.size() || text_[at] == '\n' ||
           (text_[at] == '\r' && at + 1 < text_.size() && text_[at + 1] == '\n');
  }
  void skip_comment() { at_ = std::min(text_.find('\n', at_), text_.size()); }

  // Measures the indentation of a line. Returns false after it skipped an empty line.
  bool indentation() {
    size_t column = 0;
    for (; peek() == ' ' || peek() == '\t' || peek() == '\f'; ++at_)
      column = peek() == '\t' ? (column / 8 + 1) * 8 : column + 1;
    if (peek() == '#') skip_comment();
    if (is_line_end(at_)) {
      at_ = std::min(text_.find('\n', at_), text_.size() - 1) + 1;
      return false;
    }
    at_line_start_ = false;
    if (column > indents_.back()) {
      if (indents_.size() >= kMaxIndentDepth) source_.fail(at_, "blocks are nested too deeply");
      indents_.push_back(column);
      push(TokenKind::kIndent, at_, at_);
    }
    for (; column < indents_.back(); indents_.pop_back()) push(TokenKind::kDedent, at_, at_);
    if (column != indents_.back()) source_.fail(at_, "the indentation matches no outer block");
    return true;
  }

  void token() {
    const char c = peek();
    if (c == ' ' || c == '\t' || c == '\r' || c == '\f') {
      ++at_;
    } else if (c == '\n') {
      if (brackets_.empty()) {
        push(TokenKind::kNewline, at_, at_);
        at_line_start_ = true;
      }
      ++at_;
    } else if (c == '#') {
      skip_comment();
    } else if (c == '\\' && is_line_end(at_ + 1)) {
      at_ = std::min(text_.find('\n', at_), text_.size() - 1) + 1;
    } else if (is_string_start()) {
      string();
    } else if (is_name_start(c)) {
      const size_t begin = at_;
      while (is_name_part(peek())) ++at_;
      push(TokenKind::kName, begin, at_);
    } else if (is_ascii_digit(c) || (c == '.' && is_ascii_digit(peek(1)))) {
      number();
    } else {
      symbol();
    }
  }

  bool is_string_start() const {
    size_t ahead = 0;
    while (ahead < 2 && peek(ahead) != '\0' && std::string_view("rRbBuUfF").find(peek(ahead)) != std::string_view::npos)
      ++ahead;
    return peek(ahead) == '"' || peek(ahead) == '\'';
  }

  void string() {
    const size_t begin = at_;
    while (peek() != '"' && peek() != '\'') ++at_;
    const char quote = peek();
    const bool is_triple = peek(1) == quote && peek(2) == quote;
    at_ += is_triple ? 3 : 1;
    while (true) {
      if (at_ >= text_.size() || (!is_triple && peek() == '\n')) source_.fail(begin, "the string is never closed");
      if (peek() == '\\') {
        at_ += 2;
      } else if (peek() == quote && (!is_triple || (peek(1) == quote && peek(2) == quote))) {
        at_ += is_triple ? 3 : 1;
        break;
      } else {
        ++at_;
      }
    }
    push(TokenKind::kString, begin, at_);
  }

  void digits() {
    while (is_ascii_digit(peek()) || (peek() == '_' && is_ascii_digit(peek(1)))) ++at_;
  }

  void number() {
    const size_t begin = at_;
    bool is_float = false;
    if (peek() == '0' && (peek(1) == 'x' || peek(1) == 'X')) {
      at_ += 2;
      while (std::isxdigit(static_cast<unsigned char>(peek()))) ++at_;
    } else {
      digits();
      if (peek() == '.') {
        is_float = true;
        ++at_;
        digits();
      }
      const size_t sign = peek(1) == '+' || peek(1) == '-' ? 2 : 1;
      if ((peek() == 'e' || peek() == 'E') && is_ascii_digit(peek(sign))) {
        is_float = true;
        at_ += sign;
        digits();
      }
    }
    if (peek() == 'j' || peek() == 'J') {
      ++at_;
      push(TokenKind::kImaginary, begin, at_);
    } else {
      push(is_float ? TokenKind::kFloat : TokenKind::kInt, begin, at_);
    }
    if (is_name_part(peek())) source_.fail(begin, "this is not a number");
  }

  void symbol() {
    static constexpr std::string_view kSymbols[] = {
        "**=", "//=", "<<=", ">>=", "...", "**", "//", "<<", ">>", "<=", ">=", "==", "!=", "->", "+=", "-=",
        "*=",  "/=",  "%=",  "@=",  "&=",  "|=", "^=", ":=", "+",  "-",  "*",  "/",  "%",  "@",  "&",  "|",
        "^",   "~",   "<",   ">",   "(",   ")",  "[",  "]",  "{",  "}",  ",",  ":",  ".",  ";",  "=",  "!"};
    const std::string_view rest = text_.substr(at_);
    for (const std::string_view symbol : kSymbols) {
      if (!rest.starts_with(symbol)) continue;
      bracket(symbol[0]);
      push(TokenKind::kSymbol, at_, at_ + symbol.size());
      at_ += symbol.size();
      return;
    }
    source_.fail(at_, "unexpected character");
  }

  void bracket(char c) {
    if (c == '(' || c == '[' || c == '{') {
      if (brackets_.size() >= kMaxBracketDepth) source_.fail(at_, "brackets are nested too deeply");
      brackets_.push_back(at_);
    } else if (c == ')' || c == ']' || c == '}') {
      const char open = c == ')' ? '(' : c == ']' ? '[' : '{';
      if (brackets_.empty() || text_[brackets_.back()] != open) source_.fail(at_, "the bracket was never opened");
      brackets_.pop_back();
    }
  }

  const SourceText& source_;
  std::string_view text_;
  std::vector<Token> tokens_;
  std::vector<size_t> brackets_;
  std::vector<size_t> indents_{0};
  size_t at_ = 0;
  bool at_line_start_ = true;
};

// Reads the escape sequence after the backslash at `at` and moves `at` past it.
void append_escape(std::string& out, std::string_view body, size_t& at, const SourceText& source, size_t offset) {
  static constexpr std::string_view kLetters = "abfnrtv\\'\"";
  static constexpr std::string_view kValues = "\a\b\f\n\r\t\v\\'\"";
  const char c = body[at++];
  if (const size_t i = kLetters.find(c); i != std::string_view::npos) {
    out += kValues[i];
  } else if (c >= '0' && c <= '7') {
    uint32_t code = static_cast<uint32_t>(c - '0');
    for (int k = 0; k < 2 && at < body.size() && body[at] >= '0' && body[at] <= '7'; ++k)
      code = code * 8 + static_cast<uint32_t>(body[at++] - '0');
    out += static_cast<char>(code);
  } else if (c == 'x' || c == 'u' || c == 'U') {
    const size_t count = c == 'x' ? 2 : c == 'u' ? 4 : 8;
    uint32_t code = 0;
    for (size_t k = 0; k < count; ++k, ++at) {
      if (at >= body.size() || !std::isxdigit(static_cast<unsigned char>(body[at])))
        source.fail(offset, "bad escape in a string");
      code = code * 16 + static_cast<uint32_t>(std::stoi(std::string(1, body[at]), nullptr, 16));
    }
    if (c == 'x') {
      out += static_cast<char>(code);
    } else {
      append_utf8(out, code);
    }
  } else if (c != '\n') {
    out += '\\';
    out += c;
  }
}

}  // namespace

std::vector<Token> tokenize(const SourceText& source) { return Lexer(source).run(); }

std::string decode_string(const SourceText& source, const Token& token) {
  std::string_view text = source.text().substr(token.begin, token.end - token.begin);
  const size_t prefix = text.find_first_of("\"'");
  bool is_raw = false;
  for (const char c : text.substr(0, prefix)) {
    if (c == 'f' || c == 'F') source.fail(ErrorCode::kUnimplemented, token.begin, "f-strings are not supported");
    if (c == 'b' || c == 'B') source.fail(ErrorCode::kUnimplemented, token.begin, "bytes are not supported");
    is_raw |= c == 'r' || c == 'R';
  }
  text.remove_prefix(prefix);
  const size_t quotes = text.size() >= 6 && text[1] == text[0] ? 3 : 1;
  const std::string_view body = text.substr(quotes, text.size() - 2 * quotes);
  if (is_raw) return std::string(body);
  std::string out;
  for (size_t at = 0; at < body.size();) {
    if (body[at] != '\\') {
      out += body[at++];
    } else {
      ++at;
      append_escape(out, body, at, source, token.begin);
    }
  }
  return out;
}

}  // namespace tensord::jit
