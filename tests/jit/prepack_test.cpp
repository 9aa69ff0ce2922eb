// Packed operators and the passes over them: the resulting graph, and that it gives the same results.
#include <atomic>
#include <thread>

#include "core/ops/run.h"
#include "tests/jit/packed_fixture.h"
#include "tests/kernels/prepared_fixture.h"

namespace tensord::jit::prepack_test {
namespace {

using namespace packed_graphs;

TEST(Prepack, FoldsBatchNormAndRelu) {
  const ConvNet net;
  const auto after = expect_same(net.head + R"(
    %c : Tensor = aten::conv2d(%x, %w1, %b1, %ones, %ones, %ones, %one)
    %n : Tensor = aten::batch_norm(%c, %g, %b, %m, %v, %false, %tenth, %eps, %true)
    %r : Tensor = aten::relu_(%n)
    return (%r)
)",
                                 net.constants, {random({2, 8, 9, 7})});
  EXPECT_EQ(count(*after, "tensord::packed"), 1);
  EXPECT_EQ(count(*after, "aten::batch_norm") + count(*after, "aten::relu_") + count(*after, "aten::conv2d"), 0);
}

TEST(Prepack, LeavesBatchNormInTrainingMode) {
  const ConvNet net;
  const auto after = expect_same(net.head + R"(
    %c : Tensor = aten::conv2d(%x, %w1, %b1, %ones, %ones, %ones, %one)
    %n : Tensor = aten::batch_norm(%c, %g, %b, %none, %none, %true, %tenth, %eps, %true)
    return (%n)
)",
                                 net.constants, {random({2, 8, 9, 7})}, 1e-4);
  EXPECT_EQ(count(*after, "aten::batch_norm"), 1);
}

TEST(Prepack, ResidualBlockIsThreePackedOperators) {
  const ConvNet net;
  // The identity is used twice, and its last use is the sum.
  const auto after = expect_same(net.head + R"(
    %c : Tensor = aten::conv2d(%x, %w1, %b1, %ones, %ones, %ones, %one)
    %id : Tensor = aten::relu(%c)
    %d : Tensor = aten::conv2d(%id, %w2, %none, %ones, %zeros, %ones, %one)
    %e : Tensor = aten::relu(%d)
    %f : Tensor = aten::conv2d(%e, %w2, %none, %ones, %zeros, %ones, %one)
    %s : Tensor = aten::add_.Tensor(%f, %id, %one)
    %r : Tensor = aten::relu_(%s)
    return (%r)
)",
                                 net.constants, {random({2, 8, 6, 5})});
  EXPECT_EQ(count(*after, "tensord::packed"), 2);
  EXPECT_EQ(count(*after, "tensord::packed.other"), 1);
  EXPECT_EQ(count(*after, "aten::add_.Tensor"), 0);
}

TEST(Prepack, KeepsAResidualThatIsUsedLater) {
  const ConvNet net;
  expect_same(net.head + R"(
    %c : Tensor = aten::conv2d(%x, %w1, %b1, %ones, %ones, %ones, %one)
    %id : Tensor = aten::relu(%c)
    %f : Tensor = aten::conv2d(%id, %w2, %none, %ones, %zeros, %ones, %one)
    %s : Tensor = aten::add.Tensor(%f, %id, %one)
    return (%s, %id)
)",
              net.constants, {random({2, 8, 6, 5})});
  // The residual is the graph's input, which the caller keeps.
  const Tensor input = random({1, 16, 4, 4}), before = input.clone();
  const auto graph = packed(*parse_graph(net.head + R"(
    %f : Tensor = aten::conv2d(%x, %w2, %none, %ones, %zeros, %ones, %one)
    %s : Tensor = aten::add.Tensor(%f, %x, %one)
    return (%s)
)",
                                         net.constants));
  Frame frame;
  const auto program = Program::compile(*graph, "test");
  std::vector<Value> arguments{input};
  Interpreter(frame, nullptr).run(*program, arguments);
  EXPECT_EQ(worst_difference(input, before), 0);
}

TEST(Prepack, DoesNotJoinWhatIsUsedTwice) {
  const ConvNet net;
  const auto after = expect_same(net.head + R"(
    %c : Tensor = aten::conv2d(%x, %w1, %b1, %ones, %ones, %ones, %one)
    %r : Tensor = aten::relu(%c)
    %s : Tensor = aten::sigmoid(%c)
    %o : Tensor = aten::mul.Tensor(%r, %s)
    return (%o)
)",
                                 net.constants, {random({1, 8, 6, 5})});
  EXPECT_EQ(count(*after, "aten::relu"), 1);
}

