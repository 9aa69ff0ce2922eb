#pragma once

#include <gtest/gtest.h>

#include "core/base/parallel.h"
#include "core/jit/ir/text.h"
#include "core/jit/ir/verify.h"
#include "core/jit/passes/passes.h"
#include "core/jit/runtime/plan/batch_tile_loop.h"
#include "core/jit/runtime/plan/plan_verifier.h"
#include "core/jit/runtime/program.h"

// Plans that are made from a graph and broken before they are verified.
namespace tensord::jit {

using Alter = std::function<void(Plan&)>;

inline const std::string kConstants =
    "  %none : NoneType = prim::Constant[value=None]()\n"
    "  %no : bool = prim::Constant[value=False]()\n"
    "  %zero : int = prim::Constant[value=0]()\n"
    "  %one : int = prim::Constant[value=1]()\n"
    "  %last : int = prim::Constant[value=-1]()\n"
    "  %turned : List[int] = prim::Constant[value=[24, 2]]()\n";

// Six calls: exp, neg, mul, mm, add and a sum of rows; two results are returned.
inline const std::string kNet = "graph(%x : Tensor, %y : Tensor):\n" + kConstants +
                                "  %a : Tensor = aten::exp(%x)\n"
                                "  %b : Tensor = aten::neg(%a)\n"
                                "  %c : Tensor = aten::mul.Tensor(%a, %b)\n"
                                "  %d : Tensor = aten::mm(%c, %c)\n"
                                "  %e : Tensor = aten::add.Tensor(%d, %a, %one)\n"
                                "  %f : Tensor = aten::argmax(%y, %last, %no)\n"
                                "  %out : Tuple[Tensor, Tensor] = prim::TupleConstruct(%e, %f)\n"
                                "  return (%out)\n";

enum { kExp, kNeg, kMul, kMm, kAdd, kArgmax };

class PlanVerifier : public ::testing::Test {
 protected:
  PlanVerifier() : threads_(thread_budget()) { settings_.packs = &packs_; }
  ~PlanVerifier() override { set_thread_budget(threads_); }

  void compile(const std::string& text, const std::vector<Tensor>& inputs, const Alter& alter) {
    const auto graph = parse_graph(text);
    for (size_t i = 0; i < inputs.size(); ++i) graph->inputs()[i]->set_known(inputs[i]);
    PassContext context;
    for (auto* pass : {propagate_constants, propagate_shapes, eliminate_dead_code, plan_segments})
      pass(*graph, context);
    settings_.alter = alter;
    ASSERT_EQ(plan_totals(*Program::compile(*graph, "test", settings_)).plans, 1u);
  }

  // The reason why the plan of `text` is refused after the alteration; it is proven before.
  std::string refusal(const std::string& text, const std::vector<Tensor>& inputs, const Alter& alter) {
    size_t altered = 0;
    compile(text, inputs, {});
    try {
      compile(text, inputs, [&](Plan& plan) {
        ++altered;
        alter(plan);
      });
    } catch (const PlanRefused& refused) {
      EXPECT_EQ(refused.code(), ErrorCode::kInternal);
      return refused.what();
    }
    return altered > 0 ? "proven" : "not planned";
  }

  // kNet, with every tensor in memory of its own unless `settings_` says otherwise.
  std::string refusal(const Alter& alter) {
    const std::vector<Tensor> inputs{Tensor::meta(Dims{8, 8}, DType::kFloat32),
                                     Tensor::meta(Dims{8, 8}, DType::kFloat32)};
    return refusal(kNet, inputs, alter);
  }

  static PlanRoot& result_root(Plan& plan, size_t call) {
    return plan.roots[plan.tensors[plan.calls[call].outputs[0]].root];
  }

  ops::PackStore packs_;
  PlanSettings settings_;
  const int threads_;
};

#define EXPECT_REFUSED(TEXT, WHAT) EXPECT_PRED2(says, TEXT, std::string(WHAT))

inline bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

inline const std::string kLoop = "graph(%x : Tensor, %y : Tensor):\n" + kConstants +
                                 "  %a : Tensor = aten::exp(%x)\n"
                                 "  %b : Tensor = aten::softmax.int(%a, %last, %none)\n"
                                 "  %c : Tensor = aten::add.Tensor(%a, %b, %one)\n"
                                 "  %out : Tensor = aten::mul.Tensor(%c, %y)\n"
                                 "  return (%out)\n";

class LoopVerifier : public PlanVerifier {
 protected:
  LoopVerifier() {
    settings_.threads = 2;
    settings_.cache_bytes = 1;
    set_thread_budget(2);
  }
  // A batch of five on two threads: two parts.
  std::string refusal(const std::function<void(Plan&, SampleLoop&)>& alter) {
    const std::vector<Tensor> inputs{Tensor::meta(Dims{5, 48}, DType::kFloat32),
                                     Tensor::meta(Dims{48}, DType::kFloat32)};
    size_t loops = 0;
    std::string found = PlanVerifier::refusal(kLoop, inputs, [&](Plan& plan) {
      if (plan.calls.size() != 1 || !plan.calls[0].loop) return;  // a plan that was made to find the failing call
      ++loops;
      alter(plan, const_cast<SampleLoop&>(*plan.calls[0].loop));
    });
    EXPECT_GT(loops, 0u);
    if (found != "proven") {
      EXPECT_NE(found.find("by the pass split_samples"), std::string::npos) << found;
    }
    return found;
  }
  static Plan& body(SampleLoop& loop, size_t part) { return const_cast<Plan&>(*loop.parts[part].body); }
};

}  // namespace tensord::jit
