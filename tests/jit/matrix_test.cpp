// Every reference model in every execution mode: interpreted and planned, on poisoned memory, with each pass disabled
// in turn, on 1 to 3 threads, from 8 threads at once. TENSORD_MODELS names the models (tests/models/make_models.py)
// with PyTorch's results.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "core/base/error.h"
#include "core/base/parallel.h"
#include "core/jit/archive/torch_file.h"
#include "core/jit/passes/pipeline.h"
#include "core/jit/runtime/module.h"
#include "core/tensor/memory/caching_allocator.h"

// Counts the calling thread's heap allocations. The sanitizers have a malloc of their own.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define TENSORD_COUNTS_MALLOC 1
namespace {
thread_local int64_t heap_calls = 0;
}
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void* malloc(size_t size) { return ++heap_calls, __libc_malloc(size); }
void* calloc(size_t count, size_t size) { return ++heap_calls, __libc_calloc(count, size); }
void* realloc(void* old, size_t size) { return ++heap_calls, __libc_realloc(old, size); }
void* aligned_alloc(size_t alignment, size_t size) { return ++heap_calls, __libc_memalign(alignment, size); }
int posix_memalign(void** out, size_t alignment, size_t size) {
  *out = aligned_alloc(alignment, size);
  return *out ? 0 : 12;
}
}
#endif

