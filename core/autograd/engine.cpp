#include "core/autograd/engine.h"

#include "core/autograd/gradients.h"
#include "core/autograd/graph_task.h"
#include "core/autograd/variable.h"
#include "core/base/error.h"
#include "core/ops/run.h"
#include "ops/factory.h"

namespace tensord::autograd {
namespace {

// The initial gradient of a pass at a tensor.
Tensor root_gradient(const Tensor& tensor, std::span<const Tensor> gradients, size_t i) {
  if (i >= gradients.size() || !gradients[i].defined()) {
    check(!is_complex(tensor.dtype()), "grad can be implicitly created only for real scalar outputs but got ",
          name_of(tensor.dtype()));
    check(tensor.numel() == 1, "grad can be implicitly created only for scalar outputs");
    return ops::ones_like(tensor);
  }
  Tensor gradient = gradients[i];
  check(gradient.sizes() == tensor.sizes(), "Mismatch in shape: grad_output[", i, "] has a shape of ", gradient.sizes(),
        " and output[", i, "] has a shape of ", tensor.sizes(), ".");
  if (!fits(gradient, tensor)) {
    const std::string problem = fit_gradient(gradient, tensor);
    check(problem.empty(), "invalid gradient at index ", i, " - ", problem);
  }
  return gradient;
}

void add_roots(GraphTask& graph, std::span<const Tensor> tensors, std::span<const Tensor> gradients,
               const BackwardOptions& options) {
  check(gradients.size() <= tensors.size(), "got ", tensors.size(), " tensors and ", gradients.size(), " gradients");
  const GradModeGuard mode({options.create_graph, false});
  for (size_t i = 0; i < tensors.size(); ++i) {
    check(tensors[i].defined() && requires_grad(tensors[i]), "element ", i,
          " of tensors does not require grad and does not have a grad_fn");
    const Edge edge = gradient_edge(tensors[i]);
    check(static_cast<bool>(edge), "element ", i, " of tensors does not require grad and does not have a grad_fn");
    graph.add_root(edge, root_gradient(tensors[i], gradients, i));
  }
}

BackwardOptions complete(BackwardOptions options) {
  options.retain_graph |= options.create_graph;
  return options;
}

}  // namespace

void backward(std::span<const Tensor> tensors, std::span<const Tensor> gradients, BackwardOptions options) {
  options = complete(options);
  GraphTask graph(options);
  add_roots(graph, tensors, gradients, options);
  for (const Tensor& input : options.inputs) {
    check(requires_grad(input), "One of the differentiated Tensors does not require grad");
    check(is_leaf(input), "backward: only leaves can be given as inputs");
    graph.add_leaf(gradient_edge(input));
  }
  graph.run();
}

void backward(const Tensor& tensor, const Tensor& gradient, BackwardOptions options) {
  backward(std::span(&tensor, 1), std::span(&gradient, gradient.defined() ? 1 : 0), options);
}

std::vector<Tensor> grad(std::span<const Tensor> outputs, std::span<const Tensor> inputs,
                         std::span<const Tensor> grad_outputs, BackwardOptions options, bool allow_unused) {
  options = complete(options);
  check(!inputs.empty(), "grad requires non-empty inputs.");
  GraphTask graph(options);
  add_roots(graph, outputs, grad_outputs, options);
  for (const Tensor& input : inputs) {
    check(input.defined() && requires_grad(input), "One of the differentiated Tensors does not require grad");
    const Edge edge = gradient_edge(input);
    check(static_cast<bool>(edge), "One of the differentiated Tensors does not require grad");
    graph.add_capture(edge);
  }
  graph.run();
  std::vector<Tensor> found;
  for (size_t i = 0; i < inputs.size(); ++i) {
    found.push_back(graph.captured(i));
    check(allow_unused || found.back().defined(),
          "One of the differentiated Tensors appears to not have been used in the graph. Set allow_unused=True if "
          "this is the desired behavior.");
  }
  return found;
}

}  // namespace tensord::autograd
