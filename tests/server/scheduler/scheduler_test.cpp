#include "server/scheduler/scheduler.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <utility>
#include <vector>

#include "server/scheduler/batch_policy.h"
#include "server/scheduler/core_budget.h"
#include "server/scheduler/reorder_buffer.h"

namespace tensord::server::scheduler_test {
namespace {

std::unique_ptr<SchedulingPolicy> fifo(size_t capacity) {
  BatchRules rules;
  rules.queue = {.max_size = capacity, .allows_timeout = true};
  return std::make_unique<BatchPolicy>(rules);
}

Scheduler::Options options(int workers, const Clock* clock = &Clock::system()) {
  Scheduler::Options out;
  out.workers = workers;
  out.clock = clock;
  return out;
}

// Blocks its worker until released.
class GateTask final : public Task {
 public:
  GateTask(std::promise<void>& started, std::shared_future<void> release)
      : started_(started), release_(std::move(release)) {}
  void run(size_t, int64_t) override {
    started_.set_value();
    release_.wait();
  }
  void reject(ErrorCode, const char*) override { FAIL() << "the gate was rejected"; }

 private:
  std::promise<void>& started_;
  std::shared_future<void> release_;
};

class Outcome final : public Task {
 public:
  explicit Outcome(std::promise<ErrorCode>& promise) : promise_(promise) {}
  void run(size_t, int64_t) override { promise_.set_value(ErrorCode::kInternal); }
  void reject(ErrorCode code, const char*) override { promise_.set_value(code); }

 private:
  std::promise<ErrorCode>& promise_;
};

TEST(Scheduler, RejectsFullQueueLateTasksAndTasksAfterStop) {
  ManualClock clock;
  Scheduler scheduler(fifo(1), options(1, &clock));
  std::promise<void> started, release;
  scheduler.submit(std::make_unique<GateTask>(started, release.get_future().share()));
  started.get_future().wait();

  std::promise<ErrorCode> late, full, stopped;
  auto late_task = std::make_unique<Outcome>(late);
  late_task->deadline_ns = 10;
  scheduler.submit(std::move(late_task));
  EXPECT_EQ(scheduler.waiting(), 1u);
  scheduler.submit(std::make_unique<Outcome>(full));
  EXPECT_EQ(full.get_future().get(), ErrorCode::kResourceExhausted);

  clock.advance_ns(10);
  release.set_value();
  EXPECT_EQ(late.get_future().get(), ErrorCode::kDeadlineExceeded);
  scheduler.stop();
  scheduler.submit(std::make_unique<Outcome>(stopped));
  EXPECT_EQ(stopped.get_future().get(), ErrorCode::kUnavailable);
}

TEST(Scheduler, RunsNothingThatIsLateOnTheCallersThread) {
  ManualClock clock;
  clock.advance_ns(100);
  Scheduler scheduler(fifo(16), options(1, &clock));
  std::promise<ErrorCode> late;
  auto task = std::make_unique<Outcome>(late);
  task->deadline_ns = 100;
  scheduler.submit(std::move(task), /*may_run_here=*/true);
  EXPECT_EQ(late.get_future().get(), ErrorCode::kDeadlineExceeded);
}

// A task that arrived while another ran on its caller's thread runs afterwards.
TEST(Scheduler, WakesAWorkerWhenACallersThreadIsDone) {
  Scheduler scheduler(fifo(16), options(1));
  std::promise<void> started, release;
  const auto gate = release.get_future().share();
  const auto caller = std::async(
      std::launch::async, [&] { scheduler.submit(std::make_unique<GateTask>(started, gate), /*may_run_here=*/true); });
  started.get_future().wait();
  std::promise<ErrorCode> waits;
  scheduler.submit(std::make_unique<Outcome>(waits));
  EXPECT_EQ(scheduler.waiting(), 1u);
  release.set_value();
  EXPECT_EQ(waits.get_future().get(), ErrorCode::kInternal);  // Outcome reports kInternal for a task that ran
}

// The requester of the thread has left, and the thread starts when there is no free slot.
TEST(Scheduler, AThreadOfThePoolWaitsForTheSlotOfACallersThread) {
  class Gone final : public Task {
   public:
    void run(size_t, int64_t) override { FAIL(); }
    void reject(ErrorCode code, const char*) override { EXPECT_EQ(code, ErrorCode::kCancelled); }
    bool is_cancelled() const override { return true; }
  };
  WorkerPool pool(1);
  Scheduler::Options of_pool = options(1);
  of_pool.pool = &pool;
  Scheduler scheduler(fifo(16), of_pool);
  std::promise<void> is_held, let_go, has_come, started, release;
  pool.post([&] {
    is_held.set_value();
    let_go.get_future().wait();
  });
  is_held.get_future().wait();
  scheduler.submit(std::make_unique<Gone>());
  scheduler.drop_cancelled();
  const auto gate = release.get_future().share();
  const auto caller = std::async(
      std::launch::async, [&] { scheduler.submit(std::make_unique<GateTask>(started, gate), /*may_run_here=*/true); });
  started.get_future().wait();
  std::promise<ErrorCode> waits;
  scheduler.submit(std::make_unique<Outcome>(waits));
  pool.post([&] { has_come.set_value(); });
  let_go.set_value();
  has_come.get_future().wait();
  EXPECT_EQ(scheduler.waiting(), 1u);
  release.set_value();
  EXPECT_EQ(waits.get_future().get(), ErrorCode::kInternal);  // Outcome reports kInternal for a task that ran
}

TEST(Scheduler, RunsShortTasksOnTheCallersThreadWhenASlotIsFree) {
  class Here final : public Task {
   public:
    explicit Here(std::promise<std::thread::id>& ran_on) : ran_on_(ran_on) {}
    void run(size_t worker, int64_t) override {
      EXPECT_EQ(worker, 0u);
      ran_on_.set_value(std::this_thread::get_id());
    }
    void reject(ErrorCode, const char*) override { FAIL(); }

   private:
    std::promise<std::thread::id>& ran_on_;
  };
  Scheduler scheduler(fifo(16), options(1));
  for (int i = 0; i < 2; ++i) {
    std::promise<std::thread::id> free_slot;
    scheduler.submit(std::make_unique<Here>(free_slot), true);
    EXPECT_EQ(free_slot.get_future().get(), std::this_thread::get_id());
  }
  std::promise<void> started, release;
  scheduler.submit(std::make_unique<GateTask>(started, release.get_future().share()));
  started.get_future().wait();
  std::promise<std::thread::id> busy_slot;
  scheduler.submit(std::make_unique<Here>(busy_slot), true);
  EXPECT_EQ(scheduler.waiting(), 1u);
  release.set_value();
  EXPECT_NE(busy_slot.get_future().get(), std::this_thread::get_id());
}

// Records the thread that it runs on, or that it was rejected.
class Whereabouts final : public Task {
 public:
  explicit Whereabouts(std::promise<std::thread::id>& ran_on) : ran_on_(ran_on) {}
  void run(size_t, int64_t) override { ran_on_.set_value(std::this_thread::get_id()); }
  void reject(ErrorCode, const char*) override { ran_on_.set_value({}); }

