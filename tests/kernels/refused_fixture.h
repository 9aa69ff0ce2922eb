#pragma once

#include <gmock/gmock.h>

#include <limits>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/ops/run.h"

// Tables of calls that operators must not take, with what the error says.
namespace tensord {

using ops::Value;

inline constexpr auto kFloat = DType::kFloat32;
inline constexpr auto kLong = DType::kInt64;
inline constexpr int64_t kHuge = int64_t{1} << 40;

inline Tensor zeros(const Dims& sizes, DType dtype = kFloat) {
  return ops::call("aten::zeros", sizes, dtype, Value(), Value(), Value());
}
// Without memory, so however large.
inline Tensor meta(const Dims& sizes, DType dtype = kFloat) { return Tensor::meta(sizes, dtype); }
inline Tensor longs(const std::vector<int64_t>& values) {
  const Tensor out = Tensor::empty(Dims{static_cast<int64_t>(values.size())}, kLong);
  std::copy(values.begin(), values.end(), out.data<int64_t>());
  return out;
}
inline Value ints(const Dims& values) { return ops::make_int_list(values); }
inline Value tensors(const std::vector<Tensor>& list) {
  std::vector<Value> items(list.begin(), list.end());
  return ops::make_list(ops::tensor_type(), std::move(items));
}
inline Value items(std::vector<Value> list) { return ops::make_list(ops::any_type(), std::move(list)); }

inline Value bools(std::vector<Value> list) { return ops::make_list(ops::bool_type(), std::move(list)); }
inline Value optionals(std::vector<Value> list) {
  return ops::make_list(ops::optional_type(ops::tensor_type()), std::move(list));
}
inline Value result_of(const char* name, std::vector<Value> arguments) {
  const ops::Op& op = ops::get_op(name);
  return ops::run(op, ops::bind(op, std::move(arguments))).at(0);
}
// What the shape rule says, or nothing.
inline std::string shape_error(const char* name, std::vector<Value> arguments) {
  try {
    const ops::Op& op = ops::get_op(name);
    ops::infer(op, ops::bind(op, std::move(arguments)));
    return "";
  } catch (const Error& e) {
    return e.what();
  }
}

inline const Value kNone{};

// Made when the operators are all there.
inline Tensor matrix() { return zeros({2, 3}); }
inline Tensor cube() { return zeros({2, 3, 4}); }
inline Tensor scalar() { return zeros({}); }
inline Tensor vector() { return zeros({3}); }

struct Row {
  const char* op;
  std::vector<Value> arguments;
  const char* says;
};

inline void expect_refused(const std::vector<Row>& rows) {
  for (size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    SCOPED_TRACE("row " + std::to_string(i) + ", " + row.op);
    try {
      const ops::Op& op = ops::get_op(row.op);
      ops::run(op, ops::bind(op, row.arguments));
      ADD_FAILURE() << "is taken";
    } catch (const Error& e) {
      EXPECT_THAT(e.what(), testing::HasSubstr(row.says));
    }
  }
}

}  // namespace tensord
