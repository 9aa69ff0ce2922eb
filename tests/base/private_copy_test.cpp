// Copies of files that change, on full disks, between file systems: the system calls are interposed.
#include "core/base/private_copy.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdarg>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>

#include "core/base/atomic_file.h"
#include "core/base/read_whole_file.h"
#include "tests/server/error_of.h"
#include "tests/server/temporary_folder.h"

// Injected results of the next calls; each call consumes the first.
struct Calls {
  bool clones = true, copies_ranges = true;
  int interrupts = 0;        // this many calls that copy a range or read fail with EINTR first
  int write_interrupts = 0;  // the same for writes
  size_t max = SIZE_MAX;     // bytes of a call
  int open_error = 0, read_error = 0, write_error = 0;  // of each of these calls
  bool writes_nothing = false;                          // write() returns 0
  int fstats = -1;                                      // this many fstat() succeed; negative: all
  std::function<void()> on_read;
  int reads = 0, writes = 0, ranges = 0;
};
static Calls calls;

static bool is_interrupted(int& interrupts) {
  if (interrupts == 0) return false;
  --interrupts;
  errno = EINTR;
  return true;
}

extern "C" int ioctl(int descriptor, unsigned long request, ...) noexcept {
  va_list arguments;
  va_start(arguments, request);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  if (request == 0x40049409 && !calls.clones) {  // FICLONE
    errno = EOPNOTSUPP;
    return -1;
  }
  return static_cast<int>(syscall(SYS_ioctl, descriptor, request, argument));
}

