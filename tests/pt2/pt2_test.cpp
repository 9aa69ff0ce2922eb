// Programs that PyTorch 2.x exported (tests/pt2/data, see make_programs.py there), and their results.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "core/autograd/engine.h"
#include "core/autograd/variable.h"
#include "core/jit/archive/torch_file.h"
#include "core/jit/archive/zip.h"
#include "core/jit/runtime/module.h"
#include "core/ops/run.h"
#include "tests/support/leaves.h"
#include "tests/support/places.h"
#include "tests/support/ways_to_run.h"

namespace tensord::jit::pt2_test {
namespace {

namespace fs = std::filesystem;
using ops::leaves_of;
using ops::Value;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

fs::path data() { return fs::path(tests_folder()) / "pt2" / "data"; }

void expect_close(const Tensor& got, const Tensor& expected, const std::string& what) {
  ASSERT_EQ(got.dtype(), expected.dtype()) << what;
  ASSERT_EQ(got.sizes(), expected.sizes()) << what;
  const Tensor a = got.to(DType::kFloat64).contiguous(), b = expected.to(DType::kFloat64).contiguous();
  const double tolerance = got.dtype() == DType::kBFloat16 ? 1e-2 : got.dtype() == DType::kFloat16 ? 1e-3 : 1e-5;
  for (int64_t i = 0; i < a.numel(); ++i) {
    const double x = a.data<double>()[i], y = b.data<double>()[i];
    if (std::isnan(x) && std::isnan(y)) continue;
    ASSERT_TRUE(x == y || std::abs(x - y) <= tolerance + tolerance * std::abs(y))
        << what << ": element " << i << " is " << x << ", expected " << y;
  }
}

void expect_leaves(const std::vector<Value>& got, const std::vector<Value>& expected, const std::string& what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) {
    const std::string where = concat(what, ", result ", i);
    if (expected[i].is_tensor()) {
      ASSERT_TRUE(got[i].is_tensor()) << where << " is " << got[i].tag_name();
      expect_close(got[i].to_tensor(), expected[i].to_tensor(), where);
    } else {
      EXPECT_TRUE(got[i].equals(expected[i])) << where;
    }
  }
}

// (arguments, results) of each call of a program, in order.
const std::vector<Value>& calls_of(const std::string& name) {
  static const Value calls = load_torch_file((data() / "calls.pt").string());
  const std::ptrdiff_t found = calls.to_dict()->find(Value(name));
  check(found >= 0, name, " has no calls");
  return calls.to_dict()->items()[static_cast<size_t>(found)].second.to_list()->items;
}

// Copies, because a program may write to its arguments.
std::vector<Value> arguments_of(const Value& call) {
  std::vector<Value> arguments;
  for (const Value& value : call.to_tuple()->items[0].to_tuple()->items) {
    arguments.push_back(value.is_tensor() ? Value(value.to_tensor().clone(/*preserve_strides=*/true)) : value);
  }
  return arguments;
}

// All calls of a program, in order.
void run_calls(const std::string& name, const LoadOptions& options, const std::string& how) {
  const auto module = Module::load((data() / (name + ".pt2")).string(), options);
  Frame frame;
  int number = 0;
  for (const Value& call : calls_of(name)) {
    const Value got = module->method("forward").run(frame, arguments_of(call));
    expect_leaves(leaves_of(got), leaves_of(call.to_tuple()->items[1]), concat(name, ", call ", number++, ", ", how));
  }
  EXPECT_GT(number, 0) << name << " has no calls";
}

class ProgramTest : public ::testing::TestWithParam<std::string> {};

TEST_P(ProgramTest, GivesWhatPyTorchGives) {
  in_every_way([](const LoadOptions& options, const char* how) { run_calls(GetParam(), options, how); });
}

std::vector<std::string> program_names() {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(data())) {
    if (entry.path().extension() == ".pt2") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

INSTANTIATE_TEST_SUITE_P(Pt2, ProgramTest, ::testing::ValuesIn(program_names()),
                         [](const auto& parameter) { return parameter.param; });

std::shared_ptr<Module> load(const std::string& name, bool for_training = false) {
  LoadOptions options;
  options.for_training = for_training;
  return Module::load((data() / (name + ".pt2")).string(), options);
}

// All entries except the weights, by name, without their common folder, which is named after the file.
std::map<std::string, std::string> entries_of(const fs::path& file) {
  std::map<std::string, std::string> entries;
  const auto zip = ZipArchive::open(file.string());
  for (const ZipArchive::Entry& entry : zip->entries()) {
    entries[entry.name] = entry.name.starts_with("data/weights/weight_") ? "" : std::string(zip->read(entry));
  }
  return entries;
}

bool is_same(const TensorSignature& a, const TensorSignature& b) {
  return a.name == b.name && a.dtype == b.dtype && a.shape == b.shape && a.size_names == b.size_names;
}

void double_weights(const Module& module) {
  const GradModeGuard off({.is_enabled = false, .is_inference = false});
  for (const auto& [name, parameter] : module.named_parameters()) {
    if (is_floating(parameter.dtype())) ops::call_by_name("aten::mul_.Scalar", parameter, 2);
  }
}

// After training, a checkpoint (with another file extension) and a save from there, the program is unchanged.
TEST_P(ProgramTest, SavedItIsTheSameProgramWithNewWeights) {
  const auto base = load(GetParam(), true);
  try {
    base->check_can_save();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnimplemented);
    EXPECT_THAT(error.what(), HasSubstr("in the layout of PyTorch up to 2.8 are not written"));
    EXPECT_TRUE(entries_of(data() / (GetParam() + ".pt2")).contains("data/weights/model.pt") ||
                GetParam().find("torch2") != std::string::npos);
    return;
  }
  const fs::path folder = fs::path(::testing::TempDir()) / concat("pt2_test.", getpid());
  fs::create_directories(folder);
  double_weights(*base);
  base->save((folder / "model.pt").string());
  LoadOptions options;
  options.for_training = true;
  Module::load((folder / "model.pt").string(), options)->save((folder / "model.pt2").string());
  const auto again = Module::load((folder / "model.pt2").string(), options);
  EXPECT_EQ(entries_of(folder / "model.pt2"), entries_of(data() / (GetParam() + ".pt2")));
  for (const std::string& method : base->method_names()) {
    const MethodSignature *before = base->signature(method), *after = again->signature(method);
    ASSERT_TRUE(before && after);
    EXPECT_TRUE(std::ranges::equal(before->inputs, after->inputs, is_same));
    EXPECT_TRUE(std::ranges::equal(before->outputs, after->outputs, is_same));
  }
  const auto expected = base->named_tensors(), got = again->named_tensors();
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].first, expected[i].first);
    EXPECT_EQ(autograd::requires_grad(got[i].second), autograd::requires_grad(expected[i].second)) << got[i].first;
    expect_close(got[i].second, expected[i].second, got[i].first);
  }
  fs::remove_all(folder);
}

