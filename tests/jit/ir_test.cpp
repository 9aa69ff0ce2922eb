#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/jit/ir/graph.h"
#include "core/jit/ir/graph_builder.h"
#include "core/jit/ir/text.h"
#include "core/jit/ir/type_match.h"
#include "core/jit/ir/verify.h"
#include "core/ops/registry.h"

namespace tensord::jit::ir_test {
namespace {

using ops::Value;
using ::testing::HasSubstr;

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// ---- graph

TEST(Graph, TuplesAreNamedOnlyWhereNamesAreGiven) {
  Graph graph;
  GraphValue* const x = graph.block()->add_input(ops::int_type(), "x");
  GraphBuilder builder(graph);
  GraphValue* const items[] = {x, x};
  EXPECT_EQ(builder.tuple(items)->type()->str(), "Tuple[int, int]");
  EXPECT_EQ(builder.tuple({})->type()->str(), "Tuple[()]");
  const ops::TypePtr named = builder.tuple(items, {"a", "b"})->type();
  EXPECT_FALSE(ops::same_type(*named, *builder.tuple(items)->type()));
  EXPECT_EQ(named->field_names(), (std::vector<std::string>{"a", "b"}));
}

TEST(Graph, KeepsUseListsExact) {
  Graph graph;
  GraphValue* x = graph.block()->add_input(ops::int_type(), "x");
  GraphValue* y = graph.block()->add_input(ops::int_type(), "y");
  const ops::Op& add = ops::get_op("aten::add.int");
  GraphValue* twice[] = {x, x};
  Node* node = graph.create(add, twice);
  node->append_to(graph.block());
  graph.block()->add_output(node->output());
  verify(graph);
  EXPECT_EQ(x->uses().size(), 2u);
  node->replace_input(0, y);
  EXPECT_EQ(x->uses().size(), 1u);
  EXPECT_EQ(x->uses()[0].index, 1u);
  node->insert_input(0, y);
  EXPECT_EQ(x->uses()[0].index, 2u);
  node->remove_input(0);
  verify(graph);
  node->insert_input(2, x);
  EXPECT_EQ(node->input(2), x);
  node->remove_input(2);
  EXPECT_THROW(node->insert_input(3, x), Error);
  EXPECT_THROW(node->replace_input(2, x), Error);
  EXPECT_THROW(node->remove_input(2), Error);
  verify(graph);
  y->replace_all_uses_with(x);
  EXPECT_EQ(x->uses().size(), 2u);
  EXPECT_FALSE(y->has_uses());
  graph.block()->replace_output(0, x);
  EXPECT_EQ(x->uses().size(), 3u);
  EXPECT_FALSE(node->has_output_uses());
  verify(graph);
  node->destroy();
  EXPECT_EQ(x->uses().size(), 1u);
  EXPECT_EQ(graph.node_count(), 0u);
  verify(graph);
}

TEST(Graph, WhatIsBehindTheLastIsRefused) {
  auto graph = parse_graph(
      "graph(%x : int, %c : bool):\n  %r : int, %s : int = prim::If(%c)\n    block0():\n      -> (%x, %x)\n"
      "    block1():\n      -> (%x, %x)\n  return (%x)\n");
  Node* branch = graph->block()->first();
  Block* way = branch->blocks()[0];
  EXPECT_THROW(branch->remove_output(2), Error);
  EXPECT_THROW(graph->block()->remove_input(2), Error);
  EXPECT_THROW(graph->block()->remove_input(0), Error);  // it has uses
  EXPECT_THROW(way->replace_output(2, graph->inputs()[0]), Error);
  EXPECT_THROW(way->remove_output(2), Error);
  verify(*graph);
  for (Block* block : branch->blocks()) block->remove_output(1);
  branch->remove_output(1);
  verify(*graph);
}

TEST(Graph, RefusesToDestroyWhatIsUsed) {
  auto graph = parse_graph("graph(%x : int):\n  %a : int = aten::add.int(%x, %x)\n  return (%a)\n");
  EXPECT_THROW(graph->block()->first()->destroy(), Error);
}

TEST(Graph, DestroysBlocksWithWhatIsInThem) {
  auto graph = parse_graph(R"(graph(%n : int, %x : int):
  %yes : bool = prim::Constant[value=True]()
  %y : int = prim::Loop(%n, %yes, %x)
    block0(%i : int, %z : int):
      %c : bool = aten::lt.int(%z, %n)
      %w : int = prim::If(%c)
        block0():
          %1 : int = aten::add.int(%z, %i)
          -> (%1)
        block1():
          -> (%x)
      -> (%c, %w)
  return (%n)
)");
  verify(*graph);
  graph->block()->last()->destroy();
  EXPECT_EQ(graph->node_count(), 1u);
  verify(*graph);
  EXPECT_FALSE(graph->inputs()[1]->has_uses());
}

TEST(Graph, ClonesAndInlines) {
  const char* text = R"(graph(%c : bool, %x : Tensor):
  %one : int = prim::Constant[value=1]()
  %y : Tensor = prim::If(%c)
    block0():
      %a : Tensor = aten::add.Tensor(%x, %x, %one)  # code/m.py:7
      -> (%a)
    block1():
      -> (%x)
  return (%y)
)";
  auto graph = parse_graph(text);
  auto copy = graph->clone();
  verify(*copy);
  EXPECT_EQ(print_graph(*copy), text);
  // Into itself: the copy is inserted before the original.
  std::vector<GraphValue*> arguments(graph->inputs().begin(), graph->inputs().end());
  auto results = graph->inline_block(*graph->block(), arguments, graph->block(), graph->block()->first());
  verify(*graph);
  EXPECT_EQ(graph->node_count(), 2 * copy->node_count());
  ASSERT_EQ(results.size(), 1u);
  EXPECT_FALSE(results[0]->has_uses());
}

TEST(Graph, BindsTypeVariables) {
  Graph graph;
  GraphValue* inputs[] = {graph.block()->add_input(ops::list_type(ops::string_type())),
                          graph.block()->add_input(ops::int_type())};
  Node* node = graph.create(ops::get_op("aten::__getitem__.t"), inputs);
  EXPECT_EQ(node->output()->type()->str(), "str");
}

TEST(TypeMatch, ChecksBoundVariables) {
  TypeBindings bindings;
  EXPECT_TRUE(match_type(*ops::dict_type(ops::string_type(), ops::var_type("t")),
                         ops::dict_type(ops::string_type(), ops::tensor_type()), bindings));
  EXPECT_TRUE(match_type(*ops::var_type("t"), ops::tensor_type(), bindings));
  EXPECT_FALSE(match_type(*ops::var_type("t"), ops::int_type(), bindings));
  EXPECT_FALSE(match_type(*ops::list_type(ops::var_type("t")), ops::tensor_type(), bindings));
}

// ---- text

TEST(Text, RoundTrips) {
  const char* text = R"x(graph(%self : __torch__.M, %x : Tensor, %x.1 : Optional[Dict[str, List[Tensor]]]):
  %0 : int = prim::Constant[value=-9223372036854775808]()
  %1 : float = prim::Constant[value=0.1]()
  %2 : float = prim::Constant[value=1e+300]()
  %3 : float = prim::Constant[value=3.0]()
  %4 : float = prim::Constant[value=-inf]()
  %5 : float = prim::Constant[value=nan]()
  %6 : str = prim::Constant[value="a \"quote\" \\ \n \x01 # no comment: 7"]()
  %7 : None = prim::Constant[value=None]()
  %8 : bool = prim::Constant[value=True]()
  %9 : Device = prim::Constant[value=device("cuda:1")]()
  %10 : List[List[int]] = prim::Constant[value=[[1, 2], []]]()
  %11 : Tuple[int, Tuple[str]] = prim::Constant[value=(1, ("a",))]()
  %12 : Dict[str, int] = prim::Constant[value={"a": 1, "b": 2}]()
  %w : Tensor = prim::GetAttr[name="weight"](%self)  # code/__torch__/m.py:3
  prim::SetAttr[name="weight"](%self, %x)
  %13 : Tensor = prim::CallMethod[name="forward"](%self, %w)
  %14 : bool = prim::isinstance[types=(int, List[Tensor])](%x.1)
  %15 : Tuple[Tensor, int] = prim::TupleConstruct(%13, %0)
  %16 : int = prim::TupleIndex[index=1](%15)
  %17 : Tensor, %18 : int = prim::TupleUnpack(%15)
  %y : Tensor = prim::Loop(%0, %8, %17)
    block0(%i : int, %z : Tensor):
      %19 : Tensor = prim::If(%14)
        block0():
          -> (%z)
        block1():
          %20 : Tensor = aten::relu(%z)
          -> (%20)
      -> (%8, %19)
  return (%y, %18)
)x";
  // Types are printed with the engine's spelling.
  std::string expected = text;
  expected.replace(expected.find("%7 : None "), 10, "%7 : NoneType ");
  auto graph = parse_graph(text);
  verify(*graph);
  EXPECT_EQ(print_graph(*graph), expected);
  EXPECT_EQ(print_graph(*parse_graph(print_graph(*graph))), expected);
}

