// Attention written in the ways that models write it becomes one call, with the same results.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "core/jit/ir/text.h"
#include "core/jit/ir/verify.h"
#include "core/jit/passes/packing.h"
#include "core/jit/passes/passes.h"
#include "core/jit/runtime/interpreter.h"

namespace tensord::jit {
namespace {

using ops::Value;

Tensor random(const Dims& sizes) {
  static std::mt19937 generator(9);
  std::uniform_real_distribution<float> values(-1, 1);
  const Tensor t = Tensor::empty(sizes, DType::kFloat32);
  for (int64_t i = 0; i < t.numel(); ++i) t.data<float>()[i] = values(generator);
  return t;
}

Tensor random_bool(const Dims& sizes) {
  const Tensor t = random(sizes), out = Tensor::empty(sizes, DType::kBool);
  for (int64_t i = 0; i < t.numel(); ++i) out.data<bool>()[i] = t.data<float>()[i] > 0.4f;
  return out;
}

Tensor run(const Graph& graph, const std::vector<Tensor>& inputs) {
  std::vector<Value> arguments(inputs.begin(), inputs.end());
  Frame frame;
  const auto program = Program::compile(graph, "test");
  return Interpreter(frame, nullptr).run(*program, arguments).to_tensor();
}

int count(const Graph& graph, const std::string& op) {
  int found = 0;
  for_each_node(graph.block(), [&](Node* node) { found += node->kind_name() == op; });
  return found;
}

// The graph after the pass, as text; it must compute what it did.
std::string check_same(const std::string& text, const std::vector<Tensor>& inputs, int calls = 1,
                       const std::vector<Value>& constants = {}) {
  const auto graph = parse_graph(text, constants);
  verify(*graph);
  const auto fused = graph->clone();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& t = inputs[i];
    fused->inputs()[i]->set_known(Tensor::meta_strided(t.sizes(), t.strides(), t.dtype()));
  }
  PassContext context;
  for (auto* pass : {propagate_constants, propagate_shapes, fuse_attention, remove_transposes, eliminate_dead_code}) {
    pass(*fused, context);
    verify(*fused);
  }
  const std::string after = print_graph(*fused);
  EXPECT_EQ(count(*fused, "tensord::attention"), calls) << after;
  EXPECT_EQ(count(*fused, "aten::softmax.int"), 1 - calls) << after;
  const Tensor expected = run(*graph, inputs), got = run(*fused, inputs);
  EXPECT_EQ(to_string(got.sizes()), to_string(expected.sizes()));
  const Tensor a = expected.contiguous(), b = got.contiguous();
  for (int64_t i = 0; i < a.numel(); ++i) {
    const float x = a.data<float>()[i], y = b.data<float>()[i];
    if (!(std::isnan(x) && std::isnan(y))) {
      EXPECT_NEAR(x, y, 2e-6) << i << "\n" << after;
    }
  }
  return after;
}

const char* const kConstants = R"(  %none : NoneType = prim::Constant[value=None]()
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %two : int = prim::Constant[value=2]()
  %last : int = prim::Constant[value=-1]()
  %before : int = prim::Constant[value=-2]()
  %eight : float = prim::Constant[value=8.0]()
  %small : float = prim::Constant[value=-10000.0]()
  %hidden : float = prim::Constant[value=-inf]()
)";

// `body` makes %scores from %q, %k and %mask; the end is the usual one.
std::string four_dimensions(const std::string& body) {
  return std::string("graph(%q : Tensor, %k : Tensor, %v : Tensor, %mask : Tensor):\n") + kConstants +
         "  %t : Tensor = aten::transpose.int(%k, %before, %last)\n" + body +
         "  %p : Tensor = aten::softmax.int(%scores, %last, %none)\n"
         "  %c : Tensor = aten::matmul(%p, %v)\n"
         "  %o : Tensor = aten::transpose.int(%c, %one, %two)\n"
         "  return (%o)\n";
}

std::vector<Tensor> heads(const Tensor& mask = random(Dims{1})) {
  return {random(Dims{2, 3, 5, 16}), random(Dims{2, 3, 7, 16}), random(Dims{2, 3, 7, 16}), mask};
}

