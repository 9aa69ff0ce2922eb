// Requests captured during serving: which of them, and how they are written to disk.
#include "server/executor/requests/request_capture.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>

#include <atomic>
#include <thread>

#include "core/base/error.h"
#include "core/base/log.h"
#include "tests/server/executor/recorded_fixture.h"
#include "tests/server/fake_models.h"

namespace tensord::server::request_capture_test {
namespace {

using fixtures::floats;
using fixtures::words;
using ::testing::HasSubstr;

class RequestCaptureTest : public fixtures::RecordedRequests {};

InferRequest request_of(float first) {
  InferRequest request;
  request.id = "r";
  request.inputs.push_back(floats("x", {1, 2}, first));
  request.input_indices = {0};
  return request;
}

const Signature kSignature = fixtures::signature_of({"x"}, {"y"});

TEST_F(RequestCaptureTest, CaptureKeepsSamplesOfGoodRequests) {
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

TEST_F(RequestCaptureTest, UnsignedNumbersAreKeptAsTheyWereSent) {
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

TEST_F(RequestCaptureTest, AFolderThatCannotBeMadeIsRefused) {
  const std::string file = write("");
  try {
    RequestCapture({.folder = file + "/below"});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_THAT(error.what(), HasSubstr("--capture-dir"));
  }
}

// A removed folder is reported once for each model, and nothing is written if it reappears.
TEST_F(RequestCaptureTest, AFileThatCannotBeWrittenIsGivenUp) {
  static std::atomic<int> said;
  said = 0;
  set_log_sink(
      [](LogLevel level, std::string_view message, std::initializer_list<LogField>, const std::source_location&) {
        if (level == LogLevel::kError && message == "captured requests cannot be written") ++said;
      });
  const std::filesystem::path folder = folder_ / "gone";
  {
    RequestCapture capture({.folder = folder.string()});
    std::filesystem::remove_all(folder);
    capture.start("m", "1", kSignature, request_of(1))->keep();
    while (said == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::filesystem::create_directories(folder);
    capture.start("m", "1", kSignature, request_of(2))->keep();
    capture.start("other", "1", kSignature, request_of(3))->keep();
  }
  EXPECT_EQ(said, 1);
  const auto written = std::filesystem::directory_iterator(folder);
  ASSERT_EQ(std::distance(begin(written), end(written)), 1);
  EXPECT_THAT(std::filesystem::directory_iterator(folder)->path().filename().string(), ::testing::StartsWith("other-"));
}

// A record that is still in the stream's buffer is lost too, and this is reported.
TEST_F(RequestCaptureTest, ADiskThatIsFullIsSaid) {
  static std::atomic<int> said;
  said = 0;
  set_log_sink(
      [](LogLevel level, std::string_view message, std::initializer_list<LogField>, const std::source_location&) {
        if (level == LogLevel::kError && message == "captured requests cannot be written") ++said;
      });
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = 16, .rlim_max = before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  {
    RequestCapture capture({.folder = folder_.string()});
    capture.start("m", "1", kSignature, request_of(1))->keep();
  }
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(said, 1);
}

// Captures are written while the daemon runs.
TEST_F(RequestCaptureTest, CaptureWritesWithoutBeingStopped) {
  RequestCapture capture({.folder = folder_.string()});
  capture.start("a/b", "1", kSignature, request_of(3))->keep();
  while (files().empty() || std::filesystem::file_size(files()[0]) <= recorded_requests_magic().size()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_THAT(std::filesystem::path(files()[0]).filename().string(), ::testing::StartsWith("a_b-"));
  capture.stop();
  EXPECT_EQ(capture.start("a/b", "1", kSignature, request_of(3)), nullptr);
  EXPECT_EQ(read_recorded_requests(files()[0]).size(), 1u);
}

TEST_F(RequestCaptureTest, CaptureKeepsToItsBytesExactly) {
  RecordWriter writer("m", "1", "r", 1'700'000'000'000'000);
  writer.add_input(floats("x", {1, 2}, 1));
  const uint64_t one = writer.finish().size();
  for (const uint64_t limit : {one - 1, one, 2 * one - 1, 2 * one}) {
    {
      RequestCapture capture({.folder = folder_.string(), .max_bytes = limit});
      // All begin before any of them ends.
      std::vector<std::shared_ptr<CapturedRequest>> captured;
      for (int i = 0; i < 3; ++i) captured.push_back(capture.start("m", "1", kSignature, request_of(1)));
      for (const auto& it : captured) it->keep();
      EXPECT_EQ(capture.start("m", "1", kSignature, request_of(1)) == nullptr, limit % one == 0);
    }
    size_t kept = 0;
    for (const std::string& file : files()) {
      kept += read_recorded_requests(file).size();
      std::filesystem::remove(file);
    }
    EXPECT_EQ(kept, limit / one);
  }
}

TEST_F(RequestCaptureTest, CaptureKeepsToItsRequestsWhereAllBeginAtOnce) {
  {
    RequestCapture capture({.folder = folder_.string(), .has_outputs = false, .max_requests = 2});
    std::vector<std::shared_ptr<CapturedRequest>> captured;
    for (int i = 0; i < 4; ++i) captured.push_back(capture.start("m", "1", kSignature, request_of(1)));
    for (const auto& it : captured) it->add_outputs({floats("y", {1}, 7)});
    for (const auto& it : captured) it->keep();
  }
  const auto requests = read_recorded_requests(files().at(0));
  EXPECT_EQ(requests.size(), 2u);
  EXPECT_TRUE(requests[0].outputs.empty());  // not requested
}

// While the disk is stuck, at most 64 MB of records wait; later ones are dropped, and this is reported.
TEST_F(RequestCaptureTest, WhatWaitsForTheDiskIsBounded) {
  static std::atomic<bool> is_stuck, is_free;
  static std::atomic<int> dropped;
  is_stuck = is_free = false;
  dropped = 0;
  set_log_sink([](LogLevel, std::string_view message, std::initializer_list<LogField>, const std::source_location&) {
    if (message == "requests were not kept") ++dropped;
    if (message != "captured requests cannot be written") return;
    is_stuck = true;
    is_stuck.notify_all();
    is_free.wait(false);
  });
  const auto request_with = [](size_t bytes) {
    InferRequest request = request_of(1);
    request.inputs[0] = words("x", {std::string(bytes, 'a')});
    return request;
  };
  const auto record_bytes = [&](size_t bytes) {
    RecordWriter writer("m", "1", "r", 1'700'000'000'000'000);
    writer.add_input(request_with(bytes).inputs[0]);
    return writer.finish().size();
  };
  constexpr size_t kQuarter = size_t{16} << 20;
  const size_t size = kQuarter - (record_bytes(kQuarter) - kQuarter);
  ASSERT_EQ(record_bytes(size), kQuarter);
  const std::filesystem::path folder = folder_ / "gone";
  {
    RequestCapture capture({.folder = folder.string()});
    std::filesystem::remove_all(folder);
    capture.start("m", "1", kSignature, request_of(1))->keep();
    is_stuck.wait(false);
    for (int i = 0; i < 4; ++i) capture.start("m", "1", kSignature, request_with(size))->keep();
    EXPECT_EQ(dropped, 0);
    capture.start("m", "1", kSignature, request_of(1))->keep();
    EXPECT_EQ(dropped, 1);
    is_free = true;
    is_free.notify_all();
  }
  EXPECT_EQ(dropped, 1);
}

TEST_F(RequestCaptureTest, LargeRequestsAreNotCaptured) {
  RequestCapture capture({.folder = folder_.string()});
  constexpr int64_t kMax = (int64_t{32} << 20) / 4;
  for (const int64_t more : {0, 1}) {
    InferRequest request = request_of(1);
    request.inputs[0].shape = {kMax + more};
    request.inputs[0].tensor = Tensor::empty(request.inputs[0].shape, DType::kFloat32);
    EXPECT_EQ(capture.start("m", "1", kSignature, request) == nullptr, more == 1);
  }
  InferRequest texts = request_of(1);
  texts.inputs[0] = words("x", {std::string((size_t{32} << 20) - 4, 'a')});
  EXPECT_NE(capture.start("m", "1", kSignature, texts), nullptr);
  texts.inputs[0].strings.emplace_back();
  EXPECT_EQ(capture.start("m", "1", kSignature, texts), nullptr);
}

TEST_F(RequestCaptureTest, CaptureEndsAtItsLimits) {
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
}  // namespace tensord::server::request_capture_test