TEST(Text, KeepsConstantsOfTheTable) {
  Graph graph;
  Tensor tensor = Tensor::empty(std::vector<int64_t>{2, 3}, DType::kFloat32);
  for (int i = 0; i < 2; ++i) {
    Node* node = graph.create_constant(tensor);
    node->append_to(graph.block());
    graph.block()->add_output(node->output());
  }
  std::vector<Value> constants;
  std::string text = print_graph(graph, &constants);
  EXPECT_THAT(text, HasSubstr("<Tensor float32[2, 3] @0>"));
  ASSERT_EQ(constants.size(), 1u);
  auto copy = parse_graph(text, constants);
  EXPECT_TRUE(copy->outputs()[1]->constant()->to_tensor().is_same(tensor));
  EXPECT_THAT(error_of([&] { parse_graph(text); }), HasSubstr("line 2: constant @0 is not in the table"));
}

TEST(Text, SaysWhereItFails) {
  EXPECT_THAT(error_of([] { parse_graph("graph(%x : int):\n  %a : int = aten::add.int(%x, %y)\n  return (%a)\n"); }),
              HasSubstr("line 2: %y is not defined"));
  EXPECT_THAT(error_of([] { parse_graph("graph(%x : int):\n  %a : int = aten::no_such(%x)\n  return (%a)\n"); }),
              HasSubstr("aten::no_such is not registered"));
  for (const char* broken : {"", "graph", "graph(", "graph(%x", "graph(%x : int):\n  %a : int = prim::Constant[value=",
                             "graph():\n  %a : str = prim::Constant[value=\"\\x4", "graph():\n  return (%"}) {
    EXPECT_THROW(parse_graph(broken), Error) << broken;
  }
}

