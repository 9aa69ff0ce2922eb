// A job's training loop: its length, its metrics, when it writes checkpoints, and its error messages.
#include "server/training/trainer.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <thread>
#include <utility>

#include "server/training/trainer_state.h"
#include "tests/distributed/ranks.h"
#include "tests/server/error_of.h"
#include "tests/server/temporary_folder.h"
#include "tests/server/training/job_files.h"

// Makes mkdir of the next folder fail with this errno; 0: it succeeds.
static int no_folder = 0;

extern "C" int mkdir(const char* path, mode_t mode) noexcept {
  if (no_folder != 0) {
    errno = std::exchange(no_folder, 0);
    return -1;
  }
  return static_cast<int>(syscall(SYS_mkdirat, AT_FDCWD, path, mode));  // NOLINT
}

namespace tensord::server::trainer_test {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr const char* kSixRows = "1,0\n2,0\n3,1\n4,0\n5,1\n6,0\n";

class TrainerTest : public ::testing::Test {
 protected:
  TrainerTest() {
    fs::create_directories(folder_ / "job");
    fs::create_directories(folder_ / "data");
    fixtures::save_two_classes(archive());
    rows("rows.csv", kSixRows);
  }

  std::string archive() const { return (folder_ / "base.pt").string(); }
  void rows(const char* file, const std::string& text) const { fixtures::save_rows(folder_ / "data" / file, text); }
  static std::unique_ptr<TrainingJob> job_of(JobSpec spec) {
    check_job_spec(spec);
    JobStatus status;
    status.id = "job";
    status.spec = std::move(spec);
    return std::make_unique<TrainingJob>(std::move(status));
  }
  Trainer::Options options() {
    Trainer::Options out;
    out.folder = folder_ / "job";
    out.base_archive = archive();
    out.data_folder = (folder_ / "data").string();
    out.plans = plans_;
    out.saved_status = [this] {
      saved_.push_back(job_->status().progress.checkpoint_step);
      if (saved_.size() == 1) no_folder = failure_after_first_;
    };
    return out;
  }
  // The job's status once it has ended.
  JobStatus run(const JobSpec& spec) {
    job_ = job_of(spec);
    saved_.clear();
    fs::remove_all(folder_ / "job");
    fs::create_directories(folder_ / "job");
    Trainer trainer(*job_, options());
    EXPECT_EQ(trainer.run(), Trainer::Outcome::kDone);
    return job_->status();
  }
  std::string error(const JobSpec& spec) {
    return error_of([&] { run(spec); }).what();
  }
  size_t best_files() const {
    size_t count = 0;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder_ / "job")) {
      count += entry.path().filename().string().starts_with("best-");
    }
    return count;
  }

  const fixtures::TemporaryFolder temporary_{"trainer"};
  const fs::path folder_ = temporary_.path();
  std::unique_ptr<TrainingJob> job_;
  std::vector<int64_t> saved_;  // steps of the checkpoints
  int failure_after_first_ = 0;
  std::string plans_ = "off";
};

TEST_F(TrainerTest, AJobIsAsLongAsTheShorterOfStepsAndEpochs) {
  struct Case {
    int64_t steps, epochs, expected;
  };
  for (const Case& c : {Case{5, 1, 3}, Case{2, 1, 2}, Case{5, 0, 5}, Case{0, 2, 6}, Case{3, 1, 3}}) {
    JobSpec spec = fixtures::two_classes_spec();
    spec.steps = c.steps;
    spec.epochs = c.epochs;
    const JobProgress progress = run(spec).progress;
    EXPECT_EQ(progress.step, c.expected) << c.steps << " " << c.epochs;
    EXPECT_EQ(progress.total_steps, c.expected) << c.steps << " " << c.epochs;
  }
}

TEST_F(TrainerTest, CheckpointsComeEverySoManySteps) {
  JobSpec spec = fixtures::two_classes_spec();
  spec.checkpoints.every_steps = 2;
  spec.epochs = 2;
  run(spec);
  EXPECT_THAT(saved_, ElementsAre(2, 4, 6));
}

JobSpec evaluated(const std::string& metric) {
  JobSpec spec = fixtures::two_classes_spec();
  spec.evaluation.file = "evaluation.csv";
  spec.evaluation.metrics = {metric};
  spec.evaluation.every_steps = 1;
  spec.publish.when = "best";
  spec.publish.metric = metric;
  return spec;
}

