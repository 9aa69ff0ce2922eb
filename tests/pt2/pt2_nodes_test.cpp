// Invalid nodes of an exported program, and nodes that check a run.
#include "tests/pt2/parts_fixture.h"

namespace tensord::jit::pt2_nodes_test {
namespace {

// Changes one node of a program.
TEST_F(Pt2Parts, Nodes) {
  const auto error = [&](const std::function<void(json & nodes)>& change) {
    return error_after("conv", [&](json& p) { change(graph_of(p)["nodes"]); });
  };
  const auto as_tensor = [](const char* name) { return json{{"as_tensor", {{"name", name}}}}; };
  EXPECT_THAT(error([&](json& nodes) { nodes[0]["inputs"][0]["arg"] = as_tensor("linear"); }),
              HasSubstr("node 'conv2d': 'linear' is used before it is defined"));
  EXPECT_THAT(error([&](json& nodes) { nodes[1]["outputs"][0] = as_tensor("conv2d"); }),
              HasSubstr("node 'batch_norm': 'conv2d' is defined twice"));
  EXPECT_THAT(error([&](json& nodes) { nodes[0]["outputs"].push_back(as_tensor("more")); }),
              HasSubstr("node 'conv2d': has 2 results, but gives 1"));
  EXPECT_THAT(error([&](json& nodes) {
                nodes[2]["outputs"][0] = json{{"as_strange", 1}};
              }),
              HasSubstr("a result of kind as_strange is not supported"));
  EXPECT_THAT(error([](json& nodes) { nodes[2]["target"] = "torch.ops.aten.no_such.default"; }),
              HasSubstr("the program calls operators that are not supported: aten::no_such"));
  EXPECT_THAT(error([](json& nodes) { nodes[2]["inputs"] = json::array(); }),
              HasSubstr("aten::relu: argument 'self' is missing"));
  EXPECT_THAT(error([](json& nodes) { nodes[2]["inputs"].push_back(nodes[2]["inputs"][0]); }),
              HasSubstr("aten::relu: argument 'self' is given twice"));
  const auto unknown = [&](const json& value) {
    return error([&](json& nodes) {
      nodes[2]["inputs"].push_back(json{{"name", "strange"}, {"arg", value}, {"kind", 1}});
    });
  };
  EXPECT_EQ(unknown(json{{"as_bool", false}}), "none");  // no argument is given
  EXPECT_EQ(unknown(json{{"as_none", true}}), "none");
  EXPECT_THAT(unknown(json{{"as_bool", true}}), HasSubstr("aten::relu: argument 'strange' is not supported"));
  EXPECT_THAT(unknown(json{{"as_int", 0}}), HasSubstr("aten::relu: argument 'strange' is not supported"));
}

// Python's tracing may pass a number for any tensor argument if another overload takes a number there.
TEST_F(Pt2Parts, NumbersForTensors) {
  const auto error = [&](const char* target, const json& inputs) {
    return error_after("conv", [&](json& p) {
      json& node = graph_of(p)["nodes"][2];
      const json x = node["inputs"][0]["arg"];
      node["target"] = concat("torch.ops.aten.", target);
      node["inputs"] = json::array();
      for (const auto& [name, value] : inputs.items()) {
        node["inputs"].push_back(json{{"name", name}, {"arg", value == "x" ? x : value}, {"kind", 1}});
      }
    });
  };
  const json two{{"as_int", 2}};
  EXPECT_EQ(error("pow.Tensor_Tensor", {{"self", "x"}, {"exponent", two}}), "none");
  EXPECT_EQ(error("pow.Tensor_Tensor", {{"self", two}, {"exponent", "x"}}), "none");
  EXPECT_THAT(error("atan2.default", {{"self", "x"}, {"other", two}}),
              HasSubstr("a number for argument 'other' of aten::atan2 is not supported"));
  EXPECT_THAT(error("relu.default", {{"self", two}}),
              HasSubstr("a number for argument 'self' of aten::relu is not supported"));
}

TEST_F(Pt2Parts, FunctionsOfPython) {
  const auto error = [&](const char* target, const std::function<void(json & node)>& change) {
    return error_after("powers", [&](json& p) {
      for (json& node : graph_of(p)["nodes"]) {
        if (node["target"] == target) return change(node);
      }
      ADD_FAILURE() << "no " << target;
    });
  };
  const auto exponent = [](int64_t number) {
    return [=](json& node) { node["inputs"][1]["arg"] = json{{"as_int", number}}; };
  };
  EXPECT_EQ(error("_operator.pow", exponent(0)), "none");
  EXPECT_EQ(error("_operator.pow", exponent(16)), "none");
  for (const int64_t number : {-1, 17}) {
    EXPECT_THAT(error("_operator.pow", exponent(number)), HasSubstr("supported for exponents from 0 to 16 alone"));
  }
  EXPECT_THAT(error("torch.sym_ite",
                    [](json& node) {
                      node["inputs"][2]["arg"] = json{{"as_float", 1.5}};
                    }),
              HasSubstr("torch.sym_ite of int and float is not supported"));
  EXPECT_THAT(error("torch.sym_ite", [](json& node) { node["inputs"].erase(2); }),
              HasSubstr("torch.sym_ite takes 3 arguments, not 2"));
  EXPECT_THAT(error("torch.sym_ite", [](json& node) { node["target"] = "torch.sym_strange"; }),
              HasSubstr("torch.sym_strange"));
}

// Assertions that PyTorch inserts into programs fail at run time.
TEST_F(Pt2Parts, Assertions) {
  const auto raised = [&](const char* target, const std::vector<std::pair<const char*, json>>& inputs) -> std::string {
    std::string refused = error_after("conv", [&](json& p) {
      json node{{"target", concat("torch.ops.aten.", target)},
                {"inputs", json::array()},
                {"outputs", json::array()},
                {"metadata", json::object()}};
      for (const auto& [name, value] : inputs) node["inputs"].push_back({{"name", name}, {"arg", value}, {"kind", 1}});
      graph_of(p)["nodes"].insert(graph_of(p)["nodes"].begin(), node);
    });
    if (refused != "none") return refused;
    const std::vector<ops::Value> arguments{Tensor::empty(Dims{2, 3, 8, 8}, DType::kFloat32)};
    Frame frame;
    return error_of([&] { Module::load(file_.string())->method("forward").run(frame, arguments); });
  };
  const json x{{"as_tensor", {{"name", "x"}}}};
  const auto number = [](int64_t n) { return json{{"as_int", n}}; };
  const auto sizes = [](const std::vector<int64_t>& numbers) { return json{{"as_ints", numbers}}; };
  const json f32{{"as_scalar_type", 7}}, f64{{"as_scalar_type", 8}};
  const char* metadata = "_assert_tensor_metadata.default";
  EXPECT_EQ(raised(metadata, {{"a", x}, {"size", sizes({2, 3, 8, 8})}, {"dtype", f32}}), "none");
  EXPECT_THAT(raised(metadata, {{"a", x}, {"dtype", f64}}),
              HasSubstr("a tensor has another dtype than in the exported program"));
  EXPECT_THAT(raised(metadata, {{"a", x}, {"size", sizes({2, 3, 8, 9})}}),
              HasSubstr("a tensor has other sizes than in the exported program"));
  const char* range = "sym_constrain_range.default";
  EXPECT_EQ(raised(range, {{"size", number(5)}, {"min", number(5)}, {"max", number(5)}}), "none");
  EXPECT_THAT(raised(range, {{"size", number(5)}, {"min", number(6)}}),
              HasSubstr("a size that the data decides is below the smallest of the exported program"));
  EXPECT_THAT(raised(range, {{"size", number(5)}, {"max", number(4)}}),
              HasSubstr("a size that the data decides is above the largest of the exported program"));
  const char* permuted = "empty_permuted.default";
  EXPECT_THAT(raised(permuted, {{"size", sizes({2, 3})}, {"physical_layout", sizes({0})}}),
              HasSubstr("sizes and layout have to be lists of one length"));
  for (const std::vector<int64_t>& order : {std::vector<int64_t>{0, 0}, {0, 2}, {-1, 0}}) {
    EXPECT_THAT(raised(permuted, {{"size", sizes({2, 3})}, {"physical_layout", sizes(order)}}),
                HasSubstr("the layout is not an order of dimensions"));
  }
  EXPECT_EQ(raised(permuted, {{"size", sizes({2, 3})}, {"physical_layout", sizes({1, 0})}}), "none");
}

}  // namespace
}  // namespace tensord::jit::pt2_nodes_test
