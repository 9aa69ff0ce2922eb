// The batches of a job: from files, a rank's part of them, and what is buffered.
#include "server/training/data/batch_source.h"

#include <gmock/gmock.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "core/base/cancellation.h"
#include "core/jit/runtime/module.h"
#include "core/nn/data/dataset.h"
#include "core/ops/generator.h"
#include "tests/server/error_of.h"
#include "tests/server/temporary_folder.h"

namespace tensord::server::batch_source_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Batches = std::vector<std::vector<int>>;

Tensor rows(int64_t count) {
  Tensor out = Tensor::empty(Dims{count, 1}, DType::kFloat32);
  for (int64_t i = 0; i < count; ++i) out.data<float>()[i] = static_cast<float>(i);
  return out;
}

JobData job_data_of(int64_t count) {
  JobData data;
  data.all = std::make_unique<nn::TensorDataset>(std::vector<Tensor>{rows(count)});
  return data;
}

JobSpec spec_of(int64_t batch_size, bool drop_last, int64_t world_size = 1) {
  JobSpec spec;
  spec.batch_size = batch_size;
  spec.data.shuffle = false;
  spec.data.drop_last = drop_last;
  spec.distribution.world_size = world_size;
  return spec;
}

// The rows of each batch of an epoch; a rank may have none.
Batches epoch_of(BatchSource& source) {
  Batches out;
  std::vector<Tensor> batch;
  while (source.next(batch, [] { return false; }) == BatchSource::Next::kBatch) {
    std::vector<int>& numbers = out.emplace_back();
    if (batch.empty()) continue;
    for (int64_t i = 0; i < batch[0].size(0); ++i) numbers.push_back(static_cast<int>(batch[0].data<float>()[i]));
  }
  return out;
}

TEST(BatchSourceTest, AFileEndsWithWhatIsLeftOrWithoutIt) {
  const JobData data = job_data_of(5);
  ops::Generator generator(1);
  const auto source = make_file_source(data, spec_of(2, false), generator);
  EXPECT_EQ(source->batches_per_epoch(), 3);
  EXPECT_EQ(epoch_of(*source), (Batches{{0, 1}, {2, 3}, {4}}));
  const auto whole = make_file_source(data, spec_of(2, true), generator);
  EXPECT_EQ(whole->batches_per_epoch(), 2);
  EXPECT_EQ(epoch_of(*whole), (Batches{{0, 1}, {2, 3}}));
  EXPECT_EQ(epoch_of(*make_file_source(data, spec_of(5, true), generator)), (Batches{{0, 1, 2, 3, 4}}));
  EXPECT_THAT(error_of([&] { make_file_source(data, spec_of(6, true), generator); }).what(),
              HasSubstr("batch_size: 6 is more than the 5 rows"));
}

TEST(BatchSourceTest, RanksShareEachBatch) {
  const JobData data = job_data_of(5);
  const auto of_rank = [&](int rank, int64_t batch_size, bool drop_last) {
    const auto source = make_rank_source(data, spec_of(batch_size, drop_last, 2), rank);
    const Batches found = epoch_of(*source);
    EXPECT_EQ(static_cast<int64_t>(found.size()), source->batches_per_epoch());
    EXPECT_EQ(source->batches(), source->batches_per_epoch());
    return found;
  };
  EXPECT_EQ(of_rank(0, 3, false), (Batches{{0, 2}, {3}}));
  EXPECT_EQ(of_rank(1, 3, false), (Batches{{1}, {4}}));
  EXPECT_EQ(of_rank(0, 2, false), (Batches{{0}, {2}, {4}}));
  EXPECT_EQ(of_rank(1, 2, false), (Batches{{1}, {3}, {}}));
  EXPECT_EQ(of_rank(0, 2, true), (Batches{{0}, {2}}));
  EXPECT_EQ(of_rank(1, 5, true), (Batches{{1, 3}}));
  EXPECT_THAT(error_of([&] { make_rank_source(data, spec_of(6, true, 2), 0); }).what(),
              HasSubstr("batch_size: 6 is more than the 5 rows"));
}

