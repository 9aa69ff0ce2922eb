// Typing values after a pickle was read, and values that cannot be written: each rule, and its limit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "core/base/error.h"
#include "core/jit/archive/conform.h"
#include "core/jit/archive/model_writer.h"
#include "core/jit/archive/pickle.h"
#include "core/jit/archive/torch_file.h"
#include "core/ops/registry.h"
#include "core/ops/run.h"

namespace tensord::jit::archive_values_test {
namespace {

namespace fs = std::filesystem;
using ops::TypePtr;
using ops::Value;
using ::testing::HasSubstr;

template <class Action>
std::string error_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return concat(to_string(error.code()), " ", error.what());
  }
  return "none";
}

const TypePtr kInt = ops::simple_type(ops::TypeKind::kInt), kText = ops::simple_type(ops::TypeKind::kString);

Value list_of(std::vector<Value> items) { return ops::make_list(ops::any_type(), std::move(items)); }
Value dict_of(const Value& key, const Value& item) {
  auto dict = make_intrusive<ops::DictObject>(ops::any_type(), ops::any_type());
  dict->set(key, item);
  return dict;
}

TEST(TypesOfValues, WhatCannotBeOfTheType) {
  const auto conforming = [](const Value& value, const TypePtr& type) {
    return error_of([&] { Conformer("m.pt").conform(value, type); });
  };
  const TypePtr ints = ops::list_type(kInt), pair = ops::tuple_type({kInt, kText}), dict = ops::dict_type(kText, kInt);
  const Value one = int64_t{1}, text = std::string("a");
  const Value good = ops::make_tuple({one, text});
  EXPECT_EQ(conforming(one, kInt), "none");
  EXPECT_EQ(conforming(list_of({one, one}), ints), "none");
  EXPECT_EQ(conforming(good, pair), "none");
  EXPECT_EQ(conforming(dict_of(text, one), dict), "none");
  EXPECT_EQ(conforming(Value(), ops::optional_type(pair)), "none");
  EXPECT_EQ(conforming(list_of({good, good}), ops::list_type(pair)), "none");
  const std::string wrong = "DATA_LOSS m.pt: expected a value of type ";
  EXPECT_EQ(conforming(text, kInt), wrong + "int but got str");
  EXPECT_EQ(conforming(one, ints), wrong + "List[int] but got int");
  EXPECT_EQ(conforming(one, dict), wrong + dict->str() + " but got int");
  EXPECT_EQ(conforming(list_of({one, text}), ints), wrong + "int but got str");
  EXPECT_EQ(conforming(one, pair), wrong + pair->str() + " but got int");
  EXPECT_EQ(conforming(ops::make_tuple({one}), pair), wrong + pair->str() + " but got tuple");
  EXPECT_EQ(conforming(ops::make_tuple({one, text, one}), pair), wrong + pair->str() + " but got tuple");
  EXPECT_EQ(conforming(ops::make_tuple({one, one}), pair), wrong + "str but got int");
  EXPECT_EQ(conforming(dict_of(one, one), dict), wrong + "str but got int");
  EXPECT_EQ(conforming(dict_of(text, text), dict), wrong + "int but got str");
}

// A list that occurs several times is typed each time.
TEST(TypesOfValues, WorkIsBounded) {
  const auto conforming = [](size_t last) {
    std::vector<Value> lists(190, list_of(std::vector<Value>(1 << 20, Value(int64_t{1}))));
    lists.push_back(list_of(std::vector<Value>(last, Value(int64_t{1}))));
    return error_of([&] { Conformer("m.pt").conform(list_of(lists), ops::list_type(ops::list_type(kInt))); });
  };
  // Each value and each item of a list is one step; the limit is 200 million.
  constexpr size_t kLast = 200'000'000 - 190 * ((1 << 20) + 1) - 1 - 1 - 191;
  EXPECT_EQ(conforming(kLast), "none");
  EXPECT_EQ(conforming(kLast + 1), "RESOURCE_EXHAUSTED m.pt: typing the values takes too long");
}

class WrittenValues : public ::testing::Test {
 protected:
  ~WrittenValues() override { fs::remove(path_); }

