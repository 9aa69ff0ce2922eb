// Runs the programs of tests/script and tests/language as PyTorch saved them, with passes and plans and without, and
// compares results, types, errors and output with PyTorch's. TENSORD_SCRIPT_CASES names the archives.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "core/jit/runtime/module.h"
#include "core/tensor/grad_mode.h"
#include "tests/ops/op_cases.h"

namespace tensord::jit::script_cases_test {
namespace {

using op_cases::field;
using op_cases::items;
using ops::Value;

std::filesystem::path folder() {
  const char* path = std::getenv("TENSORD_SCRIPT_CASES");
  return path ? path : "";
}

std::vector<std::string> groups() {
  std::vector<std::string> names;
  if (folder().empty()) return names;
  for (const auto& entry : std::filesystem::directory_iterator(folder())) {
    if (entry.path().extension() == ".calls") names.push_back(entry.path().stem());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string shown(const Value& value) {
  std::string text =
      value.is_tensor() ? describe(value.to_tensor()) : ops::call_by_name<std::string>("aten::str", value);
  return text.size() > 400 ? text.substr(0, 400) + "…" : text;
}

// A message without the author's line at its end, "(classes.py:235)", which PyTorch says in its traceback.
std::string_view without_line(std::string_view message) {
  const size_t line = message.rfind(" (");
  const bool has_line = line != std::string_view::npos && message.find(".py:", line) != std::string_view::npos;
  return message.substr(0, has_line ? line : message.size());
}

class Checker {
 public:
  Checker(std::string how, LoadOptions options, const std::string& group)
      : how_(std::move(how)),
        mode_({.is_enabled = options.for_training, .is_inference = !options.for_training}),
        module_(Module::load(folder() / (group + ".pt"), options)) {}

  // Arguments are read again for every round, since a call may change them.
  void check_all(const Value& programs) {
    for (const Value& record : items(programs)) {
      const std::string name = field(record, "name").to_string();
      const double rtol = field(record, "rtol").to_float();
      tolerance_ = {.rtol = rtol, .atol = rtol / 100};  // for sums that cancel
      const std::vector<Value>& calls = items(field(record, "calls"));
      for (const Value& call : calls) check(name, call);
      const auto is_refused = [](const Value& call) { return !field(call, "error").to_string().empty(); };
      if (std::all_of(calls.begin(), calls.end(), is_refused)) continue;  // perhaps the method does not exist
      EXPECT_EQ(module_->method(name).plan_stats().refused, 0u) << name << ": a plan is not proven";
    }
  }

  size_t count() const { return count_; }

 private:
  void check(const std::string& name, const Value& call) {
    ++count_;
    const std::vector<Value> arguments = items(field(call, "args"));
    std::string before;
    for (const Value& argument : arguments) before += (before.empty() ? "" : ", ") + shown(argument);
    const std::string& refusal = field(call, "error").to_string();
    std::string problem;
    ::testing::internal::CaptureStdout();
    try {
      const Value result = module_->method(name).run(frame_, arguments);
      problem = !refusal.empty() ? "no error, expected: " + refusal + "; got " + shown(result)
                                 : op_cases::compare(result, field(call, "result"), tolerance_);
    } catch (const Error& error) {
      const bool is_missing = error.code() == ErrorCode::kUnimplemented || error.code() == ErrorCode::kInternal;
      const bool is_other = !without_line(error.what()).ends_with(field(call, "says").to_string());
      if (refusal.empty() || is_missing || is_other)
        problem = concat("refused: ", error.what(), "; expected: ", refusal);
    }
    const std::string text = ::testing::internal::GetCapturedStdout(), &expected = field(call, "printed").to_string();
    if (problem.empty() && text != expected) problem = concat("printed: ", text, "; expected: ", expected);
    if (!problem.empty()) ADD_FAILURE() << name << "(" << before << "), " << how_ << ": " << problem;
  }

  std::string how_;
  GradModeGuard mode_;
  op_cases::Tolerance tolerance_;
  std::shared_ptr<Module> module_;
  Frame frame_;
  size_t count_ = 0;
};

class ScriptCases : public ::testing::TestWithParam<std::string> {};

TEST_P(ScriptCases, EqualPyTorch) {
  LoadOptions plain;
  plain.optimize = false;
  plain.plan.is_enabled = false;
  const Value all = load_torch_file(folder() / (GetParam() + ".calls"));
  for (auto [how, options] : {std::pair("interpreted", plain), std::pair("planned", LoadOptions())}) {
    options.for_training = field(items(all).front(), "grad").to_bool();
    Checker checker(how, options, GetParam());
    int64_t rounds = 1;
    for (int64_t round = 0; round < rounds && !HasFailure(); ++round) {
      const Value programs = load_torch_file(folder() / (GetParam() + ".calls"));
      rounds = field(items(programs).front(), "rounds").to_int();
      checker.check_all(programs);
    }
    EXPECT_GT(checker.count(), 0u);
  }
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ScriptCases);
INSTANTIATE_TEST_SUITE_P(Groups, ScriptCases, ::testing::ValuesIn(groups()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tensord::jit::script_cases_test
