// Limits of layers, losses and random numbers: values at them are accepted, values beyond are refused; see
// bounds_of_calls_test.
#include <cmath>
#include <limits>

#include "tests/support/operator_rows.h"

namespace tensord::bounds_of_layers_test {
namespace {

using namespace testing_rows;

TEST(BoundsOfLayers, NormsAndPools) {
  const Tensor image = ones({1, 2, 4, 4}), g = ones({1, 2, 2, 2});
  const auto norm = [&](const Tensor& x, int64_t groups) {
    return std::vector<Value>{x, x, groups, kNone, 1e-5, ops::make_list(ops::bool_type(), {true, false, false})};
  };
  const auto places = [](int64_t first) {
    const Tensor out = shaped(longs(std::vector<int64_t>(8, 0)), {1, 2, 2, 2});
    out.data<int64_t>()[0] = first;
    return out;
  };
  const auto unpool = [&](int64_t first, const Dims& size) { return std::vector<Value>{g, places(first), ints(size)}; };
  const auto scatter = [&](int64_t first, int64_t spatial = 2) {
    return std::vector<Value>{g, image, places(first), spatial};
  };
  const auto pool = [&](const Dims& kernel, const Dims& stride, const Dims& padding, const Dims& dilation) {
    return std::vector<Value>{image, ints(kernel), ints(stride), ints(padding), ints(dilation)};
  };
  const auto average = [&](const Value& divisor) {
    return std::vector<Value>{g, image, ints({2, 2}), ints({2, 2}), ints({0, 0}), false, true, divisor};
  };
  const int64_t huge = int64_t{1} << 31;
  const char *const kUnpool = "aten::max_unpool2d", *const kScatter = "tensord::max_pool_scatter",
                    *const kPool = "aten::max_pool2d", *const kNorm = "tensord::group_norm_backward";
  expect_rows({
      {kNorm, norm(image, 1), kTaken},
      {kNorm, norm(image, 2), kTaken},
      {kNorm, norm(image, 0), "the channels cannot be cut into 0 groups"},
      {kNorm, norm(image, -1), "the channels cannot be cut into -1 groups"},
      {kNorm, norm(image, 3), "the channels cannot be cut into 3 groups"},
      {kNorm, norm(ones({4}), 1), "the channels cannot be cut into 1 groups"},
      {kUnpool, unpool(15, {4, 4}), kTaken},
      {kUnpool, unpool(16, {4, 4}), "Found an invalid max index: 16"},
      {kUnpool, unpool(-1, {4, 4}), "Found an invalid max index: -1"},
      {kUnpool, unpool(0, {1, 1}), kTaken},
      {kUnpool, unpool(0, {0, 4}), "output_size must be positive"},
      {kUnpool, unpool(0, {int64_t{1} << 40, int64_t{1} << 40}), "output_size must be positive"},
      {kScatter, scatter(15), kTaken},
      {kScatter, scatter(16), "found an invalid max index: 16"},
      {kScatter, scatter(-1), "found an invalid max index: -1"},
      {kScatter, scatter(0, 1), "the input has 4 dimensions"},
      {kPool, pool({2, 2}, {}, {1, 1}, {1, 1}), kTaken},
      {kPool, pool({2, 2}, {}, {2, 1}, {1, 1}), "pad should be smaller than or equal to half of kernel size"},
      {kPool, pool({2, 2}, {}, {1, 2}, {1, 1}), "pad should be smaller than or equal to half of kernel size"},
      {kPool, pool({2, 2}, {}, {-1, 0}, {1, 1}), "pad should be smaller than or equal to half of kernel size"},
      {kPool, pool({0, 2}, {1, 1}, {0, 0}, {1, 1}), "kernel size should be greater than zero"},
      {kPool, pool({2, huge}, {1, 1}, {0, 0}, {1, 1}), "kernel size should be greater than zero"},
      {kPool, pool({2, 2}, {0, 1}, {0, 0}, {1, 1}), "stride should be greater than zero"},
      {kPool, pool({2, 2}, {1, huge}, {0, 0}, {1, 1}), "stride should be greater than zero"},
      {kPool, pool({2, 2}, {1, huge - 1}, {0, 0}, {1, 1}), kTaken},
      {kPool, pool({2, 2}, {1, 1}, {0, 0}, {0, 1}), "dilation should be greater than zero"},
      {kPool, pool({2, 2}, {1, 1}, {0, 0}, {1, huge}), "dilation should be greater than zero"},
      {kPool, pool({1, 1}, {1, 1}, {0, 0}, {1, huge - 1}), kTaken},
      {"aten::avg_pool2d_backward", average(4), kTaken},
      {"aten::avg_pool2d_backward", average(kNone), kTaken},
      {"aten::avg_pool2d_backward", average(0), "divisor must be not zero"},
      {"aten::adaptive_avg_pool2d", {image, ints({2})}, kTaken},
      {"aten::adaptive_avg_pool2d", {image, ints({2, 2, 2})}, "output_size must be 2"},
      {"aten::adaptive_max_pool2d", {image, ints({0, 2})}, kTaken},
      {"aten::adaptive_max_pool2d", {image, ints({-1, 2})}, "must be greater than or equal to 0"},
      {"aten::adaptive_max_pool2d", {meta({1, 2, 4, 4}), ints({1 << 24, 1})}, "greater than or equal to 0"},
      {"aten::adaptive_max_pool2d", {meta({1, 2, 4, 4}), ints({(1 << 24) - 1, 1})}, kShapesOnly},
  });
}

TEST(BoundsOfLayers, Losses) {
  const Tensor scores = ones({2, 3}), labels = longs({0, 2}), x = ones({3});
  const auto nll = [&](const Tensor& target, const Value& weight = Value(), int64_t reduction = 1) {
    return std::vector<Value>{scores, target, weight, reduction, -100};
  };
  const auto entropy = [&](double smoothing, int64_t reduction = 1) {
    return std::vector<Value>{scores, labels, kNone, reduction, -100, smoothing};
  };
  const auto backward = [&](const Tensor& moments, const Tensor& total) {
    return std::vector<Value>{ones({}), scores, labels, kNone, 1, -100, 0.0, moments, total};
  };
  const auto margin = [&](double p, const Value& weight = Value(), int64_t reduction = 1) {
    return std::vector<Value>{scores, labels, p, 1.0, weight, reduction};
  };
  const auto ctc = [](int64_t blank, const Tensor& targets, const Dims& in = {4, 4}, const Dims& out = {2, 2}) {
    return std::vector<Value>{ones({4, 2, 3}), targets, ints(in), ints(out), blank};
  };
  const Tensor targets = shaped(longs({1, 2, 1, 2}), {2, 2}), flat = longs({1, 2, 1, 2});
  const char *const kNll = "aten::nll_loss", *const kEntropy = "aten::cross_entropy_loss",
                    *const kBackward = "tensord::cross_entropy_backward", *const kMargin = "aten::multi_margin_loss",
                    *const kCtc = "aten::ctc_loss.IntList";
  expect_rows({
      {kNll, nll(labels), kTaken},
      {kNll, nll(labels.to(DType::kUInt8)), kTaken},
      {kNll, nll(labels.to(DType::kInt32)), "expected scalar type Long but found int32"},
      {kNll, nll(labels, x), kTaken},
      {kNll, nll(labels, ones({2})), "weight tensor should be defined either for all 3 classes"},
      {kNll, nll(labels, ones({1, 3})), "weight tensor should be defined either for all 3 classes"},
      {kNll, nll(labels, kNone, 0), kTaken},
      {kNll, nll(labels, kNone, 2), kTaken},
      {kNll, nll(labels, kNone, -1), "-1 is not a valid value for reduction"},
      {kNll, nll(labels, kNone, 3), "3 is not a valid value for reduction"},
      {kNll, nll(longs({0, 3})), "Target 3 is out of bounds"},
      {kNll, nll(longs({0, -1})), "Target -1 is out of bounds"},
      {kNll, nll(longs({0, -100})), kTaken},
      {kNll, {x, longs({1}), kNone, 1, -100}, kTaken},
      {kNll, {x, shaped(longs({1}), {}), kNone, 1, -100}, kTaken},
      {kNll, {x, longs({0, 1}), kNone, 1, -100}, "the target must be a single label"},
      {kNll, {x, shaped(longs({1}), {1, 1}), kNone, 1, -100}, "the target must be a single label"},
      {"aten::nll_loss2d", {scores, labels, kNone, 1, -100}, "only batches of spatial targets supported"},
      {"aten::nll_loss2d", {ones({2, 3, 1, 1}), labels, kNone, 1, -100}, "only batches of spatial targets supported"},
      {"aten::nll_loss2d", {ones({2, 3, 1, 1}), shaped(labels, {2, 1, 1}), kNone, 1, -100}, kTaken},
      {kEntropy, entropy(0), kTaken},
      {kEntropy, entropy(1), kTaken},
      {kEntropy, entropy(-1e-9), "label_smoothing must be between 0.0 and 1.0"},
      {kEntropy, entropy(1 + 1e-9), "label_smoothing must be between 0.0 and 1.0"},
      {kEntropy, entropy(0, 3), "3 is not a valid value for reduction"},
      {kEntropy, entropy(0, -1), "-1 is not a valid value for reduction"},
      {kEntropy, {ones({2, 0}), labels}, "there are no classes"},
      {kEntropy, {ones({0, 0}), longs({})}, kTaken},
      {kBackward, backward(ones({4}), ones({})), kTaken},
      {kBackward, backward(ones({3}), ones({})), "the moments are of size"},
      {kBackward, backward(ones({4}, DType::kFloat64), ones({})), "the moments are of size"},
      {kBackward, backward(ones({1}).as_view(Dims{4}, Dims{0}, 0), ones({})), "the moments are of size"},
      {kBackward, backward(ones({4}), ones({2})), "the moments are of size"},
      {kMargin, margin(1), kTaken},
      {kMargin, margin(2), kTaken},
      {kMargin, margin(1.5), "only p == 1 and p == 2 supported"},
      {kMargin, margin(1, x), kTaken},
      {kMargin, margin(1, kNone, -1), "-1 is not a valid value for reduction"},
      {kMargin, margin(1, kNone, 3), "3 is not a valid value for reduction"},
      {"aten::mse_loss", {x, x, -1}, "-1 is not a valid value for reduction"},
      {"aten::mse_loss", {x, x, 3}, "3 is not a valid value for reduction"},
      {"aten::mse_loss", {x, x, 2}, kTaken},
      {kCtc, ctc(0, targets), kTaken},
      {kCtc, ctc(2, shaped(longs({0, 1, 0, 1}), {2, 2})), kTaken},
      {kCtc, ctc(3, targets), "blank must be in label range"},
      {kCtc, ctc(-1, targets), "blank must be in label range"},
      {kCtc, ctc(0, targets.to(kFloat)), "targets must be integers"},
      {kCtc, ctc(0, shaped(longs({1, 3, 1, 2}), {2, 2})), "target 3 is out of bounds for 3 classes"},
      {kCtc, ctc(0, shaped(longs({1, 2, -1, 2}), {2, 2})), "target -1 is out of bounds for 3 classes"},
      {kCtc, ctc(0, targets, {4, 5}), "Expected input_lengths to have value at most 4, but got value 5"},
      {kCtc, ctc(0, targets, {4, -1}), "Expected input_lengths to have value at most 4, but got value -1"},
      {kCtc, ctc(0, targets, {4, 0}), kTaken},
      {kCtc, ctc(0, targets, {4, 4}, {2, 3}), "Expected tensor to have size at least 3"},
      {kCtc, ctc(0, targets, {4, 4}, {2, -1}), "Expected tensor to have size at least -1"},
      {kCtc, ctc(0, targets, {4, 4}, {2, 0}), kTaken},
      {kCtc, ctc(0, flat), kTaken},
      {kCtc, ctc(0, flat, {4, 4}, {2, 3}), "Expected targets to have size at least 5, but got 4"},
      {kCtc, ctc(0, shaped(flat, {4, 1})), "targets must have 1 dimension, or one row for each"},
      {"aten::cosine_embedding_loss", {scores, scores, ones({2})}, kTaken},
      {"aten::cosine_embedding_loss", {scores, x, ones({2})}, "1D target tensor expects 2D input tensors"},
      {"aten::cosine_embedding_loss", {x, scores, ones({2})}, "1D target tensor expects 2D input tensors"},
      {"aten::cosine_embedding_loss", {x, x, ones({})}, kTaken},
      {"aten::cosine_embedding_loss", {scores, x, ones({})}, "0D target tensor expects 1D input tensors"},
      {"aten::cosine_embedding_loss", {x, scores, ones({})}, "0D target tensor expects 1D input tensors"},
  });
}

TEST(BoundsOfLayers, RandomNumbers) {
  const auto x = [] { return ones({3}); };
  const Tensor chances = floats({0, 1}), none = longs({});
  const double tiny = std::numeric_limits<double>::denorm_min();
  const int64_t many = int64_t{1} << 24;
  const float inf = std::numeric_limits<float>::infinity();
  const char *const kMultinomial = "aten::multinomial", *const kBinomial = "aten::binomial";
  expect_rows({
      {"aten::exponential_", {x(), tiny}, kTaken},
      {"aten::exponential_", {x(), 0.0}, "expects lambda > 0.0"},
      {"aten::cauchy_", {x(), 0.0, tiny}, kTaken},
      {"aten::cauchy_", {x(), 0.0, 0.0}, "expects sigma > 0.0"},
      {"aten::log_normal_", {x(), 0.0, 0.0}, "expects std > 0.0"},
      {"aten::geometric_", {x(), 0.5}, kTaken},
      {"aten::geometric_", {x(), 0.0}, "expects p to be in (0, 1)"},
      {"aten::geometric_", {x(), 1.0}, "expects p to be in (0, 1)"},
      {"aten::geometric_", {ones({2}, DType::kBool), 0.5}, "geometric_"},
      {"aten::bernoulli_.float", {x(), 0.0}, kTaken},
      {"aten::bernoulli_.float", {x(), 1.0}, kTaken},
      {"aten::bernoulli_.float", {x(), -tiny}, "expects p to be in [0, 1]"},
      {"aten::bernoulli_.float", {x(), 1 + 1e-9}, "expects p to be in [0, 1]"},
      {"aten::bernoulli", {chances}, kTaken},
      {"aten::bernoulli", {floats({0, 1.5f})}, "Expected p_in >= 0 && p_in <= 1"},
      {"aten::bernoulli", {floats({-0.5f, 1})}, "Expected p_in >= 0 && p_in <= 1"},
      {"aten::uniform_", {x(), 1.0, 1.0}, kTaken},
      {"aten::normal_", {x(), 1.0, 0.0}, kTaken},
      {"aten::random_.from", {x(), 2, 3}, kTaken},
      {"aten::random_.from", {x(), 2, 2}, "expects 'from' to be less than 'to'"},
      {"aten::randperm", {0}, kTaken},
      {"aten::randperm", {-1}, "n must be non-negative"},
      {"aten::dropout", {x(), 0.0, true}, kTaken},
      {"aten::dropout", {x(), 1.0, true}, kTaken},
      {"aten::dropout", {x(), 1 + 1e-9, true}, "dropout probability has to be between 0 and 1"},
      {"aten::dropout", {x(), -1e-9, false}, "dropout probability has to be between 0 and 1"},
      {"aten::native_dropout", {x(), 2.0, true}, "dropout probability has to be between 0 and 1"},
      {"aten::feature_dropout", {x(), 0.5, true}, "requires at least 2 dimensions"},
      {"aten::feature_dropout", {ones({2, 2}), 0.5, true}, kTaken},
      {"aten::rrelu", {x(), 0.2, 0.2, true}, kTaken},
      {"aten::rrelu", {x(), 0.3, 0.2, true}, "should be less than or equal to the upper bound"},
      {"aten::rrelu", {longs({1}), 0.1, 0.2, true}, "rrelu: not implemented for int64"},
      {kMultinomial, {ones({3}), 3, false}, kTaken},
      {kMultinomial, {ones({3}), 4, false}, "without replacement"},
      {kMultinomial, {ones({3}), 4, true}, kTaken},
      {kMultinomial, {ones({3}), 0, true}, "cannot sample n_sample <= 0 samples"},
      {kMultinomial, {ones({2, 3}), 1, false}, kTaken},
      {kMultinomial, {ones({0, 3}), 1, false}, kTaken},
      {kMultinomial, {ones({1, 2, 3}), 1, false}, "prob_dist must be 1 or 2 dim"},
      {kMultinomial, {ones({}), 1, false}, "prob_dist must be 1 or 2 dim"},
      {kMultinomial, {meta({many - 1}), 1, false}, kTaken},
      {kMultinomial, {meta({many}), 1, false}, "number of categories cannot exceed 2^24"},
      {kMultinomial, {longs({1, 1}), 1, false}, "only supports floating-point dtypes"},
      {kMultinomial, {floats({1, -1}), 1, false}, "either `inf`, `nan` or element < 0"},
      {kMultinomial, {floats({1, inf}), 1, false}, "either `inf`, `nan` or element < 0"},
      {kMultinomial, {floats({1, NAN}), 1, false}, "either `inf`, `nan` or element < 0"},
      {kMultinomial, {floats({0, 0}), 1, false}, "sum of probabilities <= 0"},
      {kBinomial, {floats({3, 3}), chances}, kTaken},
      {kBinomial, {ones({2}, DType::kFloat64), chances.to(DType::kFloat64)}, kTaken},
      {kBinomial, {longs({3, 3}), chances}, "only supports floating-point dtypes for count, got: int64"},
      {kBinomial, {ones({2}, DType::kFloat16), chances}, "only supports floating-point dtypes for count"},
      {kBinomial, {ones({2}), chances.to(DType::kFloat64)}, "Found dtype float64 but expected float32"},
      {kBinomial, {floats({3, 3}), floats({0, 1.5f})}, "a chance between 0 and 1"},
      {kBinomial, {floats({3, 3}), floats({-0.5f, 1})}, "a chance between 0 and 1"},
      {kBinomial, {floats({3, inf}), chances}, "expected a finite count"},
  });
  // Probabilities 0 and 1 give certain results.
  const Tensor drawn = ops::call_by_name("aten::binomial", floats({3, 3}), chances, kNone);
  EXPECT_EQ(drawn.data<float>()[0], 0);
  EXPECT_EQ(drawn.data<float>()[1], 3);
}

TEST(BoundsOfLayers, Layers) {
  const Tensor x = ones({2, 3}), vector = ones({3}), image = ones({1, 1, 4, 4}), kernel = ones({1, 1, 3, 3});
  const auto conv = [&](const Tensor& of, const Tensor& weight, int64_t stride, int64_t padding, int64_t dilation,
                        bool is_transposed = false, int64_t more = 0, int64_t groups = 1) {
    return std::vector<Value>{of,
                              weight,
                              kNone,
                              ints({stride, stride}),
                              ints({padding, padding}),
                              ints({dilation, dilation}),
                              is_transposed,
                              ints({more, more}),
                              groups};
  };
  const int64_t huge = int64_t{1} << 30;
  const char *const kConv = "aten::convolution", *const kCdist = "aten::cdist", *const kLinear = "aten::linear";
  expect_rows({
      {kLinear, {x, ones({4, 3}), kNone}, kTaken},
      {kLinear, {x, vector, kNone}, kTaken},
      {kLinear, {x, ones({1, 4, 3}), kNone}, "weight must be 1-D or 2-D"},
      {kLinear, {x, ones({}), kNone}, "weight must be 1-D or 2-D"},
      {kLinear, {x, ones({4, 3}, DType::kFloat64), kNone}, "to have the same dtype"},
      {kLinear, {x, ones({4, 3}), ones({4}, DType::kFloat64)}, "to have the same dtype"},
      {kLinear, {x, ones({4, 3}), ones({3, 1, 4})}, "must match the existing size of the bias"},
      {"aten::matmul", {x, ones({}, kFloat)}, "both arguments to matmul need to be at least 1D"},
      {"aten::matmul", {ones({}), x}, "both arguments to matmul need to be at least 1D"},
      {"aten::matmul", {x, ones({3, 2}, DType::kFloat64)}, "to have the same dtype"},
      {"aten::mv", {x, ones({3, 1})}, "vector + matrix @ vector expected"},
      {"aten::mv", {vector, vector}, "vector + matrix @ vector expected"},
      {"aten::dot", {vector, x}, "1D tensors expected"},
      {"aten::dot", {x, vector}, "1D tensors expected"},
      {"aten::outer", {vector, x}, "outer: expected two 1-D tensors"},
      {"aten::outer", {x, vector}, "outer: expected two 1-D tensors"},
      {"aten::einsum", {"i..j", tensors({x})}, "not part of any ellipsis"},
      {"aten::einsum", {"...i...j", tensors({x})}, "not part of any ellipsis"},
      {"aten::einsum", {"...i", tensors({x})}, kTaken},
      {kCdist, {x, x, 2.0, 0}, kTaken},
      {kCdist, {x, x, 2.0, 2}, kTaken},
      {kCdist, {x, x, 2.0, 3}, "possible modes: 0, 1, 2, but was: 3"},
      {kCdist, {x, x, 2.0, -1}, "possible modes: 0, 1, 2, but was: -1"},
      {kCdist, {shaped(longs({1, 2, 3}), {1, 3}), x, 2.0, kNone}, "cdist only supports floating-point"},
      {kCdist, {ones({1, 3}), shaped(longs({1, 2, 3}), {1, 3}), 2.0, kNone}, "cdist only supports"},
      {kCdist, {vector, x, 2.0, kNone}, "cdist only supports at least 2D tensors, X1 got: 1D"},
      {kCdist, {x, vector, 2.0, kNone}, "cdist only supports at least 2D tensors, X2 got: 1D"},
      {"aten::baddbmm", {ones({5, 1, 2, 2}), ones({1, 2, 3}), ones({1, 3, 2})}, "baddbmm: the expanded size"},
      {"aten::addbmm", {ones({5, 2, 2}), ones({1, 2, 3}), ones({1, 3, 2})}, "addbmm: the expanded size"},
      {"aten::addmm", {ones({5, 2, 2}), x, ones({3, 2})}, "addmm: the expanded size"},
      {"aten::addmv", {ones({5, 2}), x, vector}, "addmv: the expanded size"},
      {"aten::addmm", {ones({2, 2}, DType::kFloat64), x, ones({3, 2})}, "to have the same dtype"},
      {kConv, conv(image, kernel, 1, 0, 1), kTaken},
      {kConv, conv(ones({1, 4, 4}), kernel, 1, 0, 1), kTaken},
      {kConv, conv(ones({4, 4}), kernel, 1, 0, 1), "3D (unbatched) or 4D (batched) input"},
      {kConv, conv(ones({1, 1, 1, 4, 4}), kernel, 1, 0, 1), "3D (unbatched) or 4D (batched) input"},
      {kConv, conv(image, ones({1, 1, 3}), 1, 0, 1), "convolution"},
      {kConv, conv(image, ones({1, 1, 0, 3}), 1, 0, 1), "non-positive kernel size is not supported"},
      {kConv, conv(image, ones({1, 1, 1, 1}), huge - 1, 0, 1), kTaken},
      {kConv, conv(image, ones({1, 1, 1, 1}), huge, 0, 1), "is too large"},
      {kConv, conv(image, ones({1, 1, 1, 1}), 1, 0, huge), "is too large"},
      {kConv, conv(image, ones({1, 1, 1, 1}), 1, huge, 1), "is too large"},
      {kConv, conv(image, kernel, 0, 0, 1), "stride"},
      {kConv, conv(image, kernel, 1, -1, 1), "padding"},
      {kConv, conv(image, kernel, 1, 0, 0), "dilation"},
      {kConv, conv(image, ones({1, 1, 5, 5}), 1, 0, 1), "Kernel size can't be greater than actual input size"},
      {kConv, conv(image, ones({1, 1, 4, 4}), 1, 0, 1), kTaken},
      {kConv, conv(image, ones({2, 1, 3, 3}), 1, 0, 1, false, 0, 3), "expected weight to be at least 3"},
      {kConv, conv(ones({1, 2, 4, 4}), ones({3, 1, 3, 3}), 1, 0, 1, false, 0, 2), "to be divisible by 2"},
      {kConv, conv(image, kernel, 2, 0, 1, true, 1), kTaken},
      {kConv, conv(image, kernel, 2, 0, 1, true, 2), "output padding must be smaller than either stride or dilation"},
      {kConv, conv(image, kernel, 1, 0, 2, true, 1), kTaken},
      {kConv, conv(image, kernel, 2, 0, 1, true, -1), "negative output_padding is not supported"},
      {kConv, conv(ones({0, 1, 4, 4}), kernel, 1, 0, 1), kTaken},
      {kConv, conv(ones({1, 1, 0, 4}), ones({1, 1, 1, 1}), 1, 1, 1), "convolution"},
  });
}

}  // namespace
}  // namespace tensord::bounds_of_layers_test
