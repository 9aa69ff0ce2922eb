#include "core/jit/frontend/lexer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tensord::jit::frontend_lexer_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> words(const std::string& text) {
  const SourceText source("m.py", text);
  std::vector<std::string> out;
  for (const Token& token : tokenize(source)) {
    EXPECT_LE(token.end, text.size());
    switch (token.kind) {
      case TokenKind::kNewline: out.emplace_back("NEWLINE"); break;
      case TokenKind::kIndent: out.emplace_back("INDENT"); break;
      case TokenKind::kDedent: out.emplace_back("DEDENT"); break;
      case TokenKind::kEnd: out.emplace_back("END"); break;
      default: out.push_back(text.substr(token.begin, token.end - token.begin));
    }
  }
  return out;
}

std::string error(const std::string& text) {
  try {
    words(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string string_value(const std::string& text) {
  const SourceText source("m.py", text);
  return decode_string(source, tokenize(source).front());
}

std::string error_of_string(const std::string& text) {
  try {
    return string_value(text);
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(Lexer, IndentationBecomesTokens) {
  EXPECT_THAT(words("if a:\n  b\n\n    # a comment\n  c\nd"),
              ElementsAre("if", "a", ":", "NEWLINE", "INDENT", "b", "NEWLINE", "c", "NEWLINE", "DEDENT", "d", "NEWLINE",
                          "END"));
}

// A tab advances to the next multiple of 8.
TEST(Lexer, TabsAreColumns) {
  EXPECT_THAT(words("a:\n\tb\n        c\n  \td\n\t\te"),
              ElementsAre("a", ":", "NEWLINE", "INDENT", "b", "NEWLINE", "c", "NEWLINE", "d", "NEWLINE", "INDENT", "e",
                          "NEWLINE", "DEDENT", "DEDENT", "END"));
  EXPECT_THAT(words("a:\n\t b\n         c"),
              ElementsAre("a", ":", "NEWLINE", "INDENT", "b", "NEWLINE", "c", "NEWLINE", "DEDENT", "END"));
}

TEST(Lexer, OpenBlocksAreClosedAtTheEnd) {
  EXPECT_THAT(words("a:\n b:\n  c"), ElementsAre("a", ":", "NEWLINE", "INDENT", "b", ":", "NEWLINE", "INDENT", "c",
                                                 "NEWLINE", "DEDENT", "DEDENT", "END"));
}

TEST(Lexer, LinesJoinInsideOfBracketsAndAfterABackslash) {
  EXPECT_THAT(words("f(a,\n      b)\nc \\\n  d"),
              ElementsAre("f", "(", "a", ",", "b", ")", "NEWLINE", "c", "d", "NEWLINE", "END"));
}

TEST(Lexer, TextsThatEndWithinALine) {
  EXPECT_THAT(words("a  # a comment"), ElementsAre("a", "NEWLINE", "END"));
  EXPECT_THAT(words("a \\"), ElementsAre("a", "NEWLINE", "END"));
  EXPECT_THAT(words("a\r\n  \r\nb\r\n"), ElementsAre("a", "NEWLINE", "b", "NEWLINE", "END"));
}

TEST(Lexer, NumbersInEveryForm) {
  EXPECT_THAT(words("1 1. .5 1e+22 1.5e-3 2.j 0x1F 1_000"),
              ElementsAre("1", "1.", ".5", "1e+22", "1.5e-3", "2.j", "0x1F", "1_000", "NEWLINE", "END"));
}

TEST(Lexer, AttributesOfNumbersAreNoNumbers) { EXPECT_THAT(error("1abc"), HasSubstr("this is not a number")); }

TEST(Lexer, StringEscapes) {
  EXPECT_EQ(string_value(R"("a\\b\"c\'d\n\t\r\v")"), "a\\b\"c'd\n\t\r\v");
  EXPECT_EQ(string_value(R"("\001\1770")"), std::string("\001\1770"));
  EXPECT_EQ(string_value(R"('\x41\u00e9')"), "A\xC3\xA9");
  EXPECT_EQ(string_value(R"(r"\n")"), "\\n");
  EXPECT_EQ(string_value(R"("#no comment")"), "#no comment");
  EXPECT_EQ(string_value(R"('\7\18\1!')"),
            "\7\1"
            "8\1!");
  EXPECT_EQ(string_value(R"(R"\n")"), "\\n");
  EXPECT_EQ(string_value("\"\"\"two\nlines\"\"\""), "two\nlines");
  EXPECT_EQ(string_value("'''a'b''c'''"), "a'b''c");
  EXPECT_EQ(string_value("''"), "");
  EXPECT_THAT(error_of_string("F'a'"), HasSubstr("f-strings are not supported"));
  EXPECT_THAT(error_of_string("B'a'"), HasSubstr("bytes are not supported"));
}

TEST(Lexer, ErrorsShowTheLineAndACaret) {
  EXPECT_EQ(error("a = 1\nb = $ + 2\n"), "m.py:2:5: unexpected character\n  b = $ + 2\n      ^");
}

TEST(Lexer, WhatIsNeverClosedIsAnError) {
  EXPECT_THAT(error("x = \"abc\ny"), HasSubstr("m.py:1:5: the string is never closed"));
  EXPECT_THAT(error("x = '''abc\ny"), HasSubstr("the string is never closed"));
  EXPECT_THAT(error("x = \"abc\\"), HasSubstr("the string is never closed"));
  EXPECT_THAT(error("f(a, [b)"), HasSubstr("m.py:1:8: the bracket was never opened"));
  EXPECT_THAT(error("f(a"), HasSubstr("m.py:1:2: the bracket is never closed"));
}

TEST(Lexer, DedentMustMatchAnOuterBlock) {
  EXPECT_THAT(error("a:\n    b\n  c"), HasSubstr("m.py:3:3: the indentation matches no outer block"));
}

TEST(Lexer, DepthIsBounded) {
  EXPECT_THAT(error(std::string(100000, '(')), HasSubstr("brackets are nested too deeply"));
  std::string blocks;
  for (size_t i = 0; i < 500; ++i) blocks += std::string(i, ' ') + "a:\n";
  EXPECT_THAT(error(blocks), HasSubstr("blocks are nested too deeply"));
}

TEST(Lexer, LongLinesAreCutAroundTheCaret) {
  const std::string message = error(std::string(5000, 'a') + " $");
  EXPECT_LT(message.size(), 500u);
  EXPECT_THAT(message, HasSubstr("m.py:1:5002: "));
  EXPECT_THAT(message, HasSubstr(std::string(69, 'a') + " $\n  " + std::string(70, ' ') + "^"));
  EXPECT_THAT(error("abc $" + std::string(200, 'a')), HasSubstr("\n  abc $" + std::string(135, 'a') + "\n      ^"));
  const std::string whole = std::string(138, 'a') + " $";
  EXPECT_THAT(error(whole), HasSubstr("\n  " + whole + "\n"));
}

}  // namespace
}  // namespace tensord::jit::frontend_lexer_test
