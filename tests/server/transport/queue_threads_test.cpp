// Threads of a completion queue are added when the serving threads stall, and removed.
#include "server/transport/grpc/queue_threads.h"

#include <gmock/gmock.h>
#include <grpcpp/alarm.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <list>
#include <memory>
#include <thread>

#include "server/transport/grpc/event_tag.h"

namespace tensord::server::queue_threads_test {
namespace {

constexpr int64_t kTickNs = 2'000'000;

QueueThreadStates at(int64_t ticks, std::vector<QueueThreadState> threads) {
  return {.at_ns = ticks * kTickNs, .threads = std::move(threads)};
}

QueueThreadState serving(uint64_t steps, double cpu_ticks) {
  return {.serves = true, .steps = steps, .cpu_ns = static_cast<int64_t>(cpu_ticks * kTickNs)};
}

constexpr size_t kNone = 9;

TEST(QueueThreadStates, OneEventAllTheTimeHoldsUp) {
  const auto before = at(0, {serving(7, 0), {}});
  EXPECT_TRUE(are_stalled(before, at(1, {serving(7, 0), {}}), kNone)) << "it may wait for a lock";
  EXPECT_FALSE(are_stalled(before, at(1, {serving(8, 1), {}}), kNone)) << "it has ended";
  EXPECT_FALSE(are_stalled(before, at(1, {serving(9, 1), {}}), kNone)) << "it is the next one";
}

TEST(QueueThreadStates, WorkInsideGrpcHoldsUp) {
  const auto before = at(0, {serving(8, 0), {}});
  EXPECT_TRUE(are_stalled(before, at(1, {serving(8, 0.8), {}}), kNone));
  EXPECT_FALSE(are_stalled(before, at(1, {serving(8, 0.1), {}}), kNone)) << "it waits for events";
  EXPECT_FALSE(are_stalled(before, at(1, {serving(20, 0.8), {}}), kNone)) << "it handles them";
}

TEST(QueueThreadStates, OnlyAllOfThemAreHeldUp) {
  const auto before = at(0, {serving(7, 0), serving(4, 0)});
  EXPECT_FALSE(are_stalled(before, at(1, {serving(7, 1), serving(4, 0)}), kNone));
  EXPECT_TRUE(are_stalled(before, at(1, {serving(7, 1), serving(4, 1)}), kNone));
  EXPECT_TRUE(are_stalled(before, at(1, {serving(7, 1), serving(4, 0)}), 1)) << "the others, if the second leaves";
  EXPECT_FALSE(are_stalled(at(0, {{}, {}}), at(1, {{}, {}}), kNone)) << "nobody serves yet";
}

TEST(QueueThreadStates, SaturatedThreadsHaveNoTimeLeft) {
  const auto before = at(0, {serving(0, 0), serving(0, 0)});
  EXPECT_TRUE(are_saturated(before, at(10, {serving(90, 9.9), serving(90, 9.7)})));
  EXPECT_FALSE(are_saturated(before, at(10, {serving(90, 9.9), serving(90, 7)})));
  EXPECT_TRUE(are_saturated(before, at(10, {serving(90, 9.9), {}}))) << "the second served for a while only";
}

TEST(QueueThreadStates, OneMayLeaveWhenTheOthersHaveTimeForItsWork) {
  const auto before = at(0, {serving(0, 0), serving(0, 0)});
  EXPECT_TRUE(are_enough(before, at(10, {serving(90, 3), serving(90, 3)}), 1));
  EXPECT_FALSE(are_enough(before, at(10, {serving(90, 6), serving(90, 3)}), 1));
}

TEST(QueueThreadStates, TheEventsOfAnyThreadAreTraffic) {
  const auto before = at(0, {serving(4, 0), serving(7, 0), {}});
  EXPECT_TRUE(had_events(before, at(1, {serving(5, 1), serving(7, 0), {}})));
  EXPECT_TRUE(had_events(before, at(1, {serving(4, 0), serving(8, 0), {}})));
  EXPECT_TRUE(had_events(before, at(1, {serving(4, 0), serving(7, 0), serving(1, 0)})));
  EXPECT_FALSE(had_events(before, at(1, {serving(4, 1), serving(7, 1), {}})));
}

// Each share at its limit.
TEST(QueueThreadStates, SharesOfTheirTime) {
  const auto before = at(0, {serving(8, 0), {}}), both = at(0, {serving(8, 0), serving(8, 0)});
  EXPECT_FALSE(are_stalled(before, at(1, {serving(8, 0.5), {}}), kNone)) << "half of it may be waiting";
  EXPECT_TRUE(are_stalled(before, at(1, {serving(8, 0.51), {}}), kNone));
  EXPECT_TRUE(are_saturated(before, at(1, {serving(20, 0.9), {}})));
  EXPECT_FALSE(are_saturated(before, at(1, {serving(20, 0.89), {}})));
  EXPECT_FALSE(are_enough(both, at(1, {serving(20, 0.7), serving(20, 0)}), 1));
  EXPECT_TRUE(are_enough(both, at(1, {serving(20, 0.69), serving(20, 0)}), 1));
  EXPECT_TRUE(are_enough(both, both, 1)) << "no time has gone by";
}

// An event whose handler is a function; an expired alarm delivers it.
class Event final : public EventTag {
 public:
  Event(grpc::CompletionQueue& queue, std::function<void()> handler, bool is_light = false)
      : handler_(std::move(handler)), is_light_(is_light) {
    alarm_.Set(&queue, gpr_now(GPR_CLOCK_MONOTONIC), tag());
  }
  void on_event(bool) override { handler_(); }
  bool is_light() const override { return is_light_; }