namespace tensord::jit::matrix_test {
namespace {

using ops::Value;

struct Call {
  std::string method;
  std::vector<Value> arguments;
  Value expected;
};

struct Case {
  std::string archive;
  std::vector<Call> calls;
};

std::string models_folder() {
  const char* folder = std::getenv("TENSORD_MODELS");
  return folder ? folder : "";
}

std::vector<Value> items_of(const Value& value) {
  return value.is_tuple() ? value.to_tuple()->items : value.to_list()->items;
}

std::vector<std::string> case_names() {
  std::vector<std::string> names;
  if (models_folder().empty()) return names;
  for (const auto& entry : std::filesystem::directory_iterator(models_folder())) {
    if (entry.path().extension() != ".json") continue;
    std::ifstream file(entry.path());
    for (const auto& one : nlohmann::json::parse(file)) names.push_back(one.at("model"));
  }
  std::sort(names.begin(), names.end());
  return names;
}

Case load_case(const std::string& name) {
  const std::filesystem::path folder = models_folder();
  const std::string stem = name.substr(0, name.find('.'));
  std::ifstream file(folder / (stem + ".json"));
  for (const auto& one : nlohmann::json::parse(file)) {
    if (one.at("model") != name) continue;
    Case found{folder / name, {}};
    for (const auto& call : one.at("calls")) {
      found.calls.push_back({call.at("method"), items_of(load_torch_file(folder / call.at("args"))),
                             load_torch_file(folder / call.at("result"))});
    }
    return found;
  }
  throw std::runtime_error("no model " + name);
}

// The largest difference of two values, relative to the size of the expected one; infinite if their types or shapes
// differ.
double difference(const Value& found, const Value& expected);

double difference(const Tensor& found, const Tensor& expected) {
  if (found.sizes() != expected.sizes() || found.dtype() != expected.dtype()) return INFINITY;
  const Tensor a = found.contiguous().to(DType::kFloat64), b = expected.contiguous().to(DType::kFloat64);
  double max = 0, scale = 1;
  for (int64_t i = 0; i < a.numel(); ++i) {
    const double x = a.data<double>()[i], y = b.data<double>()[i];
    if (std::isnan(x) != std::isnan(y)) return INFINITY;
    if (std::isfinite(y)) scale = std::max(scale, std::abs(y));
    if (x == y || std::isnan(x)) continue;
    max = std::max(max, std::abs(x - y));
  }
  return max / scale;
}

double difference(const std::vector<Value>& found, const std::vector<Value>& expected) {
  if (found.size() != expected.size()) return INFINITY;
  double max = 0;
  for (size_t i = 0; i < found.size(); ++i) max = std::max(max, difference(found[i], expected[i]));
  return max;
}

double difference(const Value& found, const Value& expected) {
  if (found.is_tensor() && expected.is_tensor()) return difference(found.to_tensor(), expected.to_tensor());
  const auto is_sequence = [](const Value& value) { return value.is_list() || value.is_tuple(); };
  if (is_sequence(found) && is_sequence(expected)) return difference(items_of(found), items_of(expected));
  if (found.is_dict() && expected.is_dict()) {
    const auto &a = found.to_dict()->items(), &b = expected.to_dict()->items();
    if (a.size() != b.size()) return INFINITY;
    double max = 0;
    for (size_t i = 0; i < a.size(); ++i) max = std::max(max, difference(a[i].second, b[i].second));
    return max;
  }
  if (found.is_number() && expected.is_number()) {
    const double x = found.to_scalar().to_double(), y = expected.to_scalar().to_double();
    return x == y ? 0 : std::abs(x - y);
  }
  return found.tag() == expected.tag() && found.equals(expected) ? 0 : INFINITY;
}

bool is_identical(const Value& a, const Value& b) {
  if (a.is_tensor() && b.is_tensor()) {
    const Tensor x = a.to_tensor().contiguous(), y = b.to_tensor().contiguous();
    return x.sizes() == y.sizes() && x.dtype() == y.dtype() &&
           (x.numel() == 0 || std::memcmp(x.raw_data(), y.raw_data(), x.size_bytes()) == 0);
  }
  const auto is_sequence = [](const Value& value) { return value.is_list() || value.is_tuple(); };
  if (is_sequence(a) && is_sequence(b)) {
    const std::vector<Value> x = items_of(a), y = items_of(b);
    bool is_same = x.size() == y.size();
    for (size_t i = 0; is_same && i < x.size(); ++i) is_same = is_identical(x[i], y[i]);
    return is_same;
  }
  return difference(a, b) == 0;
}

// A model may write to its arguments, and a later call to an earlier call's result.
Value copy_of(const Value& value);

std::vector<Value> copy_of(const std::vector<Value>& values) {
  std::vector<Value> copy;
  for (const Value& value : values) copy.push_back(copy_of(value));
  return copy;
}

Value copy_of(const Value& value) {
  if (value.is_tensor()) return value.to_tensor().clone(true);
  if (value.is_list()) return ops::make_list(value.to_list()->element, copy_of(value.to_list()->items));
  if (value.is_tuple())
    return make_intrusive<ops::TupleObject>(copy_of(value.to_tuple()->items), value.to_tuple()->type);
  return value;
}

std::vector<Value> run_calls(const Module& module, const Case& one, Frame& frame) {
  std::vector<Value> results;
  for (const Call& call : one.calls)
    results.push_back(copy_of(module.method(call.method).run(frame, copy_of(call.arguments))));
  return results;
}

std::vector<Value> run_fresh(const Case& one, const LoadOptions& options) {
  const auto module = Module::load(one.archive, options);
  Frame frame;
  std::vector<Value> results = run_calls(*module, one, frame);
  for (const Call& call : one.calls)
    EXPECT_EQ(module->method(call.method).plan_stats().refused, 0u) << one.archive << ": a plan is not proven";
  return results;
}

void expect_close(const std::vector<Value>& found, const Case& one, const std::string& how) {
  ASSERT_EQ(found.size(), one.calls.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_LT(difference(found[i], one.calls[i].expected), 1e-4) << one.archive << " call " << i << ", " << how;
  }
}

void expect_identical(const std::vector<Value>& found, const std::vector<Value>& expected, const std::string& how) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i)
    EXPECT_TRUE(is_identical(found[i], expected[i])) << "call " << i << ", " << how;
}

// The passes that change this model, at load or for its calls' shapes.
std::set<std::string> passes_at_work(const Case& one) {
  std::set<std::string> names{"split_samples", "in_place", "memory_plan"};
  LoadOptions options;
  options.passes.observer = [&](const std::string& pass, const Graph&) { names.insert(pass); };
  const auto module = Module::load(one.archive, options);
  for (const Call& call : one.calls) module->method(call.method).specialize(call.arguments, options.passes);
  names.erase("");
  return names;
}

class MatrixTest : public ::testing::TestWithParam<std::string> {
 protected:
  MatrixTest() : one_(load_case(GetParam())) { set_thread_budget(2); }
  const Case one_;
};