TEST_F(TrainerTest, ErrorsOfEvaluationsNameTheRows) {
  rows("evaluation.csv", "1,0\n1,0\n1,7\n1,0\n");
  EXPECT_THAT(error(evaluated("loss")), StartsWith("evaluation after step 1, rows 2 to 3: loss.label: 'y' has 7"));
  rows("evaluation.csv", "1,0\n1,0\n1,7\n");
  EXPECT_THAT(error(evaluated("loss")), StartsWith("evaluation after step 1, rows 2 to 2: "));
}

TEST_F(TrainerTest, WhatIsNoNumberIsNotTheBest) {
  rows("evaluation.csv", "1,-100\n2,-100\n3,-100\n");
  const JobProgress none = run(evaluated("accuracy")).progress;
  EXPECT_TRUE(std::isnan(none.metrics.at("accuracy")));
  EXPECT_EQ(none.best_step, 0);
  EXPECT_EQ(best_files(), 0U);
  // The last one of equal metrics.
  rows("evaluation.csv", "1,-100\n2,1\n3,1\n");
  const JobProgress some = run(evaluated("accuracy")).progress;
  EXPECT_EQ(some.best_step, some.step);
  EXPECT_EQ(some.best_metric, some.metrics.at("accuracy"));
  EXPECT_GT(best_files(), 0U);
}

TEST_F(TrainerTest, OfEquallyGoodOnesTheLowerLossWins) {
  rows("rows.csv", "1,1\n2,1\n3,1\n2,1\n1,1\n3,1\n");
  JobSpec spec = evaluated("accuracy");
  spec.evaluation.metrics = {"accuracy", "loss"};
  spec.optimizer.options["lr"] = 1e-6;  // predictions do not change
  for (const bool grows : {false, true}) {
    rows("evaluation.csv", grows ? "2,0\n3,0\n" : "2,1\n3,1\n");
    EXPECT_EQ(run(spec).progress.best_step, grows ? 1 : 3);
  }
}

TEST_F(TrainerTest, EvaluationsComeEverySoManySteps) {
  rows("evaluation.csv", "1,0\n2,0\n");
  JobSpec spec = evaluated("loss");
  spec.evaluation.every_steps = 2;
  run(spec);
  std::vector<int64_t> measured;
  for (const CurvePoint& point : job_->points_after(0)) {
    if (!point.metrics.empty()) measured.push_back(point.step);
  }
  EXPECT_THAT(measured, ElementsAre(2, 3));  // and at the end
}

TEST_F(TrainerTest, TheLastOfEqualLossesIsTheBest) {
  rows("rows.csv", "0,0\n0,0\n0,0\n0,0\n");
  rows("evaluation.csv", "1,0\n2,0\n");
  EXPECT_EQ(run(evaluated("loss")).progress.best_step, 2);
}

TEST_F(TrainerTest, AJobGoesOnFromItsCheckpoint) {
  const auto weights = [&](Trainer& trainer) {
    const std::string path = (folder_ / "result.pt").string();
    trainer.write_result(path);
    return fixtures::weights_of(path);
  };
  JobSpec spec = fixtures::two_classes_spec();
  spec.optimizer.options["momentum"] = 0.9;
  spec.epochs = 2;
  job_ = job_of(spec);
  Trainer whole(*job_, options());
  whole.run();
  const auto expected = weights(whole);
  fs::remove_all(folder_ / "job");
  fs::create_directories(folder_ / "job");
  spec.steps = 4;
  job_ = job_of(spec);
  Trainer first(*job_, options());
  first.run();
  EXPECT_NE(weights(first), expected);
  spec.steps = 0;
  job_ = job_of(spec);
  Trainer second(*job_, options());
  second.run();
  EXPECT_THAT(saved_, ElementsAre(6, 4, 6));
  EXPECT_EQ(weights(second), expected);
}

