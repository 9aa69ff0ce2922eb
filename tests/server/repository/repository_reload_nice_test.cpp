// At which priority a model is reloaded, and at which its requests run.
#include <sys/resource.h>
#include <unistd.h>

#include <memory>
#include <mutex>
#include <vector>

#include "tests/server/repository/repository_fixture.h"

namespace tensord::server::repository_reload_nice_test {
namespace {

int nice_of_this_thread() { return getpriority(PRIO_PROCESS, static_cast<id_t>(gettid())); }

class RepositoryReloadNiceTest : public fixtures::RepositoryFixture {
 protected:
  // An identity model with a warm-up, which records the nice value of the threads that open and run it.
  std::unique_ptr<const Model> open(const ModelFiles&, const ModelConfig&) override {
    opened_at_ = nice_of_this_thread();
    Signature signature = fixtures::signature_of({"x"}, {"OUTPUT__0"});
    signature.inputs[0].shape = Dims{1};
    signature.inputs[0].datatype = DataType::kFp32;
    return std::make_unique<fixtures::FakeModel>(std::move(signature), [this](auto inputs, const auto&) {
      {
        const std::lock_guard lock(mutex_);
        ran_at_.push_back(nice_of_this_thread());
      }
      RunResult result;
      result.outputs.push_back(*inputs[0]);
      result.outputs[0].name = "OUTPUT__0";
      return result;
    });
  }

  void load() { repository_->load({.name = "m", .config = {}, .files = {}}); }
  // Of the runs since the last call.
  std::vector<int> ran_at() {
    const std::lock_guard lock(mutex_);
    return std::exchange(ran_at_, {});
  }

  int opened_at_ = -1;
  std::mutex mutex_;
  std::vector<int> ran_at_;  // guarded by mutex_
};

TEST_F(RepositoryReloadNiceTest, OnlyWhatIsServedMeanwhileIsLoadedBehindRequests) {
  // There is no priority below the lowest; the test run may be allowed a higher one.
  if (nice_of_this_thread() == 19 && setpriority(PRIO_PROCESS, 0, 0) != 0)
    GTEST_SKIP() << "runs at the lowest priority";
  const int normal = nice_of_this_thread();
  add("m", "1");
  start({.roots = {}, .only = {}, .mode = ControlMode::kExplicit, .workers = 2, .reload_nice = 19});
  load();
  EXPECT_EQ(opened_at_, normal);
  std::vector<int> warmed_at = ran_at();
  ASSERT_GE(warmed_at.size(), 2u);  // each worker
  EXPECT_EQ(warmed_at, std::vector<int>(warmed_at.size(), normal));

  add("m", "2");
  load();
  EXPECT_EQ(repository_->find("m", "")->version(), "2");
  EXPECT_EQ(opened_at_, 19);
  warmed_at = ran_at();
  ASSERT_GE(warmed_at.size(), 2u);
  EXPECT_EQ(warmed_at, std::vector<int>(warmed_at.size(), 19));

  EXPECT_EQ(ask("m"), -1);
  EXPECT_EQ(ran_at(), std::vector<int>{normal});
}

}  // namespace
}  // namespace tensord::server::repository_reload_nice_test
