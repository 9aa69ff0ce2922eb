// Replays the cases written by tests/ops/make_op_cases.py with autograd:
//   - the same results require gradients as in PyTorch,
//   - gradients and second gradients equal PyTorch's,
//   - in-place variants have the gradients of the functional variant,
//   - an operator that PyTorch differentiates has a gradient,
//   - gradients equal finite differences.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/autograd/engine.h"
#include "core/autograd/gradcheck.h"
#include "core/autograd/variable.h"
#include "tests/ops/op_cases.h"

namespace tensord::op_gradients_test {
namespace {

using namespace op_cases;

using TensorFn = std::function<Tensor(const Tensor&)>;

bool is_list_of_values(const Value& value) { return value.is_list() || value.is_tuple(); }

bool is_continuous(const Tensor& x) { return is_floating(x.dtype()) || is_complex(x.dtype()); }

// The floating-point and complex tensors of arguments or results, including those in lists and tuples.
void collect(const Value& value, std::vector<Tensor>& to) {
  if (value.is_tensor() && is_continuous(value.to_tensor())) to.push_back(value.to_tensor());
  if (!is_list_of_values(value)) return;
  for (const Value& item : items(value)) collect(item, to);
}
std::vector<Tensor> tensors_in(const std::vector<Value>& values) {
  std::vector<Tensor> out;
  for (const Value& value : values) collect(value, out);
  return out;
}

// The same value with its floating-point tensors replaced, in the order of `collect`.
Value replace(const Value& value, const TensorFn& fn) {
  if (value.is_tensor() && is_continuous(value.to_tensor())) return fn(value.to_tensor());
  if (value.is_list()) {
    ops::List out = ops::make_list(value.to_list()->element);
    for (const Value& item : value.to_list()->items) out->items.push_back(replace(item, fn));
    return out;
  }
  if (value.is_tuple()) {
    std::vector<Value> out;
    for (const Value& item : value.to_tuple()->items) out.push_back(replace(item, fn));
    return ops::make_tuple(std::move(out));
  }
  return value;
}

// As in make_op_cases.weights.
Tensor weights(const Tensor& like, int64_t seed) {
  if (is_complex(like.dtype()))
    return as_complex(weights(Tensor::meta(as_real_pairs(like).sizes(), real_dtype(like.dtype())), seed));
  const Tensor out = Tensor::empty(like.sizes(), DType::kFloat64);
  for (int64_t i = 0; i < out.numel(); ++i) {
    const uint32_t mixed = static_cast<uint32_t>(i + 7919 * seed) * 2654435761u;
    out.data<double>()[i] = mixed / 2147483648.0 - 1;
  }
  return out.to(like.dtype());
}

// As in make_op_cases.sample.
Tensor sample(const Tensor& gradient) {
  const Tensor dense = gradient.contiguous();
  const int64_t step = dense.numel() / 256 + 1, count = (dense.numel() + step - 1) / step;
  return dense.as_view(Dims{count}, Dims{step}, dense.offset());
}

template <class Fn>
bool is_all(const Tensor& x, Fn&& fn) {
  if (is_complex(x.dtype())) return is_all(as_real_pairs(x), fn);
  const Tensor wide = x.to(DType::kFloat64).contiguous();
  return std::all_of(wide.data<double>(), wide.data<double>() + wide.numel(), fn);
}

// A case whose floating-point arguments are leaves, created anew for each run.
class GradientCase {
 public:
  GradientCase(const Value& record, const ops::Op& op)
      : op_(op),
        arguments_(items(field(record, "args"))),
        expected_(field(record, "gradient")),
        check_(field(record, "check").to_string()) {
    for (const Value& index : items(field(expected_, "leaves"))) leaf_numbers_.insert(index.to_int());
    for (const Value& requires_grad : items(field(expected_, "requires"))) requires_.push_back(requires_grad.to_bool());
    tolerance_ = {field(expected_, "rtol").to_float(), field(expected_, "atol").to_float()};
  }

  // "" or the problem. `form` is the operator itself or its in-place variant.
  std::string check(const ops::Op& form) const {
    const std::vector<Tensor> leaves = make_leaves();
    if (!fits(form)) return "";
    const std::vector<Tensor> outputs = call(form, leaves);
    if (outputs.size() != requires_.size()) {
      return concat("got ", outputs.size(), " floating results, expected ", requires_.size());
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      // Statistics after the first result have a gradient here, but none in PyTorch.
      if (autograd::requires_grad(outputs[i]) != requires_[i] && (requires_[i] || i == 0)) {
        return concat("result ", i, requires_[i] ? " requires no gradient" : " requires a gradient");
      }
    }
    const std::vector<Tensor> roots = roots_of(outputs);
    return roots.empty() ? "" : check_gradients(leaves, roots);
  }

