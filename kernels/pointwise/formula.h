#pragma once

#include <cstddef>
#include <cstdint>

namespace tensord::kernels {

// Every line of the tables, by name.
enum class Formula : uint16_t {
#define FORMULA(NAME, CLASS, EXPRESSION) NAME,
#define UNARY(NAME, CLASS, EXPRESSION, GRAD, ...) NAME,
#define UNARY_NUMBERS(NAME, CLASS, EXPRESSION, GRAD, ...) NAME,
#define BINARY(NAME, CLASS, EXPRESSION, GRAD_A, GRAD_B, ...) NAME,
#define BINARY_TENSOR_SCALAR(NAME, CLASS, EXPRESSION, GRAD_A, GRAD_B) NAME,
#define BINARY_SHIFT(NAME, CLASS, EXPRESSION, GRAD_A, GRAD_B) NAME,
#define BINARY_ALPHA(NAME, CLASS, EXPRESSION, GRAD_A, GRAD_B) NAME,
#include "kernels/pointwise/all.def"
  kCount
};
inline constexpr size_t kFormulas = static_cast<size_t>(Formula::kCount);
// As the table has it: "leaky_relu".
const char* name_of(Formula formula);

}  // namespace tensord::kernels
