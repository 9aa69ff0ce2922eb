#include "core/base/execution_context.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "core/base/cancellation.h"
#include "core/base/parallel.h"
#include "core/base/thread.h"
#include "core/base/thread_priority.h"
#include "tests/support/changed_context.h"

namespace tensord::execution_context_test {
namespace {

// Returns the contexts of a team's threads. The tasks wait for each other, so that all threads take part.
std::vector<ExecutionContext> contexts_of_team(int threads) {
  std::mutex mutex;
  std::vector<ExecutionContext> out;
  std::set<std::thread::id> ids;
  std::atomic<int> arrived{0};
  parallel_run(threads, [&](int) {
    ++arrived;
    while (arrived < threads) std::this_thread::yield();
    const std::lock_guard lock(mutex);
    out.push_back(execution_context());
    ids.insert(std::this_thread::get_id());
    // Changes made by one thread are not visible to others.
    execution_context().grad_mode.is_enabled = !execution_context().grad_mode.is_enabled;
  });
  EXPECT_EQ(ids.size(), static_cast<size_t>(threads));
  return out;
}

TEST(ExecutionContext, PartsChangeUntilTheEndOfTheirScope) {
  const ExecutionContext before = execution_context();
  {
    const ContextPart<&ExecutionContext::memory_owner> owner(3);
    const ContextPart<&ExecutionContext::included_keys> inferring(Functionality::kShapeInference);
    EXPECT_EQ(execution_context().memory_owner, 3u);
    {
      const ContextPart<&ExecutionContext::memory_owner> inner(4);
      EXPECT_EQ(execution_context().memory_owner, 4u);
      execution_context().grad_mode.is_enabled = false;  // survives the scopes of other parts
    }
    EXPECT_EQ(execution_context().memory_owner, 3u);
    EXPECT_TRUE(execution_context().included_keys.has(Functionality::kShapeInference));
  }
  EXPECT_FALSE(execution_context().grad_mode.is_enabled);
  execution_context().grad_mode.is_enabled = true;
  EXPECT_EQ(execution_context(), before);
}

TEST(ExecutionContext, ArrivesWholeInEveryThreadOfATeam) {
  const CancellationScope scope([] { return false; });
  const ExecutionContext before = execution_context();
  const ExecutionContext changed = changed_context(&scope);
  {
    const ExecutionScope whole(changed);
    EXPECT_EQ(thread_budget(), changed.threads);
    ExecutionContext expected = changed;
    expected.threads = 1;  // teams do not nest
    for (const ExecutionContext& got : contexts_of_team(changed.threads)) {
      // The team's own scope is nested in the caller's: a failure of one thread ends the others.
      EXPECT_NE(got.cancellation, nullptr);
      expected.cancellation = got.cancellation;
      EXPECT_EQ(got, expected);
    }
    EXPECT_EQ(execution_context(), changed);
  }
  EXPECT_EQ(execution_context(), before);
  // None of it remains in the threads, which wait for the next team.
  set_thread_budget(4);
  for (const ExecutionContext& got : contexts_of_team(4)) {
    ExecutionContext expected = before;
    expected.threads = 1;
    EXPECT_NE(got.cancellation, &scope);
    expected.cancellation = got.cancellation;
    EXPECT_EQ(got, expected);
  }
  set_thread_budget(available_cores());
}

TEST(ExecutionContext, ArrivesWholeInAThreadThatIsWaitedFor) {
  const CancellationScope scope([] { return false; });
  const ExecutionContext changed = changed_context(&scope);
  const ExecutionScope whole(changed);
  ExecutionContext got;
  int budget = 0;
  run_on_thread("waits", [&] {
    got = execution_context();
    budget = thread_budget();
  });
  EXPECT_EQ(got, changed);
  EXPECT_EQ(budget, changed.threads);
  run_with_nice(1, [&] { got = execution_context(); });
  EXPECT_EQ(got, changed);
}

TEST(ExecutionContext, ForWorkThatNobodyWaitsForIsWithoutTheStack) {
  const CancellationScope scope([] { return false; });
  const ExecutionContext changed = changed_context(&scope);
  const ExecutionScope whole(changed);
  EXPECT_EQ(ExecutionContext::captured(), changed);
  EXPECT_EQ(ExecutionContext::detached(), without_stack(changed));
}

TEST(ExecutionContext, AThreadOfItsOwnBeginsFresh) {
  const ExecutionScope whole(changed_context(nullptr));
  ExecutionContext got = execution_context();
  Thread thread("fresh", [&] { got = execution_context(); });
  thread.join();
  EXPECT_EQ(got, ExecutionContext());
}

}  // namespace
}  // namespace tensord::execution_context_test
