// Malicious messages and configurations: filled at random field by field, then altered. Each is parsed, or refused with
// an error of ours, in bounded time; the parsed values equal protobuf's.
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>

#include "core/base/error.h"
#include "core/base/log.h"
#include "protos/inference.pb.h"
#include "protos/model_config.pb.h"
#include "server/config/pbtxt/model_config_text.h"
#include "server/transport/infer/decode.h"
#include "server/transport/infer/message.h"
#include "server/transport/infer/parameters.h"
#include "tests/server/fake_models.h"
#include "tests/support/places.h"

namespace tensord::server::hostile_messages_test {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Fills messages by their descriptors, with values that are hard to parse.
class Filler {
 public:
  explicit Filler(uint32_t seed) : random_(seed) {}

  void fill(Message& message, int depth = 0) {
    const auto* descriptor = message.GetDescriptor();
    for (int i = 0; i < descriptor->field_count(); ++i) {
      if (random_() % 3 != 0) continue;
      const FieldDescriptor& field = *descriptor->field(i);
      if (field.real_containing_oneof() && random_() % 2 != 0) continue;
      const int count = field.is_repeated() ? static_cast<int>(random_() % 4) : 1;
      for (int n = 0; n < count; ++n) add(message, field, depth);
    }
  }

  uint32_t operator()(uint32_t bound) { return static_cast<uint32_t>(random_() % bound); }

 private:
  template <class T>
  T number() {
    static const std::vector<T> hard = {
        T(0), T(1), T(2), T(8), T(16), T(-1), std::numeric_limits<T>::max(), std::numeric_limits<T>::lowest()};
    return random_() % 4 ? hard[random_() % 4] : hard[random_() % hard.size()];
  }

  std::string text() {
    static const std::vector<std::string> hard = {"",       "x",   "INPUT0",  "FP32", "INT64",
                                                  "BYTES",  "..",  "a/b",     "1",    std::string(300, 'n'),
                                                  "\n\"\\", "äöü", "stable=1"};
    return hard[random_() % hard.size()];
  }

  void add(Message& message, const FieldDescriptor& field, int depth) {
    const auto& reflection = *message.GetReflection();
    const auto put = [&](auto set, auto append, auto value) {
      field.is_repeated() ? (reflection.*append)(&message, &field, value) : (reflection.*set)(&message, &field, value);
    };
    using R = google::protobuf::Reflection;
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32: put(&R::SetInt32, &R::AddInt32, number<int32_t>()); break;
      case FieldDescriptor::CPPTYPE_INT64: put(&R::SetInt64, &R::AddInt64, number<int64_t>()); break;
      case FieldDescriptor::CPPTYPE_UINT32: put(&R::SetUInt32, &R::AddUInt32, number<uint32_t>()); break;
      case FieldDescriptor::CPPTYPE_UINT64: put(&R::SetUInt64, &R::AddUInt64, number<uint64_t>()); break;
      case FieldDescriptor::CPPTYPE_FLOAT: put(&R::SetFloat, &R::AddFloat, number<float>()); break;
      case FieldDescriptor::CPPTYPE_DOUBLE: put(&R::SetDouble, &R::AddDouble, number<double>()); break;
      case FieldDescriptor::CPPTYPE_BOOL: put(&R::SetBool, &R::AddBool, random_() % 2 == 0); break;
      case FieldDescriptor::CPPTYPE_ENUM:
        put(&R::SetEnumValue, &R::AddEnumValue, static_cast<int>(random_() % field.enum_type()->value_count()));
        break;
      case FieldDescriptor::CPPTYPE_STRING: put(&R::SetString, &R::AddString, text()); break;
      case FieldDescriptor::CPPTYPE_MESSAGE:
        if (depth > 5) return;
        fill(field.is_repeated() ? *reflection.AddMessage(&message, &field)
                                 : *reflection.MutableMessage(&message, &field),
             depth + 1);
        break;
    }
  }

  std::mt19937 random_;
};

