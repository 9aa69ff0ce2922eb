// Attention in the variants that models use becomes one call, with the same results.
#include "tests/jit/attention_fixture.h"

namespace tensord::jit::fuse_attention_test {
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
  // Twice the mask, or a mask that broadcasts to more rows, is not attention.
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

// nn.MultiheadAttention: three dimensions, a mask in baddbmm, heads and rows transposed at the end.
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

// fairseq's variant: the mask has separate heads, the products have them merged.
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

// Copying heads into row-major order is unnecessary if the batch size is one.
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

// A following transpose of rows and heads is absorbed by attention, whatever the order of its dimensions.
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

// Two heads of keys and values for six of queries; `repeat` computes %kr and %vr from them.
std::string grouped(const std::string& repeat, const std::string& mask = "", const std::string& attend = "") {
  const std::string plain =
      "  %t : Tensor = aten::transpose.int(%kr, %before, %last)\n"
      "  %s : Tensor = aten::matmul(%q, %t)\n" +
      (mask.empty() ? "  %scores : Tensor = aten::div.Scalar(%s, %eight)\n" : mask) +
      "  %p : Tensor = aten::softmax.int(%scores, %last, %none)\n"
      "  %c : Tensor = aten::matmul(%p, %vr)\n";
  return std::string("graph(%q : Tensor, %k : Tensor, %v : Tensor, %mask : Tensor):\n") + kConstants +
         "  %three : int = prim::Constant[value=3]()\n"
         "  %never : float = prim::Constant[value=0.0]()\n"
         "  %wide : List[int] = prim::Constant[value=[2, 2, 3, 7, 16]]()\n"
         "  %all : List[int] = prim::Constant[value=[2, 6, 7, 16]]()\n" +
         repeat + (attend.empty() ? plain : attend) +
         "  %o : Tensor = aten::transpose.int(%c, %one, %two)\n  return (%o)\n";
}

const char* const kExpanded =
    "  %k1 : Tensor = aten::unsqueeze(%k, %two)\n  %ke : Tensor = aten::expand(%k1, %wide, %no)\n"
    "  %kr : Tensor = aten::reshape(%ke, %all)\n"
    "  %v1 : Tensor = aten::unsqueeze(%v, %two)\n  %ve : Tensor = aten::expand(%v1, %wide, %no)\n"
    "  %vr : Tensor = aten::reshape(%ve, %all)\n";
const char* const kInterleaved =
    "  %kr : Tensor = aten::repeat_interleave.self_int(%k, %three, %one, %none)\n"
    "  %vr : Tensor = aten::repeat_interleave.self_int(%v, %three, %one, %none)\n";

std::vector<Tensor> groups(const Tensor& mask = random(Dims{1})) {
  return {random(Dims{2, 6, 5, 16}), random(Dims{2, 2, 7, 16}), random(Dims{2, 2, 7, 16}), mask};
}

bool repeats(const std::string& text) {
  return text.find("aten::expand") != std::string::npos || text.find("aten::repeat_interleave") != std::string::npos;
}

TEST(GroupHeads, KeysAndValuesAreReadAsTheyAre) {
  for (const char* repeat : {kExpanded, kInterleaved}) {
    EXPECT_FALSE(repeats(check_same(grouped(repeat), groups())));
    const std::string added = "  %scores : Tensor = aten::add.Tensor(%s, %mask, %one)\n";
    for (const Dims& sizes : {Dims{5, 7}, Dims{2, 1, 5, 7}, Dims{2, 6, 5, 7}, Dims{6, 1, 7}})
      EXPECT_FALSE(repeats(check_same(grouped(repeat, added), groups(random(sizes))))) << to_string(sizes);
  }
}

TEST(GroupHeads, WhatWasWrittenBefore) {
  const std::string text = grouped(std::string("  %w : Tensor = aten::neg_(%k)\n") + kExpanded);
  EXPECT_FALSE(repeats(check_same(text, groups())));
}

TEST(GroupHeads, WhatIsWrittenMeanwhileIsCopied) {
  const std::string text = grouped(std::string(kExpanded) + "  %w : Tensor = aten::zero_(%k)\n");
  EXPECT_TRUE(repeats(check_same(text, groups())));
}

TEST(GroupHeads, AsManyKeysAsTheQueriesInAnotherOrder) {
  // Neighboring heads do not belong to one group here.
  const std::string text = grouped(
      "  %tiled : List[int] = prim::Constant[value=[1, 3, 1, 1]]()\n"
      "  %kr : Tensor = aten::repeat(%k, %tiled)\n  %vr : Tensor = aten::repeat(%v, %tiled)\n");
  EXPECT_NE(check_same(text, groups()).find("aten::repeat"), std::string::npos);
}

TEST(GroupHeads, OfScaledDotProductAttention) {
  const std::string text =
      grouped(kExpanded, "",
              "  %c : Tensor = aten::scaled_dot_product_attention(%q, %kr, %vr, %mask, %never, %no, %none, %no)\n");
  for (const Dims& sizes : {Dims{5, 7}, Dims{2, 1, 5, 7}, Dims{2, 6, 5, 7}}) {
    const auto graph = parse_graph(text);
    verify(*graph);
    const auto told = graph->clone();
    const std::vector<Tensor> inputs = groups(random(sizes));
    for (size_t i = 0; i < inputs.size(); ++i)
      told->inputs()[i]->set_known(Tensor::meta(inputs[i].sizes(), inputs[i].dtype()));
    PassContext context;
    for (auto* pass : {propagate_shapes, group_heads, eliminate_dead_code}) {
      pass(*told, context);
      verify(*told);
    }
    EXPECT_FALSE(repeats(print_graph(*told)));
    const Tensor expected = run(*graph, inputs).contiguous(), got = run(*told, inputs).contiguous();
    ASSERT_EQ(got.sizes(), expected.sizes());
    for (int64_t i = 0; i < got.numel(); ++i) EXPECT_NEAR(got.data<float>()[i], expected.data<float>()[i], 2e-6);
  }
}

// A view with a data-dependent size follows the three-dimensional products.
TEST(FuseAttention, ResultOfAShapeThatIsNotKnown) {
  const std::string text = std::string("graph(%q : Tensor, %k : Tensor, %v : Tensor, %n : int):\n") + kConstants +
                           "  %t : Tensor = aten::transpose.int(%k, %before, %last)\n"
                           "  %s : Tensor = aten::bmm(%q, %t)\n"
                           "  %four : List[int] = prim::Constant[value=[2, 3, 5, 7]]()\n"
                           "  %s4 : Tensor = aten::view(%s, %four)\n"
                           "  %mask : Tensor = prim::Constant[value=<Tensor @0>]()\n"
                           "  %m : Tensor = aten::add.Tensor(%s4, %mask, %one)\n"
                           "  %p4 : Tensor = aten::softmax.int(%m, %last, %none)\n"
                           "  %six : List[int] = prim::Constant[value=[6, 5, 7]]()\n"
                           "  %p : Tensor = aten::view(%p4, %six)\n"
                           "  %c : Tensor = aten::bmm(%p, %v)\n"
                           "  %sizes : List[int] = prim::ListConstruct(%n, %last)\n"
                           "  %o : Tensor = aten::view(%c, %sizes)\n  return (%o)\n";
  const std::vector<Value> constants{random(Dims{2, 1, 5, 7})};
  const auto graph = parse_graph(text, constants);
  verify(*graph);
  for (size_t i = 0; i < 3; ++i)
    graph->inputs()[i]->set_known(Tensor::meta(Dims{6, i == 0 ? 5 : 7, 16}, DType::kFloat32));
  PassContext context;
  for (auto* pass : {propagate_constants, propagate_shapes, fuse_attention}) {
    pass(*graph, context);
    verify(*graph);
  }
  EXPECT_EQ(count(*graph, "tensord::attention"), 1) << print_graph(*graph);
}

}  // namespace
}  // namespace tensord::jit::fuse_attention_test
