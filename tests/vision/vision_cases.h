#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "core/jit/archive/torch_file.h"
#include "core/nn/state.h"

// The cases written by make_vision_cases.py.
namespace tensord::vision {

using ops::Value;

inline std::string cases_path(const std::string& name) {
  const char* folder = std::getenv("TENSORD_VISION_CASES");
  check(folder != nullptr, "set TENSORD_VISION_CASES to the folder of make_vision_cases.py");
  return std::string(folder) + "/" + name;
}
inline Value load(const std::string& name) { return jit::load_torch_file(cases_path(name + ".pt")); }
inline std::vector<Value> cases(const std::string& name) { return nn::get_items(load(name), "cases"); }

inline const Value* find(const Value& dict, const char* key) {
  for (const auto& [name, value] : nn::as_dict(dict, "case").items()) {
    if (name.to_string() == key) return &value;
  }
  return nullptr;
}
inline const Value& item(const Value& dict, const char* key) { return nn::get_item(nn::as_dict(dict, "case"), key); }

// Same shape and dtype; values differ by at most `max`, and at most the fraction `part` of them differ.
inline void expect_same(const Tensor& got, const Tensor& expected, double max = 0, double part = 1) {
  ASSERT_EQ(describe(got), describe(expected));
  const Tensor a = got.to(DType::kFloat64).contiguous(), b = expected.to(DType::kFloat64).contiguous();
  double difference = 0;
  int64_t others = 0;
  for (int64_t i = 0; i < a.numel(); ++i) {
    const double one = std::abs(a.data<double>()[i] - b.data<double>()[i]);
    difference = std::max(difference, one);
    others += one > 0;
  }
  EXPECT_LE(difference, max);
  EXPECT_LE(static_cast<double>(others), part * static_cast<double>(a.numel()));
}

}  // namespace tensord::vision
