#pragma once

#include <string>
#include <vector>

#include "python/binding/convert.h"
#include "core/ops/op.h"

// Operators of the registry as Python callables. One object serves all overloads of a name; it is a function of the
// module and, in Tensor's dictionary, a method.
namespace tensord::python {

struct Parameter {
  const ops::Argument* argument;
  PyObject* key;  // the interned name
  ParamType type;
};

struct Overload {
  const ops::Op* op;
  std::vector<Parameter> params;
  size_t positional = 0;         // number of parameters that may be positional
  int pack_from = -1;            // a parameter of type int[] that "size" may come for as several numbers: view(2, 3)
  bool may_hold_gil = false;     // fast on small tensors
  mutable PyObject* result_type = nullptr;  // namedtuple class for several named results; made on first use
};

struct Operator {
  std::string name;  // "add"
  std::vector<Overload> overloads;
  bool has_requires_grad = false, has_generator = false;
};

// Finds "aten::add"; null if no overload takes or returns tensors. Never freed.
const Operator* find_operator(const std::string& name);
// Finds one overload: "aten::add.Tensor".
const Operator* find_overload(const std::string& full_name);
// The sorted names of all operators with tensors.
std::vector<std::string> operator_names();

// Calls with positional arguments, for the binding itself. Returns null with Python's error set.
PyObject* call_operator(const Operator& op, PyObject* const* args, size_t count, PyObject* names = nullptr) noexcept;
// The Python callable, the same object for every call.
nb::object operator_object(const Operator& op);
// "add(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", one line per overload.
std::string signatures_of(const Operator& op);

}  // namespace tensord::python
