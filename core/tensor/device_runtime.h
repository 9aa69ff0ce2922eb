#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/base/device.h"
#include "core/tensor/allocator.h"

namespace tensord {

class Tensor;

// A queue of one device's work: pieces run one after the other, and the host goes on meanwhile. Any thread may use one;
// the order of pieces from several threads is theirs to see to.
class DeviceStream {
 public:
  explicit DeviceStream(Device device);
  virtual ~DeviceStream() = default;
  DeviceStream(const DeviceStream&) = delete;
  DeviceStream& operator=(const DeviceStream&) = delete;

  Device device() const { return device_; }
  // Returns when all that was queued before has run. Throws Error, once, when a piece of it failed.
  virtual void synchronize() = 0;
  // What the device's own libraries call it (cudaStream_t); null where there is nothing of the kind.
  virtual void* handle() const { return nullptr; }

 protected:
  // What a destructor does when it has waited for the stream's work: afterwards nobody records points in it.
  void close();

 private:
  const Device device_;
};

// Whether this is a stream that was not closed. Those that were have no work left.
bool is_open(const DeviceStream* stream);

// A point in a stream's work; none until `record`. Used by one thread at a time.
class DeviceEvent {
 public:
  virtual ~DeviceEvent() = default;
  virtual void record(DeviceStream& stream) = 0;
  // What `stream`, of any device of this kind, is given from now on waits for the point; the host goes on.
  virtual void hold(DeviceStream& stream) const = 0;
  // Whether the point has passed; true when there is none.
  virtual bool is_done() const = 0;
  virtual void synchronize() const = 0;
};

// Records the point when `stream` is open; else does nothing and says so. For whoever does not own the stream.
bool record_if_open(DeviceEvent& event, DeviceStream* stream);

// Everything that the engine above the kernels knows of a kind of device. One object a kind, for all its devices, for
// the life of the process. Thread-safe. A stream that is an argument is of the device whose memory is written, or, on
// the way to the host, read. Errors of the device are thrown as Error by the call, or by a later one that waits.
class DeviceRuntime {
 public:
  virtual ~DeviceRuntime() = default;

  // Devices of this kind on this machine. Asked often.
  virtual int count() const = 0;
  // Raw memory of a device, under its caching allocator.
  virtual std::unique_ptr<Allocator> make_allocator(int index) = 0;

  virtual DeviceStream& default_stream(int index) = 0;
  virtual std::unique_ptr<DeviceStream> make_stream(int index) = 0;
  virtual std::unique_ptr<DeviceEvent> make_event() = 0;
  // Returns when all work of the device, of every stream, has run. Throws as DeviceStream::synchronize.
  virtual void synchronize(int index) = 0;

  // Queues a copy of bytes between the host and a device of this kind, or two of this kind. Memory of the host is read
  // before the call returns, and may be read by the host once the stream was synchronized.
  virtual void copy(void* to, Device to_device, const void* from, Device from_device, size_t size_bytes,
                    DeviceStream& stream) = 0;
  // The same from pinned memory of the host (pinned_memory.h) that nobody writes or frees until the stream was
  // synchronized: the device reads it by itself.
  virtual void copy_pinned(void* to, Device to_device, const void* from, size_t size_bytes, DeviceStream& stream) {
    copy(to, to_device, from, {}, size_bytes, stream);
  }
  // Queues the writing of one byte all over.
  virtual void fill(void* data, uint8_t byte, size_t size_bytes, DeviceStream& stream) = 0;
  // Queues a copy within one device: same sizes, any strides and dtypes, converted as strided_copy does. The target's
  // elements overlap with the source's wholly or not at all.
  virtual void copy_strided(const Tensor& target, const Tensor& source, DeviceStream& stream) = 0;
};

// Called once for a kind, before threads start; the processor's is there from the beginning. `runtime` lives as long as
// the process.
void register_device_runtime(DeviceKind kind, DeviceRuntime& runtime);
// Throws Error{kUnimplemented} naming the device when this build has no such kind, or this machine no such device.
DeviceRuntime& device_runtime(Device device);

// The stream that work of the calling thread for `device` goes to: its context's when that is one of this device, else
// the device's default one. Throws as device_runtime.
DeviceStream& current_stream(Device device);

// Returns when what the calling thread queued for `device` has run.
inline void synchronize(Device device) { current_stream(device).synchronize(); }

}  // namespace tensord
