// Graphs that only look like attention: for each guard of fuse_attention one that would give a wrong result without it.
#include "core/ops/run.h"
#include "tests/jit/attention_fixture.h"

namespace tensord::jit::fuse_attention_guards_test {
namespace {

using namespace attention;

const std::string kScores = "  %s : Tensor = aten::matmul(%q, %t)\n";
const char* const kEnd = "  %o : Tensor = aten::transpose.int(%c, %one, %two)\n";

TEST(FuseAttentionGuards, ScoresThatAreWanted) {
  check_same(four_dimensions("  %scores : Tensor = aten::matmul(%q, %t)\n",
                             "  %m : Tensor = aten::amax(%scores, %axes, %yes)\n"
                             "  %o : Tensor = aten::mul.Tensor(%c, %m)\n"),
             heads(), 0);
}

TEST(FuseAttentionGuards, TwoMasks) {
  check_same(four_dimensions(kScores + "  %a : Tensor = aten::add.Tensor(%s, %mask, %one)\n"
                                       "  %scores : Tensor = aten::add.Tensor(%a, %mask, %one)\n"),
             heads(random(Dims{5, 7})), 0);
  check_same(four_dimensions(kScores + "  %b : Tensor = aten::gt.Scalar(%mask, %zero)\n"
                                       "  %a : Tensor = aten::masked_fill.Scalar(%s, %b, %small)\n"
                                       "  %scores : Tensor = aten::add.Tensor(%a, %mask, %one)\n"),
             heads(random(Dims{5, 7})), 0);
}

TEST(FuseAttentionGuards, MaskThatMakesMoreScores) {
  check_same(
      four_dimensions(kScores + "  %scores : Tensor = aten::add.Tensor(%s, %mask, %one)\n"),
      {random(Dims{1, 3, 5, 16}), random(Dims{1, 3, 7, 16}), random(Dims{2, 3, 7, 16}), random(Dims{2, 1, 5, 7})}, 0);
}

TEST(FuseAttentionGuards, MaskOfAnotherType) {
  check_same(four_dimensions("  %seven : int = prim::Constant[value=7]()\n"
                             "  %six : int = prim::Constant[value=6]()\n"
                             "  %m : Tensor = aten::to.dtype(%mask, %seven, %no, %no, %none)\n" +
                             kScores +
                             "  %a : Tensor = aten::add.Tensor(%s, %m, %one)\n"
                             "  %scores : Tensor = aten::to.dtype(%a, %six, %no, %no, %none)\n"),
             heads(random(Dims{5, 7})), 0);
}

TEST(FuseAttentionGuards, Doubles) {
  const std::string body =
      "  %seven : int = prim::Constant[value=7]()\n"
      "  %q2 : Tensor = aten::to.dtype(%q, %seven, %no, %no, %none)\n"
      "  %t2 : Tensor = aten::to.dtype(%t, %seven, %no, %no, %none)\n"
      "  %scores : Tensor = aten::matmul(%q2, %t2)\n";
  std::string text = four_dimensions(body);
  text.replace(text.find("aten::matmul(%p, %v)"), 20, "aten::matmul(%p, %w)");
  text.insert(text.find("  %c : Tensor"), "  %w : Tensor = aten::to.dtype(%v, %seven, %no, %no, %none)\n");
  check_same(text, heads(), 0);
}

TEST(FuseAttentionGuards, OperandsWrittenBetween) {
  for (const char* written : {"q", "k", "mask"}) {
    std::string text = four_dimensions(kScores + "  %scores : Tensor = aten::add.Tensor(%s, %mask, %one)\n");
    text.insert(text.find("  %c : Tensor"),
                std::string("  %w : Tensor = aten::add_.Scalar(%") + written + ", %two, %one)\n");
    check_same(text, heads(random(Dims{5, 7})), 0);
  }
  // The values are still read at the old place.
  std::string text = four_dimensions("  %scores : Tensor = aten::matmul(%q, %t)\n");
  text.insert(text.find("  %c : Tensor"), "  %w : Tensor = aten::mul_.Scalar(%v, %two)\n");
  check_same(text, heads(), 0);
}

TEST(FuseAttentionGuards, FactorsThatAreNotKnown) {
  check_same(four_dimensions(kScores + "  %scores : Tensor = aten::mul.Tensor(%s, %mask)\n"), heads(random(Dims{1})),
             0);
}

TEST(FuseAttentionGuards, ScaledQueriesWithAnotherReader) {
  const std::string body =
      "  %qs : Tensor = aten::div.Scalar(%q, %eight)\n  %scores : Tensor = aten::matmul(%qs, %t)\n";
  check_same(four_dimensions(body, "  %m : Tensor = aten::sum(%qs, %none)\n  %o : Tensor = aten::mul.Tensor(%c, %m)\n"),
             heads());
}

TEST(FuseAttentionGuards, QueriesWrittenAfterTheyWereScaled) {
  const std::string after = check_same(four_dimensions("  %qs : Tensor = aten::div.Scalar(%q, %eight)\n"
                                                       "  %w : Tensor = aten::add_.Scalar(%q, %two, %one)\n"
                                                       "  %scores : Tensor = aten::matmul(%qs, %t)\n"),
                                       heads());
  EXPECT_NE(after.find("aten::div.Scalar"), std::string::npos) << after;
}

TEST(FuseAttentionGuards, ViewsThatBreakRows) {
  check_same(four_dimensions("  %other : List[int] = prim::Constant[value=[2, 3, 7, 5]]()\n" + kScores +
                             "  %scores : Tensor = aten::view(%s, %other)\n"),
             {random(Dims{2, 3, 5, 16}), random(Dims{2, 3, 7, 16}), random(Dims{2, 3, 5, 16}), random(Dims{1})}, 0);
}

TEST(FuseAttentionGuards, OtherDimensionsSwappedAtTheEnd) {
  for (const char* dims : {"%zero, %one", "%two, %last", "%zero, %two"}) {
    check_same(four_dimensions("  %scores : Tensor = aten::matmul(%q, %t)\n",
                               std::string("  %o : Tensor = aten::transpose.int(%c, ") + dims + ")\n"),
               heads());
  }
  for (const char* order : {"[0, 1, 3, 2]", "[2, 1, 0, 3]", "[0, 2, 1, 3]", "[1, 2, 0, 3]"}) {
    check_same(four_dimensions("  %scores : Tensor = aten::matmul(%q, %t)\n",
                               std::string("  %order : List[int] = prim::Constant[value=") + order +
                                   "]()\n  %o : Tensor = aten::permute(%c, %order)\n"),
               heads());
  }
}

// baddbmm(mask, q, k; beta, alpha).
std::string three_dimensions(const std::string& beta, const std::string& alpha, const std::string& after) {
  return std::string("graph(%q : Tensor, %k : Tensor, %v : Tensor, %mask : Tensor):\n") + kConstants +
         "  %t : Tensor = aten::transpose.int(%k, %before, %last)\n"
         "  %s : Tensor = aten::baddbmm(%mask, %q, %t, " +
         beta + ", " + alpha + ")\n" + after +
         "  %p : Tensor = aten::softmax.int(%scores, %last, %none)\n"
         "  %c : Tensor = aten::bmm(%p, %v)\n"
         "  return (%c)\n";
}

TEST(FuseAttentionGuards, SumsOfBaddbmm) {
  const std::vector<Tensor> inputs{random(Dims{6, 5, 8}), random(Dims{6, 7, 8}), random(Dims{6, 7, 8}),
                                   random(Dims{6, 5, 7})};
  const std::string nothing = "  %scores : Tensor = aten::contiguous(%s, %zero)\n";
  const std::string scaled = "  %scores : Tensor = aten::div.Scalar(%s, %eight)\n";
  const std::string masked = "  %scores : Tensor = aten::add.Tensor(%s, %mask, %one)\n";
  check_same(three_dimensions("%two", "%one", nothing), inputs, 0);
  check_same(three_dimensions("%one", "%one", scaled), inputs, 0);
  check_same(three_dimensions("%one", "%one", masked), inputs, 0);
  check_same(three_dimensions("%one", "%two", nothing), inputs, 1);
  check_same(three_dimensions("%zero", "%two", scaled), inputs, 1);
  check_same(three_dimensions("%zero", "%two", masked), inputs, 1);
}

// A constant mask that hides positions from `from` after a row's own, filled with `fill`.
void check_triangle(int64_t from, const char* fill) {
  const Tensor mask = ops::call_by_name<Tensor>("aten::triu", Tensor::empty(Dims{5, 5}, DType::kBool), int64_t{0});
  for (int64_t i = 0; i < 5; ++i) {
    for (int64_t j = 0; j < 5; ++j) mask.data<bool>()[i * 5 + j] = j >= i + from;
  }
  const std::string text =
      four_dimensions("  %hide : Tensor = prim::Constant[value=<Tensor @0>]()\n" + kScores +
                          "  %scores : Tensor = aten::masked_fill.Scalar(%s, %hide, " + fill + ")\n",
                      kEnd);
  check_same(text, {random(Dims{2, 3, 5, 16}), random(Dims{2, 3, 5, 16}), random(Dims{2, 3, 5, 16}), random(Dims{1})},
             1, {mask});
}

TEST(FuseAttentionGuards, TrianglesThatAreNotCausal) {
  check_triangle(1, "%hidden");
  check_triangle(0, "%hidden");
  check_triangle(2, "%hidden");
  check_triangle(1, "%small");
}

TEST(FuseAttentionGuards, NothingToAttendTo) {
  check_same(four_dimensions("  %scores : Tensor = aten::matmul(%q, %t)\n"),
             {random(Dims{2, 3, 5, 16}), random(Dims{2, 3, 0, 16}), random(Dims{2, 3, 0, 16}), random(Dims{1})}, 0);
}

}  // namespace
}  // namespace tensord::jit::fuse_attention_guards_test
