// Attention written in the ways that models write it becomes one call, with the same results.
#include "tests/jit/attention_fixture.h"

namespace tensord::jit {
namespace {

using namespace attention;

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

// A swap of rows and heads behind it is what attention gives by itself, in whichever order they are named.
TEST(FuseAttention, SwapsNamedInEitherOrder) {
  const auto swaps = [](const std::string& dims) {
    const std::string after = check_same(four_dimensions("  %scores : Tensor = aten::matmul(%q, %t)\n",
                                                         "  %o : Tensor = aten::transpose.int(%c, " + dims + ")\n"),
                                         heads());
    size_t count = 0;
    for (size_t at = 0; (at = after.find("aten::transpose.int", at)) != std::string::npos; ++at) ++count;
    return count;
  };
  EXPECT_EQ(swaps("%one, %two"), swaps("%two, %one"));
  EXPECT_LT(swaps("%two, %one"), swaps("%one, %last"));
  EXPECT_LT(swaps("%two, %one"), swaps("%zero, %two"));
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
