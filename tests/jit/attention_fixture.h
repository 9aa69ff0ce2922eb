#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "core/jit/ir/text.h"
#include "core/jit/ir/verify.h"
#include "core/jit/passes/packing.h"
#include "core/jit/passes/passes.h"
#include "core/jit/runtime/interpreter.h"

// Graphs with attention, and the effect of fuse_attention.
namespace tensord::jit::attention {

using ops::Value;

inline Tensor random(const Dims& sizes) {
  static std::mt19937 generator(9);
  std::uniform_real_distribution<float> values(-1, 1);
  const Tensor t = Tensor::empty(sizes, DType::kFloat32);
  for (int64_t i = 0; i < t.numel(); ++i) t.data<float>()[i] = values(generator);
  return t;
}

inline Tensor random_bool(const Dims& sizes) {
  const Tensor t = random(sizes), out = Tensor::empty(sizes, DType::kBool);
  for (int64_t i = 0; i < t.numel(); ++i) out.data<bool>()[i] = t.data<float>()[i] > 0.4f;
  return out;
}

inline Tensor run(const Graph& graph, const std::vector<Tensor>& inputs) {
  std::vector<Value> arguments;
  for (const Tensor& t : inputs) arguments.emplace_back(t.clone(true));
  Frame frame;
  const auto program = Program::compile(graph, "test");
  return Interpreter(frame, nullptr).run(*program, arguments).to_tensor();
}

inline int count(const Graph& graph, const std::string& op) {
  int found = 0;
  for_each_node(graph.block(), [&](Node* node) { found += node->kind_name() == op; });
  return found;
}

// The graph after the pass, as text. It must have `calls` calls of attention, and compute the same.
inline std::string check_same(const std::string& text, const std::vector<Tensor>& inputs, int calls = 1,
                              const std::vector<Value>& constants = {}) {
  const auto graph = parse_graph(text, constants);
  verify(*graph);
  const auto fused = graph->clone();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& t = inputs[i];
    fused->inputs()[i]->set_known(Tensor::meta_strided(t.sizes(), t.strides(), t.dtype()));
  }
  PassContext context;
  for (auto* pass :
       {propagate_constants, propagate_shapes, fuse_attention, group_heads, remove_transposes, eliminate_dead_code}) {
    pass(*fused, context);
    verify(*fused);
  }
  const std::string after = print_graph(*fused);
  EXPECT_EQ(count(*fused, "tensord::attention"), calls) << after;
  EXPECT_EQ(count(*fused, "aten::softmax.int"), 1 - calls) << after;
  const Tensor expected = run(*graph, inputs), got = run(*fused, inputs);
  EXPECT_EQ(to_string(got.sizes()), to_string(expected.sizes()));
  EXPECT_EQ(got.dtype(), expected.dtype());
  const Tensor a = expected.to(DType::kFloat64).contiguous(), b = got.to(DType::kFloat64).contiguous();
  for (int64_t i = 0; i < a.numel(); ++i) {
    const double x = a.data<double>()[i], y = b.data<double>()[i];
    if (!(std::isnan(x) && std::isnan(y))) {
      EXPECT_NEAR(x, y, 2e-6) << i << "\n" << after;
    }
  }
  return after;
}

inline const char* const kConstants = R"(  %none : NoneType = prim::Constant[value=None]()
  %no : bool = prim::Constant[value=False]()
  %yes : bool = prim::Constant[value=True]()
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %two : int = prim::Constant[value=2]()
  %last : int = prim::Constant[value=-1]()
  %before : int = prim::Constant[value=-2]()
  %eight : float = prim::Constant[value=8.0]()
  %small : float = prim::Constant[value=-10000.0]()
  %axes : List[int] = prim::Constant[value=[3]]()
  %hidden : float = prim::Constant[value=-inf]()
)";

// `body` computes %scores from %q, %k and %mask; `end` computes %o from the product %c.
inline std::string four_dimensions(const std::string& body,
                                   const std::string& end = "  %o : Tensor = aten::transpose.int(%c, %one, %two)\n") {
  return std::string("graph(%q : Tensor, %k : Tensor, %v : Tensor, %mask : Tensor):\n") + kConstants +
         "  %t : Tensor = aten::transpose.int(%k, %before, %last)\n" + body +
         "  %p : Tensor = aten::softmax.int(%scores, %last, %none)\n"
         "  %c : Tensor = aten::matmul(%p, %v)\n" +
         end + "  return (%o)\n";
}

inline std::vector<Tensor> heads(const Tensor& mask = random(Dims{1})) {
  return {random(Dims{2, 3, 5, 16}), random(Dims{2, 3, 7, 16}), random(Dims{2, 3, 7, 16}), mask};
}

}  // namespace tensord::jit::attention
