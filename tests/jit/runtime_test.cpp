// Modules of a real archive: tests/jit/data/runtime.pt, see make_runtime_archive.py there.
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <thread>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/jit/runtime/module.h"
#include "tests/support/places.h"

namespace tensord::jit::runtime_test {
namespace {

using ops::Value;

const std::string kArchive = std::string(tests_folder()) + "/jit/data/runtime.pt";

Value pair(float a, float b) {
  const Tensor out = Tensor::empty(Dims{2}, DType::kFloat32);
  out.data<float>()[0] = a;
  out.data<float>()[1] = b;
  return Value(out);
}

Value run(const Module& module, const char* method, std::vector<Value> arguments) {
  Frame frame;
  return module.method(method).run(frame, arguments);
}

std::string error_of(const Module& module, const char* method, std::vector<Value> arguments, ErrorCode code) {
  try {
    run(module, method, std::move(arguments));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  return "no error";
}

// With and without the passes.
class RuntimeTest : public ::testing::TestWithParam<bool> {
 protected:
  RuntimeTest() {
    LoadOptions options;
    options.optimize = GetParam();
    module_ = Module::load(kArchive, options);
  }
  std::shared_ptr<Module> module_;
};

INSTANTIATE_TEST_SUITE_P(Passes, RuntimeTest, ::testing::Bool());

TEST_P(RuntimeTest, RunsForwardWithDefaults) {
  EXPECT_EQ(run(*module_, "forward", {pair(3, 4)}).to_tensor().data<float>()[1], 8);
  EXPECT_EQ(run(*module_, "forward", {pair(3, 4), Value(3)}).to_tensor().data<float>()[1], 32);
}

TEST_P(RuntimeTest, KnowsMethodsAndTheirArguments) {
  const std::vector<std::string> names = module_->method_names();
  EXPECT_TRUE(std::find(names.begin(), names.end(), "forward") != names.end());
  EXPECT_TRUE(module_->has_method("step"));
  EXPECT_FALSE(module_->has_method("walk"));
  const ops::Schema& schema = module_->method("forward").schema();
  ASSERT_EQ(schema.arguments.size(), 2u);
  EXPECT_EQ(schema.arguments[0].name, "x");
  EXPECT_EQ(schema.arguments[1].default_value->to_int(), 1);
  EXPECT_THROW(module_->method("walk"), Error);
}

TEST_P(RuntimeTest, NamesTensorsAndCountsSharedStoragesOnce) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : module_->named_tensors()) names.push_back(name);
  EXPECT_NE(std::find(names.begin(), names.end(), "inner.weight"), names.end());
  EXPECT_NE(std::find(names.begin(), names.end(), "sum"), names.end());
  EXPECT_EQ(module_->size_bytes(), 2 * 2 * sizeof(float));
}

TEST_P(RuntimeTest, KeepsStateBetweenCallsAndSaysWhoChangesIt) {
  EXPECT_EQ(run(*module_, "step", {pair(1, 2)}).to_int(), 1);
  EXPECT_EQ(run(*module_, "step", {pair(1, 2)}).to_int(), 2);
  const Value state = run(*module_, "state", {});
  EXPECT_EQ(state.to_tuple()->items[0].to_int(), 2);
  EXPECT_EQ(state.to_tuple()->items[1].to_tensor().data<float>()[1], 4);
  EXPECT_TRUE(module_->method("step").changes_state());
}

TEST_P(RuntimeTest, AnotherLoadHasItsOwnState) {
  run(*module_, "step", {pair(1, 2)});
  const auto other = Module::load(kArchive);
  EXPECT_EQ(run(*other, "step", {pair(1, 2)}).to_int(), 1);
  EXPECT_EQ(run(*other, "state", {}).to_tuple()->items[1].to_tensor().data<float>()[0], 1);
}

TEST_P(RuntimeTest, ShowsWhatTheScriptRaised) {
  const Value list = Value(ops::make_list(ops::int_type(), {Value(1)}));
  EXPECT_NE(error_of(*module_, "refuse", {list}, ErrorCode::kScriptRaised).find("too few items"), std::string::npos);
}

TEST_P(RuntimeTest, ChecksArguments) {
  EXPECT_NE(error_of(*module_, "forward", {}, ErrorCode::kInvalidArgument).find("'x'"), std::string::npos);
  EXPECT_NE(error_of(*module_, "forward", {Value(1)}, ErrorCode::kInvalidArgument).find("'x'"), std::string::npos);
  EXPECT_NE(error_of(*module_, "forward", {pair(1, 2), Value("a")}, ErrorCode::kInvalidArgument).find("'times'"),
            std::string::npos);
  error_of(*module_, "forward", {pair(1, 2), Value(1), Value(2)}, ErrorCode::kInvalidArgument);
  // A tuple is accepted where the script wants a list, item by item.
  EXPECT_EQ(run(*module_, "refuse", {ops::make_tuple({Value(1), Value(2), Value(3)})}).to_int(), 2);
  EXPECT_NE(error_of(*module_, "refuse", {ops::make_tuple({Value(1), Value("x")})}, ErrorCode::kInvalidArgument)
                .find("'items'[1]"),
            std::string::npos);
}

TEST_P(RuntimeTest, TrainsOnlyWhenLoadedForIt) {
  try {
    module_->set_training(true);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kFailedPrecondition);
    EXPECT_STREQ(error.what(), "__torch__.Model was not loaded for training");
  }
  EXPECT_FALSE(module_->is_training());
  LoadOptions options;
  options.optimize = GetParam();
  options.for_training = true;
  const auto trained = Module::load(kArchive, options);
  trained->set_training(true);
  EXPECT_TRUE(trained->is_training());
  trained->set_training(false);
  EXPECT_FALSE(trained->is_training());
}

