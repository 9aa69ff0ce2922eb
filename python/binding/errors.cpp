#include <array>
#include <stdexcept>
#include <string_view>

#include "python/binding/python.h"
#include "core/base/error.h"

// Maps the engine's error to Python exceptions: each class also derives from the built-in exception that a caller would
// expect.
namespace tensord::python {
namespace {

struct Kind {
  ErrorCode code;
  const char* name;
  PyObject** builtin;
};

const std::array kKinds = {
    Kind{ErrorCode::kInvalidArgument, "InvalidArgumentError", &PyExc_ValueError},
    Kind{ErrorCode::kOutOfRange, "OutOfRangeError", &PyExc_IndexError},
    Kind{ErrorCode::kNotFound, "NotFoundError", &PyExc_LookupError},
    Kind{ErrorCode::kAlreadyExists, "AlreadyExistsError", nullptr},
    Kind{ErrorCode::kUnimplemented, "UnimplementedError", &PyExc_NotImplementedError},
    Kind{ErrorCode::kFailedPrecondition, "FailedPreconditionError", nullptr},
    Kind{ErrorCode::kResourceExhausted, "ResourceExhaustedError", &PyExc_MemoryError},
    Kind{ErrorCode::kDataLoss, "DataLossError", nullptr},
    Kind{ErrorCode::kUnavailable, "UnavailableError", nullptr},
    Kind{ErrorCode::kDeadlineExceeded, "DeadlineExceededError", &PyExc_TimeoutError},
    Kind{ErrorCode::kCancelled, "CancelledError", nullptr},
    Kind{ErrorCode::kScriptRaised, "ScriptError", nullptr},
    Kind{ErrorCode::kInternal, "InternalError", nullptr},
};

PyObject* error_types[kKinds.size()] = {};
PyObject* base_error = nullptr;

void set_error(const Error& error) noexcept {
  // A Python hook or function called by the engine may have raised; its exception says more.
  if (PyErr_Occurred()) return;
  // Operators get their Python names.
  std::string_view message = error.what();
  if (message.starts_with("aten::")) message.remove_prefix(6);
  PyObject* type = base_error;
  for (size_t i = 0; i < kKinds.size(); ++i) {
    if (kKinds[i].code == error.code()) type = error_types[i];
  }
  PyObject* text = PyUnicode_DecodeUTF8(message.data(), static_cast<Py_ssize_t>(message.size()), "replace");
  if (!text) return;
  PyErr_SetObject(type, text);
  Py_DECREF(text);
}

void translate(const std::exception_ptr& exception, void*) {
  try {
    std::rethrow_exception(exception);
  } catch (const Error& error) {
    set_error(error);
  }
}

}  // namespace

void set_python_error() noexcept {
  try {
    throw;
  } catch (nb::python_error& error) {
    error.restore();
  } catch (const Error& error) {
    set_error(error);
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const nb::builtin_exception& error) {
    PyErr_SetString(PyExc_TypeError, error.what());
  } catch (const std::exception& error) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, error.what());
  }
}

void bind_errors(nb::module_& module) {
  base_error = PyErr_NewExceptionWithDoc("tensord.engine.Error", "What the engine throws: the operator or file comes first.",
                                         PyExc_RuntimeError, nullptr);
  module.attr("Error") = nb::borrow(base_error);
  for (size_t i = 0; i < kKinds.size(); ++i) {
    const std::string name = std::string("tensord.engine.") + kKinds[i].name;
    nb::object bases = kKinds[i].builtin ? nb::object(nb::make_tuple(nb::borrow(base_error), nb::borrow(*kKinds[i].builtin)))
                                         : nb::object(nb::make_tuple(nb::borrow(base_error)));
    // NotImplementedError derives from RuntimeError, so it must come after a class that also does: Error first is
    // correct.
    error_types[i] = PyErr_NewException(name.c_str(), bases.ptr(), nullptr);
    if (!error_types[i]) throw nb::python_error();
    module.attr(kKinds[i].name) = nb::borrow(error_types[i]);
  }
  nb::register_exception_translator(translate, nullptr);
}

}  // namespace tensord::python
