#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/jit/archive/torch_file.h"
#include "core/nn/state.h"

// The cases written by make_nn_cases.py.
namespace tensord::nn {

inline ops::Value load_cases(const std::string& name) {
  const char* folder = std::getenv("TENSORD_NN_CASES");
  check(folder != nullptr, "set TENSORD_NN_CASES to the folder of make_nn_cases.py");
  return jit::load_torch_file(std::string(folder) + "/" + name + ".pt");
}

inline const ops::DictObject& dict_of(const ops::Value& value) { return as_dict(value, "case"); }
inline const ops::Value& item(const ops::Value& dict, const char* key) { return get_item(dict_of(dict), key); }
inline const std::vector<ops::Value>& items(const ops::Value& dict, const char* key) {
  return get_items(item(dict, key), key);
}
inline std::vector<Tensor> tensors(const ops::Value& list) {
  std::vector<Tensor> out;
  for (const ops::Value& each : get_items(list, "tensors")) out.push_back(each.to_tensor());
  return out;
}

// The largest difference, relative to 1 + |expected|.
inline double difference(const Tensor& got, const Tensor& expected) {
  EXPECT_EQ(to_string(got.sizes()), to_string(expected.sizes()));
  if (got.sizes() != expected.sizes()) return INFINITY;
  const Tensor a = got.to(DType::kFloat64).contiguous(), b = expected.to(DType::kFloat64).contiguous();
  double max = 0;
  for (int64_t i = 0; i < a.numel(); ++i) {
    const double x = a.data<double>()[i], y = b.data<double>()[i];
    if (std::isnan(x) != std::isnan(y)) return INFINITY;
    if (!std::isnan(x) && x != y) max = std::max(max, std::abs(x - y) / (1 + std::abs(y)));
  }
  return max;
}

inline Tensor vector_of(const std::vector<double>& values) {
  const Tensor tensor = Tensor::empty(Dims{static_cast<int64_t>(values.size())}, DType::kFloat64);
  std::copy(values.begin(), values.end(), tensor.data<double>());
  return tensor;
}

}  // namespace tensord::nn
