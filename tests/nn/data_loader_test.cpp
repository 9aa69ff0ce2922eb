// Samplers' orders compared with PyTorch's, and the data loader: order, workers, errors, states in the middle of an
// epoch.
#include "core/nn/data/data_loader.h"

#include <gmock/gmock.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "core/base/cancellation.h"
#include "core/ops/run.h"
#include "tests/nn/nn_cases.h"

namespace tensord::nn::data_loader_test {
namespace {

using ops::Generator;
using ops::GeneratorGuard;
using ops::Value;
using Indices = std::vector<int64_t>;

Indices integers(const Value& list) {
  Indices out;
  for (const Value& each : get_items(list, "integers")) out.push_back(each.to_int());
  return out;
}

Indices epoch(Sampler& sampler) {
  Indices order;
  sampler.start_epoch();
  while (const auto index = sampler.next()) order.push_back(*index);
  return order;
}

Indices arange(int64_t count) {
  Indices values;
  for (int64_t i = 0; i < count; ++i) values.push_back(i);
  return values;
}

Tensor column(const Indices& values) {
  const Tensor tensor = Tensor::empty(Dims{static_cast<int64_t>(values.size())}, DType::kInt64);
  std::copy(values.begin(), values.end(), tensor.data<int64_t>());
  return tensor;
}

void append(Indices& to, const Tensor& column) {
  to.insert(to.end(), column.data<int64_t>(), column.data<int64_t>() + column.numel());
}

TEST(Sampler, OrdersEqualPyTorch) {
  const Value cases = load_cases("samplers");
  const std::vector<std::pair<const char*, std::shared_ptr<Sampler>>> samplers = {
      {"random", std::make_shared<RandomSampler>(23)},
      {"random_more", std::make_shared<RandomSampler>(23, false, 50)},
      {"random_replaced", std::make_shared<RandomSampler>(23, true, 70)},
      {"weighted", std::make_shared<WeightedRandomSampler>(std::vector<double>{0.1, 0.0, 2.0, 3.5, 0.7}, 40)},
      {"subset", std::make_shared<SubsetRandomSampler>(Indices{4, 8, 15, 16, 22})},
  };
  for (const auto& [name, sampler] : samplers) {
    Generator generator(11);
    const GeneratorGuard guard(generator);
    for (const Value& expected : items(cases, name)) EXPECT_EQ(epoch(*sampler), integers(expected)) << name;
  }
  SequentialSampler sequential(4);
  EXPECT_EQ(epoch(sequential), arange(4));
  EXPECT_EQ(epoch(sequential), arange(4));
}

TEST(Sampler, WeightsAreProbabilities) {
  Generator generator(3);
  const GeneratorGuard guard(generator);
  WeightedRandomSampler sampler({1, 0, 3, 4}, 8000);
  std::vector<int> counts(4);
  for (const int64_t index : epoch(sampler)) ++counts[static_cast<size_t>(index)];
  EXPECT_NEAR(counts[0], 1000, 150);
  EXPECT_EQ(counts[1], 0);
  EXPECT_NEAR(counts[2], 3000, 250);
  WeightedRandomSampler once({1, 2, 3, 4}, 4, false);
  Indices order = epoch(once);
  std::sort(order.begin(), order.end());
  EXPECT_EQ(order, arange(4));
}

TEST(Sampler, StateInMidEpoch) {
  const std::vector<std::function<std::shared_ptr<Sampler>()>> makers = {
      [] { return std::make_shared<SequentialSampler>(20); },
      [] { return std::make_shared<RandomSampler>(20); },
      [] { return std::make_shared<RandomSampler>(7, true, 45); },
      [] {
        return std::make_shared<WeightedRandomSampler>(std::vector<double>{1, 2, 3}, 20);
      },
      [] {
        return std::make_shared<SubsetRandomSampler>(Indices{5, 7, 9, 11, 13, 15});
      },
  };
  for (const auto& make : makers) {
    Generator generator(5), other(6);
    const auto sampler = make(), copy = make();
    Value state;
    std::vector<uint8_t> generator_state;
    Indices expected, got;
    {
      const GeneratorGuard guard(generator);
      epoch(*sampler);
      sampler->start_epoch();
      for (int i = 0; i < 4; ++i) sampler->next();
      state = sampler->state_dict();
      generator_state = generator.state();
      while (const auto index = sampler->next()) expected.push_back(*index);
      for (const int64_t index : epoch(*sampler)) expected.push_back(index);
    }
    const GeneratorGuard guard(other);
    copy->load_state_dict(state);
    other.set_state(generator_state);
    while (const auto index = copy->next()) got.push_back(*index);
    for (const int64_t index : epoch(*copy)) got.push_back(index);
    EXPECT_EQ(got, expected);
    EXPECT_THROW(make()->load_state_dict(Value(int64_t{1})), Error);
  }
}

Indices all_of(DataLoader& loader) {
  Indices seen;
  for (const auto& batch : loader) append(seen, batch[0]);
  return seen;
}

TEST(DataLoader, OrdersEqualPyTorchWithAnyNumberOfWorkers) {
  const Value cases = load_cases("samplers");
  const TensorDataset dataset({column(arange(23))});
  for (const int workers : {0, 1, 3}) {
    for (const bool drop_last : {false, true}) {
      Generator generator(12);
      const GeneratorGuard guard(generator);
      DataLoader loader(dataset, {.batch_size = 5, .shuffle = true, .drop_last = drop_last, .workers = workers});
      EXPECT_EQ(loader.size(), drop_last ? 4 : 5);
      for (const Value& expected : items(cases, drop_last ? "loader_drop_last" : "loader"))
        EXPECT_EQ(all_of(loader), integers(expected)) << workers;
    }
    Generator given(99);
    DataLoader loader(dataset, {.batch_size = 5, .shuffle = true, .generator = &given, .workers = workers});
    for (const Value& expected : items(cases, "loader_generator")) EXPECT_EQ(all_of(loader), integers(expected));
  }
}

TEST(DataLoader, CollatesColumns) {
  const Tensor wide =
      ops::call_by_name("aten::reshape", ops::call_by_name("aten::arange", 24, Value(6)), Dims{6, 2, 2});
  const Tensor turned = ops::call_by_name("aten::permute", wide, Dims{0, 2, 1});
  const TensorDataset dataset({wide, turned, column({5, 4, 3, 2, 1, 0})});
  DataLoader loader(dataset, {.batch_size = 4});
  loader.start_epoch();
  const auto first = loader.next(), last = loader.next();
  EXPECT_EQ(to_string((*first)[0].sizes()), "[4, 2, 2]");
  EXPECT_EQ(to_string((*last)[1].sizes()), "[2, 2, 2]");
  EXPECT_EQ(difference((*last)[1], ops::call_by_name("aten::narrow", turned, 0, 4, 2)), 0);
  EXPECT_EQ((*last)[2].data<int64_t>()[0], 1);
  EXPECT_FALSE(loader.next().has_value());
  EXPECT_FALSE(loader.is_in_epoch());
  EXPECT_FALSE(loader.next().has_value());
  // The same through get() and collate().
  const Indices chosen{3, 0, 5};
  const auto slow = collate(dataset.get_samples(chosen)), fast = dataset.get_batch(chosen);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(difference(slow[i], fast[i]), 0);
  const SubsetDataset subset(dataset, {1, 3});
  EXPECT_EQ(subset.get_batch(Indices{1})[2].item_int(), 2);
  DataLoader summed(dataset, {.batch_size = 3, .collate = [](std::span<const std::vector<Tensor>> samples) {
                                return std::vector<Tensor>{Tensor::scalar(static_cast<int64_t>(samples.size()))};
                              }});
  for (const auto& batch : summed) EXPECT_EQ(batch[0].item_int(), 3);
}

// Draws a number for each sample, fails at one, and counts the samples in progress.
class Probe final : public Dataset {
 public:
  explicit Probe(int64_t size, int64_t bad = -1) : size_(size), bad_(bad) {}
  int64_t size() const override { return size_; }
  std::vector<Tensor> get(int64_t index) const override {
    ++started;
    if (index == bad_) fail(ErrorCode::kDataLoss, "the file ends here");
    std::this_thread::sleep_for(std::chrono::microseconds(index % 3 * 200));
    const Tensor noise = ops::call_by_name("aten::rand", Dims{2});
    return {Tensor::scalar(index), noise};
  }
  mutable std::atomic<int64_t> started{0};

