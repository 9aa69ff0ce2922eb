#include "python/binding/operator.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "python/binding/generator.h"
#include "python/binding/interrupt.h"
#include "core/autograd/variable.h"
#include "core/base/inline_vector.h"
#include "core/ops/generator.h"
#include "core/ops/registry.h"
#include "core/ops/run.h"

namespace tensord::python {
namespace {

using ops::Argument;
using ops::Op;
using ops::TypeKind;

constexpr size_t kMaxParams = 32;
// Work on fewer elements, broadcasting included, takes less time than releasing and acquiring the GIL.
constexpr int64_t kSmallElements = 128;

bool names_tensor(const ops::Type& type) {
  if (type.kind() == TypeKind::kTensor) return true;
  for (const auto& inner : type.contained()) {
    if (names_tensor(*inner)) return true;
  }
  return false;
}

// Whether the operator takes or returns tensors. Python itself handles lists, strings and numbers.
bool is_of_tensors(const Op& op) {
  const auto has = [](const Argument& argument) { return names_tensor(*argument.type); };
  return std::any_of(op.schema.arguments.begin(), op.schema.arguments.end(), has) ||
         std::any_of(op.schema.returns.begin(), op.schema.returns.end(), has);
}

std::optional<Overload> make_overload(const Op& op) {
  if (op.schema.is_vararg || op.schema.arguments.size() > kMaxParams || !is_of_tensors(op)) return std::nullopt;
  Overload out;
  out.op = &op;
  for (const Argument& argument : op.schema.arguments) {
    Parameter parameter{&argument, PyUnicode_InternFromString(argument.name.c_str()), param_type(argument)};
    if (parameter.type.kind == ParamKind::kUnsupported) return std::nullopt;
    if (!argument.is_keyword_only) out.positional = out.params.size() + 1;
    out.params.push_back(std::move(parameter));
  }
  // As in PyTorch, sizes may be separate arguments if no other argument is positional.
  const size_t first = !out.params.empty() && out.params[0].type.kind == ParamKind::kTensor ? 1 : 0;
  if (out.positional == first + 1) {
    const ParamType& type = out.params[first].type;
    if (type.kind == ParamKind::kList && type.element == ParamKind::kInt && type.fixed_size == 0) {
      out.pack_from = static_cast<int>(first);
    }
  }
  out.may_hold_gil = op.is_pure && !op.has_dynamic_shape && (op.is_pointwise || op.is_view || op.is_reduction);
  return out;
}

Operator make_operator(const std::string& name, std::span<const Op* const> records) {
  Operator out;
  out.name = name.substr(name.find("::") + 2);
  for (const Op* record : records) {
    if (auto overload = make_overload(*record)) out.overloads.push_back(std::move(*overload));
  }
  for (const Overload& overload : out.overloads) {
    out.has_requires_grad |= overload.op->schema.find_argument("requires_grad") >= 0;
    out.has_generator |= overload.op->schema.find_argument("generator") >= 0;
  }
  return out;
}

struct Arguments {
  PyObject* const* args;
  size_t count;
  PyObject* names;  // a tuple, or null; their values follow the positional ones
  size_t name_count() const { return names ? tuple_size(names) : 0; }
};

struct Bound {
  PyObject* slots[kMaxParams];
  size_t packed = 0;  // the number of positional arguments that form one list
};

bool same_name(PyObject* a, PyObject* b) { return a == b || PyUnicode_Compare(a, b) == 0; }

// Other names of parameters in NumPy's and PyTorch's functions.
bool is_other_name(PyObject* given, const char* name) {
  static PyObject* const kInput = PyUnicode_InternFromString("input");
  static PyObject* const kAxis = PyUnicode_InternFromString("axis");
  static PyObject* const kKeepdims = PyUnicode_InternFromString("keepdims");
  const std::string_view wanted = name;
  return (wanted == "self" && same_name(given, kInput)) || (wanted == "dim" && same_name(given, kAxis)) ||
         (wanted == "keepdim" && same_name(given, kKeepdims));
}

int find_parameter(const Overload& overload, PyObject* name) {
  for (size_t i = 0; i < overload.params.size(); ++i) {
    if (overload.params[i].key == name) return static_cast<int>(i);
  }
  for (size_t i = 0; i < overload.params.size(); ++i) {
    if (same_name(overload.params[i].key, name)) return static_cast<int>(i);
  }
  for (size_t i = 0; i < overload.params.size(); ++i) {
    if (is_other_name(name, overload.params[i].argument->name.c_str())) return static_cast<int>(i);
  }
  return -1;
}

// Assigns the arguments to parameters and returns how well they match; for kNo, fills `why` if requested.
Fit bind(const Overload& overload, const Arguments& given, Bound& bound, std::string* why) {
  const auto no = [&](auto&&... parts) {
    if (why) *why = concat(parts...);
    return Fit::kNo;
  };
  const size_t count = overload.params.size();
  std::fill(bound.slots, bound.slots + count, nullptr);
  bound.packed = 0;
  size_t positional = given.count;
  if (overload.pack_from >= 0) {
    const size_t from = static_cast<size_t>(overload.pack_from);
    if (given.count > from && is_index(given.args[from])) {
      for (size_t i = from; i < given.count; ++i) {
        if (!is_index(given.args[i])) return no("'", overload.params[from].argument->name, "' must be integers");
      }
      bound.packed = given.count - from;
      positional = from;
    }
  }
  if (positional > overload.positional) {
    return no("takes ", overload.positional, " positional arguments but ", positional, " were given");
  }
  std::copy(given.args, given.args + positional, bound.slots);
  for (size_t i = 0; i < given.name_count(); ++i) {
    PyObject* name = tuple_item(given.names, i);
    const int at = find_parameter(overload, name);
    if (at < 0) return no("got an unexpected keyword argument '", utf8_of(name), "'");
    if (bound.slots[at] || (bound.packed && at == overload.pack_from)) {
      return no("got two values for argument '", utf8_of(name), "'");
    }
    bound.slots[at] = given.args[given.count + i];
  }
  Fit worst = Fit::kExact;
  for (size_t i = 0; i < count; ++i) {
    const Parameter& parameter = overload.params[i];
    if (!bound.slots[i]) {
      if (bound.packed && static_cast<int>(i) == overload.pack_from) continue;
      if (!parameter.argument->default_value && parameter.type.kind != ParamKind::kGenerator) {
        return no("missing argument '", parameter.argument->name, "'");
      }
      continue;
    }
    const Fit one = fit(parameter.type, bound.slots[i]);
    if (one == Fit::kNo) {
      return no("argument '", parameter.argument->name, "' must be ", parameter.argument->type->str(), ", not ",
                class_of(bound.slots[i]));
    }
    worst = std::min(worst, one);
  }
  return worst;
}

const Overload* choose(const Operator& op, const Arguments& given, Bound& bound) {
  const Overload* found = nullptr;
  for (const Overload& overload : op.overloads) {
    const Fit fits = bind(overload, given, bound, nullptr);
    if (fits == Fit::kExact) return &overload;
    if (fits == Fit::kConverted && !found) found = &overload;
  }
  if (found) bind(*found, given, bound, nullptr);
  return found;
}

// The only overload that may apply; overloads with out= apply only if it is given. Null if several may apply.
const Overload* only_candidate(const Operator& op, const Arguments& given) {
  static PyObject* const kOut = PyUnicode_InternFromString("out");
  bool has_out = false;
  for (size_t i = 0; i < given.name_count(); ++i) {
    has_out |= same_name(tuple_item(given.names, i), kOut);
  }
  const Overload* found = nullptr;
  for (const Overload& overload : op.overloads) {
    if ((overload.op->schema.find_argument("out") >= 0) != has_out) continue;
    if (found) return nullptr;
    found = &overload;
  }
  return found;
}

[[noreturn]] void fail_call(const Operator& op, const Arguments& given) {
  std::string message = op.name + "(): ";
  Bound bound;
  if (const Overload* only = only_candidate(op, given)) {
    std::string why;
    bind(*only, given, bound, &why);
    message += why;
  } else {
    message += "no form takes (";
    for (size_t i = 0; i < given.count; ++i) message += concat(i ? ", " : "", class_of(given.args[i]));
    for (size_t i = 0; i < given.name_count(); ++i) {
      message += concat(given.count + i ? ", " : "", utf8_of(tuple_item(given.names, i)),
                        "=", class_of(given.args[given.count + i]));
    }
    message += "); there are:";
    std::string lines = signatures_of(op);
    size_t begin = 0;
    while (begin < lines.size()) {
      const size_t end = lines.find('\n', begin);
      message += "\n  " + lines.substr(begin, end - begin);
      begin = end == std::string::npos ? lines.size() : end + 1;
    }
  }
  PyErr_SetString(PyExc_TypeError, message.c_str());
  throw nb::python_error();
}

using Values = InlineVector<Value, 10>;

Values values_of(const Overload& overload, const Arguments& given, const Bound& bound) {
  Values values;
  for (size_t i = 0; i < overload.params.size(); ++i) {
    const Parameter& parameter = overload.params[i];
    if (bound.slots[i]) {
      values.emplace_back(to_value(parameter.type, bound.slots[i]));
    } else if (bound.packed && static_cast<int>(i) == overload.pack_from) {
      Dims dims;
      for (size_t k = 0; k < bound.packed; ++k) dims.push_back(read_int(given.args[i + k]));
      values.emplace_back(ops::make_int_list(dims));
    } else if (parameter.argument->default_value) {
      values.emplace_back(*parameter.argument->default_value);
    } else {
      values.emplace_back();
    }
  }
  return values;
}

bool is_small(const Values& values) {
  int64_t elements = 0;
  bool has_tensor = false;
  for (const Value& value : values) {
    if (!value.is_tensor()) continue;
    has_tensor = true;
    elements += value.to_tensor().numel();
  }
  return has_tensor && elements <= kSmallElements;
}

// In-place operators, and operators that change nothing, return the Python object of the argument.
nb::object result_of(const Value& value, const Argument* type, const Overload& overload, const Bound& bound) {
  if (!value.is_tensor()) {
    nb::object out = to_python(value, type);
    // A list of tensors is a tuple in Python, as in PyTorch.
    const bool is_tensors = value.is_list() && value.to_list()->element->kind() == TypeKind::kTensor;
    return is_tensors ? nb::steal(PyList_AsTuple(out.ptr())) : out;
  }
  for (size_t i = 0; i < overload.params.size(); ++i) {
    PyObject* slot = bound.slots[i];
    if (slot && overload.params[i].type.kind == ParamKind::kTensor && slot != Py_None &&
        tensor_in(slot).is_same(value.to_tensor())) {
      return nb::borrow(slot);
    }
  }
  return wrap(value.to_tensor());
}

PyObject* result_class(const Overload& overload) {
  if (overload.result_type) return overload.result_type;
  const auto& returns = overload.op->schema.returns;
  nb::list names;
  for (const Argument& result : returns) {
    if (result.name.empty()) return nullptr;
    names.append(result.name);
  }
  std::string name = overload.op->schema.name;
  name = name.substr(name.find("::") + 2);
  nb::object made = nb::module_::import_("collections").attr("namedtuple")(name, names, nb::arg("rename") = true,
                                                                           nb::arg("module") = "tensord.engine.return_types");
  overload.result_type = made.release().ptr();
  return overload.result_type;
}

nb::object results_of(const std::vector<Value>& returns, const Overload& overload, const Bound& bound) {
  const auto& types = overload.op->schema.returns;
  const auto type_at = [&](size_t i) { return i < types.size() ? &types[i] : nullptr; };
  if (returns.empty()) return nb::none();
  if (returns.size() == 1) return result_of(returns[0], type_at(0), overload, bound);
  nb::object tuple = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(returns.size())));
  for (size_t i = 0; i < returns.size(); ++i) {
    set_tuple_item(tuple.ptr(), i, result_of(returns[i], type_at(i), overload, bound).release().ptr());
  }
  PyObject* named = result_class(overload);
  if (!named) return tuple;
  nb::object out = nb::steal(PyObject_Call(named, tuple.ptr(), nullptr));
  if (!out.is_valid()) throw nb::python_error();
  return out;
}