TEST_F(TrainerTest, WhetherStepsArePlannedIsSaidOnce) {
  struct Case {
    const char *plans, *optimizer, *said;
  };
  for (const auto& [plans, optimizer, said] :
       {Case{"exact", "sgd", "the steps of a training job are planned"},
        Case{"off", "sgd", "the steps of a training job are interpreted job=job reason=plans are off"},
        Case{"exact", "lbfgs", "reason=the optimizer computes the loss as often as it likes"}}) {
    JobSpec spec = fixtures::two_classes_spec();
    spec.optimizer.name = optimizer;
    spec.epochs = 10;
    job_ = job_of(spec);
    fs::remove_all(folder_ / "job");
    fs::create_directories(folder_ / "job");
    Trainer::Options own = options();
    own.plans = plans;
    Trainer trainer(*job_, own);
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(trainer.run(), Trainer::Outcome::kDone);
    const std::string log = ::testing::internal::GetCapturedStderr();
    EXPECT_THAT(log, HasSubstr(said));
    EXPECT_EQ(log.find(said), log.rfind(said));
  }
}

TEST_F(TrainerTest, OldBestOnesGoOldestFirst) {
  rows("evaluation.csv", "1,0\n2,0\n");
  JobSpec spec = evaluated("loss");
  spec.epochs = 2;
  spec.checkpoints.every_steps = 1;
  spec.checkpoints.keep = 1;
  rows("rows.csv", "1,0\n2,0\n3,0\n4,0\n5,0\n6,0\n");  // it keeps improving
  EXPECT_EQ(run(spec).progress.best_step, 6);
  EXPECT_EQ(best_files(), 2U);
  EXPECT_TRUE(fs::exists(folder_ / "job" / "best-6.pt"));
}

TEST_F(TrainerTest, TheFirstRankAloneWritesFiles) {
  rows("evaluation.csv", "1,0\n2,0\n");
  JobSpec spec = evaluated("loss");
  spec.distribution.world_size = 2;
  for (const char* name : {"rank-0", "rank-1"}) fs::create_directory(folder_ / name);
  distributed::fixtures::on_ranks(2, distributed::local_backends(), [&](distributed::ProcessGroup& group) {
    const auto job = job_of(spec);
    Trainer::Options own = options();
    own.folder = folder_ / concat("rank-", group.rank());
    own.saved_status = {};
    own.group = &group;
    Trainer trainer(*job, own);
    EXPECT_EQ(trainer.run(), Trainer::Outcome::kDone);
    EXPECT_GT(job->status().progress.best_step, 0);  // all ranks know it
  });
  EXPECT_TRUE(fs::exists(folder_ / "rank-0" / "checkpoint-3"));
  EXPECT_TRUE(fs::is_empty(folder_ / "rank-1"));
}

// A full disk may have room the next time; other errors of a disk are permanent.
TEST_F(TrainerTest, WhichErrorsOfCheckpointsAJobOutlives) {
  JobSpec spec = fixtures::two_classes_spec();
  spec.checkpoints.every_steps = 1;
  run(spec);
  EXPECT_THAT(saved_, ElementsAre(1, 2, 3));
  for (const int passing : {ENOSPC, EIO}) {
    failure_after_first_ = passing;
    EXPECT_EQ(run(spec).message, "");
    EXPECT_THAT(saved_, ElementsAre(1, 3)) << passing;
  }
  failure_after_first_ = EROFS;
  EXPECT_THAT(error(spec), HasSubstr(".checkpoint-2: cannot be made: "));
  EXPECT_THAT(saved_, ElementsAre(1));
  EXPECT_EQ(job_->status().message, "");
}

TEST_F(TrainerTest, WeightsThatAreNotFiniteAreNotSaved) {
  JobSpec spec = fixtures::two_classes_spec();
  spec.checkpoints.every_steps = 1;
  spec.optimizer.options["lr"] = 3e38;
  rows("rows.csv", "100,0\n100,0\n100,0\n100,0\n");
  EXPECT_EQ(error(spec), "step 1: parameter 'weight' is not finite and is not saved");
  EXPECT_THAT(saved_, SizeIs(0));
}

TEST_F(TrainerTest, WhereNumbersThatAreNotFiniteComeFrom) {
  rows("rows.csv", "0,0\n0,0\n");
  EXPECT_EQ(error(fixtures::two_classes_spec("root")),
            "step 1, batch 0 (epoch 1): the gradient is not finite, first that of parameter 'weight'");
  // Later steps too, with a row of each array.
  rows("rows.csv", "1,0\n1,0\nnan,0\n1,0\n");
  for (const char* plans : {"off", "exact"}) {
    plans_ = plans;
    EXPECT_EQ(error(fixtures::two_classes_spec("step")),
              "step 2, batch 1 (epoch 1): the loss is not a number: 'x' of the data is not finite in this batch");
  }
  rows("rows.csv", "1,0\n1,0\n0,0\n0,0\n");
  fixtures::save_two_classes(archive(), 1, NAN);
  EXPECT_EQ(error(fixtures::two_classes_spec()),
            "step 1, batch 0 (epoch 1): the loss is not a number: parameter 'weight' is not finite");
}