  // Compares with finite differences; false if the case is too large, or not of finite float64.
  bool check_differences() const {
    const std::vector<Tensor> leaves = make_leaves();
    int64_t elements = 0;
    for (const Tensor& leaf : leaves) {
      if (leaf.dtype() != DType::kFloat64 || !is_all(leaf, [](double x) { return std::isfinite(x); })) return false;
      elements += leaf.numel();
    }
    if (elements == 0 || elements > 400) return false;
    const std::vector<Tensor> roots = roots_of(call(op_, leaves));
    int64_t results = 0;
    for (const Tensor& root : roots) {
      if (root.dtype() != DType::kFloat64) return true;  // a conversion: its rounding is larger than the differences
      results += root.numel();
    }
    if (results == 0 || results > 2000) return false;
    autograd::gradcheck([this](const std::vector<Tensor>& inputs) { return roots_of(call(op_, inputs)); }, leaves);
    return true;
  }

 private:
  std::vector<Tensor> make_leaves() const {
    std::vector<Tensor> leaves;
    const std::vector<Tensor> all = tensors_in(copy_all(arguments_));
    for (size_t i = 0; i < all.size(); ++i) {
      if (!leaf_numbers_.contains(static_cast<int64_t>(i))) continue;
      autograd::set_requires_grad(all[i]);
      leaves.push_back(all[i]);
    }
    return leaves;
  }

  // The floating-point results, and the mutated arguments that are not among them. Mutated leaves are cloned.
  std::vector<Tensor> call(const ops::Op& form, const std::vector<Tensor>& leaves) const {
    int64_t number = 0;
    size_t next = 0;
    std::vector<Value> bound = copy_all(arguments_);
    for (Value& value : bound) {
      value = replace(value, [&](const Tensor& x) { return leaf_numbers_.contains(number++) ? leaves[next++] : x; });
    }
    bound = ops::bind(op_, std::move(bound));
    std::vector<Tensor> written;
    for (size_t i = 0; i < form.schema.arguments.size() && i < bound.size(); ++i) {
      if (!form.schema.arguments[i].alias.is_write || !bound[i].is_tensor()) continue;
      if (autograd::requires_grad(bound[i].to_tensor())) bound[i] = ops::call_by_name("aten::clone", bound[i]);
      written.push_back(bound[i].to_tensor());
    }
    std::vector<Tensor> outputs = tensors_in(comparable(check_, ops::run(form, bound)));
    for (const Tensor& x : written) {
      const bool is_returned =
          std::any_of(outputs.begin(), outputs.end(), [&](const Tensor& output) { return output.is_same(x); });
      if (!is_returned && is_continuous(x)) outputs.push_back(x);
    }
    return outputs;
  }

  std::vector<Tensor> roots_of(const std::vector<Tensor>& outputs) const {
    std::vector<Tensor> roots;
    for (size_t i = 0; i < outputs.size() && i < requires_.size(); ++i) {
      if (requires_[i]) roots.push_back(outputs[i]);
    }
    return roots;
  }

  // Whether the in-place variant applies.
  bool fits(const ops::Op& form) const {
    if (&form == &op_) return true;
    const std::vector<Value> bound = ops::bind(op_, copy_all(arguments_));
    const Tensor &self = bound[0].to_tensor(), result = ops::run(op_, bound).front().to_tensor();
    return result.sizes() == self.sizes() && result.dtype() == self.dtype();
  }

  std::string check_gradients(const std::vector<Tensor>& leaves, const std::vector<Tensor>& roots) const {
    const bool has_second = expected_.to_dict()->find(Value("second")) >= 0;
    std::vector<Tensor> grad_outputs;
    for (size_t i = 0; i < roots.size(); ++i) {
      grad_outputs.push_back(weights(roots[i], static_cast<int64_t>(i)));
      autograd::set_requires_grad(grad_outputs.back());
    }
    const std::vector<Tensor> first =
        autograd::grad(roots, leaves, grad_outputs, {.create_graph = has_second}, /*allow_unused=*/true);
    std::vector<Tensor> inputs = leaves;
    std::string problem = compare_gradients("gradient", first, inputs, items(field(expected_, "first")), true);
    if (!problem.empty() || !has_second) return problem;
    Tensor total;
    for (size_t i = 0; i < first.size(); ++i) {
      if (!first[i] || !autograd::requires_grad(first[i])) continue;
      const Tensor real = is_complex(first[i].dtype()) ? ops::call_by_name("aten::view_as_real", first[i]) : first[i];
      const Tensor part = ops::call_by_name(
          "aten::sum", ops::call_by_name("aten::mul.Tensor", real, weights(real, 100 + static_cast<int64_t>(i))));
      total = total ? ops::call_by_name("aten::add.Tensor", total, part) : part;
    }
    inputs.insert(inputs.end(), grad_outputs.begin(), grad_outputs.end());
    std::vector<Tensor> second(inputs.size());
    if (total) second = autograd::grad(std::span(&total, 1), inputs, {}, {}, /*allow_unused=*/true);
    return compare_gradients("second gradient", second, inputs, items(field(expected_, "second")), false);
  }

