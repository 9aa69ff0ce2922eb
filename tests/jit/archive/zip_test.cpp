#include "core/jit/archive/zip.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>

#include "core/base/error.h"
#include "core/jit/archive/crc32.h"
#include "core/jit/archive/zip_writer.h"
#include "core/tensor/mapped_file.h"
#include "tests/support/places.h"

namespace tensord::jit::zip_test {
namespace {

std::string random_text(size_t size) {
  std::minstd_rand engine(7);
  std::string text(size, '\0');
  for (char& c : text) c = static_cast<char>(engine() >> 8);
  return text;
}

TEST(Crc32, IsZlibs) {
  const std::string text = random_text(100000);
  const auto expect_same = [&](size_t begin, size_t size) {
    const auto* bytes = reinterpret_cast<const Bytef*>(text.data() + begin);
    EXPECT_EQ(crc32_of(text.data() + begin, size), crc32(0, bytes, static_cast<uInt>(size))) << begin << " " << size;
  };
  for (size_t size = 0; size < 300; ++size) {
    for (const size_t begin : {0, 1, 15}) expect_same(begin, size);
  }
  expect_same(3, 99990);
}

TEST(ZipArchive, ReleasesWhatWasOnlyRead) {
  const std::string path = std::filesystem::temp_directory_path() / ("zip_test_" + std::to_string(getpid()));
  const std::string text = random_text(1 << 20);
  {
    ZipWriter writer(path);
    writer.add("m/data", text);
    writer.finish();
  }
  const auto archive = ZipArchive::open(path);
  std::filesystem::remove(path);                                  // the mapping keeps the file
  const Storage storage = archive->storage(archive->at("data"));  // reads everything, to compare the CRC
  char* bytes = static_cast<char*>(storage->data());
  bytes[500000] = static_cast<char>(text[500000] + 1);

  const size_t page_bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t released = archive->release_pages();
  EXPECT_GE(released, text.size() - page_bytes);
  EXPECT_LE(released, text.size() + page_bytes);
  EXPECT_EQ(archive->release_pages(), 0u);
  std::string expected = text;
  expected[500000] = static_cast<char>(text[500000] + 1);
  EXPECT_EQ(std::string(bytes, text.size()), expected);
}

// More pages than one batch, and none after the end.
TEST(MappedPages, AreReleasedUpToTheEnd) {
  const std::string path = std::filesystem::temp_directory_path() / ("pages_" + std::to_string(getpid()));
  const size_t page_bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE)), pages = 6000;
  std::ofstream(path, std::ios::binary) << std::string(pages * page_bytes, 'a');
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  std::filesystem::remove(path);
  void* const data = mmap(nullptr, pages * page_bytes, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file, 0);
  ASSERT_NE(data, MAP_FAILED);
  char* const bytes = static_cast<char*>(data);
  EXPECT_EQ(release_mapped_pages(bytes, 3 * page_bytes), 3 * page_bytes);
  // A kernel that maps huge pages has released all of the first one.
  EXPECT_GE(release_mapped_pages(bytes, pages * page_bytes), (pages - 512) * page_bytes);
  munmap(data, pages * page_bytes);
  close(file);
}

// PyTorch's archives have the end record twice, and the reader would accept the zip64 variant alone.
TEST(ZipArchive, RefusesAnArchiveWithoutItsLastBytes) {
  const std::string path = std::filesystem::temp_directory_path() / ("cut_zip_" + std::to_string(getpid()));
  const std::string whole = std::string(tests_folder()) + "/jit/data/values.pt";
  const auto size = std::filesystem::file_size(whole);
  for (size_t cut = 1; cut <= 120; ++cut) {
    std::filesystem::copy_file(whole, path, std::filesystem::copy_options::overwrite_existing);
    std::filesystem::resize_file(path, size - cut);
    try {
      ZipArchive::open(path);
      ADD_FAILURE() << "without the last " << cut << " bytes";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kDataLoss) << cut;
    }
  }
  std::filesystem::remove(path);
}

// An archive of one entry, in a file of its own.
class ChangedZip : public ::testing::Test {
 protected:
  ChangedZip() {
    write(path_, text_);
    archive_ = ZipArchive::open(path_);
    storage_ = archive_->storage(archive_->at("data"));
    archive_->release_pages();  // from now on reads come from the file
  }
  ~ChangedZip() override { std::filesystem::remove(path_); }
  static void write(const std::string& path, const std::string& text) {
    ZipWriter writer(path);
    writer.add("m/data", text);
    writer.finish();
  }
  ErrorCode code_of_check() const {
    try {
      archive_->check_unchanged();
      return ErrorCode::kInternal;  // no error
    } catch (const Error& error) {
      return error.code();
    }
  }
  const std::string path_ = std::filesystem::temp_directory_path() / ("changed_zip_" + std::to_string(getpid()));
  const std::string text_ = random_text(1 << 20);
  std::shared_ptr<ZipArchive> archive_;
  Storage storage_;
};

TEST_F(ChangedZip, AFileThatIsCutOffGivesZerosAndSaysSo) {
  EXPECT_EQ(code_of_check(), ErrorCode::kInternal);
  std::filesystem::resize_file(path_, 1 << 16);
  EXPECT_EQ(code_of_check(), ErrorCode::kDataLoss);
  EXPECT_EQ(static_cast<const char*>(storage_->data())[1 << 19], 0);  // no SIGBUS
  std::filesystem::resize_file(path_, 2 << 20);
  EXPECT_EQ(code_of_check(), ErrorCode::kDataLoss);  // the zeros remain
}

TEST_F(ChangedZip, AFileThatIsWrittenToSaysSo) {
  std::fstream out(path_, std::ios::in | std::ios::out | std::ios::binary);
  out.seekp(1 << 19);
  out.put(static_cast<char>(~static_cast<const char*>(storage_->data())[(1 << 19) + 64]));
  out.put('x').put('y').put('z');
  out.close();
  std::filesystem::last_write_time(path_, std::filesystem::file_time_type::clock::now() + std::chrono::seconds(1));
  EXPECT_EQ(code_of_check(), ErrorCode::kDataLoss);
  EXPECT_EQ(code_of_check(), ErrorCode::kDataLoss);
}

TEST_F(ChangedZip, AnotherTimeOrAnotherFileInItsPlaceIsNoChange) {
  std::filesystem::last_write_time(path_, std::filesystem::file_time_type::clock::now() + std::chrono::seconds(1));
  EXPECT_EQ(code_of_check(), ErrorCode::kInternal);
  write(path_ + ".new", random_text(1000));
  std::filesystem::rename(path_ + ".new", path_);
  EXPECT_EQ(code_of_check(), ErrorCode::kInternal);
}

}  // namespace
}  // namespace tensord::jit::zip_test