// Keywords that Python functions accept in addition to the schema: requires_grad for functions that make tensors, a
// generator, and None for generator or out.
struct Extras {
  bool requires_grad = false;
  ops::Generator* generator = nullptr;
  std::vector<PyObject*> args;
  nb::object names;
};

bool take_extras(const Operator& op, Arguments& given, Extras& extras) {
  static PyObject* const kRequiresGrad = PyUnicode_InternFromString("requires_grad");
  static PyObject* const kGenerator = PyUnicode_InternFromString("generator");
  static PyObject* const kOut = PyUnicode_InternFromString("out");
  bool any = false;
  for (size_t i = 0; i < given.name_count(); ++i) {
    PyObject* name = tuple_item(given.names, i);
    PyObject* value = given.args[given.count + i];
    any |= (!op.has_requires_grad && same_name(name, kRequiresGrad)) ||
           (same_name(name, kGenerator) && value != Py_None && generator_in(value)) ||
           (value == Py_None && (same_name(name, kOut) || same_name(name, kGenerator)));
  }
  if (!any) return false;
  nb::list names;
  extras.args.assign(given.args, given.args + given.count);
  for (size_t i = 0; i < given.name_count(); ++i) {
    PyObject* name = tuple_item(given.names, i);
    PyObject* value = given.args[given.count + i];
    if (!op.has_requires_grad && same_name(name, kRequiresGrad)) {
      extras.requires_grad = PyObject_IsTrue(value) == 1;
    } else if (same_name(name, kGenerator) && value != Py_None && generator_in(value)) {
      extras.generator = generator_in(value);
    } else if (value != Py_None || !(same_name(name, kOut) || same_name(name, kGenerator))) {
      names.append(nb::borrow(name));
      extras.args.push_back(value);
    }
  }
  extras.names = nb::steal(PyList_AsTuple(names.ptr()));
  given = {extras.args.data(), given.count, extras.names.ptr()};
  return true;
}

