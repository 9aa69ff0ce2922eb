// Passes that use more than the graph: inline needs a library of functions; freeze and its analysis use the module's
// object.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>

#include "core/jit/ir/text.h"
#include "core/jit/ir/verify.h"
#include "core/jit/passes/freeze_analysis.h"
#include "core/jit/passes/packing.h"
#include "core/jit/passes/passes.h"
#include "core/jit/passes/pipeline.h"

namespace tensord::jit::passes_module_test {
namespace {

using ops::ClassType;
using ops::Value;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Functions and methods given as graph text.
class TextLibrary final : public FunctionLibrary {
 public:
  std::shared_ptr<ClassType> add_class(const std::string& name) {
    return types_[name] = std::make_shared<ClassType>(name, true);
  }
  const Function& add(const std::string& name, const std::string& text) {
    auto function = std::make_unique<Function>();
    function->name = name;
    function->graph = parse_graph(text, {}, [this](const std::string& type) { return find_type(type); });
    verify(*function->graph);
    return *(functions_[name] = std::move(function));
  }
  const Function* find_function(const std::string& name) const override {
    auto it = functions_.find(name);
    return it == functions_.end() ? nullptr : it->second.get();
  }
  const Function* find_method(const std::string& class_name, const std::string& method) const override {
    return find_function(class_name + "." + method);
  }
  ops::TypePtr find_type(const std::string& name) const override {
    auto it = types_.find(name);
    return it == types_.end() ? nullptr : ops::TypePtr(it->second);
  }
  std::vector<std::string> method_names(const std::string&) const override { return {}; }

 private:
  std::map<std::string, std::unique_ptr<Function>> functions_;
  std::map<std::string, std::shared_ptr<ClassType>> types_;
};

class ModulePasses : public ::testing::Test {
 protected:
  ops::ObjectPtr make(const std::string& class_name, std::vector<std::pair<std::string, Value>> attributes) {
    auto type = library_.add_class(class_name);
    for (auto& [name, value] : attributes) type->add_attribute(name, ops::type_of(value));
    auto object = make_intrusive<ops::Object>(type);
    for (size_t i = 0; i < attributes.size(); ++i) object->slots[i] = attributes[i].second;
    return object;
  }
  static Tensor tensor() { return Tensor::empty(std::vector<int64_t>{2, 2}, DType::kFloat32); }

  std::set<std::string> changing(const ops::ObjectPtr& self, std::vector<std::string> methods) {
    std::vector<const Graph*> graphs;
    for (const std::string& name : methods)
      graphs.push_back(library_.find_method(self->type->name(), name)->graph.get());
    PassContext context;
    context.functions = &library_;
    context.self = self;
    return find_changing_attributes(context, graphs);
  }

  std::string optimize(const ops::ObjectPtr& self, const std::string& method) {
    std::set<std::string> changed = changing(self, {method});
    auto graph = library_.find_method(self->type->name(), method)->graph->clone();
    PassContext context;
    context.functions = &library_;
    context.self = self;
    context.changing_attributes = &changed;
    run_pipeline(graph, context, {}, simplification_pipeline());
    return print_graph(*graph);
  }

