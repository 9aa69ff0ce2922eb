#pragma once

#include <string>
#include <vector>

#include "python/binding/convert.h"
#include "core/ops/op.h"

// Operators of the registry as Python callables: one object for all overloads of a name, which is a function of the module
// and, in Tensor's dictionary, a method.
namespace tensord::python {

struct Parameter {
  const ops::Argument* argument;
  PyObject* key;  // the name, interned
  ParamType type;
};

struct Overload {
  const ops::Op* op;
  std::vector<Parameter> params;
  size_t positional = 0;         // how many may come without a name
  int pack_from = -1;            // a parameter of type int[] that "size" may come for as several numbers: view(2, 3)
  bool may_hold_gil = false;     // cheap on small tensors
  mutable PyObject* result_type = nullptr;  // a namedtuple class for several named results; made on first use
};

struct Operator {
  std::string name;  // "add"
  std::vector<Overload> overloads;
  bool has_requires_grad = false, has_generator = false;
};

// "aten::add"; null when no overload takes or gives tensors. Lives as long as the process.
const Operator* find_operator(const std::string& name);
// One overload alone: "aten::add.Tensor".
const Operator* find_overload(const std::string& full_name);
// All names with tensors, sorted.
std::vector<std::string> operator_names();

// Calls with positional arguments, for the binding's own use. Null with Python's error set.
PyObject* call_operator(const Operator& op, PyObject* const* args, size_t count, PyObject* names = nullptr) noexcept;
// The Python callable; the same object every time.
nb::object operator_object(const Operator& op);
// "add(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", a line for each overload.
std::string signatures_of(const Operator& op);

}  // namespace tensord::python
