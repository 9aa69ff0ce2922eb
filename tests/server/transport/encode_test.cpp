// Responses of the hand-written encoder, checked with protobuf's own parser.
#include <gtest/gtest.h>

#include <climits>
#include <cstring>

#include "protos/inference.pb.h"
#include "server/transport/infer/encode.h"
#include "tests/server/error_of.h"

namespace tensord::server::encode_test {
namespace {

TEST(Encode, ProtobufReadsIt) {
  std::vector<InferTensor> outputs(3);
  outputs[0].name = "small";
  outputs[0].shape = {2};
  outputs[0].tensor = Tensor::empty(Dims{2}, DType::kFloat32);
  outputs[0].tensor.data<float>()[0] = 1;
  outputs[0].tensor.data<float>()[1] = 2;
  outputs[1].name = "large";
  outputs[1].datatype = DataType::kInt8;
  outputs[1].shape = {100, 100};
  outputs[1].tensor = Tensor::empty(Dims{100, 100}, DType::kInt8);
  std::memset(outputs[1].tensor.raw_data(), 3, 10000);
  outputs[2].name = "texts";
  outputs[2].datatype = DataType::kBytes;
  outputs[2].shape = {2};
  outputs[2].strings = {"a", "bc"};
  const EncodedResponse encoded = encode_response({"m", "1", "id", {}}, outputs);
  std::string bytes;
  for (const auto& [head, payload] : encoded.pieces) {
    bytes += head;
    if (payload.defined()) {
      EXPECT_EQ(payload.raw_data(), outputs[1].tensor.raw_data());
      bytes.append(static_cast<const char*>(payload.raw_data()), payload.size_bytes());
    }
  }
  EXPECT_EQ(bytes.size(), encoded.size_bytes);
  inference::ModelInferResponse response;
  ASSERT_TRUE(response.ParseFromString(bytes));
  EXPECT_EQ(response.model_name(), "m");
  EXPECT_EQ(response.model_version(), "1");
  EXPECT_EQ(response.id(), "id");
  ASSERT_EQ(response.outputs_size(), 3);
  EXPECT_EQ(response.outputs(1).datatype(), "INT8");
  EXPECT_EQ(response.outputs(1).shape(1), 100);
  ASSERT_EQ(response.raw_output_contents_size(), 3);
  EXPECT_EQ(response.raw_output_contents(0).size(), 8u);
  EXPECT_EQ(response.raw_output_contents(1), std::string(10000, '\3'));
  EXPECT_EQ(response.raw_output_contents(2), std::string("\1\0\0\0a\2\0\0\0bc", 11));
}

TEST(Encode, WithoutAName) {
  std::vector<InferTensor> outputs(1);
  outputs[0].shape = {1};
  outputs[0].tensor = Tensor::empty(Dims{1}, DType::kFloat32);
  outputs[0].tensor.data<float>()[0] = 1;
  const EncodedResponse encoded = encode_response({"", "", "", {}}, outputs);
  std::string bytes;
  for (const auto& [head, payload] : encoded.pieces) bytes += head;
  inference::ModelInferResponse response;
  ASSERT_TRUE(response.ParseFromString(bytes));
  ASSERT_EQ(response.outputs_size(), 1);
  EXPECT_EQ(response.outputs(0).name(), "");
  EXPECT_EQ(response.outputs(0).datatype(), "FP32");
  EXPECT_EQ(response.outputs(0).shape(0), 1);
  EXPECT_EQ(response.raw_output_contents(0).size(), sizeof(float));
}

TEST(Encode, CopiesOnlyWhatIsTiny) {
  std::vector<InferTensor> outputs(2);
  outputs[0].shape = {250};
  outputs[0].tensor = Tensor::empty(Dims{250}, DType::kFloat32);
  outputs[1].shape = {2};
  outputs[1].tensor = Tensor::empty(Dims{2}, DType::kFloat32);
  const EncodedResponse encoded = encode_response({"m", "1", "", {}}, outputs);
  EXPECT_EQ(encoded.copied_bytes, 8u);
  ASSERT_EQ(encoded.pieces.size(), 2u);
  EXPECT_EQ(encoded.pieces[0].payload.raw_data(), outputs[0].tensor.raw_data());
  EXPECT_FALSE(encoded.pieces[1].payload.defined());
  for (const int64_t bytes : {0, 511, 512, 513}) {
    std::vector<InferTensor> one(1);
    one[0].datatype = DataType::kInt8;
    one[0].shape = {bytes};
    one[0].tensor = Tensor::empty(Dims{bytes}, DType::kInt8);
    EXPECT_EQ(encode_response({"m", "1", "", {}}, one).copied_bytes, bytes <= 512 ? bytes : 0) << bytes;
  }
}

// Names of all lengths, whose sizes take one byte or two.
TEST(Encode, LengthsAreWrittenWhole) {
  for (const size_t length : {127u, 128u, 129u, 16383u, 16384u}) {
    std::vector<InferTensor> outputs(1);
    outputs[0].name = std::string(length, 'n');
    outputs[0].datatype = DataType::kBytes;
    outputs[0].strings = {std::string(length - 4, 't')};
    const EncodedResponse encoded = encode_response({std::string(length, 'm'), "1", "", {}}, outputs);
    inference::ModelInferResponse response;
    ASSERT_TRUE(response.ParseFromString(encoded.pieces.at(0).head)) << length;
    EXPECT_EQ(response.model_name().size(), length);
    EXPECT_EQ(response.outputs(0).name().size(), length);
    EXPECT_EQ(response.raw_output_contents(0).size(), length);
  }
}

// The largest message that gRPC can send, and one byte more: with tensors, with the header, with a stream's additions.
// The tensors' memory is never touched, so it is not allocated.
TEST(Encode, NoMoreThanGrpcCanSend) {
  const auto encode = [](int64_t bytes) {
    std::vector<InferTensor> outputs(1);
    outputs[0].datatype = DataType::kInt8;
    outputs[0].shape = {bytes};
    outputs[0].tensor = Tensor::empty(Dims{bytes}, DType::kInt8);
    return encode_response({"m", "1", "", {}}, outputs);
  };
  const auto refusal = [](const auto& call) { return std::string(error_of(call).what()); };
  const int64_t head = static_cast<int64_t>(encode(INT_MAX - 1000).size_bytes) - (INT_MAX - 1000);
  EncodedResponse most = encode(INT_MAX - head);
  EXPECT_EQ(most.size_bytes, uint64_t{INT_MAX});
  EXPECT_EQ(refusal([&] { wrap_for_stream(most); }),
            concat("Response has byte size ", int64_t{INT_MAX} + 6, " which exceeds the limit of gRPC, 2147483647"));
  for (const int64_t more : {int64_t{1}, head}) {
    EXPECT_EQ(refusal([&] { encode(INT_MAX - head + more); }),
              concat("Response has byte size ", INT_MAX + more, " which exceeds the limit of gRPC, 2147483647"));
  }
  EXPECT_EQ(refusal([&] { encode(int64_t{INT_MAX} + 1); }),
            "Response has byte size 2147483648 which exceeds the limit of gRPC, 2147483647");
}

// Clients would not treat an empty message as an error.
TEST(Encode, AnErrorOfAStreamHasAMessage) {
  for (const std::string message : {"", "what failed"}) {
    const EncodedResponse encoded = encode_stream_error(message, {"m", "1", "id", {}});
    inference::ModelStreamInferResponse response;
    ASSERT_TRUE(response.ParseFromString(encoded.pieces.at(0).head));
    EXPECT_EQ(response.error_message(), message.empty() ? "the request failed" : message);
    EXPECT_EQ(response.infer_response().id(), "id");
  }
}

}  // namespace
}  // namespace tensord::server::encode_test