TEST_P(RuntimeTest, CancelsALongLoop) {
  Frame frame;
  int asked = 0;
  const std::function<bool()> is_cancelled = [&] { return ++asked > 100; };
  const std::vector<Value> arguments{Value(int64_t{1} << 50)};
  try {
    module_->method("spin").run(frame, arguments, {.is_cancelled = &is_cancelled});
    FAIL() << "not cancelled";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCancelled);
  }
}

TEST_P(RuntimeTest, ManyThreadsShareOneMethod) {
  std::vector<std::thread> threads;
  std::vector<int> wrong(8, 0);
  for (size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      // The threads' first calls also race to compile the method.
      const Method& method = module_->method("forward");
      Frame frame;
      for (int i = 0; i < 200; ++i) {
        const std::vector<Value> arguments{pair(static_cast<float>(i), static_cast<float>(t)), Value(2)};
        const Value result = method.run(frame, arguments);
        const float* data = result.to_tensor().data<float>();
        wrong[t] += data[0] != static_cast<float>(i) || data[1] != 4 * static_cast<float>(t);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int count : wrong) EXPECT_EQ(count, 0);
}

TEST(ModuleTest, MissingFilesAreNotFound) {
  try {
    Module::load("no/such.pt");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotFound);
  }
}

TEST(ModuleTest, ForwardThatOnlyReadsWeightsChangesNothing) {
  EXPECT_FALSE(Module::load(kArchive)->method("forward").changes_state());
}

TEST(Plans, AreKeptBySignatureAndTheOldestGoes) {
  LoadOptions options;
  options.plan.cache_size = 2;
  const auto module = Module::load(kArchive, options);
  const Method& forward = module->method("forward");
  Frame frame;
  for (const int power : {1, 2, 1, 2}) forward.run(frame, std::vector<Value>{pair(3, 4), Value(power)});
  PlanStats stats = forward.plan_stats();
  EXPECT_EQ(stats.misses, 2u);
  EXPECT_EQ(stats.hits, 2u);
  EXPECT_EQ(stats.evictions, 0u);
  forward.run(frame, std::vector<Value>{pair(3, 4), Value(3)});
  stats = forward.plan_stats();
  EXPECT_EQ(stats.misses, 3u);
  EXPECT_EQ(stats.evictions, 1u);
  EXPECT_EQ(stats.programs, 2u);
}

std::vector<std::string>& logged() {
  static std::vector<std::string> lines;
  return lines;
}

void keep_line(LogLevel level, std::string_view message, std::initializer_list<LogField> fields,
               const std::source_location&) {
  std::string line = (level == LogLevel::kError ? "error " : "") + std::string(message);
  for (const LogField& field : fields) line += " " + field.value;
  logged().push_back(line);
}

