// Packed operators of weights stored as float16 or bfloat16, used directly or converted to float32 by the graph.
#include <gmock/gmock.h>
#include "core/ops/run.h"

#include "tests/jit/packed_fixture.h"
#include "tests/kernels/prepared_fixture.h"

namespace tensord::jit::prepack_halves_test {
namespace {

using namespace packed_graphs;

const std::string kWidened = R"(
    %float : int = prim::Constant[value=6]()
    %w32 : Tensor = aten::to.dtype(%w, %float, %false, %false, %none)
)";

// Random, of `sizes`, in [-scale, scale).
Tensor drawn(const std::vector<int64_t>& sizes, DType dtype, float scale = 1) {
  const Tensor out = Tensor::empty(Dims(sizes), DType::kFloat32), from = random({out.numel()});
  std::transform(from.data<float>(), from.data<float>() + out.numel(), out.data<float>(),
                 [scale](float x) { return x * scale; });
  return out.to(dtype);
}

Tensor in_last(const Tensor& t) {
  const Tensor last = Tensor::empty_strided(t.sizes(), channels_last_strides(t.sizes()), t.dtype());
  last.copy_from(t);
  return last;
}

// Layers with 16-bit weights, as in most checkpoints, in the interpreter and in a plan. Sums are float32, and rounded
// once.
TEST(PrepackHalves, WeightsOfHalves) {
  struct Row {
    std::vector<int64_t> weight, input;
    const char* call;
  };
  const std::vector<Row> rows{
      {{40, 24}, {1, 24}, "aten::linear(%x, %w, %none)"},
      {{40, 24}, {2, 7, 24}, "aten::linear(%x, %w, %none)"},
      {{40, 24}, {5, 24}, "aten::linear(%x, %w, %b)"},
      {{24, 40}, {5, 24}, "aten::matmul(%x, %w)"},
      {{24, 40}, {5, 24}, "aten::mm(%x, %w)"},
      {{24, 40}, {5, 24}, "aten::addmm(%b, %x, %w, %two, %tenth)"},
      {{40, 4, 3, 3}, {2, 4, 7, 6}, "aten::conv2d(%x, %w, %b, %ones, %ones, %ones, %one)"},
  };
  for (const DType dtype : {DType::kBFloat16, DType::kFloat16}) {
    for (const Row& row : rows) {
      SCOPED_TRACE(concat(row.call, ' ', name_of(dtype)));
      const Tensor x = drawn(row.input, dtype);
      const std::string text = "graph(%x : Tensor):" + kNumbers + constant("w", 0) + constant("b", 1) +
                               "    %c : Tensor = " + row.call + "\n    return (%c)\n";
      const double tolerance = dtype == DType::kBFloat16 ? 0.07 : 0.009;  // the last digit of results up to 16
      const auto after = expect_same(text, {drawn(row.weight, dtype), drawn({40}, dtype)}, {x}, tolerance);
      Node* node = nullptr;
      for_each_node(after->block(), [&](Node* each) { node = each->is_op(ops::kRunPacked) ? each : node; });
      ASSERT_NE(node, nullptr);
      const std::vector<Value> arguments{*node->input(0)->constant(), x};
      fixtures::PreparedRunner runner(*node->op(), arguments, {}, 1);
      ASSERT_TRUE(runner.prepared());
      EXPECT_EQ(worst_difference(runner.run(-1)[0], ops::run(*node->op(), arguments).front().to_tensor()), 0);
      EXPECT_THROW(run(*after, {x.to(DType::kFloat32)}), Error);
    }
  }
}

// As `packed`, but without epilogues.
std::unique_ptr<Graph> packed_alone(const Graph& graph) {
  auto copy = graph.clone();
  PassContext context;
  for (auto* pass : {prepack_weights, use_channels_last, eliminate_dead_code}) pass(*copy, context);
  return copy;
}

const Node* packed_node(const Graph& graph) {
  const Node* found = nullptr;
  for_each_node(graph.block(), [&](const Node* node) {
    if (node->is_op(ops::kRunPacked) || node->is_op(ops::kRunPackedWithOther)) found = node;
  });
  return found;
}

// Epilogues of a 16-bit layer round as often as the separate operators: bitwise equal.
TEST(PrepackHalves, StepsBehindALayer) {
  const std::string norm = "    %n : Tensor = aten::batch_norm(%c, %g, %h, %m, %v, %false, %tenth, %eps, %false)\n";
  const std::string conv = "    %c : Tensor = aten::conv2d(%x, %w, %b, %ones, %ones, %ones, %one)\n";
  const std::string linear = "    %c : Tensor = aten::linear(%x, %l, %b)\n";
  const auto add = [](const char* to) { return concat("    %a : Tensor = aten::add.Tensor(", to, ", %y, %one)\n"); };
  const auto relu = [](const char* of) { return concat("    %r : Tensor = aten::relu(", of, ")\n"); };
  const struct {
    std::string text;
    const char* result;
  } rows[] = {
      {norm, "%n"},
      {norm + relu("%n"), "%r"},
      {norm + add("%n") + relu("%a"), "%r"},
      {norm + "    %a : Tensor = aten::add_.Tensor(%n, %y, %one)\n    %r : Tensor = aten::relu_(%a)\n", "%r"},
      {add("%c"), "%a"},
      {relu("%c"), "%r"},
      {norm + add("%n") + "    %r : Tensor = aten::relu6(%a)\n", "%r"},
      {norm + "    %r : Tensor = aten::hardtanh(%n, %tenth, %two)\n", "%r"},
      {add("%c") + "    %r : Tensor = aten::clamp(%a, %tenth, %two)\n", "%r"},
  };
  // Convolutions that read planes, or pixels by products of an even and an odd depth; linear layers.
  const std::vector<std::vector<int64_t>> inputs{{2, 4, 7, 6}, {1, 4, 65, 61}, {2, 24, 9, 7}, {1, 17, 6, 5}, {3, 24}};
  for (const DType dtype : {DType::kBFloat16, DType::kFloat16}) {
    for (const auto& row : rows) {
      for (const std::vector<int64_t>& sizes : inputs) {
        const bool is_conv = sizes.size() == 4;
        const std::vector<Value> constants{drawn({40, is_conv ? sizes[1] : 1, 3, 3}, dtype),
                                           drawn({40, 24}, dtype),
                                           drawn({40}, dtype),
                                           positive({40}).to(dtype),
                                           random({40}).to(dtype),
                                           random({40}).to(dtype),
                                           positive({40}).to(dtype)};
        const std::string text = "graph(%x : Tensor, %y : Tensor):" + kNumbers + constant("w", 0) + constant("l", 1) +
                                 constant("b", 2) + constant("g", 3) + constant("h", 4) + constant("m", 5) +
                                 constant("v", 6) + (is_conv ? conv : linear) + row.text + "    return (" + row.result +
                                 ")\n";
        SCOPED_TRACE(concat(text.substr(text.find("%c : ")), name_of(dtype), ' ', sizes.back()));
        const auto graph = parse_graph(text, constants);
        Tensor x = drawn(sizes, dtype);
        if (is_conv && sizes[1] > 4) x = in_last(x);
        static_cast<uint16_t*>(x.raw_data())[5] = 0x7fff;  // NaN
        std::vector<int64_t> out = sizes;
        out[1] = 40;
        const Tensor y = drawn(out, dtype);
        const Tensor last = is_conv ? in_last(y) : y;
        const auto joined = packed(*graph);
        EXPECT_EQ(count(*joined, "aten::batch_norm") + count(*joined, "aten::relu") + count(*joined, "aten::relu_"), 0);
        EXPECT_EQ(count(*joined, "aten::add.Tensor") + count(*joined, "aten::add_.Tensor"), 0);
        EXPECT_EQ(count(*joined, "aten::relu6") + count(*joined, "aten::hardtanh") + count(*joined, "aten::clamp"), 0);
        const Tensor expected = run(*packed_alone(*graph), {x, y})[0];
        EXPECT_TRUE(fixtures::same_bits(run(*joined, {x, y})[0], expected));
        const Node* const node = packed_node(*joined);
        ASSERT_NE(node, nullptr);
        for (const Tensor& other : {y, last}) {
          std::vector<Value> arguments{*node->input(0)->constant(), x};
          if (node->inputs().size() == 3) arguments.emplace_back(other);
          fixtures::PreparedRunner runner(*node->op(), arguments, {}, 2);
          ASSERT_TRUE(runner.prepared());
          EXPECT_TRUE(fixtures::same_bits(runner.run(-1)[0], expected));
          if ((runner.prepared()->may_overwrite & 2) == 0) continue;
          EXPECT_TRUE(fixtures::same_bits(runner.run(1)[0], expected));
        }
      }
    }
  }
}

// Each result is rounded after each step, among them results below float32's normal numbers, which instructions for
// bfloat16 would take as zero.
TEST(PrepackHalves, Depthwise) {
  constexpr int64_t kChannels = 40;
  const DType dtype = DType::kBFloat16;
  const std::string constants = kNumbers + constant("w", 0) + constant("b", 1) + constant("g", 2) +
                                constant("shift", 3) +
                                concat("    %groups : int = prim::Constant[value=", kChannels, "]()\n");
  const std::string norm =
      "    %n : Tensor = aten::batch_norm(%c, %g, %shift, %shift, %g, %false, %tenth, %eps, %false)\n";
  const std::string add = "    %a : Tensor = aten::add.Tensor(%n, %y, %one)\n";
  struct Case {
    std::string name, steps, result;
    float scale;  // of the input and of what is added
    bool is_direct;
  };
  const Case cases[] = {{"alone", "", "%c", 1, true},
                        {"norm", norm, "%n", 1, true},
                        {"relu6", norm + "    %r : Tensor = aten::relu6(%n)\n", "%r", 1, true},
                        {"denormal", norm + "    %r : Tensor = aten::hardtanh(%n, %tenth, %two)\n", "%r", 1e-38f, true},
                        {"denormal alone", "", "%c", 1e-39f, true},
                        {"sum", norm + add + "    %r : Tensor = aten::relu6(%a)\n", "%r", 1, false}};
  for (const Case& c : cases) {
    for (const int stride : {1, 2}) {
      for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{2, kChannels, 90, 65}, {1, kChannels, 5, 4}}) {
        SCOPED_TRACE(concat(c.name, ", stride ", stride, ", height ", sizes[2]));
        const std::string text = "graph(%x : Tensor, %y : Tensor):" + constants +
                                 concat("    %c : Tensor = aten::conv2d(%x, %w, %b, ", stride == 1 ? "%ones" : "%twos",
                                        ", %ones, %ones, %groups)\n", c.steps, "    return (", c.result, ")\n");
        std::vector<int64_t> out = sizes;
        for (const size_t d : {2, 3}) out[d] = (sizes[d] - 1) / stride + 1;
        const Tensor x = in_last(drawn(sizes, dtype, c.scale)), y = in_last(drawn(out, dtype, c.scale));
        const std::vector<Value> values{drawn({kChannels, 1, 3, 3}, dtype), drawn({kChannels}, dtype, c.scale),
                                        positive({kChannels}).to(dtype), drawn({kChannels}, dtype, c.scale)};
        const auto graph = parse_graph(text, values);
        const auto joined = packed(*graph);
        const Tensor expected = run(*packed_alone(*graph), {x, y})[0];
        const Node* const node = packed_node(*joined);
        ASSERT_NE(node, nullptr);
        std::vector<Value> arguments{*node->input(0)->constant(), x};
        if (!c.is_direct) arguments.push_back(y);
        for (const int threads : {1, 2}) {
          fixtures::PreparedRunner runner(*node->op(), arguments, {}, threads);
          ASSERT_TRUE(runner.prepared());
          EXPECT_THAT(runner.prepared()->variant, ::testing::HasSubstr("depthwise of bfloat16"));
          EXPECT_EQ(runner.prepared()->scratch_bytes == 0, c.is_direct);
          EXPECT_TRUE(fixtures::same_bits(runner.run(-1)[0], expected));
        }
      }
    }
  }
}

