#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "core/base/parallel.h"
#include "core/jit/ir/text.h"
#include "core/jit/ir/verify.h"
#include "core/jit/passes/packing.h"
#include "core/jit/passes/passes.h"
#include "core/jit/runtime/interpreter.h"

// Graphs with packed operators, compared with the unpacked ones.
namespace tensord::jit::packed_graphs {

using ops::Value;

inline Tensor random(std::initializer_list<int64_t> sizes, DType dtype = DType::kFloat32) {
  static std::mt19937 generator(7);
  std::uniform_real_distribution<float> values(-1, 1);
  const Tensor t = Tensor::empty(Dims(sizes), DType::kFloat32);
  for (int64_t i = 0; i < t.numel(); ++i) t.data<float>()[i] = values(generator);
  return t.to(dtype);
}
inline Tensor positive(std::initializer_list<int64_t> sizes) {
  const Tensor t = random(sizes);
  for (int64_t i = 0; i < t.numel(); ++i) t.data<float>()[i] = std::abs(t.data<float>()[i]) + 0.5f;
  return t;
}

inline double worst_difference(const Tensor& a, const Tensor& b) {
  if (!(a.sizes() == b.sizes()) || a.dtype() != b.dtype()) return INFINITY;
  const Tensor x = a.to(DType::kFloat64).contiguous(), y = b.to(DType::kFloat64).contiguous();
  double worst = 0;
  for (int64_t i = 0; i < x.numel(); ++i) worst = std::max(worst, std::abs(x.data<double>()[i] - y.data<double>()[i]));
  return worst;
}

inline std::vector<Tensor> run(const Graph& graph, const std::vector<Tensor>& inputs) {
  std::vector<Value> arguments;
  for (const Tensor& t : inputs) arguments.emplace_back(t.clone(true));
  Frame frame;
  const auto program = Program::compile(graph, "test");
  const Value result = Interpreter(frame, nullptr).run(*program, arguments);
  std::vector<Tensor> out;
  if (result.is_tensor()) return {result.to_tensor()};
  for (const Value& item : result.to_tuple()->items) out.push_back(item.to_tensor());
  return out;
}

// Runs every pass over packed operators, in order, with the verifier after each.
inline std::unique_ptr<Graph> packed(const Graph& graph) {
  auto copy = graph.clone();
  PassContext context;
  for (auto* pass : {prepack_weights, fold_batch_norm, fuse_epilogue, use_channels_last, eliminate_dead_code}) {
    pass(*copy, context);
    verify(*copy);
  }
  return copy;
}

inline int count(const Graph& graph, const std::string& op) {
  int found = 0;
  for_each_node(graph.block(), [&](Node* node) { found += node->kind_name() == op; });
  return found;
}

// Checks that the packed graph gives the same results, with one and with two threads, twice each.
inline std::unique_ptr<Graph> expect_same(const std::string& text, const std::vector<Value>& constants,
                                          const std::vector<Tensor>& inputs, double tolerance = 2e-5) {
  const auto graph = parse_graph(text, constants);
  verify(*graph);
  auto after = packed(*graph);
  const std::vector<Tensor> expected = run(*graph, inputs);
  for (const int threads : {1, 2, 1}) {
    set_thread_budget(threads);
    const std::vector<Tensor> got = run(*after, inputs);
    EXPECT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < std::min(got.size(), expected.size()); ++i) {
      EXPECT_LE(worst_difference(got[i], expected[i]), tolerance) << print_graph(*after);
      EXPECT_EQ(got[i].is_contiguous(), expected[i].is_contiguous()) << "output " << i << " has other strides\n"
                                                                     << print_graph(*after);
    }
  }
  return after;
}

// Constants that every graph below uses.
inline const std::string kNumbers = R"(
    %zero : int = prim::Constant[value=0]()
    %one : int = prim::Constant[value=1]()
    %two : int = prim::Constant[value=2]()
    %three : int = prim::Constant[value=3]()
    %none : NoneType = prim::Constant[value=None]()
    %false : bool = prim::Constant[value=False]()
    %true : bool = prim::Constant[value=True]()
    %tenth : float = prim::Constant[value=0.1]()
    %eps : float = prim::Constant[value=1e-05]()
    %minus : int = prim::Constant[value=-1]()
    %erf : str = prim::Constant[value="none"]()
    %ones : List[int] = prim::Constant[value=[1, 1]]()
    %twos : List[int] = prim::Constant[value=[2, 2]]()
    %zeros : List[int] = prim::Constant[value=[0, 0]]()
    %threes : List[int] = prim::Constant[value=[3, 3]]()
)";

inline std::string constant(const std::string& name, int index) {
  return "    %" + name + " : Tensor = prim::Constant[value=<Tensor @" + std::to_string(index) + ">]()\n";
}

struct ConvNet {
  // w1 16x8x3x3, b1, bn of 16, w2 16x16x1x1
  std::vector<Value> constants{random({16, 8, 3, 3}), random({16}),   positive({16}),        random({16}),
                               random({16}),          positive({16}), random({16, 16, 1, 1})};
  std::string head = "graph(%x : Tensor):" + kNumbers + constant("w1", 0) + constant("b1", 1) + constant("g", 2) +
                     constant("b", 3) + constant("m", 4) + constant("v", 5) + constant("w2", 6);
};

}  // namespace tensord::jit::packed_graphs
