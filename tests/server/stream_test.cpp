// ModelStreamInfer of the daemon in this process, called through gRPC's own client.
#include <gmock/gmock.h>

#include <thread>

#include "tests/server/daemon_fixture.h"

namespace tensord::server::stream_test {
namespace {

using grpc::StatusCode;
using inference::ModelInferRequest;
using inference::ModelStreamInferResponse;

constexpr const char* kDecoupled = "model_transaction_policy { decoupled: true }";

class StreamTest : public fixtures::DaemonFixture {
 protected:
  // One stream; the destructor ends it and checks its status unless the test has done so.
  struct Stream {
    explicit Stream(inference::GRPCInferenceService::Stub& stub, const char* header = nullptr) {
      if (header) context.AddMetadata(header, "true");
      context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(200));
      call = stub.ModelStreamInfer(&context);
    }
    ModelStreamInferResponse read() {
      ModelStreamInferResponse response;
      EXPECT_TRUE(call->Read(&response));
      return response;
    }
    // Reads the rest, until the server ends the stream.
    grpc::Status finish() {
      ModelStreamInferResponse response;
      call->WritesDone();
      while (call->Read(&response)) ++unread;
      return call->Finish();
    }
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReaderWriter<ModelInferRequest, ModelStreamInferResponse>> call;
    int unread = 0;
  };

