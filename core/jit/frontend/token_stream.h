#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/jit/frontend/lexer.h"

namespace tensord::jit {

// A cursor over the tokens of a file.
class TokenStream {
 public:
  explicit TokenStream(const SourceText& source) : source_(source), tokens_(tokenize(source)) {}

  const SourceText& source() const { return source_; }
  const Token& peek(size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
  const Token& next() {
    const Token& token = peek();
    if (at_ + 1 < tokens_.size()) ++at_;
    return token;
  }
  uint32_t last_end() const { return at_ == 0 ? 0 : tokens_[at_ - 1].end; }
  bool is(TokenKind kind) const { return peek().kind == kind; }
  // Whether the token is this symbol or keyword.
  bool is(std::string_view word, size_t ahead = 0) const {
    const Token& token = peek(ahead);
    return (token.kind == TokenKind::kSymbol || token.kind == TokenKind::kName) && text(token) == word;
  }
  bool take(std::string_view word) {
    if (!is(word)) return false;
    next();
    return true;
  }
  bool take(TokenKind kind) {
    if (!is(kind)) return false;
    next();
    return true;
  }
  void expect(std::string_view word) {
    if (!take(word)) fail("expected '" + std::string(word) + "'");
  }
  std::string_view text(const Token& token) const {
    return source_.text().substr(token.begin, token.end - token.begin);
  }
  [[noreturn]] void fail(const std::string& message) const { source_.fail(peek().begin, message); }

 private:
  const SourceText& source_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
};

}  // namespace tensord::jit
