// Every operator that may become an epilogue of packed weights, found in the registry: fused with a linear layer and
// with a convolution it gives the results of the two calls; others are left alone.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <set>

#include "core/ops/attributes/packed.h"
#include "core/ops/registry.h"
#include "core/ops/run.h"

namespace tensord::epilogues_test {
namespace {

using ops::PackedOp;
using ops::Value;
using Packed = IntrusivePtr<PackedOp>;
constexpr auto kCPU = static_cast<size_t>(DeviceKind::kCPU);
constexpr int64_t kChannels = 20;

Tensor random(const Dims& sizes, float low = -4, float high = 4) {
  static std::mt19937 generator(5);
  std::uniform_real_distribution<float> values(low, high);
  const Tensor t = Tensor::empty(sizes, DType::kFloat32);
  for (int64_t i = 0; i < t.numel(); ++i) t.data<float>()[i] = values(generator);
  return t;
}

// Arguments for the call after the packed one: None for its input, constants for the rest, in several variants.
std::vector<std::vector<Value>> calls_of(const ops::Op& op) {
  std::vector<std::vector<Value>> out;
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  // Values of numeric first, second and third arguments; the last rows are edge cases.
  const double numbers[][3] = {{0.5, 1, 1}, {-0.75, 1.5, 2},          {2, -1, 1},
                               {0, 0, 0},   {-infinity, infinity, 1}, {nan, 1, 1}};
  for (int row = -1; row < static_cast<int>(std::size(numbers)); ++row) {
    std::vector<Value> call;
    size_t number = 0;
    for (const ops::Argument& argument : op.schema.arguments) {
      const bool is_optional = argument.type->kind() == ops::TypeKind::kOptional;
      const ops::TypeKind kind = (is_optional ? argument.type->element() : argument.type)->kind();
      const bool is_number = kind == ops::TypeKind::kFloat || kind == ops::TypeKind::kNumber;
      if (kind == ops::TypeKind::kTensor) {
        call.push_back(is_optional ? Value(random({kChannels}, 0.5, 2)) : Value());
      } else if (is_number && row >= 0 && number < 3) {
        call.emplace_back(numbers[row][number++]);
      } else if (argument.default_value) {
        call.push_back(*argument.default_value);
      } else if (kind == ops::TypeKind::kBool) {
        call.emplace_back(false);
      } else {
        call.emplace_back(1e-3);
      }
    }
    out.push_back(std::move(call));
  }
  return out;
}

Packed pack(const char* name, std::vector<Value> arguments) {
  const ops::Op& op = ops::get_op(name);
  arguments[0] = Tensor::meta(Dims{}, DType::kFloat32);
  arguments = ops::bind(op, arguments);
  arguments[0] = Value();
  return op.pack[kCPU]({op, arguments, ops::Precision::kF32, std::make_shared<ops::PackStore>()});
}

// Runs the calls one by one. Empty if they refuse their arguments.
std::optional<Tensor> plain(const Packed& packed, const Tensor& input, const Tensor& other) {
  Tensor value = input;
  for (const ops::BoundCall& call : packed->calls()) {
    std::vector<Value> arguments = call.arguments;
    arguments[static_cast<size_t>(call.input)] = value;
    if (call.other >= 0) arguments[static_cast<size_t>(call.other)] = other;
    try {
      value = ops::run(*call.op, arguments).front().to_tensor();
    } catch (const Error&) {
      return std::nullopt;
    }
  }
  return value;
}

void expect_same(const Tensor& got, const Tensor& expected, const std::string& what) {
  ASSERT_EQ(got.sizes(), expected.sizes()) << what;
  const Tensor a = got.contiguous(), b = expected.contiguous();
  for (int64_t i = 0; i < a.numel(); ++i) {
    const float x = a.data<float>()[i], y = b.data<float>()[i];
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    ASSERT_NEAR(x, y, 2e-5 * std::max(1.0f, std::abs(y))) << what << ", element " << i;
  }
}

struct Layer {
  Packed packed;
  Tensor input;
  Dims result;
};

// A candidate for the epilogue: an operator with its arguments.
struct Follower {
  const ops::Op* op;
  std::vector<Value> arguments;
  ops::Epilogue epilogue;
  bool takes_two;

