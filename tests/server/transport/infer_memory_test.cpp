// Inputs and outputs in the client's shared memory, and inputs that are left in pieces.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "core/base/error.h"
#include "protos/inference.pb.h"
#include "server/transport/infer/decode.h"
#include "server/transport/infer/encode.h"
#include "server/transport/infer/outputs.h"
#include "server/transport/infer/parameters.h"
#include "tests/server/fake_models.h"

namespace tensord::server::infer_memory_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A page of shared memory, registered as "r".
class Region {
 public:
  Region() : key_("/tensord_infer_test_" + std::to_string(getpid())) {
    file_ = shm_open(key_.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
    EXPECT_GE(file_, 0);
    EXPECT_EQ(ftruncate(file_, kBytes), 0);
    data = static_cast<uint8_t*>(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0));
    regions.add({.name = "r", .key = key_, .size_bytes = kBytes});
  }
  ~Region() {
    munmap(data, kBytes);
    close(file_);
    shm_unlink(key_.c_str());
  }
  const std::string& key() const { return key_; }
  void take_away() { EXPECT_EQ(ftruncate(file_, 0), 0); }

  static constexpr int64_t kBytes = 4096;
  SharedRegions regions{true};
  uint8_t* data;

 private:
  const std::string key_;
  int file_;
};

// A request that keeps the bytes it was parsed from.
struct Parsed {
  Parsed(const inference::ModelInferRequest& request, size_t piece_bytes = 1 << 20) {
    const std::string bytes = request.SerializeAsString();
    auto pieces = std::make_shared<std::vector<std::string>>();
    for (size_t i = 0; i < bytes.size(); i += piece_bytes) pieces->push_back(bytes.substr(i, piece_bytes));
    for (const std::string& piece : *pieces) {
      wire.add_piece({reinterpret_cast<const uint8_t*>(piece.data()), piece.size()});
    }
    wire.owner = pieces;
    message = parse_infer_message(wire);
  }
  WireMessage wire;
  InferMessage message;
};

inference::ModelInferRequest request_of(const std::string& datatype, int64_t count) {
  inference::ModelInferRequest request;
  request.set_model_name("m");
  auto* input = request.add_inputs();
  input->set_name("x");
  input->set_datatype(datatype);
  input->add_shape(count);
  return request;
}

DecodedInputs decode(const inference::ModelInferRequest& request, const SharedRange& range, bool takes_bytes = false) {
  Signature signature = fixtures::signature_of({"x"}, {"OUTPUT__0"});
  signature.inputs[0].takes_bytes = takes_bytes;
  const Parsed parsed(request);
  return decode_inputs(parsed.message, parsed.wire, signature, {.ranges = {range}});
}

template <class Call>
std::string error_of(ErrorCode code, Call call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  return "no error";
}

TEST(SharedInputs, FloatingPointNumbersAreReadWhereTheyLie) {
  Region region;
  const float values[] = {1, 2, 3};
  std::memcpy(region.data + 64, values, sizeof(values));
  const DecodedInputs decoded = decode(request_of("FP32", 3), region.regions.find("r", 64, 12));
  EXPECT_EQ(decoded.copied_bytes, 0u);
  EXPECT_EQ(decoded.inputs[0].tensor.data<float>()[2], 3.f);
  *reinterpret_cast<float*>(region.data + 72) = 7;
  EXPECT_EQ(decoded.inputs[0].tensor.data<float>()[2], 7.f);
}

TEST(SharedInputs, WhatMustNotChangeIsCopied) {
  Region region;
  std::memcpy(region.data, "\1\0\2\0", 4);
  const DecodedInputs integers = decode(request_of("INT16", 2), region.regions.find("r", 0, 4));
  const DecodedInputs flags = decode(request_of("BOOL", 4), region.regions.find("r", 0, 4));
  const DecodedInputs unaligned = decode(request_of("FP16", 1), region.regions.find("r", 1, 2));
  EXPECT_EQ(unaligned.copied_bytes, 2u);
  EXPECT_EQ(integers.copied_bytes, 4u);
  std::memset(region.data, 0xff, 4);
  EXPECT_EQ(integers.inputs[0].tensor.data<int16_t>()[1], 2);
  EXPECT_EQ(static_cast<const uint8_t*>(flags.inputs[0].tensor.raw_data())[2], 1);  // 2 is not a valid bool
}