// Notes which numbers its samples draw, as images that are changed at random do.
class DrawingDataset final : public nn::Dataset {
 public:
  int64_t size() const override { return 7; }
  std::vector<Tensor> get(int64_t index) const override {
    check(index != broken, "sample is broken");
    const auto drawn = static_cast<float>(ops::current_generator().seed() % 1000);
    const Tensor out = Tensor::empty(Dims{2}, DType::kFloat32);
    out.data<float>()[0] = static_cast<float>(index);
    out.data<float>()[1] = drawn;
    return {out};
  }
  int64_t broken = -1;
};

// {sample, number} of the epoch's rows; after `count` batches the source is made anew from its state.
std::vector<std::pair<float, float>> drawn_of(bool is_ahead, int rank, int64_t world_size, int count) {
  JobData data;
  data.all = std::make_unique<DrawingDataset>();
  data.is_decoded_ahead = is_ahead;
  JobSpec spec = spec_of(3, false, world_size);
  spec.data.shuffle = true;
  spec.seed = 5;
  auto source = make_rank_source(data, spec, rank);
  std::vector<std::pair<float, float>> out;
  std::vector<Tensor> batch;
  for (int i = 0;; ++i) {
    if (i == count) {
      const ops::Value state = source->state_dict();
      source = make_rank_source(data, spec, rank);
      source->load_state_dict(state);
    }
    if (source->next(batch, [] { return false; }) != BatchSource::Next::kBatch) return out;
    for (int64_t row = 0; !batch.empty() && row < batch[0].size(0); ++row) {
      out.emplace_back(batch[0].data<float>()[row * 2], batch[0].data<float>()[row * 2 + 1]);
    }
  }
}

TEST(BatchSourceTest, WhatIsMadeAheadIsTheSameAndSoAreItsDraws) {
  const auto expected = drawn_of(false, 0, 1, -1);
  EXPECT_EQ(expected.size(), 7u);
  for (const int count : {-1, 0, 1, 2, 3}) EXPECT_EQ(drawn_of(true, 0, 1, count), expected) << count;
  auto both = drawn_of(true, 0, 2, 1);
  for (const auto& row : drawn_of(true, 1, 2, 2)) both.push_back(row);
  EXPECT_THAT(both, ::testing::UnorderedElementsAreArray(expected));
}

TEST(BatchSourceTest, AnErrorAheadComesWithItsBatch) {
  JobData data;
  auto all = std::make_unique<DrawingDataset>();
  all->broken = 4;
  data.all = std::move(all);
  data.is_decoded_ahead = true;
  const auto source = make_rank_source(data, spec_of(2, false), 0);
  std::vector<Tensor> batch;
  for (int i = 0; i < 2; ++i) EXPECT_EQ(source->next(batch, [] { return false; }), BatchSource::Next::kBatch);
  EXPECT_THAT(error_of([&] { source->next(batch, [] { return false; }); }).what(), HasSubstr("sample is broken"));
}

// Its fourth sample takes until its work is cancelled.
class EndlessDataset final : public nn::Dataset {
 public:
  int64_t size() const override { return 6; }
  std::vector<Tensor> get(int64_t index) const override {
    last = index;
    while (index == 3 && !is_work_cancelled()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return {Tensor::scalar<int64_t>(index)};
  }
  mutable std::atomic<int64_t> last = -1;
};

TEST(BatchSourceTest, ItsEndStopsABatchBetweenTwoSamples) {
  for (const bool is_rank : {false, true}) {
    auto dataset = std::make_unique<EndlessDataset>();
    const EndlessDataset& watched = *dataset;
    JobData data;
    data.all = std::move(dataset);
    data.is_decoded_ahead = true;
    ops::Generator order(1);
    const JobSpec spec = spec_of(3, false);
    auto source = is_rank ? make_rank_source(data, spec, 0) : make_file_source(data, spec, order);
    std::vector<Tensor> batch;
    EXPECT_EQ(source->next(batch, [] { return false; }), BatchSource::Next::kBatch);
    while (watched.last != 3) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (!is_rank) {
      EXPECT_EQ(source->next(batch, [] { return true; }), BatchSource::Next::kInterrupted);
    }
    source.reset();
    EXPECT_EQ(watched.last, 3);
  }
}

constexpr const char* kNet = R"(
class Net(Module):
    __parameters__ = ["weight"]
    weight: Tensor

