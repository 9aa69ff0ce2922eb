#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/jit/frontend/source_text.h"

namespace tensord::jit {

enum class TokenKind : uint8_t { kName, kInt, kFloat, kImaginary, kString, kSymbol, kNewline, kIndent, kDedent, kEnd };

struct Token {
  TokenKind kind;
  uint32_t begin = 0, end = 0;  // offsets into the file
};

// Splits a script into tokens by Python's rules: indentation becomes kIndent and kDedent, lines continue inside
// brackets and after a backslash, comments are dropped. The last token is kEnd. Throws Error with a caret for invalid
// text; the depth of brackets and indentation is limited.
std::vector<Token> tokenize(const SourceText& source);

// The value of a string token with escapes decoded. Throws as tokenize does.
std::string decode_string(const SourceText& source, const Token& token);

}  // namespace tensord::jit
