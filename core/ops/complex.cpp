#include "core/ops/complex.h"

#include <algorithm>
#include <deque>
#include <sstream>
#include <string>
#include <unordered_map>
#include <utility>

#include "core/base/error.h"
#include "core/ops/derived_kernels.h"
#include "core/ops/registry.h"
#include "core/ops/run.h"
#include "core/tensor/complex.h"

namespace tensord::ops {
namespace {

bool is_complex_tensor(const Value& value) {
  if (!value.is_tensor()) return value.is_complex();
  const DType dtype = value.to_tensor().dtype();
  return dtype == DType::kComplex64 || dtype == DType::kComplex128;
}

// Filled before main.
struct ComplexEntries {
  std::deque<ComplexForm> forms;
  std::vector<std::pair<std::string, const ComplexForm*>> by_name;
};
ComplexEntries& complex_entries() {
  static ComplexEntries complex_entries;
  return complex_entries;
}

// Operators that do not look at elements.
bool needs_no_entry(const Op& op) {
  if (op.is_view || op.way == Way::kView || op.reads_only_shape || op.schema.is_vararg) return true;
  // Lists and values of any type, among which a tensor may be.
  for (const Argument& argument : op.schema.arguments) {
    const Type* type = argument.type.get();
    while (type->kind() == TypeKind::kOptional || type->kind() == TypeKind::kList) type = type->element().get();
    if (type->kind() == TypeKind::kTensor || type->kind() == TypeKind::kNumber) return false;
  }
  return true;
}

// A form for each operator: what another device derives is made for one.
std::unordered_map<const Op*, ComplexForm> make_complex_table() {
  std::unordered_map<const Op*, ComplexForm> table;
  for (const Op* op : all_ops()) {
    if (needs_no_entry(*op)) table[op].rule = ComplexGradient::kLinear;
  }
  for (const auto& [name, form] : complex_entries().by_name) table[&get_op(name)] = *form;
  for (const DerivedKernels& derived : derived_kernels()) {
    for (auto& [op, form] : table) derived.add_entry(*op, form.dynamic);
  }
  return table;
}

Value conjugate(const Value& value) {
  if (value.is_tensor()) return is_complex(value.to_tensor().dtype()) ? call("aten::conj", value) : value;
  if (!value.is_list()) return value;
  std::vector<Value> items;
  for (const Value& item : value.to_list()->items) items.push_back(conjugate(item));
  return make_list(value.to_list()->element, std::move(items));
}

// A formula that passes over what is not floating point must not leave a gradient out.
std::vector<Value> checked(const Op& op, const GradArgs& args, std::vector<Value> found) {
  for (size_t i = 0; i < args.inputs.size(); ++i) {
    if (!args.needs(i) || !args.inputs[i].is_tensor() || !is_complex(args.inputs[i].to_tensor().dtype())) continue;
    if (i < found.size() && found[i].is_tensor()) continue;
    if (op.is_view && i > 0) continue;  // gives its shape alone, as expand_as's other
    fail(ErrorCode::kUnimplemented, "derivative for ", op.schema.full_name(), " of complex tensors is not implemented");
  }
  return found;
}

}  // namespace

ComplexBuilder::ComplexBuilder(const char* names) : form_(&complex_entries().forms.emplace_back()) {
  std::istringstream words(names);
  for (std::string name; words >> name;) complex_entries().by_name.emplace_back(name, form_);
}
ComplexBuilder& ComplexBuilder::linear() {
  form_->rule = ComplexGradient::kLinear;
  return *this;
}
ComplexBuilder& ComplexBuilder::holomorphic() {
  form_->rule = ComplexGradient::kHolomorphic;
  return *this;
}

bool ComplexForm::is_own_code() const {
  return !composite && std::none_of(dynamic.begin(), dynamic.end(), [](const DirectFn& one) { return bool(one); });
}

bool has_complex(std::span<const Value> values) {
  for (const Value& value : values) {
    if (is_complex_tensor(value)) return true;
    if (!value.is_list()) continue;
    const ListObject& list = *value.to_list();
    if (list.element->kind() == TypeKind::kInt) continue;
    for (const Value& item : list.items) {
      if (is_complex_tensor(item)) return true;
    }
  }
  return false;
}

Tensor tensor_of(const Scalar& value) {
  if (value.is_complex()) {
    const Tensor out = Tensor::empty({}, DType::kComplex128);
    *out.data<Complex128>() = value.to_complex();
    return out;
  }
  if (value.is_float()) return Tensor::scalar(value.to_double());
  return value.is_bool() ? Tensor::scalar(value.to_bool()) : Tensor::scalar(value.to_int());
}

const ComplexForm* complex_form(const Op& op) {
  static const std::unordered_map<const Op*, ComplexForm> table = make_complex_table();
  const auto it = table.find(&op);
  return it == table.end() ? nullptr : &it->second;
}

const ComplexForm& checked_complex_form(const Op& op) {
  if (const ComplexForm* form = complex_form(op)) return *form;
  fail(ErrorCode::kUnimplemented, op.schema.full_name(), " is not implemented for complex tensors");
}

std::vector<Value> complex_gradient(const Op& op, const GradArgs& args) {
  const ComplexForm& form = checked_complex_form(op);
  switch (form.rule) {
    case ComplexGradient::kLinear: return checked(op, args, op.gradient(args));
    case ComplexGradient::kOwn: return form.gradient(args);
    case ComplexGradient::kHolomorphic: {
      std::vector<Tensor> turned;
      for (const Tensor& gradient : args.grad_outputs) {
        turned.push_back(gradient.defined() ? conjugate(gradient).to_tensor() : gradient);
      }
      std::vector<Value> found = op.gradient({args.inputs, args.outputs, turned, args.needed});
      for (Value& gradient : found) gradient = conjugate(gradient);
      return checked(op, args, std::move(found));
    }
    case ComplexGradient::kOfCalls:
    case ComplexGradient::kNone: break;
  }
  fail(ErrorCode::kUnimplemented, "derivative for ", op.schema.full_name(), " of complex tensors is not implemented");
}

}  // namespace tensord::ops
