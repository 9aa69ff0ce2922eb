#include "server/executor/requests/recorded_requests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/base/error.h"
#include "server/executor/requests/request_capture.h"
#include "server/training/data/data_file.h"
#include "tests/server/fake_models.h"

namespace tensord::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RecordedRequests : public ::testing::Test {
 protected:
  RecordedRequests() : folder_(std::filesystem::temp_directory_path() / ("records" + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~RecordedRequests() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& bytes) const {
    const std::string path = (folder_ / "file.requests").string();
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  std::vector<std::string> files() const {
    std::vector<std::string> out;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) out.push_back(entry.path().string());
    return out;
  }

  const std::filesystem::path folder_;
};

InferTensor floats(const std::string& name, Dims shape, float first) {
  InferTensor out;
  out.name = name;
  out.shape = shape;
  out.tensor = Tensor::empty(shape, DType::kFloat32);
  for (int64_t i = 0; i < out.tensor.numel(); ++i) out.tensor.data<float>()[i] = first + static_cast<float>(i);
  return out;
}

InferTensor words(const std::string& name, std::vector<std::string> strings) {
  InferTensor out;
  out.name = name;
  out.datatype = DataType::kBytes;
  out.shape = {static_cast<int64_t>(strings.size())};
  out.strings = std::move(strings);
  return out;
}

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

// Every byte changed: read, or an error that names the file; nothing else.
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
  EXPECT_THAT(message_of(good + record_of(floats("z", {1, 2}, 1), {})), HasSubstr("'x' is in 1 of 2 requests"));
  EXPECT_THAT(message_of(record_of(words("w", {"a"}), {})), HasSubstr("'w' has texts"));
  EXPECT_THAT(message_of(""), HasSubstr("holds no arrays"));
}

// As a file of somebody else may have them.
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

InferRequest request_of(float first) {
  InferRequest request;
  request.id = "r";
  request.inputs.push_back(floats("x", {1, 2}, first));
  request.input_indices = {0};
  return request;
}

const Signature kSignature = testing::signature_of({"x"}, {"y"});

TEST_F(RecordedRequests, CaptureKeepsSamplesOfGoodRequests) {
  {
    RequestCapture capture({.folder = folder_.string(), .models = {"m"}, .rate = 2, .has_outputs = true});
    EXPECT_EQ(capture.start("other", "1", kSignature, request_of(0)), nullptr);
    for (int i = 0; i < 6; ++i) {
      const auto captured = capture.start("m", "1", kSignature, request_of(static_cast<float>(i)));
      EXPECT_EQ(captured != nullptr, i % 2 == 0);
      if (!captured || i == 2) continue;  // the one of i = 2 failed
      captured->add_outputs({floats("y", {1}, 7)});
      captured->keep();
    }
  }
  ASSERT_EQ(files().size(), 1u);
  const auto requests = read_recorded_requests(files()[0]);
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(requests[0].inputs[0].tensor.data<float>()[0], 0);
  EXPECT_EQ(requests[1].inputs[0].tensor.data<float>()[0], 4);
  EXPECT_EQ(requests[1].outputs.at(0).tensor.data<float>()[0], 7);
}

TEST_F(RecordedRequests, UnsignedNumbersAreKeptAsTheyWereSent) {
  Signature signature = kSignature;
  signature.inputs[0].datatype = DataType::kUint32;
  {
    RequestCapture capture({.folder = folder_.string()});
    InferRequest request = request_of(0);
    InferTensor& input = request.inputs[0];
    input.datatype = DataType::kInt64;  // as it reaches the model
    input.shape = {3};
    input.tensor = Tensor::empty(Dims{3}, DType::kInt64);
    for (int64_t i = 0; i < 3; ++i) input.tensor.data<int64_t>()[i] = 4294967293 + i;
    capture.start("m", "1", signature, request)->keep();
  }
  const InferTensor kept = read_recorded_requests(files().at(0)).at(0).inputs.at(0);
  EXPECT_EQ(kept.datatype, DataType::kUint32);
  ASSERT_EQ(kept.tensor.dtype(), DType::kInt64);
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(kept.tensor.data<int64_t>()[i], 4294967293 + i);
}

TEST_F(RecordedRequests, CaptureEndsAtItsLimits) {
  {
    RequestCapture capture({.folder = folder_.string(), .max_requests = 3});
    for (int i = 0; i < 10; ++i) {
      if (const auto captured = capture.start("m", "1", kSignature, request_of(1))) captured->keep();
    }
  }
  EXPECT_EQ(read_recorded_requests(files().at(0)).size(), 3u);
  std::filesystem::remove(files()[0]);
  {
    RequestCapture capture({.folder = folder_.string(), .max_bytes = 400});
    for (int i = 0; i < 10; ++i) {
      if (const auto captured = capture.start("m", "1", kSignature, request_of(1))) captured->keep();
    }
  }
  EXPECT_LE(std::filesystem::file_size(files().at(0)), 408u);
  EXPECT_GE(read_recorded_requests(files()[0]).size(), 1u);
  RequestCapture off({});
  EXPECT_EQ(off.start("m", "1", kSignature, request_of(1)), nullptr);
}

}  // namespace
}  // namespace tensord::server
