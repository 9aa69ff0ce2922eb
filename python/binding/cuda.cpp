#include "core/tensor/cuda/cuda_runtime.h"
#include "core/tensor/cuda/plugin.h"
#include "core/tensor/cuda/runtime.h"
#include "core/tensor/memory/caching_allocator.h"
#include "python/binding/convert.h"
#include "python/binding/interrupt.h"

// The base of tensord.engine.cuda: devices, streams and events under PyTorch's names.
namespace tensord::python {
namespace {

Device gpu(int index) {
  const Device device{kCUDA, static_cast<int8_t>(index)};
  check(index >= 0 && index < 128, "there is no device cuda:", index);
  device_runtime(device);
  return device;
}

// A stream of its own, or the device's default one.
struct Stream {
  std::shared_ptr<DeviceStream> stream;
};

Stream current(int index) {
  return {std::shared_ptr<DeviceStream>(std::shared_ptr<void>(), &current_stream(gpu(index)))};
}

struct Event {
  std::unique_ptr<DeviceEvent> event = device_runtime(gpu(0)).make_event();
};

nb::dict stats_of(int index) {
  const AllocatorStats stats = allocator_for(gpu(index)).stats();
  nb::dict out;
  out["allocated_bytes.all.current"] = stats.live_bytes;
  out["allocated_bytes.all.peak"] = stats.peak_live_bytes;
  out["reserved_bytes.all.current"] = stats.reserved_bytes;
  out["inactive_split_bytes.all.current"] = stats.cached_bytes;
  out["allocation.all.allocated"] = stats.allocations;
  out["num_ooms"] = stats.out_of_memory;
  return out;
}

nb::tuple memory_info(int index) {
  const Device device = gpu(index);
  uint64_t free_bytes = 0, total_bytes = 0;
  cuda::check_cuda(cuda::api().memory_info(device.index, &free_bytes, &total_bytes), "memory of the device");
  return nb::make_tuple(free_bytes, total_bytes);
}

nb::dict properties_of(int index) {
  const Device device = gpu(index);
  const cuda::DeviceProperties& found = cuda::device_properties(device.index);
  nb::dict out;
  out["name"] = found.name;
  out["major"] = found.major;
  out["minor"] = found.minor;
  out["total_memory"] = found.memory_bytes;
  out["multi_processor_count"] = found.multiprocessors;
  return out;
}

void bind_streams(nb::module_& module) {
  nb::class_<Stream> stream(module, "_CudaStream");
  stream.def("__init__", [](Stream* self, int index, int priority) {
    new (self) Stream{cuda::make_stream(gpu(index).index, priority)};
  });
  stream.def("synchronize", [](Stream& self) { interruptible([&] { self.stream->synchronize(); }); });
  stream.def_prop_ro("index", [](const Stream& self) { return static_cast<int>(self.stream->device().index); });
  stream.def_prop_ro("handle", [](const Stream& self) { return reinterpret_cast<uintptr_t>(self.stream->handle()); });
  stream.def("wait_event", [](Stream& self, const Event& event) { event.event->hold(*self.stream); });
  // The stream that the calling thread's work went to before, as an address for `leave`.
  stream.def("enter", [](Stream& self) {
    return reinterpret_cast<uintptr_t>(std::exchange(execution_context().stream, self.stream.get()));
  });
  module.def("_cuda_leave_stream",
             [](uintptr_t before) { execution_context().stream = reinterpret_cast<DeviceStream*>(before); });
  module.def("_cuda_current_stream", current);
  nb::class_<Event> event(module, "_CudaEvent");
  event.def("__init__", [](Event* self) { new (self) Event; });
  event.def("record", [](Event& self, Stream& stream) { self.event->record(*stream.stream); });
  event.def("query", [](const Event& self) { return self.event->is_done(); });
  event.def("synchronize", [](const Event& self) { interruptible([&] { self.event->synchronize(); }); });
}

}  // namespace

void bind_cuda(nb::module_& module) {
  bind_streams(module);
  module.def("_cuda_device_count", [] { return cuda::device_count(); });
  module.def("_cuda_problem", [] { return nb::str(cuda::why_no_devices().c_str()); });
  module.def("_cuda_synchronize",
             [](int index) { interruptible([&] { device_runtime(gpu(index)).synchronize(index); }); });
  module.def("_cuda_memory_stats", stats_of);
  module.def("_cuda_memory_info", memory_info);
  module.def("_cuda_properties", properties_of);
  module.def("_cuda_empty_cache", [] {
    for (int i = 0; i < cuda::device_count(); ++i) allocator_for(gpu(i)).trim();
  });
}

}  // namespace tensord::python
