// Which requests of which sequences run together, and when. No threads, no clock.
#include "server/scheduler/sequence_policy.h"

#include <gtest/gtest.h>

#include <set>

namespace tensord::server::sequence_policy_test {
namespace {

std::set<int>& cancelled() {
  static std::set<int> ids;
  return ids;
}

struct Request final : SequenceRequest {
  explicit Request(int id) : id(id) {}
  bool is_cancelled() const override { return cancelled().contains(id); }
  const int id;
};

struct Flags {
  bool start = false, end = false;
  std::string shape = "";
  int64_t deadline_ns = kNoDeadline;
  int64_t place_until_ns = kNoDeadline;
};

class SequencePolicyTest : public ::testing::Test {
 protected:
  ~SequencePolicyTest() override { cancelled().clear(); }

  size_t add(uint64_t sequence, int id, Flags flags = {}) {
    auto request = std::make_unique<Request>(id);
    request->key.number = sequence;
    request->is_start = flags.start;
    request->is_end = flags.end;
    request->shape = flags.shape;
    request->deadline_ns = flags.deadline_ns;
    request->place_until_ns = flags.place_until_ns;
    return policy->add(std::move(request), now, rejected);
  }

  // The ids of the batch's rows; 0 is a row without a request, -1 an unused row.
  std::vector<int> run(size_t instance = 0) {
    batch = policy->next(instance, now, rejected);
    std::vector<int> ids;
    for (const auto& row : batch.rows) {
      ids.push_back(row.request ? static_cast<const Request&>(*row.request).id : row.sequence ? 0 : -1);
    }
    policy->done(batch, now);
    return ids;
  }

  std::vector<int> rejected_ids() const {
    std::vector<int> ids;
    for (const auto& one : rejected) ids.push_back(static_cast<const Request&>(*one.request).id);
    return ids;
  }

  static SequencePolicy::Options options(size_t rows, size_t places) {
    return {.model = "m", .rows = rows, .places = places, .idle_ns = 1000, .max_waiting = 8};
  }
  void use_direct(size_t rows, DirectSequencePolicy::DirectOptions direct = {}) {
    policy = std::make_unique<DirectSequencePolicy>(options(rows, 0), direct);
  }
  void use_oldest(size_t rows, size_t places, OldestSequencePolicy::OldestOptions oldest = {}) {
    policy = std::make_unique<OldestSequencePolicy>(options(rows, places), std::move(oldest));
  }

