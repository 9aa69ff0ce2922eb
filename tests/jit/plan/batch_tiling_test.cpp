// Batch-independent calls run a few samples at a time, with the same results.
#include <gtest/gtest.h>

#include <atomic>
#include <random>

#include "core/base/error.h"
#include "core/base/parallel.h"
#include "core/jit/ir/text.h"
#include "core/jit/ir/verify.h"
#include "core/jit/passes/passes.h"
#include "core/jit/runtime/interpreter.h"

namespace tensord::jit::batch_tiling_test {
namespace {

using ops::Value;

// Multiples of 1/8: sums of their products are exact in any order of addition.
Tensor random(const Dims& sizes) {
  static std::mt19937 generator(5);
  std::uniform_int_distribution<int> eighths(-8, 8);
  const Tensor t = Tensor::empty(sizes, DType::kFloat32);
  for (int64_t i = 0; i < t.numel(); ++i) t.data<float>()[i] = static_cast<float>(eighths(generator)) / 8;
  return t;
}

// `body` computes %out from %x and %y.
std::string graph_of(const std::string& body) {
  return "graph(%x : Tensor, %y : Tensor):\n"
         "  %none : NoneType = prim::Constant[value=None]()\n"
         "  %false : bool = prim::Constant[value=False]()\n"
         "  %zero : int = prim::Constant[value=0]()\n"
         "  %one : int = prim::Constant[value=1]()\n"
         "  %two : int = prim::Constant[value=2]()\n"
         "  %last : int = prim::Constant[value=-1]()\n"
         "  %flat : List[int] = prim::Constant[value=[-1, 48]]()\n"
         "  %window : List[int] = prim::Constant[value=[2, 2]]()\n"
         "  %ones : List[int] = prim::Constant[value=[1, 1]]()\n"
         "  %zeros : List[int] = prim::Constant[value=[0, 0]]()\n"
         "  %spatial : List[int] = prim::Constant[value=[2, 3]]()\n" +
         body + "  return (%out)\n";
}

struct Planned {
  std::unique_ptr<Program> program;
  std::string text;
};

Planned plan(const std::string& text, const std::vector<Tensor>& inputs, const PlanSettings& settings) {
  const auto graph = parse_graph(text);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& t = inputs[i];
    graph->inputs()[i]->set_known(Tensor::meta_strided(t.sizes(), t.strides(), t.dtype()));
  }
  PassContext context;
  for (auto* pass : {propagate_constants, propagate_shapes, eliminate_dead_code, plan_segments}) pass(*graph, context);
  verify(*graph);
  Planned planned{Program::compile(*graph, "test", settings), {}};
  planned.text = to_string(*planned.program);
  return planned;
}

Tensor run(const Program& program, const std::vector<Tensor>& inputs, Frame& frame, RunOptions options = {}) {
  std::vector<Value> arguments(inputs.begin(), inputs.end());
  return Interpreter(frame, nullptr, options).run(program, arguments).to_tensor().contiguous();
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

class BatchTiling : public ::testing::Test {
 protected:
  BatchTiling() : threads_(thread_budget()) { settings_.packs = &packs_; }
  ~BatchTiling() override { set_thread_budget(threads_); }

  // Runs the graph interpreted and planned, twice and on memory filled with NaN. Returns the plan as text.
  std::string check_same(const std::string& body, const std::vector<Tensor>& inputs, int threads, size_t cache_bytes) {
    set_thread_budget(threads);
    settings_.threads = threads;
    settings_.cache_bytes = cache_bytes;
    const std::string text = graph_of(body);
    Frame frame;
    const Tensor expected = run(*Program::compile(*parse_graph(text), "test"), inputs, frame);
    const Planned planned = plan(text, inputs, settings_);
    for (int round = 0; round < 2; ++round) {
      const Tensor got = run(*planned.program, inputs, frame, {.poison = true});
      EXPECT_EQ(to_string(got.sizes()), to_string(expected.sizes()));
      for (int64_t i = 0; i < expected.numel(); ++i)
        EXPECT_NEAR(got.data<float>()[i], expected.data<float>()[i], 1e-6) << i << "\n" << planned.text;
    }
    return planned.text;
  }

  ops::PackStore packs_;
  PlanSettings settings_;
  const int threads_;
};

const char* const kNet =
    "  %a : Tensor = aten::relu(%x)\n"
    "  %b : Tensor = aten::max_pool2d(%a, %window, %ones, %zeros, %ones, %false)\n"
    "  %c : Tensor = aten::add.Tensor(%b, %y, %one)\n"
    "  %d : Tensor = aten::reshape(%c, %flat)\n"
    "  %e : Tensor = aten::softmax.int(%d, %last, %none)\n"
    "  %out : Tensor = aten::mul.Tensor(%e, %d)\n";

TEST_F(BatchTiling, DoesAsManySamplesAtATimeAsFitTheCache) {
  const std::vector<Tensor> inputs{random({8, 3, 5, 5}), random({3, 4, 4})};
  EXPECT_EQ(count(check_same(kNet, inputs, 1, 1), "for each of samples 0 to 7, 1 at a time, 1 side by side"), 1u);
  EXPECT_EQ(count(check_same(kNet, inputs, 1, 1300), "samples 0 to 7, 2 at a time"), 1u);
  EXPECT_EQ(count(check_same(kNet, inputs, 1, 1 << 20), "for each"), 0u);
}

TEST_F(BatchTiling, GivesThreadsSamplesOfTheirOwn) {
  const std::vector<Tensor> even{random({8, 3, 5, 5}), random({1, 3, 4, 4})};
  EXPECT_EQ(count(check_same(kNet, even, 2, 1), "samples 0 to 7, 1 at a time, 2 side by side"), 1u);
  const std::vector<Tensor> odd{random({5, 3, 5, 5}), random({5, 3, 4, 4})};
  const std::string text = check_same(kNet, odd, 2, 1);
  EXPECT_EQ(count(text, "samples 0 to 3, 1 at a time, 2 side by side"), 1u) << text;
  EXPECT_EQ(count(text, "samples 4 to 4, 1 at a time, 1 side by side"), 1u) << text;
  // Fewer samples than threads: all threads work on each.
  const std::vector<Tensor> few{random({2, 3, 5, 5}), random({3, 4, 4})};
  EXPECT_EQ(count(check_same(kNet, few, 3, 1), "samples 0 to 1, 1 at a time, 1 side by side"), 1u);
}

TEST_F(BatchTiling, StopsWhereSamplesMeet) {
  const std::string text = check_same(
      "  %a : Tensor = aten::relu(%x)\n"
      "  %b : Tensor = aten::neg(%a)\n"
      "  %c : Tensor = aten::softmax.int(%b, %zero, %none)\n"
      "  %d : Tensor = aten::exp(%c)\n"
      "  %e : Tensor = aten::add.Tensor(%d, %b, %one)\n"
      "  %out : Tensor = aten::mul.Tensor(%e, %y)\n",
      {random({8, 6}), random({6})}, 1, 1);
  EXPECT_EQ(count(text, "for each of samples"), 2u) << text;
  EXPECT_GT(text.find("= softmax"), text.find("for each")) << text;
}

TEST_F(BatchTiling, ATensorOfFewerDimensionsBelongsToAllSamples) {
  // As many rows as samples, but they are not samples.
  const std::string text = check_same(
      "  %a : Tensor = aten::relu(%x)\n"
      "  %b : Tensor = aten::add.Tensor(%a, %y, %one)\n"
      "  %out : Tensor = aten::exp(%b)\n",
      {random({4, 4, 3}), random({4, 3})}, 1, 1);
  EXPECT_EQ(count(text, "for each of samples 0 to 3"), 1u) << text;
}

TEST_F(BatchTiling, AViewThatMovesSamplesEndsTheLoop) {
  const std::string text = check_same(
      "  %a : Tensor = aten::relu(%x)\n"
      "  %b : Tensor = aten::exp(%a)\n"
      "  %c : Tensor = aten::transpose.int(%b, %zero, %one)\n"
      "  %d : Tensor = aten::add.Tensor(%c, %y, %one)\n"
      "  %out : Tensor = aten::neg(%d)\n",
      {random({4, 4, 3}), random({4, 4, 3})}, 2, 1);
  // The rows and columns of the square have one size; only the calls before and after can be tiled.
  EXPECT_EQ(text.find("add(", text.find("for each")), text.rfind("add(")) << text;
}

// One operator before a pointwise one: whether it is batch-independent, with the same results either way.
TEST_F(BatchTiling, OperatorsSayWhetherTheyKeepSamplesApart) {
  struct Row {
    const char* call;
    Dims x, y;
    bool is_split;
  };
  constexpr const char* kAttention =
      "tensord::attention(%x, %y, %y, %none, %small, %none, %true, %false, %false, %false)";
  const Row rows[] = {
      {"aten::softmax.int(%x, %last, %none)", {4, 5, 6}, {1}, true},
      {"aten::softmax.int(%x, %zero, %none)", {4, 5, 6}, {1}, false},
      {"aten::mean.dim(%x, %spatial, %false, %none)", {4, 5, 6, 7}, {1}, true},
      {"aten::mean.dim(%x, %first, %false, %none)", {4, 4, 4}, {1}, false},
      {"aten::sum.dim_IntList(%x, %spatial, %true, %none)", {4, 5, 6, 7}, {1}, true},
      {"aten::amax(%x, %spatial, %false)", {4, 5, 6, 7}, {1}, true},
      {"aten::amax(%x, %first, %false)", {4, 4, 4}, {1}, false},
      {"aten::matmul(%x, %y)", {4, 5, 6}, {4, 6, 3}, true},
      {"aten::matmul(%x, %y)", {4, 5, 6}, {6, 3}, true},
      {"aten::matmul(%x, %y)", {4, 5, 4}, {4, 3}, true},
      {"aten::matmul(%x, %y)", {4, 4}, {4, 3}, false},
      {"aten::matmul(%x, %y)", {5, 6}, {4, 6, 3}, true},
      {"aten::matmul(%x, %y)", {4, 2, 5, 6}, {2, 6, 3}, true},
      {"aten::mm(%x, %y)", {4, 4}, {4, 3}, false},
      {"aten::max_pool2d(%x, %window, %ones, %zeros, %ones, %false)", {4, 3, 6, 7}, {1}, true},
      {"aten::avg_pool2d(%x, %window, %ones, %zeros, %false, %true, %none)", {4, 3, 6, 7}, {1}, true},
      {"aten::avg_pool2d(%x, %window, %ones, %zeros, %false, %true, %none)", {4, 6, 7}, {1}, true},
      {"aten::adaptive_avg_pool2d(%x, %window)", {4, 3, 6, 7}, {1}, true},
      {"aten::upsample_nearest2d(%x, %larger, %none, %none)", {4, 3, 6, 7}, {1}, true},
      {"aten::upsample_bilinear2d(%x, %larger, %false, %none, %none)", {4, 3, 6, 7}, {1}, true},
      {"aten::layer_norm(%x, %normal, %none, %none, %small, %true)", {4, 3, 6}, {1}, true},
      {"aten::layer_norm(%x, %whole, %none, %none, %small, %true)", {4, 6}, {1}, false},
      {kAttention, {4, 2, 5, 8}, {4, 2, 7, 8}, true},
      {kAttention, {4, 2, 5, 8}, {1, 2, 7, 8}, true},
      {"aten::add.Tensor(%x, %y, %one)", {1, 4, 3}, {4, 4, 3}, true},
  };
  for (const Row& row : rows) {
    const std::string body =
        "  %first : List[int] = prim::Constant[value=[0, 1]]()\n"
        "  %larger : List[int] = prim::Constant[value=[9, 11]]()\n"
        "  %normal : List[int] = prim::Constant[value=[3, 6]]()\n"
        "  %whole : List[int] = prim::Constant[value=[4, 6]]()\n"
        "  %true : bool = prim::Constant[value=True]()\n"
        "  %small : float = prim::Constant[value=0.25]()\n"
        "  %called : Tensor = " +
        std::string(row.call) + "\n  %more : Tensor = aten::exp(%called)\n  %out : Tensor = aten::neg(%more)\n";
    for (const int threads : {1, 2}) {
      const std::string text = check_same(body, {random(row.x), random(row.y)}, threads, 1);
      const size_t loop = text.find("for each"), name = std::string(row.call).find("::") + 2;
      const std::string op = std::string(row.call).substr(name, std::string(row.call).find_first_of(".(", name) - name);
      const size_t call = text.find("= " + op);
      EXPECT_EQ(call != std::string::npos && loop < call, row.is_split) << row.call << "\n" << text;
    }
  }
}

TEST_F(BatchTiling, CountsTheTimeOfAllSamples) {
  const std::vector<Tensor> inputs{random({8, 3, 5, 5}), random({3, 4, 4})};
  set_thread_budget(2);
  settings_.threads = 2;
  settings_.cache_bytes = 1;
  const Planned planned = plan(graph_of(kNet), inputs, settings_);
  Frame frame;
  Profile profile;
  run(*planned.program, inputs, frame, {.profile = &profile});
  ASSERT_TRUE(profile.entries.contains("relu")) << planned.text;
  EXPECT_EQ(profile.entries["relu"].calls, 1u);
  EXPECT_EQ(profile.entries["relu"].bytes, 2.0 * 8 * 3 * 5 * 5 * sizeof(float));
  EXPECT_GT(profile.entries["relu"].time_ns, 0);
}

TEST_F(BatchTiling, IsCancelledBetweenCalls) {
  const std::vector<Tensor> inputs{random({8, 3, 5, 5}), random({3, 4, 4})};
  set_thread_budget(1);
  settings_.cache_bytes = 1;
  const Planned planned = plan(graph_of(kNet), inputs, settings_);
  int asked = 0;
  const std::function<bool()> is_cancelled = [&] { return ++asked > 10; };
  Frame frame;
  std::vector<Value> arguments(inputs.begin(), inputs.end());
  try {
    Interpreter(frame, nullptr, {.is_cancelled = &is_cancelled}).run(*planned.program, arguments);
    FAIL() << "was not cancelled";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCancelled);
    EXPECT_STREQ(error.what(), "cancelled");  // the error names no call
  }
  EXPECT_EQ(asked, 11);
}

TEST_F(BatchTiling, AnErrorNamesTheCall) {
  const std::string text =
      "graph(%x : Tensor):\n"
      "  %table : Tensor = prim::Constant[value=<table @0>]()\n"
      "  %none : NoneType = prim::Constant[value=None]()\n"
      "  %minus : int = prim::Constant[value=-1]()\n"
      "  %false : bool = prim::Constant[value=False]()\n"
      "  %a : Tensor = aten::embedding(%table, %x, %minus, %false, %false)\n"
      "  %b : Tensor = aten::relu(%a)\n"
      "  %out : Tensor = aten::exp(%b)\n"
      "  return (%out)\n";
  const std::vector<Value> constants{random({10, 4})};
  const auto graph = parse_graph(text, constants);
  const Tensor indices = Tensor::empty(Dims{6, 3}, DType::kInt64);
  for (int64_t i = 0; i < 18; ++i) indices.data<int64_t>()[i] = i == 16 ? 99 : i % 10;
  graph->inputs()[0]->set_known(Tensor::meta_strided(indices.sizes(), indices.strides(), indices.dtype()));
  PassContext context;
  for (auto* pass : {propagate_shapes, plan_segments}) pass(*graph, context);
  for (const int threads : {1, 2}) {
    set_thread_budget(threads);
    settings_.threads = threads;
    settings_.cache_bytes = 1;
    const auto program = Program::compile(*graph, "test", settings_);
    ASSERT_EQ(count(to_string(*program), "for each of samples 0 to 5"), 1u) << to_string(*program);
    Frame frame;
    std::vector<Value> arguments{indices};
    try {
      Interpreter(frame, nullptr).run(*program, arguments);
      FAIL() << "no error";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("aten::embedding"), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace tensord::jit::batch_tiling_test