TEST(Text, DrawsAPicture) {
  auto graph = parse_graph("graph(%x : Tensor):\n  %a : Tensor = aten::relu(%x)\n  return (%a)\n");
  std::string dot = print_dot(*graph);
  EXPECT_THAT(dot, HasSubstr("digraph"));
  EXPECT_THAT(dot, HasSubstr("label=\"aten::relu\""));
}

// String constants are shown up to 60 characters.
TEST(Text, APictureCutsLongTexts) {
  const auto picture = [](size_t size) {
    const std::string text = "\"" + std::string(size - 2, 'a') + "\"";
    return print_dot(*parse_graph("graph():\n  %a : str = prim::Constant[value=" + text +
                                  "]()\n  %n : int = aten::len.str(%a)\n  return (%n)\n"));
  };
  EXPECT_THAT(picture(60), HasSubstr(std::string(58, 'a')));
  EXPECT_THAT(picture(61), HasSubstr(std::string(56, 'a') + "..."));
}

// ---- verify

TEST(Verify, FindsUsesOutOfScope) {
  auto graph = parse_graph(R"(graph(%c : bool, %x : Tensor):
  %y : Tensor = prim::If(%c)
    block0():
      %a : Tensor = aten::relu(%x)
      -> (%a)
    block1():
      -> (%x)
  return (%y)
)");
  Node* branch = graph->block()->first();
  graph->block()->replace_output(0, branch->blocks()[0]->outputs()[0]);
  EXPECT_THAT(error_of([&] { verify(*graph); }), HasSubstr("out of its scope"));
}

TEST(Verify, FindsUsesBeforeDefinitions) {
  auto graph = parse_graph(
      "graph(%x : Tensor):\n  %a : Tensor = aten::relu(%x)\n  %b : Tensor = aten::relu(%a)\n  return (%b)\n");
  graph->block()->last()->move_before(graph->block()->first());
  EXPECT_THAT(error_of([&] { verify(*graph); }), HasSubstr("before it is used"));
}

TEST(Verify, ChecksSchemas) {
  EXPECT_THAT(
      error_of([] { verify(*parse_graph("graph(%x : str):\n  %a : Tensor = aten::relu(%x)\n  return (%a)\n")); }),
      HasSubstr("argument 'self' takes Tensor, not str"));
  EXPECT_THAT(error_of([] {
                verify(*parse_graph("graph(%x : Tensor):\n  %a : Tensor = aten::relu(%x, %x)\n  return (%a)\n"));
              }),
              HasSubstr("number of arguments"));
}

TEST(Verify, ChecksBlocks) {
  EXPECT_THAT(error_of([] {
                verify(*parse_graph(R"(graph(%c : bool, %x : Tensor, %n : int):
  %y : Tensor = prim::If(%c)
    block0():
      -> (%n)
    block1():
      -> (%x)
  return (%y)
)"));
              }),
              HasSubstr("output 0 is Tensor but a block gives int"));
  EXPECT_THAT(error_of([] {
                verify(*parse_graph(R"(graph(%c : bool, %x : Tensor, %n : int):
  %y : Tensor = prim::Loop(%n, %c, %x)
    block0(%i : int):
      -> (%c)
  return (%y)
)"));
              }),
              HasSubstr("prim::Loop"));
}

TEST(Verify, FindsNodesThatAreNowhere) {
  auto graph = parse_graph("graph(%x : Tensor):\n  return (%x)\n");
  graph->create_constant(Value(1));
  EXPECT_THAT(error_of([&] { verify(*graph); }), HasSubstr("in no block"));
}

}  // namespace
}  // namespace tensord::jit::ir_test
