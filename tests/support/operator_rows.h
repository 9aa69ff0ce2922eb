// Tables of operator calls: each is accepted, or refused with an error that contains a given string.
#pragma once

#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/ops/run.h"

namespace tensord::testing_rows {

using ops::Value;

inline constexpr const char* kTaken = "is taken";
// The error for a tensor without memory, raised after all shape checks.
inline constexpr const char* kShapesOnly = "a tensor of shapes only has no elements to read";
inline const Value kNone{};
inline constexpr auto kFloat = DType::kFloat32;
inline constexpr auto kDouble = DType::kFloat64;
inline constexpr auto kLong = DType::kInt64;

inline Tensor zeros(const Dims& sizes, DType dtype = kFloat) {
  return ops::call_by_name("aten::zeros", sizes, dtype, Value(), Value(), Value());
}
inline Tensor ones(const Dims& sizes, DType dtype = kFloat) {
  return ops::call_by_name("aten::ones", sizes, dtype, Value(), Value(), Value());
}
// Without memory, so of any size.
inline Tensor meta(const Dims& sizes, DType dtype = kFloat) { return Tensor::meta(sizes, dtype); }
template <class T>
Tensor vector_of(const std::vector<T>& values) {
  const Tensor out = Tensor::empty(Dims{static_cast<int64_t>(values.size())}, dtype_of<T>);
  std::copy(values.begin(), values.end(), out.data<T>());
  return out;
}
inline Tensor longs(const std::vector<int64_t>& values) { return vector_of(values); }
inline Tensor floats(const std::vector<float>& values) { return vector_of(values); }
inline Tensor shaped(const Tensor& x, const Dims& sizes) { return x.as_view(sizes, contiguous_strides(sizes), 0); }

inline Value ints(const Dims& values) { return ops::make_int_list(values); }
inline Value bools(std::vector<Value> list) { return ops::make_list(ops::bool_type(), std::move(list)); }
inline Value numbers(std::vector<Value> list) { return ops::make_list(ops::float_type(), std::move(list)); }
inline Value tensors(std::vector<Value> list) { return ops::make_list(ops::tensor_type(), std::move(list)); }
inline Value optionals(std::vector<Value> list) {
  return ops::make_list(ops::optional_type(ops::tensor_type()), std::move(list));
}
inline Value items(std::vector<Value> list) { return ops::make_list(ops::any_type(), std::move(list)); }

// Functions, because a global's constructor may run before the operators are registered.
inline Tensor scalar() { return zeros({}); }
inline Tensor vector() { return zeros({3}); }
inline Tensor matrix() { return zeros({2, 3}); }
inline Tensor cube() { return zeros({2, 3, 4}); }

inline Value run(const std::string& name, std::vector<Value> arguments) {
  const ops::Op& op = ops::get_op(name);
  std::vector<Value> results = ops::run(op, ops::bind(op, std::move(arguments)));
  return results.empty() ? Value() : results.front();
}

template <class Fn>
std::string said_by(Fn&& fn) {
  try {
    fn();
  } catch (const Error& error) {
    return error.what();
  }
  return kTaken;
}

// The error of the shape rule alone.
inline std::string shape_error(const char* name, std::vector<Value> arguments) {
  const ops::Op& op = ops::get_op(name);
  return said_by([&] { ops::infer(op, ops::bind(op, std::move(arguments))); });
}

struct Row {
  std::string op;
  std::vector<Value> arguments;
  const char* says;  // or kTaken
};

inline void expect_rows(const std::vector<Row>& rows) {
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_STRNE(rows[i].says, "") << "row " << i << " would always pass";
    EXPECT_THAT(said_by([&] { run(rows[i].op, rows[i].arguments); }), ::testing::HasSubstr(rows[i].says))
        << "row " << i << ", " << rows[i].op;
  }
}

}  // namespace tensord::testing_rows
