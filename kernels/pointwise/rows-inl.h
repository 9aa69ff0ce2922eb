// Included once per instruction set by pointwise_*_cpu.cpp, inside HWY_NAMESPACE: makes a
// loop of each line of a table. The loops are plain code that the compiler vectorizes; the
// pragma says that out may be an operand but never overlaps one otherwise.

template <class T>
struct NumberOf {
  static T get(const Numbers& numbers, int i) { return static_cast<T>(numbers.floats[i]); }
};
template <>
struct NumberOf<int64_t> {
  static int64_t get(const Numbers& numbers, int i) { return numbers.ints[i]; }
};

// Result and instances of each type class.
struct ArithRows {
  template <class T>
  using Result = T;
  static constexpr bool kFloats = true, kInts = true, kBool = false;
};
using ArithNoBoolRows = ArithRows;
using ArithBoolToIntRows = ArithRows;
struct FloatRows {
  template <class T>
  using Result = T;
  static constexpr bool kFloats = true, kInts = false, kBool = false;
};
using FloatOnlyRows = FloatRows;
struct IntegerRows {
  template <class T>
  using Result = T;
  static constexpr bool kFloats = false, kInts = true, kBool = false;
};
struct CompareRows {
  template <class T>
  using Result = bool;
  static constexpr bool kFloats = true, kInts = true, kBool = true;
};

// kFixed: the masks of operands that may be one element, besides none.
template <class Class, class Row, int... kFixed>
void add_rows(FormulaRows& rows) {
  if constexpr (Class::kFloats) {
    rows.f32 = &Row::template run<float, 0>;
    rows.f64 = &Row::template run<double, 0>;
    ((rows.f32_fixed[kFixed] = &Row::template run<float, kFixed>), ...);
  }
  if constexpr (Class::kInts) rows.i64 = &Row::template run<int64_t, 0>;
  rows.writes_bool = Class::kBool;
}

// Sines and cosines of a row with numbers that the loop has too few digits of pi for.
template <Formula kFormula>
bool run_far([[maybe_unused]] const float* in, [[maybe_unused]] void* out_data, [[maybe_unused]] int64_t count) {
  if constexpr (kFormula == Formula::sin || kFormula == Formula::cos) {
    int32_t far = 0;
    for (int64_t i = 0; i < count; ++i) far |= abs(in[i]) >= kFarSine ? 1 : 0;
    if (far == 0) return false;
    float* out = static_cast<float*>(out_data);
    for (int64_t i = 0; i < count; ++i) out[i] = kFormula == Formula::sin ? ::sinf(in[i]) : ::cosf(in[i]);
    return true;
  }
  return false;
}

#define FORMULA(NAME, CLASS, ...)                                                                    \
  struct Row_##NAME {                                                                                \
    template <class T, int kFixed>                                                                   \
    static void run(void* out_data, const void* a_data, const void* b_data, const void* c_data,      \
                    const Numbers& numbers, int64_t count) {                                         \
      using R = CLASS##Rows::template Result<T>;                                                     \
      R* out = static_cast<R*>(out_data);                                                            \
      const T *as = static_cast<const T*>(a_data), *bs = static_cast<const T*>(b_data),              \
              *cs = static_cast<const T*>(c_data);                                                   \
      if (count <= 0) return;                                                                        \
      if constexpr (std::is_same_v<T, float>) {                                                      \
        if (run_far<Formula::NAME>(as, out_data, count)) return;                                     \
      }                                                                                              \
      [[maybe_unused]] const T a0 = as[0], b0 = bs[0], c0 = cs[0];                                   \
      [[maybe_unused]] const T p0 = NumberOf<T>::get(numbers, 0), p1 = NumberOf<T>::get(numbers, 1), \
                               p2 = NumberOf<T>::get(numbers, 2);                                    \
      _Pragma("GCC ivdep") for (int64_t i = 0; i < count; ++i) {                                     \
        [[maybe_unused]] const T a = kFixed & 1 ? a0 : as[i], b = kFixed & 2 ? b0 : bs[i],           \
                                 c = kFixed & 4 ? c0 : cs[i];                                        \
        out[i] = static_cast<R>(__VA_ARGS__);                                                        \
      }                                                                                              \
    }                                                                                                \
  };
#define UNARY(NAME, CLASS, EXPRESSION, GRAD, ...) FORMULA(NAME, CLASS, EXPRESSION)
#define UNARY_NUMBERS(NAME, CLASS, EXPRESSION, GRAD, ...) FORMULA(NAME, CLASS, EXPRESSION)
#define BINARY(NAME, CLASS, EXPRESSION, GRAD_A, GRAD_B, ...) FORMULA(NAME, CLASS, EXPRESSION)
#define BINARY_TENSOR_SCALAR(NAME, CLASS, EXPRESSION, GRAD_A, GRAD_B) FORMULA(NAME, CLASS, EXPRESSION)
#define BINARY_SHIFT(NAME, CLASS, EXPRESSION, GRAD_A, GRAD_B) FORMULA(NAME, CLASS, EXPRESSION)
#define BINARY_ALPHA(NAME, CLASS, EXPRESSION, GRAD_A, GRAD_B) FORMULA(NAME, CLASS, EXPRESSION)
#include TENSORD_TABLE
#undef FORMULA
#undef UNARY
#undef UNARY_NUMBERS
#undef BINARY
#undef BINARY_TENSOR_SCALAR
#undef BINARY_SHIFT
#undef BINARY_ALPHA

#define ADD(NAME, CLASS, ...) \
  add_rows<CLASS##Rows, Row_##NAME, ##__VA_ARGS__>(rows[static_cast<size_t>(Formula::NAME)]);
#define FORMULA(NAME, CLASS, EXPRESSION) ADD(NAME, CLASS, 2, 4, 6)
#define UNARY(NAME, CLASS, EXPRESSION, GRAD, ...) ADD(NAME, CLASS)
#define UNARY_NUMBERS(NAME, CLASS, EXPRESSION, GRAD, ...) ADD(NAME, CLASS)
#define BINARY(NAME, CLASS, EXPRESSION, GRAD_A, GRAD_B, ...) ADD(NAME, CLASS, 1, 2)
#define BINARY_TENSOR_SCALAR(NAME, CLASS, EXPRESSION, GRAD_A, GRAD_B) ADD(NAME, CLASS, 1, 2)
#define BINARY_SHIFT(NAME, CLASS, EXPRESSION, GRAD_A, GRAD_B) ADD(NAME, CLASS, 1, 2)
#define BINARY_ALPHA(NAME, CLASS, EXPRESSION, GRAD_A, GRAD_B) ADD(NAME, CLASS, 1, 2)
void fill_rows(FormulaRows* rows) {
#include TENSORD_TABLE
}
#undef ADD
#undef FORMULA
#undef UNARY
#undef UNARY_NUMBERS
#undef BINARY
#undef BINARY_TENSOR_SCALAR
#undef BINARY_SHIFT
#undef BINARY_ALPHA
