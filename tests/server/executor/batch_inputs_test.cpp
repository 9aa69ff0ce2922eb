#include "server/executor/strategies/batch_inputs.h"

#include <gtest/gtest.h>

#include <cstring>

#include "core/base/error.h"

namespace tensord::server::batch_inputs_test {
namespace {

class Random {
 public:
  int64_t below(int64_t limit) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int64_t>((state_ >> 33) % static_cast<uint64_t>(limit));
  }

 private:
  uint64_t state_ = 1;
};

Signature one_input(bool is_open_output) {
  Signature signature;
  signature.max_batch_size = 64;
  signature.inputs.resize(1);
  signature.inputs[0].name = "x";
  signature.outputs.resize(1);
  signature.outputs[0].name = "x";
  if (!is_open_output) signature.outputs[0].shape = Dims{-1, 3};
  return signature;
}

ModelConfig ragged_config(std::vector<int64_t> buckets = {}, double padding = -1) {
  ModelConfig config;
  config.max_batch_size = 64;
  config.inputs.resize(1);
  config.inputs[0].name = "x";
  config.inputs[0].allows_ragged_batch = true;
  config.ragged = {padding, std::move(buckets)};
  return config;
}

// Counts up from `start`, in one piece or, with `scatter`, in pieces of random sizes.
InferRequest make_request(const Dims& shape, int32_t start, Random* scatter = nullptr) {
  auto values = std::make_shared<std::vector<int32_t>>(static_cast<size_t>(checked_numel(shape)));
  for (size_t i = 0; i < values->size(); ++i) (*values)[i] = start + static_cast<int32_t>(i);
  InferTensor input;
  input.name = "x";
  input.datatype = DataType::kInt32;
  input.shape = shape;
  if (scatter != nullptr) {
    auto scattered = std::make_shared<ScatteredBytes>();
    const auto* bytes = reinterpret_cast<const uint8_t*>(values->data());
    for (size_t left = values->size() * sizeof(int32_t); left > 0;) {
      const size_t part = 1 + static_cast<size_t>(scatter->below(static_cast<int64_t>(left)));
      scattered->pieces.push_back({bytes, part});
      bytes += part;
      left -= part;
    }
    scattered->owner = values;
    input.scattered = scattered;
  } else {
    input.tensor = Tensor::empty(shape, DType::kInt32);
    if (!values->empty()) std::memcpy(input.tensor.raw_data(), values->data(), values->size() * sizeof(int32_t));
  }
  InferRequest request;
  request.batch_size = shape[0];
  request.inputs = {input};
  request.input_indices = {0};
  return request;
}

void expect_counts_up(const Tensor& tensor, const Dims& shape, int32_t start) {
  EXPECT_EQ(tensor.sizes(), shape);
  const Tensor whole = tensor.contiguous();
  for (int64_t i = 0; i < whole.numel(); ++i) {
    ASSERT_EQ(whole.data<int32_t>()[i], start + static_cast<int32_t>(i)) << "element " << i;
  }
}

// With an identity model each request gets its own input back, for any shapes, padding and pieces; a single request is
// passed through.
TEST(BatchInputs, GivesEachRequestItsOwnBack) {
  Random random;
  for (int round = 0; round < 300; ++round) {
    const bool is_ragged = random.below(2) == 1;
    const auto config = is_ragged
                            ? ragged_config(random.below(2) == 1 ? std::vector<int64_t>{4, 8} : std::vector<int64_t>())
                            : ModelConfig();
    const Signature signature = one_input(/*is_open_output=*/true);
    const RaggedRules rules(signature, config);
    Dims shape{1};
    // Several padded dimensions of one size would be indistinguishable, so only one is ragged here.
    const int64_t inner = random.below(3);
    if (is_ragged) shape.push_back(0);
    for (int64_t i = 0; i < inner && !is_ragged; ++i) shape.push_back(1 + random.below(4));
    std::vector<InferRequest> requests;
    std::vector<Dims> shapes;
    std::vector<int32_t> starts;
    std::vector<InferRequest*> pointers;
    for (int64_t i = 1 + random.below(5); i > 0; --i) {
      shape[0] = 1 + random.below(3);
      if (is_ragged) shape[1] = random.below(9);
      shapes.push_back(shape);
      starts.push_back(static_cast<int32_t>(1000 * i));
      requests.push_back(make_request(shape, starts.back(), random.below(2) == 1 ? &random : nullptr));
    }
    for (InferRequest& request : requests) pointers.push_back(&request);
    const BatchInputs batch(signature, rules, pointers);
    const InferTensor* input = batch.inputs()[0];
    ASSERT_EQ(input->shape[0], batch.rows());
    ASSERT_EQ(input->shape, input->tensor.sizes());
    const auto answers = batch.split({*input}, signature);
    for (size_t i = 0; i < shapes.size(); ++i) {
      expect_counts_up(answers[i].at(0).tensor, shapes[i], starts[i]);
      const BatchInputs alone = batch.alone(i);
      expect_counts_up(alone.inputs()[0]->tensor, shapes[i], starts[i]);
      EXPECT_EQ(alone.inputs()[0]->shape, shapes[i]);
      EXPECT_TRUE(requests[i].inputs.empty());
    }
  }
}

TEST(BatchInputs, PadsEveryDimensionAtItsEnd) {
  const Signature signature = one_input(true);
  const RaggedRules rules(signature, ragged_config());
  InferRequest tall = make_request({1, 2, 1}, 1), wide = make_request({1, 1, 3}, 5);
  InferRequest* requests[] = {&tall, &wide};
  const BatchInputs batch(signature, rules, requests);
  const Tensor& tensor = batch.inputs()[0]->tensor;
  EXPECT_EQ(tensor.sizes(), (Dims{2, 2, 3}));
  const std::vector<int32_t> values(tensor.data<int32_t>(), tensor.data<int32_t>() + tensor.numel());
  EXPECT_EQ(values, (std::vector<int32_t>{1, -1, -1, 2, -1, -1, 5, 6, 7, -1, -1, -1}));
}

TEST(BatchInputs, DoesNotCutWhatTheConfigurationFixes) {
  const Signature signature = one_input(/*is_open_output=*/false);
  const RaggedRules rules(signature, ragged_config());
  InferRequest shorter = make_request({1, 1}, 1), longer = make_request({1, 3}, 5);
  InferRequest* requests[] = {&shorter, &longer};
  const BatchInputs batch(signature, rules, requests);
  const auto answers = batch.split({*batch.inputs()[0]}, signature);
  EXPECT_EQ(answers[0].at(0).shape, (Dims{1, 3}));
}

TEST(BatchInputs, RefusesPaddingThatTheTypeCannotHold) {
  const Signature signature = one_input(true);
  const RaggedRules rules(signature, ragged_config({}, 1e10));
  InferRequest shorter = make_request({1, 1}, 1), longer = make_request({1, 3}, 5);
  InferRequest* requests[] = {&shorter, &longer};
  EXPECT_THROW(BatchInputs(signature, rules, requests), Error);
}

TEST(BatchInputs, PaddingAtTheEndsOfAType) {
  const auto is_refused = [](DType dtype, double padding) {
    const Signature signature = one_input(true);
    const RaggedRules rules(signature, ragged_config({4}, padding));
    InferRequest request;
    request.batch_size = 1;
    InferTensor& input = request.inputs.emplace_back();
    input.datatype = from_dtype(dtype);
    input.shape = {1, 3};
    input.tensor = Tensor::empty(input.shape, dtype);
    request.input_indices = {0};
    InferRequest* requests[] = {&request};
    try {
      const BatchInputs batch(signature, rules, requests);
      const Tensor padded = batch.inputs()[0]->tensor;
      EXPECT_EQ(padded.sizes(), (Dims{1, 4}));
      return padded.to(DType::kFloat64).contiguous().data<double>()[3] != padding;
    } catch (const Error&) {
      return true;
    }
  };
  for (const double fits : {-128.0, 0.0, 127.0}) EXPECT_FALSE(is_refused(DType::kInt8, fits)) << fits;
  for (const double beyond : {-129.0, 128.0}) EXPECT_TRUE(is_refused(DType::kInt8, beyond)) << beyond;
  for (const double fits : {0.0, 255.0}) EXPECT_FALSE(is_refused(DType::kUInt8, fits)) << fits;
  for (const double beyond : {-1.0, 256.0}) EXPECT_TRUE(is_refused(DType::kUInt8, beyond)) << beyond;
  const double end = 9223372036854775808.0;  // the limit of int64
  EXPECT_FALSE(is_refused(DType::kInt64, -end));
  EXPECT_TRUE(is_refused(DType::kInt64, end));
  EXPECT_FALSE(is_refused(DType::kBool, 1));
  EXPECT_FALSE(is_refused(DType::kFloat32, 0.5));
}

// "x" is ragged, "w" has strings.
struct WithTexts {
  WithTexts() : signature(one_input(true)) {
    signature.inputs.resize(2);
    signature.inputs[1].name = "w";
    signature.inputs[1].takes_bytes = true;
    for (InferRequest* request : {&shorter, &longer}) {
      InferTensor& words = request->inputs.emplace_back();
      words.name = "w";
      words.datatype = DataType::kBytes;
      words.shape = {1, 2};
      words.strings = {"a", "bc"};
      request->input_indices = {0, 1};
    }
  }
  Signature signature;
  InferRequest shorter = make_request({1, 1}, 1), longer = make_request({1, 3}, 5);
};

TEST(BatchInputs, TextsBesidePaddedInputs) {
  WithTexts made;
  const RaggedRules rules(made.signature, ragged_config());
  EXPECT_TRUE(rules.is_ragged(0));
  EXPECT_FALSE(rules.is_ragged(1));
  InferRequest* requests[] = {&made.shorter, &made.longer};
  const BatchInputs batch(made.signature, rules, requests);
  EXPECT_EQ(batch.copied_bytes(0), sizeof(int32_t) + 3);
  const BatchInputs alone = batch.alone(0);
  expect_counts_up(alone.inputs()[0]->tensor, {1, 1}, 1);
  EXPECT_EQ(alone.inputs()[1]->strings, (std::vector<std::string>{"a", "bc"}));
  EXPECT_EQ(alone.inputs()[1]->shape, (Dims{1, 2}));
  // An output of strings that is as long as the padded input.
  InferTensor texts;
  texts.name = "texts";
  texts.datatype = DataType::kBytes;
  texts.shape = {2, 3};
  texts.strings.resize(6);
  EXPECT_THROW(batch.split({texts}, made.signature), Error);
  texts.shape = {2, 2};
  texts.strings.resize(4);
  EXPECT_EQ(batch.split({texts}, made.signature)[0].at(0).strings.size(), 2u);
}

TEST(BatchInputs, TextsOfOneRequestAreNotJoined) {
  WithTexts made;
  made.longer.inputs.erase(made.longer.inputs.begin());
  made.longer.input_indices = {1};
  InferRequest* requests[] = {&made.longer};
  const BatchInputs batch(made.signature, RaggedRules(made.signature, {}), requests);
  EXPECT_EQ(batch.copied_bytes(0), 0u);
  EXPECT_EQ(batch.inputs()[1]->strings.size(), 2u);
}

TEST(BatchInputs, TextsAreNotPadded) {
  const WithTexts made;
  ModelConfig config = ragged_config();
  config.inputs[0].name = "w";
  EXPECT_THROW(RaggedRules(made.signature, config), Error);
  config.inputs[0].name = "nobody";
  EXPECT_FALSE(RaggedRules(made.signature, config).is_ragged(0));
}

TEST(BatchInputs, NothingIsPaddedWithoutBatches) {
  WithTexts made;
  ModelConfig config = ragged_config();
  EXPECT_TRUE(RaggedRules(made.signature, config).is_ragged(0));
  made.signature.max_batch_size = 0;
  EXPECT_FALSE(RaggedRules(made.signature, config).is_ragged(0));
  config.inputs[0].name = "w";
  EXPECT_NO_THROW(RaggedRules(made.signature, config));
}

// Which dimensions of an output are cut to the request's own size, according to the output's configuration.
TEST(BatchInputs, CutsOpenDimensionsThatAreAsLongAsAPaddedOne) {
  Signature signature = one_input(true);
  const RaggedRules rules(signature, ragged_config());
  InferRequest shorter = make_request({1, 1}, 1), longer = make_request({1, 3}, 5);
  InferRequest* requests[] = {&shorter, &longer};
  const BatchInputs batch(signature, rules, requests);
  const auto cut = [&](const Dims& shape) {
    InferTensor output;
    output.name = "x";
    output.shape = shape;
    output.tensor = Tensor::empty(shape, DType::kFloat32);
    const auto answers = batch.split({output}, signature);
    EXPECT_EQ(answers[1].at(0).shape, answers[1][0].tensor.sizes());
    EXPECT_EQ(answers[1][0].shape[1], shape[1]) << "the longest is as it was";
    return answers[0].at(0).shape;
  };
  EXPECT_EQ(cut({2, 3}), (Dims{1, 1}));
  EXPECT_EQ(cut({2, 4}), (Dims{1, 4}));
  EXPECT_EQ(cut({2, 4, 3}), (Dims{1, 4, 1}));
  signature.outputs[0].shape = Dims{-1, -1, -1};
  signature.outputs[0].shape->resize(2);  // reading past its end would reach the rows to be cut
  EXPECT_EQ(cut({2, 3}), (Dims{1, 1}));
  EXPECT_EQ(cut({2, 4, 3}), (Dims{1, 4, 3})) << "more dimensions than the configuration says";
  signature.outputs[0].shape = Dims{-1, 4, -1};
  EXPECT_EQ(cut({2, 4, 3}), (Dims{1, 4, 1}));
  signature.outputs[0].shape = Dims{-1, 3, 3};
  EXPECT_EQ(cut({2, 3, 3}), (Dims{1, 3, 3}));
  signature.outputs.clear();
  EXPECT_EQ(cut({2, 3}), (Dims{1, 1}));
}

TEST(BatchInputs, RefusesToCutWhereTwoPaddedDimensionsDiffer) {
  const Signature signature = one_input(true);
  const RaggedRules rules(signature, ragged_config());
  const auto split = [&](const Dims& first, const Dims& second) {
    InferRequest a = make_request(first, 1), b = make_request(second, 5);
    InferRequest* requests[] = {&a, &b};
    const BatchInputs batch(signature, rules, requests);
    return batch.split({*batch.inputs()[0]}, signature);
  };
  EXPECT_EQ(split({1, 2, 2}, {1, 3, 3})[0].at(0).shape, (Dims{1, 2, 2})) << "cut to the same";
  EXPECT_THROW(split({1, 2, 1}, {1, 3, 3}), Error);
}

TEST(BatchInputs, RefusesOutputsWithoutARowForEach) {
  const Signature signature = one_input(true);
  const RaggedRules rules(signature, {});
  InferRequest first = make_request({1, 2}, 1), second = make_request({1, 2}, 5);
  InferRequest* requests[] = {&first, &second};
  const BatchInputs batch(signature, rules, requests);
  InferTensor output = *batch.inputs()[0];
  output.shape = {1, 4};
  EXPECT_THROW(batch.split({output}, signature), Error);
}

TEST(BatchKey, TellsApartWhatCannotShareABatch) {
  const Signature signature = one_input(true);
  const RaggedRules plain(signature, {}), padded(signature, ragged_config()), buckets(signature, ragged_config({8, 4}));
  const InferRequest three = make_request({1, 3}, 0), also_three = make_request({5, 3}, 0);
  const InferRequest four = make_request({1, 4}, 0), five = make_request({1, 5}, 0);
  EXPECT_EQ(make_batch_key(three, plain), make_batch_key(also_three, plain));
  EXPECT_NE(make_batch_key(three, plain), make_batch_key(four, plain));
  EXPECT_EQ(make_batch_key(three, padded), make_batch_key(five, padded));
  EXPECT_EQ(make_batch_key(three, buckets), make_batch_key(four, buckets));
  EXPECT_NE(make_batch_key(four, buckets), make_batch_key(five, buckets));
  InferRequest other_type = make_request({1, 3}, 0);
  other_type.inputs[0].datatype = DataType::kFp32;
  EXPECT_NE(make_batch_key(three, padded), make_batch_key(other_type, padded));
}

}  // namespace
}  // namespace tensord::server::batch_inputs_test
