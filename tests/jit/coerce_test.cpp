// Values from outside and the declared types of methods: what matches, what is converted, what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/jit/runtime/arguments.h"
#include "core/jit/runtime/load_flags.h"

namespace tensord::jit::coerce_test {
namespace {

using ops::TypePtr;
using ops::Value;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Values = std::vector<Value>;

Value list_of(const TypePtr& element, Values items) { return Value(ops::make_list(element, std::move(items))); }
Value dict_of(const TypePtr& key, const TypePtr& value, const std::vector<std::pair<Value, Value>>& items) {
  auto dict = make_intrusive<ops::DictObject>(key, value);
  for (const auto& [k, v] : items) dict->set(k, v);
  return Value(ops::Dict(std::move(dict)));
}
Value object() { return Value(make_intrusive<ops::Object>(std::make_shared<ops::ClassType>("__torch__.M", true))); }

template <class Fn>
std::string error_of(Fn&& fn) {
  try {
    fn();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "no error";
}
std::string refusal(const Value& value, const TypePtr& type) {
  return error_of([&] { coerce(value, type, "f: argument 'x'"); });
}
Value made(const Value& value, const TypePtr& type) { return coerce(value, type, "f: argument 'x'"); }

const TypePtr kInts = ops::list_type(ops::int_type()), kFloats = ops::list_type(ops::float_type());
const TypePtr kPair = ops::tuple_type({ops::int_type(), ops::float_type()});
const TypePtr kNamed = ops::named_tuple_type("__torch__.P", {"a", "b"}, {ops::int_type(), ops::float_type()});
const TypePtr kByName = ops::dict_type(ops::string_type(), ops::float_type());

// The same object, so that a script's writes to it are visible outside.
TEST(Coerce, WhatFitsIsPassedOn) {
  const Value tensor = Tensor::empty(Dims{2}, DType::kFloat32);
  const std::pair<Value, TypePtr> rows[] = {
      {tensor, ops::tensor_type()},
      {Value(1), ops::int_type()},
      {Value(1.5), ops::float_type()},
      {Value(true), ops::bool_type()},
      {Value(true), ops::number_type()},
      {Value("s"), ops::string_type()},
      {Value(), ops::none_type()},
      {Value(Device{}), ops::device_type()},
      {Value("s"), ops::any_type()},
      {Value(), ops::optional_type(ops::int_type())},
      {Value(1), ops::optional_type(ops::int_type())},
      {list_of(ops::int_type(), {Value(1)}), kInts},
      {list_of(ops::int_type(), {}), kInts},
      {list_of(ops::int_type(), {Value(1)}), ops::optional_type(kInts)},
      {ops::make_tuple({Value(1), Value(1.5)}), kPair},
      {dict_of(ops::string_type(), ops::float_type(), {{Value("k"), Value(1.5)}}), kByName},
      {Value("s"), ops::union_type({ops::int_type(), ops::string_type()})},
      {object(), ops::interface_type("__torch__.I")},
      {object(), ops::any_type()}};
  for (size_t i = 0; i < std::size(rows); ++i) {
    EXPECT_TRUE(made(rows[i].first, rows[i].second).is_same(rows[i].first)) << i << " " << rows[i].second->str();
  }
}

TEST(Coerce, NumbersAndNames) {
  EXPECT_EQ(made(Value(3), ops::float_type()).to_float(), 3.0);
  EXPECT_EQ(made(Value(3), ops::optional_type(ops::float_type())).to_float(), 3.0);
  EXPECT_TRUE(made(Value("cpu"), ops::device_type()).is_device());
  // For a union: the type that matches, or else the first that it can be converted to.
  const TypePtr either = ops::union_type({ops::float_type(), ops::int_type()});
  EXPECT_TRUE(made(Value(3), either).is_int());
  EXPECT_TRUE(made(Value(3), ops::union_type({ops::string_type(), ops::float_type()})).is_float());
}

TEST(Coerce, ItemsOfContainers) {
  const Value ints = list_of(ops::int_type(), {Value(1), Value(2)});
  const Value floats = made(ints, kFloats);
  EXPECT_FALSE(floats.is_same(ints));
  EXPECT_EQ(floats.to_list()->element->kind(), ops::TypeKind::kFloat);
  EXPECT_EQ(floats.to_list()->items.at(1).to_float(), 2.0);
  EXPECT_TRUE(ints.to_list()->items[0].is_int());
  // A list with another declared type whose items match.
  const Value any = list_of(ops::any_type(), {Value(1)});
  EXPECT_EQ(made(any, kInts).to_list()->element->kind(), ops::TypeKind::kInt);
  // Only the last one changes.
  const Value mixed = list_of(ops::float_type(), {Value(1.5), Value(2)});
  EXPECT_TRUE(made(mixed, kFloats).to_list()->items[1].is_float());
  const Value tuple = ops::make_tuple({Value(1), Value(2)});
  EXPECT_EQ(made(tuple, kInts).to_list()->items.size(), 2u);
  EXPECT_TRUE(made(tuple, kPair).to_tuple()->items[1].is_float());
  EXPECT_TRUE(made(ints, kPair).is_tuple());
  EXPECT_EQ(made(ints, kPair).to_tuple()->type, nullptr);
  const Value fitting = list_of(ops::any_type(), {Value(1), Value(1.5)});
  EXPECT_TRUE(made(fitting, kPair).is_tuple());

  const Value plain = ops::make_tuple({Value(1), Value(1.5)});
  EXPECT_EQ(made(plain, kNamed).to_tuple()->type, kNamed);
  EXPECT_EQ(plain.to_tuple()->type, nullptr);
  const Value named = made(plain, kNamed);
  EXPECT_TRUE(made(named, kNamed).is_same(named));
  EXPECT_EQ(made(fitting, kNamed).to_tuple()->type, kNamed);

  for (const Value& dict : {dict_of(ops::string_type(), ops::int_type(), {{Value("k"), Value(1)}}),
                            dict_of(ops::string_type(), ops::float_type(), {{Value("k"), Value(1)}}),
                            dict_of(ops::any_type(), ops::float_type(), {{Value("k"), Value(1.0)}}),
                            dict_of(ops::string_type(), ops::any_type(), {{Value("k"), Value(1.0)}})}) {
    const Value found = made(dict, kByName);
    EXPECT_FALSE(found.is_same(dict));
    EXPECT_EQ(found.to_dict()->key->kind(), ops::TypeKind::kString);
    EXPECT_EQ(found.to_dict()->value->kind(), ops::TypeKind::kFloat);
    EXPECT_EQ(found.to_dict()->items()[0].second.to_float(), 1.0);
  }
}

TEST(Coerce, SaysWhichItemDoesNotFit) {
  const std::tuple<Value, TypePtr, const char*> rows[] = {
      {Value(1), ops::tensor_type(), "f: argument 'x': expected Tensor but got int"},
      {Value(1.5), ops::int_type(), "f: argument 'x': expected int but got float"},
      {Value(true), ops::int_type(), "f: argument 'x': expected int but got bool"},
      {Value(true), ops::float_type(), "f: argument 'x': expected float but got bool"},
      {Value(1), ops::bool_type(), "f: argument 'x': expected bool but got int"},
      {Value("1"), ops::number_type(), "but got str"},
      {Value(1), ops::string_type(), "f: argument 'x': expected str but got int"},
      {Value(1), ops::none_type(), "f: argument 'x': expected NoneType but got int"},
      {Value(), ops::int_type(), "f: argument 'x': expected int but got NoneType"},
      {Value(1), ops::device_type(), "f: argument 'x': expected Device but got int"},
      {Value("1"), ops::optional_type(ops::int_type()), "f: argument 'x': expected int but got str"},
      {Value(1), kInts, "f: argument 'x': expected List[int] but got int"},
      {list_of(ops::any_type(), {Value(1), Value("s")}), kInts, "f: argument 'x'[1]: expected int but got str"},
      {Value(1), kPair, "f: argument 'x': expected Tuple[int, float] but got int"},
      {ops::make_tuple({Value(1)}), kPair, "f: argument 'x': expected a tuple of 2 items but got 1"},
      {ops::make_tuple({Value(1), Value(1.0), Value(1)}), kPair, "expected a tuple of 2 items but got 3"},
      {ops::make_tuple({Value(1), Value("s")}), kPair, "f: argument 'x'[1]: expected float but got str"},
      {Value(1), kByName, "f: argument 'x': expected Dict[str, float] but got int"},
      {dict_of(ops::string_type(), ops::string_type(), {{Value("k"), Value("v")}}), kByName,
       "f: argument 'x'[...]: expected float but got str"},
      {dict_of(ops::int_type(), ops::float_type(), {{Value(1), Value(1.5)}}), kByName,
       "f: argument 'x': key: expected str but got int"},
      {Value("s"), ops::union_type({ops::int_type(), ops::float_type()}), "but got str"},
      {Value(1), ops::interface_type("__torch__.I"), "but got int"},
      {Value(1), ops::TypePtr(std::make_shared<ops::ClassType>("__torch__.M", true)), "but got int"}};
  for (const auto& [value, type, message] : rows) EXPECT_THAT(refusal(value, type), HasSubstr(message));
}

TEST(BindArguments, DefaultsStandInForTheLast) {
  const ops::Schema schema = ops::parse_schema("f(int a, float b=2, int[] l=[1, 2], Tensor? t=None) -> int");
  const auto bound = [&](const Values& given) {
    Values out;
    bind_arguments(schema, given, out);
    return out;
  };
  const Values all = bound({Value(7)});
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[1].to_scalar().to_double(), 2.0);
  EXPECT_TRUE(all[3].is_none());
  EXPECT_FALSE(all[2].is_same(bound({Value(7)})[2]));  // a script may write to its list
  EXPECT_EQ(all[2].to_list()->items.size(), 2u);
  EXPECT_EQ(bound({Value(7), Value(3)})[1].to_float(), 3.0);
  EXPECT_EQ(bound({Value(7), Value(3.5), list_of(ops::int_type(), {}), Value()}).size(), 4u);
  EXPECT_EQ(error_of([&] { bound({}); }), "f: missing value for argument 'a' of type int");
  EXPECT_EQ(error_of([&] { bound(Values(5, Value(1))); }), "f: expected at most 4 arguments but got 5");
  EXPECT_EQ(error_of([&] { bound({Value(1), Value("s")}); }), "f: argument 'b': expected float but got str");
}

TEST(LoadFlags, AsTheyAreSpelled) {
  LoadOptions options;
  disable_pass(options, "cse");
  EXPECT_THAT(options.passes.disabled, ElementsAre("cse"));
  limit_pass(options, "dce:0");
  limit_pass(options, "cse:9223372036854775807");
  EXPECT_EQ(options.passes.limits.at("dce"), 0);
  EXPECT_EQ(options.passes.limits.at("cse"), INT64_MAX);
  const auto limit = [&](const char* text) { return error_of([&] { limit_pass(options, text); }); };
  for (const char* text : {"", "cse", ":1"}) EXPECT_EQ(limit(text), concat(text, ": expected PASS:N")) << text;
  for (const char* text : {"cse:", "cse:x", "cse:1x", "cse:-1", "cse: 1", "cse:9223372036854775808"}) {
    EXPECT_EQ(limit(text), concat(text, ": expected PASS:N with N at least 0")) << text;
  }
  EXPECT_THAT(limit("none:1"), HasSubstr("there is no pass 'none'; known are "));
  EXPECT_THAT(error_of([&] { disable_pass(options, "none"); }), HasSubstr("there is no pass 'none'"));
  EXPECT_EQ(options.passes.limits.size(), 2u);
  for (const char* text : {"f32", "bf16", "int8"}) EXPECT_STREQ(to_string(parse_precision(text)), text);
  EXPECT_EQ(error_of([] { parse_precision("f16"); }), "'f16': expected f32, tf32, bf16 or int8");
  EXPECT_EQ(error_of([] { parse_precision(""); }), "'': expected f32, tf32, bf16 or int8");
}

}  // namespace
}  // namespace tensord::jit::coerce_test