TEST_F(TrainerTest, ALossThatNothingTrainedHasAPartInIsNone) {
  EXPECT_EQ(error(fixtures::two_classes_spec("apart")),
            "step 1, batch 0 (epoch 1): the loss does not depend on any parameter that is trained");
}

Tensor column(DType dtype, std::initializer_list<float> values) {
  Tensor out = Tensor::empty(Dims{static_cast<int64_t>(values.size())}, DType::kFloat32);
  std::copy(values.begin(), values.end(), out.data<float>());
  return out.to(dtype);
}

JobSpec streamed() {
  JobSpec spec = fixtures::two_classes_spec();
  spec.data = {};
  spec.data.streamed = true;
  spec.epochs = 0;
  spec.checkpoints.every_seconds = 1;
  return spec;
}

void push(BatchStream& stream, float label) {
  stream.push({}, {{"x", column(DType::kFloat32, {1, 2})}, {"y", column(DType::kInt64, {0, label})}});
}

TEST_F(TrainerTest, ErrorsOfStreamedBatchesKnowNoEpoch) {
  job_ = job_of(streamed());
  job_->renew_stream(0);
  job_->stream()->attach();
  push(*job_->stream(), 0);
  push(*job_->stream(), 7);
  Trainer trainer(*job_, options());
  EXPECT_THAT(error_of([&] { trainer.run(); }).what(), StartsWith("step 2, batch 1: loss.label: 'y' has 7"));
  rows("rows.csv", "1,0\n2,0\n3,0\n4,7\n");
  EXPECT_THAT(error(fixtures::two_classes_spec()), StartsWith("step 2, batch 1 (epoch 1): loss.label: 'y' has 7"));
}

TEST_F(TrainerTest, AJobThatIsCancelledDoesNotEndItsStep) {
  job_ = job_of(streamed());
  const auto stream = std::make_shared<BatchStream>(/*max_bytes=*/1, 0);
  job_->set_stream(stream);
  push(*stream, 0);
  stream->when_room([this] { job_->set_request(JobRequest::kCancel); });  // once the step has its batch
  Trainer trainer(*job_, options());
  EXPECT_EQ(trainer.run(), Trainer::Outcome::kCancelled);
  EXPECT_EQ(job_->status().progress.step, 0);
}

TEST_F(TrainerTest, WhatElseIsCancelledIsAnError) {
  job_ = job_of(fixtures::two_classes_spec());
  Trainer::Options own = options();
  own.saved_status = [] { fail(ErrorCode::kCancelled, "by somebody else"); };
  Trainer trainer(*job_, own);
  EXPECT_STREQ(error_of([&] { trainer.run(); }).what(), "by somebody else");
}

TEST_F(TrainerTest, AStreamGoesOnAfterTheCheckpoint) {
  const Checkpoints checkpoints(folder_ / "job", 2);
  EXPECT_EQ(next_batch_after(checkpoints), 0);
  job_ = job_of(streamed());
  job_->renew_stream(0);
  job_->stream()->attach();
  for (int i = 0; i < 3; ++i) push(*job_->stream(), 0);
  job_->stream()->detach(true);
  Trainer trainer(*job_, options());
  EXPECT_EQ(trainer.run(), Trainer::Outcome::kDone);
  EXPECT_EQ(next_batch_after(checkpoints), 3);
}

TEST_F(TrainerTest, CheckpointsByTime) {
  job_ = job_of(streamed());
  job_->renew_stream(0);
  job_->stream()->attach();
  Trainer trainer(*job_, options());
  push(*job_->stream(), 0);
  std::thread client([stream = job_->stream()] {
    std::this_thread::sleep_for(std::chrono::milliseconds(1100));
    for (int i = 0; i < 2; ++i) push(*stream, 1);
    stream->detach(true);
  });
  EXPECT_EQ(trainer.run(), Trainer::Outcome::kDone);
  client.join();
  ASSERT_GE(saved_.size(), 2U);  // the last one is always written
  EXPECT_LT(saved_[0], 3);
  EXPECT_EQ(saved_.back(), 3);
}

}  // namespace
}  // namespace tensord::server::trainer_test
