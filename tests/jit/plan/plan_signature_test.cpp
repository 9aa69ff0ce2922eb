// Which calls share a plan, and what a plan may know about arguments.
#include "core/jit/runtime/signature.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/jit/ir/text.h"

namespace tensord::jit::plan_signature_test {
namespace {

using ops::Value;
using Values = std::vector<Value>;

Value ints(size_t count, int64_t value = 7) {
  return Value(ops::make_list(ops::int_type(), Values(count, Value(value))));
}

Value nested(int depth, const Value& innermost) {
  return depth == 0 ? innermost : Value(ops::make_tuple({nested(depth - 1, innermost)}));
}

// Each in new memory, even if their values are equal.
std::vector<std::function<Values()>> all_different() {
  const auto tensor = [](const Dims& sizes, const Dims& strides, DType dtype = DType::kFloat32) {
    return [=] { return Values{Tensor::meta_strided(sizes, strides, dtype)}; };
  };
  return {[] { return Values{}; },
          [] { return Values{Value()}; },
          [] {
            return Values{Value(), Value()};
          },
          [] { return Values{Value(true)}; },
          [] { return Values{Value(false)}; },
          [] { return Values{Value(1)}; },
          [] { return Values{Value(0)}; },
          [] {
            return Values{Value(1), Value(0)};
          },
          [] { return Values{Value(1.0)}; },
          [] { return Values{Value(-0.0)}; },
          [] { return Values{Value(0.0)}; },
          [] { return Values{Value(std::complex<double>(0, 1))}; },
          [] { return Values{Value(std::complex<double>(1, 0))}; },
          [] { return Values{Value(std::complex<double>(1, 1))}; },
          [] { return Values{Value("")}; },
          [] { return Values{Value("a")}; },
          [] { return Values{Value("12345678")}; },
          [] { return Values{Value("123456789")}; },
          [] { return Values{Value("x2345678")}; },
          [] { return Values{Value("12345678123456781234567x")}; },
          [] { return Values{Value(Device{})}; },
          [] {
            return Values{Value(Device{kCUDA, 0})};
          },
          [] {
            return Values{Value(Device{kCUDA, 1})};
          },
          [] { return Values{ints(0)}; },
          [] { return Values{ints(1)}; },
          [] { return Values{ints(2)}; },
          [] { return Values{ints(2, 8)}; },
          [] {
            return Values{ops::make_tuple({Value(7), Value(7)})};
          },
          [] { return Values{nested(8, Value(1))}; },
          [] { return Values{nested(8, Value(2))}; },
          tensor(Dims{2, 3}, Dims{3, 1}),
          tensor(Dims{2, 3}, Dims{1, 2}),
          tensor(Dims{3, 2}, Dims{2, 1}),
          tensor(Dims{2, 3, 1}, Dims{3, 1, 1}),
          tensor(Dims{2, 3}, Dims{3, 1}, DType::kFloat64),
          tensor(Dims{6}, Dims{1}),
          tensor(Dims{}, Dims{})};
}

TEST(Signature, TellsArgumentsApart) {
  const auto rows = all_different();
  for (size_t i = 0; i < rows.size(); ++i) {
    const Signature one(rows[i](), 2);
    EXPECT_TRUE(one.is_usable());
    EXPECT_EQ(one.threads(), 2);
    EXPECT_FALSE(one == Signature(rows[i](), 3)) << i;
    EXPECT_FALSE(one.matches(rows[i](), 3)) << i;
    for (size_t k = 0; k < rows.size(); ++k) {
      const Signature other(rows[k](), 2);
      EXPECT_EQ(one == other, i == k) << i << " and " << k;
      EXPECT_EQ(one.matches(rows[k](), 2), i == k) << i << " and " << k;
      if (i == k) {
        EXPECT_EQ(one.hash(), other.hash());
      }
    }
  }
}

// The bytes after a string's end are uninitialized.
TEST(Signature, OfEqualStringsInOtherMemory) {
  const auto text = [](char behind) {
    std::string s(40, behind);
    s.assign("123456789abc");
    return Value(std::move(s));
  };
  const Value a = text('x'), b = text('y');
  EXPECT_TRUE(Signature({&a, 1}, 1) == Signature({&b, 1}, 1));
}

// Values nested deeper than eight lists are identified by their address.
TEST(Signature, OfDeeplyNestedLists) {
  const Value a = nested(9, Value(1)), b = nested(9, Value(1));
  EXPECT_TRUE(Signature({&a, 1}, 1) == Signature({&a, 1}, 1));
  EXPECT_FALSE(Signature({&a, 1}, 1) == Signature({&b, 1}, 1));
}

// At most 4096 words: one for the threads, two before the items of a list, two for each item.
TEST(Signature, IsOfBoundedLength) {
  const auto is_usable = [](const Values& arguments) { return Signature(arguments, 1).is_usable(); };
  EXPECT_TRUE(is_usable({ints(2046), Value()}));
  EXPECT_FALSE(is_usable({ints(2046), Value(), Value()}));
  EXPECT_FALSE(is_usable({ints(2047)}));
  EXPECT_FALSE(is_usable({ints(2046), Value(), ints(5000)}));
  EXPECT_TRUE(is_usable({Value(std::string(4093 * 8, 'x'))}));
  EXPECT_FALSE(is_usable({Value(std::string(4093 * 8 + 1, 'x'))}));
  EXPECT_FALSE(is_usable({Value(std::string(4096 * 8, 'x')), Value()}));
  EXPECT_FALSE(is_usable({nested(7, ints(3000))}));
  EXPECT_TRUE(is_usable({nested(8, ints(3000))}));
  // A tensor takes three words, and two for each dimension: 1 + 2 + 4090 + 3.
  const Value scalar = Tensor::meta(Dims{}, DType::kFloat32);
  EXPECT_TRUE(is_usable({ints(2045), scalar}));
  EXPECT_FALSE(is_usable({ints(2045), scalar, Value()}));
  EXPECT_FALSE(is_usable({ints(2045), Value(Tensor::meta(Dims{1}, DType::kFloat32))}));
}

TEST(AbstractValues, KnowShapesAndPlainValues) {
  const Tensor tensor = Tensor::empty(Dims{2, 3}, DType::kInt32);
  const Value known = abstract_value(ops::make_tuple({Value(tensor), Value(5), Value(), Value("s"), ints(2)}));
  const auto& items = known.to_tuple()->items;
  ASSERT_EQ(items.size(), 5u);
  EXPECT_TRUE(items[0].to_tensor().is_meta());
  EXPECT_EQ(items[0].to_tensor().sizes(), (Dims{2, 3}));
  EXPECT_EQ(items[0].to_tensor().dtype(), DType::kInt32);
  EXPECT_EQ(items[1].to_int(), 5);
  EXPECT_TRUE(items[2].is_none());
  EXPECT_EQ(items[3].to_string(), "s");
  EXPECT_EQ(items[4].to_list()->items.size(), 2u);
  EXPECT_EQ(items[4].to_list()->element->kind(), ops::TypeKind::kInt);
  EXPECT_TRUE(abstract_value(Value(Device{})).is_device());
}

// If one item of a list is unknown, the whole list is.
TEST(AbstractValues, NothingOfOtherThings) {
  const Value dict = Value(make_intrusive<ops::DictObject>(ops::string_type(), ops::int_type()));
  EXPECT_TRUE(abstract_value(dict).is_none());
  EXPECT_TRUE(abstract_value(ops::make_tuple({Value(1), dict})).is_none());
  EXPECT_TRUE(abstract_value(ops::make_tuple({dict, Value(1)})).is_none());
  EXPECT_TRUE(abstract_value(nested(8, Value(1))).is_tuple());
  EXPECT_TRUE(abstract_value(nested(9, Value(1))).is_none());
}

TEST(SpecializeInputs, NumbersBecomeConstantsBeforeTheirUses) {
  const auto graph = parse_graph(
      "graph(%x : Optional[Tensor], %n : int, %unused : int, %l : List[int]):\n"
      "  %m : int = aten::add.int(%n, %n)\n"
      "  return (%m)\n");
  specialize_inputs(*graph, Values{Value(Tensor::empty(Dims{2}, DType::kFloat32)), Value(3), Value(4), ints(2)});
  EXPECT_EQ(print_graph(*graph),
            "graph(%x : Tensor, %n : int, %unused : int, %l : List[int]):\n"
            "  %n.1 : int = prim::Constant[value=3]()\n"
            "  %m : int = aten::add.int(%n.1, %n.1)\n"
            "  return (%m)\n");
  EXPECT_EQ(graph->inputs()[0]->known().to_tensor().sizes(), Dims{2});
  EXPECT_TRUE(graph->inputs()[2]->known().is_none());
  EXPECT_EQ(graph->inputs()[3]->known().to_list()->items.size(), 2u);
  const auto empty = parse_graph("graph(%n : int):\n  return (%n)\n");
  specialize_inputs(*empty, Values{Value(3)});
  EXPECT_NE(print_graph(*empty).find("prim::Constant[value=3]"), std::string::npos);
  EXPECT_THROW(specialize_inputs(*empty, Values{}), Error);
  EXPECT_THROW(specialize_inputs(*empty, (Values{Value(1), Value(2)})), Error);
}

TEST(DescribeArguments, NamesShapesAndNumbers) {
  EXPECT_EQ(describe_arguments({}), "");
  const auto type = std::make_shared<ops::ClassType>("__torch__.M", true);
  const Value self = Value(make_intrusive<ops::Object>(type));
  const Values arguments{self, Value(Tensor::empty(Dims{2, 3}, DType::kFloat32)), Value(5), Value(true)};
  EXPECT_EQ(describe_arguments(arguments), "float32[2, 3], 5, bool");
}

}  // namespace
}  // namespace tensord::jit::plan_signature_test
