// Losses of labeled samples and normalizations by channel, compared with plain loops: numbers of classes and channels
// around every block, ignored labels, weights, each reduction, all layouts of scores, planes of one pixel.
#include <cmath>

#include "tests/support/operator_rows.h"

namespace tensord::loss_edges_test {
namespace {

using namespace testing_rows;

constexpr int64_t kSizes[] = {1, 2, 3, 7, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129, 255, 256, 257, 513, 1025};

Tensor numbers(const Dims& sizes, uint32_t seed, DType dtype = DType::kFloat64) {
  const Tensor out = Tensor::empty(sizes, DType::kFloat64);
  for (int64_t i = 0; i < out.numel(); ++i) {
    seed = seed * 1664525 + 1013904223;
    out.data<double>()[i] = static_cast<double>((seed >> 20) % 401) / 100 - 2;
  }
  return out.to(dtype);
}
std::vector<double> elements(const Tensor& x) {
  const Tensor dense = x.to(DType::kFloat64).contiguous();
  return {dense.data<double>(), dense.data<double>() + dense.numel()};
}
void expect_near(const Tensor& got, const std::vector<double>& expected, double tolerance) {
  const std::vector<double> have = elements(got);
  ASSERT_EQ(have.size(), expected.size());
  for (size_t i = 0; i < have.size(); ++i) {
    if (std::abs(have[i] - expected[i]) <= tolerance * (1 + std::abs(expected[i])) ||
        (std::isnan(have[i]) && std::isnan(expected[i])))
      continue;
    ADD_FAILURE() << "element " << i << " is " << have[i] << ", expected " << expected[i];
    return;
  }
}

struct Labeled {
  Tensor scores;  // [samples, classes, inner]
  std::vector<int64_t> labels;
  std::vector<double> weight;  // empty: none
  double smoothing = 0;
};

// The loss of each sample, and its weight.
std::pair<std::vector<double>, double> entropies(const Labeled& c) {
  const Dims& s = c.scores.sizes();
  const std::vector<double> x = elements(c.scores);
  std::vector<double> out;
  double total = 0;
  for (int64_t n = 0; n < s[0]; ++n) {
    for (int64_t i = 0; i < s[2]; ++i) {
      const auto at = [&](int64_t k) { return x[static_cast<size_t>((n * s[1] + k) * s[2] + i)]; };
      const auto weight = [&](int64_t k) { return c.weight.empty() ? 1.0 : c.weight[static_cast<size_t>(k)]; };
      const int64_t label = c.labels[static_cast<size_t>(n * s[2] + i)];
      if (label < 0) {
        out.push_back(0);
        continue;
      }
      double max = at(0), sum = 0, smooth = 0;
      for (int64_t k = 0; k < s[1]; ++k) max = std::max(max, at(k));
      for (int64_t k = 0; k < s[1]; ++k) sum += std::exp(at(k) - max);
      const double norm = max + std::log(sum);
      for (int64_t k = 0; k < s[1]; ++k) smooth += weight(k) * (norm - at(k));
      total += weight(label);
      out.push_back((1 - c.smoothing) * weight(label) * (norm - at(label)) +
                    c.smoothing / static_cast<double>(s[1]) * smooth);
    }
  }
  return {out, total};
}

void expect_entropy(const Labeled& c, const Tensor& scores, const Tensor& target, double tolerance) {
  const auto [each, total] = entropies(c);
  double sum = 0;
  for (const double x : each) sum += x;
  const Value weight = c.weight.empty() ? Value() : [&] {
    const Tensor out = Tensor::empty(Dims{static_cast<int64_t>(c.weight.size())}, DType::kFloat64);
    std::copy(c.weight.begin(), c.weight.end(), out.data<double>());
    return Value(out.to(scores.dtype()));
  }();
  const auto loss = [&](int64_t reduction) {
    return run("aten::cross_entropy_loss", {scores, target, weight, reduction, -100, c.smoothing}).to_tensor();
  };
  expect_near(loss(0), each, tolerance);
  expect_near(loss(1), {sum / total}, tolerance);
  expect_near(loss(2), {sum}, tolerance);
}

TEST(LossEdges, CrossEntropies) {
  for (const int64_t classes : kSizes) {
    for (const auto& [samples, inner] : {std::pair<int64_t, int64_t>{1, 1}, {5, 1}, {2, 3}, {1, 300}}) {
      if (classes * inner > 20'000) continue;
      for (const bool is_weighted : {false, true}) {
        for (const double smoothing : {0.0, 0.25}) {
          Labeled c{numbers({samples, classes, inner}, 3), {}, {}, smoothing};
          for (int64_t i = 0; i < samples * inner; ++i)
            c.labels.push_back(i % 4 == 2 ? -100 : i == 0 ? classes - 1 : i * 7 % classes);
          for (int64_t k = 0; is_weighted && k < classes; ++k) c.weight.push_back(k % 3 ? 0.5 : 2);
          SCOPED_TRACE(
              concat(samples, "x", classes, "x", inner, is_weighted ? " weighted" : "", " smoothed by ", smoothing));
          const Tensor target = shaped(longs(c.labels), inner == 1 ? Dims{samples} : Dims{samples, inner});
          for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
            const Tensor cube = c.scores.to(dtype);
            const Tensor scores = inner == 1 ? shaped(cube, {samples, classes}) : cube;
            expect_entropy(c, scores, target, dtype == DType::kFloat32 ? 2e-5 : 1e-10);
            // Classes contiguous in memory or not.
            const Tensor turned =
                run("aten::transpose.int", {run("aten::transpose.int", {scores, 0, 1}).to_tensor().contiguous(), 0, 1})
                    .to_tensor();
            expect_entropy(c, turned, target, dtype == DType::kFloat32 ? 2e-5 : 1e-10);
          }
          if (HasFailure()) return;
        }
      }
    }
  }
}

// One score is far above the others, so that exponentials overflow unless the maximum is subtracted.
TEST(LossEdges, CrossEntropiesOfScoresFarApart) {
  for (const int64_t classes : {2, 5, 17, 40}) {
    for (const int64_t inner : {1, 4, 33}) {
      for (const int64_t high : {int64_t{0}, classes / 2, classes - 1}) {
        SCOPED_TRACE(concat(classes, " classes, ", inner, " places, class ", high));
        Labeled c{numbers({2, classes, inner}, 5), {}, {}, 0};
        for (int64_t n = 0; n < 2; ++n) {
          for (int64_t i = 0; i < inner; ++i) c.scores.data<double>()[(n * classes + high) * inner + i] = 2000;
        }
        for (int64_t i = 0; i < 2 * inner; ++i) c.labels.push_back(i % classes);
        const Tensor target = shaped(longs(c.labels), inner == 1 ? Dims{2} : Dims{2, inner});
        for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
          const Tensor cube = c.scores.to(dtype);
          expect_entropy(c, inner == 1 ? shaped(cube, {2, classes}) : cube, target, 1e-6);
        }
      }
    }
  }
}

TEST(LossEdges, NothingThatCounts) {
  const Tensor scores = ones({3, 4}), all_out = longs({-100, -100, -100});
  for (const char* op : {"aten::nll_loss", "aten::cross_entropy_loss"}) {
    const auto loss = [&](int64_t reduction) { return run(op, {scores, all_out, kNone, reduction, -100}).to_tensor(); };
    expect_near(loss(0), {0, 0, 0}, 0);
    EXPECT_TRUE(std::isnan(loss(1).item_double())) << op;
    EXPECT_EQ(loss(2).item_double(), 0) << op;
    EXPECT_EQ(run(op, {ones({0, 4}), longs({}), kNone, 2, -100}).to_tensor().item_double(), 0) << op;
  }
}

// Checks the mean and variance of each channel (or group) of the result, shifted by weights and biases.
void expect_normed(const Tensor& x, const Tensor& y, int64_t groups, bool by_sample, double eps, double tolerance) {
  const Dims& s = x.sizes();
  const std::vector<double> in = elements(x), out = elements(y);
  const int64_t samples = s[0], channels = s[1], inner = x.numel() / (samples * channels), width = channels / groups;
  const int64_t sets = by_sample ? samples * groups : channels;
  std::vector<double> sums(static_cast<size_t>(sets)), squares(sums.size());
  const double count = static_cast<double>(x.numel() / sets);
  const auto set_of = [&](int64_t i) {
    const int64_t channel = i / inner % channels, sample = i / inner / channels;
    return static_cast<size_t>(by_sample ? sample * groups + channel / width : channel);
  };
  for (int64_t i = 0; i < x.numel(); ++i) sums[set_of(i)] += in[static_cast<size_t>(i)] / count;
  for (int64_t i = 0; i < x.numel(); ++i)
    squares[set_of(i)] += std::pow(in[static_cast<size_t>(i)] - sums[set_of(i)], 2) / count;
  std::vector<double> expected;
  for (int64_t i = 0; i < x.numel(); ++i) {
    const auto channel = static_cast<double>(i / inner % channels);
    const double z = (in[static_cast<size_t>(i)] - sums[set_of(i)]) / std::sqrt(squares[set_of(i)] + eps);
    expected.push_back(z * (1 + channel / 8) - channel / 4);
  }
  expect_near(y, expected, tolerance);
}

TEST(LossEdges, NormsByChannelAndGroup) {
  for (const int64_t channels : {1, 2, 8, 15, 16, 17, 64, 65, 130}) {
    for (const auto& [height, width] : {std::pair<int64_t, int64_t>{1, 1}, {1, 7}, {4, 4}, {9, 31}, {34, 34}}) {
      if (channels > 20 && height > 10) continue;
      for (const int64_t samples : {1, 3}) {
        if (samples * height * width == 1) continue;
        for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
          const Tensor x = numbers({samples, channels, height, width}, 5, dtype);
          const Tensor weight = ones({channels}, DType::kFloat64), bias = ones({channels}, DType::kFloat64);
          for (int64_t c = 0; c < channels; ++c) {
            weight.data<double>()[c] = 1 + static_cast<double>(c) / 8;
            bias.data<double>()[c] = -static_cast<double>(c) / 4;
          }
          const Tensor w = weight.to(dtype), b = bias.to(dtype);
          const double tolerance = dtype == DType::kFloat32 ? 1e-4 : 1e-9;
          for (const Tensor& laid : {x, run("aten::contiguous", {x, int64_t{2}}).to_tensor()}) {
            SCOPED_TRACE(concat(name_of(dtype), to_string(x.sizes()), laid.is_contiguous() ? "" : " channels last"));
            expect_normed(x, run("aten::batch_norm", {laid, w, b, kNone, kNone, true, 0.1, 0.125, false}).to_tensor(),
                          channels, false, 0.125, tolerance);
            expect_normed(x,
                          run("aten::instance_norm", {laid, w, b, kNone, kNone, true, 0.1, 0.125, false}).to_tensor(),
                          channels, true, 0.125, tolerance);
            for (const int64_t groups : {int64_t{1}, int64_t{2}, channels}) {
              if (channels % groups != 0) continue;
              expect_normed(x, run("aten::group_norm", {laid, groups, w, b, 0.125, false}).to_tensor(), groups, true,
                            0.125, tolerance);
            }
          }
          if (HasFailure()) return;
        }
      }
    }
  }
}

