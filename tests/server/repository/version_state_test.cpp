// Every state of a version with every event, and how its model reacts.
#include "server/repository/version_state.h"

#include <gmock/gmock.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "server/repository/model_entry.h"
#include "tests/server/fake_models.h"

namespace tensord::server::version_state_test {
namespace {

using S = VersionState;
using E = VersionEvent;
using ::testing::HasSubstr;

// The allowed transitions; all others are forbidden.
struct Row {
  S from;
  std::map<E, S> next;
};

const std::vector<Row> kRows = {
    {S::kUnknown, {{E::kLoad, S::kLoading}, {E::kLoadBeside, S::kJoining}, {E::kGone, S::kUnknown}}},
    {S::kLoading,
     {{E::kLoad, S::kLoading},
      {E::kTakeOver, S::kReady},
      {E::kFail, S::kFailed},
      {E::kDrop, S::kUnknown},
      {E::kUnload, S::kUnloaded},
      {E::kGone, S::kLoading}}},
    {S::kReady,
     {{E::kLoadBeside, S::kReloading}, {E::kDrop, S::kUnknown}, {E::kUnload, S::kUnloading}, {E::kGone, S::kReady}}},
    {S::kReloading,
     {{E::kTakeOver, S::kReady},
      {E::kFailBeside, S::kReady},
      {E::kStayOut, S::kReady},
      {E::kDrop, S::kUnknown},
      {E::kUnload, S::kUnloading},
      {E::kGone, S::kReloading}}},
    {S::kUnloading,
     {{E::kLoad, S::kLoading}, {E::kDrop, S::kUnknown}, {E::kUnload, S::kUnloaded}, {E::kGone, S::kUnloaded}}},
    {S::kUnloaded,
     {{E::kLoad, S::kLoading}, {E::kDrop, S::kUnknown}, {E::kUnload, S::kUnloaded}, {E::kGone, S::kUnloaded}}},
    {S::kFailed,
     {{E::kLoad, S::kLoading},
      {E::kLoadBeside, S::kRetrying},
      {E::kDrop, S::kUnknown},
      {E::kUnload, S::kUnloaded},
      {E::kGone, S::kFailed}}},
    {S::kRetrying,
     {{E::kTakeOver, S::kReady},
      {E::kFailBeside, S::kFailed},
      {E::kStayOut, S::kFailed},
      {E::kDrop, S::kUnknown},
      {E::kUnload, S::kUnloaded},
      {E::kGone, S::kRetrying}}},
    {S::kJoining,
     {{E::kTakeOver, S::kReady},
      {E::kFailBeside, S::kRefused},
      {E::kStayOut, S::kUnknown},
      {E::kDrop, S::kUnknown},
      {E::kUnload, S::kUnknown},
      {E::kGone, S::kJoining}}},
    {S::kRefused,
     {{E::kLoadBeside, S::kJoining}, {E::kDrop, S::kUnknown}, {E::kUnload, S::kUnknown}, {E::kGone, S::kRefused}}},
};

TEST(VersionState, EveryStateWithEveryEvent) {
  ASSERT_EQ(kRows.size(), static_cast<size_t>(kVersionStates));
  for (const Row& row : kRows) {
    for (int i = 0; i < kVersionEvents; ++i) {
      const auto event = static_cast<E>(i);
      SCOPED_TRACE(std::string(to_string(row.from)) + ", " + to_string(event));
      const auto expected = row.next.find(event);
      ASSERT_EQ(is_legal(row.from, event), expected != row.next.end());
      if (expected != row.next.end()) {
        EXPECT_EQ(next_state(row.from, event), expected->second);
        continue;
      }
      try {
        next_state(row.from, event);
        ADD_FAILURE() << "it is not legal";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kInternal);
        EXPECT_THAT(error.what(), HasSubstr(to_string(row.from)));
        EXPECT_THAT(error.what(), HasSubstr(to_string(event)));
      }
    }
  }
}

TEST(VersionState, EveryStateIsReached) {
  std::set<S> reached = {S::kUnknown};
  for (const Row& row : kRows) {
    for (const auto& [event, next] : row.next) {
      if (next != row.from) reached.insert(next);
    }
  }
  EXPECT_EQ(reached.size(), static_cast<size_t>(kVersionStates));
}

TEST(VersionState, WhatIsShown) {
  const std::map<S, const char*> shown = {
      {S::kLoading, "LOADING"},      {S::kReady, "READY"},          {S::kReloading, "READY"},
      {S::kUnloading, "UNLOADING"},  {S::kUnloaded, "UNAVAILABLE"}, {S::kFailed, "UNAVAILABLE"},
      {S::kRetrying, "UNAVAILABLE"}, {S::kJoining, "LOADING"},      {S::kRefused, "UNAVAILABLE"}};
  for (const auto& [state, text] : shown) EXPECT_STREQ(to_string(shown_as(state)), text) << to_string(state);
  for (const Row& row : kRows) {
    EXPECT_EQ(serves(row.from), row.from == S::kReady || row.from == S::kReloading) << to_string(row.from);
    const bool is_apart = row.from == S::kUnknown || row.from == S::kJoining || row.from == S::kRefused;
    EXPECT_EQ(belongs(row.from), !is_apart) << to_string(row.from);
  }
}

// A model whose loads end as the test says: "1 2 !3" is a plan of three versions, of which the third fails to load.
class ModelEntryTest : public ::testing::Test {
 protected:
  static LoadPlan plan(const std::vector<int64_t>& numbers) {
    LoadPlan plan;
    plan.layout.name = "m";
    for (const int64_t number : numbers) {
      plan.layout.versions.push_back({.number = number, .file = {}, .weights = {}, .error = {}});
    }
    return plan;
  }