  TextLibrary library_;
};

TEST_F(ModulePasses, InlinesFunctionsAndMethods) {
  auto inner = make("__torch__.Inner", {{"scale", 2}});
  auto outer = make("__torch__.Outer", {{"inner", inner}});
  library_.add("__torch__.double", "graph(%n : int):\n  %r : int = aten::add.int(%n, %n)\n  return (%r)\n");
  library_.add("__torch__.Inner.forward", R"(graph(%self : __torch__.Inner, %n : int):
  %s : int = prim::GetAttr[name="scale"](%self)
  %m : int = aten::mul.int(%n, %s)
  %r : int = prim::CallFunction[name="__torch__.double"](%m)
  return (%r)
)");
  library_.add("__torch__.Outer.forward", R"(graph(%self : __torch__.Outer, %n : int):
  %inner : __torch__.Inner = prim::GetAttr[name="inner"](%self)
  %r : int = prim::CallMethod[name="forward"](%inner, %n)
  return (%r)
)");
  EXPECT_EQ(optimize(outer, "forward"), R"(graph(%self : __torch__.Outer, %n : int):
  %s : int = prim::Constant[value=2]()
  %m : int = aten::mul.int(%n, %s)
  %r : int = aten::add.int(%m, %m)
  return (%r)
)");
}

// A chain of 250 functions: calls beyond the depth limit stay, for a later round or for the interpreter.
TEST_F(ModulePasses, InlinesToADepth) {
  for (int i = 1; i <= 250; ++i) {
    const std::string call =
        concat("  %r : int = prim::CallFunction[name=\"__torch__.f", i + 1, "\"](%n)\n  return (%r)\n");
    library_.add(concat("__torch__.f", i),
                 concat("graph(%n : int):\n", i < 250 ? call : "  %r : int = aten::neg.int(%n)\n  return (%r)\n"));
  }
  const auto graph = library_.find_function("__torch__.f1")->graph->clone();
  PassContext context;
  context.functions = &library_;
  EXPECT_TRUE(inline_calls(*graph, context));
  EXPECT_EQ(print_graph(*graph),
            "graph(%n : int):\n  %r : int = prim::CallFunction[name=\"__torch__.f202\"](%n)\n  return (%r)\n");
  EXPECT_TRUE(inline_calls(*graph, context));
  EXPECT_EQ(print_graph(*graph), "graph(%n : int):\n  %r : int = aten::neg.int(%n)\n  return (%r)\n");
}

TEST_F(ModulePasses, LeavesRecursionToTheInterpreter) {
  auto self = make("__torch__.M", {});
  library_.add("__torch__.f", R"(graph(%n : int):
  %one : int = prim::Constant[value=1]()
  %c : bool = aten::le.int(%n, %one)
  %r : int = prim::If(%c)
    block0():
      -> (%one)
    block1():
      %m : int = aten::sub.int(%n, %one)
      %1 : int = prim::CallFunction[name="__torch__.f"](%m)
      %2 : int = aten::mul.int(%n, %1)
      -> (%2)
  return (%r)
)");
  library_.add("__torch__.M.forward", R"(graph(%self : __torch__.M, %n : int):
  %r : int = prim::CallFunction[name="__torch__.f"](%n)
  return (%r)
)");
  EXPECT_THAT(optimize(self, "forward"), HasSubstr("prim::CallFunction[name=\"__torch__.f\"]"));
}

TEST_F(ModulePasses, DevirtualisesInterfaces) {
  auto inner = make("__torch__.Inner", {});
  auto outer = make("__torch__.Outer", {{"part", inner}});
  library_.add("__torch__.Inner.run", "graph(%self : __torch__.Inner, %n : int):\n  return (%n)\n");
  auto interface = ops::interface_type("__torch__.Interface");
  const_cast<Graph&>(*library_
                          .add("__torch__.Outer.forward", R"(graph(%self : __torch__.Outer, %n : int):
  %part : __torch__.Inner = prim::GetAttr[name="part"](%self)
  %r : int = prim::CallMethod[name="run"](%part, %n)
  return (%r)
)")
                          .graph)
      .block()
      ->first()
      ->output()
      ->set_type(interface);
  EXPECT_EQ(optimize(outer, "forward"), "graph(%self : __torch__.Outer, %n : int):\n  return (%n)\n");
}

const char* const kBatchNorm = R"(graph(%self : __torch__.BN, %x : Tensor):
  %one : int = prim::Constant[value=1]()
  %training : bool = prim::GetAttr[name="training"](%self)
  %mean : Tensor = prim::GetAttr[name="running_mean"](%self)
  prim::If(%training)
    block0():
      %count : Tensor = prim::GetAttr[name="num_batches_tracked"](%self)
      %1 : Tensor = aten::add_.Scalar(%count, %one, %one)
      -> ()
    block1():
      -> ()
  %y : Tensor = aten::add.Tensor(%x, %mean, %one)
  return (%y)
)";

TEST_F(ModulePasses, WritesInTrainingDoNotCountInEvaluation) {
  library_.add_class("__torch__.BN");
  auto evaluation =
      make("__torch__.BN", {{"training", false}, {"running_mean", tensor()}, {"num_batches_tracked", tensor()}});
  library_.add("__torch__.BN.forward", kBatchNorm);
  EXPECT_THAT(changing(evaluation, {"forward"}), IsEmpty());
  EXPECT_THAT(optimize(evaluation, "forward"), Not(HasSubstr("prim::If")));
  auto training =
      make("__torch__.BN", {{"training", true}, {"running_mean", tensor()}, {"num_batches_tracked", tensor()}});
  EXPECT_THAT(changing(training, {"forward"}), ElementsAre("num_batches_tracked"));
  // Another method may switch to training, so nothing can be folded.
  library_.add("__torch__.BN.train", R"(graph(%self : __torch__.BN, %mode : bool):
  prim::SetAttr[name="training"](%self, %mode)
  %none : NoneType = prim::Constant[value=None]()
  return (%none)
)");
  EXPECT_THAT(changing(evaluation, {"forward", "train"}), ElementsAre("num_batches_tracked", "training"));
}

TEST_F(ModulePasses, FindsWritesThroughAliases) {
  Tensor tied = tensor();
  auto inner = make("__torch__.Inner", {{"weight", tied}, {"items", Value(ops::make_list(ops::int_type(), {1}))}});
  auto self = make("__torch__.M", {{"tied", tied}, {"other", tensor()}, {"inner", inner}, {"count", 0}});
  library_.add("__torch__.M.forward", R"(graph(%self : __torch__.M, %x : Tensor):
  %one : int = prim::Constant[value=1]()
  %w : Tensor = prim::GetAttr[name="tied"](%self)
  %other : Tensor = prim::GetAttr[name="other"](%self)
  %t : Tensor = aten::t(%w)
  %list : List[Tensor] = prim::ListConstruct(%t)
  %0 : List[Tensor] = aten::append.t(%list, %x)
  %item : Tensor = aten::__getitem__.t(%list, %one)
  %1 : Tensor = aten::relu_(%item)
  %inner : __torch__.Inner = prim::GetAttr[name="inner"](%self)
  %items : List[int] = prim::GetAttr[name="items"](%inner)
  %2 : List[int] = aten::append.t(%items, %one)
  prim::SetAttr[name="count"](%self, %one)
  return (%other)
)");
  EXPECT_THAT(changing(self, {"forward"}), ElementsAre("count", "inner.items", "inner.weight", "tied"));
}

TEST_F(ModulePasses, UnknownCodeChangesEverything) {
  auto self = make("__torch__.M", {{"weight", tensor()}, {"n", 1}});
  library_.add("__torch__.M.forward", R"(graph(%self : __torch__.M, %x : Tensor):
  %r : Tensor = prim::CallMethod[name="unheard_of"](%self, %x)
  return (%r)
)");
  EXPECT_THAT(changing(self, {"forward"}), ElementsAre("n", "weight"));
}

TEST_F(ModulePasses, WritingAnInputChangesNoAttribute) {
  auto self = make("__torch__.M", {{"weight", tensor()}});
  library_.add("__torch__.M.forward", R"(graph(%self : __torch__.M, %x : Tensor):
  %w : Tensor = prim::GetAttr[name="weight"](%self)
  %y : Tensor = aten::relu_(%x)
  return (%w)
)");
  EXPECT_THAT(changing(self, {"forward"}), IsEmpty());
}

// The object is chosen at run time: the assignment may affect the attribute of this name in any object.
TEST_F(ModulePasses, AssignmentsToAnObjectThatIsNotKnown) {
  library_.add_class("__torch__.Part");
  auto a = make("__torch__.Part", {{"n", 1}, {"k", 5}}), b = make("__torch__.Part", {{"n", 2}, {"k", 6}});
  auto self = make("__torch__.M", {{"a", a}, {"b", b}, {"n", 7}, {"k", 8}});
  library_.add("__torch__.M.forward", R"(graph(%self : __torch__.M, %c : bool):
  %a : __torch__.Part = prim::GetAttr[name="a"](%self)
  %b : __torch__.Part = prim::GetAttr[name="b"](%self)
  %nine : int = prim::Constant[value=9]()
  %part : __torch__.Part = prim::If(%c)
    block0():
      -> (%a)
    block1():
      -> (%b)
  prim::SetAttr[name="n"](%part, %nine)
  %n : int = prim::GetAttr[name="n"](%a)
  %k : int = prim::GetAttr[name="k"](%a)
  %r : int = aten::add.int(%n, %k)
  return (%r)
)");
  EXPECT_THAT(changing(self, {"forward"}), ElementsAre("a.n", "b.n", "n"));
  const std::string after = optimize(self, "forward");
  EXPECT_THAT(after, HasSubstr("prim::GetAttr[name=\"n\"]"));
  EXPECT_THAT(after, Not(HasSubstr("prim::GetAttr[name=\"k\"]")));
}

// Two submodules of one class: a call on one changes only that one.
TEST_F(ModulePasses, AssignmentsInTheCalleeOfOneObject) {
  auto a = make("__torch__.Part", {{"n", 1}}), b = make("__torch__.Part", {{"n", 2}});
  auto self = make("__torch__.M", {{"a", a}, {"b", b}});
  library_.add("__torch__.Part.bump", R"(graph(%self : __torch__.Part):
  %n : int = prim::GetAttr[name="n"](%self)
  %m : int = aten::add.int(%n, %n)
  prim::SetAttr[name="n"](%self, %m)
  return (%m)
)");
  library_.add("__torch__.M.forward", R"(graph(%self : __torch__.M):
  %a : __torch__.Part = prim::GetAttr[name="a"](%self)
  %b : __torch__.Part = prim::GetAttr[name="b"](%self)
  %m : int = prim::CallMethod[name="bump"](%a)
  %n : int = prim::GetAttr[name="n"](%a)
  %k : int = prim::GetAttr[name="n"](%b)
  %r : int = aten::add.int(%n, %k)
  return (%r)
)");
  EXPECT_THAT(changing(self, {"forward"}), ElementsAre("a.n"));
}

// An interface whose object a method replaces: its calls stay, and nothing in the object is treated as constant.
TEST_F(ModulePasses, ReplacedObjectsBehindInterfaces) {
  auto first = make("__torch__.First", {{"n", 1}}), second = make("__torch__.Second", {{"n", 2}});
  auto self = make("__torch__.M", {{"part", first}, {"other", second}});
  library_.add("__torch__.First.run",
               "graph(%self : __torch__.First):\n  %n : int = prim::GetAttr[name=\"n\"](%self)\n  return (%n)\n");
  library_.add("__torch__.Second.run",
               "graph(%self : __torch__.Second):\n  %n : int = prim::GetAttr[name=\"n\"](%self)\n  return (%n)\n");
  const auto interface = ops::interface_type("__torch__.Interface");
  const auto set_part_type = [&](const Function& function) {
    for_each_node(const_cast<Graph&>(*function.graph).block(), [&](Node* node) {
      if (node->kind() == NodeKind::kGetAttr && node->name() == "part") node->output()->set_type(interface);
    });
  };
  set_part_type(library_.add("__torch__.M.forward", R"(graph(%self : __torch__.M):
  %part : __torch__.First = prim::GetAttr[name="part"](%self)
  %r : int = prim::CallMethod[name="run"](%part)
  return (%r)
)"));
  library_.add("__torch__.M.replace", R"(graph(%self : __torch__.M):
  %other : __torch__.Second = prim::GetAttr[name="other"](%self)
  prim::SetAttr[name="part"](%self, %other)
  %none : NoneType = prim::Constant[value=None]()
  return (%none)
)");
  EXPECT_THAT(changing(self, {"forward"}), IsEmpty());
  EXPECT_THAT(changing(self, {"forward", "replace"}), ::testing::Contains("part"));
  std::set<std::string> changed = changing(self, {"forward", "replace"});
  auto graph = library_.find_method("__torch__.M", "forward")->graph->clone();
  PassContext context;
  context.functions = &library_;
  context.self = self;
  context.changing_attributes = &changed;
  run_pipeline(graph, context, {}, simplification_pipeline());
  EXPECT_THAT(print_graph(*graph), HasSubstr("prim::CallMethod[name=\"run\"]"));
}

TEST_F(ModulePasses, LeavesFunctionsThatCallOneAnother) {
  auto self = make("__torch__.M", {});
  for (const auto& [name, other] : {std::pair("f", "g"), std::pair("g", "f")}) {
    library_.add(std::string("__torch__.") + name, std::string(R"(graph(%n : int):
  %one : int = prim::Constant[value=1]()
  %c : bool = aten::le.int(%n, %one)
  %r : int = prim::If(%c)
    block0():
      -> (%one)
    block1():
      %m : int = aten::sub.int(%n, %one)
      %1 : int = prim::CallFunction[name="__torch__.)") +
                                                       other + R"("](%m)
      -> (%1)
  return (%r)
)");
  }
  library_.add("__torch__.M.forward", R"(graph(%self : __torch__.M, %n : int):
  %r : int = prim::CallFunction[name="__torch__.f"](%n)
  return (%r)
)");
  const std::string after = optimize(self, "forward");
  EXPECT_THAT(after, HasSubstr("prim::CallFunction[name=\"__torch__.f\"]"));
}

TEST_F(ModulePasses, KeepsAttributesThatChange) {
  auto self = make("__torch__.M", {{"n", 1}, {"k", 2}});
  library_.add("__torch__.M.forward", R"(graph(%self : __torch__.M):
  %n : int = prim::GetAttr[name="n"](%self)
  %k : int = prim::GetAttr[name="k"](%self)
  %m : int = aten::add.int(%n, %k)
  prim::SetAttr[name="n"](%self, %m)
  return (%m)
)");
  EXPECT_EQ(optimize(self, "forward"), R"(graph(%self : __torch__.M):
  %n : int = prim::GetAttr[name="n"](%self)
  %k : int = prim::Constant[value=2]()
  %m : int = aten::add.int(%n, %k)
  prim::SetAttr[name="n"](%self, %m)
  return (%m)
)");
}

TEST_F(ModulePasses, AreLinearInTheSizeOfTheGraph) {
  // 20 000 layers of three nodes each; a quadratic pass would take minutes.
  auto self = make("__torch__.M", {{"weight", tensor()}});
  std::string text = "graph(%self : __torch__.M, %x0 : Tensor):\n  %one : int = prim::Constant[value=1]()\n";
  int layers = 20000;
  for (int i = 0; i < layers; ++i) {
    std::string x = "%x" + std::to_string(i), next = "%x" + std::to_string(i + 1), n = std::to_string(i);
    text += "  %w" + n + " : Tensor = prim::GetAttr[name=\"weight\"](%self)\n";
    text += "  %s" + n + " : Tensor = aten::add.Tensor(" + x + ", %w" + n + ", %one)\n";
    text += "  " + next + " : Tensor = aten::relu_(%s" + n + ")\n";
  }
  text += "  return (%x" + std::to_string(layers) + ")\n";
  library_.add("__torch__.M.forward", text);
  const std::clock_t start = std::clock();  // CPU time, independent of other load
  std::string result = optimize(self, "forward");
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  RecordProperty("seconds", std::to_string(seconds));
  EXPECT_LT(seconds, 20);
  EXPECT_EQ(std::count(result.begin(), result.end(), '\n'), 2 * layers + 4);
}

}  // namespace
}  // namespace tensord::jit::passes_module_test