  Packed after(const Packed& packed) const { return packed->with({op, arguments, 0, takes_two ? 1 : -1}, epilogue); }
};

std::vector<Follower> followers() {
  std::vector<Follower> out;
  for (const ops::Op* op : ops::all_ops()) {
    const auto* joins = op->attributes.get<ops::EpilogueMaker>();
    if (!joins) continue;
    const auto& arguments = op->schema.arguments;
    const bool takes_two = arguments.size() > 1 && arguments[1].type->kind() == ops::TypeKind::kTensor;
    for (const std::vector<Value>& call : calls_of(*op)) {
      if (const auto epilogue = joins->says(call)) out.push_back({op, call, *epilogue, takes_two});
    }
  }
  return out;
}

void expect_as_plain(const Packed& with, const Layer& layer, bool takes_two, const std::string& what) {
  const Tensor other = takes_two ? random(layer.result) : Tensor();
  const auto expected = plain(with, layer.input, other);
  EXPECT_TRUE(expected) << what << " is joined with arguments that it refuses";
  if (expected) expect_same(with->run(layer.input, other, false), *expected, what);
}

// The names of operators that were fused at least once.
std::set<std::string> join_all(const Layer& layer) {
  std::set<std::string> joined;
  for (const Follower& follower : followers()) {
    const Packed with = follower.after(layer.packed);
    if (!with) continue;
    expect_as_plain(with, layer, follower.takes_two, follower.op->name());
    joined.insert(follower.op->schema.full_name());
  }
  return joined;
}

// Fuses pairs of epilogues in sequence; returns the number of pairs.
int join_pairs(const Layer& layer) {
  const std::vector<Follower> all = followers();
  int pairs = 0;
  for (const Follower& first : all) {
    const Packed one = first.after(layer.packed);
    if (!one) continue;
    for (const Follower& second : all) {
      const Packed both = second.after(one);
      if (!both) continue;
      expect_as_plain(both, layer, first.takes_two || second.takes_two,
                      concat(first.op->name(), ", ", second.op->name()));
      ++pairs;
    }
  }
  return pairs;
}

// Some channels have infinite or NaN results.
Tensor wide_bias() {
  const Tensor bias = random({kChannels});
  const float infinity = std::numeric_limits<float>::infinity();
  bias.data<float>()[1] = -infinity;
  bias.data<float>()[2] = infinity;
  bias.data<float>()[kChannels - 1] = std::numeric_limits<float>::quiet_NaN();
  return bias;
}

const std::set<std::string> kAlways = {
    "aten::add.Tensor",  "aten::batch_norm", "aten::clamp",     "aten::gelu",
    "aten::hardsigmoid", "aten::hardswish",  "aten::hardtanh",  "aten::leaky_relu",
    "aten::relu",        "aten::relu6",      "aten::sigmoid",   "aten::silu",
    "aten::tanh",        "aten::elu",        "aten::clamp_min", "aten::clamp_max",
};

TEST(Epilogues, OfALinearLayer) {
  const Layer layer{pack("aten::linear", {Value(), random({kChannels, 12}), wide_bias()}), random({7, 12}),
                    Dims{7, kChannels}};
  ASSERT_TRUE(layer.packed);
  EXPECT_EQ(join_all(layer), kAlways);
  EXPECT_GT(join_pairs(layer), 500);
}

TEST(Epilogues, OfAConvolution) {
  const Layer layer{pack("aten::conv2d", {Value(), random({kChannels, 3, 3, 3}), wide_bias()}),
                    random({2, 3, 6, 7}, -1, 1), Dims{2, kChannels, 4, 5}};
  ASSERT_TRUE(layer.packed);
  EXPECT_EQ(join_all(layer), kAlways);
  EXPECT_GT(join_pairs(layer), 500);
}

TEST(Epilogues, OfAConvolutionInThreeDimensions) {
  const Layer layer{pack("aten::conv3d", {Value(), random({kChannels, 2, 2, 2, 2}), wide_bias()}),
                    random({1, 2, 3, 3, 4}, -1, 1), Dims{1, kChannels, 2, 2, 3}};
  ASSERT_TRUE(layer.packed);
  EXPECT_EQ(join_all(layer), kAlways);
  EXPECT_GT(join_pairs(layer), 500);
}

TEST(Epilogues, BoundsThatCrossAreThePlainOperators) {
  const Packed linear = pack("aten::linear", {Value(), random({4, 3}), Value()});
  const ops::Op& op = ops::get_op("aten::hardtanh");
  const auto& joins = *op.attributes.get<ops::EpilogueMaker>();
  for (const auto& [low, high] : {std::pair(1.0, -1.0), std::pair(0.0, std::nan("")), std::pair(std::nan(""), 1.0)}) {
    const std::vector<Value> call{Value(), Value(low), Value(high)};
    const auto epilogue = joins.says(call);
    EXPECT_FALSE(epilogue && linear->with({&op, call, 0, -1}, *epilogue)) << low << " to " << high;
  }
}

}  // namespace
}  // namespace tensord::epilogues_test