TEST(Prepack, SumThatWouldPassAWriteStays) {
  const ConvNet net;
  const auto after = expect_same(net.head + R"(
    %y : Tensor = aten::mul.Tensor(%x, %x)
    %f : Tensor = aten::conv2d(%y, %w2, %none, %ones, %zeros, %ones, %one)
    %z : Tensor = aten::relu_(%y)
    %q : Tensor = aten::neg_(%z)
    %s : Tensor = aten::add.Tensor(%f, %q, %one)
    return (%s)
)",
                                 net.constants, {random({1, 16, 4, 4})});
  EXPECT_EQ(count(*after, "aten::add.Tensor"), 1);
}

TEST(Prepack, BroadcastResidualIsAddedOnItsOwn) {
  const ConvNet net;
  const std::string text = net.head + R"(
    %p : Tensor = aten::adaptive_avg_pool2d(%x, %ones)
    %f : Tensor = aten::conv2d(%x, %w2, %none, %ones, %zeros, %ones, %one)
    %s : Tensor = aten::add.Tensor(%f, %p, %one)
    %r : Tensor = aten::relu(%s)
    return (%r)
)";
  expect_same(text, net.constants, {random({2, 16, 4, 4})});
}

TEST(Prepack, OtherDtypesFailAsTheOperatorDoes) {
  const ConvNet net;
  const auto graph = packed(*parse_graph(net.head + R"(
    %c : Tensor = aten::conv2d(%x, %w1, %b1, %ones, %ones, %ones, %one)
    %r : Tensor = aten::relu(%c)
    return (%r)
)",
                                         net.constants));
  EXPECT_THROW(run(*graph, {random({1, 8, 6, 5}, DType::kFloat64)}), Error);
  EXPECT_THROW(run(*graph, {random({1, 7, 6, 5})}), Error);
  EXPECT_EQ(run(*graph, {random({8, 6, 5})}).front().ndim(), 3);  // unbatched
}

TEST(Prepack, ConvolutionsOfEveryKind) {
  struct Row {
    const char* op;
    Tensor weight, input;
    const char* arguments;
  };
  const std::vector<Row> rows{
      {"aten::conv1d", random({6, 4, 3}), random({2, 4, 11}), "%two1, %one1, %one1, %one"},
      {"aten::conv2d", random({6, 2, 3, 2}), random({3, 4, 11, 8}), "%twos, %ones, %ones, %two"},
      {"aten::conv2d", random({8, 1, 3, 3}), random({1, 8, 7, 7}), "%ones, %ones, %twos, %eight"},
      {"aten::conv2d.padding", random({6, 4, 4, 3}), random({1, 4, 7, 7}), "%ones, %same, %ones, %one"},
      {"aten::conv3d", random({6, 4, 2, 3, 3}), random({1, 4, 5, 6, 7}), "%ones3, %ones3, %ones3, %one"},
  };
  for (const Row& row : rows) {
    const std::string text = "graph(%x : Tensor):" + kNumbers + constant("w", 0) + R"(
    %one1 : List[int] = prim::Constant[value=[1]]()
    %two1 : List[int] = prim::Constant[value=[2]]()
    %ones3 : List[int] = prim::Constant[value=[1, 1, 1]]()
    %eight : int = prim::Constant[value=8]()
    %same : str = prim::Constant[value="same"]()
    %c : Tensor = )" + std::string(row.op) +
                             "(%x, %w, %none, " + row.arguments + ")\n" + R"(
    %r : Tensor = aten::hardtanh(%c, %minus, %one)
    return (%r)
)";
    const auto after = expect_same(text, {row.weight}, {row.input});
    EXPECT_EQ(count(*after, "tensord::packed"), 1) << row.op;
    EXPECT_EQ(count(*after, "aten::hardtanh"), 0) << row.op;
  }
}

TEST(Prepack, LinearWithEachActivation) {
  const std::vector<Value> constants{random({24, 20}), random({24})};
  const std::string head = "graph(%x : Tensor):" + kNumbers + constant("w", 0) + constant("b", 1) +
                           "    %c : Tensor = aten::linear(%x, %w, %b)\n";
  for (const char* activation :
       {"aten::relu(%c)", "aten::gelu(%c, %erf)", "aten::silu(%c)", "aten::sigmoid(%c)", "aten::tanh(%c)",
        "aten::hardswish(%c)", "aten::hardsigmoid(%c)", "aten::leaky_relu(%c, %tenth)", "aten::relu6(%c)",
        "aten::elu(%c, %tenth, %one, %one)", "aten::clamp(%c, %zero, %none)"}) {
    for (const Tensor& input : {random({5, 20}), random({1, 20}), random({2, 3, 20}), random({20})}) {
      const auto after =
          expect_same(head + "    %r : Tensor = " + activation + "\n    return (%r)\n", constants, {input});
      EXPECT_EQ(count(*after, "tensord::packed"), 1) << activation;
      int nodes = 0;
      for_each_node(after->block(), [&](Node* node) { nodes += node->kind() == NodeKind::kOp; });
      EXPECT_EQ(nodes, 1) << activation;
    }
  }
}

