#include "core/nn/optim/optimizer.h"

#include <nanobind/stl/function.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "python/binding/convert.h"
#include "core/nn/optim/clip_grad.h"
#include "core/nn/optim/lr_scheduler.h"

// core/nn's optimizers and schedulers; optim.py gives them PyTorch's names.
namespace tensord::python {
namespace {

nn::Options read_options(nb::handle given) {
  nn::Options out;
  for (auto [key, value] : nb::cast<nb::dict>(given)) out.set(nb::cast<std::string>(key), to_value(value.ptr()));
  return out;
}

std::vector<Tensor> read_params(nb::handle given) {
  std::vector<Tensor> out;
  for (nb::handle item : given) {
    if (!is_tensor(item.ptr())) throw nb::type_error("optimizer: can only optimize tensors");
    out.push_back(tensor_in(item.ptr()));
  }
  return out;
}

nn::ParamGroup read_group(nb::handle pair) {
  return {read_params(nb::object(pair[0])), read_options(nb::object(pair[1]))};
}

std::unique_ptr<nn::Optimizer> make(const std::string& kind, nb::handle groups, nb::handle options) {
  std::vector<nn::ParamGroup> read;
  for (nb::handle group : groups) read.push_back(read_group(group));
  return nn::make_optimizer(kind, std::move(read), read_options(options));
}

nb::object step(nn::Optimizer& self, nb::object closure) {
  if (closure.is_none()) {
    without_gil([&] { self.step(); });
    return nb::none();
  }
  const Held held(std::move(closure));
  const auto call = [&held]() -> Tensor {
    const nb::gil_scoped_acquire gil;
    const nb::object loss = held.get()();
    return is_tensor(loss.ptr()) ? tensor_in(loss.ptr()) : Tensor();
  };
  return wrap(without_gil([&] { return self.step(call); }));
}

nn::ParamGroup& group_at(nn::Optimizer& self, size_t index) {
  if (index >= self.param_groups().size()) fail(ErrorCode::kOutOfRange, "optimizer: there is no group ", index);
  return self.param_groups()[index];
}

void bind_optimizer(nb::module_& module) {
  auto type = nb::class_<nn::Optimizer>(module, "_Optimizer");
  type.def("step", step, nb::arg("closure").none());
  type.def("use_master_weights", &nn::Optimizer::use_master_weights);
  type.def("zero_grad", &nn::Optimizer::zero_grad, nb::arg("set_to_none"));
  type.def("state_dict", [](const nn::Optimizer& self) { return to_python(self.state_dict()); });
  type.def("load_state_dict", [](nn::Optimizer& self, nb::handle state) { self.load_state_dict(to_value(state.ptr())); });
  type.def("add_param_group", [](nn::Optimizer& self, nb::handle group) { self.add_param_group(read_group(group)); });
  type.def("group_count", [](nn::Optimizer& self) { return self.param_groups().size(); });
  type.def("options", [](nn::Optimizer& self, size_t group) {
    nb::dict out;
    for (const auto& [name, value] : group_at(self, group).options.items()) out[name.c_str()] = to_python(value);
    return out;
  });
  type.def("set_option", [](nn::Optimizer& self, size_t group, const std::string& name, nb::handle value) {
    group_at(self, group).options.set(name, to_value(value.ptr()));
  });
  module.def("_make_optimizer", make);
}

template <class S, class... A, class... Extra>
void bind_schedule(nb::module_& module, const char* name, Extra&&... extra) {
  nb::class_<S, nn::LRScheduler>(module, name)
      .def(nb::init<nn::Optimizer&, A...>(), nb::keep_alive<1, 2>(), nb::arg("optimizer"), std::forward<Extra>(extra)...);
}

void bind_one_cycle(nb::module_& module) {
  nb::class_<nn::OneCycleLR, nn::LRScheduler>(module, "OneCycleLR")
      .def("__init__",
           [](nn::OneCycleLR* self, nn::Optimizer& optimizer, std::vector<double> max_lr, int64_t total_steps, int64_t epochs,
              int64_t steps_per_epoch, double pct_start, bool is_linear, bool cycle_momentum, double base_momentum,
              double max_momentum, double div_factor, double final_div_factor, bool three_phase) {
             new (self) nn::OneCycleLR(
                 optimizer, {std::move(max_lr), total_steps, epochs, steps_per_epoch, pct_start, is_linear, cycle_momentum,
                             base_momentum, max_momentum, div_factor, final_div_factor, three_phase});
           },
           nb::keep_alive<1, 2>());
}

void bind_plateau(nb::module_& module) {
  nb::class_<nn::ReduceLROnPlateau>(module, "ReduceLROnPlateau")
      .def("__init__",
           [](nn::ReduceLROnPlateau* self, nn::Optimizer& optimizer, bool maximize, double factor, int64_t patience,
              double threshold, bool is_relative, int64_t cooldown, double min_lr, double eps) {
             new (self) nn::ReduceLROnPlateau(
                 optimizer, {maximize, factor, patience, threshold, is_relative, cooldown, min_lr, eps});
           },
           nb::keep_alive<1, 2>())
      .def("step", &nn::ReduceLROnPlateau::step, nb::arg("metrics"))
      .def("get_last_lr", &nn::ReduceLROnPlateau::last_lr)
      .def("state_dict", [](const nn::ReduceLROnPlateau& self) { return to_python(self.state_dict()); })
      .def("load_state_dict",
           [](nn::ReduceLROnPlateau& self, nb::handle state) { self.load_state_dict(to_value(state.ptr())); });
}

void bind_schedules(nb::module_& parent) {
  nb::module_ module = parent.def_submodule("_schedules");
  nb::class_<nn::LRScheduler>(module, "LRScheduler")
      .def("step", &nn::LRScheduler::step)
      .def("get_last_lr", &nn::LRScheduler::last_lr)
      .def_prop_ro("last_epoch", &nn::LRScheduler::last_epoch)
      .def("state_dict", [](const nn::LRScheduler& self) { return to_python(self.state_dict()); })
      .def("load_state_dict", [](nn::LRScheduler& self, nb::handle state) { self.load_state_dict(to_value(state.ptr())); });
  using Lambda = nn::LambdaLR::Lambda;
  bind_schedule<nn::LambdaLR, Lambda>(module, "LambdaLR", nb::arg("lr_lambda"));
  bind_schedule<nn::StepLR, int64_t, double>(module, "StepLR", nb::arg("step_size"), nb::arg("gamma") = 0.1);
  bind_schedule<nn::MultiStepLR, std::vector<int64_t>, double>(module, "MultiStepLR", nb::arg("milestones"),
                                                               nb::arg("gamma") = 0.1);
  bind_schedule<nn::ExponentialLR, double>(module, "ExponentialLR", nb::arg("gamma"));
  bind_schedule<nn::ConstantLR, double, int64_t>(module, "ConstantLR", nb::arg("factor") = 1.0 / 3,
                                                 nb::arg("total_iters") = 5);
  bind_schedule<nn::LinearLR, double, double, int64_t>(module, "LinearLR", nb::arg("start_factor") = 1.0 / 3,
                                                       nb::arg("end_factor") = 1.0, nb::arg("total_iters") = 5);
  bind_schedule<nn::PolynomialLR, int64_t, double>(module, "PolynomialLR", nb::arg("total_iters") = 5, nb::arg("power") = 1.0);
  bind_schedule<nn::CosineAnnealingLR, int64_t, double>(module, "CosineAnnealingLR", nb::arg("T_max"),
                                                        nb::arg("eta_min") = 0.0);
  bind_schedule<nn::CosineAnnealingWarmRestarts, int64_t, int64_t, double>(
      module, "CosineAnnealingWarmRestarts", nb::arg("T_0"), nb::arg("T_mult") = 1, nb::arg("eta_min") = 0.0);
  bind_one_cycle(module);
  bind_plateau(module);
}

}  // namespace

void bind_optim(nb::module_& module) {
  bind_optimizer(module);
  bind_schedules(module);
  module.def("_clip_grad_norm_", [](nb::handle params, double max_norm, double norm_type, bool error_if_nonfinite) {
    const std::vector<Tensor> read = read_params(params);
    return without_gil([&] { return nn::clip_grad_norm_(read, max_norm, norm_type, error_if_nonfinite); });
  });
  module.def("_clip_grad_value_", [](nb::handle params, double clip_value) {
    const std::vector<Tensor> read = read_params(params);
    without_gil([&] { nn::clip_grad_value_(read, clip_value); });
  });
}

}  // namespace tensord::python
