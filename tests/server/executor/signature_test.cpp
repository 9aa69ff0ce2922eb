// Checks of a request's inputs and outputs against a model's signature: what each accepts and refuses.
#include <gmock/gmock.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "server/executor/model/class_labels.h"
#include "server/executor/model/model.h"
#include "server/executor/model/model_version.h"
#include "tests/server/error_of.h"
#include "tests/server/fake_models.h"
#include "tests/server/temporary_folder.h"

namespace tensord::server::signature_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SignatureTest : public ::testing::Test {
 protected:
  SignatureTest() {
    signature.inputs[1].is_optional = true;
    signature.inputs[0].datatype = DataType::kFp32;
    signature.inputs[0].shape = Dims{-1, 3};
  }

  struct Input {
    std::string name;
    std::string datatype;
    Dims shape;
  };
  std::string refusal(const std::vector<Input>& inputs) {
    std::vector<InputHeader> headers;
    for (const Input& input : inputs) headers.push_back({input.name, input.datatype, input.shape});
    try {
      indices = match_inputs(signature, "m", headers);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      return error.what();
    }
    return "";
  }

  Signature signature = fixtures::signature_of({"x", "y"}, {"out", "more"});
  std::vector<size_t> indices;
};

TEST_F(SignatureTest, InputsByNameAndAlias) {
  EXPECT_EQ(refusal({{"y", "INT32", {1}}, {"x", "FP32", {2, 3}}}), "");
  EXPECT_THAT(indices, ElementsAre(1, 0));
  EXPECT_EQ(refusal({{"INPUT__0", "FP32", {2, 3}}}), "");
  EXPECT_THAT(refusal({{"x", "FP32", {2, 3}}, {"x", "FP32", {2, 3}}}), HasSubstr("'x' already exists in request"));
  EXPECT_THAT(refusal({{"x", "FP32", {2, 3}}, {"INPUT__0", "FP32", {2, 3}}}),
              HasSubstr("input 'x' is in the request twice, as 'x' and as 'INPUT__0'"));
  EXPECT_THAT(refusal({}), HasSubstr("expected number of inputs between 1 and 2 but got 0 inputs for model 'm'. Got "
                                     "input(s) [], but missing required input(s) ['x']"));
  EXPECT_THAT(refusal({{"y", "INT32", {1}}}), HasSubstr("Got input(s) ['y'], but missing required input(s) ['x']"));
  EXPECT_THAT(refusal({{"z", "FP32", {2, 3}}}), HasSubstr("Got input(s) ['z'], but missing required input(s) ['x']"));
  EXPECT_THAT(refusal({{"x", "FP32", {2, 3}}, {"z", "FP32", {1}}}),
              HasSubstr("unexpected inference input 'z' for mod"));
  signature.inputs[1].is_optional = false;
  EXPECT_THAT(refusal({{"z", "FP32", {1}}}),
              HasSubstr("expected 2 inputs but got 1 inputs for model 'm'. Got input(s) ['z'], but missing required "
                        "input(s) ['x','y']"));
}

TEST_F(SignatureTest, TypesOfInputs) {
  EXPECT_THAT(refusal({{"x", "FP64", {2, 3}}}), HasSubstr("data-type is 'FP64', but model 'm' expects 'FP32'"));
  EXPECT_THAT(refusal({{"x", "FP3", {2, 3}}}), HasSubstr("data-type is 'FP3', but model 'm' expects 'FP32'"));
  signature.inputs[0].datatype.reset();
  EXPECT_EQ(refusal({{"x", "FP64", {2, 3}}}), "");
  EXPECT_EQ(refusal({{"x", "UINT64", {2, 3}}}), "");
  for (const char* name : {"FP3", "FP320", "fp32", "", "INT64INT64", "BYTE", "BYTESX"}) {
    EXPECT_THAT(refusal({{"x", name, {2, 3}}}), HasSubstr("has unknown data-type")) << name;
  }
  EXPECT_THAT(refusal({{"x", "BYTES", {2, 3}}}), HasSubstr("but model 'm' expects a tensor of numbers"));
  signature.inputs[0].takes_bytes = true;
  EXPECT_EQ(refusal({{"x", "BYTES", {2, 3}}}), "");
  EXPECT_THAT(refusal({{"x", "FP32", {2, 3}}}), HasSubstr("but model 'm' expects 'BYTES'"));
}

TEST_F(SignatureTest, ShapesOfInputs) {
  for (const Dims& shape : {Dims{0, 3}, Dims{5, 3}}) EXPECT_EQ(refusal({{"x", "FP32", shape}}), "");
  for (const Dims& shape : {Dims{2}, Dims{2, 3, 1}, Dims{2, 2}, Dims{3, 2}, Dims{}}) {
    EXPECT_THAT(refusal({{"x", "FP32", shape}}), HasSubstr("unexpected shape for input 'x' for model 'm'. Expected "));
  }
  EXPECT_THAT(refusal({{"x", "FP32", {-1, 3}}}), HasSubstr("has a negative size in shape [-1,3]"));
  EXPECT_THAT(refusal({{"x", "FP32", {2, 2}}}), HasSubstr("Expected [-1,3], got [2,2]"));
  EXPECT_THAT(refusal({{"x", "FP32", {2, 2}}}), ::testing::Not(HasSubstr("NOTE")));
  signature.max_batch_size = 4;
  EXPECT_THAT(refusal({{"x", "FP32", {2, 2}}}), HasSubstr("NOTE: Setting a non-zero max_batch_size"));
}