TEST(SharedInputs, TextsAreCheckedInACopy) {
  Region region;
  std::memcpy(region.data, "\2\0\0\0ab\0\0\0\0", 10);
  const SharedRange range = region.regions.find("r", 0, 10);
  EXPECT_THAT(decode(request_of("BYTES", 2), range, true).inputs[0].strings, ElementsAre("ab", ""));
  region.data[0] = 200;
  EXPECT_THAT(error_of(ErrorCode::kInvalidArgument, [&] { decode(request_of("BYTES", 2), range, true); }),
              HasSubstr("expecting string of length 200 but only 6 bytes"));
}

TEST(SharedInputs, SizesMustMatch) {
  Region region;
  EXPECT_THAT(
      error_of(ErrorCode::kInvalidArgument, [&] { decode(request_of("FP32", 3), region.regions.find("r", 0, 16)); }),
      HasSubstr("Expected 12, got 16"));
  inference::ModelInferRequest both = request_of("FP32", 1);
  both.mutable_inputs(0)->mutable_contents()->add_fp32_contents(1);
  EXPECT_THAT(error_of(ErrorCode::kInvalidArgument, [&] { decode(both, region.regions.find("r", 0, 4)); }),
              HasSubstr("unexpected 'content' provided when using shared memory"));
}

TEST(SharedInputs, RawContentsAreThoseOfTheOthers) {
  Region region;
  *reinterpret_cast<float*>(region.data) = 5;
  inference::ModelInferRequest request = request_of("FP32", 1);
  *request.add_inputs() = request.inputs(0);
  request.mutable_inputs(1)->set_name("y");
  const float value = 6;
  request.add_raw_input_contents(&value, sizeof(value));
  const Parsed parsed(request);
  const DecodedInputs decoded =
      decode_inputs(parsed.message, parsed.wire, fixtures::signature_of({"x", "y"}, {"OUTPUT__0"}),
                    {.ranges = {region.regions.find("r", 0, 4), {}}});
  EXPECT_EQ(*decoded.inputs[0].tensor.data<float>(), 5.f);
  EXPECT_EQ(*decoded.inputs[1].tensor.data<float>(), 6.f);
}

TEST(ScatteredInputs, KeepTheirPieces) {
  inference::ModelInferRequest request = request_of("INT8", 100);
  std::string raw(100, '\0');
  for (size_t i = 0; i < raw.size(); ++i) raw[i] = static_cast<char>(i);
  request.add_raw_input_contents(raw);
  const Parsed parsed(request, 7);
  const Signature signature = fixtures::signature_of({"x"}, {"OUTPUT__0"});
  const DecodedInputs decoded = decode_inputs(parsed.message, parsed.wire, signature, {.may_scatter = true});
  ASSERT_NE(decoded.inputs[0].scattered, nullptr);
  EXPECT_FALSE(decoded.inputs[0].tensor.defined());
  EXPECT_EQ(decoded.copied_bytes, 0u);
  std::string bytes;
  for (const auto& piece : decoded.inputs[0].scattered->pieces) {
    bytes.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  }
  EXPECT_EQ(bytes, raw);
  // A model that does not accept scattered inputs gets a tensor.
  const DecodedInputs gathered = decode_inputs(parsed.message, parsed.wire, signature);
  EXPECT_EQ(gathered.inputs[0].scattered, nullptr);
  EXPECT_EQ(gathered.copied_bytes, 100u);
  EXPECT_EQ(std::memcmp(gathered.inputs[0].tensor.raw_data(), raw.data(), 100), 0);
}

class OutputsTest : public ::testing::Test {
 protected:
  static InferTensor floats(const std::vector<float>& values) {
    InferTensor out;
    out.name = "OUTPUT__0";
    out.shape = {static_cast<int64_t>(values.size())};
    out.tensor = Tensor::empty(out.shape, DType::kFloat32);
    std::copy(values.begin(), values.end(), out.tensor.data<float>());
    return out;
  }
  std::vector<bool> place_outputs(const OutputPlan& plan) {
    copied_bytes = 0;
    return server::place_outputs(plan, model, outputs, copied_bytes);
  }

  Metrics metrics{"test"};
  ModelVersion model{"m", 1, fixtures::identity_model(), {}, {}, metrics.model("m", "1")};
  Region region;
  std::vector<InferTensor> outputs;
  uint64_t copied_bytes = 0;
};

TEST_F(OutputsTest, WithoutAPlanNothingHappens) {
  outputs = {floats({1, 2})};
  EXPECT_TRUE(place_outputs({}).empty());
  EXPECT_TRUE(outputs[0].tensor.defined());
}

