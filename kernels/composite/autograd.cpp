#include "core/autograd/engine.h"
#include "core/autograd/variable.h"
#include "core/ops/op.h"
#include "kernels/attention/nested.h"

// Autograd in scripts: modes, properties of tensors, backward and grad. `composite` keeps these calls themselves off
// the graph.
namespace tensord::kernels {
namespace {

using ops::OptionalTensorList;
using ops::TensorList;
using ops::Value;

autograd::BackwardOptions options_of(std::optional<bool> retain_graph, bool create_graph) {
  autograd::BackwardOptions options;
  options.retain_graph = retain_graph.value_or(create_graph);
  options.create_graph = create_graph;
  return options;
}

TensorList tensors_of(const std::optional<OptionalTensorList>& list) {
  TensorList out;
  if (!list) return out;
  for (const auto& item : *list) out.push_back(item.value_or(Tensor()));
  return out;
}

void backward_of(const Tensor& tensor, const std::optional<Tensor>& gradient, std::optional<bool> retain_graph,
                 bool create_graph) {
  autograd::backward(tensor, gradient.value_or(Tensor()), options_of(retain_graph, create_graph));
}

void backward_of_list(const TensorList& tensors, const std::optional<OptionalTensorList>& gradients,
                      std::optional<bool> retain_graph, bool create_graph) {
  autograd::backward(tensors, tensors_of(gradients), options_of(retain_graph, create_graph));
}

Value grad_of_list(const TensorList& outputs, const TensorList& inputs,
                   const std::optional<OptionalTensorList>& grad_outputs, std::optional<bool> retain_graph,
                   bool create_graph, bool allow_unused) {
  const TensorList found =
      autograd::grad(outputs, inputs, tensors_of(grad_outputs), options_of(retain_graph, create_graph), allow_unused);
  return ops::make_list(ops::optional_type(ops::tensor_type()), {found.begin(), found.end()});
}

Tensor set_requires_grad(const Tensor& tensor, bool value) {
  autograd::set_requires_grad(tensor, value);
  return tensor;
}

Tensor detach_in_place(const Tensor& tensor) {
  autograd::detach_in_place(tensor);
  return tensor;
}

OP("aten::is_grad_enabled").impl([]() { return is_grad_enabled(); }).impure();
OP("aten::set_grad_enabled").impl([](bool value) { execution_context().grad_mode.is_enabled = value; }).impure();

// Not declared as writing: it does not change the elements.
OP("aten::requires_grad_").impl(set_requires_grad).impure().composite();
OP("prim::requires_grad").impl([](const Value& x) { return autograd::requires_grad(rows_of(x)); }).impure();
OP("aten::is_leaf").impl([](const Tensor& x) { return autograd::is_leaf(x); }).impure();
OP("aten::output_nr").impl([](const Tensor& x) { return static_cast<int64_t>(autograd::output_nr(x)); }).impure();
OP("aten::_version").impl([](const Tensor& x) { return static_cast<int64_t>(x.version()); }).impure();
OP("aten::is_inference").impl([](const Tensor& x) { return x.impl()->is_inference; });
OP("aten::retain_grad").impl(autograd::retain_grad).impure();
OP("aten::retains_grad").impl(autograd::retains_grad).impure();
// Scripts see a missing gradient as None.
OP("prim::grad").impl([](const Tensor& x) { return Value(autograd::grad(x)); }).impure().composite();
OP("aten::detach_").impl(detach_in_place).impure().composite();
OP("aten::data").impl(autograd::detach).constant_result();

OP("aten::backward").impl(backward_of).impure();
OP("aten::backward.TensorList").impl(backward_of_list).impure();
OP("aten::grad").impl(grad_of_list).impure().composite();

}  // namespace
}  // namespace tensord::kernels
