// Replays the cases that tests/ops/make_op_cases.py wrote, through autograd:
//  - the same results require gradients as in PyTorch,
//  - gradients, and gradients of gradients, equal PyTorch's,
//  - the in-place forms have the gradients of the functional form,
//  - an operator that PyTorch differentiates has a gradient.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/autograd/engine.h"
#include "core/autograd/variable.h"
#include "tests/ops/op_cases.h"

namespace tensord {
namespace {

using namespace op_cases;

using TensorFn = std::function<Tensor(const Tensor&)>;

bool is_list_of_values(const Value& value) { return value.is_list() || value.is_tuple(); }

// The floating point tensors of arguments or results, lists and tuples taken apart.
void collect(const Value& value, std::vector<Tensor>& to) {
  if (value.is_tensor() && is_floating(value.to_tensor().dtype())) to.push_back(value.to_tensor());
  if (!is_list_of_values(value)) return;
  for (const Value& item : items(value)) collect(item, to);
}
std::vector<Tensor> tensors_in(const std::vector<Value>& values) {
  std::vector<Tensor> out;
  for (const Value& value : values) collect(value, out);
  return out;
}

// The same value with its floating point tensors replaced, in the order of `collect`.
Value replace(const Value& value, const TensorFn& fn) {
  if (value.is_tensor() && is_floating(value.to_tensor().dtype())) return fn(value.to_tensor());
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

// As make_op_cases.weights makes them.
Tensor weights(const Tensor& like, int64_t seed) {
  const Tensor out = Tensor::empty(like.sizes(), DType::kFloat64);
  for (int64_t i = 0; i < out.numel(); ++i) {
    const uint32_t mixed = static_cast<uint32_t>(i + 7919 * seed) * 2654435761u;
    out.data<double>()[i] = mixed / 2147483648.0 - 1;
  }
  return out.to(like.dtype());
}

// As make_op_cases.sample takes them.
Tensor sample(const Tensor& gradient) {
  const Tensor dense = gradient.contiguous();
  const int64_t step = dense.numel() / 256 + 1, count = (dense.numel() + step - 1) / step;
  return dense.as_view(Dims{count}, Dims{step}, dense.offset());
}

bool is_all_zero(const Tensor& x) {
  const Tensor wide = x.to(DType::kFloat64).contiguous();
  const double* values = wide.data<double>();
  return std::all_of(values, values + wide.numel(), [](double value) { return value == 0; });
}

// A case with its leaves made anew for each run.
class GradientCase {
 public:
  GradientCase(const Value& record, const ops::Op& op)
      : op_(op), arguments_(items(field(record, "args"))), expected_(field(record, "gradient")) {
    for (const Value& index : items(field(expected_, "leaves"))) leaf_numbers_.insert(index.to_int());
    tolerance_ = {field(expected_, "rtol").to_float(), field(expected_, "atol").to_float()};
  }

  // "" or what is wrong. `form` is the operator itself or its in-place form.
  std::string check(const ops::Op& form) {
    if (!run(form)) return "";
    const std::vector<Value>& requires_grad = items(field(expected_, "requires"));
    if (outputs_.size() != requires_grad.size()) {
      return concat("got ", outputs_.size(), " floating results, expected ", requires_grad.size());
    }
    std::vector<Tensor> roots;
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const bool wanted = requires_grad[i].to_bool();
      // Statistics beside the first result have a gradient here where PyTorch says they have none.
      if (autograd::requires_grad(outputs_[i]) != wanted && (wanted || i == 0)) {
        return concat("result ", i, wanted ? " requires no gradient" : " requires a gradient");
      }
      if (wanted) roots.push_back(outputs_[i]);
    }
    return roots.empty() ? "" : check_gradients(roots);
  }

 private:
  // False when the in-place form does not apply.
  bool run(const ops::Op& form) {
    leaves_.clear();
    int64_t number = 0;
    std::vector<Value> bound = ops::bind(op_, copy_all(arguments_));
    for (Value& value : bound) {
      value = replace(value, [&](const Tensor& x) {
        if (!leaf_numbers_.contains(number++)) return x;
        autograd::set_requires_grad(x);
        leaves_.push_back(x);
        return x;
      });
    }
    std::vector<Tensor> written;
    for (size_t i = 0; i < form.schema.arguments.size() && i < bound.size(); ++i) {
      if (!form.schema.arguments[i].alias.is_write || !bound[i].is_tensor()) continue;
      if (autograd::requires_grad(bound[i].to_tensor())) bound[i] = ops::call("aten::clone", bound[i]);
      written.push_back(bound[i].to_tensor());
    }
    if (&form != &op_ && !fits_in_place(bound)) return false;
    outputs_ = tensors_in(ops::run(form, bound));
    for (const Tensor& x : written) {
      const bool is_returned =
          std::any_of(outputs_.begin(), outputs_.end(), [&](const Tensor& output) { return output.is_same(x); });
      if (!is_returned && is_floating(x.dtype())) outputs_.push_back(x);
    }
    return true;
  }

  bool fits_in_place(const std::vector<Value>& bound) const {
    const Tensor& self = bound[0].to_tensor();
    const Value result = ops::infer(op_, bound).front();
    return result.to_tensor().sizes() == self.sizes() && result.to_tensor().dtype() == self.dtype();
  }

  std::string check_gradients(const std::vector<Tensor>& roots) {
    const bool has_second = expected_.to_dict()->find(Value("second")) >= 0;
    std::vector<Tensor> grad_outputs;
    for (size_t i = 0; i < roots.size(); ++i) {
      grad_outputs.push_back(weights(roots[i], static_cast<int64_t>(i)));
      autograd::set_requires_grad(grad_outputs.back());
    }
    const std::vector<Tensor> first =
        autograd::grad(roots, leaves_, grad_outputs, {.create_graph = has_second}, /*allow_unused=*/true);
    std::string problem = compare_gradients("gradient", first, items(field(expected_, "first")), true);
    if (!problem.empty() || !has_second) return problem;
    Tensor total;
    for (size_t i = 0; i < first.size(); ++i) {
      if (!first[i] || !autograd::requires_grad(first[i])) continue;
      const Tensor part = ops::call(
          "aten::sum", ops::call("aten::mul.Tensor", first[i], weights(first[i], 100 + static_cast<int64_t>(i))));
      total = total ? ops::call("aten::add.Tensor", total, part) : part;
    }
    std::vector<Tensor> inputs = leaves_;
    inputs.insert(inputs.end(), grad_outputs.begin(), grad_outputs.end());
    std::vector<Tensor> second(inputs.size());
    if (total) second = autograd::grad(std::span(&total, 1), inputs, {}, {}, /*allow_unused=*/true);
    return compare_gradients("second gradient", second, items(field(expected_, "second")), false);
  }

  // Where PyTorch says None, zeros will do; the other way round unless `is_strict`.
  std::string compare_gradients(const char* what, const std::vector<Tensor>& got, const std::vector<Value>& expected,
                                bool is_strict) const {
    if (got.size() != expected.size()) return concat(what, ": got ", got.size(), ", expected ", expected.size());
    for (size_t i = 0; i < got.size(); ++i) {
      if (expected[i].is_none()) {
        if (got[i] && !is_all_zero(got[i])) return concat(what, " ", i, " is not none");
        continue;
      }
      const Tensor& wanted = expected[i].to_tensor();
      if (!got[i]) {
        if (is_strict || !is_all_zero(wanted)) return concat(what, " ", i, " is none");
        continue;
      }
      if (i < leaves_.size() && got[i].sizes() != leaves_[i].sizes()) {
        return concat(what, " ", i, " is ", describe(got[i]), " for ", describe(leaves_[i]));
      }
      const std::string problem = compare_tensors(sample(got[i]), wanted, tolerance_);
      if (!problem.empty()) return concat(what, " ", i, ": ", problem);
    }
    return "";
  }

  const ops::Op& op_;
  const std::vector<Value>& arguments_;
  const Value& expected_;
  std::set<int64_t> leaf_numbers_;
  Tolerance tolerance_;
  std::vector<Tensor> leaves_, outputs_;
};

std::string check_case(const Value& record, const ops::Op& op) {
  GradientCase gradients(record, op);
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

TEST(OpGradients, EqualPyTorch) {
  const auto files = case_files();
  ASSERT_FALSE(files.empty()) << "set TENSORD_OP_CASES to the folder that make_op_cases wrote";
  size_t count = 0;
  std::map<std::string, std::string> missing;  // operators without a gradient, and what was said
  for (const auto& file : files) {
    const Value records = jit::load_torch_file(file.string());
    for (const Value& record : items(records)) {
      if (record.to_dict()->find(Value("gradient")) < 0) continue;
      const std::string& name = field(record, "op").to_string();
      const ops::Op* op = ops::find_op(name);
      if (!op) continue;
      ++count;
      std::string problem;
      const GradMode mode = current_grad_mode;
      try {
        problem = check_case(record, *op);
      } catch (const Error& error) {
        problem = error.what();
      }
      current_grad_mode = mode;
      if (problem.find("is not implemented") != std::string::npos) {
        missing.emplace(name, problem);
        continue;
      }
      EXPECT_EQ(problem, "") << field(record, "label").to_string() << " in " << file.filename();
    }
  }
  EXPECT_GT(count, 100u);
  std::string without;
  for (const auto& [name, message] : missing) without += concat("\n  ", name, ": ", message);
  EXPECT_TRUE(missing.empty()) << missing.size() << " operators have no gradient, but PyTorch's have one:" << without;
}

}  // namespace
}  // namespace tensord
