#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/jit/frontend/frontend_fixture.h"

namespace tensord::jit::frontend_types_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kScript = R"(
class Net(Module):
  __parameters__ = ["weight", ]
  __buffers__ = ["steps", ]
  weight : Tensor
  steps : Tensor
  training : bool
  child : __torch__.m.Child
  eps : Final[float] = 1e-05
  __annotations__["0"] = __torch__.m.Child
  def forward(self: __torch__.m.Net, x: Tensor) -> Tensor:
    return x
  def reset(self: __torch__.m.Net) -> NoneType:
    return None
class Child(Module):
  names : List[str]
class Tree:
  left : Optional[__torch__.m.Tree]
  value : int
class Point(NamedTuple):
  x : Tensor
  y : int = 3
class Color(Enum):
  RED = 1
  GREEN = 2
class Shape(Interface):
  def area(self, scale: float) -> float:
    pass
def scale(x: Tensor, by: float=2, sizes: List[int]=[1, 2], *, name: str="a\tb") -> Tuple[Tensor, float]:
  return (x, by)
)";

const ops::ClassType& class_type(const ops::TypePtr& type) { return dynamic_cast<const ops::ClassType&>(*type); }

TEST(FrontendTypes, ModuleAttributesInOrderWithoutConstants) {
  const CompilationUnit unit = unit_of(kScript);
  const ops::TypePtr type = unit.find_type("__torch__.m.Net");
  ASSERT_EQ(type->kind(), ops::TypeKind::kClass);
  const ops::ClassType& net = class_type(type);
  EXPECT_TRUE(net.is_module());
  std::vector<std::string> names;
  for (const ops::Attribute& attribute : net.attributes())
    names.push_back(attribute.name + ": " + attribute.type->str());
  EXPECT_THAT(names, ElementsAre("weight: Tensor", "steps: Tensor", "training: bool", "child: __torch__.m.Child",
                                 "0: __torch__.m.Child"));
  EXPECT_THAT(net.parameter_names, ElementsAre("weight"));
  EXPECT_THAT(net.buffer_names, ElementsAre("steps"));
  EXPECT_EQ(class_type(net.attributes()[3].type).attributes()[0].type->str(), "List[str]");
  EXPECT_THAT(unit.method_names("__torch__.m.Net"), ElementsAre("forward", "reset"));
}

TEST(FrontendTypes, ScriptClassMayReferToItself) {
  const CompilationUnit unit = unit_of(kScript);
  const ops::TypePtr tree = unit.find_type("__torch__.m.Tree");
  EXPECT_FALSE(class_type(tree).is_module());
  EXPECT_EQ(class_type(tree).attributes()[0].type->str(), "Optional[__torch__.m.Tree]");
  EXPECT_EQ(tree.use_count(), 2) << "types own each other in a cycle";
}

TEST(FrontendTypes, NamedTuplesEnumsAndInterfaces) {
  const CompilationUnit unit = unit_of(kScript);
  const ops::TypePtr point = unit.find_type("__torch__.m.Point");
  EXPECT_EQ(point->kind(), ops::TypeKind::kTuple);
  EXPECT_THAT(point->field_names(), ElementsAre("x", "y"));
  EXPECT_EQ(point->contained()[1]->str(), "int");
  EXPECT_EQ(unit.find_type("__torch__.m.Shape")->kind(), ops::TypeKind::kInterface);
  const ops::TypePtr color = unit.find_type("__torch__.m.Color");
  EXPECT_EQ(color->kind(), ops::TypeKind::kEnum);
  EXPECT_EQ(color->element()->str(), "int");
  const std::vector<ops::Value> members = unit.enum_members("__torch__.m.Color");
  ASSERT_EQ(members.size(), 2u);
  EXPECT_EQ(members[1].to_enum()->name, "GREEN");
  EXPECT_EQ(members[1].to_enum()->value.to_int(), 2);
}

TEST(FrontendTypes, UnknownNamesAreNull) {
  const CompilationUnit unit = unit_of(kScript);
  EXPECT_EQ(unit.find_type("__torch__.m.Nothing"), nullptr);
  EXPECT_EQ(unit.find_type("__torch__.other.Net"), nullptr);
  EXPECT_EQ(unit.find_function("__torch__.m.nothing"), nullptr);
  EXPECT_EQ(unit.find_method("__torch__.m.Net", "nothing"), nullptr);
  EXPECT_EQ(unit.find_type("nonsense"), nullptr);
}

TEST(FrontendTypes, EngineClassesAreOpaque) {
  const CompilationUnit unit = unit_of("");
  EXPECT_EQ(unit.find_type("__torch__.torch.classes.quantized.LinearPackedParamsBase")->kind(), ops::TypeKind::kOpaque);
}

TEST(FrontendTypes, SignatureHasDefaultsOfTheirTypes) {
  const CompilationUnit unit = unit_of(kScript);
  const ops::Schema& schema = unit.find_function("__torch__.m.scale")->schema;
  ASSERT_EQ(schema.arguments.size(), 4u);
  EXPECT_FALSE(schema.arguments[0].default_value.has_value());
  EXPECT_EQ(schema.arguments[1].default_value->to_float(), 2.0);
  EXPECT_EQ(schema.arguments[2].default_value->to_list()->items.size(), 2u);
  EXPECT_EQ(schema.arguments[3].default_value->to_string(), "a\tb");
  EXPECT_TRUE(schema.arguments[3].is_keyword_only);
  EXPECT_EQ(schema.returns[0].type->str(), "Tuple[Tensor, float]");
}

TEST(FrontendTypes, UnknownTypeHasAPlace) {
  EXPECT_THAT(error_of("def f(x: Tensor,\n    y: List[Foo]) -> Tensor:\n  return x\n"),
              HasSubstr("code/__torch__/m.py:2:8: "));
}

TEST(FrontendTypes, LongChainsOfClassesAreRefused) {
  std::string text;
  for (int i = 0; i < 2000; ++i) text += concat("class C", i, ":\n  next : __torch__.m.C", i + 1, "\n");
  text += "class C2000:\n  pass\ndef f(x: __torch__.m.C0) -> int:\n  return 1\n";
  EXPECT_THAT(error_of(text), HasSubstr("classes are nested too deeply"));
}

}  // namespace
}  // namespace tensord::jit::frontend_types_test