// An unproven plan is not run: the interpreter runs instead, and this is counted and logged.
TEST(Plans, OneThatIsRefusedIsInterpreted) {
  LoadOptions options;
  size_t plans = 0;
  options.plan.alter = [&](Plan& plan) {
    ++plans;
    for (PlanCall& call : plan.calls) call.outputs[0] = call.inputs[0];
  };
  const auto module = Module::load(kArchive, options);
  const Method& forward = module->method("forward");
  set_log_sink(keep_line);
  Frame frame;
  EXPECT_EQ(forward.run(frame, std::vector<Value>{pair(3, 4), Value(1)}).to_tensor().data<float>()[1], 8);
  EXPECT_EQ(forward.run(frame, std::vector<Value>{pair(5, 6), Value(1)}).to_tensor().data<float>()[1], 12);
  EXPECT_GT(plans, 0u);
  const PlanStats stats = forward.plan_stats();
  EXPECT_EQ(stats.refused, 1u);
  EXPECT_EQ(stats.failures, 1u);
  ASSERT_EQ(logged().size(), 1u);
  const std::string& line = logged()[0];
  for (const char* part :
       {"error a plan is not proven", "call 0 (", "aten::mul", "written to an input", "by the pass plan"})
    EXPECT_NE(line.find(part), std::string::npos) << part << " in " << line;
}

// The same applies to a failing pass.
TEST(Plans, PassesThatFailAreLeftOut) {
  LoadOptions options;
  options.passes.alter = [](const std::string& pass, Graph& graph) {
    if (pass == "functionalize") throw std::out_of_range("no such input");
    if (pass == "plan") graph.block()->last()->move_before(graph.block()->first());
  };
  const auto module = Module::load(kArchive, options);
  const Method& forward = module->method("forward");
  logged().clear();
  set_log_sink(keep_line);
  Frame frame;
  EXPECT_EQ(forward.run(frame, std::vector<Value>{pair(3, 4), Value(1)}).to_tensor().data<float>()[1], 8);
  const PlanStats stats = forward.plan_stats();
  EXPECT_EQ(stats.failed_passes, (std::map<std::string, uint64_t>{{"functionalize", 1}, {"plan", 1}}));
  EXPECT_EQ(stats.failures, 0u);
  ASSERT_EQ(logged().size(), 2u);
  EXPECT_EQ(logged()[0],
            "error a pass failed, so the graph goes without it; please report this functionalize no such input");
}

// Passes that the analysis before freezing also runs: the module still loads, and more of it is treated as mutable.
TEST(Plans, PassesThatFailAtTheLoadAreLeftOut) {
  for (const std::string broken : {"inline", "freeze", "const_prop", "simplify", "peephole", "dce"}) {
    LoadOptions options;
    options.passes.alter = [&](const std::string& pass, Graph&) {
      if (pass == broken) throw std::out_of_range("no such input");
    };
    const auto module = Module::load(kArchive, options);
    const Method& forward = module->method("forward");
    Frame frame;
    EXPECT_EQ(forward.run(frame, std::vector<Value>{pair(3, 4), Value(1)}).to_tensor().data<float>()[1], 8) << broken;
    EXPECT_GT(forward.plan_stats().failed_passes.at(broken), 1u) << "one is that of the analysis";
  }
}

// A scalar tensor, as traces contain, is a tensor to a plan even if it is not constant.
TEST(Plans, NumbersThatAreTensors) {
  LoadOptions options;
  options.passes.disabled = {"const_prop"};
  const auto module = Module::compile(
      "def forward(x: Tensor) -> Tensor:\n  n = ops.prim.NumToTensor(torch.size(x, 0))\n"
      "  return torch.mul(torch.relu(x), n)\n",
      {}, options);
  const Method& forward = module->method("forward");
  Frame frame;
  EXPECT_EQ(forward.run(frame, std::vector<Value>{pair(3, 4)}).to_tensor().data<float>()[1], 8);
  EXPECT_EQ(forward.plan_stats().failures, 0u);
}

TEST(Plans, AnotherShapeDoesNotWaitInTheBackground) {
  const auto module = Module::load(kArchive, {});
  const Method& forward = module->method("forward");
  Frame frame;
  const RunOptions options{.plans_in_background = true};
  EXPECT_EQ(forward.run(frame, std::vector<Value>{pair(3, 4), Value(1)}, options).to_tensor().data<float>()[1], 8);
  const auto run = [&] { return forward.run(frame, std::vector<Value>{pair(3, 4), Value(3)}, options); };
  const float first = run().to_tensor().data<float>()[1];
  for (int i = 0; i < 1000 && forward.plan_stats().programs < 2; ++i) std::this_thread::yield();
  EXPECT_EQ(run().to_tensor().data<float>()[1], first);
  EXPECT_EQ(forward.plan_stats().misses, 2u);
}

}  // namespace
}  // namespace tensord::jit::runtime_test
