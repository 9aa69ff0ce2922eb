#pragma once

#include <array>
#include <cstdint>

namespace tensord::server {

// A deadline in a TimerWheel. Removes itself on destruction.
class Timer {
 public:
  Timer() = default;
  ~Timer() { unlink(); }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  bool is_set() const { return next_ != this; }

  uint64_t owner = 0;  // id of the owner, unused by the wheel

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

// Many deadlines, each at most one tick late. Setting one takes constant time. Not thread-safe.
class TimerWheel {
 public:
  static constexpr int64_t kTickNs = 50'000'000;

  explicit TimerWheel(int64_t now_ns) : tick_(now_ns / kTickNs) {}

  // Replaces the timer's previous deadline.
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

  // Calls `on_late(timer)` for each expired timer, which is no longer set. It may set any timer.
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
  // Puts it into the first slot that is checked after its deadline; timers beyond one round stay for the next one.
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
