#include "python/binding/constants.h"

#include <nanobind/stl/string.h>

#include <map>

#include "core/base/device.h"
#include "core/ops/sparse.h"

namespace tensord::python {
namespace {

struct DTypeConstant : Constant {};
struct LayoutConstant : Constant {};
struct MemoryFormatConstant : Constant {};

PyTypeObject* types[3] = {};
// Never freed, because destructors at exit would run after the interpreter is finalized.
std::map<std::pair<int8_t, int64_t>, PyObject*>& objects() {
  static auto* map = new std::map<std::pair<int8_t, int64_t>, PyObject*>();
  return *map;
}

template <class T>
void bind_kind(nb::module_& module, const char* type_name, ConstantKind kind) {
  auto type = nb::class_<T>(module, type_name);
  type.def("__repr__", [](const T& self) { return "engine." + std::string(self.name); });
  type.def("__reduce__", [](const T& self) { return std::string(self.name); });
  type.def("__hash__", [](const T& self) { return static_cast<Py_hash_t>(self.number + 1); });
  type.def("__eq__", [](nb::handle self, nb::handle other) { return self.is(other); }, nb::arg("other").none());
  type.def_prop_ro("name", [](const T& self) { return std::string(self.name); });
  types[static_cast<int>(kind)] = reinterpret_cast<PyTypeObject*>(type.ptr());
  if constexpr (std::is_same_v<T, DTypeConstant>) {
    const auto dtype_of_self = [](const T& self) { return static_cast<DType>(self.number); };
    type.def_prop_ro("itemsize", [=](const T& self) { return size_of(dtype_of_self(self)); });
    type.def_prop_ro("is_floating_point", [=](const T& self) { return is_floating(dtype_of_self(self)); });
    type.def_prop_ro("is_complex", [=](const T& self) { return is_complex(dtype_of_self(self)); });
    type.def_prop_ro("is_signed", [=](const T& self) { return is_signed(dtype_of_self(self)); });
  }
}

template <class T>
void add(nb::module_& module, ConstantKind kind, int64_t number, const char* name, const char* alias = nullptr) {
  T constant;
  constant.kind = kind;
  constant.number = number;
  constant.name = name;
  nb::object object = nb::cast(constant);
  module.attr(name) = object;
  if (alias) module.attr(alias) = object;
  objects()[{static_cast<int8_t>(kind), number}] = object.release().ptr();
}

}  // namespace

const Constant* constant_in(PyObject* object, ConstantKind kind) {
  if (Py_TYPE(object) != types[static_cast<int>(kind)]) return nullptr;
  return nb::inst_ptr<Constant>(nb::handle(object));
}

const Constant* constant_in(PyObject* object) {
  for (PyTypeObject* type : types) {
    if (Py_TYPE(object) == type) return nb::inst_ptr<Constant>(nb::handle(object));
  }
  return nullptr;
}

nb::object constant_object(ConstantKind kind, int64_t number) {
  const auto found = objects().find({static_cast<int8_t>(kind), number});
  if (found == objects().end()) return nb::int_(number);
  return nb::borrow(found->second);
}

nb::object dtype_object(DType dtype) { return constant_object(ConstantKind::kDType, static_cast<int64_t>(dtype)); }

bool read_dtype(PyObject* object, DType* dtype) {
  if (const Constant* constant = constant_in(object, ConstantKind::kDType)) {
    *dtype = static_cast<DType>(constant->number);
  } else if (object == reinterpret_cast<PyObject*>(&PyFloat_Type)) {
    *dtype = DType::kFloat64;
  } else if (object == reinterpret_cast<PyObject*>(&PyLong_Type)) {
    *dtype = DType::kInt64;
  } else if (object == reinterpret_cast<PyObject*>(&PyBool_Type)) {
    *dtype = DType::kBool;
  } else if (object == reinterpret_cast<PyObject*>(&PyComplex_Type)) {
    *dtype = DType::kComplex128;
  } else {
    return false;
  }
  return true;
}

void bind_constants(nb::module_& module) {
  bind_kind<DTypeConstant>(module, "dtype", ConstantKind::kDType);
  bind_kind<LayoutConstant>(module, "layout", ConstantKind::kLayout);
  bind_kind<MemoryFormatConstant>(module, "memory_format", ConstantKind::kMemoryFormat);
  static const struct {
    DType dtype;
    const char* alias;
  } kDTypes[] = {{DType::kUInt8, nullptr},      {DType::kInt8, nullptr},       {DType::kInt16, "short"},
                 {DType::kInt32, "int"},        {DType::kInt64, "long"},       {DType::kFloat16, "half"},
                 {DType::kFloat32, "float"},    {DType::kFloat64, "double"},   {DType::kComplex64, "cfloat"},
                 {DType::kComplex128, "cdouble"}, {DType::kBool, nullptr},       {DType::kBFloat16, nullptr},
                 {DType::kQInt8, nullptr},      {DType::kQUInt8, nullptr},     {DType::kQInt32, nullptr},
                 {DType::kQUInt4x2, nullptr}};
  for (const auto& entry : kDTypes) {
    add<DTypeConstant>(module, ConstantKind::kDType, static_cast<int64_t>(entry.dtype), name_of(entry.dtype), entry.alias);
  }
  add<LayoutConstant>(module, ConstantKind::kLayout, 0, "strided");
  for (const auto layout : {ops::SparseLayout::kCoo, ops::SparseLayout::kCsr, ops::SparseLayout::kCsc,
                            ops::SparseLayout::kBsr, ops::SparseLayout::kBsc})
    add<LayoutConstant>(module, ConstantKind::kLayout, static_cast<int64_t>(layout), ops::name_of(layout));
  add<MemoryFormatConstant>(module, ConstantKind::kMemoryFormat, 0, "contiguous_format");
  add<MemoryFormatConstant>(module, ConstantKind::kMemoryFormat, 1, "preserve_format");
  add<MemoryFormatConstant>(module, ConstantKind::kMemoryFormat, 2, "channels_last");
  add<MemoryFormatConstant>(module, ConstantKind::kMemoryFormat, 3, "channels_last_3d");

  auto device = nb::class_<Device>(module, "device");
  device.def("__init__", [](Device* self, const std::string& text) { new (self) Device(parse_device(text)); });
  device.def("__init__", [](Device* self, const std::string& text, int index) {
    new (self) Device(parse_device(text + ":" + std::to_string(index)));
  });
  device.def("__init__", [](Device* self, const Device& other) { new (self) Device(other); });
  device.def_prop_ro("type", [](const Device& self) { return name_of(self.kind); });
  device.def_prop_ro("index", [](const Device& self) {
    return self.kind == DeviceKind::kCPU ? nb::object(nb::none()) : nb::object(nb::int_(self.index));
  });
  device.def("__repr__", [](const Device& self) {
    const std::string text = concat("device(type='", name_of(self.kind), "'");
    return self.is_host() ? text + ")" : concat(text, ", index=", int{self.index}, ")");
  });
  device.def("__str__", [](const Device& self) { return to_string(self); });
  device.def("__eq__", [](const Device& self, const Device& other) { return self == other; });
  device.def("__eq__", [](const Device&, nb::handle) { return false; }, nb::arg("other").none());
  device.def("__hash__", [](const Device& self) { return static_cast<int>(self.kind) * 256 + self.index; });
  device.def("__reduce__", [device](const Device& self) { return nb::make_tuple(device, nb::make_tuple(to_string(self))); });
  device_type = reinterpret_cast<PyTypeObject*>(device.ptr());
}

}  // namespace tensord::python
