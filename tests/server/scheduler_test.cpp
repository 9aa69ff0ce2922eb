#include "server/scheduler/scheduler.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <vector>

#include "server/scheduler/core_budget.h"

namespace tensord::server {
namespace {

struct Record {
  std::vector<int> run;
  std::vector<std::pair<int, ErrorCode>> rejected;
};

class RecordedTask final : public Task {
 public:
  RecordedTask(int id, Record& record, bool is_cancelled = false)
      : id(id), record_(record), is_cancelled_(is_cancelled) {}
  void run(size_t, int64_t) override { record_.run.push_back(id); }
  void reject(ErrorCode code, const char*) override { record_.rejected.push_back({id, code}); }
  bool is_cancelled() const override { return is_cancelled_; }
  const int id;

 private:
  Record& record_;
  bool is_cancelled_;
};

TaskPtr make_task(int id, Record& record, int64_t deadline_ns = kNoDeadline, bool is_cancelled = false) {
  auto task = std::make_unique<RecordedTask>(id, record, is_cancelled);
  task->deadline_ns = deadline_ns;
  return task;
}

int id_of(const TaskPtr& task) { return static_cast<const RecordedTask&>(*task).id; }

TEST(FifoPolicy, GivesOneAtATimeInOrder) {
  Record record;
  FifoPolicy policy(8);
  for (int i = 0; i < 3; ++i) {
    TaskPtr task = make_task(i, record);
    ASSERT_TRUE(policy.add(task));
  }
  for (int i = 0; i < 3; ++i) {
    const Batch batch = policy.next(0);
    ASSERT_EQ(batch.tasks.size(), 1u);
    EXPECT_EQ(id_of(batch.tasks[0]), i);
  }
  const Batch empty = policy.next(0);
  EXPECT_TRUE(empty.tasks.empty());
  EXPECT_EQ(empty.wake_ns, kNoDeadline);
}

TEST(FifoPolicy, RefusesWhenFull) {
  Record record;
  FifoPolicy policy(2);
  for (int i = 0; i < 2; ++i) {
    TaskPtr task = make_task(i, record);
    EXPECT_TRUE(policy.add(task));
    EXPECT_EQ(task, nullptr);
  }
  TaskPtr third = make_task(2, record);
  EXPECT_FALSE(policy.add(third));
  EXPECT_NE(third, nullptr);
  policy.next(0);
  EXPECT_TRUE(policy.add(third));
}

TEST(FifoPolicy, SortsOutLateAndCancelledTasks) {
  Record record;
  FifoPolicy policy(8);
  ManualClock clock;
  TaskPtr tasks[] = {make_task(0, record, 100), make_task(1, record, kNoDeadline, true), make_task(2, record, 300)};
  for (TaskPtr& task : tasks) ASSERT_TRUE(policy.add(task));
  clock.advance_ns(100);
  const Batch batch = policy.next(clock.now_ns());
  ASSERT_EQ(batch.expired.size(), 1u);
  EXPECT_EQ(id_of(batch.expired[0]), 0);
  ASSERT_EQ(batch.cancelled.size(), 1u);
  EXPECT_EQ(id_of(batch.cancelled[0]), 1);
  ASSERT_EQ(batch.tasks.size(), 1u);
  EXPECT_EQ(id_of(batch.tasks[0]), 2);
}

TEST(FifoPolicy, DrainsInOrder) {
  Record record;
  FifoPolicy policy(8);
  for (int i = 0; i < 3; ++i) {
    TaskPtr task = make_task(i, record);
    ASSERT_TRUE(policy.add(task));
  }
  const std::vector<TaskPtr> drained = policy.drain();
  ASSERT_EQ(drained.size(), 3u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(id_of(drained[static_cast<size_t>(i)]), i);
  EXPECT_EQ(policy.size(), 0u);
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
  Scheduler scheduler(std::make_unique<FifoPolicy>(1), {.workers = 1, .on_worker_start = {}, .clock = &clock});
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
  Scheduler scheduler(std::make_unique<FifoPolicy>(16), {.workers = 1, .on_worker_start = {}});
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

// Each worker waits for all the others: only ends when every worker runs at once.
TEST(Scheduler, RunsAllWorkersSideBySide) {
  constexpr int kWorkers = 4;
  Scheduler scheduler(std::make_unique<FifoPolicy>(16), {.workers = kWorkers, .on_worker_start = {}});
  std::promise<void> started[kWorkers], release;
  const std::shared_future<void> gate = release.get_future().share();
  for (auto& promise : started) scheduler.submit(std::make_unique<GateTask>(promise, gate));
  for (auto& promise : started) promise.get_future().wait();
  release.set_value();
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
}  // namespace tensord::server