 private:
  const int64_t size_, bad_;
};

TEST(DataLoader, RandomNumbersOfTheDatasetDoNotDependOnWorkers) {
  std::vector<std::vector<Tensor>> results;
  for (const int workers : {0, 1, 4}) {
    Generator generator(1);
    const GeneratorGuard guard(generator);
    const Probe dataset(40);
    DataLoader loader(dataset, {.batch_size = 3, .shuffle = true, .workers = workers});
    std::vector<Tensor> noise;
    for (int i = 0; i < 2; ++i)
      for (const auto& batch : loader) noise.push_back(batch[1]);
    results.push_back(noise);
  }
  ASSERT_EQ(results[0].size(), 28u);
  for (size_t i = 0; i < results[0].size(); ++i) {
    EXPECT_EQ(difference(results[1][i], results[0][i]), 0);
    EXPECT_EQ(difference(results[2][i], results[0][i]), 0);
  }
  EXPECT_GT(difference(results[0][0], results[0][14]), 0);
}

// Waits until the workers have started `count` samples, and checks that they start no more.
void expect_started(const Probe& dataset, int64_t count) {
  for (int i = 0; i < 10000 && dataset.started < count; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(dataset.started, count);
}

TEST(DataLoader, MakesABoundedNumberOfBatchesAhead) {
  const Probe dataset(100);
  DataLoader loader(dataset, {.batch_size = 2, .workers = 2, .prefetch_factor = 3});
  loader.start_epoch();
  loader.next();
  expect_started(dataset, 12);  // two samples for each of 2 · 3 batches
  loader.next();
  expect_started(dataset, 14);
}

TEST(DataLoader, ErrorsComeInTheirTurnWithTheSample) {
  for (const int workers : {0, 2}) {
    const Probe dataset(12, 7);
    DataLoader loader(dataset, {.batch_size = 3, .workers = workers});
    loader.start_epoch();
    EXPECT_EQ((*loader.next())[0].data<int64_t>()[2], 2);
    EXPECT_EQ((*loader.next())[0].data<int64_t>()[2], 5);
    try {
      loader.next();
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
      EXPECT_STREQ(error.what(), "sample 7: the file ends here");
    }
    EXPECT_EQ((*loader.next())[0].data<int64_t>()[0], 9);
    EXPECT_FALSE(loader.next());
  }
}

// A dataset whose second sample takes until its work is cancelled, or until it is let go.
class Endless final : public Dataset {
 public:
  int64_t size() const override { return 8; }
  std::vector<Tensor> get(int64_t index) const override {
    last = index;
    while (index == 1 && is_held && !is_work_cancelled()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return {Tensor::scalar<int64_t>(index)};
  }
  mutable std::atomic<int64_t> last = -1;
  std::atomic<bool> is_held = true;
};

TEST(DataLoader, ItsEndStopsABatchBetweenTwoSamples) {
  const Endless dataset;
  {
    DataLoader loader(dataset, {.batch_size = 8, .workers = 1});
    loader.start_epoch();
    EXPECT_FALSE(loader.next([&] { return dataset.last == 1; }));
  }
  EXPECT_EQ(dataset.last, 1);
}

TEST(DataLoader, GoesOnWithTheBatchThatWasInterrupted) {
  Endless dataset;
  DataLoader loader(dataset, {.batch_size = 4, .workers = 1});
  loader.start_epoch();
  EXPECT_FALSE(loader.next([] { return true; }));
  EXPECT_TRUE(loader.is_in_epoch());
  dataset.is_held = false;
  EXPECT_EQ((*loader.next([] { return false; }))[0].data<int64_t>()[3], 3);
  EXPECT_EQ((*loader.next())[0].data<int64_t>()[3], 7);
  EXPECT_FALSE(loader.next());
  EXPECT_FALSE(loader.is_in_epoch());
}

TEST(DataLoader, ANewEpochDropsTheOldOne) {
  const Probe dataset(60);
  DataLoader loader(dataset, {.batch_size = 4, .workers = 3});
  for (int i = 0; i < 10; ++i) {
    loader.start_epoch();
    for (int b = 0; b < i; ++b) loader.next();
  }
  EXPECT_EQ(all_of(loader), arange(60));
}

TEST(DataLoader, StateInMidEpoch) {
  for (const int workers : {0, 2}) {
    for (const int given : {0, 4, 8}) {
      Generator generator(8);
      const Probe dataset(23);
      const DataLoaderOptions options{.batch_size = 3, .shuffle = true, .workers = workers};
      std::vector<Tensor> expected, got;
      Value state;
      std::vector<uint8_t> generator_state;
      {
        const GeneratorGuard guard(generator);
        DataLoader loader(dataset, options);
        all_of(loader);
        loader.start_epoch();
        for (int i = 0; i < given; ++i) loader.next();
        state = loader.state_dict();
        generator_state = generator.state();
        while (const auto batch = loader.next()) expected.insert(expected.end(), batch->begin(), batch->end());
        for (const auto& batch : loader) expected.insert(expected.end(), batch.begin(), batch.end());
      }
      Generator other(77);
      const GeneratorGuard guard(other);
      DataLoader loader(dataset, options);
      loader.start_epoch();
      loader.next();
      loader.load_state_dict(state);
      other.set_state(generator_state);
      EXPECT_TRUE(loader.is_in_epoch());
      while (const auto batch = loader.next()) got.insert(got.end(), batch->begin(), batch->end());
      for (const auto& batch : loader) got.insert(got.end(), batch.begin(), batch.end());
      ASSERT_EQ(got.size(), expected.size());
      ASSERT_EQ(got.size(), static_cast<size_t>(2 * (8 - given) + 16));
      for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(difference(got[i], expected[i]), 0);
    }
  }
}

template <class Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(DataLoader, Errors) {
  const TensorDataset dataset({column(arange(4))});
  EXPECT_THAT(error_of([&] { DataLoader(dataset, {.batch_size = 0}); }), ::testing::HasSubstr("positive integer"));
  EXPECT_THAT(
      error_of([&] { DataLoader(dataset, {.shuffle = true, .sampler = std::make_shared<SequentialSampler>(2)}); }),
      ::testing::HasSubstr("mutually exclusive"));
  EXPECT_THAT(error_of([&] {
                TensorDataset({column(arange(4)), column(arange(5))});
              }),
              ::testing::HasSubstr("Size mismatch"));
  EXPECT_THAT(error_of([&] { dataset.get_batch(Indices{1, 9}); }), ::testing::HasSubstr("sample 9"));
  EXPECT_THAT(error_of([&] { SubsetDataset(dataset, {4}); }), ::testing::HasSubstr("out of range"));
  const std::vector<std::vector<Tensor>> unlike{{Tensor::scalar(1.0)}, {Tensor::scalar(1.0f)}};
  EXPECT_THAT(error_of([&] { collate(unlike); }),
              ::testing::HasSubstr("column 0 is float64[] at entry 0 and float32[]"));
  DataLoader loader(dataset, {});
  loader.start_epoch();
  const Value state = loader.state_dict();
  set_item(state.to_dict(), "batches", 5);
  EXPECT_THAT(error_of([&] { loader.load_state_dict(state); }), ::testing::HasSubstr("not of this dataset"));
}

}  // namespace
}  // namespace tensord::nn::data_loader_test
