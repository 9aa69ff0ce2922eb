// The parts of the REST protocol, each in isolation; tests/e2e/rest_test.py tests them in the daemon.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <random>

#include "core/base/error.h"
#include "server/http/compression.h"
#include "server/rest/infer_json.h"
#include "server/rest/json_data.h"
#include "server/rest/json_reader.h"
#include "server/rest/target.h"

namespace tensord::server::rest_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const CallCharge kFree;

template <class Call>
std::string refusal_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return concat(to_string(error.code()), ": ", error.what());
  }
  return "none";
}

std::string skip_all(std::string_view text) {
  return refusal_of([&] {
    JsonReader reader(text, nullptr, "json");
    reader.skip();
    reader.finish();
  });
}

TEST(JsonReader, TakesWhatIsJsonAndSaysWhereItIsNot) {
  for (const char* good : {"{}", " [ ] ", "null", "true", "-0.5e+3", R"({"a":[1,{"b":"\u00e9\n"}],"c":null})", "[[[]]]",
                           "NaN", "-Infinity", "\"\""}) {
    EXPECT_EQ(skip_all(good), "none") << good;
  }
  const std::pair<const char*, const char*> bad[] = {
      {"", "The document is empty. at 0"},
      {"nope", "Invalid value. at 0"},
      {"[1,]", "Invalid value. at 3"},
      {"[1 2]", "Missing a comma or ] after an array element. at 3"},
      {"{1:2}", "Missing a name for object member. at 1"},
      {"{\"a\" 2}", "Missing a colon after a name of object member. at 5"},
      {"{\"a\":2", "Missing a comma or } after an object member. at 6"},
      {"[01]", "Invalid value. at 2"},
      {"[1.]", "Miss fraction part in number. at 3"},
      {"[1e]", "Miss exponent in number. at 3"},
      {"[\"a", "Missing a closing quotation mark in string. at 3"},
      {"{} {}", "The document root must not be followed by other values. at 3"},
  };
  for (const auto& [text, reason] : bad) EXPECT_THAT(skip_all(text), HasSubstr(std::string("json: ") + reason)) << text;
  const std::string deep(100, '['), deeper(101, '[');
  EXPECT_EQ(skip_all(deep + std::string(100, ']')), "none");
  EXPECT_THAT(skip_all(deeper + std::string(101, ']')), HasSubstr("nesting depth exceeds maximum allowed limit (100)"));
  EXPECT_THAT(skip_all(std::string(10'000'000, '[')), HasSubstr("nesting depth exceeds maximum allowed limit (100)"));
}

