#include "core/base/shared_cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace tensord::shared_cache_test {
namespace {

using Cache = SharedCache<int, std::string>;

std::shared_ptr<const std::string> text(int number) { return std::make_shared<std::string>(std::to_string(number)); }

TEST(SharedCache, MakesEachOnce) {
  Cache cache(4);
  int made = 0;
  const auto get = [&](int key) { return cache.get(key, [&] { return ++made, text(key); }); };
  EXPECT_EQ(*get(1), "1");
  EXPECT_EQ(get(1), get(1));
  EXPECT_EQ(*get(2), "2");
  EXPECT_EQ(made, 2);
  EXPECT_EQ(cache.size(), 2u);
}

TEST(SharedCache, TheLeastRecentlyUsedGoes) {
  Cache cache(2);
  std::vector<int> made;
  const auto get = [&](int key) { return cache.get(key, [&] { return made.push_back(key), text(key); }); };
  const auto first = get(1);
  get(2);
  get(1);
  get(3);  // evicts 2
  EXPECT_EQ(cache.size(), 2u);
  EXPECT_EQ(get(1), first);
  get(2);  // evicts 3
  get(1);
  EXPECT_EQ(made, (std::vector<int>{1, 2, 3, 2}));
  get(3), get(4);
  EXPECT_EQ(*first, "1") << "whoever holds it keeps it";
}

// The maker waits until the other has asked; whether the other already sleeps then does not change the result.
TEST(SharedCache, OthersWaitForTheOneThatMakes) {
  Cache cache(4);
  std::atomic<int> made{0}, asked{0};
  const auto get = [&] {
    ++asked;
    return cache.get(7, [&] {
      while (asked < 3) std::this_thread::yield();
      ++made;
      return text(7);
    });
  };
  std::vector<std::shared_ptr<const std::string>> got(3);
  std::vector<std::thread> threads;
  for (auto& one : got) threads.emplace_back([&] { one = get(); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(made, 1);
  EXPECT_EQ(got[0], got[1]);
  EXPECT_EQ(got[0], got[2]);
}

TEST(SharedCache, OtherKeysAreFoundMeanwhile) {
  Cache cache(1);
  cache.get(1, [&] {
    EXPECT_EQ(*cache.get(2, [] { return text(2); }), "2");
    return text(1);
  });
  EXPECT_EQ(cache.size(), 1u);
  int made = 0;
  cache.get(1, [&] { return ++made, text(1); });
  EXPECT_EQ(made, 0) << "what was made last stays";
}

TEST(SharedCache, AnErrorIsOneCallersAlone) {
  Cache cache(4);
  EXPECT_THROW(cache.get(1, []() -> std::shared_ptr<const std::string> { throw std::runtime_error("no"); }),
               std::runtime_error);
  EXPECT_EQ(cache.size(), 0u);
  EXPECT_EQ(*cache.get(1, [] { return text(1); }), "1");

  std::atomic<int> asked{0};
  std::atomic<bool> failed{false};
  const auto get = [&](bool& thrown) {
    ++asked;
    try {
      cache.get(2, [&] {
        while (asked < 2) std::this_thread::yield();
        if (!failed.exchange(true)) throw std::runtime_error("the first one");
        return text(2);
      });
    } catch (const std::runtime_error&) {
      thrown = true;
    }
  };
  bool thrown[2] = {};
  std::thread other([&] { get(thrown[0]); });
  get(thrown[1]);
  other.join();
  EXPECT_NE(thrown[0], thrown[1]) << "one fails, the other tries again";
  EXPECT_EQ(*cache.get(2, [] { return text(3); }), "2");
}

}  // namespace
}  // namespace tensord::shared_cache_test