TEST_F(OutputsTest, GoToSharedMemory) {
  outputs = {floats({1, 2})};
  const OutputPlan plan{.outputs = {{.name = "OUTPUT__0", .range = region.regions.find("r", 8, 100)}},
                        .input_ranges = {}};
  const std::vector<bool> is_elsewhere = place_outputs(plan);
  EXPECT_EQ(is_elsewhere, std::vector<bool>{true});
  EXPECT_EQ(copied_bytes, 8u);
  EXPECT_EQ(reinterpret_cast<float*>(region.data + 8)[1], 2.f);
  const EncodedResponse encoded = encode_response({"m", "1", "", {}}, outputs, is_elsewhere);
  inference::ModelInferResponse response;
  ASSERT_TRUE(response.ParseFromString(encoded.pieces[0].head));
  EXPECT_EQ(response.outputs(0).datatype(), "FP32");
  EXPECT_EQ(response.outputs(0).shape(0), 2);
  ASSERT_EQ(response.raw_output_contents_size(), 1);
  EXPECT_EQ(response.raw_output_contents(0), "");
}

TEST_F(OutputsTest, ThatAreThereAlreadyAreNotCopied) {
  const SharedRange range = region.regions.find("r", 64, 8);
  const std::vector<OutputPlace> places =
      output_places({.outputs = {{.name = "OUTPUT__0", .range = range}}, .input_ranges = {}});
  ASSERT_EQ(places.size(), 1u);
  EXPECT_EQ(places[0].name, "OUTPUT__0");
  outputs = {floats({})};
  outputs[0].shape = {2};
  outputs[0].tensor = Tensor::from_storage(places[0].memory, Dims{2}, Dims{1}, 0, DType::kFloat32);
  outputs[0].tensor.data<float>()[1] = 3;
  place_outputs({.outputs = {{.name = "OUTPUT__0", .range = range}}, .input_ranges = {}});
  EXPECT_EQ(copied_bytes, 0u);
  EXPECT_EQ(reinterpret_cast<float*>(region.data + 64)[1], 3.f);
}

TEST_F(OutputsTest, AreNotWrittenByTheModelWhereAnythingElseLies) {
  region.regions.add({.name = "other name", .key = region.key(), .offset = 0, .size_bytes = 2048});
  const auto count = [&](const SharedRange& output, const SharedRange& other, bool is_input, int64_t classes = 0) {
    OutputPlan plan{.outputs = {{.name = "OUTPUT__0", .classes = classes, .range = output}}, .input_ranges = {}};
    if (is_input) plan.input_ranges.push_back(other);
    if (!is_input) plan.outputs.push_back({.name = "OUTPUT__1", .range = other});
    return output_places(plan).size();
  };
  const auto part = [&](uint64_t offset, const char* name = "r") { return region.regions.find(name, offset, 64); };
  EXPECT_EQ(count(part(64), part(0), true), 1u);
  EXPECT_EQ(count(part(64), part(64), true), 0u);
  EXPECT_EQ(count(part(64), part(127), true), 0u);
  EXPECT_EQ(count(part(64), part(127, "other name"), true), 0u);
  EXPECT_EQ(count(part(64), part(128, "other name"), true), 1u);
  EXPECT_EQ(count(part(64), part(128), false), 2u);
  EXPECT_EQ(count(part(64), part(100), false), 0u);
  EXPECT_EQ(count(part(64), part(0), true, /*classes=*/1), 0u);
}

TEST_F(OutputsTest, ThatDoNotFitAreAnError) {
  outputs = {floats({1, 2})};
  const OutputPlan plan{.outputs = {{.name = "OUTPUT__0", .range = region.regions.find("r", 8, 7)}},
                        .input_ranges = {}};
  EXPECT_EQ(error_of(ErrorCode::kInternal, [&] { place_outputs(plan); }),
            "shared memory size specified with the request for output 'OUTPUT__0' (7 bytes) should be at least 8 bytes "
            "to hold the results");
}

TEST_F(OutputsTest, ClassesGoToSharedMemoryAsRawTexts) {
  outputs = {floats({1, 2})};
  const OutputPlan plan{.outputs = {{.name = "OUTPUT__0", .classes = 1, .range = region.regions.find("r", 0, 64)}},
                        .input_ranges = {}};
  place_outputs(plan);
  EXPECT_EQ(outputs[0].datatype, DataType::kBytes);
  EXPECT_EQ(std::string(reinterpret_cast<char*>(region.data), 14), std::string("\12\0\0\0"
                                                                               "2.000000:1",
                                                                               14));
}

