// Plans broken by hand, one rule each: every one is refused, with its reason.
#include "tests/jit/plan/plan_verifier_fixture.h"

namespace tensord::jit::plan_verifier_test {
namespace {

TEST_F(PlanVerifier, ProvesWhatThePlannerMakes) {
  for (const bool reuses : {false, true}) {
    for (const bool shares : {false, true}) {
      settings_.reuses_in_place = reuses;
      settings_.shares_memory = shares;
      EXPECT_EQ(refusal([](Plan&) {}), "proven");
    }
  }
}

// The copying variant of a view operator, called with a second tensor.
TEST_F(PlanVerifier, CopiesWithTwoOperands) {
  const std::string text =
      "graph(%x : Tensor, %y : Tensor):\n"
      "  %a : Tensor = aten::exp(%x)\n"
      "  %b : Tensor = aten::type_as(%a, %y)\n"
      "  %c : Tensor = aten::neg(%b)\n"
      "  return (%c)\n";
  const std::vector<Tensor> inputs{Tensor::meta(Dims{2, 3}, DType::kFloat32), Tensor::meta(Dims{4}, DType::kFloat64)};
  EXPECT_EQ(refusal(text, inputs, [](Plan&) {}), "proven");
}

// An empty part starts after the end of its memory.
TEST_F(PlanVerifier, PartsOfTensorsWithoutElements) {
  const std::string text =
      "graph(%x : Tensor):\n"
      "  %two : int = prim::Constant[value=2]()\n"
      "  %four : int = prim::Constant[value=4]()\n"
      "  %a : Tensor = aten::exp(%x)\n"
      "  %b : Tensor = aten::narrow(%a, %two, %four, %four)\n"
      "  %c : Tensor = aten::neg(%b)\n"
      "  return (%c)\n";
  for (const Dims& sizes : {Dims{2, 3, 12}, Dims{2, 0, 12}, Dims{0, 5, 12}})
    EXPECT_EQ(refusal(text, {Tensor::meta(sizes, DType::kFloat32)}, [](Plan&) {}), "proven");
}

TEST_F(PlanVerifier, TensorsThatLiveAtOnceOverlap) {
  settings_.reuses_in_place = false;
  EXPECT_REFUSED(refusal([](Plan& plan) { result_root(plan, kMm).offset = result_root(plan, kMul).offset; }),
                 "call 3 (mm, aten::mm): result 0 lies on operand 0, which is not declared");
  // Where the call may write it, but a later one reads it.
  EXPECT_REFUSED(refusal([](Plan& plan) { result_root(plan, kMul).offset = result_root(plan, kExp).offset; }),
                 "call 4 (add, aten::add.Tensor): operand 1 is not there, or not whole");
  // Not an operand of the call that writes it, but of a later one.
  EXPECT_REFUSED(refusal([](Plan& plan) { result_root(plan, kMm).offset = result_root(plan, kExp).offset; }),
                 "call 4 (add, aten::add.Tensor): operand 1 is not there, or not whole");
  // Where the call may write it, but at other elements' places.
  EXPECT_REFUSED(refusal([](Plan& plan) {
                   result_root(plan, kNeg).offset = result_root(plan, kExp).offset + 64;
                   plan.arena_bytes += 512;
                 }),
                 "call 1 (neg, aten::neg): result 0 lies on operand 0, which is not declared");
  // Half overlapping.
  settings_.shares_memory = false;
  EXPECT_REFUSED(refusal([](Plan& plan) {
                   result_root(plan, kMm).offset = result_root(plan, kExp).offset + 128;
                   plan.arena_bytes += 256;
                 }),
                 "call 4 (add, aten::add.Tensor): operand 1 is not there, or not whole");
}

TEST_F(PlanVerifier, NothingWroteWhatIsRead) {
  EXPECT_REFUSED(refusal([](Plan& plan) {
                   PlanTensor other = plan.tensors[plan.calls[kNeg].inputs[0]];
                   plan.roots.push_back({.offset = plan.arena_bytes, .bytes = 256});
                   other.root = static_cast<uint32_t>(plan.roots.size() - 1);
                   plan.arena_bytes += 256;
                   plan.tensors.push_back(other);
                   plan.calls[kNeg].inputs[0] = static_cast<uint32_t>(plan.tensors.size() - 1);
                 }),
                 "call 1 (neg, aten::neg): operand 0 is not there, or not whole");
  EXPECT_REFUSED(refusal([](Plan& plan) { plan.calls.erase(plan.calls.begin() + kNeg); }),
                 "another operator is called");
  EXPECT_REFUSED(refusal([](Plan& plan) { plan.calls.pop_back(); }), "no call does aten::argmax");
}

TEST_F(PlanVerifier, AnotherValueIsRead) {
  settings_.reuses_in_place = false;
  EXPECT_REFUSED(refusal([](Plan& plan) { plan.calls[kMul].inputs[0] = plan.calls[kMul].inputs[1]; }),
                 "call 2 (mul, aten::mul.Tensor): operand 0 is not there");
  EXPECT_REFUSED(refusal([](Plan& plan) { plan.calls[kExp].inputs[0] = plan.calls[kArgmax].inputs[0]; }),
                 "call 0 (exp, aten::exp): operand 0 is not there");
  EXPECT_REFUSED(refusal([](Plan& plan) { std::swap(plan.inputs[0], plan.inputs[1]); }), "input 0 is another one");
  EXPECT_REFUSED(refusal([](Plan& plan) { plan.calls[kAdd].arguments[2] = ops::Value(2); }),
                 "argument 2 is another number");
  for (const ops::Value& one : {ops::Value(1.0), ops::Value(true), ops::Value()}) {
    EXPECT_REFUSED(refusal([&](Plan& plan) { plan.calls[kAdd].arguments[2] = one; }), "argument 2 is another number");
  }
}

TEST_F(PlanVerifier, ScratchMemoryOverlaps) {
  const auto puts_scratch_at = [](size_t call, size_t other) {
    return [=](Plan& plan) {
      plan.calls[call].scratch_offset = result_root(plan, other).offset;
      plan.calls[call].scratch_bytes = 64;
    };
  };
  settings_.reuses_in_place = false;
  EXPECT_REFUSED(refusal(puts_scratch_at(kNeg, kExp)), "its scratch memory lies on operand 0");
  EXPECT_REFUSED(refusal(puts_scratch_at(kNeg, kNeg)), "its scratch memory lies on result 0");
  EXPECT_REFUSED(refusal(puts_scratch_at(kArgmax, kExp)), "proven");  // nobody reads it any more
  settings_.shares_memory = false;
  EXPECT_REFUSED(refusal([&](Plan& plan) {
                   puts_scratch_at(kMm, kExp)(plan);
                   plan.calls[kMm].scratch_bytes = 1;
                 }),
                 "call 3 (mm, aten::mm): it has too little scratch memory");
  EXPECT_REFUSED(refusal([&](Plan& plan) {
                   const size_t bytes = plan.calls[kMm].scratch_bytes;
                   puts_scratch_at(kMm, kExp)(plan);
                   plan.calls[kMm].scratch_bytes = bytes;
                   plan.arena_bytes += bytes;
                   result_root(plan, kMul).offset = plan.arena_bytes;
                   result_root(plan, kMm).offset = plan.arena_bytes + 256;
                   plan.arena_bytes += 512;
                 }),
                 "call 4 (add, aten::add.Tensor): operand 1 is not there");
}

TEST_F(PlanVerifier, OutsideOfItsMemoryOrNotAligned) {
  settings_.shares_memory = false;
  EXPECT_REFUSED(refusal([](Plan& plan) { result_root(plan, kExp).offset = plan.arena_bytes; }),
                 "call 0 (exp, aten::exp): a tensor ends outside of the arena");
  EXPECT_REFUSED(refusal([](Plan& plan) {
                   result_root(plan, kExp).offset += 4;
                   plan.arena_bytes += 64;
                 }),
                 "a tensor is not aligned");
  EXPECT_REFUSED(refusal([](Plan& plan) {
                   PlanTensor& tensor = plan.tensors[plan.calls[kExp].outputs[0]];
                   tensor.offset_bytes = -static_cast<int64_t>(plan.roots[tensor.root].offset) - 64;
                 }),
                 "a tensor begins outside of its memory");
  EXPECT_REFUSED(refusal([](Plan& plan) { plan.tensors[plan.calls[kExp].outputs[0]].offset_bytes = 2; }),
                 "between elements");
  EXPECT_REFUSED(refusal([](Plan& plan) { plan.output_bytes[0] -= 1; }), "ends outside of its output");
  EXPECT_REFUSED(refusal([](Plan& plan) { plan.tensors[plan.calls[kExp].inputs[0]].offset_bytes = 4; }),
                 "input 0 is not as it comes");
  EXPECT_REFUSED(refusal([](Plan& plan) { plan.calls[kMm].scratch_offset = plan.arena_bytes; }),
                 "ends outside of the arena");
  EXPECT_REFUSED(refusal([](Plan& plan) { plan.calls[kMm].scratch_offset += 8; }), "not aligned");
}

TEST_F(PlanVerifier, ResultsAreNotWholeOrStay) {
  settings_.reuses_in_place = false;
  EXPECT_REFUSED(refusal([](Plan& plan) { plan.outputs[0].tensors[0] = plan.calls[kExp].outputs[0]; }),
                 "result 0 lies in the arena");
  EXPECT_REFUSED(refusal([](Plan& plan) { plan.outputs[0].tensors[0] = plan.inputs[0].tensor; }),
                 "result 0 is not there, or not whole, at the end");
  EXPECT_REFUSED(refusal([](Plan& plan) { std::swap(plan.outputs[0], plan.outputs[1]); }),
                 "result 0 has another layout");
  // The second result is written over the first.
  EXPECT_REFUSED(refusal([](Plan& plan) {
                   result_root(plan, kArgmax) = result_root(plan, kAdd);
                   plan.outputs[1].movable_root = -1;
                 }),
                 "result 0 is not there, or not whole, at the end");
  EXPECT_REFUSED(
      refusal([](Plan& plan) { result_root(plan, kExp) = plan.roots[plan.tensors[plan.inputs[0].tensor].root]; }),
      "result 0 is written to an input");
}

TEST_F(PlanVerifier, OnlyWhatFillsItsMemoryCanBeMoved) {
  EXPECT_REFUSED(refusal([](Plan& plan) { plan.output_bytes[0] += 64; }), "does not fill its memory");
  EXPECT_REFUSED(refusal([](Plan& plan) { plan.outputs[0].movable_root = 1; }), "does not fill its memory");
  EXPECT_REFUSED(refusal([](Plan& plan) {
                   PlanTensor& behind = plan.tensors[plan.outputs[0].tensors[0]];
                   behind.offset_bytes = 256;
                   plan.output_bytes[0] += 256;
                 }),
                 "does not fill its memory");
  // Indices that are read back may select any element.
  const std::string text = "graph(%x : Tensor, %y : Tensor):\n" + kConstants +
                           "  %i : Tensor = aten::argmax(%x, %last, %no)\n"
                           "  %r : Tensor = aten::index_select(%y, %zero, %i)\n"
                           "  %out : Tuple[Tensor, Tensor] = prim::TupleConstruct(%i, %r)\n"
                           "  return (%out)\n";
  const std::vector<Tensor> inputs{Tensor::meta(Dims{8, 8}, DType::kFloat32),
                                   Tensor::meta(Dims{8, 8}, DType::kFloat32)};
  EXPECT_REFUSED(refusal(text, inputs, [](Plan& plan) { plan.outputs[0].movable_root = 0; }), "read as an index");
}

TEST_F(PlanVerifier, OperandsThatAreViewsOfWhatIsWrittenOver) {
  // y + y.t(): the sum must not be written over y, though y itself could be reused.
  const std::string text = "graph(%x : Tensor):\n" + kConstants +
                           "  %y : Tensor = aten::sigmoid(%x)\n"
                           "  %t : Tensor = aten::t(%y)\n"
                           "  %s : Tensor = aten::add.Tensor(%y, %t, %one)\n"
                           "  %z : Tensor = aten::neg(%s)\n"
                           "  return (%z)\n";
  const std::vector<Tensor> inputs{Tensor::meta(Dims{8, 8}, DType::kFloat32)};
  EXPECT_EQ(refusal(text, inputs, [](Plan&) {}), "proven");
  settings_.reuses_in_place = false;
  EXPECT_REFUSED(refusal(text, inputs, [](Plan& plan) { result_root(plan, 1).offset = result_root(plan, 0).offset; }),
                 "call 1 (add, aten::add.Tensor): result 0 lies on operand 1, which is not declared");
  // The same kernel, but a view with other rows.
  EXPECT_REFUSED(
      refusal(text, inputs, [](Plan& plan) { plan.tensors[plan.calls[1].inputs[1]].meta = plan.tensors[0].meta; }),
      "operand 1 has another layout");
}

// ---- loops over samples

TEST_F(LoopVerifier, ProvesWhatThePlannerMakes) {
  EXPECT_EQ(refusal([](Plan&, SampleLoop&) {}), "proven");
}

TEST_F(LoopVerifier, SamplesAreLeftOutOrMixed) {
  EXPECT_REFUSED(refusal([](Plan&, SampleLoop& loop) { loop.parts[0].end -= 2; }), "leaves samples out");
  EXPECT_REFUSED(refusal([](Plan&, SampleLoop& loop) { loop.parts.pop_back(); }), "leaves samples out");
  EXPECT_REFUSED(refusal([](Plan&, SampleLoop& loop) { loop.parts[1].first = 3; }), "or does them twice");
  EXPECT_REFUSED(refusal([](Plan&, SampleLoop& loop) { loop.parts[0].tile = 3; }), "or does them twice");
  EXPECT_REFUSED(refusal([](Plan&, SampleLoop& loop) { loop.input_strides[0] = 0; }), "has other samples");
  EXPECT_REFUSED(refusal([](Plan&, SampleLoop& loop) { loop.input_strides[1] = 192; }), "has other samples");
  EXPECT_REFUSED(refusal([](Plan&, SampleLoop& loop) { loop.output_strides[0] = 96; }), "outside of its sample");
  settings_.reuses_in_place = false;
  EXPECT_REFUSED(refusal([](Plan&, SampleLoop& loop) {
                   Plan& inner = body(loop, 1);
                   inner.tensors[inner.calls.back().outputs[0]].offset_bytes = 64;
                 }),
                 "outside of its sample");
  // Inside the result, which is larger, but spanning two of its samples.
  EXPECT_REFUSED(refusal([](Plan& plan, SampleLoop& loop) {
                   plan.tensors[plan.calls[0].outputs[0]].meta = Tensor::meta(Dims{6, 48}, DType::kFloat32);
                   plan.output_bytes[0] += 192;
                   for (const size_t part : {0, 1}) {
                     Plan& inner = body(loop, part);
                     inner.tensors[inner.calls.back().outputs[0]].offset_bytes = 64;
                   }
                 }),
                 "outside of its sample");
}

TEST_F(LoopVerifier, TeamsShareMemory) {
  EXPECT_REFUSED(refusal([](Plan&, SampleLoop& loop) { loop.parts[0].team_bytes -= 64; }), "teams of its loop share");
  EXPECT_REFUSED(refusal([](Plan&, SampleLoop& loop) { loop.parts[0].teams = 3; }), "teams of its loop share");
  EXPECT_REFUSED(refusal([](Plan& plan, SampleLoop&) { plan.calls[0].scratch_bytes -= 64; }),
                 "too little scratch memory");
}

TEST_F(LoopVerifier, AnyPartOfTheBodyIsWalked) {
  settings_.reuses_in_place = false;
  for (const size_t part : {0, 1}) {
    EXPECT_REFUSED(refusal([&](Plan&, SampleLoop& loop) {
                     Plan& inner = body(loop, part);
                     result_root(inner, 1).offset = result_root(inner, 0).offset;
                   }),
                   "aten::add.Tensor): an operand of its loop is not there");
    EXPECT_REFUSED(refusal([&](Plan&, SampleLoop& loop) {
                     Plan& inner = body(loop, part);
                     inner.calls[2].inputs[0] = inner.calls[2].inputs[1];
                   }),
                   "an operand of its loop is not there");
    // It stays in the arena of the tile.
    EXPECT_REFUSED(refusal([&](Plan&, SampleLoop& loop) {
                     Plan& inner = body(loop, part);
                     result_root(inner, 3).kind = PlanRoot::Kind::kArena;
                     result_root(inner, 3).offset = inner.arena_bytes - 192;
                   }),
                   "result 0 is not there, or not whole, at the end");
  }
  EXPECT_REFUSED(refusal([](Plan& plan, SampleLoop&) { plan.calls[0].outputs[0] = plan.calls[0].inputs[0]; }),
                 "its loop writes an input");
}

}  // namespace
}  // namespace tensord::jit::plan_verifier_test