TEST_F(SignatureTest, BatchesOfInputs) {
  signature.max_batch_size = 4;
  EXPECT_EQ(refusal({{"x", "FP32", {4, 3}}, {"y", "FP32", {4}}}), "");
  EXPECT_EQ(refusal({{"x", "FP32", {1, 3}}}), "");
  EXPECT_THAT(refusal({{"x", "FP32", {5, 3}}}), HasSubstr("inference request batch-size must be <= 4 for 'm'"));
  EXPECT_EQ(refusal({{"x", "FP32", {0, 3}}}), "");
  EXPECT_THAT(refusal({{"x", "FP32", {2, 3}}, {"y", "FP32", {1}}}), HasSubstr("input 'y' batch size does not match"));
  EXPECT_THAT(refusal({{"x", "FP32", {2, 3}}, {"y", "FP32", {}}}), HasSubstr("input 'y' batch size does not match"));
  signature.inputs[0].is_optional = true;
  EXPECT_EQ(refusal({}), "");
  EXPECT_THAT(refusal({{"y", "FP32", {}}}), HasSubstr("input 'y' batch size does not match"));
}

TEST_F(SignatureTest, OutputsThatARequestNames) {
  using Names = std::vector<std::string>;
  const auto refused = [&](const Names& names) -> std::string {
    try {
      check_requested_outputs(signature, "m", names);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refused({"more", "out"}), "");
  EXPECT_THAT(refused({"out", "more", "out"}), HasSubstr("output 'out' already exists in request"));
  EXPECT_THAT(refused({"out", "other"}), HasSubstr("unexpected inference output 'other' for model 'm'; it has '"));
  signature.outputs_are_complete = false;
  EXPECT_EQ(refused({"out", "other"}), "");
  EXPECT_THAT(refused({"other", "other"}), HasSubstr("output 'other' already exists in request"));

  std::vector<InferTensor> outputs(2);
  outputs[0].name = "out";
  outputs[1].name = "other";
  signature.outputs[0].aliases = {"first"};
  const auto selected = [&](const Names& names) {
    Names out;
    for (const InferTensor& output : select_outputs(outputs, signature, "m", names)) out.push_back(output.name);
    return out;
  };
  EXPECT_THAT(selected({}), ElementsAre("out", "other"));
  EXPECT_THAT(selected({"other", "first"}), ElementsAre("other", "first"));
  EXPECT_THAT(error_of([&] { selected({"gone"}); }).what(), HasSubstr("unexpected inference output 'gone'"));
  EXPECT_THAT(error_of([&] { selected({"more"}); }).what(), HasSubstr("unexpected inference output 'more'"));
}

TEST_F(SignatureTest, EveryDatatypeByItsName) {
  for (const char* name : {"BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64", "FP16",
                           "BF16", "FP32", "FP64", "BYTES"}) {
    const auto datatype = parse_datatype(name);
    ASSERT_TRUE(datatype) << name;
    EXPECT_EQ(name_of(*datatype), name);
    EXPECT_FALSE(parse_datatype(std::string(name) + "X"));
    EXPECT_FALSE(parse_datatype(std::string(name) + '\0'));
    EXPECT_FALSE(parse_datatype(std::string(name, std::strlen(name) - 1)));
  }
}

TEST_F(SignatureTest, TypesOfTensorsThatTheProtocolHas) {
  EXPECT_EQ(from_dtype(DType::kBool), DataType::kBool);
  EXPECT_EQ(from_dtype(DType::kFloat64), DataType::kFp64);
  EXPECT_THAT(error_of([] { from_dtype(DType::kComplex64); }).what(), HasSubstr("has no datatype for outputs of"));
}

TEST_F(SignatureTest, WhatCannotBeCached) {
  Metrics metrics("test");
  ModelConfig config;
  config.has_response_cache = true;
  const auto make = [&] {
    ModelVersion("m", 1, std::make_unique<fixtures::FakeModel>(signature, fixtures::RunFn()), config, {},
                 metrics.model("m", "1"));
  };
  EXPECT_NO_THROW(make());
  signature.keeps_state = true;
  EXPECT_THAT(error_of(make).what(), HasSubstr("response_cache: the model keeps state"));
  config.has_response_cache = false;
  EXPECT_NO_THROW(make());
}

TEST_F(SignatureTest, FilesOfLabelsAreBounded) {
  const fixtures::TemporaryFolder folder("labels");
  const std::string path = folder.path() / "labels.txt";
  ModelConfig config;
  config.outputs.resize(1);
  config.outputs[0].name = "out";
  config.outputs[0].label_filename = path;
  const auto read = [&] { return read_class_labels(config); };
  EXPECT_EQ(error_of(read).code(), ErrorCode::kNotFound);
  std::ofstream(path) << "cat\r\n\ndog";
  EXPECT_THAT(read().at("out"), ElementsAre("cat", "", "dog"));
  constexpr uintmax_t kMax = uintmax_t{64} << 20;  // including its newline
  std::filesystem::resize_file(path, 0);
  std::filesystem::resize_file(path, kMax - 1);
  EXPECT_EQ(read().at("out").size(), 1);
  std::filesystem::resize_file(path, kMax);
  EXPECT_THAT(error_of(read).what(), HasSubstr(" has more than 67108864 bytes"));
  config.outputs[0].label_filename = folder.path();
  EXPECT_EQ(error_of(read).code(), ErrorCode::kDataLoss);
}

}  // namespace
}  // namespace tensord::server::signature_test