// Operators that round differently, or have another shape or dtype, stay separate calls or are done as one.
TEST(PrepackHalves, StepsThatAreNotJoined) {
  const std::string head = "graph(%x : Tensor, %y : Tensor):" + kNumbers + constant("w", 0) + constant("b", 1) +
                           "    %c : Tensor = aten::conv2d(%x, %w, %b, %ones, %ones, %ones, %one)\n";
  const std::vector<Value> constants{drawn({40, 4, 3, 3}, DType::kBFloat16), drawn({40}, DType::kBFloat16)};
  const Tensor x = drawn({2, 4, 5, 6}, DType::kBFloat16);
  for (const char* each : {"aten::sigmoid(%c)", "aten::leaky_relu(%c, %tenth)", "aten::add.Tensor(%c, %y, %tenth)"}) {
    const auto after = packed(*parse_graph(concat(head, "    %r : Tensor = ", each, "\n    return (%r)\n"), constants));
    EXPECT_EQ(count(*after, std::string(each).substr(0, std::string(each).find('('))), 1) << each;
  }
  const std::string sum = head + "    %r : Tensor = aten::add.Tensor(%c, %y, %one)\n    return (%r)\n";
  for (const Tensor& y :
       {random({2, 40, 5, 6}), drawn({40, 1, 1}, DType::kBFloat16), drawn({3, 2, 40, 5, 6}, DType::kBFloat16)})
    expect_same(sum, constants, {x, y}, 0.07);
}

