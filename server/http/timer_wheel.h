#pragma once

#include <array>
#include <cstdint>

namespace tensord::server {

// A deadline in a TimerWheel. Leaves it when it goes.
class Timer {
 public:
  Timer() = default;
  ~Timer() { unlink(); }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  bool is_set() const { return next_ != this; }

  uint64_t owner = 0;  // whose it is; the wheel does not look

 private:
  friend class TimerWheel;
  void unlink() {
    previous_->next_ = next_;
    next_->previous_ = previous_;
    previous_ = next_ = this;
  }
  void link_before(Timer& other) {
    previous_ = other.previous_;
    next_ = &other;
    previous_->next_ = this;
    other.previous_ = this;
  }

  Timer* previous_ = this;
  Timer* next_ = this;
  int64_t deadline_ns_ = 0;
};

// Many deadlines, each some tick late at most; to set one costs the same however many there are. For one thread.
class TimerWheel {
 public:
  static constexpr int64_t kTickNs = 50'000'000;

  explicit TimerWheel(int64_t now_ns) : tick_(now_ns / kTickNs) {}

  // Instead of what it was set to before.
  void set(Timer& timer, int64_t deadline_ns) {
    clear(timer);
    timer.deadline_ns_ = deadline_ns;
    place(timer);
    ++count_;
  }
  void clear(Timer& timer) {
    if (!timer.is_set()) return;
    timer.unlink();
    --count_;
  }
  bool is_empty() const { return count_ == 0; }

  // Calls `on_late(timer)` for each whose deadline has passed, which is not set any more then. It may set any timer.
  template <class OnLate>
  void advance(int64_t now_ns, const OnLate& on_late) {
    const int64_t now_tick = now_ns / kTickNs;
    // One round passes every slot.
    if (now_tick - tick_ > static_cast<int64_t>(kSlots)) tick_ = now_tick - static_cast<int64_t>(kSlots);
    while (tick_ < now_tick) {
      ++tick_;
      Timer due;
      Timer& slot = slot_of(tick_);
      while (slot.is_set()) {
        Timer& timer = *slot.next_;
        timer.unlink();
        timer.link_before(due);
      }
      while (due.is_set()) {
        Timer& timer = *due.next_;
        timer.unlink();
        if (timer.deadline_ns_ > now_ns) {
          place(timer);
          continue;
        }
        --count_;
        on_late(timer);
      }
    }
  }

 private:
  static constexpr size_t kSlots = 1024;

  Timer& slot_of(int64_t tick) { return slots_[static_cast<size_t>(tick) % kSlots]; }
  // In the first slot that is looked at after its deadline; those further away than a round wait for another.
  void place(Timer& timer) {
    const int64_t tick = timer.deadline_ns_ / kTickNs + 1;
    const int64_t last = tick_ + static_cast<int64_t>(kSlots) - 1;
    timer.link_before(slot_of(tick <= tick_ ? tick_ + 1 : tick > last ? last : tick));
  }

  int64_t tick_;
  size_t count_ = 0;
  std::array<Timer, kSlots> slots_;
};

}  // namespace tensord::server
