#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "core/autograd/variable.h"
#include "core/base/error.h"
#include "server/training/builtin_loss.h"
#include "server/training/data/batch_source.h"
#include "server/training/evaluation_metrics.h"
#include "server/training/learning_rate.h"
#include "server/training/non_finite.h"
#include "server/training/progress_meter.h"
#include "tests/server/temporary_folder.h"

namespace tensord::server::training_pieces_test {
namespace {

Tensor floats(const Dims& shape, std::initializer_list<float> values) {
  Tensor tensor = Tensor::empty(shape, DType::kFloat32);
  std::copy(values.begin(), values.end(), tensor.data<float>());
  return tensor;
}

Tensor ints(const Dims& shape, std::initializer_list<int32_t> values) {
  Tensor tensor = Tensor::empty(shape, DType::kInt32);
  std::copy(values.begin(), values.end(), tensor.data<int32_t>());
  return tensor;
}

template <class Action>
std::pair<ErrorCode, std::string> error_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  return {ErrorCode::kInternal, "none"};
}

LossSpec loss_of(const std::string& builtin) {
  LossSpec spec;
  spec.builtin = builtin;
  spec.label = "y";
  return spec;
}

// Whatever path a job gives, including links.
TEST(DataFileTest, StaysInTheDataFolder) {
  namespace fs = std::filesystem;
  const fixtures::TemporaryFolder temporary("data");
  const fs::path base = fs::canonical(temporary.path()), data = base / "data";
  fs::create_directories(data / "more");
  fs::create_directories(base / "database");
  for (const char* file : {"secret.npz", "database/secret.npz", "data/own.npz", "data/more/own.npz"}) {
    std::ofstream(base / file) << "x";
  }
  fs::create_symlink(base / "secret.npz", data / "link.npz");
  fs::create_directory_symlink(base, data / "folder");
  fs::create_symlink(data / "own.npz", data / "inner.npz");
  const auto resolve = [&](const std::string& file) { return resolve_data_file(data.string(), file, "data.file"); };
  EXPECT_EQ(resolve("own.npz"), (data / "own.npz").string());
  EXPECT_EQ(resolve("more/../inner.npz"), (data / "own.npz").string());
  EXPECT_EQ(resolve("more/own.npz"), (data / "more" / "own.npz").string());
  for (const std::string& file :
       {std::string("../secret.npz"), std::string("more/../../secret.npz"), (base / "secret.npz").string(),
        std::string("../database/secret.npz"), std::string("link.npz"), std::string("folder/secret.npz")}) {
    const auto [code, message] = error_of([&] { resolve(file); });
    EXPECT_EQ(code, ErrorCode::kInvalidArgument) << file;
    EXPECT_EQ(message, concat("data.file: '", file, "' leads out of the data folder"));
  }
  EXPECT_EQ(error_of([&] { resolve("none.npz"); }).first, ErrorCode::kNotFound);
  EXPECT_EQ(resolve("more"), (data / "more").string());  // of images
  EXPECT_EQ(error_of([&] { resolve("folder"); }).first, ErrorCode::kInvalidArgument);
  EXPECT_EQ(error_of([&] { resolve_data_file("", "own.npz", "data.file"); }).first, ErrorCode::kFailedPrecondition);
}

TEST(EvaluationMetricsTest, Accuracies) {
  EvaluationMetrics metrics({"accuracy", "top_2_accuracy", "loss"}, loss_of("cross_entropy"));
  const Tensor scores = floats({4, 3}, {3, 2, 1, /**/ 1, 2, 3, /**/ 1, 1, 0, /**/ 0, 0, 5});
  metrics.add(0.5, 4, scores, ints({4}, {0, 1, 1, 0}));  // first, second, second of equal ones, second of equal ones
  metrics.add(2.0, 1, floats({1, 3}, {0, 0, 1}), ints({1}, {-100}));  // ignored
  const auto means = metrics.means();
  EXPECT_DOUBLE_EQ(means.at("accuracy"), 0.25);
  EXPECT_DOUBLE_EQ(means.at("top_2_accuracy"), 1.0);
  EXPECT_DOUBLE_EQ(means.at("loss"), (0.5 * 4 + 2.0) / 5);
}

TEST(EvaluationMetricsTest, AccuracyOfPlacesAndOfScores) {
  EvaluationMetrics places({"accuracy"}, loss_of("cross_entropy"));
  places.add(0, 1, floats({1, 2, 2}, {1, 0, 0, 1}), ints({1, 2}, {0, 1}));  // (rows, classes, positions)
  EXPECT_DOUBLE_EQ(places.means().at("accuracy"), 1);
  EvaluationMetrics logits({"accuracy"}, loss_of("bce_with_logits"));
  logits.add(0, 3, floats({3, 1}, {0.4f, -0.1f, 2}), floats({3}, {1, 1, 1}));
  EXPECT_DOUBLE_EQ(logits.means().at("accuracy"), 2.0 / 3);
  EvaluationMetrics chances({"accuracy"}, loss_of("bce"));
  chances.add(0, 3, floats({3}, {0.4f, 0.1f, 0.9f}), floats({3}, {1, 0, 1}));
  EXPECT_DOUBLE_EQ(chances.means().at("accuracy"), 2.0 / 3);
  EXPECT_NE(error_of([&] {
              chances.add(0, 2, floats({2}, {0, 0}), floats({3}, {0, 0, 0}));
            }).second.find("[2]"),
            std::string::npos);
}

TEST(EvaluationMetricsTest, Errors) {
  EvaluationMetrics metrics({"mae", "mse", "rmse"}, loss_of("mse"));
  metrics.add(0, 2, floats({2}, {1, 2}), floats({2}, {2, 5}));
  const auto means = metrics.means();
  EXPECT_DOUBLE_EQ(means.at("mae"), 2);
  EXPECT_DOUBLE_EQ(means.at("mse"), 5);
  EXPECT_DOUBLE_EQ(means.at("rmse"), std::sqrt(5.0));
}

TEST(BuiltinLossTest, LabelsAreBroughtIntoForm) {
  const Tensor scores = floats({2, 2}, {10, 0, 0, 10});
  EXPECT_NEAR(builtin_loss(loss_of("cross_entropy"), scores, ints({2}, {0, 1})).item_double(), 0, 1e-3);
  EXPECT_NEAR(builtin_loss(loss_of("cross_entropy"), scores, ints({2, 1}, {0, 1})).item_double(), 0, 1e-3);
  EXPECT_NEAR(builtin_loss(loss_of("mse"), floats({2, 1}, {1, 2}), ints({2}, {2, 4})).item_double(), 2.5, 1e-6);
  const auto [code, text] = error_of([&] { builtin_loss(loss_of("cross_entropy"), scores, ints({2}, {0, 2})); });
  EXPECT_EQ(code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(text, "loss.label: 'y' has 2 at place 1, but the output has 2 classes");
  EXPECT_NE(error_of([&] {
              builtin_loss(loss_of("mse"), scores, floats({3}, {0, 0, 0}));
            }).second.find("loss.label"),
            std::string::npos);
}

TEST(BuiltinLossTest, OutputsThatTheLossIsNotMadeFor) {
  const auto error = [](const char* loss, const Tensor& output) {
    std::string warning;
    const std::string text = error_of([&] { warning = check_first_output(loss_of(loss), output); }).second;
    return warning.empty() ? text : warning;
  };
  const Tensor chances = floats({4, 2}, {0.25F, 0.75F, 1, 0, 0.5F, 0.5F, 0.1F, 0.9F});
  EXPECT_NE(error("cross_entropy", chances).find("rows of the output are probabilities"), std::string::npos);
  EXPECT_NE(error("cross_entropy", chances.to(DType::kBFloat16)).find("probabilities"), std::string::npos);
  // Classes in the second of three dimensions.
  const Tensor places = floats({2, 2, 2}, {0.25F, 1, 0.75F, 0, 0.5F, 0.5F, 0.5F, 0.5F});
  EXPECT_NE(error("cross_entropy", places).find("probabilities"), std::string::npos);
  EXPECT_NE(error("nll", chances).find("takes logarithms of probabilities"), std::string::npos);
  EXPECT_NE(error("kl_div", chances).find("takes logarithms"), std::string::npos);
  // Scores of which only some rows sum to 1; too few rows to decide; outputs that are used unchanged.
  EXPECT_EQ(error("cross_entropy", floats({4, 2}, {2, -1, 0.5F, 0.5F, 1, 0, 0, 1})), "none");
  EXPECT_EQ(error("cross_entropy", floats({4, 2}, {0.2F, 0.3F, 0.5F, 0.5F, 1, 0, 0, 1})), "none");
  EXPECT_EQ(error("cross_entropy", floats({3, 2}, {0.5F, 0.5F, 1, 0, 0, 1})), "none");
  EXPECT_EQ(error("cross_entropy", floats({4, 1}, {1, 1, 1, 1})), "none");
  EXPECT_EQ(error("nll", floats({2, 2}, {-0.1F, -3, 0, -9})), "none");
  EXPECT_EQ(error("mse", chances), "none");
  EXPECT_EQ(error("bce", chances), "none");
}

std::vector<std::pair<std::string, Tensor>> parameters() {
  std::vector<std::pair<std::string, Tensor>> out;
  for (const char* name : {"a.weight", "a.bias", "b.weight"}) {
    out.emplace_back(name, floats({2}, {1, 2}));
    autograd::set_requires_grad(out.back().second);
  }
  return out;
}

TEST(JobOptimizerTest, GroupsByPattern) {
  const auto all = parameters();
  OptimizerSpec spec;
  spec.name = "sgd";
  spec.options["lr"] = 0.5;
  spec.groups.resize(2);
  spec.groups[0].pattern = "a.weight";
  spec.groups[0].freeze = true;
  spec.groups[1].pattern = "a.*";
  spec.groups[1].options["lr"] = 0.1;
  const auto optimizer = make_job_optimizer(spec, all);
  ASSERT_EQ(optimizer->param_groups().size(), 2u);
  EXPECT_EQ(optimizer->param_groups()[0].options.number("lr"), 0.1);
  EXPECT_TRUE(optimizer->param_groups()[0].params[0].is_same(all[1].second));
  EXPECT_EQ(optimizer->param_groups()[1].options.number("lr"), 0.5);
  EXPECT_FALSE(autograd::requires_grad(all[0].second));
  spec.groups[1].pattern = "c.*";
  EXPECT_EQ(error_of([&] { make_job_optimizer(spec, all); }).first, ErrorCode::kInvalidArgument);
  spec.groups = {{.pattern = "*", .freeze = true}};
  EXPECT_EQ(error_of([&] { make_job_optimizer(spec, all); }).first, ErrorCode::kFailedPrecondition);
}

// Steps of one hundredth are lost in 16-bit rounding, unless there are master weights.
TEST(JobOptimizerTest, ParametersOf16BitsTakeSmallSteps) {
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    const Tensor weight = floats({2}, {256, 256}).to(dtype);
    autograd::set_requires_grad(weight);
    OptimizerSpec spec;
    spec.name = "sgd";
    spec.options["lr"] = 0.01;
    const auto optimizer = make_job_optimizer(spec, {{"weight", weight}});
    for (int i = 0; i < 400; ++i) {
      autograd::set_grad(weight, floats({2}, {-1, -1}).to(dtype));
      optimizer->step();
    }
    EXPECT_NEAR(weight.to(DType::kFloat32).data<float>()[0], 260, 0.5) << name_of(dtype);
  }
}

// Learning rates of `steps` steps, restarted from the state after every `restart` steps.
std::vector<double> rates(const ScheduleSpec& spec, int64_t steps, int64_t restart = 1 << 30) {
  OptimizerSpec optimizer_spec;
  optimizer_spec.name = "sgd";
  optimizer_spec.options["lr"] = 1.0;
  const auto all = parameters();
  auto optimizer = make_job_optimizer(optimizer_spec, all);
  auto schedule = std::make_unique<LearningRate>(spec, *optimizer, steps, 0);
  std::vector<double> out;
  for (int64_t i = 0; i < steps; ++i) {
    out.push_back(schedule->current());
    schedule->after_step();
    if ((i + 1) % restart != 0) continue;
    const ops::Value of_optimizer = optimizer->state_dict(), of_schedule = schedule->state_dict();
    auto other = make_job_optimizer(optimizer_spec, all);
    schedule = std::make_unique<LearningRate>(spec, *other, steps, 0);
    schedule->load_state_dict(of_schedule);
    other->load_state_dict(of_optimizer);
    optimizer = std::move(other);
  }
  return out;
}

TEST(LearningRateTest, WarmUpAndCosine) {
  ScheduleSpec spec;
  spec.name = "cosine";
  spec.warmup_steps = 4;
  spec.warmup_factor = 0.2;
  const std::vector<double> got = rates(spec, 14);
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(got[static_cast<size_t>(i)], 0.2 + 0.2 * i, 1e-12);
  for (int i = 4; i < 14; ++i) {
    EXPECT_NEAR(got[static_cast<size_t>(i)], (1 + std::cos(M_PI * (i - 4) / 10)) / 2, 1e-9) << i;
  }
}

TEST(LearningRateTest, ACycleThatHasEndedStaysWhereItIs) {
  ScheduleSpec spec;
  spec.t_max = 5;
  for (const char* name : {"cosine", "one_cycle"}) {
    spec.name = name;
    const std::vector<double> got = rates(spec, 20);
    EXPECT_GT(got[3], got[4]) << name;
    EXPECT_LT(got[5], 1e-3) << name;
    for (size_t i = 6; i < got.size(); ++i) EXPECT_EQ(got[i], got[5]) << name << " " << i;
  }
}

TEST(LearningRateTest, ARestartChangesNothing) {
  for (const char* name : {"", "step", "multi_step", "exponential", "cosine", "one_cycle", "linear"}) {
    ScheduleSpec spec;
    spec.name = name;
    spec.step_size = 3;
    spec.milestones = {4, 9};
    spec.warmup_steps = spec.name == "one_cycle" ? 0 : 5;
    EXPECT_EQ(rates(spec, 20, 7), rates(spec, 20)) << name;
    EXPECT_EQ(rates(spec, 20, 1), rates(spec, 20)) << name;
  }
}

// Whatever the optimizer's option is called.
TEST(LearningRateTest, ACycleMovesTheMomentumToo) {
  const auto first = [](const char* optimizer_name, const auto& momentum_of) {
    OptimizerSpec optimizer_spec;
    optimizer_spec.name = optimizer_name;
    const auto all = parameters();
    const auto optimizer = make_job_optimizer(optimizer_spec, all);
    ScheduleSpec spec;
    spec.name = "one_cycle";
    const LearningRate rate(spec, *optimizer, 100, 0);
    return momentum_of(optimizer->param_groups()[0].options);
  };
  EXPECT_EQ(first("sgd", [](const nn::Options& options) { return options.number("momentum"); }), 0.95);
  EXPECT_EQ(first("adam", [](const nn::Options& options) { return options.pair("betas").first; }), 0.95);
  EXPECT_FALSE(first("adagrad", [](const nn::Options& options) { return options.has("momentum"); }));
}

TEST(LearningRateTest, Plateau) {
  OptimizerSpec optimizer_spec;
  optimizer_spec.name = "sgd";
  optimizer_spec.options["lr"] = 1.0;
  const auto all = parameters();
  const auto optimizer = make_job_optimizer(optimizer_spec, all);
  ScheduleSpec spec;
  spec.name = "plateau";
  spec.metric = "accuracy";
  spec.patience = 1;
  LearningRate rate(spec, *optimizer, 100, 0);
  for (const double accuracy : {0.5, 0.6, 0.6}) rate.after_evaluation({{"accuracy", accuracy}});
  EXPECT_DOUBLE_EQ(rate.current(), 1.0);
  rate.after_evaluation({{"accuracy", 0.6}});
  EXPECT_DOUBLE_EQ(rate.current(), 0.1);
}

TEST(LearningRateTest, APlateauIsOfItsOwnMetric) {
  OptimizerSpec optimizer_spec;
  optimizer_spec.name = "sgd";
  optimizer_spec.options["lr"] = 1.0;
  const auto all = parameters();
  const auto optimizer = make_job_optimizer(optimizer_spec, all);
  ScheduleSpec spec;
  spec.name = "plateau";
  spec.metric = "loss";
  spec.patience = 0;
  LearningRate rate(spec, *optimizer, 100, 0);
  for (const double accuracy : {0.5, 0.4, 0.3}) rate.after_evaluation({{"accuracy", accuracy}});
  rate.after_evaluation({});
  EXPECT_DOUBLE_EQ(rate.current(), 1.0);
  rate.after_evaluation({{"loss", 1.0}});
  rate.after_evaluation({{"loss", 1.5}});
  EXPECT_DOUBLE_EQ(rate.current(), 0.1);
}

TEST(LearningRateTest, OthersDoNotLookAtMetrics) {
  OptimizerSpec optimizer_spec;
  optimizer_spec.name = "sgd";
  optimizer_spec.options["lr"] = 1.0;
  const auto all = parameters();
  const auto optimizer = make_job_optimizer(optimizer_spec, all);
  ScheduleSpec spec;
  spec.name = "cosine";
  spec.metric = "loss";
  LearningRate rate(spec, *optimizer, 100, 0);
  for (int i = 0; i < 50; ++i) rate.after_evaluation({{"loss", 1.0}});
  EXPECT_DOUBLE_EQ(rate.current(), 1.0);
}

TEST(LearningRateTest, HowLongASchedulesIs) {
  struct Case {
    const char* name;
    int64_t t_max;
    bool by_epoch;
    int64_t warmup_steps;
    int steps_until_zero;
  };
  for (const Case& c : {Case{"linear", 0, false, 0, 20}, Case{"linear", 5, false, 0, 5},
                        Case{"linear", 0, false, 8, 20}, Case{"linear", 3, false, 8, 11}, Case{"linear", 0, true, 0, 4},
                        Case{"linear", 3, true, 0, 3}, Case{"linear", 0, false, 30, 31}}) {
    OptimizerSpec optimizer_spec;
    optimizer_spec.name = "sgd";
    optimizer_spec.options["lr"] = 1.0;
    const auto all = parameters();
    const auto optimizer = make_job_optimizer(optimizer_spec, all);
    ScheduleSpec spec;
    spec.name = c.name;
    spec.t_max = c.t_max;
    spec.by_epoch = c.by_epoch;
    spec.warmup_steps = c.warmup_steps;
    LearningRate rate(spec, *optimizer, /*total_steps=*/20, /*total_epochs=*/4);
    int steps = 0;
    for (; rate.current() > 1e-12 && steps < 100; ++steps) {
      rate.after_step();
      if (c.by_epoch) rate.after_epoch();
    }
    EXPECT_EQ(steps, c.steps_until_zero) << c.name << " " << c.t_max << c.by_epoch << c.warmup_steps;
  }
}

TEST(ProgressMeterTest, PointsAndSpeed) {
  TrainingJob job(JobStatus{});
  ManualClock clock;
  ProgressMeter meter(job, kServerOwner, 10'000, clock);
  for (int64_t step = 1; step <= 1000; ++step) {
    clock.advance_ns(10'000'000);
    meter.add_step({.step = step, .epoch = 0.1, .rows = 32, .loss = static_cast<double>(step), .learning_rate = 0.5});
  }
  meter.add_evaluation(1000, 0.1, {{"loss", 3}});
  const JobProgress progress = job.status().progress;
  EXPECT_EQ(progress.step, 1000);
  EXPECT_EQ(progress.samples, 32'000u);
  EXPECT_NEAR(progress.samples_per_second, 3200, 1);
  EXPECT_NEAR(progress.seconds_left, 90, 1);
  EXPECT_EQ(progress.metrics.at("loss"), 3);
  const auto points = job.points_after(0);
  ASSERT_GT(points.size(), 100u);
  EXPECT_EQ(points[0].step, 5);  // each has the mean of 5 steps
  EXPECT_DOUBLE_EQ(points[0].loss, 3);
  EXPECT_EQ(points.back().metrics.count("loss"), 1u);
}

TEST(ProgressMeterTest, InNoTimeThereIsNoSpeed) {
  TrainingJob job(JobStatus{});
  ManualClock clock;
  ProgressMeter meter(job, kServerOwner, 10, clock);
  meter.add_step({.step = 1, .epoch = 0.1, .rows = 32, .loss = 2, .learning_rate = 0.5});
  meter.flush();
  EXPECT_EQ(job.status().progress.step, 1);
  EXPECT_EQ(job.status().progress.samples_per_second, 0);
  ASSERT_EQ(job.points_after(0).size(), 1U);
  EXPECT_EQ(job.points_after(0)[0].samples_per_second, 0);
}

TEST(FiniteTest, NamesTheFirst) {
  const std::vector<std::pair<std::string, Tensor>> tensors = {
      {"a", floats({2}, {1, -9})}, {"b", floats({2}, {1, NAN})}, {"c", floats({1}, {INFINITY})}};
  EXPECT_EQ(first_non_finite(tensors, false), "b");
  EXPECT_EQ(first_non_finite({tensors[0]}, false), "");
  EXPECT_EQ(first_non_finite(tensors, true), "");  // they have no gradients
  EXPECT_EQ(largest({{"s", floats({1}, {2})}, tensors[0]}).first, "a");
}

}  // namespace
}  // namespace tensord::server::training_pieces_test
