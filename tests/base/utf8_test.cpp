#include "core/base/utf8.h"

#include "core/base/printable.h"

#include <gtest/gtest.h>

namespace tensord::utf8_test {
namespace {

TEST(Utf8, WhatIsValidStays) {
  for (const char* text : {"", "plain, ä, €, 😀", "\xef\xbf\xbd"}) {
    EXPECT_TRUE(is_utf8(text));
    EXPECT_EQ(to_valid_utf8(text), text);
  }
}

TEST(Utf8, BytesOfNoCharacterAreReplaced) {
  const std::string bad = "\xef\xbf\xbd";
  EXPECT_EQ(to_valid_utf8("a\xff z"), "a" + bad + " z");
  EXPECT_EQ(to_valid_utf8("\xc3"), bad);
  EXPECT_EQ(to_valid_utf8("\xe2\x82"
                          "a"),
            bad + bad + "a");                                 // truncated
  EXPECT_EQ(to_valid_utf8("\xc0\xaf"), bad + bad);            // overlong
  EXPECT_EQ(to_valid_utf8("\xed\xa0\x80"), bad + bad + bad);  // lone surrogate
  EXPECT_EQ(to_valid_utf8("\xf5\x80\x80\x80"), bad + bad + bad + bad);
  for (int byte = 0; byte < 256; ++byte) EXPECT_TRUE(is_utf8(to_valid_utf8(std::string(3, static_cast<char>(byte)))));
}

TEST(Printable, WhatIsShownStaysAndWhatIsNotIsEscaped) {
  for (const char* text : {"", "plain, ä, €, 日本語, 😀", "שלום", "a\\b"}) {
    EXPECT_EQ(to_printable(text), text);
    EXPECT_EQ(to_printable_json(text), text);
  }
  // The first and last of each range, and their neighbors.
  const std::pair<std::string, const char*> rows[] = {
      {std::string(1, '\0'), R"(\u0000)"},
      {"\x1b[2J\n", R"(\u001b[2J\u000a)"},
      {"\x1f \x7e\x7f", R"(\u001f ~\u007f)"},
      {"\xc2\x80\xc2\x9b\xc2\x9f\u00a0", "\\u0080\\u009b\\u009f\u00a0"},
      {"\u00ac\u00ad\u00ae", "\u00ac\\u00ad\u00ae"},
      {"\u061b\u061c\u061d", "\u061b\\u061c\u061d"},
      {"\u200a\u200b\u200f\u2010", "\u200a\\u200b\\u200f\u2010"},
      {"\u2027\u2028\u2029\u202e\u202f", "\u2027\\u2028\\u2029\\u202e\u202f"},
      {"\u205f\u2060\u2066\u2069\u206f\u2070", "\u205f\\u2060\\u2066\\u2069\\u206f\u2070"},
      {"\ufefe\ufeff\uff00", "\ufefe\\ufeff\uff00"},
  };
  for (const auto& [text, shown] : rows) {
    EXPECT_EQ(to_printable(text), shown);
    EXPECT_EQ(to_printable_json(text), shown);
  }
  EXPECT_EQ(to_printable("\U000e0041"), R"(\U000e0041)");
  EXPECT_EQ(to_printable_json("\U000e0041"), R"(\udb40\udc41)");
  EXPECT_EQ(to_printable("a\xff\xe2\x80"), R"(a\xff\xe2\x80)");
}

}  // namespace
}  // namespace tensord::utf8_test
