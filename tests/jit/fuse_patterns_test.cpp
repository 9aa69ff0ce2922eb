// Activations and normalizations composed of basic operators: which become one operator, with the same results up to
// rounding.
#include <gtest/gtest.h>

#include <cmath>

#include "core/jit/ir/text.h"
#include "core/jit/ir/verify.h"
#include "core/jit/passes/packing.h"
#include "core/jit/passes/passes.h"
#include "core/jit/runtime/interpreter.h"
#include "tests/kernels/prepared_fixture.h"

namespace tensord::jit::fuse_patterns_test {
namespace {

using fixtures::random_tensor;
using ops::Value;

Tensor run(const Graph& graph, const std::vector<Tensor>& inputs) {
  std::vector<Value> arguments(inputs.begin(), inputs.end());
  Frame frame;
  const auto program = Program::compile(graph, "test");
  return Interpreter(frame, nullptr).run(*program, arguments).to_tensor();
}

const char* const kConstants = R"(graph(%x : Tensor, %w : Tensor, %b : Tensor):
  %half : float = prim::Constant[value=0.5]()
  %one : int = prim::Constant[value=1]()
  %onef : float = prim::Constant[value=1.]()
  %two : int = prim::Constant[value=2]()
  %three : int = prim::Constant[value=3]()
  %six : int = prim::Constant[value=6]()
  %zero : int = prim::Constant[value=0]()
  %root2 : float = prim::Constant[value=1.4142135623730951]()
  %roothalf : float = prim::Constant[value=0.7071067811865476]()
  %c : float = prim::Constant[value=0.7978845608028654]()
  %k : float = prim::Constant[value=0.044715]()
  %eps : float = prim::Constant[value=1e-05]()
  %dim : int = prim::Constant[value=-1]()
  %first : int = prim::Constant[value=0]()
  %dims : List[int] = prim::ListConstruct(%dim)
  %dims0 : List[int] = prim::ListConstruct(%first)
  %yes : bool = prim::Constant[value=True]()
  %no : bool = prim::Constant[value=False]()
  %none : NoneType = prim::Constant[value=None]()
)";

// The computing operators after the pass, in order.
std::string ops_after(const std::string& body, const char* result, DType dtype = DType::kFloat32) {
  const auto graph = parse_graph(kConstants + body + "  return (" + result + ")\n");
  verify(*graph);
  auto fused = graph->clone();
  const std::vector<Tensor> inputs{random_tensor({3, 5, 40}, dtype), random_tensor({40}), random_tensor({40})};
  for (size_t i = 0; i < inputs.size(); ++i) fused->inputs()[i]->set_known(fixtures::meta_of(inputs[i]));
  PassContext context;
  for (int round = 0; round < 3; ++round) {
    propagate_shapes(*fused, context);
    fuse_patterns(*fused, context);
    eliminate_dead_code(*fused, context);
    verify(*fused);
  }
  std::string names;
  for_each_node(fused->block(), [&](Node* node) {
    if (node->op()) names += (names.empty() ? "" : " ") + node->op()->schema.name.substr(6);
  });
  const Tensor expected = run(*graph, inputs).to(DType::kFloat64), got = run(*fused, inputs).to(DType::kFloat64);
  for (int64_t i = 0; i < expected.numel(); ++i)
    EXPECT_NEAR(got.data<double>()[i], expected.data<double>()[i], 2e-5) << names;
  return names;
}

TEST(FusePatterns, Silu) {
  const char* body = "  %a : Tensor = aten::sigmoid(%x)\n  %r : Tensor = aten::mul.Tensor(%x, %a)\n";
  EXPECT_EQ(ops_after(body, "%r"), "silu");
  EXPECT_EQ(ops_after("  %a : Tensor = aten::sigmoid(%x)\n  %r : Tensor = aten::mul.Tensor(%a, %x)\n", "%r"), "silu");
  EXPECT_EQ(ops_after("  %a : Tensor = aten::sigmoid(%x)\n  %r : Tensor = aten::mul.Tensor(%a, %w)\n", "%r"),
            "sigmoid mul");
  EXPECT_EQ(ops_after(body, "%r", DType::kInt64), "sigmoid mul");
}

// A 0-dimensional float64 tensor promotes a 0-dimensional float32 tensor to float64.
TEST(FusePatterns, KeepsTheDtypeOfTheResult) {
  const auto fused = [](const Tensor& x) {
    const auto graph = parse_graph(R"(graph(%x : Tensor):
  %one : int = prim::Constant[value=1]()
  %half : Tensor = prim::Constant[value=<Tensor @0>]()
  %root2 : Tensor = prim::Constant[value=<Tensor @1>]()
  %a : Tensor = aten::div.Tensor(%x, %root2)
  %e : Tensor = aten::erf(%a)
  %p : Tensor = aten::add.Scalar(%e, %one, %one)
  %g : Tensor = aten::mul.Tensor(%x, %half)
  %r : Tensor = aten::mul.Tensor(%g, %p)
  return (%r)
)",
                                   std::vector<Value>{Tensor::scalar(0.5), Tensor::scalar(std::sqrt(2.0))});
    graph->inputs()[0]->set_known(fixtures::meta_of(x));
    const DType expected = run(*graph, {x}).dtype();
    PassContext context;
    propagate_shapes(*graph, context);
    const bool is_fused = fuse_patterns(*graph, context);
    EXPECT_EQ(run(*graph, {x}).dtype(), expected);
    return is_fused;
  };
  EXPECT_TRUE(fused(random_tensor({4})));
  EXPECT_TRUE(fused(random_tensor({}, DType::kFloat64)));
  EXPECT_FALSE(fused(random_tensor({})));
}

