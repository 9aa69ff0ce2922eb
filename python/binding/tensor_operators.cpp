#include "python/binding/operator.h"
#include "python/binding/tensor_slots.h"
#include "python/binding/trace.h"

// Python's operators: + - * / // % ** @ & | ^ << >> and their in-place forms, comparisons, and conversions to numbers.
namespace tensord::python {
namespace {

const Operator& known(const char* name) {
  const Operator* op = find_operator(name);
  check_internal(op != nullptr, "no operator ", name);
  return *op;
}

// Whether the object may be the other operand of a tensor.
bool is_operand(PyObject* object) {
  if (is_tensor(object) || PyFloat_Check(object) || PyLong_Check(object) || PyComplex_Check(object)) return true;
  ParamType number;
  number.kind = ParamKind::kNumber;
  return fit(number, object) != Fit::kNo;
}

PyObject* call_two(const Operator& op, PyObject* a, PyObject* b) {
  if (!is_operand(a) || !is_operand(b)) Py_RETURN_NOTIMPLEMENTED;
  PyObject* args[] = {a, b};
  return call_operator(op, args, 2);
}

// Converts a number to a 0-D tensor of the dtype that PyTorch uses for it with `other`.
PyObject* number_tensor(PyObject* number, PyObject* other) {
  static const Operator& result_type = known("aten::result_type");
  static const Operator& full = known("aten::full");
  PyObject* pair[] = {other, number};
  nb::object dtype = nb::steal(call_operator(result_type, pair, 2));
  if (!dtype.is_valid()) return nullptr;
  nb::tuple names = nb::make_tuple("dtype");
  nb::tuple empty;
  PyObject* args[] = {empty.ptr(), number, dtype.ptr()};
  return call_operator(full, args, 2, names.ptr());
}

template <class Fn>
PyObject* with_number_first(PyObject* a, PyObject* b, Fn&& fn) {
  if (!is_operand(a)) Py_RETURN_NOTIMPLEMENTED;
  nb::object left = nb::steal(number_tensor(a, b));
  if (!left.is_valid()) return nullptr;
  return fn(left.ptr(), b);
}

// a·b for operands in either order.
template <const char* const& NAME>
PyObject* symmetric(PyObject* a, PyObject* b) {
  static const Operator& op = known(NAME);
  return is_tensor(a) ? call_two(op, a, b) : call_two(op, b, a);
}

template <const char* const& NAME>
PyObject* plain(PyObject* a, PyObject* b) {
  static const Operator& op = known(NAME);
  if (is_tensor(a)) return call_two(op, a, b);
  return with_number_first(a, b, [](PyObject* x, PyObject* y) { return call_two(op, x, y); });
}

template <const char* const& NAME>
PyObject* in_place(PyObject* a, PyObject* b) {
  static const Operator& op = known(NAME);
  return call_two(op, a, b);
}

#define TENSORD_NAME(ID, TEXT) constexpr const char* ID = TEXT
TENSORD_NAME(kAdd, "aten::add");
TENSORD_NAME(kMul, "aten::mul");
TENSORD_NAME(kFloorDivide, "aten::floor_divide");
TENSORD_NAME(kRemainder, "aten::remainder");
TENSORD_NAME(kAnd, "aten::bitwise_and");
TENSORD_NAME(kOr, "aten::bitwise_or");
TENSORD_NAME(kXor, "aten::bitwise_xor");
TENSORD_NAME(kLeft, "aten::__lshift__");
TENSORD_NAME(kRight, "aten::__rshift__");
TENSORD_NAME(kAddInPlace, "aten::add_");
TENSORD_NAME(kSubInPlace, "aten::sub_");
TENSORD_NAME(kMulInPlace, "aten::mul_");
TENSORD_NAME(kDivInPlace, "aten::div_");
TENSORD_NAME(kFloorInPlace, "aten::floor_divide_");
TENSORD_NAME(kRemainderInPlace, "aten::remainder_");
TENSORD_NAME(kPowInPlace, "aten::pow_");
TENSORD_NAME(kAndInPlace, "aten::bitwise_and_");
TENSORD_NAME(kOrInPlace, "aten::bitwise_or_");
TENSORD_NAME(kXorInPlace, "aten::bitwise_xor_");
TENSORD_NAME(kLeftInPlace, "aten::bitwise_left_shift_");
TENSORD_NAME(kRightInPlace, "aten::bitwise_right_shift_");
#undef TENSORD_NAME

PyObject* subtract(PyObject* a, PyObject* b) {
  static const Operator& sub = known("aten::sub");
  static const Operator& rsub = known("aten::rsub");
  return is_tensor(a) ? call_two(sub, a, b) : call_two(rsub, b, a);
}

PyObject* divide(PyObject* a, PyObject* b) {
  static const Operator& div = known("aten::div");
  static const Operator& reciprocal = known("aten::reciprocal");
  static const Operator& mul = known("aten::mul");
  if (is_tensor(a)) return call_two(div, a, b);
  if (!is_operand(a)) Py_RETURN_NOTIMPLEMENTED;
  nb::object inverse = nb::steal(call_operator(reciprocal, &b, 1));
  if (!inverse.is_valid()) return nullptr;
  return call_two(mul, inverse.ptr(), a);
}

PyObject* power(PyObject* a, PyObject* b, PyObject* modulus) {
  static const Operator& pow = known("aten::pow");
  if (modulus != Py_None) {
    PyErr_SetString(PyExc_TypeError, "pow(): a tensor's power takes no modulus");
    return nullptr;
  }
  return call_two(pow, a, b);
}

PyObject* power_in_place(PyObject* a, PyObject* b, PyObject*) { return in_place<kPowInPlace>(a, b); }

PyObject* matrix_product(PyObject* a, PyObject* b) {
  static const Operator& matmul = known("aten::matmul");
  if (!is_tensor(a) || !is_tensor(b)) Py_RETURN_NOTIMPLEMENTED;
  return call_two(matmul, a, b);
}

template <const char* const& NAME>
PyObject* unary(PyObject* a) {
  static const Operator& op = known(NAME);
  return call_operator(op, &a, 1);
}
constexpr const char* kNeg = "aten::neg";
constexpr const char* kAbs = "aten::abs";
constexpr const char* kNot = "aten::bitwise_not";

PyObject* positive(PyObject* a) { return Py_NewRef(a); }

PyObject* compare(PyObject* a, PyObject* b, int kind) {
  static const Operator* const ops[] = {&known("aten::lt"), &known("aten::le"), &known("aten::eq"),
                                        &known("aten::ne"), &known("aten::gt"), &known("aten::ge")};
  return call_two(*ops[kind], a, b);
}

// Reads the single element for bool(), int(), float().
template <class Fn>
auto read_item(PyObject* self, const char* what, decltype(std::declval<Fn>()(Tensor())) on_error, Fn&& fn)
    -> decltype(fn(Tensor())) {
  record_values_read();
  try {
    const Tensor& tensor = tensor_in(self);
    if (tensor.numel() != 1) {
      fail(ErrorCode::kInvalidArgument, what, ": only tensors with one element can be converted, not one of ",
           tensor.numel(), " elements");
    }
    return fn(tensor);
  } catch (...) {
    set_python_error();
    return on_error;
  }
}

int as_bool(PyObject* self) {
  return read_item(self, "bool()", -1, [](const Tensor& tensor) {
    return Value(tensor).to_scalar().to_bool() ? 1 : 0;
  });
}

PyObject* as_int(PyObject* self) {
  static PyObject* const none = nullptr;
  return read_item(self, "int()", none, [](const Tensor& tensor) -> PyObject* {
    const ops::Scalar scalar = Value(tensor).to_scalar();
    if (scalar.is_float()) return PyLong_FromDouble(scalar.to_double());
    return PyLong_FromLongLong(scalar.to_int());
  });
}

PyObject* as_index(PyObject* self) {
  if (!is_integral(tensor_in(self).dtype(), true) || tensor_in(self).numel() != 1) {
    PyErr_SetString(PyExc_TypeError, "only integer tensors of a single element can be converted to an index");
    return nullptr;
  }
  return as_int(self);
}

PyObject* as_float(PyObject* self) {
  static PyObject* const none = nullptr;
  return read_item(self, "float()", none, [](const Tensor& tensor) -> PyObject* {
    return PyFloat_FromDouble(Value(tensor).to_scalar().to_double());
  });
}

Py_hash_t hash(PyObject* self) { return static_cast<Py_hash_t>(reinterpret_cast<uintptr_t>(tensor_in(self).impl()) >> 4); }

template <class F>
void* slot(F function) {
  return reinterpret_cast<void*>(function);
}

}  // namespace

void add_operator_slots(std::vector<PyType_Slot>& slots) {
  const PyType_Slot found[] = {
      {Py_nb_add, slot(symmetric<kAdd>)},
      {Py_nb_subtract, slot(subtract)},
      {Py_nb_multiply, slot(symmetric<kMul>)},
      {Py_nb_true_divide, slot(divide)},
      {Py_nb_floor_divide, slot(plain<kFloorDivide>)},
      {Py_nb_remainder, slot(plain<kRemainder>)},
      {Py_nb_power, slot(power)},
      {Py_nb_matrix_multiply, slot(matrix_product)},
      {Py_nb_and, slot(symmetric<kAnd>)},
      {Py_nb_or, slot(symmetric<kOr>)},
      {Py_nb_xor, slot(symmetric<kXor>)},
      {Py_nb_lshift, slot(plain<kLeft>)},
      {Py_nb_rshift, slot(plain<kRight>)},
      {Py_nb_inplace_add, slot(in_place<kAddInPlace>)},
      {Py_nb_inplace_subtract, slot(in_place<kSubInPlace>)},
      {Py_nb_inplace_multiply, slot(in_place<kMulInPlace>)},
      {Py_nb_inplace_true_divide, slot(in_place<kDivInPlace>)},
      {Py_nb_inplace_floor_divide, slot(in_place<kFloorInPlace>)},
      {Py_nb_inplace_remainder, slot(in_place<kRemainderInPlace>)},
      {Py_nb_inplace_power, slot(power_in_place)},
      {Py_nb_inplace_and, slot(in_place<kAndInPlace>)},
      {Py_nb_inplace_or, slot(in_place<kOrInPlace>)},
      {Py_nb_inplace_xor, slot(in_place<kXorInPlace>)},
      {Py_nb_inplace_lshift, slot(in_place<kLeftInPlace>)},
      {Py_nb_inplace_rshift, slot(in_place<kRightInPlace>)},
      {Py_nb_negative, slot(unary<kNeg>)},
      {Py_nb_absolute, slot(unary<kAbs>)},
      {Py_nb_invert, slot(unary<kNot>)},
      {Py_nb_positive, slot(positive)},
      {Py_nb_bool, slot(as_bool)},
      {Py_nb_int, slot(as_int)},
      {Py_nb_index, slot(as_index)},
      {Py_nb_float, slot(as_float)},
      {Py_tp_richcompare, slot(compare)},
      {Py_tp_hash, slot(hash)},
  };
  slots.insert(slots.end(), std::begin(found), std::end(found));
}

}  // namespace tensord::python
