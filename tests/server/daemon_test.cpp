// The daemon in this process with fake models, called through gRPC's own client.
#include "server/transport/daemon.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "core/base/error.h"
#include "protos/health.grpc.pb.h"
#include "protos/inference.grpc.pb.h"
#include "tests/server/daemon_fixture.h"

namespace tensord::server {
namespace {

namespace fs = std::filesystem;
using grpc::StatusCode;
using Stub = inference::GRPCInferenceService::Stub;

class DaemonTest : public testing::DaemonFixture {};

TEST_F(DaemonTest, AnswersAnyPayloadSize) {
  repository_.add("echo", 2, "identity");
  start();
  for (const size_t size : {0, 1, 1000, 5000, 600000, 9000000}) {
    std::string raw(size, '\0');
    for (size_t i = 0; i < size; ++i) raw[i] = static_cast<char>(i * 31);
    inference::ModelInferResponse response;
    const grpc::Status status = infer(request("echo", raw), &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(response.model_name(), "echo");
    EXPECT_EQ(response.model_version(), "2");
    EXPECT_EQ(response.id(), "7");
    ASSERT_EQ(response.raw_output_contents_size(), 1);
    EXPECT_EQ(response.raw_output_contents(0), raw);
  }
}

TEST_F(DaemonTest, BrokenModelLeavesTheOthers) {
  repository_.add("good", 1, "identity");
  repository_.add("broken", 1, "rubbish");
  repository_.add("broken", 2, "rubbish");
  fs::create_directories(repository_.root / "empty");
  start();
  inference::ModelInferResponse response;
  EXPECT_TRUE(infer(request("good", "abc"), &response).ok());
  const grpc::Status broken = infer(request("broken", "abc"), &response);
  EXPECT_EQ(broken.error_code(), StatusCode::UNAVAILABLE);
  EXPECT_NE(broken.error_message().find("this is no archive"), std::string::npos) << broken.error_message();
  EXPECT_EQ(infer(request("empty", "abc"), &response).error_code(), StatusCode::NOT_FOUND);
  EXPECT_EQ(infer(request("missing", "abc"), &response).error_code(), StatusCode::NOT_FOUND);

  grpc::ClientContext context;
  inference::ServerReadyResponse ready;
  ASSERT_TRUE(stub_->ServerReady(&context, {}, &ready).ok());
  EXPECT_FALSE(ready.ready());
}

TEST_F(DaemonTest, DeadlinePassesInTheQueue) {
  repository_.add("sleepy", 1, "sleepy");
  start();
  std::thread first([&] {
    inference::ModelInferResponse response;
    EXPECT_TRUE(infer(request("sleepy", "a"), &response).ok());
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  inference::ModelInferRequest second = request("sleepy", "b");
  (*second.mutable_parameters())["timeout"].set_int64_param(1000);
  inference::ModelInferResponse response;
  const grpc::Status status = infer(second, &response);
  EXPECT_EQ(status.error_code(), StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(status.error_message(), "Request timeout expired");
  first.join();
}

TEST_F(DaemonTest, FullQueueIsResourceExhausted) {
  repository_.add("sleepy", 1, "sleepy");
  ServerOptions options;
  options.max_queue_size = 1;
  start(options);
  std::vector<std::thread> threads;
  std::atomic<int> exhausted{0}, answered{0};
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&] {
      inference::ModelInferResponse response;
      const grpc::Status status = infer(request("sleepy", "a"), &response);
      if (status.ok()) ++answered;
      if (status.error_code() == StatusCode::RESOURCE_EXHAUSTED) ++exhausted;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(answered + exhausted, 6);
  EXPECT_GE(exhausted, 3);
  EXPECT_GE(answered, 1);
}

TEST_F(DaemonTest, StopAnswersWhatIsInFlight) {
  repository_.add("sleepy", 1, "sleepy");
  start();
  std::atomic<bool> answered{false};
  std::thread client([&] {
    inference::ModelInferResponse response;
    answered = infer(request("sleepy", "a"), &response).ok();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(80));
  daemon_->stop(5000);
  client.join();
  EXPECT_TRUE(answered);
}

TEST_F(DaemonTest, StopCancelsWhatIsTooSlow) {
  repository_.add("sleepy", 1, "sleepy");
  start();
  StatusCode code = StatusCode::OK;
  std::thread client([&] {
    inference::ModelInferResponse response;
    code = infer(request("sleepy", "a"), &response).error_code();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(80));
  const auto start = std::chrono::steady_clock::now();
  daemon_->stop(10);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(200));
  client.join();
  EXPECT_NE(code, StatusCode::OK);
}

TEST_F(DaemonTest, WatchEndsWithTheServer) {
  repository_.add("echo", 1, "identity");
  start();
  auto health = grpc::health::v1::Health::NewStub(channel_);
  grpc::ClientContext context;
  grpc::health::v1::HealthCheckRequest wanted;
  wanted.set_service("echo");
  auto reader = health->Watch(&context, wanted);
  grpc::health::v1::HealthCheckResponse response;
  ASSERT_TRUE(reader->Read(&response));
  EXPECT_EQ(response.status(), grpc::health::v1::HealthCheckResponse::SERVING);
  std::thread stopper([&] { daemon_->stop(5000); });
  while (reader->Read(&response)) EXPECT_EQ(response.status(), grpc::health::v1::HealthCheckResponse::NOT_SERVING);
  EXPECT_FALSE(reader->Finish().ok());
  stopper.join();
}

}  // namespace
}  // namespace tensord::server
