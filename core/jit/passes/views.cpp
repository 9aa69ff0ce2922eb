#include "core/jit/passes/views.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/ops/run.h"

namespace tensord::jit {

using ops::Value;

const Tensor* known_tensor(const GraphValue* value) {
  if (const Value* constant = value->constant(); constant && constant->is_strided()) return &constant->to_tensor();
  return value->known().is_strided() ? &value->known().to_tensor() : nullptr;
}

const Tensor& known_tensor_of(const GraphValue* value) {
  const Tensor* const known = known_tensor(value);
  check_internal(known != nullptr, "nothing is known of %", value->id());
  return *known;
}

bool is_any_of(const Node* node, std::initializer_list<const char*> names) {
  return node && node->op() && std::ranges::any_of(names, [&](const char* name) { return node->is_op(name); });
}

std::optional<double> known_number(const GraphValue* value) {
  const Value& known = value->constant() ? *value->constant() : value->known();
  if (known.is_number())
    return known.is_float() ? known.to_float()
                            : static_cast<double>(known.is_bool() ? known.to_bool() : known.to_int());
  if (!value->constant() || !known.is_strided()) return std::nullopt;
  const Tensor& t = known.to_tensor();
  if (t.ndim() != 0 || t.is_meta()) return std::nullopt;
  return t.to(DType::kFloat64).item_double();
}

GraphValue* ViewBuilder::constant(Value value) {
  const bool is_plain = !value.is_strided();
  GraphValue* made = builder_.constant(value);
  if (is_plain) made->set_known(std::move(value));
  return made;
}

GraphValue* ViewBuilder::ints(const Dims& values) { return constant(ops::make_int_list(values)); }

GraphValue* ViewBuilder::call(std::string_view op, std::initializer_list<GraphValue*> inputs) {
  return call(ops::get_op(op), std::span(inputs.begin(), inputs.size()));
}

GraphValue* ViewBuilder::call(const ops::Op& op, std::span<GraphValue* const> inputs) {
  Node* node = builder_.call(op, inputs);
  set_known(node);
  return node->output();
}

GraphValue* ViewBuilder::reshape(GraphValue* value, const Dims& sizes) {
  const Tensor* known = known_tensor(value);
  if (known && known->sizes() == sizes) return value;
  return call("aten::reshape", {value, ints(sizes)});
}

GraphValue* ViewBuilder::expand(GraphValue* value, const Dims& sizes) {
  return call("aten::expand", {value, ints(sizes), constant(false)});
}

GraphValue* ViewBuilder::transpose(GraphValue* value, int64_t a, int64_t b) {
  return call("aten::transpose.int", {value, constant(a), constant(b)});
}

void ViewBuilder::set_known(Node* node) {
  std::vector<Value> arguments;
  for (const GraphValue* input : node->inputs()) {
    const Tensor* tensor = known_tensor(input);
    if (tensor && !tensor->is_meta())
      arguments.emplace_back(
          Tensor::meta_strided(tensor->sizes(), tensor->strides(), tensor->dtype(), tensor->device()));
    else
      arguments.push_back(tensor ? Value(*tensor) : input->constant() ? *input->constant() : input->known());
  }
  try {
    const std::vector<Value> results = ops::infer(*node->op(), arguments);
    for (size_t i = 0; i < results.size(); ++i) node->output(i)->set_known(results[i]);
  } catch (const Error&) {
    // The call fails in the run, which reports the location.
  }
}

}  // namespace tensord::jit
