#include "server/scheduler/batch_policy.h"

#include <gtest/gtest.h>

namespace tensord::server::batch_policy_test {
namespace {

class IdTask final : public Task {
 public:
  explicit IdTask(int id) : id(id) {}
  void run(size_t, int64_t) override {}
  void reject(ErrorCode, const char*) override {}
  bool is_cancelled() const override { return cancelled; }
  const int id;
  bool cancelled = false;
};

// Properties of a task beside its number.
struct Given {
  int64_t at_ns = 0;
  int64_t rows = 1;
  std::vector<int64_t> key = {};
  uint64_t priority = 0;
  int64_t deadline_ns = kNoDeadline;
  uint64_t timeout_us = 0;
};

std::vector<int> ids(const std::vector<TaskPtr>& tasks) {
  std::vector<int> out;
  for (const TaskPtr& task : tasks) out.push_back(static_cast<const IdTask&>(*task).id);
  return out;
}

using Ids = std::vector<int>;
using Added = SchedulingPolicy::Added;

class Fixture : public ::testing::Test {
 protected:
  Added add(SchedulingPolicy& policy, int id, const Given& given = {}) {
    auto task = std::make_unique<IdTask>(id);
    task->enqueued_ns = given.at_ns;
    task->rows = given.rows;
    task->batch_key = given.key;
    task->priority = given.priority;
    task->deadline_ns = given.deadline_ns;
    task->timeout_us = given.timeout_us;
    last_ = task.get();
    TaskPtr pointer = std::move(task);
    const Added added = policy.add(pointer);
    EXPECT_EQ(pointer != nullptr, added == Added::kRefused);
    return added;
  }
  IdTask* last_ = nullptr;
};

BatchRules batches_of(int64_t max_rows, int64_t max_delay_ns = 0) {
  BatchRules rules;
  rules.max_rows = max_rows;
  rules.max_delay_ns = max_delay_ns;
  return rules;
}

using OneAtATime = Fixture;

TEST_F(OneAtATime, InOrder) {
  BatchPolicy policy({});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(add(policy, i), Added::kIsReady);
  EXPECT_EQ(policy.size(), 3u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ids(policy.next(0).tasks), Ids{i});
  const Batch empty = policy.next(0);
  EXPECT_TRUE(empty.is_empty());
  EXPECT_EQ(empty.wake_ns, kNoDeadline);
}

TEST_F(OneAtATime, RefusesWhenFull) {
  BatchRules rules;
  rules.queue = {.max_size = 2};
  BatchPolicy policy(rules);
  EXPECT_EQ(add(policy, 0), Added::kIsReady);
  EXPECT_EQ(add(policy, 1), Added::kIsReady);
  EXPECT_EQ(add(policy, 2), Added::kRefused);
  policy.next(0);
  EXPECT_EQ(add(policy, 3), Added::kIsReady);
}

TEST_F(OneAtATime, SortsOutLateAndCancelledTasks) {
  BatchPolicy policy({});
  add(policy, 0, {.deadline_ns = 100});
  add(policy, 1);
  last_->cancelled = true;
  add(policy, 2, {.deadline_ns = 300});
  EXPECT_EQ(policy.next_expiry_ns(), 100);
  const Batch batch = policy.next(100);
  EXPECT_EQ(ids(batch.expired), Ids{0});
  EXPECT_EQ(ids(batch.tasks), Ids{2});
  EXPECT_EQ(ids(policy.next(100).cancelled), Ids{1});
  EXPECT_EQ(policy.size(), 0u);
  EXPECT_EQ(policy.next_expiry_ns(), kNoDeadline);
}

TEST_F(OneAtATime, SweepsWithoutRunning) {
  BatchPolicy policy({});
  add(policy, 0, {.deadline_ns = 100});
  add(policy, 1);
  last_->cancelled = true;
  add(policy, 2);
  Batch dead = policy.sweep(99, false);
  EXPECT_TRUE(dead.is_empty());
  dead = policy.sweep(100, true);
  EXPECT_EQ(ids(dead.expired), Ids{0});
  EXPECT_EQ(ids(dead.cancelled), Ids{1});
  EXPECT_TRUE(dead.tasks.empty());
  EXPECT_EQ(ids(policy.drain()), Ids{2});
}

TEST_F(OneAtATime, NearestDeadlineFirstButNobodyStarves) {
  BatchPolicy policy({});
  const int64_t patience = BatchPolicy::kPatienceNs;
  add(policy, 0);
  add(policy, 1, {.at_ns = 1, .deadline_ns = 5000});
  add(policy, 2, {.at_ns = 2, .deadline_ns = 4000});
  add(policy, 3, {.at_ns = 3, .deadline_ns = 100 * patience});
  add(policy, 4,
      {.at_ns = patience - 100, .deadline_ns = patience + 50});  // due after 0 and 3, which arrived long before
  Ids order;
  for (int i = 0; i < 5; ++i) order.push_back(ids(policy.next(3).tasks).at(0));
  EXPECT_EQ(order, (Ids{2, 1, 0, 3, 4}));
}

TEST_F(OneAtATime, OrderOfArrivalWhereItIsKept) {
  BatchRules rules;
  rules.keeps_order = true;
  BatchPolicy policy(rules);
  add(policy, 0);
  add(policy, 1, {.at_ns = 1, .deadline_ns = 4000});
  EXPECT_EQ(ids(policy.next(1).tasks), Ids{0});
  EXPECT_EQ(ids(policy.next(1).tasks), Ids{1});
}

using Priorities = Fixture;

TEST_F(Priorities, HighestFirstAndUnknownIsTheDefault) {
  BatchRules rules;
  rules.priority_levels = 3;
  rules.default_priority = 2;
  BatchPolicy policy(rules);
  add(policy, 0, {.priority = 3});
  add(policy, 1, {.priority = 0});
  add(policy, 2, {.priority = 7});
  add(policy, 3, {.priority = 1});
  add(policy, 4, {.priority = 2});
  Ids order;
  for (int i = 0; i < 5; ++i) order.push_back(ids(policy.next(0).tasks).at(0));
  EXPECT_EQ(order, (Ids{3, 1, 2, 4, 0}));
}

TEST_F(Priorities, ABatchIsFilledAcrossThem) {
  BatchRules rules = batches_of(4);
  rules.priority_levels = 2;
  BatchPolicy policy(rules);
  add(policy, 0, {.priority = 2});
  add(policy, 1, {.priority = 1});
  add(policy, 2, {.priority = 2});
  EXPECT_EQ(ids(policy.next(0).tasks), (Ids{1, 0, 2}));
}

TEST_F(Priorities, AnyNumberOfThem) {
  BatchRules rules;
  rules.priority_levels = UINT64_MAX;
  rules.default_priority = uint64_t{1} << 32;
  rules.queue = {.max_size = 1};
  BatchPolicy policy(rules);
  add(policy, 0, {.priority = UINT64_MAX});
  add(policy, 1);
  EXPECT_EQ(add(policy, 2, {.priority = uint64_t{1} << 32}), Added::kRefused);
  add(policy, 3, {.priority = 7});
  EXPECT_EQ(ids(policy.next(0).tasks), Ids{3});
  EXPECT_EQ(ids(policy.next(0).tasks), Ids{1});
  EXPECT_EQ(ids(policy.next(0).tasks), Ids{0});
}

TEST_F(Priorities, EachHasItsQueue) {
  BatchRules rules;
  rules.priority_levels = 2;
  rules.queue = {.max_size = 2};
  rules.own_queues = {{1, {.max_size = 1}}};
  BatchPolicy policy(rules);
  EXPECT_EQ(add(policy, 0, {.priority = 1}), Added::kIsReady);
  EXPECT_EQ(add(policy, 1, {.priority = 1}), Added::kRefused);
  EXPECT_EQ(add(policy, 2, {.priority = 2}), Added::kIsReady);
  EXPECT_EQ(add(policy, 3, {.priority = 2}), Added::kIsReady);
  EXPECT_EQ(add(policy, 4, {.priority = 2}), Added::kRefused);
}

using Timeouts = Fixture;

TEST_F(Timeouts, RejectsWhatWaitedTooLong) {
  BatchRules rules;
  rules.queue = {.timeout_us = 5, .allows_timeout = true};
  BatchPolicy policy(rules);
  add(policy, 0, {.at_ns = 0});
  add(policy, 1, {.at_ns = 0, .timeout_us = 2});
  add(policy, 2, {.at_ns = 0, .timeout_us = 100});  // at most what the queue allows
  EXPECT_EQ(policy.next_expiry_ns(), 2000);
  EXPECT_EQ(ids(policy.sweep(4999, false).expired), Ids{1});
  EXPECT_EQ(ids(policy.sweep(5000, false).expired), (Ids{0, 2}));
}

TEST_F(Timeouts, TasksHaveNoSayWhereTheQueueDoesNotAllowIt) {
  BatchRules rules;
  rules.queue = {.timeout_us = 5};
  BatchPolicy policy(rules);
  add(policy, 0, {.timeout_us = 1});
  EXPECT_EQ(policy.next_expiry_ns(), 5000);
}

TEST_F(Timeouts, LateOnesRunAfterThoseInTime) {
  BatchRules rules;
  rules.priority_levels = 2;
  rules.queue = {.timeout_us = 5, .delays_late = true};
  BatchPolicy policy(rules);
  add(policy, 0, {.at_ns = 0});
  add(policy, 1, {.at_ns = 0, .deadline_ns = 9000});
  add(policy, 2, {.at_ns = 4000});
  add(policy, 3, {.at_ns = 4000, .priority = 2});
  EXPECT_EQ(ids(policy.next(5000).tasks), Ids{2});
  const Batch after = policy.next(9000);  // 1 is past its deadline, 3 has waited too long by now
  EXPECT_EQ(ids(after.expired), Ids{1});
  EXPECT_EQ(ids(after.tasks), Ids{0});
  EXPECT_EQ(ids(policy.next(9000).tasks), Ids{3});
  EXPECT_EQ(policy.size(), 0u);
}

TEST_F(Timeouts, LateOnesWaitForABatchLikeOthers) {
  BatchRules rules = batches_of(8, 100'000);
  rules.preferred_rows = {4};
  rules.queue = {.timeout_us = 5, .delays_late = true};
  BatchPolicy policy(rules);
  add(policy, 0, {.at_ns = 0});
  EXPECT_EQ(policy.next(5000).wake_ns, 100'000);
  add(policy, 1, {.at_ns = 6000, .rows = 2});
  add(policy, 2, {.at_ns = 6000, .rows = 2});
  EXPECT_EQ(ids(policy.next(6000).tasks), (Ids{1, 2}));
  EXPECT_EQ(policy.next(6000).wake_ns, 100'000);
  EXPECT_EQ(ids(policy.next(100'000).tasks), Ids{0});
}

TEST_F(Timeouts, FarTimesDoNotOverflow) {
  BatchRules rules;
  rules.queue = {.timeout_us = UINT64_MAX, .allows_timeout = true};
  BatchPolicy policy(rules);
  add(policy, 0, {.at_ns = 1'000'000});
  EXPECT_EQ(policy.next_expiry_ns(), kNoDeadline);
}

using Batches = Fixture;

TEST_F(Batches, TakesAllThatFitInOrder) {
  BatchPolicy policy(batches_of(4));
  add(policy, 0, {.rows = 2});
  add(policy, 1, {.rows = 1});
  add(policy, 2, {.rows = 2});
  add(policy, 3, {.rows = 1});
  EXPECT_EQ(ids(policy.next(0).tasks), (Ids{0, 1}));
  EXPECT_EQ(ids(policy.next(0).tasks), (Ids{2, 3}));
}

TEST_F(Batches, OnlyOfOneKey) {
  BatchPolicy policy(batches_of(4));
  add(policy, 0, {.key = {1}});
  add(policy, 1, {.key = {2}});
  add(policy, 2, {.key = {1}});
  add(policy, 3, {.key = {2}});
  EXPECT_EQ(ids(policy.next(0).tasks), (Ids{0, 2}));
  EXPECT_EQ(ids(policy.next(0).tasks), (Ids{1, 3}));
}

TEST_F(Batches, KeptOrderEndsABatchAtAnotherKey) {
  BatchRules rules = batches_of(4, 1000);
  rules.keeps_order = true;
  BatchPolicy policy(rules);
  add(policy, 0, {.key = {1}});
  EXPECT_TRUE(policy.next(0).is_empty());
  EXPECT_EQ(add(policy, 1, {.key = {2}}), Added::kIsReady);
  add(policy, 2, {.key = {1}});
  EXPECT_EQ(ids(policy.next(0).tasks), Ids{0});
  EXPECT_EQ(ids(policy.next(0).tasks), Ids{1});
  EXPECT_TRUE(policy.next(0).is_empty());
  EXPECT_EQ(ids(policy.next(1000).tasks), Ids{2});
}

TEST_F(Batches, WaitForOthersUntilTheDelayIsOver) {
  BatchPolicy policy(batches_of(4, 1000));
  EXPECT_FALSE(policy.runs_alone());
  EXPECT_EQ(add(policy, 0, {.at_ns = 100}), Added::kIsReady);  // somebody must watch the clock
  EXPECT_EQ(policy.next(100).wake_ns, 1100);
  EXPECT_EQ(add(policy, 1, {.at_ns = 600}), Added::kWaits);
  EXPECT_EQ(policy.next(1099).wake_ns, 1100);
  EXPECT_EQ(ids(policy.next(1100).tasks), (Ids{0, 1}));
}

TEST_F(Batches, RunAtOnceWhenTheyAreFull) {
  BatchPolicy policy(batches_of(4, 1000));
  add(policy, 0, {.rows = 2});
  EXPECT_TRUE(policy.next(0).is_empty());
  EXPECT_EQ(add(policy, 1, {.rows = 3}), Added::kIsReady);  // does not fit, so there is nothing to wait for
  EXPECT_EQ(ids(policy.next(0).tasks), Ids{0});
  EXPECT_TRUE(policy.next(0).is_empty());
  EXPECT_EQ(add(policy, 2, {.rows = 1}), Added::kIsReady);
  EXPECT_EQ(ids(policy.next(0).tasks), (Ids{1, 2}));
}

TEST_F(Batches, OfAPreferredSizeRunAtOnce) {
  BatchRules rules = batches_of(8, 1000);
  rules.preferred_rows = {4, 2};
  BatchPolicy policy(rules);
  add(policy, 0);
  EXPECT_EQ(policy.next(0).wake_ns, 1000);
  for (int i = 1; i < 5; ++i) add(policy, i, {.at_ns = i});
  EXPECT_EQ(ids(policy.next(4).tasks), (Ids{0, 1, 2, 3}));
  EXPECT_EQ(policy.next(4).wake_ns, 1004);
  EXPECT_EQ(ids(policy.next(1004).tasks), Ids{4});  // not a preferred size, but it has waited
}

TEST_F(Batches, PastTheLargestPreferredSizeNobodyWaits) {
  BatchRules rules = batches_of(8, 1000);
  rules.preferred_rows = {2, 6};
  BatchPolicy policy(rules);
  add(policy, 0, {.rows = 3});
  EXPECT_TRUE(policy.next(0).is_empty());
  EXPECT_EQ(add(policy, 1, {.at_ns = 10, .rows = 4}), Added::kIsReady);  // 7 is beyond all preferred sizes
  EXPECT_EQ(ids(policy.next(10).tasks), Ids{0});
  EXPECT_EQ(policy.next(10).wake_ns, 1010);  // 4 may still become 6
  add(policy, 2, {.at_ns = 20, .rows = 7});
  EXPECT_EQ(ids(policy.next(20).tasks), Ids{1});
  EXPECT_EQ(ids(policy.next(20).tasks), Ids{2});
  add(policy, 3, {.at_ns = 30, .rows = 3});
  add(policy, 4, {.at_ns = 30, .rows = 4});
  EXPECT_EQ(ids(policy.next(1030).tasks), (Ids{3, 4}));  // has waited: as many as fit
}

TEST_F(Batches, AnotherKeySendsOffWhatWaits) {
  BatchPolicy policy(batches_of(4, 1000));
  add(policy, 0, {.key = {1}});
  EXPECT_TRUE(policy.next(0).is_empty());
  EXPECT_EQ(add(policy, 1, {.at_ns = 10, .key = {2}}), Added::kIsReady);
  EXPECT_EQ(ids(policy.next(10).tasks), Ids{0});
  EXPECT_EQ(policy.next(10).wake_ns, 1010);
  EXPECT_EQ(add(policy, 2, {.at_ns = 20, .key = {1}}), Added::kIsReady);
  add(policy, 3, {.at_ns = 30, .key = {1}});
  EXPECT_EQ(ids(policy.next(30).tasks), Ids{1});
  EXPECT_EQ(policy.next(30).wake_ns, 1020);
  EXPECT_EQ(ids(policy.next(1020).tasks), (Ids{2, 3}));
}

TEST_F(Batches, AnotherKeyGoesFirstWhenItIsReady) {
  BatchRules rules = batches_of(4, 1000);
  rules.priority_levels = 2;
  rules.default_priority = 2;
  BatchPolicy policy(rules);
  add(policy, 0, {.key = {2}});
  add(policy, 1, {.key = {1}, .priority = 1});
  EXPECT_EQ(ids(policy.next(0).tasks), Ids{0});
  EXPECT_EQ(policy.next(0).wake_ns, 1000);
}

// Each time another kind arrives, waiting tasks of the previous kind may run.
TEST_F(Batches, KindsThatComeInTurnsSendEachOtherOff) {
  BatchPolicy policy(batches_of(4, 1000));
  EXPECT_EQ(add(policy, 0, {.key = {1}}), Added::kIsReady) << "a worker has to know until when it waits";
  EXPECT_EQ(policy.next(0).wake_ns, 1000);
  EXPECT_EQ(add(policy, 1, {.key = {2}}), Added::kIsReady);
  EXPECT_EQ(add(policy, 2, {.at_ns = 1, .key = {1}}), Added::kIsReady) << "which lets the second kind go";
  EXPECT_EQ(add(policy, 3, {.at_ns = 1, .key = {1}}), Added::kWaits);
  EXPECT_EQ(ids(policy.next(1).tasks), (Ids{0, 2, 3}));
  EXPECT_EQ(ids(policy.next(1).tasks), Ids{1});
}

// The first preferred size that was reached counts, not the rest after the largest is exceeded.
TEST_F(Batches, APreferredSizeOnTheWayIsTaken) {
  BatchRules rules = batches_of(8, 1000);
  rules.preferred_rows = {2, 4};
  BatchPolicy policy(rules);
  for (int i = 0; i < 3; ++i) add(policy, i);
  add(policy, 3, {.rows = 2});
  EXPECT_EQ(ids(policy.next(0).tasks), (Ids{0, 1}));
}

TEST_F(Batches, ATaskLargerThanAnyPreferredSizeTakesOthersAlong) {
  BatchRules rules = batches_of(8, 1000);
  rules.preferred_rows = {4};
  BatchPolicy policy(rules);
  add(policy, 0, {.rows = 5});
  add(policy, 1);
  EXPECT_EQ(ids(policy.next(0).tasks), (Ids{0, 1}));
}

TEST_F(Batches, ADeadlineShortensTheWait) {
  BatchPolicy policy(batches_of(4, 1000));
  add(policy, 0);
  EXPECT_EQ(policy.next(0).wake_ns, 1000);
  EXPECT_EQ(add(policy, 1, {.at_ns = 100, .deadline_ns = 500}), Added::kIsReady);
  EXPECT_EQ(policy.next(100).wake_ns, 300);
  EXPECT_EQ(ids(policy.next(300).tasks), (Ids{1, 0}));
}

TEST_F(Batches, CancelledOnesTakeNoPlace) {
  BatchPolicy policy(batches_of(2, 1000));
  add(policy, 0);
  last_->cancelled = true;
  add(policy, 1);
  const Batch first = policy.next(0);
  EXPECT_EQ(ids(first.cancelled), Ids{0});
  EXPECT_TRUE(first.tasks.empty());
  add(policy, 2);
  EXPECT_EQ(ids(policy.next(0).tasks), (Ids{1, 2}));
}

// Whatever arrives, each task leaves once and the counts return to zero.
TEST_F(Batches, NoTaskIsLostOrDoubled) {
  uint32_t random = 1;
  const auto draw = [&](uint32_t below) { return (random = random * 1664525 + 1013904223) / 65536 % below; };
  for (int round = 0; round < 50; ++round) {
    BatchRules rules = batches_of(1 + draw(8), draw(2) * 500);
    rules.keeps_order = draw(2) == 1;
    if (draw(2) == 1) rules.preferred_rows = {1 + draw(static_cast<uint32_t>(rules.max_rows))};
    rules.priority_levels = 2;
    rules.queue = {.max_size = 64, .timeout_us = draw(2), .allows_timeout = true, .delays_late = draw(2) == 1};
    rules.own_queues = {{2, {.max_size = 8}}};
    BatchPolicy policy(rules);
    std::map<int, int> seen;
    int accepted = 0;
    const auto note = [&](const Batch& batch) {
      int64_t rows = 0;
      for (const TaskPtr& task : batch.tasks) rows += task->rows;
      EXPECT_LE(rows, rules.max_rows);
      for (const auto* tasks : {&batch.tasks, &batch.expired, &batch.cancelled}) {
        for (const int id : ids(*tasks)) ++seen[id];
      }
    };
    int64_t now = 0;
    for (int i = 0; i < 200; ++i) {
      now += draw(300);
      Given given{.at_ns = now, .rows = 1 + draw(static_cast<uint32_t>(rules.max_rows)), .key = {draw(3)}};
      given.priority = draw(4);
      if (draw(3) == 0) given.deadline_ns = now + draw(2000);
      if (add(policy, i, given) != Added::kRefused) {
        ++accepted;
        last_->cancelled = draw(10) == 0;
      }
      if (draw(3) == 0) note(policy.next(now));
      if (draw(20) == 0) note(policy.sweep(now, draw(2) == 1));
    }
    for (int i = 0; i < 400 && policy.size() > 0; ++i) note(policy.next(now += 10'000));
    EXPECT_EQ(policy.size(), 0u);
    EXPECT_EQ(policy.next_expiry_ns(), kNoDeadline);
    EXPECT_EQ(static_cast<int>(seen.size()), accepted);
    for (const auto& [id, count] : seen) EXPECT_EQ(count, 1) << "task " << id;
  }
}

TEST_F(OneAtATime, TimesBeyondTheEndOfTimeNeverCome) {
  const BatchRules rules{.preferred_rows = {}, .queue = {.allows_timeout = true}};
  for (const auto& [at_ns, timeout_us] : {std::pair<int64_t, uint64_t>{INT64_MAX - 999, 1}, {1, UINT64_MAX / 1000}}) {
    BatchPolicy policy(rules);
    add(policy, 0, {.at_ns = at_ns, .timeout_us = timeout_us});
    EXPECT_EQ(policy.next_expiry_ns(), kNoDeadline) << at_ns;
  }
  BatchPolicy policy(rules);
  add(policy, 0, {.at_ns = INT64_MAX - 1001, .timeout_us = 1});
  EXPECT_EQ(policy.next_expiry_ns(), INT64_MAX - 1);
}

TEST_F(OneAtATime, TheDefaultPriorityIsOneOfThem) {
  BatchRules rules;
  rules.priority_levels = 2;
  for (const uint64_t priority : {1, 2}) {
    rules.default_priority = priority;
    EXPECT_NO_THROW(BatchPolicy{rules}) << priority;
  }
  for (const uint64_t priority : {0, 3}) {
    rules.default_priority = priority;
    EXPECT_ANY_THROW(BatchPolicy{rules}) << priority;
  }
}

TEST_F(OneAtATime, WhoWaitsLikeTheOthersWakesNobody) {
  for (const bool keeps_order : {true, false}) {
    BatchRules rules = batches_of(4, 100);
    rules.keeps_order = keeps_order;
    BatchPolicy policy(rules);
    add(policy, 0);
    EXPECT_EQ(policy.next(0).wake_ns, 100);
    EXPECT_EQ(add(policy, 1), Added::kWaits);
    EXPECT_EQ(add(policy, 2, {.deadline_ns = 198}), Added::kIsReady);  // waits until 99
  }
}

}  // namespace
}  // namespace tensord::server::batch_policy_test