// 16-bit weights that a graph converts to float32 are packed directly, for float32 rows: no rounding occurs.
TEST(PrepackHalves, HalvesThatTheGraphWidens) {
  struct Row {
    std::vector<int64_t> weight, input;
    const char* call;
  };
  const std::vector<Row> rows{
      {{40, 24}, {1, 24}, "aten::linear(%x, %w32, %none)"},
      {{40, 24}, {12, 24}, "aten::linear(%x, %w32, %b32)"},
      {{24, 40}, {5, 24}, "aten::matmul(%x, %w32)"},
      {{24, 40}, {5, 24}, "aten::mm(%x, %w32)"},
      {{24, 40}, {5, 24}, "aten::addmm(%b32, %x, %w32, %two, %tenth)"},
      {{40, 4, 3, 3}, {2, 4, 7, 6}, "aten::conv2d(%x, %w32, %b32, %ones, %ones, %ones, %one)"},
  };
  for (const DType dtype : {DType::kBFloat16, DType::kFloat16}) {
    for (const Row& row : rows) {
      SCOPED_TRACE(concat(row.call, ' ', name_of(dtype)));
      const Tensor x = drawn(row.input, DType::kFloat32);
      const std::string text = "graph(%x : Tensor):" + kNumbers + constant("w", 0) + constant("b", 1) + kWidened +
                               "    %b32 : Tensor = aten::to.dtype(%b, %float, %false, %false, %none)\n" +
                               "    %c : Tensor = " + row.call +
                               "\n    %r : Tensor = aten::relu(%c)\n    return (%r)\n";
      const auto after = expect_same(text, {drawn(row.weight, dtype), drawn({40}, dtype)}, {x});
      EXPECT_EQ(count(*after, ops::kRunPacked), 1);
      EXPECT_EQ(count(*after, "aten::to.dtype") + count(*after, "aten::relu"), 0);
      Node* node = nullptr;
      for_each_node(after->block(), [&](Node* each) { node = each->is_op(ops::kRunPacked) ? each : node; });
      ASSERT_NE(node, nullptr);
      const std::vector<Value> arguments{*node->input(0)->constant(), x};
      fixtures::PreparedRunner runner(*node->op(), arguments, {}, 1);
      EXPECT_TRUE(runner.prepared());
      Dims none = x.sizes();
      none[0] = 0;  // done by the calls themselves
      EXPECT_EQ(run(*after, {Tensor::empty(none, DType::kFloat32)})[0].sizes()[0], 0);
      EXPECT_THROW(run(*after, {x.to(dtype)}), Error);
    }
  }
}

