// Inputs at the limits of each way to read them: in pieces, in shared memory, on a GPU.
#include <gmock/gmock.h>

#include <climits>
#include <cstring>

#include "protos/inference.pb.h"
#include "server/transport/infer/decode.h"
#include "server/transport/infer/outputs.h"
#include "tests/server/error_of.h"
#include "tests/server/fake_models.h"

namespace tensord::server::decode_bounds_test {
namespace {

using ::testing::HasSubstr;

// Memory that the CPU cannot access; of any size, since it only has zeros.
class Unseen final : public SharedRegion {
 public:
  const std::string& name() const override { return name_; }
  uint64_t size_bytes() const override { return UINT64_MAX; }
  uint8_t* data() const override { return nullptr; }
  bool is_lost() const override { return false; }
  Origin origin() const override { return {}; }
  void read(uint64_t, void* to, uint64_t count) const override { std::memset(to, 0, count); }
  void write(uint64_t, const void*, uint64_t) const override {}

 private:
  const std::string name_ = "r";
};

SharedRange unseen(uint64_t size_bytes) {
  return {.region = std::make_shared<Unseen>(), .offset = 0, .data = nullptr, .size_bytes = size_bytes};
}

inference::ModelInferRequest request_of(const std::string& datatype, int64_t count) {
  inference::ModelInferRequest request;
  request.set_model_name("m");
  auto* input = request.add_inputs();
  input->set_name("x");
  input->set_datatype(datatype);
  input->add_shape(count);
  return request;
}

InferTensor decode(const inference::ModelInferRequest& request, size_t piece_bytes, const DecodeOptions& options) {
  const std::string bytes = request.SerializeAsString();
  auto pieces = std::make_shared<std::vector<std::string>>();
  for (size_t at = 0; at < bytes.size(); at += piece_bytes) pieces->push_back(bytes.substr(at, piece_bytes));
  WireMessage wire;
  for (const std::string& piece : *pieces) {
    wire.add_piece({reinterpret_cast<const uint8_t*>(piece.data()), piece.size()});
  }
  wire.owner = pieces;
  Signature signature = fixtures::signature_of({"x"}, {"OUTPUT__0"});
  signature.inputs[0].takes_bytes = request.inputs(0).datatype() == "BYTES";
  return decode_inputs(parse_infer_message(wire), wire, signature, options).inputs.at(0);
}

TEST(DecodeBounds, LargeTensorsInPiecesNeedNoCores) {
  inference::ModelInferRequest request = request_of("INT8", 5'000'003);
  request.add_raw_input_contents(std::string(5'000'003, 'x'));
  const InferTensor input = decode(request, 100'000, {});
  EXPECT_EQ(std::string_view(static_cast<const char*>(input.tensor.raw_data()), 5'000'003),
            request.raw_input_contents(0));
}

// Empty tensors have no pieces, and bools are validated.
TEST(DecodeBounds, NotEverythingIsLeftInPieces) {
  inference::ModelInferRequest none = request_of("INT8", 0), flags = request_of("BOOL", 40);
  none.add_raw_input_contents("");
  flags.add_raw_input_contents(std::string(40, '\2'));
  const InferTensor of_none = decode(none, 7, {.may_scatter = true});
  EXPECT_EQ(of_none.scattered, nullptr);
  EXPECT_EQ(of_none.tensor.numel(), 0);
  const InferTensor of_flags = decode(flags, 7, {.may_scatter = true});
  EXPECT_EQ(of_flags.scattered, nullptr);
  ASSERT_EQ(of_flags.tensor.numel(), 40);
  EXPECT_EQ(static_cast<const uint8_t*>(of_flags.tensor.raw_data())[39], 1);
}

// Huge shared memory costs a client nothing, so no more of it is copied than a message could contain.
TEST(DecodeBounds, NoMoreIsCopiedThanAMessageCouldHave) {
  const int64_t limit = int64_t{1} << 31;
  const std::pair<const char*, int64_t> rows[] = {
      {"BYTES", 1}, {"UINT64", limit / 8}, {"INT32", limit / 4}, {"BOOL", limit}, {"FP32", limit / 4}};
  for (const auto& [datatype, count] : rows) {
    const auto outcome = [&] {
      return std::string(
          error_of([&] { decode(request_of(datatype, count), 1 << 20, {.ranges = {unseen(limit)}}); }).what());
    };
    EXPECT_THAT(outcome(), HasSubstr("has 2147483648 bytes in shared memory; ")) << datatype;
  }
  // At the maximum size; the resulting strings exceed the limit here.
  RequestLimits limits(0, 1 << 20);
  RequestLimits::Admission admission = limits.hold(0);
  EXPECT_THAT(error_of([&] {
                decode(request_of("BYTES", INT_MAX), 1 << 20, {.ranges = {unseen(INT_MAX)}, .admission = &admission});
              }).what(),
              HasSubstr("takes no more"));
}

TEST(DecodeBounds, WhatLiesOnAGpuIsCopied) {
  const InferTensor input = decode(request_of("FP32", 4), 1 << 20, {.ranges = {unseen(16)}});
  EXPECT_FALSE(input.is_shared);
  EXPECT_EQ(input.tensor.data<float>()[3], 0);
  OutputPlan plan;
  plan.outputs.emplace_back();
  plan.outputs.back().name = "OUTPUT__0";
  plan.outputs.back().range = unseen(16);
  EXPECT_TRUE(output_places(plan).empty());
}

}  // namespace
}  // namespace tensord::server::decode_bounds_test
