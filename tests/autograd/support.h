#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/autograd/engine.h"
#include "core/autograd/variable.h"
#include "core/ops/run.h"

// Short helpers for tests of autograd: small float64 tensors and the most common operators.
namespace tensord::autograd {

using Numbers = std::vector<double>;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

inline Tensor constant(const Numbers& values, const Dims& sizes, DType dtype = DType::kFloat64) {
  const Tensor out = Tensor::empty(sizes, DType::kFloat64);
  std::copy(values.begin(), values.end(), out.data<double>());
  return out.to(dtype);
}
inline Tensor constant(const Numbers& values) { return constant(values, Dims{static_cast<int64_t>(values.size())}); }
inline Tensor leaf(const Numbers& values, const Dims& sizes, DType dtype = DType::kFloat64) {
  const Tensor out = constant(values, sizes, dtype);
  set_requires_grad(out);
  return out;
}
inline Tensor leaf(const Numbers& values) { return leaf(values, Dims{static_cast<int64_t>(values.size())}); }

// Row-major; empty for an undefined tensor.
inline Numbers numbers(const Tensor& tensor) {
  if (!tensor.defined()) return {};
  const Tensor flat = tensor.to(DType::kFloat64).contiguous();
  return {flat.data<double>(), flat.data<double>() + flat.numel()};
}

inline Tensor add(const Tensor& a, const Tensor& b) { return ops::call_by_name("aten::add.Tensor", a, b); }
inline Tensor mul(const Tensor& a, const Tensor& b) { return ops::call_by_name("aten::mul.Tensor", a, b); }
inline Tensor scale(const Tensor& a, double factor) { return ops::call_by_name("aten::mul.Scalar", a, factor); }
inline Tensor sum(const Tensor& a) { return ops::call_by_name("aten::sum", a); }
inline Tensor select(const Tensor& a, int64_t index) { return ops::call_by_name("aten::select.int", a, 0, index); }
inline Tensor slice(const Tensor& a, int64_t start, int64_t end) {
  return ops::call_by_name("aten::slice.Tensor", a, 0, start, end);
}
inline Tensor add_in_place(const Tensor& a, const Tensor& b) { return ops::call_by_name("aten::add_.Tensor", a, b); }
inline Tensor scale_in_place(const Tensor& a, double factor) {
  return ops::call_by_name("aten::mul_.Scalar", a, factor);
}

inline std::string name_of(const NodePtr& node) { return node ? node->name() : "none"; }

// The message of the Error that `fn` throws; "no error" if it throws none.
template <class Fn>
std::string error_of(Fn&& fn) {
  try {
    fn();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace tensord::autograd
