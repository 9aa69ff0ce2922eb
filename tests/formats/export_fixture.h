#pragma once

// Modules that are run before and after they are written to a file.

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "core/jit/runtime/module.h"
#include "core/tensor/grad_mode.h"

namespace tensord::jit {

inline Tensor example(const Dims& sizes, unsigned seed) {
  std::mt19937 engine(seed);
  const Tensor out = Tensor::empty(sizes, DType::kFloat32);
  for (int64_t i = 0; i < out.numel(); ++i) out.data<float>()[i] = static_cast<float>(engine() % 4001) / 1000 - 2;
  return out;
}

inline void collect(const ops::Value& value, std::vector<Tensor>& out) {
  if (value.is_tensor()) out.push_back(value.to_tensor());
  if (value.is_list()) {
    for (const ops::Value& item : value.to_list()->items) collect(item, out);
  }
  if (value.is_dict()) {
    for (const auto& [key, item] : value.to_dict()->items()) collect(item, out);
  }
  if (value.is_tuple()) {
    for (const ops::Value& item : value.to_tuple()->items) collect(item, out);
  }
}

inline std::vector<Tensor> results(const Module& module, const Tensor& input) {
  const GradModeGuard guard({.is_enabled = false, .is_inference = true});
  std::vector<Tensor> out;
  const ops::Value argument = input.clone();
  collect(module.method("forward").run(*make_frame(), std::span(&argument, 1)), out);
  return out;
}

inline void expect_same(const std::vector<Tensor>& found, const std::vector<Tensor>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(found[i].sizes(), expected[i].sizes());
    ASSERT_EQ(found[i].dtype(), expected[i].dtype());
    const Tensor a = found[i].to(DType::kFloat64).contiguous(), b = expected[i].to(DType::kFloat64).contiguous();
    for (int64_t k = 0; k < a.numel(); ++k) {
      const double x = a.data<double>()[k], y = b.data<double>()[k];
      if (std::isnan(x) && std::isnan(y)) continue;
      if (x == y) continue;
      ASSERT_NEAR(x, y, 1e-5 * (1 + std::abs(y))) << "output " << i << " at " << k;
    }
  }
}

}  // namespace tensord::jit