 private:
  std::promise<std::thread::id>& ran_on_;
};

std::thread::id ran_on(Scheduler& scheduler) {
  std::promise<std::thread::id> out;
  scheduler.submit(std::make_unique<Whereabouts>(out), /*may_run_here=*/true);
  return out.get_future().get();
}

TEST(Scheduler, TheCallersThreadRunsNothingAfterStop) {
  Scheduler scheduler(fifo(16), options(1));
  scheduler.stop();
  EXPECT_EQ(ran_on(scheduler), std::thread::id());
}

TEST(Scheduler, TheCallersThreadRunsNothingThatMayWaitForOthers) {
  BatchRules rules;
  rules.max_rows = 2;
  rules.max_delay_ns = 1;
  Scheduler scheduler(std::make_unique<BatchPolicy>(rules), options(1));
  EXPECT_NE(ran_on(scheduler), std::this_thread::get_id());
}

TEST(Scheduler, TheCallersThreadNeedsAPermitToo) {
  RateLimiter limiter({{{"R", false}, 1}});
  const auto client = limiter.add_client("m", {{"R", false, 1}}, 1);
  Scheduler::Options limited = options(1);
  limited.rate_limiter = client.get();
  Scheduler scheduler(fifo(16), std::move(limited));
  EXPECT_EQ(ran_on(scheduler), std::this_thread::get_id());
  EXPECT_EQ(limiter.usage("R", false).second, 0u);
}

// Each worker waits for all the others: ends only if every worker runs at the same time.
TEST(Scheduler, RunsAllWorkersSideBySide) {
  constexpr int kWorkers = 4;
  Scheduler scheduler(fifo(16), options(kWorkers));
  std::promise<void> started[kWorkers], release;
  const std::shared_future<void> gate = release.get_future().share();
  for (auto& promise : started) scheduler.submit(std::make_unique<GateTask>(promise, gate));
  for (auto& promise : started) promise.get_future().wait();
  release.set_value();
}

// Two permits and two workers on each device: a permit is for a worker of its device.
TEST(Scheduler, PermitsAreForWorkersOfTheirDevice) {
  constexpr int kWorkers = 4;
  RateLimiter limiter({{{"R", false}, 2}});
  const auto client = limiter.add_client("m", {{"R", false, 1}}, 1, {0, 0, 1, 1});
  const auto other = limiter.add_client("other", {{"R", false, 1}}, 1, {1});
  Scheduler::Options limited = options(kWorkers);
  limited.rate_limiter = client.get();
  Scheduler scheduler(fifo(16), std::move(limited));
  for (int round = 0; round < 20; ++round) {
    std::promise<void> started[kWorkers], release;
    const std::shared_future<void> gate = release.get_future().share();
    for (auto& promise : started) scheduler.submit(std::make_unique<GateTask>(promise, gate));
    for (auto& promise : started) promise.get_future().wait();
    EXPECT_FALSE(other->try_acquire());
    release.set_value();
    while (limiter.usage("R", false, 0).second + limiter.usage("R", false, 1).second > 0) std::this_thread::yield();
  }
}

// The only worker is busy throughout; a task with a timeout of one millisecond is rejected in time.
TEST(Scheduler, RejectsInTimeWhileAllWorkersAreBusy) {
  Scheduler scheduler(fifo(16), options(1));
  std::promise<void> started, release;
  scheduler.submit(std::make_unique<GateTask>(started, release.get_future().share()));
  started.get_future().wait();
  std::promise<ErrorCode> late;
  auto task = std::make_unique<Outcome>(late);
  task->timeout_us = 1000;
  scheduler.submit(std::move(task));
  EXPECT_EQ(late.get_future().get(), ErrorCode::kDeadlineExceeded);
  EXPECT_EQ(scheduler.waiting(), 0u);
  release.set_value();
}

TEST(Scheduler, RejectsInTimeOneThatIsDueBeforeThoseThatCameFirst) {
  Scheduler scheduler(fifo(16), options(1));
  std::promise<void> started, release;
  scheduler.submit(std::make_unique<GateTask>(started, release.get_future().share()));
  started.get_future().wait();
  constexpr uint64_t kHourUs = 3'600'000'000;
  std::promise<ErrorCode> patient, late;
  for (auto* outcome : {&patient, &late}) {
    auto task = std::make_unique<Outcome>(*outcome);
    task->timeout_us = outcome == &late ? 1000 : kHourUs;
    scheduler.submit(std::move(task));
  }
  EXPECT_EQ(late.get_future().get(), ErrorCode::kDeadlineExceeded);
  EXPECT_EQ(scheduler.waiting(), 1u);
  release.set_value();
  EXPECT_EQ(patient.get_future().get(), ErrorCode::kInternal);  // it ran
}

// Neither the worker nor the timer waits for the hour to pass.
TEST(Scheduler, StopsWhileTasksHaveLongToWait) {
  BatchRules rules;
  rules.max_rows = 3;
  rules.max_delay_ns = 3'600'000'000'000;
  rules.queue = {.allows_timeout = true};
  Scheduler scheduler(std::make_unique<BatchPolicy>(rules), options(1));
  std::promise<ErrorCode> stopped, late;
  for (auto* outcome : {&stopped, &late}) {
    auto task = std::make_unique<Outcome>(*outcome);
    task->timeout_us = outcome == &late ? 1000 : 3'600'000'000;
    scheduler.submit(std::move(task));
  }
  EXPECT_EQ(late.get_future().get(), ErrorCode::kDeadlineExceeded);  // deadlines are watched
  scheduler.stop();
  EXPECT_EQ(stopped.get_future().get(), ErrorCode::kUnavailable);
}

// After a rejection by timeout, the tasks behind it form a batch that must not wait for its own delay.
TEST(Scheduler, RejectionsMakeBatchesReady) {
  BatchRules rules;
  rules.max_rows = 8;
  rules.preferred_rows = {2, 8};
  rules.max_delay_ns = 3'600'000'000'000;
  rules.queue = {.allows_timeout = true};
  std::promise<size_t> ran;
  Scheduler::Options all = options(1);
  all.run_batch = [&](size_t, std::vector<TaskPtr> tasks, int64_t) { ran.set_value(tasks.size()); };
  Scheduler scheduler(std::make_unique<BatchPolicy>(rules), all);
  std::promise<ErrorCode> late, first, second;
  for (auto* outcome : {&late, &first, &second}) {
    auto task = std::make_unique<Outcome>(*outcome);
    task->rows = outcome == &late ? 3 : 1;
    task->timeout_us = outcome == &late ? 20'000 : 0;
    task->priority = outcome == &late ? 1 : 0;
    scheduler.submit(std::move(task));
  }
  EXPECT_EQ(late.get_future().get(), ErrorCode::kDeadlineExceeded);
  EXPECT_EQ(ran.get_future().get(), 2u);
}

TEST(Scheduler, DropsCancelledTasksWhileAllWorkersAreBusy) {
  class Cancelled final : public Task {
   public:
    explicit Cancelled(ErrorCode& code) : code_(code) {}
    void run(size_t, int64_t) override { FAIL(); }
    void reject(ErrorCode code, const char*) override { code_ = code; }
    bool is_cancelled() const override { return true; }

   private:
    ErrorCode& code_;
  };
  Scheduler scheduler(fifo(16), options(1));
  std::promise<void> started, release;
  scheduler.submit(std::make_unique<GateTask>(started, release.get_future().share()));
  started.get_future().wait();
  ErrorCode code = ErrorCode::kInternal;
  scheduler.submit(std::make_unique<Cancelled>(code));
  EXPECT_EQ(code, ErrorCode::kInternal);
  scheduler.drop_cancelled();
  EXPECT_EQ(code, ErrorCode::kCancelled);
  release.set_value();
}

TEST(Scheduler, RunsWhatWaitedTogether) {
  BatchRules rules;
  rules.max_rows = 8;
  Scheduler::Options batching = options(1);
  std::promise<std::vector<uint64_t>> turns;
  batching.run_batch = [&](size_t, const std::vector<TaskPtr>& tasks, int64_t) {
    std::vector<uint64_t> found;
    for (const TaskPtr& task : tasks) found.push_back(task->turn);
    turns.set_value(found);
  };
  Scheduler scheduler(std::make_unique<BatchPolicy>(rules), std::move(batching));
  std::promise<void> started, release;
  auto gate = std::make_unique<GateTask>(started, release.get_future().share());
  gate->batch_key = {1};
  scheduler.submit(std::move(gate));
  started.get_future().wait();
  std::promise<ErrorCode> unused;
  for (int i = 0; i < 3; ++i) scheduler.submit(std::make_unique<Outcome>(unused));
  release.set_value();
  EXPECT_EQ(turns.get_future().get(), (std::vector<uint64_t>{1, 2, 3}));
}

// Two models share one permit: the second one's task starts when the first one's has ended. A model that is stopped
// while it waits for the permit ends.
TEST(Scheduler, HoldsAPermitForEveryRun) {
  RateLimiter limiter({{{"R", false}, 1}});
  const auto first_client = limiter.add_client("first", {{"R", false, 1}}, 1);
  const auto second_client = limiter.add_client("second", {{"R", false, 1}}, 1);
  Scheduler::Options first_options = options(1), second_options = options(1);
  first_options.rate_limiter = first_client.get();
  second_options.rate_limiter = second_client.get();
  Scheduler first(fifo(16), std::move(first_options));
  {
    Scheduler second(fifo(16), std::move(second_options));
    std::promise<void> started, release;
    first.submit(std::make_unique<GateTask>(started, release.get_future().share()));
    started.get_future().wait();
    EXPECT_EQ(limiter.usage("R", false), (std::pair<uint64_t, uint64_t>{1, 1}));
    std::promise<ErrorCode> waits, is_stopped;
    second.submit(std::make_unique<Outcome>(waits), /*may_run_here=*/true);
    EXPECT_EQ(second.waiting(), 1u);
    release.set_value();
    EXPECT_EQ(waits.get_future().get(), ErrorCode::kInternal);  // Outcome reports kInternal for a task that ran

    std::promise<void> started_again, release_again;
    first.submit(std::make_unique<GateTask>(started_again, release_again.get_future().share()));
    started_again.get_future().wait();
    second.submit(std::make_unique<Outcome>(is_stopped));
    second.stop();
    EXPECT_EQ(is_stopped.get_future().get(), ErrorCode::kUnavailable);
    release_again.set_value();
  }
  first.stop();
  EXPECT_EQ(limiter.usage("R", false).second, 0u);
}

// Signals when a worker was told to wait for more tasks.
class TellsWhenAsked final : public SchedulingPolicy {
 public:
  TellsWhenAsked(const BatchRules& rules, std::promise<void>& asked) : policy_(rules), asked_(asked) {}
  Added add(TaskPtr& task) override { return policy_.add(task); }
  Batch next(int64_t now_ns) override {
    Batch batch = policy_.next(now_ns);
    if (batch.wake_ns != kNoDeadline && !std::exchange(has_told_, true)) asked_.set_value();
    return batch;
  }
  Batch sweep(int64_t now_ns, bool looks_for_cancelled) override { return policy_.sweep(now_ns, looks_for_cancelled); }
  int64_t next_expiry_ns() const override { return policy_.next_expiry_ns(); }
  bool runs_alone() const override { return policy_.runs_alone(); }
  size_t size() const override { return policy_.size(); }
  std::vector<TaskPtr> drain() override { return policy_.drain(); }

