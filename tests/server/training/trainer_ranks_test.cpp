// A job's training loop on several ranks: the result equals one process's, and continues from checkpoints.
#include <gmock/gmock.h>

#include <filesystem>
#include <utility>

#include "server/training/trainer.h"
#include "tests/distributed/ranks.h"
#include "tests/server/temporary_folder.h"
#include "tests/server/training/job_files.h"

namespace tensord::server::trainer_ranks_test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

// Means over the rows, computed by a matrix.
constexpr const char* kNet = R"(
class Net(Module):
    __parameters__ = ["weight"]
    weight: Tensor
    steps: Tensor
    training: bool

    def forward(self, x: Tensor) -> Tensor:
        return torch.linear(torch.sin(torch.mul(torch.unsqueeze(x, 1), self.steps)), self.weight)

    def plain(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.mean(torch.square(torch.sub(self.forward(x), 1)))

    def dropped(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.mean(torch.square(torch.dropout(self.forward(x), 0.5, self.training)))

    def normed(self, x: Tensor, y: Tensor) -> Tensor:
        h = torch.batch_norm(self.forward(x), None, None, None, None, True, 0.1, 1e-5, False)
        return torch.mean(torch.square(torch.sub(h, torch.mul(self.steps, self.steps))))
)";
// Two tables with sparse gradients, and a dense parameter between them.
constexpr const char* kTables = R"(
class Net(Module):
    __parameters__ = ["first", "scale", "last"]
    first: Tensor
    scale: Tensor
    last: Tensor
    training: bool

    def plain(self, x: Tensor, y: Tensor) -> Tensor:
        rows = torch.to(x, 4)
        found = torch.mul(torch.embedding(self.first, rows, -1, False, True), self.scale)
        return torch.mean(torch.square(torch.sub(torch.add(found, torch.embedding(self.last, rows, -1, False, True)), 1)))
)";
constexpr int64_t kSize = 16;

class TrainerRanksTest : public ::testing::Test {
 protected:
  TrainerRanksTest() {
    fs::create_directories(folder_ / "data");
    fixtures::save_rows(folder_ / "data" / "rows.csv", "1,0\n2,0\n3,1\n4,0\n5,1\n");
    const Tensor weight = Tensor::empty(Dims{kSize, kSize}, DType::kFloat32);
    const Tensor steps = Tensor::empty(Dims{kSize}, DType::kFloat32);
    for (int64_t i = 0; i < weight.numel(); ++i) weight.data<float>()[i] = static_cast<float>(i * 37 % 101) / 101;
    for (int64_t i = 0; i < kSize; ++i) steps.data<float>()[i] = static_cast<float>(i + 1) / kSize;
    jit::LoadOptions options;
    options.for_training = true;
    const auto module = jit::Module::compile(kNet, {{"weight", weight}, {"steps", steps}}, options);
    for (const auto& [name, tensor] : module->named_parameters()) autograd::set_requires_grad(tensor);
    module->save((folder_ / "base.pt").string());
  }

  static JobSpec spec_of(const std::string& method) {
    JobSpec spec = fixtures::two_classes_spec(method);
    spec.loss.label.clear();
    spec.optimizer.options = {{"lr", 0.1}, {"momentum", 0.9}};
    spec.batch_size = 3;
    spec.epochs = 3;
    return spec;
  }
  void forget() const { fs::remove_all(folder_ / "job"); }
  // Runs a process without a group, or this many ranks, from the last checkpoint; returns the errors.
  std::vector<std::string> errors_of_run(JobSpec spec, int size) {
    fs::create_directories(folder_ / "job");
    spec.distribution.world_size = size;
    check_job_spec(spec);
    const auto run = [&](distributed::ProcessGroup* group) {
      JobStatus status;
      status.id = "job";
      status.spec = spec;
      TrainingJob job(status);
      if (spec.data.streamed) stream_to(job);
      Trainer::Options options;
      options.folder = folder_ / "job";
      options.base_archive = (folder_ / "base.pt").string();
      options.data_folder = (folder_ / "data").string();
      options.group = group;
      Trainer trainer(job, options);
      EXPECT_EQ(trainer.run(), Trainer::Outcome::kDone);
      if (group != nullptr && group->rank() > 0) return;
      status_ = job.status();
      trainer.write_result((folder_ / "result.pt").string());
    };
    if (size > 0) {
      return distributed::fixtures::errors_of_ranks(size, distributed::local_backends(), {.timeout = 20s},
                                                    [&](distributed::ProcessGroup& group) { run(&group); });
    }
    run(nullptr);
    return {};
  }
  std::vector<float> run(const JobSpec& spec, int size) {
    for (const std::string& error : errors_of_run(spec, size)) EXPECT_EQ(error, "");
    return fixtures::weights_of((folder_ / "result.pt").string());
  }
  // The same batches as in the file.
  static void stream_to(TrainingJob& job) {
    job.renew_stream(0);
    job.stream()->attach();
    for (int epoch = 0; epoch < 3; ++epoch) {
      for (const auto& [first, count] : {std::pair(1, 3), {4, 2}}) {
        const Tensor x = Tensor::empty(Dims{count}, DType::kFloat32), y = Tensor::empty(Dims{count}, DType::kFloat32);
        for (int i = 0; i < count; ++i) x.data<float>()[i] = static_cast<float>(first + i);
        for (int i = 0; i < count; ++i) y.data<float>()[i] = 0;
        job.stream()->push({}, {{"x", x}, {"y", y}});
      }
    }
    job.stream()->detach(true);
  }

