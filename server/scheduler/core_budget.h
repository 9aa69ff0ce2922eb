#pragma once

#include <atomic>

namespace tensord::server {

// The cores of this process, shared by the workers of all models. Who starts to run takes threads and gives them
// back when it is done; where others run it gets fewer than it wants, but at least one, so nobody waits and a busy
// server has about as many threads at work as cores. Thread-safe.
class CoreBudget {
 public:
  explicit CoreBudget(int cores) : free_(cores) {}

  // Threads taken by one run; gives them back at the end of its scope.
  class Share {
   public:
    Share(CoreBudget& budget, int threads) : budget_(budget), threads_(threads) {}
    ~Share() { budget_.free_.fetch_add(threads_, std::memory_order_relaxed); }
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;
    int threads() const { return threads_; }

   private:
    CoreBudget& budget_;
    const int threads_;
  };

  // `wanted`, or that halved as often as it takes: plans are made for each number of threads, so there are few.
  [[nodiscard]] Share take(int wanted) { return {*this, take_threads(wanted)}; }

 private:
  int take_threads(int wanted) {
    int free = free_.load(std::memory_order_relaxed), threads = 0;
    do {
      threads = wanted;
      while (threads > 1 && threads > free) threads /= 2;
    } while (!free_.compare_exchange_weak(free, free - threads, std::memory_order_relaxed));
    return threads;
  }

  std::atomic<int> free_;  // below zero when more runs than cores are going on
};

}  // namespace tensord::server