// A linear layer followed by operators that a packed operator cannot absorb: %c, %x (5 × 20), %y (5 × 24, but for its
// dtype and rows).
std::unique_ptr<Graph> expect_left_alone(const std::string& body, const Tensor& y) {
  static const std::vector<Value> constants{random({24, 20}), random({24})};
  return expect_same("graph(%x : Tensor, %y : Tensor):" + kNumbers + constant("w", 0) + constant("b", 1) +
                         "    %c : Tensor = aten::linear(%x, %w, %b)\n" + body + "    return (%r)\n",
                     constants, {random({5, 20}), y});
}

TEST(Prepack, WhatNoEpilogueDoesStays) {
  const Tensor y = random({5, 24});
  for (const char* call :
       {"aten::elu(%c, %tenth, %two, %one)", "aten::elu(%c, %tenth, %one, %two)", "aten::add.Tensor(%c, %y, %two)",
        "aten::add.Tensor(%c, %c, %one)", "aten::add.Tensor(%y, %c, %two)", "aten::add.Scalar(%c, %one, %one)",
        "aten::sub.Tensor(%c, %y, %one)", "aten::softmax.int(%c, %one, %none)"}) {
    const auto after = expect_left_alone(std::string("    %r : Tensor = ") + call + "\n", y);
    int nodes = 0;
    for_each_node(after->block(), [&](Node* node) { nodes += node->kind() == NodeKind::kOp; });
    EXPECT_EQ(nodes, 2) << call;
  }
}

TEST(Prepack, InPlaceOnAnotherOperandStays) {
  const auto after = expect_left_alone(R"(
    %z : Tensor = aten::neg(%y)
    %v : Tensor = aten::relu(%z)
    %s : Tensor = aten::add_.Tensor(%v, %c, %one)
    %r : Tensor = aten::mul.Tensor(%v, %v)
)",
                                       random({5, 24}));
  EXPECT_EQ(count(*after, "aten::add_.Tensor"), 1);
}

// An in-place sum keeps its dtype and shape, also if the packed variant does not absorb it.
TEST(Prepack, InPlaceSumKeepsDtypeAndShape) {
  const ConvNet net;
  const std::string conv = "graph(%x : Tensor, %y : Tensor):" + net.head.substr(net.head.find(':', 12) + 1) + R"(
    %c : Tensor = aten::conv2d(%x, %w1, %b1, %ones, %ones, %ones, %one)
    %r : Tensor = aten::add_.Tensor(%c, %y, %one)
    return (%r)
)";
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kInt64}) {
    const auto after = expect_same(conv, net.constants, {random({2, 8, 5, 4}), random({2, 16, 5, 4}, dtype)});
    EXPECT_EQ(count(*after, "tensord::packed.other"), 1);
    expect_left_alone("    %r : Tensor = aten::add_.Tensor(%c, %y, %one)\n", random({5, 24}, dtype));
  }
  const auto after = packed(*parse_graph(conv, net.constants));
  EXPECT_THROW(run(*after, {random({1, 8, 5, 4}), random({2, 16, 5, 4})}), Error);
}

TEST(Prepack, ClampsLeaveInfinities) {
  const Tensor identity = Tensor::empty(Dims{1, 1}, DType::kFloat32);
  identity.data<float>()[0] = 1;
  const Tensor x = random({4, 1});
  const float values[] = {INFINITY, -INFINITY, NAN, 2};
  std::copy(std::begin(values), std::end(values), x.data<float>());
  const std::vector<Value> constants{identity};
  const auto clamped = [&](const char* call) {
    const auto after = packed(*parse_graph(
        "graph(%x : Tensor):" + kNumbers + constant("w", 0) +
            "    %c : Tensor = aten::linear(%x, %w, %none)\n    %r : Tensor = " + call + "\n    return (%r)\n",
        constants));
    EXPECT_EQ(count(*after, "tensord::packed"), 1);
    const Tensor out = run(*after, {x})[0];
    return std::vector<float>(out.data<float>(), out.data<float>() + 4);
  };
  const std::vector<float> low = clamped("aten::clamp(%c, %zero, %none)");
  EXPECT_TRUE(low[0] == INFINITY && low[1] == 0 && std::isnan(low[2]) && low[3] == 2);
  const std::vector<float> high = clamped("aten::clamp(%c, %none, %one)");
  EXPECT_TRUE(high[0] == 1 && high[1] == -INFINITY && std::isnan(high[2]) && high[3] == 1);
}

