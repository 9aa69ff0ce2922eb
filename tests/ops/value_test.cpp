// Values and types that a malicious script nests.
#include "core/ops/value.h"

#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/ops/declared.h"

namespace tensord::ops::value_test {
namespace {

// Far deeper than the stack allows.
constexpr int kDeep = 1'000'000;

TEST(ValueTest, FreesContainersHoweverDeep) {
  const auto nested = [](auto wrap) {
    const Value innermost(std::string("innermost"));
    Value value = innermost;
    for (int i = 0; i < kDeep; ++i) value = wrap(std::move(value));
    return std::pair(innermost, std::move(value));
  };
  const auto class_type = std::make_shared<ClassType>("Link", false);
  class_type->add_attribute("next", any_type());
  std::vector<Value> innermost;
  const auto make_and_free = [&](auto wrap) { innermost.push_back(nested(wrap).first); };
  make_and_free([](Value inner) { return Value(make_list(any_type(), {std::move(inner)})); });
  make_and_free([](Value inner) { return make_tuple({std::move(inner), Value(1)}); });
  make_and_free([](Value inner) {
    auto dict = make_intrusive<DictObject>(string_type(), any_type());
    dict->set(Value("next"), std::move(inner));
    return Value(std::move(dict));
  });
  make_and_free([](Value inner) { return Value(make_intrusive<FutureObject>(std::move(inner))); });
  make_and_free([&](Value inner) {
    auto object = make_intrusive<Object>(class_type);
    object->slots[0] = std::move(inner);
    return Value(std::move(object));
  });
  ASSERT_EQ(innermost.size(), 5u);
}

double thread_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// A file may have very many attributes, and each is looked up when it is compiled.
TEST(ValueTest, AttributesAreFoundAmongMany) {
  const auto seconds = [](int count) {
    ClassType type("Large", true);
    for (int i = 0; i < count; ++i) type.add_attribute(std::to_string(i), any_type());
    type.add_attribute("0", int_type());  // the first one counts
    const double start = thread_seconds();
    int wrong = type.find_attribute("none") != -1;
    for (int i = 0; i < count; ++i) wrong += type.find_attribute(std::to_string(i)) != i;
    EXPECT_EQ(wrong, 0);
    return thread_seconds() - start;
  };
  double small = 1e9;
  for (int i = 0; i < 3; ++i) small = std::min(small, seconds(2000));
  // For ten times as many; linear searches would take a hundred times as long.
  EXPECT_LT(seconds(20'000), 40 * small);
}

TEST(ValueTest, ComparingHasABound) {
  const List self = make_list(any_type());
  self->items.push_back(Value(self));
  EXPECT_THROW(Value(self).equals(Value(self)), Error);
  self->items.clear();

  Value twice(1), same(1);
  for (int i = 0; i < 60; ++i) {
    twice = make_tuple({twice, twice});
    same = make_tuple({same, same});
  }
  EXPECT_THROW(twice.equals(same), Error);
}

TEST(ValueTest, ComparesContainersByValue) {
  EXPECT_TRUE(make_tuple({Value(1), Value(2.0)}).equals(make_tuple({Value(true), Value(2)})));
  EXPECT_FALSE(make_tuple({Value(1)}).equals(make_tuple({Value(1), Value(2)})));
  EXPECT_FALSE(make_tuple({Value(1)}).equals(Value(make_list(int_type(), {Value(1)}))));
}

TEST(TypeTest, NestingHasABound) {
  TypePtr deep = int_type();
  EXPECT_THROW(for (int i = 0; i < kDeep; ++i) deep = list_type(deep), Error);
  TypePtr wide = int_type();
  EXPECT_THROW(for (int i = 0; i < 60; ++i) wide = tuple_type({wide, wide}), Error);
}

TEST(Declared, AnOperatorHasOneLine) {
  EXPECT_EQ(line_of("aten::sum"), "aten::sum(Tensor self, *, ScalarType? dtype=None) -> Tensor; autocast cuda f32");
  EXPECT_EQ(line_of("aten::relu"), "aten::relu(Tensor self) -> Tensor; inplace, out");
  EXPECT_EQ(line_of("my::relu(Tensor self) -> Tensor; out"), "my::relu(Tensor self) -> Tensor; out");
  for (const char* refused :
       {"aten::no_such", "my::relu", "aten::relu(Tensor self) -> Tensor", "aten::mine(int a) -> int", ""})
    EXPECT_THROW(line_of(refused), Error) << refused;
}

}  // namespace
}  // namespace tensord::ops::value_test