TEST(FusePatterns, GeluByErf) {
  const char* inner =
      "  %p : Tensor = aten::div.Scalar(%x, %root2)\n  %e : Tensor = aten::erf(%p)\n"
      "  %f : Tensor = aten::add.Scalar(%e, %onef, %one)\n";
  EXPECT_EQ(ops_after(std::string(inner) + "  %g : Tensor = aten::mul.Scalar(%x, %half)\n"
                                           "  %r : Tensor = aten::mul.Tensor(%g, %f)\n",
                      "%r"),
            "gelu");
  EXPECT_EQ(ops_after(std::string(inner) + "  %g : Tensor = aten::mul.Tensor(%x, %f)\n"
                                           "  %r : Tensor = aten::mul.Scalar(%g, %half)\n",
                      "%r"),
            "gelu");
  EXPECT_EQ(ops_after(std::string(inner) + "  %g : Tensor = aten::mul.Scalar(%f, %half)\n"
                                           "  %r : Tensor = aten::mul.Tensor(%x, %g)\n",
                      "%r"),
            "gelu");
  EXPECT_EQ(ops_after("  %p : Tensor = aten::mul.Scalar(%x, %roothalf)\n  %e : Tensor = aten::erf(%p)\n"
                      "  %f : Tensor = aten::add.Scalar(%e, %one, %one)\n  %g : Tensor = aten::mul.Scalar(%x, %half)\n"
                      "  %r : Tensor = aten::mul.Tensor(%g, %f)\n",
                      "%r"),
            "gelu");
  // Another constant is another function.
  EXPECT_EQ(ops_after("  %p : Tensor = aten::mul.Scalar(%x, %half)\n  %e : Tensor = aten::erf(%p)\n"
                      "  %f : Tensor = aten::add.Scalar(%e, %one, %one)\n  %g : Tensor = aten::mul.Scalar(%x, %half)\n"
                      "  %r : Tensor = aten::mul.Tensor(%g, %f)\n",
                      "%r"),
            "mul erf add mul mul");
}

TEST(FusePatterns, GeluByTanh) {
  EXPECT_EQ(ops_after("  %p : Tensor = aten::pow.Tensor_Scalar(%x, %three)\n  %q : Tensor = aten::mul.Scalar(%p, %k)\n"
                      "  %s : Tensor = aten::add.Tensor(%x, %q, %one)\n  %t : Tensor = aten::mul.Scalar(%s, %c)\n"
                      "  %u : Tensor = aten::tanh(%t)\n  %v : Tensor = aten::add.Scalar(%u, %onef, %one)\n"
                      "  %g : Tensor = aten::mul.Scalar(%x, %half)\n  %r : Tensor = aten::mul.Tensor(%g, %v)\n",
                      "%r"),
            "gelu");
  EXPECT_EQ(ops_after("  %p : Tensor = aten::mul.Scalar(%x, %k)\n  %q : Tensor = aten::mul.Tensor(%p, %x)\n"
                      "  %s : Tensor = aten::add.Scalar(%q, %one, %one)\n  %o : Tensor = aten::mul.Scalar(%x, %c)\n"
                      "  %t : Tensor = aten::mul.Tensor(%o, %s)\n"
                      "  %u : Tensor = aten::tanh(%t)\n  %v : Tensor = aten::add.Scalar(%u, %onef, %one)\n"
                      "  %g : Tensor = aten::mul.Scalar(%x, %half)\n  %r : Tensor = aten::mul.Tensor(%g, %v)\n",
                      "%r"),
            "gelu");
}

