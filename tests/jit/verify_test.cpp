// Each rule of the verifier, with a graph that breaks only this rule.
#include "core/jit/ir/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "core/base/error.h"
#include "core/jit/ir/graph.h"
#include "core/jit/ir/text.h"

namespace tensord::jit {

// Links of a graph are private, and graph.cpp keeps them consistent. An explicit instantiation may name private
// members, so that a test can break each link.
template <class Link, auto kMember>
struct Opened {
  friend auto& member(Link, typename Link::Owner& owner) { return owner.*kMember; }
};
#define OPEN(LINK, OWNER, MEMBER)            \
  struct LINK {                              \
    using Owner = OWNER;                     \
    friend auto& member(LINK, Owner& owner); \
  };                                         \
  template struct Opened<LINK, &OWNER::MEMBER>
OPEN(UsesOf, GraphValue, uses_);
OPEN(MakerOf, GraphValue, node_);
OPEN(HomeOf, GraphValue, block_);
OPEN(IndexOf, GraphValue, index_);
OPEN(GraphOfNode, Node, graph_);
OPEN(BlockOf, Node, block_);
OPEN(PreviousOf, Node, previous_);
OPEN(OpOf, Node, op_);
OPEN(GraphOfBlock, Block, graph_);
OPEN(OwnerOf, Block, owner_);
OPEN(LastOf, Block, last_);
#undef OPEN

namespace {

using ::testing::HasSubstr;

std::string error_of(const std::string& lines, const std::string& returned) {
  const auto graph =
      parse_graph("graph(%x : Tensor, %n : int, %c : bool):\n" + lines + "  return (" + returned + ")\n");
  try {
    verify(*graph);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::string loop(const std::string& head, const std::string& inputs, const std::string& outputs) {
  return "  %y : Tensor = prim::Loop(" + head + ")\n    block0(" + inputs + "):\n      -> (" + outputs + ")\n";
}

std::string branch(const std::string& condition, const std::string& inputs, const std::string& outputs) {
  return "  %y : Tensor = prim::If(" + condition + ")\n    block0(" + inputs + "):\n      -> (" + outputs +
         ")\n    block1():\n      -> (%x)\n";
}

TEST(Verify, TakesWhatIsRight) {
  EXPECT_EQ(error_of(loop("%n, %c, %x", "%i : int, %z : Tensor", "%c, %z"), "%y"), "no error");
  EXPECT_EQ(error_of(branch("%c", "", "%x"), "%y"), "no error");
}

TEST(Verify, LoopsAndBranches) {
  const auto expect = [](const std::string& lines, const char* problem) {
    EXPECT_THAT(error_of(lines, "%y"), HasSubstr(problem)) << lines;
  };
  expect(loop("%n, %c", "%i : int, %z : Tensor", "%c, %z"), "wrong number of inputs");
  expect(loop("%c, %c, %x", "%i : int, %z : Tensor", "%c, %z"), "the trip count is not an int");
  expect(loop("%n, %n, %x", "%i : int, %z : Tensor", "%c, %z"), "the condition is not a bool");
  expect(loop("%n, %c, %x", "%i : int", "%c, %x"), "the body has the wrong number of inputs");
  expect(loop("%n, %c, %x", "%i : int, %z : Tensor", ""), "the body gives no bool to go on");
  expect(loop("%n, %c, %x", "%i : int, %z : Tensor", "%i, %z"), "the body gives no bool to go on");
  expect(loop("%n, %c, %x", "%i : int, %z : Tensor", "%c"), "a block gives back another number of values");
  expect(loop("%n, %c, %n", "%i : int, %z : Tensor", "%c, %z"), "a carried value does not fit the body's input");
  expect(loop("%n, %c, %x", "%i : int, %z : int", "%c, %x"), "a carried value does not fit the body's input");
  expect("  %y : int = prim::Loop(%n, %c, %x)\n    block0(%i : int, %z : Tensor):\n      -> (%c, %i)\n",
         "a carried value does not fit the body's input");
  expect(branch("%n", "", "%x"), "the condition is not a bool");
  expect(branch("%c", "%i : int", "%x"), "a branch has inputs");
  expect(branch("%c", "", ""), "a block gives back another number of values");
  expect(branch("%c", "", "%n"), "output 0 is Tensor but a block gives int");
  expect("  %y : Tensor = prim::If(%c)\n    block0():\n      -> (%x)\n", "wrong number of blocks");
}

TEST(Verify, NodesWithoutBlocks) {
  const auto expect = [](const std::string& line, const char* problem) {
    EXPECT_THAT(error_of("  " + line + "\n", "%x"), HasSubstr(problem)) << line;
  };
  expect("%y : Tensor, %z : Tensor = aten::relu(%x)", "the number of outputs is not the schema's");
  expect("%y : Tensor = prim::ListConstruct(%x)", "makes no list");
  expect("%y : List[Tensor], %z : Tensor = prim::ListConstruct(%x)", "makes no list");
  expect("%y : Tuple[Tensor, Tensor] = prim::TupleConstruct(%x)", "makes no tuple of its inputs");
  expect("%y : List[Tensor] = prim::TupleConstruct(%x)", "makes no tuple of its inputs");
  expect("%y : Dict[int, Tensor] = prim::DictConstruct(%n)", "keys and values do not pair");
  expect("%y : Tensor = prim::TupleIndex[index=0](%x, %x)", "wrong number of inputs");
  expect("%y : Tensor, %z : Tensor = prim::Uninitialized()", "wrong number of outputs");
  expect("%y : Tensor = prim::CallMethod[name=\"f\"]()", "a call has no callee");
  expect("%y : Tensor = aten::relu(%x)\n    block0():\n      -> ()", "an operator has no blocks");
}

// Valid arguments of operators, and values that only look valid.
TEST(Verify, ArgumentsOfOperators) {
  const std::string constants =
      "  %f : float = prim::Constant[value=1.]()\n  %s : str = prim::Constant[value=\"cpu\"]()\n"
      "  %none : NoneType = prim::Constant[value=None]()\n  %two : List[int] = prim::Constant[value=[1, 2]]()\n"
      "  %texts : List[str] = prim::ListConstruct(%s)\n  %floats : List[float] = prim::ListConstruct(%f)\n"
      "  %tensors : List[Tensor] = prim::ListConstruct(%x)\n  %pair : Tuple[int, int] = prim::TupleConstruct(%n, %n)\n"
      "  %odd : Tuple[int, str] = prim::TupleConstruct(%n, %s)\n"
      "  %scalar : Scalar = prim::Constant[value=1]()\n";
  const auto outcome = [&](const std::string& call) { return error_of(constants + "  " + call + "\n", "%x"); };
  for (const char* call : {
           "%y : Tensor = aten::mul.Scalar(%x, %n)",
           "%y : Tensor = aten::mul.Scalar(%x, %f)",
           "%y : Tensor = aten::mul.Scalar(%x, %c)",
           "%y : Tensor = aten::mul.Scalar(%x, %x)",
           "%y : Tensor = aten::select.int(%x, %n, %x)",
           "%y : Tensor = aten::select.int(%x, %c, %n)",
           "%y : Tensor = aten::view(%x, %two)",
           "%y : Tensor = aten::view(%x, %pair)",
           "%y : Tensor = aten::view(%x, %tensors)",
           "%y : Tensor = aten::view(%x, %floats)",
           "%y : Tensor = aten::max_pool2d(%x, %n, %two, %pair, %n, %c)",
           "%y : Tensor = aten::zeros(%two, %none, %none, %s, %none)",
           "%y : Tensor = aten::zeros(%two, %n, %none, %none, %c)",
           "%y : Tensor = aten::select.int(%x, %scalar, %n)",
           "%y : Tensor = aten::max_pool2d(%x, %n, %none, %pair, %n, %c)",
           "%y : str = aten::format(%s)",
           "%y : str = aten::format(%s, %n, %x, %none)",
       }) {
    EXPECT_EQ(outcome(call), "no error") << call;
  }
  const std::pair<const char*, const char*> refused[] = {
      {"%y : Tensor = aten::relu()", "the number of arguments is not the schema's"},
      {"%y : Tensor = aten::relu(%x, %x)", "the number of arguments is not the schema's"},
      {"%y : Tensor = aten::relu(%n)", "argument 'self' takes Tensor, not int"},
      {"%y : Tensor = aten::mul.Scalar(%x, %s)", "argument 'other' takes"},
      {"%y : Tensor = aten::mul.Scalar(%x, %none)", "argument 'other' takes"},
      {"%y : Tensor = aten::select.int(%x, %n, %s)", "argument 'index' takes int, not str"},
      {"%y : Tensor = aten::view(%x, %n)", "argument 'size' takes"},
      {"%y : Tensor = aten::view(%x, %none)", "argument 'size' takes"},
      {"%y : Tensor = aten::view(%x, %texts)", "argument 'size' takes"},
      {"%y : Tensor = aten::view(%x, %odd)", "argument 'size' takes"},
      {"%y : Tensor = aten::max_pool2d(%x, %s, %two, %two, %two, %c)", "argument 'kernel_size' takes"},
      {"%y : Tensor = aten::max_pool2d(%x, %n, %two, %odd, %two, %c)", "argument 'padding' takes"},
      {"%y : Tensor = aten::zeros(%two, %none, %none, %n, %none)", "argument 'device' takes"},
      {"%y : Tensor = aten::zeros(%two, %s, %none, %none, %none)", "argument 'dtype' takes"},
      {"%y : str = aten::format()", "the number of arguments is not the schema's"},
      {"%y : str = aten::format(%n)", "argument 'self' takes str, not int"},
  };
  for (const auto& [call, problem] : refused) EXPECT_THAT(outcome(call), HasSubstr(problem)) << call;
}

TEST(Verify, Captures) {
  const auto fork = [](const char* inputs, const char* captured) {
    return std::string("  %f : Future[Tensor] = prim::fork(") + inputs + ")\n    block0(" + captured +
           "):\n      -> (%x)\n";
  };
  EXPECT_EQ(error_of(fork("%x", "%z : Tensor"), "%f"), "no error");
  EXPECT_THAT(error_of(fork("%x", ""), "%f"), HasSubstr("captures and block inputs differ"));
  EXPECT_THAT(error_of(fork("", "%z : Tensor"), "%f"), HasSubstr("captures and block inputs differ"));
  const auto plan = [](const char* outputs, const char* captured) {
    return std::string("  ") + outputs + " = prim::Plan(%x)\n    block0(" + captured + "):\n      -> (%x)\n";
  };
  EXPECT_EQ(error_of(plan("%f : Tensor", "%z : Tensor"), "%f"), "no error");
  EXPECT_THAT(error_of(plan("%f : Tensor", ""), "%f"), HasSubstr("captures and block inputs differ"));
  EXPECT_THAT(error_of(plan("%f : Tensor, %g : Tensor", "%z : Tensor"), "%f"),
              HasSubstr("results and block outputs differ"));
  EXPECT_THAT(error_of("  %y : Tensor = prim::wait()\n", "%y"), HasSubstr("wrong number of inputs"));
}

// A graph whose links are broken by hand, one each.
TEST(Verify, Links) {
  struct Parts {
    Graph& graph;
    Node *relu, *list, *unpack, *branch;
    GraphValue *x, *n;
  };
  const auto broken = [](const std::function<void(const Parts&)>& alter) -> std::string {
    const auto graph = parse_graph(
        "graph(%x : Tensor, %n : int, %c : bool):\n"
        "  %y : Tensor = aten::relu(%x)\n"
        "  %l : List[Tensor] = prim::ListConstruct(%x, %y)\n"
        "  %a : Tensor, %b : Tensor = prim::ListUnpack(%l)\n"
        "  %i : Tensor = prim::If(%c)\n    block0():\n      -> (%y)\n    block1():\n      -> (%x)\n"
        "  return (%i, %y)\n");
    Node* const relu = graph->block()->first();
    Node* const unpack = relu->next()->next();
    alter({*graph, relu, relu->next(), unpack, unpack->next(), graph->inputs()[0], graph->inputs()[1]});
    try {
      verify(*graph);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(broken([](const Parts&) {}), "no error");
  Graph other;
  Node* const stranger = other.create(NodeKind::kConstant);
  const std::pair<std::function<void(const Parts&)>, const char*> rows[] = {
      {[](const Parts& at) { member(OwnerOf(), *at.graph.block()) = at.relu; }, "the graph's block has an owner"},
      {[](const Parts& at) { at.graph.create(NodeKind::kConstant); }, "nodes were made that are in no block"},
      {[](const Parts& at) { at.n->set_type(nullptr); }, "a value has no type"},
      {[&](const Parts& at) { member(GraphOfBlock(), *at.branch->blocks()[0]) = &other; },
       "a block belongs to another graph"},
      {[&](const Parts& at) { member(HomeOf(), *at.n) = other.block(); }, "a block input is mislinked"},
      {[&](const Parts& at) { member(MakerOf(), *at.n) = stranger; }, "a block input is mislinked"},
      {[](const Parts& at) { member(IndexOf(), *at.n) = 2; }, "a block input is mislinked"},
      {[&](const Parts& at) { member(BlockOf(), *at.list) = other.block(); }, "the list of nodes is mislinked"},
      {[&](const Parts& at) { member(GraphOfNode(), *at.list) = &other; }, "the list of nodes is mislinked"},
      {[](const Parts& at) { member(PreviousOf(), *at.list) = at.branch; }, "the list of nodes is mislinked"},
      {[](const Parts& at) { member(LastOf(), *at.graph.block()) = at.relu; }, "the end of a block is mislinked"},
      {[](const Parts& at) {
         Node* const nowhere = at.graph.create(NodeKind::kUninitialized);
         at.graph.block()->replace_output(1, nowhere->add_output(ops::tensor_type()));
       },
       "a block gives back a value that is not in scope"},
      {[](const Parts& at) { at.graph.block()->replace_output(1, at.branch->output()); }, "no error"},
      // A missing use: of a block's output, of a node's input.
      {[](const Parts& at) {
         std::erase_if(member(UsesOf(), *at.relu->output()), [](auto& use) { return !use.node; });
       },
       "a use is not listed"},
      {[](const Parts& at) { std::erase_if(member(UsesOf(), *at.x), [&](auto& use) { return use.node == at.relu; }); },
       "a use is not listed"},
      // An extra use: at a position that holds another value, after the last position, twice at one position.
      {[](const Parts& at) {
         member(UsesOf(), *at.relu->output()).push_back({at.list, nullptr, 0});
       },
       "a use list is wrong"},
      {[](const Parts& at) {
         at.list->remove_input(1);
         member(UsesOf(), *at.relu->output()).push_back({at.list, nullptr, 1});
       },
       "a use list is wrong"},
      {[](const Parts& at) {
         member(UsesOf(), *at.n).push_back({at.relu, nullptr, 0});
       },
       "the use list of a block input is wrong"},
      {[](const Parts& at) {
         member(UsesOf(), *at.x).push_back({at.relu, nullptr, 0});
       },
       "a value is used out of its scope, or its use list is wrong"},
      {[&](const Parts& at) { member(MakerOf(), *at.unpack->output(1)) = at.relu; }, "an output is mislinked"},
      {[](const Parts& at) { member(IndexOf(), *at.unpack->output(1)) = 0; }, "an output is mislinked"},
      {[&](const Parts& at) { member(HomeOf(), *at.unpack->output(1)) = other.block(); }, "an output is mislinked"},
      {[](const Parts& at) { member(OpOf(), *at.list) = at.relu->op(); }, "an operator and its kind do not agree"},
      {[](const Parts& at) { member(OwnerOf(), *at.branch->blocks()[1]) = nullptr; }, "a block is mislinked"},
  };
  for (size_t i = 0; i < std::size(rows); ++i) {
    EXPECT_THAT(broken(rows[i].first), HasSubstr(rows[i].second)) << i;
  }
}

}  // namespace
}  // namespace tensord::jit
