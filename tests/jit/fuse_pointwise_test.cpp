// Which elementwise operators and reductions are fused into a group, and that a group gives the results of its calls.
#include <gtest/gtest.h>

#include "core/jit/ir/text.h"
#include "core/jit/ir/verify.h"
#include "core/jit/passes/packing.h"
#include "core/jit/passes/passes.h"
#include "core/jit/runtime/interpreter.h"
#include "core/ops/attributes/fused.h"
#include "tests/kernels/prepared_fixture.h"

namespace tensord::jit::fuse_pointwise_test {
namespace {

using fixtures::random_tensor;
using ops::Value;

std::vector<Tensor> run(const Graph& graph, const std::vector<Tensor>& inputs) {
  std::vector<Value> arguments(inputs.begin(), inputs.end());
  Frame frame;
  const auto program = Program::compile(graph, "test");
  const Value result = Interpreter(frame, nullptr).run(*program, arguments);
  if (result.is_tensor()) return {result.to_tensor()};
  std::vector<Tensor> out;
  for (const Value& item : result.to_tuple()->items) out.push_back(item.to_tensor());
  return out;
}

// The groups as a string, "add mul; exp sum"; checks that the results are bitwise equal.
std::string groups_of(const std::string& text, const std::vector<Tensor>& inputs, int64_t limit = INT64_MAX) {
  const auto graph = parse_graph(text);
  verify(*graph);
  auto fused = graph->clone();
  for (size_t i = 0; i < inputs.size(); ++i) fused->inputs()[i]->set_known(fixtures::meta_of(inputs[i]));
  PassContext context;
  propagate_shapes(*fused, context);
  context.remaining_changes = limit;
  const bool changed = fuse_pointwise(*fused, context);
  verify(*fused);
  EXPECT_FALSE(fuse_pointwise(*fused, context)) << "changes again when run again";
  std::string groups;
  for_each_node(fused->block(), [&](Node* node) {
    if (!node->is_op(ops::kRunFused)) return;
    const std::string name = node->input(0)->constant()->to_opaque()->class_name();
    const size_t begin = name.find('<') + 1;
    groups += (groups.empty() ? "" : "; ") + name.substr(begin, name.size() - begin - 1);
  });
  EXPECT_EQ(changed, !groups.empty());
  const std::vector<Tensor> expected = run(*graph, inputs), got = run(*fused, inputs);
  EXPECT_EQ(expected.size(), got.size());
  for (size_t i = 0; i < expected.size() && i < got.size(); ++i)
    EXPECT_TRUE(fixtures::same_bits(got[i], expected[i])) << text;
  return groups;
}

const char* const kChain = R"(graph(%x : Tensor, %y : Tensor):
  %half : float = prim::Constant[value=0.5]()
  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::mul.Scalar(%x, %half)
  %b : Tensor = aten::add.Tensor(%a, %y, %one)
  %c : Tensor = aten::relu(%b)
  return (%c)
)";

TEST(FusePointwise, Chain) {
  EXPECT_EQ(groups_of(kChain, {random_tensor({4, 5}), random_tensor({4, 5})}), "mul add relu");
  EXPECT_EQ(groups_of(kChain, {random_tensor({4, 5}), random_tensor({5})}), "mul add relu");
  EXPECT_EQ(groups_of(kChain, {random_tensor({4, 5}), random_tensor({4, 5})}, 0), "");
}

// Each row of y would scale the same row of x again.
TEST(FusePointwise, DoesNotComputeBroadcastValuesAgain) {
  EXPECT_EQ(groups_of(kChain, {random_tensor({5}), random_tensor({400, 5})}), "add relu");
}

TEST(FusePointwise, KeepsWhatOthersUse) {
  EXPECT_EQ(groups_of(R"(graph(%x : Tensor, %w : Tensor):
  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::sigmoid(%x)
  %b : Tensor = aten::mul.Tensor(%x, %a)
  %c : Tensor = aten::matmul(%b, %w)
  %d : Tensor = aten::add.Tensor(%c, %b, %one)
  %e : Tensor = aten::relu(%d)
  %t : Tuple[Tensor, Tensor] = prim::TupleConstruct(%e, %a)
  return (%t)
)",
                      {random_tensor({6, 6}), random_tensor({6, 6})}),
            "sigmoid mul; add relu");
}