// Changes, repeats, moves or drops some bytes.
void alter(std::string& bytes, Filler& random) {
  const uint32_t changes = 1 + random(4);
  for (uint32_t i = 0; i < changes && !bytes.empty(); ++i) {
    const size_t at = random(static_cast<uint32_t>(bytes.size()));
    const size_t length = std::min<size_t>(1 + random(8), bytes.size() - at);
    switch (random(4)) {
      case 0: bytes[at] = static_cast<char>(random(256)); break;
      case 1: bytes.insert(at, bytes.substr(at, length)); break;
      case 2: bytes.erase(at, length); break;
      default: bytes.insert(random(static_cast<uint32_t>(bytes.size())), bytes.substr(at, length));
    }
  }
}

struct Tally {
  int read = 0, refused = 0;

  // Runs `parse`, which may only fail with an Error that blames the client.
  template <class Parse>
  void take(const Parse& parse, const std::string& input) {
    try {
      parse();
      ++read;
    } catch (const Error& error) {
      ++refused;
      EXPECT_TRUE(error.code() == ErrorCode::kInvalidArgument || error.code() == ErrorCode::kUnimplemented ||
                  error.code() == ErrorCode::kResourceExhausted)
          << error.what() << " for " << input;
      EXPECT_LT(std::string(error.what()).size(), 4096u);
    }
  }
};

// Most configurations here have unused fields, which are logged.
class HostileConfig : public ::testing::Test {
 protected:
  void SetUp() override {
    set_log_sink([](LogLevel, std::string_view, std::initializer_list<LogField>, const std::source_location&) {});
  }
  const google::protobuf::LogSilencer silencer_;
};

std::vector<std::string> example_configs() {
  std::vector<std::string> texts;
  const std::filesystem::path folder = std::filesystem::path(tests_folder()) / ".." / "examples" / "triton";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().filename() != "config.pbtxt") continue;
    std::ifstream file(entry.path());
    texts.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return texts;
}

TEST_F(HostileConfig, AlteredTextsAreReadOrRefused) {
  const std::vector<std::string> texts = example_configs();
  ASSERT_GE(texts.size(), 10u);
  Filler random(1);
  Tally tally;
  for (int round = 0; round < 6000; ++round) {
    std::string text = texts[round % texts.size()];
    alter(text, random);
    tally.take([&] { parse_model_config(text, "config.pbtxt"); }, text);
  }
  EXPECT_GT(tally.read, 200);
  EXPECT_GT(tally.refused, 500);
}

TEST_F(HostileConfig, EveryTruncationIsReadOrRefused) {
  Tally tally;
  for (const std::string& text : example_configs()) {
    for (size_t size = 0; size < text.size(); size += 3) {
      tally.take([&] { parse_model_config(text.substr(0, size), "config.pbtxt"); }, text.substr(0, size));
    }
  }
  EXPECT_GT(tally.refused, 100);
}

TEST_F(HostileConfig, RandomFieldsAreReadOrRefused) {
  Filler random(2);
  Tally text_tally, json_tally;
  for (int round = 0; round < 2000; ++round) {
    inference::ModelConfig config;
    random.fill(config);
    std::string text, json;
    ASSERT_TRUE(google::protobuf::TextFormat::PrintToString(config, &text));
    text_tally.take([&] { parse_model_config(text, "config.pbtxt"); }, text);
    ASSERT_TRUE(google::protobuf::util::MessageToJsonString(config, &json).ok());
    json_tally.take([&] { parse_model_config_json(json, "config"); }, json);
    alter(json, random);
    json_tally.take([&] { parse_model_config_json(json, "config"); }, json);
  }
  EXPECT_GT(text_tally.refused, 100);
  EXPECT_GT(json_tally.refused, 100);
}

WireMessage wire_of(const std::string& bytes) {
  auto owner = std::make_shared<std::string>(bytes);
  WireMessage wire;
  wire.add_piece({reinterpret_cast<const uint8_t*>(owner->data()), owner->size()});
  wire.owner = owner;
  return wire;
}

