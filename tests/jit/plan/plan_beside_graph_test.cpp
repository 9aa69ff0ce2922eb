// A proven plan with a graph that was changed afterwards: the walk's checks of the graph, and of both.
#include "tests/jit/plan/plan_verifier_fixture.h"

namespace tensord::jit::plan_beside_graph_test {
namespace {

class PlanBesideGraph : public LoopVerifier {
 protected:
  using Change = std::function<void(Node&, Plan&)>;

  // The reason why the plan of `text` is refused after a change to it, or to its node of the graph.
  std::string refusal(const std::string& text, const std::vector<Tensor>& inputs, const Change& change,
                      const std::vector<ops::Value>& constants = {}) {
    const auto graph = parse_graph(text, constants);
    for (size_t i = 0; i < inputs.size(); ++i) graph->inputs()[i]->set_known(inputs[i]);
    PassContext context;
    for (auto* pass : {propagate_constants, propagate_shapes, eliminate_dead_code, plan_segments})
      pass(*graph, context);
    Node* node = graph->block()->first();
    while (node && node->kind() != NodeKind::kPlan) node = node->next();
    if (!node) return "not planned";
    const std::unique_ptr<const Plan> plan = Plan::build(*node, settings_);
    change(*node, const_cast<Plan&>(*plan));
    try {
      verify_plan(*plan, *node);
    } catch (const PlanRefused& refused) {
      return refused.what();
    }
    return "proven";
  }
  std::string net_refusal(const Change& change) {
    settings_.splits_samples = false;
    const std::vector<Tensor> inputs{Tensor::meta(Dims{8, 8}, DType::kFloat32),
                                     Tensor::meta(Dims{8, 8}, DType::kFloat32)};
    return refusal(kNet, inputs, change);
  }
  static Node& find(const Node& plan, std::string_view name) {
    Node* node = plan.blocks()[0]->first();
    while (node && node->kind_name() != name) node = node->next();
    EXPECT_TRUE(node) << name;
    return *node;
  }
};

TEST_F(PlanBesideGraph, EveryNodeIsACallOfWhatIsInside) {
  EXPECT_EQ(net_refusal([](Node&, Plan&) {}), "proven");
  EXPECT_REFUSED(net_refusal([](Node& node, Plan&) { find(node, "aten::exp").replace_input(0, node.input(0)); }),
                 "a value comes from outside");
  EXPECT_REFUSED(net_refusal([](Node& node, Plan&) {
                   Node* const more = node.graph()->create(NodeKind::kTupleConstruct);
                   more->insert_before(&find(node, "aten::neg"));
                 }),
                 "a node is not a call: prim::TupleConstruct");
}

TEST_F(PlanBesideGraph, ResultsThatAreNoCalls) {
  EXPECT_REFUSED(net_refusal([](Node& node, Plan&) {
                   Node* const constant = node.graph()->create_constant(Tensor::empty(Dims{8, 8}, DType::kFloat32));
                   constant->insert_before(node.blocks()[0]->first());
                   node.blocks()[0]->replace_output(0, constant->output());
                 }),
                 "result 0 is a constant");
  // A returned input is the caller's, and cannot be moved.
  EXPECT_REFUSED(net_refusal([](Node& node, Plan& plan) {
                   for (size_t i = 0; i < 2; ++i) {
                     if (plan.inputs[0].argument == i) {
                       node.blocks()[0]->replace_output(0, node.blocks()[0]->inputs()[i]);
                     }
                   }
                   plan.outputs[0].tensors[0] = plan.inputs[0].tensor;
                   plan.outputs[0].movable_root = 0;
                 }),
                 "does not fill its memory");
}

TEST_F(PlanBesideGraph, ListsOfTheGraph) {
  settings_.splits_samples = false;
  const std::string text = "graph(%x : Tensor):\n" + kConstants +
                           "  %y : Tensor = aten::exp(%x)\n"
                           "  %list : List[Tensor] = prim::ListConstruct(%y, %x)\n"
                           "  %a : Tensor, %b : Tensor = prim::ListUnpack(%list)\n"
                           "  %c : Tensor = aten::sub.Tensor(%a, %b, %one)\n"
                           "  return (%c)\n";
  const std::vector<Tensor> inputs{Tensor::meta(Dims{8, 8}, DType::kFloat32)};
  EXPECT_REFUSED(
      refusal(text, inputs, [](Node& node, Plan&) { find(node, "prim::ListUnpack").add_output(ops::tensor_type()); }),
      "a list of another length is unpacked");
}

TEST_F(PlanBesideGraph, ConstantsOfTheGraph) {
  settings_.splits_samples = false;
  const std::string text = "graph(%x : Tensor):\n" + kConstants +
                           "  %w : Tensor = prim::Constant[value=<w @0>]()\n"
                           "  %y : Tensor = aten::mm(%x, %w)\n"
                           "  %z : Tensor = aten::exp(%y)\n"
                           "  return (%z)\n";
  const std::vector<Tensor> inputs{Tensor::meta(Dims{8, 8}, DType::kFloat32)};
  const Tensor weight = Tensor::empty(Dims{8, 8}, DType::kFloat32), other = Tensor::empty(Dims{8, 8}, DType::kFloat32);
  const auto found = [&](const Tensor& given) {
    return refusal(text, inputs, [&](Node&, Plan& plan) { plan.calls[0].arguments[1] = given; }, {weight});
  };
  EXPECT_EQ(found(weight), "proven");
  EXPECT_REFUSED(found(other), "a constant is another one");
}

// With a loop, which may read back what it wrote, no index can be moved.
TEST_F(PlanBesideGraph, IndicesBesideALoop) {
  std::string text = kLoop;
  text.insert(text.find("  %c : "), "  %i : Tensor = aten::argmax(%b, %last, %no)\n");
  text.replace(text.find("  return"), std::string::npos,
               "  %both : Tuple[Tensor, Tensor] = prim::TupleConstruct(%out, %i)\n  return (%both)\n");
  const std::vector<Tensor> inputs{Tensor::meta(Dims{5, 48}, DType::kFloat32), Tensor::meta(Dims{48}, DType::kFloat32)};
  bool has_loop = false;
  const std::string found = refusal(text, inputs, [&](Node&, Plan& plan) {
    for (const PlanCall& call : plan.calls) has_loop |= call.loop != nullptr;
    for (PlanOutput& output : plan.outputs) {
      const PlanTensor& tensor = plan.tensors[output.tensors[0]];
      if (tensor.meta.dtype() == DType::kInt64)
        output.movable_root = static_cast<int32_t>(plan.roots[tensor.root].index);
    }
  });
  EXPECT_TRUE(has_loop);
  EXPECT_REFUSED(found, "a result that can be moved is read as an index");
}

TEST_F(PlanBesideGraph, CallsOfALoopKeepSamplesApart) {
  const std::vector<Tensor> inputs{Tensor::meta(Dims{5, 48}, DType::kFloat32), Tensor::meta(Dims{48}, DType::kFloat32)};
  EXPECT_EQ(refusal(kLoop, inputs, [](Node&, Plan&) {}), "proven");
  EXPECT_REFUSED(refusal(kLoop, inputs,
                         [](Node& node, Plan& plan) {
                           ASSERT_TRUE(plan.calls[0].loop);
                           find(node, "aten::softmax.int").input(1)->node()->set_constant(0);
                         }),
                 "it does not keep samples apart");
  EXPECT_REFUSED(refusal(kLoop, inputs,
                         [](Node& node, Plan&) {
                           find(node, "aten::exp").output()->set_known(Tensor::meta(Dims{5, 0}, DType::kFloat32));
                         }),
                 "has not the samples along its first dimension");
}

}  // namespace
}  // namespace tensord::jit::plan_beside_graph_test
