#include "core/base/read_whole_file.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace tensord::read_whole_file_test {
namespace {

TEST(FileText, GivesEveryByteOrNothing) {
  std::string folder = (std::filesystem::temp_directory_path() / "tensord_text_XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string path = folder + "/text";
  EXPECT_EQ(read_whole_file(path), std::nullopt) << "it is not there";
  EXPECT_EQ(read_whole_file(folder), std::nullopt) << "a folder";
  EXPECT_EQ(read_whole_file(""), std::nullopt);
  for (const size_t size : {0, 1, 4095, 4096, 4097, 8192, 10000}) {
    std::string content(size, 'x');
    for (size_t i = 0; i < size; ++i) content[i] = static_cast<char>(i * 7);
    std::ofstream(path, std::ios::binary) << content;
    EXPECT_EQ(read_whole_file(path), content) << size;
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace tensord::read_whole_file_test
