// TENSORD_GUARD and TENSORD_POISON, as described in core/tensor/memory/memory_checks.h. Each runs in a process of its
// own.
#include "core/tensor/memory/memory_checks.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>

#include "core/tensor/allocator.h"
#include "core/tensor/tensor.h"

namespace tensord::memory_checks_test {
namespace {

// Calls `body` in a new process with the variable set; the caller checks how it ends.
class MemoryChecks : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

Tensor bytes(int64_t count) { return Tensor::empty(Dims{count}, DType::kUInt8); }
volatile uint8_t seen;

// Alternately, one block ends at a page boundary and one begins at one.
bool begins_at_page(const Tensor& t) { return reinterpret_cast<uintptr_t>(t.raw_data()) % 4096 == 0; }
Tensor guarded(int64_t count, bool at_begin) {
  setenv("TENSORD_GUARD", "1", 1);
  Tensor t = bytes(count);
  if (begins_at_page(t) != at_begin) t = bytes(count);
  return t;
}

TEST_F(MemoryChecks, AWriteBehindTheLastByteIsACrash) {
  EXPECT_EXIT(guarded(64, false).data<uint8_t>()[64] = 1, ::testing::KilledBySignal(SIGSEGV), "");
}

TEST_F(MemoryChecks, AReadBehindTheLastByteIsACrash) {
  EXPECT_EXIT(seen = guarded(128, false).data<uint8_t>()[128], ::testing::KilledBySignal(SIGSEGV), "");
}

TEST_F(MemoryChecks, AReadBeforeTheFirstByteIsACrash) {
  EXPECT_EXIT(seen = guarded(100, true).data<uint8_t>()[-1], ::testing::KilledBySignal(SIGSEGV), "");
}

TEST_F(MemoryChecks, AWriteBesideABlockIsFoundWhenItIsFreed) {
  EXPECT_EXIT(guarded(100, false).data<uint8_t>()[100] = 1, ::testing::KilledBySignal(SIGABRT),
              "byte 100 of a block of 100 bytes was written");
  EXPECT_EXIT(guarded(100, false).data<uint8_t>()[-1] = 1, ::testing::KilledBySignal(SIGABRT), "byte -1 of a block");
  EXPECT_EXIT(guarded(100, true).data<uint8_t>()[101] = 1, ::testing::KilledBySignal(SIGABRT), "byte 101 of a block");
}

TEST_F(MemoryChecks, FreedMemoryIsGone) {
  const auto use_after_free = [] {
    Tensor t = guarded(64, true);
    const uint8_t* const data = t.data<uint8_t>();
    t = Tensor();
    seen = *data;
  };
  EXPECT_EXIT(use_after_free(), ::testing::KilledBySignal(SIGSEGV), "");
}

TEST_F(MemoryChecks, GuardedBlocksAreAlignedAndCounted) {
  const auto check_blocks = [] {
    setenv("TENSORD_GUARD", "1", 1);
    for (int64_t count : {0, 1, 63, 64, 65, 4096, 5000, 1 << 20}) {
      for (int turn = 0; turn < 2; ++turn) {
        const Tensor t = bytes(count);
        if (reinterpret_cast<uintptr_t>(t.raw_data()) % kAlignment != 0) std::exit(2);
        for (int64_t i = 0; i < count; ++i) t.data<uint8_t>()[i] = 7;
      }
    }
    std::exit(0);
  };
  EXPECT_EXIT(check_blocks(), ::testing::ExitedWithCode(0), "");
}

TEST_F(MemoryChecks, PoisonedMemoryIsNaN) {
  const auto all_are_nan = [](const char* guard) {
    setenv("TENSORD_POISON", "1", 1);
    setenv("TENSORD_GUARD", guard, 1);
    for (int turn = 0; turn < 2; ++turn) {
      const Tensor t = Tensor::empty(Dims{1000}, DType::kFloat32);
      for (int64_t i = 0; i < 1000; ++i) {
        if (t.data<float>()[i] == t.data<float>()[i]) std::exit(2);
        t.data<float>()[i] = 1;  // the next tensor reuses this memory
      }
    }
    std::exit(0);
  };
  EXPECT_EXIT(all_are_nan("0"), ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(all_are_nan("1"), ::testing::ExitedWithCode(0), "");
}

TEST(MemoryChecksOff, NothingIsChecked) {
  EXPECT_FALSE(guards_memory());
  EXPECT_FALSE(poisons_memory());
}

}  // namespace
}  // namespace tensord::memory_checks_test