// Finds an argument that is not a tensor but represents tensors (nested.py), also in lists. Its class then handles the
// call.
PyObject* find_stand_in(PyObject* value) {
  static PyObject* const kCall = PyUnicode_InternFromString("_engine_call");
  if (is_tensor(value)) return nullptr;
  if (PyList_Check(value) || PyTuple_Check(value)) {
    const bool is_list = PyList_Check(value);
    const Py_ssize_t count = PySequence_Size(value);
    for (Py_ssize_t i = 0; i < count; ++i) {
      if (PyObject* found = find_stand_in(is_list ? PyList_GetItem(value, i) : PyTuple_GetItem(value, i))) return found;
    }
    return nullptr;
  }
  return PyObject_HasAttr(reinterpret_cast<PyObject*>(Py_TYPE(value)), kCall) ? value : nullptr;
}

nb::object call_without_form(const Operator& op, const Arguments& given) {
  PyObject* found = nullptr;
  for (size_t i = 0; i < given.count + given.name_count() && !found; ++i) found = find_stand_in(given.args[i]);
  if (!found) fail_call(op, given);
  nb::list args;
  nb::dict kwargs;
  for (size_t i = 0; i < given.count; ++i) args.append(nb::borrow(given.args[i]));
  for (size_t i = 0; i < given.name_count(); ++i)
    kwargs[nb::borrow(tuple_item(given.names, i))] = nb::borrow(given.args[given.count + i]);
  return nb::borrow(found).attr("_engine_call")(operator_object(op), args, kwargs);
}

