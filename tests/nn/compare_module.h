#pragma once

#include "core/autograd/engine.h"
#include "core/autograd/variable.h"
#include "core/nn/module.h"
#include "core/ops/generator.h"
#include "tests/nn/nn_cases.h"

namespace tensord::nn {

// Compares a module with what run_more() of make_nn_cases.py saved: names and initial values, results, gradients.
inline void compare_module(const ops::Value& saved, Module& module, ops::Generator& generator) {
  const StateDict state = module.state_dict();
  const auto& names = dict_of(item(saved, "state")).items();
  ASSERT_EQ(state.size(), names.size());
  for (size_t i = 0; i < state.size(); ++i) {
    EXPECT_EQ(state[i].name, names[i].first.to_string());
    EXPECT_LT(difference(state[i].tensor, names[i].second.to_tensor()), 1e-6) << state[i].name;
  }
  Tensors inputs;
  for (const ops::Value& each : items(saved, "inputs"))
    inputs.push_back(each.is_none() ? Tensor() : each.to_tensor().clone());
  const bool has_grad = is_floating(inputs.front().dtype());
  if (has_grad) autograd::set_requires_grad(inputs.front());
  generator.set_seed(23);
  const Tensors outputs = module.run(inputs);
  const auto expected = tensors(item(saved, "outputs")), directions = tensors(item(saved, "directions"));
  ASSERT_EQ(outputs.size(), expected.size());
  for (size_t i = 0; i < outputs.size(); ++i) EXPECT_LT(difference(outputs[i], expected[i]), 3e-6) << i;
  autograd::backward(outputs, directions);
  if (has_grad) {
    EXPECT_LT(difference(autograd::grad(inputs.front()), item(saved, "grad").to_tensor()), 1e-5);
  }
  for (const NamedTensor& each : module.named_parameters()) {
    EXPECT_LT(difference(autograd::grad(each.tensor), item(item(saved, "grads"), each.name.c_str()).to_tensor()), 2e-5)
        << each.name;
  }
}

}  // namespace tensord::nn
