// Values of the C++ client, and its behavior when a server is briefly unavailable; no daemon is needed.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <tensord/client/client.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <limits>

#include "clients/cpp/src/message.h"
#include "protos/inference.grpc.pb.h"

namespace tensord::client {
namespace {

TEST(ClientNumbers, HalvesComeBack) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    Float16 half;
    half.bits = static_cast<uint16_t>(bits);
    BFloat16 brain;
    brain.bits = static_cast<uint16_t>(bits);
    const bool is_half_nan = (bits & 0x7fff) > 0x7c00;
    const bool is_brain_nan = (bits & 0x7fff) > 0x7f80;
    EXPECT_EQ(std::isnan(static_cast<float>(half)), is_half_nan);
    ASSERT_TRUE(is_half_nan || Float16(static_cast<float>(half)).bits == bits) << bits;
    ASSERT_TRUE(is_brain_nan || BFloat16(static_cast<float>(brain)).bits == bits) << bits;
  }
}

TEST(ClientNumbers, HalvesAreRounded) {
  // Between two neighbors: rounds to nearest, ties to even.
  for (uint32_t bits = 0; bits + 1 < 0x7c00; bits += 7) {
    Float16 low, high;
    low.bits = static_cast<uint16_t>(bits);
    high.bits = static_cast<uint16_t>(bits + 1);
    const float a = static_cast<float>(low), b = static_cast<float>(high);
    const float middle = a + (b - a) / 2;
    ASSERT_EQ(Float16(middle).bits, bits % 2 == 0 ? bits : bits + 1) << bits;
    ASSERT_EQ(Float16(std::nextafter(middle, 0.0f)).bits, bits) << bits;
    ASSERT_EQ(Float16(std::nextafter(middle, b)).bits, bits + 1) << bits;
    ASSERT_EQ(Float16(-middle).bits, Float16(middle).bits | 0x8000u);
  }
  EXPECT_EQ(Float16(65519.0f).bits, 0x7bff);
  EXPECT_EQ(Float16(65520.0f).bits, 0x7c00);
  EXPECT_EQ(Float16(std::numeric_limits<float>::infinity()).bits, 0x7c00);
  EXPECT_TRUE(std::isnan(static_cast<float>(Float16(std::numeric_limits<float>::quiet_NaN()))));
  EXPECT_EQ(BFloat16(std::bit_cast<float>(0x3f808000u)).bits, 0x3f80);
  EXPECT_EQ(BFloat16(std::bit_cast<float>(0x3f818000u)).bits, 0x3f82);
  EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(std::numeric_limits<float>::quiet_NaN()))));
}

TEST(ClientTensors, Strings) {
  const std::vector<std::string> values{"", "a", std::string(300, 'x'), std::string("\0b", 2)};
  const Tensor tensor = Tensor::strings(values, {2, 2});
  EXPECT_EQ(tensor.strings(), values);
  EXPECT_EQ(tensor.size_bytes(), 4 * 4 + 303u);
  const auto cut = tensor.bytes().first(tensor.size_bytes() - 1);
  EXPECT_THROW(Tensor::copy_bytes(DataType::kBytes, {2, 2}, cut).strings(), Error);
  EXPECT_THROW(Tensor::copy_bytes(DataType::kBytes, {5}, tensor.bytes()).strings(), Error);
  EXPECT_THROW(Tensor::strings(values, {3}), InvalidArgumentError);
}

TEST(ClientTensors, ShapesAndTypes) {
  EXPECT_EQ(parse_data_type("BF16"), DataType::kBf16);
  EXPECT_THROW(parse_data_type("FP8"), InvalidArgumentError);
  EXPECT_THROW(Tensor::take<float>({1}, {-1}), InvalidArgumentError);
  EXPECT_THROW(Tensor::take<float>({1}, {int64_t{1} << 40, int64_t{1} << 40}), InvalidArgumentError);
  EXPECT_EQ(Tensor::take<int64_t>({}, {0, int64_t{1} << 40}).element_count(), 0);
  EXPECT_EQ(Tensor::take<int64_t>({5}, {}).element_count(), 1);
}