  const fixtures::TemporaryFolder temporary_{"trainer_ranks"};
  const fs::path folder_ = temporary_.path();
  JobStatus status_;
};

TEST_F(TrainerRanksTest, TheySayWhatHangsOnTheirNumber) {
  const auto message = [&](const char* method, int size, bool sync_batch_norm = false, const char* compression = "") {
    forget();
    JobSpec spec = spec_of(method);
    spec.distribution.sync_batch_norm = sync_batch_norm;
    spec.distribution.compression = compression;
    run(spec, size);
    return status_.message;
  };
  EXPECT_EQ(message("plain", 2), "");
  EXPECT_EQ(message("dropped", 2), "another number of ranks has another result: dropout is each rank's own");
  EXPECT_EQ(message("normed", 2), "another number of ranks has another result: batch_norm is each rank's own");
  EXPECT_EQ(message("normed", 2, true), "any number of ranks has the same result within rounding");
  EXPECT_EQ(message("plain", 2, false, "fp16"), "any number of ranks has the same result within the rounding of fp16");
  EXPECT_EQ(message("plain", 2, false, "powersgd"),
            "another number of ranks has another result: powersgd keeps each rank's own errors");
  EXPECT_EQ(message("dropped", 1), "");
  EXPECT_EQ(message("plain", 1, false, "fp16"), "");
}

// The last batch of an epoch has fewer rows than ranks.
TEST_F(TrainerRanksTest, TheyEndWhereOneProcessDoes) {
  const std::vector<float> one = run(spec_of("plain"), 0);
  const double loss = status_.progress.loss;
  for (const int size : {1, 2, 3}) {
    for (const bool is_streamed : {false, true}) {
      for (const int64_t zero : {0, 1}) {
        SCOPED_TRACE(concat(size, " ranks, streamed ", is_streamed, ", zero ", zero));
        JobSpec spec = spec_of("plain");
        if (is_streamed) {
          spec.data = {};
          spec.data.streamed = true;
          spec.epochs = 0;
        }
        spec.distribution.zero = zero;
        forget();
        EXPECT_THAT(run(spec, size), Pointwise(FloatNear(1e-5F), one));
        EXPECT_NEAR(status_.progress.loss, loss, 1e-5);
      }
    }
  }
  forget();
  JobSpec spec = spec_of("normed");
  const std::vector<float> normed = run(spec, 0);
  forget();
  spec.distribution.sync_batch_norm = true;
  EXPECT_THAT(run(spec, 2), Pointwise(FloatNear(1e-4F), normed));
}

// One of three ranks gets no row of a batch of two: it is told which gradients are sparse.
TEST_F(TrainerRanksTest, GradientsOfTablesAreSparse) {
  const auto numbers = [](const Dims& sizes, int64_t step) {
    const Tensor out = Tensor::empty(sizes, DType::kFloat32);
    for (int64_t i = 0; i < out.numel(); ++i) out.data<float>()[i] = static_cast<float>(i * step % 101) / 101;
    return out;
  };
  jit::LoadOptions options;
  options.for_training = true;
  const auto module = jit::Module::compile(
      kTables, {{"first", numbers({6, 3}, 37)}, {"scale", numbers({3}, 29)}, {"last", numbers({6, 3}, 53)}}, options);
  for (const auto& [name, tensor] : module->named_parameters()) autograd::set_requires_grad(tensor);
  module->save((folder_ / "base.pt").string());
  for (const char* rows : {"1,0\n2,0\n3,1\n4,0\n5,1\n1,0\n3,0\n", "1,0\n2,0\n"}) {
    fixtures::save_rows(folder_ / "data" / "rows.csv", rows);
    forget();
    const std::vector<float> one = run(spec_of("plain"), 0);
    for (const int size : {1, 2, 3}) {
      SCOPED_TRACE(concat(size, " ranks"));
      forget();
      EXPECT_THAT(run(spec_of("plain"), size), Pointwise(FloatNear(1e-5F), one));
    }
  }
}

TEST_F(TrainerRanksTest, TheyGoOnFromWhatTheySaved) {
  for (const auto& [zero, compression] : {std::pair(0, ""), {1, ""}, {0, "powersgd"}, {1, "powersgd"}}) {
    SCOPED_TRACE(concat("zero ", zero, ", ", compression));
    JobSpec spec = spec_of("plain");
    spec.distribution.zero = zero;
    spec.distribution.compression = compression;
    if (*compression != '\0') spec.distribution.compression_start_step = 2;
    forget();
    const std::vector<float> whole = run(spec, 2);
    forget();
    spec.steps = 4;
    EXPECT_NE(run(spec, 2), whole);
    spec.steps = 0;
    EXPECT_THAT(run(spec, 2), Pointwise(FloatNear(1e-6F), whole));
    EXPECT_EQ(status_.progress.step, 6);
  }
}

// Each rank would count its own.
TEST_F(TrainerRanksTest, PlacesThatDoNotCountAreOfOneRankAlone) {
  fixtures::save_rows(folder_ / "data" / "rows.csv", "1,-100\n2,-100\n3,0\n4,0\n");
  JobSpec spec = fixtures::two_classes_spec();
  spec.batch_size = 4;
  run(spec, 1);
  forget();
  for (const std::string& error : errors_of_run(spec, 2)) EXPECT_THAT(error, HasSubstr("a place that does not count"));
}

}  // namespace
}  // namespace tensord::server::trainer_ranks_test