std::pair<ErrorCode, std::string> failure_of(const Module& module, std::vector<Value> arguments) {
  Frame frame;
  try {
    module.method("forward").run(frame, arguments);
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  return {ErrorCode::kInternal, "no error"};
}

Tensor zeros(const Dims& sizes, DType dtype = DType::kFloat32) {
  return ops::call_by_name("aten::zeros", sizes, Value(dtype), Value(), Value(), Value());
}

TEST(Pt2Test, SignatureComesFromTheFile) {
  const auto module = load("nested");
  EXPECT_EQ(module->platform(), "pytorch_libtorch");
  const MethodSignature* signature = module->signature("forward");
  ASSERT_TRUE(signature);
  ASSERT_EQ(signature->inputs.size(), 3);
  EXPECT_EQ(signature->inputs[0].name, "x");
  EXPECT_EQ(signature->inputs[1].name, "d.a");
  EXPECT_EQ(signature->inputs[2].name, "k");
  EXPECT_EQ(signature->inputs[1].dtype, DType::kFloat32);
  EXPECT_EQ(signature->inputs[1].shape, (Dims{-1, 8}));
  ASSERT_EQ(signature->outputs.size(), 4);
  EXPECT_EQ(signature->outputs[0].name, "out");
  EXPECT_EQ(signature->outputs[1].name, "list.0");
  EXPECT_EQ(signature->outputs[3].name, "k");
  EXPECT_EQ(signature->outputs[0].shape, (Dims{-1, 3}));
}

TEST(Pt2Test, ParametersHaveTheirNames) {
  const auto module = load("nested");
  std::vector<std::string> parameters, buffers;
  for (const auto& [name, tensor] : module->named_parameters()) parameters.push_back(name);
  for (const auto& [name, tensor] : module->named_buffers()) buffers.push_back(name);
  EXPECT_THAT(parameters, ElementsAre("linear.weight", "linear.bias", "norm.weight", "norm.bias"));
  EXPECT_THAT(buffers, ElementsAre("norm.running_mean", "norm.running_var", "norm.num_batches_tracked"));
  EXPECT_EQ(load("tied")->named_parameters().size(), 1);
}

TEST(Pt2Test, WhatWasNotExportedIsRefused) {
  const auto module = load("conv");
  const auto refusal = [&](const Dims& sizes, DType dtype = DType::kFloat32) {
    const auto [code, text] = failure_of(*module, {zeros(sizes, dtype)});
    EXPECT_EQ(code, ErrorCode::kInvalidArgument) << text;
    return text;
  };
  EXPECT_THAT(refusal({33, 3, 8, 8}), HasSubstr("input 'x': dimension 0 has to be at most 32, but is 33"));
  EXPECT_THAT(refusal({2, 3, 8, 9}), HasSubstr("input 'x': dimension 3 has to be 8, but is 9"));
  EXPECT_THAT(refusal({3, 8, 8}), HasSubstr("input 'x' has to have 4 dimensions, but has 3"));
  EXPECT_THAT(refusal({2, 3, 8, 8}, DType::kFloat64), HasSubstr("input 'x' has to be of float32"));
  const auto [code, text] = failure_of(*load("nested"), {zeros({5, 4}), zeros({6, 8}), zeros({5})});
  EXPECT_EQ(code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(text,
              HasSubstr("input 'd.a': dimension 0 has to be as large as that of input 'x': dimension 0, but is 6"));
  const auto [derived_code, derived] = failure_of(*load("sizes"), {zeros({6, 13})});
  EXPECT_EQ(derived_code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(derived, HasSubstr("dimension 1 has to be a multiple of 4, but is 13"));
}

TEST(Pt2Test, TrainedAndSaved) {
  const fs::path file = fs::path(::testing::TempDir()) / concat("pt2_test.", getpid(), ".pt2");
  {
    const auto module = load("no_grad", true);
    Frame frame;
    const Value result = module->method("forward").run(frame, arguments_of(calls_of("no_grad")[0]));
    autograd::backward(ops::call_by_name("aten::sum", result.to_tensor(), Value()));
    for (const auto& [name, parameter] : module->named_parameters()) {
      const Tensor gradient = autograd::grad(parameter);
      ASSERT_TRUE(gradient) << name;
      const GradModeGuard off({.is_enabled = false, .is_inference = false});
      ops::call_by_name("aten::sub_.Tensor", parameter, gradient, 1);
    }
    module->save(file.string());
  }
  const auto before = load("no_grad"), after = Module::load(file.string());
  const auto expected = before->named_parameters(), got = after->named_parameters();
  ASSERT_EQ(got.size(), expected.size());
  EXPECT_NE(got[0].second.data<float>()[0], expected[0].second.data<float>()[0]);
  fs::remove(file);
}

}  // namespace
}  // namespace tensord::jit::pt2_test