TEST_F(OutputsTest, ThatLieInAnInputAreCopied) {
  const SharedRange range = region.regions.find("r", 0, 8);
  outputs = {floats({})};
  outputs[0].shape = {2};
  outputs[0].tensor = Tensor::from_storage(range.as_storage(), Dims{2}, Dims{1}, 0, DType::kFloat32);
  reinterpret_cast<float*>(region.data)[1] = 4;
  const std::vector<bool> is_elsewhere = place_outputs({.outputs = {}, .input_ranges = {range}});
  EXPECT_EQ(is_elsewhere, std::vector<bool>{false});
  EXPECT_EQ(copied_bytes, 8u);
  reinterpret_cast<float*>(region.data)[1] = 9;
  EXPECT_EQ(outputs[0].tensor.data<float>()[1], 4.f);
}

TEST_F(OutputsTest, OfAModelThatReadLostMemoryAreAnError) {
  const SharedRange range = region.regions.find("r", 0, 8);
  outputs = {floats({})};
  outputs[0].shape = {2};
  outputs[0].tensor = Tensor::from_storage(range.as_storage(), Dims{2}, Dims{1}, 0, DType::kFloat32);
  region.take_away();
  EXPECT_THAT(
      error_of(ErrorCode::kFailedPrecondition, [&] { place_outputs({.outputs = {}, .input_ranges = {range}}); }),
      HasSubstr("was taken away"));
}

// Each limit of "overlaps the memory of an input": only overlapping outputs are copied.
TEST_F(OutputsTest, ThatLieBesideAnInputAreNotCopied) {
  const SharedRange input = region.regions.find("r", 64, 8);
  const auto copied = [&](uint64_t offset, int64_t count) {
    outputs = {floats({})};
    outputs[0].shape = {count};
    outputs[0].tensor = Tensor::from_storage(region.regions.find("r", offset, 64).as_storage(), Dims{count}, Dims{1}, 0,
                                             DType::kFloat32);
    place_outputs({.outputs = {}, .input_ranges = {input}});
    return copied_bytes;
  };
  EXPECT_EQ(copied(64, 1), 4u);
  EXPECT_EQ(copied(68, 1), 4u);
  EXPECT_EQ(copied(60, 1), 0u);
  EXPECT_EQ(copied(72, 1), 0u);
  EXPECT_EQ(copied(64, 0), 0u);
  InferTensor texts;
  texts.name = "OUTPUT__0";
  texts.datatype = DataType::kBytes;
  texts.strings.emplace_back("a");
  outputs = {texts};
  EXPECT_EQ(place_outputs({.outputs = {}, .input_ranges = {input}}), std::vector<bool>{false});
  EXPECT_EQ(outputs[0].strings.size(), 1u);
}

TEST_F(OutputsTest, OnlyOutputsWithAPlaceHaveOne) {
  const SharedRange range = region.regions.find("r", 64, 8);
  const std::vector<OutputPlace> places = output_places(
      {.outputs = {{.name = "OUTPUT__0", .classes = 2, .range = {}}, {.name = "OUTPUT__1", .range = range}},
       .input_ranges = {}});
  ASSERT_EQ(places.size(), 1u);
  EXPECT_EQ(places[0].name, "OUTPUT__1");
}

inference::InferParameter number(int64_t value) {
  inference::InferParameter parameter;
  parameter.set_int64_param(value);
  return parameter;
}

inference::InferParameter text(const std::string& value) {
  inference::InferParameter parameter;
  parameter.set_string_param(value);
  return parameter;
}

TEST(Parameters, OfTheRequestAreTakenIntoIt) {
  inference::ModelInferRequest message = request_of("FP32", 1);
  auto& parameters = *message.mutable_parameters();
  parameters["priority"] = number(2);
  parameters["timeout"] = number(500);
  parameters["sequence_id"] = number(42);
  parameters["sequence_start"].set_bool_param(true);
  parameters["triton_enable_empty_final_response"].set_bool_param(true);
  parameters["mine"] = text("kept");
  InferRequest request;
  EXPECT_TRUE(read_parameters(Parsed(message).message, request).wants_empty_final_response);
  EXPECT_EQ(request.priority, 2u);
  EXPECT_EQ(request.queue_timeout_us, 500u);
  EXPECT_EQ(request.sequence.number, 42u);
  EXPECT_TRUE(request.is_sequence_start);
  EXPECT_FALSE(request.is_sequence_end);
  EXPECT_EQ(request.parameters, (ParameterMap{{"mine", std::string("kept")}}));
  parameters["sequence_id"] = text("a sequence");
  read_parameters(Parsed(message).message, request);
  EXPECT_EQ(request.sequence.text, "a sequence");
}

