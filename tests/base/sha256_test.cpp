#include "core/base/sha256.h"

#include <gtest/gtest.h>

namespace tensord {
namespace {

std::string of(const std::string& bytes) {
  Sha256 hash;
  hash.add(bytes);
  return hash.finish();
}

// What coreutils' sha256sum prints.
TEST(Sha256, EqualsSha256sum) {
  EXPECT_EQ(of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(of(std::string(1000000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PiecesDoNotMatter) {
  std::string bytes;
  for (int i = 0; i < 300; ++i) bytes += static_cast<char>(i * 7);
  // The lengths around a block's end, where the padding takes one block or two.
  for (const size_t size : {1, 54, 55, 56, 57, 63, 64, 65, 119, 120, 127, 128, 129, 300}) {
    const std::string text = bytes.substr(0, size);
    for (const size_t piece : {1, 3, 63, 64, 65}) {
      Sha256 hash;
      for (size_t at = 0; at < size; at += piece) hash.add(std::string_view(text).substr(at, piece));
      EXPECT_EQ(hash.finish(), of(text)) << size << " by " << piece;
    }
  }
  EXPECT_EQ(of(bytes.substr(0, 55)), "576a1bf8d4478657e6dc4af9398544765c2a92cde28478b019235cfed315fc09");
  EXPECT_EQ(of(bytes.substr(0, 56)), "9b20501dfd1d99161c257950f3444f3e49230c351c5c8e0943ef369f85f5205d");
  EXPECT_EQ(of(bytes.substr(0, 64)), "d8bc63b4fc1156e5e7d95a418b9bf54cd3174bedbc2db40f74895349b229b3c0");
}

}  // namespace
}  // namespace tensord