TEST(FuseAttention, ScaleInEveryPlace) {
  const char* const bodies[] = {
      "  %s : Tensor = aten::matmul(%q, %t)\n  %scores : Tensor = aten::div.Scalar(%s, %eight)\n",
      "  %s : Tensor = aten::matmul(%q, %t)\n  %scores : Tensor = aten::mul.Scalar(%s, %eight)\n",
      "  %qs : Tensor = aten::div.Scalar(%q, %eight)\n  %scores : Tensor = aten::matmul(%qs, %t)\n",
      "  %scores : Tensor = aten::matmul(%q, %t)\n",
  };
  for (const char* body : bodies) {
    const std::string after = check_same(four_dimensions(body), heads());
    EXPECT_EQ(after.find("aten::div"), std::string::npos) << after;
  }
}

TEST(FuseAttention, Masks) {
  const std::string start = "  %s0 : Tensor = aten::matmul(%q, %t)\n  %s : Tensor = aten::div.Scalar(%s0, %eight)\n";
  const auto check_mask = [&](const std::string& end, const Tensor& mask, int calls = 1) {
    check_same(four_dimensions(start + end), heads(mask), calls);
  };
  check_mask("  %scores : Tensor = aten::add.Tensor(%s, %mask, %one)\n", random(Dims{2, 1, 1, 7}));
  check_mask("  %scores : Tensor = aten::add.Tensor(%mask, %s, %one)\n", random(Dims{5, 7}));
  check_mask("  %scores : Tensor = aten::masked_fill.Scalar(%s, %mask, %small)\n", random_bool(Dims{2, 1, 1, 7}));
  check_mask("  %scores : Tensor = aten::masked_fill.Scalar(%s, %mask, %hidden)\n", random_bool(Dims{1, 1, 5, 7}));
  check_mask("  %scores : Tensor = aten::where.ScalarOther(%mask, %s, %hidden)\n", random_bool(Dims{5, 7}));
  check_mask("  %scores : Tensor = aten::where.ScalarSelf(%mask, %small, %s)\n", random_bool(Dims{5, 7}));
  // Twice the mask, and a mask that makes more rows, are something else.
  check_mask("  %scores : Tensor = aten::add.Tensor(%s, %mask, %two)\n", random(Dims{5, 7}), 0);
}

TEST(FuseAttention, MaskBeforeTheScale) {
  check_same(four_dimensions("  %s0 : Tensor = aten::matmul(%q, %t)\n"
                             "  %s : Tensor = aten::add.Tensor(%s0, %mask, %one)\n"
                             "  %scores : Tensor = aten::div.Scalar(%s, %eight)\n"),
             heads(random(Dims{5, 7})), 0);
}

TEST(FuseAttention, WeightsThatAreWanted) {
  const std::string text = std::string("graph(%q : Tensor, %k : Tensor, %v : Tensor):\n") + kConstants +
                           "  %t : Tensor = aten::transpose.int(%k, %before, %last)\n"
                           "  %scores : Tensor = aten::matmul(%q, %t)\n"
                           "  %p : Tensor = aten::softmax.int(%scores, %last, %none)\n"
                           "  %c : Tensor = aten::matmul(%p, %v)\n"
                           "  %m : Tensor = aten::matmul(%p, %c)\n"
                           "  return (%m)\n";
  check_same(text, {random(Dims{3, 6, 8}), random(Dims{3, 6, 8}), random(Dims{3, 6, 8})}, 0);
}

TEST(FuseAttention, AnotherSoftmaxDimension) {
  std::string text = four_dimensions("  %scores : Tensor = aten::matmul(%q, %t)\n");
  text.replace(text.find("softmax.int(%scores, %last"), 26, "softmax.int(%scores, %before");
  check_same(text, heads(), 0);
}

// nn.MultiheadAttention: three dimensions, a mask in baddbmm, heads and rows swapped at the end.
TEST(FuseAttention, ThreeDimensionsWithBaddbmm) {
  const std::string text = std::string("graph(%q : Tensor, %k : Tensor, %v : Tensor, %mask : Tensor):\n") + kConstants +
                           "  %qs : Tensor = aten::div.Scalar(%q, %eight)\n"
                           "  %t : Tensor = aten::transpose.int(%k, %before, %last)\n"
                           "  %scores : Tensor = aten::baddbmm(%mask, %qs, %t, %one, %one)\n"
                           "  %p : Tensor = aten::softmax.int(%scores, %last, %none)\n"
                           "  %c : Tensor = aten::bmm(%p, %v)\n"
                           "  %o : Tensor = aten::transpose.int(%c, %zero, %one)\n"
                           "  %d : Tensor = aten::contiguous(%o, %zero)\n"
                           "  return (%d)\n";
  const std::string after =
      check_same(text, {random(Dims{6, 5, 8}), random(Dims{6, 7, 8}), random(Dims{6, 7, 8}), random(Dims{6, 5, 7})});
  EXPECT_EQ(after.find("aten::div"), std::string::npos) << after;
}

