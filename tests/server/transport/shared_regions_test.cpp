#include "server/memory/shared_regions.h"
#include "core/base/fault_guard.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "tests/server/error_of.h"

namespace tensord::server::shared_regions_test {
namespace {

using ::testing::HasSubstr;

const int64_t kPage = sysconf(_SC_PAGESIZE);

// A client's shared memory object, unlinked at the end.
class Object {
 public:
  explicit Object(int64_t size_bytes)
      : key_("/tensord_test_" + std::to_string(getpid()) + "_" + std::to_string(next_++)) {
    file_ = shm_open(key_.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
    EXPECT_GE(file_, 0);
    resize(size_bytes);
  }
  ~Object() {
    close(file_);
    shm_unlink(key_.c_str());
  }
  const std::string& key() const { return key_; }
  void resize(int64_t size_bytes) { EXPECT_EQ(ftruncate(file_, size_bytes), 0); }
  void write(const std::string& bytes, int64_t at) {
    EXPECT_EQ(pwrite(file_, bytes.data(), bytes.size(), at), static_cast<ssize_t>(bytes.size()));
  }
  std::string read(int64_t size_bytes, int64_t at) {
    std::string bytes(static_cast<size_t>(size_bytes), '?');
    EXPECT_EQ(pread(file_, bytes.data(), bytes.size(), at), size_bytes);
    return bytes;
  }

 private:
  static inline int next_ = 0;
  std::string key_;
  int file_;
};

TEST(SharedRegions, TensorsLieInTheClientsMemory) {
  Object object(3 * kPage);
  SharedRegions regions(true);
  // Neither the start nor the end is page-aligned.
  regions.add({.name = "r", .key = object.key(), .offset = 100, .size_bytes = static_cast<uint64_t>(2 * kPage)});
  object.write("hello", 100 + 8);
  const SharedRange range = regions.find("r", 8, 5);
  std::string read(5, ' ');
  range.copy_to(read.data());
  EXPECT_EQ(read, "hello");
  object.write("j", 100 + 8);
  EXPECT_EQ(std::memcmp(range.as_storage()->data(), "jello", 5), 0);
  EXPECT_FALSE(range.as_storage()->is_writable());
  range.write("12345", 5);
  EXPECT_EQ(object.read(5, 108), "12345");
}

TEST(SharedRegions, BoundsAreChecked) {
  Object object(kPage);
  SharedRegions regions(true);
  const auto size = static_cast<uint64_t>(kPage);
  const auto add = [&](uint64_t offset, uint64_t size_bytes) {
    return error_of(
        [&] { regions.add({.name = "r", .key = object.key(), .offset = offset, .size_bytes = size_bytes}); });
  };
  for (const auto& [offset, size_bytes] : std::vector<std::pair<uint64_t, uint64_t>>{{0, size + 1},
                                                                                     {1, size},
                                                                                     {size + 1, 0},
                                                                                     {UINT64_MAX, 1},
                                                                                     {1, UINT64_MAX},
                                                                                     {UINT64_MAX, UINT64_MAX},
                                                                                     {0, 0}}) {
    EXPECT_EQ(add(offset, size_bytes).code(), ErrorCode::kInvalidArgument) << offset << "+" << size_bytes;
  }
  EXPECT_THAT(add(1, size).what(), HasSubstr("exceed the"));
  regions.add({.name = "r", .key = object.key(), .offset = 0, .size_bytes = 64});
  EXPECT_EQ(add(0, 64).code(), ErrorCode::kAlreadyExists);
  const auto find = [&](uint64_t offset, uint64_t size_bytes) {
    return std::string(error_of([&] { regions.find("r", offset, size_bytes); }).what());
  };
  EXPECT_EQ(find(64, 0), "Invalid offset for shared memory region: 'r'");
  EXPECT_EQ(find(0, 65), "Invalid offset + byte size for shared memory region: 'r'");
  EXPECT_EQ(find(63, UINT64_MAX),
            "Integer overflow detected: byte_size (18446744073709551615) + offset (63) exceeds "
            "maximum value (18446744073709551615) for region 'r'");
  EXPECT_EQ(regions.find("r", 63, 1).size_bytes, 1u);
  EXPECT_EQ(error_of([&] { regions.find("x", 0, 1); }).code(), ErrorCode::kNotFound);
}

TEST(SharedRegions, MemoryThatIsNotThereYetIsCounted) {
  uint64_t counted = 0;
  SharedRegions regions(true, [&counted](uint64_t bytes) {
    if (bytes > 1 << 20) fail(ErrorCode::kResourceExhausted, "too much");
    counted += bytes;
    return std::shared_ptr<const void>(&counted, [&counted, bytes](const void*) { counted -= bytes; });
  });
  const auto page = static_cast<uint64_t>(kPage);
  Object sparse(100 * kPage), real(2 * kPage), vast(int64_t{1} << 30);
  real.write(std::string(static_cast<size_t>(2 * kPage), 'x'), 0);
  sparse.write("x", 0);
  regions.add({.name = "real", .key = real.key(), .size_bytes = 2 * page});
  EXPECT_EQ(counted, 0u);
  regions.add({.name = "sparse", .key = sparse.key(), .size_bytes = 100 * page});
  EXPECT_EQ(counted, 99 * page);
  EXPECT_THAT(error_of([&] { regions.add({.name = "vast", .key = vast.key(), .size_bytes = 1 << 30}); }).what(),
              HasSubstr("too much"));
  SharedRange range = regions.find("sparse", 0, 1);
  regions.remove("sparse");
  EXPECT_EQ(counted, 99 * page);  // while a request uses it
  range = {};
  EXPECT_EQ(counted, 0u);
}

TEST(SharedRegions, KeysNameObjectsOnly) {
  SharedRegions regions(true);
  for (const std::string key :
       {"", "/", "..", "/..", "../etc/passwd", "/a/b", "sem.x", "/triton_python_backend_shm_region_1"}) {
    const Error error = error_of([&] { regions.add({.name = "r", .key = key, .offset = 0, .size_bytes = 1}); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << key;
  }
  const std::string with_zero("a\0b", 3);
  EXPECT_EQ(error_of([&] { regions.add({.name = "r", .key = with_zero, .offset = 0, .size_bytes = 1}); }).code(),
            ErrorCode::kInvalidArgument);
  const Error error = error_of([&] { regions.add({.name = "r", .key = "/not_there", .offset = 0, .size_bytes = 1}); });
  EXPECT_EQ(error.code(), ErrorCode::kNotFound);
  EXPECT_THAT(error.what(), HasSubstr("Unable to open shared memory region: '/not_there'"));
}

TEST(SharedRegions, RemovedRegionsServeWhoHasThem) {
  Object object(kPage);
  SharedRegions regions(true);
  regions.add({.name = "a", .key = object.key(), .offset = 0, .size_bytes = 8});
  regions.add({.name = "b", .key = object.key(), .offset = 8, .size_bytes = 8});
  object.write("12345678", 0);
  Storage storage = regions.find("a", 0, 8).as_storage();
  EXPECT_EQ(regions.list("").size(), 2u);
  EXPECT_EQ(regions.list("b")[0].offset, 8u);
  regions.remove("a");
  regions.remove("a");
  EXPECT_EQ(std::memcmp(storage->data(), "12345678", 8), 0);
  regions.remove_all();
  // It is listed until nobody uses it.
  EXPECT_EQ(regions.list("").size(), 1u);
  EXPECT_EQ(regions.list("a")[0].size_bytes, 8u);
  storage = regions.find("a", 0, 4).as_storage();
  EXPECT_EQ(regions.list("").size(), 1u);
  storage = {};
  EXPECT_EQ(error_of([&] { regions.list("a"); }).code(), ErrorCode::kNotFound);
  EXPECT_EQ(error_of([&] { regions.find("a", 0, 8); }).code(), ErrorCode::kNotFound);
  EXPECT_TRUE(regions.list("").empty());
}

TEST(SharedRegions, ANameMayBeGivenAnewWhileItsOldRegionIsUsed) {
  Object object(kPage), other(kPage);
  SharedRegions regions(true);
  regions.add({.name = "a", .key = object.key(), .offset = 0, .size_bytes = 8});
  object.write("old", 0);
  other.write("new", 0);
  const Storage storage = regions.find("a", 0, 3).as_storage();
  regions.remove("a");
  regions.add({.name = "a", .key = other.key(), .offset = 0, .size_bytes = 16});
  ASSERT_EQ(regions.list("").size(), 1u);
  EXPECT_EQ(regions.list("a")[0].size_bytes, 16u);
  char read[3];
  regions.find("a", 0, 3).copy_to(read);
  EXPECT_EQ(std::memcmp(read, "new", 3), 0);
  EXPECT_EQ(std::memcmp(storage->data(), "old", 3), 0);
}

TEST(SharedRegions, OffRefusesEveryCall) {
  SharedRegions regions(false);
  EXPECT_EQ(error_of([&] { regions.add({}); }).code(), ErrorCode::kUnimplemented);
  EXPECT_EQ(error_of([&] { regions.remove("a"); }).code(), ErrorCode::kUnimplemented);
  EXPECT_EQ(error_of([&] { regions.remove_all(); }).code(), ErrorCode::kUnimplemented);
  EXPECT_TRUE(regions.list("").empty());
  EXPECT_EQ(error_of([&] { regions.list("a"); }).code(), ErrorCode::kNotFound);
  EXPECT_EQ(error_of([&] { regions.find("a", 0, 1); }).code(), ErrorCode::kUnimplemented);
}

TEST(SharedRegions, MemoryThatIsTakenAwayIsAnError) {
  Object object(4 * kPage);
  SharedRegions regions(true);
  regions.add({.name = "r", .key = object.key(), .offset = 0, .size_bytes = static_cast<uint64_t>(4 * kPage)});
  object.write("x", 0);
  const SharedRange range = regions.find("r", 0, static_cast<uint64_t>(4 * kPage));
  object.resize(kPage);
  std::vector<char> out(4 * static_cast<size_t>(kPage), 'y');
  const Error error = error_of([&] { range.copy_to(out.data()); });
  EXPECT_EQ(error.code(), ErrorCode::kFailedPrecondition);
  EXPECT_THAT(error.what(), HasSubstr("'r' was taken away"));
  EXPECT_EQ(out.back(), 0);
  EXPECT_EQ(error_of([&] { range.write(out.data(), 1); }).code(), ErrorCode::kFailedPrecondition);
  EXPECT_EQ(error_of([&] { regions.find("r", 0, 1); }).code(), ErrorCode::kFailedPrecondition);
  // Growing it again does not restore it; registering it again does.
  object.resize(4 * kPage);
  EXPECT_EQ(error_of([&] { regions.find("r", 0, 1); }).code(), ErrorCode::kFailedPrecondition);
  regions.remove("r");
  regions.add({.name = "r", .key = object.key(), .offset = 0, .size_bytes = static_cast<uint64_t>(4 * kPage)});
  regions.find("r", 0, 1).copy_to(out.data());
}

TEST(SharedRegions, ManyThreadsLoseTheirMemoryAtOnce) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 50;
  const int64_t size = 64 * kPage;
  Object object(size);
  SharedRegions regions(true);
  for (int round = 0; round < kRounds; ++round) {
    object.resize(size);
    regions.add({.name = "r", .key = object.key(), .offset = 0, .size_bytes = static_cast<uint64_t>(size)});
    const SharedRange range = regions.find("r", 0, static_cast<uint64_t>(size));
    std::vector<std::thread> threads;
    std::atomic<int> losses{0};
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        std::vector<char> out(static_cast<size_t>(size));
        try {
          while (true) range.copy_to(out.data());
        } catch (const Error&) {
          ++losses;
        }
      });
    }
    object.resize(0);
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(losses, kThreads);
    regions.remove("r");
  }
}

TEST(SharedRegions, ThereAreNotTooMany) {
  Object object(kPage);
  SharedRegions regions(true);
  const Error error = error_of([&] {
    for (int i = 0; i < 100000; ++i) {
      regions.add({.name = std::to_string(i), .key = object.key(), .offset = 0, .size_bytes = 1});
    }
  });
  EXPECT_EQ(error.code(), ErrorCode::kResourceExhausted);
}

// Unguarded memory faults as usual, also while other memory is guarded.
TEST(FaultGuardDeathTest, OtherFaultsEndTheProcess) {
  EXPECT_EXIT(
      {
        Object object(kPage);
        SharedRegions regions(true);
        regions.add({.name = "r", .key = object.key(), .offset = 0, .size_bytes = 1});
        const int file = shm_open(object.key().c_str(), O_RDWR, 0);
        auto* other =
            static_cast<volatile char*>(mmap(nullptr, static_cast<size_t>(kPage), PROT_READ, MAP_SHARED, file, 0));
        object.resize(0);
        shm_unlink(object.key().c_str());
        (void)other[0];
        _exit(0);
      },
      [](int status) { return status != 0; }, "");  // sanitizers end the process in their own way
}

}  // namespace
}  // namespace tensord::server::shared_regions_test
