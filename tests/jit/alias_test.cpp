// Which values of a graph may alias, and which are written to.
#include "core/jit/ir/alias.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>

#include "core/jit/ir/graph.h"
#include "core/jit/ir/text.h"
#include "core/jit/ir/verify.h"

namespace tensord::jit::alias_test {
namespace {

class Alias : public ::testing::Test {
 protected:
  void read(const char* text) {
    graph_ = parse_graph(text);
    verify(*graph_);
    collect(*graph_->block());
    alias_ = std::make_unique<AliasAnalysis>(*graph_);
  }
  void collect(const Block& block) {
    for (GraphValue* input : block.inputs()) values_[input->name()] = input;
    for (Node* node = block.first(); node; node = node->next()) {
      for (GraphValue* output : node->outputs()) values_[output->name()] = output;
      for (const Block* inner : node->blocks()) collect(*inner);
    }
  }
  GraphValue* at(const char* name) { return values_.at(name); }
  bool may_alias(const char* a, const char* b) { return alias_->may_alias(at(a), at(b)); }
  bool is_written(const char* name) { return alias_->has_writers(at(name)); }

  std::unique_ptr<Graph> graph_;
  std::map<std::string, GraphValue*> values_;
  std::unique_ptr<AliasAnalysis> alias_;
};

TEST_F(Alias, FollowsViews) {
  read(R"(graph(%x : Tensor):
  %a : Tensor = aten::relu(%x)
  %v : Tensor = aten::t(%a)
  %b : Tensor = aten::sigmoid(%x)
  %w : Tensor = aten::relu_(%v)
  return (%b)
)");
  EXPECT_TRUE(may_alias("a", "v"));
  EXPECT_TRUE(may_alias("a", "w"));
  EXPECT_FALSE(may_alias("a", "x"));
  EXPECT_FALSE(may_alias("a", "b"));
  EXPECT_TRUE(is_written("a"));
  EXPECT_FALSE(is_written("x"));
  EXPECT_FALSE(is_written("b"));
  EXPECT_TRUE(alias_->escapes(at("b")));
  EXPECT_TRUE(alias_->escapes(at("x")));
  EXPECT_FALSE(alias_->escapes(at("a")));
  EXPECT_FALSE(alias_->has_side_effects(at("w")->node()));
  EXPECT_TRUE(alias_->writes_to(at("w")->node(), at("a")));
  EXPECT_FALSE(alias_->writes_to(at("v")->node(), at("a")));
}

TEST_F(Alias, SeesThroughLists) {
  read(R"(graph(%x : Tensor):
  %zero : int = prim::Constant[value=0]()
  %a : Tensor = aten::relu(%x)
  %b : Tensor = aten::sigmoid(%x)
  %kept : List[Tensor] = prim::ListConstruct(%a)
  %passed : List[Tensor] = prim::ListConstruct(%a, %b)
  %cat : Tensor = aten::cat(%passed, %zero)
  %0 : List[Tensor] = aten::append.t(%kept, %cat)
  %item : Tensor = aten::__getitem__.t(%kept, %zero)
  %w : Tensor = aten::relu_(%item)
  return (%cat)
)");
  EXPECT_TRUE(may_alias("item", "a"));
  EXPECT_TRUE(may_alias("item", "cat"));
  EXPECT_TRUE(is_written("a"));
  EXPECT_TRUE(is_written("kept"));
  // Only read by cat: its items do not become aliases of each other.
  EXPECT_FALSE(may_alias("b", "a"));
  EXPECT_FALSE(is_written("b"));
  // But a value read through the list counts as written.
  EXPECT_TRUE(is_written("passed"));
}

TEST_F(Alias, KeepsTupleFieldsApart) {
  read(R"(graph(%x : Tensor):
  %a : Tensor = aten::relu(%x)
  %b : Tensor = aten::sigmoid(%x)
  %t : Tuple[Tensor, Tensor] = prim::TupleConstruct(%a, %b)
  %c : Tensor = prim::TupleIndex[index=0](%t)
  %d : Tensor = prim::TupleIndex[index=1](%t)
  %w : Tensor = aten::relu_(%c)
  return (%d)
)");
  EXPECT_TRUE(is_written("a"));
  EXPECT_FALSE(is_written("b"));
  EXPECT_TRUE(may_alias("d", "b"));
}

TEST_F(Alias, JoinsBranchesAndCarriedValues) {
  read(R"(graph(%cond : bool, %n : int, %x : Tensor):
  %yes : bool = prim::Constant[value=True]()
  %a : Tensor = aten::relu(%x)
  %b : Tensor = aten::sigmoid(%x)
  %y : Tensor = prim::If(%cond)
    block0():
      -> (%a)
    block1():
      -> (%b)
  %init : Tensor = aten::tanh(%x)
  %z : Tensor = prim::Loop(%n, %yes, %init)
    block0(%i : int, %carried : Tensor):
      %next : Tensor = aten::sin(%carried)
      -> (%yes, %next)
  %w : Tensor = aten::relu_(%z)
  %u : Tensor = aten::relu_(%y)
  return (%u)
)");
  EXPECT_TRUE(is_written("a"));
  EXPECT_TRUE(is_written("b"));
  EXPECT_TRUE(is_written("init"));
  EXPECT_TRUE(is_written("next"));
  EXPECT_FALSE(may_alias("a", "init"));
}

// The loop may run zero times, so its results may alias the initial values.
TEST_F(Alias, JoinsWhatALoopBeginsWith) {
  read(R"(graph(%n : int, %x : Tensor):
  %yes : bool = prim::Constant[value=True]()
  %none : NoneType = prim::Constant[value=None]()
  %a : Tensor = aten::relu(%x)
  %b : Tensor = aten::sigmoid(%x)
  %p : Optional[Tensor], %q : Optional[Tensor] = prim::Loop(%n, %yes, %a, %b)
    block0(%i : int, %first : Optional[Tensor], %second : Optional[Tensor]):
      %t : Tensor = prim::unchecked_cast(%second)
      %w : Tensor = aten::relu_(%t)
      -> (%yes, %none, %none)
  return (%a)
)");
  EXPECT_TRUE(is_written("b"));
  EXPECT_FALSE(is_written("a"));
  EXPECT_TRUE(may_alias("first", "a"));
  EXPECT_TRUE(may_alias("second", "b"));
  EXPECT_FALSE(may_alias("first", "b"));
}

TEST_F(Alias, KnowsTheOrderOfWrites) {
  read(R"(graph(%n : int, %x : Tensor):
  %yes : bool = prim::Constant[value=True]()
  %a : Tensor = aten::relu(%x)
  %b : Tensor = aten::sigmoid(%a)
  %none : Tensor = prim::Loop(%n, %yes, %b)
    block0(%i : int, %c : Tensor):
      %early : Tensor = aten::sin(%a)
      %late : Tensor = aten::cos(%a)
      %w : Tensor = aten::relu_(%a)
      -> (%yes, %early)
  %d : Tensor = aten::sigmoid(%a)
  return (%d)
)");
  const auto between = [&](const char* from, const char* to) {
    return alias_->may_be_written_between(at("a"), at(from)->node(), at(to)->node());
  };
  EXPECT_FALSE(between("a", "b"));
  EXPECT_FALSE(between("early", "late"));
  EXPECT_TRUE(between("b", "early"));  // by the previous iteration
  EXPECT_TRUE(between("b", "d"));
  EXPECT_TRUE(alias_->may_be_written_after(at("a"), at("late")->node()));
  EXPECT_FALSE(alias_->may_be_written_after(at("a"), at("d")->node()));
}

TEST_F(Alias, UnknownCodeMayDoAnything) {
  read(R"(graph(%self : __torch__.M, %x : Tensor):
  %a : Tensor = aten::relu(%x)
  %b : Tensor = aten::sigmoid(%x)
  %attribute : Tensor = prim::GetAttr[name="weight"](%self)
  %r : Tensor = prim::CallMethod[name="f"](%self, %a)
  return (%r)
)");
  EXPECT_TRUE(is_written("a"));
  EXPECT_TRUE(is_written("attribute"));
  EXPECT_FALSE(is_written("b"));
  EXPECT_TRUE(alias_->has_side_effects(at("r")->node()));
}

TEST_F(Alias, AttributesOfNewObjectsAreApart) {
  read(R"(graph(%x : Tensor):
  %o : __torch__.P = prim::CreateObject()
  %a : Tensor = aten::relu(%x)
  %b : Tensor = aten::sigmoid(%x)
  prim::SetAttr[name="a"](%o, %a)
  prim::SetAttr[name="b"](%o, %b)
  %c : Tensor = prim::GetAttr[name="a"](%o)
  %w : Tensor = aten::relu_(%c)
  return (%b)
)");
  EXPECT_TRUE(is_written("a"));
  EXPECT_FALSE(is_written("b"));
}

}  // namespace
}  // namespace tensord::jit::alias_test
