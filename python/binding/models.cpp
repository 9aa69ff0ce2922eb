#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/binding/convert.h"
#include "python/binding/interrupt.h"
#include "python/binding/trace.h"
#include <mutex>

#include "core/base/mutex.h"
#include "core/jit/archive/safetensors.h"
#include "core/jit/archive/torch_file.h"
#include "core/jit/ir/text.h"
#include "core/jit/runtime/module.h"
#include "core/jit/runtime/step/module_step.h"

// Model files and files of values. models.py makes them callable.
namespace tensord::python {
namespace {

// A loaded module with a run state for each of the threads that run it concurrently.
class LoadedModule {
 public:
  explicit LoadedModule(std::shared_ptr<jit::Module> module) : module_(std::move(module)) {}
  const jit::Module& module() const { return *module_; }
  jit::Module& module() { return *module_; }

  // Runs without the GIL.
  Value run(const jit::Method& method, std::span<const Value> arguments) {
    std::unique_lock alone(state_, std::defer_lock);
    if (method.changes_state()) alone.lock();
    std::unique_ptr<jit::Frame> frame = take();
    const std::function<bool()> asks = is_interrupted;
    Value result = method.run(*frame, arguments, {.is_cancelled = &asks});
    give_back(std::move(frame));
    return result;
  }

 private:
  std::unique_ptr<jit::Frame> take() {
    const MutexLock lock(mutex_);
    if (frames_.empty()) return jit::make_frame();
    std::unique_ptr<jit::Frame> frame = std::move(frames_.back());
    frames_.pop_back();
    return frame;
  }
  void give_back(std::unique_ptr<jit::Frame> frame) {
    const MutexLock lock(mutex_);
    frames_.push_back(std::move(frame));
  }