  std::shared_ptr<ModelVersion> version(int64_t number) {
    return std::make_shared<ModelVersion>("m", number, fixtures::identity_model(), ModelConfig(), options_,
                                          metrics_.model("m", std::to_string(number)));
  }

  // Returns the number of versions that are no longer served.
  size_t load(const std::vector<int64_t>& numbers, const std::set<int64_t>& broken = {}, bool is_forced = true) {
    LoadPlan wanted = plan(numbers);
    wanted.is_forced = is_forced;
    LoadedVersions loaded;
    for (const ModelLayout::Version* item : entry_.begin(wanted)) {
      LoadedVersion& made = loaded[item->number];
      if (broken.contains(item->number)) {
        made.reason = "broken";
      } else {
        made.handle = version(item->number);
      }
    }
    return entry_.commit(wanted, std::move(loaded)).size();
  }

  std::string states() const {
    std::string out;
    for (const auto& [number, version] : entry_.versions) {
      out += (out.empty() ? "" : ", ") + std::to_string(number) + " " + to_string(version.state);
      EXPECT_EQ(version.served.handle != nullptr, serves(version.state)) << out;
    }
    return out;
  }

  Metrics metrics_{"test"};
  ModelVersion::Options options_;
  ModelEntry entry_;
};

TEST_F(ModelEntryTest, LoadsForTheFirstTime) {
  EXPECT_EQ(load({1, 2}), 0u);
  EXPECT_EQ(states(), "1 ready, 2 ready");
  EXPECT_EQ(entry_.revision, 1u);
}

TEST_F(ModelEntryTest, FirstLoadKeepsWhatFailed) {
  load({1, 2}, {2});
  EXPECT_EQ(states(), "1 ready, 2 failed");
  EXPECT_EQ(entry_.versions[2].served.reason, "broken");
}

TEST_F(ModelEntryTest, NewVersionTakesOver) {
  load({1});
  EXPECT_EQ(load({2}), 1u);
  EXPECT_EQ(states(), "2 ready");
  EXPECT_TRUE(entry_.ended.contains(1));
  EXPECT_EQ(load({1}), 1u);
  EXPECT_FALSE(entry_.ended.contains(1));
}

TEST_F(ModelEntryTest, NothingChangesWhenTheNewestFails) {
  load({1});
  EXPECT_EQ(load({1, 2, 3}, {3}), 2u) << "what was made of 1 and 2";
  EXPECT_EQ(states(), "1 ready, 3 refused");
  EXPECT_EQ(entry_.revision, 1u);
  entry_.forget_failed(3);
  EXPECT_EQ(states(), "1 ready");
}

TEST_F(ModelEntryTest, AnOlderOneThatFailsKeepsNobodyOut) {
  load({1});
  EXPECT_EQ(load({1, 2, 3}, {2}), 1u);
  EXPECT_EQ(states(), "1 ready, 2 refused, 3 ready");
  EXPECT_EQ(load({1, 2, 3}, {1}), 1u) << "3 is replaced, 1 goes on with what it has";
  EXPECT_EQ(states(), "1 ready, 2 ready, 3 ready");
}

TEST_F(ModelEntryTest, WhatFailedIsTriedAgainBesideTheOthers) {
  load({1, 2}, {1});
  EXPECT_EQ(states(), "1 failed, 2 ready");
  load({1, 2}, {1});
  EXPECT_EQ(states(), "1 failed, 2 ready");
  load({1, 2});
  EXPECT_EQ(states(), "1 ready, 2 ready");
}

TEST_F(ModelEntryTest, OnlyWhatIsNotServedIsLoaded) {
  load({1});
  EXPECT_EQ(load({1, 2}, {}, /*is_forced=*/false), 0u);
  EXPECT_EQ(states(), "1 ready, 2 ready");
}

TEST_F(ModelEntryTest, UnloadsAndComesBack) {
  load({1, 2}, {2});
  EXPECT_EQ(entry_.unload("unloaded", true).size(), 1u);
  EXPECT_EQ(states(), "1 unloading, 2 unloaded");
  EXPECT_TRUE(entry_.is_unloaded());
  entry_.record_gone(1, "unloaded");
  EXPECT_EQ(states(), "1 unloaded, 2 unloaded");
  EXPECT_EQ(entry_.versions[1].served.reason, "unloaded");
  load({1});
  EXPECT_EQ(states(), "1 ready");
  entry_.record_gone(1, "unloaded");
  EXPECT_EQ(states(), "1 ready") << "that was the one before";
  EXPECT_EQ(entry_.versions[1].served.reason, "");
  entry_.record_gone(7, "unloaded");
  entry_.forget_failed(7);
  EXPECT_EQ(states(), "1 ready");
  entry_.unload("unloaded", true);
  entry_.forget_failed(7);
  EXPECT_EQ(states(), "1 unloading");
}

TEST_F(ModelEntryTest, AModelThatCannotBeReadGoesOnServing) {
  entry_.expect(plan({1}));
  EXPECT_EQ(states(), "1 loading");
  EXPECT_TRUE(entry_.fail("no such folder", "/models", {}));
  EXPECT_EQ(states(), "");
  EXPECT_EQ(entry_.error, "no such folder");
  load({1});
  EXPECT_EQ(entry_.error, "");
  EXPECT_FALSE(entry_.fail("no such folder", "/models", {}));
  EXPECT_EQ(states(), "1 ready");
}

}  // namespace
}  // namespace tensord::server::version_state_test