TEST(FusePatterns, HardActivations) {
  const char* shifted = "  %a : Tensor = aten::add.Scalar(%x, %three, %one)\n";
  EXPECT_EQ(ops_after(std::string(shifted) + "  %d : Tensor = aten::relu6(%a)\n"
                                             "  %r : Tensor = aten::div.Scalar(%d, %six)\n",
                      "%r"),
            "hardsigmoid");
  EXPECT_EQ(ops_after(std::string(shifted) + "  %d : Tensor = aten::clamp(%a, %zero, %six)\n"
                                             "  %e : Tensor = aten::div.Scalar(%d, %six)\n"
                                             "  %r : Tensor = aten::mul.Tensor(%x, %e)\n",
                      "%r"),
            "hardswish");
  EXPECT_EQ(ops_after(std::string(shifted) + "  %d : Tensor = aten::hardtanh(%a, %zero, %six)\n"
                                             "  %e : Tensor = aten::mul.Tensor(%x, %d)\n"
                                             "  %r : Tensor = aten::div.Scalar(%e, %six)\n",
                      "%r"),
            "hardswish");
  EXPECT_EQ(ops_after("  %t : int = prim::Constant[value=20]()\n  %a : Tensor = aten::softplus(%x, %one, %t)\n"
                      "  %d : Tensor = aten::tanh(%a)\n  %r : Tensor = aten::mul.Tensor(%x, %d)\n",
                      "%r"),
            "mish");
}

TEST(FusePatterns, LayerNorm) {
  const char* head =
      "  %m : Tensor = aten::mean.dim(%x, %dims, %yes, %none)\n"
      "  %d : Tensor = aten::sub.Tensor(%x, %m, %one)\n";
  const char* affine = "  %y : Tensor = aten::mul.Tensor(%n, %w)\n  %r : Tensor = aten::add.Tensor(%y, %b, %one)\n";
  const std::string squares[] = {"  %s : Tensor = aten::pow.Tensor_Scalar(%d, %two)\n",
                                 "  %s : Tensor = aten::mul.Tensor(%d, %d)\n", "  %s : Tensor = aten::square(%d)\n"};
  const std::string ends[] = {"  %q : Tensor = aten::sqrt(%e)\n  %n : Tensor = aten::div.Tensor(%d, %q)\n",
                              "  %q : Tensor = aten::rsqrt(%e)\n  %n : Tensor = aten::mul.Tensor(%q, %d)\n"};
  for (const std::string& end : ends) {
    for (const std::string& square : squares) {
      const std::string variance = square +
                                   "  %v : Tensor = aten::mean.dim(%s, %dims, %yes, %none)\n"
                                   "  %e : Tensor = aten::add.Scalar(%v, %eps, %one)\n";
      EXPECT_EQ(ops_after(head + variance + end, "%n"), "layer_norm");
      EXPECT_EQ(ops_after(head + variance + end + affine, "%r"), "layer_norm");
    }
    const char* var =
        "  %v : Tensor = aten::var.dim(%x, %dims, %no, %yes)\n"
        "  %e : Tensor = aten::add.Scalar(%v, %eps, %one)\n";
    EXPECT_EQ(ops_after(std::string(head) + var + end + affine, "%r"), "layer_norm");
    const char* biased =
        "  %v : Tensor = aten::var.dim(%x, %dims, %yes, %yes)\n"
        "  %e : Tensor = aten::add.Scalar(%v, %eps, %one)\n";
    EXPECT_EQ(ops_after(std::string(head) + biased + end, "%n").substr(0, 12), "mean sub var");
  }
}

TEST(FusePatterns, Softmax) {
  const std::string body =
      "  %m : Tensor = aten::amax(%x, DIMS, %yes)\n  %d : Tensor = aten::sub.Tensor(%x, %m, %one)\n"
      "  %e : Tensor = aten::exp(%d)\n"
      "  %s : Tensor = aten::sum.dim_IntList(%e, DIMS, %yes, %none)\n"
      "  %r : Tensor = aten::div.Tensor(%e, %s)\n";
  const auto with = [&](const std::string& dims) {
    std::string text = body;
    for (size_t at; (at = text.find("DIMS")) != std::string::npos;) text.replace(at, 4, dims);
    return text;
  };
  EXPECT_EQ(ops_after(with("%dims"), "%r"), "softmax");
  EXPECT_EQ(ops_after(with("%dims0"), "%r"), "amax sub exp sum div");
}

}  // namespace
}  // namespace tensord::jit::fuse_patterns_test
