#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <pthread.h>

#include <atomic>
#include <cstring>
#include <random>

#include "python/binding/generator.h"
#include "python/binding/interrupt.h"
#include "python/binding/memory.h"
#include "core/base/parallel.h"
#include "core/tensor/device_runtime.h"
#include "core/tensor/memory/caching_allocator.h"

namespace tensord::python {
namespace {

std::atomic<bool> is_forked{false};
PyTypeObject* generator_type = nullptr;

// OpenMP's threads do not exist in a forked process, and code that waits for them hangs. So such a process uses one
// thread.
void after_fork_in_child() {
  is_forked.store(true);
  set_thread_budget(1);
}

struct PyGenerator {
  ops::Generator* generator;
  std::unique_ptr<ops::Generator> own;
  Device device;  // whose state it shows
};

// A thread that draws holds the generator's lock and may need the GIL to check for Ctrl-C, so no thread may wait for
// the lock with the GIL.
template <class Body>
auto with_lock(ops::Generator& generator, const Body& body) {
  const nb::gil_scoped_release release;
  const auto lock = generator.lock();
  return body();
}

std::vector<uint8_t> bytes_of(ops::Generator& generator, Device device) {
  return with_lock(generator, [&] { return device.is_host() ? generator.state() : generator.state(device); });
}

nb::object state_of(ops::Generator& generator, Device device) {
  const std::vector<uint8_t> bytes = bytes_of(generator, device);
  Tensor out = Tensor::empty(Dims{static_cast<int64_t>(bytes.size())}, DType::kUInt8);
  std::copy(bytes.begin(), bytes.end(), out.data<uint8_t>());
  return wrap(out);
}

void set_state(ops::Generator& generator, Device device, const Tensor& state) {
  check(state.dtype() == DType::kUInt8 && state.device().is_host(), "set_state: expected uint8 on the CPU, got ",
        name_of(state.dtype()), " on ", to_string(state.device()));
  const Tensor dense = state.contiguous();
  const std::span bytes(dense.data<uint8_t>(), static_cast<size_t>(dense.numel()));
  with_lock(generator, [&] { device.is_host() ? generator.set_state(bytes) : generator.set_state(device, bytes); });
}

void seed(ops::Generator& generator, uint64_t value) {
  with_lock(generator, [&] { generator.set_seed(value); });
}
uint64_t seed_at(ops::Generator& generator, Device device) {
  if (device.is_host()) return generator.seed();
  uint64_t value = 0;
  std::memcpy(&value, bytes_of(generator, device).data(), sizeof value);
  return value;
}

void bind_generator(nb::module_& module) {
  auto type = nb::class_<PyGenerator>(module, "Generator");
  generator_type = reinterpret_cast<PyTypeObject*>(type.ptr());
  const auto init = [](PyGenerator* self, Device device) {
    device_runtime(device);
    auto own = std::make_unique<ops::Generator>(67280421310721ull, device.kind);
    ops::Generator* pointer = own.get();
    new (self) PyGenerator{pointer, std::move(own), device};
  };
  type.def("__init__", [=](PyGenerator* self, const Device& device) { init(self, device); }, nb::arg("device"));
  type.def("__init__", [=](PyGenerator* self, const std::string& device) { init(self, parse_device(device)); },
           nb::arg("device") = "cpu");
  type.def_prop_ro("device", [](const PyGenerator& self) { return self.device; });
  type.def("manual_seed", [](nb::object self, uint64_t value) {
    seed(*nb::cast<PyGenerator&>(self).generator, value);
    return self;
  }, nb::arg("seed"));
  type.def("seed", [](PyGenerator& self) {
    std::random_device source;
    const uint64_t value = (uint64_t{source()} << 32 | source()) & INT64_MAX;
    seed(*self.generator, value);
    return value;
  }, "Seeds with a random number of the system, and returns it.");
  type.def("initial_seed", [](const PyGenerator& self) { return seed_at(*self.generator, self.device); });
  type.def("get_state", [](const PyGenerator& self) { return state_of(*self.generator, self.device); });
  type.def("set_state", [](nb::object self, const Tensor& state) {
    const auto& own = nb::cast<PyGenerator&>(self);
    set_state(*own.generator, own.device, state);
    return self;
  }, nb::arg("state"));
  module.attr("default_generator") =
      nb::cast(new PyGenerator{&ops::default_generator(), nullptr, Device{}}, nb::rv_policy::take_ownership);
}

}  // namespace

ops::Generator* generator_in(PyObject* object) {
  if (Py_TYPE(object) != generator_type) return nullptr;
  return nb::inst_ptr<PyGenerator>(nb::handle(object))->generator;
}

void bind_runtime(nb::module_& module) {
  use_signal_stack();
  pthread_atfork(nullptr, nullptr, after_fork_in_child);
  bind_generator(module);
  module.def("get_num_threads", [] { return thread_budget(); });
  module.def("set_num_threads", [](int threads) {
    check(threads > 0, "set_num_threads: expected a positive number, got ", threads);
    if (is_forked.load() && threads > 1) {
      fail(ErrorCode::kFailedPrecondition,
           "set_num_threads: a process that was forked from one that used the engine has one thread; start it with the spawn "
           "method of multiprocessing instead");
    }
    set_thread_budget(threads);
  }, nb::arg("threads"), "For the calling thread: each has its own number.");
  module.def("use_deterministic_algorithms",
             [](bool mode) { execution_context().numerics.is_deterministic = mode; }, nb::arg("mode"),
             "For the calling thread, and threads that the engine starts for it.");
  module.def("are_deterministic_algorithms_enabled", [] { return execution_context().numerics.is_deterministic; });
  module.def("_allows_tf32", [](bool of_products) {
    const Numerics& numerics = execution_context().numerics;
    return of_products ? numerics.allows_tf32_products : numerics.allows_tf32_convolutions;
  });
  module.def("_allow_tf32", [](bool of_products, bool value) {
    Numerics& numerics = execution_context().numerics;
    (of_products ? numerics.allows_tf32_products : numerics.allows_tf32_convolutions) = value;
  });
  module.def("manual_seed", [](uint64_t value) {
    seed(ops::default_generator(), value);
    return nb::module_::import_("tensord.engine._engine").attr("default_generator");
  }, nb::arg("seed"));
  module.def("initial_seed", [] { return ops::default_generator().seed(); });
  module.def("get_rng_state", [] { return state_of(ops::default_generator(), Device{}); });
  module.def("set_rng_state", [](const Tensor& state) { set_state(ops::default_generator(), Device{}, state); },
             nb::arg("state"));
  module.def("_device_rng_state",
             [](const Device& device) { return state_of(ops::default_generator(), device); });
  module.def("_set_device_rng_state", [](const Device& device, const Tensor& state) {
    set_state(ops::default_generator(), device, state);
  });
}

}  // namespace tensord::python
