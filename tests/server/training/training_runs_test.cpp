// Jobs that the service runs, and how they end: which versions are published, starts that fail or never end.
#include <gmock/gmock.h>
#include <sched.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "server/training/training_service.h"
#include "tests/server/error_of.h"
#include "tests/server/fake_models.h"
#include "tests/server/temporary_folder.h"
#include "tests/server/training/job_files.h"
#include "tests/support/places.h"

// Pretends that this machine has one core.
extern "C" int sched_getaffinity(pid_t, size_t size, cpu_set_t* set) noexcept {
  CPU_ZERO_S(size, set);
  CPU_SET_S(0, size, set);
  return 0;
}

namespace tensord::server::training_runs_test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class TrainingRunsTest : public ::testing::Test {
 protected:
  TrainingRunsTest() {
    fs::create_directories(root_ / "models" / "m" / "1");
    fs::create_directories(root_ / "data");
    fs::create_directories(root_ / "jobs");
    fixtures::save_two_classes((root_ / "models" / "m" / "1" / "model.pt").string());
    rows("rows.csv", "1,0\n2,0\n3,0\n4,0\n");
    repository_.load_all();
    start();
  }
  // Restarts the daemon.
  void start() {
    service_.reset();
    TrainingService::Options options;
    options.folder = (root_ / "jobs").string();
    options.data_folder = (root_ / "data").string();
    options.rank_program = "/bin/false";
    service_ = std::make_unique<TrainingService>(options, repository_, metrics_);
  }
  void rows(const char* file, const std::string& text) const { fixtures::save_rows(root_ / "data" / file, text); }
  template <class Condition>
  JobStatus wait(const std::string& id, const Condition& condition) const {
    for (int i = 0; i < 60'000; ++i) {
      const JobStatus status = service_->find(id)->status();
      if (condition(status)) return status;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ADD_FAILURE() << "waited in vain";
    return {};
  }
  JobStatus ended(const std::string& id) const {
    return wait(id, [](const JobStatus& status) { return is_at_rest(status.state); });
  }
  JobStatus run(const JobSpec& spec) {
    const std::string id = service_->create(spec).id;
    if (!is_started_) service_->start();
    is_started_ = true;
    return ended(id);
  }
  // All rows are predicted as the first class, which this many of them have.
  JobSpec measured(const std::string& rows_of_evaluation, const char* when, std::optional<double> bar) {
    rows("evaluation.csv", rows_of_evaluation);
    JobSpec spec = fixtures::two_classes_spec();
    spec.evaluation.file = "evaluation.csv";
    spec.evaluation.metrics = {"accuracy"};
    spec.publish.when = when;
    spec.publish.bar = bar;
    spec.publish.metric = "accuracy";
    return spec;
  }
  // A job whose start blocks until it is stopped.
  std::string create_endless() const {
    const std::string id = service_->create(fixtures::two_classes_spec()).id;
    const fs::path archive = JobStore::base_archive_in(root_ / "jobs" / "jobs" / id);
    fs::remove(archive);  // a link to the model's
    fs::copy_file(concat(tests_folder(), "/server/data/endless.pt"), archive);
    service_->start();
    wait(id, [](const JobStatus& status) { return status.state == JobState::kRunning; });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // usually it is loading by now
    return id;
  }

  const fixtures::TemporaryFolder folder_{"training_runs"};
  const fs::path root_ = folder_.path();
  Metrics metrics_{"test"};
  Repository repository_{{.roots = {(root_ / "models").string()}, .only = {}},
                         [](const ModelFiles&, const ModelConfig&) { return fixtures::identity_model(); },
                         metrics_};
  std::unique_ptr<TrainingService> service_;
  bool is_started_ = false;
};

TEST_F(TrainingRunsTest, ABarIsMetWhereItIsReached) {
  const std::string half = "1,0\n2,0\n3,1\n4,1\n";
  const JobStatus met = run(measured(half, "at_end", 0.5));
  EXPECT_EQ(met.state, JobState::kCompleted) << met.message;
  EXPECT_EQ(met.published_version, 2);
  EXPECT_EQ(met.message, "");
  EXPECT_EQ(run(measured(half, "best", 0.5)).published_version, 3);
  EXPECT_EQ(run(measured(half, "at_end", {})).published_version, 4);
  const JobStatus last = run(measured(half, "at_end", 0.625)), best = run(measured(half, "best", 0.625));
  for (const JobStatus& status : {last, best}) {
    EXPECT_EQ(status.state, JobState::kCompleted);
    EXPECT_EQ(status.published_version, 0);
  }
  EXPECT_EQ(last.message, "not published: accuracy is 0.5, below the bar of 0.625");
  EXPECT_EQ(best.message, "not published: accuracy is 0.5 at best, after step 2, below the bar of 0.625");
}

TEST_F(TrainingRunsTest, OfLossesLessIsBetter) {
  rows("rows.csv", "0,0\n0,0\n");
  rows("evaluation.csv", "1,0\n3,0\n");
  JobSpec spec = fixtures::two_classes_spec("step");  // x times the weights, which stay 0
  spec.evaluation.file = "evaluation.csv";
  spec.evaluation.metrics = {"loss"};
  spec.publish.when = "at_end";
  spec.publish.bar = 0;
  const JobStatus met = run(spec);
  EXPECT_EQ(met.published_version, 2) << met.message;
  spec.publish.bar = -1;
  EXPECT_EQ(run(spec).message, "not published: loss is 0, above the bar of -1");
  spec.publish.when = "never";
  spec.publish.bar.reset();
  EXPECT_EQ(run(spec).message, "");
}

TEST_F(TrainingRunsTest, WithoutANumberThereIsNoBest) {
  const std::string none = "1,-100\n2,-100\n";
  EXPECT_EQ(run(measured(none, "best", {})).message, "not published: accuracy was a number in no evaluation");
  EXPECT_EQ(run(measured(none, "best", 0.5)).message, "not published: accuracy was a number in no evaluation");
  EXPECT_THAT(run(measured(none, "at_end", 0.5)).message, HasSubstr("not published: accuracy is "));
}

TEST_F(TrainingRunsTest, OneCoreIsEnough) {
  EXPECT_EQ(service_->create(fixtures::two_classes_spec()).spec.resources.threads, 1);
  EXPECT_EQ(TrainingService::max_processes(), 4);
}

TEST_F(TrainingRunsTest, WithoutGlooThereIsOneProcess) {
  setenv("TENSORD_GLOO", "/nowhere", 1);  // looked up once
  JobSpec spec = fixtures::two_classes_spec();
  spec.distribution.world_size = 1;
  EXPECT_EQ(service_->create(spec).spec.distribution.world_size, 1);
  spec.distribution.world_size = 2;
  const Error error = error_of([&] { service_->create(spec); });
  EXPECT_EQ(error.code(), ErrorCode::kUnimplemented);
  EXPECT_THAT(error.what(), HasSubstr("several ranks need Gloo"));
}

TEST_F(TrainingRunsTest, AStartThatFailsIsTheJobsFailure) {
  const std::string id = service_->create(fixtures::two_classes_spec()).id;
  fs::remove(root_ / "data" / "rows.csv");
  service_->start();
  const JobStatus status = ended(id);
  EXPECT_EQ(status.state, JobState::kFailed);
  EXPECT_THAT(status.message, StartsWith("data.file: "));
  EXPECT_THAT(status.message, HasSubstr("; there is no checkpoint"));
}

TEST_F(TrainingRunsTest, AJobThatFailsLaterHasItsCheckpoint) {
  rows("rows.csv", "1,0\n2,0\n3,0\n4,0\n5,7\n6,7\n");
  JobSpec spec = fixtures::two_classes_spec();
  spec.checkpoints.every_steps = 1;
  const JobStatus status = run(spec);
  EXPECT_EQ(status.state, JobState::kFailed);
  EXPECT_THAT(status.message, StartsWith("step 3, batch 2 (epoch 1): "));
  EXPECT_THAT(status.message, HasSubstr("; the last checkpoint is of step 2"));
}

TEST_F(TrainingRunsTest, AJobWithADistributionIsTrainedByProcesses) {
  JobSpec spec = fixtures::two_classes_spec();
  spec.distribution.world_size = 1;
  spec.distribution.max_restarts = 0;
  const JobStatus status = run(spec);
  EXPECT_EQ(status.state, JobState::kFailed);
  EXPECT_THAT(status.message, HasSubstr("rank 0"));
}

TEST_F(TrainingRunsTest, AJobThatRunsIsDeletedWhenItHasStopped) {
  JobSpec spec = fixtures::two_classes_spec();
  spec.data = {};
  spec.data.streamed = true;
  spec.epochs = 0;
  const std::string id = service_->create(spec).id;
  service_->start();
  wait(id, [](const JobStatus& status) { return status.message == "waiting for data"; });
  service_->remove(id);
  EXPECT_EQ(error_of([&] { service_->find(id); }).code(), ErrorCode::kNotFound);
  service_->stop();  // if it took longer than the delete call waits
  EXPECT_FALSE(fs::exists(root_ / "jobs" / "jobs" / id));
}

TEST_F(TrainingRunsTest, AStartThatNeverEndsIsPausedAndGoesOn) {
  const std::string id = create_endless();
  service_->pause(id);
  EXPECT_EQ(ended(id).state, JobState::kPaused);
  EXPECT_EQ(ended(id).message, "");
  service_->resume(id);
  wait(id, [](const JobStatus& status) { return status.state == JobState::kRunning; });
  service_->cancel(id);
  EXPECT_EQ(ended(id).state, JobState::kCancelled);
}

TEST_F(TrainingRunsTest, AStartThatNeverEndsGoesOnWithTheNextDaemon) {
  const std::string id = create_endless();
  service_->stop();
  EXPECT_EQ(service_->find(id)->state(), JobState::kRunning);
  start();
  EXPECT_EQ(service_->find(id)->state(), JobState::kQueued);
}

}  // namespace
}  // namespace tensord::server::training_runs_test
