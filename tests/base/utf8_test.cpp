#include "core/base/utf8.h"

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
            bad + bad + "a");                                 // cut off
  EXPECT_EQ(to_valid_utf8("\xc0\xaf"), bad + bad);            // longer than it must be
  EXPECT_EQ(to_valid_utf8("\xed\xa0\x80"), bad + bad + bad);  // half of a pair
  EXPECT_EQ(to_valid_utf8("\xf5\x80\x80\x80"), bad + bad + bad + bad);
  for (int byte = 0; byte < 256; ++byte) EXPECT_TRUE(is_utf8(to_valid_utf8(std::string(3, static_cast<char>(byte)))));
}

}  // namespace
}  // namespace tensord::utf8_test
