// The text format of graphs: what is parsed, and where errors are reported.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/base/error.h"
#include "core/jit/ir/graph.h"
#include "core/jit/ir/text.h"

namespace tensord::jit::ir_text_test {
namespace {

using ops::Value;
using ::testing::HasSubstr;

std::string error_of(const std::string& text, std::span<const Value> constants = {}) {
  try {
    parse_graph(text, constants);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "no error";
}

std::string with_constant(const std::string& type, const std::string& value) {
  return "graph():\n  %a : " + type + " = prim::Constant[value=" + value + "]()\n  return (%a)\n";
}
Value constant(const std::string& type, const std::string& value) {
  return parse_graph(with_constant(type, value))->block()->first()->constant();
}

std::string repeated(const std::string& text, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += text;
  return out;
}

TEST(GraphText, SaysWhatItExpectedAndWhere) {
  const std::pair<const char*, const char*> rows[] = {
      {"graf(", "line 1: expected 'graph'"},
      {"graph(%x : int)\n  return (%x)\n", "expected ':'"},
      {"graph(%x : int):\n  return (%x)\n\n  more\n", "line 4: text after the end of the graph"},
      {"graph(% : int):\n  return ()\n", "expected a name"},
      {"graph(%x : int, %x : int):\n  return (%x)\n", "line 1: %x is defined twice"},
      {"graph(%x : int):\n  %x : int = aten::neg.int(%x)\n  return (%x)\n", "%x is defined twice"},
      {"graph(%x : int):\n  # a comment\n  %y : int = aten::neg.int(%z)\n  return (%y)\n", "line 3: %z is not defined"},
      {"graph(%x : int):\n  %y : int aten::neg.int(%x)\n  return (%y)\n", "unexpected text after the type"},
      {"graph(%x : int):\n  %y : int = aten::neg.int %x\n  return (%y)\n", "expected '('"},
      {"graph(%x : int):\n  %y : int = aten::neg.int(%x %x)\n  return (%y)\n", "expected"},
      {"graph():\n  %y : int = prim::Constant[wert=1]()\n  return (%y)\n", "attribute 'wert' is not known"},
      {"graph():\n  %y : int = prim::Constant[value 1]()\n  return (%y)\n", "expected '='"},
      {"graph():\n  %y : int = prim::Constant[value=1()\n  return (%y)\n", "expected ']'"},
      {"graph():\n  %y : int = prim::Nothing()\n  return (%y)\n", "operator prim::Nothing is not registered"},
      {"graph(%x : int):\n  %y : bool = prim::isinstance[types=int](%x)\n  return (%y)\n", "expected '('"},
      {"graph(%c : bool):\n  prim::If(%c)\n    block0():\n      -> (%d)\n  return ()\n", "line 4: %d is not defined"},
      {"graph(%c : bool):\n  %d : bool = prim::If(%c)\n    block0():\n      -> (%d)\n  return ()\n",
       "%d is not defined"},
      {"graph():\n  -> ()\n", "expected 'return'"},
      {"graph(%x : ):\n  return (%x)\n", "expected a type"},
      {"graph(%x : int] %y : int):\n  return (%x)\n", "expected ','"},
      {"graph(%x : int):\n  %y int = aten::neg.int(%x)\n  return (%y)\n", "expected ':'"},
      {"graph():\n  %y : int] = prim::Uninitialized()\n  return (%y)\n", "expected '='"},
      {"graph():\n  %y : int = prim::GetAttr[name=f]()\n  return (%y)\n", "expected '\"'"},
      {"graph(%x : int):\n  %y : bool = prim::isinstance[types=(int] str)](%x)\n  return (%y)\n", "expected ','"},
      {"graph(%c : bool):\n  prim::If(%c)\n    block0()\n      -> ()\n  return ()\n", "expected ':'"},
      {"graph(%c : bool):\n  prim::If(%c)\n    block0():\n  return ()\n", "expected '->'"},
  };
  for (const auto& [text, message] : rows) EXPECT_THAT(error_of(text), HasSubstr(message)) << text;
}

TEST(GraphText, ConstantsThatAreNone) {
  const std::tuple<const char*, const char*, const char*> rows[] = {
      {"int", "", "expected a constant"},
      {"int", "x", "expected a constant"},
      {"int", "-", "expected a constant"},
      {"int", "1x", "expected a constant"},
      {"int", "1-2", "expected ']'"},
      {"int", "9223372036854775808", "expected a constant"},
      {"float", "1.5.5", "expected a constant"},
      {"float", "1.e", "expected a constant"},
      {"str", "\"abc", "a string has no end"},
      {"str", "\"\\x4g\"", "expected two hexadecimal digits"},
      {"str", "\"\\xg4\"", "expected two hexadecimal digits"},
      {"str", "\"\\x\"", "expected two hexadecimal digits"},
      {"List[int]", "[1 2]", "expected ','"},
      {"Dict[str, int]", "{\"a\" 1}", "expected ':'"},
      {"Dict[str, int]", "{\"a\": 1 \"b\": 2}", "expected ','"},
      {"Tuple[int, int]", "(1 2)", "expected ','"},
      {"Device", "device(\"cpu\"", "expected ')'"},
      {"Tensor", "<weight @0>", "constant @0 is not in the table"},
      {"Tensor", "<weight 0>", "expected '@N>'"},
      {"Tensor", "<weight> @0", "expected '@N>'"},
  };
  for (const auto& [type, value, message] : rows) {
    EXPECT_THAT(error_of(with_constant(type, value)), HasSubstr(message)) << value;
  }
  EXPECT_THAT(error_of("graph():\n  %a : Tensor = prim::Constant[value=<weight @0"), HasSubstr("expected '>'"));
  EXPECT_THAT(error_of("graph():\n  %a : Tensor = prim::Constant[value=<weight"), HasSubstr("expected '@N>'"));
  EXPECT_THAT(error_of("graph():\n  %a : str = prim::Constant[value=\"abc\\"), HasSubstr("a string has no end"));
  const std::vector<Value> table{Value(1), Value(2)};
  EXPECT_EQ(error_of(with_constant("int", "<n @1>"), table), "no error");
  EXPECT_THAT(error_of(with_constant("int", "<n @1 2>"), table), HasSubstr("expected '>'"));
  EXPECT_THAT(error_of(with_constant("int", "<n @2>"), table), HasSubstr("constant @2 is not in the table"));
  EXPECT_THAT(error_of(with_constant("int", "<n @-1>"), table), HasSubstr("constant @-1 is not in the table"));
}

TEST(GraphText, ConstantsOfEveryKind) {
  EXPECT_EQ(constant("int", "-9223372036854775808").to_int(), INT64_MIN);
  EXPECT_EQ(constant("float", "1e-05").to_float(), 1e-5);
  EXPECT_EQ(constant("float", "-2.5e+3").to_float(), -2500);
  EXPECT_EQ(constant("float", "-inf").to_float(), -INFINITY);
  EXPECT_EQ(constant("float", "inf").to_float(), INFINITY);
  EXPECT_TRUE(std::isnan(constant("float", "nan").to_float()));
  EXPECT_TRUE(constant("NoneType", "None").is_none());
  EXPECT_FALSE(constant("bool", "False").to_bool());
  EXPECT_EQ(constant("str", "\"a\\n\\\"\\\\\\x41\"").to_string(), "a\n\"\\A");
  EXPECT_TRUE(constant("Device", "device(\"cpu\")").is_device());
  const Value list = constant("List[int]", "[1, 2]"), none = constant("List[float]", "[]");
  EXPECT_EQ(list.to_list()->items.size(), 2u);
  EXPECT_EQ(none.to_list()->element->kind(), ops::TypeKind::kFloat);
  EXPECT_EQ(constant("Optional[List[float]]", "[]").to_list()->element->kind(), ops::TypeKind::kFloat);
  EXPECT_EQ(constant("Any", "[]").to_list()->element->kind(), ops::TypeKind::kTensor);
  EXPECT_EQ(constant("Any", "[\"a\"]").to_list()->element->kind(), ops::TypeKind::kString);
  const Value dict = constant("Dict[int, List[int]]", "{1: [], 2: [3]}");
  EXPECT_EQ(dict.to_dict()->items().size(), 2u);
  EXPECT_EQ(dict.to_dict()->key->kind(), ops::TypeKind::kInt);
  EXPECT_EQ(dict.to_dict()->items()[0].second.to_list()->element->kind(), ops::TypeKind::kInt);
  EXPECT_EQ(constant("Any", "{}").to_dict()->value->kind(), ops::TypeKind::kAny);
  const Value tuple = constant("Tuple[int, List[int]]", "(1, [])");
  EXPECT_EQ(tuple.to_tuple()->items[1].to_list()->element->kind(), ops::TypeKind::kInt);
  const Value longer = constant("Tuple[int]", "(1, [])");
  EXPECT_EQ(longer.to_tuple()->items[1].to_list()->element->kind(), ops::TypeKind::kTensor);
  EXPECT_EQ(constant("Tuple[int]", "(1,)").to_tuple()->items.size(), 1u);
  EXPECT_EQ(constant("Any", "()").to_tuple()->items.size(), 0u);
}

TEST(GraphText, NestsSixtyFourDeep) {
  const auto lists = [](int depth) { return with_constant("Any", repeated("[", depth) + repeated("]", depth)); };
  EXPECT_EQ(error_of(lists(65)), "no error");
  EXPECT_THAT(error_of(lists(66)), HasSubstr("constants are nested too deeply"));
  const auto blocks = [](int depth) {
    return "graph(%c : bool):\n" + repeated("prim::If(%c)\nblock0():\n", depth) + repeated("-> ()\n", depth) +
           "return ()\n";
  };
  EXPECT_EQ(error_of(blocks(64)), "no error");
  EXPECT_THAT(error_of(blocks(65)), HasSubstr("blocks are nested too deeply"));
}

// A comment after a node is its source location, if it looks like one.
TEST(GraphText, Places) {
  const auto place = [](const std::string& comment) {
    const auto graph = parse_graph("graph(%x : int):\n  %y : int = aten::neg.int(%x)" + comment + "\n  return (%y)\n");
    return graph->block()->first()->location().str();
  };
  EXPECT_EQ(place("  # m.py:12"), "m.py:12");
  EXPECT_EQ(place("  # a:b/m.py:12"), "a:b/m.py:12");
  EXPECT_EQ(place(""), "");
  EXPECT_EQ(place("  # twelve"), "");
  EXPECT_EQ(place("  # m.py:x"), "");
  EXPECT_EQ(place("  # m.py:12 or so"), "");
  EXPECT_EQ(place("  # m.py:99999999999"), "");
  const auto graph = parse_graph(
      "graph(%x : int):\n  %y : int = aten::neg.int(%x)  # a.py:1\n  %z : int = aten::neg.int(%y)  # b.py:2\n"
      "  return (%z)\n# the end");
  EXPECT_EQ(graph->block()->first()->location().str(), "a.py:1");
  EXPECT_EQ(graph->block()->last()->location().str(), "b.py:2");
}

// A name is the same type everywhere: one known to the caller, a class, or an opaque type.
TEST(GraphText, NamesOfTypes) {
  const std::string text = "graph(%a : __torch__.M, %b : __torch__.M, %c : Stream, %d : int):\n  return ()\n";
  const auto graph = parse_graph(text);
  EXPECT_EQ(graph->inputs()[0]->type(), graph->inputs()[1]->type());
  EXPECT_EQ(graph->inputs()[0]->type()->kind(), ops::TypeKind::kClass);
  EXPECT_EQ(graph->inputs()[2]->type()->str(), ops::opaque_type("Stream")->str());
  EXPECT_NE(graph->inputs()[2]->type()->kind(), ops::TypeKind::kClass);
  const auto known = parse_graph(text, {}, [](const std::string& name) -> ops::TypePtr {
    return name == "__torch__.M" ? ops::string_type() : nullptr;
  });
  EXPECT_EQ(known->inputs()[1]->type()->kind(), ops::TypeKind::kString);
  EXPECT_NE(known->inputs()[2]->type()->kind(), ops::TypeKind::kString);
}

TEST(GraphText, NamesOfScripts) {
  const auto graph = parse_graph("graph(%x.1 : int, %2 : int):\n  return (%x.1)\n");
  EXPECT_EQ(graph->inputs()[0]->name(), "x");
  EXPECT_EQ(graph->inputs()[1]->name(), "");
}

}  // namespace
}  // namespace tensord::jit::ir_text_test