// gRPC stores short slices inline, so nothing may point into them. Each message differs, so that reuse of released
// memory shows.
TEST(ClientTensors, PiecesOfAMessageAreNotOutlived) {
  std::vector<Result> results;
  for (size_t piece = 1; piece <= 30; ++piece) {
    for (size_t first = 1; first <= 48; ++first) {  // a long one: gRPC merges short ones
      const std::vector<int32_t> values(4, static_cast<int32_t>(results.size()));
      inference::ModelInferResponse response;
      auto& output = *response.add_outputs();
      output.set_name("a name of thirty characters...");
      output.set_datatype("INT32");
      output.add_shape(4);
      response.add_raw_output_contents(std::string(reinterpret_cast<const char*>(values.data()), 16));
      const std::string bytes = response.SerializeAsString();
      std::vector<grpc::Slice> slices;
      for (size_t at = 0; at < bytes.size();) {
        const size_t size = std::min(at == 0 ? first : piece, bytes.size() - at);
        slices.emplace_back(bytes.data() + at, size);
        at += size;
      }
      results.push_back(decode(grpc::ByteBuffer(slices.data(), slices.size()), {}));
    }
  }
  for (size_t i = 0; i < results.size(); ++i) {
    const auto found = results[i].output().values<int32_t>();
    EXPECT_EQ(std::vector<int32_t>(found.begin(), found.end()), std::vector<int32_t>(4, static_cast<int32_t>(i)));
  }
}

// Fails with UNAVAILABLE a few times, then succeeds, with typed contents as some servers send them.
class Unsteady : public inference::GRPCInferenceService::Service {
 public:
  grpc::Status ModelInfer(grpc::ServerContext* context, const inference::ModelInferRequest* request,
                          inference::ModelInferResponse* response) override {
    ++calls;
    marks.clear();
    const auto [first, last] = context->client_metadata().equal_range("mark");
    for (auto at = first; at != last; ++at) marks.emplace_back(at->second.data(), at->second.size());
    if (failures-- > 0) return {grpc::StatusCode::UNAVAILABLE, "in a moment"};
    response->set_model_name(request->model_name());
    auto& output = *response->add_outputs();
    output.set_name("y");
    output.set_datatype("INT16");
    output.add_shape(2);
    output.mutable_contents()->add_int_contents(-3);
    output.mutable_contents()->add_int_contents(static_cast<int>(request->raw_input_contents(0).size()));
    return grpc::Status::OK;
  }
  std::atomic<int> failures{0}, calls{0};
  std::vector<std::string> marks;  // values of that header in the last call
};

class ClientRetries : public ::testing::Test {
 protected:
  ClientRetries() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.SetMaxReceiveMessageSize(-1);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
  }
  Client client(int attempts) const {
    ClientOptions options;
    options.retry = {.max_attempts = attempts,
                     .initial_backoff = std::chrono::milliseconds(5),
                     .max_backoff = std::chrono::milliseconds(20)};
    return Client("127.0.0.1:" + std::to_string(port_), options);
  }
  static Request request(size_t bytes) {
    std::vector<uint8_t> values(bytes);
    return {.model = "m", .inputs = {{"x", Tensor::take(std::move(values), {static_cast<int64_t>(bytes)})}}};
  }

  Unsteady service_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

TEST_F(ClientRetries, UntilItWorks) {
  Client daemon = client(3);
  for (const size_t bytes : {size_t{100}, size_t{1} << 20}) {
    service_.failures = 2;
    service_.calls = 0;
    const Result result = daemon.infer(request(bytes));
    EXPECT_EQ(service_.calls, 3);
    EXPECT_EQ(result.output().values<int16_t>()[0], -3);
    EXPECT_EQ(result.output().values<int16_t>()[1], static_cast<int16_t>(bytes));
  }
  service_.failures = 3;
  EXPECT_THROW(daemon.infer(request(8)), UnavailableError);
  EXPECT_THROW(client(9), InvalidArgumentError);
}

// A call's header overrides the client's header of the same name.
TEST_F(ClientRetries, HeadersAreSentOnce) {
  ClientOptions options;
  options.headers = {{"mark", "client"}};
  Client daemon("127.0.0.1:" + std::to_string(port_), options);
  daemon.infer(request(8));
  EXPECT_EQ(service_.marks, std::vector<std::string>{"client"});
  daemon.infer(request(8), {.headers = {{"mark", "call"}}});
  EXPECT_EQ(service_.marks, std::vector<std::string>{"call"});
}

TEST_F(ClientRetries, NotWithoutAndNotForSequences) {
  service_.failures = 1;
  Client once = client(1);
  EXPECT_THROW(once.infer(request(8)), UnavailableError);
  Client thrice = client(3);
  Request of_sequence = request(8);
  of_sequence.sequence = {.id = std::string("s"), .is_start = true};
  service_.failures = 1;
  service_.calls = 0;
  EXPECT_THROW(thrice.infer(of_sequence), UnavailableError);
  EXPECT_EQ(service_.calls, 1);
  EXPECT_EQ(thrice.infer(of_sequence).outputs.size(), 1u);
}

}  // namespace
}  // namespace tensord::client
