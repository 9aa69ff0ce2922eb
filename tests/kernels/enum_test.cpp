#include <gtest/gtest.h>

#include "core/ops/run.h"

namespace tensord::enum_test {
namespace {

using ops::call_by_name;
using ops::Value;

Value member(const ops::TypePtr& type, const char* name, Value value) {
  return Value(make_intrusive<ops::EnumObject>(type, name, std::move(value)));
}

TEST(Enum, NameValueAndEquality) {
  const ops::TypePtr color = ops::enum_type("__torch__.Color", ops::int_type());
  const Value red = member(color, "RED", 1), green = member(color, "GREEN", 2);
  EXPECT_EQ(call_by_name<std::string>("prim::EnumName", red), "RED");
  EXPECT_EQ(call_by_name<int64_t>("prim::EnumValue.int", green), 2);
  EXPECT_TRUE(call_by_name<bool>("aten::eq.enum", red, member(color, "RED", 1)));
  EXPECT_FALSE(call_by_name<bool>("aten::eq.enum", red, green));
  EXPECT_TRUE(call_by_name<bool>("aten::ne.enum", red, green));
}

TEST(Enum, ValuesOfOtherTypes) {
  const Value text = member(ops::enum_type("__torch__.Name", ops::string_type()), "A", "alpha");
  const Value number = member(ops::enum_type("__torch__.Weight", ops::float_type()), "HALF", 0.5);
  EXPECT_EQ(call_by_name<std::string>("prim::EnumValue.str", text), "alpha");
  EXPECT_EQ(call_by_name<double>("prim::EnumValue.float", number), 0.5);
}

TEST(Enum, ResolutionTellsEnumsFromOtherValues) {
  const Value red = member(ops::enum_type("__torch__.Color", ops::int_type()), "RED", 1);
  const Value two_enums[] = {red, red}, two_ints[] = {1, 1};
  EXPECT_EQ(ops::resolve("aten::eq", two_enums).schema.overload, "enum");
  EXPECT_EQ(ops::resolve("aten::eq", two_ints).schema.overload, "int");
}

}  // namespace
}  // namespace tensord::enum_test
