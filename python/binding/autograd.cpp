#include "core/autograd/engine.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <any>
#include <memory>
#include <optional>

#include "python/binding/constants.h"
#include "python/binding/convert.h"
#include "python/binding/interrupt.h"
#include "core/autograd/anomaly.h"
#include "core/autograd/autocast.h"
#include "core/autograd/checkpoint.h"
#include "core/autograd/gradcheck.h"
#include "core/autograd/node.h"
#include "core/autograd/hooks/post_accumulate.h"
#include "core/autograd/hooks/saved_hooks.h"
#include "core/autograd/variable.h"

namespace tensord::python {
namespace {

using autograd::BackwardOptions;
using autograd::HookHandle;
using autograd::NodePtr;

struct PyNode {
  NodePtr node;
  bool operator==(const PyNode& other) const { return node == other.node; }
};

nb::object node_object(const NodePtr& node) { return node ? nb::cast(PyNode{node}) : nb::none(); }

std::vector<Tensor> read_tensors(nb::handle given, const char* what) {
  std::vector<Tensor> out;
  if (given.is_none()) return out;
  if (is_tensor(given.ptr())) {
    out.push_back(tensor_in(given.ptr()));
    return out;
  }
  for (nb::handle item : given) {
    if (item.is_none()) {
      out.emplace_back();
    } else if (is_tensor(item.ptr())) {
      out.push_back(tensor_in(item.ptr()));
    } else {
      throw nb::type_error((std::string(what) + ": expected tensors").c_str());
    }
  }
  return out;
}

BackwardOptions options_of(nb::handle retain_graph, bool create_graph, int threads) {
  BackwardOptions options;
  options.retain_graph = retain_graph.is_none() ? create_graph : nb::cast<bool>(retain_graph);
  options.create_graph = create_graph;
  options.threads = threads;
  return options;
}

void backward(nb::handle tensors, nb::handle gradients, nb::handle retain_graph, bool create_graph, nb::handle inputs) {
  const std::vector<Tensor> roots = read_tensors(tensors, "backward"), given = read_tensors(gradients, "backward");
  const std::vector<Tensor> wanted = read_tensors(inputs, "backward");
  check(inputs.is_none() || !wanted.empty(), "backward: 'inputs' cannot be empty");
  BackwardOptions options = options_of(retain_graph, create_graph, 1);
  options.inputs = wanted;
  interruptible([&] { autograd::backward(roots, given, options); });
}

nb::object grad(nb::handle outputs, nb::handle inputs, nb::handle grad_outputs, nb::handle retain_graph, bool create_graph,
                bool allow_unused) {
  const std::vector<Tensor> roots = read_tensors(outputs, "grad"), leaves = read_tensors(inputs, "grad");
  const std::vector<Tensor> given = read_tensors(grad_outputs, "grad");
  return wrap(interruptible(
      [&] { return autograd::grad(roots, leaves, given, options_of(retain_graph, create_graph, 1), allow_unused); }));
}

// Python hooks have the same arguments and results as engine hooks, with None for undefined tensors.
HookHandle register_tensor_hook(const Tensor& tensor, nb::object hook) {
  return autograd::register_hook(tensor, [held = Held(std::move(hook))](const Tensor& gradient) -> Tensor {
    const nb::gil_scoped_acquire gil;
    const nb::object result = held.get()(wrap(gradient));
    if (result.is_none()) return {};
    if (!is_tensor(result.ptr())) throw nb::type_error("a hook must give a tensor or None");
    return tensor_in(result.ptr());
  });
}

std::optional<std::vector<Tensor>> read_result(const nb::object& result) {
  if (result.is_none()) return std::nullopt;
  return read_tensors(result, "hook");
}

HookHandle register_node_hook(const PyNode& self, nb::object hook) {
  return self.node->register_hook([held = Held(std::move(hook))](const std::vector<Tensor>& grad_inputs,
                                                                 const std::vector<Tensor>& grad_outputs) {
    const nb::gil_scoped_acquire gil;
    return read_result(held.get()(wrap(grad_inputs), wrap(grad_outputs)));
  });
}

HookHandle register_node_prehook(const PyNode& self, nb::object hook) {
  return self.node->register_prehook([held = Held(std::move(hook))](const std::vector<Tensor>& grad_outputs) {
    const nb::gil_scoped_acquire gil;
    return read_result(held.get()(wrap(grad_outputs)));
  });
}

// The hook gets the same Python object that it was registered on while that exists, because programs use tensors as
// dict keys.
HookHandle register_post_accumulate_hook(nb::handle self, nb::object hook) {
  const nb::object leaf = nb::steal(PyWeakref_NewRef(self.ptr(), nullptr));
  if (!leaf.is_valid()) throw nb::python_error();
  return autograd::register_post_accumulate_grad_hook(
      tensor_in(self.ptr()), [held = Held(std::move(hook)), leaf = Held(leaf)](const Tensor& parameter) {
        const nb::gil_scoped_acquire gil;
        const nb::object known = nb::object(leaf.get()());
        held.get()(known.is_none() ? wrap(parameter) : known);
      });
}

// saved_tensors_hooks of Python: pack may return any object.
class SavedHooks {
 public:
  explicit SavedHooks(autograd::SavedTensorHooks hooks) : hooks_(std::move(hooks)) {}
  SavedHooks(const SavedHooks&) = delete;
  SavedHooks& operator=(const SavedHooks&) = delete;
  void begin() { scopes_.push_back(std::make_unique<autograd::SavedTensorHooksScope>(hooks_)); }
  void end() {
    check(!scopes_.empty(), "saved_tensors_hooks: left without being entered");
    scopes_.pop_back();
  }