  // Zeros are accepted for PyTorch's None, and the reverse unless `is_strict`.
  std::string compare_gradients(const char* what, const std::vector<Tensor>& got, const std::vector<Tensor>& inputs,
                                const std::vector<Value>& expected, bool is_strict) const {
    if (got.size() != expected.size()) return concat(what, ": got ", got.size(), ", expected ", expected.size());
    for (size_t i = 0; i < got.size(); ++i) {
      if (expected[i].is_none()) {
        if (got[i] && !is_all(got[i], [](double x) { return x == 0; })) return concat(what, " ", i, " is not none");
        continue;
      }
      const Tensor& wanted = expected[i].to_tensor();
      if (!got[i]) {
        if (is_strict || !is_all(wanted, [](double x) { return x == 0; })) return concat(what, " ", i, " is none");
        continue;
      }
      if (got[i].sizes() != inputs[i].sizes()) {
        return concat(what, " ", i, " is ", describe(got[i]), " for ", describe(inputs[i]));
      }
      const std::string problem = compare_tensors(sample(got[i]), wanted, tolerance_);
      if (!problem.empty()) return concat(what, " ", i, ": ", problem);
    }
    return "";
  }

  const ops::Op& op_;
  const std::vector<Value>& arguments_;
  const Value& expected_;
  const std::string check_;
  std::set<int64_t> leaf_numbers_;
  std::vector<bool> requires_;
  Tolerance tolerance_;
};

std::string check_case(const Value& record, const ops::Op& op) {
  const GradientCase gradients(record, op);
  if (std::string problem = gradients.check(op); !problem.empty()) return problem;
  for (const ops::Op* form : ops::all_ops()) {
    const bool is_inplace = form->base == &op && form->schema.name != op.schema.name;
    if (!is_inplace) continue;
    if (std::string problem = gradients.check(*form); !problem.empty()) {
      return concat(form->schema.full_name(), ": ", problem);
    }
  }
  return "";
}

// Calls fn(record, operator) for every record with gradients.
template <class Fn>
void for_each_case(Fn&& fn) {
  const auto files = case_files();
  ASSERT_FALSE(files.empty()) << "set TENSORD_OP_CASES to the folder that make_op_cases wrote";
  for (const auto& file : files) {
    const Value records = jit::load_torch_file(file.string());
    for (const Value& record : items(records)) {
      if (record.to_dict()->find(Value("gradient")) < 0) continue;
      const ops::Op* op = ops::find_op(field(record, "op").to_string());
      if (!op) continue;
      const GradModeGuard restores_mode(execution_context().grad_mode);  // cases may change it
      fn(record, *op);
    }
  }
}

TEST(OpGradients, EqualPyTorch) {
  size_t count = 0;
  std::map<std::string, std::string> missing;  // operators without a gradient, and the error
  for_each_case([&](const Value& record, const ops::Op& op) {
    ++count;
    std::string problem;
    try {
      problem = check_case(record, op);
    } catch (const Error& error) {
      problem = error.what();
    }
    if (problem.find("is not implemented") != std::string::npos)
      missing.emplace(op.schema.full_name(), problem);
    else
      EXPECT_EQ(problem, "") << field(record, "label").to_string();
  });
  EXPECT_GT(count, 0u);
  std::string without;
  for (const auto& [name, message] : missing) without += concat("\n  ", name, ": ", message);
  EXPECT_TRUE(missing.empty()) << missing.size() << " operators have no gradient, but PyTorch's have one:" << without;
}

// For each operator the first case that is small enough.
TEST(OpGradients, EqualFiniteDifferences) {
  std::set<const ops::Op*> checked, all;
  for_each_case([&](const Value& record, const ops::Op& op) {
    if (field(record, "gradient").to_dict()->find(Value("first")) < 0) return;
    if (!field(record, "differences").to_bool()) return;
    all.insert(&op);
    if (checked.contains(&op)) return;
    try {
      if (GradientCase(record, op).check_differences()) checked.insert(&op);
    } catch (const Error& error) {
      checked.insert(&op);
      ADD_FAILURE() << field(record, "label").to_string() << ": " << error.what();
    }
  });
  std::string left;
  for (const ops::Op* op : all) {
    if (!checked.contains(op)) left += " " + op->schema.full_name();
  }
  EXPECT_EQ(left, "") << "operators without a small row of finite float64 numbers";
}

}  // namespace
}  // namespace tensord::op_gradients_test