    def forward(self, x: Tensor) -> Tensor:
        return x * self.weight
)";

TEST(BatchSourceTest, RowsAreHeldBackOnBothSides) {
  const fixtures::TemporaryFolder folder("batch_source");
  const std::string archive = (folder.path() / "net.pt").string();
  jit::Module::compile(kNet, {{"weight", rows(1)}})->save(archive);
  std::ofstream(folder.path() / "d.csv") << "x,y\n0,0\n1,0\n2,0\n3,0\n";
  LossSpec loss;
  loss.builtin = "mse";
  loss.label = "y";
  const TrainingModel model(archive, loss, {}, false);
  const auto split = [&](double fraction) {
    JobSpec spec = spec_of(1, false);
    spec.data.file = "d.csv";
    spec.evaluation.fraction = fraction;
    return read_job_data(spec, folder.path().string(), model);
  };
  for (const auto& [fraction, held_back] : {std::pair{0.25, 1}, {0.6, 2}, {0.75, 3}}) {
    const JobData data = split(fraction);
    EXPECT_EQ(data.evaluation->size(), held_back);
    EXPECT_EQ(data.to_train_on()->size(), 4 - held_back);
  }
  for (const double fraction : {0.1, 0.9}) {
    EXPECT_THAT(error_of([&] { split(fraction); }).what(), HasSubstr("of 4 rows leaves none on one side"));
  }
  EXPECT_EQ(split(0).evaluation, nullptr);
  const Error missing = error_of([&] { resolve_data_file((folder.path() / "no").string(), "d.csv", "data.file"); });
  EXPECT_EQ(missing.code(), ErrorCode::kNotFound);
  EXPECT_THAT(missing.what(), HasSubstr("data.file: the server's data folder: "));
}

TEST(BatchSourceTest, AStreamThatGivesNothingIsInterruptedOrStarves) {
  const fixtures::TemporaryFolder folder("batch_source");
  const std::string archive = (folder.path() / "net.pt").string();
  jit::Module::compile(kNet, {{"weight", rows(1)}})->save(archive);
  LossSpec loss;
  loss.builtin = "mse";
  loss.label = "y";
  const TrainingModel model(archive, loss, {}, false);
  JobSpec spec = spec_of(1, false);
  spec.data.streamed = true;
  spec.data.stream_timeout_seconds = 0;
  const auto stream = std::make_shared<BatchStream>(1 << 20, 3);
  std::vector<bool> waits;
  const auto source = make_stream_source(stream, spec, model, [&](bool is_waiting) { waits.push_back(is_waiting); });
  std::vector<Tensor> batch;
  int asked = 0;
  const auto next = [&] { return source->next(batch, [&] { return ++asked == 3; }); };
  stream->attach();  // an attached client may take as long as it likes
  EXPECT_EQ(next(), BatchSource::Next::kInterrupted);
  stream->detach(false);
  EXPECT_EQ(next(), BatchSource::Next::kStarved);
  EXPECT_THAT(waits, ElementsAre(true, false, true, false));
  EXPECT_EQ(source->batches(), 3);
  // Converted to the model's own dtype.
  stream->push({}, {{"x", rows(2).to(DType::kFloat64)}, {"y", rows(2)}});
  EXPECT_EQ(next(), BatchSource::Next::kBatch);
  EXPECT_EQ(source->batches(), 4);
  for (const Tensor& array : batch) EXPECT_EQ(array.dtype(), DType::kFloat32);
}

}  // namespace
}  // namespace tensord::server::batch_source_test