extern "C" int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & (O_CREAT | __O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  if (calls.open_error != 0) {
    errno = calls.open_error;
    return -1;
  }
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

extern "C" int fstat(int descriptor, struct stat* status) noexcept {
  if (calls.fstats == 0) {
    errno = EIO;
    return -1;
  }
  if (calls.fstats > 0) --calls.fstats;
  return static_cast<int>(syscall(SYS_fstat, descriptor, status));
}

extern "C" ssize_t copy_file_range(int from, off64_t* from_at, int to, off64_t* to_at, size_t size, unsigned flags) {
  ++calls.ranges;
  if (!calls.copies_ranges) {
    errno = EXDEV;
    return -1;
  }
  if (is_interrupted(calls.interrupts)) return -1;
  return syscall(SYS_copy_file_range, from, from_at, to, to_at, std::min(size, calls.max), flags);
}

extern "C" ssize_t read(int descriptor, void* to, size_t size) {
  if (!calls.copies_ranges) {
    ++calls.reads;
    if (calls.on_read) calls.on_read();
    if (is_interrupted(calls.interrupts)) return -1;
    if (calls.read_error != 0) {
      errno = calls.read_error;
      return -1;
    }
  }
  return syscall(SYS_read, descriptor, to, std::min(size, calls.max));
}

extern "C" ssize_t write(int descriptor, const void* from, size_t size) {
  if (!calls.copies_ranges && descriptor > 2) {
    ++calls.writes;
    if (is_interrupted(calls.write_interrupts)) return -1;
    if (calls.write_error != 0) {
      errno = calls.write_error;
      return calls.writes_nothing ? 0 : -1;
    }
  }
  return syscall(SYS_write, descriptor, from, std::min(size, calls.max));
}

namespace tensord::private_copy_test {
namespace {

class PrivateCopyTest : public ::testing::Test {
 protected:
  PrivateCopyTest() {
    calls = Calls();
    for (size_t i = 0; i < content_.size(); ++i) content_[i] = static_cast<char>(i * 31 + i / 251);
    std::ofstream(file_, std::ios::binary) << content_;
  }
  ~PrivateCopyTest() override { calls = Calls(); }

  static std::string path_of(const FileDescriptor& copy) { return concat("/proc/self/fd/", copy.get()); }
  bool throws_disk_error() const {
    try {
      const auto copy = copy_privately(file_);
    } catch (const DiskError&) {
      return true;
    } catch (const Error&) {
    }
    return false;
  }

  server::fixtures::TemporaryFolder folder_{"copies"};
  const std::filesystem::path file_ = folder_.path() / "model.pt";
  std::string content_ = std::string((5 << 20) + 3, ' ');
};

TEST_F(PrivateCopyTest, IsWholeHoweverItIsMade) {
  for (const bool copies_ranges : {true, false}) {
    for (const int interrupts : {0, 1, 3}) {
      for (const size_t max : {SIZE_MAX, size_t{100'001}}) {
        SCOPED_TRACE(concat(copies_ranges, " ", interrupts, " ", max));
        calls = Calls{.clones = false,
                      .copies_ranges = copies_ranges,
                      .interrupts = interrupts,
                      .write_interrupts = copies_ranges ? 0 : interrupts,
                      .max = max,
                      .on_read = {}};
        const auto copy = copy_privately(file_);
        EXPECT_EQ(calls.interrupts, 0);
        EXPECT_EQ(calls.write_interrupts, 0);
        EXPECT_EQ(calls.reads > 0, !copies_ranges);
        calls = Calls();
        EXPECT_EQ(read_whole_file(path_of(*copy)), content_);
        std::filesystem::remove(file_);
        EXPECT_EQ(read_whole_file(path_of(*copy)), content_) << "it has a name no more";
        std::ofstream(file_, std::ios::binary) << content_;
      }
    }
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path()), {}), 1) << "nothing is left beside it";
}

TEST_F(PrivateCopyTest, AFileWithoutBytes) {
  std::ofstream(file_, std::ios::trunc).flush();
  for (const bool copies_ranges : {true, false}) {
    calls = Calls{.clones = false, .copies_ranges = copies_ranges, .on_read = {}};
    const auto copy = copy_privately(file_);
    EXPECT_EQ(read_whole_file(path_of(*copy)), "");
  }
}

TEST_F(PrivateCopyTest, WhatGoesWrongIsToldByTheFile) {
  calls = Calls{.clones = false, .copies_ranges = false, .write_error = ENOSPC, .on_read = {}};
  const Error full = error_of([&] { copy_privately(file_); });
  EXPECT_EQ(full.code(), ErrorCode::kResourceExhausted);
  EXPECT_EQ(std::string(full.what()).find(file_.string()), 0u) << full.what();
  // The folder that is full, or not writable, is the temporary one.
  EXPECT_NE(std::string(full.what())
                .find(concat("(in ", std::filesystem::temp_directory_path().string(), ", as TMPDIR says)")),
            std::string::npos)
      << full.what();
  const std::pair<int, ErrorCode> of_writes[] = {
      {EIO, ErrorCode::kUnavailable}, {EDQUOT, ErrorCode::kResourceExhausted}, {EFBIG, ErrorCode::kResourceExhausted}};
  for (const auto& [error, code] : of_writes) {
    calls.write_error = error;
    EXPECT_EQ(error_of([&] { copy_privately(file_); }).code(), code) << std::strerror(error);
    // A full disk may be transient; a limit of the process is not.
    EXPECT_EQ(throws_disk_error(), error != EFBIG) << std::strerror(error);
  }
  calls.writes_nothing = true;
  EXPECT_EQ(error_of([&] { copy_privately(file_); }).code(), ErrorCode::kResourceExhausted);
  calls = Calls{.clones = false, .copies_ranges = false, .read_error = EIO, .on_read = {}};
  EXPECT_EQ(error_of([&] { copy_privately(file_); }).code(), ErrorCode::kUnavailable);
  for (const int good : {0, 1}) {
    calls = Calls{.fstats = good, .on_read = {}};
    EXPECT_NE(std::string(error_of([&] { copy_privately(file_); }).what()).find("cannot be copied"), std::string::npos)
        << good;
  }
  for (const int error : {EMFILE, ENFILE, ENOMEM, EIO, EACCES}) {
    calls = Calls{.open_error = error, .on_read = {}};
    EXPECT_EQ(throws_disk_error(), error != EACCES) << std::strerror(error);
  }
  calls = Calls();
  EXPECT_EQ(error_of([&] { copy_privately(folder_.path() / "none"); }).code(), ErrorCode::kNotFound);
  EXPECT_NE(std::string(error_of([&] { copy_privately(folder_.path()); }).what()).find("not a file"),
            std::string::npos);
}

// If its size, its seconds or its nanoseconds differ, the file was written meanwhile.
TEST_F(PrivateCopyTest, AFileThatChangesMeanwhileIsNoFile) {
  const auto times = [&](int64_t seconds, int64_t nanoseconds) {
    const timespec both[2] = {{seconds, nanoseconds}, {seconds, nanoseconds}};
    ASSERT_EQ(utimensat(AT_FDCWD, file_.c_str(), both, 0), 0);
  };
  const std::function<void()> changes[] = {
      [&] { times(1000, 1); },
      [&] { times(1001, 0); },
      [&] {
        std::filesystem::resize_file(file_, content_.size() + 1);
        times(1000, 0);
      },
  };
  for (const auto& change : changes) {
    std::ofstream(file_, std::ios::binary | std::ios::trunc) << content_;
    times(1000, 0);
    calls = Calls{.clones = false, .copies_ranges = false, .on_read = {}};
    EXPECT_NO_THROW(copy_privately(file_));
    bool is_done = false;
    calls.on_read = [&] {
      if (!std::exchange(is_done, true)) change();
    };
    const Error error = error_of([&] { copy_privately(file_); });
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_NE(std::string(error.what()).find("changed while it was read"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace tensord::private_copy_test
