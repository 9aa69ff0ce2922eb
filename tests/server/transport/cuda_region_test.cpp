// Clients' memory on a GPU, with a fake driver: tests/CMakeLists.txt substitutes fake_cuda for libcuda.so.1.
#include "server/memory/cuda_region.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "server/memory/shared_regions.h"
#include "tests/server/error_of.h"

namespace tensord::server::cuda_region_test {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kBlockBytes = 4096, kAllocationOffset = 256;
constexpr uint64_t kAllocationBytes = kBlockBytes - kAllocationOffset;

// A client's allocation on the GPU, inside a larger block, as drivers place small allocations.
class Allocation {
 public:
  Allocation() : name_("/tensord_cuda_test_" + std::to_string(getpid()) + "_" + std::to_string(next_++)) {
    file_ = shm_open(name_.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
    EXPECT_EQ(ftruncate(file_, kBlockBytes), 0);
  }
  ~Allocation() {
    close(file_);
    shm_unlink(name_.c_str());
  }
  std::string handle() const {
    std::string bytes(CudaDriver::kHandleBytes, '\0');
    std::memcpy(bytes.data(), name_.data(), name_.size());
    std::memcpy(bytes.data() + CudaDriver::kHandleBytes - sizeof(kAllocationOffset), &kAllocationOffset,
                sizeof(kAllocationOffset));
    return bytes;
  }
  void write(const std::string& bytes, uint64_t at) {
    EXPECT_EQ(pwrite(file_, bytes.data(), bytes.size(), static_cast<off_t>(kAllocationOffset + at)),
              static_cast<ssize_t>(bytes.size()));
  }
  std::string read(size_t count, uint64_t at) {
    std::string bytes(count, '?');
    EXPECT_EQ(pread(file_, bytes.data(), count, static_cast<off_t>(kAllocationOffset + at)),
              static_cast<ssize_t>(count));
    return bytes;
  }
  void take_away() { EXPECT_EQ(ftruncate(file_, 0), 0); }

 private:
  static inline int next_ = 0;
  std::string name_;
  int file_;
};

int ask_driver(const char* name) {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  const auto ask = reinterpret_cast<int (*)()>(dlsym(library, name));
  const int answer = ask();
  dlclose(library);
  return answer;
}

TEST(CudaRegion, BytesAreCopiedOutAndIn) {
  Allocation allocation;
  SharedRegions regions(true);
  regions.add<CudaRegion>({.name = "gpu", .handle = allocation.handle(), .device_id = 1, .size_bytes = 100});
  allocation.write("hello", 8);
  const SharedRange range = regions.find("gpu", 8, 5);
  EXPECT_EQ(range.data, nullptr);
  std::string read(5, ' ');
  range.copy_to(read.data());
  EXPECT_EQ(read, "hello");
  range.write("world", 5);
  EXPECT_EQ(allocation.read(5, 8), "world");
  EXPECT_EQ(error_of([&] { regions.find("gpu", 96, 5); }).code(), ErrorCode::kInvalidArgument);
}

TEST(CudaRegion, RegionsOverlapUnderAnyName) {
  Allocation allocation, other;
  SharedRegions regions(true);
  regions.add<CudaRegion>({.name = "a", .handle = other.handle(), .size_bytes = 100});
  regions.add<CudaRegion>({.name = "b", .handle = allocation.handle(), .size_bytes = 100});
  EXPECT_TRUE(regions.find("b", 8, 8).overlaps(regions.find("b", 15, 8)));
  EXPECT_FALSE(regions.find("b", 8, 8).overlaps(regions.find("b", 16, 8)));
  EXPECT_FALSE(regions.find("a", 8, 8).overlaps(regions.find("b", 8, 8)));
}

TEST(CudaRegion, WhatCannotBeIsRefused) {
  Allocation allocation;
  SharedRegions regions(true);
  const auto add = [&](std::string handle, int64_t device_id, uint64_t size_bytes) {
    return error_of([&] {
      regions.add<CudaRegion>(
          {.name = "gpu", .handle = std::move(handle), .device_id = device_id, .size_bytes = size_bytes});
    });
  };
  const std::string handle = allocation.handle();
  for (const int64_t device_id : {int64_t{-1}, int64_t{2}, INT64_MAX, INT64_MIN, int64_t{1} << 32}) {
    const Error error = add(handle, device_id, 8);
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.what(), HasSubstr("'gpu': there is no GPU"));
  }
  for (const std::string& bad : {std::string(), handle.substr(1), handle + "0", std::string(64, 'x')}) {
    EXPECT_EQ(add(bad, 0, 8).code(), ErrorCode::kInvalidArgument) << bad.size();
  }
  EXPECT_THAT(add(std::string(64, '\0'), 0, 8).what(), HasSubstr("cuIpcOpenMemHandle: invalid argument"));
  EXPECT_EQ(add(handle, 0, 0).code(), ErrorCode::kInvalidArgument);
  for (const uint64_t size_bytes : {kAllocationBytes + 1, UINT64_MAX}) {
    EXPECT_THAT(add(handle, 0, size_bytes).what(), HasSubstr("exceeds the 3840 bytes that are there"));
  }
  EXPECT_EQ(ask_driver("fakeCudaOpenBlocks"), 0);
  EXPECT_EQ(ask_driver("fakeCudaContextUsers"), 0);
  regions.add<CudaRegion>({.name = "gpu", .handle = handle, .size_bytes = kAllocationBytes});
  EXPECT_EQ(add(handle, 0, 8).code(), ErrorCode::kAlreadyExists);
}

TEST(CudaRegion, MemoryThatIsGoneIsAnError) {
  Allocation allocation;
  SharedRegions regions(true);
  regions.add<CudaRegion>({.name = "gpu", .handle = allocation.handle(), .size_bytes = 100});
  const SharedRange range = regions.find("gpu", 0, 4);
  allocation.take_away();
  char bytes[4] = {};
  for (const Error& error : {error_of([&] { range.copy_to(bytes); }), error_of([&] { range.write(bytes, 4); })}) {
    EXPECT_EQ(error.code(), ErrorCode::kFailedPrecondition);
    EXPECT_THAT(error.what(), HasSubstr("'gpu'"));
    EXPECT_THAT(error.what(), HasSubstr("an illegal memory access was encountered (700)"));
  }
}

TEST(CudaRegion, KindsAreKeptApart) {
  Allocation allocation, system;
  SharedRegions regions(true);
  const std::string key(system.handle().c_str());
  regions.add<CudaRegion>({.name = "gpu", .handle = allocation.handle(), .size_bytes = 8});
  regions.add({.name = "cpu", .key = key, .size_bytes = 8});
  EXPECT_EQ(error_of([&] { regions.add({.name = "gpu", .key = key, .size_bytes = 8}); }).code(),
            ErrorCode::kAlreadyExists);
  EXPECT_EQ(regions.list("").size(), 1u);
  EXPECT_EQ(regions.list<CudaRegion>("")[0].name, "gpu");
  EXPECT_THAT(error_of([&] { regions.list<CudaRegion>("cpu"); }).what(), HasSubstr("cuda shared memory region: 'cpu'"));
  regions.remove("gpu");
  regions.remove_all();
  EXPECT_EQ(regions.list<CudaRegion>("").size(), 1u);
  EXPECT_TRUE(regions.list("").empty());
  {
    // A request that uses it continues.
    const SharedRange range = regions.find("gpu", 0, 8);
    regions.remove_all<CudaRegion>();
    char bytes[8];
    range.copy_to(bytes);
    EXPECT_EQ(ask_driver("fakeCudaOpenBlocks"), 1);
  }
  EXPECT_EQ(ask_driver("fakeCudaOpenBlocks"), 0);
  EXPECT_EQ(ask_driver("fakeCudaContextUsers"), 0);
}

}  // namespace
}  // namespace tensord::server::cuda_region_test