TEST(Prepack, MatmulWithAConstantMatrix) {
  const std::vector<Value> constants{random({20, 24})};
  for (const Tensor& input : {random({5, 20}), random({1, 20}), random({2, 3, 20}), random({20})}) {
    const auto after = expect_same("graph(%x : Tensor):" + kNumbers + constant("w", 0) + R"(
    %c : Tensor = aten::matmul(%x, %w)
    %r : Tensor = aten::relu(%c)
    return (%r)
)",
                                   constants, {input});
    EXPECT_EQ(count(*after, "tensord::packed"), 1);
  }
}

TEST(Prepack, AddmmOfConstantsAndTheSecondOperand) {
  const std::vector<Value> constants{random({20, 24}), random({24}), random({5, 20})};
  const std::string head = "graph(%x : Tensor):" + kNumbers + constant("w", 0) + constant("b", 1) + constant("left", 2);
  const auto after = expect_same(head + R"(
    %c : Tensor = aten::addmm(%b, %x, %w, %two, %three)
    %r : Tensor = aten::relu(%c)
    return (%r)
)",
                                 constants, {random({5, 20})});
  EXPECT_EQ(count(*after, "tensord::packed"), 1);
  EXPECT_EQ(count(*after, "aten::addmm") + count(*after, "aten::relu"), 0);
  // The non-constant operand is the addend, or the matrix on the right.
  const auto addend = expect_same(head + R"(
    %c : Tensor = aten::addmm(%x, %left, %w, %one, %one)
    return (%c)
)",
                                  constants, {random({5, 24})});
  EXPECT_EQ(count(*addend, "tensord::packed"), 0);
  const auto right = expect_same(head + R"(
    %c : Tensor = aten::mm(%left, %x)
    return (%c)
)",
                                 constants, {random({20, 3})});
  EXPECT_EQ(count(*right, "tensord::packed"), 0);
}

TEST(Prepack, WeightsThatAreViews) {
  const Tensor big = random({48, 40}), one = random({1, 20}), kernel = random({1, 8, 3, 3});
  const std::vector<Value> constants{
      big.as_view(Dims{24, 20}, Dims{80, 2}, 1), one.as_view(Dims{24, 20}, Dims{0, 1}, 0),
      big.as_view(Dims{40, 20}, Dims{1, 40}, 0), kernel.as_view(Dims{16, 8, 3, 3}, Dims{0, 9, 3, 1}, 0),
      kernel.as_view(Dims{1, 8, 3, 3}, Dims{7, 9, 3, 1}, 0)};
  for (const int weight : {0, 1, 2}) {
    expect_same("graph(%x : Tensor):" + kNumbers + constant("w", weight) +
                    "    %c : Tensor = aten::linear(%x, %w, %none)\n    return (%c)\n",
                constants, {random({5, 20})});
    expect_same("graph(%x : Tensor):" + kNumbers + constant("w", weight) +
                    "    %c : Tensor = aten::linear(%x, %w, %none)\n    return (%c)\n",
                constants, {random({1, 20})});
  }
  for (const int weight : {3, 4}) {
    expect_same("graph(%x : Tensor):" + kNumbers + constant("w", weight) +
                    "    %c : Tensor = aten::conv2d(%x, %w, %none, %ones, %ones, %ones, %one)\n    return (%c)\n",
                constants, {random({2, 8, 5, 4})});
  }
}

TEST(Prepack, LinearWithResidual) {
  const std::vector<Value> constants{random({20, 20}), random({20})};
  for (const Tensor& input : {random({5, 20}), random({1, 20}), random({2, 3, 20})}) {
    const auto after = expect_same("graph(%x : Tensor):" + kNumbers + constant("w", 0) + constant("b", 1) + R"(
    %c : Tensor = aten::linear(%x, %w, %b)
    %g : Tensor = aten::gelu(%c, %erf)
    %d : Tensor = aten::linear(%g, %w, %none)
    %s : Tensor = aten::add.Tensor(%x, %d, %one)
    return (%s)
)",
                                   constants, {input});
    EXPECT_EQ(count(*after, "tensord::packed.other"), 1);
  }
}

