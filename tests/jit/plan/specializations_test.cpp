// The programs of a method by signature: which thread builds them, which wait, and what is kept.
#include "core/jit/runtime/specializations.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <thread>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/parallel.h"
#include "core/jit/ir/text.h"

namespace tensord::jit::specializations_test {
namespace {

using ops::Value;
using namespace std::chrono_literals;

std::shared_ptr<Program> program_of(const std::string& name) {
  return Program::compile(*parse_graph("graph(%n : int):\n  return (%n)\n"), name);
}

// Waits for the condition; a lost wake-up ends the test.
template <class Condition>
bool comes(Condition&& condition) {
  const auto end = std::chrono::steady_clock::now() + 20s;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

class SpecializationsTest : public ::testing::Test {
 protected:
  // The program for a number is named after it, and its builds are counted.
  std::unique_ptr<Specializations> make(size_t capacity) {
    return std::make_unique<Specializations>(*general_, capacity, [this](std::span<const Value> arguments) {
      const int64_t n = arguments[0].to_int();
      ++building;
      while (is_held) std::this_thread::sleep_for(1ms);
      {
        const std::lock_guard lock(mutex_);
        ++built_[n];
        threads_[n] = thread_budget();
      }
      if (n < 0) fail(ErrorCode::kUnimplemented, "no plan for this");
      return n == 0 ? nullptr : program_of(std::to_string(n));
    });
  }
  std::string find(Specializations& programs, Frame& frame, int64_t n, bool in_background = false) {
    const std::vector<Value> arguments{Value(n)};
    return programs.find(frame, arguments, in_background).name;
  }
  int built(int64_t n) {
    const std::lock_guard lock(mutex_);
    return built_[n];
  }
  int threads(int64_t n) {
    const std::lock_guard lock(mutex_);
    return threads_[n];
  }

  const std::shared_ptr<Program> general_ = program_of("general");
  std::atomic<bool> is_held{false};
  std::atomic<int> building{0};
  Frame frame_;

 private:
  std::mutex mutex_;
  std::map<int64_t, int> built_, threads_;
};

TEST_F(SpecializationsTest, EachSignatureIsBuiltOnce) {
  const auto programs = make(8);
  for (int round = 0; round < 3; ++round) {
    for (int64_t n = 1; n <= 5; ++n) EXPECT_EQ(find(*programs, frame_, n), std::to_string(n));
  }
  Frame other;
  EXPECT_EQ(find(*programs, other, 5), "5");  // by the method's cache
  for (int64_t n = 1; n <= 5; ++n) EXPECT_EQ(built(n), 1) << n;
  const PlanStats stats = programs->stats();
  EXPECT_EQ(stats.misses, 5u);
  EXPECT_EQ(stats.hits, 11u);
  EXPECT_EQ(stats.programs, 5u);
  EXPECT_EQ(stats.evictions, 0u);
  EXPECT_EQ(stats.failures, 0u);
}

TEST_F(SpecializationsTest, WhatCannotBePlannedKeepsTheGeneralProgram) {
  const auto programs = make(8);
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(find(*programs, frame_, 0), "general");
    EXPECT_EQ(find(*programs, frame_, -1), "general");
  }
  EXPECT_EQ(built(0), 1);
  EXPECT_EQ(built(-1), 1);
  const PlanStats stats = programs->stats();
  EXPECT_EQ(stats.failures, 1u);
  EXPECT_EQ(stats.refused, 0u);
  EXPECT_EQ(stats.hits, 2u);
}

// Signatures that are too long for a key are interpreted, and not counted.
TEST_F(SpecializationsTest, LongSignaturesHaveTheGeneralProgram) {
  const auto programs = make(8);
  const std::vector<Value> arguments{Value(ops::make_list(ops::int_type(), std::vector<Value>(5000, Value(1))))};
  EXPECT_EQ(programs->find(frame_, arguments, false).name, "general");
  EXPECT_EQ(programs->stats().misses, 0u);
}

TEST_F(SpecializationsTest, TheOldestGoes) {
  const auto programs = make(2);
  Frame frames[6];  // each queries the method's cache
  find(*programs, frames[0], 1);
  find(*programs, frames[0], 2);
  find(*programs, frames[1], 1);  // now 2 is the oldest
  find(*programs, frames[1], 3);
  EXPECT_EQ(programs->stats().evictions, 1u);
  EXPECT_EQ(programs->stats().programs, 2u);
  find(*programs, frames[2], 1);
  EXPECT_EQ(built(1), 1);
  find(*programs, frames[3], 2);
  EXPECT_EQ(built(2), 2);
  EXPECT_EQ(programs->stats().evictions, 2u);
  // A cache of size zero keeps one.
  const auto single = make(0);
  find(*single, frames[4], 7);
  find(*single, frames[5], 7);
  EXPECT_EQ(built(7), 1);
}

// A worker finds as many programs in its frame, without a lock, as the cache holds; two methods share the frame.
TEST_F(SpecializationsTest, AFrameKeepsWhatItRanLately) {
  const auto programs = make(2), others = make(2);
  for (int64_t n : {1, 2, 1, 2, 1}) EXPECT_EQ(find(*programs, frame_, n), std::to_string(n));
  EXPECT_EQ(find(*others, frame_, 1), "1");
  EXPECT_EQ(built(1), 2);  // one of each method
  for (int64_t n : {3, 4, 5}) find(*programs, frame_, n);
  EXPECT_EQ(find(*programs, frame_, 1), "1");
  EXPECT_EQ(built(1), 3);  // 1 was evicted from both
  const auto many = make(1000);
  Frame fresh;
  for (int64_t n = 1; n <= 65; ++n) find(*many, fresh, n);
  const uint64_t hits = many->stats().hits;
  EXPECT_EQ(find(*many, fresh, 1), "1");
  EXPECT_EQ(many->stats().hits, hits + 1);
  EXPECT_EQ(many->stats().misses, 65u);
}

// A frame does not keep a program alive that the cache has evicted.
TEST_F(SpecializationsTest, AFrameKeepsNoMoreThanTheCache) {
  for (const int64_t capacity : {1, 2, 3}) {
    const auto programs = make(static_cast<size_t>(capacity));
    Frame frame;
    const int64_t first = 100 * capacity;
    for (int64_t n = first; n <= first + capacity; ++n) find(*programs, frame, n);
    EXPECT_EQ(find(*programs, frame, first), std::to_string(first));
    EXPECT_EQ(built(first), 2) << capacity;
    EXPECT_EQ(built(first + capacity), 1);
  }
}

TEST_F(SpecializationsTest, WhoMissesTheSameWaits) {
  const auto programs = make(8);
  is_held = true;
  std::atomic<int> found{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      Frame frame;
      found += find(*programs, frame, 4) == "4";
    });
  }
  EXPECT_TRUE(comes([&] { return building == 1 && programs->stats().misses == 1; }));
  std::this_thread::sleep_for(50ms);  // until the others wait
  EXPECT_EQ(building, 1);
  // A thread that plans in the background does not wait.
  Frame frame;
  EXPECT_EQ(find(*programs, frame, 4, /*in_background=*/true), "general");
  is_held = false;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(found, 3);
  EXPECT_EQ(built(4), 1);
  EXPECT_EQ(programs->stats().hits, 2u);
}

