// Random programs of operators, views and in-place writes (make_programs.py), compared step by step with PyTorch: which
// steps are refused, what requires a gradient, the gradients and second gradients.
#include <cstdlib>

#include "tests/autograd/support.h"
#include "tests/ops/op_cases.h"

namespace tensord::autograd::programs_test {
namespace {

using op_cases::field;
using op_cases::items;
using ops::Value;

constexpr op_cases::Tolerance kTolerance{1e-9, 1e-11};

Value decode(const Value& argument, const std::vector<Tensor>& variables) {
  if (argument.is_dict()) return variables.at(static_cast<size_t>(field(argument, "var").to_int()));
  if (!argument.is_list()) return argument;
  std::vector<Value> decoded;
  for (const Value& item : items(argument)) decoded.push_back(decode(item, variables));
  const bool is_tensors = !decoded.empty() && decoded.front().is_tensor();
  return ops::make_list(is_tensors ? ops::tensor_type() : ops::int_type(), std::move(decoded));
}

// Autograd's messages must equal PyTorch's; for other errors any message will do.
std::string compare_errors(const std::string& got, const std::string& expected) {
  // PyTorch refuses overlapping memory before autograd runs, this engine after it.
  if (!got.empty() && expected.starts_with("unsupported operation")) return "";
  if (!expected.empty() && got.find("unsupported operation") != std::string::npos) return "";
  // Not the message that PyTorch intended.
  if (!got.empty() && expected.find("INTERNAL ASSERT") != std::string::npos) return "";
  if (got.empty() != expected.empty()) return concat("got \"", got, "\", PyTorch says \"", expected, "\"");
  for (const char* part : {"a leaf Variable that requires grad", "a view of a leaf Variable", "is a view and is being",
                           "is a view and its base", "no_grad mode and is being", "no_grad mode and its base",
                           "has been modified by an inplace operation"}) {
    const bool is_expected = expected.find(part) != std::string::npos;
    if (is_expected != (got.find(part) != std::string::npos)) {
      return concat("got \"", got, "\", PyTorch says \"", expected, "\"");
    }
  }
  return "";
}

class Program {
 public:
  explicit Program(const Value& record) : record_(record) {
    const auto &inputs = items(field(record, "inputs")), &asks = items(field(record, "asks"));
    for (size_t i = 0; i < inputs.size(); ++i) {
      leaves_.push_back(inputs[i].to_tensor().clone());
      set_requires_grad(leaves_.back(), asks[i].to_bool());
    }
    variables_ = leaves_;
  }

  // "" if everything is as in PyTorch.
  std::string run() {
    const auto& steps = items(field(record_, "steps"));
    for (size_t i = 0; i < steps.size(); ++i) {
      std::string problem;
      try {
        problem = run_step(steps[i]);
      } catch (const Error& error) {
        problem = concat("check failed: ", error.what());
      }
      if (problem == kDiffers) return "";
      if (!problem.empty()) return concat("step ", i, " (", field(steps[i], "op").to_string(), "): ", problem);
    }
    return field(record_, "total").is_none() ? "" : run_passes();
  }

 private:
  // PyTorch alone refuses this step, so the program cannot be compared any further.
  static constexpr const char* kDiffers = "differs";
  bool is_known_difference(const Value& step, const std::string& expected_error) {
    // copy_ copies overlapping memory.
    if (expected_error.starts_with("unsupported operation")) return true;
    // A view of a leaf counts as a leaf until it is used, though its base is no longer one.
    if (!expected_error.starts_with("a leaf Variable")) return false;
    const Value target = decode(items(field(step, "args")).front(), variables_);
    return is_view(target.to_tensor()) && !is_leaf(base_of(target.to_tensor()));
  }

  std::string run_step(const Value& step) {
    const auto enabled = step.to_dict()->find(Value("grad_enabled"));
    const bool is_enabled = enabled < 0 || step.to_dict()->items()[static_cast<size_t>(enabled)].second.to_bool();
    const std::string& expected_error = field(step, "error").to_string();
    std::vector<Value> results;
    std::string error;
    try {
      const GradModeGuard mode({is_enabled, false});
      const ops::Op& op = ops::get_op(field(step, "op").to_string());
      std::vector<Value> arguments;
      for (const Value& argument : items(field(step, "args"))) arguments.push_back(decode(argument, variables_));
      results = ops::run(op, ops::bind(op, std::move(arguments)));
    } catch (const Error& failure) {
      error = failure.what();
    }
    if (error.empty() && is_known_difference(step, expected_error)) return kDiffers;
    // fill_, zero_ and copy_ write expanded tensors there.
    if (expected_error.empty() && error.find("unsupported operation") != std::string::npos) return kDiffers;
    if (std::string problem = compare_errors(error, expected_error); !problem.empty()) return problem;
    if (!error.empty()) return "";
    std::vector<Tensor> tensors;
    for (const Value& result : results) {
      if (result.is_tensor()) tensors.push_back(result.to_tensor());
      if (!result.is_list()) continue;
      for (const Value& item : items(result)) tensors.push_back(item.to_tensor());
    }
    const auto& expected = items(field(step, "results"));
    if (tensors.size() != expected.size()) return concat(tensors.size(), " results, PyTorch has ", expected.size());
    for (size_t i = 0; i < tensors.size(); ++i) {
      const auto& flags = items(expected[i]);
      if (requires_grad(tensors[i]) != flags[0].to_bool()) return concat("requires_grad of result ", i, " differs");
      if (!flags[1].is_none() && is_leaf(tensors[i]) != flags[1].to_bool())
        return concat("is_leaf of result ", i, " differs");
      variables_.push_back(tensors[i]);
    }
    return "";
  }

