// Compared with bytes that each store their value.
#include "core/jit/runtime/plan/plan_contents.h"

#include <gtest/gtest.h>

#include <array>
#include <random>

namespace tensord::jit::plan_contents_test {
namespace {

constexpr int64_t kBytes = 24;

struct Byte {
  int32_t value = -1;  // -1: unknown
  int64_t base = 0;
};

bool holds(const std::array<Byte, kBytes>& bytes, int64_t begin, int64_t end, int32_t value, int64_t base) {
  for (int64_t i = begin; i < end; ++i) {
    if (bytes[static_cast<size_t>(i)].value != value || bytes[static_cast<size_t>(i)].base != base) return false;
  }
  return begin < end;
}

TEST(PlanContents, KnowsEveryByte) {
  std::mt19937 random(5);
  const auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int round = 0; round < 300; ++round) {
    PlanContents contents;
    std::array<Byte, kBytes> bytes;
    for (int32_t step = 0; step < 12; ++step) {
      const int64_t begin = pick(0, kBytes), end = pick(0, kBytes);  // also empty and reversed ranges
      const bool is_write = pick(0, 2) > 0;
      if (is_write) {
        contents.write(begin, end, step);
      } else {
        contents.spoil(begin, end);
      }
      for (int64_t i = begin; i < end; ++i) bytes[static_cast<size_t>(i)] = is_write ? Byte{step, begin} : Byte{};
      for (int64_t from = 0; from < kBytes; ++from) {
        const Byte byte = bytes[static_cast<size_t>(from)];
        for (int64_t to = from + 1; to <= kBytes; ++to) {
          if (byte.value >= 0) {
            ASSERT_EQ(contents.holds(from, to, byte.value, byte.base), holds(bytes, from, to, byte.value, byte.base));
          }
          ASSERT_FALSE(contents.holds(from, to, byte.value + 100, byte.base));
          ASSERT_FALSE(contents.holds(from, to, byte.value, byte.base + 1));
        }
      }
      int64_t before = 0;
      for (const auto& [first, piece] : contents.pieces()) {
        ASSERT_LE(before, first) << "pieces lie one after another";
        ASSERT_LT(first, piece.end) << "and are never empty";
        before = piece.end;
      }
    }
  }
}

}  // namespace
}  // namespace tensord::jit::plan_contents_test
