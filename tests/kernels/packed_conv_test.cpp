// Packed convolutions compared with the plain calls that they replace: every kernel, epilogues, both memory formats,
// several thread counts, and concurrent calls.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <thread>

#include "core/base/parallel.h"
#include "core/ops/attributes/packed.h"
#include "core/ops/registry.h"
#include "core/ops/run.h"
#include "kernels/gemm/packed_gemm_tile.h"

namespace tensord::packed_conv_test {
namespace {

using ops::BoundCall;
using ops::Epilogue;
using ops::PackedOp;
using ops::Value;

Tensor random(const Dims& sizes) {
  static std::mt19937 generator(5);
  std::uniform_real_distribution<float> values(-1, 1);
  const Tensor t = Tensor::empty(sizes, DType::kFloat32);
  for (int64_t i = 0; i < t.numel(); ++i) t.data<float>()[i] = values(generator);
  return t;
}

Tensor in_order(const Tensor& t, bool is_last) {
  if (!is_last) return t.contiguous();
  const Tensor out = Tensor::empty_strided(t.sizes(), channels_last_strides(t.sizes()), t.dtype());
  out.copy_from(t);
  return out;
}

// The largest difference, relative to the largest expected value.
double difference(const Tensor& expected, const Tensor& got) {
  const Tensor x = expected.to(DType::kFloat64).contiguous(), y = got.to(DType::kFloat64).contiguous();
  double worst = 0, scale = 1e-3;
  for (int64_t i = 0; i < x.numel(); ++i) {
    worst = std::max(worst, std::abs(x.data<double>()[i] - y.data<double>()[i]));
    if (std::isnan(y.data<double>()[i])) return INFINITY;
    scale = std::max(scale, std::abs(x.data<double>()[i]));
  }
  return worst / scale;
}

// A call whose arguments after the first are fixed.
BoundCall bound(const char* op_name, std::vector<Value> rest, int other = -1) {
  const ops::Op& op = ops::get_op(op_name);
  rest.insert(rest.begin(), Value(Tensor::meta(Dims{}, DType::kFloat32)));
  std::vector<Value> arguments = ops::bind(op, rest);
  arguments[0] = Value();
  if (other >= 0) arguments[static_cast<size_t>(other)] = Value();
  return {&op, arguments, 0, other};
}

struct Shape {
  int64_t batch, in, out, height, width, kernel, stride = 1, padding = 0, dilation = 1, groups = 1;
  std::string variant = "";  // expected; empty: any
};

std::ostream& operator<<(std::ostream& out, const Shape& s) {
  return out << s.batch << "x" << s.in << "x" << s.height << "x" << s.width << " to " << s.out << ", kernel "
             << s.kernel << " stride " << s.stride << " padding " << s.padding << " dilation " << s.dilation
             << " groups " << s.groups;
}

// Epilogues of the convolution.
enum class Tail { kNone, kRelu, kAddRelu, kSilu, kRelu6Hard, kBatchNorm };

struct Net {
  IntrusivePtr<PackedOp> packed;
  bool has_other = false;
};

Net make_net(const Shape& s, Tail tail, bool is_last, const Tensor& weight, const Tensor& bias,
             ops::Precision precision = ops::Precision::kF32) {
  const auto pair = [](int64_t v) { return ops::make_int_list(Dims{v, v}); };
  const BoundCall conv =
      bound("aten::conv2d", {weight, bias, pair(s.stride), pair(s.padding), pair(s.dilation), Value(s.groups)});
  const auto& pack = conv.op->pack[static_cast<size_t>(DeviceKind::kCPU)];
  Net net{pack({*conv.op, conv.arguments, precision, std::make_shared<ops::PackStore>()})};
  const auto join = [&](const BoundCall& call, Epilogue epilogue) { net.packed = net.packed->with(call, epilogue); };
  const auto relu = [&] { join(bound("aten::relu", {}), {.formula = "relu"}); };
  if (tail == Tail::kRelu) relu();
  if (tail == Tail::kSilu) join(bound("aten::silu", {}), {.formula = "silu"});
  if (tail == Tail::kRelu6Hard) {
    join(bound("aten::hardtanh", {Value(-7.5), Value(9.5)}), {.formula = "hardtanh", .numbers = {-7.5, 9.5}});
    join(bound("aten::hardswish", {}), {.formula = "hardswish"});
  }
  if (tail == Tail::kAddRelu) {
    join(bound("aten::add.Tensor", {Value(Tensor::meta(Dims{}, DType::kFloat32))}, 1), {.kind = Epilogue::Kind::kAdd});
    relu();
    net.has_other = true;
  }
  if (tail == Tail::kBatchNorm) {
    const Tensor scale = random({s.out}), shift = random({s.out});
    const Dims column{s.out, 1, 1};
    join(bound("aten::mul.Tensor", {scale.as_view(column, Dims{1, 1, 1}, 0)}),
         {.kind = Epilogue::Kind::kChannelAffine, .scale = scale, .shift = [&] {
            const Tensor zeros = Tensor::empty(Dims{s.out}, DType::kFloat32);
            std::fill(zeros.data<float>(), zeros.data<float>() + s.out, 0.0f);
            return zeros;
          }()});
  }
  if (is_last) net.packed = net.packed->with_channels_last();
  return net;
}

// The result of the calls one by one.
Tensor expected_of(const Net& net, const Tensor& input, const Tensor& other) {
  Tensor value = input;
  for (const BoundCall& call : net.packed->calls()) {
    std::vector<Value> arguments = call.arguments;
    arguments[0] = value;
    if (call.other >= 0) arguments[static_cast<size_t>(call.other)] = other;
    value = ops::run(*call.op, arguments).front().to_tensor();
  }
  return value;
}

// Runs a prepared call in memory of its own; the residual is in the output's memory if that is allowed.
Tensor run_prepared(const ops::PreparedCall& call, const Tensor& input, const Tensor& other, const Tensor& like,
                    bool overwrites) {
  // Nothing is written before or after the output.
  constexpr int64_t kMargin = 1 << 14;
  constexpr float kUntouched = 1234.5f;
  const Tensor room = Tensor::empty(Dims{like.numel() + 2 * kMargin}, DType::kFloat32);
  std::fill_n(room.data<float>(), room.numel(), kUntouched);
  const Tensor out = room.as_view(like.sizes(), like.strides(), kMargin);
  std::fill_n(out.data<float>(), out.numel(), NAN);
  const bool in_place = overwrites && (call.may_overwrite & 2) != 0;
  if (in_place) out.copy_from(other);
  const Tensor scratch = Tensor::empty(Dims{static_cast<int64_t>(call.scratch_bytes) + 1}, DType::kUInt8);
  const void* const inputs[] = {input.raw_data(), !other.defined() ? nullptr
                                                  : in_place       ? out.raw_data()
                                                                   : other.raw_data()};
  void* const outputs[] = {out.raw_data()};
  call.run(ops::KernelContext{}, {inputs, outputs, scratch.raw_data()});
  const float* margin = room.data<float>();
  EXPECT_EQ(std::count(margin, margin + kMargin, kUntouched), kMargin) << "in front of the output";
  margin += kMargin + like.numel();
  EXPECT_EQ(std::count(margin, margin + kMargin, kUntouched), kMargin) << "behind the output";
  return out;
}

std::unique_ptr<ops::PreparedCall> prepare(const Net& net, const Tensor& input, const Tensor& other, const Tensor& like,
                                           int threads) {
  const auto meta = [](const Tensor& t) { return Tensor::meta_strided(t.sizes(), t.strides(), t.dtype()); };
  ops::PackStore store;
  const std::vector<Tensor> outputs{meta(like)};
  const ops::PrepareArgs args{ops::get_op(ops::kRunPacked), {}, outputs, threads, ops::Precision::kF32, &store};
  return net.packed->prepare(meta(input), other.defined() ? meta(other) : Tensor(), args);
}

void expect_same(const Shape& s, Tail tail, bool input_last, bool output_last) {
  SCOPED_TRACE(::testing::Message() << s << ", tail " << static_cast<int>(tail) << (input_last ? ", last" : ", planes")
                                    << (output_last ? " to last" : " to planes"));
  const Tensor weight = random({s.out, s.in / s.groups, s.kernel, s.kernel}), bias = random({s.out});
  const Net net = make_net(s, tail, output_last, weight, bias);
  ASSERT_TRUE(net.packed);
  const Tensor input = in_order(random({s.batch, s.in, s.height, s.width}), input_last);
  const Tensor first = expected_of(net, input, net.has_other ? Tensor::scalar(0.0f) : Tensor());
  const Tensor other = net.has_other ? in_order(random(first.sizes()), output_last) : Tensor();
  const Tensor expected = expected_of(net, input, other), like = in_order(expected, output_last);
  constexpr double kTolerance = 1e-5;
  Tensor before;
  for (const int threads : {1, 2, 3}) {
    set_thread_budget(threads);
    const auto call = prepare(net, input, other, like, threads);
    ASSERT_TRUE(call);
    if (!s.variant.empty()) {
      EXPECT_EQ(call->variant, s.variant);
    }
    EXPECT_GT(call->cost.flops, 0);
    for (const bool overwrites : {false, true}) {
      const Tensor got = run_prepared(*call, input, other, like, overwrites);
      EXPECT_LE(difference(expected, got), kTolerance) << threads << " threads";
      if (!before.defined()) before = got;
      EXPECT_EQ(difference(before, got), 0) << "other numbers with " << threads << " threads";
    }
    const Tensor by_run = net.packed->run(input, other, false);
    EXPECT_EQ(difference(before, by_run), 0) << "run and the prepared call differ";
    EXPECT_EQ(by_run.is_channels_last(), like.is_channels_last());
  }
  set_thread_budget(available_cores());
}

const std::vector<Shape> kShapes{
    {1, 16, 32, 9, 9, 1, 1, 0, 1, 1, "direct"},
    {2, 24, 40, 7, 5, 1, 1, 0, 1, 1, "direct"},
    {1, 1024, 16, 4, 4, 1, 1, 0, 1, 1, "direct"},
    {2, 1024, 24, 5, 5, 1, 2, 0, 1, 1, "direct"},
    {1, 7, 5, 6, 11, 1, 2, 0, 1, 1, "direct"},
    {1, 3, 16, 33, 29, 7, 2, 3, 1, 1, "direct"},
    {2, 3, 24, 20, 20, 3, 2, 1, 1, 1, "direct"},
    {1, 1, 10, 12, 12, 5, 1, 0, 1, 1, "direct"},
    {2, 20, 33, 15, 14, 3, 1, 1, 1, 1, "direct"},
    {1, 16, 16, 13, 13, 3, 1, 2, 2, 1, "direct"},
    {3, 512, 16, 6, 6, 3, 2, 1, 1, 1, "direct"},
    {2, 32, 48, 11, 8, 3, 1, 1, 1, 2, "direct"},
    {1, 1152, 48, 1, 1, 1, 1, 0, 1, 1, "direct"},
    {4, 16, 96, 1, 1, 1, 1, 0, 1, 1, "direct"},
    {1, 12, 9, 30, 1, 3, 1, 1, 1, 1, "direct"},
    // Windows in the padding, at the near side, at both.
    {1, 1, 16, 1, 1, 1, 8, 2, 1, 1, "direct"},
    {1, 1, 16, 1, 1, 2, 128, 64, 3, 1, "direct"},
    {3, 8, 5, 4, 1, 2, 8, 5, 3, 1, "direct"},
    {2, 3, 16, 2, 3, 1, 3, 7, 1, 1, "direct"},
    {1, 32, 32, 1, 1, 3, 1, 9, 1, 1, "winograd 4x4"},
    {1, 160, 144, 2, 1, 3, 1, 6, 1, 1, "winograd 2x2"},
    {1, 32, 32, 2, 1, 3, 2, 9, 1, 32, "depthwise"},
    {1, 6, 6, 1, 2, 3, 5, 7, 2, 6},
    {2, 64, 64, 14, 14, 3, 1, 1, 1, 1, "winograd 4x4"},
    {1, 48, 80, 9, 7, 3, 1, 0, 1, 1, "winograd 4x4"},
    {1, 160, 144, 6, 7, 3, 1, 1, 1, 1, "winograd 2x2"},
    {2, 144, 160, 3, 1, 3, 1, 1, 1, 1, "winograd 2x2"},
    {2, 32, 32, 14, 14, 3, 1, 1, 1, 32, "depthwise"},
    {1, 40, 40, 9, 9, 3, 2, 1, 1, 40, "depthwise"},
    {1, 72, 72, 16, 15, 5, 1, 2, 1, 72, "depthwise"},
    {2, 24, 24, 5, 3, 5, 2, 2, 1, 24, "depthwise"},
    {1, 96, 96, 8, 8, 7, 1, 3, 1, 96, "depthwise"},
    {1, 32, 32, 7, 7, 3, 1, 2, 2, 32},
    {1, 8, 16, 7, 7, 3, 1, 1, 1, 8},
    {1, 6, 6, 7, 7, 3, 1, 1, 1, 6},
    {1, 16, 8, 9, 9, 3, 1, 1, 1, 4},
    // Enough work for every thread: odd numbers of rows, split by rows and by channels, images side by side.
    {1, 32, 32, 13, 13, 3, 1, 2, 2, 1, "direct"},
    {1, 64, 48, 15, 3, 3, 1, 2, 2, 1, "direct"},
    {1, 96, 200, 5, 3, 3, 1, 2, 2, 1, "direct"},
    {3, 64, 40, 7, 9, 3, 2, 1, 1, 1, "direct"},
    {1, 4, 24, 33, 31, 5, 1, 2, 1, 1, "direct"},
    {1, 96, 96, 15, 13, 3, 1, 1, 1, 1, "winograd 4x4"},
    {1, 160, 176, 9, 7, 3, 1, 1, 1, 1, "winograd 2x2"},
    {1, 288, 288, 17, 15, 3, 1, 1, 1, 288, "depthwise"},
    {3, 96, 96, 15, 11, 5, 2, 2, 1, 96, "depthwise"},
};

TEST(PackedConv, EveryShape) {
  for (const Shape& s : kShapes) {
    for (const bool input_last : {false, true}) expect_same(s, Tail::kRelu, input_last, true);
    expect_same(s, Tail::kNone, true, false);
  }
}

TEST(PackedConv, EveryTail) {
  const std::vector<Shape> shapes{
      {2, 24, 40, 7, 5, 1},         {1, 3, 21, 19, 18, 3, 2, 1},       {1, 64, 48, 9, 10, 3, 1, 1},
      {1, 144, 144, 6, 5, 3, 1, 1}, {2, 36, 36, 9, 8, 3, 1, 1, 1, 36}, {1, 16, 8, 9, 9, 3, 1, 1, 1, 4}};
  for (const Shape& s : shapes) {
    for (const Tail tail : {Tail::kNone, Tail::kAddRelu, Tail::kSilu, Tail::kRelu6Hard, Tail::kBatchNorm}) {
      for (const bool is_last : {false, true}) expect_same(s, tail, is_last, is_last);
    }
  }
}

TEST(PackedConv, OtherPrecisions) {
  const std::vector<Shape> shapes{{2, 24, 40, 7, 5, 1},         {1, 40, 24, 9, 9, 1, 2},
                                  {2, 288, 264, 6, 5, 3, 1, 1}, {1, 32, 48, 9, 10, 3, 2, 1},
                                  {1, 3, 21, 9, 8, 3, 2, 1},    {1, 36, 36, 9, 8, 3, 1, 1, 1, 36}};
  for (const ops::Precision precision : {ops::Precision::kBf16, ops::Precision::kInt8}) {
    const double tolerance = precision == ops::Precision::kBf16 ? 1e-2 : 4e-2;
    for (const Shape& s : shapes) {
      SCOPED_TRACE(::testing::Message() << s);
      const Net net = make_net(s, Tail::kAddRelu, true, random({s.out, s.in / s.groups, s.kernel, s.kernel}),
                               random({s.out}), precision);
      const Tensor input = in_order(random({s.batch, s.in, s.height, s.width}), true);
      const Tensor zero = expected_of(net, input, Tensor::scalar(0.0f)), other = in_order(random(zero.sizes()), true);
      const Tensor expected = expected_of(net, input, other), like = in_order(expected, true);
      const auto call = prepare(net, input, other, like, 2);
      ASSERT_TRUE(call);
      const Tensor got = run_prepared(*call, input, other, like, false);
      EXPECT_LE(difference(expected, got), tolerance) << call->variant;
      // Where the processor has to widen bfloat16, the float32 kernels are faster.
      if (kernels::tile_kernels(kernels::WordType::kBf16).widens) {
        EXPECT_EQ(call->variant.find("bf16"), std::string::npos) << call->variant;
      }
      EXPECT_EQ(difference(got, run_prepared(*call, input, other, like, true)), 0);
      EXPECT_EQ(difference(got, net.packed->run(input, other, false)), 0);
    }
  }
}

TEST(PackedConv, ReluKeepsNan) {
  for (const Shape& s :
       {Shape{1, 16, 32, 4, 4, 1}, Shape{1, 64, 64, 8, 8, 3, 1, 1}, Shape{1, 32, 32, 7, 7, 3, 1, 1, 1, 32}}) {
    const Net net =
        make_net(s, Tail::kRelu, true, random({s.out, s.in / s.groups, s.kernel, s.kernel}), random({s.out}));
    const Tensor input = in_order(random({s.batch, s.in, s.height, s.width}), true);
    input.data<float>()[0] = NAN;
    const Tensor got = net.packed->run(input, Tensor(), false);
    EXPECT_TRUE(std::isnan(got.data<float>()[0])) << s;
  }
}

TEST(PackedConv, ManyThreadsAtOnce) {
  for (const Shape& s : {Shape{1, 64, 64, 14, 14, 3, 1, 1}, Shape{2, 3, 16, 20, 20, 3, 2, 1}, Shape{1, 32, 24, 9, 9, 1},
                         Shape{1, 16, 8, 9, 9, 3, 1, 1, 1, 4}}) {
    const Net net =
        make_net(s, Tail::kAddRelu, true, random({s.out, s.in / s.groups, s.kernel, s.kernel}), random({s.out}));
    const Tensor input = random({s.batch, s.in, s.height, s.width});
    const Tensor zero = expected_of(net, input, Tensor::scalar(0.0f)), other = in_order(random(zero.sizes()), true);
    const Tensor like = in_order(zero, true);
    const auto call = prepare(net, input, other, like, 2);
    ASSERT_TRUE(call);
    const Tensor expected = run_prepared(*call, input, other, like, false);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        set_thread_budget(2);
        for (int i = 0; i < 10; ++i)
          EXPECT_EQ(difference(expected, run_prepared(*call, input, other, like, i % 2 == 0)), 0) << s;
      });
    }
    for (std::thread& t : threads) t.join();
  }
}

}  // namespace
}  // namespace tensord::packed_conv_test