TEST_P(MatrixTest, InterpretedAndPlanned) {
  LoadOptions options;
  expect_close(run_fresh(one_, options), one_, "planned");
  options.plan.is_enabled = false;
  expect_close(run_fresh(one_, options), one_, "interpreted");
}

TEST_P(MatrixTest, PoisonedMemoryAndSecondRunsChangeNothing) {
  LoadOptions options;
  const std::vector<Value> first = run_fresh(one_, options);
  options.plan.poison = true;
  expect_identical(run_fresh(one_, options), first, "poisoned");
  const auto module = Module::load(one_.archive, options);
  Frame frame;
  run_calls(*module, one_, frame);
  const bool keeps_state = std::any_of(one_.calls.begin(), one_.calls.end(),
                                       [&](const Call& call) { return module->method(call.method).changes_state(); });
  if (!keeps_state) expect_identical(run_calls(*module, one_, frame), first, "poisoned, again");
}

TEST_P(MatrixTest, EachPassOff) {
  for (const std::string& pass : passes_at_work(one_)) {
    LoadOptions options;
    options.passes.disabled = {pass};
    expect_close(run_fresh(one_, options), one_, "without " + pass);
  }
}

TEST_P(MatrixTest, OneToThreeThreads) {
  for (const int threads : {1, 2, 3}) {
    set_thread_budget(threads);
    const std::vector<Value> first = run_fresh(one_, {});
    expect_close(first, one_, std::to_string(threads) + " threads");
    expect_identical(run_fresh(one_, {}), first, std::to_string(threads) + " threads, again");
  }
}

TEST_P(MatrixTest, EightThreadsAtOnce) {
  set_thread_budget(1);
  const auto module = Module::load(one_.archive, {});
  Frame frame;
  const std::vector<Value> expected = run_calls(*module, one_, frame);
  for (const Call& call : one_.calls) {
    if (module->method(call.method).changes_state()) GTEST_SKIP() << "calls change the module";
  }
  std::vector<std::vector<Value>> found(8);
  std::vector<std::thread> threads;
  for (std::vector<Value>& results : found) {
    threads.emplace_back([&] {
      set_thread_budget(1);
      Frame own;
      for (int round = 0; round < 2; ++round) results = run_calls(*module, one_, own);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& results : found) expect_identical(results, expected, "8 threads at once");
}

#ifdef TENSORD_COUNTS_MALLOC
// Models in which every call is prepared, and which return tensors of their own.
const std::set<std::string> kQuiet{
    "mlp",         "resnet18",     "resnet50",           "mobilenet_v2",    "squeezenet1_1",
    "densenet121", "vgg11",        "mobilenet_v3_small", "efficientnet_b0", "encoder",
    "gru_tagger",  "cell_decoder", "lstm_states"};

TEST_P(MatrixTest, SteadyStateAllocatesNothing) {
  if (!kQuiet.contains(GetParam().substr(0, GetParam().find('.')))) GTEST_SKIP();
  set_thread_budget(1);
  const auto module = Module::load(one_.archive, {});
  Frame frame;
  for (const Call& call : one_.calls) {
    const Method& method = module->method(call.method);
    const int runs = call.arguments[0].to_tensor().numel() > 10000 ? 10 : 100;
    for (int i = 1; i < runs; ++i) frame.recycle(method.run(frame, call.arguments));
    const int64_t heap_before = heap_calls;
    const AllocatorStats pool_before = cpu_allocator().stats();
    frame.recycle(method.run(frame, call.arguments));
    const int64_t heap_after = heap_calls;
    EXPECT_EQ(heap_after - heap_before, 0) << call.method;
    EXPECT_EQ(cpu_allocator().stats().allocations - pool_before.allocations, 0u) << call.method;
  }
}
#endif

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(MatrixTest);
INSTANTIATE_TEST_SUITE_P(Models, MatrixTest, ::testing::ValuesIn(case_names()), [](const auto& info) {
  std::string name = info.param.substr(0, info.param.rfind('.'));
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
});

}  // namespace
}  // namespace tensord::jit::matrix_test