  const std::shared_ptr<jit::Module> module_;
  std::mutex state_;  // serializes runs that change the module
  Mutex mutex_;
  std::vector<std::unique_ptr<jit::Frame>> frames_ TENSORD_GUARDED_BY(mutex_);
};

std::shared_ptr<LoadedModule> load(const std::string& path, bool trainable, bool optimize) {
  return interruptible([&] {
    jit::LoadOptions options;
    options.for_training = trainable;
    options.optimize = optimize;
    return std::make_shared<LoadedModule>(jit::Module::load(path, options));
  });
}

// Binds arguments to the method's parameter names; omitted ones at the end take their defaults.
std::vector<Value> read_arguments(const jit::Method& method, const nb::args& args, const nb::kwargs& kwargs) {
  const auto& parameters = method.schema().arguments;
  if (args.size() > parameters.size()) {
    PyErr_Format(PyExc_TypeError, "%s() takes %zu arguments but %zu were given", method.name().c_str(), parameters.size(),
                 args.size());
    throw nb::python_error();
  }
  std::vector<Value> out;
  for (nb::handle item : args) out.push_back(to_value(item.ptr()));
  size_t used = 0;
  for (size_t i = args.size(); i < parameters.size() && used < kwargs.size(); ++i) {
    const nb::str name(parameters[i].name.c_str());
    if (kwargs.contains(name)) {
      out.push_back(to_value(nb::object(kwargs[name]).ptr()));
      ++used;
    } else if (parameters[i].default_value) {
      out.push_back(*parameters[i].default_value);
    } else {
      break;
    }
  }
  if (used == kwargs.size()) return out;
  for (auto [key, value] : kwargs) {
    if (method.schema().find_argument(nb::cast<std::string>(key)) < 0) {
      PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'", method.name().c_str(), key.ptr());
      throw nb::python_error();
    }
  }
  PyErr_Format(PyExc_TypeError, "%s(): an argument is missing or comes twice", method.name().c_str());
  throw nb::python_error();
}

nb::object call(LoadedModule& self, const std::string& name, const nb::args& args, const nb::kwargs& kwargs) {
  const jit::Method& method = *interruptible([&] { return &self.module().method(name); });
  const std::vector<Value> arguments = read_arguments(method, args, kwargs);
  if (jit::StepRecording* recording = step_recording()) [[unlikely]] jit::record_module_call(*recording, self.module(), name);
  const Value result = interruptible([&] { return self.run(method, arguments); });
  return to_python(result);
}

// An exception of a Python hook stays a Python exception, and the caller of the model receives it (set_error).
template <class Call>
nb::object ask_hook(const Held& hook, const Call& arguments_of) {
  try {
    return nb::object(hook.get()(*nb::tuple(arguments_of())));
  } catch (nb::python_error& error) {
    error.restore();
    fail(ErrorCode::kScriptRaised, "a hook raised an error");
  }
}

nb::tuple names_of(const ops::Schema& schema) {
  nb::list out;
  for (const auto& argument : schema.arguments) out.append(nb::make_tuple(argument.name, bool(argument.default_value)));
  return nb::tuple(out);
}

nb::tuple values_of(const std::vector<Value>& values) {
  nb::list out;
  for (const Value& value : values) out.append(to_python(value));
  return nb::tuple(out);
}

std::optional<std::vector<Tensor>> read_gradients(const nb::object& result) {
  if (result.is_none()) return std::nullopt;
  std::vector<Tensor> out;
  for (nb::handle item : nb::tuple(result)) out.push_back(item.is_none() ? Tensor() : tensor_in(item.ptr()));
  return out;
}

// Hooks receive tuples. jit.py turns their results into None or a tuple of values, None or a value in a tuple, None or
// tensors.
autograd::HookHandle add_forward_pre_hook(LoadedModule& self, const std::string& name, nb::object hook, bool prepend) {
  return self.module().register_forward_pre_hook(
      name,
      [held = Held(std::move(hook))](const jit::HookedCall& call, const std::vector<Value>& arguments)
          -> std::optional<std::vector<Value>> {
        const nb::gil_scoped_acquire gil;
        const nb::object result = ask_hook(held, [&] { return nb::make_tuple(names_of(call.schema), values_of(arguments)); });
        if (result.is_none()) return std::nullopt;
        std::vector<Value> out;
        for (nb::handle item : nb::tuple(result)) out.push_back(to_value(item.ptr()));
        return out;
      },
      prepend);
}

autograd::HookHandle add_forward_hook(LoadedModule& self, const std::string& name, nb::object hook, bool prepend) {
  return self.module().register_forward_hook(
      name,
      [held = Held(std::move(hook))](const jit::HookedCall& call, const std::vector<Value>& arguments,
                                     const Value& given) -> std::optional<Value> {
        const nb::gil_scoped_acquire gil;
        const nb::object result = ask_hook(held, [&] {
          return nb::make_tuple(names_of(call.schema), values_of(arguments), to_python(given));
        });
        if (result.is_none()) return std::nullopt;
        return to_value(nb::object(result[0]).ptr());
      },
      prepend);
}

autograd::HookHandle add_backward_hook(LoadedModule& self, const std::string& name, nb::object hook, bool prepend) {
  return self.module().register_full_backward_hook(
      name,
      [held = Held(std::move(hook))](const jit::HookedCall&, const std::vector<Tensor>& inputs,
                                     const std::vector<Tensor>& outputs) {
        const nb::gil_scoped_acquire gil;
        return read_gradients(ask_hook(held, [&] { return nb::make_tuple(wrap(inputs), wrap(outputs)); }));
      },
      prepend);
}

autograd::HookHandle add_backward_pre_hook(LoadedModule& self, const std::string& name, nb::object hook, bool prepend) {
  return self.module().register_full_backward_pre_hook(
      name,
      [held = Held(std::move(hook))](const jit::HookedCall&, const std::vector<Tensor>& outputs) {
        const nb::gil_scoped_acquire gil;
        return read_gradients(ask_hook(held, [&] { return nb::make_tuple(wrap(outputs)); }));
      },
      prepend);
}

nb::list named_modules(const LoadedModule& self) {
  nb::list out;
  for (const auto& [name, module] : self.module().named_modules()) out.append(nb::make_tuple(name, module->type->name()));
  return out;
}

// A tensor over the same memory that rejects writes, because runs use packed copies and plans of the values.
Tensor read_only(const Tensor& tensor) {
  const Storage& owner = tensor.storage();
  if (!owner || !owner->is_writable()) return tensor;
  Storage shared = wrap_storage(
      owner->data(), owner->size_bytes(), [owner] {}, owner->device(), false);
  Tensor out = Tensor::from_storage(std::move(shared), tensor.sizes(), tensor.strides(), tensor.offset(), tensor.dtype());
  out.impl()->is_inference = tensor.impl()->is_inference;
  return out;
}

nb::list named(const std::vector<std::pair<std::string, Tensor>>& tensors) {
  nb::list out;
  for (const auto& [name, tensor] : tensors) out.append(nb::make_tuple(name, wrap(tensor)));
  return out;
}

// The tensors as users see them. A trainable model returns its own tensors, because it is interpreted and packs
// nothing.
nb::list named_for_users(const LoadedModule& self, std::vector<std::pair<std::string, Tensor>> tensors) {
  if (!self.module().is_for_training()) {
    for (auto& [name, tensor] : tensors) tensor = read_only(tensor);
  }
  return named(tensors);
}

}  // namespace

void bind_models(nb::module_& module) {
  auto type = nb::class_<LoadedModule>(module, "_LoadedModule");
  type.def("call", call);
  type.def("method_names", [](const LoadedModule& self) { return self.module().method_names(); });
  type.def("class_name", [](const LoadedModule& self) { return self.module().object()->type->name(); });
  type.def("platform", [](const LoadedModule& self) { return self.module().platform(); });
  type.def("schema", [](const LoadedModule& self, const std::string& name) { return self.module().method(name).schema().str(); });
  type.def("graph", [](const LoadedModule& self, const std::string& name) {
    return jit::print_graph(self.module().method(name).graph());
  });
  type.def("graph_dot", [](const LoadedModule& self, const std::string& name) {
    return jit::print_dot(self.module().method(name).graph());
  });
  type.def("named_parameters", [](const LoadedModule& self) { return named_for_users(self, self.module().named_parameters()); });
  type.def("named_buffers", [](const LoadedModule& self) { return named_for_users(self, self.module().named_buffers()); });
  type.def("is_trainable", [](const LoadedModule& self) { return self.module().is_for_training(); });
  type.def("has_hooks", [](const LoadedModule& self) { return self.module().has_hooks(); });
  type.def("named_tensors", [](const LoadedModule& self) { return named(self.module().named_tensors()); });
  type.def("is_training", [](const LoadedModule& self) { return self.module().is_training(); });
  type.def("set_training", [](LoadedModule& self, bool value) { self.module().set_training(value); });
  type.def("named_modules", named_modules);
  type.def("add_forward_pre_hook", add_forward_pre_hook);
  type.def("add_forward_hook", add_forward_hook);
  type.def("add_full_backward_hook", add_backward_hook);
  type.def("add_full_backward_pre_hook", add_backward_pre_hook);
  type.def("save", [](const LoadedModule& self, const std::string& path) { without_gil([&] { self.module().save(path); }); });
  module.def("_load_module", load, nb::arg("path"), nb::arg("trainable"), nb::arg("optimize"));
  module.def("_load_torch_file", [](const std::string& path) {
    return to_python(interruptible([&] { return jit::load_torch_file(path); }));
  });
  module.def("_save_torch_file", [](const std::string& path, nb::handle value) {
    const Value read = to_value(value.ptr());
    without_gil([&] { jit::save_torch_file(path, read); });
  }, nb::arg("path"), nb::arg("value").none());
  module.def("_load_safetensors", [](const std::string& path) {
    const jit::SafetensorsFile file = interruptible([&] { return jit::read_safetensors(path, true); });
    nb::dict out;
    for (const auto& [name, tensor] : file.tensors) out[nb::str(name.c_str(), name.size())] = wrap(tensor);
    return out;
  });
  module.def("_save_safetensors", [](const std::string& path, const nb::dict& tensors) {
    std::vector<std::pair<std::string, Tensor>> named;
    for (auto [name, tensor] : tensors) named.emplace_back(nb::cast<std::string>(name), tensor_in(tensor.ptr()));
    without_gil([&] { jit::write_safetensors(path, named); });
  });
}

}  // namespace tensord::python