// The product is between the two halves, and depends on the first.
TEST(FusePointwise, DoesNotGoAroundAUser) {
  EXPECT_EQ(groups_of(R"(graph(%x : Tensor, %w : Tensor):
  %a : Tensor = aten::sigmoid(%x)
  %c : Tensor = aten::matmul(%a, %w)
  %d : Tensor = aten::mul.Tensor(%a, %c)
  return (%d)
)",
                      {random_tensor({6, 6}), random_tensor({6, 6})}),
            "");
}

TEST(FusePointwise, Reductions) {
  EXPECT_EQ(groups_of(R"(graph(%x : Tensor, %m : Tensor):
  %scale : float = prim::Constant[value=8.]()
  %one : int = prim::Constant[value=1]()
  %dim : int = prim::Constant[value=-1]()
  %none : NoneType = prim::Constant[value=None]()
  %a : Tensor = aten::div.Scalar(%x, %scale)
  %b : Tensor = aten::add.Tensor(%a, %m, %one)
  %c : Tensor = aten::softmax.int(%b, %dim, %none)
  return (%c)
)",
                      {random_tensor({2, 3, 7, 9}), random_tensor({2, 1, 1, 9})}),
            "div add softmax");
  EXPECT_EQ(groups_of(R"(graph(%x : Tensor, %w : Tensor):
  %two : int = prim::Constant[value=2]()
  %one : int = prim::Constant[value=1]()
  %eps : float = prim::Constant[value=1e-06]()
  %dim : int = prim::Constant[value=-1]()
  %dims : List[int] = prim::ListConstruct(%dim)
  %yes : bool = prim::Constant[value=True]()
  %none : NoneType = prim::Constant[value=None]()
  %a : Tensor = aten::pow.Tensor_Scalar(%x, %two)
  %b : Tensor = aten::mean.dim(%a, %dims, %yes, %none)
  %c : Tensor = aten::add.Scalar(%b, %eps, %one)
  %d : Tensor = aten::rsqrt(%c)
  %e : Tensor = aten::mul.Tensor(%x, %d)
  %f : Tensor = aten::mul.Tensor(%w, %e)
  return (%f)
)",
                      {random_tensor({2, 5, 64}), random_tensor({64})}),
            "pow mean add rsqrt mul mul");
}

// Only sums over the last dimension can be computed row by row.
TEST(FusePointwise, LeavesOtherDimensions) {
  EXPECT_EQ(groups_of(R"(graph(%x : Tensor):
  %dim : int = prim::Constant[value=0]()
  %dims : List[int] = prim::ListConstruct(%dim)
  %yes : bool = prim::Constant[value=True]()
  %none : NoneType = prim::Constant[value=None]()
  %a : Tensor = aten::exp(%x)
  %b : Tensor = aten::sum.dim_IntList(%a, %dims, %yes, %none)
  %c : Tensor = aten::div.Tensor(%a, %b)
  return (%c)
)",
                      {random_tensor({5, 64})}),
            "");
}

TEST(FusePointwise, LeavesWhatIsWritten) {
  EXPECT_EQ(groups_of(R"(graph(%x : Tensor, %y : Tensor):
  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::sigmoid(%x)
  %b : Tensor = aten::mul.Tensor(%a, %y)
  %c : Tensor = aten::add_.Tensor(%a, %y, %one)
  %d : Tensor = aten::neg(%b)
  %e : Tensor = aten::mul.Tensor(%d, %c)
  %f : Tensor = aten::exp(%e)
  return (%f)
)",
                      {random_tensor({6, 6}), random_tensor({6, 6})}),
            "");
}

TEST(FusePointwise, InBranches) {
  EXPECT_EQ(groups_of(R"(graph(%x : Tensor):
  %yes : bool = prim::Constant[value=True]()
  %r : Tensor = prim::If(%yes)
    block0():
      %a : Tensor = aten::sigmoid(%x)
      %b : Tensor = aten::mul.Tensor(%a, %x)
      -> (%b)
    block1():
      -> (%x)
  return (%r)
)",
                      {random_tensor({6, 6})}),
            "sigmoid mul");
}

TEST(FusePointwise, WithoutShapesNothing) {
  const auto graph = parse_graph(kChain);
  PassContext context;
  EXPECT_FALSE(fuse_pointwise(*graph, context));
}

}  // namespace
}  // namespace tensord::jit::fuse_pointwise_test
