#include "core/jit/exporters/function_trace.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>

#include "python/binding/convert.h"
#include "python/binding/trace.h"
#include "core/jit/archive/model_writer.h"
#include "core/jit/frontend/compilation_unit.h"
#include "core/ops/call_observer.h"

// The parts that engine.jit makes archives from: a recorder of operators while a function runs, and modules of
// TorchScript source.
namespace tensord::python {
namespace {

struct Tracing {
  std::optional<jit::Trace> trace;
  ops::CallObserver* before = nullptr;
  bool are_values_read = false;
};

thread_local Tracing* tracing = nullptr;

void make_tracing(Tracing* self, const nb::list& weights, const nb::list& inputs) {
  new (self) Tracing();
  std::vector<jit::TracedWeight> weight_list;
  for (nb::handle item : weights) {
    const nb::object name = item[0], tensor = item[1], is_parameter = item[2], requires_grad = item[3];
    weight_list.push_back({nb::cast<std::string>(name), tensor_in(tensor.ptr()), nb::cast<bool>(is_parameter),
                           nb::cast<bool>(requires_grad)});
  }
  std::vector<std::pair<std::string, Tensor>> input_list;
  for (nb::handle item : inputs) {
    const nb::object name = item[0], tensor = item[1];
    input_list.emplace_back(nb::cast<std::string>(name), tensor_in(tensor.ptr()));
  }
  self->trace.emplace(std::move(weight_list), input_list);
}

// Makes modules of classes that the sources declare, from (qualified name, {attribute: value or such a pair}).
ops::ObjectPtr make_object(const jit::CompilationUnit& unit, nb::handle description) {
  const std::string name = nb::cast<std::string>(description[0]);
  const auto type = std::dynamic_pointer_cast<const ops::ClassType>(unit.find_type(name));
  check(type != nullptr, "there is no class ", name);
  auto object = make_intrusive<ops::Object>(type);
  for (auto [key, value] : nb::cast<nb::dict>(description[1])) {
    const std::string attribute = nb::cast<std::string>(key);
    const int at = type->find_attribute(attribute);
    check(at >= 0, name, " declares no attribute '", attribute, "'");
    Value& slot = object->attribute(attribute);
    const bool is_module = type->attributes()[static_cast<size_t>(at)].type->kind() == ops::TypeKind::kClass;
    if (is_module) {
      slot = Value(make_object(unit, value));
    } else {
      slot = to_value(value.ptr());
    }
  }
  return object;
}

void save_script(const std::string& path, const std::vector<std::pair<std::string, std::string>>& sources, nb::handle module,
                 nb::handle requires_grad) {
  std::vector<jit::SourceFile> files;
  for (const auto& [name, text] : sources) files.push_back({name, text});
  const jit::CompilationUnit unit(std::move(files));
  const ops::ObjectPtr object = make_object(unit, module);
  std::vector<Tensor> with_gradient;
  for (nb::handle item : requires_grad) with_gradient.push_back(tensor_in(item.ptr()));
  std::vector<std::pair<std::string, std::string>> entries = sources;
  entries.emplace_back("constants.pkl", std::string("\x80\x02).", 4));
  entries.emplace_back("version", "10\n");
  jit::ModelWriterHooks hooks;
  hooks.requires_grad = [&](const Tensor& tensor) {
    return std::any_of(with_gradient.begin(), with_gradient.end(), [&](const Tensor& one) { return one.is_same(tensor); });
  };
  without_gil([&] { jit::write_model_archive(path, entries, object, hooks); });
}

}  // namespace

void record_read(const Tensor& tensor, jit::TensorRead what) {
  if (tracing) [[unlikely]] tracing->trace->record_read(tensor, what);
}
jit::StepRecording* step_recording() {
  ops::CallObserver* const observer = ops::observer_at(Functionality::kStepRecorder);
  return observer ? dynamic_cast<jit::StepRecording*>(observer) : nullptr;
}
void refuse_in_trace(const char* what) {
  if (jit::StepRecording* recording = step_recording()) [[unlikely]]
    recording->refuse(std::string(what) + " is not an operator");
  if (tracing) fail(ErrorCode::kUnimplemented, what, " cannot be traced");
}
void record_values_read() {
  if (jit::StepRecording* recording = step_recording()) [[unlikely]]
    recording->refuse("Python reads elements of a tensor");
  if (tracing) [[unlikely]] tracing->are_values_read = true;
}

void bind_trace(nb::module_& module) {
  auto type = nb::class_<Tracing>(module, "_Trace");
  type.def("__init__", make_tracing, nb::arg("weights"), nb::arg("inputs"));
  // Active from start to stop, on one thread.
  type.def("start", [](Tracing& self) {
    check(!tracing, "trace: a function is being traced already");
    self.before = ops::set_observer(Functionality::kTracer, &*self.trace);
    tracing = &self;
  });
  type.def("stop", [](Tracing& self) {
    ops::set_observer(Functionality::kTracer, self.before);
    tracing = nullptr;
  });
  type.def_prop_ro("are_values_read", [](const Tracing& self) { return self.are_values_read || self.trace->are_values_read(); });
  type.def("save", [](Tracing& self, const std::string& path, nb::handle result) {
    const Value value = to_value(result.ptr());
    without_gil([&] { self.trace->save(path, value); });
  });
  module.def("_save_script", save_script, nb::arg("path"), nb::arg("sources"), nb::arg("module"), nb::arg("requires_grad"));
}

}  // namespace tensord::python