 private:
  autograd::SavedTensorHooks hooks_;
  std::vector<std::unique_ptr<autograd::SavedTensorHooksScope>> scopes_;
};

autograd::SavedTensorHooks read_saved_hooks(nb::object pack, nb::object unpack) {
  return {[pack = Held(std::move(pack))](const Tensor& tensor) -> std::any {
            const nb::gil_scoped_acquire gil;
            return Held(nb::object(pack.get()(wrap(tensor))));
          },
          [unpack = Held(std::move(unpack))](const std::any& packed) -> Tensor {
            const nb::gil_scoped_acquire gil;
            const nb::object result = nb::object(unpack.get()(std::any_cast<const Held&>(packed).get()));
            if (!is_tensor(result.ptr())) {
              PyErr_Format(PyExc_TypeError, "Output of saved tensor unpack_hook expected to be a Tensor but got result of type %s",
                           class_of(result.ptr()).c_str());
              throw nb::python_error();
            }
            return tensor_in(result.ptr());
          }};
}

void bind_saved_hooks(nb::module_& module) {
  auto type = nb::class_<SavedHooks>(module, "_SavedHooks");
  type.def("begin", &SavedHooks::begin);
  type.def("end", &SavedHooks::end);
  module.def("_saved_tensors_hooks", [](nb::object pack, nb::object unpack) {
    return std::make_unique<SavedHooks>(read_saved_hooks(std::move(pack), std::move(unpack)));
  });
  module.def("_save_on_cpu", [] { return std::make_unique<SavedHooks>(autograd::save_on_cpu()); });
}

struct CheckpointScope {
  std::unique_ptr<autograd::CheckpointScope> scope;
};

void bind_checkpoint(nb::module_& module) {
  nb::class_<CheckpointScope>(module, "_CheckpointScope")
      .def("__init__",
           [](CheckpointScope* self, nb::object again, bool keeps_random_numbers) {
             const auto run = [held = Held(std::move(again))] {
               const nb::gil_scoped_acquire gil;
               const nb::object result = nb::object(held.get()());
             };
             new (self) CheckpointScope{std::make_unique<autograd::CheckpointScope>(run, keeps_random_numbers)};
           })
      .def("end", [](CheckpointScope& self) { self.scope.reset(); });
}

autograd::TensorFunction tensor_function(nb::object function) {
  return [held = Held(std::move(function))](const std::vector<Tensor>& inputs) {
    const nb::gil_scoped_acquire gil;
    const nb::object arguments = wrap(inputs);
    const nb::object result = nb::steal(PyObject_CallObject(held.get().ptr(), arguments.ptr()));
    if (!result.is_valid()) throw nb::python_error();
    return read_tensors(result, "gradcheck");
  };
}

autograd::GradcheckOptions gradcheck_options(double eps, double atol, double rtol, double nondet_tol, bool checks_undefined) {
  autograd::GradcheckOptions options;
  options.eps = eps;
  options.atol = atol;
  options.rtol = rtol;
  options.nondet_tol = nondet_tol;
  options.checks_undefined_grad = checks_undefined;
  return options;
}

void bind_checks(nb::module_& module) {
  module.def(
      "_gradcheck",
      [](nb::object function, nb::handle inputs, double eps, double atol, double rtol, double nondet_tol, bool undefined) {
        const auto held = tensor_function(std::move(function));
        const std::vector<Tensor> tensors = read_tensors(inputs, "gradcheck");
        interruptible([&] { autograd::gradcheck(held, tensors, gradcheck_options(eps, atol, rtol, nondet_tol, undefined)); });
      },
      nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg());
  module.def(
      "_gradgradcheck",
      [](nb::object function, nb::handle inputs, nb::handle grad_outputs, double eps, double atol, double rtol,
         double nondet_tol) {
        const auto held = tensor_function(std::move(function));
        const std::vector<Tensor> tensors = read_tensors(inputs, "gradgradcheck");
        const std::vector<Tensor> given = read_tensors(grad_outputs, "gradgradcheck");
        interruptible(
            [&] { autograd::gradgradcheck(held, tensors, given, gradcheck_options(eps, atol, rtol, nondet_tol, true)); });
      },
      nb::arg(), nb::arg(), nb::arg().none(), nb::arg(), nb::arg(), nb::arg(), nb::arg());
}

void bind_node(nb::module_& module) {
  nb::class_<HookHandle>(module, "RemovableHandle").def("remove", &HookHandle::remove, "Takes the hook away.");
  auto node = nb::class_<PyNode>(module, "Node");
  node.def("name", [](const PyNode& self) { return self.node->name(); });
  node.def_prop_ro("next_functions", [](const PyNode& self) {
    nb::list out;
    for (const auto& edge : self.node->next_edges()) {
      out.append(nb::make_tuple(node_object(edge.node), edge.input_nr));
    }
    return nb::tuple(out);
  });
  node.def("register_hook", register_node_hook, nb::arg("hook"));
  node.def("register_prehook", register_node_prehook, nb::arg("hook"));
  node.def("__repr__", [](const PyNode& self) { return "<" + self.node->name() + ">"; });
  node.def("__eq__", [](const PyNode& self, const PyNode& other) { return self == other; });
  node.def("__eq__", [](const PyNode&, nb::handle) { return false; }, nb::arg("other").none());
  node.def("__hash__", [](const PyNode& self) { return reinterpret_cast<Py_hash_t>(self.node.get()) >> 4; });
}

struct AutocastScope {
  std::unique_ptr<autograd::AutocastGuard> guard;
};

void bind_autocast(nb::module_& module) {
  nb::class_<AutocastScope>(module, "_AutocastScope")
      .def("__init__",
           [](AutocastScope* self, const std::string& device, nb::handle type, bool is_enabled, bool caches) {
             DType dtype = DType::kFloat32;
             if (!read_dtype(type.ptr(), &dtype)) throw nb::type_error("autocast: expected a dtype");
             auto guard = std::make_unique<autograd::AutocastGuard>(parse_device(device).kind, dtype, is_enabled, caches);
             new (self) AutocastScope{std::move(guard)};
           })
      .def("end", [](AutocastScope& self) { self.guard.reset(); });
  module.def("_autocast_dtype", [](const std::string& device) {
    const std::optional<DType> dtype = autograd::autocast_dtype(parse_device(device).kind);
    return dtype ? dtype_object(*dtype) : nb::none();
  });
  module.def("is_autocast_cache_enabled", autograd::is_autocast_cache_enabled);
  module.def("clear_autocast_cache", autograd::clear_autocast_cache);
}

struct AnomalyScope {
  std::unique_ptr<autograd::AnomalyModeGuard> guard;
};

// The thread's grad mode as a number that Python stores.
int mode_number() { return (is_grad_enabled() ? 1 : 0) | (is_inference_mode() ? 2 : 0); }

void bind_modes(nb::module_& module) {
  module.def("is_grad_enabled", [] { return is_grad_enabled(); });
  module.def("is_inference_mode_enabled", [] { return is_inference_mode(); });
  // Both return the previous mode, which _restore_grad_mode restores: the two halves of Python's context managers.
  module.def("_set_grad_enabled", [](bool value) {
    const int before = mode_number();
    execution_context().grad_mode.is_enabled = value;
    return before;
  });
  module.def("_set_inference_mode", [](bool value) {
    const int before = mode_number();
    execution_context().grad_mode = {value ? false : is_grad_enabled() || is_inference_mode(), value};
    return before;
  });
  module.def("_restore_grad_mode", [](int mode) { execution_context().grad_mode = {(mode & 1) != 0, (mode & 2) != 0}; });
  module.def("is_anomaly_enabled", autograd::is_anomaly_mode);
  module.def("is_anomaly_check_nan_enabled", autograd::would_check_nan);
  nb::class_<AnomalyScope>(module, "_AnomalyScope")
      .def("__init__",
           [](AnomalyScope* self, bool enabled, bool checks_nan) {
             new (self) AnomalyScope{std::make_unique<autograd::AnomalyModeGuard>(enabled, checks_nan)};
           })
      .def("end", [](AnomalyScope& self) { self.guard.reset(); });
}

void bind_tensor_part() {
  nb::handle tensor(reinterpret_cast<PyObject*>(tensor_type));
  auto type = nb::borrow<nb::class_<Tensor>>(tensor);
  type.def_prop_rw(
      "requires_grad", [](const Tensor& x) { return autograd::requires_grad(x); },
      [](const Tensor& x, bool value) { autograd::set_requires_grad(x, value); });
  type.def_prop_rw(
      "grad", [](const Tensor& x) { return wrap(autograd::grad(x)); },
      [](const Tensor& x, nb::handle value) {
        if (!value.is_none() && !is_tensor(value.ptr())) throw nb::type_error("grad: expected a tensor or None");
        autograd::set_grad(x, value.is_none() ? Tensor() : tensor_in(value.ptr()));
      },
      nb::for_setter(nb::arg("value").none()));
  type.def_prop_ro("grad_fn", [](const Tensor& x) { return node_object(autograd::grad_fn(x)); });
  type.def_prop_ro("is_leaf", [](const Tensor& x) { return autograd::is_leaf(x); });
  type.def_prop_ro("output_nr", [](const Tensor& x) { return autograd::output_nr(x); });
  type.def_prop_ro("retains_grad", [](const Tensor& x) { return autograd::retains_grad(x); });
  type.def_prop_ro("_base", [](const Tensor& x) { return autograd::is_view(x) ? wrap(autograd::base_of(x)) : nb::none(); });
  type.def("register_hook", register_tensor_hook, nb::arg("hook"));
  type.def("register_post_accumulate_grad_hook", register_post_accumulate_hook, nb::arg("hook"));
  type.def(
      "backward",
      [](nb::handle self, nb::handle gradient, nb::handle retain_graph, bool create_graph, nb::handle inputs) {
        backward(self, gradient, retain_graph, create_graph, inputs);
      },
      nb::arg("gradient").none() = nb::none(), nb::arg("retain_graph").none() = nb::none(), nb::arg("create_graph") = false,
      nb::arg("inputs").none() = nb::none());
}

}  // namespace

void bind_autograd(nb::module_& module) {
  bind_node(module);
  bind_tensor_part();
  bind_modes(module);
  bind_autocast(module);
  bind_checks(module);
  bind_saved_hooks(module);
  bind_checkpoint(module);
  module.def("_backward", backward, nb::arg(), nb::arg().none(), nb::arg().none(), nb::arg(), nb::arg().none());
  module.def("_grad", grad, nb::arg(), nb::arg(), nb::arg().none(), nb::arg().none(), nb::arg(), nb::arg());
}

}  // namespace tensord::python