// Running means and variances move towards the batch's; the variance is unbiased.
TEST(LossEdges, RunningStatistics) {
  const Tensor x = numbers({4, 3, 5}, 9, DType::kFloat32), mean = ones({3}), var = ones({3});
  run("aten::batch_norm", {x, kNone, kNone, mean, var, true, 0.25, 1e-5, false});
  const std::vector<double> in = elements(x);
  for (int64_t c = 0; c < 3; ++c) {
    double sum = 0, square = 0;
    for (int64_t i = 0; i < 60; ++i) sum += i / 5 % 3 == c ? in[static_cast<size_t>(i)] / 20 : 0;
    for (int64_t i = 0; i < 60; ++i) square += i / 5 % 3 == c ? std::pow(in[static_cast<size_t>(i)] - sum, 2) / 19 : 0;
    EXPECT_NEAR(mean.data<float>()[c], 0.75 + 0.25 * sum, 1e-5);
    EXPECT_NEAR(var.data<float>()[c], 0.75 + 0.25 * square, 1e-5);
  }
  const Tensor plain = run("aten::batch_norm", {x, kNone, kNone, mean, var, false, 0.25, 0.0, false}).to_tensor();
  std::vector<double> expected = in;
  for (size_t i = 0; i < expected.size(); ++i) {
    const auto c = static_cast<int64_t>(i / 5 % 3);
    expected[i] = (in[i] - mean.data<float>()[c]) / std::sqrt(var.data<float>()[c]);
  }
  expect_near(plain, expected, 1e-5);
}

}  // namespace
}  // namespace tensord::loss_edges_test
