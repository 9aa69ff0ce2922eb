#include "server/training/training_service.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/base/error.h"
#include "server/training/jobs/job_store.h"
#include "tests/server/fake_models.h"
#include "tests/server/temporary_folder.h"

namespace tensord::server::training_service_test {
namespace {

class TrainingServiceTest : public ::testing::Test {
 protected:
  // A job as a stopped daemon left it.
  std::string leave_job(JobState state, int64_t created_at_ms) const {
    const JobStore store(folder_.path().string());
    JobStatus status;
    status.id = store.make_job("m");
    status.state = state;
    status.created_at_ms = created_at_ms;
    store.save(status);
    return status.id;
  }
  std::unique_ptr<TrainingService> make_service() {
    TrainingService::Options options;
    options.folder = folder_.path().string();
    return std::make_unique<TrainingService>(std::move(options), repository_, metrics_);
  }

  const fixtures::TemporaryFolder folder_{"jobs"};
  Metrics metrics_{"test"};
  Repository repository_{{.roots = {}, .only = {}},
                         [](const ModelFiles&, const ModelConfig&) { return fixtures::identity_model(); },
                         metrics_};
};

TEST_F(TrainingServiceTest, JobsAreThereBeforeAnyModel) {
  const std::string done = leave_job(JobState::kCompleted, 2);
  const std::string ran = leave_job(JobState::kRunning, 3);
  const std::string paused = leave_job(JobState::kPaused, 1);
  const auto service = make_service();
  EXPECT_EQ(service->find(done)->state(), JobState::kCompleted);
  EXPECT_EQ(service->find(ran)->state(), JobState::kQueued);
  EXPECT_EQ(service->find(paused)->state(), JobState::kPaused);
  std::vector<std::string> ids;
  for (const auto& job : service->jobs()) ids.push_back(job->id());
  EXPECT_EQ(ids, (std::vector{paused, done, ran}));
  EXPECT_THROW(service->find("other"), Error);
}

// An exception in a script, or the name of a column, may contain any bytes.
TEST_F(TrainingServiceTest, ATextThatIsNoUtf8DoesNotKeepAJobFromBeingSaved) {
  const JobStore store(folder_.path().string());
  JobStatus status;
  status.id = store.make_job("m");
  status.message = "raised \xff\xfe";
  status.spec.evaluation.metrics = {"\x80"};
  store.save(status);
  ASSERT_EQ(store.load().size(), 1u);
  EXPECT_EQ(store.load()[0].message, "raised \xef\xbf\xbd\xef\xbf\xbd");
}

TEST_F(TrainingServiceTest, AJobThatCannotBeReadIsSetAside) {
  const std::string good = leave_job(JobState::kPaused, 1);
  const auto jobs = folder_.path() / "jobs", aside = folder_.path() / "unreadable";
  for (const char* text : {"no JSON", "{\"id\": 7}", "{\"id\": \"other\"}", "{\"id\": \"bad\", \"steps\": {}}"}) {
    std::filesystem::create_directories(jobs / "bad");
    std::ofstream(jobs / "bad" / "job.json") << text;
    const auto service = make_service();
    EXPECT_EQ(service->jobs().size(), 1u) << text;
    EXPECT_FALSE(std::filesystem::exists(jobs / "bad")) << text;
  }
  EXPECT_TRUE(std::filesystem::exists(aside / "bad" / "job.json"));
  EXPECT_TRUE(std::filesystem::exists(aside / "bad-4" / "job.json"));
}

// Its stream would continue from a checkpoint that has no curve.
TEST_F(TrainingServiceTest, AJobWhoseCheckpointIsOfNoUseDoesNotEndTheStart) {
  const std::string id = leave_job(JobState::kRunning, 1);
  const auto checkpoint = folder_.path() / "jobs" / id / "checkpoint-3";
  std::filesystem::create_directories(checkpoint);
  std::ofstream(checkpoint / "curve.json") << "{\"status\": [], \"points\": 1}";
  std::ofstream(checkpoint / "manifest.json") << "{\"step\": \"three\"}";
  EXPECT_EQ(make_service()->find(id)->state(), JobState::kQueued);
}

TEST_F(TrainingServiceTest, AJobCanBeCancelledBeforeAnyModel) {
  const std::string id = leave_job(JobState::kRunning, 1);
  EXPECT_EQ(make_service()->cancel(id).state, JobState::kCancelled);
  EXPECT_EQ(make_service()->find(id)->state(), JobState::kCancelled);
}

TEST_F(TrainingServiceTest, AJobThatNeverStartedStaysQueued) {
  const std::string id = leave_job(JobState::kQueued, 1);
  make_service().reset();
  EXPECT_EQ(make_service()->find(id)->state(), JobState::kQueued);
}

}  // namespace
}  // namespace tensord::server::training_service_test