 private:
  const std::function<void()> handler_;
  const bool is_light_;
  grpc::Alarm alarm_;
};

class QueueThreadsTest : public ::testing::Test {
 protected:
  // Each event waits until the next one was handled, so the chain needs as many threads as events.
  void handle_chain(int length) {
    std::vector<std::promise<void>>& handled = chains_.emplace_back(static_cast<size_t>(length) + 1);
    handled.back().set_value();
    for (size_t i = 0; i < handled.size() - 1; ++i) {
      events_.emplace_back(queue_, [&handled, i] {
        handled[i + 1].get_future().wait();
        handled[i].set_value();
      });
    }
    handled[0].get_future().wait();
  }

  grpc::CompletionQueue queue_;
  std::list<std::vector<std::promise<void>>> chains_;  // the threads of a test end before these
  std::list<Event> events_;
};

TEST_F(QueueThreadsTest, AnotherThreadServesWhileOneIsHeldUp) {
  QueueThreads threads(queue_, 2);
  for (int i = 0; i < 20; ++i) handle_chain(2);
  threads.shut_down();
}

TEST_F(QueueThreadsTest, AsManyAsAreNeededServe) {
  QueueThreads threads(queue_, 5);
  handle_chain(5);
  handle_chain(1);
  handle_chain(4);
  threads.shut_down();
}

TEST_F(QueueThreadsTest, AfterAQuietTimeToo) {
  QueueThreads threads(queue_, 2);
  handle_chain(2);
  std::this_thread::sleep_for(std::chrono::milliseconds(250));  // the watchdog no longer watches
  handle_chain(2);
  threads.shut_down();
}

// How often the watchdog thread has gone to sleep.
std::string sleeps_of_lookout() {
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name, line;
    std::ifstream(thread.path() / "comm") >> name;
    if (name != "grpc-watchdog") continue;
    std::ifstream status(thread.path() / "status");
    while (std::getline(status, line)) {
      if (line.starts_with("voluntary_ctxt_switches:")) return line;
    }
  }
  return "";  // not started yet
}

TEST_F(QueueThreadsTest, WithoutTrafficNobodyLooksOut) {
  QueueThreads threads(queue_, 1);
  handle_chain(1);
  // It polls every 2 ms while there is work, so equal counts mean that it sleeps; the test hangs if it never does.
  for (std::string last, now = sleeps_of_lookout(); now.empty() || now != last; now = sleeps_of_lookout()) {
    last = now;
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
  threads.shut_down();
}

TEST_F(QueueThreadsTest, LightEventsAreHandledWhileAllThreadsAreHeldUp) {
  for (const int max : {1, 2}) {
    grpc::CompletionQueue queue;
    std::list<Event> events;
    std::promise<void> end;
    std::shared_future<void> ended = end.get_future().share();
    std::atomic<int> heavy{0}, light{0};
    QueueThreads threads(queue, max);
    for (int i = 0; i < max; ++i) events.emplace_back(queue, [&] { ++heavy, ended.wait(); });
    while (heavy < max) std::this_thread::yield();
    for (int i = 0; i < 20; ++i) {
      events.emplace_back(queue, [&] { ++heavy; });
      std::promise<void> handled;
      events.emplace_back(
          queue, [&] { ++light, handled.set_value(); }, /*is_light=*/true);
      handled.get_future().wait();
    }
    EXPECT_EQ(light, 20);
    EXPECT_EQ(heavy, max) << "those wait for a thread that may take long";
    end.set_value();
    while (heavy < max + 20) std::this_thread::yield();  // and are not forgotten
    threads.shut_down();
  }
}

TEST_F(QueueThreadsTest, AllEventsAreHandledBeforeItGoes) {
  std::atomic<int> handled{0};
  {
    QueueThreads threads(queue_, 3);
    for (int i = 0; i < 1000; ++i) events_.emplace_back(queue_, [&handled] { ++handled; });
    threads.shut_down();
  }
  EXPECT_EQ(handled, 1000);
}

}  // namespace
}  // namespace tensord::server::queue_threads_test