TEST_F(SpecializationsTest, OthersAreBuiltInTheBackground) {
  set_thread_budget(3);
  const auto programs = make(8);
  EXPECT_EQ(find(*programs, frame_, 1, true), "1");  // the very first is waited for
  // In sequence: the building thread sleeps in between.
  for (int64_t n = 2; n <= 4; ++n) {
    is_held = true;
    EXPECT_EQ(find(*programs, frame_, n, true), "general");
    EXPECT_EQ(find(*programs, frame_, n, true), "general");  // it is requested once
    is_held = false;
    EXPECT_TRUE(comes([&] { return find(*programs, frame_, n, true) == std::to_string(n); })) << n;
    EXPECT_EQ(built(n), 1);
    EXPECT_EQ(threads(n), 3);
    std::this_thread::sleep_for(20ms);
  }
  EXPECT_EQ(programs->stats().misses, 4u);
  set_thread_budget(1);
}

// At most sixteen jobs wait; later runs request the others again.
TEST_F(SpecializationsTest, FewJobsWait) {
  const auto programs = make(100);
  find(*programs, frame_, 1, true);
  is_held = true;
  find(*programs, frame_, 2, true);
  EXPECT_TRUE(comes([&] { return building == 2; }));  // no longer in the queue
  for (int64_t n = 3; n <= 22; ++n) EXPECT_EQ(find(*programs, frame_, n, true), "general");
  EXPECT_EQ(programs->stats().programs, 2u + 16u);
  is_held = false;
  EXPECT_TRUE(comes([&] { return built(18) == 1; }));
  EXPECT_EQ(built(19), 0);
  EXPECT_TRUE(comes([&] { return find(*programs, frame_, 22, true) == "22"; }));
}

// A program that is being built is not evicted, because some thread waits for it.
TEST_F(SpecializationsTest, WhatIsBuiltStays) {
  const auto programs = make(1);
  find(*programs, frame_, 1, true);
  is_held = true;
  find(*programs, frame_, 2, true);
  EXPECT_TRUE(comes([&] { return building == 2; }));
  std::thread other([&] {
    Frame frame;
    EXPECT_EQ(find(*programs, frame, 3), "3");
  });
  EXPECT_TRUE(comes([&] { return building == 3; }));
  EXPECT_EQ(programs->stats().programs, 3u);
  is_held = false;
  other.join();
  EXPECT_TRUE(comes([&] { return built(2) == 1 && programs->stats().programs == 1; }));
  EXPECT_EQ(programs->stats().evictions, 2u);
}

// An object at the address of a destroyed one has none of its programs, though a frame outlives both.
TEST_F(SpecializationsTest, AFrameOutlivesItsMethods) {
  alignas(Specializations) unsigned char memory[sizeof(Specializations)];
  for (int round = 1; round <= 3; ++round) {
    auto* const programs = new (memory) Specializations(
        *general_, 8, [&](std::span<const Value>) { return program_of("of round " + std::to_string(round)); });
    for (int i = 0; i < 2; ++i) EXPECT_EQ(find(*programs, frame_, 1), "of round " + std::to_string(round));
    programs->~Specializations();
  }
}

TEST_F(SpecializationsTest, EndWithJobsThatWait) {
  for (const bool is_idle : {false, true}) {
    building = 0;
    auto programs = make(100);
    find(*programs, frame_, 1, true);
    is_held = !is_idle;
    for (int64_t n = 2; n <= 9; ++n) find(*programs, frame_, n, true);
    EXPECT_TRUE(comes([&] { return building == (is_idle ? 9 : 2); }));
    if (is_idle) std::this_thread::sleep_for(50ms);  // until its thread sleeps
    std::thread release([&] {
      std::this_thread::sleep_for(20ms);
      is_held = false;
    });
    programs.reset();
    release.join();
    EXPECT_EQ(building, is_idle ? 9 : 2);  // the current job is finished, others are not started
  }
}

}  // namespace
}  // namespace tensord::jit::specializations_test