TEST(Parameters, OfTheRequestAreChecked) {
  const auto read = [](const std::string& name, const inference::InferParameter& value, InferRequest& request) {
    inference::ModelInferRequest message = request_of("FP32", 1);
    (*message.mutable_parameters())[name] = value;
    read_parameters(Parsed(message).message, request);
  };
  const auto error = [&](const std::string& name, const inference::InferParameter& value) {
    return error_of(ErrorCode::kInvalidArgument, [&] {
      InferRequest request;
      read(name, value, request);
    });
  };
  inference::InferParameter flag, wide, real, nothing;
  flag.set_bool_param(true);
  wide.set_uint64_param(uint64_t{1} << 63);
  real.set_double_param(0.5);
  InferRequest request;
  read("priority", wide, request);
  read("sequence_id", wide, request);
  read("sequence_end", flag, request);
  read("timeout", number(0), request);
  read("mine", real, request);
  EXPECT_EQ(request.priority, uint64_t{1} << 63);
  EXPECT_EQ(request.sequence.number, uint64_t{1} << 63);
  EXPECT_TRUE(request.is_sequence_end);
  EXPECT_EQ(request.parameters, (ParameterMap{{"mine", 0.5}}));
  read("priority", number(0), request);
  EXPECT_EQ(request.priority, 0u);
  for (const char* name : {"priority", "timeout"}) {
    EXPECT_THAT(error(name, number(-1)), HasSubstr("expected value >= 0"));
    EXPECT_THAT(error(name, text("1")), HasSubstr("expected int64_param"));
  }
  EXPECT_THAT(error("timeout", wide), HasSubstr("expected int64_param"));
  EXPECT_THAT(error("sequence_id", flag), HasSubstr("expected int64_param or string_param"));
  for (const char* name : {"sequence_start", "sequence_end", "triton_enable_empty_final_response"}) {
    EXPECT_THAT(error(name, number(1)), HasSubstr("expected bool_param"));
  }
  EXPECT_THAT(error("triton_other", flag), HasSubstr("are reserved"));
  // Parameters that KServe's client sends over both protocols are not parameters of the model.
  read("headers", nothing, request);
  read("binary_data_output", flag, request);
  EXPECT_FALSE(request.parameters.contains("headers") || request.parameters.contains("binary_data_output"));
  EXPECT_THAT(error("mine", nothing), HasSubstr("expected int64_param, bool_param"));
}

TEST(Parameters, OfTensorsSayWhereTheirDataIs) {
  inference::ModelInferRequest message = request_of("FP32", 1);
  auto& input = *message.mutable_inputs(0)->mutable_parameters();
  input["shared_memory_region"] = text("r");
  input["shared_memory_byte_size"] = number(4);
  input["shared_memory_offset"] = number(8);
  auto* output = message.add_outputs();
  output->set_name("OUTPUT__0");
  (*output->mutable_parameters())["classification"] = number(3);
  InferRequest request;
  const TransportParameters read = read_parameters(Parsed(message).message, request);
  ASSERT_EQ(read.input_places.size(), 1u);
  EXPECT_EQ(read.input_places[0].region, "r");
  EXPECT_EQ(read.input_places[0].offset, 8u);
  EXPECT_EQ(read.input_places[0].size_bytes, 4u);
  ASSERT_EQ(read.outputs.size(), 1u);
  EXPECT_EQ(read.outputs[0].classes, 3);
  EXPECT_TRUE(read.outputs[0].place.is_none());
}

TEST(Parameters, OfTensorsAreChecked) {
  const auto error = [](const char* name, const inference::InferParameter& value, bool has_region) {
    inference::ModelInferRequest message = request_of("FP32", 1);
    auto* output = message.add_outputs();
    output->set_name("OUTPUT__0");
    if (has_region) (*output->mutable_parameters())["shared_memory_region"] = text("r");
    (*output->mutable_parameters())[name] = value;
    return error_of(ErrorCode::kInvalidArgument, [&] {
      InferRequest request;
      read_parameters(Parsed(message).message, request);
    });
  };
  EXPECT_THAT(error("classification", text("3"), false), HasSubstr("expected int64_param"));
  EXPECT_THAT(error("classification", number(0), false), HasSubstr("expected value >= 1"));
  EXPECT_THAT(error("shared_memory_region", number(1), false), HasSubstr("expected string_param"));
  EXPECT_THAT(error("shared_memory_region", text(""), false), HasSubstr("must not be empty"));
  EXPECT_THAT(error("shared_memory_byte_size", number(1), false), HasSubstr("need the parameter"));
  EXPECT_THAT(error("shared_memory_byte_size", number(-1), true), HasSubstr("expected value >= 0"));
  EXPECT_THAT(error("shared_memory_offset", number(1), true), HasSubstr("must be specified"));
}

}  // namespace
}  // namespace tensord::server::infer_memory_test