nb::object call(const Operator& op, Arguments given) {
  Extras extras;
  const bool has_extras = given.names && take_extras(op, given, extras);
  Bound bound;
  const Overload* overload = choose(op, given, bound);
  if (!overload) return call_without_form(op, given);
  const Values values = values_of(*overload, given, bound);
  std::vector<Value> returns;
  if (overload->may_hold_gil && !has_extras && is_small(values)) {
    ops::run(*overload->op, values, returns);
  } else {
    interruptible([&] {
      std::optional<ops::GeneratorGuard> guard;
      if (extras.generator) guard.emplace(*extras.generator);
      ops::run(*overload->op, values, returns);
    });
  }
  if (extras.requires_grad) {
    for (const Value& value : returns) autograd::set_requires_grad(value.to_tensor());
  }
  return results_of(returns, *overload, bound);
}

template <class Make>
const Operator* find_cached(const std::string& name, Make&& make) {
  static auto* known = new std::map<std::string, Operator>();
  const auto found = known->find(name);
  if (found != known->end()) return found->second.overloads.empty() ? nullptr : &found->second;
  const Operator& made = known->emplace(name, make()).first->second;
  return made.overloads.empty() ? nullptr : &made;
}

}  // namespace

const Operator* find_operator(const std::string& name) {
  return find_cached(name, [&] { return make_operator(name, ops::find_overloads(name)); });
}

const Operator* find_overload(const std::string& full_name) {
  return find_cached(full_name + " ", [&] {
    // "aten::add." names the overload with an empty name.
    const Op* op = ops::find_op(full_name.ends_with('.') ? full_name.substr(0, full_name.size() - 1) : full_name);
    return make_operator(full_name, op ? std::span(&op, 1) : std::span<const Op* const>());
  });
}

std::vector<std::string> operator_names() {
  std::set<std::string> names;
  for (const Op* op : ops::all_ops()) {
    if (!names.contains(op->schema.name) && find_operator(op->schema.name)) names.insert(op->schema.name);
  }
  return {names.begin(), names.end()};
}

PyObject* call_operator(const Operator& op, PyObject* const* args, size_t count, PyObject* names) noexcept {
  try {
    return call(op, {args, count, names}).release().ptr();
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

std::string signatures_of(const Operator& op) {
  std::string out;
  for (const Overload& overload : op.overloads) {
    std::string text = overload.op->schema.str();
    const size_t open = text.find('(');
    out += (out.empty() ? "" : "\n") + op.name + text.substr(open);
  }
  return out;
}

}  // namespace tensord::python
