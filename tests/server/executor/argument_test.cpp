// How a request's tensor becomes an argument of each type, and which tensors are refused, at the request and at load.
#include "server/executor/model/argument.h"

#include <gmock/gmock.h>

#include "tests/server/error_of.h"

namespace tensord::server::argument_test {
namespace {

using ops::Value;
using ::testing::HasSubstr;

const ops::TypePtr kInt = ops::int_type(), kFloat = ops::float_type(), kBool = ops::bool_type(),
                   kText = ops::string_type(), kTensor = ops::tensor_type(), kNumber = ops::number_type();
const ops::TypePtr kRowsOfTexts = ops::list_type(ops::list_type(kText));

InferTensor numbers(const Dims& shape, const std::vector<double>& values, DType dtype = DType::kFloat32) {
  InferTensor out;
  out.name = "x";
  out.datatype = from_dtype(dtype);
  out.shape = shape;
  Tensor doubles = Tensor::empty(shape, DType::kFloat64);
  std::copy(values.begin(), values.end(), doubles.data<double>());
  out.tensor = doubles.to(dtype);
  return out;
}

InferTensor texts(const Dims& shape, const std::vector<std::string>& values) {
  InferTensor out;
  out.name = "x";
  out.datatype = DataType::kBytes;
  out.shape = shape;
  for (const std::string& value : values) out.strings.emplace_back(value);
  return out;
}

std::string refusal(const ops::TypePtr& type, const InferTensor& input) {
  const Error error = error_of([&] { to_argument(*type, input); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  return error.what();
}

TEST(ArgumentTest, WhichTypesARequestCanFeed) {
  struct Case {
    ops::TypePtr type;
    bool is_feedable, takes_bytes;
  };
  for (const auto& [type, feedable, bytes] :
       {Case{kTensor, true, false}, Case{kText, true, true}, Case{kInt, true, false}, Case{kFloat, true, false},
        Case{kBool, true, false}, Case{kNumber, true, false}, Case{ops::list_type(kInt), true, false},
        Case{ops::list_type(kFloat), true, false}, Case{ops::list_type(kBool), true, false},
        Case{ops::list_type(kText), true, true}, Case{kRowsOfTexts, true, true},
        Case{ops::list_type(kNumber), false, false}, Case{ops::list_type(kTensor), false, false},
        Case{ops::list_type(ops::list_type(kInt)), false, false}, Case{ops::list_type(kRowsOfTexts), false, false},
        Case{ops::dict_type(kText, kTensor), false, false}, Case{ops::device_type(), false, false}}) {
    for (const ops::TypePtr& it : {type, ops::optional_type(type)}) {
      EXPECT_EQ(is_feedable(*it), feedable) << it->str();
      EXPECT_EQ(takes_bytes(*it), bytes) << it->str();
    }
  }
}

TEST(ArgumentTest, OneElementIsANumber) {
  EXPECT_EQ(to_argument(*kInt, numbers({1}, {7}, DType::kInt32)).to_int(), 7);
  EXPECT_EQ(to_argument(*ops::optional_type(kInt), numbers({1, 1}, {7}, DType::kInt32)).to_int(), 7);
  EXPECT_EQ(to_argument(*kFloat, numbers({}, {0.5})).to_float(), 0.5);
  EXPECT_EQ(to_argument(*kFloat, numbers({1}, {3}, DType::kInt64)).to_float(), 3);
  EXPECT_TRUE(to_argument(*kBool, numbers({1}, {2}, DType::kInt64)).to_bool());
  const Value flag = to_argument(*kNumber, numbers({1}, {1}, DType::kBool));
  const Value whole = to_argument(*kNumber, numbers({1}, {3}, DType::kInt64));
  const Value real = to_argument(*kNumber, numbers({1}, {3}));
  EXPECT_TRUE(flag.is_bool());
  EXPECT_TRUE(whole.is_int());
  EXPECT_TRUE(!real.is_int() && !real.is_bool() && real.is_number());
  for (const ops::TypePtr& type : {kInt, kFloat, kBool, kNumber}) {
    EXPECT_THAT(refusal(type, numbers({2}, {1, 2}, DType::kInt64)),
                HasSubstr("must have exactly one element, got sha"));
    EXPECT_THAT(refusal(type, numbers({0}, {}, DType::kInt64)), HasSubstr("must have exactly one element, got sha"));
  }
  EXPECT_THAT(refusal(kInt, numbers({1}, {1})), HasSubstr("must be of an integral data-type, got FP32"));
  EXPECT_EQ(to_argument(*kText, texts({1}, {"a"})).to_string(), "a");
  EXPECT_THAT(refusal(kText, texts({2}, {"a", "b"})), HasSubstr("must have exactly one element"));
  EXPECT_THAT(refusal(kText, texts({0}, {})), HasSubstr("must have exactly one element"));
}

TEST(ArgumentTest, OneDimensionIsAList) {
  const Value list = to_argument(*ops::list_type(kInt), numbers({3}, {4, 5, 6}, DType::kInt64));
  ASSERT_EQ(list.to_list()->items.size(), 3);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(list.to_list()->items[i].to_int(), static_cast<int64_t>(4 + i));
  EXPECT_EQ(to_argument(*ops::list_type(kFloat), numbers({}, {4})).to_list()->items.size(), 1);
  EXPECT_TRUE(to_argument(*ops::list_type(kBool), numbers({0}, {})).to_list()->items.empty());
  EXPECT_EQ(to_argument(*ops::list_type(kText), texts({2}, {"a", "b"})).to_list()->items[1].to_string(), "b");
  EXPECT_THAT(refusal(ops::list_type(kInt), numbers({1, 3}, {4, 5, 6}, DType::kInt64)), HasSubstr("one dimension"));
  EXPECT_THAT(refusal(ops::list_type(kText), texts({1, 1}, {"a"})), HasSubstr("must have one dimension, got shape"));
  EXPECT_THAT(refusal(ops::list_type(kInt), numbers({1}, {4})), HasSubstr("must be of an integral data-type"));
}

TEST(ArgumentTest, TwoDimensionsAreRowsOfTexts) {
  const Value rows = to_argument(*kRowsOfTexts, texts({3, 2}, {"a", "b", "c", "d", "e", "f"}));
  std::vector<std::string> seen;
  for (const Value& row : rows.to_list()->items) {
    ASSERT_EQ(row.to_list()->items.size(), 2);
    for (const Value& text : row.to_list()->items) seen.push_back(text.to_string());
  }
  EXPECT_THAT(seen, ::testing::ElementsAre("a", "b", "c", "d", "e", "f"));
  EXPECT_TRUE(to_argument(*kRowsOfTexts, texts({0, 2}, {})).to_list()->items.empty());
  EXPECT_EQ(to_argument(*kRowsOfTexts, texts({2, 0}, {})).to_list()->items.size(), 2);
  EXPECT_THAT(refusal(kRowsOfTexts, texts({1}, {"a"})), HasSubstr("must have two dimensions"));
  EXPECT_THAT(refusal(kRowsOfTexts, texts({1, 1, 1}, {"a"})), HasSubstr("must have two dimensions"));
}

// One row for each combination of an argument type and an input configuration, with the expected error; "" is none.
struct Configured {
  ops::TypePtr type;
  std::optional<Dims> shape;
  bool has_batch;
  std::string refused, warned;
  std::optional<DataType> datatype = {};
  std::optional<Dims> reshape = {};
};

TEST(ArgumentTest, WhatTheConfigurationSaysMustFitTheType) {
  const ops::TypePtr ints = ops::list_type(kInt);
  for (const Configured& c : {
           Configured{kTensor, Dims{2, 3}, false, "", ""},
           Configured{kInt, std::nullopt, false, "", ""},
           Configured{kInt, Dims{1}, false, "", ""},
           Configured{kInt, Dims{-1}, false, "", ""},
           Configured{kInt, Dims{2}, false, "one element, but its dims have 2", ""},
           Configured{kInt, Dims{0}, false, "one element, but its dims have 0", ""},
           Configured{kInt, Dims{-1, 1}, true, "", ""},
           Configured{kInt, Dims{8, 1}, true, "", ""},  // the first dimension is the batch
           Configured{kInt, Dims{-1, 2}, true, "one element, but its dims have 2", ""},
           Configured{kInt, Dims{1, 2}, false, "one element, but its dims have 2", ""},
           Configured{kInt, Dims{2}, false, "", "", std::nullopt, Dims{1}},
           Configured{kInt, Dims{1}, false, "which FP32 cannot feed", "", DataType::kFp32},
           Configured{kInt, Dims{1}, false, "", "", DataType::kInt32},
           Configured{kInt, Dims{1}, false, "", "", DataType::kUint32},
           Configured{kFloat, Dims{1}, false, "", "", DataType::kFp32},
           Configured{ints, Dims{1}, false, "which FP64 cannot feed", "", DataType::kFp64},
           Configured{ints, Dims{-1}, false, "", ""},
           Configured{ints, Dims{3}, false, "", "but config.pbtxt takes exactly 3"},
           Configured{ints, Dims{0}, false, "", "but config.pbtxt takes exactly 0"},
           Configured{ints, Dims{3}, true, "", ""},  // of a batch
           Configured{ints, Dims{-1, -1}, false, "takes 1 dimension, but is given 2. Say `dims: [ -1 ]`", ""},
           Configured{ints, Dims{-1, 1}, false, "Say `dims: [ -1 ]`", ""},
           Configured{ints, Dims{-1, 1}, true, "that of the batch among them. Add `reshape { shape: [ ] }`", ""},
           Configured{ints, Dims{-1, 2}, true, "among them. Leave out max_batch_size, or give dims without it", ""},
           Configured{ints, Dims{-1, 1, 1}, true, "Leave out max_batch_size, or give dims without it", ""},
           Configured{kRowsOfTexts, Dims{-1, -1}, false, "", ""},
           Configured{kRowsOfTexts, Dims{-1, 2}, true, "", "but config.pbtxt takes exactly 2"},
           Configured{kRowsOfTexts, Dims{-1, 1, 1}, true, "takes 2 dimensions, but is given 3", ""},
           Configured{kRowsOfTexts, Dims{1}, true, "Leave out max_batch_size, or give dims without it", ""},
           Configured{kRowsOfTexts, Dims{1}, false, "takes 2 dimensions, but is given 1. Say", ""},
       }) {
    TensorSpec spec;
    spec.name = "x";
    spec.shape = c.shape;
    spec.datatype = c.datatype;
    spec.reshape = c.reshape;
    std::string refused, warned;
    try {
      warned = check_configured(*c.type, spec, c.has_batch, "m.pt");
    } catch (const Error& error) {
      refused = error.what();
    }
    const std::string what = c.type->str() + (c.shape ? to_string(*c.shape) : "") + (c.has_batch ? " batch" : "");
    EXPECT_EQ(refused.empty(), c.refused.empty()) << what << refused;
    EXPECT_THAT(refused, HasSubstr(c.refused)) << what;
    EXPECT_EQ(warned.empty(), c.warned.empty()) << what << warned;
    EXPECT_THAT(warned, HasSubstr(c.warned)) << what;
  }
}

}  // namespace
}  // namespace tensord::server::argument_test
