#include "core/tensor/device_copy.h"

#include "core/tensor/device_runtime.h"
#include "core/tensor/memory/pinned_memory.h"
#include "core/tensor/strided_copy.h"

namespace tensord {
namespace {

bool is_dense(const Tensor& tensor) { return is_non_overlapping_and_dense(tensor.sizes(), tensor.strides()); }

// Work submitted to `later` from now on waits for the work that `earlier` has now.
void order(DeviceRuntime& runtime, DeviceStream& earlier, DeviceStream& later) {
  const std::unique_ptr<DeviceEvent> event = runtime.make_event();
  event->record(earlier);
  event->hold(later);
}

// The streams' work on these tensors outlasts the call.
void record_streams(const Tensor& target, const Tensor& source, DeviceStream& stream) {
  target.storage()->record_stream(stream);
  source.storage()->record_stream(stream);
}

void copy_between_host_and_device(const Tensor& target, const Tensor& source) {
  const Device device = target.device().is_host() ? source.device() : target.device();
  DeviceStream& stream = current_stream(device);
  record_streams(target, source, stream);
  device_runtime(device).copy(target.raw_data(), target.device(), source.raw_data(), source.device(),
                              source.size_bytes(), stream);
  if (target.device().is_host()) stream.synchronize();
}

// Both tensors are dense, with the same strides and dtype, on two devices.
void copy_block(const Tensor& target, const Tensor& source) {
  const Device to = target.device(), from = source.device();
  if (to.is_host() || from.is_host()) return copy_between_host_and_device(target, source);
  if (to.kind != from.kind) {
    const Tensor between = Tensor::empty_strided(source.sizes(), source.strides(), source.dtype());
    copy_between_host_and_device(between, source);
    return copy_between_host_and_device(target, between);
  }
  DeviceRuntime& runtime = device_runtime(to);
  DeviceStream &reads = current_stream(from), &writes = current_stream(to);
  record_streams(target, source, writes);
  order(runtime, reads, writes);
  runtime.copy(target.raw_data(), to, source.raw_data(), from, source.size_bytes(), writes);
  order(runtime, writes, reads);
}

}  // namespace

void copy_elements(const Tensor& target, const Tensor& source) {
  if (target.numel() == 0) return;
  check_internal(!target.is_meta() && !source.is_meta(), "a copy of a tensor without data");
  const Device device = target.device();
  if (device == source.device()) {
    if (device.is_host()) return strided_copy(target, source);
    DeviceStream& stream = current_stream(device);
    record_streams(target, source, stream);
    return device_runtime(device).copy_strided(target, source, stream);
  }
  Tensor packed = source;
  if (source.dtype() != target.dtype() || !is_dense(source)) {
    packed = Tensor::empty(source.sizes(), target.dtype(), source.device());
    copy_elements(packed, source);
  }
  if (target.strides() == packed.strides()) return copy_block(target, packed);
  const Tensor landed = Tensor::empty_strided(packed.sizes(), packed.strides(), packed.dtype(), device);
  copy_block(landed, packed);
  copy_elements(target, landed);
}

void zero_elements(const Tensor& dense) {
  if (dense.numel() == 0) return;
  const Device device = dense.device();
  device_runtime(device).fill(dense.raw_data(), 0, dense.size_bytes(), current_stream(device));
}

Tensor send_to(const Tensor& source, Device device) {
  const bool is_sent = !device.is_host() && source.device().is_host() && source.numel() > 0 && is_dense(source) &&
                       is_pinned_address(source.raw_data());
  if (!is_sent) return source.to(device);
  const Tensor target = Tensor::empty_strided(source.sizes(), source.strides(), source.dtype(), device);
  DeviceStream& stream = current_stream(device);
  target.storage()->record_stream(stream);
  device_runtime(device).copy_pinned(target.raw_data(), device, source.raw_data(), source.size_bytes(), stream);
  return target;
}

}  // namespace tensord
