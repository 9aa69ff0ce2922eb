#include "server/transport/calls/training_batch.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "protos/training.pb.h"

namespace tensord::server::training_batch_test {
namespace {

std::string message_bytes() {
  training::v1::StreamDataRequest message;
  message.set_job_id("job-1");
  message.set_batch(7);
  message.set_complete(true);
  for (const char* name : {"x", "y"}) {
    auto* input = message.add_inputs();
    input->set_name(name);
    input->set_datatype(*name == 'x' ? "FP32" : "INT64");
    input->add_shape(2);
  }
  message.add_raw_input_contents(std::string("\0\0\x80\x3f\0\0\0\x40", 8));
  message.add_raw_input_contents(std::string(16, '\0'));
  return message.SerializeAsString();
}

WireMessage wire(const std::string& bytes, size_t size) {
  WireMessage message;
  message.add_piece({reinterpret_cast<const uint8_t*>(bytes.data()), size});
  return message;
}

TEST(TrainingBatchTest, Reads) {
  const std::string bytes = message_bytes();
  const WireMessage message = wire(bytes, bytes.size());
  const TrainingBatch batch = parse_training_batch(message);
  EXPECT_EQ(batch.job_id, "job-1");
  EXPECT_EQ(batch.number, 7);
  EXPECT_TRUE(batch.is_complete);
  const auto arrays = decode_training_batch(batch, message);
  ASSERT_EQ(arrays.size(), 2u);
  EXPECT_EQ(arrays[0].first, "x");
  EXPECT_EQ(arrays[0].second.data<float>()[1], 2.0f);
  EXPECT_EQ(arrays[1].second.dtype(), DType::kInt64);
}

// Fields of newer clients are skipped; impossible values are refused.
TEST(TrainingBatchTest, NumbersAndEndsAreVarints) {
  const auto parse = [](const std::string& bytes) { return parse_training_batch(wire(bytes, bytes.size())); };
  EXPECT_EQ(parse("\x40\x05").number, 5);
  EXPECT_TRUE(parse("\x48\x01").is_complete);
  EXPECT_FALSE(parse("\x45"
                     "abcd")
                   .number);
  EXPECT_FALSE(parse("\x4d"
                     "abcd")
                   .is_complete);
  EXPECT_THROW(parse("\x40" + std::string(9, '\xff') + "\x01"), Error);
}

TEST(TrainingBatchTest, TextsCannotBeTrainedOn) {
  training::v1::StreamDataRequest message;
  auto* input = message.add_inputs();
  input->set_name("x");
  input->set_datatype("BYTES");
  input->add_shape(1);
  message.add_raw_input_contents(std::string("\1\0\0\0a", 5));
  const std::string bytes = message.SerializeAsString();
  const WireMessage whole = wire(bytes, bytes.size());
  EXPECT_THROW(decode_training_batch(parse_training_batch(whole), whole), Error);
}

TEST(TrainingBatchTest, ACutMessageIsRefusedOrWhole) {
  const std::string bytes = message_bytes();
  for (size_t size = 0; size < bytes.size(); ++size) {
    const WireMessage message = wire(bytes, size);
    try {
      const TrainingBatch batch = parse_training_batch(message);
      for (const auto& [name, tensor] : decode_training_batch(batch, message)) EXPECT_EQ(tensor.numel(), 2);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    }
  }
}

TEST(TrainingBatchTest, ChangedBytesNeverCrash) {
  const std::string bytes = message_bytes();
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (const unsigned char value : {0x00, 0x01, 0x7f, 0x80, 0xff}) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(value);
      const WireMessage message = wire(changed, changed.size());
      try {
        decode_training_batch(parse_training_batch(message), message);
      } catch (const Error&) {
      }
    }
  }
}

}  // namespace
}  // namespace tensord::server::training_batch_test
