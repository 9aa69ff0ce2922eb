// The hand-written parser compared with protobuf's own: whole messages, truncations, which are all refused, and altered
// messages, which must stay in bounds.
#include <gmock/gmock.h>

#include <cstring>
#include <random>
#include <string_view>

#include "core/base/error.h"
#include "core/base/parallel.h"
#include "core/base/utf8.h"
#include "protos/inference.pb.h"
#include "server/transport/infer/decode.h"
#include "server/transport/infer/message.h"
#include "server/transport/infer/parameters.h"
#include "tests/server/fake_models.h"

namespace tensord::server::wire_test {
namespace {

// A message cut into pieces of the given size; 0: one piece.
struct Cut {
  std::shared_ptr<std::vector<std::vector<uint8_t>>> parts = std::make_shared<std::vector<std::vector<uint8_t>>>();
  WireMessage wire;

  Cut(std::string_view bytes, size_t piece_bytes) {
    if (piece_bytes == 0) piece_bytes = std::max<size_t>(bytes.size(), 1);
    for (size_t i = 0; i < bytes.size(); i += piece_bytes) {
      const std::string_view piece = bytes.substr(i, piece_bytes);
      parts->emplace_back(piece.begin(), piece.end());
    }
    for (const auto& part : *parts) wire.add_piece(part);
    wire.owner = parts;
  }
};

inference::ModelInferRequest full_request() {
  inference::ModelInferRequest request;
  request.set_model_name("modèle");
  request.set_model_version("3");
  request.set_id("request-1");
  (*request.mutable_parameters())["flag"].set_bool_param(true);
  (*request.mutable_parameters())["count"].set_int64_param(-5);
  (*request.mutable_parameters())["text"].set_string_param("value");
  (*request.mutable_parameters())["ratio"].set_double_param(0.25);
  (*request.mutable_parameters())["big"].set_uint64_param(UINT64_MAX);
  auto* input = request.add_inputs();
  input->set_name("x");
  input->set_datatype("FP32");
  for (int64_t size : {2, 3}) input->add_shape(size);
  (*input->mutable_parameters())["note"].set_string_param("kept");
  for (float value : {1.f, -2.f, 3.5f, 0.f, 1e30f, -0.f}) input->mutable_contents()->add_fp32_contents(value);
  request.add_outputs()->set_name("OUTPUT__0");
  return request;
}

inference::ModelInferRequest raw_request(const std::string& datatype, std::vector<int64_t> shape, std::string raw) {
  inference::ModelInferRequest request;
  request.set_model_name("m");
  auto* input = request.add_inputs();
  input->set_name("x");
  input->set_datatype(datatype);
  for (int64_t size : shape) input->add_shape(size);
  request.add_raw_input_contents(std::move(raw));
  return request;
}

Signature one_input(bool takes_bytes = false) {
  Signature signature = fixtures::signature_of({"x"}, {"OUTPUT__0"});
  signature.inputs[0].takes_bytes = takes_bytes;
  return signature;
}

DecodedInputs decode(const std::string& bytes, size_t piece_bytes, bool takes_bytes = false) {
  const Cut cut(bytes, piece_bytes);
  const InferMessage message = parse_infer_message(cut.wire);
  return decode_inputs(message, cut.wire, one_input(takes_bytes));
}

std::string decode_error(const inference::ModelInferRequest& request, bool takes_bytes = false) {
  try {
    decode(request.SerializeAsString(), 0, takes_bytes);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "no error";
}

TEST(Wire, ReadsWhatProtobufWrote) {
  const std::string bytes = full_request().SerializeAsString();
  for (const size_t piece : {0, 1, 2, 3, 7, 64}) {
    const Cut cut(bytes, piece);
    const InferMessage message = parse_infer_message(cut.wire);
    EXPECT_EQ(message.model_name, "modèle");
    EXPECT_EQ(message.model_version, "3");
    EXPECT_EQ(message.id, "request-1");
    EXPECT_EQ(message.parameters.at("flag"), ParameterValue(true));
    EXPECT_EQ(message.parameters.at("count"), ParameterValue(int64_t{-5}));
    EXPECT_EQ(message.parameters.at("text"), ParameterValue(std::string("value")));
    EXPECT_EQ(message.parameters.at("ratio"), ParameterValue(0.25));
    EXPECT_EQ(message.parameters.at("big"), ParameterValue(uint64_t{UINT64_MAX}));
    ASSERT_EQ(message.inputs.size(), 1u);
    EXPECT_EQ(message.inputs[0].name, "x");
    EXPECT_EQ(message.inputs[0].shape, (Dims{2, 3}));
    EXPECT_EQ(message.inputs[0].parameters.at("note"), ParameterValue(std::string("kept")));
    ASSERT_EQ(message.outputs.size(), 1u);
    EXPECT_EQ(message.outputs[0].name, "OUTPUT__0");

    const DecodedInputs decoded = decode(bytes, piece);
    const float* values = decoded.inputs[0].tensor.data<float>();
    EXPECT_EQ(values[0], 1.f);
    EXPECT_EQ(values[2], 3.5f);
    EXPECT_EQ(values[4], 1e30f);
  }
}

TEST(Wire, SkipsFieldsItDoesNotKnow) {
  std::string bytes = full_request().SerializeAsString();
  bytes += std::string("\xf8\x07\x01", 3);              // field 127, varint
  bytes += std::string("\xfb\x07\x08\x01\xfc\x07", 6);  // field 127, group with one varint
  bytes += std::string("\xf9\x07\x01\x02\x03\x04\x05\x06\x07\x08", 10);
  const Cut cut(bytes, 5);
  EXPECT_EQ(parse_infer_message(cut.wire).model_name, "modèle");
}

// A prefix either ends between two fields, where protobuf accepts it too, or is refused.
TEST(Wire, EveryTruncationIsRefused) {
  inference::ModelInferRequest request = full_request();
  request.mutable_inputs(0)->clear_contents();
  request.add_raw_input_contents(std::string(24, '\1'));
  for (const std::string& bytes : {full_request().SerializeAsString(), request.SerializeAsString()}) {
    size_t refused = 0;
    for (size_t size = 0; size < bytes.size(); ++size) {
      for (const size_t piece : {0, 3}) {
        inference::ModelInferRequest reference;
        const bool protobuf_accepts = reference.ParseFromArray(bytes.data(), static_cast<int>(size));
        bool accepts = true;
        try {
          const Cut cut(std::string_view(bytes).substr(0, size), piece);
          parse_infer_message(cut.wire);
        } catch (const Error& error) {
          ASSERT_EQ(error.code(), ErrorCode::kInvalidArgument);
          accepts = false;
          ++refused;
        }
        ASSERT_EQ(accepts, protobuf_accepts) << "at " << size;
      }
    }
    EXPECT_GT(refused, bytes.size());
  }
}

TEST(Wire, AlteredMessagesAreReadOrRefused) {
  std::mt19937 random(7);
  const std::string originals[] = {full_request().SerializeAsString(),
                                   raw_request("INT16", {4, 2}, std::string(16, '\5')).SerializeAsString()};
  int refused = 0, read = 0;
  for (int round = 0; round < 40000; ++round) {
    std::string bytes = originals[round % 2];
    const int flips = 1 + static_cast<int>(random() % 4);
    for (int i = 0; i < flips; ++i) bytes[random() % bytes.size()] = static_cast<char>(random());
    try {
      const Cut cut(bytes, round % 3 == 0 ? 11 : 0);
      const InferMessage message = parse_infer_message(cut.wire);
      InferRequest request;
      read_parameters(message, request);
      decode_inputs(message, cut.wire, one_input());
      ++read;
    } catch (const Error& error) {
      ASSERT_TRUE(error.code() == ErrorCode::kInvalidArgument || error.code() == ErrorCode::kUnimplemented)
          << error.what();
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(read, 1000);
}

TEST(Wire, VarintsAreBounded) {
  for (const std::string& bytes : {std::string(11, '\x80'), std::string("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f"),
                                   std::string("\x0a\xff\xff\xff\xff\x0f"), std::string("\x00", 1)}) {
    const Cut cut(bytes, 0);
    EXPECT_THROW(parse_infer_message(cut.wire), Error);
  }
}

// Nested groups of an unknown field: closed or not, or so deep that recursion would overflow the stack.
TEST(Wire, GroupsNestToALimit) {
  const auto error_of_groups = [](size_t begun, size_t ended) {
    const Cut cut(std::string(begun, '\x7b') + std::string(ended, '\x7c'), 0);  // field 15
    try {
      parse_infer_message(cut.wire);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(error_of_groups(32, 32), "");
  EXPECT_THAT(error_of_groups(33, 33), ::testing::HasSubstr("groups nest too deep"));
  EXPECT_THAT(error_of_groups(10'000'000, 0), ::testing::HasSubstr("groups nest too deep"));
}

TEST(Wire, TextMustBeUtf8) {
  EXPECT_TRUE(is_utf8("plain, ä, €, 😀"));
  for (const char* bad : {"\xff", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "a\xc3", "\xe2\x82"}) {
    EXPECT_FALSE(is_utf8(bad));
    const Cut cut(std::string("\x1a") + static_cast<char>(std::strlen(bad)) + bad, 0);
    EXPECT_THROW(parse_infer_message(cut.wire), Error);
  }
}

// Places the message so that the payload starts at `offset` bytes from an aligned address.
TEST(Decode, UsesAlignedTensorsInPlace) {
  std::string raw(4096, '\0');
  for (size_t i = 0; i < raw.size(); ++i) raw[i] = static_cast<char>(i * 7);
  const std::string bytes = raw_request("FP32", {1024}, raw).SerializeAsString();
  const size_t payload_at = bytes.size() - raw.size();
  for (size_t shift = 0; shift < 4; ++shift) {
    auto memory = std::make_shared<std::vector<uint8_t>>(bytes.size() + 64);
    const size_t start = 64 - (reinterpret_cast<uintptr_t>(memory->data()) + payload_at) % 64 + shift;
    memory->resize(bytes.size() + 128);
    const size_t moved = 64 - (reinterpret_cast<uintptr_t>(memory->data()) + payload_at) % 64 + shift;
    ASSERT_LE(moved, 128u) << start;
    std::memcpy(memory->data() + moved, bytes.data(), bytes.size());
    WireMessage wire;
    wire.add_piece({memory->data() + moved, bytes.size()});
    wire.owner = memory;
    const InferMessage message = parse_infer_message(wire);
    const DecodedInputs decoded = decode_inputs(message, wire, one_input());
    const Tensor& tensor = decoded.inputs[0].tensor;
    EXPECT_EQ(std::memcmp(tensor.raw_data(), raw.data(), raw.size()), 0);
    if (shift == 0) {
      EXPECT_EQ(tensor.raw_data(), memory->data() + moved + payload_at);
      EXPECT_EQ(decoded.copied_bytes, 0u);
      EXPECT_FALSE(tensor.storage()->is_writable());
      EXPECT_GT(memory.use_count(), 2);  // the tensor keeps the message alive
    } else {
      EXPECT_EQ(decoded.copied_bytes, raw.size());
      EXPECT_TRUE(tensor.storage()->is_writable());
    }
  }
}

TEST(Decode, GathersSplitTensorsOnce) {
  const std::string raw(1000, '\x2a');
  const DecodedInputs decoded = decode(raw_request("INT8", {10, 100}, raw).SerializeAsString(), 64);
  EXPECT_EQ(std::memcmp(decoded.inputs[0].tensor.raw_data(), raw.data(), raw.size()), 0);
  EXPECT_EQ(decoded.copied_bytes, raw.size());
}

TEST(Decode, GathersLargeTensorsWithSeveralThreads) {
  std::string raw(5'000'003, '\0');
  for (size_t i = 0; i < raw.size(); ++i) raw[i] = static_cast<char>(i * i >> 7);
  const std::string bytes = raw_request("INT8", {5'000'003}, raw).SerializeAsString();
  const int budget = thread_budget();
  for (const int free_cores : {1, 2, 9}) {
    const Cut cut(bytes, 70'001);
    CoreBudget cores(free_cores);
    const DecodedInputs decoded =
        decode_inputs(parse_infer_message(cut.wire), cut.wire, one_input(), {.cores = &cores});
    EXPECT_TRUE(std::memcmp(decoded.inputs[0].tensor.raw_data(), raw.data(), raw.size()) == 0) << free_cores;
    EXPECT_EQ(decoded.copied_bytes, raw.size());
    EXPECT_EQ(cores.take(free_cores).threads(), free_cores) << "all were given back";
    EXPECT_EQ(thread_budget(), budget);
  }
}

TEST(Decode, BoolsAreZeroOrOne) {
  const DecodedInputs decoded = decode(raw_request("BOOL", {3}, std::string("\0\1\x80", 3)).SerializeAsString(), 0);
  const auto* bytes = static_cast<const uint8_t*>(decoded.inputs[0].tensor.raw_data());
  EXPECT_EQ(bytes[0], 0);
  EXPECT_EQ(bytes[1], 1);
  EXPECT_EQ(bytes[2], 1);
}

TEST(Decode, RawStrings) {
  const std::string raw("\x03\0\0\0abc\0\0\0\0\x01\0\0\0z", 16);
  const DecodedInputs decoded = decode(raw_request("BYTES", {3}, raw).SerializeAsString(), 5, true);
  EXPECT_EQ(decoded.inputs[0].strings, (std::vector<std::string>{"abc", "", "z"}));
  EXPECT_NE(decode_error(raw_request("BYTES", {2}, raw), true).find("unexpected number of string elements 3"),
            std::string::npos);
  EXPECT_NE(decode_error(raw_request("BYTES", {4}, raw), true).find("expected 4 string elements"), std::string::npos);
  EXPECT_NE(decode_error(raw_request("BYTES", {3}, raw.substr(0, 15)), true).find("incomplete string data"),
            std::string::npos);
  EXPECT_NE(decode_error(raw_request("BYTES", {3}, raw.substr(0, 13)), true).find("incomplete string length"),
            std::string::npos);
}

TEST(Decode, SizesThatCannotBeAreRefusedBeforeAllocation) {
  const int64_t big = int64_t{1} << 40;
  EXPECT_NE(decode_error(raw_request("FP32", {big, big}, "abcd")), "no error");
  EXPECT_NE(decode_error(raw_request("FP64", {INT64_MAX}, "abcd")).find("byte size mismatch"), std::string::npos);
  // Eight times this many bytes wraps to 0 in 64 bits, which would match the data.
  EXPECT_NE(decode_error(raw_request("FP64", {int64_t{1} << 61}, "")).find("Expected more than fits memory, got 0"),
            std::string::npos);
  EXPECT_NE(decode_error(raw_request("FP32", {int64_t{1} << 29}, "abcd")),
            "no error");  // 2 GB that do not exist
  EXPECT_NE(decode_error(raw_request("FP32", {-1}, "abcd")).find("negative"), std::string::npos);
  EXPECT_NE(decode_error(raw_request("FP32", {INT64_MIN}, "abcd")).find("negative"), std::string::npos);
  EXPECT_NE(decode_error(raw_request("FP32", std::vector<int64_t>(65, 1), "abcd")).find("dimensions"),
            std::string::npos);

  auto typed = raw_request("FP32", {int64_t{1} << 29}, "");
  typed.clear_raw_input_contents();
  typed.mutable_inputs(0)->mutable_contents()->add_fp32_contents(1);
  EXPECT_NE(decode_error(typed).find("unexpected number of elements"), std::string::npos);
}

TEST(Decode, ProtocolTexts) {
  EXPECT_EQ(decode_error(raw_request("FP32", {8}, std::string(40, 'x'))),
            "input byte size mismatch for input 'x' for model 'm'. Expected 32, got 40");
  auto both = raw_request("FP32", {1}, "abcd");
  both.mutable_inputs(0)->mutable_contents()->add_fp32_contents(1);
  EXPECT_EQ(decode_error(both).find("contents field must not be specified when using raw_input_contents"), 0u);
  both.mutable_inputs(0)->mutable_contents()->clear_fp32_contents();
  EXPECT_EQ(decode_error(both), "no error");
  auto none = raw_request("FP32", {1}, "");
  none.clear_raw_input_contents();
  EXPECT_EQ(decode_error(none).find("unable to find data for input tensor 'x'"), 0u);
  auto extra = raw_request("FP32", {1}, "abcd");
  extra.add_raw_input_contents("abcd");
  EXPECT_EQ(decode_error(extra), "expected 1 raw_input_contents but got 2 for model 'm'");
}

template <class Add>
Tensor typed(const char* datatype, int64_t count, const Add& add) {
  inference::ModelInferRequest request = raw_request(datatype, {count}, "");
  request.clear_raw_input_contents();
  add(*request.mutable_inputs(0)->mutable_contents());
  return decode(request.SerializeAsString(), 3).inputs[0].tensor;
}

TEST(Decode, TypedContentsOfEveryDatatype) {
  Tensor t = typed("BOOL", 2, [](auto& c) { c.add_bool_contents(true), c.add_bool_contents(false); });
  EXPECT_TRUE(t.data<bool>()[0] && !t.data<bool>()[1]);
  t = typed("INT8", 2, [](auto& c) { c.add_int_contents(-128), c.add_int_contents(127); });
  EXPECT_TRUE(t.data<int8_t>()[0] == -128 && t.data<int8_t>()[1] == 127);
  t = typed("INT16", 1, [](auto& c) { c.add_int_contents(-30000); });
  EXPECT_EQ(t.data<int16_t>()[0], -30000);
  t = typed("INT32", 1, [](auto& c) { c.add_int_contents(INT32_MIN); });
  EXPECT_EQ(t.data<int32_t>()[0], INT32_MIN);
  t = typed("INT64", 1, [](auto& c) { c.add_int64_contents(INT64_MIN); });
  EXPECT_EQ(t.data<int64_t>()[0], INT64_MIN);
  t = typed("UINT8", 1, [](auto& c) { c.add_uint_contents(200); });
  EXPECT_EQ(t.data<uint8_t>()[0], 200);
  t = typed("FP32", 1, [](auto& c) { c.add_fp32_contents(2.5f); });
  EXPECT_EQ(t.data<float>()[0], 2.5f);
  t = typed("FP64", 1, [](auto& c) { c.add_fp64_contents(1e300); });
  EXPECT_EQ(t.data<double>()[0], 1e300);

  inference::ModelInferRequest half = raw_request("FP16", {1}, "");
  half.clear_raw_input_contents();
  half.mutable_inputs(0)->mutable_contents()->add_fp32_contents(1);
  EXPECT_NE(decode_error(half).find("raw_input_contents only"), std::string::npos);
  EXPECT_NE(decode_error(raw_request("COMPLEX64", {1}, "abcdefgh")).find("unknown data-type"), std::string::npos);
}

// Memory beside the tensor's must not change. Elements one by one, and all in one field.
TEST(Decode, MoreTypedElementsThanTheShapeHasAreRefused) {
  std::vector<Tensor> neighbors;
  for (int i = 0; i < 64; ++i) {
    neighbors.push_back(Tensor::empty(Dims{2}, DType::kFloat32));
    std::memset(neighbors.back().raw_data(), 0x5a, 8);
  }
  for (size_t i = 0; i < neighbors.size(); i += 2) neighbors[i] = Tensor();
  for (const char* datatype : {"FP32", "FP64", "INT32", "UINT64", "BOOL"}) {
    for (const int elements : {3, 1000}) {
      inference::ModelInferRequest request = raw_request(datatype, {2}, "");
      request.clear_raw_input_contents();
      auto& contents = *request.mutable_inputs(0)->mutable_contents();
      for (int i = 0; i < elements; ++i) {
        if (datatype == std::string("FP32")) contents.add_fp32_contents(1);
        if (datatype == std::string("FP64")) contents.add_fp64_contents(1);
        if (datatype == std::string("INT32")) contents.add_int_contents(1);
        if (datatype == std::string("UINT64")) contents.add_uint64_contents(1);
        if (datatype == std::string("BOOL")) contents.add_bool_contents(true);
      }
      EXPECT_THAT(decode_error(request), ::testing::HasSubstr("unexpected number of elements")) << datatype;
    }
  }
  for (size_t i = 1; i < neighbors.size(); i += 2) {
    for (int byte = 0; byte < 8; ++byte) EXPECT_EQ(static_cast<char*>(neighbors[i].raw_data())[byte], 0x5a);
  }
}

// Tensors have no unsigned dtypes wider than uint8.
TEST(Decode, WidensUnsignedElements) {
  const auto bytes_of = [](auto... values) {
    std::string out;
    (out.append(reinterpret_cast<const char*>(&values), sizeof values), ...);
    return out;
  };
  const auto read = [](const inference::ModelInferRequest& request, size_t piece_bytes) {
    const DecodedInputs decoded = decode(request.SerializeAsString(), piece_bytes);
    const Tensor& tensor = decoded.inputs[0].tensor;
    std::vector<int64_t> values;
    for (int64_t i = 0; i < tensor.numel(); ++i) values.push_back(tensor.as_view({}, {}, i).item_int());
    return values;
  };
  const auto shorts = raw_request("UINT16", {3}, bytes_of(uint16_t{1}, uint16_t{40000}, uint16_t{65535}));
  const auto ints = raw_request("UINT32", {3}, bytes_of(uint32_t{1}, uint32_t{3000000000}, UINT32_MAX));
  const auto longs = raw_request("UINT64", {2}, bytes_of(uint64_t{1}, uint64_t{INT64_MAX}));
  for (const size_t piece : {0, 1, 5}) {
    EXPECT_EQ(read(shorts, piece), (std::vector<int64_t>{1, 40000, 65535}));
    EXPECT_EQ(read(ints, piece), (std::vector<int64_t>{1, 3000000000, UINT32_MAX}));
    EXPECT_EQ(read(longs, piece), (std::vector<int64_t>{1, INT64_MAX}));
  }
  const auto too_large = raw_request("UINT64", {1}, bytes_of(uint64_t{1} << 63));
  EXPECT_NE(decode_error(too_large).find("no tensor can hold"), std::string::npos);
  auto typed = raw_request("UINT32", {2}, "");
  typed.clear_raw_input_contents();
  for (uint32_t value : {7u, UINT32_MAX}) typed.mutable_inputs(0)->mutable_contents()->add_uint_contents(value);
  EXPECT_EQ(read(typed, 0), (std::vector<int64_t>{7, UINT32_MAX}));
  auto typed_long = raw_request("UINT64", {1}, "");
  typed_long.clear_raw_input_contents();
  typed_long.mutable_inputs(0)->mutable_contents()->add_uint64_contents(INT64_MAX);
  EXPECT_EQ(read(typed_long, 0), (std::vector<int64_t>{INT64_MAX}));
  typed_long.mutable_inputs(0)->mutable_contents()->set_uint64_contents(0, uint64_t{INT64_MAX} + 1);
  EXPECT_NE(decode_error(typed_long).find("no tensor can hold"), std::string::npos);
}

TEST(Datatype, IsReadByItsWholeName) {
  using namespace std::string_view_literals;
  for (int i = 0; i <= static_cast<int>(DataType::kBytes); ++i) {
    const auto datatype = static_cast<DataType>(i);
    EXPECT_EQ(parse_datatype(name_of(datatype)), datatype);
  }
  for (const std::string_view name :
       {""sv, "FP3"sv, "FP32 "sv, "FP32\0"sv, "fp32"sv, "INT8\0\0\0\0"sv, "INT8INT8INT8"sv}) {
    EXPECT_EQ(parse_datatype(name), std::nullopt) << name;
  }
}

}  // namespace
}  // namespace tensord::server::wire_test
