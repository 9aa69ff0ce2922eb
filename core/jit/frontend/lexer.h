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

// Splits a script into tokens by Python's rules: indentation becomes kIndent and kDedent,
// lines join inside brackets and after a backslash, comments vanish. Ends with kEnd. Throws
// Error with a caret for what is no token; bracket and indentation depth are bounded.
std::vector<Token> tokenize(const SourceText& source);

// The value of a string token, escapes resolved. Throws as above.
std::string decode_string(const SourceText& source, const Token& token);

}  // namespace tensord::jit