 private:
  BatchPolicy policy_;
  std::promise<void>& asked_;
  bool has_told_ = false;
};

// A model whose batch is still filling holds no permit: another model runs.
TEST(Scheduler, HoldsNoPermitWhileABatchFills) {
  RateLimiter limiter({{{"R", false}, 1}});
  const auto filling_client = limiter.add_client("filling", {{"R", false, 1}}, 1);
  const auto other_client = limiter.add_client("other", {{"R", false, 1}}, 1);
  BatchRules rules;
  rules.max_rows = 2;
  rules.max_delay_ns = 3'600'000'000'000;
  std::promise<void> asked;
  Scheduler::Options filling_options = options(1);
  filling_options.rate_limiter = filling_client.get();
  filling_options.run_batch = [](size_t, const std::vector<TaskPtr>& tasks, int64_t now_ns) {
    for (const TaskPtr& task : tasks) task->run(0, now_ns);
  };
  Scheduler filling(std::make_unique<TellsWhenAsked>(rules, asked), std::move(filling_options));
  std::promise<ErrorCode> first, second;
  filling.submit(std::make_unique<Outcome>(first));
  asked.get_future().wait();
  { EXPECT_TRUE(other_client->acquire()); }
  EXPECT_EQ(limiter.usage("R", false).second, 0u);
  filling.submit(std::make_unique<Outcome>(second));
  EXPECT_EQ(first.get_future().get(), ErrorCode::kInternal);  // Outcome reports kInternal for a task that ran
  EXPECT_EQ(second.get_future().get(), ErrorCode::kInternal);
}

TEST(ReorderBuffer, HoldsAnswersUntilThoseBefore) {
  ReorderBuffer order;
  std::vector<int> seen;
  order.deliver(2, [&] { seen.push_back(2); });
  order.deliver(1, [&] { seen.push_back(1); });
  EXPECT_TRUE(seen.empty());
  order.deliver(0, [&] {
    seen.push_back(0);
    order.deliver(3, [&] { seen.push_back(3); });
  });
  EXPECT_EQ(seen, (std::vector<int>{0, 1, 2, 3}));
}

TEST(CoreBudget, SharesByHalves) {
  CoreBudget budget(8);
  const auto first = budget.take(4);
  EXPECT_EQ(first.threads(), 4);
  const auto second = budget.take(3);
  EXPECT_EQ(second.threads(), 3);
  {
    const auto third = budget.take(4);
    EXPECT_EQ(third.threads(), 1);
    const auto fourth = budget.take(4);
    EXPECT_EQ(fourth.threads(), 1);  // nobody waits
  }
  EXPECT_EQ(budget.take(1).threads(), 1);
  EXPECT_EQ(budget.take(100).threads(), 1);
}

TEST(CoreBudget, GivesBack) {
  CoreBudget budget(2);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(budget.take(2).threads(), 2);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(budget.take(7).threads(), 1);
  EXPECT_EQ(budget.take(3).threads(), 1);
  EXPECT_EQ(budget.take(4).threads(), 2);
}

}  // namespace
}  // namespace tensord::server::scheduler_test