// Other weights are converted to float32 once for all graphs of a module, unless something needs the 16-bit ones.
TEST(PrepackHalves, ConversionsOfHalvesAreFolded) {
  const std::string head = "graph(%x : Tensor):" + kNumbers + constant("w", 0) + kWidened;
  const std::string product = head + "    %c : Tensor = aten::mm(%w32, %x)\n";
  const std::vector<Value> constants{random({700, 800}, DType::kBFloat16)};
  PassContext context;
  context.packs = std::make_shared<ops::PackStore>();
  const auto folded = [&](const std::string& text) {
    auto graph = parse_graph(text, constants);
    fold_conversions(*graph, context);
    verify(*graph);
    return graph;
  };
  const auto once = folded(product + "    return (%c)\n"), again = folded(product + "    return (%c)\n");
  const Tensor x = random({800, 3});
  EXPECT_EQ(worst_difference(run(*once, {x})[0], run(*parse_graph(product + "    return (%c)\n", constants), {x})[0]),
            0);
  const auto weight = [](const Graph& graph) {
    const Value* found = nullptr;
    for_each_node(graph.block(),
                  [&](const Node* node) { found = node->is_op("aten::mm") ? node->input(0)->constant() : found; });
    return found ? found->to_tensor() : Tensor();
  };
  ASSERT_TRUE(weight(*once).defined());
  EXPECT_EQ(weight(*once).dtype(), DType::kFloat32);
  EXPECT_EQ(weight(*once).raw_data(), weight(*again).raw_data());
  for (const std::string& kept :
       {product + "    %t : Tensor = aten::t(%w)\n    %r : Tensor = aten::mm(%t, %t)\n    return (%r)\n",
        head + "    %c : Tensor = aten::mul_.Tensor(%w32, %x)\n    return (%c)\n", head + "    return (%w32)\n"})
    EXPECT_EQ(count(*folded(kept), "aten::to.dtype"), 1) << kept;
  context.is_for_training = true;
  EXPECT_EQ(count(*folded(product + "    return (%c)\n"), "aten::to.dtype"), 1);
}

// Of a table that is converted to float32, only the rows that are read.
TEST(PrepackHalves, RowsOfAWidenedTable) {
  const std::string text = "graph(%x : Tensor):" + kNumbers + constant("w", 0) + kWidened +
                           "    %c : Tensor = aten::embedding(%w32, %x, %minus, %false, %false)\n    return (%c)\n";
  const auto graph = parse_graph(text, std::vector<Value>{random({50, 20}, DType::kFloat16)});
  auto after = graph->clone();
  PassContext context;
  EXPECT_TRUE(apply_peepholes(*after, context));
  eliminate_dead_code(*after, context);
  verify(*after);
  const Tensor rows = Tensor::empty(Dims{3}, DType::kInt64);
  for (const int64_t i : {0, 1, 2}) rows.data<int64_t>()[i] = 20 * i + 3;
  EXPECT_EQ(worst_difference(run(*after, {rows})[0], run(*graph, {rows})[0]), 0);
  for_each_node(after->block(), [&](const Node* node) {
    if (node->is_op("aten::embedding")) {
      EXPECT_NE(node->input(0)->constant(), nullptr);
    }
  });
}

}  // namespace
}  // namespace tensord::jit::prepack_halves_test
