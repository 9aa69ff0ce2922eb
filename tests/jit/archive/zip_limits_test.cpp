// Archives at the limits, and files opened when the system is short of resources.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "core/base/cancellation.h"
#include "core/base/error.h"
#include "core/jit/archive/zip.h"
#include "core/tensor/mapped_file.h"
#include "tests/jit/archive/raw_zip.h"

namespace tensord::jit::zip_limits_test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class ZipLimits : public ::testing::Test {
 protected:
  ZipLimits() { fs::create_directories(folder_); }
  ~ZipLimits() override { fs::remove_all(folder_); }

  std::string write(const std::string& bytes) {
    const std::string path = folder_ / std::to_string(count_++);
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  std::string opening(const std::string& bytes, const ZipOptions& options = {}) {
    const std::string path = write(bytes);
    return error_of([&] { ZipArchive::open(path, options); });
  }
  template <class Action>
  static std::string error_of(const Action& action) {
    try {
      action();
    } catch (const Error& error) {
      return error.what();
    }
    return "none";
  }

  const fs::path folder_ = fs::temp_directory_path() / ("zip_limits_" + std::to_string(getpid()));
  int count_ = 0;
};

RawEntry stored(const std::string& name, const std::string& text) {
  return {name, text, crc_of(text), static_cast<uint32_t>(text.size()), 0};
}

RawEntry claiming(const std::string& name, size_t payload, size_t size) {
  return {name, std::string(payload, 'x'), 0, static_cast<uint32_t>(size), Z_DEFLATED};
}

TEST_F(ZipLimits, HowMuchEntriesInflateTo) {
  ZipOptions options;
  options.max_inflated_bytes = 1000;
  EXPECT_EQ(opening(raw_zip({claiming("m/a", 500, 1000)}), options), "none");
  EXPECT_THAT(opening(raw_zip({claiming("m/a", 500, 1001)}), options), HasSubstr("become more than 1000 bytes"));
  EXPECT_EQ(opening(raw_zip({claiming("m/a", 500, 400), claiming("m/b", 500, 600)}), options), "none");
  EXPECT_THAT(opening(raw_zip({claiming("m/a", 500, 400), claiming("m/b", 500, 601)}), options),
              HasSubstr("become more than 1000 bytes"));
}

TEST_F(ZipLimits, HowFarAnEntryInflates) {
  constexpr size_t kSmall = 4 << 20, kPacked = kSmall / 200;  // up to kSmall any ratio is allowed
  EXPECT_EQ(opening(raw_zip({claiming("m/a", 10, kSmall)})), "none");
  EXPECT_THAT(opening(raw_zip({claiming("m/a", 10, kSmall + 1)})), HasSubstr("more than 200 to 1 is refused"));
  EXPECT_EQ(opening(raw_zip({claiming("m/a", kPacked + 1, (kPacked + 1) * 200 + 199)})), "none");
  EXPECT_THAT(opening(raw_zip({claiming("m/a", kPacked + 1, (kPacked + 2) * 200)})),
              HasSubstr("more than 200 to 1 is refused"));
}

TEST_F(ZipLimits, NamesOfEntries) {
  const std::string longest(4095, 'n');
  EXPECT_EQ(opening(raw_zip({stored(longest, "text")})), "none");
  EXPECT_THAT(opening(raw_zip({stored(longest + "n", "text")})), HasSubstr("the zip directory is damaged at entry 0"));
  // The folder entry itself must match exactly.
  const auto archive = ZipArchive::open(write(raw_zip({stored("m/", ""), stored("m/a", "text"), stored("n/b", "")})));
  EXPECT_NE(archive->find("m/"), nullptr);
  EXPECT_EQ(archive->find(""), nullptr);
  EXPECT_NE(archive->find("a"), nullptr);
  EXPECT_NE(archive->find("n/b"), nullptr);
}

TEST_F(ZipLimits, ADirectoryOfMoreEntriesThanThereAre) {
  std::string bytes = raw_zip({stored("m/a", std::string(400, 'x'))});
  const auto claims = [&](size_t count) {
    std::string number;
    append_number(&number, count, 2);
    bytes.replace(bytes.rfind("PK\5\6") + 8, 4, number + number);
    return opening(bytes);
  };
  EXPECT_THAT(claims(bytes.size() / 46), HasSubstr("the zip directory is damaged at entry 1"));
  EXPECT_THAT(claims(bytes.size() / 46 + 1), HasSubstr("claims " + std::to_string(bytes.size() / 46 + 1) + " entries"));
}

// The header of the second lies in the first, which ends where the second begins.
TEST_F(ZipLimits, EntriesThatTouch) {
  const RawEntry second = stored("m/b", "bbbb");
  const std::string header = raw_zip({second}).substr(0, 30 + second.name.size());
  std::string bytes = raw_zip({stored("m/a", "text"), second});
  const auto opening_with = [&](size_t first_size) {
    std::string size;
    append_number(&size, first_size, 4);
    bytes.replace(bytes.find("PK\3\4") + 18, 8, size + size);
    bytes.replace(bytes.find("PK\1\2") + 20, 8, size + size);
    return opening(bytes);
  };
  EXPECT_EQ(opening_with(4 + header.size()), "none");
  EXPECT_THAT(opening_with(5 + header.size()), HasSubstr("entries overlap"));
}

TEST_F(ZipLimits, AnArchiveInAnArchiveIsStored) {
  const std::string inner = raw_zip({stored("m/a", "text")});
  const RawEntry packed{"m/packed", deflated(inner), crc_of(inner), static_cast<uint32_t>(inner.size()), Z_DEFLATED};
  const auto archive = ZipArchive::open(write(raw_zip({stored("m/plain", inner), packed})));
  EXPECT_EQ(archive->read(archive->at("packed")), inner);
  const auto found = archive->open_inner(archive->at("plain"));
  EXPECT_EQ(found->read(found->at("a")), "text");
  EXPECT_THAT(error_of([&] { archive->open_inner(archive->at("packed")); }),
              HasSubstr(": packed: is an archive that is compressed itself"));
}

// A cancelled check is repeated, and has no result.
TEST_F(ZipLimits, ACheckThatIsGivenUpFindsNoDamage) {
  const std::string text(8 << 20, 't');
  const std::string path = write(raw_zip({stored("m/a", text)}));
  const auto archive = ZipArchive::open(path);
  fs::last_write_time(path, fs::file_time_type::clock::now() + std::chrono::seconds(1));
  {
    const CancellationScope scope([] { return true; });
    EXPECT_THROW(archive->check_unchanged(), Error);
  }
  EXPECT_EQ(error_of([&] { archive->check_unchanged(); }), "none");
}

// A process with closed standard input gets descriptor 0 for its next file.
TEST_F(ZipLimits, DescriptorsFromZeroOn) {
  const std::string path = write(raw_zip({stored("m/a", std::string(1 << 20, 't'))}));
  const int input = dup(STDIN_FILENO);
  close(STDIN_FILENO);
  std::string zip_error, file_error;
  size_t released = 0;
  {
    const auto archive = ZipArchive::open(path);
    zip_error = error_of([&] { archive->check_unchanged(); });
  }
  file_error = error_of([&] { MappedFile::open(path)->check_unchanged(); });
  {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    void* const data = mmap(nullptr, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file, 0);
    close(file);
    released = release_mapped_pages(static_cast<char*>(data), 1 << 20);
    munmap(data, 1 << 20);
  }
  if (input >= 0) {
    dup2(input, STDIN_FILENO);
    close(input);
  }
  EXPECT_EQ(zip_error, "none");
  EXPECT_EQ(file_error, "none");
  EXPECT_EQ(released, size_t{1} << 20);
}

size_t open_descriptors() {
  return static_cast<size_t>(std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator()));
}