  std::unique_ptr<SequencePolicy> policy;
  SequencePolicy::Rejections rejected;
  SequenceBatch batch;
  int64_t now = 100;
};

using Ids = std::vector<int>;

TEST_F(SequencePolicyTest, SequenceBeginsWithStart) {
  use_direct(2);
  add(7, 1);
  ASSERT_EQ(rejected.size(), 1);
  EXPECT_EQ(rejected[0].code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(rejected[0].reason,
            "inference request for sequence 7 to model 'm' must specify the START flag on the first request of the "
            "sequence");
  EXPECT_EQ(run(), Ids());
}

TEST_F(SequencePolicyTest, NothingFollowsTheEnd) {
  use_direct(1);
  add(7, 1, {.start = true, .end = true});
  add(7, 2);
  EXPECT_EQ(rejected_ids(), Ids{2});
  EXPECT_EQ(run(), Ids{1});
  EXPECT_EQ(policy->open_sequences(), 0);
}

TEST_F(SequencePolicyTest, DirectKeepsRows) {
  use_direct(4);
  add(1, 1, {.start = true});
  add(2, 2, {.start = true});
  add(3, 3, {.start = true});
  EXPECT_EQ(run(), (Ids{1, 2, 3}));
  add(3, 4);
  EXPECT_EQ(run(), (Ids{0, 0, 4}));
  add(1, 5, {.end = true});
  EXPECT_EQ(run(), (Ids{5, 0, 0}));
  add(2, 6);
  EXPECT_EQ(run(), (Ids{-1, 6, 0}));  // the first row is free now
  add(4, 7, {.start = true});
  EXPECT_EQ(run(), (Ids{7, 0, 0}));
}

TEST_F(SequencePolicyTest, DirectMayLeaveRowsOut) {
  use_direct(4, {.keeps_rows = false});
  add(1, 1, {.start = true});
  add(2, 2, {.start = true});
  run();
  add(2, 3);
  EXPECT_EQ(run(), Ids{3});
}

TEST_F(SequencePolicyTest, OneRequestOfASequenceAtATime) {
  use_direct(2);
  add(1, 1, {.start = true});
  add(1, 2);
  add(1, 3, {.end = true});
  EXPECT_EQ(run(), Ids{1});
  EXPECT_EQ(run(), Ids{2});
  EXPECT_EQ(run(), Ids{3});
  EXPECT_EQ(run(), Ids());
}

TEST_F(SequencePolicyTest, SequencesWaitForAPlace) {
  use_direct(1);
  add(1, 1, {.start = true});
  EXPECT_EQ(add(2, 2, {.start = true}), SequencePolicy::kNoInstance);
  add(2, 3, {.end = true});
  add(1, 4);
  EXPECT_EQ(run(), Ids{1});
  EXPECT_EQ(run(), Ids{4});
  EXPECT_EQ(run(), Ids());
  add(1, 5, {.end = true});
  EXPECT_EQ(run(), Ids{5});
  EXPECT_EQ(run(), Ids{2});
  EXPECT_EQ(run(), Ids{3});
}

TEST_F(SequencePolicyTest, IdleSequenceGivesItsPlaceAway) {
  use_direct(1);
  add(1, 1, {.start = true});
  run();
  add(2, 2, {.start = true});
  EXPECT_EQ(run(), Ids());
  EXPECT_EQ(batch.wake_ns, 1100);
  now = 1099;
  EXPECT_EQ(run(), Ids());
  now = 1100;
  EXPECT_EQ(run(), Ids{2});
  add(1, 3);
  EXPECT_EQ(rejected_ids(), Ids{3});
}

// A run may take longer than a sequence may be idle.
TEST_F(SequencePolicyTest, IdleCountsFromTheEndOfTheRun) {
  use_direct(1);
  add(1, 1, {.start = true});
  batch = policy->next(0, now, rejected);
  now = 5000;
  EXPECT_TRUE(policy->next(0, now, rejected).rows.empty());
  policy->done(batch, now);
  EXPECT_EQ(run(), Ids());
  EXPECT_EQ(batch.wake_ns, 6000);
  now = 5999;
  EXPECT_EQ(run(), Ids());
  add(1, 2);
  EXPECT_EQ(run(), Ids{2});
  EXPECT_TRUE(rejected.empty());
}

// Including the slot of the sequence that a second start ended.
TEST_F(SequencePolicyTest, SecondStartGivesThePlaceOn) {
  use_direct(1);
  add(1, 1, {.start = true});
  EXPECT_EQ(run(), Ids{1});
  add(1, 2, {.start = true, .end = true});
  add(2, 3, {.start = true});
  EXPECT_EQ(run(), Ids{2});
  EXPECT_EQ(run(), Ids{3});
  EXPECT_EQ(policy->open_sequences(), 1);
  EXPECT_TRUE(rejected.empty());
}

TEST_F(SequencePolicyTest, SecondStartEndsWhatWasThere) {
  use_oldest(4, 4);
  add(1, 1, {.start = true});
  const SequenceBatch first = policy->next(0, now, rejected);
  add(1, 2, {.start = true});
  policy->done(first, now);
  EXPECT_EQ(run(), Ids{2});
  EXPECT_NE(batch.rows[0].sequence, first.rows[0].sequence);
  EXPECT_EQ(policy->open_sequences(), 1);
  EXPECT_TRUE(rejected.empty());
}

TEST_F(SequencePolicyTest, InstancesShareSequences) {
  auto two = options(2, 0);
  two.instances = 2;
  policy = std::make_unique<DirectSequencePolicy>(two, DirectSequencePolicy::DirectOptions{});
  EXPECT_EQ(add(1, 1, {.start = true}), 0);
  EXPECT_EQ(add(2, 2, {.start = true}), 1);
  EXPECT_EQ(add(3, 3, {.start = true}), 0);
  EXPECT_EQ(add(2, 4), 1);
  EXPECT_EQ(run(0), (Ids{1, 3}));
  EXPECT_EQ(run(1), Ids{2});
  EXPECT_EQ(run(1), Ids{4});
}

TEST_F(SequencePolicyTest, DifferentShapesRunApart) {
  use_direct(3);
  add(1, 1, {.start = true, .shape = "4"});
  add(2, 2, {.start = true, .shape = "5"});
  add(3, 3, {.start = true, .shape = "4"});
  EXPECT_EQ(run(), (Ids{1, 0, 3}));
  EXPECT_EQ(run(), (Ids{0, 2, 0}));
}

// The row does not determine which shape runs.
TEST_F(SequencePolicyTest, TheShapeThatCameFirstRunsFirst) {
  use_direct(3);
  for (const int id : {1, 2, 3}) add(static_cast<uint64_t>(id), id, {.start = true});
  run();
  add(3, 4, {.shape = "6"});
  add(2, 5, {.shape = "5"});
  add(1, 6, {.shape = "6"});
  EXPECT_EQ(run(), (Ids{6, 0, 4}));
  EXPECT_EQ(run(), (Ids{0, 5, 0}));
  add(2, 7, {.shape = "5"});
  add(3, 8, {.shape = "6"});
  add(1, 9, {.shape = "4"});
  EXPECT_EQ(run(), (Ids{0, 7, 0}));
  EXPECT_EQ(run(), (Ids{0, 0, 8}));
  EXPECT_EQ(run(), (Ids{9, 0, 0}));
}

TEST_F(SequencePolicyTest, UtilizationIsWaitedFor) {
  auto some = options(4, 0);
  some.max_delay_ns = 50;
  policy =
      std::make_unique<DirectSequencePolicy>(some, DirectSequencePolicy::DirectOptions{.minimum_utilization = 0.5});
  add(1, 1, {.start = true});
  EXPECT_EQ(run(), Ids());
  EXPECT_EQ(batch.wake_ns, 150);
  now = 120;
  add(2, 2, {.start = true});
  EXPECT_EQ(run(), (Ids{1, 2}));
  add(1, 3);
  now = 170;
  EXPECT_EQ(run(), (Ids{3, 0}));  // has waited long enough
}

TEST_F(SequencePolicyTest, OldestRunsInOrderOfArrival) {
  use_oldest(2, 3);
  add(1, 1, {.start = true});
  add(2, 2, {.start = true});
  add(3, 3, {.start = true});
  add(1, 4);
  EXPECT_EQ(run(), (Ids{1, 2}));
  EXPECT_EQ(run(), (Ids{3, 4}));
  add(4, 5, {.start = true});  // no slot: three are open
  add(2, 6);
  EXPECT_EQ(run(), Ids{6});
}

TEST_F(SequencePolicyTest, PreferredSizes) {
  auto some = options(4, 8);
  some.max_delay_ns = 50;
  policy = std::make_unique<OldestSequencePolicy>(some, OldestSequencePolicy::OldestOptions{.preferred_sizes = {2}});
  add(1, 1, {.start = true});
  EXPECT_EQ(run(), Ids());
  EXPECT_EQ(batch.wake_ns, 150);
  add(2, 2, {.start = true});
  add(3, 3, {.start = true});
  EXPECT_EQ(run(), (Ids{1, 2}));
  EXPECT_EQ(run(), Ids());
  now = 150;
  EXPECT_EQ(run(), Ids{3});
}

TEST_F(SequencePolicyTest, TheLargestPreferredSizeThatFitsIsTaken) {
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{4, 2}, {2, 4}, {2, 4, 6}}) {
    use_oldest(8, 8, {.preferred_sizes = sizes});
    for (int id = 1; id <= 5; ++id) add(static_cast<uint64_t>(id), id, {.start = true});
    EXPECT_EQ(run(), (std::vector<int>{1, 2, 3, 4}));
  }
}

TEST_F(SequencePolicyTest, IdleForeverIsNoTimeThatEnds) {
  auto forever = options(2, 2);
  forever.idle_ns = kNoDeadline;
  policy = std::make_unique<OldestSequencePolicy>(forever, OldestSequencePolicy::OldestOptions{});
  add(1, 1, {.start = true});
  EXPECT_EQ(run(), (std::vector<int>{1}));
  now += 1'000'000'000;
  EXPECT_EQ(run(), (std::vector<int>{}));
  add(1, 2);
  EXPECT_EQ(run(), (std::vector<int>{2}));
}

TEST_F(SequencePolicyTest, TheNextDeadlineIsTheEarliestOfAll) {
  use_oldest(4, 4);
  add(1, 1, {.start = true, .deadline_ns = 200});
  add(2, 2, {.start = true, .deadline_ns = 300});
  EXPECT_EQ(policy->next_expiry_ns(), 200);
  policy->reject_expired(now, rejected);
  EXPECT_EQ(policy->next_expiry_ns(), 200);
  policy->reject_expired(200, rejected);
  EXPECT_EQ(rejected_ids(), (std::vector<int>{1}));
  EXPECT_EQ(policy->next_expiry_ns(), 300);
}

TEST_F(SequencePolicyTest, OrderIsKeptWhereAsked) {
  use_oldest(4, 4, {.preferred_sizes = {}, .preserves_ordering = true});
  add(1, 1, {.start = true, .shape = "4"});
  add(2, 2, {.start = true, .shape = "5"});
  add(3, 3, {.start = true, .shape = "4"});
  EXPECT_EQ(run(), Ids{1});
  EXPECT_EQ(run(), Ids{2});
  EXPECT_EQ(run(), Ids{3});
}

TEST_F(SequencePolicyTest, QueueIsBounded) {
  use_oldest(2, 2);
  for (int i = 1; i <= 9; ++i) add(static_cast<uint64_t>(i), i, {.start = true});
  ASSERT_EQ(rejected_ids(), Ids{9});
  EXPECT_EQ(rejected[0].code, ErrorCode::kResourceExhausted);
  EXPECT_EQ(policy->waiting(), 8);
  EXPECT_EQ(policy->open_sequences(), 8);
}

TEST_F(SequencePolicyTest, WhatIsCancelledDoesNotRun) {
  use_direct(1);
  add(1, 1, {.start = true});
  add(1, 2);
  add(1, 3);
  cancelled().insert(2);
  policy->reject_expired(now, rejected);
  ASSERT_EQ(rejected_ids(), (Ids{1, 2, 3}));  // nor its later requests
  for (const SequenceRejection& one : rejected) EXPECT_EQ(one.code, ErrorCode::kCancelled);
  EXPECT_EQ(rejected[1].reason, "the request was cancelled");
  EXPECT_EQ(rejected[2].reason, "another request of the sequence was cancelled");
  EXPECT_EQ(run(), Ids());
  EXPECT_EQ(policy->open_sequences(), 0);
}

TEST_F(SequencePolicyTest, ACancelledRequestLeavesOtherSequencesAndWhatRuns) {
  use_direct(2);
  add(1, 1, {.start = true});
  add(2, 2, {.start = true});
  add(1, 3);
  add(2, 4);
  batch = policy->next(0, now, rejected);
  cancelled().insert(3);
  policy->reject_expired(now, rejected);
  EXPECT_EQ(rejected_ids(), Ids{3});
  policy->done(batch, now);
  EXPECT_EQ(run(), (Ids{-1, 4}));
}

TEST_F(SequencePolicyTest, LateRequestsLeaveTheirSequenceAsItWas) {
  use_direct(1);
  add(1, 1, {.start = true});
  add(1, 2, {.deadline_ns = 200});
  add(1, 3);
  EXPECT_EQ(run(), Ids{1});
  now = 200;
  EXPECT_EQ(run(), Ids{3});
  EXPECT_EQ(rejected_ids(), Ids{2});
}

// Applies to slots only: requests of a sequence with a slot wait for each other.
TEST_F(SequencePolicyTest, SequencesWaitForAPlaceForSoLong) {
  use_direct(1);
  add(1, 1, {.start = true, .place_until_ns = 300});
  add(1, 2, {.place_until_ns = 300});
  EXPECT_EQ(run(), Ids{1});
  add(2, 3, {.start = true, .place_until_ns = 400});
  add(2, 4, {.place_until_ns = 350});
  EXPECT_EQ(policy->next_expiry_ns(), 350);
  now = 350;
  EXPECT_EQ(run(), Ids{2});
  ASSERT_EQ(rejected_ids(), (Ids{3, 4}));
  for (const SequenceRejection& one : rejected) {
    EXPECT_EQ(one.code, ErrorCode::kDeadlineExceeded);
    EXPECT_EQ(one.reason, "timeout of the corresponding sequence has been expired");
  }
  rejected.clear();
  add(2, 5);
  ASSERT_EQ(rejected_ids(), Ids{5});
  EXPECT_EQ(rejected[0].code, ErrorCode::kInvalidArgument);
}

TEST_F(SequencePolicyTest, SequenceThatLostItsStartIsOver) {
  use_direct(1);
  add(1, 1, {.start = true, .deadline_ns = 200});
  add(1, 2);
  add(2, 3, {.start = true});
  now = 200;
  EXPECT_EQ(run(), Ids{3});
  ASSERT_EQ(rejected_ids(), (Ids{1, 2}));
  EXPECT_EQ(rejected[0].code, ErrorCode::kDeadlineExceeded);
  EXPECT_EQ(rejected[0].reason, "Request timeout expired");
  EXPECT_EQ(rejected[1].code, ErrorCode::kDeadlineExceeded);
  EXPECT_EQ(rejected[1].reason, "the first request of the sequence did not run");
  EXPECT_EQ(policy->open_sequences(), 1);
}

TEST_F(SequencePolicyTest, DeadlinesHoldWithoutAPlace) {
  use_direct(1);
  add(1, 1, {.start = true});
  run();
  add(2, 2, {.start = true, .deadline_ns = 300});
  EXPECT_EQ(run(), Ids());
  EXPECT_EQ(batch.wake_ns, 300);
  now = 300;
  EXPECT_EQ(run(), Ids());
  EXPECT_EQ(rejected_ids(), Ids{2});
  EXPECT_EQ(policy->waiting(), 0);
}

// Cancelled requests have no deadline, so every place is searched for them.
TEST_F(SequencePolicyTest, CancelledOnesOfEveryPlaceAreFound) {
  for (const uint64_t place : {0, 1, 2}) {
    SCOPED_TRACE(place);
    use_oldest(3, 3);
    rejected.clear();
    cancelled() = {static_cast<int>(10 + place)};
    for (uint64_t i = 0; i < 3; ++i) add(i + 1, static_cast<int>(10 + i), {.start = true});
    EXPECT_EQ(run().size(), 2u);
    EXPECT_EQ(rejected_ids(), Ids{static_cast<int>(10 + place)});
  }
}

TEST_F(SequencePolicyTest, TheNextDeadlineOfThoseThatWaitForAPlaceCounts) {
  use_oldest(1, 1);
  add(1, 1, {.start = true});
  run();
  add(2, 2, {.start = true, .deadline_ns = 200});
  add(3, 3, {.start = true, .deadline_ns = 300});
  EXPECT_EQ(policy->next_expiry_ns(), 200);
  now = 200;
  run();
  EXPECT_EQ(rejected_ids(), Ids{2});
  EXPECT_EQ(policy->next_expiry_ns(), 300);
  now = 300;
  run();
  EXPECT_EQ(rejected_ids(), (Ids{2, 3}));
  EXPECT_EQ(policy->next_expiry_ns(), kNoDeadline);
}

// The rest of an ended sequence may be dropped without affecting the next one with its id.
TEST_F(SequencePolicyTest, ALostRestLeavesTheNextOfItsNumber) {
  use_oldest(2, 2);
  add(1, 1, {.start = true});
  add(1, 2, {.end = true});
  add(1, 3, {.start = true});
  cancelled() = {2};
  run();
  EXPECT_EQ(rejected_ids(), (Ids{1, 2}));
  rejected.clear();
  EXPECT_NO_THROW(add(1, 4));
  run();
  EXPECT_TRUE(rejected_ids().empty());
}

TEST_F(SequencePolicyTest, DrainGivesEverything) {
  use_direct(1);
  add(1, 1, {.start = true});
  add(2, 2, {.start = true});
  EXPECT_EQ(policy->drain().size(), 2);
  EXPECT_EQ(policy->waiting(), 0);
}

}  // namespace
}  // namespace tensord::server::sequence_policy_test
