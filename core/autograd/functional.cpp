#include "core/autograd/functional.h"

#include "core/autograd/engine.h"
#include "core/autograd/variable.h"
#include "core/base/error.h"
#include "core/ops/run.h"
#include "core/tensor/grad_mode.h"
#include "ops/factory.h"
#include "ops/view.h"

namespace tensord::autograd {
namespace {

using Tensors = std::vector<Tensor>;

// Copies of the inputs that gradients are computed for; the caller's tensors are not changed.
Tensors prepare(std::span<const Tensor> inputs, bool create_graph) {
  Tensors out;
  for (const Tensor& input : inputs) {
    if (create_graph && requires_grad(input)) {
      out.push_back(ops::view_as(input, input));
    } else {
      out.push_back(detach(input));
      set_requires_grad(out.back());
    }
  }
  return out;
}

void check_vectors(const char* what, std::span<const Tensor> vectors, std::span<const Tensor> like) {
  check(vectors.size() == like.size(), what, ": v has ", vectors.size(), " tensors for ", like.size());
  for (size_t i = 0; i < like.size(); ++i) {
    check(vectors[i].defined() && vectors[i].sizes() == like[i].sizes(), what, ": v[", i, "] must be of sizes ",
          like[i].sizes());
  }
}

// With zeros for inputs that the outputs do not depend on.
Tensors gradients_of(std::span<const Tensor> outputs, std::span<const Tensor> inputs, std::span<const Tensor> vectors,
                     bool create_graph) {
  Tensors live, weights, found(inputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!requires_grad(outputs[i])) continue;
    live.push_back(outputs[i]);
    weights.push_back(vectors[i]);
  }
  BackwardOptions options;
  options.retain_graph = true;
  options.create_graph = create_graph;
  if (!live.empty()) found = grad(live, inputs, weights, options, /*allow_unused=*/true);
  for (size_t i = 0; i < found.size(); ++i) {
    if (!found[i].defined()) found[i] = ops::zeros_like(inputs[i]);
  }
  return found;
}

Tensors finish(Tensors tensors, bool create_graph) {
  if (!create_graph) {
    for (Tensor& tensor : tensors) tensor = detach(tensor);
  }
  return tensors;
}

// Element number `i` of each row-major tensor in `rows` becomes a slice of the result.
Tensor stacked(const Tensors& rows, const Tensor& output, const Tensor& input) {
  Dims sizes = output.sizes();
  for (const int64_t size : input.sizes()) sizes.push_back(size);
  if (rows.empty()) return ops::reshape(ops::zeros_like(input), Dims{0}).as_view(sizes, contiguous_strides(sizes), 0);
  return ops::reshape(ops::stack(rows), sizes);
}

Tensors one_hot_at(std::span<const Tensor> outputs, size_t which, int64_t element) {
  Tensors out;
  for (size_t i = 0; i < outputs.size(); ++i) {
    out.push_back(ops::zeros_like(detach(outputs[i])));
    if (i != which) continue;
    const Tensor flat = ops::zeros_like(ops::reshape(detach(outputs[i]), Dims{-1}));
    ops::fill_(ops::select(flat, 0, element), 1);
    out.back() = ops::reshape(flat, outputs[i].sizes());
  }
  return out;
}

TensorFunction as_tensors(const ScalarFunction& function) {
  return [&function](const Tensors& inputs) {
    Tensor out = function(inputs);
    check(out.defined() && out.numel() == 1, "the function must give a tensor of one element");
    return Tensors{ops::reshape(out, Dims{})};
  };
}

}  // namespace

FunctionProduct vjp(const TensorFunction& function, std::span<const Tensor> inputs, std::span<const Tensor> v,
                    bool create_graph) {
  const GradModeGuard recorded({true, false});
  const Tensors given = prepare(inputs, create_graph);
  Tensors outputs = function(given);
  check_vectors("vjp", v, outputs);
  Tensors product = gradients_of(outputs, given, v, create_graph);
  return {finish(std::move(outputs), create_graph), finish(std::move(product), create_graph)};
}

FunctionProduct jvp(const TensorFunction& function, std::span<const Tensor> inputs, std::span<const Tensor> v,
                    bool create_graph) {
  check_vectors("jvp", v, inputs);
  const GradModeGuard recorded({true, false});
  const Tensors given = prepare(inputs, create_graph);
  Tensors outputs = function(given);
  // The product u · J is linear in u: its gradient with respect to u, weighted by v, is J · v for any u.
  Tensors u;
  for (const Tensor& output : outputs) {
    u.push_back(ops::zeros_like(detach(output)));
    set_requires_grad(u.back());
  }
  const Tensors of_inputs = gradients_of(outputs, given, u, /*create_graph=*/true);
  Tensors product = gradients_of(of_inputs, u, v, create_graph);
  return {finish(std::move(outputs), create_graph), finish(std::move(product), create_graph)};
}

std::vector<Tensors> jacobian(const TensorFunction& function, std::span<const Tensor> inputs, bool create_graph) {
  const GradModeGuard recorded({true, false});
  const Tensors given = prepare(inputs, create_graph);
  const Tensors outputs = function(given);
  std::vector<Tensors> out;
  for (size_t which = 0; which < outputs.size(); ++which) {
    std::vector<Tensors> rows(inputs.size());
    for (int64_t element = 0; element < outputs[which].numel(); ++element) {
      Tensors row = gradients_of(outputs, given, one_hot_at(outputs, which, element), create_graph);
      for (size_t i = 0; i < row.size(); ++i) rows[i].push_back(std::move(row[i]));
    }
    Tensors blocks;
    for (size_t i = 0; i < inputs.size(); ++i) blocks.push_back(stacked(rows[i], outputs[which], given[i]));
    out.push_back(finish(std::move(blocks), create_graph));
  }
  return out;
}

std::vector<Tensors> hessian(const ScalarFunction& function, std::span<const Tensor> inputs, bool create_graph) {
  if (inputs.empty()) return {};
  const Tensor one = Tensor::scalar(1.0, inputs[0].dtype());
  const TensorFunction gradient = [&](const Tensors& given) {
    return vjp(as_tensors(function), given, std::span(&one, 1), /*create_graph=*/true).product;
  };
  return jacobian(gradient, inputs, create_graph);
}

FunctionProduct hvp(const ScalarFunction& function, std::span<const Tensor> inputs, std::span<const Tensor> v,
                    bool create_graph) {
  check_vectors("hvp", v, inputs);
  const GradModeGuard recorded({true, false});
  const Tensors given = prepare(inputs, create_graph);
  Tensors outputs = as_tensors(function)(given);
  const Tensor one = ops::ones_like(detach(outputs[0]));
  const Tensors slopes = gradients_of(outputs, given, std::span(&one, 1), /*create_graph=*/true);
  Tensors product = gradients_of(slopes, given, v, create_graph);
  return {finish(std::move(outputs), create_graph), finish(std::move(product), create_graph)};
}

}  // namespace tensord::autograd
