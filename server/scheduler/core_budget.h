#pragma once

#include <atomic>

namespace tensord::server {

// The cores of this process, shared by the workers of all models. A run takes threads when it starts and releases them
// when it ends. If other runs hold threads, it gets fewer than it asks for, but at least one, so runs never wait and a
// busy server has about as many active threads as cores. Thread-safe.
class CoreBudget {
 public:
  explicit CoreBudget(int cores) : free_(cores) {}

  // The threads of one run; releases them on destruction.
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

  // `wanted`, halved until enough threads are free. Powers of two only, because each thread count has its own plans.
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

  std::atomic<int> free_;  // negative if there are more runs than cores
};

}  // namespace tensord::server
