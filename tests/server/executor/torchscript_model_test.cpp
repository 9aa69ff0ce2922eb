#include "server/executor/model/torchscript_model.h"

#include <gtest/gtest.h>

#include "tests/server/fake_sink.h"
#include "tests/support/places.h"

namespace tensord::server {
namespace {

using testing::float_tensor;
using testing::values_of;

// The module gives back its own buffer; what one run returned stays what it was when the next one writes there.
TEST(TorchScriptModel, ResultsOfAModelWithStateAreTheirOwn) {
  const auto model = load_torchscript_model(concat(tests_folder(), "/server/data/counter.pt"), {}, {});
  EXPECT_TRUE(model->signature().keeps_state);
  const auto sessions = {model->make_session(), model->make_session()};
  const InferTensor one = float_tensor("x", {4}, {1, 1, 1, 1});
  const InferTensor* const inputs[] = {&one};
  const std::function<bool()> never = [] { return false; };
  std::vector<RunResult> results;
  for (int round = 0; round < 2; ++round) {
    for (const auto& session : sessions) results.push_back(session->run(inputs, {.is_cancelled = never}));
  }
  for (size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(values_of(results[i].outputs.at(0)), std::vector<float>(4, static_cast<float>(i + 1)));
  }
}

}  // namespace
}  // namespace tensord::server