// A file without a name cannot be written by others: it is not watched, and takes no descriptor.
TEST_F(ZipLimits, FilesWithoutANameAreNotWatched) {
  const std::string path = write(raw_zip({stored("m/a", "text")}));
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const std::string by_number = "/proc/self/fd/" + std::to_string(file);
  const size_t before = open_descriptors();
  {
    const auto archive = ZipArchive::open(path);
    const auto mapped = MappedFile::open(path);
    EXPECT_EQ(open_descriptors(), before + 2);
  }
  fs::remove(path);
  const auto archive = ZipArchive::open(by_number);
  const auto mapped = MappedFile::open(by_number);
  EXPECT_EQ(open_descriptors(), before);
  archive->check_unchanged();
  mapped->check_unchanged();
  close(file);
}

TEST_F(ZipLimits, FilesThatCannotBeMapped) {
  const std::string path = write("");
  std::error_code error;
  fs::resize_file(path, uint64_t{1} << 42, error);  // without blocks
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  void* const data = mmap(nullptr, size_t{1} << 42, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
  close(file);
  if (error || data != MAP_FAILED) GTEST_SKIP() << "this system maps 4 TiB, or has no such files";
  EXPECT_THAT(error_of([&] { ZipArchive::open(path); }), HasSubstr("cannot be mapped: Cannot allocate memory"));
  EXPECT_THAT(error_of([&] { MappedFile::open(path); }), HasSubstr("cannot be mapped: Cannot allocate memory"));
}

// Storages may extend to the last byte, and not beyond.
TEST_F(ZipLimits, StoragesOfAMappedFile) {
  const auto file = MappedFile::open(write("text"));
  EXPECT_EQ(file->storage(0, 4)->size_bytes(), 4U);
  EXPECT_EQ(file->storage(4, 0)->size_bytes(), 0U);
  EXPECT_THAT(error_of([&] { file->storage(0, 5); }), HasSubstr("a storage ends after the file"));
  EXPECT_THAT(error_of([&] { file->storage(5, 0); }), HasSubstr("a storage ends after the file"));
}

}  // namespace
}  // namespace tensord::jit::zip_limits_test