  // Of a module "name" whose attribute "a" has this value.
  std::string writing(const Value& value, const std::string& name = "__torch__.M") const {
    const auto type = std::make_shared<ops::ClassType>(name, true);
    type->add_attribute("a", ops::any_type());
    const auto object = make_intrusive<ops::Object>(type);
    object->attribute("a") = value;
    return error_of([&] { write_model_archive(path_, {}, object, {}); });
  }
  static Value nested(int depth) {
    Value value = list_of({});
    for (int i = 1; i < depth; ++i) value = list_of({value});
    return value;
  }

  const std::string path_ = fs::temp_directory_path() / ("archive_values_" + std::to_string(getpid()));
};

TEST_F(WrittenValues, ToADepth) {
  EXPECT_EQ(writing(nested(1000)), "none");
  EXPECT_THAT(writing(nested(1001)), HasSubstr("RESOURCE_EXHAUSTED a module's values are nested more than 1000 deep"));
}

TEST_F(WrittenValues, ThatArchivesHold) {
  EXPECT_EQ(writing(Value()), "none");
  EXPECT_EQ(writing(Tensor::empty(Dims{2}, DType::kFloat32)), "none");
  EXPECT_THAT(writing(Value(), "M"), HasSubstr("class 'M' cannot be written: its name has no module"));
  EXPECT_THAT(writing(Tensor::meta(Dims{2}, DType::kFloat32)), HasSubstr("FAILED_PRECONDITION a tensor on "));
  const auto sparse = [](const char* op) {
    const Tensor ones = Tensor::empty(Dims{2, 3}, DType::kFloat32);
    std::fill_n(ones.data<float>(), ones.numel(), 1.0F);
    const ops::Op* const found = ops::find_op(op);
    std::vector<Value> arguments{Value(ones)};
    for (size_t i = 1; i < found->schema.arguments.size(); ++i)
      arguments.push_back(*found->schema.arguments[i].default_value);
    return ops::run(*found, arguments)[0];
  };
  EXPECT_EQ(writing(sparse("aten::to_sparse_csr")), "none");
  EXPECT_THAT(writing(sparse("aten::to_sparse_csc")), HasSubstr("hold sparse_coo and sparse_csr tensors only"));
}

// The error names the module's attribute, not those of nested values.
TEST_F(WrittenValues, AnErrorNamesTheAttribute) {
  const auto inner_type = std::make_shared<ops::ClassType>("__torch__.Inner", true);
  inner_type->add_attribute("b", ops::any_type());
  const auto inner = make_intrusive<ops::Object>(inner_type);
  inner->attribute("b") = Tensor::meta(Dims{2}, DType::kFloat32);
  EXPECT_THAT(writing(inner), ::testing::EndsWith(" cannot be written (below attribute 'a')"));
}

TEST_F(WrittenValues, ByTorchSave) {
  EXPECT_EQ(error_of([&] { save_torch_file(path_, Tensor::empty(Dims{2}, DType::kFloat32)); }), "none");
  EXPECT_THAT(error_of([&] { save_torch_file(path_, Tensor::meta(Dims{2}, DType::kFloat32)); }),
              HasSubstr("must be moved to the CPU first"));
}

// Each pushed value counts, even if a dict drops it at once.
TEST(ReadValues, AreSoMany) {
  UnpickleContext context;
  context.source = "test";
  context.max_bytes = size_t{1} << 30;
  const auto reading = [&](const std::string& first) {
    constexpr size_t kItems = ((32 << 20) - 12) / 4;  // a dict takes 9, and an item 2 and 2 more
    std::string text = "\x80\x02" + first + "}";
    text.reserve(text.size() + 3 * kItems + 1);
    for (size_t i = 0; i < kItems; ++i) text += "\x88\x88s";
    return error_of([&] { unpickle(text + ".", context); });
  };
  EXPECT_THAT(reading("NNN"), HasSubstr("values are left at the end"));  // it was read up to the end
  EXPECT_THAT(reading("NNNN"), HasSubstr("the pickle creates more than 33554432 values"));
}

}  // namespace
}  // namespace tensord::jit::archive_values_test