TEST(JsonReader, Strings) {
  const auto string = [](std::string_view text) { return JsonReader(text).string(); };
  EXPECT_EQ(string(R"("a\"\\\/\b\f\n\r\t")"), "a\"\\/\b\f\n\r\t");
  EXPECT_EQ(string(R"("\u0041\u00e9\u20ac\ud83d\ude00")"), "Aé€😀");
  EXPECT_EQ(string(std::string("\"\\u0000\"")), std::string("\0", 1));
  // The ends of each range: hexadecimal digits, both halves of a surrogate pair, characters without escapes.
  EXPECT_EQ(string(R"("\u0AF9\u0af9")"), "\xe0\xab\xb9\xe0\xab\xb9");
  EXPECT_EQ(string(R"("\ud800\udc00\udbff\udfff")"), "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf");
  EXPECT_EQ(string(R"("\ud7ff\ue000")"), "\xed\x9f\xbf\xee\x80\x80");
  EXPECT_EQ(string("\"\x20\""), " ");
  const char* const digit = "Incorrect hex digit after \\u escape in string.";
  const char* const pair = "The surrogate pair in string is invalid.";
  const std::pair<const char*, const char*> bad[] = {
      {R"("\x")", "Invalid escape character in string."},
      {R"("\)", "Invalid escape character in string."},
      {R"("\u12g4")", digit},
      {R"("\u12`4")", digit},
      {R"("\u12:4")", digit},
      {R"("\u12/4")", digit},
      {R"("\u123)", digit},
      {R"("\ud83d")", pair},
      {R"("\ud83dx")", pair},
      {R"("\ude00")", pair},
      {R"("\udc00\udc00")", pair},
      {R"("\ud83d\u0041")", pair},
      {R"("\ud83d\udbff")", pair},
      {R"("\ud83d\ue000")", pair},
      {"\"\n\"", "Invalid encoding in string."},
      {"\"\x1f\"", "Invalid encoding in string."},
      {"\"a", "Missing a closing quotation mark in string."},
      {"1", "attempt to access JSON non-string as string"},
  };
  for (const auto& [text, reason] : bad) EXPECT_THAT(refusal_of([&] { string(text); }), HasSubstr(reason)) << text;
  EXPECT_THAT(refusal_of([] { JsonReader("1").null(); }), HasSubstr("null is expected"));
  EXPECT_THAT(refusal_of([] { JsonReader("nil").null(); }), HasSubstr("Invalid value."));
  EXPECT_THAT(refusal_of([] { JsonReader("1").boolean(); }), HasSubstr("non-boolean as boolean"));
  EXPECT_THAT(refusal_of([] { JsonReader("tree").boolean(); }), HasSubstr("Invalid value."));
  EXPECT_THAT(refusal_of([] { JsonReader("true").number(); }), HasSubstr("non-number as number"));
}

InferTensor read(DataType datatype, const Dims& shape, std::string_view json) {
  InferTensor out;
  out.name = "x";
  out.datatype = datatype;
  out.shape = shape;
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  read_json_data(json, count, "m", {}, out);
  return out;
}

template <class T>
std::vector<T> values(const InferTensor& tensor) {
  const auto* data = static_cast<const T*>(tensor.tensor.raw_data());
  return std::vector<T>(data, data + tensor.tensor.numel());
}

TEST(JsonData, ElementsOfEveryType) {
  EXPECT_THAT(values<float>(read(DataType::kFp32, {2, 2}, "[[1, -2.5],[1e-3, 4]]")), ElementsAre(1, -2.5, 1e-3f, 4));
  EXPECT_THAT(values<float>(read(DataType::kFp32, {3}, "[0.1,1e-60,16777217]")), ElementsAre(0.1f, 0, 16777216));
  EXPECT_THAT(values<double>(read(DataType::kFp64, {2}, "[[0.1],[1e-400]]")), ElementsAre(0.1, 0));
  EXPECT_THAT(values<int64_t>(read(DataType::kInt64, {2}, "[-9223372036854775808,9223372036854775807]")),
              ElementsAre(std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()));
  EXPECT_THAT(values<int8_t>(read(DataType::kInt8, {2}, "[-128,127]")), ElementsAre(-128, 127));
  EXPECT_THAT(values<uint8_t>(read(DataType::kUint8, {1}, "255")), ElementsAre(255));
  EXPECT_THAT(values<bool>(read(DataType::kBool, {4}, "[true,false,1,0]")), ElementsAre(true, false, true, false));
  const InferTensor wide = read(DataType::kUint32, {1}, "[4294967295]");
  EXPECT_EQ(wide.datatype, DataType::kInt64);
  EXPECT_THAT(values<int64_t>(wide), ElementsAre(4294967295));
  EXPECT_THAT(read(DataType::kBytes, {2}, R"(["a","\u00e9"])").strings, ElementsAre("a", "é"));
  EXPECT_TRUE(std::isnan(values<float>(read(DataType::kFp32, {1}, "[NaN]"))[0]));
  EXPECT_EQ(values<float>(read(DataType::kFp32, {1}, "[-Infinity]"))[0], -std::numeric_limits<float>::infinity());
  EXPECT_EQ(read(DataType::kFp32, {0}, "[]").tensor.numel(), 0);
}

TEST(JsonData, WhatDoesNotFitIsRefused) {
  const auto refusal = [](DataType datatype, const Dims& shape, std::string_view json) {
    return refusal_of([&] { read(datatype, shape, json); });
  };
  for (const char* json : {"[1,2,3]", "[[1],[2],[3]]"}) {
    EXPECT_THAT(refusal(DataType::kFp32, {2}, json),
                HasSubstr("INVALID_ARGUMENT: Unable to parse 'data': Shape does not match"))
        << json;
  }
  for (const char* json : {"[1]", "[]"}) {
    EXPECT_THAT(refusal(DataType::kFp32, {2}, json),
                HasSubstr("INVALID_ARGUMENT: Failed to parse 'data' field: shape does not match true shape"))
        << json;
  }
  // As many elements as the shape says, but ragged.
  for (const char* json : {"[[1,2,3],[4]]", "[[1],[2,3,4]]", "[1,[2,3,4]]", "[[1,2,3],4]", "[[1,2],[3,4],[]]",
                           "[[[1],[2]],[[3,4]]]", "[[1,2],[[3,4]]]", "[[],[1,2,3,4]]", "[1,2,3,4,[]]"}) {
    EXPECT_THAT(refusal(DataType::kFp32, {2, 2}, json),
                HasSubstr("INVALID_ARGUMENT: Unable to parse 'data': its lists"))
        << json;
  }
  EXPECT_THAT(refusal(DataType::kBytes, {2, 2}, R"([["a","b","c"],["d"]])"), HasSubstr("its lists are ragged"));
  for (const char* json : {"[1,2,3,4]", "[[1,2],[3,4]]", "[[1,2,3,4]]", "[[[1,2]],[[3,4]]]"}) {
    EXPECT_EQ(refusal(DataType::kFp32, {2, 2}, json), "none") << json;
  }
  // Before memory is allocated.
  EXPECT_THAT(refusal(DataType::kFp32, {1 << 20, 1 << 20}, "[1]"), HasSubstr("shape does not match"));
  EXPECT_THAT(refusal(DataType::kFp16, {1}, "[1]"), HasSubstr("receiving FP16 data via JSON is not supported"));
  EXPECT_THAT(refusal(DataType::kBf16, {1}, "[1]"), HasSubstr("receiving BF16 data via JSON is not supported"));
  const std::tuple<DataType, const char*> wrong[] = {
      {DataType::kInt8, "[128]"},   {DataType::kUint8, "[-1]"},   {DataType::kInt32, "[1.5]"},
      {DataType::kInt64, "[1e3]"},  {DataType::kInt64, "[NaN]"},  {DataType::kFp32, "[1e39]"},
      {DataType::kFp64, "[1e309]"}, {DataType::kFp32, "[\"1\"]"}, {DataType::kFp32, "[true]"},
      {DataType::kBool, "[2]"},     {DataType::kBool, "[2e0]"},   {DataType::kBool, "[\"true\"]"},
      {DataType::kBytes, "[1]"},    {DataType::kFp32, "[null]"},  {DataType::kUint64, "[18446744073709551615]"}};
  for (const auto& [datatype, json] : wrong) {
    EXPECT_THAT(refusal(datatype, {1}, json), HasSubstr("INVALID_ARGUMENT")) << json;
    if (datatype == DataType::kUint64) continue;  // valid JSON, but not a tensor
    EXPECT_THAT(refusal(datatype, {1}, json), HasSubstr("failed to parse the data of input 'x' for model 'm': "))
        << json;
  }
}

TEST(JsonData, WhatIsWrittenIsReadAgain) {
  std::mt19937_64 random(1);
  const auto round = [&](DataType datatype, DType dtype) {
    InferTensor out;
    out.name = "x";
    out.datatype = datatype;
    out.shape = {64};
    out.tensor = Tensor::empty(Dims{64}, dtype);
    auto* bytes = static_cast<uint8_t*>(out.tensor.raw_data());
    for (size_t i = 0; i < out.tensor.size_bytes(); ++i) bytes[i] = static_cast<uint8_t>(random());
    AnswerText written;
    write_json_data(out, written);
    const std::string json = written.text();
    const InferTensor back = read(datatype, {64}, json);
    for (int64_t i = 0; i < 64; ++i) {
      const size_t size = out.tensor.size_bytes() / 64;
      const std::string_view a(static_cast<const char*>(out.tensor.raw_data()) + size * static_cast<size_t>(i), size);
      const std::string_view b(static_cast<const char*>(back.tensor.raw_data()) + size * static_cast<size_t>(i), size);
      if (a == b) continue;
      // NaN has many bit patterns, and one spelling.
      EXPECT_TRUE(datatype == DataType::kFp32 ? std::isnan(values<float>(out)[static_cast<size_t>(i)])
                                              : std::isnan(values<double>(out)[static_cast<size_t>(i)]));
    }
  };
  for (int i = 0; i < 100; ++i) {
    round(DataType::kFp32, DType::kFloat32);
    round(DataType::kFp64, DType::kFloat64);
    round(DataType::kInt64, DType::kInt64);
    round(DataType::kInt32, DType::kInt32);
    round(DataType::kUint8, DType::kUInt8);
  }
  InferTensor texts;
  texts.name = "x";
  texts.datatype = DataType::kBytes;
  texts.strings = {"", "a\"b\\\n\x01", "é😀"};
  AnswerText json;
  write_json_data(texts, json);
  EXPECT_EQ(read(DataType::kBytes, {3}, json.text()).strings, texts.strings);
  texts.strings = {"\xff"};
  EXPECT_THAT(refusal_of([&] { write_json_data(texts, json); }), HasSubstr("not UTF-8"));
}

TEST(JsonReader, MutatedTextsAreReadOrRefused) {
  const std::string whole = R"({"id":"7","parameters":{"sequence_id":5,"binary_data_output":true,"a":1.5},"inputs":[)"
                            R"({"name":"x","datatype":"FP32","shape":[2,2],"data":[[1,2.5],[-3e2,NaN]]},)"
                            R"({"name":"y","shape":[1],"datatype":"BYTES","data":["t\u00e9xt"],"parameters":{}},)"
                            R"({"name":"z","shape":[4],"datatype":"UINT8","parameters":{"binary_data_size":4}}],)"
                            R"("outputs":[{"name":"o","parameters":{"binary_data":false,"classification":2}}]})";
  constexpr std::string_view kPieces("{}[]\",:\\u0e1-+.tfnN\x00\xff 9", 24);
  std::mt19937 random(7);
  int read_whole = 0;
  for (int round = 0; round < 30'000; ++round) {
    std::string text = whole;
    for (unsigned i = 0, changes = random() % 4; i < changes; ++i) {
      const size_t at = random() % text.size();
      switch (random() % 4) {
        case 0: text[at] = kPieces[random() % kPieces.size()]; break;
        case 1: text.erase(at, 1 + random() % 8); break;
        case 2: text.insert(at, 1, kPieces[random() % kPieces.size()]); break;
        default: text.resize(at); text += "0";
      }
      if (text.empty()) text = "0";
    }
    const std::string body = text + "abcd";
    WireMessage wire;
    wire.add_piece({reinterpret_cast<const uint8_t*>(body.data()), body.size()});
    try {
      RestRequest request =
          parse_infer_json("m", "", std::string_view(body).substr(0, text.size()), wire, text.size(), 0, kFree);
      for (const auto& input : request.message.inputs) {
        const auto datatype = parse_datatype(input.datatype);
        InferTensor out;
        if (!datatype || !input.fill || input.shape.size() > 3) continue;
        out.datatype = *datatype;
        out.shape = input.shape;
        input.fill(checked_numel(out.shape), out);
      }
      ++read_whole;
    } catch (const Error&) {
    }
  }
  EXPECT_GT(read_whole, 5000);
}

RestRequest parse(const std::string& json, const std::string& tensors = "") {
  static std::string body;
  static std::unique_ptr<WireMessage> wire;
  body = json + tensors;
  wire = std::make_unique<WireMessage>();
  wire->add_piece({reinterpret_cast<const uint8_t*>(body.data()), body.size()});
  return parse_infer_json("m", "1", std::string_view(body).substr(0, json.size()), *wire, json.size(), 1024, kFree);
}

TEST(InferJson, TensorsBehindTheJson) {
  const RestRequest request =
      parse(R"({"inputs":[{"name":"a","shape":[2],"datatype":"UINT8","parameters":{"binary_data_size":2}},)"
            R"({"shape":[1],"data":[1],"name":"b","datatype":"FP32"},)"
            R"({"name":"c","shape":[0],"datatype":"UINT8","parameters":{"binary_data_size":0}},)"
            R"({"name":"d","shape":[3],"datatype":"UINT8","parameters":{"binary_data_size":3}}],)"
            R"("outputs":[{"name":"o"},{"name":"p","parameters":{"binary_data":true}}]})",
            "abxyz");
  ASSERT_EQ(request.message.raw_contents.size(), 3u);
  EXPECT_EQ(request.message.raw_contents[0].remaining(), 2u);
  EXPECT_EQ(request.message.raw_contents[1].remaining(), 0u);
  EXPECT_EQ(WireReader(request.message.raw_contents[2]).contiguous()[0], 'x');
  EXPECT_TRUE(request.message.inputs[1].fill);
  EXPECT_FALSE(request.forms.wants_binary("o"));
  EXPECT_TRUE(request.forms.wants_binary("p"));
  EXPECT_FALSE(request.forms.wants_binary("q"));
}

TEST(InferJson, Refusals) {
  const auto refusal = [](const std::string& json, const std::string& tensors = "") {
    return refusal_of([&] { parse(json, tensors); });
  };
  const auto input = [](const std::string& rest) {
    return R"({"inputs":[{"name":"x","shape":[2],"datatype":"UINT8")" + rest + "}]}";
  };
  EXPECT_THAT(refusal("{}"), HasSubstr("Unable to parse 'inputs'"));
  EXPECT_THAT(refusal(input("")), HasSubstr("But no field is set"));
  EXPECT_THAT(refusal(input(R"(,"data":[1,2],"parameters":{"binary_data_size":2})")),
              HasSubstr("But set 'data' 'binary_data_size'"));
  EXPECT_THAT(refusal(input(R"(,"parameters":{"binary_data_size":2})"), "a"),
              HasSubstr("unexpected size for input 'x', expecting 1 additional bytes for model 'm'"));
  EXPECT_THAT(refusal(input(R"(,"parameters":{"binary_data_size":2})"), "abc"),
              HasSubstr("unexpected additional input data for model 'm'"));
  EXPECT_THAT(refusal(R"({"inputs":[],"parameters":{"p":[1]}})"),
              HasSubstr("parameter 'p' has invalid type. It should be either 'int', 'bool', or 'string'."));
  EXPECT_THAT(
      refusal(R"({"inputs":[],"outputs":[{"name":"o","parameters":{"shared_memory_region":"r","classification":1}}]})"),
      HasSubstr("Output can't set both 'shared_memory_region' and 'classification'"));
  EXPECT_THAT(
      refusal(R"({"inputs":[],"outputs":[{"name":"o","parameters":{"shared_memory_region":"r","binary_data":true}}]})"),
      HasSubstr("Output can't set both 'shared_memory_region' and 'binary_data'"));
  EXPECT_THAT(refusal(R"({"inputs":[{"shape":[1],"datatype":"FP32","data":[1]}]})"),
              HasSubstr("Unable to parse 'name'"));
  EXPECT_THAT(refusal(R"({"inputs":[{"name":"x","datatype":"FP32","data":[1]}]})"),
              HasSubstr("Unable to parse 'shape'"));
  EXPECT_THAT(refusal(R"({"inputs":[{"name":"x","shape":[1],"data":[1]}]})"), HasSubstr("Unable to parse 'datatype'"));
  // Data that contradicts its own shape is reported before anything about the model; strings and objects are elements.
  EXPECT_THAT(refusal(input(R"(,"data":[[1],[2,3]])")),
              HasSubstr("INVALID_ARGUMENT: Unable to parse 'data': Shape does not"));
  EXPECT_THAT(refusal(input(R"(,"data":[[],[{"a":[1,2]}]])")),
              HasSubstr("INVALID_ARGUMENT: Failed to parse 'data' field"));
  EXPECT_EQ(refusal(input(R"(,"data":[1,2,3],"data":["a",null])")), "none");
  EXPECT_THAT(refusal(R"({"inputs":[{"name":"x","shape":[1.5],"datatype":"FP32","data":[1]}]})"),
              HasSubstr("Unable to parse 'shape'"));
  // Sizes whose product overflows, in elements or in bytes.
  const auto shape = [&](const std::string& sizes) {
    return refusal(R"({"inputs":[{"name":"x","shape":)" + sizes + R"(,"datatype":"FP32","data":[1]}]})");
  };
  for (const char* sizes : {"[2,-5]", "[-1]", "[1.5]", "[1e30]", "[99999999999999999999]"}) {
    EXPECT_THAT(shape(sizes), HasSubstr("INVALID_ARGUMENT: Unable to parse 'shape': attempt to access JSON "
                                        "non-unsigned-integer as unsigned-integer"))
        << sizes;
  }
  EXPECT_THAT(shape("[16,1152921504606846978]"),
              HasSubstr("invalid shape for input 'x': shape [16,1152921504606846978] causes total element count to "
                        "exceed maximum size of 9223372036854775807"));
  EXPECT_THAT(shape("[4,1152921504606846978]"), HasSubstr("byte size overflow for input 'x': element count ("));
  EXPECT_EQ(shape("[0,16,1152921504606846978]"), "none");
  EXPECT_THAT(refusal(R"({"inputs":[{"name":"x","shape":[200],"datatype":"FP64","data":[1]}]})"),
              HasSubstr("exceeds the maximum allowed value of 1024"));
}

TEST(Target, Paths) {
  const auto call = [](std::string_view path) {
    const auto target = parse_target(path);
    return target ? concat(static_cast<int>(target->call), " ", target->name, " ", target->version)
                  : std::string("none");
  };
  const auto expected = [](RestCall of, const char* name = "", const char* version = "") {
    return concat(static_cast<int>(of), " ", name, " ", version);
  };
  EXPECT_EQ(call("/v2"), expected(RestCall::kServerMetadata));
  EXPECT_EQ(call("/v2/models/stats"), expected(RestCall::kStatistics));
  EXPECT_EQ(call("/v2/models/m"), expected(RestCall::kModelMetadata, "m"));
  EXPECT_EQ(call("/v2/models/m/versions/3"), expected(RestCall::kModelMetadata, "m", "3"));
  EXPECT_EQ(call("/v2/models/m/versions/3/infer"), expected(RestCall::kInfer, "m", "3"));
  EXPECT_EQ(call("/v2/models/m/trace/setting"), expected(RestCall::kTraceSetting, "m"));
  EXPECT_EQ(call("/v2/trace/setting"), expected(RestCall::kTraceSetting));
  EXPECT_EQ(call("/v2/repository/index"), expected(RestCall::kIndex));
  EXPECT_EQ(call("/v2/repository/models/m/load"), expected(RestCall::kLoad, "m"));
  EXPECT_TRUE(parse_target("/v2/repository/r/models/m/load")->names_repository);
  EXPECT_EQ(call("/v2/systemsharedmemory/status"), expected(RestCall::kSystemMemoryStatus));
  EXPECT_EQ(call("/v2/systemsharedmemory/region/r/register"), expected(RestCall::kSystemMemoryRegister, "r"));
  EXPECT_EQ(call("/v2/cudasharedmemory/region/r/unregister"), expected(RestCall::kCudaMemoryUnregister, "r"));
  for (const char* path :
       {"/", "/v1", "/v2x", "/v2/models", "/v2/models//infer", "/v2/models/m/nothing", "/v2/models/m/versions//infer",
        "/v2/models/m/versions/1/trace/setting", "/v2/systemsharedmemory/register",
        "/v2/systemsharedmemory/region//status", "/v2/repository", "/v2/models/m/infer/x", "/v2/health/live"}) {
    EXPECT_EQ(call(path), "none") << path;
  }
}

TEST(Compression, ThereAndBackWithinLimits) {
  std::string text(300'000, 'a');
  for (size_t i = 0; i < text.size(); i += 7) text[i] = static_cast<char>(i);
  uint64_t counted = 0;
  const HttpMemoryQuota quota = [&](uint64_t bytes) {
    counted += bytes;
    return std::make_shared<int>(0);
  };
  for (const Coding coding : {Coding::kGzip, Coding::kDeflate}) {
    HttpAnswer answer = HttpAnswer::text(200, text);
    answer.body.push_back({"!", {reinterpret_cast<const uint8_t*>(text.data()), text.size()}, nullptr});
    deflate_answer(coding, quota, answer);
    EXPECT_LT(answer.size_bytes(), text.size());
    std::string packed;
    for (const HttpPiece& piece : answer.body) packed += piece.text;
    std::vector<std::span<const uint8_t>> pieces;
    for (size_t at = 0; at < packed.size(); at += 1000) {
      pieces.emplace_back(reinterpret_cast<const uint8_t*>(packed.data()) + at,
                          std::min<size_t>(1000, packed.size() - at));
    }
    std::vector<std::shared_ptr<const void>> holds;
    EXPECT_EQ(std::string_view(inflate_body(coding, pieces, 1 << 20, quota, holds)), text + "!" + text);
    EXPECT_GE(counted, 2 * text.size());
    EXPECT_THAT(refusal_of([&] { inflate_body(coding, pieces, 300'000, quota, holds); }),
                HasSubstr("Decompressed data size exceeds the maximum allowed value of 300000 bytes"));
    EXPECT_THAT(refusal_of([&] {
                  inflate_body(
                      coding, pieces, 1 << 20,
                      [](uint64_t) -> std::shared_ptr<const void> { fail(ErrorCode::kResourceExhausted, "no room"); },
                      holds);
                }),
                HasSubstr("no room"));
    pieces.pop_back();
    EXPECT_THAT(refusal_of([&] { inflate_body(coding, pieces, 1 << 20, quota, holds); }), HasSubstr("end is missing"));
    EXPECT_THAT(refusal_of([&] { inflate_body(coding, {}, 1 << 20, quota, holds); }), HasSubstr("end is missing"));
  }
  EXPECT_EQ(request_coding(""), Coding::kIdentity);
  EXPECT_EQ(request_coding("GZIP"), Coding::kGzip);
  EXPECT_THAT(refusal_of([] { request_coding("br"); }), HasSubstr("Unsupported compression type"));
  EXPECT_EQ(preferred_coding(""), Coding::kIdentity);
  EXPECT_EQ(preferred_coding("gzip, deflate"), Coding::kGzip);
  EXPECT_EQ(preferred_coding("deflate, gzip"), Coding::kDeflate);
  EXPECT_EQ(preferred_coding("gzip;q=0.5, deflate;q=0.7, identity;q=0.2"), Coding::kDeflate);
  EXPECT_EQ(preferred_coding("br, gzip;q=x, *"), Coding::kIdentity);
  EXPECT_EQ(preferred_coding("gzip;q=0"), Coding::kIdentity);
}

}  // namespace
}  // namespace tensord::server::rest_test
