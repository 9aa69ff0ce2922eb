#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <list>

#include "python/binding/distributed.h"
#include "python/binding/interrupt.h"
#include "core/autograd/variable.h"
#include "core/base/error.h"
#include "core/distributed/ddp/power_sgd.h"
#include "core/nn/distributed.h"
#include "core/nn/layers/sync_batch_norm.h"
#include "core/tensor/device_runtime.h"

// core/nn's DistributedDataParallel over a Python module. nn/parallel.py has the public class.
namespace tensord::python {
namespace {

using distributed::ProcessGroup;
using nn::DistributedDataParallel;
using nn::Tensors;
using GroupPtr = std::shared_ptr<ProcessGroup>;

// The parameters and buffers of a Python module by their dotted names.
class ModulePart : public nn::Module {
 public:
  explicit ModulePart(const std::string& name) : Module(name) {}
  Tensors forward(const Tensors&) override { fail(ErrorCode::kInternal, kind(), " is called by Python"); }

  void add(const std::string& name, const Tensor& tensor, bool is_parameter) {
    const size_t dot = name.find('.');
    if (dot != std::string::npos) {
      part(name.substr(0, dot)).add(name.substr(dot + 1), tensor, is_parameter);
    } else if (is_parameter) {
      register_parameter(name, tensor, autograd::requires_grad(tensor));
    } else {
      register_buffer(name, tensor);
    }
  }

 private:
  ModulePart& part(const std::string& name) {
    for (const auto& [known, child] : children()) {
      if (known == name) return static_cast<ModulePart&>(*child);
    }
    return *register_module(name, std::make_shared<ModulePart>(name));
  }
};

std::vector<Tensor> tensors_of(nb::handle given) {
  std::vector<Tensor> out;
  for (nb::handle item : given) out.push_back(tensor_in(item.ptr()));
  return out;
}

// A module whose forward calls Python, which returns the tensors of the result.
class PythonModule final : public ModulePart {
 public:
  PythonModule() : ModulePart("Module") {}
  Tensors forward(const Tensors&) override {
    const nb::gil_scoped_acquire gil;
    const nb::object found = call->get()();
    return tensors_of(found);
  }
  const Held* call = nullptr;  // the current forward call
};

struct DataParallel {
  DataParallel(GroupPtr over, std::shared_ptr<PythonModule> of, nn::DistributedOptions options)
      : group(std::move(over)), module(std::move(of)), ddp(module, *group, std::move(options)) {}

  const GroupPtr group;
  const std::shared_ptr<PythonModule> module;
  std::unique_ptr<distributed::PowerSgd> power_sgd;
  DistributedDataParallel ddp;
  std::list<DistributedDataParallel::NoSync> no_sync;
  std::optional<DistributedDataParallel::Join> join;
};

std::shared_ptr<DataParallel> make_data_parallel(GroupPtr group, nb::handle parameters, nb::handle buffers, size_t bucket_cap_bytes,
                                                 bool broadcast_buffers, bool find_unused_parameters, bool static_graph,
                                                 bool gradient_as_bucket_view, std::vector<std::string> sparse) {
  const auto module = std::make_shared<PythonModule>();
  const auto add = [&](nb::handle named, bool is_parameter) {
    for (nb::handle item : named) {
      const auto pair = nb::cast<nb::tuple>(item);
      module->add(nb::cast<std::string>(pair[0]), tensor_in(nb::object(pair[1]).ptr()), is_parameter);
    }
  };
  add(parameters, true);
  add(buffers, false);
  nn::DistributedOptions options;
  options.broadcast_buffers = broadcast_buffers;
  options.reducer.bucket_cap_bytes = bucket_cap_bytes;
  options.reducer.find_unused_parameters = find_unused_parameters;
  options.reducer.static_graph = static_graph;
  options.reducer.gradient_as_bucket_view = gradient_as_bucket_view;
  options.reducer.sparse = std::move(sparse);
  return interruptible([&] { return std::make_shared<DataParallel>(std::move(group), module, options); });
}

void forward(DataParallel& self, nb::object call) {
  const Held held(std::move(call));
  self.module->call = &held;
  interruptible([&] { self.ddp.run({}); });
}

void register_hook(DataParallel& self, const std::string& kind, int64_t rank, int64_t start_step, double min_rate, bool error_feedback,
                   bool warm_start, uint32_t seed) {
  if (kind == "fp16") return self.ddp.register_comm_hook(distributed::fp16_compress_hook());
  if (kind == "bf16") return self.ddp.register_comm_hook(distributed::bf16_compress_hook());
  auto made = std::make_unique<distributed::PowerSgd>(
      distributed::PowerSgdOptions{rank, start_step, min_rate, error_feedback, warm_start, seed});
  self.ddp.register_comm_hook(made->hook());
  self.power_sgd = std::move(made);
}

// 0 if this build has no CUDA or the machine has no device.
int cuda_device_count() {
  try {
    return device_runtime(Device{DeviceKind::kCUDA, 0}).count();
  } catch (const Error&) {
    return 0;
  }
}

std::optional<Tensor> given(nb::handle tensor) {
  return tensor.is_none() ? std::nullopt : std::optional<Tensor>(tensor_in(tensor.ptr()));
}

}  // namespace

void bind_data_parallel(nb::module_& module) {
  nb::class_<DataParallel> type(module, "DataParallel");
  type.def("forward", forward);
  type.def("register_hook", register_hook);
  type.def("start_no_sync", [](DataParallel& self) { self.no_sync.emplace_back(self.ddp); });
  type.def("end_no_sync", [](DataParallel& self) { self.no_sync.pop_back(); });
  type.def("start_join", [](DataParallel& self, bool divides_by_all, bool throws_on_early_end) {
    check(!self.join, "DistributedDataParallel: a join is there already");
    self.join.emplace(self.ddp, DistributedDataParallel::Join::Options{divides_by_all, throws_on_early_end});
  });
  type.def("finish_join", [](DataParallel& self) { interruptible([&] { self.join.value().finish(); }); });
  type.def("end_join", [](DataParallel& self) { self.join.reset(); });
  type.def("waited", [](const DataParallel& self) {
    return std::chrono::duration<double>(self.ddp.reducer().waited()).count();
  });
  module.def("make_data_parallel", make_data_parallel);
  module.def("cuda_device_count", cuda_device_count);
  module.def("sync_batch_norm",
             [](GroupPtr group, const Tensor& input, nb::handle weight, nb::handle bias, nb::handle mean, nb::handle variance,
                double momentum, double eps) {
               const auto w = given(weight), b = given(bias), m = given(mean), v = given(variance);
               return interruptible([&] { return nn::sync_batch_norm(*group, input, w, b, m, v, momentum, eps, group); });
             },
             nb::arg(), nb::arg(), nb::arg().none(), nb::arg().none(), nb::arg().none(), nb::arg().none(), nb::arg(), nb::arg());
}

}  // namespace tensord::python
