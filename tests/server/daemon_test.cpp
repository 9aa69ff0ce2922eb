// The daemon in this process with fake models, called through gRPC's own client.
#include "server/daemon/daemon.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "core/base/error.h"
#include "protos/health.grpc.pb.h"
#include "protos/inference.grpc.pb.h"
#include "server/transport/calls/health.h"
#include "tests/server/daemon_fixture.h"

namespace tensord::server::daemon_test {
namespace {

namespace fs = std::filesystem;
using grpc::StatusCode;
using Stub = inference::GRPCInferenceService::Stub;

class DaemonTest : public fixtures::DaemonFixture {};

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
  EXPECT_NE(broken.error_message().find("this is not an archive"), std::string::npos) << broken.error_message();
  EXPECT_EQ(infer(request("empty", "abc"), &response).error_code(), StatusCode::NOT_FOUND);
  EXPECT_EQ(infer(request("missing", "abc"), &response).error_code(), StatusCode::NOT_FOUND);

  grpc::ClientContext context;
  inference::ServerReadyResponse ready;
  ASSERT_TRUE(stub_->ServerReady(&context, {}, &ready).ok());
  EXPECT_FALSE(ready.ready());
}

TEST_F(DaemonTest, DeadlinePassesInTheQueue) {
  repository_.add("gated", 1, "gated", "dynamic_batching { default_queue_policy { allow_timeout_override: true } }");
  start();
  std::thread first([&] {
    inference::ModelInferResponse response;
    EXPECT_TRUE(infer(request("gated", "a"), &response).ok());
  });
  gate_.wait_for(1);
  inference::ModelInferRequest second = request("gated", "b");
  (*second.mutable_parameters())["timeout"].set_int64_param(1000);
  inference::ModelInferResponse response;
  const grpc::Status status = infer(second, &response);
  EXPECT_EQ(status.error_code(), StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(status.error_message(), "Request timeout expired");
  gate_.open();
  first.join();
}

// The batcher would wait an hour for more requests; a call with a deadline waits for half of its remaining time.
TEST_F(DaemonTest, ADeadlineReachesTheQueue) {
  repository_.add("batches", 1, "identity",
                  "max_batch_size: 8 dynamic_batching { max_queue_delay_microseconds: 3600000000 }");
  start();
  inference::ModelInferResponse response;
  inference::ModelInferRequest message = request("batches", "a");
  message.mutable_inputs(0)->clear_shape();
  for (int i = 0; i < 2; ++i) message.mutable_inputs(0)->add_shape(1);
  const grpc::Status status = infer(message, &response, /*deadline_ms=*/4000);
  EXPECT_TRUE(status.ok()) << status.error_message();
}

// One runs, one is queued, and the queue is full.
TEST_F(DaemonTest, FullQueueIsResourceExhausted) {
  repository_.add("gated", 1, "gated");
  ServerOptions options;
  options.max_queue_size = 1;
  start(options);
  std::vector<std::thread> threads;
  std::atomic<int> exhausted{0}, answered{0};
  const auto ask = [&] {
    inference::ModelInferResponse response;
    const grpc::Status status = infer(request("gated", "a"), &response);
    if (status.ok()) ++answered;
    if (status.error_code() == StatusCode::RESOURCE_EXHAUSTED) ++exhausted;
    exhausted.notify_all();
  };
  threads.emplace_back(ask);
  gate_.wait_for(1);
  for (int i = 0; i < 5; ++i) threads.emplace_back(ask);
  for (int seen = exhausted; seen < 4; seen = exhausted) exhausted.wait(seen);
  gate_.open();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(exhausted, 4);
  EXPECT_EQ(answered, 2);
}

// While the only worker is blocked, the queue has room for one more; a cancelled call frees that place at once.
TEST_F(DaemonTest, ACancelledCallLeavesTheQueue) {
  repository_.add("gated", 1, "gated");
  ServerOptions options;
  options.max_queue_size = 1;
  start(options);
  std::thread running([&] {
    inference::ModelInferResponse response;
    EXPECT_TRUE(infer(request("gated", "a"), &response).ok());
  });
  gate_.wait_for(1);
  // Queued, then cancelled by its deadline.
  inference::ModelInferResponse response;
  EXPECT_EQ(infer(request("gated", "b"), &response, /*deadline_ms=*/300).error_code(), StatusCode::DEADLINE_EXCEEDED);
  // A later call soon gets the place; without it, calls fail with RESOURCE_EXHAUSTED until the worker is free.
  StatusCode code = StatusCode::RESOURCE_EXHAUSTED;
  for (int i = 0; i < 1000 && code == StatusCode::RESOURCE_EXHAUSTED; ++i) {
    code = infer(request("gated", "c"), &response, /*deadline_ms=*/300).error_code();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(code, StatusCode::DEADLINE_EXCEEDED);
  gate_.open();
  running.join();
  EXPECT_EQ(gate_.entered(), 1);
}

TEST_F(DaemonTest, StopAnswersWhatIsInFlight) {
  repository_.add("gated", 1, "gated");
  start();
  std::atomic<bool> answered{false};
  std::thread client([&] {
    inference::ModelInferResponse response;
    answered = infer(request("gated", "a"), &response).ok();
  });
  gate_.wait_for(1);
  std::thread opener([&] { gate_.open(); });
  daemon_->stop(60'000);
  opener.join();
  client.join();
  EXPECT_TRUE(answered);
}

// The gate is never opened.
TEST_F(DaemonTest, StopCancelsWhatIsTooSlow) {
  repository_.add("gated", 1, "gated");
  start();
  StatusCode code = StatusCode::OK;
  std::thread client([&] {
    inference::ModelInferResponse response;
    code = infer(request("gated", "a"), &response, /*deadline_ms=*/600'000).error_code();
  });
  gate_.wait_for(1);
  daemon_->stop(10);
  client.join();
  EXPECT_NE(code, StatusCode::OK);
}

// The server takes no new calls by then, but one may be in progress.
TEST_F(DaemonTest, NoModelServesWhileTheServerStops) {
  repository_.add("echo", 1, "identity");
  Metrics metrics("test");
  Tracer tracer({});
  RequestCapture capture({});
  Repository::Options options;
  options.roots = {repository_.root.string()};
  Repository models(
      options, [this](const ModelFiles& files, const ModelConfig& config) { return open_fake(files.model, config); },
      metrics);
  models.load_all();
  ServerState state{
      .repository = models, .metrics = metrics, .tracer = tracer, .capture = capture, .id = "", .version = ""};
  using Response = grpc::health::v1::HealthCheckResponse;
  for (const char* service : {"", "inference.GRPCInferenceService", "echo"}) {
    state.is_leaving = false;
    EXPECT_EQ(health_of(state, service), Response::SERVING) << service;
    state.is_leaving = true;
    EXPECT_EQ(health_of(state, service), Response::NOT_SERVING) << service;
  }
  EXPECT_EQ(health_of(state, "grpc.health.v1.Health"), Response::SERVING);
  EXPECT_EQ(health_of(state, "none"), Response::SERVICE_UNKNOWN);
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
  ASSERT_TRUE(reader->Read(&response)) << "it is told before the stream ends";
  EXPECT_EQ(response.status(), grpc::health::v1::HealthCheckResponse::NOT_SERVING);
  EXPECT_FALSE(reader->Read(&response));
  EXPECT_FALSE(reader->Finish().ok());
  stopper.join();
}

TEST_F(DaemonTest, ParametersOfLoadsAndUnloadsAreChecked) {
  repository_.add("m", 1, "identity");
  start();
  const auto refusal = [](const grpc::Status& status) {
    EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT);
    return status.error_message();
  };
  inference::ModelRepositoryParameter text, bytes, number;
  text.set_string_param("identity");
  bytes.set_bytes_param("identity");
  number.set_int64_param(1);
  const auto load = [&](const std::string& key, const inference::ModelRepositoryParameter& value) {
    inference::RepositoryModelLoadRequest request;
    request.set_model_name("m");
    (*request.mutable_parameters())[key] = value;
    grpc::ClientContext context;
    inference::RepositoryModelLoadResponse response;
    return refusal(stub_->RepositoryModelLoad(&context, request, &response));
  };
  for (const auto& value : {text, number, inference::ModelRepositoryParameter()}) {
    EXPECT_EQ(load("file:1/model.pt", value), "File parameter 'file:1/model.pt' must have bytes type for its value");
  }
  for (const char* key : {"config", "version_labels"}) {
    for (const auto& value : {bytes, number}) {
      EXPECT_EQ(load(key, value), concat("invalid value type for load parameter '", key, "', expected string_param."));
    }
  }
  EXPECT_EQ(load("color", text), "unrecognized load parameter 'color'");

  const auto unload = [&](const std::string& model, const std::string& key) {
    inference::RepositoryModelUnloadRequest request;
    request.set_model_name(model);
    if (!key.empty()) (*request.mutable_parameters())[key] = text;
    grpc::ClientContext context;
    inference::RepositoryModelUnloadResponse response;
    return refusal(stub_->RepositoryModelUnload(&context, request, &response));
  };
  EXPECT_EQ(unload("m", "unload_dependents"),
            "invalid value type for unload parameter 'unload_dependents', expected bool_param.");
  EXPECT_EQ(unload("m", "color"), "unrecognized unload parameter 'color'");
  EXPECT_EQ(unload("", ""), "an unload names no model");
}

TEST_F(DaemonTest, TraceSettingsAreOfModelsThatServe) {
  repository_.add("m", 1, "identity");
  start();
  const auto ask = [&](const std::string& model) {
    grpc::ClientContext context;
    inference::TraceSettingRequest request;
    request.set_model_name(model);
    inference::TraceSettingResponse response;
    return stub_->TraceSetting(&context, request, &response);
  };
  EXPECT_TRUE(ask("").ok());
  EXPECT_TRUE(ask("m").ok());
  const grpc::Status unknown = ask("nope");
  EXPECT_EQ(unknown.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(unknown.error_message(), "Request for unknown model : nope");
}

// The kernel's limit, less the terminating zero.
TEST_F(DaemonTest, PathsOfUnixSocketsHaveAtMost107Characters) {
  const fs::path folder = repository_.root.parent_path();
  ServerOptions options;
  const auto path_of = [&](size_t size) {
    return (folder / std::string(size - folder.string().size() - 1, 's')).string();
  };
  options.network.unix_socket = path_of(107);
  ASSERT_NO_THROW(start(options));
  EXPECT_TRUE(fs::is_socket(options.network.unix_socket));
  daemon_.reset();
  options.network.unix_socket = path_of(108);
  try {
    start(options);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_EQ(std::string(error.what()),
              concat("--grpc-unix-socket: ", options.network.unix_socket, " has more than 107 characters"));
  }
}

}  // namespace
}  // namespace tensord::server::daemon_test