  static bool is_final(const ModelStreamInferResponse& response) {
    return response.infer_response().parameters().at("triton_final_response").bool_param();
  }
  // A request for `model` that asks for an empty final response.
  static ModelInferRequest with_empty_final(ModelInferRequest request) {
    (*request.mutable_parameters())["triton_enable_empty_final_response"].set_bool_param(true);
    return request;
  }
};

TEST_F(StreamTest, AnswersInTheOrderOfTheRequests) {
  repository_.add("slow", 1, "sleepy");
  repository_.add("quick", 3, "identity");
  start();
  Stream stream(*stub_);
  stream.call->Write(request("slow", "abc", "1"));
  for (const char* id : {"2", "3"}) stream.call->Write(request("quick", std::string(10000, 'q'), id));
  for (const char* id : {"1", "2", "3"}) {
    const ModelStreamInferResponse response = stream.read();
    EXPECT_EQ(response.error_message(), "");
    EXPECT_EQ(response.infer_response().id(), id);
    EXPECT_TRUE(is_final(response));
    ASSERT_EQ(response.infer_response().raw_output_contents_size(), 1);
    EXPECT_EQ(response.infer_response().raw_output_contents(0), *id == '1' ? "abc" : std::string(10000, 'q'));
    EXPECT_EQ(response.infer_response().model_version(), *id == '1' ? "1" : "3");
  }
  EXPECT_TRUE(stream.finish().ok());
  EXPECT_EQ(stream.unread, 0);
}

TEST_F(StreamTest, AnswersWhatWasSentBeforeTheClientsEnd) {
  repository_.add("slow", 1, "sleepy");
  start();
  Stream stream(*stub_);
  for (int i = 0; i < 3; ++i) stream.call->Write(request("slow", "a"));
  EXPECT_TRUE(stream.finish().ok());
  EXPECT_EQ(stream.unread, 3);
}

TEST_F(StreamTest, AStreamWithoutRequestsEndsWell) {
  repository_.add("quick", 1, "identity");
  start();
  Stream stream(*stub_);
  EXPECT_TRUE(stream.finish().ok());
}

TEST_F(StreamTest, ErrorsAreMessagesAndTheStreamGoesOn) {
  repository_.add("quick", 1, "identity");
  start();
  Stream stream(*stub_);
  stream.call->Write(request("missing", "a", "1"));
  ModelInferRequest malformed = request("quick", "a", "2");
  malformed.mutable_inputs(0)->set_shape(0, 5);
  stream.call->Write(malformed);
  stream.call->Write(request("quick", "a", "3"));
  ModelStreamInferResponse response = stream.read();
  EXPECT_EQ(response.error_message(), "Request for unknown model: 'missing' is not found");
  EXPECT_EQ(response.infer_response().id(), "1");
  EXPECT_EQ(response.infer_response().model_name(), "missing");
  EXPECT_TRUE(is_final(response));
  response = stream.read();
  EXPECT_THAT(response.error_message(), ::testing::HasSubstr("Expected 5, got 1"));
  EXPECT_EQ(response.infer_response().id(), "2");
  EXPECT_EQ(stream.read().error_message(), "");
  EXPECT_TRUE(stream.finish().ok());
}

TEST_F(StreamTest, AHeaderMakesTheFirstErrorTheEnd) {
  repository_.add("quick", 1, "identity");
  start();
  Stream stream(*stub_, "triton_grpc_error");
  stream.call->Write(request("quick", "a"));
  EXPECT_EQ(stream.read().error_message(), "");
  stream.call->Write(request("missing", "a"));
  const grpc::Status status = stream.finish();
  EXPECT_EQ(status.error_code(), StatusCode::NOT_FOUND);
  EXPECT_EQ(status.error_message(), "Request for unknown model: 'missing' is not found");
  EXPECT_EQ(stream.unread, 0);
}

TEST_F(StreamTest, DecoupledModelsAnswerAnyNumberOfTimes) {
  repository_.add("repeat", 1, "repeat", kDecoupled);
  start();
  Stream stream(*stub_);
  stream.call->Write(request("repeat", "abc", "1"));
  for (const char value : {'a', 'b', 'c'}) {
    const ModelStreamInferResponse response = stream.read();
    EXPECT_EQ(response.infer_response().id(), "1");
    EXPECT_EQ(response.infer_response().raw_output_contents(0), std::string(1, value));
    EXPECT_EQ(is_final(response), value == 'c');
  }
  // A request without responses is silent, unless the client asks for the final one.
  stream.call->Write(request("repeat", "", "2"));
  stream.call->Write(with_empty_final(request("repeat", "", "3")));
  const ModelStreamInferResponse last = stream.read();
  EXPECT_EQ(last.infer_response().id(), "3");
  EXPECT_EQ(last.infer_response().outputs_size(), 0);
  EXPECT_TRUE(is_final(last));
  EXPECT_TRUE(stream.finish().ok());
  EXPECT_EQ(stream.unread, 0);
}

TEST_F(StreamTest, UnaryCallsOfDecoupledModelsAreUnimplemented) {
  repository_.add("repeat", 1, "repeat", kDecoupled);
  start();
  inference::ModelInferResponse response;
  const grpc::Status status = infer(request("repeat", "abc"), &response);
  EXPECT_EQ(status.error_code(), StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(status.error_message(), "ModelInfer RPC doesn't support models with decoupled transaction policy");
}

TEST_F(StreamTest, ReadsNoMoreThanItMayHaveUnderWay) {
  repository_.add("slow", 1, "sleepy");
  ServerOptions options;
  options.max_queue_size = 1;
  options.infer.stream_max_requests = 1;
  start(options);
  Stream stream(*stub_);
  // Two more beside the running one would find the queue full.
  for (int i = 0; i < 5; ++i) stream.call->Write(request("slow", "a"));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(stream.read().error_message(), "");
  EXPECT_TRUE(stream.finish().ok());
}

// The gate is never opened: the running request stops, and the queued one does not run.
TEST_F(StreamTest, CancellingStopsWhatRuns) {
  repository_.add("gated", 1, "gated");
  start();
  {
    Stream stream(*stub_);
    for (int i = 0; i < 20; ++i) stream.call->Write(request("gated", "a"));
    gate_.wait_for(1);
    stream.context.TryCancel();
    EXPECT_EQ(stream.finish().error_code(), StatusCode::CANCELLED);
  }
  daemon_->stop(60'000);
  EXPECT_LT(gate_.entered(), 20);
}

TEST_F(StreamTest, AShutdownAnswersWhatIsUnderWay) {
  repository_.add("gated", 1, "gated");
  start();
  Stream idle(*stub_);
  Stream busy(*stub_);
  busy.call->Write(request("gated", "a"));
  gate_.wait_for(1);
  std::thread stopper([this] { daemon_->stop(60'000); });
  gate_.open();
  EXPECT_EQ(busy.read().error_message(), "");
  for (Stream* stream : {&idle, &busy}) {
    ModelStreamInferResponse response;
    EXPECT_FALSE(stream->call->Read(&response));
    EXPECT_EQ(stream->call->Finish().error_code(), StatusCode::UNAVAILABLE);
  }
  stopper.join();
}

// A stream with a request in progress still reads when the server stops.
TEST_F(StreamTest, AShutdownTakesNoMoreFromAStreamThatReads) {
  repository_.add("gated", 1, "gated");
  repository_.add("quick", 1, "identity");
  start();
  Stream idle(*stub_);
  Stream busy(*stub_);
  busy.call->Write(request("gated", "a", "1"));
  gate_.wait_for(1);
  std::thread stopper([this] { daemon_->stop(60'000); });
  ModelStreamInferResponse response;
  EXPECT_FALSE(idle.call->Read(&response));  // the stop has begun
  busy.call->Write(request("quick", "b", "2"));
  gate_.open();
  EXPECT_EQ(busy.read().error_message(), "");
  if (busy.call->Read(&response)) {
    EXPECT_THAT(response.error_message(), ::testing::HasSubstr("shutting down"));
    EXPECT_EQ(response.infer_response().id(), "2");
    EXPECT_FALSE(busy.call->Read(&response));
  }
  EXPECT_EQ(busy.call->Finish().error_code(), StatusCode::UNAVAILABLE);
  stopper.join();
}

// A client that sends and does not read is no longer read from once about 64 MB of responses wait.
TEST_F(StreamTest, UnreadAnswersHoldBackWhatIsSent) {
  repository_.add("gated", 1, "gated");
  gate_.open();  // it only counts
  start();
  Stream stream(*stub_);
  constexpr int kRequests = 48;
  std::thread writer([&stream] {
    const ModelInferRequest message = request("gated", std::string(4 << 20, 'x'));
    for (int i = 0; i < kRequests; ++i) stream.call->Write(message);
    stream.call->WritesDone();
  });
  gate_.wait_for(16);
  // Until nothing has arrived for half a second. On a busy machine this may be early, which only weakens the test.
  for (int seen = -1; seen != gate_.entered();) {
    seen = gate_.entered();
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }
  EXPECT_LT(gate_.entered(), 24);
  EXPECT_TRUE([&] {
    ModelStreamInferResponse response;
    while (stream.call->Read(&response)) ++stream.unread;
    return stream.call->Finish().ok();
  }());
  writer.join();
  EXPECT_EQ(stream.unread, kRequests);
}

// Responses of a decoupled model cannot be throttled: the stream ends once about 256 MB wait.
TEST_F(StreamTest, AnswersThatNobodyReadsEndTheStream) {
  repository_.add("flood", 1, "flood", kDecoupled);
  start();
  Stream deaf(*stub_);
  constexpr int kResponses = 120;
  deaf.call->Write(request("flood", std::string(4 << 20, static_cast<char>(kResponses))));
  Stream next(*stub_);
  next.call->Write(request("flood", std::string(1, '\1')));
  next.read();  // the only worker has sent the first response
  EXPECT_TRUE(next.finish().ok());
  // The client reads now and learns the reason.
  const grpc::Status ended = deaf.finish();
  EXPECT_EQ(ended.error_code(), StatusCode::RESOURCE_EXHAUSTED) << ended.error_message();
  EXPECT_THAT(ended.error_message(), ::testing::HasSubstr("wait for the client to read them"));
  EXPECT_LT(deaf.unread, kResponses);
}

TEST_F(StreamTest, ManyStreamsSideBySide) {
  repository_.add("quick", 1, "identity");
  repository_.add("repeat", 1, "repeat", kDecoupled);
  start();
  std::vector<std::thread> clients;
  std::atomic<int> good{0};
  for (int client = 0; client < 8; ++client) {
    clients.emplace_back([this, &good] {
      Stream stream(*stub_);
      std::thread writer([&stream] {
        for (int i = 0; i < 200; ++i) {
          stream.call->Write(i % 2 ? request("quick", std::to_string(i), std::to_string(i)) : request("repeat", "abc"));
        }
        stream.call->WritesDone();
      });
      ModelStreamInferResponse response;
      int ordered = -1, repeated = 0;
      while (stream.call->Read(&response)) {
        const auto& answer = response.infer_response();
        if (answer.model_name() == "repeat") {
          ++repeated;
        } else if (answer.raw_output_contents(0) == answer.id() && std::stoi(answer.id()) == ordered + 2) {
          ordered += 2;
        }
      }
      writer.join();
      if (stream.call->Finish().ok() && ordered == 199 && repeated == 300) ++good;
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(good, 8);
}

}  // namespace
}  // namespace tensord::server::stream_test
