// Flattens a method's return value into outputs, derives outputs from its type, and reshapes tensors.
#include "server/executor/model/result.h"

#include <gmock/gmock.h>

#include "core/ops/sparse.h"
#include "server/executor/model/reshape.h"
#include "tests/server/error_of.h"

namespace tensord::server::result_test {
namespace {

using ops::Value;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const ops::TypePtr kInt = ops::int_type(), kFloat = ops::float_type(), kBool = ops::bool_type(),
                   kText = ops::string_type(), kTensor = ops::tensor_type();

Value tensor() { return Tensor::empty(Dims{2}, DType::kFloat32); }
Value texts(const std::vector<std::string>& items) {
  std::vector<Value> values;
  for (const std::string& item : items) values.emplace_back(item);
  return ops::make_list(kText, std::move(values));
}

// "name datatype [shape]" of each output.
std::vector<std::string> outputs_of(const Value& value) {
  std::vector<std::string> out;
  for (const InferTensor& one : flatten_result(value)) {
    out.push_back(concat(one.name, " ", name_of(one.datatype), " ", to_string(one.shape)));
  }
  return out;
}

std::vector<std::string> described(const ops::TypePtr& type, bool expects_complete = true) {
  bool is_complete = false;
  std::vector<std::string> out;
  for (const TensorSpec& spec : describe_result(*type, &is_complete)) {
    out.push_back(concat(spec.name, " ", spec.datatype ? name_of(*spec.datatype) : "any", " ",
                         spec.shape ? to_string(*spec.shape) : "any"));
  }
  EXPECT_EQ(is_complete, expects_complete) << type->str();
  return out;
}

TEST(ResultTest, EveryKindOfValue) {
  EXPECT_THAT(outputs_of(tensor()), ElementsAre("OUTPUT__0 FP32 [2]"));
  EXPECT_THAT(outputs_of(true), ElementsAre("OUTPUT__0 BOOL [1]"));
  EXPECT_THAT(outputs_of(int64_t{3}), ElementsAre("OUTPUT__0 INT64 [1]"));
  EXPECT_THAT(outputs_of(0.5), ElementsAre("OUTPUT__0 FP64 [1]"));
  EXPECT_THAT(outputs_of(std::string("a")), ElementsAre("OUTPUT__0 BYTES [1]"));
  EXPECT_THAT(outputs_of(texts({"a", "b"})), ElementsAre("OUTPUT__0 BYTES [2]"));
  EXPECT_THAT(outputs_of(ops::make_list(kInt, {int64_t{1}, int64_t{2}})), ElementsAre("OUTPUT__0 INT64 [2]"));
  EXPECT_THAT(outputs_of(ops::make_list(kFloat, {1.0})), ElementsAre("OUTPUT__0 FP64 [1]"));
  EXPECT_THAT(outputs_of(ops::make_list(kBool, {true})), ElementsAre("OUTPUT__0 BOOL [1]"));
  EXPECT_THAT(outputs_of(ops::make_list(kTensor, {tensor(), tensor()})),
              ElementsAre("OUTPUT__0 FP32 [2]", "OUTPUT__1 FP32 [2]"));
  // None takes up a position but is not an output.
  EXPECT_THAT(outputs_of(ops::make_tuple({tensor(), Value(), tensor()})),
              ElementsAre("OUTPUT__0 FP32 [2]", "OUTPUT__2 FP32 [2]"));
  EXPECT_EQ(flatten_result(ops::make_list(kInt, {int64_t{4}, int64_t{5}}))[0].tensor.data<int64_t>()[0], 4);
}

TEST(ResultTest, ListsOfListsOfNumbersComeListByList) {
  const auto list = [](int64_t item) { return ops::make_list(kInt, {item}); };
  EXPECT_THAT(outputs_of(ops::make_list(ops::list_type(kInt), {list(1), list(2)})),
              ElementsAre("OUTPUT__0 INT64 [1]", "OUTPUT__1 INT64 [1]"));
}

TEST(ResultTest, WhatHasNoPlaceInAResponse) {
  const auto dict = [](const ops::TypePtr& type, Value key) {
    auto out = make_intrusive<ops::DictObject>(type, kTensor);
    out->set(std::move(key), tensor());
    return Value(ops::Dict(std::move(out)));
  };
  EXPECT_THAT(outputs_of(dict(kInt, int64_t{3})), ElementsAre("3 FP32 [2]"));
  EXPECT_THAT(outputs_of(dict(kText, std::string("a"))), ElementsAre("a FP32 [2]"));
  EXPECT_THAT(error_of([&] { outputs_of(dict(kFloat, 0.5)); }).what(), HasSubstr("returned a dict with keys of type "));
  const Value sparse(Tensor(ops::SparseTensor::coo(Dims{2}, Tensor::empty(Dims{1, 0}, DType::kInt64),
                                                   Tensor::empty(Dims{0}, DType::kFloat32), true)));
  EXPECT_THAT(error_of([&] { outputs_of(sparse); }).what(),
              HasSubstr("returned a tensor sparse_coo float32[2], which has no place in a response: its to_dense()"));
}

TEST(ResultTest, RowsOfTextsAreOfOneLength) {
  const auto rows = [](std::vector<Value> items) { return ops::make_list(ops::list_type(kText), std::move(items)); };
  EXPECT_THAT(outputs_of(rows({texts({"a", "b"}), texts({"c", "d"})})), ElementsAre("OUTPUT__0 BYTES [2, 2]"));
  EXPECT_THAT(outputs_of(rows({})), ElementsAre("OUTPUT__0 BYTES [0, 0]"));
  const Error error = error_of([&] { outputs_of(rows({texts({"a", "b"}), texts({"c"})})); });
  EXPECT_EQ(error.code(), ErrorCode::kFailedPrecondition);
  EXPECT_THAT(error.what(), HasSubstr("different lengths, 2 and 1"));
}

TEST(ResultTest, NamesBelowTheFirstLevelAreJoined) {
  const ops::TypePtr named = ops::named_tuple_type("Pair", {"a", "b"}, {kTensor, kTensor});
  const Value pair(make_intrusive<ops::TupleObject>(std::vector<Value>{tensor(), tensor()}, named));
  EXPECT_THAT(outputs_of(pair), ElementsAre("a FP32 [2]", "b FP32 [2]"));
  EXPECT_THAT(outputs_of(ops::make_tuple({tensor(), pair})),
              ElementsAre("OUTPUT__0 FP32 [2]", "a FP32 [2]", "b FP32 [2]"));
  EXPECT_THAT(described(named), ElementsAre("a any any", "b any any"));
  const ops::TypePtr outer = ops::named_tuple_type("Outer", {"x", "y"}, {named, ops::tuple_type({kInt, kTensor})});
  EXPECT_THAT(described(outer), ElementsAre("x.a any any", "x.b any any", "y.0 INT64 [1]", "y.1 any any"));
}

ops::TypePtr named(std::vector<std::string> fields, std::vector<ops::TypePtr> types) {
  return ops::named_tuple_type("Named", std::move(fields), std::move(types));
}

Value dict_of(const std::vector<std::string>& keys) {
  auto out = make_intrusive<ops::DictObject>(kText, kTensor);
  for (const std::string& key : keys) out->set(key, tensor());
  return ops::Dict(std::move(out));
}

std::vector<std::string> names_of(const Value& value, const std::string& whole = "") {
  std::vector<std::string> out;
  for (const InferTensor& one : flatten_result(value, whole)) out.push_back(one.name);
  return out;
}

TEST(ResultTest, NoNameIsThereTwice) {
  const ops::TypePtr dict = ops::dict_type(kText, kTensor);
  EXPECT_THAT(names_of(ops::make_list(dict, {dict_of({"boxes", "labels"}), dict_of({"boxes", "labels"})})),
              ElementsAre("boxes", "labels", "1.boxes", "1.labels"));
  // Nor does an item get the name of a missing one.
  EXPECT_THAT(names_of(ops::make_list(dict, {dict_of({}), dict_of({"boxes"})})), ElementsAre("1.boxes"));
  EXPECT_THAT(names_of(ops::make_tuple({dict_of({"a", "b"}), dict_of({"b", "c"})})), ElementsAre("a", "b", "1.b", "c"));
  EXPECT_THAT(names_of(ops::make_tuple({dict_of({"a", "1.a"}), dict_of({"a"})})), ElementsAre("a", "1.a", "a_1"));
  EXPECT_THAT(names_of(ops::make_tuple({dict_of({"OUTPUT__1"}), tensor(), tensor()})),
              ElementsAre("OUTPUT__1", "OUTPUT__0", "OUTPUT__2"));
  const ops::TypePtr pair = named({"a", "b"}, {kTensor, kTensor});
  const Value one(make_intrusive<ops::TupleObject>(std::vector<Value>{tensor(), tensor()}, pair));
  EXPECT_THAT(names_of(ops::make_list(pair, {one, one, one})), ElementsAre("a", "b", "1.a", "1.b", "2.a", "2.b"));
  EXPECT_THAT(
      names_of(ops::make_list(ops::list_type(pair), {ops::make_list(pair, {one, one}), ops::make_list(pair, {one})})),
      ElementsAre("a", "b", "0.1.a", "0.1.b", "1.0.a", "1.0.b"));
  EXPECT_THAT(described(ops::tuple_type({pair, pair})),
              ElementsAre("a any any", "b any any", "1.a any any", "1.b any any"));
}

TEST(ResultTest, NamesOfTheModelComeBeforeNumbers) {
  EXPECT_THAT(described(ops::tuple_type({kTensor, ops::none_type(), named({"OUTPUT__0"}, {kTensor}), kTensor})),
              ElementsAre("OUTPUT__1 any any", "OUTPUT__0 any any", "OUTPUT__3 any any"));
  const std::vector<std::string> known{"OUTPUT__1", "OUTPUT__0"};
  const ops::TypePtr field = named({"OUTPUT__0"}, {kTensor});
  const Value item(make_intrusive<ops::TupleObject>(std::vector<Value>{tensor()}, field));
  const std::vector<InferTensor> outputs = flatten_result(ops::make_tuple({tensor(), item}), "", known);
  EXPECT_EQ(outputs[0].name, "OUTPUT__1");
  EXPECT_EQ(outputs[1].name, "OUTPUT__0");
  // Names known only after a run come last, so a type determines the names of its first results.
  EXPECT_THAT(described(ops::tuple_type({kTensor, ops::dict_type(kText, kTensor)}), false),
              ElementsAre("OUTPUT__0 any any"));
  EXPECT_THAT(names_of(ops::make_tuple({tensor(), dict_of({"OUTPUT__0"})})), ElementsAre("OUTPUT__0", "1.OUTPUT__0"));
}

TEST(ResultTest, TheNameThatAFileHasForTheWholeResult) {
  bool is_complete = false;
  EXPECT_EQ(describe_result(*kTensor, &is_complete, "logits").at(0).name, "logits");
  EXPECT_THAT(names_of(tensor(), "logits"), ElementsAre("logits"));
  EXPECT_THAT(names_of(ops::make_list(kTensor, {tensor(), tensor()}), "parts"), ElementsAre("parts.0", "parts.1"));
}

TEST(ResultTest, ValuesThatNestDeeperThanAllowed) {
  const auto in_tuple = [](const Value& value) { return ops::make_tuple({value}); };
  const auto in_list = [](const Value& value) { return ops::make_list(kTensor, {value}); };
  const auto in_dict = [](const Value& value) {
    auto out = make_intrusive<ops::DictObject>(kText, kTensor);
    out->set(std::string("a"), value);
    return Value(ops::Dict(std::move(out)));
  };
  for (const std::function<Value(const Value&)>& outer :
       {std::function<Value(const Value&)>(in_tuple), {in_list}, {in_dict}}) {
    Value nested = tensor();
    for (int i = 0; i < 16; ++i) nested = outer(nested);
    EXPECT_EQ(outputs_of(nested).size(), 1);
    const Error error = error_of([&] { outputs_of(outer(nested)); });
    EXPECT_THAT(error.what(), HasSubstr("nests deeper than 16 levels"));
  }
}

TEST(ResultTest, WhatTheTypeTells) {
  EXPECT_THAT(described(kTensor), ElementsAre("OUTPUT__0 any any"));
  EXPECT_THAT(described(kInt), ElementsAre("OUTPUT__0 INT64 [1]"));
  EXPECT_THAT(described(ops::list_type(kFloat)), ElementsAre("OUTPUT__0 FP64 [-1]"));
  EXPECT_THAT(described(ops::list_type(ops::list_type(kText))), ElementsAre("OUTPUT__0 BYTES [-1, -1]"));
  EXPECT_THAT(described(ops::tuple_type({kTensor, ops::none_type(), kBool})),
              ElementsAre("OUTPUT__0 any any", "OUTPUT__2 BOOL [1]"));
  EXPECT_THAT(described(ops::list_type(kTensor), false), ElementsAre());
  EXPECT_THAT(described(ops::tuple_type({kTensor, ops::list_type(kTensor), kInt}), false),
              ElementsAre("OUTPUT__0 any any"));
}

TEST(ResultTest, ATensorInOtherSizes) {
  struct Case {
    Dims shape, from, to, expected;  // `expected` is empty if it is refused
  };
  for (const Case& c : {Case{{6}, {6}, {2, 3}, {2, 3}}, Case{{5}, {-1}, {-1, 1}, {5, 1}},
                        Case{{3, 4, 5}, {-1, 4, -1}, {-1, 2, 2, -1}, {3, 2, 2, 5}}, Case{{0}, {-1}, {-1, 3}, {0, 3}},
                        Case{{6}, {5}, {2, 3}, {}}, Case{{6, 1}, {6}, {2, 3}, {}}, Case{{2, 4}, {2, 3}, {6}, {}},
                        Case{{3, 4}, {2, 4}, {8}, {}}, Case{{6}, {6}, {2, 2}, {}}, Case{{5}, {-1}, {4}, {}},
                        Case{{4}, {4}, {-1, 4}, {}}, Case{{0}, {0}, {-1, 4}, {}}, Case{{3}, {0}, {3}, {}},
                        Case{{0}, {-1}, {0, -1}, {0, 0}}}) {
    InferTensor tensor;
    tensor.name = "x";
    tensor.shape = c.shape;
    tensor.tensor = Tensor::empty(c.shape, DType::kFloat32);
    if (c.expected.empty()) {
      const Error error = error_of([&] { reshape(tensor, c.from, c.to); });
      EXPECT_NE(error.code(), ErrorCode::kInternal) << to_string(c.shape) << error.what();
      EXPECT_EQ(tensor.shape, c.shape);
    } else {
      reshape(tensor, c.from, c.to);
      EXPECT_EQ(tensor.shape, c.expected);
      EXPECT_EQ(tensor.tensor.sizes(), c.expected);
    }
  }
  InferTensor texts;
  texts.datatype = DataType::kBytes;
  texts.shape = {2};
  reshape(texts, {2}, {1, 2});
  EXPECT_EQ(texts.shape, (Dims{1, 2}));
}

}  // namespace
}  // namespace tensord::server::result_test