  std::string compare_gradients(const std::vector<Tensor>& got, const Value& expected, const char* what) {
    const auto& wanted = items(expected);
    for (size_t i = 0; i < wanted.size(); ++i) {
      // None and zeros are equivalent for users; which of the two it is depends on the formulas.
      const auto is_zero = [](const Tensor& tensor) {
        const Numbers values = numbers(tensor);
        return std::all_of(values.begin(), values.end(), [](double value) { return value == 0; });
      };
      if (!wanted[i].is_tensor() || !got[i].defined()) {
        if (wanted[i].is_tensor() ? !is_zero(wanted[i].to_tensor()) : !is_zero(got[i])) {
          return concat(what, " ", i, " is there in one only");
        }
        continue;
      }
      const std::string problem = op_cases::compare_tensors(got[i], wanted[i].to_tensor(), kTolerance);
      if (!problem.empty()) return concat(what, " ", i, ": ", problem);
    }
    return "";
  }

  std::string run_passes() {
    const Tensor total = variables_.at(static_cast<size_t>(field(record_, "total").to_int()));
    std::vector<Tensor> targets;
    for (const Tensor& leaf : leaves_) {
      if (requires_grad(leaf) && is_leaf(leaf)) targets.push_back(leaf);
    }
    BackwardOptions creating;
    creating.create_graph = true;
    std::vector<Tensor> first;
    std::string error;
    try {
      first = grad({&total, 1}, targets, {}, creating, true);
    } catch (const Error& failure) {
      error = failure.what();
    }
    // PyTorch saves the input of mean and some others only for its shape, and refuses if it was written.
    const std::string& expected_error = field(record_, "error").to_string();
    const bool keeps_more = expected_error.find("modified by an inplace operation") != std::string::npos ||
                            expected_error.find("is a view and its base") != std::string::npos;
    if (error.empty() && keeps_more) return "";
    if (std::string problem = compare_errors(error, expected_error); !problem.empty()) return "pass: " + problem;
    if (!error.empty()) return "";
    if (std::string problem = compare_gradients(first, field(record_, "grads"), "gradient"); !problem.empty()) {
      return problem;
    }
    const std::string& second_error = field(record_, "second_error").to_string();
    Tensor again;
    for (const Tensor& gradient : first) {
      if (!gradient.defined()) continue;
      const Tensor square = sum(mul(gradient, gradient));
      again = again.defined() ? add(again, square) : square;
    }
    if (!again.defined() || !requires_grad(again)) return second_error.empty() ? "no second derivative" : "";
    std::vector<Tensor> second;
    try {
      second = grad({&again, 1}, targets, {}, {}, true);
    } catch (const Error& failure) {
      return second_error.empty() ? concat("second pass: ", failure.what()) : "";
    }
    return second_error.empty() ? compare_gradients(second, field(record_, "second"), "second derivative") : "";
  }

  const Value& record_;
  std::vector<Tensor> leaves_, variables_;
};

TEST(Programs, AreWhatPyTorchMakesOfThem) {
  const char* path = std::getenv("TENSORD_AUTOGRAD_PROGRAMS");
  ASSERT_NE(path, nullptr) << "set TENSORD_AUTOGRAD_PROGRAMS to the file that make_programs.py wrote";
  const Value programs = jit::load_torch_file(path);
  size_t count = 0, wrong = 0;
  for (const Value& record : items(programs)) {
    ++count;
    const std::string problem = Program(record).run();
    if (problem.empty() || ++wrong > 20) continue;
    ADD_FAILURE() << "program of seed " << field(record, "seed").to_int() << ": " << problem;
  }
  EXPECT_EQ(wrong, 0u) << "of " << count;
  EXPECT_GE(count, 100u);
}

}  // namespace
}  // namespace tensord::autograd::programs_test
