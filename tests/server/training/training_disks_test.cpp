// Full disks: how errno values are mapped, files without room, nodes that back off after a disk error has ended a
// start.
#include <gmock/gmock.h>
#include <sys/statvfs.h>

#include <cerrno>
#include <chrono>
#include <optional>

#include "core/base/atomic_file.h"
#include "server/training/hosts/file_cache.h"
#include "server/training/ranks/host_backoff.h"
#include "tests/server/error_of.h"
#include "tests/server/temporary_folder.h"

// Total and free blocks of every disk; nothing: statvfs fails.
static std::optional<std::pair<fsblkcnt_t, fsblkcnt_t>> disk;

extern "C" int statvfs(const char*, struct statvfs* out) noexcept {
  if (!disk) {
    errno = ENOSYS;
    return -1;
  }
  *out = {};
  out->f_frsize = out->f_bsize = 1;
  out->f_blocks = disk->first;
  out->f_bfree = out->f_bavail = disk->second;
  return 0;
}

namespace tensord::server::training_disks_test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST(DiskErrors, WhatMayWorkLaterIsOne) {
  for (const auto& [number, code] :
       {std::pair(ENOSPC, ErrorCode::kResourceExhausted), std::pair(EDQUOT, ErrorCode::kResourceExhausted),
        std::pair(EIO, ErrorCode::kUnavailable)}) {
    try {
      fail_file("/x/y", "written", number);
    } catch (const DiskError& error) {
      EXPECT_EQ(error.code(), code);
      EXPECT_THAT(error.what(), HasSubstr("/x/y: cannot be written: "));
    }
  }
  for (const auto& [number, code] :
       {std::pair(EROFS, ErrorCode::kFailedPrecondition), std::pair(EFBIG, ErrorCode::kResourceExhausted),
        std::pair(EISDIR, ErrorCode::kUnavailable)}) {
    const Error error = error_of([number = number] { fail_file("/x/y", "made", number); });
    EXPECT_EQ(error.code(), code);
    EXPECT_THROW(fail_file("/x/y", "made", number), Error);
    EXPECT_THAT(error.what(), HasSubstr("/x/y: cannot be made: "));
    try {
      fail_file("/x/y", "made", number);
    } catch (const DiskError&) {
      ADD_FAILURE() << number;
    } catch (const Error&) {
    }
  }
}

struct CacheRoom : ::testing::Test {
  ~CacheRoom() override { disk.reset(); }
  void place(uint64_t bytes) {
    cache.place(
        {.path = "x.pt", .size_bytes = bytes, .sha256 = std::string(64, 'a')}, folder.path() / "to",
        [this](const HostFile&, const FileCache::Take&) { ++fetched; }, [] { return false; });
  }
  fixtures::TemporaryFolder folder{"room"};
  FileCache cache{folder.path() / "cache", 0};
  int fetched = 0;
};

TEST_F(CacheRoom, WhatIsMoreThanTheDiskIsRefusedForGood) {
  disk = {1000, 500};
  const Error error = error_of([&] { place(1001); });
  EXPECT_EQ(error.code(), ErrorCode::kResourceExhausted);
  EXPECT_THAT(error.what(),
              HasSubstr((folder.path() / "cache").string() + ": a file of 1001 bytes is more than its disk has, 1000"));
  EXPECT_EQ(fetched, 0);
}

TEST_F(CacheRoom, WhatHasNoRoomNowIsNotFetched) {
  for (const uint64_t bytes : {501, 1000}) {
    disk = {1000, 500};
    try {
      place(bytes);
      FAIL();
    } catch (const DiskError& error) {
      EXPECT_EQ(error.code(), ErrorCode::kResourceExhausted);
      EXPECT_THAT(error.what(), HasSubstr((folder.path() / "cache").string() + ": cannot be written: No space left"));
      EXPECT_THAT(error.what(), HasSubstr(concat("'x.pt' has ", bytes, " bytes")));
    }
  }
  EXPECT_EQ(fetched, 0);
}

// The fetched file is empty here, so it does not match the announced size.
TEST_F(CacheRoom, WhatHasRoomOrMayHaveSomeIsFetched) {
  int expected = 0;
  for (const auto& [of_disk, bytes] :
       {std::pair(std::optional(std::pair<fsblkcnt_t, fsblkcnt_t>(1000, 500)), 500),
        {std::pair<fsblkcnt_t, fsblkcnt_t>(0, 0), 501},  // as reported by file systems without a size
        {std::nullopt, 501}}) {
    disk = of_disk;
    EXPECT_EQ(error_of([&, bytes = bytes] { place(static_cast<uint64_t>(bytes)); }).code(), ErrorCode::kDataLoss);
    EXPECT_EQ(fetched, ++expected);
  }
}

TEST(Resting, EachTimeTwiceAsLongUpToFiveMinutes) {
  HostBackoff hosts;
  HostBackoff::Clock::time_point now{};
  for (const auto rest : {5s, 10s, 20s, 40s, 80s, 160s, 300s, 300s}) {
    hosts.add("b", "full", now, 0s);
    EXPECT_THAT(hosts.at(now), ElementsAre(Pair("b", "full")));
    EXPECT_THAT(hosts.at(now + rest - 1ms), ElementsAre(Pair("b", "full")));
    now += rest;
    EXPECT_THAT(hosts.at(now), ElementsAre());
  }
  hosts.forget("b");
  hosts.add("b", "fails", now, 7s);
  hosts.add("c", "full", now, 0s);
  EXPECT_THAT(hosts.at(now), ElementsAre(Pair("b", "fails"), Pair("c", "full")));
  EXPECT_THAT(hosts.at(now + 5s), ElementsAre(Pair("b", "fails")));
  EXPECT_THAT(hosts.at(now + 12s), ElementsAre());
}

}  // namespace
}  // namespace tensord::server::training_disks_test
