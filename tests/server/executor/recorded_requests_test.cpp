#include "server/executor/requests/recorded_requests.h"

#include <gmock/gmock.h>

#include <cstring>

#include "server/training/data/data_file.h"
#include "tests/server/error_of.h"
#include "tests/server/executor/recorded_fixture.h"

namespace tensord::server::recorded_requests_test {
namespace {

using fixtures::floats;
using fixtures::RecordedRequests;
using fixtures::words;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string record() {
  RecordWriter writer("m", "2", "id \"1\"", 1234567);
  writer.add_input(floats("x", {2, 3}, 1));
  writer.add_input(words("w", {"", std::string("a\0b", 3)}));
  writer.add_output(floats("y", {}, 9));
  return writer.finish();
}

TEST_F(RecordedRequests, AreReadAsTheyWereWritten) {
  const auto requests = read_recorded_requests(write(recorded_requests_magic() + record() + record()));
  ASSERT_EQ(requests.size(), 2u);
  const RecordedRequest& request = requests[1];
  EXPECT_EQ(request.model, "m");
  EXPECT_EQ(request.version, "2");
  EXPECT_EQ(request.id, "id \"1\"");
  EXPECT_EQ(request.time_unix_us, 1234567);
  ASSERT_EQ(request.inputs.size(), 2u);
  EXPECT_EQ(request.inputs[0].name, "x");
  EXPECT_EQ(request.inputs[0].shape, (Dims{2, 3}));
  EXPECT_EQ(request.inputs[0].tensor.data<float>()[5], 6);
  EXPECT_THAT(request.inputs[1].strings, ElementsAre("", std::string("a\0b", 3)));
  ASSERT_EQ(request.outputs.size(), 1u);
  EXPECT_EQ(request.outputs[0].tensor.data<float>()[0], 9);
}

TEST_F(RecordedRequests, PiecesOfAMessageAreGathered) {
  InferTensor tensor = floats("x", {4}, 1);
  const auto* bytes = static_cast<const uint8_t*>(tensor.tensor.raw_data());
  ScatteredBytes pieces;
  pieces.pieces = {{bytes, 5}, {bytes + 5, 11}};
  InferTensor scattered;
  scattered.name = "x";
  scattered.shape = {4};
  scattered.scattered = std::make_shared<const ScatteredBytes>(pieces);
  RecordWriter writer("m", "1", "", 0);
  writer.add_input(scattered);
  const auto requests = read_recorded_requests(write(recorded_requests_magic() + writer.finish()));
  EXPECT_EQ(requests.at(0).inputs.at(0).tensor.data<float>()[3], 4);
}

TEST_F(RecordedRequests, WhatWasCutOffIsLeftOut) {
  const std::string whole = recorded_requests_magic() + record();
  const std::string two = whole + record();
  for (size_t size = whole.size(); size < two.size(); size += 7) {
    EXPECT_EQ(read_recorded_requests(write(two.substr(0, size))).size(), 1u) << size;
  }
}

// With any byte changed the file is read, or refused with an error that names the file.
TEST_F(RecordedRequests, DamagedFiles) {
  const std::string good = recorded_requests_magic() + record();
  int errors = 0;
  for (size_t i = 0; i < good.size(); ++i) {
    for (const char value : {'\0', '9', '\xff', '['}) {
      std::string bad = good;
      bad[i] = value;
      const std::string path = write(bad);
      try {
        read_recorded_requests(path);
      } catch (const Error& error) {
        EXPECT_THAT(error.what(), HasSubstr("file.requests"));
        ++errors;
      }
    }
  }
  EXPECT_GT(errors, 100);
  EXPECT_THROW(read_recorded_requests((folder_ / "missing").string()), Error);
  EXPECT_THROW(read_recorded_requests(write(good + record()), {.requests = 1}), Error);
  EXPECT_THROW(read_recorded_requests(write(good), {.bytes = 20}), Error);
}

// A record of this head and data, whether they match or not.
std::string raw_record(const std::string& head, const std::string& data, uint64_t data_bytes) {
  std::string out;
  for (int i = 0; i < 4; ++i) out += static_cast<char>(head.size() >> (8 * i) & 0xff);
  for (int i = 0; i < 8; ++i) out += static_cast<char>(data_bytes >> (8 * i) & 0xff);
  return out + head + data;
}

std::string head_of(const std::string& inputs) {
  return concat(R"({"model":"m","version":"1","id":"","time_unix_us":0,"inputs":[)", inputs, R"(],"outputs":[]})");
}

std::string tensor_head(const std::string& datatype, const std::string& shape, uint64_t bytes) {
  return concat(R"({"name":"x","datatype":")", datatype, R"(","shape":)", shape, R"(,"bytes":)", bytes, "}");
}

// Each rule of a record: one record that keeps it, and some that break it at its limit.
TEST_F(RecordedRequests, WhatAHeadSaysMustFitItsData) {
  const auto read = [&](const std::string& inputs, const std::string& data) -> std::string {
    try {
      const auto requests =
          read_recorded_requests(write(recorded_requests_magic() + raw_record(head_of(inputs), data, data.size())));
      return requests.size() == 1 ? "" : "left out";
    } catch (const Error& error) {
      return error.what();
    }
  };
  const auto zeros = [](size_t count) { return std::string(count, '\0'); };
  const std::string length_of_2("\2\0\0\0", 4);
  const std::string many_dims = "[" + [] {
    std::string out = "1";
    for (size_t i = 1; i < kMaxDims; ++i) out += ",1";
    return out;
  }();
  EXPECT_EQ(read(tensor_head("FP32", "[2]", 8), zeros(8)), "");
  EXPECT_EQ(read(tensor_head("FP32", "[0]", 0), ""), "");
  EXPECT_EQ(read(tensor_head("UINT32", "[2]", 8), zeros(8)), "");
  EXPECT_EQ(read(tensor_head("UINT32", "[0]", 0), ""), "");
  EXPECT_EQ(read(tensor_head("BYTES", "[1]", 6), length_of_2 + "ab"), "");
  EXPECT_EQ(read(tensor_head("BYTES", "[2]", 8), zeros(8)), "");
  EXPECT_EQ(read(tensor_head("FP32", many_dims + "]", 4), zeros(4)), "");
  EXPECT_EQ(read("", ""), "");
  for (const auto& [inputs, data] : std::vector<std::pair<std::string, std::string>>{
           {tensor_head("FP32", "[2]", 8), zeros(9)},                   // data without a tensor
           {tensor_head("FP32", "[2]", 9), zeros(9)},                   // more than its shape
           {tensor_head("FP32", "[2]", 7), zeros(7)},                   // less
           {tensor_head("FP32", "[2]", 8), zeros(7)},                   // more than there is
           {tensor_head("FP3", "[2]", 8), zeros(8)},                    // invalid type
           {tensor_head("FP32", "2", 8), zeros(8)},                     // invalid shape
           {tensor_head("FP32", "[-1]", 8), zeros(8)},                  // invalid size
           {tensor_head("FP32", "[-2,-1]", 8), zeros(8)},               //
           {tensor_head("FP32", many_dims + ",1]", 4), zeros(4)},       // more dimensions than a tensor can have
           {tensor_head("FP32", "[4611686018427387904]", 0), ""},       // a product that overflows
           {tensor_head("UINT32", "[2]", 9), zeros(9)},                 //
           {tensor_head("BYTES", "[1]", 6), length_of_2 + "a"},         //
           {tensor_head("BYTES", "[1]", 5), length_of_2 + "a"},         // a string longer than the rest
           {tensor_head("BYTES", "[1]", 7), length_of_2 + "abc"},       // and one that is shorter
           {tensor_head("BYTES", "[2]", 7), length_of_2 + "ab" + "c"},  // a truncated length
           {tensor_head("BYTES", "[2]", 8), length_of_2 + "ab" + "cd"},
           {tensor_head("BYTES", "[1]", 3), zeros(3)},
           {tensor_head("BYTES", "[2]", 4), zeros(4)}}) {
    EXPECT_THAT(read(inputs, data),
                ::testing::AnyOf(HasSubstr("file.requests: record 1 is malformed"), HasSubstr("elements")))
        << inputs;
  }
  EXPECT_THAT(read("{", ""), HasSubstr("the head of record 1 is malformed"));
  const std::string one = tensor_head("FP32", "[0]", 0);
  for (const std::string& list : {std::string("null"), concat("{\"a\":", one, "}"), std::string("\"text\"")}) {
    const std::string head =
        concat(R"({"model":"m","version":"1","id":"","time_unix_us":0,"inputs":)", list, R"(,"outputs":[]})");
    EXPECT_THAT(
        error_of([&] { read_recorded_requests(write(recorded_requests_magic() + raw_record(head, "", 0))); }).what(),
        HasSubstr("file.requests: record 1 is malformed"))
        << list;
  }
  EXPECT_THAT(
      error_of([&] { read_recorded_requests(write(recorded_requests_magic() + raw_record("", "", 0))); }).what(),
      HasSubstr("the head of record 1 is malformed"));
}

TEST_F(RecordedRequests, FilesThatCannotBeRead) {
  EXPECT_EQ(error_of([&] { read_recorded_requests(folder_ / "missing"); }).code(), ErrorCode::kNotFound);
  EXPECT_THAT(error_of([&] { read_recorded_requests(write("TNSDREQ")); }).what(),
              HasSubstr("is not a file of recorded"));
  EXPECT_THAT(error_of([&] { read_recorded_requests(write("TNSDREQ2")); }).what(),
              HasSubstr("of a newer tensord ('TNSDREQ2'; this one reads 'TNSDREQ1')"));
  // One that gives less than it has.
  const std::filesystem::path short_file = "/sys/devices/system/cpu/online";
  if (!std::filesystem::exists(short_file) || std::filesystem::file_size(short_file) != 4096) return;
  EXPECT_THAT(error_of([&] { read_recorded_requests(short_file); }).what(), HasSubstr("online: cannot be read"));
}

TEST_F(RecordedRequests, AHeadHasAtMostAMegabyte) {
  const auto read = [&](size_t size) {
    std::string head = head_of("");
    head.insert(head.size() - 1, std::string(size - head.size(), ' '));
    return read_recorded_requests(write(recorded_requests_magic() + raw_record(head, "", 0))).size();
  };
  EXPECT_EQ(read(1 << 20), 1);
  EXPECT_THROW(read((1 << 20) + 1), Error);
}

TEST_F(RecordedRequests, ARequestHasAtMost4096Tensors) {
  const auto read = [&](size_t count) {
    std::string inputs;
    for (size_t i = 0; i < count; ++i) inputs += (i > 0 ? "," : "") + tensor_head("FP32", "[0]", 0);
    return read_recorded_requests(write(recorded_requests_magic() + raw_record(head_of(inputs), "", 0))).size();
  };
  EXPECT_EQ(read(4096), 1);
  EXPECT_THROW(read(4097), Error);
}

TEST_F(RecordedRequests, LimitsAreTheLastThatFit) {
  const std::string bytes = recorded_requests_magic() + record() + record();
  const std::string path = write(bytes);
  EXPECT_EQ(read_recorded_requests(path, {.bytes = bytes.size()}).size(), 2);
  EXPECT_THROW(read_recorded_requests(path, {.bytes = bytes.size() - 1}), Error);
  EXPECT_EQ(read_recorded_requests(path, {.requests = 2}).size(), 2);
  EXPECT_THROW(read_recorded_requests(path, {.requests = 1}), Error);
  for (const std::string& other : {std::string(), std::string("TNSDREQ"), std::string("TNSDREQ2") + record()}) {
    EXPECT_THROW(read_recorded_requests(write(other)), Error);
  }
  EXPECT_TRUE(read_recorded_requests(write(recorded_requests_magic())).empty());
  EXPECT_THROW(read_recorded_requests(folder_.string()), Error);
}

std::string record_of(const InferTensor& input, const std::vector<InferTensor>& outputs) {
  RecordWriter writer("m", "1", "", 0);
  writer.add_input(input);
  for (const InferTensor& output : outputs) writer.add_output(output);
  return writer.finish();
}

TEST_F(RecordedRequests, AreDataToTrainOn) {
  const std::string path = write(recorded_requests_magic() + record_of(floats("x", {1, 2}, 1), {floats("x", {1}, 7)}) +
                                 record_of(floats("x", {2, 2}, 10), {floats("x", {2}, 8)}));
  const DataTable table = read_data_file(path);
  EXPECT_EQ(table.rows, 3);
  EXPECT_EQ(table.at("x").sizes(), (Dims{3, 2}));
  EXPECT_EQ(table.at("x").data<float>()[1], 2);
  EXPECT_EQ(table.at("x").data<float>()[5], 13);
  EXPECT_EQ(table.at("output.x").data<float>()[2], 9);

  // A single number is a row.
  const std::string single = record_of(floats("x", {}, 4), {});
  EXPECT_EQ(read_data_file(write(recorded_requests_magic() + single + single)).at("x").sizes(), (Dims{2}));

  const auto message_of = [&](const std::string& bytes) -> std::string {
    try {
      read_data_file(write(recorded_requests_magic() + bytes));
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  const std::string good = record_of(floats("x", {1, 2}, 1), {});
  EXPECT_THAT(message_of(good + record_of(floats("x", {1, 3}, 1), {})), HasSubstr("'x' has rows of different shapes"));
  InferTensor doubles = floats("x", {1, 2}, 1);
  doubles.datatype = DataType::kFp64;
  doubles.tensor = doubles.tensor.to(DType::kFloat64);
  for (const InferTensor& other : {doubles, floats("x", {1, 2, 1}, 1), floats("x", {}, 1), words("x", {"a"})}) {
    EXPECT_THAT(message_of(good + record_of(other, {})), HasSubstr("'x' has rows of different shapes"));
  }
  EXPECT_THAT(message_of(good + record_of(floats("z", {1, 2}, 1), {})), HasSubstr("'x' is in 1 of 2 requests"));
  EXPECT_THAT(message_of(record_of(words("w", {"a"}), {})), HasSubstr("'w' has texts"));
  EXPECT_THAT(message_of(""), HasSubstr("holds no arrays"));
}

// As files from elsewhere may contain.
TEST_F(RecordedRequests, BoolsAreZeroOrOne) {
  InferTensor flags;
  flags.name = "b";
  flags.datatype = DataType::kBool;
  flags.shape = {5};
  flags.tensor = Tensor::empty(Dims{5}, DType::kBool);
  const uint8_t sent[] = {2, 0, 1, 128, 255};
  std::memcpy(flags.tensor.raw_data(), sent, sizeof(sent));
  const auto requests = read_recorded_requests(write(recorded_requests_magic() + record_of(flags, {flags})));
  for (const auto& tensors : {requests.at(0).inputs, requests.at(0).outputs}) {
    ASSERT_EQ(tensors.at(0).tensor.dtype(), DType::kBool);
    const auto* read = static_cast<const uint8_t*>(tensors[0].tensor.raw_data());
    EXPECT_THAT(std::vector<int>(read, read + 5), ElementsAre(1, 0, 1, 1, 1));
  }
}

}  // namespace
}  // namespace tensord::server::recorded_requests_test