// fairseq's way: the mask comes in with heads apart, the products have them together.
TEST(FuseAttention, ViewsAroundTheMask) {
  const std::string text = std::string("graph(%q : Tensor, %k : Tensor, %v : Tensor, %mask : Tensor):\n") + kConstants +
                           "  %apart : List[int] = prim::Constant[value=[2, 3, 5, 7]]()\n"
                           "  %together : List[int] = prim::Constant[value=[6, 5, 7]]()\n"
                           "  %t : Tensor = aten::transpose.int(%k, %before, %last)\n"
                           "  %s : Tensor = aten::bmm(%q, %t)\n"
                           "  %s4 : Tensor = aten::view(%s, %apart)\n"
                           "  %m4 : Tensor = aten::masked_fill.Scalar(%s4, %mask, %hidden)\n"
                           "  %scores : Tensor = aten::view(%m4, %together)\n"
                           "  %p : Tensor = aten::softmax.int(%scores, %last, %none)\n"
                           "  %c : Tensor = aten::bmm(%p, %v)\n"
                           "  return (%c)\n";
  check_same(text,
             {random(Dims{6, 5, 8}), random(Dims{6, 7, 8}), random(Dims{6, 7, 8}), random_bool(Dims{2, 1, 1, 7})});
}

// A copy of heads into row-major order, when there is one batch, is for nobody.
TEST(RemoveTransposes, CopiesBeforeAttention) {
  const std::string text = std::string("graph(%x : Tensor):\n") + kConstants +
                           "  %three : int = prim::Constant[value=3]()\n"
                           "  %apart : List[int] = prim::Constant[value=[5, 3, 8]]()\n"
                           "  %parts : List[Tensor] = aten::chunk(%x, %three, %last)\n"
                           "  %q0 : Tensor, %k0 : Tensor, %v0 : Tensor = prim::ListUnpack(%parts)\n"
                           "  %q1 : Tensor = aten::contiguous(%q0, %zero)\n"
                           "  %q2 : Tensor = aten::view(%q1, %apart)\n"
                           "  %q : Tensor = aten::transpose.int(%q2, %zero, %one)\n"
                           "  %k1 : Tensor = aten::contiguous(%k0, %zero)\n"
                           "  %k2 : Tensor = aten::view(%k1, %apart)\n"
                           "  %k : Tensor = aten::transpose.int(%k2, %zero, %one)\n"
                           "  %t : Tensor = aten::transpose.int(%k, %before, %last)\n"
                           "  %scores : Tensor = aten::bmm(%q, %t)\n"
                           "  %p : Tensor = aten::softmax.int(%scores, %last, %none)\n"
                           "  %c : Tensor = aten::bmm(%p, %q)\n"
                           "  return (%c)\n";
  const std::string after = check_same(text, {random(Dims{5, 1, 72})});
  EXPECT_EQ(after.find("aten::contiguous"), std::string::npos) << after;
}

TEST(FuseAttention, WithoutShapesNothingHappens) {
  const auto graph = parse_graph(four_dimensions("  %scores : Tensor = aten::matmul(%q, %t)\n"));
  PassContext context;
  EXPECT_FALSE(fuse_attention(*graph, context));
}

TEST(FuseAttention, StopsAtItsLimit) {
  const auto graph = parse_graph(four_dimensions("  %scores : Tensor = aten::matmul(%q, %t)\n"));
  const std::vector<Tensor> inputs = heads();
  for (size_t i = 0; i < inputs.size(); ++i)
    graph->inputs()[i]->set_known(Tensor::meta(inputs[i].sizes(), DType::kFloat32));
  PassContext context;
  propagate_shapes(*graph, context);
  context.remaining_changes = 0;
  EXPECT_FALSE(fuse_attention(*graph, context));
}

}  // namespace
}  // namespace tensord::jit
