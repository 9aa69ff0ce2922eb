// What a plan must share with its graph: one change of a proven plan for each rule.
#include "core/ops/prepared.h"
#include "tests/jit/plan/plan_verifier_fixture.h"

namespace tensord::jit::plan_walk_test {
namespace {

struct Broken {
  Alter alter;
  const char* reason;
};

struct NoCall final : ops::PreparedCall {
  void run(const ops::KernelContext&, const ops::PreparedRun&) const override {}
};

TEST_F(PlanVerifier, InputsAreThoseOfTheGraph) {
  const auto input_tensor = [](Plan& plan) -> PlanTensor& { return plan.tensors[plan.inputs[0].tensor]; };
  const std::vector<Broken> rows{
      {[](Plan& plan) { plan.inputs.pop_back(); }, "it lacks inputs"},
      {[](Plan& plan) { plan.inputs.push_back(plan.inputs[0]); }, "it has more inputs than the graph"},
      {[](Plan& plan) { plan.inputs[0].item = 0; }, "input 0 is another one"},
      {[](Plan& plan) { plan.inputs[1].argument = 2; }, "input 1 is another one"},
      {[](Plan& plan) { plan.inputs[1].tensor = static_cast<uint32_t>(plan.tensors.size()); },
       "input 1 is another one"},
      {[=](Plan& plan) { input_tensor(plan).root = static_cast<uint32_t>(plan.roots.size()); },
       "input 0 is not as it comes"},
      {[=](Plan& plan) { plan.roots[input_tensor(plan).root].kind = PlanRoot::Kind::kOutput; },
       "input 0 is not as it comes"},
      {[=](Plan& plan) { plan.roots[input_tensor(plan).root].index = 1; }, "input 0 is not as it comes"},
      {[=](Plan& plan) {
         input_tensor(plan).meta = Tensor::meta(Dims{8, 8}, DType::kInt32);
       },
       "input 0 is not as it comes"},
      {[=](Plan& plan) {
         input_tensor(plan).meta = Tensor::meta(Dims{8, 7}, DType::kFloat32);
       },
       "input 0 is not as it comes"},
      {[=](Plan& plan) {
         input_tensor(plan).meta = Tensor::meta_strided(Dims{8, 8}, Dims{1, 8}, DType::kFloat32);
       },
       "input 0 is not as it comes"}};
  for (size_t i = 0; i < rows.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_REFUSED(refusal(rows[i].alter), rows[i].reason);
  }
}

TEST_F(PlanVerifier, CallsAreThoseOfTheGraph) {
  const auto nowhere = [](const Plan& plan) { return static_cast<uint32_t>(plan.tensors.size()); };
  const Tensor other = Tensor::meta(Dims{8, 7}, DType::kFloat32);
  const std::vector<Broken> rows{
      {[](Plan& plan) {
         PlanCall more;
         more.op = plan.calls[kExp].op;
         plan.calls.push_back(std::move(more));
       },
       "it has more calls than the graph"},
      {[](Plan& plan) { plan.calls[kNeg].op = plan.calls[kExp].op; }, "another operator is called"},
      {[](Plan& plan) { plan.calls[kAdd].arguments.pop_back(); }, "another operator is called"},
      {[](Plan& plan) { plan.calls[kMul].arguments[1] = ops::Value(); }, "another number of tensors"},
      {[](Plan& plan) { plan.calls[kMul].inputs.pop_back(); }, "it lacks an operand"},
      {[](Plan& plan) { plan.calls[kMul].inputs.push_back(0); }, "another number of operands"},
      {[](Plan& plan) { plan.calls[kMul].outputs.push_back(0); }, "another number of operands"},
      {[](Plan& plan) { plan.calls[kMul].outputs.clear(); }, "another number of operands"},
      {[=](Plan& plan) { plan.calls[kMul].inputs[1] = nowhere(plan); }, "a tensor is nowhere"},
      {[=](Plan& plan) { plan.calls[kMul].outputs[0] = nowhere(plan); }, "a tensor is nowhere"},
      {[](Plan& plan) { plan.tensors[plan.calls[kExp].outputs[0]].root = static_cast<uint32_t>(plan.roots.size()); },
       "a tensor is nowhere"},
      {[](Plan& plan) { result_root(plan, kAdd).index = 2; }, "a tensor is nowhere"},
      {[](Plan& plan) {
         plan.calls[kMul].arguments[1] = Tensor::empty(Dims{8, 8}, DType::kFloat32);
       },
       "operand 1 has another layout"},
      {[=](Plan& plan) { plan.calls[kMul].arguments[1] = other; }, "operand 1 has another layout"},
      {[=](Plan& plan) { plan.tensors[plan.calls[kMul].inputs[1]].meta = other; }, "has another layout"},
      {[=](Plan& plan) { plan.tensors[plan.calls[kArgmax].outputs[0]].meta = other; }, "result 0 has another layout"},
      {[](Plan& plan) { plan.calls[kMul].is_copy = true; }, "it is not a copy"},
      {[](Plan& plan) {
         plan.calls[kArgmax].is_copy = true;
         plan.calls[kArgmax].prepared.reset();
       },
       "a copy has another size"}};
  for (size_t i = 0; i < rows.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_REFUSED(refusal(rows[i].alter), rows[i].reason);
  }
  // A tensor inside an input must lie completely inside it.
  EXPECT_REFUSED(refusal([](Plan& plan) {
                   PlanTensor behind = plan.tensors[plan.inputs[0].tensor];
                   behind.offset_bytes = 4;
                   plan.tensors.push_back(behind);
                   plan.calls[kExp].inputs[0] = static_cast<uint32_t>(plan.tensors.size() - 1);
                 }),
                 "a tensor ends outside of its input");
  EXPECT_REFUSED(refusal([](Plan& plan) {
                   PlanTensor elsewhere = plan.tensors[plan.inputs[0].tensor];
                   plan.roots.push_back({.kind = PlanRoot::Kind::kInput, .index = 2});
                   elsewhere.root = static_cast<uint32_t>(plan.roots.size() - 1);
                   plan.tensors.push_back(elsewhere);
                   plan.calls[kExp].inputs[0] = static_cast<uint32_t>(plan.tensors.size() - 1);
                 }),
                 "a tensor is nowhere");
}

TEST_F(PlanVerifier, ResultsAreThoseOfTheGraph) {
  const std::vector<Broken> rows{
      {[](Plan& plan) { plan.outputs.pop_back(); }, "it gives another number of results"},
      {[](Plan& plan) { plan.outputs[0].is_list = true; }, "result 0 is of another kind"},
      {[](Plan& plan) { plan.outputs[1].tensors.push_back(0); }, "result 1 is of another kind"},
      {[](Plan& plan) { plan.outputs[0].tensors[0] = static_cast<uint32_t>(plan.tensors.size()); },
       "result 0 is a constant"},
      {[](Plan& plan) { plan.outputs[1].movable_root = 2; }, "no single result can be moved"}};
  for (size_t i = 0; i < rows.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_REFUSED(refusal(rows[i].alter), rows[i].reason);
  }
}

TEST_F(PlanVerifier, TwoResultsOfOneCallOverlap) {
  const std::string text = "graph(%x : Tensor):\n" + kConstants +
                           "  %m : Tensor, %i : Tensor = aten::max.dim(%x, %last, %no)\n"
                           "  %out : Tuple[Tensor, Tensor] = prim::TupleConstruct(%m, %i)\n"
                           "  return (%out)\n";
  const std::vector<Tensor> inputs{Tensor::meta(Dims{8, 8}, DType::kFloat32)};
  EXPECT_REFUSED(refusal(text, inputs,
                         [](Plan& plan) {
                           PlanTensor& second = plan.tensors[plan.calls[0].outputs[1]];
                           second.root = plan.tensors[plan.calls[0].outputs[0]].root;
                           plan.output_bytes[plan.roots[second.root].index] = 64;
                         }),
                 "results 0 and 1 overlap");
  EXPECT_REFUSED(refusal(text, inputs,
                         [](Plan& plan) {
                           plan.calls[0].is_copy = true;
                           plan.calls[0].prepared.reset();
                         }),
                 "it is not a copy");
}

// The declared aliasing holds for results with the operand's layout.
TEST_F(PlanVerifier, ResultsOfAnotherKindLieOnNoOperand) {
  const std::string text = "graph(%x : Tensor):\n" + kConstants +
                           "  %a : Tensor = aten::exp(%x)\n"
                           "  %i : Tensor = aten::argmax(%a, %last, %no)\n"
                           "  %out : Tensor = aten::neg(%i)\n"
                           "  return (%out)\n";
  const std::vector<Tensor> inputs{Tensor::meta(Dims{8, 8}, DType::kFloat32)};
  settings_.reuses_in_place = false;
  settings_.shares_memory = false;
  EXPECT_REFUSED(refusal(text, inputs,
                         [](Plan& plan) {
                           auto declared = std::make_unique<NoCall>();
                           declared->may_overwrite = 1;
                           plan.calls[1].prepared = std::move(declared);
                           result_root(plan, 1).offset = result_root(plan, 0).offset;
                         }),
                 "result 0 lies on operand 0, which is not declared");
}

// If one value is returned twice, it must not be in memory of another.
TEST_F(PlanVerifier, AResultThatLeavesTwiceIsNotMoved) {
  const std::string text = "graph(%x : Tensor):\n" + kConstants +
                           "  %a : Tensor = aten::exp(%x)\n"
                           "  %t : Tensor = aten::t(%a)\n"
                           "  %out : Tuple[Tensor, Tensor] = prim::TupleConstruct(%a, %t)\n"
                           "  return (%out)\n";
  const std::vector<Tensor> inputs{Tensor::meta(Dims{8, 8}, DType::kFloat32)};
  EXPECT_REFUSED(refusal(text, inputs, [](Plan& plan) { plan.outputs[0].movable_root = 0; }),
                 "not alone in its memory");
  EXPECT_REFUSED(refusal(text, inputs, [](Plan& plan) { plan.outputs[1].movable_root = 0; }),
                 "does not fill its memory");  // its elements are in another order
}

// Empty tensors have no memory.
TEST_F(PlanVerifier, NothingIsReadOfEmptyTensors) {
  const std::vector<Tensor> inputs{Tensor::meta(Dims{0, 8}, DType::kFloat32)};
  const std::string text = "graph(%x : Tensor):\n" + kConstants +
                           "  %a : Tensor = aten::exp(%x)\n"
                           "  %b : Tensor = aten::add.Tensor(%a, %x, %one)\n"
                           "  return (%b)\n";
  EXPECT_EQ(refusal(text, inputs, [](Plan&) {}), "proven");
}

// Every item of a list is the value that it is made of, and is returned where the graph says.
TEST_F(PlanVerifier, ItemsOfLists) {
  const std::string text = "graph(%x : Tensor):\n" + kConstants +
                           "  %y : Tensor = aten::exp(%x)\n"
                           "  %list : List[Tensor] = prim::ListConstruct(%y, %x)\n"
                           "  %a : Tensor, %b : Tensor = prim::ListUnpack(%list)\n"
                           "  %c : Tensor = aten::sub.Tensor(%a, %b, %one)\n"
                           "  return (%c)\n";
  const std::vector<Tensor> inputs{Tensor::meta(Dims{8, 8}, DType::kFloat32)};
  EXPECT_EQ(refusal(text, inputs, [](Plan&) {}), "proven");
  EXPECT_REFUSED(refusal(text, inputs, [](Plan& plan) { std::swap(plan.calls[1].inputs[0], plan.calls[1].inputs[1]); }),
                 "operand 0 is not there");
}

TEST_F(PlanVerifier, CopiesAreInTheOrderOfTheElements) {
  const std::string text = "graph(%x : Tensor):\n" + kConstants +
                           "  %t : Tensor = aten::t(%x)\n"
                           "  %r : Tensor = aten::reshape(%t, %turned)\n"
                           "  %out : Tensor = aten::exp(%r)\n"
                           "  return (%out)\n";
  const std::vector<Tensor> inputs{Tensor::meta(Dims{6, 8}, DType::kFloat32)};
  const auto altered = [&](const Alter& alter) {
    return refusal(text, inputs, [&](Plan& plan) {
      ASSERT_TRUE(plan.calls[0].is_copy);
      alter(plan);
    });
  };
  EXPECT_EQ(altered([](Plan&) {}), "proven");
  EXPECT_REFUSED(altered([](Plan& plan) { plan.calls[0].inputs.push_back(0); }), "another number of operands");
  EXPECT_REFUSED(altered([](Plan& plan) { plan.calls[0].prepared = std::make_unique<NoCall>(); }), "it is not a copy");
}

TEST_F(LoopVerifier, LoopsAreAsTheyAreWalked) {
  struct Row {
    std::function<void(Plan&, SampleLoop&)> alter;
    const char* reason;
  };
  const std::vector<Row> rows{
      {[](Plan&, SampleLoop& loop) { loop.input_strides.pop_back(); }, "its loop has other operands"},
      {[](Plan&, SampleLoop& loop) { loop.output_strides.push_back(192); }, "its loop has other operands"},
      {[](Plan&, SampleLoop& loop) { loop.parts.clear(); }, "too little scratch memory"},
      {[](Plan&, SampleLoop& loop) { loop.samples = 0; }, "too little scratch memory"},
      {[](Plan&, SampleLoop& loop) { loop.parts[0].end = 0; }, "leaves samples out, or does them twice"},
      {[](Plan&, SampleLoop& loop) { loop.parts[0].tile = 0; }, "leaves samples out, or does them twice"},
      {[](Plan&, SampleLoop& loop) { loop.parts[0].teams = 0; }, "leaves samples out, or does them twice"},
      {[](Plan&, SampleLoop& loop) { loop.samples = 6; }, "leaves samples out"},
      {[](Plan&, SampleLoop& loop) { body(loop, 1).calls[1].prepared.reset(); }, "is not prepared"},
      {[](Plan&, SampleLoop& loop) { body(loop, 1).calls[1].is_copy = true; }, "is not prepared"},
      {[](Plan&, SampleLoop& loop) { body(loop, 1).calls[1].loop = std::make_shared<SampleLoop>(); },
       "is not prepared"},
      {[](Plan&, SampleLoop& loop) { body(loop, 1).calls.pop_back(); }, "its loop's parts differ"},
      {[](Plan&, SampleLoop& loop) { --loop.parts[1].pointer_count; }, "its loop's parts differ"},
      {[](Plan&, SampleLoop& loop) { loop.parts[1].costs.pop_back(); }, "its loop's parts differ"},
      {[](Plan&, SampleLoop& loop) { body(loop, 1).inputs.emplace_back(); }, "its loop's parts differ"},
      {[](Plan&, SampleLoop& loop) { body(loop, 1).outputs.emplace_back(); }, "its loop's parts differ"},
      {[](Plan&, SampleLoop& loop) { body(loop, 1).output_bytes.push_back(192); }, "its loop's parts differ"},
      {[](Plan&, SampleLoop& loop) {
         for (const size_t part : {0, 1}) {
           body(loop, part).calls.clear();
           loop.parts[part].costs.clear();
           loop.parts[part].pointer_count = 0;
         }
       },
       "its loop's parts differ"},
      {[](Plan& plan, SampleLoop&) { plan.output_bytes[0] -= 64; }, "a tensor ends outside of its output"},
      {[](Plan& plan, SampleLoop&) { plan.calls[0].scratch_offset += 8; }, "its scratch memory is not aligned"},
      {[](Plan&, SampleLoop& loop) { body(loop, 1).calls[1].op = body(loop, 1).calls[0].op; },
       "another operator is called"},
      {[](Plan&, SampleLoop& loop) { body(loop, 1).calls[1].scratch_offset = 8; }, "its scratch memory is not aligned"},
      {[](Plan&, SampleLoop& loop) {
         Plan& inner = body(loop, 1);
         PlanRoot& root = inner.roots[inner.tensors[inner.calls[0].inputs[0]].root];
         root.kind = PlanRoot::Kind::kArena;
         root.offset = 0;
       },
       "an operand of its loop is not there"},
      {[](Plan&, SampleLoop& loop) {
         Plan& inner = body(loop, 1);
         inner.tensors[inner.calls[0].inputs[0]].offset_bytes = 64;
       },
       "an operand of its loop is not there, or not whole, when it begins"},
      {[](Plan& plan, SampleLoop&) {
         plan.tensors[plan.calls[0].outputs[0]].meta = Tensor::meta(Dims{4, 48}, DType::kFloat32);
       },
       "a result of its loop lies outside of its sample"},
      {[](Plan&, SampleLoop& loop) { loop.parts[0].team_bytes -= 8; }, "teams of its loop share memory"},
      {[](Plan&, SampleLoop& loop) { body(loop, 0).arena_bytes -= 8; }, "teams of its loop share memory"}};
  for (size_t i = 0; i < rows.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_REFUSED(refusal(rows[i].alter), rows[i].reason);
  }
  // One sample more than there is.
  EXPECT_REFUSED(refusal([](Plan&, SampleLoop& loop) {
                   loop.samples = 6;
                   loop.parts.back().end += loop.parts.back().tile;
                 }),
                 "has not the samples along its first dimension");
}

}  // namespace
}  // namespace tensord::jit::plan_walk_test