void expect_same(const InferMessage& ours, const inference::ModelInferRequest& theirs) {
  EXPECT_EQ(ours.model_name, theirs.model_name());
  EXPECT_EQ(ours.model_version, theirs.model_version());
  EXPECT_EQ(ours.id, theirs.id());
  EXPECT_EQ(ours.parameters.size(), theirs.parameters().size());
  EXPECT_EQ(ours.raw_contents.size(), static_cast<size_t>(theirs.raw_input_contents_size()));
  ASSERT_EQ(ours.inputs.size(), static_cast<size_t>(theirs.inputs_size()));
  for (int i = 0; i < theirs.inputs_size(); ++i) {
    const InferMessage::Input& input = ours.inputs[static_cast<size_t>(i)];
    EXPECT_EQ(input.name, theirs.inputs(i).name());
    EXPECT_EQ(input.datatype, theirs.inputs(i).datatype());
    EXPECT_TRUE(std::equal(input.shape.begin(), input.shape.end(), theirs.inputs(i).shape().begin(),
                           theirs.inputs(i).shape().end()));
  }
  ASSERT_EQ(ours.outputs.size(), static_cast<size_t>(theirs.outputs_size()));
  for (int i = 0; i < theirs.outputs_size(); ++i) {
    EXPECT_EQ(ours.outputs[static_cast<size_t>(i)].name, theirs.outputs(i).name());
  }
}

TEST(HostileRequest, RandomFieldsAreReadAsProtobufReadsThem) {
  const google::protobuf::LogSilencer silencer;  // protobuf logs every string that is not UTF-8
  Filler random(3);
  Tally whole, altered;
  int both = 0;
  for (int round = 0; round < 20000; ++round) {
    inference::ModelInferRequest request;
    random.fill(request);
    std::string bytes = request.SerializeAsString();
    whole.take([&] { expect_same(parse_infer_message(wire_of(bytes)), request); }, request.DebugString());
    alter(bytes, random);
    inference::ModelInferRequest reference;
    const bool protobuf_reads = reference.ParseFromString(bytes);
    const auto parse = [&] {
      const InferMessage message = parse_infer_message(wire_of(bytes));
      // Elements in `contents` are read when the tensor is created.
      const bool has_contents = std::any_of(message.inputs.begin(), message.inputs.end(),
                                            [](const InferMessage::Input& input) { return !input.contents.empty(); });
      EXPECT_TRUE(protobuf_reads || has_contents);
      if (protobuf_reads) expect_same(message, reference);
      ++both;
    };
    altered.take(parse, reference.ShortDebugString());
  }
  EXPECT_EQ(whole.refused, 0);
  EXPECT_GT(both, 1000);
  EXPECT_GT(altered.refused, 1000);
}

// Altered requests, decoded for a model that accepts any input.
TEST(HostileRequest, DecodesOrRefuses) {
  Filler random(4);
  Tally tally;
  Signature signature = fixtures::signature_of({"INPUT0"}, {"OUTPUT__0"});
  for (int round = 0; round < 20000; ++round) {
    signature.inputs[0].takes_bytes = round % 3 == 0;
    inference::ModelInferRequest request;
    auto* input = request.add_inputs();
    input->set_name("INPUT0");
    input->set_datatype(round % 3 == 0 ? "BYTES" : "INT32");
    input->add_shape(random(5));
    input->add_shape(random(5));
    std::string raw(random(70), '\0');
    for (char& byte : raw) byte = static_cast<char>(random(6) ? 0 : random(256));
    if (random(4)) {
      request.add_raw_input_contents(raw);
    } else {
      random.fill(*input->mutable_contents());
    }
    std::string bytes = request.SerializeAsString();
    if (random(2)) alter(bytes, random);
    const WireMessage wire = wire_of(bytes);
    const auto decode = [&] {
      const InferMessage message = parse_infer_message(wire);
      InferRequest parsed;
      read_parameters(message, parsed);
      for (const InferTensor& tensor : decode_inputs(message, wire, signature).inputs) {
        int64_t count = 1;
        for (const int64_t size : tensor.shape) count *= size;
        if (tensor.datatype != DataType::kBytes) continue;
        EXPECT_EQ(static_cast<int64_t>(tensor.strings.size()), count);
      }
    };
    tally.take(decode, request.ShortDebugString());
  }
  EXPECT_GT(tally.read, 500);
  EXPECT_GT(tally.refused, 5000);
}

}  // namespace
}  // namespace tensord::server::hostile_messages_test
