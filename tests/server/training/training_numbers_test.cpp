// The numbers that a job reports, at the limits of each rule: metrics, losses, speed, memory, the largest value.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/autograd/variable.h"
#include "core/base/error.h"
#include "server/training/builtin_loss.h"
#include "server/training/evaluation_metrics.h"
#include "server/training/learning_rate.h"
#include "server/training/non_finite.h"
#include "server/training/progress_meter.h"

namespace tensord::server::training_numbers_test {
namespace {

using ::testing::HasSubstr;

template <class T>
Tensor array(const Dims& shape, const std::vector<T>& values) {
  Tensor tensor = Tensor::empty(shape, dtype_of<T>);
  std::copy(values.begin(), values.end(), tensor.data<T>());
  return tensor;
}

Tensor floats(const Dims& shape, const std::vector<float>& values) { return array(shape, values); }
Tensor longs(const Dims& shape, const std::vector<int64_t>& values) { return array(shape, values); }

LossSpec loss_of(const std::string& builtin, std::optional<int64_t> ignored = std::nullopt) {
  LossSpec spec;
  spec.builtin = builtin;
  spec.label = "y";
  spec.ignore_index = ignored;
  return spec;
}

double metric(const std::string& name, const LossSpec& loss, const Tensor& output, const Tensor& label) {
  EvaluationMetrics metrics({name}, loss);
  metrics.add(0, output.size(0), output, label);
  return metrics.means().at(name);
}

TEST(MetricNumbers, LabelsThatAreNoClassCountAsWrong) {
  // The scores of the second row follow those of the first, and are larger.
  const Tensor scores = floats({2, 3}, {3, 2, 1, 9, 9, 9});
  const LossSpec loss = loss_of("cross_entropy");
  EXPECT_EQ(metric("accuracy", loss, scores, longs({2}, {3, 0})), 0.5);
  EXPECT_EQ(metric("accuracy", loss, scores, longs({2}, {-1, 0})), 0.5);
  EXPECT_EQ(metric("accuracy", loss, scores, longs({2}, {0, 3})), 0.5);
  EXPECT_EQ(metric("accuracy", loss, scores, longs({2}, {2, 0})), 0.5);  // the last class, and the first
  EXPECT_EQ(metric("accuracy", loss, floats({1, 2}, {NAN, 0}), longs({1}, {0})), 0);
  EXPECT_EQ(metric("top_3_accuracy", loss, scores, longs({2}, {2, 2})), 1);
  EXPECT_EQ(metric("top_2_accuracy", loss, scores, longs({2}, {2, 2})), 0);
}

TEST(MetricNumbers, IgnoredLabelsDoNotCount) {
  const Tensor scores = floats({3, 2}, {1, 0, 1, 0, 1, 0});
  EXPECT_EQ(metric("accuracy", loss_of("cross_entropy", 1), scores, longs({3}, {1, 0, 1})), 1);
  EXPECT_EQ(metric("accuracy", loss_of("cross_entropy"), scores, longs({3}, {-100, 0, 1})), 0.5);
  EXPECT_TRUE(std::isnan(metric("accuracy", loss_of("cross_entropy", 0), scores, longs({3}, {0, 0, 0}))));
}

TEST(MetricNumbers, OfNoRows) {
  for (const char* name : {"accuracy", "top_2_accuracy", "mae", "rmse", "loss"}) {
    const Tensor label = std::string(name).ends_with("accuracy") ? longs({0}, {}) : floats({0, 3}, {});
    EXPECT_TRUE(std::isnan(metric(name, loss_of("cross_entropy"), floats({0, 3}, {}), label))) << name;
  }
}

TEST(MetricNumbers, OfTwoClassesByOneScore) {
  const Tensor labels = floats({4}, {0, 1, 0.5F, 1});  // a half is not 1
  EXPECT_EQ(metric("accuracy", loss_of("bce_with_logits"), floats({4}, {0, 0, 0, 1}), labels), 0.75);
  EXPECT_EQ(metric("accuracy", loss_of("bce"), floats({4}, {0.5F, 0.5F, 0.5F, 0.6F}), labels), 0.75);
  EXPECT_EQ(metric("accuracy", loss_of("bce"), floats({2}, {1, 0}), floats({2}, {0, 0})), 0.5);
  EXPECT_EQ(metric("accuracy", loss_of("bce"), floats({2, 1}, {1, 0}), floats({2}, {1, 1})), 0.5);
}

TEST(MetricNumbers, ErrorsOfTheFirstAndTheLast) {
  const Tensor zeros = floats({3}, {0, 0, 0}), output = floats({3}, {3, 0, -6});
  EXPECT_EQ(metric("mae", loss_of("mse"), output, zeros), 3);
  EXPECT_EQ(metric("mse", loss_of("mse"), output, zeros), 15);
  EXPECT_EQ(metric("rmse", loss_of("mse"), output, zeros), std::sqrt(15.0));
}

template <class Action>
std::string error_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

std::string first_output(const std::string& loss, const Tensor& output) {
  std::string warning;
  const std::string error = error_of([&] { warning = check_first_output(loss_of(loss), output); });
  return warning.empty() ? error : warning;
}

TEST(LossNumbers, RowsThatAreNoProbabilities) {
  const auto of = [](const Tensor& output) { return first_output("cross_entropy", output); };
  const std::vector<float> rows = {0.25F, 0.75F, 1, 0, 0.5F, 0.5F, 0.1F, 0.9F};
  EXPECT_THAT(of(floats({4, 2}, rows)), HasSubstr("probabilities"));
  for (size_t row = 0; row < 4; ++row) {
    std::vector<float> one = rows;
    one[2 * row] += 0.005F;
    EXPECT_EQ(of(floats({4, 2}, one)), "none") << row;
    EXPECT_THAT(of(floats({4, 2}, one).to(DType::kFloat16)), HasSubstr("probabilities")) << row;
    one[2 * row] += 1;
    one[2 * row + 1] -= 1.005F;  // sums to 1, with a negative element
    EXPECT_EQ(of(floats({4, 2}, one)), "none") << row;
  }
  // At each position: (rows, classes, positions).
  for (size_t place = 0; place < 8; ++place) {
    std::vector<float> one = {0.25F, 1, 0.75F, 0, 0.5F, 0.5F, 0.5F, 0.5F};
    one[place] += 0.005F;
    EXPECT_EQ(of(floats({2, 2, 2}, one)), "none") << place;
  }
  EXPECT_EQ(of(longs({4, 2}, {1, 0, 1, 0, 1, 0, 1, 0})), "none");
}

TEST(LossNumbers, LogarithmsUpToTheTolerance) {
  EXPECT_EQ(first_output("nll", array<double>({2, 2}, {-1, 1e-4, -1, -1})), "none");
  EXPECT_THAT(first_output("nll", array<double>({2, 2}, {-1, -1, -1, 2e-4})), HasSubstr("logarithms"));
  EXPECT_THAT(first_output("nll", array<double>({2, 2}, {2e-4, -1, -1, -1})), HasSubstr("take cross_entropy"));
  EXPECT_EQ(first_output("nll", floats({}, {5})), "none");
}

TEST(LossNumbers, LabelsOfClasses) {
  const auto of = [](const LossSpec& loss, const Tensor& output, const std::vector<int64_t>& labels) {
    return error_of([&] { builtin_loss(loss, output, longs({std::ssize(labels)}, labels)); });
  };
  const Tensor scores = floats({3, 2}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(of(loss_of("cross_entropy"), scores, {0, 1, -100}), "none");
  EXPECT_EQ(of(loss_of("cross_entropy", 7), scores, {0, 1, 7}), "none");
  EXPECT_THAT(of(loss_of("cross_entropy"), scores, {2, 1, 0}), HasSubstr("'y' has 2 at place 0, but the output has 2"));
  EXPECT_THAT(of(loss_of("cross_entropy"), scores, {0, 0, -1}), HasSubstr("'y' has -1 at place 2"));
  EXPECT_THAT(of(loss_of("cross_entropy", 7), scores, {0, -100, 0}), HasSubstr("'y' has -100 at place 1"));
  EXPECT_THAT(of(loss_of("cross_entropy"), floats({}, {1}), {0}), HasSubstr("a single number has no classes"));
}

// Initial values of a schedule, for two groups.
TEST(ScheduleNumbers, ACycleHasThePeakOfEachGroup) {
  std::vector<std::pair<std::string, Tensor>> parameters;
  for (const char* name : {"a", "b"}) {
    parameters.emplace_back(name, floats({1}, {1}));
    autograd::set_requires_grad(parameters.back().second);
  }
  const auto first_rates = [&](std::optional<double> max_lr) {
    OptimizerSpec spec;
    spec.name = "sgd";
    spec.options["lr"] = 1;
    spec.groups.push_back({.pattern = "b", .freeze = false, .options = {{"lr", 0.5}}});
    const auto optimizer = make_job_optimizer(spec, parameters);
    ScheduleSpec schedule;
    schedule.name = "one_cycle";
    schedule.max_lr = max_lr;
    const LearningRate rate(schedule, *optimizer, 100, 0);
    std::vector<double> rates;
    for (const nn::ParamGroup& group : optimizer->param_groups()) rates.push_back(group.options.number("lr"));
    return rates;
  };
  EXPECT_THAT(first_rates(std::nullopt),
              ::testing::ElementsAre(::testing::DoubleNear(0.02, 1e-12), ::testing::DoubleNear(0.04, 1e-12)));
  EXPECT_THAT(first_rates(2),
              ::testing::ElementsAre(::testing::DoubleNear(0.08, 1e-12), ::testing::DoubleNear(0.08, 1e-12)));
}

TEST(MeterNumbers, GradientsAreWhatWasMeasuredLast) {
  TrainingJob job(JobStatus{});
  ManualClock clock;
  ProgressMeter meter(job, kServerOwner, 100, clock);
  const auto said = [&](int64_t step, double norm) {
    meter.add_step({.step = step, .rows = 1, .loss = 1, .learning_rate = 1, .gradient_norm = norm});
    meter.flush();
    return job.status().progress.gradient_norm;
  };
  EXPECT_EQ(said(1, 2), 2);
  EXPECT_EQ(said(2, -1), 2);  // not measured
  EXPECT_EQ(said(3, 0), 0);
  const auto points = job.points_after(0);
  ASSERT_EQ(points.size(), 3U);
  EXPECT_EQ(points[0].gradient_norm, 2);
  EXPECT_EQ(points[1].gradient_norm, 0);
}

TEST(MeterNumbers, LossesThatAreNotFiniteMakeNoPoint) {
  TrainingJob job(JobStatus{});
  ManualClock clock;
  ProgressMeter meter(job, kServerOwner, 10, clock);
  int64_t step = 0;
  for (const double loss : {static_cast<double>(INFINITY), 3.0, static_cast<double>(NAN)})
    meter.add_step({.step = ++step, .rows = 1, .loss = loss});
  meter.flush();
  const auto points = job.points_after(0);
  ASSERT_EQ(points.size(), 1U);
  EXPECT_EQ(points[0].step, 2);
  EXPECT_EQ(points[0].loss, 3);
  EXPECT_EQ(job.status().progress.loss, 3);
  EXPECT_EQ(job.status().progress.step, 3);
}

TEST(MeterNumbers, TheStatusIsChangedTenTimesASecond) {
  TrainingJob job(JobStatus{});
  ManualClock clock;
  ProgressMeter meter(job, kServerOwner, 0, clock);
  const auto step_after = [&](int64_t ns, int64_t step) {
    clock.advance_ns(ns);
    meter.add_step({.step = step, .rows = 4, .loss = 1, .is_planned = step % 2 == 0});
    return job.status().progress;
  };
  EXPECT_EQ(step_after(99'999'999, 1).step, 0);
  EXPECT_EQ(step_after(1, 2).step, 2);
  EXPECT_EQ(step_after(99'999'999, 3).step, 2);
  const JobProgress last = step_after(1, 4);
  EXPECT_EQ(last.step, 4);
  EXPECT_EQ(last.planned_steps, 2U);
  EXPECT_NEAR(last.samples_per_second, 80, 1e-6);
  EXPECT_EQ(last.seconds_left, -1);  // of unknown end
}

TEST(MeterNumbers, WhatIsLeftIsReckonedFromThisRun) {
  JobStatus before;
  before.progress.step = 60;
  TrainingJob job(before);
  ManualClock clock;
  ProgressMeter meter(job, kServerOwner, 100, clock);
  EXPECT_EQ(job.status().progress.seconds_left, -1);
  EXPECT_EQ(job.status().progress.total_steps, 100);
  clock.advance_ns(10'000'000'000);
  meter.add_step({.step = 80, .rows = 1, .loss = 1});
  EXPECT_NEAR(job.status().progress.seconds_left, 10, 1e-9);  // 20 steps took 10 seconds, and 20 are left
}

TEST(MeterNumbers, ThePeakOfMemoryStays) {
  TrainingJob job(JobStatus{});
  ManualClock clock;
  const OwnerId owner = memory_owner("job/meter");
  ProgressMeter meter(job, owner, 10, clock);
  const auto progress = [&] {
    meter.flush();
    return job.status().progress;
  };
  Tensor held;
  {
    const MemoryOwnerScope scope(owner);
    held = Tensor::empty(Dims{1 << 20}, DType::kFloat32);
  }
  const uint64_t bytes = progress().memory_bytes;
  EXPECT_GE(bytes, uint64_t{4} << 20);
  EXPECT_EQ(progress().peak_memory_bytes, bytes);
  held = Tensor();
  EXPECT_EQ(progress().memory_bytes, 0U);
  EXPECT_EQ(progress().peak_memory_bytes, bytes);
}

TEST(FiniteNumbers, TheLargestOfAll) {
  const auto of = [](const std::vector<float>& a, const std::vector<float>& b) {
    return largest({{"a", floats({std::ssize(a)}, a)}, {"b", floats({std::ssize(b)}, b)}});
  };
  EXPECT_EQ(of({9, -1}, {1, 8}), std::pair(std::string("a"), 9.0));
  EXPECT_EQ(of({1, -8}, {-9, 1}), std::pair(std::string("b"), 9.0));
  EXPECT_EQ(of({3}, {3}), std::pair(std::string("a"), 3.0));  // the first of equal ones
  EXPECT_EQ(of({0}, {}), std::pair(std::string("a"), 0.0));
  EXPECT_EQ(largest({}).first, "");
}

TEST(FiniteNumbers, TheFirstAndTheLastElementCount) {
  const auto of = [](const std::vector<float>& values) {
    return first_non_finite({{"a", floats({std::ssize(values)}, values)}}, false);
  };
  EXPECT_EQ(of({NAN, 1, 1}), "a");
  EXPECT_EQ(of({1, 1, -INFINITY}), "a");
  EXPECT_EQ(of({1, 1, 1}), "");
  EXPECT_EQ(of({}), "");
}

}  // namespace
}  // namespace tensord::server::training_numbers_test
