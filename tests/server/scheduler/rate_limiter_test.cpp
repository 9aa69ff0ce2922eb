#include "server/scheduler/rate_limiter.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "core/base/error.h"

namespace tensord::server::rate_limiter_test {
namespace {

using Permit = std::optional<RateLimiter::Permit>;

TEST(RateLimiter, CountsWhatRunsHold) {
  RateLimiter limiter({{{"R", false}, 3}});
  const auto small = limiter.add_client("small", {{"R", false, 1}}, 1);
  const auto large = limiter.add_client("large", {{"R", false, 2}, {"S", true, 5}}, 1);
  {
    const Permit first = large->try_acquire();
    ASSERT_TRUE(first);
    EXPECT_EQ(limiter.usage("R", false), (std::pair<uint64_t, uint64_t>{3, 2}));
    EXPECT_EQ(limiter.usage("S", true), (std::pair<uint64_t, uint64_t>{5, 5}));  // as much as its largest client needs
    EXPECT_FALSE(large->try_acquire());
    const Permit second = small->try_acquire();
    ASSERT_TRUE(second);
    EXPECT_FALSE(small->try_acquire());
  }
  EXPECT_EQ(limiter.usage("R", false).second, 0u);
  EXPECT_TRUE(large->try_acquire());
}

TEST(RateLimiter, RefusesWhatCanNeverRun) {
  RateLimiter limiter({{{"R", false}, 3}});
  EXPECT_THROW(limiter.add_client("m", {{"R", false, 4}}, 1), Error);
  EXPECT_THROW(limiter.add_client("m", {{"T", true, 1}, {"T", true, 1}}, 1), Error);
  RateLimiter global({{{"R", true}, 3}});
  EXPECT_THROW(global.add_client("m", {{"R", false, 1}}, 1), Error);
  EXPECT_TRUE(global.add_client("m", {{"R", true, 1}}, 1));
  const auto client = limiter.add_client("m", {{"S", true, 1}}, 1);
  EXPECT_THROW(limiter.add_client("n", {{"S", false, 1}}, 1), Error);
}

TEST(RateLimiter, WhatNobodyNeedsAnyMoreIsForgotten) {
  RateLimiter limiter;
  auto large = limiter.add_client("large", {{"R", false, 5}}, 1);
  const auto small = limiter.add_client("small", {{"R", false, 2}}, 1);
  EXPECT_EQ(limiter.usage("R", false).first, 5u);
  large.reset();
  EXPECT_EQ(limiter.usage("R", false).first, 2u);
  EXPECT_EQ(limiter.usage("R", true), (std::pair<uint64_t, uint64_t>{0, 0}));
  EXPECT_EQ(limiter.usage("", false), (std::pair<uint64_t, uint64_t>{0, 0}));
}

// Waits until some thread waits for a permit: a try then fails although resources are free.
void wait_for_waiter(RateLimiter::Client& probe) {
  while (probe.try_acquire()) std::this_thread::yield();
}

TEST(RateLimiter, OneThatNeedsMuchIsNotPassedOver) {
  RateLimiter limiter({{{"R", false}, 2}});
  const auto small = limiter.add_client("small", {{"R", false, 1}}, 1);
  const auto large = limiter.add_client("large", {{"R", false, 2}}, 1);
  Permit held = small->try_acquire();
  ASSERT_TRUE(held);
  std::promise<void> got;
  std::thread waiting([&] {
    const Permit permit = large->acquire();
    EXPECT_TRUE(permit);
    got.set_value();
  });
  wait_for_waiter(*small);  // one of two is free, but it is reserved for the waiting client
  held.reset();
  got.get_future().wait();
  waiting.join();
  EXPECT_TRUE(small->try_acquire());
}

// Both always wait; the client of priority 2 gets one of every three grants.
TEST(RateLimiter, PriorityDividesGrants) {
  RateLimiter limiter({{{"R", false}, 1}});
  const auto gate = limiter.add_client("gate", {{"R", false, 1}}, 1);
  const auto often = limiter.add_client("often", {{"R", false, 1}}, 1);
  const auto seldom = limiter.add_client("seldom", {{"R", false, 1}}, 2);
  std::mutex mutex;
  std::vector<char> order;
  std::vector<std::thread> threads;
  {
    const Permit held = gate->try_acquire();
    for (int i = 0; i < 30; ++i) {
      threads.emplace_back([&, i] {
        const bool is_often = i % 2 == 0;
        const Permit permit = (is_often ? *often : *seldom).acquire();
        const std::lock_guard lock(mutex);
        order.push_back(is_often ? 'o' : 's');
      });
    }
    while (limiter.waiting() < 30) std::this_thread::yield();
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_EQ(order.size(), 30u);
  const auto often_first = std::count(order.begin(), order.begin() + 15, 'o');
  EXPECT_GE(often_first, 9);
  EXPECT_LE(often_first, 11);
}

// Two models with one worker each and always more work. A worker that returns its permit requests the next one in the
// same step, so that the other's turn is not merely what is left.
TEST(RateLimiter, PriorityDividesGrantsOfWorkersThatGoOn) {
  RateLimiter limiter({{{"R", false}, 1}});
  const auto gate = limiter.add_client("gate", {{"R", false, 1}}, 1);
  const auto often = limiter.add_client("often", {{"R", false, 1}}, 1);
  const auto seldom = limiter.add_client("seldom", {{"R", false, 1}}, 2);
  std::string order;  // by holder of the permit
  const auto work = [&](RateLimiter::Client& client, char name) {
    Permit permit = client.acquire();
    while (order.size() < 30) {
      order += name;
      permit = client.acquire(std::exchange(permit, std::nullopt));
    }
  };
  Permit held = gate->try_acquire();
  std::thread first(work, std::ref(*often), 'o'), second(work, std::ref(*seldom), 's');
  while (limiter.waiting() < 2) std::this_thread::yield();
  held.reset();
  first.join();
  second.join();
  EXPECT_GE(std::count(order.begin(), order.end(), 'o'), 19) << order;
  EXPECT_LE(std::count(order.begin(), order.end(), 'o'), 21) << order;
}

TEST(RateLimiter, ALimitThatDoesNotSayIsOfGlobalResourcesToo) {
  RateLimiter limiter({{{"R", false}, 3}, {{"S", false}, 3}, {{"S", true}, 5}});
  const auto client = limiter.add_client("m", {{"R", true, 2}}, 1);
  EXPECT_EQ(limiter.usage("R", true).first, 3u);
  EXPECT_THROW(limiter.add_client("n", {{"R", true, 4}}, 1), Error);
  EXPECT_THROW(limiter.add_client("n", {{"R", false, 1}}, 1), Error);
  const auto other = limiter.add_client("o", {{"S", true, 4}}, 1);
  EXPECT_EQ(limiter.usage("S", true).first, 5u);
}

// A large client waits first, and a small one behind it, for which there is room: the small one is granted when the
// large one is stopped.
TEST(RateLimiter, StopLetsThoseBehindGo) {
  RateLimiter limiter({{{"R", false}, 2}});
  const auto small = limiter.add_client("small", {{"R", false, 1}}, 1);
  const auto large = limiter.add_client("large", {{"R", false, 2}}, 1);
  const Permit held = small->try_acquire();
  ASSERT_TRUE(held);
  std::thread first([&] { EXPECT_FALSE(large->acquire()); });
  while (limiter.waiting() < 1) std::this_thread::yield();
  std::thread behind([&] { EXPECT_TRUE(small->acquire()); });
  while (limiter.waiting() < 2) std::this_thread::yield();
  large->stop();
  first.join();
  behind.join();
}

TEST(RateLimiter, OneThatIsStoppedGetsNothingAtOnce) {
  RateLimiter limiter({{{"R", false}, 2}});
  const auto client = limiter.add_client("m", {{"R", false, 1}}, 1);
  EXPECT_TRUE(client->try_acquire());
  client->stop();
  EXPECT_FALSE(client->try_acquire());
}

TEST(RateLimiter, StopEndsTheWait) {
  RateLimiter limiter({{{"R", false}, 1}});
  const auto first = limiter.add_client("first", {{"R", false, 1}}, 1);
  const auto second = limiter.add_client("second", {{"R", false, 1}}, 1);
  const Permit held = first->try_acquire();
  std::thread waiting([&] { EXPECT_FALSE(second->acquire()); });
  while (limiter.waiting() == 0) std::this_thread::yield();
  second->stop();
  waiting.join();
  EXPECT_FALSE(second->acquire());
  EXPECT_EQ(limiter.waiting(), 0u);
}

TEST(RateLimiter, DevicesHaveTheirOwn) {
  RateLimiter limiter({{{"R", false}, 2}}, {{{"R", 1}, 1}});
  const auto client = limiter.add_client("m", {{"R", false, 1}, {"G", true, 1}}, 1, {0, 0, 0, 1, 1});
  const auto other = limiter.add_client("other", {{"R", false, 2}}, 1, {2});
  EXPECT_THROW(limiter.add_client("large", {{"R", false, 2}}, 1, {0, 1}), Error);
  EXPECT_EQ(limiter.usage("R", false, 0).first, 2u);
  EXPECT_EQ(limiter.usage("R", false, 1).first, 1u);
  EXPECT_EQ(limiter.usage("R", false, 2).first, 2u);
  EXPECT_EQ(limiter.usage("G", true).first, 1u);  // one for all
  EXPECT_EQ(client->device_of(2), 0);
  EXPECT_EQ(client->device_of(3), 1);
  const Permit held = client->try_acquire();
  EXPECT_FALSE(client->try_acquire());  // G
  EXPECT_TRUE(other->try_acquire());
  EXPECT_EQ(limiter.usage("R", false, held->device()).second, 1u);
}

TEST(RateLimiter, RunsAreSpreadOverDevicesWithFreeWorkers) {
  RateLimiter limiter;
  const auto client = limiter.add_client("m", {{"R", false, 1}}, 1, {0, 0, 1});
  const auto wide = limiter.add_client("wide", {{"R", false, 9}}, 1, {0, 1});  // there are nine on each
  std::vector<RateLimiter::Permit> permits;
  std::vector<int> devices;
  while (Permit permit = client->try_acquire()) {
    devices.push_back(permit->device());
    permits.push_back(std::move(*permit));
  }
  EXPECT_EQ(devices, (std::vector{0, 1, 0}));
  permits.erase(permits.begin() + 1);
  EXPECT_EQ(client->try_acquire()->device(), 1);
}

// A client that waits for one device keeps others from this device, not from the other one.
TEST(RateLimiter, DevicesDoNotWaitForEachOther) {
  RateLimiter limiter({{{"R", false}, 2}});
  const auto first = limiter.add_client("first", {{"R", false, 1}}, 1, {0});
  const auto large = limiter.add_client("large", {{"R", false, 2}}, 1, {0, 1});
  const auto both = limiter.add_client("both", {{"R", false, 1}}, 1, {0, 1});
  Permit held = first->try_acquire();
  ASSERT_TRUE(held);
  std::thread waiting([&] {
    const Permit permit = large->acquire({}, 0);
    ASSERT_TRUE(permit);
    EXPECT_EQ(permit->device(), 0);
  });
  while (limiter.waiting() == 0) std::this_thread::yield();
  for (int i = 0; i < 3; ++i) {
    const Permit permit = both->try_acquire();
    ASSERT_TRUE(permit);
    EXPECT_EQ(permit->device(), 1);
  }
  EXPECT_FALSE(first->try_acquire());
  held.reset();
  waiting.join();
}

}  // namespace
}  // namespace tensord::server::rate_limiter_test
