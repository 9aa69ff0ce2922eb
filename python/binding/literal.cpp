#include <cmath>
#include <limits>

#include "python/binding/constants.h"
#include "python/binding/convert.h"
#include "python/binding/memory.h"
#include "python/binding/run_op.h"
#include "core/tensor/complex.h"

// tensor([[1, 2], [3, 4]]): converts nested lists of numbers to a tensor.
namespace tensord::python {
namespace {

DType default_dtype_now = DType::kFloat32;

bool is_list(PyObject* object) { return PyList_Check(object) || PyTuple_Check(object); }

Tensor converted(const Tensor& x, DType dtype) {
  static const ops::Op& to = ops::get_op("aten::to.dtype");
  if (x.dtype() == dtype) return x;
  const NoGradGuard guard;
  return run_op(to, {x, dtype, false, false, Value()});
}

// The contents of a list: its shape, the widest kind of its numbers, and whether a leaf is a tensor or an array.
struct Content {
  Dims sizes;
  int rank = -1;  // 0 bool, 1 int, 2 float, 3 complex
  bool has_arrays = false;
};

int rank_of(PyObject* number) {
  if (PyBool_Check(number)) return 0;
  if (PyLong_Check(number)) return 1;
  if (PyFloat_Check(number)) return 2;
  return PyComplex_Check(number) ? 3 : -1;
}

bool is_array(PyObject* object) {
  return is_tensor(object) || (rank_of(object) < 0 && !PyUnicode_Check(object) && PyObject_CheckBuffer(object)) ||
         (PyFloat_Check(object) && !PyFloat_CheckExact(object) && PyObject_CheckBuffer(object));
}

void look(PyObject* object, size_t depth, Content& content) {
  check(depth <= 64, "tensor: lists in lists are too deep");
  if (is_list(object)) {
    const Py_ssize_t count = sequence_size(object);
    if (depth == content.sizes.size()) {
      check(content.rank < 0 && !content.has_arrays, "tensor: expected numbers at depth ", depth, ", got a list");
      content.sizes.push_back(count);
    }
    check(content.sizes[depth] == count, "tensor: expected sequence of length ", content.sizes[depth], " at dim ", depth,
          " (got ", count, ")");
    for (Py_ssize_t i = 0; i < count && !content.has_arrays; ++i) look(sequence_item(object, i), depth + 1, content);
    return;
  }
  if (is_array(object)) {
    content.has_arrays = true;
    return;
  }
  const int rank = rank_of(object);
  if (rank < 0) {
    PyErr_Format(PyExc_TypeError, "tensor: cannot make a tensor of an object of class %s", class_of(object).c_str());
    throw nb::python_error();
  }
  check(depth == content.sizes.size(), "tensor: expected a sequence at dim ", depth, ", got a number");
  content.rank = std::max(content.rank, rank);
}

template <class T>
inline constexpr bool dtype_is_complex_v = std::is_same_v<T, Complex64> || std::is_same_v<T, Complex128>;

// Truncates a float to an integer. Throws Error if it is out of range.
template <class T>
T cut(double value) {
  const double limit = std::ldexp(1.0, std::numeric_limits<T>::digits);
  const double whole = std::trunc(value);
  if (!(whole < limit && whole >= static_cast<double>(std::numeric_limits<T>::min())))
    fail(ErrorCode::kInvalidArgument, "tensor: value cannot be converted to type ", name_of(dtype_of<T>), " without overflow");
  return static_cast<T>(whole);
}

template <class T>
T number_as(PyObject* object) {
  if constexpr (dtype_is_complex_v<T>) {
    const nb::object c = nb::steal(PyObject_CallFunctionObjArgs(reinterpret_cast<PyObject*>(&PyComplex_Type), object, nullptr));
    if (!c.is_valid()) throw nb::python_error();
    return T(static_cast<typename T::value_type>(PyComplex_RealAsDouble(c.ptr())),
             static_cast<typename T::value_type>(PyComplex_ImagAsDouble(c.ptr())));
  } else if constexpr (std::is_same_v<T, bool>) {
    return PyObject_IsTrue(object) == 1;
  } else if constexpr (std::is_integral_v<T>) {
    if (PyFloat_Check(object)) return cut<T>(PyFloat_AsDouble(object));
    const int64_t value = read_int(object);
    if (value < static_cast<int64_t>(std::numeric_limits<T>::min()) || value > static_cast<int64_t>(std::numeric_limits<T>::max())) {
      fail(ErrorCode::kInvalidArgument, "tensor: ", value, " does not fit into ", name_of(dtype_of<T>));
    }
    return static_cast<T>(value);
  } else {
    const double value = PyFloat_AsDouble(object);
    if (value == -1.0 && PyErr_Occurred()) throw nb::python_error();
    return static_cast<T>(value);
  }
}

template <class T>
T* fill(PyObject* object, T* to) {
  if (!is_list(object)) {
    if (!dtype_is_complex_v<T> && PyComplex_Check(object)) throw nb::type_error("tensor: a complex number for a real dtype");
    *to = number_as<T>(object);
    return to + 1;
  }
  const Py_ssize_t count = sequence_size(object);
  for (Py_ssize_t i = 0; i < count; ++i) to = fill(sequence_item(object, i), to);
  return to;
}

Tensor stacked(PyObject* list, std::optional<DType> dtype) {
  static const ops::Op& stack = ops::get_op("aten::stack");
  std::vector<Tensor> parts;
  for (Py_ssize_t i = 0; i < sequence_size(list); ++i) {
    parts.push_back(make_tensor(nb::handle(sequence_item(list, i)), dtype));
    check(parts.back().sizes() == parts.front().sizes(), "tensor: parts of shapes ", to_string(parts.front().sizes()), " and ",
          to_string(parts.back().sizes()), " make no tensor");
  }
  DType common = parts.front().dtype();
  for (const Tensor& part : parts) common = promote_types(common, part.dtype());
  for (Tensor& part : parts) part = converted(part, common);
  const NoGradGuard guard;
  return run_op(stack, {ops::make_tensor_list(parts), int64_t{0}});
}

Tensor copy_of_buffer(nb::handle object) {
  // memoryview copies any strides, also negative ones.
  try {
    return tensor_over_buffer(object).clone();
  } catch (const Error&) {
    if (!nb::hasattr(object, "strides") || !nb::hasattr(object, "copy")) throw;
    bool is_reversed = false;
    for (nb::handle stride : object.attr("strides")) is_reversed |= read_int(stride.ptr()) < 0;
    if (!is_reversed) throw;
  }
  const nb::object straight = object.attr("copy")();
  return tensor_over_buffer(straight).clone();
}

}  // namespace

DType default_dtype() { return default_dtype_now; }

Tensor make_tensor(nb::handle data, std::optional<DType> dtype) {
  PyObject* object = data.ptr();
  if (is_tensor(object)) {
    const NoGradGuard guard;
    const Tensor& x = tensor_in(object);
    static const ops::Op& clone = ops::get_op("aten::clone");
    if (dtype && *dtype != x.dtype()) return converted(x, *dtype);
    return run_op(clone, {x, Value()});
  }
  if (is_array(object)) {
    const Tensor copy = copy_of_buffer(data);
    return dtype ? converted(copy, *dtype) : copy;
  }
  Content content;
  look(object, 0, content);
  if (content.has_arrays) return stacked(object, dtype);
  static const DType kByRank[] = {DType::kBool, DType::kInt64};
  const DType of_numbers = content.rank < 0   ? default_dtype_now
                           : content.rank < 2 ? kByRank[content.rank]
                           : content.rank == 2 ? default_dtype_now
                           : default_dtype_now == DType::kFloat64 ? DType::kComplex128
                                                                  : DType::kComplex64;
  const Tensor out = Tensor::empty(content.sizes, dtype.value_or(of_numbers));
  if (out.numel() > 0) dispatch_any(out.dtype(), "tensor", [&]<class T>() { fill(object, out.data<T>()); });
  return out;
}

void bind_literals(nb::module_& module) {
  module.def("_make_tensor", [](nb::handle data, nb::handle dtype) {
    std::optional<DType> wanted;
    if (!dtype.is_none()) {
      DType read;
      if (!read_dtype(dtype.ptr(), &read)) throw nb::type_error("tensor(): argument 'dtype' must be a dtype");
      wanted = read;
    }
    return wrap(make_tensor(data, wanted));
  }, nb::arg("data").none(), nb::arg("dtype").none());
  module.def("get_default_dtype", [] { return dtype_object(default_dtype_now); });
}

}  // namespace tensord::python
