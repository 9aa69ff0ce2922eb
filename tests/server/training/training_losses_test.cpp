// The losses of a job by their values, the labels they accept, and what evaluation counts, each at its limits.
#include <gmock/gmock.h>

#include <cmath>

#include "server/training/builtin_loss.h"
#include "server/training/evaluation_metrics.h"
#include "server/training/non_finite.h"
#include "tests/server/error_of.h"

namespace tensord::server::training_losses_test {
namespace {

using ::testing::HasSubstr;

Tensor floats(const Dims& shape, std::initializer_list<float> values) {
  Tensor tensor = Tensor::empty(shape, DType::kFloat32);
  std::copy(values.begin(), values.end(), tensor.data<float>());
  return tensor;
}

Tensor ints(const Dims& shape, std::initializer_list<int64_t> values) {
  Tensor tensor = Tensor::empty(shape, DType::kInt64);
  std::copy(values.begin(), values.end(), tensor.data<int64_t>());
  return tensor;
}

LossSpec loss_of(const std::string& builtin) {
  LossSpec spec;
  spec.builtin = builtin;
  spec.label = "y";
  return spec;
}

double value_of(const LossSpec& spec, const Tensor& output, const Tensor& label) {
  return builtin_loss(spec, output, label).item_double();
}

std::string refusal(const std::string& name, const Tensor& output, const Tensor& label) {
  const Error error = error_of([&] { builtin_loss(loss_of(name), output, label); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  return error.what();
}

// Output 0.5 and 0.25 with labels 1 and 3, computed by hand.
TEST(TrainingLossesTest, EachOfThemByItsValue) {
  const Tensor output = floats({2}, {0.5F, 0.25F}), label = floats({2}, {1, 3}), bits = floats({2}, {1, 0});
  struct Case {
    std::string name;
    Tensor label;
    std::optional<double> delta;
    double expected;
  };
  const double sigmoid_losses = (std::log1p(std::exp(-0.5)) + std::log1p(std::exp(0.25))) / 2;
  for (const Case& c :
       {Case{"mse", label, {}, (0.25 + 2.75 * 2.75) / 2}, Case{"l1", label, {}, (0.5 + 2.75) / 2},
        Case{"smooth_l1", label, {}, (0.125 + 2.25) / 2}, Case{"smooth_l1", label, 2.0, (0.0625 + 1.75) / 2},
        Case{"huber", label, {}, (0.125 + 2.25) / 2}, Case{"huber", label, 2.0, (0.125 + 3.5) / 2},
        Case{"bce", bits, {}, -(std::log(0.5) + std::log(0.75)) / 2},
        Case{"kl_div", label, {}, (-0.5 + 3 * (std::log(3.0) - 0.25)) / 2},
        Case{"bce_with_logits", bits, {}, sigmoid_losses}}) {
    LossSpec spec = loss_of(c.name);
    spec.delta = c.delta;
    EXPECT_NEAR(value_of(spec, output, c.label), c.expected, 1e-5) << c.name;
  }
  EXPECT_THAT(refusal("other", output, label), HasSubstr("loss.builtin: 'other' is not known"));
}

TEST(TrainingLossesTest, LossesOfClasses) {
  const Tensor logs = floats({2, 2}, {-1, -2, -3, -4});
  EXPECT_NEAR(value_of(loss_of("nll"), logs, ints({2}, {0, 1})), 2.5, 1e-6);
  EXPECT_NEAR(value_of(loss_of("cross_entropy"), logs, ints({2}, {0, 1})), std::log1p(std::exp(-1.0)) + 0.5, 1e-5);
  // Class probabilities instead of class indices.
  EXPECT_NEAR(value_of(loss_of("cross_entropy"), logs, floats({2, 2}, {1, 0, 0, 1})), std::log1p(std::exp(-1.0)) + 0.5,
              1e-5);
  EXPECT_THAT(refusal("nll", logs, floats({2}, {0, 1})), HasSubstr("loss.label: 'y' must hold the numbers of classes"));
  EXPECT_NEAR(value_of(loss_of("nll"), floats({2}, {-1, -2}), ints({}, {1})), 2, 1e-6);
  for (const char* name : {"nll", "cross_entropy"}) {
    EXPECT_THAT(refusal(name, floats({}, {-1}), ints({}, {0})), HasSubstr("a single number has no classes"));
    EXPECT_THAT(refusal(name, logs, ints({2}, {0, 2})),
                HasSubstr("'y' has 2 at place 1, but the output has 2 classes"));
    EXPECT_THAT(refusal(name, logs, ints({2}, {-1, 1})), HasSubstr("'y' has -1 at place 0"));
    EXPECT_THAT(refusal(name, floats({2}, {-1, -2}), ints({}, {2})), HasSubstr("but the output has 2 classes"));
  }
}

TEST(TrainingLossesTest, TheClassToIgnoreIsTheJobsOrPyTorchs) {
  const Tensor logs = floats({2, 2}, {-1, -2, -3, -4});
  LossSpec spec = loss_of("nll");
  EXPECT_NEAR(value_of(spec, logs, ints({2}, {0, -100})), 1, 1e-6);
  spec.ignore_index = 7;
  EXPECT_NEAR(value_of(spec, logs, ints({2}, {7, 1})), 4, 1e-6);
  EXPECT_THROW(value_of(spec, logs, ints({2}, {0, -100})), Error);
}

TEST(TrainingLossesTest, OnlyAColumnOfClassesIsARow) {
  EXPECT_NEAR(value_of(loss_of("nll"), floats({2, 2}, {-1, -2, -3, -4}), ints({2, 1}, {0, 1})), 2.5, 1e-6);
  // Pixels of an image of width one: two-dimensional labels for a three-dimensional output.
  EXPECT_NEAR(value_of(loss_of("nll"), floats({2, 2, 1}, {-1, -2, -3, -4}), ints({2, 1}, {0, 1})), 2.5, 1e-6);
  EXPECT_THROW(value_of(loss_of("nll"), floats({2, 2}, {-1, -2, -3, -4}), ints({2, 2}, {0, 1, 0, 1})), Error);
}

TEST(TrainingLossesTest, LabelsOfNumbersGetTheOutputsShapeAndType) {
  const Tensor output = floats({2, 1}, {1, 2});
  EXPECT_NEAR(value_of(loss_of("mse"), output, ints({2}, {2, 4})), 2.5, 1e-6);
  EXPECT_NEAR(value_of(loss_of("mse"), output, ints({1, 2}, {2, 4}).as_view({2}, {1}, 0)), 2.5, 1e-6);
  const Tensor square = floats({2, 2}, {1, 2, 3, 4});
  // Transposed labels keep their positions.
  EXPECT_NEAR(value_of(loss_of("mse"), square, square.as_view({2, 2}, {1, 2}, 0)), 0.5, 1e-6);
  EXPECT_NEAR(value_of(loss_of("mse"), floats({4}, {1, 3, 2, 4}), square.as_view({2, 2}, {1, 2}, 0)), 0, 1e-6);
  EXPECT_THAT(refusal("mse", output, ints({3}, {1, 2, 3})), HasSubstr("loss.label: 'y' has shape"));
}

TEST(TrainingLossesTest, ProbabilitiesAreToldFromScores) {
  const auto is_warned = [](const Tensor& output) {
    return !check_first_output(loss_of("cross_entropy"), output).empty();
  };
  EXPECT_TRUE(is_warned(floats({4, 2}, {1, 0, 0, 1, 0.5F, 0.5F, 1, 0})));  // a probability may be 0
  EXPECT_FALSE(is_warned(floats({4, 2}, {1.5F, -0.5F, 0, 1, 0.5F, 0.5F, 1, 0})));
  EXPECT_FALSE(is_warned(floats({2, 4}, {0.25F, 0.25F, 0.25F, 0.25F, 1, 0, 0, 0})));  // too few rows
  EXPECT_FALSE(is_warned(floats({}, {1})));
  EXPECT_FALSE(is_warned(ints({4, 2}, {1, 0, 0, 1, 1, 0, 0, 1})));  // the loss refuses these itself
  EXPECT_FALSE(is_warned(floats({8}, {0.125F, 0.125F, 0.125F, 0.125F, 0.125F, 0.125F, 0.125F, 0.125F})));
  EXPECT_TRUE(is_warned(floats({1, 2, 4}, {0.5F, 0.25F, 1, 0, 0.5F, 0.75F, 0, 1})));
  EXPECT_FALSE(is_warned(floats({1, 2, 4}, {0.5F, 0.25F, 1, 0, 0.5F, 0.75F, 0, 0.5F})));
  const Tensor bound = Tensor::scalar(1e-4).as_view({1}, {1}, 0);
  for (const char* name : {"nll", "kl_div"}) {
    EXPECT_NO_THROW(check_first_output(loss_of(name), floats({2}, {0, -1})));
    EXPECT_NO_THROW(check_first_output(loss_of(name), floats({2}, {0.00005F, -1})));  // a rounded 0
    EXPECT_THROW(check_first_output(loss_of(name), floats({2}, {0.001F, -1})), Error);
    EXPECT_NO_THROW(check_first_output(loss_of(name), bound));
  }
}

double metric_of(const std::string& name, const Tensor& output, const Tensor& label, LossSpec spec = {}) {
  EvaluationMetrics metrics({name}, std::move(spec));
  metrics.add(0, output.ndim() > 0 ? output.size(0) : 1, output, label);
  return metrics.means().at(name);
}

TEST(TrainingLossesTest, AccuracyCountsWhatIsNoClassAsWrong) {
  const Tensor scores = floats({3, 2}, {2, 1, 2, 1, 2, 1});
  EXPECT_DOUBLE_EQ(metric_of("accuracy", scores, ints({3}, {0, 0, 0})), 1);
  EXPECT_DOUBLE_EQ(metric_of("accuracy", scores, ints({3}, {0, -1, 2})), 1.0 / 3);
  // Elements after a row's scores do not count as scores.
  EXPECT_DOUBLE_EQ(metric_of("accuracy", floats({2, 2}, {2, 1, 9, 1}), ints({2}, {2, 0})), 0.5);
  EXPECT_DOUBLE_EQ(metric_of("accuracy", scores, ints({3}, {0, 1, -100})), 0.5);
  LossSpec spec;
  spec.ignore_index = 1;
  EXPECT_DOUBLE_EQ(metric_of("accuracy", scores, ints({3}, {0, 1, -100}), spec), 0.5);
  EXPECT_DOUBLE_EQ(metric_of("accuracy", floats({1, 2}, {NAN, 1}), ints({1}, {0})), 0);
  // Of equal scores the first class wins.
  EXPECT_DOUBLE_EQ(metric_of("accuracy", floats({2, 2}, {1, 1, 1, 1}), ints({2}, {0, 1})), 0.5);
  EXPECT_TRUE(std::isnan(metric_of("accuracy", scores, ints({3}, {-100, -100, -100}))));
  EXPECT_THROW(metric_of("accuracy", scores, ints({2}, {0, 1})), Error);
}

TEST(TrainingLossesTest, AccuracyOfOneScoreIsOnWhichSideItLies) {
  const Tensor scores = floats({4, 1}, {0, 0.1F, 0.5F, 0.6F}), labels = floats({4}, {0, 1, 0.5F, 1});
  EXPECT_DOUBLE_EQ(metric_of("accuracy", scores, labels), 0.75);
  LossSpec chances;
  chances.builtin = "bce";
  EXPECT_DOUBLE_EQ(metric_of("accuracy", scores, labels, chances), 0.75);
  EXPECT_DOUBLE_EQ(metric_of("accuracy", floats({2}, {1, -1}), floats({2}, {1, 1})), 0.5);
  EXPECT_THROW(metric_of("accuracy", floats({2}, {1, -1}), floats({3}, {1, 1, 1})), Error);
  EXPECT_THROW(metric_of("mae", floats({2}, {1, -1}), floats({3}, {1, 1, 1})), Error);
}

TEST(TrainingLossesTest, TheLargestAndTheFirstThatIsNotFinite) {
  using Named = std::vector<std::pair<std::string, Tensor>>;
  EXPECT_EQ(largest(Named{{"a", floats({2}, {0, 0})}, {"b", floats({2}, {0, 0})}}).first, "a");
  EXPECT_EQ(largest(Named{{"a", floats({2}, {1, -3})}, {"b", floats({2}, {2, 3})}}),
            (std::pair<std::string, double>{"a", 3}));
  EXPECT_EQ(largest(Named{{"a", floats({2}, {1, 2})}, {"b", floats({3}, {0, -9, 1})}}),
            (std::pair<std::string, double>{"b", 9}));
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    for (const auto& values : {floats({3}, {bad, 0, 1}), floats({3}, {0, 0, bad}), floats({3}, {0, bad, 1})}) {
      EXPECT_EQ(first_non_finite(Named{{"a", floats({1}, {1})}, {"b", values}, {"c", values}}, false), "b");
    }
  }
  EXPECT_EQ(first_non_finite(Named{{"a", floats({1}, {1})}, {"n", Tensor()}}, false), "");
  EXPECT_EQ(first_non_finite(Named{{"a", floats({1}, {NAN})}}, true), "");  // it has no gradient
}

}  // namespace
}  // namespace tensord::server::training_losses_test