// A plan's prepared call of the packed operator with two tensors, of which one or both may have become constants: the
// initial state of a recurrent cell.
void expect_prepared(const Graph& after, const Tensor& input, const Tensor& other) {
  Node* node = nullptr;
  for_each_node(after.block(), [&](Node* each) { node = each->is_op(ops::kRunPackedWithOther) ? each : node; });
  ASSERT_NE(node, nullptr);
  const std::vector<Value> arguments{*node->input(0)->constant(), input, other};
  const Tensor expected = ops::run(*node->op(), arguments).front().to_tensor();
  for (const std::vector<Tensor>& constants : std::vector<std::vector<Tensor>>{{}, {input}, {other}}) {
    fixtures::PreparedRunner runner(*node->op(), arguments, constants, 1);
    ASSERT_TRUE(runner.prepared());
    for (int on = -1; on < static_cast<int>(runner.input_count()); ++on) {
      if (on >= 0 && !(runner.prepared()->may_overwrite >> on & 1)) continue;
      EXPECT_EQ(worst_difference(runner.run(on)[0], expected), 0) << constants.size() << " constants, on " << on;
    }
  }
  fixtures::PreparedRunner with_input(*node->op(), arguments, {input}, 1),
      with_other(*node->op(), arguments, {other}, 1);
  EXPECT_EQ(with_input.prepared()->may_overwrite, 1u);
  EXPECT_EQ(with_other.prepared()->may_overwrite, 0u);
}

TEST(Prepack, PreparedWithConstantTensors) {
  const std::vector<Value> constants{random({20, 12}), random({20})};
  const auto linear =
      packed(*parse_graph("graph(%x : Tensor, %y : Tensor):" + kNumbers + constant("w", 0) + constant("b", 1) + R"(
    %c : Tensor = aten::linear(%x, %w, %b)
    %s : Tensor = aten::add.Tensor(%c, %y, %one)
    %t : Tensor = aten::tanh(%s)
    return (%t)
)",
                          constants));
  expect_prepared(*linear, random({5, 12}), random({5, 20}));
  const ConvNet net;
  const auto conv =
      packed(*parse_graph("graph(%x : Tensor, %y : Tensor):" + net.head.substr(net.head.find(':', 12) + 1) +
                              R"(
    %c : Tensor = aten::conv2d(%x, %w1, %b1, %ones, %ones, %ones, %one)
    %s : Tensor = aten::add.Tensor(%c, %y, %one)
    return (%s)
)",
                          net.constants));
  const auto last = [](const Tensor& t) {
    const Tensor out = Tensor::empty_strided(t.sizes(), channels_last_strides(t.sizes()), t.dtype());
    out.copy_from(t);
    return out;
  };
  expect_prepared(*conv, last(random({2, 8, 5, 4})), last(random({2, 16, 5, 4})));
}

TEST(Prepack, OnePackedOperatorServesManyThreads) {
  const ConvNet net;
  const auto graph = parse_graph(net.head + R"(
    %c : Tensor = aten::conv2d(%x, %w1, %b1, %ones, %ones, %ones, %one)
    %r : Tensor = aten::relu(%c)
    %f : Tensor = aten::conv2d(%r, %w2, %none, %ones, %zeros, %ones, %one)
    %s : Tensor = aten::add_.Tensor(%f, %r, %one)
    return (%s)
)",
                                 net.constants);
  const auto after = packed(*graph);
  std::vector<Tensor> inputs, expected;
  for (int64_t size = 3; size < 9; ++size) {
    inputs.push_back(random({1, 8, size, size}));
    expected.push_back(run(*graph, {inputs.back()})[0]);
  }
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (size_t worker = 0; worker < 4; ++worker) {
    threads.emplace_back([&, worker] {
      set_thread_budget(1);
      for (size_t round = 0; round < 40; ++round) {
        const size_t i = (round + worker) % inputs.size();
        if (!(worst_difference(run(*after, {inputs[i]})[0], expected[i]) <= 2e-5)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Prepack, ShapesComeAndGo) {
  const ConvNet net;
  const auto graph = parse_graph(net.head + R"(
    %c : Tensor = aten::conv2d(%x, %w1, %b1, %ones, %ones, %ones, %one)
    return (%c)
)",
                                 net.constants);
  const auto after = packed(*graph);
  for (int round = 0; round < 2; ++round) {
    for (int64_t size = 1; size <= 20; ++size) {  // more shapes than plans are kept
      const std::vector<Tensor> inputs{random({1, 8, size, 3})};
      EXPECT_LE(worst_difference(run(*after, inputs)[0], run(*graph, inputs)[0]), 2e-5) << size;
    }
  }
}

}  // namespace
}  // namespace tensord::jit::prepack_test
